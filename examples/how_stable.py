# %% [markdown]
# # How stable is the answer?
# Another sample would have given another graph. Replicates of the data show how different: each is searched in the
# same way and compared with the graph found. Twenty keep this page quick; two hundred are usual.

# %%
import unmeasured as um

data = um.datasets.load("multitasking")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
stable = um.stability(search, n_replicates=20, random_state=1)
print(stable)

# %% [markdown]
# Who shares a group with whom, over all replicates. A clear block is a latent that comes back.

# %%
stable.plot()

# %% [markdown]
# Items one by one: `AverageQus_Par1` is an indicator of two latents in the graph found, and in many replicates of one.

# %%
print(stable.items.round(2).to_string())

# %% [markdown]
# What comes back in 70% of the replicates, as a graph. The edge between the first two latents is gone.

# %%
print(stable.consensus(0.7))

# %% [markdown]
# ## Models that came close
# In the same data, without replicates: classes that the search visited and that scored nearly as well, and how
# many of their edges the answer shares.

# %%
print(search.result_.runners_up.head().round(2).to_string())

# %% [markdown]
# ## The penalty path
# The graph at BIC's own penalty, twice and four times as much. What stays is there not only because rows are many.

# %%
print(um.penalty_path(search, [1, 2, 4]))

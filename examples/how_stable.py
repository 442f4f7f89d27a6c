# %% [markdown]
# # How stable is the result?
# Another sample would have given a somewhat different graph. `um.stability` draws replicates of the data, searches
# each of them, and compares the results with the graph found. This page uses twenty replicates to save time; two
# hundred are usual.

# %%
import unmeasured as um

data = um.datasets.load("multitasking")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
stable = um.stability(search, n_replicates=20, random_state=1)
print(stable)

# %% [markdown]
# How often two items are in the same group. A clear block is a latent that is found in most replicates.

# %%
stable.plot()

# %% [markdown]
# Results for single items: `AverageQus_Par1` is an indicator of two latents in the graph found, but of only one
# latent in many replicates.

# %%
print(stable.items.round(2).to_string())

# %% [markdown]
# The consensus contains what is found in at least 70% of the replicates. The edge between the first two latents is
# not part of it.

# %%
print(stable.consensus(0.7))

# %% [markdown]
# ## Models that came close
# Without replicates, the search also reports other classes that it visited and that have nearly the same score, and
# how many of their edges are also in the result.

# %%
print(search.result_.runners_up.head().round(2).to_string())

# %% [markdown]
# ## The penalty path
# The search is repeated with the penalty of BIC, and with two and four times this penalty. What remains with a larger
# penalty does not depend on a large sample.

# %%
print(um.penalty_path(search, [1, 2, 4]))

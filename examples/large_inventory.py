# %% [markdown]
# # A large inventory
# Sixty items, fifteen facets of four items each, five traits over the facets, 2000 people. The data are simulated, so
# that the true model is known. To use your own file, start with the second cell.

# %%
import unmeasured as um

truth = um.simulate.hierarchy(n_traits=5, n_facets=3, n_items=4, rng=1)
rows = um.simulate.sample(truth, 2000, rng=2)
rows.to_csv("inventory.csv", index=False)

# %% [markdown]
# ## Before the search
# Are the data suitable, and how long will the search take? `um.estimate_cost` estimates seconds and memory for your
# machine.

# %%
rows = um.read("inventory.csv")
print(um.check(rows))
cost = um.estimate_cost(rows)  # print(cost): seconds and memory on this machine

# %% [markdown]
# ## Search
# With `time_limit=600` the search would return the best model after at most ten minutes; Ctrl-C has the same effect.
# `verbose=True` shows the progress. On the command line: `unmeasured discover inventory.csv --time-limit 600 --out
# report`.

# %%
search = um.LGES(time_limit=600).fit(rows)
result = search.result_
print("latents at each level:", [partition.nunique() for partition in result.partitions])
for trait, facets in search.graph_.facets.items():
    print(trait, "is measured by", *facets)

# %% [markdown]
# ## Levels
# The lowest level shows which items belong together, the next level which facets do.

# %%
facets = result.partitions[0]
for latent in list(dict.fromkeys(facets))[:4]:
    print(latent, *facets.index[facets == latent])
print(f"RMSEA {result.fit.rmsea:.3f}, CFI {result.fit.cfi:.3f}, SRMR {result.fit.srmr:.3f}")

# %% [markdown]
# With more than 40 variables the diagram shows only the latents, with their strongest indicators as text.

# %%
result.plot()

# %% [markdown]
# ## Comparison with the true model
# Every facet is found with exactly its items. In the true model any two of the five traits have the same correlation.
# The search explains this by one latent above the traits, which needs fewer parameters than the ten edges of the true
# model.

# %%
true_facets = {frozenset(truth.dag.children(f"F{i}")) for i in range(1, 16)}
found_facets = {frozenset(facets.index[facets == latent]) for latent in facets.unique()}
print("facets with exactly their items:", len(true_facets & found_facets), "of", len(true_facets))

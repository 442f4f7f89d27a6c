# %% [markdown]
# # A large inventory
# Sixty items, fifteen facets of four items each, five traits over the facets, 2000 people. The data are simulated, so
# that the truth is known; with a file of your own, begin at the second cell.

# %%
import unmeasured as um

truth = um.simulate.hierarchy(n_traits=5, n_facets=3, n_items=4, rng=1)
rows = um.simulate.sample(truth, 2000, rng=2)
rows.to_csv("inventory.csv", index=False)

# %% [markdown]
# ## Before the search
# Are the data fit for it, and what will it take? `um.estimate_cost` answers in seconds and memory of your machine.

# %%
rows = um.read("inventory.csv")
print(um.check(rows))
cost = um.estimate_cost(rows)  # print(cost): seconds and memory on this machine

# %% [markdown]
# ## Search
# `time_limit=600` would return the best model after ten minutes at the latest; so does Ctrl-C. `verbose=True` shows how
# far the search is. On the command line: `unmeasured discover inventory.csv --time-limit 600 --out report`.

# %%
search = um.LGES(time_limit=600).fit(rows)
result = search.result_
print("latents at each level:", [level.nunique() for level in result.levels])
for trait, facets in search.graph_.facets.items():
    print(trait, "is measured by", *facets)

# %% [markdown]
# ## Read it
# The lowest level says which items belong together; the next one which facets do.

# %%
facets = result.levels[0]
for latent in list(dict.fromkeys(facets))[:4]:
    print(latent, *facets.index[facets == latent])
print(f"RMSEA {result.fit.rmsea:.3f}, CFI {result.fit.cfi:.3f}, SRMR {result.fit.srmr:.3f}")

# %% [markdown]
# With more than 40 variables the picture shows the latents alone, with their strongest indicators as text.

# %%
result.plot()

# %% [markdown]
# ## Beside the truth
# Every facet is found with exactly its items. In the truth any two of the five traits correlate equally; the search
# explains that by one latent above them, with fewer parameters than the ten edges that the model was drawn from.

# %%
true_facets = {frozenset(truth.dag.children(f"F{i}")) for i in range(1, 16)}
found_facets = {frozenset(facets.index[facets == latent]) for latent in facets.unique()}
print("facets with exactly their items:", len(true_facets & found_facets), "of", len(true_facets))

# %% [markdown]
# # Reading a trace
# A trace shows what a search tried and why a step was accepted. The trace of the paper's algorithm is easier to read,
# because this algorithm goes in one direction: it starts with all edges and removes edges as long as the likelihood
# allows it.

# %%
import unmeasured as um

edges = [("A", "B"), *[("A", f"a{i}") for i in range(1, 4)], *[("B", f"b{i}") for i in range(1, 4)]]
truth = um.DAG.from_edges(edges, latents=["A", "B"])
population = um.simulate.realistic_parameters(truth, rng=1)
search = um.LGES(criterion="delta").fit(um.simulate.sample(population, 1000, rng=2))
print(search.trace_)

# %% [markdown]
# As a table, for example to count how many candidates were rejected by the closed-form bound without a fit.

# %%
steps = search.trace_.to_frame()
print(steps[["phase", "n_candidates", "n_bounded", "n_fitted", "accepted"]].to_string())
print("refused without a fit:", steps["n_bounded"].sum(), "of", steps["n_candidates"].sum())

# %% [markdown]
# The report draws the trace step by step, with the reason for each step.

# %%
page = um.write_report(search, "trace")
print("written:", *sorted(path.name for path in page.parent.iterdir()))

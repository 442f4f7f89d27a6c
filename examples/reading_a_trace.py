# %% [markdown]
# # Reading a trace
# A search says what it tried, what it cost and why it was kept. The paper's algorithm goes one way, so its trace is the
# easier one to read: it begins with everything connected and takes edges away for as long as the likelihood allows.

# %%
import unmeasured as um

edges = [("A", "B"), *[("A", f"a{i}") for i in range(1, 4)], *[("B", f"b{i}") for i in range(1, 4)]]
truth = um.DAG.from_edges(edges, latents=["A", "B"])
population = um.simulate.realistic_parameters(truth, rng=1)
search = um.LGES(criterion="delta").fit(um.simulate.sample(population, 1000, rng=2))
print(search.trace_)

# %% [markdown]
# As a table, to count: how many candidates the closed-form bound refused without a fit.

# %%
steps = search.trace_.to_frame()
print(steps[["phase", "n_candidates", "n_bounded", "n_fitted", "accepted"]].to_string())
print("refused without a fit:", steps["n_bounded"].sum(), "of", steps["n_candidates"].sum())

# %% [markdown]
# The report draws it, step by step, with the reason behind each dot.

# %%
page = um.write_report(search, "trace")
print("written:", *sorted(path.name for path in page.parent.iterdir()))

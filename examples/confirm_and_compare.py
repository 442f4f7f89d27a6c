# %% [markdown]
# # Confirm a model, and compare it with others
# A search keeps what looks large in its rows, so in these rows its standard errors are too small. We search one half of
# the rows and estimate in the other. The rows are simulated: three latents, four items each, 1000 people.

# %%
import unmeasured as um

edges = [("strain", "sleep"), ("sleep", "mood"), ("strain", "mood")]
edges += [(latent, f"{latent}{i}") for latent in ("strain", "sleep", "mood") for i in range(1, 5)]
truth = um.DAG.from_edges(edges, latents=["strain", "sleep", "mood"])
rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=4), 1000, rng=5)
first, second = um.split_rows(rows, 0.5, rng=1)

search = um.LGES().fit(first)
found = search.result_.rename()
print(found.graph)

# %% [markdown]
# ## Confirm
# The same graph in the second half: fit indices side by side, and which loadings and paths differ from zero there. The
# command is `unmeasured discover rows.csv --confirm 0.5`.

# %%
confirmed = um.confirm(found, second)
print(confirmed)

# %% [markdown]
# The truth has no loading of `mood3` on sleep and none of `strain3` on mood: chance put them into the first half, and
# in the second they are not there. The paths between the latents are.

# %%
columns = ["source", "target", "std", "std_se", "directed"]
print(confirmed.result.latent_paths[columns].round(3).to_string(index=False))

# %% [markdown]
# ## Compare
# Two models that somebody may have had in mind before, as lavaan text, beside the one that was found. All are fitted to
# the second half, which none of them has seen. Each is also fitted to four fifths of these rows and judged by the
# log-likelihood of the last fifth, five times (`folds=5`).

# %%
rivals = {
    "found": found.graph,
    "three factors": """
        strain =~ strain1 + strain2 + strain3 + strain4
        sleep  =~ sleep1 + sleep2 + sleep3 + sleep4
        mood   =~ mood1 + mood2 + mood3 + mood4
    """,
    "one factor": "general =~ " + " + ".join(rows.columns),
}
compared = um.compare_models(rivals, second, folds=5)
print(compared)

# %% [markdown]
# One factor is far behind. Three factors do without the two loadings that chance had added, and so have the better BIC.
# In rows left out they and the model found differ by less than a standard error.

# %% [markdown]
# # Confirm a model, and compare it with others
# A search selects what is large in its own rows, so its standard errors are too small in these rows. We search in one
# half of the rows and estimate in the other. The rows are simulated: three latents, four items each, 1000 people.

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
# The same graph is estimated in the second half. The output compares fit indices, and shows which loadings and paths
# differ from zero there. On the command line, use `unmeasured discover rows.csv --holdout 0.5`.

# %%
confirmed = um.confirm(found, second)
print(confirmed)

# %% [markdown]
# In the true model `mood3` has no loading on sleep and `strain3` has none on mood. The search found these loadings by
# chance in the first half, and they are not confirmed in the second half. The paths between the latents are
# confirmed.

# %%
columns = ["source", "target", "std", "std_se", "directed"]
print(confirmed.result.latent_paths[columns].round(3).to_string(index=False))

# %% [markdown]
# ## Compare
# We compare the model found with two models that could have been specified in advance, written in lavaan syntax. All
# are fitted to the second half, which was not used to select any of them. With `folds=5`, each model is also fitted
# to four fifths of these rows and evaluated by the log-likelihood of the remaining fifth, five times.

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
# The model with one factor fits much worse. The model with three factors does not have the two loadings that were
# found by chance, and has the better BIC. In cross-validation it differs from the model found by less than a standard
# error.

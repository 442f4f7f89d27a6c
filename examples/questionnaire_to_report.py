# %% [markdown]
# # A questionnaire, from file to report
# We simulate a file, so that the true model is known: twelve items, three latents in a chain, 600 people, and an
# identifier that should not be analysed.

# %%
import unmeasured as um

chain = [("strain", "sleep"), ("sleep", "mood")]
items = [(latent, f"{latent}{i}") for latent in ("strain", "sleep", "mood") for i in range(1, 5)]
truth = um.DAG.from_edges(chain + items, latents=["strain", "sleep", "mood"])
answers = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=4), 600, rng=5)
answers.insert(0, "person", [f"p{i:03d}" for i in range(len(answers))])
answers.to_csv("answers.csv", index=False)

# %% [markdown]
# Read the file without the identifier, and check the data before the search.

# %%
columns = [name for _, name in items]
rows = um.read("answers.csv", columns=columns)
print(um.check(rows))

# %% [markdown]
# Search, and compare the result with the true model. The directions in a chain are not identified: all three possible
# graphs fit equally well, and none counts as wrong. The only difference from the true model is one loading of
# `strain4`, which was found by chance.

# %%
search = um.LGES().fit(rows)
print(search.graph_)
print("edges that differ from the truth:", um.metrics.compare(truth, search.graph_).shd)

# %% [markdown]
# The report is a single page that can be opened without a network. On the command line, the same is `unmeasured
# discover answers.csv --columns 'strain*,sleep*,mood*' --out report`.

# %%
page = um.write_report(search, "report", title="Strain, sleep and mood", data="answers.csv")
print("written:", *sorted(path.name for path in page.parent.iterdir()))

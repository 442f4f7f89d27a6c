# %% [markdown]
# # A questionnaire, from file to report
# To have a file whose truth we know, we draw one: twelve items, three latents in a chain, 600 people, and an identifier
# that no analysis should touch.

# %%
import unmeasured as um

chain = [("strain", "sleep"), ("sleep", "mood")]
items = [(latent, f"{latent}{i}") for latent in ("strain", "sleep", "mood") for i in range(1, 5)]
truth = um.DAG.from_edges(chain + items, latents=["strain", "sleep", "mood"])
answers = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=4), 600, rng=5)
answers.insert(0, "person", [f"p{i:03d}" for i in range(len(answers))])
answers.to_csv("answers.csv", index=False)

# %% [markdown]
# Read it, leave the identifier out, and look before the search.

# %%
columns = [name for _, name in items]
rows = um.read("answers.csv", columns=columns)
print(um.check(rows))

# %% [markdown]
# Search, and compare with the truth. The data tell a chain only up to its direction: all three ways to write it fit
# alike, and none counts as wrong. What does count here is one loading of `strain4` that chance put there.

# %%
search = um.LGES().fit(rows)
print(search.graph_)
print("edges that differ from the truth:", um.metrics.compare(truth, search.graph_).shd)

# %% [markdown]
# The report is one page that opens without a network. On the command line the same is
# `unmeasured discover answers.csv --columns 'strain*,sleep*,mood*' --out report`.

# %%
page = um.write_report(search, "report", title="Strain, sleep and mood", data="answers.csv")
print("written:", *sorted(path.name for path in page.parent.iterdir()))

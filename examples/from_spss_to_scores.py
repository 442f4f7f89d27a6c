# %% [markdown]
# # From an SPSS file to a confirmed model, scores and a report
# The file is simulated, so that the true model is known: three latents, four items each with five answers, 1200
# people in three schools, five percent of the answers missing. To use your own file, start with the second cell.

# %%
import numpy as np
import pandas as pd
import pyreadstat

import unmeasured as um

edges = [("strain", "sleep"), ("sleep", "mood")]
edges += [(latent, f"{latent}{i}") for latent in ("strain", "sleep", "mood") for i in range(1, 5)]
truth = um.DAG.from_edges(edges, latents=["strain", "sleep", "mood"])
answers = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=4), 1200, rng=5)
answers = answers.apply(lambda x: np.digitize(x, [-1.2, -0.4, 0.4, 1.2]) + 1.0)
answers = answers.mask(np.random.default_rng(0).random(answers.shape) < 0.05)
answers.insert(0, "person", np.arange(1.0, 1201.0))
answers.insert(1, "school", np.random.default_rng(1).integers(1, 4, 1200).astype(float))
pyreadstat.write_sav(answers, "answers.sav")

# %% [markdown]
# ## Read and split the data
# Half of the rows are used for the search, the other half for all results that are reported. Each school is split in
# the same way.

# %%
rows = um.read("answers.sav")
items = [name for name in rows.columns if name not in ("person", "school")]
first, second = um.split_rows(rows, 0.5, by="school", rng=1)
print(len(first), "rows to search,", len(second), "to confirm in")

# %% [markdown]
# ## Search
# `cor="auto"` treats items with few values as ordinal.

# %%
search = um.LGES(cor="auto").fit(first[items])
found = search.result_.rename()
print(found.graph)

# %% [markdown]
# ## Confirm
# The same graph is estimated in rows that were not used in the search. On the command line: `unmeasured discover
# answers.sav --columns '*1,*2,*3,*4' --holdout 0.5 --stratify-by school`.

# %%
confirmed = um.confirm(found, second[items])
for sentence in confirmed.sentences:
    print("-", sentence)
result = confirmed.result

# %% [markdown]
# ## Effects
# The directions in a chain are not identified, so an effect may have several possible values.

# %%
print(result.effects())

# %% [markdown]
# Prior knowledge can decide what the data do not identify: strain came before sleep, and sleep before mood.

# %%
known = um.Knowledge(
    groups={latent: [f"{latent}{i}" for i in range(1, 5)] for latent in ("strain", "sleep", "mood")},
    tiers=[["strain"], ["sleep"], ["mood"]],
)
ordered = um.confirm(um.LGES(cor="auto", knowledge=known).fit(first[items]), second[items]).result
print(ordered.effects("strain", "mood"))

# %% [markdown]
# ## Scores
# There is one line for each person, in the order of the file. If answers are missing, the standard error is larger.

# %%
scores = pd.concat([rows[["person"]], ordered.fit.scores(rows, standard_errors=True)], axis=1)
scores.to_csv("scores.csv", index=False)
print(scores.head().round(2).to_string(index=False))
print(ordered.fit.determinacy()["determinacy"].round(2).to_dict())

# %% [markdown]
# ## Reliability of the scales

# %%
print(ordered.reliability())
print("people scored:", len(scores))

# %% [markdown]
# ## The report
# A single page with all these results. `unmeasured discover answers.sav --out report` writes the same.

# %%
page = um.write_report(ordered, "report", title="Strain, sleep and mood", data="answers.sav")
print("written:", *sorted(path.name for path in page.parent.iterdir()))
ordered.plot()

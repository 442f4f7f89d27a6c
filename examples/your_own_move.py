# %% [markdown]
# # Writing your own search move
# The search goes from one measurement model to the next by moves: other parents for a variable, groups merged, split,
# resized. You may know of one that fits your field. Items of a questionnaire, say, often come in pairs that are
# worded alike; a move of our own gives each such pair a latent of its own. A move is a function from a model to others
# that are worth a try. All of them are fitted, and one is taken only if that raises the score.
#
# In a model, `sizes[g]` is the number of latents of group g, and bit g of `parents[j]` says whether group g causes
# variable j. Models are never changed: make new ones.

# %%
from itertools import combinations

import unmeasured as um
from unmeasured.search.model import FactorModel

tried = []


def worded_alike(model):
    """Two items of one group that share all but the last letter of their names get a latent of their own."""
    for i, j in combinations(range(len(model.observed)), 2):
        alike = model.observed[i][:-1] == model.observed[j][:-1]
        if alike and model.parents[i] == model.parents[j]:
            pair = FactorModel(model.observed, (*model.sizes, 1), model.parents)
            for item in (i, j):
                pair = pair.with_parents(item, 1 << len(model.sizes))
            tried.append((model.observed[i], model.observed[j]))
            yield pair


# %% [markdown]
# Eight items about one thing, two of which, `sleep_a` and `sleep_b`, also share their wording.

# %%
items = ["work1", "work2", "home1", "home2", "food1", "food2"]
edges = [("Strain", "Sleep"), *[("Strain", item) for item in items], ("Sleep", "sleep_a"), ("Sleep", "sleep_b")]
truth = um.DAG.from_edges(edges, latents=["Strain", "Sleep"])
rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=3), 1000, rng=4)

search = um.LGES(moves=[worded_alike]).fit(rows)
print(search.result_.method)
print(f"{len(tried)} models of our move were tried, the first for", *tried[0])
for step in search.trace_.accepted():
    print(step)

# %% [markdown]
# A move can only help the search to find what scores better; it cannot talk it into anything. Here the search finds the
# pair without our help as well, and both ways end in the same graph.

# %%
print("the same without it:", um.LGES().fit(rows).graph_ == search.graph_)
print("edges that differ from the truth:", um.metrics.compare(truth, search.graph_).shd)

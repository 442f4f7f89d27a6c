# %% [markdown]
# # Writing your own search move
# The search goes from one measurement model to another by moves: it changes the parents of a variable, and merges,
# splits or resizes groups. You can add moves for your own field. For example, items of a questionnaire often come in
# pairs with similar wording; the move on this page gives each such pair its own latent. A move is a function that
# takes a model and yields other models to try. All of them are fitted, and a model is accepted only if it improves
# the score.
#
# In a model, `sizes[g]` is the number of latents of group g, and bit g of `parents[j]` is set if group g causes
# variable j. Models are immutable, so a move creates new ones.

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
# Eight items of one latent. Two of them, `sleep_a` and `sleep_b`, also have similar wording.

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
# A move can only help the search to find models with a better score; it does not change the score. In this example
# the search finds the pair without our move as well, and both searches give the same graph.

# %%
print("the same without it:", um.LGES().fit(rows).graph_ == search.graph_)
print("edges that differ from the truth:", um.metrics.compare(truth, search.graph_).shd)

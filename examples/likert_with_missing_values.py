# %% [markdown]
# # Likert items with missing values
# Eight items with four answers each, ten percent of them missing. Pearson correlations of such items are too small.
# `cor="auto"` treats items with few values as ordinal and estimates polychoric correlations.

# %%
import numpy as np

import unmeasured as um

edges = [("calm", "warm"), *[(latent, f"{latent}{i}") for latent in ("calm", "warm") for i in range(1, 5)]]
truth = um.DAG.from_edges(edges, latents=["calm", "warm"])
rows = um.simulate.sample(um.simulate.realistic_parameters(truth, rng=3), 800, rng=8)
items = rows.apply(lambda x: np.digitize(x, [-1.0, 0.2, 1.1]) + 1.0)
items = items.mask(np.random.default_rng(0).random(items.shape) < 0.1)
print(items.head())

# %% [markdown]
# The remarks describe how the data were prepared: the kind of correlations and the effective sample size.

# %%
sample = um.as_sample(items, cor="auto")
print(*sample.remarks, sep="\n")
print(sample.pairs.head(3).round(2).to_string(index=False))

# %%
search = um.LGES().fit(sample)
print(search.graph_)
print("edges that differ from the truth:", um.metrics.compare(truth, search.graph_).shd)

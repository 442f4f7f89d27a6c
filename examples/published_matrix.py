# %% [markdown]
# # A published correlation matrix
# Often an article reports only the lower triangle of a correlation matrix and the sample size. This is sufficient for
# a search. (These correlations are simulated.)

# %%
import unmeasured as um

table = """
1. Reading      —
2. Spelling    .62**   —
3. Grammar     .58**  .55**   —
4. Algebra     .31**  .28**  .30**   —
5. Geometry    .29**  .30**  .27**  .60**   —
6. Arithmetic  .33**  .27**  .28**  .64**  .59**   —
"""
matrix = um.read_matrix(table)
print(matrix)

# %%
search = um.LGES().fit_cov(matrix, n_samples=412)
result = search.result_.rename({"L1": "language", "L2": "maths"})
print(result.loadings[["latent", "indicator", "std", "std_se"]].round(3).to_string(index=False))
print(result.latent_paths[["source", "target", "std", "directed"]].round(3).to_string(index=False))

# %%
result.plot()

# %% [markdown]
# To continue in R: the same model in lavaan syntax, with the same chi-square and degrees of freedom.

# %%
print(result.to_lavaan())

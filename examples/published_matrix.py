# %% [markdown]
# # A published correlation matrix
# An article printed the lower triangle and the number of people; nothing else is needed. (These figures are simulated.)

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
# For those who go on in R: the same model, with the same chi-square and degrees of freedom.

# %%
print(result.to_lavaan())

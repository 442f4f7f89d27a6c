# %% [markdown]
# # First discovery, in ten lines
# The data are a correlation matrix of nine scores of 202 people who worked on two tasks at once. Which latent
# variables explain the correlations?

# %%
import unmeasured as um

data = um.datasets.load("multitasking")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
result = search.result_.rename()  # names from what the indicators share
print(result.summary())

# %% [markdown]
# The same as a diagram: ellipses are latent variables, boxes are observed variables. The ending of the file name
# determines the format.

# %%
result.plot("latents", style="print").savefig("multitasking-latents.pdf")
result.plot()

# %% [markdown]
# # First discovery, in ten lines
# Nine scores of 202 people who did two things at once, as a correlation matrix. What stands behind them?

# %%
import unmeasured as um

data = um.datasets.load("multitasking")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
result = search.result_.rename()  # names from what the indicators share
print(result.summary())

# %% [markdown]
# The same as a picture: ellipses are latent, boxes observed; the ending decides the format.

# %%
result.plot("latents", style="print").savefig("multitasking-latents.pdf")
result.plot()

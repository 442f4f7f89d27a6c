# %% [markdown]
# # Covariates: age, gender and school
# Nine tests of 301 pupils in two schools (Holzinger and Swineford 1939), with age, gender and school, which are not
# caused by abilities. The correlation matrix is sufficient.

# %%
import numpy as np
import pandas as pd

import unmeasured as um

names = [*(f"x{i}" for i in range(1, 10)), "age", "girl", "grant_white"]
triangle = """
1
.297 1
.441 .340 1
.373 .153 .159 1
.293 .139 .077 .733 1
.357 .193 .198 .704 .720 1
.067 -.076 .072 .174 .102 .121 1
.224 .092 .186 .107 .139 .150 .487 1
.390 .206 .329 .208 .227 .214 .341 .449 1
-.047 -.003 .048 -.209 -.240 -.177 .130 .248 .110 1
-.081 -.118 -.182 .120 .058 .011 .116 -.042 .046 -.160 1
-.005 .092 -.218 .213 .278 .250 -.235 -.037 -.045 -.261 -.022 1
"""
lower = np.zeros((12, 12))
lower[np.tril_indices(12)] = [float(value) for value in triangle.split()]
R = pd.DataFrame(lower + np.tril(lower, -1).T, index=names, columns=names)

# %% [markdown]
# Declared as covariates, they may cause latents, and nothing causes them. No distribution is assumed for them, so a
# binary variable such as school can be used like age in years.

# %%
search = um.LGES(covariates=["age", "girl", "grant_white"]).fit_cov(R, 301)
result = search.result_.rename({"L1": "visual", "L2": "verbal", "L3": "speed"})
print(result.graph)

# %% [markdown]
# Without covariates the directions between the latents are not identified. Covariates, which are known to be causes,
# identify some of them.

# %%
alone = um.LGES().fit_cov(R.iloc[:9, :9], 301)
between = [edge for edge in result.graph.directed_edges if set(edge) <= set(result.graph.latents)]
print("directed without covariates:", [e for e in alone.graph_.directed_edges if set(e) <= set(alone.graph_.latents)])
print("directed with them:", between)

# %%
result.plot()

# %% [markdown]
# Some tests differ between the schools at equal abilities. These are direct effects of school on a test, in addition
# to the effect of the latent.

# %%
print(result.direct_effects[["covariate", "item", "std", "pvalue"]].round(3).to_string(index=False))

# %% [markdown]
# The model in lavaan syntax; `sem(model, sample.cov = R, sample.nobs = 301, std.lv = TRUE)` gives the same
# chi-square.

# %%
print(result.to_lavaan())
print(f"chi2 {result.sem.chi2:.2f} on {result.sem.df} df, CFI {result.sem.cfi:.3f}")

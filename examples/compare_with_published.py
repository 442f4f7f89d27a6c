# %% [markdown]
# # Beside a published model
# Holzinger and Swineford's nine tests have a textbook model: three factors of three tests each. Does a search agree?

# %%
import unmeasured as um

data = um.datasets.load("holzinger_swineford")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
for group, indicators in search.result_.indicators.items():
    print(*group, "is measured by", *indicators)

# %% [markdown]
# Fit indices side by side, and a difference test where one model is a special case of another. The model that was
# searched for has seen the data; the one from the textbook had not.

# %%
compared = um.compare_models({"found": search, **data.models})
print(compared)

# %%
page = um.write_report(search, "holzinger", data=data.title, source=data.source, published=data.models)
print("The page has a section for the comparison:", "Beside other models" in page.read_text("utf-8"))

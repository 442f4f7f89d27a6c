# %% [markdown]
# # Compare with a published model
# The nine tests of Holzinger and Swineford have a textbook model with three factors of three tests each. Does a
# search find the same model?

# %%
import unmeasured as um

data = um.datasets.load("holzinger_swineford")
search = um.LGES().fit_cov(data.frame(), data.n_samples)
for group, indicators in search.result_.indicators.items():
    print(*group, "is measured by", *indicators)

# %% [markdown]
# The table compares fit indices, with difference tests for nested models. Note that the model found by the search was
# selected with these data, and the textbook model was not.

# %%
compared = um.compare_models({"found": search, **data.models})
print(compared)

# %%
page = um.write_report(search, "holzinger", data=data.title, source=data.source, published=data.models)
print("The page has a section for the comparison:", "Beside other models" in page.read_text("utf-8"))

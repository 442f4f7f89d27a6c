"""Model text, fitted to the end where it can be; knowledge, with a search where it can be."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

import unmeasured as um
from malformed import SYMBOLS, VALUES, answered, damaged_bytes, damaged_text, fuzzed, model_text, one_in

OPTIONS = st.fixed_dictionaries(
    {
        "correlate_exogenous": st.booleans(),
        "scale_latents": st.sampled_from(["variance", "first-indicator"]),
        "correlate_outcomes": st.booleans(),
        "count": st.sampled_from(["dimension", "parameters"]),
    }
)


@fuzzed(100)
@given(st.data(), OPTIONS)
def test_model_text(data, options):
    holzinger = um.datasets.load("holzinger_swineford")
    text = data.draw(model_text())
    if data.draw(one_in(5)):
        text = data.draw(damaged_text(text, SYMBOLS))
    if data.draw(one_in(60)):
        text = data.draw(st.sampled_from(VALUES))

    def fitted():
        found = um.fit(text, cov=holzinger.frame(), n_samples=holzinger.n_samples, **options)
        found.summary(), found.parameters, found.r2, found.srmr, found.rmsea_ci, found.bic

    answered(fitted)


STATEMENTS = {
    "groups": ({"f": ["a", "b"], "g": ["c", "d"]}, {"f": ["a", "b"]}, {"f": ["a"], "g": ["b", "c"]}, {"f": []},
               {"f": "ab"}, {1: ["a"]}),
    "together": ([["a", "b"]], [["a"]], ["ab"], [["a", "z"]], "ab", [[]]),
    "apart": ([["a", "e"]], [["a", "a"]], [1], [["a", "b", "c", "d", "e"]]),
    "n_latents": (1, 2, "at most 1", "at least 9", 0, -1, 1.5, "many", True, 10**30),
    "n_groups": (1, "at most 2", "at least 3", [], {}),
    "group_size": (1, 2, "at most 2", 99),
    "sizes": ({"f": 1}, {"z": 1}, {"f": -1}, 3),
    "latents": ({"f": ["u"]}, {"f": ["u", "v"]}, {"f": []}, {"f": ["a"]}),
    "tiers": ([["f"], ["g"]], [["f"], ["f"]], [[]], ["f", "g"], [["z"]]),
    "required": (["f -> g"], ["f -> f"], ["f - g"], ["->"], [["f", "g"]], ["f -> g", "g -> f"], [1]),
    "forbidden": (["f -> g"], ["f -- g"], ["z -> g"], "f -> g"),
}  # fmt: skip


@st.composite
def keywords(draw):
    """Knowledge from Python: a few statements, right ones or odd ones."""
    keys = draw(st.lists(st.sampled_from(sorted(STATEMENTS)), min_size=1, max_size=3, unique=True))
    right = {key: STATEMENTS[key][:1] for key in keys}
    sets = {key: right[key] if draw(st.booleans()) else VALUES if draw(one_in(12)) else STATEMENTS[key] for key in keys}
    chosen = {key: draw(st.sampled_from(values)) for key, values in sets.items()}
    return chosen | ({"groups": STATEMENTS["groups"][0]} if draw(st.integers(0, 3)) else {})


def use(known, sample):
    """A search with the knowledge."""
    str(known), known.statements
    um.LGES(knowledge=known, max_group_size=2).fit(sample).result_.summary()


@fuzzed(50)
@given(keywords())
def test_knowledge_from_python(search, chosen):
    answered(lambda: use(um.Knowledge(**chosen), search.sample_))


TOML = (
    'n_groups = "at most 3"\ntogether = [["a", "b"]]\nrequired = ["f -> g"]\n[groups]\nf = ["a", "b"]\ng = ["c", "d"]\n'
)
IN_TOML = ("[", "]", '"', "=", "{", "[[[", "1", "true", "groups", "1979-05-27", "[" * 5000)
FILES = {
    "known.toml": damaged_text(TOML, IN_TOML),
    "known.lav": st.one_of(damaged_text("f =~ a + b\ng =~ c + d\ng ~ f", SYMBOLS), model_text()),
}


@fuzzed(50)
@given(st.data())
def test_files_of_knowledge(folder, search, data):
    name = data.draw(st.sampled_from(sorted(FILES)))
    path = folder / name
    path.write_bytes(data.draw(damaged_bytes(FILES[name])))
    answered(lambda: use(um.Knowledge.read(path), search.sample_))

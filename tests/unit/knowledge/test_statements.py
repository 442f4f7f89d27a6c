"""Statements: what can be read, what is refused, and whether a set of them can hold, against all small models."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

import unmeasured as um
from knowledge_oracle import is_factor_model, measures_agree
from unmeasured.errors import ModelError
from unmeasured.knowledge.rules import Rules
from unmeasured.knowledge.satisfy import can_hold, models, nearest_model, rules_of
from unmeasured.knowledge.statements import ANY

ITEMS = ("a", "b", "c", "d", "e")


def all_models():
    """Every factor model of the five items: up to two latents, every item with any parents."""
    for sizes in ((), (1,), (2,), (1, 1)):
        for masks in product(range(1 << len(sizes)), repeat=len(ITEMS)):
            model = [
                (k, frozenset(x for x, mask in zip(ITEMS, masks, strict=True) if mask >> g & 1))
                for g, k in enumerate(sizes)
            ]
            if is_factor_model(model):
                yield sizes, masks, model


EVERY = list(all_models())


def random_knowledge(rng: np.random.Generator) -> um.Knowledge:
    def some(k: int) -> list[str]:
        return rng.choice(ITEMS, size=k, replace=False).tolist()

    counts = [None, None, 1, 2, "at most 1", "at least 2"]
    groups = {name: some(int(rng.integers(1, 4))) for name in "fg"[: rng.integers(0, 3)]}
    if len(groups) == 2 and (set(groups["f"]) <= set(groups["g"]) or set(groups["g"]) <= set(groups["f"])):
        del groups["g"]
    return um.Knowledge(
        groups=groups,
        together=[some(int(rng.integers(2, 4))) for _ in range(rng.integers(0, 3))],
        apart=[some(int(rng.integers(2, 4))) for _ in range(rng.integers(0, 3))],
        n_latents=counts[rng.integers(6)],
        n_groups=counts[rng.integers(6)],
        group_size=counts[rng.integers(6)],
        sizes={name: counts[rng.integers(2, 6)] for name in groups if rng.random() < 0.3},
    )


def test_rules_allow_what_the_words_say_and_a_model_is_found_exactly_where_there_is_one():
    rng = np.random.default_rng(4)
    n_possible = 0
    for _ in range(300):
        known = random_knowledge(rng)
        rules = Rules.of(known.statements, ITEMS)
        allowed = [measures_agree(known, model) for _, _, model in EVERY]
        assert [rules.allow(sizes, masks) for sizes, masks, _ in EVERY] == allowed, str(known)
        assert can_hold(rules) == any(allowed), str(known)
        for sizes, masks in models(rules):
            assert rules.allow(sizes, masks)
        if any(allowed) and rules.needs_latents:
            sizes, masks, _ = EVERY[rng.integers(1, len(EVERY))]
            near = nearest_model(rules, sizes, masks)
            assert near is None or rules.allow(*near)
            at = allowed.index(True)
            assert nearest_model(rules, *EVERY[at][:2]) is not None
        n_possible += any(allowed)
    assert 50 < n_possible < 250  # both answers are put to the test


def test_a_contradiction_is_told_by_statements_that_clash_and_none_too_many():
    rng = np.random.default_rng(8)
    n_seen = 0
    for _ in range(120):
        known = random_knowledge(rng)
        if can_hold(Rules.of(known.statements, ITEMS)):
            continue
        with pytest.raises(ModelError) as error:
            rules_of(known, ITEMS)
        told = [
            s for s in known.statements if f") {s};" in f"{error.value};".replace(". Take", ";").replace(". A", ";")
        ]
        assert told
        assert not can_hold(Rules.of(told, ITEMS))
        for left in combinations(told, len(told) - 1):
            assert can_hold(Rules.of(left, ITEMS))
        n_seen += 1
    assert n_seen > 20


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (
            {"groups": {"f": ["a", "b"]}, "apart": [["a", "b"]], "together": [["c", "d"]]},
            r"cannot all hold: \(1\) f is measured by a, b; \(2\) no two of a, b share a group\. Take",
        ),
        (
            {"groups": {"f": ["a"], "g": ["b"]}, "required": ["f -> g", "g -> f"]},
            r"cannot all hold: \(1\) f → g is required; \(2\) g → f is required\.",
        ),
        (
            {"groups": {"f": ["a"], "g": ["b"]}, "required": ["f -> g"], "tiers": [["g"], ["f"]]},
            r"cannot all hold: \(1\) tiers: g, then f; \(2\) f → g is required\.",
        ),
        ({"n_latents": 3}, r"No factor model of these 5 variables agrees with this: \(1\) 3 latents\. A group of k"),
        ({"groups": {"f": ["aa"]}}, r"Knowledge that f is measured by aa: 'aa' is not a variable of the data; did you"),
        ({"apart": [["a", "z9"]]}, r"'z9' is not a variable of the data. There are 'a', 'b'"),
        ({"groups": {"a": ["b"]}}, "A latent cannot be called 'a': a variable of the data is"),
    ],
)
def test_knowledge_that_these_data_cannot_have_is_refused(known, sentence):
    with pytest.raises(ModelError, match=sentence):
        rules_of(um.Knowledge(**known), ITEMS)


def test_the_option_of_the_search_is_told_where_it_clashes():
    known = um.Knowledge(groups={"f": ["a"]}, sizes={"f": 2})
    assert rules_of(known, ITEMS, 2).groups == ("f",)
    with pytest.raises(ModelError, match="With max_group_size=1, an option of the search, this cannot hold"):
        rules_of(known, ITEMS, 1)


@pytest.mark.parametrize(
    ("known", "sentence"),
    [
        (
            {"groups": {"speed": ["a"]}, "required": ["sped -> speed"]},
            "required: 'sped' is not a group .* did you mean",
        ),
        ({"groups": {"f": ["a"]}, "required": ["f -> f"]}, "A path in required is written"),
        ({"groups": {"f": ["a"], "g": ["b"]}, "required": ["f -- g"]}, "A path in required is written"),
        ({"groups": {"f": ["a"]}, "sizes": {"f": 0}}, "The size of 'f' is a whole number from 1"),
        ({"n_groups": "at most none"}, 'n_groups is a whole number from 1, "at most 3" or "at least 3"; got'),
        ({"groups": {"f": ["a", "b"], "g": ["a"]}}, "The group 'g' lists no item that measures it alone"),
        ({"groups": {"f": "a"}}, "The group 'f' is a list of names; got 'a'"),
        ({"groups": {"f": ["a", "a"]}}, "The group 'f' names 'a' twice"),
        ({"together": [["a"]]}, "An entry of together needs at least 2 names; got 'a'"),
        ({"together": "ab"}, "together is a list, one entry for each statement; got 'ab'"),
        ({"groups": ["a", "b"]}, "groups has the names of groups"),
        ({"groups": {"f": ["a"]}, "sizes": {"ff": 1}}, "'ff' is not a group that was named; did you mean 'f'"),
        ({"groups": {"f": ["a"], "g": ["b"]}, "tiers": [["f"], ["f", "g"]]}, "tiers names 'f' twice"),
        ({"groups": {"f": ["a"], "g": ["b"]}, "latents": {"g": ["f", "h"]}}, "Two latents are called 'f'"),
    ],
)
def test_what_cannot_be_read_is_refused(known, sentence):
    with pytest.raises(ModelError, match=sentence):
        um.Knowledge(**known)


def test_a_file_says_what_python_says(tmp_path):
    place = tmp_path / "known.toml"
    place.write_text(
        """
        n_groups = "at most 3"
        together = [["c", "d"]]
        tiers = [["f"], ["g"]]
        forbidden = ["f -- g"]

        [groups]
        f = ["a"]
        g = ["b"]

        [sizes]
        f = 1
        """
    )
    said = um.Knowledge(
        groups={"f": ["a"], "g": ["b"]},
        sizes={"f": 1},
        n_groups="at most 3",
        together=[["c", "d"]],
        tiers=[["f"], ["g"]],
        forbidden=["f -- g"],
    )
    read = um.Knowledge.read(place)
    assert read == said
    assert hash(read) == hash(said)
    assert str(read) == str(said)
    assert um.Knowledge() != said
    assert not um.Knowledge()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("n_group = 3", "'n_group' is nothing that can be known; did you mean 'n_groups'"),
        ("n_groups", "written in TOML"),
    ],
)
def test_a_file_that_means_nothing_is_refused(tmp_path, text, sentence):
    place = tmp_path / "known.toml"
    place.write_text(text)
    with pytest.raises(ModelError, match=sentence):
        um.Knowledge.read(place)
    with pytest.raises(ModelError, match=r"cannot be read from .*absent"):
        um.Knowledge.read(tmp_path / "absent.toml")


def test_lavaan_text_is_a_partial_model(tmp_path):
    text = "A =~ a + NA*b + x\nB =~ c + d + x\nC =~ e + f + g + h\nD =~ e + f + g + h\nB ~ A\nB =~ C\na ~~ a"
    said = um.Knowledge(
        groups={"A": ["a", "b", "x"], "B": ["c", "d", "x"], "C and D": ["e", "f", "g", "h"]},
        latents={"C and D": ["C", "D"]},
        sizes={"A": 1, "B": 1},
        required=[("B", "C"), ("A", "B")],
    )
    place = tmp_path / "known.lav"
    place.write_text(text)
    assert set(um.Knowledge.read(place).statements) == set(said.statements)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("A =~ a + b; a ~~ b", "a ~~ b: covariances are nothing that can restrict the search"),
        ("A =~ a + 0*b", "A =~ b is fixed to 0"),
        ("A =~ a + b; A ~ c", "A ~ c needs a latent on both sides"),
        ("A =~ a + b; B =~ A", "What is below 'B' needs at least 3 names; got 'A'"),
    ],
)
def test_lavaan_text_that_is_no_knowledge_is_refused(text, sentence):
    with pytest.raises(ModelError, match=sentence):
        um.Knowledge.from_lavaan(text)


def test_items_that_go_with_listed_ones_move_and_listed_ones_stay() -> None:
    """The second item is listed under both groups; the last goes with it and with the first, which is only in one."""
    rules = Rules(6, ("A", "B"), {0: 1, 1: 3, 2: 1, 3: 2, 4: 2}, together=((0, 1, 5),), sizes=(ANY, ANY))
    sizes, parents = rules.conform((1, 1), (1, 3, 1, 2, 2, 2)) or ((), ())
    assert parents == (1, 3, 1, 2, 2, 1)
    assert rules.allow(sizes, parents)


def test_two_named_groups_are_never_one_group_of_a_model() -> None:
    rules = Rules(6, ("A", "B"), {0: 1, 1: 1, 2: 2, 3: 2}, sizes=(ANY, ANY))
    assert rules.conform((1, 1), (1, 1, 1, 1, 2, 2)) == ((1, 1), (1, 1, 2, 2, 2, 2))
    assert rules.conform((1,), (1,) * 6) is None  # no place for the second

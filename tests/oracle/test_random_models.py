"""Models drawn at random: each is lavaan's, is refused by a sentence, or says what lavaan would have done.

``random_models.json`` has the models and lavaan's figures, ``random_models_verdicts.json`` those that are not equal;
``random_models.py`` draws, compares, and says how to make both anew.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pytest

from oracle import random_models as drawn

MODELS = json.loads(drawn.STORED.read_text("utf-8"))["models"]
VERDICTS: dict[str, list[str]] = json.loads(drawn.VERDICTS.read_text("utf-8"))


def has_rows(stored: dict[str, Any]) -> bool:
    try:
        drawn.rows_of(stored["rows"])
    except FileNotFoundError:
        return False
    return True


@pytest.mark.parametrize("stored", MODELS, ids=lambda stored: stored["id"])
def test_a_model_equals_lavaans_or_says_why_not(stored: dict[str, Any]) -> None:
    if not has_rows(stored):
        pytest.skip(f"the rows of {stored['rows']} are not part of the repository")
    found = drawn.compare(stored)
    expected = VERDICTS.get(stored["id"], ["equal"])[0]
    assert found.verdict == expected, (
        f"{', '.join(stored['features'])}: {', '.join(found.differing)} {found.sentence}. If this was meant, run "
        "'python tests/oracle/random_models.py judge'."
    )
    if found.verdict == "equal" and "own defaults" in stored["features"]:
        assert "lavaan::sem" not in found.sentence  # said only where it makes a difference
    if found.verdict == "refused":
        assert re.search(r"[.!]$", found.sentence)


def test_every_feature_comes_in_at_least_ten_models() -> None:
    assert len(MODELS) == sum(batch.size for batch in drawn.BATCHES)
    counts = Counter(name for stored in MODELS for name in stored["features"])
    assert {name: counts[name] for name in drawn.FEATURES if counts[name] < 10} == {}


def test_a_third_of_the_models_needs_no_rows_from_elsewhere() -> None:
    assert sum(stored["rows"].startswith(drawn.SIMULATED.stem) for stored in MODELS) >= len(MODELS) / 3


def test_models_are_drawn_again_as_they_are_stored() -> None:
    stored = {m["id"]: m for m in MODELS}
    for batch in drawn.BATCHES:
        for number in range(0, batch.size, 7):
            attempts = [drawn.draw(batch, number, attempt) for attempt in range(3)]
            assert stored[attempts[0].id]["model"] in [case.model for case in attempts]


def test_simulated_rows_are_those_that_are_stored() -> None:
    made, kept = drawn.simulate_rows(), drawn.rows_of(drawn.SIMULATED.stem)
    assert made.drop(columns="g").to_numpy() == pytest.approx(kept.drop(columns="g").to_numpy(), abs=0.011)
    assert list(made["g"]) == list(kept["g"])


def test_every_difference_without_a_word_is_on_the_list_with_a_reason() -> None:
    silent = {name: why for name, (verdict, _, why) in VERDICTS.items() if verdict == "different"}
    assert {name for name, why in silent.items() if not why or why == drawn.UNEXPLAINED} == set()

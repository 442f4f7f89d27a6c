from __future__ import annotations

import pytest

from unmeasured.errors import GraphError
from unmeasured.graphs import Variables


def test_roles_are_separate_from_names() -> None:
    variables = Variables.of(["x1", "speed", "L7"], latents=["speed"])
    assert variables.latent == (False, True, False)
    assert variables.latents == ("speed",)
    assert variables.observed == ("x1", "L7")
    assert variables.is_latent("speed")
    assert not variables.is_latent("L7")
    assert len(variables) == 3


def test_equal_values_are_equal_and_hash_alike() -> None:
    one, other = Variables.of(["a", "b"], ["a"]), Variables(("a", "b"), (True, False))
    assert one == other
    assert hash(one) == hash(other)
    assert one != Variables.of(["a", "b"])


def test_unknown_name_proposes_the_nearest() -> None:
    with pytest.raises(GraphError, match="No variable 'spped' in this graph; did you mean 'speed'"):
        Variables.of(["speed", "error"]).index("spped")


def test_unknown_name_without_a_near_one_lists_what_there_is() -> None:
    with pytest.raises(GraphError, match="No variable 'zzz' in this graph; it has 'speed', 'error'"):
        Variables.of(["speed", "error"]).index("zzz")


@pytest.mark.parametrize(
    ("names", "latents", "message"),
    [
        (["a", "b", "a"], [], "unique; given more than once: 'a'"),
        (["a", ""], [], "not empty; got '' at position 1"),
        (["a", 3], [], "not empty; got 3 at position 1"),
        (["item1", "x2"], ["item2"], "'item2' is said to be latent but is no variable of this graph; did you mean"),
        ("abc", [], r"names must be a list of strings; got the single string 'abc'. Write \['abc'\]"),
        (["g", "x"], "g", r"latents must be a list of strings; got the single string 'g'"),
    ],
)
def test_bad_names_are_refused(names: list[str], latents: list[str], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        Variables.of(names, latents)


def test_each_name_needs_a_role() -> None:
    with pytest.raises(GraphError, match="2 names but 1 roles"):
        Variables(("a", "b"), (True,))

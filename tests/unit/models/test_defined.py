"""Defined parameters: values against Python, gradients against differences, and text that is out of bounds."""

from __future__ import annotations

import random

import numpy as np
import pandas as pd
import pytest

import unmeasured as um
from unmeasured.models.defined import Labelled, check_expression, defined_rows, evaluate

ROWS = pd.DataFrame(np.random.default_rng(0).normal(size=(200, 3)).cumsum(axis=1), columns=list("xyz"))
VALUES = {"a": 1.3, "b": 0.7, "c": 2.1}


def drawn(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(["a", "b", "c", "2", ".5", "1e-1"])
    kind = rng.randrange(7)
    inner = drawn(rng, depth - 1)
    if kind < 3:
        return (f"({inner})", f"-{inner}", f"exp({inner}/9)")[kind]
    return f"{inner}{rng.choice('+-*/^')}{drawn(rng, depth - 1)}"


def by_python(expression: str, values: dict[str, float]) -> float:
    known = {name: np.float64(value) for name, value in values.items()}
    with np.errstate(all="ignore"):
        return eval(expression.replace("^", "**"), {"exp": np.exp, "__builtins__": {}}, known)


def test_values_are_those_of_python() -> None:
    rng, compared = random.Random(13), 0
    for _ in range(3000):
        expression = drawn(rng, 4)
        try:
            expected = by_python(expression, VALUES)
        except (OverflowError, ZeroDivisionError):
            continue
        if not isinstance(expected, complex) and np.isfinite(expected):
            assert evaluate(expression, VALUES) == pytest.approx(expected, rel=1e-9), expression
            compared += 1
    assert compared > 2500


def test_standard_errors_follow_gradients() -> None:
    """With errors that return the gradient by one label, a table holds derivatives: those are differences of values."""
    rng, compared = random.Random(14), 0
    labels = {name: Labelled(value, value, k) for k, (name, value) in enumerate(VALUES.items())}
    for _ in range(400):
        expression = drawn(rng, 3)
        with np.errstate(all="ignore"):
            moved = [evaluate(expression, VALUES | {"b": VALUES["b"] + h}) for h in (1e-6, -1e-6)]
        if not np.isfinite(moved).all() or max(map(abs, moved)) > 1e3:
            continue
        table = defined_rows([("d", expression)], labels, 3, lambda gradient: gradient[:, 1])
        assert table["se"][0] == pytest.approx((moved[0] - moved[1]) / 2e-6, rel=1e-4, abs=1e-4), expression
        compared += 1
    assert compared > 250


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("9^9^9", "'9^9^9' is beyond all numbers"),
        ("2^2^2^2^2^2^2", "is beyond all numbers"),
        ("a + 1/0", "is beyond all numbers"),
        ("1e308*10", "is beyond all numbers"),
        ("log(-1)", "has no value"),
        ("a^" * 5000 + "b", "is nested more than 200 deep"),
        ("(" * 5000 + "a" + ")" * 5000, "is nested more than 200 deep"),
        ("-" * 5000 + "a", "is nested more than 200 deep"),
        ("exp(" * 5000 + "a" + ")" * 5000, "is nested more than 200 deep"),
        ("(a", "is not an expression"),
        ("a)", "is not an expression"),
        ("a b", "is not an expression"),
        ("2 a", "is not an expression"),
        ("a(b)", "calls something that is not known"),
        ("exp()", "is not an expression"),
        ("exp", "'exp' in 'exp' is no label"),
        ("a.b", "'a.b' in 'a.b' is no label"),
        ("a[0]", "is not arithmetic on labels"),
        ("lambda: a", "is not arithmetic on labels"),
    ],
)
def test_what_has_no_value_is_refused_at_once(expression: str, words: str) -> None:
    with pytest.raises(um.ModelError) as caught:
        check_expression(expression, ["a", "b"])
    assert words in str(caught.value)
    with pytest.raises(um.ModelError, match="Line 2"):
        um.fit(f"z ~ a*y + b*x\nd := {expression}", ROWS)


def test_long_sums_are_no_problem() -> None:
    fit = um.fit("z ~ a*y + b*x\nd := " + " + ".join(["a"] * 20_000), ROWS)
    a, d = fit.parameters.iloc[0], fit.parameters.iloc[-1]
    assert (d["est"], d["se"]) == pytest.approx((20_000 * a["est"], 20_000 * a["se"]), rel=1e-9)


@pytest.mark.parametrize("expression", ["a/0", "exp(exp(exp(exp(9*a))))", "log(0*a)", "sqrt(-a)"])
def test_what_has_no_value_at_the_estimates_is_missing(expression: str) -> None:
    row = um.fit(f"z ~ a*y + b*x\nd := {expression}", ROWS).parameters.iloc[-1]
    assert row[["est", "se", "z", "pvalue"]].isna().all()

"""Defined parameters: arithmetic on labelled estimates, ``ab := a*b``, with standard errors by the delta method.

An expression is numbers and names joined by ``+ - * / ^`` and parentheses, and ``exp``, ``log``, ``sqrt`` and ``abs``
of such. It becomes a list of steps, operands before their operators, which are carried out one after the other on a
stack of values and their gradients, in floating-point numbers: nothing else can be called, nothing is recursive, and a
number that is too large is infinite. What is not finite at the estimates is missing in the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured.arrays import Floats
from unmeasured.errors import ModelError, listing, nearest

_TOKEN = re.compile(
    r"""
      (?P<skip>   \s+ )
    | (?P<number> (?: \d+\.?\d* | \.\d+ ) (?: [eE][+-]?\d+ )? (?![\w.]) )
    | (?P<name>   (?: [^\W\d] | \.(?!\d) ) [\w.]* )
    | (?P<mark>   \*\* | [-+*/^()] )
    | (?P<other>  . )
    """,
    re.VERBOSE | re.DOTALL,
)
_FUNCTIONS = ("exp", "log", "sqrt", "abs")
# How tightly operators bind; "neg" and "pos" are signs.
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "pos": 3, "^": 4}
# Open parentheses, signs and powers of powers that wait for their operand, at most.
_DEEPEST = 200
_Step = tuple[str, str | float]  # a kind (number, name, function or operator) and which
_Value = tuple[np.float64, Floats]  # with its gradient


def check_expression(expression: str, known: Sequence[str]) -> None:
    """Refuse what is no arithmetic on known names, or has no value whatever they stand for.

    >>> check_expression("a*(b + c)^2", ["a", "b", "c"])
    >>> check_expression("a*b", ["a", "c"])
    Traceback (most recent call last):
        ...
    unmeasured.errors.ModelError: 'b' in 'a*b' is no label. Labels are 'a', 'c'.
    """
    steps = _steps(expression)
    for kind, what in steps:
        if kind == "name" and what not in known:
            others = f". Labels are {listing(known)}." if known else ". There are no labels."
            raise ModelError(f"{what!r} in {_shown(expression)} is no label{nearest(str(what), known) or others}")
    # Labels are not known here: what is infinite without them comes from numbers alone.
    value, _ = _run(steps, {name: (np.float64(np.nan), np.zeros(0)) for name in known}, finite=expression)
    if not any(kind == "name" for kind, _ in steps) and not np.isfinite(value):
        raise ModelError(f"{_shown(expression)} has no value; look for the root or the logarithm of a negative number.")


def _shown(expression: str, most: int = 60) -> str:
    return repr(expression if len(expression) <= most else f"{expression[: most - 3]}...")


def _steps(expression: str) -> list[_Step]:
    """Operands before their operators, in the order in which they are carried out."""
    steps: list[_Step] = []
    waiting: list[str] = []  # operators, "(" and names of functions before their "("
    needs_operand = True
    tokens = [(m.lastgroup or "other", m.group()) for m in _TOKEN.finditer(expression) if m.lastgroup != "skip"]
    for k, (kind, text) in enumerate(tokens):
        text = "^" if text == "**" else text
        if kind == "other":
            raise ModelError(
                f"{_shown(expression)} is not arithmetic on labels: use + - * / ^, parentheses, {listing(_FUNCTIONS)}."
            )
        if len(waiting) > _DEEPEST:
            raise ModelError(
                f"{_shown(expression)} is nested more than {_DEEPEST} deep. Define its parts first, each with a ':=' "
                "of its own."
            )
        if kind in ("number", "name") or text == "(":
            if not needs_operand:
                raise _broken(expression)
            if text == "(":
                waiting.append(text)
            elif kind == "number":
                steps.append((kind, float(text)))
                needs_operand = False
            elif k + 1 < len(tokens) and tokens[k + 1][1] == "(":
                if text not in _FUNCTIONS:
                    raise ModelError(
                        f"{_shown(expression)} calls something that is not known; there are {listing(_FUNCTIONS)}."
                    )
                waiting.append(text)
            else:
                steps.append((kind, text))
                needs_operand = False
        elif text == ")":
            while waiting and waiting[-1] != "(":
                steps.append(("operator", waiting.pop()))
            if needs_operand or not waiting:
                raise _broken(expression)
            waiting.pop()
            if waiting and waiting[-1] in _FUNCTIONS:
                steps.append(("function", waiting.pop()))
        elif needs_operand:
            if text not in "+-":
                raise _broken(expression)
            waiting.append("neg" if text == "-" else "pos")
        else:
            # Powers are taken from the right, everything else from the left.
            while waiting and waiting[-1] in _BINDS and _BINDS[waiting[-1]] >= _BINDS[text] + (text == "^"):
                steps.append(("operator", waiting.pop()))
            waiting.append(text)
            needs_operand = True
    while waiting and waiting[-1] in _BINDS:
        steps.append(("operator", waiting.pop()))
    if needs_operand or waiting:
        raise _broken(expression)
    return steps


def _broken(expression: str) -> ModelError:
    return ModelError(f"{_shown(expression)} is not an expression; write one such as 'a*b + c'.")


def evaluate(expression: str, values: Mapping[str, float]) -> float:
    """The value of an expression that was checked; infinite or missing if it has none.

    >>> evaluate("a*(b + 1)^2", {"a": 2.0, "b": 3.0})
    32.0
    """
    known = {name: (np.float64(value), np.zeros(0)) for name, value in values.items()}
    return float(_run(_steps(expression), known)[0])


def _run(steps: Sequence[_Step], known: Mapping[str, _Value], finite: str = "") -> _Value:
    """Carry out the steps; with ``finite``, the text of the expression, refuse what becomes infinite."""
    none = np.zeros(next((len(gradient) for _, gradient in known.values()), 0))
    stack: list[_Value] = []
    with np.errstate(all="ignore"):
        for kind, what in steps:
            if kind == "number":
                stack.append((np.float64(what), none))
            elif kind == "name":
                stack.append(known[str(what)])
            elif kind == "function" or what in ("neg", "pos"):
                stack.append(_of_one(str(what), *stack.pop()))
            else:
                right = stack.pop()
                stack.append(_of_two(str(what), stack.pop(), right))
            if finite and np.isinf(stack[-1][0]):
                raise ModelError(
                    f"{_shown(finite)} is beyond all numbers. Look for powers of powers, or a division by 0."
                )
    return stack[-1]


def _of_one(what: str, x: np.float64, dx: Floats) -> _Value:
    if what == "neg":
        return -x, -dx
    if what == "exp":
        return np.exp(x), np.exp(x) * dx
    if what == "log":
        return np.log(x), dx / x
    if what == "sqrt":
        return np.sqrt(x), dx / (2.0 * np.sqrt(x))
    if what == "abs":
        return np.abs(x), np.sign(x) * dx
    return x, dx


def _of_two(what: str, left: _Value, right: _Value) -> _Value:
    (x, dx), (y, dy) = left, right
    if what == "+":
        return x + y, dx + dy
    if what == "-":
        return x - y, dx - dy
    if what == "*":
        return x * y, dx * y + x * dy
    if what == "/":
        return x / y, (dx - x / y * dy) / y
    value = np.power(x, y)
    slope = np.where(dx != 0, y * np.power(x, y - 1.0) * dx, 0.0)
    return value, slope + np.where(dy != 0, value * np.log(x) * dy, 0.0)


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled parameter: its estimate, that of standardised variables, and its place among the free ones (or -1)."""

    est: float
    std: float
    slot: int


def defined_rows(
    definitions: Sequence[tuple[str, str]],
    labelled: Mapping[str, Labelled],
    n_free: int,
    errors: Callable[[Floats], Floats],
) -> pd.DataFrame:
    """Rows for a table of parameters, one for each ``:=``; ``std`` is that of standardised estimates.

    ``errors`` gives standard errors (m,) from a gradient (m, n_free) by the free parameters on the scale of the data.
    """
    values, gradient = _defined(definitions, labelled, n_free)
    standardised, _ = _defined(definitions, {label: replace(p, est=p.std) for label, p in labelled.items()}, 0)
    se = errors(gradient)
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(se > 0, values / se, np.nan)
    return pd.DataFrame(
        {
            "lhs": [name for name, _ in definitions],
            "op": ":=",
            "rhs": [expression for _, expression in definitions],
            "est": values,
            "se": se,
            "z": z,
            "pvalue": 2.0 * ndtr(-np.abs(z)),
            "std": standardised,
        }
    )


def _defined(
    definitions: Sequence[tuple[str, str]], labelled: Mapping[str, Labelled], n_free: int
) -> tuple[Floats, Floats]:
    """Values (m,) of all definitions in turn, each may use those above it, and their gradients (m, n_free)."""
    slots = sorted({p.slot for p in labelled.values() if p.slot >= 0}) if n_free else []
    place = {slot: k for k, slot in enumerate(slots)}
    known: dict[str, _Value] = {}
    for label, p in labelled.items():
        slope = np.zeros(len(slots))
        if p.slot in place:
            slope[place[p.slot]] = 1.0
        known[label] = np.float64(p.est), slope
    for name, expression in definitions:
        known[name] = _run(_steps(expression), known)
    values = np.array([known[name][0] for name, _ in definitions])
    values = np.where(np.isfinite(values), values, np.nan)
    gradient = np.zeros((len(definitions), n_free))
    gradient[:, slots] = np.array([known[name][1] for name, _ in definitions]).reshape(len(definitions), -1)
    return values, gradient

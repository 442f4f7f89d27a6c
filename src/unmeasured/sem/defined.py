"""Defined parameters: arithmetic on labelled estimates, ``ab := a*b``, with standard errors by the delta method.

An expression is numbers and names joined by ``+ - * / ^`` and parentheses, and ``exp``, ``log``, ``sqrt`` and ``abs``
of such. It is read by Python's own parser and evaluated node by node: nothing else can be called. Derivatives come
from complex steps, ``Im g(x + ih) / h``, which lose no digits.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pandas as pd
from scipy.special import ndtr

from unmeasured.arrays import Floats
from unmeasured.errors import ModelError, listing, nearest

_STEP = 1e-30
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
# abs has no complex derivative; of a real number it is a change of sign.
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "sqrt": np.sqrt,
    "abs": lambda x: -x if x.real < 0 else x,
}


def check_expression(expression: str, known: Sequence[str]) -> None:
    """Refuse what is no arithmetic on known names.

    >>> check_expression("a*(b + c)^2", ["a", "b", "c"])
    >>> check_expression("a*b", ["a", "c"])
    Traceback (most recent call last):
        ...
    unmeasured.errors.ModelError: 'b' in 'a*b' is no label. Labels are 'a', 'c'.
    """
    for node in ast.walk(_parsed(expression)):
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else ""
            if called not in _FUNCTIONS or len(node.args) != 1 or node.keywords:
                raise ModelError(f"{expression!r} calls something that is not known; there are {listing(_FUNCTIONS)}.")
        elif isinstance(node, ast.Name):
            if node.id not in known and node.id not in _FUNCTIONS:
                others = f". Labels are {listing(known)}." if known else ". There are no labels."
                hint = nearest(node.id, known) or others
                raise ModelError(f"{node.id!r} in {expression!r} is no label{hint}")
        elif isinstance(node, ast.BinOp):
            _check_known(type(node.op) in _BINARY, expression)
        elif isinstance(node, ast.UnaryOp):
            _check_known(type(node.op) in _UNARY, expression)
        elif isinstance(node, ast.Constant):
            _check_known(isinstance(node.value, int | float) and not isinstance(node.value, bool), expression)
        else:
            _check_known(isinstance(node, ast.Expression | ast.operator | ast.unaryop | ast.expr_context), expression)


def _check_known(is_known: bool, expression: str) -> None:
    if not is_known:
        raise ModelError(
            f"{expression!r} is not arithmetic on labels: use + - * / ^, parentheses, {listing(_FUNCTIONS)}."
        )


def _parsed(expression: str) -> ast.Expression:
    try:
        return ast.parse(expression.replace("^", "**"), mode="eval")
    except SyntaxError:
        raise ModelError(f"{expression!r} is not an expression; write one such as 'a*b + c'.") from None


def evaluate(expression: str, values: Mapping[str, complex]) -> complex:
    """The value of an expression that was checked.

    >>> evaluate("a*(b + 1)^2", {"a": 2.0, "b": 3.0})
    32.0
    """
    return cast(complex, _value(_parsed(expression).body, values))


def _value(node: ast.expr, values: Mapping[str, complex]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return values[name]
        case ast.UnaryOp(op=op, operand=operand):
            return _UNARY[type(op)](_value(operand, values))
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, values), _value(right, values))
        case ast.Call(func=ast.Name(id=name), args=[argument]):
            return _FUNCTIONS[name](_value(argument, values))
    raise ModelError("This expression was not checked.")


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
    values = _defined(definitions, {label: p.est for label, p in labelled.items()})
    standardised = _defined(definitions, {label: p.std for label, p in labelled.items()})
    se = errors(_gradient(definitions, labelled, n_free))
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


def _defined(definitions: Sequence[tuple[str, str]], labelled: Mapping[str, complex]) -> Any:
    """Values of all definitions in turn; each may use those above it."""
    known = dict(labelled)
    with np.errstate(divide="ignore", invalid="ignore"):
        for name, expression in definitions:
            try:
                known[name] = evaluate(expression, known)
            except ZeroDivisionError:
                known[name] = np.nan
    return np.array([known[name] for name, _ in definitions])


def _gradient(definitions: Sequence[tuple[str, str]], labelled: Mapping[str, Labelled], n_free: int) -> Floats:
    """(definitions, n_free) by every free parameter."""
    gradient = np.zeros((len(definitions), n_free))
    for label, parameter in labelled.items():
        if parameter.slot < 0:
            continue
        moved: dict[str, complex] = {name: complex(p.est) for name, p in labelled.items()}
        moved[label] += 1j * _STEP
        gradient[:, parameter.slot] += _defined(definitions, moved).imag / _STEP
    return gradient

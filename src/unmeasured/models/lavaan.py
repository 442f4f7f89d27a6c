"""Model text in the manner of lavaan, to a :class:`~unmeasured.models.parameters.Model` and back.

A model is written as R's lavaan writes it, one statement to a line::

    visual  =~ x1 + x2 + x3        # 'visual' is a latent, measured by x1, x2 and x3
    textual =~ x4 + x5 + x6
    textual ~ visual               # regression: visual -> textual
    x1 ~~ x4                       # a residual covariance

Text becomes tokens, tokens become statements, statements become rows (one for each loading, path or
covariance), and the rows are completed with what lavaan's ``sem()`` would add.

========================================= =======================================================
understood                                refused, by name and line
========================================= =======================================================
``f =~ x1 + x2``  loadings; the left side ``equal()*``, ``label()*``  (write ``a*x``)
may be measured by another latent         ``==``, ``<``, ``>``  constraints between labels
``y ~ f + x``  paths                      ``start()*``, ``0.5?x``  starting values
``x1 ~~ x2``, ``f ~~ f``  (co)variances   ``lower()*``, ``upper()*``, ``prior()*``, ``rv()*``
``x ~ 1``, ``f ~ 1``  intercepts, means   ``group:``, ``level:``, ``%``  blocks
``1*x``, ``-0.5*x``, ``1e-3*x``  fixed    ``<~``  composites; ``efa()*``  rotation blocks
``NA*x``  set free what is fixed by rule  ``|``, ``~*~``  ordered variables
``a*x``  a label: equal labels are equal  ``x1:x2``  products; feedback loops
``c(a, b)*x``  one for each group
``ab := a*b``  defined from labels
``a + b ~ c``, ``x1 + x2 ~~ x3``
``#`` and ``!``  comments; ``# a_b stands
for "a b"``  gives a name its spelling
``;``  between statements
========================================= =======================================================

A line continues on the next when it ends in an operator or ``+``, or when the next begins with ``+``.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, groupby, pairwise
from typing import NoReturn, get_args

from unmeasured.errors import ModelError, UnmeasuredWarning, listing, nearest
from unmeasured.models.defined import check_expression
from unmeasured.models.parameters import LatentScale, Model, Operator, Parameter, with_shared_values

__all__ = ["parse", "write"]


def parse(
    text: str,
    *,
    observed: Sequence[str] | None = None,
    correlate_exogenous: bool = True,
    scale_latents: LatentScale = "variance",
    correlate_outcomes: bool = False,
    group: int = 0,
    n_groups: int = 1,
) -> Model:
    """Read lavaan model text and complete it with the defaults of lavaan's ``sem()``.

    Parameters
    ----------
    text : str
        The model; the module's docstring lists what is understood.
    observed : sequence of str, optional
        The variables of the data. A name that is neither among them nor a latent is then an error, and the
        observed variables of the model come in this order; those the text does not use are left out.
        Without it every name that is not a latent is observed, in order of first appearance.
    correlate_exogenous : bool
        Free covariances among all latents that nothing points at (lavaan's ``auto.cov.lv.x``).
    scale_latents : {"variance", "first-indicator"}
        Fix each latent's (residual) variance to 1 and leave its loadings free (lavaan's ``std.lv=TRUE``), or
        fix its first loading to 1 and leave its variance free (lavaan's own default).
    correlate_outcomes : bool
        Free residual covariances among variables that are explained by a ``~`` and explain nothing
        themselves, indicators excepted (lavaan's ``auto.cov.y``). Off here; lavaan's ``sem()`` has it **on**.
    group, n_groups : int
        Whose model is asked for: that of the ``group``-th of ``n_groups``, counted from 0, where ``c()`` gives each
        group its own value or label.

    Returns
    -------
    Model
        Names with the latents first; rows as in lavaan's parameter table, but always loadings, then paths,
        then stated (co)variances, then added ones.

    Raises
    ------
    ModelError
        For anything that cannot be read or fitted; the text gives the line and what to do.

    Warns
    -----
    UnmeasuredWarning
        If stating a ``~~`` for a predictor takes from it covariances it would else have had (see Notes).

    Notes
    -----
    *Predictors* are observed variables that appear on the right of ``~`` and are neither explained nor
    measured. Their variances and the covariances among themselves are free, and a fit is conditioned on them, as with
    lavaan's default, ``fixed.x=TRUE``: log-likelihood, AIC, BIC and the number of parameters leave them out. One that a
    ``~~`` or ``~ 1`` names is a variable of the model like others. No covariance is added between predictors and
    latents; lavaan adds none either.

    Three rules are lavaan's (0.6-14) and easily overlooked. (1) A plain ``f ~~ f`` does not free a variance
    that ``scale_latents="variance"`` fixes; ``f ~~ NA*f`` does. (2) The only indicator of a latent, if it
    measures no other, gets residual variance 0 unless stated. (3) A predictor named in any ``~~``, or whose
    mean is stated by ``~ 1``, loses its default covariances with the other predictors; only those stated remain. We
    warn when that happens.

    Examples
    --------
    >>> model = parse("f =~ x1 + x2 + x3; y ~ f")
    >>> model.names, model.latents
    (('f', 'x1', 'x2', 'x3', 'y'), ('f',))
    >>> [(row.lhs, row.op, row.rhs) for row in model.parameters if row.fixed is None][:4]
    [('f', '=~', 'x1'), ('f', '=~', 'x2'), ('f', '=~', 'x3'), ('y', '~', 'f')]
    >>> model.parameters[-1]
    Parameter(op='~~', source='f', target='f', fixed=1.0, label=None)
    >>> parse("f =~ x1 + x2 + x33", observed=["x1", "x2", "x3"])
    Traceback (most recent call last):
        ...
    unmeasured.errors.ModelError: Line 1: 'x33' is neither a variable of the data nor a latent (no statement
    defines it with =~); did you mean 'x3'?
    """
    if scale_latents not in get_args(LatentScale):
        raise ModelError(f"scale_latents must be one of {listing(get_args(LatentScale))}; got {scale_latents!r}.")
    rows, defined = _read_rows(text, group, n_groups)
    names = _stand_ins(text, observed)
    if observed is not None:
        short = {full: new for new, full in names.items()}
        observed = [short.get(name, name) for name in observed]
    roles = _Roles.of(rows)
    _check_names(rows, roles, observed)
    _refuse_cycles(rows)
    _warn_of_lost_covariances(roles)
    added = _Defaults(correlate_exogenous, scale_latents, correlate_outcomes)
    (model,) = with_shared_values([_complete(rows, roles, observed, added)])
    return _with_names(replace(model, defined=defined), names)


_STANDS_FOR = re.compile(r'^# (\S+) stands for (".*")$', re.MULTILINE)


def _stand_ins(text: str, observed: Sequence[str] | None) -> dict[str, str]:
    """Names that an export adapted to R, with those they stand for, as its comments say.

    One that the data have themselves is left alone, and so is a comment that is not of this form.
    """
    known = set(observed or ())
    found: dict[str, str] = {}
    for match in _STANDS_FOR.finditer(text):
        with contextlib.suppress(ValueError):
            full = json.loads(match[2])
            if full and full not in found.values() and match[1] not in known:
                found[match[1]] = full
    return found


def _with_names(model: Model, names: Mapping[str, str]) -> Model:
    """The model with other names for some of its variables."""
    names = {old: new for old, new in names.items() if old in model.names and new not in model.names}
    if not names:
        return model

    def named(row: Parameter) -> Parameter:
        return replace(row, source=names.get(row.source, row.source), target=names.get(row.target, row.target))

    return replace(
        model,
        names=tuple(names.get(name, name) for name in model.names),
        latents=tuple(names.get(name, name) for name in model.latents),
        parameters=tuple(map(named, model.parameters)),
        intercepts=tuple(map(named, model.intercepts)),
    )


def write(model: Model, *, correlate_exogenous: bool = True, correlate_outcomes: bool = False) -> str:
    """Write a model as text that :func:`parse` reads back, whatever its ``scale_latents``.

    Every row is written out, free ones that a reader might fix as ``NA*``, so the text also means the same
    to lavaan's ``sem()`` (there ``correlate_outcomes=True`` is the default, so pass it here).

    Parameters
    ----------
    model : Model
        The model to write.
    correlate_exogenous, correlate_outcomes : bool
        The options the reader will use. What these would add to the model is fixed at zero by a statement
        such as ``f ~~ 0*g``.

    Returns
    -------
    str
        One statement to a line. A model made by :func:`parse` comes back equal when read with the same two
        options and ``observed=model.observed``; the reader warns if it has predictors that do not covary.

    Raises
    ------
    ModelError
        For a name that model text cannot hold, a fixed value that is not finite, or a latent with no effects.

    Examples
    --------
    >>> print(write(parse("f =~ x1 + x2 + 0.5*x3")))
    f =~ NA*x1 + x2 + 0.5*x3
    x1 ~~ x1
    x2 ~~ x2
    x3 ~~ x3
    f ~~ 1*f
    """
    _check_writable(model)
    lines = _write_rows(_as_measured(model), model.latents)
    rows, _ = _read_rows("\n".join(lines))
    options = _Defaults(correlate_exogenous, "variance", correlate_outcomes)
    read_back = _complete(rows, _Roles.of(rows), model.observed, options)
    has = {_entry(row.op, row.source, row.target) for row in model.parameters}
    zeros = [
        Parameter(row.op, row.source, row.target, 0.0)
        for row in read_back.parameters
        if _entry(row.op, row.source, row.target) not in has
    ]
    means = [f"{row.lhs} ~ {_write_term(row, guard=False)}" for row in model.intercepts]
    definitions = [f"{name} := {expression}" for name, expression in model.defined]
    return "\n".join(lines + _write_rows(zeros, model.latents) + means + definitions)


# -- tokens ------------------------------------------------------------------------------------------------

_NAME = r"(?:[^\W\d]|\.(?!\d))[\w.]*"
_TOKEN = re.compile(
    rf"""
      (?P<skip>    [^\S\n]+ | [#!][^\n]* )
    | (?P<end>     \n | ; )
    | (?P<relation> ~\*~ | =~ | ~~ | <~ | := | == | ~ | < | > | \| | : | % )
    | (?P<number>  (?: \d+\.?\d* | \.\d+ ) (?: [eE][+-]?\d+ )? (?![\w.]) )
    | (?P<name>    {_NAME} )
    | (?P<string>  "[^"\n]*" | '[^'\n]*' )
    | (?P<mark>    [-+*(),?] )
    | (?P<other>   [\w.]+ | . )
    """,
    re.VERBOSE,
)
_CONTINUES = {"+", "*", "=~", "~", "~~", ":="}  # a line that ends in one of these goes on in the next


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    line: int
    start: int


_Tokens = Sequence[_Token]


def _tokenise(text: str) -> Iterator[_Token]:
    line = 1
    for match in _TOKEN.finditer(text):
        kind, piece = match.lastgroup or "other", match.group()
        if kind != "skip":
            yield _Token(kind, piece, line, match.start())
        line += piece == "\n"


def _split_statements(tokens: Iterable[_Token]) -> Iterator[list[_Token]]:
    """Cut at ``;`` and at line ends, except where the text on either side says that it goes on."""
    statement: list[_Token] = []
    at_line_end = False
    for token in tokens:
        if token.text == ";":
            yield statement
            statement, at_line_end = [], False
        elif token.kind == "end":
            at_line_end = True
        else:
            if at_line_end and statement and token.text != "+" and statement[-1].text not in _CONTINUES:
                yield statement
                statement = []
            statement.append(token)
            at_line_end = False
    yield statement


def _quote(tokens: _Tokens, limit: int = 60) -> str:
    text = " ".join(token.text for token in tokens)
    return f"'{text}'" if len(text) <= limit else f"'{text[: limit - 3]}...'"


def _refuse(token: _Token, sentence: str) -> NoReturn:
    raise ModelError(f"Line {token.line}: {sentence}")


# -- statements to rows ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """One stated loading, path or covariance; ``explicit`` if a number or ``NA`` stood before it."""

    op: Operator
    left: _Token
    right: _Token
    fixed: float | None
    explicit: bool
    label: str | None = None

    @property
    def lhs(self) -> str:
        return self.left.text

    @property
    def rhs(self) -> str:
        return self.right.text

    @property
    def line(self) -> int:
        return max(self.left.line, self.right.line)

    @property
    def text(self) -> str:
        return f"{self.lhs} ~ 1" if self.op == "~1" else f"{self.lhs} {self.op} {self.rhs}"

    @property
    def tokens(self) -> tuple[_Token, ...]:
        """The names in this row."""
        return (self.left,) if self.op == "~1" else (self.left, self.right)

    @property
    def edge(self) -> tuple[str, str]:
        """Cause and effect, as :class:`Parameter` has them; for ``~~`` as written."""
        return (self.rhs, self.lhs) if self.op == "~" else (self.lhs, self.rhs)

    @property
    def entry(self) -> tuple[str, str, str]:
        """The entry of F or Omega this row is about: two rows with the same one contradict each other."""
        return _entry(self.op, *self.edge)


def _entry(op: Operator, source: str, target: str) -> tuple[str, str, str]:
    if op == "~1":
        return ("alpha", source, "")
    if op == "~~":
        return ("Omega", min(source, target), max(source, target))
    return ("F", source, target)


def _read_rows(text: str, group: int = 0, n_groups: int = 1) -> tuple[list[_Row], tuple[tuple[str, str], ...]]:
    """The stated rows of a group, and what is defined from labels of any group."""
    statements = [statement for statement in _split_statements(_tokenise(text)) if statement]
    definitions = [statement for statement in statements if _is_definition(statement)]
    statements = [statement for statement in statements if not _is_definition(statement)]
    if not statements:
        raise ModelError("The model text is empty; write at least one statement, such as 'f =~ x1 + x2 + x3'.")
    of = _Group(group, n_groups)
    rows = _labelled(row for statement in statements for row in _read_statement(statement, of))
    _refuse_repeats(rows)
    if not definitions:
        return rows, ()
    others = (_Group(k, n_groups) for k in range(n_groups) if k != group)
    elsewhere = [row for other in others for statement in statements for row in _read_statement(statement, other)]
    labels = _unique(row.label for row in (*rows, *elsewhere) if row.label)
    return rows, tuple(_read_definitions(definitions, labels))


def _labelled(rows: Iterable[_Row]) -> list[_Row]:
    """The rows, where ``f =~ NA*x + a*x`` states one: as in lavaan, a label may stand apart from a value."""
    kept: dict[tuple[str, str, str], int] = {}
    result: list[_Row] = []
    for row in rows:
        at = kept.setdefault(row.entry, len(result))
        if at == len(result):
            result.append(row)
            continue
        first = result[at]
        if first.text == row.text and row.label and not first.label:
            result[at] = replace(first, label=row.label)
        elif first.text == row.text and first.label and not first.explicit and row.explicit and not row.label:
            result[at] = replace(row, label=first.label)
        else:
            result.append(row)
    return result


def _is_definition(statement: _Tokens) -> bool:
    return next((token.text for token in statement if token.kind == "relation"), "") == ":="


def _read_definitions(statements: Iterable[_Tokens], labels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Name and expression of each ``:=``; every name in an expression is a label, or defined above it."""
    known = list(labels)
    for statement in statements:
        at = next(i for i, token in enumerate(statement) if token.text == ":=")
        left, op, right = statement[:at], statement[at], statement[at + 1 :]
        if len(left) != 1 or left[0].kind != "name":
            _refuse(op, f"{_quote(statement)} must have one new name on the left of ':='.")
        if left[0].text in known:
            _refuse(op, f"{left[0].text!r} in {_quote(statement)} is taken; give what ':=' defines a name of its own.")
        if not right:
            _refuse(op, f"{_quote(statement)} has nothing on its right; write an expression of labels, such as 'a*b'.")
        expression = _joined(right)
        try:
            check_expression(expression, known)
        except ModelError as error:
            _refuse(right[0], str(error))
        known.append(left[0].text)
        yield left[0].text, expression


def _joined(tokens: _Tokens) -> str:
    """The text of tokens, with a blank only between two words."""
    words = [token.text[0].isalnum() or token.text[0] in "._" for token in tokens]
    blanks = [" " if a and b else "" for a, b in pairwise([False, *words])]
    return "".join(blank + token.text for blank, token in zip(blanks, tokens, strict=True))


def _read_statement(statement: _Tokens, of: _Group) -> Iterator[_Row]:
    op, left, right = _split_sides(statement)
    names = [_read_left(term, op) for term in _split_terms(left, op)]
    terms = [_read_term(term, op, of) for term in _split_terms(right, op)]
    for name in names:
        for term in terms:
            relation = "~1" if term.name.kind == "number" else _RELATIONS[op.text]
            row = _Row(relation, name, term.name, term.fixed, term.explicit, term.label)
            _check_row(row)
            yield row


@dataclass(frozen=True, slots=True)
class _Group:
    """Which of the values of a ``c()`` to read."""

    number: int
    of: int


_RELATIONS: dict[str, Operator] = {"=~": "=~", "~": "~", "~~": "~~"}
_OTHER_RELATIONS = {
    "~*~": "scaling factors of ordered variables are not supported. Remove the statement, and give "
    "polychoric correlations in place of rows",
    "<~": "composites (formative latents) are not supported. Build the weighted sum in the data, or measure "
    "the latent with '=~'",
    "==": "constraints between labels are not supported. Give the parameters that are equal the same label",
    "<": "inequality constraints are not supported. Remove the statement",
    ">": "inequality constraints are not supported. Remove the statement",
    "|": "thresholds of ordered variables are not supported. Remove the statement, and give "
    "polychoric correlations in place of rows",
    "%": "blocks ('%') are not supported. For groups of people name their column with groups=",
    ":": "blocks are not supported. For groups of people name their column with groups=; one model serves all of them",
}


def _split_sides(statement: _Tokens) -> tuple[_Token, _Tokens, _Tokens]:
    """Find the one operator of a statement, and refuse what we have no model for."""
    at = next((i for i, token in enumerate(statement) if token.kind == "relation"), None)
    if at is None:
        _refuse_without_operator(statement)
    op, left, right = statement[at], statement[:at], statement[at + 1 :]
    if op.text in _OTHER_RELATIONS:
        _refuse(op, f"{_quote(statement)} uses {op.text!r}; {_OTHER_RELATIONS[op.text]}.")
    _refuse_strays(statement)
    second = next((token for token in right if token.kind == "relation" and token.text != ":"), None)
    if not left:
        _refuse(op, f"{_quote(statement)} has nothing on its left; name at least one variable there.")
    if not right or (second is not None and right[0].line > op.line):
        _refuse_empty_right(op, left)
    if second is not None:
        _refuse(
            second,
            f"a second operator {second.text!r} in one statement, {_quote(statement)}. Put each statement on "
            "its own line; a line that ends in an operator or '+' goes on in the next.",
        )
    return op, left, right


def _refuse_without_operator(statement: _Tokens) -> NoReturn:
    _refuse_strays(statement)
    _refuse(
        statement[0],
        f"{_quote(statement)} has no operator; write '=~', '~' or '~~', or end the line before with '+'.",
    )


def _refuse_strays(statement: _Tokens) -> None:
    stray = next((token for token in statement if token.kind == "other"), None)
    if stray is None:
        return
    hint = ""
    if stray.text == "=":
        hint = "; a latent is defined with '=~', a regression with '~'"
    elif stray.text[0].isdigit():
        hint = "; a name cannot begin with a digit, and a fixed value needs a '*', as in '1*x'"
    _refuse(stray, f"{stray.text!r} in {_quote(statement)} is not part of model text{hint}.")


def _refuse_empty_right(op: _Token, left: _Tokens) -> NoReturn:
    if op.text == "=~":
        need = "a latent needs at least one indicator, as in 'f =~ x1 + x2 + x3'"
    else:
        need = "name at least one variable there"
    _refuse(op, f"{_quote([*left, op])} has nothing on its right; {need}.")


def _split_terms(side: _Tokens, op: _Token) -> list[_Tokens]:
    """Cut one side at its ``+`` signs, but not inside the parentheses of a modifier."""
    terms: list[list[_Token]] = [[]]
    depth = 0
    plus = op
    for token in side:
        depth += (token.text == "(") - (token.text == ")")
        if token.text == "+" and depth == 0:
            if not terms[-1] and plus is not op:
                _refuse(token, f"two '+' signs with nothing between them in {_quote(side)}; remove one.")
            if terms[-1]:
                terms.append([])
            plus = token
        else:
            terms[-1].append(token)
    if not terms[-1]:
        _refuse(plus, f"nothing follows the last '+' in {_quote(side)}; remove it, or name a variable.")
    return list(terms)


# Fixed values beyond this leave no digits for the products of a likelihood.
_LARGEST = 1e50
_LABEL = re.compile(r"[A-Za-z.][\w.]*")


@dataclass(frozen=True, slots=True)
class _Term:
    name: _Token
    fixed: float | None = None
    explicit: bool = False
    label: str | None = None


def _read_left(term: _Tokens, op: _Token) -> _Token:
    if term[0].text == "efa" and len(term) > 1:
        _refuse(term[0], f"{_quote(term)}: efa() blocks are not supported. State which loadings are free.")
    if any(token.text in "*?" for token in term):
        _refuse(
            term[0],
            f"{_quote(term)} puts a modifier on the left of {op.text!r}; modifiers stand on the right.",
        )
    return _read_name(term, op)


def _read_term(term: _Tokens, op: _Token, of: _Group) -> _Term:
    """Read ``name``, ``number*name``, ``NA*name``, ``label*name`` or ``c(...)*name``; 1 for a name is an intercept."""
    stars = [i for i, token in enumerate(term) if token.text in "*?"]
    if not stars:
        return _Term(_read_variable(term, op))
    modifier, name = term[: stars[-1]], term[stars[-1] + 1 :]
    if term[stars[-1]].text == "?":
        _refuse_modifier("start", term)
    if not modifier or not name:
        _refuse(term[stars[-1]], f"'*' in {_quote(term)} needs a value on its left and a name on its right.")
    fixed, label = _read_modifier(_of_group(modifier, term, of), term)
    return _Term(_read_variable(name, op), fixed, explicit=label is None, label=label)


def _read_variable(term: _Tokens, op: _Token) -> _Token:
    """A name, or the 1 that stands for an intercept on the right of ``~``."""
    if op.text == "~" and term[-1].kind == "number":
        if len(term) == 1 and float(term[0].text) == 1.0:
            return term[0]
        _refuse(
            term[0],
            f"{_quote(term)} on the right of '~' is not an intercept; write 'x ~ 1', or 'x ~ 0*1' to fix it to zero.",
        )
    return _read_name(term, op)


def _of_group(modifier: _Tokens, term: _Tokens, of: _Group) -> _Tokens:
    """The part of ``c(a, b)`` that is meant for this group; anything else as it is."""
    if modifier[0].text != "c" or len(modifier) < 2 or modifier[1].text != "(" or modifier[-1].text != ")":
        return modifier
    parts: list[list[_Token]] = [[]]
    for token in modifier[2:-1]:
        if token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    if len(parts) != of.of:
        groups = "the data have one group (name the column with groups=)" if of.of == 1 else f"there are {of.of} groups"
        _refuse(term[0], f"{_quote(term)} gives {len(parts)} values, one for each group, but {groups}.")
    if not parts[of.number]:
        _refuse(term[0], f"{_quote(term)} leaves out the value of a group; write one number, NA or label for each.")
    return parts[of.number]


def _read_modifier(modifier: _Tokens, term: _Tokens) -> tuple[float | None, str | None]:
    """Return the value of a number, None for ``NA``, or a label; refuse every other modifier by name."""
    kinds = [token.kind for token in modifier]
    if kinds == ["name"] and modifier[0].text == "NA":
        return None, None
    if kinds[-1] == "number" and (len(modifier) == 1 or (len(modifier) == 2 and modifier[0].text in "+-")):
        value = float("".join(token.text for token in modifier))
        if not math.isfinite(value):
            _refuse(modifier[0], f"{_quote(term)} fixes a parameter to {value}; give a finite number.")
        if abs(value) > _LARGEST:
            _refuse(modifier[0], f"{_quote(term)} fixes a parameter beyond {_LARGEST:g}; change the unit.")
        return value, None
    if kinds == ["name"]:
        return None, modifier[0].text
    if kinds == ["string"]:
        label = modifier[0].text.strip("'\"")
        if not _LABEL.fullmatch(label):
            _refuse(modifier[0], f"{_quote(term)} has a label that is no name; write one such as a, as in 'a*x'.")
        return None, label
    if kinds[0] == "name" and len(modifier) > 1 and modifier[1].text == "(":
        _refuse_modifier(modifier[0].text, term)
    _refuse(modifier[0], f"{_quote(modifier)} in {_quote(term)} is not a value; write one number, NA or a label.")


_OTHER_MODIFIERS = {
    "label": "uses label(); write the label itself, as in 'a*x'",
    "equal": "uses equal(); give both parameters the same label, as in 'a*x1 + a*x2'",
    "start": "gives a starting value; these are made from the data here. Remove it",
    "c": "is not closed; write one value for each group, as in 'c(a, b)*x'",
    "efa": "opens an efa() block, which is not supported. State which loadings are free",
    "lower": "sets a bound; bounds are not supported. Remove it",
    "upper": "sets a bound; bounds are not supported. Remove it",
    "prior": "sets a prior; estimation is by maximum likelihood. Remove it",
    "rv": "asks for a random slope; these are not supported. Remove it",
}


def _refuse_modifier(name: str, term: _Tokens) -> NoReturn:
    reason = _OTHER_MODIFIERS.get(name, f"uses {name}(), which is not known here. Write one number, or NA")
    _refuse(term[0], f"the modifier in {_quote(term)} {reason}.")


def _read_name(term: _Tokens, op: _Token) -> _Token:
    first = term[0]
    if len(term) == 1 and first.kind == "name" and first.text != "NA":
        return first
    texts = [token.text for token in term]
    if ":" in texts:
        _refuse(first, f"{_quote(term)} is a product of variables; compute it as a column of the data.")
    if len(term) == 1:
        what = "reserved for 'NA*x'" if first.text == "NA" else f"a {first.kind}"
        _refuse(first, f"{first.text!r} beside {op.text!r} is {what}, not the name of a variable.")
    if "-" in texts:
        _refuse(first, f"{_quote(term)} has a minus sign; join terms with '+', or fix a value as in '-1*x'.")
    if "(" in texts or ")" in texts:
        _refuse(first, f"{_quote(term)} has parentheses, which model text does not use around names.")
    _refuse(first, f"{_quote(term)} is not one name; is a '+' missing?")


def _check_row(row: _Row) -> None:
    if row.op in ("=~", "~") and row.lhs == row.rhs:
        deed = "measures" if row.op == "=~" else "explains"
        _refuse(row.right, f"{row.lhs!r} {deed} itself in '{row.text}'; name another variable.")
    if row.op == "~~" and row.lhs == row.rhs and row.fixed is not None and row.fixed < 0:
        value = f"{row.fixed:g}"
        _refuse(row.right, f"'{row.text}' fixes a variance to {value}; a variance cannot be negative.")


def _refuse_repeats(rows: Iterable[_Row]) -> None:
    seen: dict[tuple[str, str, str], _Row] = {}
    for row in rows:
        first = seen.setdefault(row.entry, row)
        if first is row:
            continue
        same = first.text == row.text
        what = f"'{row.text}'" if same else f"the same parameter, as '{first.text}' and as '{row.text}'"
        if first.line == row.line:
            raise ModelError(f"Line {row.line} states {what}{' twice' if same else ''}; keep one of the two.")
        raise ModelError(f"Lines {first.line} and {row.line} both state {what}; keep one of the two.")


# -- rows: roles, names, cycles ----------------------------------------------------------------------------


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _without(names: Sequence[str], *others: Sequence[str]) -> list[str]:
    excluded = {name for other in others for name in other}
    return [name for name in names if name not in excluded]


@dataclass(frozen=True)
class _Roles:
    """Who is what in the model; the lists and their order are those of lavaan.

    ``indicators``, ``explained``, ``predictors`` and ``others`` part the observed variables among them.
    """

    latents: list[str]
    indicators: list[str]
    explained: list[str]
    predictors: list[str]
    others: list[str]
    exogenous: list[str]  # latents nothing points at
    outcomes: list[str]  # explained by a ~, explaining nothing, measuring nothing
    stated: dict[frozenset[str], _Row]  # the ~~ rows, by the names in them
    with_means: list[str]  # whose intercept is stated

    @classmethod
    def of(cls, rows: Sequence[_Row]) -> _Roles:
        latents = _unique(row.lhs for row in rows if row.op == "=~")
        measured = _unique(row.rhs for row in rows if row.op == "=~")
        effects = _unique(row.lhs for row in rows if row.op == "~")
        causes = _unique(row.rhs for row in rows if row.op == "~")
        stated = [row for row in rows if row.op == "~~"]
        indicators = _without(measured, latents)
        explained = _without(effects, latents, indicators)
        explained_latents = [name for name in latents if name in set(effects)]
        predictors = _without(causes, latents, indicators, explained)
        named = _unique([row.lhs for row in stated] + [row.rhs for row in stated] + [row.lhs for row in rows])
        return cls(
            latents=latents,
            indicators=indicators,
            explained=explained,
            predictors=predictors,
            others=_without(named, latents, indicators, explained, predictors),
            exogenous=_without(latents, measured, effects),
            outcomes=_without([*explained_latents, *explained], measured, causes),
            stated={frozenset((row.lhs, row.rhs)): row for row in stated},
            with_means=_unique(row.lhs for row in rows if row.op == "~1"),
        )

    @property
    def observed(self) -> list[str]:
        return self.indicators + self.explained + self.predictors + self.others

    @property
    def silent_predictors(self) -> list[str]:
        """Predictors no ``~~`` or ``~ 1`` mentions: the ones that get covariances by default (lavaan's rule)."""
        return _without(self.predictors, *map(tuple, self.stated), self.with_means)


def _check_names(rows: Sequence[_Row], roles: _Roles, observed: Sequence[str] | None) -> None:
    if observed is None:
        return
    columns, latents = set(observed), set(roles.latents)
    for row in rows:
        if row.op == "=~" and row.lhs in columns:
            raise ModelError(
                f"Line {row.left.line}: {row.lhs!r} stands on the left of =~, which makes it a latent, but it "
                "is a variable of the data; give the latent another name, or swap the two sides."
            )
        for token in row.tokens:
            if token.text not in columns and token.text not in latents:
                hint = nearest(token.text, [*observed, *roles.latents])
                _refuse(
                    token,
                    f"{token.text!r} is neither a variable of the data nor a latent (no statement defines it "
                    f"with =~){hint or f'. The data have {listing(observed)}.'}",
                )


def _refuse_cycles(rows: Sequence[_Row]) -> None:
    cycle = _find_cycle([row.edge for row in rows if row.op in ("=~", "~")])
    if cycle:
        lines = {row.edge: row.line for row in rows if row.op in ("=~", "~")}
        where = _lines(lines[edge] for edge in pairwise(cycle))
        raise ModelError(
            f"The model has a feedback loop, {' → '.join(cycle)} ({where}); "
            "only models without loops are supported. Remove one of these effects."
        )


def _lines(numbers: Iterable[int]) -> str:
    given = sorted(set(numbers))
    return f"line{'s' if len(given) > 1 else ''} {', '.join(map(str, given))}"


def _find_cycle(edges: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names along one directed cycle, the first repeated at the end, or nothing."""
    effects: dict[str, list[str]] = {}
    for cause, effect in edges:
        effects.setdefault(cause, []).append(effect)
    done: set[str] = set()
    for root in list(effects):
        path = [root]
        pending = [iter(effects.get(root, ()))]
        while path:
            step = next((name for name in pending[-1] if name not in done), None)
            if step is None:
                done.add(path.pop())
                pending.pop()
            elif step in path:
                return [*path[path.index(step) :], step]
            else:
                path.append(step)
                pending.append(iter(effects.get(step, ())))
    return []


def _warn_of_lost_covariances(roles: _Roles) -> None:
    silent = set(roles.silent_predictors)
    lost = [
        f"{a} ~~ {b}"
        for a, b in combinations(roles.predictors, 2)
        if not {a, b} <= silent and frozenset((a, b)) not in roles.stated
    ]
    if lost:
        named = _without(roles.predictors, roles.silent_predictors)
        warnings.warn(
            f"Statements of '~~' or '~ 1' name the predictors {listing(named)}; as in lavaan, these then get no "
            f"default covariance with other predictors, so that {listing(lost)} is zero. State those you want free, "
            "or confirm with 0*.",
            UnmeasuredWarning,
            stacklevel=3,
        )


# -- defaults ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Defaults:
    correlate_exogenous: bool
    scale_latents: LatentScale
    correlate_outcomes: bool


def _complete(rows: Sequence[_Row], roles: _Roles, observed: Sequence[str] | None, added: _Defaults) -> Model:
    parameters = (
        *_loadings(rows, added),
        *(Parameter("~", *row.edge, row.fixed, row.label) for row in rows if row.op == "~"),
        *_stated_covariances(rows, roles, added),
        *_default_covariances(rows, roles, added),
    )
    intercepts = tuple(Parameter("~1", row.lhs, row.lhs, row.fixed, row.label) for row in rows if row.op == "~1")
    if observed is None:
        tokens = sorted((token for row in rows for token in row.tokens), key=lambda t: t.start)
        columns = _without(_unique(token.text for token in tokens), roles.latents)
    else:
        used = set(roles.observed)
        columns = [name for name in observed if name in used]
    covariates = tuple(roles.silent_predictors)
    return Model((*roles.latents, *columns), tuple(roles.latents), parameters, intercepts, covariates=covariates)


def _loadings(rows: Sequence[_Row], added: _Defaults) -> Iterator[Parameter]:
    begun: set[str] = set()
    for row in rows:
        if row.op != "=~":
            continue
        is_marker = row.lhs not in begun and added.scale_latents == "first-indicator" and not row.explicit
        begun.add(row.lhs)
        yield Parameter("=~", *row.edge, 1.0 if is_marker else row.fixed, row.label)


def _stated_covariances(rows: Sequence[_Row], roles: _Roles, added: _Defaults) -> Iterator[Parameter]:
    # lavaan writes every pair the same way round: latents, indicators, explained, predictors, each in order of
    # the text. Between two that have no role but in '~~' we keep what is written.
    rank = {name: i for i, name in enumerate(_without(roles.latents + roles.observed, roles.others))}
    for row in rows:
        if row.op != "~~":
            continue
        first, second = sorted((row.lhs, row.rhs), key=lambda name: rank.get(name, len(rank)))
        is_scale = first == second and first in roles.latents and added.scale_latents == "variance"
        yield Parameter("~~", first, second, 1.0 if is_scale and not row.explicit else row.fixed, row.label)


def _default_covariances(rows: Sequence[_Row], roles: _Roles, added: _Defaults) -> Iterator[Parameter]:
    single = _single_indicators(rows)
    predictors = roles.silent_predictors
    unit = 1.0 if added.scale_latents == "variance" else None
    wanted: list[tuple[str, str, float | None]]
    wanted = [(name, name, None) for name in _without(roles.observed, predictors)]
    wanted += [(name, name, unit) for name in roles.latents]
    if added.correlate_exogenous:
        wanted += [(a, b, None) for a, b in combinations(roles.exogenous, 2)]
    if added.correlate_outcomes:
        wanted += [(a, b, None) for a, b in combinations(roles.outcomes, 2)]
    wanted += [(a, b, None) for i, a in enumerate(predictors) for b in predictors[i:]]
    for first, second, fixed in wanted:
        if frozenset((first, second)) not in roles.stated:
            alone = first == second and first in single
            yield Parameter("~~", first, second, 0.0 if alone else fixed)


def _single_indicators(rows: Sequence[_Row]) -> set[str]:
    """Indicators that are their latent's only one and measure no other latent."""
    loadings = [row.edge for row in rows if row.op == "=~"]
    times = Counter(latent for latent, _ in loadings), Counter(indicator for _, indicator in loadings)
    return {b for a, b in loadings if times[0][a] == 1 and times[1][b] == 1}


# -- writing -----------------------------------------------------------------------------------------------


def _check_writable(model: Model) -> None:
    for name in model.names:
        if not re.fullmatch(_NAME, name) or name == "NA":
            raise ModelError(
                f"The name {name!r} cannot be written in model text: names there are letters, digits, '.' "
                "and '_', do not begin with a digit and are not NA. Rename the variable."
            )
    for row in model.parameters:
        if row.fixed is not None and not math.isfinite(row.fixed):
            raise ModelError(
                f"'{row.lhs} {row.op} {row.rhs}' is fixed to {row.fixed}; only finite values can be written."
            )


def _as_measured(model: Model) -> list[Parameter]:
    """Write the effects of a latent that has no ``=~`` with ``=~``: that is what makes it one in the text."""
    measuring = {row.source for row in model.parameters if row.op == "=~"}
    bare = [name for name in model.latents if name not in measuring]
    rows = [replace(row, op="=~") if row.op == "~" and row.source in bare else row for row in model.parameters]
    for name in bare:
        if not any(row.op == "=~" and row.source == name for row in rows):
            raise ModelError(
                f"Latent {name!r} has no indicator and no effect, so model text cannot name it; remove it."
            )
    return rows


def _write_rows(rows: Sequence[Parameter], latents: Sequence[str]) -> list[str]:
    """Write loadings, then paths, then covariances; neighbours with the same left side share a line."""
    order: dict[Operator, int] = {"=~": 0, "~": 1, "~~": 2, "~1": 3}
    unscaled = set(latents)  # no loading written yet
    lines = []
    for (op, lhs, _), group in groupby(
        sorted(rows, key=lambda row: order[row.op]), key=lambda row: (row.op, row.lhs, row.lhs == row.rhs)
    ):
        terms = []
        for row in group:
            # A reader may fix a latent's first loading or its variance; NA* says that this one is free.
            is_marker = op == "=~" and lhs in unscaled
            is_variance = op == "~~" and row.rhs == lhs and lhs in latents
            unscaled.discard(lhs)
            terms.append(_write_term(row, guard=is_marker or is_variance))
        lines.append(f"{lhs} {op} {' + '.join(terms)}")
    return lines


def _write_term(row: Parameter, *, guard: bool) -> str:
    rhs = row.rhs or "1"
    value = f"{repr(float(row.fixed)).removesuffix('.0')}*{rhs}" if row.fixed is not None else ""
    free = value or (f"NA*{rhs}" if guard else "")
    return " + ".join(filter(None, (free, f"{row.label}*{rhs}" if row.label else ""))) or rhs

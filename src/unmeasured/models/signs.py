"""Signs of latents: one rule for every fit, and for all groups of people together.

The sign of a latent is free: all its loadings and paths may change theirs together, and the fit stays the same. A
loading or path that is fixed to a number, such as that of a marker, takes this freedom away. Otherwise::

    own items     the items that load on no other latent more (standardised)
    sign          the loadings of the own items have a positive sum, an item that its authors score in reverse counted
                  with the opposite sign

Of a latent without items of its own all its items count. Neither the order of items in model text nor that of columns
matters, and a cross-loading has no say. The items of a latent above latents are those latents, with the signs that they
have been given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from unmeasured.arrays import Bools, Floats
from unmeasured.models.parameters import Model, Pattern

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

# Standardised loadings nearer than this are equal, and a sum nearer to zero has no sign.
_EQUAL = 1e-6


def items_of(model: Model) -> dict[str, tuple[str, ...]]:
    """Return what measures each latent: observed variables, else latents, else whatever it points at.

    >>> from unmeasured.models.lavaan import parse
    >>> items_of(parse("f =~ x1 + x2; g =~ f + x3; h =~ f + g"))
    {'f': ('x1', 'x2'), 'g': ('x3',), 'h': ('f', 'g')}
    """
    found: dict[str, tuple[list[str], list[str], list[str]]] = {latent: ([], [], []) for latent in model.latents}
    for p in model.parameters:
        if p.source in found and p.op in ("=~", "~") and p.fixed != 0.0:
            kind = 2 if p.op == "~" else 1 if p.target in found else 0
            found[p.source][kind].append(p.target)
    return {latent: tuple(next((x for x in kinds if x), [])) for latent, kinds in found.items()}


@dataclass(frozen=True, eq=False)
class Loadings:
    """Standardised loadings of one model, in one or several groups of people.

    ``values`` are (d, d) arrays of effects on variables of unit variance, one for each group; ``weights`` the share of
    each group in the rows.
    """

    model: Model
    names: tuple[str, ...]  # of rows and columns
    values: tuple[Floats, ...]
    weights: tuple[float, ...] = (1.0,)
    reverse_keyed: Collection[str] = ()

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.names)}

    @cached_property
    def items(self) -> dict[str, tuple[str, ...]]:
        """What measures each latent."""
        return items_of(self.model)

    @cached_property
    def own(self) -> dict[str, tuple[str, ...]]:
        """The items of each latent that load on no other latent more."""
        size = np.sum([w * np.abs(L) for w, L in zip(self.weights, self.values, strict=True)], axis=0)
        of = {(a, x): float(size[self._place[a], self._place[x]]) for a, items in self.items.items() for x in items}
        main: dict[str, float] = {}
        for (_, x), loading in of.items():
            main[x] = max(main.get(x, 0.0), loading)
        return {a: tuple(x for x in items if 0.0 < of[a, x] >= main[x] - _EQUAL) for a, items in self.items.items()}

    @cached_property
    def deciding(self) -> dict[str, tuple[str, ...]]:
        """The items that decide about the sign of each latent: its own, or all if it has none."""
        return {a: items or self.items[a] for a, items in self.own.items()}

    def signs(self, tied: Collection[str] = (), sign_indicators: Mapping[str, str] | None = None) -> Floats:
        """Return (groups, d) signs, 1 or -1; those of observed variables and of ``tied`` latents are 1.

        ``sign_indicators`` names for some latents an item whose loading is positive, whatever the others are: for
        estimates that are to be compared with others.
        """
        sign = np.ones((len(self.values), len(self.names)))
        for latent in _upwards(self.items):
            if latent in tied:
                continue
            chosen = self.deciding[latent]
            head = (sign_indicators or {}).get(latent)
            if head in self.items[latent]:
                chosen = (head,)
            row, columns = self._place[latent], [self._place[x] for x in chosen]
            if not columns:
                continue
            key = np.array([-1.0 if x in self.reverse_keyed and x != head else 1.0 for x in chosen])
            loadings = np.array([L[row, columns] for L in self.values]) * key * sign[:, columns]
            # Groups point the way of the first before anything is added up.
            aligned = np.where(loadings @ loadings[0] < 0, -1.0, 1.0)
            mean = (np.array(self.weights) * aligned) @ loadings
            total = float(mean.sum())
            if abs(total) < _EQUAL:
                strongest = max(range(len(chosen)), key=lambda k: (round(abs(float(mean[k])), 6), chosen[k]))
                total = float(mean[strongest])
            sign[:, row] = aligned * (-1.0 if total < 0 else 1.0)
        return sign


def loadings_of(fit: Fit) -> Loadings:
    """The standardised loadings of a fit."""
    pattern = fit.problem.pattern
    F, Omega = pattern.matrices(np.append(fit.solution.x, 0.0))
    return Loadings(
        fit.model, pattern.names, (standardised(F, Omega),), reverse_keyed=frozenset(fit.sample.reverse_keyed)
    )


def standardised(F: Floats, Omega: Floats) -> Floats:
    """Effects on variables of unit variance; zero where a variable has no variance."""
    with np.errstate(all="ignore"):  # a fit that went astray has estimates beyond numbers
        E = np.linalg.inv(np.eye(len(F)) - F)
        sd = np.sqrt(np.maximum(np.einsum("ij,ij->j", Omega @ E, E), 0.0))
        return np.asarray(np.nan_to_num(F * sd[:, None] / sd[None, :], nan=0.0, posinf=0.0, neginf=0.0))


def with_signs(fit: Fit, sign_indicators: Mapping[str, str] | None = None) -> Fit:
    """Return the same fit with the signs of the rule; see :meth:`Loadings.signs` for ``sign_indicators``."""
    pattern = fit.problem.pattern
    tied = [pattern.names[k] for k in np.flatnonzero(_tied(pattern))]
    return pointed(fit, loadings_of(fit).signs(tied, sign_indicators)[0] < 0)


def pointed(fit: Fit, flipped: Bools) -> Fit:
    """Return the same fit with the signs of some latents changed, (d,) in causal order, where they are free."""
    pattern = fit.problem.pattern
    sign = np.where(flipped & ~pattern.is_observed & ~_tied(pattern), -1.0, 1.0)
    a, b = pattern.ends.T
    return replace(fit, solution=replace(fit.solution, x=fit.solution.x * sign[a] * sign[b]))


def _tied(pattern: Pattern) -> Bools:
    """(d,) which variables have an effect or covariance fixed to something other than zero."""
    tied = np.zeros(pattern.n_nodes, dtype=bool)
    fixed = (pattern.slot < 0) & (pattern.fixed != 0)
    tied[pattern.source[fixed]] = tied[pattern.target[fixed]] = True
    fixed = (pattern.slot2 < 0) & (pattern.fixed2 != 0) & (pattern.first != pattern.second)
    tied[pattern.first[fixed]] = tied[pattern.second[fixed]] = True
    return tied


def _upwards(items: Mapping[str, Sequence[str]]) -> list[str]:
    """Latents, each after those that measure it."""
    order: dict[str, None] = {}

    def add(latent: str) -> None:
        if latent not in order:
            for x in items[latent]:
                if x in items:
                    add(x)
            order[latent] = None

    for latent in items:
        add(latent)
    return list(order)


@dataclass(frozen=True)
class Entry:
    """A parameter of a group of people for :func:`slot_signs`.

    ``slot`` is its position in the vector of all groups, -1 if it is fixed to ``value``.
    """

    group: int
    ends: tuple[str, str]
    slot: int
    value: float


def tied_latents(entries: Iterable[Entry], latents: Collection[str]) -> set[str]:
    """Latents with an effect, covariance or mean that is fixed to something other than zero."""
    return {x for e in entries if e.slot < 0 and e.value and (e.ends[0] != e.ends[1]) for x in e.ends if x in latents}


def slot_signs(entries: Sequence[Entry], signs: Mapping[tuple[int, str], float], size: int) -> Floats:
    """Return (size,) what the parameters of all groups are multiplied by when latents of groups change their signs.

    Latents whose parameters are equal by constraint can only change together. Those that would contradict a constraint
    keep their signs.
    """
    kept = dict(signs)
    by_slot: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.slot >= 0:
            by_slot.setdefault(entry.slot, []).append(entry)

    def factor(entry: Entry) -> float:
        one, other = ((entry.group, x) for x in entry.ends)
        return kept.get(one, 1.0) * kept.get(other, 1.0)

    changed = True
    while changed:
        changed = False
        for rows in by_slot.values():
            if len({factor(row) for row in rows}) > 1:
                for row in rows:
                    for x in row.ends:
                        if kept.get((row.group, x), 1.0) < 0:
                            kept[row.group, x], changed = 1.0, True
    result = np.ones(size)
    for slot, rows in by_slot.items():
        result[slot] = factor(rows[0])
    return result

"""Reliability and validity: how well indicators measure their latents, and whether latents are told apart.

For a latent with variance ``v`` and its own items, with ``c`` their covariances with the latent and ``S`` those with
one another in the model::

    omega   (sum c)^2 / v / sum S             of the sum of the items, the part that is the latent (McDonald)
    alpha   k/(k-1) (1 - sum of variances / variance of the sum)      the same if all loadings were equal (Cronbach)
    AVE     sum c^2 / v / sum diag S          of the items, the part of the variance that is the latent

Own items are those that load on no other latent more, standardised: an item counts once, with its main latent. Items
with a negative loading there are reversed first. Without cross-loadings ``c = l v`` with loadings ``l``, so that omega
is ``(sum l)^2 v / ((sum l)^2 v + sum T)`` with residual covariances ``T``; with them it stays a squared correlation, of
the sum and the latent, between 0 and 1. HTMT of two latents is the mean correlation between their items over
the geometric mean of those within (Henseler, Ringle and Sarstedt 2015); the table of Fornell and Larcker (1981) sets
the root of AVE beside the correlations of the latent. The cuts in words are conventions: .70 for omega and alpha, .50
for AVE, .85 for HTMT.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from unmeasured.arrays import Floats
from unmeasured.errors import ModelError
from unmeasured.models.signs import loadings_of

if TYPE_CHECKING:
    from unmeasured.models.fit import Fit

_RELIABLE, _CONVERGENT, _DISTINCT = 0.70, 0.50, 0.85
# What alpha is computed from, where it is not the covariance of the answers as they are.
_BASES = {
    frozenset(
        {"ordinal"}
    ): "The figures are those of polychoric correlations (ordinal alpha): of the Gaussian variables "
    "behind the answers, not of sums of answers.",
    frozenset({"scores"}): "The figures are those of normal scores of the ranks, not of the values as they are.",
}


@dataclass(frozen=True, eq=False)
class Reliability:
    """Reliability and validity of each latent of a fit.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("holzinger_swineford")
    >>> text = "visual =~ x1 + x2 + x3; textual =~ x4 + x5 + x6; speed =~ x7 + x8 + x9"
    >>> found = um.fit(text, cov=data.frame(), n_samples=data.n_samples).reliability()
    >>> found.table[["omega", "alpha", "ave"]].round(2)
             omega  alpha   ave
    latent
    visual    0.63   0.63  0.37
    textual   0.89   0.88  0.72
    speed     0.69   0.69  0.43
    >>> found.sentences[0]
    'visual: reliability is low (omega 0.63, below .70), and less than half of the variance of its items is the
    latent (AVE 0.37, below .50).'
    """

    fit: Fit
    latents: tuple[str, ...] | None = None  # only these

    @cached_property
    def items(self) -> dict[str, tuple[str, ...]]:
        """The own items of each latent that has indicators: those that load on no other latent more."""
        model, own = self.fit.model, loadings_of(self.fit).own
        observed = set(model.observed)
        measured = {p.source for p in model.parameters if p.op == "=~" and p.target in observed}
        latents = [x for x in (model.latents if self.latents is None else self.latents) if x in measured]
        found = {latent: tuple(x for x in own[latent] if x in observed) for latent in latents}
        if not found:
            raise ModelError("The model has no latent with observed indicators, so there is no reliability to tell.")
        return found

    @cached_property
    def _place(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.fit.causal_order)}

    def _signs(self, latent: str) -> tuple[Floats, list[int]]:
        """Signs that make the loadings of the items positive, and the places of the items in the sample."""
        items = self.items[latent]
        loadings = self.fit.F[self._place[latent], [self._place[x] for x in items]]
        return np.where(loadings < 0, -1.0, 1.0), [self.fit.sample.names.index(x) for x in items]

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per latent: ``items omega alpha ave indicators``; missing if too few items leave nothing to compute.

        ``items`` is how many items are its own and ``indicators`` which, those that are reversed with a minus sign.
        """
        rows = []
        for latent, items in self.items.items():
            sign, index = self._signs(latent)
            variance = float(self.fit.full_cov[self._place[latent], self._place[latent]])
            place = [self._place[x] for x in items]
            implied = self.fit.full_cov[np.ix_(place, place)] * np.outer(sign, sign)
            shared = self.fit.full_cov[self._place[latent], place] * sign
            true, own = float(shared.sum() ** 2 / variance), float((shared**2).sum() / variance)
            rows.append(
                {
                    "items": len(items),
                    "omega": true / float(implied.sum()) if items else math.nan,
                    "alpha": _alpha(self.fit.sample.cov[np.ix_(index, index)] * np.outer(sign, sign)),
                    "ave": own / float(np.trace(implied)) if items else math.nan,
                    "indicators": ", ".join(f"{'−' * int(s < 0)}{x}" for x, s in zip(items, sign, strict=True)),
                }
            )
        return pd.DataFrame(rows, index=pd.Index(self.items, name="latent"))

    @cached_property
    def correlations(self) -> pd.DataFrame:
        """Of the latents, as the model implies them."""
        place = [self._place[x] for x in self.items]
        cov = self.fit.full_cov[np.ix_(place, place)]
        sd = np.sqrt(np.diag(cov))
        return pd.DataFrame(cov / np.outer(sd, sd), index=list(self.items), columns=list(self.items))

    @cached_property
    def fornell_larcker(self) -> pd.DataFrame:
        """Correlations of the latents, with the root of AVE on the diagonal, which should be the largest of its row."""
        table = self.correlations.copy()
        values = table.to_numpy(copy=True)
        np.fill_diagonal(values, np.sqrt(self.table["ave"].to_numpy()))
        return pd.DataFrame(values, index=table.index, columns=table.columns)

    @cached_property
    def htmt(self) -> pd.DataFrame:
        """Heterotrait-monotrait ratios; missing where a latent has one item of its own, or none."""
        names = list(self.items)
        values = np.full((len(names), len(names)), math.nan)
        corr = np.abs(self.fit.sample.corr)
        for (a, first), (b, second) in combinations(enumerate(names), 2):
            x, y = self._signs(first)[1], self._signs(second)[1]
            if len(x) > 1 and len(y) > 1 and not set(x) & set(y):
                within = math.sqrt(_mean_within(corr, x) * _mean_within(corr, y))
                values[a, b] = values[b, a] = float(corr[np.ix_(x, y)].mean()) / within
        return pd.DataFrame(values, index=names, columns=names)

    @cached_property
    def sentences(self) -> tuple[str, ...]:
        """What the conventional cuts say, a sentence for each latent and for each pair that is hardly told apart."""
        rows = self.table.to_dict(orient="index").items()
        said = [_in_words(str(latent), row["omega"], row["ave"], row["items"]) for latent, row in rows]
        root = np.sqrt(self.table["ave"])
        for a, b in combinations(self.items, 2):
            ratio, r = float(self.htmt[b][a]), abs(float(self.correlations[b][a]))
            reasons = []
            if ratio > _DISTINCT:
                reasons.append(f"HTMT {ratio:.2f}, above .85")
            if r > min(root[a], root[b]):
                reasons.append(f"they correlate {r:.2f}, more than the root of AVE of {a if root[a] < r else b}")
            if reasons:
                said.append(f"{a} and {b} are hardly told apart: {'; '.join(reasons)}.")
        if self.basis:
            said.append(self.basis)
        return tuple(said)

    @property
    def basis(self) -> str:
        """A sentence on what the figures are of, if not of the answers as they are; else empty."""
        return _BASES.get(frozenset(self.fit.sample.kinds), "")

    def __str__(self) -> str:
        figures = self.table.round(2).to_string(na_rep="")
        return "\n".join([figures, "", *(f"- {sentence}" for sentence in self.sentences)])


def _alpha(cov: Floats) -> float:
    k = len(cov)
    return math.nan if k < 2 else k / (k - 1.0) * (1.0 - float(np.trace(cov)) / float(cov.sum()))


def _mean_within(corr: Floats, index: list[int]) -> float:
    block = corr[np.ix_(index, index)]
    return float(block[np.triu_indices(len(index), 1)].mean())


def _in_words(latent: str, omega: float, ave: float, n_items: int) -> str:
    if not n_items:
        return (
            f"{latent}: every item that loads on it loads more on another latent, so it has no reliability of its own."
        )
    if n_items == 1:
        return f"{latent}: one indicator, so its reliability follows from the other latents and is not told here."
    good = omega >= _RELIABLE
    first = f"reliability is {'good' if good else 'low'} (omega {omega:.2f}, {'from' if good else 'below'} .70)"
    if ave >= _CONVERGENT:
        return f"{latent}: {first}; most of the variance of its items is the latent (AVE {ave:.2f}, from .50)."
    joined = "but" if good else "and"
    second = f"less than half of the variance of its items is the latent (AVE {ave:.2f}, below .50)"
    return f"{latent}: {first}, {joined} {second}."

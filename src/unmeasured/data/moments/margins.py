"""Margins: how a value of each variable is read on the scale its moments were made on.

A model of ordinal items or of ranks is about Gaussian variables that nobody saw. To score new rows, the way from a
value to that scale must be kept: thresholds between categories, or the score of each value. A continuous variable has
none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from unmeasured.arrays import Bools, Floats
from unmeasured.data.moments.ordinal import Item
from unmeasured.data.moments.transform import normal_scores
from unmeasured.errors import DataError, listing

if TYPE_CHECKING:
    from unmeasured.data.sample import Sample

MarginKind = Literal["ordinal", "scores"]

# More values than this are thinned; between two of them scores are interpolated.
_MOST_VALUES = 501
# A threshold at infinity: beyond it there is nothing that doubles could hold.
FAR = 40.0


@dataclass(frozen=True, eq=False)
class Margin:
    """The values of a variable and where they lie: thresholds between ordinal ones, or a score for each of the others.

    Examples
    --------
    >>> Margin("ordinal", np.array([1.0, 2.0, 3.0]), np.array([-0.5, 0.5])).interval(np.array([1.0, 3.0]), "x")
    (array([-40. ,   0.5]), array([-0.5, 40. ]))
    """

    kind: MarginKind
    values: Floats
    scores: Floats

    def interval(self, column: Floats, name: str) -> tuple[Floats, Floats]:
        """The thresholds between which the variable behind an ordinal item lies, (-FAR, FAR) where it is missing."""
        seen: Bools = ~np.isnan(column)
        place = np.clip(np.searchsorted(self.values, column), 0, len(self.values) - 1)
        strange = np.unique(column[seen & (self.values[place] != column)])
        if len(strange):
            raise DataError(
                f"Variable {name!r} has the value {', '.join(f'{v:g}' for v in strange[:3])}, which the rows the "
                f"model was made from do not have (they have {listing([f'{v:g}' for v in self.values])}), so it has "
                "no place among its categories. Correct it, or set it to missing."
            )
        ends = np.concatenate([[-FAR], self.scores, [FAR]])
        return np.where(seen, ends[place], -FAR), np.where(seen, ends[place + 1], FAR)

    def scored(self, column: Floats) -> Floats:
        """Gaussian scores of values, interpolated between those known; NaN where missing."""
        return np.where(np.isnan(column), np.nan, np.interp(column, self.values, self.scores))


def margins_of(sample: Sample) -> Mapping[str, Margin]:
    """The margins of all variables that are not continuous."""
    if sample.margins:
        return sample.margins
    rows = sample.rows
    if rows is None:
        return {}
    found: dict[str, Margin] = {}
    for j, (name, kind) in enumerate(zip(sample.names, sample.kinds, strict=True)):
        if kind == "ordinal":
            item = Item.of(rows[:, j], name)
            found[name] = Margin("ordinal", item.values, item.thresholds)
        elif kind == "scores":
            assert sample.mean is not None  # rows have means
            found[name] = _scored(rows[:, j], float(sample.mean[j]), float(sample.sd[j]))
    return found


def with_scores(frame: pd.DataFrame, margins: Mapping[str, Margin]) -> pd.DataFrame:
    """The rows with the values of some variables replaced by their scores."""
    made = frame.copy()
    for name, margin in margins.items():
        if margin.kind == "scores" and name in made:
            made[name] = margin.scored(made[name].to_numpy(dtype=float))
    return made


def _scored(column: Floats, mean: float, sd: float) -> Margin:
    seen = np.sort(column[~np.isnan(column)])
    scores = normal_scores(seen[:, None])[:, 0]
    values, first = np.unique(seen, return_index=True)
    places = np.unique(np.linspace(0, len(values) - 1, min(len(values), _MOST_VALUES)).round().astype(int))
    return Margin("scores", values[places], mean + sd * scores[first][places] / scores.std())


def to_record(margins: Mapping[str, Margin]) -> dict[str, Any]:
    """Margins as JSON holds them."""
    return {
        name: {"kind": margin.kind, "values": margin.values.tolist(), "scores": margin.scores.tolist()}
        for name, margin in margins.items()
    }


def from_record(record: Mapping[str, Any]) -> dict[str, Margin]:
    """Margins from JSON."""
    return {
        name: Margin(entry["kind"], np.array(entry["values"], dtype=float), np.array(entry["scores"], dtype=float))
        for name, entry in record.items()
    }

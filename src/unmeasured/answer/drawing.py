"""A result as a path diagram: which nodes and edges there are, what they are called, what a reader can ask of them.

Edges between groups hold for all members of a group, and the coefficients of single members are a matter of rotation.
So a group of several latents is drawn as one node with its latents inside: one arrow to each indicator, with a loading
for each latent in the order they are drawn, and one line to another group, without a figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from unmeasured.answer.words import node as group_name
from unmeasured.answer.words import number, probability
from unmeasured.diagram.layout import Block, full_layout, latent_layout
from unmeasured.diagram.picture import (
    FONT,
    LABEL_FONT,
    Edge,
    Node,
    Picture,
    View,
    coefficient,
    shortened,
    text_width,
    wrapped,
)
from unmeasured.errors import UnmeasuredError

if TYPE_CHECKING:
    from unmeasured.answer.result import Result

Row = Mapping[Any, Any]
Group = tuple[str, ...]

_BOX = 20.0
_RIM = 9.0


# A report draws the same picture on its page and into its files.
@lru_cache(maxsize=4)
def picture_of(result: Result, view: View = "full", *, r2: bool = False, min_loading: float = 0.0) -> Picture:
    """The path diagram of a result, laid out.

    Parameters
    ----------
    view : "full" or "latents"
        With the observed variables, or the latents alone.
    r2 : bool
        Whether explained variances are written beside the variables.
    min_loading : float
        Loadings whose absolute standardised value is smaller are left out, but never the largest of an indicator.
    """
    if view not in ("full", "latents"):
        raise UnmeasuredError(f"view must be 'full' or 'latents'; got {view!r}.")
    if not 0.0 <= min_loading <= 1.0:
        raise UnmeasuredError(f"min_loading is a standardised loading from 0 to 1; got {min_loading!r}.")
    parts = _Parts(result, r2=r2, items=view == "full")
    if view == "latents":
        drawn = {block.node.id for block in parts.blocks}
        return latent_layout(parts.blocks, [e for e in parts.paths if {e.source, e.target} <= drawn])
    loadings = [e for e in parts.loadings if e.strength >= min_loading or parts.home[e.target] == e.colour]
    return full_layout(parts.blocks, parts.loose, [*loadings, *parts.paths])


class _Parts:
    """Nodes and edges of a result, not placed yet."""

    def __init__(self, result: Result, *, r2: bool, items: bool) -> None:
        self.result = result
        self.r2 = r2
        self.items = items
        self.groups = result.graph.groups
        self.of = {latent: k for k, group in enumerate(self.groups) for latent in group}

    def id(self, name: str) -> str:
        """The node an edge of a variable is drawn at: for a latent, its group."""
        return group_name(self.groups[self.of[name]]) if name in self.of else name

    # Edges ------------------------------------------------------------------------------------------------

    @cached_property
    def _bundles(self) -> dict[tuple[int, str], list[Row]]:
        """The loadings of each group and indicator."""
        bundles: dict[tuple[int, str], list[Row]] = {}
        for row in self.result.loadings.to_dict(orient="records"):
            bundles.setdefault((self.of[row["latent"]], row["indicator"]), []).append(row)
        return bundles

    @cached_property
    def loadings(self) -> list[Edge]:
        return [self._loading(k, indicator, rows) for (k, indicator), rows in self._bundles.items()]

    def _loading(self, k: int, indicator: str, rows: Sequence[Row]) -> Edge:
        # Of several latents together only what they explain does not depend on the rotation.
        alone = len(rows) == 1
        strength = abs(rows[0]["std"]) if alone else math.sqrt(sum(row["std"] ** 2 for row in rows))
        return Edge(
            group_name(self.groups[k]),
            indicator,
            "loading",
            directed=True,
            label="  ".join("0" if row["fixed"] else coefficient(row["std"]) for row in rows),
            strength=_bounded(strength),
            negative=alone and rows[0]["std"] < 0,
            colour=k,
            hint="\n".join(
                f"{row['latent']} → {indicator}: {'0, set to fix the rotation' if row['fixed'] else _estimate(row)}"
                for row in rows
            ),
        )

    @cached_property
    def paths(self) -> list[Edge]:
        bundles: dict[tuple[str, str], list[Row]] = {}
        for row in self.result.latent_paths.to_dict(orient="records"):
            ends = self.id(row["source"]), self.id(row["target"])
            if ends[0] != ends[1]:
                bundles.setdefault(ends, []).append(row)
        return [self._path(*ends, rows) for ends, rows in bundles.items()]

    def _path(self, source: str, target: str, rows: Sequence[Row]) -> Edge:
        alone, directed = len(rows) == 1, bool(rows[0]["directed"])
        arrow = "→" if directed else "–"
        lines = [f"{row['source']} {arrow} {row['target']}: {_estimate(row)}" for row in rows]
        if not directed:
            lines.append("the data do not tell the direction")
        if not alone:
            lines.append("single figures depend on the rotation of the group")
        strength = math.sqrt(sum(row["std"] ** 2 for row in rows) / len(rows))
        return Edge(
            source,
            target,
            "path",
            directed,
            label=coefficient(rows[0]["std"]) if alone else "",
            strength=_bounded(strength),
            negative=alone and rows[0]["std"] < 0,
            hint="\n".join(lines),
        )

    # Nodes ------------------------------------------------------------------------------------------------

    @cached_property
    def home(self) -> dict[str, int]:
        """For each indicator the group it is drawn beside: the one it measures best."""
        best: dict[str, tuple[float, int]] = {}
        for (k, indicator), rows in self._bundles.items():
            strength = math.sqrt(sum(row["std"] ** 2 for row in rows))
            if indicator not in best or strength > best[indicator][0]:
                best[indicator] = strength, k
        return {indicator: k for indicator, (_, k) in best.items()}

    @cached_property
    def blocks(self) -> list[Block]:
        layers = self._layers()
        return [self._block(k, group, layers) for k, group in enumerate(self.groups)]

    def _block(self, k: int, group: Group, layers: Mapping[str, int]) -> Block:
        name = group_name(group)
        items = [self._observed(x) for x in self.result.graph.observed if self.home.get(x) == k and self.items]
        latents = [self._latent(x, k, "" if len(group) == 1 else name) for x in group]
        if len(group) == 1:
            return Block(latents[0], (), tuple(items), layers[name])
        width = max(node.width for node in latents) + 2 * _RIM
        height = sum(node.height for node in latents) + 8.0 * (len(latents) - 1) + 2 * _RIM
        hint = f"{name}: {len(group)} latents behind the same variables; the data do not tell which is which"
        return Block(
            Node(name, "group", (), width, height, colour=k, hint=hint), tuple(latents), tuple(items), layers[name]
        )

    def _latent(self, name: str, k: int, parent: str) -> Node:
        result, alone = self.result, not parent
        explained = f"R² {number(result.r2[name], 2)}" if alone and name in result.r2 else ""
        count = len(result.indicators[self.groups[k]])
        n_items = f"{count} indicator{'s' * (count != 1)}"
        note = (
            explained.replace("0.", ".", 1) if self.r2 and self.items else n_items if alone and not self.items else ""
        )
        lines = wrapped(name)
        widest = max(*(text_width(line) for line in lines), text_width(note, LABEL_FONT))
        width = max(62.0, 1.12 * widest + 22.0)
        height = 34.0 + 11.0 * (len(lines) - 1) + (10.0 if note else 0.0)
        hint = "\n".join(
            part for part in (name, n_items, explained and f"{explained}, explained by other latents") if part
        )
        return Node(name, "latent", lines, width, height, colour=k, parent=parent, note=note, hint=hint)

    def _observed(self, name: str) -> Node:
        causes = [edge.source for edge in self.loadings if edge.target == name]
        label = shortened(name)
        r2 = self.result.r2
        explained = number(r2[name], 2).removeprefix("0") if name in r2 else ""
        hint = [name, f"measures {', '.join(causes)}" if causes else "measures nothing here"]
        return Node(
            name,
            "observed",
            (label,),
            max(34.0, text_width(label, FONT) + 14.0),
            _BOX,
            colour=self.home.get(name, -1),
            shared=len(causes) > 1,
            note=explained if self.r2 else "",
            hint="\n".join([*hint, *([f"R² {explained}"] if explained else [])]),
        )

    @property
    def loose(self) -> list[Node]:
        """Observed variables without a latent cause."""
        return [self._observed(x) for x in self.result.graph.observed if x not in self.home]

    def _layers(self) -> dict[str, int]:
        """How many paths lead to a group at most, in the member that was fitted."""
        layers = {group_name(group): 0 for group in self.groups}
        arrows = [(edge.source, edge.target) for edge in self.paths if edge.source in layers and edge.target in layers]
        for _ in layers:  # a longest path has fewer steps than there are groups
            for source, target in arrows:
                layers[target] = max(layers[target], layers[source] + 1)
        return layers


def _bounded(value: float) -> float:
    return 0.0 if math.isnan(value) else min(value, 1.0)


def _estimate(row: Row) -> str:
    """An estimate as a reader wants to see it who points at it."""
    se = "" if math.isnan(row["std_se"]) else f" (s.e. {row['std_se']:.3f})"
    p = "" if math.isnan(row["pvalue"]) else f", p {probability(row['pvalue'], '= ')}"
    return f"{row['std']:.3f}{se}{p}; not standardised {row['est']:.3f}"

"""A result as a path diagram: which nodes and edges there are, what they are called, what a reader can ask of them.

Edges between groups hold for all members of a group, and the coefficients of single members are a matter of rotation.
So a group of several latents is drawn as one node with its latents inside: one arrow to each indicator, with a loading
for each latent in the order they are drawn, and one line to another group, without a figure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

from unmeasured import apa
from unmeasured.diagram.columns import Block
from unmeasured.diagram.layout import layout
from unmeasured.diagram.picture import (
    FONT,
    LABEL_FONT,
    LINE,
    Edge,
    Node,
    Picture,
    View,
    coefficient,
    cut,
    text_width,
    wrapped,
    wrapped_item,
)
from unmeasured.errors import UnmeasuredError
from unmeasured.results.interpretation import node as group_name
from unmeasured.results.interpretation import number

if TYPE_CHECKING:
    from unmeasured.results.result import Result

Row = Mapping[Any, Any]
Group = tuple[str, ...]

_BOX = 20.0
_LONGEST_LABEL = 90  # letters of a label that are drawn, up to the end of a word
_RIM = 9.0
# Indicators named in a latent that is drawn without them: how many, on how many lines of how many letters.
_STRONGEST, _MOST_NOTES, _WIDE_NOTE = 4, 4, 17


# More variables than this, or more cross-loadings than variables, and the picture of all of them is no longer read.
_MANY_VARIABLES = 40
# Cross-loadings under this are left out where there are more than _MANY_WEAK of them.
_WEAK, _MANY_WEAK = 0.3, 8
_DIFFERS = "≠: differs between the groups of people by BIC."
# Of more paths than this between latents only the strongest are drawn: nobody could follow the others, and to lay out
# two thousand of them took minutes.
_MANY_PATHS = 250
# Letters of a figure for print are at least so large, in points.
_SMALLEST = 7.0
_FEW = 8  # indicators named where a reader points at a latent
_READ = 0.8  # a little smaller will do


def picture_of(
    result: Result,
    view: View = "auto",
    *,
    r2: bool = False,
    min_loading: float | None = None,
    min_path: float | None = None,
    width: float | None = None,
    pairs: bool = False,
    labels: bool = False,
    marked: frozenset[tuple[str, str]] = frozenset(),
) -> Picture:
    """The path diagram of a result, laid out.

    Parameters
    ----------
    view : "auto", "full" or "latents"
        With the observed variables, or the latents alone with their strongest indicators as text. "auto" is the first
        unless there are more than 40 variables, or more cross-loadings than variables.
    r2 : bool
        Whether explained variances are written into the nodes.
    min_loading : float, optional
        Loadings whose absolute standardised value is smaller are not drawn, but the largest of an indicator always is.
        Left out: 0, or .3 where more than eight cross-loadings are smaller than that.
    min_path : float, optional
        The same for paths between latents. Left out: 0, or with more than 250 of them what leaves the strongest 250.
    width : float, optional
        Points the picture should fit into with readable letters, where that is possible.
    pairs : bool
        Whether residual pairs are drawn, among the observed variables.
    labels : bool
        Whether observed variables are called by their labels in the file of the data, where they have one.
    marked : set of (str, str)
        Edges ``(cause, effect)`` that differ between groups of people: their labels end with ≠.
    """
    if view not in ("auto", "full", "latents"):
        raise UnmeasuredError(f"view must be 'auto', 'full' or 'latents'; got {view!r}.")
    for name, least in (("min_loading", min_loading), ("min_path", min_path)):
        if least is not None and not 0.0 <= least <= 1.0:
            raise UnmeasuredError(f"{name} is a standardised coefficient from 0 to 1; got {least!r}.")
    parts = _Parts(result, r2=r2, items=shown_view(result, view) == "full", marked=marked)
    weakest = min((edge.strength for edge in parts.loadings if not edge.main), default=1.0)
    if min_loading is None:
        weak = sum(not edge.main and edge.strength < _WEAK for edge in parts.loadings)
        min_loading = _WEAK if weak > _MANY_WEAK else 0.0
    if min_path is None:
        strengths = sorted((edge.strength for edge in parts.paths), reverse=True)
        # As a reader sees it, rounded up: one that is not drawn is not larger than what the remark says.
        min_path = 0.0 if len(strengths) <= _MANY_PATHS else min(math.ceil(100 * strengths[_MANY_PATHS]) / 100, 1.0)
    # Without indicators there are no loadings to leave out, and a limit below all of them leaves out none.
    is_all = not parts.items or min_loading <= weakest
    pairs = pairs and parts.items and len(result.local_dependence) > 0
    least = 0.0 if is_all else min_loading
    return _laid_out(result, parts.items, r2, least, min_path, width, pairs, labels, marked)


# Its layout takes longest: a report draws the same picture on its page and into its files.
@lru_cache(maxsize=8)
def _laid_out(
    result: Result,
    items: bool,
    r2: bool,
    min_loading: float,
    min_path: float,
    width: float | None,
    pairs: bool,
    labels: bool,
    marked: frozenset[tuple[str, str]],
) -> Picture:
    made = partial(_Parts, result, r2=r2, items=items, marked=marked, by_label=labels)
    picture = made().picture(min_loading, min_path, width, pairs)
    if width is None or items or _shrunk(picture, width) >= _READ:
        return picture
    # In a narrow column the names of indicators would make everything else too small to read.
    bare = made(notes=False).picture(min_loading, min_path, width, pairs)
    return max(picture, bare, key=lambda p: _shrunk(p, width))


def _shrunk(picture: Picture, width: float) -> float:
    """The size of letters for print in a picture of that width, as a part of the smallest that can be read."""
    return width * FONT / _SMALLEST / picture.width


def shown_view(result: Result, view: View = "auto") -> View:
    """The view that "auto" stands for."""
    if view != "auto":
        return view
    n = len(result.graph.observed)
    n_cross = sum(len(items) for items in result.indicators.values()) - len(
        {item for items in result.indicators.values() for item in items}
    )
    return "latents" if result.graph.latents and (n > _MANY_VARIABLES or n_cross > n) else "full"


class _Parts:
    """Nodes and edges of a result, not placed yet."""

    def __init__(
        self,
        result: Result,
        *,
        r2: bool,
        items: bool,
        marked: frozenset[tuple[str, str]],
        notes: bool = True,
        by_label: bool = False,
    ) -> None:
        self.result = result
        self.notes = notes
        self.by_label = by_label
        self.marked = marked
        self.r2 = r2
        self.items = items
        self.groups = result.graph.latent_groups
        self.of = {latent: k for k, group in enumerate(self.groups) for latent in group}
        sides = {"left": result.graph.variables.covariates, "right": result.graph.variables.outcomes}
        self.side: dict[str, Any] = {name: side for side, names in sides.items() for name in names}

    def picture(self, min_loading: float, min_path: float, width: float | None, pairs: bool) -> Picture:
        blocks, loose = self.blocks, self.loose
        drawn = {node.id for block in blocks for node in (block.node, *block.items)} | {node.id for node in loose}
        loadings = [edge for edge in self.loadings if edge.target in drawn]
        paths = [edge for edge in self.paths if {edge.source, edge.target} <= drawn]
        kept = [edge for edge in loadings if edge.main or edge.strength >= min_loading]
        kept += [edge for edge in paths if edge.strength >= min_path]
        left_out = _left_out(len(loadings) + len(paths) - len(kept), min_loading, min_path)
        remark = " ".join(filter(None, (left_out, _DIFFERS * bool(self.marked))))
        limit = None if width is None else width * FONT / _SMALLEST
        kept += self.pairs if pairs else []
        sheet = None if limit is None else (limit, 1.25 * limit)
        return layout(blocks, loose, kept, keys=_keys(blocks, loose, kept), remark=remark, sheet=sheet)

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
            label="  ".join("0" if row["fixed"] else coefficient(row["std"]) for row in rows)
            + " ≠" * any((row["latent"], indicator) in self.marked for row in rows),
            strength=_bounded(strength),
            negative=alone and rows[0]["std"] < 0,
            colour=k,
            main=self.home.get(indicator, k) == k,
            hint="\n".join(
                f"{row['latent']} → {indicator}: {'0, set to fix the rotation' if row['fixed'] else _estimate(row)}"
                for row in rows
            ),
        )

    @cached_property
    def paths(self) -> list[Edge]:
        bundles: dict[tuple[str, str], list[Row]] = {}
        direct = self.result.direct_effects.rename(columns={"covariate": "source", "item": "target"})
        rows = [*self.result.latent_paths.to_dict("records"), *direct.assign(directed=True).to_dict("records")]
        for row in rows:
            ends = self.id(row["source"]), self.id(row["target"])
            if ends[0] != ends[1]:
                bundles.setdefault(ends, []).append(row)
        return [self._path(*ends, rows) for ends, rows in bundles.items()]

    def _path(self, source: str, target: str, rows: Sequence[Row]) -> Edge:
        alone, directed = len(rows) == 1, bool(rows[0]["directed"])
        arrow = "→" if directed else "–"
        lines = [f"{row['source']} {arrow} {row['target']}: {_estimate(row)}" for row in rows]
        if not directed:
            lines.append("the direction is not identified: the reverse fits as well")
        if not alone:
            lines.append("single figures depend on the rotation of the group")
        strength = math.sqrt(sum(row["std"] ** 2 for row in rows) / len(rows))
        return Edge(
            source,
            target,
            "path",
            directed,
            label=" ".join(
                filter(
                    None,
                    (
                        coefficient(rows[0]["std"]) if alone else "",
                        "≠" * any((row["source"], row["target"]) in self.marked for row in rows),
                    ),
                )
            ),
            strength=_bounded(strength),
            negative=alone and rows[0]["std"] < 0,
            hint="\n".join(lines),
        )

    @property
    def pairs(self) -> list[Edge]:
        """Residual correlations of observed variables."""
        return [
            Edge(
                row["item_1"],
                row["item_2"],
                "pair",
                directed=False,
                label=coefficient(row["std"]),
                strength=_bounded(abs(row["std"])),
                negative=row["std"] < 0,
                hint=f"{row['item_1']} and {row['item_2']} share more than their latents explain: residual correlation "
                f"{_estimate(row)}",
            )
            for row in self.result.local_dependence.to_dict(orient="records")
        ]

    # Nodes ------------------------------------------------------------------------------------------------

    @cached_property
    def home(self) -> dict[str, int]:
        """For each indicator the group it is drawn beside: the one it measures best."""
        best: dict[str, tuple[float, int]] = {}
        for (k, indicator), rows in self._bundles.items():
            strength = math.sqrt(sum(row["std"] ** 2 for row in rows))
            if indicator in self.side:  # a covariate or an outcome has a place of its own
                continue
            if indicator not in best or strength > best[indicator][0]:
                best[indicator] = strength, k
        return {indicator: k for indicator, (_, k) in best.items()}

    @cached_property
    def blocks(self) -> list[Block]:
        return [self._block(k, group) for k, group in enumerate(self.groups)]

    def _block(self, k: int, group: Group) -> Block:
        name = group_name(group)
        items = [self._observed(x) for x in self.result.graph.observed if self.home.get(x) == k and self.items]
        latents = [self._latent(x, k, "" if len(group) == 1 else name) for x in group]
        if len(group) == 1:
            return Block(latents[0], (), tuple(items))
        notes = self._strongest(k)
        width = max(*(node.width for node in latents), *(text_width(n, LABEL_FONT) for n in notes), 0.0) + 2 * _RIM
        height = sum(node.height for node in latents) + 8.0 * (len(latents) - 1) + 2 * _RIM
        height += LABEL_FONT * LINE * len(notes) + (4.0 if notes else 0.0)
        hint = f"{name}: {len(group)} latents with the same indicators; which is which is not identified"
        frame = Node(name, "group", (), width, height, colour=k, notes=tuple(notes), hint=hint)
        return Block(frame, tuple(latents), tuple(items))

    def _latent(self, name: str, k: int, parent: str) -> Node:
        explained = self._explained(name) if not parent else ""
        lines, notes = wrapped(name), self._notes(k, explained)
        widest = max(*(text_width(line) for line in lines), *(text_width(note, LABEL_FONT) for note in notes), 0.0)
        tall = FONT * LINE * len(lines) + LABEL_FONT * LINE * len(notes)
        # The smallest ellipse around a box has the square root of two as its ratio to it; short lines need less.
        grown = 1.18 if len(lines) + len(notes) < 3 else math.sqrt(2.0)
        items = self.result.indicators[self.groups[k]]
        named = f"{', '.join(items[:_FEW])}{' …' * (len(items) > _FEW)}"
        children = f"{len(items)} indicator{'s' * (len(items) != 1)}: {named}" if items else ""
        explained = f"R² {explained}, explained by other latents" if explained else ""
        hint = "\n".join(filter(None, (name, children, explained)))
        width, height = max(62.0, grown * widest + 16.0), max(34.0, grown * tall + 12.0)
        return Node(name, "latent", lines, width, height, colour=k, parent=parent, notes=tuple(notes), hint=hint)

    def _notes(self, k: int, explained: str) -> list[str]:
        """Small lines in a latent: R2 where wanted, and its strongest indicators where these are not drawn."""
        notes = [f"R² {explained}"] if self.r2 and explained else []
        return [*notes, *(self._strongest(k) if len(self.groups[k]) == 1 else ())]

    def _strongest(self, k: int) -> list[str]:
        """The strongest indicators of a group as lines of text, where they are not drawn."""
        if self.items or not self.notes:
            return []
        of = sorted((e for e in self.loadings if e.colour == k), key=lambda e: (not e.main, -e.strength))
        # As many as there is space for: one long question, or four short names.
        lines: list[str] = []
        for count in range(min(_STRONGEST, len(of)), 0, -1):
            shown = [self.shown(edge.target) for edge in of[:count]]
            shown[-1] += f" +{len(of) - count}" if len(of) > count else ""
            lines = _filled(shown, _WIDE_NOTE)
            if len(lines) <= _MOST_NOTES:
                break
        return lines

    def _explained(self, name: str) -> str:
        r2 = self.result.r2
        return number(r2[name], 2).replace("0.", ".", 1) if name in r2 else ""

    def _observed(self, name: str) -> Node:
        causes = [edge.source for edge in self.loadings if edge.target == name]
        lines, explained = wrapped_item(self.shown(name)), self._explained(name)
        notes = (f"R² {explained}",) if self.r2 and explained else ()
        role = self.result.graph.variables.role(name)
        what = f"loads on {', '.join(causes) if causes else 'no latent'}" if role == "observed" else role
        hint = [name, self.labels.get(name, ""), what]
        hint += [f"R² {explained}"] if explained else []
        widest = max(*(text_width(line) for line in lines), *(text_width(note, LABEL_FONT) for note in notes), 0.0)
        ends = 5.0 * min(max(len(causes) - 1, 0), 2)  # several arrows may end at one side
        return Node(
            name,
            "observed",
            lines,
            max(34.0, widest + 14.0),
            _BOX + FONT * LINE * (len(lines) - 1) + LABEL_FONT * LINE * len(notes) + ends,
            colour=self.home.get(name, -1),
            shared=len(causes) > 1,
            home=group_name(self.groups[self.home[name]]) if name in self.home else "",
            notes=notes,
            hint="\n".join(filter(None, hint)),
            side=self.side.get(name, ""),
        )

    @cached_property
    def labels(self) -> Mapping[str, str]:
        """What the file of the data says of its variables, where it says something."""
        return getattr(self.result.sem.sample, "labels", None) or {}

    def shown(self, name: str) -> str:
        """What a variable is called in the picture."""
        return cut(self.labels.get(name) or name, _LONGEST_LABEL) if self.by_label else name

    @property
    def loose(self) -> list[Node]:
        """Observed variables without a latent cause; among latents alone, those that take part in paths."""
        ends = {end for edge in self.paths for end in (edge.source, edge.target)}
        names = (x for x in self.result.graph.observed if x not in self.home and (self.items or x in ends))
        return [self._observed(x) for x in names]


def _filled(words: Sequence[str], wide: int) -> list[str]:
    """Names with commas between them, on lines of about that many letters; long ones are broken where words end.

    >>> _filled(["x1", "x2", "I feel used up at the end of the day"], 17)
    ['x1, x2,', 'I feel used up at', 'the end of the', 'day']
    """
    lines: list[str] = []
    for k, word in enumerate(words):
        word += "," * (k < len(words) - 1)
        if lines and len(lines[-1]) + 1 + len(word) <= wide:
            lines[-1] += f" {word}"
        else:
            lines += wrapped(word, wide)
    return lines


def _left_out(count: int, min_loading: float, min_path: float) -> str:
    """What is not drawn, in words; nothing where all is."""
    if not count:
        return ""
    limits = [
        f"{what} under {coefficient(least)}"
        for what, least in (("loadings", min_loading), ("paths", min_path))
        if least
    ]
    return f"Not drawn: {count} {' and '.join(limits)}. The largest loading of an indicator always is."


def _keys(blocks: Sequence[Block], loose: Sequence[Node], edges: Sequence[Edge]) -> list[tuple[str, str]]:
    """The legend: what the picture has, and nothing else."""
    observed = [*loose, *(item for block in blocks for item in block.items)]
    kinds = {"path": [e for e in edges if e.kind == "path"], "loading": [e for e in edges if e.kind == "loading"]}
    present = {
        ("latent", "latent"): bool(blocks),
        ("group", "latents with the same indicators"): any(block.inside for block in blocks),
        ("observed", "observed"): bool(observed),
        ("shared", "loads on several"): any(node.shared for node in observed),
        ("arrow", "causes"): any(e.directed for e in edges),
        ("line", "direction not identified"): any(not e.directed for e in kinds["path"]),
        ("negative", "negative"): any(e.negative for e in edges if e.kind != "pair"),
        ("pair", "residual correlation (similar wording or method)"): any(e.kind == "pair" for e in edges),
        ("strong", "thicker: stronger; figures are standardised"): any(e.label for e in edges),
    }
    return [key for key, there in present.items() if there]


def _bounded(value: float) -> float:
    return 0.0 if math.isnan(value) else min(value, 1.0)


def _estimate(row: Row) -> str:
    """An estimate as a reader wants to see it who points at it."""
    se = "" if math.isnan(row["std_se"]) else f" (s.e. {row['std_se']:.3f})"
    p = "" if math.isnan(row["pvalue"]) else f", p {apa.p_value(row['pvalue'], '= ')}"
    return f"{row['std']:.3f}{se}{p}; not standardised {row['est']:.3f}"

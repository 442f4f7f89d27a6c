"""Stability: what came back in the replicates, in the terms psychometricians know.

*Item stability* and *structural consistency* are those of bootstrap exploratory graph analysis (Christensen and Golino
2021): how often an item is found in its group, and how often a group is found with exactly its items.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score

from unmeasured.errors import UnmeasuredError
from unmeasured.files import parsed_json
from unmeasured.graphs import CPDAG, from_json
from unmeasured.graphs.outline import Outline, Tally, group_name
from unmeasured.results.earlier_formats import with_present_keys
from unmeasured.search.budget import BUDGET
from unmeasured.validation.replicates.consensus import consensus_class
from unmeasured.validation.replicates.records import Replicate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 96


@dataclass(frozen=True, eq=False, repr=False)
class Stability:
    """How often each edge, item and group of a graph is found in replicates of its data.

    Attributes
    ----------
    graph : CPDAG
        The graph that is judged.
    observed : tuple of str
        The observed variables, in the order of the data.
    method : str
        How replicates were drawn.
    replicates : tuple of Replicate
        One for each, in order; ``failure`` is a sentence where a search found nothing to answer.
    """

    graph: CPDAG
    observed: tuple[str, ...]
    method: str
    replicates: tuple[Replicate, ...]

    def __post_init__(self) -> None:
        if not self.outlines:
            raise UnmeasuredError(f"No replicate could be searched. The first failed so: {self.failures[0]}")

    # Counts -----------------------------------------------------------------------------------------------

    @cached_property
    def outlines(self) -> tuple[Outline, ...]:
        """What was found in each replicate that did not fail."""
        return tuple(replicate.outline for replicate in self.replicates if replicate.outline is not None)

    @property
    def failures(self) -> tuple[str, ...]:
        """Why replicates failed, one sentence for each that did."""
        return tuple(replicate.failure for replicate in self.replicates if replicate.failure)

    @cached_property
    def reference(self) -> Outline:
        """The graph that is judged, as an outline."""
        return Outline.of(self.graph, self.observed)

    @cached_property
    def tally(self) -> Tally:
        """The replicates seen from the graph that is judged."""
        return Tally.of(self.reference, self.outlines)

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per edge ever seen between groups of the graph, or from them to observed variables.

        ``source target kind in_graph frequency forward backward undirected``: ``frequency`` is the part of the
        replicates with that edge, the last three how often it points from source to target, back, or neither.
        """
        return self.tally.edges(self.graph.latent_groups, self.observed)

    @cached_property
    def items(self) -> pd.DataFrame:
        """One row per observed variable: ``item groups stability exact``.

        ``stability``: how often it is an indicator of all its groups (item stability); ``exact``: and of no other.
        """
        wanted = self.reference.measures
        stays = np.mean([(seen.measures | ~wanted).all(axis=0) for seen in self.tally.classes], axis=0)
        # Groups that stand for none of ours are others, too.
        pairs = zip(self.tally.classes, self.outlines, strict=True)
        exact = np.mean(
            [
                (seen.measures == wanted).all(axis=0) & (other.measures.sum(axis=0) == wanted.sum(axis=0))
                for seen, other in pairs
            ],
            axis=0,
        )
        names = [group_name(group) for group in self.graph.latent_groups]
        groups = [", ".join(names[g] for g in np.flatnonzero(column)) for column in wanted.T]
        table = pd.DataFrame({"item": self.observed, "latent_groups": groups, "stability": stays, "exact": exact})
        return table[table["item"].isin(self.graph.variables.indicators)].reset_index(drop=True)

    @cached_property
    def latent_groups(self) -> pd.DataFrame:
        """One row per latent group: ``group items found consistency same_size item_stability``.

        ``found``: a group of the replicate shares two indicators or more with it, and no other claims it;
        ``consistency``: with exactly its indicators (structural consistency); ``same_size``: with as many latents;
        ``item_stability``: the mean over its indicators of how often each is one.
        """
        wanted, sizes = self.reference.measures, np.array(self.reference.sizes, dtype=int)
        seen_sizes = np.array([seen.sizes for seen in self.tally.classes], dtype=int)
        seen_sizes = seen_sizes.reshape(len(self.tally.classes), len(sizes))
        exact = np.array([(seen.measures == wanted).all(axis=1) for seen in self.tally.classes])
        n_items = wanted.sum(axis=1)
        return pd.DataFrame(
            {
                "group": [group_name(group) for group in self.graph.latent_groups],
                "items": [", ".join(np.array(self.observed)[row]) for row in wanted],
                "found": (seen_sizes > 0).mean(axis=0),
                "consistency": exact.mean(axis=0),
                "same_size": (seen_sizes == sizes).mean(axis=0),
                "item_stability": (self.tally.loadings * wanted).sum(axis=1) / np.maximum(n_items, 1),
            }
        )

    @property
    def n_latents(self) -> pd.Series[float]:
        """Part of the replicates with each number of latents."""
        return _distribution([sum(outline.sizes) for outline in self.outlines])

    @property
    def n_groups(self) -> pd.Series[float]:
        """Part of the replicates with each number of groups."""
        return _distribution([len(outline.sizes) for outline in self.outlines])

    @cached_property
    def coassignment(self) -> pd.DataFrame:
        """How often two observed variables are indicators of one group; no matching of latents is needed for it."""
        table = np.mean([outline.coassignment for outline in self.outlines], axis=0)
        frame = pd.DataFrame(table, index=list(self.observed), columns=list(self.observed))
        items = [name for name in self.observed if name in self.graph.variables.indicators]
        return frame.loc[items, items]

    @cached_property
    def agreement(self) -> float:
        """Mean adjusted Rand index between the levels to read first of two replicates; NaN where they are not known.

        Whether items belong together in the same way from sample to sample: 1 is always, 0 is chance. Items that belong
        to no latent are sets of their own.
        """
        labels = [
            [label if label >= 0 else -1 - k for k, label in enumerate(one.selected_partition)]
            for one in self.replicates
            if one.selected_partition
        ]
        pairs = [adjusted_rand_score(a, b) for a, b in combinations(labels, 2)]
        return float(np.mean(pairs)) if pairs else math.nan

    def consensus(self, threshold: float = 0.5) -> CPDAG:
        """A class with what is found in at least this part of the replicates, always a factor model (Def. 2).

        Indicators and edges below the threshold are dropped, then groups of k latents left with fewer than 2k pure
        indicators, the least consistent first, then variables left without a group. Edges point as they do most often,
        as far as that is a class.
        """
        if not 0 < threshold <= 1:
            raise UnmeasuredError(f"threshold is a part of the replicates, above 0 and up to 1; got {threshold!r}.")
        covariates = self.graph.variables.covariates
        return consensus_class(self.tally, self.graph.latent_groups, self.observed, threshold, covariates)

    # Reading ----------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<Stability: {len(self.outlines)} replicates ({self.method}), {self.graph!r}>"

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Groups, edges between them and numbers of latents, as text; tables have the rest."""
        failed = f", {len(self.failures)} failed" if self.failures else ""
        counts = ", ".join(f"{count} in {part:.0%}" for count, part in self.n_latents.items())
        lines = [f"{len(self.outlines)} replicates ({self.method}){failed}; latents: {counts}"]
        if not math.isnan(self.agreement):
            word = "" if self.agreement >= BUDGET.stable_agreement else ": not stable"
            lines.append(
                f"Which items belong together: mean adjusted Rand index of two replicates {self.agreement:.2f}{word}"
            )
        lines += ["", "Groups"]
        for row in _rows(self.latent_groups):
            lines.append(
                f"  {row['group']:<10} found {row['found']:.0%}, with exactly its indicators {row['consistency']:.0%}"
            )
            lines.append(f"             {self._item_words(row['group'])}"[:_WIDTH])
        paths = [
            row for row in _rows(self.edges) if row["kind"] == "path" and (row["in_graph"] or row["frequency"] >= 0.2)
        ]
        lines += ["", "Edges between groups (→ ← – of all replicates)"] if paths else []
        for row in paths:
            mark = "" if row["in_graph"] else "   not in the graph"
            lines.append(
                f"  {row['source']} – {row['target']:<10} {row['frequency']:.0%} "
                f"(→ {row['forward']:.0%}, ← {row['backward']:.0%}, – {row['undirected']:.0%}){mark}"
            )
        return "\n".join(lines)

    def _item_words(self, group: str) -> str:
        loadings = self.edges[
            (self.edges["source"] == group) & self.edges["in_graph"] & (self.edges["kind"] == "loading")
        ]
        return ", ".join(f"{row['target']} {row['frequency']:.0%}" for row in _rows(loadings))

    def to_record(self) -> dict[str, Any]:
        """All tables as plain lists and numbers, for JSON."""
        return {
            "method": self.method,
            "n_replicates": len(self.outlines),
            "failures": list(self.failures),
            "n_latents": {str(count): part for count, part in self.n_latents.items()},
            "agreement": None if math.isnan(self.agreement) else self.agreement,
            "edges": _rows(self.edges),
            "items": _rows(self.items),
            "latent_groups": _rows(self.latent_groups),
        }

    def to_json(self) -> str:
        """Everything, the replicates one by one; :meth:`from_json` undoes it."""
        record = {
            "graph": json.loads(self.graph.to_json()),
            "observed": list(self.observed),
            "method": self.method,
            "replicates": [json.loads(replicate.line({})) for replicate in self.replicates],
        }
        return json.dumps(record, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Stability:
        """What :meth:`to_json` wrote.

        >>> Stability.from_json("{}")
        Traceback (most recent call last):
        ...
        unmeasured.errors.UnmeasuredError: This is not a stability: 'graph' is missing or wrong. Give the text that ...
        """
        try:
            record = parsed_json(text)
            graph, observed = from_json(json.dumps(record["graph"])), tuple(record["observed"])
            lines = with_present_keys(record["replicates"], "replicate")
            replicates = [Replicate.from_record({**one, "observed": observed}) for one in lines]
            assert isinstance(graph, CPDAG)
            return cls(graph, observed, str(record["method"]), tuple(replicates))
        except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError) as error:
            what = f"{error} is missing or wrong" if isinstance(error, KeyError) else str(error) or "another graph"
            raise UnmeasuredError(f"This is not a stability: {what}. Give the text that to_json wrote.") from None

    def is_of(self, graph: CPDAG) -> bool:
        """Whether a graph is the one that is judged, whatever its latents are called."""
        same = sorted(graph.observed) == sorted(self.observed)
        return same and Outline.of(graph, self.observed).to_record() == self.reference.to_record()

    def named_as(self, graph: CPDAG) -> Stability:
        """Return the same with the names that the latents have in a graph, which must be the one that is judged."""
        if not self.is_of(graph):
            raise UnmeasuredError("The stability is of another graph than the result. Give that of the same search.")
        return replace(self, graph=graph)

    def plot(self) -> Figure:
        """How often items are in the same group: a heat map in the order of the groups, as a matplotlib figure."""
        # matplotlib takes a good part of a second to load.
        from unmeasured.validation.replicates.figures import heat_map

        return heat_map(self)

    def item_order(self) -> list[str]:
        """Observed variables beside those of their group, of several the one they stay with most often."""
        wanted = self.reference.measures
        often = np.where(wanted, 1.0 + self.tally.loadings, 0.0)
        first = [int(np.argmax(column)) if column.any() else len(wanted) for column in often.T]
        shared = wanted.sum(axis=0) > 1
        order = sorted(range(len(self.observed)), key=lambda j: (first[j], bool(shared[j]), j))
        return [self.observed[j] for j in order if self.observed[j] in self.graph.variables.indicators]


def _distribution(counts: list[int]) -> pd.Series[float]:
    values, times = np.unique(counts, return_counts=True)
    return pd.Series(times / times.sum(), index=[int(value) for value in values], name="part")


def _rows(table: pd.DataFrame) -> list[dict[Any, Any]]:
    return table.to_dict(orient="records")

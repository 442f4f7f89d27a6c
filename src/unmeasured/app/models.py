"""Models that are edited: latents, edges and residual pairs, and what each edit makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import unmeasured as um

Edge = tuple[str, str]


@dataclass(frozen=True)
class Model:
    """A graph that is edited: its latents, its edges, and pairs of items whose residuals covary."""

    latents: tuple[str, ...]
    edges: tuple[Edge, ...]
    pairs: tuple[Edge, ...] = ()
    what: str = ""  # what was done to get here
    renamed: tuple[Edge, ...] = ()  # latents of the model found and what they are called here

    @classmethod
    def of(cls, result: um.Result) -> Model:
        """The model of a result."""
        graph = result.member
        names = tuple((name, name) for name in graph.latents)
        return cls(graph.latents, tuple(graph.edges), tuple(graph.pairs), "as found", names)

    @classmethod
    def from_record(cls, entry: Mapping[str, Any], found: Sequence[str]) -> Model:
        """The model of a file; ``found``: the latents of the model that was found."""
        edges, pairs = (tuple((str(a), str(b)) for a, b in entry.get(key, ())) for key in ("edges", "pairs"))
        latents = tuple(str(x) for x in entry["latents"])
        # Files of earlier versions do not say how latents were renamed.
        old = zip(found, latents) if len(found) == len(latents) else ()
        renamed = tuple((str(a), str(b)) for a, b in entry.get("renamed", old))
        return cls(latents, edges, pairs, str(entry["what"]), renamed)

    @property
    def names(self) -> dict[str, str]:
        """What the latents of the model found are called here, those that are left."""
        return dict(self.renamed)

    def is_same_as(self, found: Model) -> bool:
        """Whether it differs from the model found in names of latents at most."""
        return self.changes(found) == ([], []) and len(self.latents) == len(found.latents)

    def changes(self, found: Model) -> tuple[list[str], list[str]]:
        """What was added to the model found and what was removed, in words and in the names of this one."""
        names = self.names
        before = _lines([(names.get(a, a), names.get(b, b)) for a, b in found.edges], found.pairs)
        now = _lines(self.edges, self.pairs)
        return sorted(now - before), sorted(before - now)


def _lines(edges: Sequence[Edge], pairs: Sequence[Edge]) -> set[str]:
    return {f"{a} → {b}" for a, b in edges} | {" ↔ ".join(sorted(pair)) for pair in pairs}


def edited(model: Model, action: Mapping[str, Any], graph: um.CPDAG) -> Model:
    """The model after an edit; ``graph`` says which observed variables there are, and what they are.

    Raises
    ------
    GraphError
        For an edit that cannot be made, with the reason.
    """
    kind, observed = action.get("kind"), graph.observed
    source, target = str(action.get("source", "")), str(action.get("target", ""))
    nodes = {*model.latents, *observed}
    if kind in ("add", "remove", "reverse"):
        for name in (source, target):
            if name not in nodes:
                raise um.GraphError(f"The model has no variable {name!r}.")
        if {source, target} <= set(graph.variables.indicators) and source != target:
            return _paired(model, str(kind), source, target)
        return _joined(model, str(kind), source, target, graph)
    name = str(action.get("name", "")).strip()
    if kind in ("rename", "new"):
        if not name or len(name) > 80:
            raise um.GraphError("A name has 1 to 80 letters.")
        if name in nodes:
            raise um.GraphError(f"{name!r} is taken already.")
    if kind == "rename" and source in model.latents:
        swap = {source: name}
        edges = tuple((swap.get(a, a), swap.get(b, b)) for a, b in model.edges)
        names = tuple((old, swap.get(new, new)) for old, new in model.renamed)
        latents = tuple(swap.get(x, x) for x in model.latents)
        return replace(model, latents=latents, edges=edges, what=f"{source} is called {name}", renamed=names)
    if kind == "new":
        items = [str(x) for x in action.get("items", []) if str(x) in graph.variables.indicators]
        if len(items) < 2:
            raise um.GraphError("A new latent needs at least two indicators. Select them first.")
        edges = (*model.edges, *((name, x) for x in items))
        return replace(model, latents=(*model.latents, name), edges=edges, what=f"with a latent {name}")
    if kind == "drop" and source in model.latents:
        edges = tuple(edge for edge in model.edges if source not in edge)
        latents = tuple(x for x in model.latents if x != source)
        names = tuple((old, new) for old, new in model.renamed if new != source)
        return replace(model, latents=latents, edges=edges, what=f"without {source}", renamed=names)
    raise um.GraphError(f"There is no such edit: {str(kind)!r} of {source!r}.")


def _joined(model: Model, kind: str, source: str, target: str, graph: um.CPDAG) -> Model:
    """An edge added, removed or reversed."""
    roles = graph.variables
    edge = (source, target)
    if kind != "add":
        if edge not in model.edges and edge[::-1] in model.edges:  # the page may not show which way it points
            source, target = edge = edge[::-1]
        if edge not in model.edges:
            raise um.GraphError(f"The model has no edge {source} → {target}.")
        kept = tuple(other for other in model.edges if other != edge)
        if kind == "remove":
            return replace(model, edges=kept, what=f"without {source} → {target}")
        model, (source, target) = replace(model, edges=kept), (target, source)
        edge = (source, target)
    if source == target or edge in model.edges:
        raise um.GraphError(f"{source} → {target} is no new edge between two variables.")
    if target in roles.covariates:
        raise um.GraphError(f"{target!r} is a covariate, which nothing causes.")
    if source in roles.indicators:
        raise um.GraphError(f"{source!r} is an item, and items cause nothing here. Draw the edge from a latent.")
    if source in roles.outcomes and target not in roles.outcomes:
        raise um.GraphError(f"{source!r} is an outcome, which causes other outcomes at most.")
    return replace(model, edges=(*model.edges, edge), what=f"with {source} → {target}")


def _paired(model: Model, kind: str, first: str, second: str) -> Model:
    """A covariance of the residuals of two items added or removed."""
    same = [pair for pair in model.pairs if set(pair) == {first, second}]
    if kind == "remove" and same:
        kept = tuple(pair for pair in model.pairs if pair not in same)
        return replace(model, pairs=kept, what=f"without {first} ↔ {second}")
    if kind == "remove":
        raise um.GraphError(f"The model has no edge {first} → {second}, and their residuals do not covary in it.")
    if kind == "reverse" or same:
        raise um.GraphError(f"The residuals of {first} and {second} covary already; that has no direction.")
    return replace(model, pairs=(*model.pairs, (first, second)), what=f"with {first} ↔ {second}")

"""Do items come together as their authors, or a simulation, put them? Partitions of items and their agreement.

A method's answer is read as one partition of the items, or several from the lowest level upwards: from
``result_.levels`` where a search has levels, from communities or strongest factors where a peer has these, and
otherwise each item goes to the latent group with its largest standardised loading. Agreement with
the truth is the adjusted Rand index.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score
from tqdm import tqdm

from unmeasured import simulate
from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.peers.ega import EGA
from unmeasured.peers.factor_analysis import FactorAnalysis
from unmeasured.search.lges import LGES

Partition = Mapping[str, Any]  # item: what it belongs to, None for nothing

# By label; each takes the true number of scales, which only one of them looks at.
METHODS: Mapping[str, Callable[[int], Any]] = {
    "LGES": lambda _: LGES(),
    "LGES, groups of one": lambda _: LGES(max_group_size=1),
    "EGA": lambda _: EGA(latent_edges=False),
    "EGA, qgraph's path": lambda _: EGA(lambda_min_ratio=0.01, latent_edges=False),
    "factor analysis": lambda _: FactorAnalysis(latent_edges=False),
    "factor analysis, number given": lambda n: FactorAnalysis(n_factors=n, latent_edges=False),
}


@dataclass(frozen=True)
class Case:
    """A data set with what is known of it: a partition for each level, the lowest first."""

    name: str
    corr: pd.DataFrame
    n_samples: int
    truths: Mapping[str, Partition]


def agreement(truth: Partition, found: Partition) -> float:
    """Adjusted Rand index over the items that have a place in the truth; an item of no latent is alone.

    >>> agreement({"a": 1, "b": 1, "c": 2, "d": 2}, {"a": "x", "b": "x", "c": "y", "d": "y"})
    1.0
    >>> agreement({"a": 1, "b": 1, "c": 2}, {"a": None, "b": None, "c": None})
    0.0
    """
    items = [item for item in truth if truth[item] is not None]
    labels = [f"alone {item}" if found.get(item) is None else f"in {found[item]}" for item in items]
    return float(adjusted_rand_score([str(truth[item]) for item in items], labels))


def levels_of(search: Any) -> tuple[list[Partition], int]:
    """The partitions of a fitted method, the lowest level first, and the index of the one it leads with."""
    levels = getattr(getattr(search, "result_", None), "levels", None)
    if levels is not None and len(levels):
        return [dict(level) for level in levels], int(search.result_.headline)
    for name in ("communities_", "strongest_"):
        if (found := getattr(search, name, None)) is not None:
            return [found], 0
    return [strongest_groups(search)], 0


def strongest_groups(search: Any) -> Partition:
    """Each item with the latent group of its largest standardised loading."""
    group_of = {latent: i for i, group in enumerate(search.graph_.groups) for latent in group}
    table = search.sem_.parameters
    loadings = table[(table["op"] == "=~") & table["lhs"].isin(list(group_of))]
    best: dict[str, Any] = dict.fromkeys(search.graph_.observed)
    for item, rows in loadings.groupby("rhs"):
        best[str(item)] = group_of[rows.loc[rows["std"].abs().idxmax(), "lhs"]]
    return best


def judged(case: Case, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row for each method: agreement of its headline and of its best level with each truth, latents, seconds."""
    for label in labels:
        if label not in METHODS:
            hint = nearest(label, METHODS) or "."
            raise UnmeasuredError(f"There is no method {label!r}{hint} There are {listing(METHODS)}.")
        n_scales = len(set(next(iter(case.truths.values())).values()) - {None})
        row: dict[str, Any] = {"data": case.name, "N": case.n_samples, "method": label}
        began = time.process_time()
        try:
            found = METHODS[label](n_scales).fit_cov(case.corr, case.n_samples)
        except UnmeasuredError as error:
            yield {**row, "failure": str(error)}
            continue
        seconds = time.process_time() - began
        levels, headline = levels_of(found)
        for name, truth in case.truths.items():
            scores = [agreement(truth, level) for level in levels]
            row |= {f"{name}: headline": scores[headline], f"{name}: best level": max(scores)}
        n_groups = len(set(levels[headline].values()) - {None})
        yield {**row, "groups": n_groups, "levels": len(levels), "CPU seconds": seconds}


def questionnaires(path: Path) -> list[Case]:
    """The data sets of a file: JSON, packed or not, ``{name: {"n", "names", "corr", "scales": {scale: items}}}``."""
    try:
        content = path.read_bytes()
        told = json.loads(gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content)
        cases = []
        for name, data in told.items():
            scale = {item: scale for scale, items in data["scales"].items() for item in items}
            corr = pd.DataFrame(np.array(data["corr"], dtype=float), data["names"], data["names"])
            cases.append(Case(name, corr, int(data["n"]), {"scales": {x: scale.get(x) for x in data["names"]}}))
        return cases
    except FileNotFoundError:
        raise UnmeasuredError(f"There is no file {str(path)!r}.") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, EOFError) as error:
        raise UnmeasuredError(
            f"{str(path)!r} is not a file of questionnaires ({type(error).__name__}: {error}). It is JSON with "
            "n, names, corr and scales for each name."
        ) from None


def hierarchies(n_seeds: int, n_samples: Sequence[int] = (1000,)) -> Iterator[Case]:
    """Three traits over nine facets over 36 items."""
    for seed in range(n_seeds):
        model = simulate.hierarchy(rng=np.random.default_rng((19, seed)))
        facet = {item: model.dag.parents(item)[0] for item in model.observed}
        trait = {item: model.dag.parents(facet[item])[0] for item in model.observed}
        for n in n_samples:
            rows = simulate.sample(model, n, rng=np.random.default_rng((19, seed, n)))
            yield Case(f"hierarchy {seed}", rows.corr(), n, {"facets": facet, "traits": trait})


def with_minor_factors(
    n_seeds: int, n_samples: Sequence[int] = (500, 2000, 10000), rmsea: float = 0.05
) -> Iterator[Case]:
    """Five factors of six items each, and fifty minor ones."""
    for seed in range(n_seeds):
        model = simulate.minor_factors(rmsea=rmsea, rng=np.random.default_rng((20, seed)))
        major = simulate.major_part(model.dag)
        factor = {item: major.parents(item)[0] for item in model.observed}
        for n in n_samples:
            rows = simulate.sample(model, n, rng=np.random.default_rng((20, seed, n)))
            yield Case(f"minor factors {seed}", rows.corr(), n, {"factors": factor})


def study(cases: Sequence[Case], labels: Sequence[str]) -> pd.DataFrame:
    """Every method on every case."""
    return pd.DataFrame([row for case in tqdm(cases, unit="data set") for row in judged(case, labels)])


def summary(table: pd.DataFrame, by: str) -> pd.DataFrame:
    """Means over data sets, a row for each method and each value of ``by``, in the order they came."""
    figures = [name for name in table.columns if name not in ("data", "N", "method", "failure", by)]
    grouped = table.groupby(["method", by], sort=False)
    means = grouped[figures].mean()
    means.insert(0, "data sets", grouped.size())
    return means.reset_index()

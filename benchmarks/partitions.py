"""Do items come together as their authors, or a simulation, put them? Partitions of items and their agreement.

A method's answer is read as one partition of the items, or several from the lowest level upwards: from
``result_.partitions`` where a search has levels, from communities or strongest factors where a peer has these, and
otherwise each item goes to the latent group with its largest standardised loading. Agreement with
the truth is the adjusted Rand index.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.metrics import adjusted_rand_score
from tqdm import tqdm

from unmeasured import simulate
from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.estimators.lges import LGES
from unmeasured.models.lavaan import parse
from unmeasured.peers.ega import EGA
from unmeasured.peers.factor_analysis import FactorAnalysis
from unmeasured.peers.rlcd import RLCD

Partition = Mapping[str, Any]  # item: what it belongs to, None for nothing

# By label; each takes the true number of scales, which only one of them looks at.
METHODS: Mapping[str, Callable[[int], Any]] = {
    "LGES": lambda _: LGES(),
    "LGES, exact": lambda _: LGES(tolerance=0),
    "LGES, groups of one": lambda _: LGES(max_group_size=1),
    "EGA": lambda _: EGA(latent_edges=False),
    "EGA, qgraph's path": lambda _: EGA(lambda_min_ratio=0.01, latent_edges=False),
    "factor analysis": lambda _: FactorAnalysis(latent_edges=False),
    "factor analysis, number given": lambda n: FactorAnalysis(n_factors=n, latent_edges=False),
    "RLCD": lambda _: RLCD(),
}

# What a study compares unless told otherwise: RLCD looks for latents above latents, and only there.
USUAL = tuple(label for label in METHODS if label != "RLCD")

# Those that stand beside LGES() where samples are many.
COMPARED = ("LGES", "EGA", "factor analysis", "factor analysis, number given")

# The same as models that can predict new rows: latents are connected.
PREDICTORS: Mapping[str, Callable[[], Any]] = {
    "LGES": LGES,
    "LGES, exact": lambda: LGES(tolerance=0),
    "EGA": EGA,
    "factor analysis": FactorAnalysis,
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
    levels = getattr(getattr(search, "result_", None), "partitions", None)
    if levels is not None and len(levels):
        return [dict(level) for level in levels], int(search.result_.selected_partition)
    for name in ("communities_", "strongest_"):
        if (found := getattr(search, name, None)) is not None:
            return [found], 0
    return [strongest_groups(search)], 0


def strongest_groups(search: Any) -> Partition:
    """Each item with the latent group of its largest standardised loading."""
    group_of = {latent: i for i, group in enumerate(search.graph_.latent_groups) for latent in group}
    table = search.sem_.parameters
    loadings = table[(table["op"] == "=~") & table["lhs"].isin(list(group_of))]
    best: dict[str, Any] = dict.fromkeys(search.graph_.observed)
    for item, rows in loadings.groupby("rhs"):
        best[str(item)] = group_of[rows.loc[rows["std"].abs().idxmax(), "lhs"]]
    return best


def judged(case: Case, labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """One row for each method: agreement of its headline and of its best level with each truth, latents, seconds."""
    for label in labels:
        _check_label(label, METHODS)
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


def _check_label(label: str, known: Mapping[str, Any]) -> None:
    if label not in known:
        raise UnmeasuredError(f"There is no method {label!r}{nearest(label, known) or '.'} There are {listing(known)}.")


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


# Found again in new data ------------------------------------------------------------------------------------


def headlines_of_replicate(case: Case, labels: Sequence[str], n_given: int, seed: int) -> list[Partition]:
    """The headline of each method in a parametric bootstrap sample: N normal rows with these correlations."""
    rng = np.random.default_rng((21, seed))
    rows = rng.multivariate_normal(np.zeros(len(case.corr)), case.corr.to_numpy(), case.n_samples, method="eigh")
    names = list(case.corr.columns)
    return _headlines(pd.DataFrame(np.corrcoef(rows, rowvar=False), names, names), case.n_samples, labels, n_given)


def _headlines(corr: pd.DataFrame, n_samples: int, labels: Sequence[str], n_given: int) -> list[Partition]:
    found = [levels_of(METHODS[label](n_given).fit_cov(corr, n_samples)) for label in labels]
    return [levels[headline] for levels, headline in found]


def headline_stability(
    cases: Sequence[Case], n_replicates: int, n_jobs: int = 1, labels: Sequence[str] = ("LGES",)
) -> pd.DataFrame:
    """How well the headlines of bootstrap samples agree with one another, and with that of the data itself.

    Every method sees the same samples. The number of factors that is given, where one is, is that of the scales.
    """
    for label in labels:
        _check_label(label, METHODS)
    rows = []
    for case in cases:
        scales = set(case.truths["scales"].values()) - {None} if case.truths else set()
        own = _headlines(case.corr, case.n_samples, labels, len(scales))
        found = Parallel(n_jobs=n_jobs)(
            delayed(headlines_of_replicate)(case, labels, len(scales), seed)
            for seed in tqdm(range(n_replicates), desc=case.name, unit="sample")
        )
        for label, lead, others in zip(labels, own, zip(*found, strict=True), strict=True):
            numbers = [len(set(other.values()) - {None}) for other in others]
            rows.append(
                {
                    "data": case.name,
                    "N": case.n_samples,
                    "method": label,
                    "groups": len(set(lead.values()) - {None}),
                    "between samples": float(np.mean([agreement(a, b) for a, b in combinations(others, 2)])),
                    "with the data": float(np.mean([agreement(lead, other) for other in others])),
                    "groups in samples": f"{min(numbers)} to {max(numbers)}",
                }
            )
    return pd.DataFrame(rows)


def scales_of(model: str) -> Partition:
    r"""Each item with the first latent that measures it in model text; latents of latents are none of its scales.

    >>> scales_of("a =~ x + y\nb =~ z + y\ng =~ a + b")
    {'x': 'a', 'y': 'a', 'z': 'b'}
    """
    told = parse(model)
    scales: dict[str, str] = {}
    for one in told.parameters:
        if one.op == "=~" and one.source in told.latents and one.target in told.observed:
            scales.setdefault(one.target, one.source)
    return scales


def halves(frame: pd.DataFrame, name: str, labels: Sequence[str], n_splits: int) -> pd.DataFrame:
    """Search in one half of the rows: how well the model predicts the other, and how well its partition comes back.

    ``misfit`` is the discrepancy of maximum likelihood between the correlations of the other half and those that the
    fitted model implies, with no parameter estimated again; ``agreement`` that of the headlines of the two halves.
    """
    rows = []
    for label in labels:
        _check_label(label, PREDICTORS)
    for split in range(n_splits):
        order = np.random.default_rng((22, split)).permutation(len(frame))
        parts = [frame.iloc[half].corr() for half in np.array_split(order, 2)]
        n = len(frame) // 2
        for label in labels:
            found = [PREDICTORS[label]().fit_cov(part, n) for part in parts]
            leads = [levels[headline] for levels, headline in map(levels_of, found)]
            for one, other, lead in ((found[0], parts[1], leads[0]), (found[1], parts[0], leads[1])):
                rows.append(
                    {
                        "data": name,
                        "method": label,
                        "misfit": _discrepancy(other, one.sem_),
                        "agreement": agreement(leads[0], leads[1]),
                        "groups": len(set(lead.values()) - {None}),
                    }
                )
    return pd.DataFrame(rows).groupby(["data", "method"], sort=False).mean().reset_index()


def _discrepancy(corr: pd.DataFrame, fit: Any) -> float:
    """``log det Sigma - log det S + tr(Sigma^-1 S) - p`` of correlations S and the covariance a fit implies."""
    names = list(fit.sample.names)
    S = corr.loc[names, names].to_numpy()
    Sigma = fit.implied_cov
    return float(
        np.linalg.slogdet(Sigma)[1] - np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(Sigma, S)) - len(names)
    )

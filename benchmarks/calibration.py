"""Are frequencies of the bootstrap to be believed? Edges of known truths, by how often they come back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from tqdm import tqdm

from unmeasured import simulate
from unmeasured.estimators.lges import LGES
from unmeasured.graphs import DAG
from unmeasured.graphs.outline import Outline
from unmeasured.validation.replicates.resample import Method
from unmeasured.validation.replicates.result import Stability
from unmeasured.validation.replicates.run import stability

_BINS = ((0.0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 0.9), (0.9, 1.0))


@dataclass(frozen=True, eq=False)
class Calibration:
    """All edges ever seen, on all graphs: ``graph kind frequency right``, and what is worth keeping of the runs."""

    edges: pd.DataFrame
    n_graphs: int
    n_replicates: int
    n_samples: int
    seconds: float  # of a replicate, on average

    @property
    def table(self) -> pd.DataFrame:
        """One row per band of frequencies: ``from to edges frequency right loadings_right paths_right``."""
        return pd.DataFrame([self._band(low, high) for low, high in _BINS])

    def _band(self, low: float, high: float) -> dict[str, float]:
        f = self.edges["frequency"]
        # The last band holds both its ends.
        within = self.edges[(f >= low) & ((f < high) | (high == 1.0))]
        kinds = {f"{kind}s_right": within["right"][within["kind"] == kind].mean() for kind in ("loading", "path")}
        means = {"frequency": within["frequency"].mean(), "right": within["right"].mean()}
        return {"from": low, "to": high, "edges": len(within), **means, **kinds}

    def __str__(self) -> str:
        about = f"{self.n_graphs} graphs, N = {self.n_samples}, {self.n_replicates} replicates each"
        return f"{about}; {self.seconds:.2f} s a replicate\n{self.table.round(3).to_string(index=False)}"


def calibrate(
    n_graphs: int = 20,
    n_replicates: int = 50,
    n_samples: int = 500,
    *,
    seed: int = 0,
    n_jobs: int = 1,
    method: Method = "bootstrap",
    warm_start: bool = True,
) -> Calibration:
    """Search data of the realistic suite and replicates of them, and hold every edge against the truth."""
    tables, seconds = [], []
    for i, truth in enumerate(tqdm(simulate.realistic_suite()[:n_graphs], unit="graph")):
        rows = simulate.sample(
            simulate.realistic_parameters(truth, np.random.default_rng((seed, i, 0))),
            n_samples,
            rng=np.random.default_rng((seed, i, 1)),
        )
        search = LGES().fit(rows)
        found = stability(search, n_replicates, method=method, n_jobs=n_jobs, random_state=seed, warm_start=warm_start)
        tables.append(judged(found, truth).assign(graph=i + 1))
        seconds += [replicate.seconds for replicate in found.replicates]
    edges = pd.concat(tables, ignore_index=True)
    return Calibration(edges, len(tables), n_replicates, n_samples, float(np.mean(seconds)))


def judged(found: Stability, truth: DAG) -> pd.DataFrame:
    """Every edge of the replicates, seen from the graph found: how often it came back, and whether the truth has it.

    Groups of the graph found stand for true groups as those of replicates do for them.
    """
    right = Outline.of(truth.cpdag(), found.observed).seen_from(found.reference)
    tally = found.tally
    loadings = [("loading", f, bool(right.measures[at])) for at, f in np.ndenumerate(tally.loadings) if f > 0]
    upper = np.triu(tally.adjacent, 1)
    skeleton = right.between | right.between.T
    paths = [("path", f, bool(skeleton[at])) for at, f in np.ndenumerate(upper) if f > 0]
    return pd.DataFrame([*loadings, *paths], columns=["kind", "frequency", "right"])

"""Simulated questionnaires whose model is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

import unmeasured as um


def questionnaire(n_latents: int, n_rows: int, cuts: Sequence[float], seed: int) -> tuple[um.DAG, pd.DataFrame]:
    """A true model, five items for each latent, and answers to it in categories."""
    rng = np.random.default_rng(seed)
    dag = um.simulate.random_gnfm(
        group_sizes=(1,) * n_latents, n_observed=5 * n_latents, density=2 / n_latents, rng=rng
    )
    rows = um.simulate.sample(dag, n_rows, parameters="realistic", rng=rng)
    z = (rows - rows.mean()) / rows.std()
    return dag, z.apply(lambda column: np.digitize(column, cuts))

"""An order of variables that the data give, so that an answer does not depend on the order of columns.

A search meets ties, and takes the first of equals; sums of the same numbers in another order differ in their last
digits. Both depend on the order of columns. So the variables are sorted first, by something that moves with them: the
sizes of their correlations with all others, largest first. The search works in that order, and its answer is
given back in the order of the columns, latents numbered by their first indicators there::

    columns ──► canonical order ──► search ──► in the order of the columns, L1, L2, ... by first indicators
"""

from __future__ import annotations

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.data.sample import Sample
from unmeasured.search.budget import BUDGET


def canonical(sample: Sample) -> Sample:
    """The correlations of a sample, variables in an order that does not depend on the order of its columns.

    Variables that no correlation tells apart are in the order of their names.

    >>> rng = np.random.default_rng(1)
    >>> rows = rng.normal(size=(50, 4)) @ rng.normal(size=(4, 4))
    >>> one = canonical(Sample.from_rows(rows, ["a", "b", "c", "d"]))
    >>> other = canonical(Sample.from_rows(rows[:, [2, 0, 3, 1]], ["c", "a", "d", "b"]))
    >>> one.names == other.names, bool((one.corr == other.corr).all())
    (True, True)
    """
    corr = _rounded(sample)
    sizes = -np.sort(-np.abs(corr).round(BUDGET.digits - 1), axis=1)
    order = sorted(range(len(corr)), key=lambda j: ([-size for size in sizes[j].tolist()], sample.names[j]))
    return Sample(tuple(sample.names[j] for j in order), np.ascontiguousarray(corr[np.ix_(order, order)]), sample.n)


def _rounded(sample: Sample) -> Floats:
    """Correlations without the digits that depend on the order of columns; those of a matrix have none.

    Rows whose correlations are so close to singular that this might matter are refused before.
    """
    return np.array(sample.corr) if sample.mean is None else np.asarray(sample.corr.round(BUDGET.digits))

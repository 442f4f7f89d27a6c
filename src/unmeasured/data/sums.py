"""A total among its own items: a column that is, exactly or nearly, the sum or the mean of other columns.

An exact sum makes a covariance singular, which is refused. Rounded means, totals with a value filled in, and totals of
ordinal items (whose polychoric correlations hide the sum) are not singular, and a search then explains items by their
own total. They are found by regressing a column on the others: almost nothing is left over, and the weights are equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from unmeasured.arrays import Floats
from unmeasured.errors import listing
from unmeasured.remarks import Remark, data_problem

# Explained variance from which a column counts as a sum of others, how far the weights of a sum may differ, and the
# explained variance from which it is exact but for rounding.
_EXPLAINED, _EVEN, _ROUNDED = 0.98, 0.1, 0.999
# Explained to this, any weights make it a linear function.
_EXACT = 1.0 - 1e-9
_MOST_SUMS = 5


def sum_remarks(names: Sequence[str], values: Floats) -> tuple[Remark, ...]:
    """One sentence for each column that is nearly the sum or mean of others.

    >>> rng = np.random.default_rng(0)
    >>> items = rng.integers(1, 6, size=(200, 4)).astype(float)
    >>> print(*sum_remarks(["a", "b", "c", "d", "mean"], np.column_stack([items, items[:, :3].mean(axis=1).round(1)])))
    'mean' is nearly the sum or mean of 'a', 'b', 'c' (squared multiple correlation 0.999). ...
    """
    return tuple(data_problem(sentence) for sentence in _sums(list(names), values))


def _sums(names: list[str], values: Floats) -> Iterator[str]:
    complete = values[~np.isnan(values).any(axis=1)]
    kept = list(range(len(names)))
    for _ in range(_MOST_SUMS):
        n, p = len(complete), len(kept)
        if p < 3 or n < 2 * p + 10:
            return
        z, scale = _standardised(complete[:, kept])
        inverse = np.linalg.pinv(z.T @ z / n + 1e-12 * np.eye(p), hermitian=True)
        left = np.clip(1.0 / np.maximum(np.diag(inverse), 1e-300) * (n - 1.0) / (n - p), 0.0, 1.0)
        candidates = [j for j in range(p) if 1.0 - left[j] >= _EXPLAINED]
        # A total has more different values than its items, which it explains as well as they explain it.
        candidates.sort(key=lambda j: -len(np.unique(complete[:, kept[j]])))
        for j in candidates:
            weights = -inverse[j] / inverse[j, j]
            weights[j] = 0.0
            parts = np.flatnonzero(np.abs(weights) > 0.2 * np.abs(weights).max())
            raw = np.abs(weights[parts] / scale[parts])
            # Two weights are soon alike by chance, so that a sum of two has to be exact but for rounding.
            clear = len(parts) > 2 or (len(parts) == 2 and 1.0 - left[j] >= _ROUNDED)
            even = clear and bool(raw.max() <= (1.0 + _EVEN) * raw.min())
            if even or 1.0 - left[j] >= _EXACT:
                how = "the sum or mean" if even else "a linear function"
                nearly = "" if 1.0 - left[j] >= _EXACT else "nearly "
                yield (
                    f"{names[kept[j]]!r} is {nearly}{how} of {listing([names[kept[k]] for k in parts])} (squared "
                    f"multiple correlation {1.0 - left[j]:.3f}). A total among its own items is no indicator: leave it "
                    "out, or its items."
                )
                kept.remove(kept[j])
                break
        else:
            return


def _standardised(values: Floats) -> tuple[Floats, Floats]:
    size = np.maximum(np.abs(values).max(axis=0), 1e-300)
    scaled = values / size
    mean, sd = scaled.mean(axis=0), np.maximum(scaled.std(axis=0), 1e-300)
    with np.errstate(under="ignore", over="ignore"):
        return (scaled - mean) / sd, sd * (size / size.max())

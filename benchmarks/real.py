"""Real data: the bundled correlation matrices, published models as methods, and what stands in place of a truth.

Nobody knows the true graph of real data. A model is judged by how it fits for what it costs, and the published models
stand in the same table as if they were methods that have nothing to find.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from unmeasured.data import datasets
from unmeasured.data.sample import Sample
from unmeasured.errors import UnmeasuredError, listing, nearest
from unmeasured.models import indices
from unmeasured.models.fit import Fit, fit


@dataclass(frozen=True)
class DataSet:
    """A bundled data set, in the place where experiments on drawn rows have a true graph."""

    id: str
    dag: None = None

    @property
    def n_observed(self) -> int:
        """Number of variables."""
        return len(datasets.load(self.id).names)

    @property
    def n_samples(self) -> int:
        """Number of rows behind the matrix."""
        return datasets.load(self.id).n_samples

    @property
    def digest(self) -> str:
        """A fingerprint of the figures: records of another matrix by the same name are told apart."""
        data = datasets.load(self.id)
        text = f"{data.names} {data.n_samples} {data.corr.round(8).tolist()}"
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class DataSets:
    """Some of the bundled data sets."""

    names: tuple[str, ...]

    def structures(self) -> tuple[DataSet, ...]:
        """One for each, by name."""
        return tuple(DataSet(name) for name in self.names)

    def reduced(self, n_graphs: int) -> DataSets:
        """The first ``n_graphs`` of them."""
        return replace(self, names=self.names[:n_graphs])


def bundled(name: str) -> Sample:
    """The matrix of a bundled data set as a sample."""
    data = datasets.load(name)
    return Sample.from_cov(data.frame(), data.n_samples)


@dataclass(frozen=True)
class Indices:
    """How a model fits, and what it costs."""

    chi2: float
    df: int
    rmsea: float
    cfi: float
    tli: float
    srmr: float
    bic: float

    @classmethod
    def of(cls, fitted: Fit, extra: int = 0) -> Indices:
        """The indices of a fit, with so many parameters more counted than it has."""
        df, baseline = fitted.df - extra, (fitted.baseline_chi2, fitted.baseline_df)
        return cls(
            chi2=fitted.chi2,
            df=df,
            rmsea=indices.rmsea(fitted.chi2, df, fitted.sample.n),
            cfi=indices.cfi(fitted.chi2, df, *baseline),
            tli=indices.tli(fitted.chi2, df, *baseline),
            srmr=fitted.srmr,
            bic=fitted.bic + extra * math.log(fitted.sample.n),
        )

    def figures(self) -> dict[str, Any]:
        """By name, for a record."""
        return asdict(self)


class Published:
    """A published model of the bundled data, with the face of a search.

    Degrees of freedom count free parameters, as lavaan and the authors of such models do; a search counts the
    dimension, which is the same unless a parameter is one that no data can determine.

    Parameters
    ----------
    model
        Its name in :attr:`unmeasured.datasets.Dataset.models`.
    extra_parameters
        Parameters counted though the model does not have them, to stand beside figures that were counted so.

    Examples
    --------
    >>> published = Published("himi_chain", extra_parameters=1).fit(bundled("multitasking"))
    >>> published.indices_.df, round(published.indices_.rmsea, 4)
    (24, 0.0879)
    """

    indices_: Indices

    def __init__(self, model: str, extra_parameters: int = 0) -> None:
        self.model = model
        self.extra_parameters = extra_parameters

    def fit(self, sample: Sample) -> Self:
        """Fit the model; there is nothing to search."""
        known = {name: model for data in datasets.available() for name, model in datasets.load(data).models.items()}
        if self.model not in known:
            hint = nearest(self.model, known) or "."
            raise UnmeasuredError(f"No bundled data set has a model {self.model!r}{hint} There are {listing(known)}.")
        model = known[self.model]
        fitted = fit(model.text, sample, correlate_exogenous=model.correlate_exogenous, count="parameters")
        self.indices_ = Indices.of(fitted, self.extra_parameters)
        return self

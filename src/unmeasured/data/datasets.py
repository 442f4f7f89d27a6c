"""Bundled real data: correlation matrices, with their source and published models.

Rows stay with those who own them. A correlation matrix and the number of samples are figures, and all that a
discovery or a fit needs; the names here are read from the package the first time they are asked for.

>>> available()
('multitasking', 'teacher_burnout', 'big_five', 'holzinger_swineford', 'political_democracy')
>>> load("political_democracy")
<Dataset 'political_democracy': 11 variables, 75 samples; models: political_democracy>
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from unmeasured.errors import DataError, listing, nearest

__all__ = ["Dataset", "PublishedModel", "available", "load"]

_NAMES = ("multitasking", "teacher_burnout", "big_five", "holzinger_swineford", "political_democracy")


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """A model somebody proposed for the data, as text for :func:`unmeasured.models.lavaan.parse`.

    Attributes
    ----------
    name : str
        Its key in :attr:`Dataset.models`.
    text : str
        lavaan model text.
    correlate_exogenous : bool
        Whether exogenous latents covary in this version; hand it on to the reader of the text.
    source : str
        Who proposed it, and how this version differs, if it does.
    """

    name: str
    text: str
    correlate_exogenous: bool
    source: str


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A correlation matrix, where it is from, and the models published for it.

    Attributes
    ----------
    name, title : str
        The name :func:`load` knows it by, and one for humans.
    names : tuple of str
        The variables.
    corr : (n, n) array, read-only
        Their Pearson correlations, to ten significant digits.
    n_samples : int
        The number of rows the correlations were computed from.
    source, remarks : str
        Where the data are from, and what one should know before using them.
    models : mapping of str to PublishedModel
        Published models by name.
    labels : mapping of str to str
        What variables measure or ask, in words, where their names do not say so.
    reverse_keyed : tuple of str
        Items that the authors score in reverse.

    Examples
    --------
    >>> data = load("holzinger_swineford")
    >>> data.n_samples, data.names[:3]
    (301, ('x1', 'x2', 'x3'))
    >>> data.labels["x1"]
    'Visual perception'
    >>> print(data.models["holzinger_swineford_three_factor"].text)
    visual =~ x1 + x2 + x3
    textual =~ x4 + x5 + x6
    speed =~ x7 + x8 + x9
    """

    name: str
    title: str
    names: tuple[str, ...]
    corr: NDArray[np.float64]
    n_samples: int
    source: str
    remarks: str
    models: Mapping[str, PublishedModel]
    labels: Mapping[str, str] = field(default_factory=dict)
    reverse_keyed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        corr = np.array(self.corr, dtype=np.float64)
        corr.setflags(write=False)
        object.__setattr__(self, "corr", corr)
        object.__setattr__(self, "models", MappingProxyType(dict(self.models)))
        object.__setattr__(self, "labels", MappingProxyType(dict(self.labels)))

    def frame(self) -> pd.DataFrame:
        """Return the correlations as a new data frame with the variables' names on both sides.

        Labels are in its ``attrs["labels"]``, as those of a file read by :func:`unmeasured.read` are, and items that
        are scored in reverse in ``attrs["reverse_keyed"]``.

        >>> load("multitasking").frame().loc["Speed_Number", "Speed_Letter"].round(3).item()
        0.771
        """
        frame = pd.DataFrame(self.corr.copy(), index=list(self.names), columns=list(self.names))
        frame.attrs["labels"] = dict(self.labels)
        frame.attrs["reverse_keyed"] = list(self.reverse_keyed)
        return frame

    def __repr__(self) -> str:
        models = ", ".join(self.models) or "none"
        return f"<Dataset {self.name!r}: {len(self.names)} variables, {self.n_samples} samples; models: {models}>"

    def __reduce__(self) -> tuple[type[Dataset], tuple[Any, ...]]:
        # A read-only view of a mapping cannot be pickled, and workers of a parallel run may need the data.
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return Dataset, tuple({**values, "models": dict(self.models), "labels": dict(self.labels)}.values())


def available() -> tuple[str, ...]:
    """Return the names :func:`load` knows.

    >>> "big_five" in available()
    True
    """
    return _NAMES


@cache
def load(name: str) -> Dataset:
    """Return a bundled data set; the same object every time.

    Parameters
    ----------
    name : str
        One of :func:`available`.

    Raises
    ------
    DataError
        For any other name.

    Examples
    --------
    >>> load("teacher_burnout").corr.shape
    (32, 32)
    >>> load("bigfive")
    Traceback (most recent call last):
        ...
    unmeasured.errors.DataError: There is no bundled data set 'bigfive'; did you mean 'big_five'? There are
    'multitasking', 'teacher_burnout', 'big_five', 'holzinger_swineford', 'political_democracy'.
    """
    if name not in _NAMES:
        hint = nearest(name, _NAMES) or "."
        raise DataError(f"There is no bundled data set {name!r}{hint} There are {listing(_NAMES)}.")
    stored = json.loads(files("unmeasured.data").joinpath("bundled", f"{name}.json").read_text("utf-8"))
    models = [{**model, "text": "\n".join(model["text"])} for model in stored["models"]]
    return Dataset(
        name=stored["name"],
        title=stored["title"],
        names=tuple(stored["names"]),
        corr=_full(stored["corr_lower"]),
        n_samples=stored["n_samples"],
        source=stored["source"],
        remarks=stored["remarks"],
        models={model["name"]: PublishedModel(**model) for model in models},
        labels=stored.get("labels", {}),
        reverse_keyed=tuple(stored.get("reverse_keyed", ())),
    )


def _full(lower: list[list[float]]) -> NDArray[np.float64]:
    """Fill a symmetric matrix from the rows of its lower triangle, diagonal included."""
    corr = np.zeros((len(lower), len(lower)))
    corr[np.tril_indices(len(lower))] = np.concatenate(lower)
    return np.asarray(corr + np.tril(corr, -1).T, dtype=np.float64)

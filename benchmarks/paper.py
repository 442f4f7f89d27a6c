"""The paper's tables 1 to 5 as data, each figure as it is printed.

Dong et al., *Score-based Greedy Search for Structure Identification of Partially Observed Causal Models*. A cell is
found by table, method, row and measure; rows are sample sizes, in Table 4 numbers of observed variables, in Table 3
data sets. The measure called SHD there is our ``shd_paper``. Table 2 is two tables here, one for each kind of
misspecification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0}


@dataclass(frozen=True)
class Published:
    """A figure of the paper.

    Attributes
    ----------
    text
        As printed.
    mean, error
        Mean and standard error; seconds where it is a time. A bound, such as ``>100 hours``, has no mean.
    """

    text: str
    mean: float | None = None
    error: float | None = None


Table: TypeAlias = dict[tuple[str, int | str, str], Published]


def _published(text: str) -> Published:
    if found := re.fullmatch(r"([\d.]+) \(([\d.]+)\)", text):
        return Published(text, float(found[1]), float(found[2]))
    if re.fullmatch(r"[\d.]+", text):
        return Published(text, float(text))
    if found := re.fullmatch(r"([\d.]+) (second|minute|hour)s?", text):
        return Published(text, float(found[1]) * _UNITS[found[2]])
    return Published(text)


def _table3(text: str) -> Table:
    """Lines of ``data set | method | RMSEA | CFI | TLI``."""
    cells: Table = {}
    for line in text.strip().splitlines():
        data, method, *printed = (part.strip() for part in line.split("|"))
        for measure, figure in zip(("rmsea", "cfi", "tli"), printed, strict=True):
            cells[method, data, measure] = _published(figure)
    return cells


def _table(columns: Sequence[tuple[str, str]], text: str) -> Table:
    """Lines of ``row | cell | cell ...``; ``columns`` are pairs of measure and method; ``-`` is no cell."""
    cells: Table = {}
    for line in text.strip().splitlines():
        row, *printed = (part.strip() for part in line.split("|"))
        for (measure, method), cell in zip(columns, printed, strict=True):
            if cell != "-":
                cells[method, int(row), measure] = _published(cell)
    return cells


_PEERS = tuple(product(("f1", "shd_paper"), ("LGES", "FOFC", "GIN", "RLCD")))

_TABLE1 = """
 100 | 0.60 (0.01) | 0.55 (0.02) | 0.27 (0.01) | 0.33 (0.01) | 20.87 (0.72) | 20.8 (0.34) | 26.76 (0.36) | 35.84 (3.01)
 200 | 0.72 (0.02) | 0.56 (0.02) | 0.36 (0.01) | 0.49 (0.02) | 14.03 (0.85) | 18.0 (0.29) | 24.14 (0.45) | 28.58 (2.59)
 500 | 0.79 (0.02) | 0.58 (0.02) | 0.42 (0.01) | 0.69 (0.02) | 10.02 (0.69) | 16.5 (0.31) | 22.46 (0.39) | 14.68 (0.96)
1000 | 0.82 (0.02) | 0.61 (0.03) | 0.47 (0.01) | 0.76 (0.02) | 8.80 (0.70) | 16.1 (0.29) | 20.88 (0.54) | 11.24 (0.86)
"""

_TABLE2_UNIFORM = """
 100 | 0.57 (0.03) | 0.40 (0.03) | 0.27 (0.01) | 0.35 (0.01) | 21.70 (1.67) | 22.72 (0.34) | 26.76 (0.36) | 39.31 (7.37)
 200 | 0.74 (0.04) | 0.42 (0.03) | 0.36 (0.01) | 0.46 (0.03) | 12.67 (1.97) | 18.10 (0.50) | 24.14 (0.45) | 35.12 (6.52)
 500 | 0.78 (0.02) | 0.40 (0.03) | 0.42 (0.01) | 0.68 (0.01) | 10.72 (0.93) | 17.66 (0.49) | 22.46 (0.39) | 14.81 (0.63)
1000 | 0.79 (0.02) | 0.39 (0.03) | 0.47 (0.01) | 0.75 (0.02) | 10.12 (0.82) | 17.82 (0.44) | 20.88 (0.54) | 12.45 (0.77)
"""

_TABLE2_LEAKY_RELU = """
 100 | 0.58 (0.02) | 0.35 (0.03) | 0.32 (0.01) | 0.36 (0.02) | 19.21 (1.29) | 21.48 (0.44) | 29.28 (0.11) | 37.01 (4.77)
 200 | 0.65 (0.01) | 0.33 (0.03) | 0.38 (0.01) | 0.45 (0.02) | 18.22 (1.11) | 21.80 (0.41) | 27.28 (0.28) | 31.73 (4.33)
 500 | 0.68 (0.02) | 0.26 (0.04) | 0.50 (0.02) | 0.60 (0.02) | 16.6 (1.24) | 19.98 (0.46) | 23.38 (0.64) | 19.89 (1.08)
1000 | 0.71 (0.02) | 0.23 (0.04) | 0.52 (0.02) | 0.65 (0.01) | 15.0 (0.95) | 20.10 (0.54) | 23.32 (0.73) | 17.56 (0.77)
"""

_TABLE3 = """
big_five        | LGES           | 0.054 | 0.874 | 0.855
big_five        | Goldberg 1993  | 0.072 | 0.767 | 0.746
teacher_burnout | LGES           | 0.067 | 0.876 | 0.865
teacher_burnout | Byrne 1994b    | 0.096 | 0.753 | 0.727
teacher_burnout | Byrne 2010     | 0.072 | 0.861 | 0.847
multitasking    | LGES           | 0.068 | 0.977 | 0.965
multitasking    | Himi 2019      | 0.087 | 0.962 | 0.943
"""

_TABLE4 = """
5 | 0.96 (0.06) | 0.96 (0.03) | 0.55 (0.43) | 0.37 (0.05) |  9 seconds | 15 seconds
6 | 0.91 (0.02) | 0.91 (0.02) | 1.24 (0.75) | 0.98 (0.54) | 11 seconds | 8 minutes
7 | 0.88 (0.03) | 0.89 (0.02) | 2.20 (0.87) | 2.05 (0.80) | 14 seconds | 1.5 hours
8 | 0.86 (0.02) | -           | 3.56 (0.78) | -           | 17 seconds | >100 hours
9 | 0.85 (0.03) | -           | 4.11 (1.52) | -           | 19 seconds | >1000 hours
"""

# N = 1000; the methods are the values of delta.
_TABLE5 = {
    "5e-4": ("0.79 (0.02)", "10.85 (0.79)"),
    "1e-3": ("0.81 (0.02)", "9.52 (0.84)"),
    "2e-3": ("0.82 (0.02)", "8.80 (0.70)"),
    "4e-3": ("0.80 (0.02)", "9.85 (0.59)"),
    "1e-2": ("0.78 (0.02)", "11.13 (0.70)"),
}


def _table5() -> Table:
    columns = [(measure, delta) for delta in _TABLE5 for measure in ("f1", "shd_paper")]
    return _table(columns, " | ".join(["1000", *(cell for cells in _TABLE5.values() for cell in cells)]))


TABLES: dict[str, Table] = {
    "table1": _table(_PEERS, _TABLE1),
    "table2-uniform": _table(_PEERS, _TABLE2_UNIFORM),
    "table2-leaky-relu": _table(_PEERS, _TABLE2_LEAKY_RELU),
    "table3": _table3(_TABLE3),
    "table4": _table(tuple(product(("f1", "shd_paper", "seconds"), ("LGES", "Exact Search"))), _TABLE4),
    "table5": _table5(),
}


def methods(table: str) -> tuple[str, ...]:
    """The methods of a table, in its order.

    >>> methods("table4")
    ('LGES', 'Exact Search')
    """
    return _distinct(method for method, _, _ in TABLES[table])


def cell(table: str, method: str, row: int | str, measure: str) -> Published | None:
    """A figure of the paper, or None where it has none.

    >>> cell("table4", "Exact Search", 7, "seconds")
    Published(text='1.5 hours', mean=5400.0, error=None)
    """
    return TABLES[table].get((method, row, measure))


def _distinct(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))

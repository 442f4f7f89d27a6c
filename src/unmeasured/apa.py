"""Numbers as the style of the American Psychological Association prints them (7th edition, sections 6.36 and 6.43).

A quantity that cannot exceed 1 in size (a correlation, a p-value, CFI) has no zero before its decimal point; a p-value
has three decimals, and below .001 is said to be that. Every p-value of the package is printed by :func:`p_value`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MINUS = "−"


def number(value: float, digits: int = 2, *, bounded: bool = False) -> str:
    """A number to print; nothing where there is none. ``bounded``: it cannot exceed 1, so no zero leads.

    >>> number(-1.234), number(0.8765, bounded=True), number(-0.5, bounded=True), number(-0.001), number(float("nan"))
    ('−1.23', '.88', '−.50', '0.00', '')
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{abs(value):.{digits}f}"
    sign = MINUS if value < 0 and float(text) != 0.0 else ""
    return sign + (text[1:] if bounded and text.startswith("0.") else text)


def p_value(p: float, sign: str = "") -> str:
    """A p-value to print, nothing where there is none; ``sign`` stands before one that is given in digits.

    >>> p_value(0.0421), p_value(1e-9), p_value(0.99999), "p " + p_value(0.5, "= ")
    ('.042', '< .001', '> .999', 'p = .500')
    """
    if math.isnan(p):
        return ""
    if p < 0.001:
        return "< .001"
    return "> .999" if p > 0.9995 else sign + number(p, 3, bounded=True)


def table_text(table: pd.DataFrame, digits: int = 4, *, index: bool = False) -> str:
    """A table as text for a terminal, its p-values as :func:`p_value` prints them.

    >>> import pandas as pd
    >>> print(table_text(pd.DataFrame({"z": [2.0], "pvalue": [0.046]}), 2))
       z pvalue
    2.00   .046
    """
    formats = {name: p_value for name in table.columns if str(name).endswith("pvalue")}
    return table.to_string(index=index, float_format=f"{{:.{digits}f}}".format, na_rep="", formatters=formats)

"""The measures tables are made of: what each is called, how it is printed, and which way is better."""

from __future__ import annotations

from dataclasses import dataclass

OURS = "LGES (bic)"  # the method that times are compared with, and that figures show in bold


@dataclass(frozen=True)
class Measure:
    """A figure of an outcome, as a table shows it."""

    name: str
    title: str
    digits: int
    larger_is_better: bool | None  # None: neither way
    is_count: bool = False
    is_median: bool = False  # for times, whose mean one hard graph can carry

    def text(self, value: float, n: int = 2) -> str:
        """A mean or median over ``n`` runs as printed: a single count has no decimals, a ratio two digits or three.

        >>> MEASURES["f1"].text(0.9), MEASURES["times"].text(0.0834), MEASURES["times"].text(361.4)
        ('0.90', '0.083', '361')
        """
        if self.name == "times":
            return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
        return f"{value:.{0 if self.is_count and n == 1 else self.digits}f}"

    @property
    def heading(self) -> str:
        """The title, with what stands in brackets where that is no standard error."""
        return f"{self.title}, median (least to most)" if self.is_median else self.title

    @property
    def caption(self) -> str:
        """The heading with the direction."""
        if self.larger_is_better is None:
            return self.heading
        return f"{self.heading}; {'larger' if self.larger_is_better else 'smaller'} is better"


_ALL = (
    Measure("f1", "F1 of the skeleton", 2, True),
    Measure("precision", "precision of the skeleton", 2, True),
    Measure("recall", "recall of the skeleton", 2, True),
    Measure("shd_paper", "SHD, the paper's way", 2, False),
    Measure("shd", "SHD over the class", 2, False),
    Measure("seconds", "seconds", 2, False, is_median=True),
    Measure("times", f"times the seconds of {OURS}", 1, False, is_median=True),
    Measure("score_found", "BIC of the graph found, as a log-likelihood", 1, True),
    Measure("truth_is_better", "part of the runs where the truth has the better BIC", 3, False),
    Measure("truth_is_preferred", "part of the runs where the truth has the better extended BIC", 3, False),
    Measure("reports_latents", "part of the runs that report latents", 2, None),
    Measure("latents_found", "latents found", 2, None, is_count=True),
    Measure("peak_mib", "peak memory of the process in MiB", 0, False),
    Measure("chi2", "chi-square", 1, None),
    Measure("df", "df", 0, None),
    Measure("rmsea", "RMSEA", 4, False),
    Measure("cfi", "CFI", 4, True),
    Measure("tli", "TLI", 4, True),
    Measure("srmr", "SRMR", 4, False),
    Measure("bic", "BIC", 1, False),
)
MEASURES = {measure.name: measure for measure in _ALL}

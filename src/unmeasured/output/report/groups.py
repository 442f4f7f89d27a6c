"""Groups of people: what they share of the answer, as a report keeps and shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import pandas as pd

from unmeasured.results.invariance import Invariance
from unmeasured.results.records import checked_type

_MOST = 12  # parameters listed, the clearest differences first
_VERDICTS = {
    "configural": "share the structure, but not the loadings: the latents do not mean quite the same in them",
    "loadings": "share the loadings, but not the intercepts: paths can be compared between them, means cannot",
    "intercepts": "share loadings and intercepts: their latent means can be compared",
    "residuals": "share loadings, intercepts and residual variances: sums of items can be compared",
}
_STEPS = {
    "configural": "the same structure",
    "loadings": "and the same loadings",
    "intercepts": "and the same intercepts",
    "residuals": "and the same residual variances",
}
_KINDS = {"loadings": "loading", "intercepts": "intercept", "residuals": "residual variance", "regressions": "path"}
_ARROWS = {"=~": "{a} → {b}", "~": "{b} → {a}", "~~": "{a} – {b}", "~1": "{a}"}
_NUMBERS = (
    "chi2",
    "pvalue",
    "rmsea",
    "cfi",
    "tli",
    "srmr",
    "bic",
    "d_chi2",
    "d_df",
    "d_pvalue",
    "d_cfi",
    "d_rmsea",
    "d_bic",
)


@dataclass(frozen=True)
class Shared:
    """What a report keeps of a comparison of groups of people."""

    sizes: Mapping[str, float]  # of each group
    supported_step: str  # the last step that holds
    steps: tuple[Mapping[Any, Any], ...]  # fit and change of each
    differences: tuple[Mapping[Any, Any], ...]  # parameters that differ by BIC, with the estimate in every group
    means: tuple[Mapping[Any, Any], ...]  # of latents, in all groups but the first
    marked: tuple[tuple[str, str], ...]  # edges that differ

    @classmethod
    def of(cls, found: Invariance) -> Shared:
        """What there is to show of a comparison."""
        configural = found.fits["configural"]
        estimate = {
            (row["lhs"], row["op"], row["rhs"], row["group"]): float(row["est"])
            for row in configural.parameters.to_dict(orient="records")
        }
        table, differing = found.table, found.differences
        differing = differing[differing["differs"]].drop_duplicates(["lhs", "op", "rhs"]).head(_MOST)
        rows = [
            {
                "kind": row["kind"],
                "what": [row["lhs"], row["op"], row["rhs"]],
                "chi2": float(row["chi2"]),
                "estimates": [
                    estimate.get((row["lhs"], row["op"], row["rhs"], group), math.nan) for group in found.groups
                ],
            }
            for row in differing.to_dict(orient="records")
        ]
        means = found.latent_means if "intercepts" in found.fits else pd.DataFrame()
        return cls(
            {group: float(fit.n_samples) for group, fit in configural.fits.items()},
            found.supported_step,
            _records(table.reset_index()),
            tuple(rows),
            _records(means),
            found.noninvariant_edges,
        )

    def record(self) -> dict[str, Any]:
        """Plain values for JSON, missing numbers as words."""
        return {key: _spelled(value) for key, value in asdict(self).items()}

    @classmethod
    def from_record(cls, kept: Mapping[str, Any]) -> Shared:
        """What :meth:`record` gave."""
        rows = [{key: float(v) if key in _NUMBERS else v for key, v in row.items()} for row in kept["steps"]]
        differences = [
            {**row, "chi2": float(row["chi2"]), "estimates": [float(v) for v in row["estimates"]]}
            for row in kept["differences"]
        ]
        means = [{**row, **{key: float(row[key]) for key in ("mean", "se", "z", "pvalue")}} for row in kept["means"]]
        supported_step = checked_type(str, kept["supported_step"])
        sizes = {checked_type(str, group): float(n) for group, n in kept["sizes"].items()}
        marked = tuple((checked_type(str, a), checked_type(str, b)) for a, b in kept["marked"])
        if supported_step not in _VERDICTS:
            raise ValueError(f"no step of invariance: {supported_step!r}")
        return cls(sizes, supported_step, tuple(rows), tuple(differences), tuple(means), marked)

    def renamed(self, names: Mapping[str, str]) -> Shared:
        """The same with other names for latents."""
        return replace(
            self,
            differences=tuple({**row, "what": [names.get(x, x) for x in row["what"]]} for row in self.differences),
            means=tuple({**row, "latent": names.get(row["latent"], row["latent"])} for row in self.means),
            marked=tuple((names.get(a, a), names.get(b, b)) for a, b in self.marked),
        )

    @property
    def verdict(self) -> str:
        """How far the groups agree, in one clause without an end.

        >>> Shared({"a": 10.0, "b": 20.0}, "intercepts", (), (), (), ()).verdict
        'the groups a and b share loadings and intercepts: their latent means can be compared'
        """
        *first, last = self.sizes
        named = f"the groups {', '.join(first)} and {last}" if len(self.sizes) <= 4 else f"the {len(self.sizes)} groups"
        return f"{named} {_VERDICTS[self.supported_step]}"


def _records(table: pd.DataFrame) -> tuple[Mapping[str, Any], ...]:
    return tuple({str(key): value for key, value in row.items()} for row in table.to_dict(orient="records"))


def _spelled(value: Any) -> Any:
    """Values that JSON knows."""
    if isinstance(value, Mapping):
        return {str(key): _spelled(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    value = value.item() if hasattr(value, "item") else value
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def groups_section(shared: Shared) -> dict[str, Any]:
    """The section of the page: a sentence, the steps, what differs, and latent means."""
    people = ", ".join(f"{group} ({n:,.0f})" for group, n in shared.sizes.items())
    verdict = shared.verdict
    steps = [
        [
            _STEPS[row["step"]],
            f"{row['chi2']:.1f} on {row['df']}",
            f"{row['rmsea']:.3f}",
            f"{row['cfi']:.3f}",
            f"{row['bic']:,.0f}",
            _change(row),
        ]
        for row in shared.steps
    ]
    differences = [
        [
            _KINDS.get(row["kind"], row["kind"]),
            _what(*row["what"]),
            *("" if math.isnan(v) else f"{v:.2f}" for v in row["estimates"]),
            f"{row['chi2']:.1f}",
        ]
        for row in shared.differences
    ]
    first = next(iter(shared.sizes))
    means = [
        f"{row['latent']} {_signed(row['mean'], 2)} (s.e. {row['se']:.2f}) in {row['group']}" for row in shared.means
    ]
    caution = (
        ""
        if shared.supported_step in ("intercepts", "residuals")
        else "; equal intercepts do not hold, so do not rely on them"
    )
    return {
        "people": people,
        "verdict": f"{verdict[:1].upper()}{verdict[1:]}.",
        "steps": steps,
        "heads": ["kind", "what", *shared.sizes, "chi-square (1 df)"],
        "differences": differences,
        "means": f"Latent means in units of {first}, which is at zero{caution}: {'; '.join(means)}." if means else "",
    }


def _change(row: Mapping[str, Any]) -> str:
    """Whether a step holds, and by what change."""
    if row["holds"] is None:
        return ""
    return f"{'yes' if row['holds'] else 'no'} (CFI {_signed(row['d_cfi'], 3)}, RMSEA {_signed(row['d_rmsea'], 3)})"


def _signed(value: float, digits: int) -> str:
    """A number with its sign, the minus as elsewhere on the page."""
    return f"{value:+.{digits}f}".replace("-", "−")


def _what(a: str, op: str, b: str) -> str:
    """A parameter as a reader sees it.

    >>> _what("calm", "=~", "c1"), _what("sleep", "~", "calm"), _what("c1", "~~", "c1"), _what("c1", "~1", "")
    ('calm → c1', 'calm → sleep', 'c1', 'c1')
    """
    return a if a == b else _ARROWS[op].format(a=a, b=b)

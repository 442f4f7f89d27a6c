"""Do groups of people share one measurement? Tests of invariance, and what differs.

    configural      the same structure, parameters of each group its own
    loadings        the same loadings: latents have the same meaning, paths can be compared
    intercepts      and the same intercepts: latent means can be compared
    residuals       and the same residual variances: sums of items can be compared

Each step adds constraints to the one before and is compared with it: by the chi-square difference (with MLM and MLR
that of Satorra and Bentler 2001), by the change of CFI and RMSEA, and by BIC. With many people the chi-square rejects
trifling differences; the convention that a step holds where CFI falls by no more than .010 and RMSEA rises by no more
than .015 (Chen 2007) is the column ``holds``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, get_args

import pandas as pd

from unmeasured import apa
from unmeasured.constraints import FLAG, check, one_of
from unmeasured.data.moments.margins import Margin, margins_of, with_scores
from unmeasured.data.rows import other_frame
from unmeasured.errors import DataError, ModelError, listing
from unmeasured.graphs import CPDAG, DAG
from unmeasured.models import indices
from unmeasured.models.fit import Estimator, FitMissing, fit
from unmeasured.models.multigroup import GroupFit
from unmeasured.models.parameters import LatentScale, Model
from unmeasured.results.result import Result

if TYPE_CHECKING:
    from unmeasured.diagram.draw import Drawing
    from unmeasured.diagram.picture import View

# Each step: what is equal across groups.
STEPS: dict[str, tuple[str, ...]] = {
    "configural": (),
    "loadings": ("loadings",),
    "intercepts": ("loadings", "intercepts"),
    "residuals": ("loadings", "intercepts", "residuals"),
}
# Beyond measurement: what is added, and to which step.
_STRUCTURE: dict[str, str] = {
    "regressions": "loadings",
    "lv.variances": "loadings",
    "lv.covariances": "loadings",
    "means": "intercepts",
}
# Chen (2007), for groups of 300 and more; with fewer, half of that is often asked for.
_CFI_FALLS, _RMSEA_RISES = 0.010, 0.015
_FEW = 8
_SCORED = (
    "Values are normal scores of their ranks in all rows, as in the search; with model syntax they are as they are."
)


@dataclass(frozen=True, eq=False)
class Invariance:
    """The fits of all steps of a test of invariance, compared; see :func:`unmeasured.invariance`.

    Attributes
    ----------
    fits : mapping of step to GroupFit
    """

    fits: Mapping[str, GroupFit]
    _refit: Callable[..., GroupFit]
    result: Result | None = None  # of the search whose answer is compared, where it is one
    is_scored: bool = False  # whether values are normal scores of their ranks, as the search took them

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups, in the order in which they first appear."""
        return self.fits["configural"].groups

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per step: fit, and the change from the step before.

        ``chi2 df pvalue rmsea cfi tli srmr bic``, then ``d_chi2 d_df d_pvalue d_cfi d_rmsea d_bic`` and ``holds``. With
        MLM and MLR chi-square is scaled and the indices are robust.
        """
        rows: dict[str, dict[str, Any]] = {}
        before: GroupFit | None = None
        for step, this in self.fits.items():
            rows[step] = _measures(this) | ({} if before is None else _change(before, this))
            before = this
        frame = pd.DataFrame.from_dict(rows, orient="index")
        frame["holds"] = (frame["d_cfi"] >= -_CFI_FALLS) & (frame["d_rmsea"] <= _RMSEA_RISES)
        frame["holds"] = frame["holds"].astype(object).where(frame["d_cfi"].notna(), None)
        return frame.rename_axis("step")

    @property
    def noninvariant_edges(self) -> tuple[tuple[str, str], ...]:
        """Loadings and paths that differ between groups by BIC, as ``(cause, effect)``, the clearest first."""
        rows = self.differences
        rows = rows[rows["differs"] & rows["op"].isin(["=~", "~"])]
        ends = [(b, a) if op == "~" else (a, b) for a, op, b in zip(rows["lhs"], rows["op"], rows["rhs"], strict=True)]
        return tuple(dict.fromkeys(ends))

    def plot(self, view: View = "auto", **options: Any) -> Drawing:
        """The path diagram of the answer that is compared, edges that differ between the groups marked with ≠.

        Figures are those of the answer; ``options`` are those of :meth:`unmeasured.Result.plot`.

        Raises
        ------
        ModelError
            When what is compared is no answer of a search, but a model.
        """
        if self.result is None:
            raise ModelError(
                "A diagram is of the answer of a search: give a fitted search or its Result to invariance."
            )
        return self.result.plot(view, marked=self.noninvariant_edges, **options)

    @property
    def supported_step(self) -> str:
        """The last step up to which all hold, by the changes of CFI and RMSEA."""
        found = "configural"
        for step in list(self.fits)[1:]:
            if not self.table.loc[step, "holds"]:
                break
            found = step
        return found

    @cached_property
    def differences(self) -> pd.DataFrame:
        """What groups do not share: a score test of every equality constraint, at the step that adds it.

        ``kind lhs op rhs group chi2 df pvalue change bic differs``, the largest first. ``change`` is by how much the
        parameter of that group is expected to change if released, ``bic`` by how much that lowers BIC, and ``differs``
        whether it does.
        """
        frames = []
        for step, this in self.fits.items():
            if step != "configural":
                frames.append(_tests_of(this, step))
        if "loadings" in self.fits and self._has("regressions"):
            frames.append(_tests_of(self._refit(equal=(*STEPS["loadings"], "regressions")), "regressions"))
        columns = ["kind", "lhs", "op", "rhs", "group", "chi2", "df", "pvalue", "change", "bic", "differs"]
        if not frames:
            return pd.DataFrame(columns=columns)
        return pd.concat(frames, ignore_index=True).sort_values("chi2", ascending=False, ignore_index=True)[columns]

    @cached_property
    def structure(self) -> pd.DataFrame:
        """Beyond measurement: are paths, variances, covariances and means of latents the same in all groups?

        One row for each kind the model has, each added on its own to the step that makes it comparable (``given``):
        ``given chi2 df d_chi2 d_df d_pvalue d_cfi d_rmsea d_bic differs``; ``differs`` is by BIC.
        """
        rows: dict[str, dict[str, Any]] = {}
        for kind, given in _STRUCTURE.items():
            if given not in self.fits or not self._has(kind):
                continue
            base = self.fits[given]
            this = self._refit(equal=(*STEPS[given], kind))
            if this.df == base.df:
                continue
            change = _change(base, this)
            chi2 = this.chi2 if this.robust is None else this.chi2_scaled
            rows[kind] = {"given": given, "chi2": chi2, "df": this.df, **change, "differs": change["d_bic"] > 0}
        return pd.DataFrame.from_dict(rows, orient="index").rename_axis("kind")

    def _has(self, kind: str) -> bool:
        table = self.fits["configural"].joint.table
        if kind in ("means", "lv.variances"):
            return bool(table.models[0].latents)
        return any(table.kind(row.parameter) == kind for row in table.rows[0])

    @cached_property
    def latent_means(self) -> pd.DataFrame:
        """Means of the latents in every group but the first, where they are zero: ``latent group mean se z pvalue``.

        They are those of the step with equal intercepts, in units of the first group's standard deviation of the latent
        (its residual, of a latent with causes) unless a loading gives the scale. Read them where that step holds.
        """
        if "intercepts" not in self.fits:
            raise ModelError("Latent means need the step with equal intercepts; run all steps.")
        table = self.fits["intercepts"].parameters
        latents = set(self.fits["intercepts"].joint.table.models[0].latents)
        rows = table[(table["op"] == "~1") & table["lhs"].isin(latents) & (table["group"] != self.groups[0])]
        frame = rows[["lhs", "group", "est", "se", "z", "pvalue"]]
        return frame.rename(columns={"lhs": "latent", "est": "mean"}).reset_index(drop=True)

    def summary(self) -> str:
        """The steps, what differs and the latent means, as text."""
        first = self.fits["configural"]
        sizes = ", ".join(f"{g} {f.n_samples:g}" for g, f in first.fits.items())
        shown = self.table.drop(columns="holds").assign(holds=["" if h is None else h for h in self.table["holds"]])
        lines = [
            f"Invariance of measurement across {len(self.groups)} groups ({sizes})",
            *([_SCORED] if self.is_scored else []),
            "",
            apa.table_text(shown, 3, index=True),
            "",
            *self.sentences,
        ]
        trouble = [f"{step}: {f.status}." for step, f in self.fits.items() if not (f.converged and f.admissible)]
        return "\n".join([*lines, *(f"Note: {sentence}" for sentence in trouble)])

    @cached_property
    def sentences(self) -> list[str]:
        meaning = {
            "configural": "the groups share the structure, but not the loadings: latents differ in meaning",
            "loadings": "the groups share the loadings, but not the intercepts: compare paths, not means",
            "intercepts": "the groups share loadings and intercepts: latent means can be compared",
            "residuals": "the groups share loadings, intercepts and residual variances: sums of items can be compared",
        }
        supported_step = self.supported_step
        lines = [f"By the changes of CFI and RMSEA (no more than .010 and .015), {meaning[supported_step]}."]
        bic = self.table["bic"].idxmin()
        if bic != supported_step:
            lines.append(f"BIC prefers the step {bic!r}.")
        for kind in self.differences["kind"].unique():
            found = self.differences[(self.differences["kind"] == kind) & self.differences["differs"]]
            if len(found):
                named = [f"{' '.join((a, op, b)).strip()} ({g})" for a, op, b, g in found.iloc[:_FEW, 1:5].to_numpy()]
                more = f" and {len(found) - _FEW} more" if len(found) > _FEW else ""
                lines.append(f"Different by BIC, {kind}: {listing(named)}{more}.")
        if "intercepts" in self.fits and len(self.latent_means):
            caution = (
                ""
                if supported_step in ("intercepts", "residuals")
                else " (equal intercepts do not hold: do not rely on them)"
            )
            means = [
                f"{row.latent} {row.mean:+.2f} (s.e. {row.se:.2f}) in {row.group}"
                for row in self.latent_means.itertuples()
            ]
            lines.append(f"Latent means, {self.groups[0]} at zero{caution}: {', '.join(means)}.")
        for kind, row in self.structure.iterrows():
            if row["differs"]:
                lines.append(
                    f"Beyond measurement, {kind} differ by BIC (chi-square {row['d_chi2']:.1f} on {row['d_df']:.0f})."
                )
        return lines

    def __repr__(self) -> str:
        return f"<Invariance: {len(self.groups)} groups; holds up to {self.supported_step!r}>"


_RULES = {
    "estimator": one_of(*get_args(Estimator)),
    "missing": one_of(*get_args(FitMissing)),
    "correlate_exogenous": FLAG,
    "scale_latents": one_of(*get_args(LatentScale)),
    "correlate_outcomes": FLAG,
}


def invariance(
    model: Any,
    rows: Any,
    *,
    groups: Any,
    estimator: Estimator = "ML",
    missing: FitMissing = "ml",
    correlate_exogenous: bool = True,
    scale_latents: LatentScale = "variance",
    correlate_outcomes: bool = False,
) -> Invariance:
    """Test measurement invariance step by step: structure, loadings, intercepts, residual variances.

    Parameters
    ----------
    model : lavaan text, DAG, CPDAG, Model, Result or a fitted search
        The structure all groups share. Of a search, the model it found; variables that it took as normal scores of
        their ranks are taken so here, so that the configural model has the chi-square of the search.
    rows : DataFrame
        One row per person; missing values are used as they are (full information).
    groups : name of a column, or a value for each row
        Who belongs to which group. The first group is the one the others are compared with.
    estimator : "ML", "MLM" or "MLR"
        The last two for data that are not normal.
    missing, correlate_exogenous, scale_latents, correlate_outcomes
        As in :func:`unmeasured.fit`.

    Returns
    -------
    Invariance
        ``table`` (the steps), ``differences`` (what the groups do not share), ``latent_means``, ``structure`` (paths,
        variances and means), ``fits``, ``summary()``.

    Examples
    --------
    >>> import numpy as np, pandas as pd, unmeasured as um
    >>> rng = np.random.default_rng(0)
    >>> rows = pd.DataFrame(rng.normal(size=(400, 1)) + rng.normal(size=(400, 4)), columns=["a", "b", "c", "d"])
    >>> rows["country"] = np.repeat(["x", "y"], 200)
    >>> rows.loc[rows["country"] == "y", "d"] += 1.0  # one item is easier in y, whatever the latent
    >>> found = um.invariance("f =~ a + b + c + d", rows, groups="country")
    >>> found.supported_step, bool(found.table.loc["intercepts", "holds"])
    ('loadings', False)
    >>> found.differences.iloc[0][["kind", "lhs", "op", "group"]].tolist()
    ['intercepts', 'd', '~1', 'y']
    """
    check(_RULES, locals())
    if groups is None:
        raise ModelError("invariance compares groups: name their column with groups=.")
    if estimator == "WLSMV":
        raise ModelError("estimator='WLSMV' takes one group; use 'ML', 'MLM' or 'MLR' to compare groups.")
    result = getattr(model, "result_", model)
    scores = _scores_of(result) if isinstance(result, Result) else {}
    refit = partial(
        _fit_groups,
        _model_of(model),
        _as_analysed(rows, scores) if scores else rows,
        groups=groups,
        estimator=estimator,
        missing=missing,
        correlate_exogenous=correlate_exogenous,
        scale_latents=scale_latents,
        correlate_outcomes=correlate_outcomes,
    )
    fits = {step: refit(equal=equal) for step, equal in STEPS.items()}
    return Invariance(fits, refit, result if isinstance(result, Result) else None, bool(scores))


def _scores_of(result: Result) -> dict[str, Margin]:
    """How the answer of a search reads the values of variables that it took as normal scores."""
    return {name: margin for name, margin in margins_of(result.sem.sample).items() if margin.kind == "scores"}


def _as_analysed(rows: Any, scores: Mapping[str, Margin]) -> pd.DataFrame:
    """The rows with the normal scores that the search analysed, so that the same model has the same chi-square."""
    frame = rows if isinstance(rows, pd.DataFrame) else other_frame(rows)
    if frame is None:
        raise DataError("To compare groups with the answer of a search give the rows as a data frame, with its names.")
    return with_scores(frame, scores)


def _fit_groups(model: Any, rows: Any, **options: Any) -> GroupFit:
    found = fit(model, rows, **options)
    assert isinstance(found, GroupFit)
    return found


def _model_of(model: Any) -> str | DAG | CPDAG | Model:
    """What :func:`unmeasured.fit` takes; of a search, the model found, its groups of latents in one rotation."""
    result = getattr(model, "result_", model)
    if isinstance(result, Result):
        return result.fit.model
    if isinstance(result, str | DAG | CPDAG | Model):
        return result
    raise ModelError(
        f"invariance takes model text, a graph, a Result or a fitted search; got {type(model).__name__}. Fit the "
        "search first if it is one."
    )


def _measures(this: GroupFit) -> dict[str, Any]:
    robust = this.robust is not None
    return {
        "chi2": this.chi2_scaled if robust else this.chi2,
        "df": this.df,
        "pvalue": this.pvalue_scaled if robust else this.pvalue,
        "rmsea": this.rmsea_robust if robust else this.rmsea,
        "cfi": this.cfi_robust if robust else this.cfi,
        "tli": this.tli_robust if robust else this.tli,
        "srmr": this.srmr,
        "bic": this.bic,
        **dict.fromkeys(("d_chi2", "d_df", "d_pvalue", "d_cfi", "d_rmsea", "d_bic"), math.nan),
    }


def _change(before: GroupFit, this: GroupFit) -> dict[str, Any]:
    """From a model to one with more constraints."""
    chi2, df = difference_test(before, this)
    a, b = _measures(before), _measures(this)
    return {
        "d_chi2": chi2,
        "d_df": df,
        "d_pvalue": indices.p_value(chi2, df) if chi2 >= 0 else math.nan,
        "d_cfi": b["cfi"] - a["cfi"],
        "d_rmsea": b["rmsea"] - a["rmsea"],
        "d_bic": b["bic"] - a["bic"],
    }


def difference_test(before: GroupFit, this: GroupFit) -> tuple[float, int]:
    """Chi-square difference of nested fits and its degrees of freedom.

    Of robust fits it is that of Satorra and Bentler (2001): the difference of the plain chi-squares over
    ``(df_0 c_0 - df_1 c_1) / (df_0 - df_1)``, with c the scaling factors; missing where that is not positive.
    """
    df = this.df - before.df
    chi2 = this.chi2 - before.chi2
    if this.robust is None or df == 0:
        return chi2, df
    scale = (this.df * this.scaling_factor - before.df * before.scaling_factor) / df
    return (chi2 / scale if scale > 0 else math.nan), df


def _tests_of(this: GroupFit, kind: str) -> pd.DataFrame:
    """Score tests of the constraints of one kind."""
    table = this.joint.table
    entries = {row.entry for row in table.rows[0] if table.kind(row.parameter) == kind}
    tests = this.score_tests()
    mine = [entry in entries for entry in zip(tests["lhs"], tests["op"], tests["rhs"], strict=True)]
    chosen = tests.loc[mine]
    return chosen.assign(kind=kind, differs=chosen["bic"] > 0)

"""Fit indices of anything that has a chi-square: plain, scaled and robust, as lavaan defines them.

*Scaled* indices put the scaled chi-square in the place of the plain one. *Robust* ones estimate what the plain index
estimates under normality (Brosseau-Liard and Savalei 2014; with missing values Zhang and Savalei 2023; of ordinal items
Savalei 2021): with c the mean of the chi-square, over its degrees of freedom, if the model were true,

    RMSEA^2 = (chi2 - c df) / (N df)        CFI = 1 - (chi2 - c df) / (chi2_0 - c_0 df_0)
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass

from unmeasured import apa
from unmeasured.arrays import Floats
from unmeasured.errors import UnmeasuredError
from unmeasured.models import indices


@dataclass(frozen=True, slots=True)
class ScaledTest:
    """A chi-square divided by a factor, a shift added: ``chi2 / factor + shift``."""

    chi2: float
    factor: float
    shift: float = 0.0


@dataclass(frozen=True, slots=True)
class Misfit:
    """A chi-square and its mean over its degrees of freedom if the model were true: what robust indices are made of."""

    chi2: float
    mean: float

    def excess(self, df: int) -> float:
        """How much the chi-square is larger than it would be if the model were true."""
        return self.chi2 - self.mean * df


@dataclass(frozen=True, eq=False)
class Robust:
    """Corrections for data that are not normal: tests, robust misfits, and the covariance of the estimates."""

    estimator: str
    correction: str  # its name in words
    acov: Floats  # (q, q) covariance of the estimates
    test: ScaledTest
    baseline: ScaledTest
    misfit: Misfit
    baseline_misfit: Misfit
    reason: str = ""  # why they were chosen, where nobody asked for them


class Measures:
    """Indices that follow from a chi-square, a baseline and the number of samples."""

    robust: Robust | None = None

    @property
    @abstractmethod
    def chi2(self) -> float:
        """The test statistic."""

    @property
    @abstractmethod
    def df(self) -> int:
        """Its degrees of freedom."""

    @property
    @abstractmethod
    def baseline_chi2(self) -> float:
        """The test statistic of the model in which all variables are independent."""

    @property
    @abstractmethod
    def baseline_df(self) -> int:
        """Its degrees of freedom."""

    @property
    @abstractmethod
    def loglik(self) -> float:
        """Total log-likelihood."""

    @property
    @abstractmethod
    def n_samples(self) -> float:
        """Number of samples of all groups."""

    @property
    @abstractmethod
    def n_counted(self) -> int:
        """How many parameters count."""

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return 1

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return -2.0 * self.loglik + 2.0 * self.n_counted

    @property
    def bic(self) -> float:
        """Bayesian information criterion; smaller is better."""
        return -2.0 * self.loglik + self.n_counted * math.log(self.n_samples)

    @property
    def pvalue(self) -> float:
        """Probability of a larger chi-square if the model holds."""
        return indices.p_value(self.chi2, self.df)

    @property
    def rmsea(self) -> float:
        """Root mean square error of approximation, dividing by N as lavaan does."""
        return indices.rmsea(self.chi2, self.df, self.n_samples / self.n_groups)

    @property
    def rmsea_ci(self) -> tuple[float, float]:
        """90% interval of RMSEA."""
        return indices.rmsea_interval(self.chi2, self.df, self.n_samples / self.n_groups)

    @property
    def cfi(self) -> float:
        """Comparative fit index."""
        return indices.cfi(*self._comparison)

    @property
    def tli(self) -> float:
        """Tucker-Lewis index."""
        return indices.tli(*self._comparison)

    @property
    def _comparison(self) -> tuple[float, int, float, int]:
        return self.chi2, self.df, self.baseline_chi2, self.baseline_df

    # Scaled and robust ------------------------------------------------------------------------------------

    @property
    def _corrected(self) -> Robust:
        if self.robust is None:
            raise UnmeasuredError(
                "This fit has no robust statistics. Fit the model to rows with estimator='MLM', 'MLR' or 'WLSMV'."
            )
        return self.robust

    @property
    def chi2_scaled(self) -> float:
        """Chi-square corrected for data that are not normal (estimators MLM, MLR and WLSMV)."""
        return self._corrected.test.chi2

    @property
    def scaling_factor(self) -> float:
        """By what the plain chi-square was divided; missing if it is negative, and so is what follows from it."""
        return self._corrected.test.factor

    @property
    def shift(self) -> float:
        """What was added after the division: zero but for WLSMV."""
        return self._corrected.test.shift

    @property
    def pvalue_scaled(self) -> float:
        """Probability of a larger scaled chi-square if the model holds."""
        return indices.p_value(self.chi2_scaled, self.df)

    @property
    def pvalue_reported(self) -> float:
        """The p-value to report: of the scaled chi-square where there is one, else of the plain one."""
        return self.pvalue if self.robust is None else self.pvalue_scaled

    @property
    def _scaled_comparison(self) -> tuple[float, int, float, int]:
        return self.chi2_scaled, self.df, self._corrected.baseline.chi2, self.baseline_df

    @property
    def cfi_scaled(self) -> float:
        """Comparative fit index of the scaled chi-squares."""
        return indices.cfi(*self._scaled_comparison)

    @property
    def tli_scaled(self) -> float:
        """Tucker-Lewis index of the scaled chi-squares."""
        return indices.tli(*self._scaled_comparison)

    @property
    def rmsea_robust(self) -> float:
        """RMSEA corrected for data that are not normal."""
        if self.df == 0:
            return 0.0
        excess = self._corrected.misfit.excess(self.df)
        return math.sqrt(max(excess, 0.0) / self.df / self._index_samples)

    @property
    def rmsea_robust_ci(self) -> tuple[float, float]:
        """90% interval of the robust RMSEA."""
        misfit = self._corrected.misfit
        tested = misfit.chi2 / misfit.mean
        low, high = indices.rmsea_interval(tested, self.df, self._index_samples)
        return low * math.sqrt(misfit.mean), high * math.sqrt(misfit.mean)

    @property
    def cfi_robust(self) -> float:
        """CFI corrected for data that are not normal."""
        misfit = max(self._corrected.misfit.excess(self.df), 0.0)
        baseline = max(self._corrected.baseline_misfit.excess(self.baseline_df), misfit)
        return 1.0 - misfit / baseline if baseline > 0 else 1.0

    @property
    def tli_robust(self) -> float:
        """TLI corrected for data that are not normal."""
        if self.df == 0:
            return 1.0
        misfit = self._corrected.misfit.excess(self.df) * self.baseline_df
        baseline = self._corrected.baseline_misfit.excess(self.baseline_df) * self.df
        return 1.0 - misfit / baseline

    @property
    def _index_samples(self) -> float:
        """What robust RMSEA divides by, groups and all."""
        return self.n_samples / self.n_groups

    def _likelihood_line(self) -> str:
        return f"log-likelihood {self.loglik:.3f}, AIC {self.aic:.2f}, BIC {self.bic:.2f}"

    def _test_lines(self) -> list[str]:
        """Lines of a summary: the test and the indices, robust ones beneath."""
        low, high = self.rmsea_ci
        lines = [
            f"chi2 {self.chi2:.3f} on {self.df} df, p {apa.p_value(self.pvalue, '= ')}",
            f"RMSEA {self.rmsea:.4f} (90% {low:.4f} to {high:.4f}), CFI {self.cfi:.4f}, TLI {self.tli:.4f}",
        ]
        if self.robust is not None and math.isnan(self.scaling_factor):
            lines.append(f"{self.robust.correction}: no scaled chi-square, since its scaling factor is negative here")
        elif self.robust is not None:
            low, high = self.rmsea_robust_ci
            shift = f", shift {self.shift:.3f}" if self.shift else ""
            lines += [
                f"{self.robust.correction}: chi2 {self.chi2_scaled:.3f} on {self.df} df, p "
                f"{apa.p_value(self.pvalue_scaled, '= ')} "
                f"(scaling factor {self.scaling_factor:.3f}{shift})",
                f"robust RMSEA {self.rmsea_robust:.4f} (90% {low:.4f} to {high:.4f}), CFI {self.cfi_robust:.4f}, "
                f"TLI {self.tli_robust:.4f}",
            ]
        return lines

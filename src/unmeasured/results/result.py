"""Result: what a search found, to read, to take apart and to take elsewhere.

::

    search.result_ ──► summary()                              text to read
                  ──► check                                        were the data fit for it
                  ──► loadings, latent_paths, parameters, edges    tidy tables
                  ──► plot("full" | "latents")                     a path diagram
                  ──► rename({"L1": "speed"})                      the same with other names
                  ──► to_lavaan(), to_semopy(), to_json(), graph.to_...()

The numbers are those of one member of the class, with the rotation of every group fixed
(:mod:`unmeasured.results.rotation`): all members fit alike, and so do all rotations of a group. What the data tell
beyond that choice is in ``graph``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import pandas as pd
from scipy.linalg import qr
from scipy.optimize import linear_sum_assignment

from unmeasured.arrays import Floats
from unmeasured.diagram.picture import Picture, View
from unmeasured.diagram.style import Style
from unmeasured.errors import GraphError, ModelError, UnmeasuredError, listing
from unmeasured.graphs import CPDAG, DAG, LatentGroups
from unmeasured.graphs.formats import convert
from unmeasured.models.delta import covariance_root
from unmeasured.models.estimators import reported
from unmeasured.models.fit import Fit
from unmeasured.models.measures import Robust
from unmeasured.models.parameters import Model, pattern_of
from unmeasured.models.reliability import Reliability
from unmeasured.models.signs import loadings_of
from unmeasured.models.solve import Problem
from unmeasured.results import records
from unmeasured.results.drawing import picture_of
from unmeasured.results.effects import ClassEffect, ClassEffects, class_effects
from unmeasured.results.naming import suggest_names
from unmeasured.results.rotation import ReferenceIndicators, member_of, rotated, zero_loadings
from unmeasured.results.runners import edge_probabilities, runners_table
from unmeasured.results.standard import standardised_errors
from unmeasured.results.summary import html_summary, text_summary
from unmeasured.search.close_fit.local_dependence import residual_correlations
from unmeasured.search.data_check import Check, Finding
from unmeasured.search.discovery import RunnerUp
from unmeasured.search.item_partitions import ItemPartition, loading_shares, model_partitions, strongest_partition

if TYPE_CHECKING:
    from unmeasured.diagram.draw import Drawing


@dataclass(frozen=True, eq=False)
class Result:
    """A class of graphs that fit equally well, and the estimates of one member.

    Parameters
    ----------
    graph : CPDAG
        The class over latent groups.
    sem : Fit
        A member of the class as the search fitted it.
    remarks : tuple of str
        What the reader should know, in words.
    method : str
        The search that found it.
    options : mapping
        The options of that search.
    runners : tuple of RunnerUp
        Classes that came close, best first; read them in :attr:`runners_up`.
    named_latents : tuple of str
        Latents that got their name from :meth:`rename` or were given by name; the summary proposes names for others.
    stored_partitions : tuple of ItemPartition
        Item partitions that the search examined, most latents first; read them in :attr:`partitions`.
    selected_partition : int
        The number of the partition that summary, diagram and report show first: its latents are those of ``graph``.
    sign_indicators : mapping of str to str
        For latents of estimates in other rows an item whose loading is positive, as it was where the graph was found.
        The signs of others follow the rule of :mod:`unmeasured.models.signs`.
    estimation_note : str
        Where estimates are of other rows than the graph was found in, a sentence that says so.
    findings : tuple of Finding
        What :attr:`check` said when the rows were at hand; empty: it looks now.
    of_groups : mapping of str to float
        For groups of people ``chi2 df pvalue`` of the structure with parameters of its own in each group; else empty.
    stopped : str
        Why the search did not come to its end (Ctrl-C, a time limit), where it did not: the first line of the summary.

    Examples
    --------
    >>> import unmeasured as um
    >>> data = um.datasets.load("multitasking")
    >>> result = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
    >>> speed = result.loadings[result.loadings["latent"] == "Speed"]
    >>> [f"{x} {std:.2f} ({se:.2f})" for x, std, se in zip(speed["indicator"], speed["std"], speed["std_se"])][:2]
    ['Speed_Number 0.87 (0.02)', 'Speed_Letter 0.91 (0.02)']
    """

    graph: CPDAG
    sem: Fit
    remarks: tuple[str, ...] = ()
    method: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    named_latents: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    runners: tuple[RunnerUp, ...] = ()
    stopped: str = ""
    stored_partitions: tuple[ItemPartition, ...] = ()
    selected_partition: int = 0
    sign_indicators: Mapping[str, str] = field(default_factory=dict)
    estimation_note: str = ""
    of_groups: Mapping[str, float] = field(default_factory=dict)
    # Of a result read from a file, whose rows are not at hand: robust statistics, and where values were missing the
    # covariance of estimates.
    robust: Robust | None = None
    acov: Floats | None = None

    def __post_init__(self) -> None:
        if isinstance(self.sem.graph, Model) or self.sem.graph.variables != self.graph.variables:
            raise ModelError(
                "A result needs the fit of a graph with the variables of its class; got that of another model. For "
                "model text, read the summary of the fit."
            )

    @cached_property
    def check(self) -> Check:
        """What :func:`unmeasured.check` says of the data as the search used them.

        >>> import unmeasured as um
        >>> data = um.datasets.load("multitasking")
        >>> um.LGES().fit_cov(data.frame(), data.n_samples).result_.check
        <Check: 9 variables, n = 202; against a search: []>
        """
        return Check.of(self.sem.sample, self.findings)

    @cached_property
    def partitions(self) -> list[pd.Series]:
        """For each item partition a series from observed variable to latent, the most latents first.

        If a search stored none, they are those of the model: each variable with the latent, or the first
        latent of the group, that it loads on most, then with the latent above that one, and so on. A variable that
        loads on no latent has an empty name.

        >>> import unmeasured as um
        >>> data = um.datasets.load("multitasking")
        >>> (partition,) = um.LGES().fit_cov(data.frame(), data.n_samples).result_.partitions
        >>> partition["Error_Letter"] == partition["Error_Figure"]
        True
        """
        return [pd.Series(x.latents, index=list(x.items), name="latent", dtype=object) for x in self.item_partitions]

    @cached_property
    def item_partitions(self) -> tuple[ItemPartition, ...]:
        """The item partitions with their agreement: ``stored_partitions``, or those of the model."""
        return self.stored_partitions or model_partitions(self.graph, self.fit)

    # Estimates --------------------------------------------------------------------------------------------

    @cached_property
    def _held(self) -> tuple[Fit, ReferenceIndicators]:
        fit, reference_indicators = rotated(self.sem, self.graph.latent_groups, self.sign_indicators)
        if fit.full is not None and self.acov is not None:
            fit = replace(fit, full=replace(fit.full, acov=self.acov))
        return replace(fit, robust=self.robust) if self.robust is not None else reported(fit), reference_indicators

    @property
    def reported(self) -> Fit:
        """``sem`` with the robust statistics that are reported where the rows are not normal."""
        return replace(self.sem, robust=self.fit.robust)

    @property
    def fit(self) -> Fit:
        """The fit of ``sem`` with the rotation of every group fixed, so that estimates have standard errors."""
        return self._held[0]

    @property
    def reference_indicators(self) -> ReferenceIndicators:
        """For each group of several latents the pure indicators whose zero loadings fix its rotation."""
        return self._held[1]

    @cached_property
    def member(self) -> DAG:
        """The member of the class that was fitted."""
        return member_of(self.sem)

    @cached_property
    def parameters(self) -> pd.DataFrame:
        """One row per parameter: ``lhs op rhs est se z pvalue std std_se``.

        The columns of :attr:`unmeasured.models.fit.Fit.parameters`, and the standard error of the standardised
        estimate.
        """
        return self.fit.parameters.assign(std_se=standardised_errors(self.fit))

    @cached_property
    def loadings(self) -> pd.DataFrame:
        """One row per latent and indicator: ``latent indicator est se z pvalue std std_se fixed``.

        ``fixed`` marks the zeros that hold a group in place; they are a choice, not a finding.
        """
        rows = self.parameters[self.parameters["op"] == "=~"].reset_index(drop=True)
        zeros = zero_loadings(self.reference_indicators)
        fixed = np.array([pair in zeros for pair in zip(rows["lhs"], rows["rhs"])], dtype=bool)
        return rows.drop(columns="op").rename(columns={"lhs": "latent", "rhs": "indicator"}).assign(fixed=fixed)

    @cached_property
    def latent_paths(self) -> pd.DataFrame:
        """One row per edge between latents: ``source target est se z pvalue std std_se directed``.

        Edges of covariates and outcomes are among them; direct effects of covariates on items are not
        (:attr:`direct_effects`).

        ``directed`` says whether the data, or knowledge given before the search, tell the direction; if not, ``source``
        and ``target`` are those of the member that was fitted, and the reverse fits as well.
        """
        rows = self.parameters[(self.parameters["op"] == "~") & ~self._is_direct].reset_index(drop=True)
        rows = rows.rename(columns={"rhs": "source", "lhs": "target"})
        known = set(self.graph.directed_edges)
        columns = ["source", "target", "est", "se", "z", "pvalue", "std", "std_se"]
        directed = np.array([pair in known for pair in zip(rows["source"], rows["target"])], dtype=bool)
        return rows[columns].assign(directed=directed)

    @property
    def _is_direct(self) -> pd.Series[bool]:
        """Which parameters are effects of covariates on items."""
        variables, rows = self.graph.variables, self.parameters
        of_covariates = (rows["op"] == "~") & rows["rhs"].isin(variables.covariates)
        return of_covariates & rows["lhs"].isin(variables.indicators)

    @cached_property
    def direct_effects(self) -> pd.DataFrame:
        """Effects of covariates on items beside their latents: ``covariate item est se z pvalue std std_se``.

        Such an item functions differently along the covariate: at equal values of its latents it is answered
        differently. Comparisons of the latents along the covariate take it into account here; sums of items do not.

        >>> import numpy as np, pandas as pd, unmeasured as um
        >>> rng = np.random.default_rng(0)
        >>> age = rng.uniform(18, 70, 800)
        >>> mood = 0.02 * age + rng.normal(size=800)
        >>> rows = pd.DataFrame({f"q{i}": mood + rng.normal(size=800) for i in range(5)}).assign(age=age)
        >>> rows["q3"] += 0.03 * age
        >>> um.LGES(covariates=["age"]).fit(rows).result_.direct_effects[["covariate", "item", "est"]].round(3)
          covariate item    est
        0       age   q3  0.032
        """
        rows = self.parameters[self._is_direct].reset_index(drop=True)
        columns = ["covariate", "item", "est", "se", "z", "pvalue", "std", "std_se"]
        return rows.rename(columns={"rhs": "covariate", "lhs": "item"})[columns]

    @cached_property
    def local_dependence(self) -> pd.DataFrame:
        """Pairs of items that share more than their latents: ``item_1 item_2 est se z pvalue std std_se``.

        Covariances of residuals, the strongest first, ``std`` as a correlation; most often two items with similar
        wording or method. Empty where the model has none.

        >>> import unmeasured as um
        >>> data = um.datasets.load("big_five")
        >>> result = um.LGES().fit_cov(data.frame(), data.n_samples).result_
        >>> list(zip(result.local_dependence["item_1"], result.local_dependence["item_2"]))[:1]
        [('O2', 'O4')]
        """
        rows, given = self.parameters, self.graph.variables.covariates
        return residual_correlations(rows[~(rows["lhs"].isin(given) & rows["rhs"].isin(given))])

    @cached_property
    def edges(self) -> pd.DataFrame:
        """One row per edge of the class: ``source target kind directed std``; kind is "loading", "path" or "direct"."""
        loadings = self.loadings.rename(columns={"latent": "source", "indicator": "target"})
        loadings = loadings.assign(kind="loading", directed=True)
        columns = ["source", "target", "kind", "directed", "std"]
        paths = self.latent_paths.assign(kind="path")
        direct = self.direct_effects.rename(columns={"covariate": "source", "item": "target"})
        direct = direct.assign(kind="direct", directed=True)
        tables = [table[columns] for table in (loadings, paths, direct) if len(table)]
        return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)

    @property
    def runners_up(self) -> pd.DataFrame:
        """The classes that came closest, the one found first: ``bic_difference weight dimension latents ...``.

        ``weight`` is ``exp(-bic_difference / 2)``, summing to one: how clearly the data choose among the classes the
        search has visited. BIC here is the one the search maximised.
        """
        return runners_table(self.graph, int(self.sem.dimension), self.runners)

    @property
    def edge_probabilities(self) -> pd.DataFrame:
        """One row per edge of any of them: ``source target kind in_graph probability forward backward undirected``.

        The sum of the weights of the classes that have the edge, groups matched by the indicators they share.
        """
        return edge_probabilities(self.graph, self.runners)

    @property
    def r2(self) -> pd.Series:
        """Explained part of the variance of every variable that has causes.

        That of an observed variable is the same for every rotation; that of a latent in a group of several is not.
        """
        return self.fit.r2

    @overload
    def effects(self, cause: str, effect: str, *, confidence: float = ...) -> ClassEffect: ...

    @overload
    def effects(self, cause: None = ..., effect: str | None = ..., *, confidence: float = ...) -> ClassEffects: ...

    @overload
    def effects(self, cause: str, effect: None = ..., *, confidence: float = ...) -> ClassEffects: ...

    def effects(
        self, cause: str | None = None, effect: str | None = None, *, confidence: float = 0.95
    ) -> ClassEffect | ClassEffects:
        """Total effects in all graphs of the class, standardised.

        Of one pair: one number where all members agree, else all possible values with their intervals, the smallest and
        the largest, and the edge whose direction would decide. Without arguments: of all pairs of latents, as a
        ``table`` and as a ``matrix`` of causes by effects. Effects in the member that was fitted, direct and indirect
        ones too, are in ``result.fit.effects()``.

        Parameters
        ----------
        cause, effect
            Latents or observed variables. A latent of a group of several has no effect of its own: the answer says so.
        confidence
            Probability that the intervals cover, such as 0.95; they take the class as given.

        Raises
        ------
        UnmeasuredError
            For a variable the graph does not have, or a class too large to enumerate.

        Examples
        --------
        >>> import unmeasured as um
        >>> data = um.datasets.load("multitasking")
        >>> result = um.LGES().fit_cov(data.frame(), data.n_samples).result_.rename()
        >>> print(result.effects("Error", "Speed"))
        The effect of Error on Speed depends on directions that are not identified: -0.23 (-0.42 to -0.04); 0; 0.20
        (0.05 to 0.36). The direction of Error – AverageQus_Par would tell most.
        """
        found = class_effects(self, cause, effect, confidence=confidence)
        return found.pairs[0] if cause is not None and effect is not None else found

    def reliability(self) -> Reliability:
        """Omega, alpha, AVE, HTMT and Fornell-Larcker of the latents, as :meth:`unmeasured.models.fit.Fit.reliability`.

        Each latent goes with its own items, those that load on no other latent more.

        Without the latents of groups of several, whose loadings depend on the rotation.
        """
        return Reliability(self.fit, tuple(group[0] for group in self.graph.latent_groups if len(group) == 1))

    def modification_indices(self, most: int = 10) -> pd.DataFrame:
        """The largest modification indices: ``lhs op rhs mi epc sepc.all``, which loading, covariance or path would
        help.

        None for a population, and none below 3.84, the 5% point of chi-square on one df.
        """
        if math.isinf(self.sem.sample.n):
            return pd.DataFrame(columns=["lhs", "op", "rhs", "mi", "epc", "sepc.all"])
        return self.fit.modification_indices(3.84).head(most)

    # Names ------------------------------------------------------------------------------------------------

    @cached_property
    def indicators(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """For each group its indicators, the strongest first, those it shares with other groups last.

        The indicators of a latent above latents are the latents that measure it.
        """
        pure = LatentGroups(self.graph, self.graph.latent_groups)
        r2, shares = self.sem.r2, loading_shares(self.graph, self.sem)
        edges = set(self.graph.directed_edges)
        result = {}
        for group in self.graph.latent_groups:
            own = set(pure.pure_children(group))
            items = self.graph.variables.indicators
            children = [x for x in items if (group[0], x) in edges]
            shown = children or self.graph.facets.get(group[0], ())

            def strength(x: str, group: tuple[str, ...] = group) -> float:
                return shares.get(x, {}).get(group[0], 0.0)

            # The R2 of an indicator of one group is the same for every rotation of that group.
            order = {x: (0, -round(float(r2[x]), 9)) if x in own else (1, -round(strength(x), 9)) for x in shown}
            result[group] = tuple(sorted(shown, key=order.__getitem__))
        return result

    @cached_property
    def leading_items(self) -> dict[str, str]:
        """For each latent the strongest of its own items, those that load on no other latent more.

        Its loading is positive, unless authors score all of them in reverse.
        """
        found = loadings_of(self.fit)
        table = pd.DataFrame(found.values[0], index=found.names, columns=found.names)
        leading = {}
        for latent, items in found.deciding.items():
            own = table.loc[latent, list(items)]
            if len(own):
                leading[latent] = str((own if own.max() > 0 else own.abs()).idxmax())
        return leading

    @cached_property
    def suggested_names(self) -> dict[str, str]:
        """A name for each latent, made from the names of the indicators that load on it most."""
        lowest = strongest_partition(self.graph, self.sem)
        main = dict(zip(lowest.items, lowest.latents, strict=True))
        own = {g: [x for x in items if main.get(x) == g[0]] for g, items in self.indicators.items()}
        shown = {g: own[g] or list(items) for g, items in self.indicators.items()}
        taken, names = {*self.graph.observed, *self.named_latents}, {name: name for name in self.named_latents}
        for height in sorted(set(self.graph.levels.values())):
            # A latent above latents goes by the names of those that measure it, the strongest first.
            here = {
                group: [names[x] for x in items] if height else items
                for group, items in shown.items()
                if self.graph.levels[group[0]] == height
            }
            names = suggest_names(here, taken, self.sem.sample.labels) | names
            taken |= set(names.values())
        return names

    def rename(self, names: Mapping[str, str] | None = None) -> Result:
        """The same result with other names for latents.

        Parameters
        ----------
        names : mapping, optional
            From old to new names, all or some of the latents. Left out: :attr:`suggested_names`, for latents that have
            not got a name yet.

        Raises
        ------
        GraphError
            For a name that is no latent of the graph, or a new one that is taken.
        """
        if names is None:
            names = {old: new for old, new in self.suggested_names.items() if old not in self.named_latents}
        observed = [name for name in names if name in self.graph.observed]
        if observed:
            raise GraphError(f"{listing(observed)} is observed; only latents are renamed here. Rename it in the data.")
        sem, member = self.sem, self.member.rename(names)
        solution = replace(
            sem.solution, zero_variance_latents=tuple(names.get(x, x) for x in sem.solution.zero_variance_latents)
        )
        problem = Problem.of(pattern_of(member), sem.sample)
        sem = replace(sem, graph=member, problem=problem, solution=solution)
        graph = self.graph.rename(names)
        chosen = {*names.values(), *(names.get(name, name) for name in self.named_latents)}
        sign_indicators = {names.get(latent, latent): item for latent, item in self.sign_indicators.items()}
        named = tuple(name for name in graph.latents if name in chosen)
        remarks = tuple(_with_names(remark, names) for remark in self.remarks)
        return replace(
            self,
            graph=graph,
            sem=sem,
            named_latents=named,
            remarks=remarks,
            sign_indicators=sign_indicators,
            stored_partitions=tuple(level.renamed(names) for level in self.stored_partitions),
        )

    # Reading ----------------------------------------------------------------------------------------------

    def summary(self) -> str:
        """The result as text: groups and loadings, paths, fit in words, what is identified, remarks."""
        return text_summary(self)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<Result of {self.method or 'a search'}: {self.graph!r}; {self.sem!r}>"

    def _repr_html_(self) -> str:
        return html_summary(self)

    # Pictures ---------------------------------------------------------------------------------------------

    def plot(
        self,
        view: View = "auto",
        *,
        style: Style = "colour",
        r2: bool = False,
        min_loading: float | None = None,
        min_path: float | None = None,
        width: float | Literal["column", "page"] | None = None,
        pairs: bool = False,
        labels: bool = False,
        marked: Iterable[tuple[str, str]] = (),
    ) -> Drawing:
        """The path diagram as a matplotlib figure; ``savefig("diagram.pdf")`` writes SVG, PDF or PNG.

        Parameters
        ----------
        view : "auto", "full" or "latents"
            With the observed variables, or the latents alone with their strongest indicators as text. "auto" is the
            first unless there are more than 40 variables, or more cross-loadings than variables.
        style : "colour" or "print"
            Colours that colour-blind readers tell apart, or black and white.
        r2 : bool
            Whether explained variances are written into the nodes.
        min_loading : float, optional
            Loadings smaller than this are not drawn, but the largest of an indicator always is. Left out: 0, or .3
            where more than eight cross-loadings are smaller than that; the picture says so.
        min_path : float, optional
            The same for paths between latents. Left out: 0, or with more than 250 of them what leaves the strongest
            250; the picture says so.
        marked : pairs of str
            Edges ``(cause, effect)`` that differ between groups of people, to be marked with ≠; see
            :meth:`unmeasured.results.invariance.Invariance.plot`.
        width : float, "column" or "page", optional
            Of the figure in inches; letters and lines go with it. "column" and "page" are one and two columns of a
            journal, at most 3.4 and 7 inches wide and 9 inches tall: layout and view are chosen so that letters can be
            read. Left out: letters of 10 points.
        pairs : bool
            Whether residual pairs are drawn, as dotted lines with two heads between observed variables.
        labels : bool
            Whether observed variables are called by their labels in an SPSS or Stata file, where they have one.
        """
        # matplotlib takes a good part of a second to load, which those who want no picture need not wait for.
        from unmeasured.diagram.draw import draw

        options: dict[str, Any] = {"r2": r2, "min_loading": min_loading, "min_path": min_path}
        options |= {"pairs": pairs, "labels": labels, "marked": frozenset(marked)}
        if width is None:
            return draw(picture_of(self, view, **options), style=style)
        inches = _inches(width)
        picture = picture_of(self, view, **options, width=72.0 * inches)
        if not isinstance(width, str):
            return draw(picture, style=style, width=inches)
        # As large as a page allows, letters of 10 points at most; latents alone where all variables cannot be read.
        if view == "auto" and self.graph.latents and _on_paper(picture, inches) < _READABLE:
            picture = picture_of(self, "latents", **options, width=72.0 * inches)
        return draw(picture, style=style, width=_on_paper(picture, inches) * picture.width / 72.0)

    def to_svg(
        self, view: View = "auto", *, style: Style = "colour", r2: bool = False, min_loading: float | None = None
    ) -> str:
        """The path diagram as SVG text; the options are those of :meth:`plot`."""
        return self.plot(view, style=style, r2=r2, min_loading=min_loading).to_svg()

    # Elsewhere --------------------------------------------------------------------------------------------

    def to_lavaan(self) -> str:
        """Text for lavaan whose fit has the chi-square and the degrees of freedom of this one.

        As :func:`unmeasured.graphs.formats.convert.to_lavaan`, with three things only an estimate can give: the
        rotation of groups is fixed by indicators that measure them well, parameters that the data do not determine
        are fixed at their estimates, which changes neither fit nor degrees of freedom but lets lavaan count them
        right, and the items of a latent begin with its :attr:`leading_items`, a good marker that keeps its sign.
        """
        text = convert.to_lavaan(
            self.graph,
            member=self.member,
            reference_indicators=self.reference_indicators,
            fixed=self._surplus,
            first=self.leading_items,
        )
        if self.sem.admissible:
            return text
        # lavaan has no bounds unless asked, and then ends in an optimum that is no model.
        return (
            f"# The fit is not a proper one: {self.sem.status}.\n"
            f'# lavaan comes to the same only with bounds = "pos.var", if at all.\n{text}'
        )

    def to_semopy(self) -> str:
        """Text for semopy (:func:`unmeasured.graphs.formats.convert.to_semopy`), rotated as in :meth:`to_lavaan`.

        The marker of each latent is a strong indicator, and no two latents have the same.
        """
        return convert.to_semopy(
            self.graph, member=self.member, reference_indicators=self.reference_indicators, markers=self._markers
        )

    @cached_property
    def _markers(self) -> dict[str, str]:
        """For each latent that is a group of its own a strong indicator, different for each where that is possible."""
        alone = [group[0] for group in self.graph.latent_groups if len(group) == 1]
        table = self.loadings[self.loadings["latent"].isin(alone)]
        table = table[table["indicator"].isin(self.graph.observed)]
        taken = {x for chosen in self.reference_indicators.values() for x in chosen}
        strength = table.pivot(index="latent", columns="indicator", values="std").abs()
        strength = strength.drop(columns=[x for x in strength.columns if x in taken])
        # An indicator of several latents is taken only where there is no other: its loading may be far from its
        # strength.
        shared = strength.columns[strength.notna().sum() > 1]
        strength[shared] = strength[shared] - 10.0
        # Nor one with a negative loading: a marker of 1 would change the sign of the latent.
        std = table.pivot(index="latent", columns="indicator", values="std").reindex(columns=strength.columns)
        strength = strength - 20.0 * (std < 0)
        rows, columns = linear_sum_assignment(-strength.fillna(-1e3).to_numpy())
        pairs = [(strength.index[i], strength.columns[j]) for i, j in zip(rows, columns, strict=True)]
        return {str(latent): str(x) for latent, x in pairs if not math.isnan(float(strength.loc[latent, x]))}

    @cached_property
    def _surplus(self) -> dict[tuple[str, str], float]:
        """Loadings and paths to fix so that what is left is determined, with their estimates."""
        fit = self.fit
        excess = fit.model.n_free - int(fit.dimension)
        if excess <= 0:
            return {}
        null = covariance_root(fit)[1]
        rows = sorted((p for p in fit.model.parameters if p.fixed is None), key=lambda p: p.op == "~~")
        # Fixing a parameter takes one blind direction away if it has a part in it: k independent rows of the k blind
        # directions. Only entries of F: a noise variance fixed at its estimate is harder to read.
        paths = [k for k, p in enumerate(rows) if p.op != "~~"]
        order = qr(null[paths].T, mode="r", pivoting=True)[1]
        chosen = [paths[k] for k in order[:excess]]
        return {(rows[k].source, rows[k].target): float(fit.estimates[k]) for k in sorted(chosen)}

    def to_json(self) -> str:
        """The result as JSON: graph, estimates, data as covariance and N, options, version."""
        return records.to_json(self)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """The answer written by :meth:`to_json`."""
        return cls(**records.from_json(text))


def _with_names(remark: str, names: Mapping[str, str]) -> str:
    """A remark that calls latents by their new names; whatever else it carries stays with it."""
    if not names:
        return remark
    words = "|".join(re.escape(old) for old in sorted(names, key=len, reverse=True))
    text = re.sub(rf"(?<!\w)(?:{words})(?!\w)", lambda found: names[found[0]], remark)
    kind: Any = type(remark)
    return kind(text, remark.severity) if hasattr(remark, "severity") else text


# What journals of psychology ask for, in inches (APA 7: one column 3.4 in, two columns up to 7 in), and the height of a
# page; and the scale below which letters of 10 points cannot be read on paper.
_PRINTED, _TALL, _READABLE = {"column": 3.4, "page": 7.0}, 9.0, 0.6


def _on_paper(picture: Picture, inches: float) -> float:
    """The scale at which a picture fits that many inches and a page."""
    return min(1.0, 72.0 * inches / picture.width, 72.0 * _TALL / picture.height)


def _inches(width: float | str) -> float:
    """The width of a figure in inches."""
    inches = _PRINTED.get(width) if isinstance(width, str) else width
    if inches is None or not 0.5 <= inches <= 200.0:
        raise UnmeasuredError(f"width is in inches, or 'column' or 'page'; got {width!r}.")
    return float(inches)

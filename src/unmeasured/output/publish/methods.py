"""A paragraph for the section on methods: what exactly this run did, with which settings, and what limits it.

Every sentence is about the run at hand: what it did not use is not spoken of. Sentences that a reader needs in order to
judge the answer, the limitations, are a paragraph of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from unmeasured import apa
from unmeasured.errors import listing
from unmeasured.output.publish.references import by_em, cited, has_missing, software, tolerated
from unmeasured.output.publish.tables import effects_of
from unmeasured.output.report.run import Run
from unmeasured.results.interpretation import node
from unmeasured.validation.replicates.result import Stability


def methods_text(run: Run, stability: Stability | None = None) -> str:
    """Methods, result of the search in brief, limitations and references, as plain text."""
    parts = [
        "Methods",
        " ".join(_methods(run, stability)),
        "Limitations",
        " ".join(_limitations(run, stability)),
        "References",
        "\n".join(work.listed_as for work in cited(run)),
    ]
    return "\n\n".join(parts) + "\n"


def _methods(run: Run, stability: Stability | None) -> Iterator[str]:
    yield from _data(run)
    yield from _search(run)
    yield from _estimates(run)
    if stability is not None:
        yield (
            f"How often the structure is found again was examined in {len(stability.replicates)} replicates of the "
            f"data "
            f"({stability.method})."
        )
    if run.comparison is not None:
        names = [str(row["model"]) for row in run.comparison.rows if row["model"] != "found"]
        yield (
            f"The model found was compared with {len(names)} other model{'s' * (len(names) != 1)} "
            f"({listing(names)}); which "
            f"models are nested was determined as proposed by Bentler and Satorra (2010)."
        )
    shown = {k: v for k, v in run.about.versions.items() if k != "unmeasured"}
    others = ", ".join(f"{name} {version}" for name, version in shown.items())
    version = run.about.versions.get("unmeasured", "")
    yield (
        f"Analyses were run with unmeasured {version} ({software(run).cited_as})"
        + (f" under {others}" if others else "")
        + "."
    )


def _joined(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    >>> _joined(["age", "sex", "town"])
    'age, sex and town'
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _data(run: Run) -> Iterator[str]:
    sample, about = run.result.sem.sample, run.about
    p = len(sample.names)
    if math.isinf(sample.n):
        yield f"The covariance matrix of {p} observed variables in a population was analysed."
        return
    if about.rows is None and not sample.kinds:
        yield f"The covariance matrix of {p} observed variables (N = {sample.n:.0f}) was analysed."
        return
    rows = about.rows if about.rows is not None else round(sample.n)
    yield f"The data were {rows} observations of {p} variables."
    kinds = set(sample.kinds)
    ordinal = sum(kind == "ordinal" for kind in sample.kinds)
    if kinds == {"ordinal"}:
        yield "All variables were treated as ordinal: polychoric correlations were analysed (Olsson, 1979)."
    elif ordinal:
        of_these = "One of the variables was" if ordinal == 1 else f"{ordinal} of the variables were"
        yield (
            f"{of_these} treated as ordinal and the others as continuous: polychoric, polyserial and "
            "Pearson correlations were analysed (Olsson, 1979)."
        )
    elif "scores" in kinds:
        yield "Variables were replaced by the normal scores of their ranks before correlations were computed."
    else:
        yield "Variables were treated as continuous."
    if about.na:
        codes = _joined([f"{code:g}" for code in about.na])
        yield f"Answers with the code{'s' * (len(about.na) > 1)} {codes} were treated as missing."
    if about.reversed_items:
        n_items = len(about.reversed_items)
        yield f"{n_items} item{'s were' if n_items > 1 else ' was'} reversed ({', '.join(about.reversed_items)})."
    if run.result.options.get("missing") == "listwise":
        yield "Only observations without missing values were analysed."
    if has_missing(run):
        percent = 100.0 * (about.missing or 0.0)
        share = f"{'Less than 0.1' if percent < 0.1 else f'{percent:.1f}'}% of the values were missing"
        if by_em(run):
            yield f"{share}; means and covariances were estimated by the EM algorithm (Dempster et al., 1977)."
        else:
            yield f"{share}; each correlation was estimated from all observations with values of both variables."
    if about.rows is not None and sample.n < about.rows - 0.5:
        why = [words for words, holds in (("missing", has_missing(run)), ("ordinal", bool(ordinal))) if holds]
        yield (
            f"Because {' and '.join(why) or 'such'} values carry less information, the search used an effective "
            f"sample size of {sample.n:.0f}."
        )


def _search(run: Run) -> Iterator[str]:
    result, options = run.result, run.result.options
    graph, method = result.graph, result.method
    latents = f"{len(graph.latents)} latent variable{'s' * (len(graph.latents) != 1)}"
    if method.startswith("LGES"):
        yield (
            "The number of latent variables, their indicators and the paths between them were found by Latent variable "
            "Greedy Equivalence Search (LGES; Dong et al., 2026)"
            + (
                ", which optimised the Bayesian information criterion (BIC; Schwarz, 1978) extended by a prior over "
                "measurement models (Chen & Chen, 2008)."
                if options.get("criterion", "bic") == "bic"
                else ", with the acceptance rule of that article."
            )
        )
        penalty = float(options.get("penalty", 1.0))
        size = options.get("max_group_size", 3)
        settings = [f"penalty {penalty:g} (1 is that of BIC)"]
        if size is not None:
            settings.append(f"at most {size} latent variables with the same indicators")
        yield f"Settings were: {'; '.join(settings)}."
        tolerance = tolerated(run)
        if tolerance > 0:
            yield (
                f"Misfit up to a root mean square error of approximation (RMSEA) of "
                f"{apa.number(tolerance, 3, bounded=True)} "
                "was tolerated: the criterion used a smaller effective sample size, which assumes that the population "
                "differs from the model by this amount (Wu & Browne, 2015)."
            )
            yield from _levels(run)
        elif math.isnan(tolerance):
            yield "Whether misfit was tolerated depended on the data."
        elif tolerance == 0 and options.get("tolerance") == "auto":
            yield "Whether misfit was tolerated depended on tests of the data; none was tolerated."
    else:
        yield f"The model was found by {method or 'a search'}."
    if graph.pairs:
        pairs = "; ".join(f"{a} and {b}" for a, b in graph.pairs)
        yield f"The search also found pairs of variables whose residuals were allowed to covary: {pairs}."
    if options.get("knowledge"):
        yield "The search was restricted by prior knowledge (the statements are in the file of the run)."
    if result.stopped:
        yield f"The search was stopped before its end: {result.stopped}"
    variables = graph.variables
    if variables.covariates or variables.outcomes:
        roles = [
            f"{_joined(names)} {f'were {what}s' if len(names) > 1 else f'was {article} {what}'}"
            for what, article, names in (
                ("covariate", "a", variables.covariates),
                ("outcome", "an", variables.outcomes),
            )
            if names
        ]
        given = ", given the covariates" if variables.covariates else ""
        yield f"{'; '.join(roles)}. The graph over latent variables, covariates and outcomes was searched{given}."
        direct = [f"{row['covariate']} on {row['item']}" for row in result.direct_effects.to_dict("records")]
        if direct:
            yield (
                f"Direct effects of covariates on indicators (differential item functioning) were found by score tests "
                f"with an extended penalty: {', '.join(direct)}."
            )
    if run.shared is not None:
        by = f" ({run.about.groups})" if run.about.groups else ""
        yield (
            f"One structure was searched for several groups of persons{by}, each with its own parameters. Invariance "
            "of loadings, intercepts and residual variances was then tested step by step (Chen, 2007)."
        )
    yield f"The search found {latents} behind {len(variables.indicators)} observed variables."


def _levels(run: Run) -> Iterator[str]:
    """How the number of latents was chosen where a misfit is tolerated."""
    levels, lead = run.result.item_partitions, run.result.selected_partition
    if not levels or math.isnan(levels[lead].agreement):
        return
    yield (
        "The number of latent variables was chosen by replication: the items were partitioned by exploratory factor "
        "analyses (minimum residuals, quartimin rotation) with increasing numbers of factors, and each partition was "
        f"compared with those of replicates of the data. The reported partition has {levels[lead].n_latents} latent "
        "variables (mean adjusted Rand index between data and replicates "
        f"{apa.number(levels[lead].agreement, 2, bounded=True)})."
    )
    others = [str(level.n_latents) for k, level in enumerate(levels) if k != lead]
    if others:
        yield f"Partitions into {_joined(others)} latent variables were reproduced as well."


def _estimates(run: Run) -> Iterator[str]:
    result, fit = run.result, run.result.reported
    if math.isinf(fit.sample.n):
        yield "Parameters were estimated by maximum likelihood."
        return
    by_rows = fit.full is not None
    how = "by full information maximum likelihood from all rows" if by_rows else "by maximum likelihood"
    robust = ""
    chi2, p, cfi, tli, rmsea = fit.chi2, fit.pvalue, fit.cfi, fit.tli, fit.rmsea
    low, high = fit.rmsea_ci
    if fit.robust is not None:
        by = "MLR; Yuan & Bentler, 2000" if fit.robust.estimator == "MLR" else fit.robust.correction
        robust = (
            f" The test, CFI, TLI, RMSEA and standard errors were corrected for data that are not normal ({by}); "
            f"without the correction χ²({fit.df}) = {chi2:.2f}, p {apa.p_value(p, '= ')}."
        )
        chi2, p, cfi, tli = fit.chi2_scaled, fit.pvalue_scaled, fit.cfi_robust, fit.tli_robust
        rmsea, (low, high) = fit.rmsea_robust, fit.rmsea_robust_ci
    interval = "" if math.isnan(low) else f", 90% CI [{_index(low)}, {_index(high)}]"
    yield (
        f"Parameters were estimated {how}, the residual variance of each latent variable fixed at 1. "
        f"The model fitted with {'robust ' * bool(robust)}χ²({fit.df}) = {chi2:.2f}, p {apa.p_value(p, '= ')}, "
        f"CFI = {_index(cfi)}, TLI = {_index(tli)}, RMSEA = {_index(rmsea)}{interval}, SRMR = {_index(fit.srmr)} (for "
        f"conventional cutoffs see Hu & Bentler, 1999); BIC = {fit.bic:.1f}.{robust}"
    )
    if effects_of(result) is not None:
        yield (
            "Effects between latent variables are reported over all models that fit equally well (following Maathuis "
            "et "
            "al., 2009)."
        )


def _index(value: float) -> str:
    return apa.number(value, 3, bounded=True)


def _limitations(run: Run, stability: Stability | None) -> Iterator[str]:
    result = run.result
    graph = result.graph
    if result.stopped:
        yield "The search was ended before it was complete; a longer one may find another model."
    if not (result.sem.converged and result.sem.admissible):
        yield f"The solution is not a proper one ({result.sem.status}); its estimates must not be interpreted."
    if result.estimation_note:
        yield "The model was found in one part of the data and estimated in another."
    elif not math.isinf(result.sem.sample.n):
        yield (
            "The model was found in the same data in which its parameters were estimated. Standard errors, confidence "
            "intervals and p values take it as given and are therefore too small; the model should be confirmed in "
            "new data."
        )
    open_edges = [f"{a} – {b}" for a, b in graph.undirected_edges]
    if open_edges:
        few = f" ({'; '.join(open_edges)})" if len(open_edges) <= 6 else ""
        yield (
            f"The data do not identify the direction of {len(open_edges)} of the edges{few}: models with these "
            f"directions "
            "reversed, in agreement with one another, fit exactly as well."
        )
    for group in graph.latent_groups:
        if len(group) > 1:
            yield f"The latent variables {node(group)} share their indicators; they are identified up to a rotation."
    but = ", but for the pairs named" if graph.pairs else ""
    yield (
        "Directions that are identified, and all effects, are causal only under assumptions that these data cannot "
        "test: "
        "relations are linear, there are no cycles, the latent variables have no other common causes, and observed "
        f"variables depend on one another only through the latent variables{but}."
    )
    tolerance = tolerated(run)
    if tolerance > 0:
        yield (
            "The model is an approximation: it is rejected by the test of exact fit, and weaker structure within the "
            "tolerated misfit is not shown."
        )
    elif result.reported.pvalue_reported < 0.05 and not math.isinf(result.sem.sample.n):
        yield "The test of exact fit rejects the model at the 5% level."
    if stability is None and not math.isinf(result.sem.sample.n):
        yield "How often the structure would be found again in other samples was not examined."
    sample = result.sem.sample
    if not math.isinf(sample.n) and sample.n < result.fit.model.n_free * 5:
        yield (
            f"There are {sample.n / max(result.fit.model.n_free, 1):.1f} observations for each of the "
            f"{result.fit.model.n_free} free parameters, which is few."
        )

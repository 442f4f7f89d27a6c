"""A complete R script: it has or reads the data, fits the model in lavaan, and prints what we print, beside our "
"figures.

Rows that are continuous are read from their file, with missing values for full information. Other data (a matrix,
ordinal items, normal scores) are not something that lavaan would make the same moments from, so the moments that were
analysed are written into the script; where there are rows, the script fits the model to them as well (ordinal items by
WLSMV), if their file is there.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from unmeasured.errors import UnmeasuredError
from unmeasured.graphs.formats.lavaan_text import readable_names
from unmeasured.output.report.run import Run

_READERS = {
    ".sav": 'haven::zap_labels(haven::read_sav(data_file))  # install.packages("haven")',
    ".zsav": 'haven::zap_labels(haven::read_sav(data_file))  # install.packages("haven")',
    ".por": 'haven::zap_labels(haven::read_por(data_file))  # install.packages("haven")',
    ".dta": 'haven::zap_labels(haven::read_dta(data_file))  # install.packages("haven")',
    ".xlsx": 'readxl::read_excel(data_file)  # install.packages("readxl")',
    ".parquet": 'arrow::read_parquet(data_file)  # install.packages("arrow")',
}
_TEXT = """local({
  first <- readLines(data_file, n = 1, warn = FALSE)
  mark <- if (grepl("\\t", first)) "\\t" else if (grepl(";", first)) ";" else if (grepl(",", first)) "," else ""
  read.table(data_file, header = TRUE, sep = mark, check.names = FALSE, na.strings = c("NA", "", "."), quote = "\\"",
             comment.char = "")
})"""
_PRINT = r"""
# What unmeasured prints --------------------------------------------------------------------------------------

solution <- standardizedSolution(fit)
estimates <- parameterEstimates(fit)
table_of <- function(op) {
  # Of covariances only those that are estimated.
  chosen <- estimates$op == op & (op != "~~" | (estimates$lhs != estimates$rhs & estimates$se > 0))
  std <- solution[match(paste(estimates$lhs, estimates$op, estimates$rhs)[chosen],
                        paste(solution$lhs, solution$op, solution$rhs)), ]
  data.frame(lhs = estimates$lhs[chosen], op = estimates$op[chosen], rhs = estimates$rhs[chosen],
             est = round(estimates$est[chosen], 3), se = round(estimates$se[chosen], 3),
             p = round(estimates$pvalue[chosen], 4), std = round(std$est.std, 3), std.se = round(std$se, 3))
}
cat("\nLoadings\n"); print(table_of("=~"), row.names = FALSE)
if (any(estimates$op == "~")) { cat("\nPaths\n"); print(table_of("~"), row.names = FALSE) }
if (nrow(table_of("~~"))) { cat("\nCovariances of residuals\n"); print(table_of("~~"), row.names = FALSE) }
latents <- lavNames(fit, "lv")
if (length(latents) > 1) { cat("\nCorrelations of the latent variables\n"); print(round(lavInspect(fit, "cor.lv"), 3)) }
cat("\nExplained variances\n"); print(round(lavInspect(fit, "rsquare"), 3))
"""
_COMPARE = r"""
cat("\nFit\n")
measures <- fitMeasures(fit)
ours <- c(@INDICES@)
print(data.frame(lavaan = round(as.numeric(measures[names(ours)]), 4), unmeasured = round(ours, 4), row.names =
names(ours)))

# The same figures? Standardised estimates that unmeasured found, beside those of lavaan.
published <- read.table(header = TRUE, text = "
@STANDARDISED@
")
place <- match(paste(published$lhs, published$op, published$rhs), paste(solution$lhs, solution$op, solution$rhs))
difference <- max(abs(published$std - solution$est.std[place]), na.rm = TRUE)
cat(sprintf("\nLargest difference of a standardised estimate: %.6f; of chi-square: %.6f\n", difference,
            abs(measures[["chisq"]] - ours[["chisq"]])))
"""


def r_script(run: Run, data_file: str = "") -> str:
    """The text of an .R file.

    Parameters
    ----------
    data_file
        Where the rows are, as R finds them; left out: the name of the file that was searched.

    Raises
    ------
    UnmeasuredError
        For a population, which lavaan has no number of samples for.
    """
    sample = run.result.sem.sample
    if math.isinf(sample.n):
        raise UnmeasuredError(
            "lavaan needs a number of samples, and a population has none. Export a result from data or from a matrix."
        )
    return "\n".join([*_head(run), *_data(run, data_file or run.about.data), *_model(run), *_shown(run), ""])


def _from_rows(run: Run) -> bool:
    """Whether lavaan comes to the same from the rows that were analysed."""
    sample, rows = run.result.sem.sample, run.about.rows
    by_rows = run.result.sem.full is not None
    return (
        rows is not None
        and not _has_groups(run)
        and set(sample.kinds) == {"continuous"}
        and (by_rows or abs(sample.n - rows) < 0.5)
        and not run.result.estimation_note
    )


def _has_groups(run: Run) -> bool:
    """Whether several groups of people were searched, whose estimates are of covariances within groups."""
    return bool(run.about.groups or run.shared is not None)


def _head(run: Run) -> Iterator[str]:
    about = run.about
    title = _comment(about.title or about.data or "Latent variables found")
    yield f"# {title}"
    yield f"# Written by unmeasured {about.versions.get('unmeasured', '')}; needs R 4.0 and lavaan 0.6, or newer."
    if about.command:
        yield f"# The run: {_comment(about.command)}"
    yield "suppressMessages(library(lavaan))"
    yield ""


def _comment(text: str) -> str:
    return " ".join(text.split())


def _quoted(text: str) -> str:
    """The text as a string of R's."""
    return json.dumps(text, ensure_ascii=False)


def _vector(values: Iterator[str] | list[str], indent: str = "  ") -> str:
    lines, line = [], ""
    for value in values:
        if len(line) + len(value) > 100:
            lines.append(line.rstrip())
            line = ""
        line += f"{value}, "
    return f"\n{indent}".join([*lines, line.rstrip().rstrip(",")])


def _data(run: Run, data_file: str) -> Iterator[str]:
    sample, about = run.result.sem.sample, run.about
    names = readable_names(run.result.graph.names)
    new = [names[x] for x in sample.names]
    if about.rows is not None:
        yield "# The file of the data, as this script finds it; change it where the file is elsewhere."
        yield f"data_file <- {_quoted(data_file)}"
        yield f"variables <- c({_vector([_quoted(x) for x in sample.names])})"
        yield "read_rows <- function() {"
        yield f"  rows <- as.data.frame({_READERS.get(_ending(data_file), _TEXT)}\n  )"
        yield "  missing <- setdiff(variables, names(rows))"
        yield '  if (length(missing)) stop("the file does not have these variables: ", toString(missing))'
        if about.groups:
            yield f"  people <- rows[[{_quoted(about.groups)}]]  # their groups"
        yield "  rows <- rows[variables]"
        yield from (f"  {line}" for line in _prepared(run))
        yield f"  names(rows) <- c({_vector([_quoted(x) for x in new])})"
        if about.groups:
            yield "  rows$.group <- people"
            yield "  rows <- rows[!is.na(people), ]"
        yield "  rows"
        yield "}"
    if _from_rows(run):
        yield 'if (!file.exists(data_file)) stop("there is no file ", data_file, "; change data_file above")'
        yield "rows <- read_rows()"
        return
    yield f"# {_why_moments(run)}"
    if sample.n != round(sample.n):
        yield f"# N is {sample.n:.3f}; lavaan takes whole numbers, so its chi-square differs by up to a part in N."
    yield f"n_samples <- {round(sample.n)}"
    yield f"variables_in_model <- c({_vector([_quoted(x) for x in new])})"
    yield "lower <- c("
    for i, line in enumerate(sample.cov.tolist()):
        end = "" if i == len(sample.names) - 1 else ","
        yield "  " + ", ".join(f"{value:.12g}" for value in line[: i + 1]) + end
    yield ")"
    yield "S <- getCov(lower, names = variables_in_model)"


def _ending(name: str) -> str:
    match = re.search(r"\.[A-Za-z]+$", name)
    return match[0].lower() if match else ""


def _prepared(run: Run) -> Iterator[str]:
    """What was done to the rows before they were analysed, in R."""
    about = run.about
    if about.na:
        codes = ", ".join(f"{code:g}" for code in about.na)
        yield f"rows[] <- lapply(rows, function(x) replace(x, x %in% c({codes}), NA))  # codes for missing answers"
    for name, total in about.reversed_items.items():
        yield f"rows[[{_quoted(name)}]] <- {total:g} - rows[[{_quoted(name)}]]  # a reversed item"


def _why_moments(run: Run) -> str:
    sample = run.result.sem.sample
    what = "The covariance matrix that was analysed (divisor N), lower triangle"
    if run.result.sem.full is not None:
        return f"{what}; unmeasured's figures are those of full information, which a matrix does not give exactly."
    if run.about.rows is None:
        return f"{what}."
    if run.result.estimation_note:
        return f"{what}: that of the rows in which the model was confirmed."
    if _has_groups(run):
        return f"{what}: that within groups of people, the mean of theirs, weighted by their rows."
    if "ordinal" in sample.kinds:
        return f"{what}: polychoric correlations; N is what ordinal items are worth in continuous ones."
    if "scores" in sample.kinds:
        return f"{what}: that of normal scores of the ranks."
    return f"{what}: estimated by maximum likelihood, as values are missing; N counts complete rows."


def _model(run: Run) -> Iterator[str]:
    result = run.result
    text = result.to_lavaan()
    sample, rows = result.sem.sample, _from_rows(run)
    options = ["std.lv = TRUE"]
    if "fixed.x = FALSE" in text:
        options.append("fixed.x = FALSE")
    elif result.graph.variables.covariates:
        options.append("fixed.x = TRUE")  # lavaan's default, but not where starting values are given
    if not result.sem.admissible:
        options.append('bounds = "pos.var"')
    yield ""
    yield 'model <- r"---('
    yield text
    yield ')---"'
    yield ""
    yield "# Estimates to start from: the signs of the latent variables are then those that unmeasured reports."
    yield 'start <- read.table(header = TRUE, text = "'
    yield "lhs op rhs est"
    yield from _rows_of(run, "est")
    yield '")'
    extra = [*options]
    if rows and result.fit.robust is not None and result.fit.robust.estimator in ("MLR", "MLM"):
        extra.append(f'estimator = "{result.fit.robust.estimator}"')
    if rows and result.sem.full is not None:
        extra.append('missing = "fiml"')
    data = "data = rows" if rows else "sample.cov = S, sample.nobs = n_samples, sample.cov.rescale = FALSE"
    yield f"fit <- sem(model, {data}, start = start,\n           {', '.join(extra)})"
    yield 'if (!lavInspect(fit, "converged")) stop("lavaan did not converge")'
    if _has_groups(run):
        yield from _groups(run, options)
    elif run.about.rows is not None and not rows and not result.estimation_note:
        ordinal = set(sample.kinds) == {"ordinal"}
        how = 'ordered = TRUE, estimator = "WLSMV"' if ordinal else 'missing = "fiml"'
        yield ""
        yield "# The same model fitted to the rows themselves: another estimator, with somewhat other figures."
        yield "if (file.exists(data_file)) {"
        yield f"  fit_rows <- sem(model, data = read_rows(), {', '.join(options)}, {how})"
        yield f'  cat("\\nThe model fitted to the rows ({"WLSMV" if ordinal else "full information"})\\n")'
        yield "  print(summary(fit_rows, fit.measures = TRUE, standardized = TRUE))"
        yield "}"


_SCORES = """  # Values as normal scores of their ranks in all rows, mean and spread as they were, as in the search.
  for (x in c(@NAMES@)) {
    z <- qnorm(rank(people[[x]], na.last = "keep") / (sum(!is.na(people[[x]])) + 1))
    people[[x]] <- mean(people[[x]], na.rm = TRUE) + z * sd(people[[x]], na.rm = TRUE) / sd(z, na.rm = TRUE)
  }
"""
_GROUPS = """
# Groups of people: the same model in all of them, then with loadings, intercepts and residual variances equal.
if (file.exists(data_file)) {
  people <- read_rows()
@SCORES@  equal <- list(configural = "", loadings = "loadings", intercepts = c("loadings", "intercepts"),
                residuals = c("loadings", "intercepts", "residuals"))
  by_group <- lapply(equal, function(these)
    sem(model, data = people, group = ".group", group.equal = these, meanstructure = TRUE, @OPTIONS@))
  shown <- c("chisq", "df", "pvalue", "rmsea", "cfi", "bic")
  cat("\\nWhat the groups share, by lavaan\\n")
  print(round(t(sapply(by_group, fitMeasures, shown)), 3))
@OURS@
}"""


def _groups(run: Run, options: list[str]) -> Iterator[str]:
    """The steps of a comparison of groups, where the rows are there."""
    if not run.about.groups or run.about.rows is None:
        yield "# The structure was searched in several groups of people; the fit above is of all, each less its means."
        return
    missing = ['missing = "fiml"'] if run.about.missing else []
    ours = ""
    if run.shared is not None:
        lines = "\n".join(
            " ".join(
                [str(step["step"]), *(f"{step[key]:.6f}" for key in ("chi2", "df", "pvalue", "rmsea", "cfi", "bic"))]
            )
            for step in run.shared.steps
        )
        ours = (
            '  ours <- read.table(header = TRUE, row.names = 1, text = "\n'
            f'step chisq df pvalue rmsea cfi bic\n{lines}\n")\n'
            '  cat("\\nWhat the groups share, by unmeasured\\n"); print(round(ours, 3))\n'
            '  theirs <- sapply(by_group, fitMeasures, "chisq")\n'
            '  cat(sprintf("\\nLargest difference of chi-square in groups: %.6f\\n", max(abs(theirs - ours$chisq))))'
        )
    sample, names = run.result.sem.sample, readable_names(run.result.graph.names)
    scored = [_quoted(names[x]) for x, kind in zip(sample.names, sample.kinds) if kind == "scores"]
    scores = _SCORES.replace("@NAMES@", _vector(scored, indent="              ")) if scored else ""
    yield (
        _GROUPS.replace("@SCORES@", scores)
        .replace("@OPTIONS@", ", ".join([*options, *missing]))
        .replace("@OURS@", ours)
    )


def _rows_of(run: Run, column: str) -> Iterator[str]:
    names, given = readable_names(run.result.graph.names), set(run.result.graph.variables.covariates)
    for row in run.result.parameters.to_dict("records"):
        value = float(row[column])
        # lavaan takes the variances and covariances of covariates from the data, unless they are stated.
        if math.isfinite(value) and not {row["lhs"], row["rhs"]} <= given:
            yield f"{names[row['lhs']]} {row['op']} {names[row['rhs']]} {value:.9g}"


def _shown(run: Run) -> Iterator[str]:
    fit = run.result.reported
    figures = {
        "chisq": fit.chi2,
        "df": float(fit.df),
        "pvalue": fit.pvalue,
        "cfi": fit.cfi,
        "tli": fit.tli,
        "rmsea": fit.rmsea,
        "rmsea.ci.lower": fit.rmsea_ci[0],
        "rmsea.ci.upper": fit.rmsea_ci[1],
        "srmr": fit.srmr,
        "aic": fit.aic,
        "bic": fit.bic,
    }
    # lavaan scales the test of incomplete rows by another estimate (unmeasured.models.robust.steady_test).
    if fit.robust is not None and fit.full is None and _from_rows(run):
        figures |= {
            "chisq.scaled": fit.chi2_scaled,
            "pvalue.scaled": fit.pvalue_scaled,
            "cfi.robust": fit.cfi_robust,
            "rmsea.robust": fit.rmsea_robust,
        }
    known = {name: value for name, value in figures.items() if math.isfinite(value)}
    indices = _vector([f"{name} = {value:.10g}" for name, value in known.items()], indent="          ")
    standardised = "\n".join(["lhs op rhs std", *_rows_of(run, "std")])
    yield _PRINT.strip("\n")
    yield _COMPARE.replace("@INDICES@", indices).replace("@STANDARDISED@", standardised).strip("\n")

# What lavaan says of models and rows that were drawn for the tests: maximum likelihood, MLM, MLR, full information,
# WLSMV, groups, covariates. lavaan_simulated.py draws the rows, writes the models and runs this script:
# Rscript lavaan_simulated.R FOLDER: models.csv and the rows (NAME.csv) that it names; writes answers.json.
suppressMessages(library(lavaan))
folder <- commandArgs(TRUE)[1]
file <- function(name) file.path(folder, name)
number <- function(v) ifelse(is.na(v), "null", sprintf("%.10g", v))
quoted <- function(v) paste0('"', gsub('"', '\\\\"', gsub("\n", "\\\\n", v)), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")
kept <- c("chisq", "df", "pvalue", "rmsea", "rmsea.ci.lower", "rmsea.ci.upper", "cfi", "tli", "srmr", "logl", "aic", "bic",
          "npar", "baseline.chisq", "baseline.df", "chisq.scaled", "pvalue.scaled", "chisq.scaling.factor",
          "baseline.chisq.scaled", "cfi.scaled", "tli.scaled", "rmsea.scaled", "rmsea.robust", "rmsea.ci.lower.robust",
          "rmsea.ci.upper.robust", "cfi.robust", "tli.robust")

# sem() cannot be asked to leave the residuals of outcomes uncorrelated (auto.cov.y), so its defaults are spelled out.
fitted <- function(m, rows, equal) {
  ordered <- if (m$estimator == "WLSMV") setdiff(names(rows), m$group) else NULL
  lavaan(m$model, rows, estimator = m$estimator, missing = m$missing, group = if (m$group == "") NULL else m$group,
         group.equal = if (length(equal)) equal else "", ordered = ordered, int.ov.free = TRUE, int.lv.free = FALSE,
         auto.fix.first = !m$std, std.lv = m$std, auto.fix.single = TRUE, auto.var = TRUE, auto.cov.lv.x = TRUE,
         auto.cov.y = FALSE, auto.th = TRUE, auto.delta = TRUE, auto.efa = TRUE, fixed.x = m$fixed)
}

# Score tests of each equality constraint, one by one: group.equal writes them as .p1. == .p25.
tests <- function(fit) {
  s <- lavTestScore(fit)$uni
  t <- parTable(fit)
  at <- match(s$lhs, t$plabel)
  listed(sprintf("[%s, %s, %s, %s]", quoted(t$lhs[at]), quoted(t$op[at]), quoted(t$rhs[at]), number(s$X2)))
}

# Difference tests of each step of invariance with the one before; with MLM and MLR those of Satorra and Bentler (2001).
differences <- function(m, rows) {
  steps <- c("loadings", "intercepts", "residuals")
  fits <- lapply(0:3, function(k) fitted(m, rows, steps[seq_len(k)]))
  d <- lavTestLRT(fits[[1]], fits[[2]], fits[[3]], fits[[4]])[-1, ]
  listed(sprintf("[%s, %s, %s]", number(d[["Chisq diff"]]), number(d[["Df diff"]]), number(d[["Pr(>Chisq)"]])))
}

answer <- function(m) {
  rows <- read.csv(file(paste0(m$rows, ".csv")))
  if (m$group == "") rows <- rows[setdiff(names(rows), "school")]
  equal <- strsplit(m$equal, " ")[[1]]
  fit <- fitted(m, rows, equal)
  stopifnot(lavInspect(fit, "converged"))
  measures <- unlist(fitMeasures(fit))
  measures <- measures[intersect(kept, names(measures))]
  test <- fit@test[[length(fit@test)]]
  if (!is.null(test$shift.parameter)) measures <- c(measures, shift = sum(test$shift.parameter))
  if (!is.null(test$scaling.factor)) measures <- c(measures, factor = test$scaling.factor)
  p <- parameterEstimates(fit, remove.nonfree = FALSE, remove.eq = TRUE, standardized = TRUE)
  p <- p[!p$op %in% c("~*~", "==") & p$se > 0, ]
  labels <- if (m$group == "") "" else lavInspect(fit, "group.label")
  g <- if (is.null(p$group)) 1 else pmax(p$group, 1)
  # Of each free or defined parameter: lhs, op, rhs, group, estimate, standard error, standardised estimate.
  table <- sprintf("[%s, %s, %s, %s, %s, %s, %s]", quoted(p$lhs), quoted(p$op), quoted(p$rhs), quoted(labels[g]),
                   number(p$est), number(p$se), number(p$std.all))
  cat(m$rows, m$estimator, m$equal, measures["chisq"], measures["df"], "\n")
  object(c("rows", "model", "estimator", "missing", "groups", "equal", "scale_latents", "measures", "parameters",
           "score_tests", "differences"),
         c(quoted(m$rows), quoted(m$model), quoted(m$estimator), quoted(m$missing),
           if (m$group == "") "null" else quoted(m$group), listed(if (length(equal)) quoted(equal)),
           quoted(if (m$std) "variance" else "first-indicator"), object(names(measures), number(measures)), listed(table),
           if (m$score) tests(fit) else "[]", if (m$compare) differences(m, rows) else "[]"))
}

# The saturated moments that full information gives, for moments of rows with missing values.
moments <- function(name) {
  rows <- read.csv(file(paste0(name, ".csv")))
  rows <- rows[setdiff(names(rows), "school")]
  h1 <- lavInspect(lavCor(rows, missing = "ml", output = "fit"), "sampstat")
  object(c("rows", "mean", "cov"), c(quoted(name), listed(number(h1$mean)), listed(apply(unclass(h1$cov), 1, function(v) listed(number(v))))))
}

models <- read.csv(file("models.csv"), colClasses = c(equal = "character", group = "character"), na.strings = "never")
out <- sapply(seq_len(nrow(models)), function(k) answer(as.list(models[k, ])))
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_simulated.R",\n"moments": ', moments("holed"), ',\n"fits": [\n',
                  paste(out, collapse = ",\n"), "\n]}"), file("answers.json"))

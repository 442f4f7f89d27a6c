# Models conditioned on covariates of large mean (age around 40, incomes around 30, in thousands) in lavaan, with each estimator.
# Rscript lavaan_means.R FOLDER_OF_DRAWN_ROWS OUT.json
# The folder has aged.csv, aged_incomplete.csv and aged_gaps.csv, which test_lavaan_means.py draws when run as a script.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
drawn <- function(name) read.csv(file.path(given[1], paste0(name, ".csv")))
number <- function(v) ifelse(is.na(v), "null", sprintf("%.10g", v))
quoted <- function(v) paste0('"', gsub("\n", "\\\\n", v), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")

wanted <- c("chisq", "df", "npar", "logl", "aic", "bic", "cfi", "tli", "rmsea", "srmr", "baseline.chisq", "baseline.df",
            "chisq.scaled", "chisq.scaling.factor", "baseline.chisq.scaled", "cfi.scaled", "tli.scaled", "cfi.robust",
            "tli.robust", "rmsea.robust")

answer <- function(rows, model, ...) {
  fit <- sem(model, drawn(rows), std.lv = TRUE, ...)
  stopifnot(lavInspect(fit, "converged"))
  m <- fitMeasures(fit)
  m <- m[intersect(wanted, names(m))]
  p <- parameterEstimates(fit)
  if (is.null(p$group)) p$group <- 1
  rows_of <- sprintf('{"group": %d, "lhs": %s, "op": %s, "rhs": %s, "est": %s, "se": %s}', p$group, quoted(p$lhs), quoted(p$op),
                     quoted(p$rhs), number(p$est), number(p$se))
  more <- list(...)
  object(c("rows", "model", "estimator", "missing", "groups", "equal", "measures", "parameters"),
         c(quoted(rows), quoted(model), quoted(more$estimator), quoted(if (is.null(more$missing)) "listwise" else more$missing),
           if (is.null(more$group)) "null" else quoted(more$group),
           listed(if (length(more$group.equal)) quoted(more$group.equal)), object(names(m), number(m)), listed(rows_of)))
}

regressions <- "z1 ~ y1 + age\nz2 ~ y1 + income"
factors <- "f =~ y1 + y2 + y3\nh =~ z1 + z2 + z3\nf ~ age + sex\nh ~ f + income\nz1 ~ age"
fits <- c(
  answer("aged", regressions, estimator = "ML", meanstructure = FALSE),
  answer("aged", regressions, estimator = "MLM", meanstructure = FALSE),
  answer("aged", regressions, estimator = "MLR", meanstructure = FALSE),
  answer("aged", factors, estimator = "ML", meanstructure = FALSE),
  answer("aged", factors, estimator = "MLM", meanstructure = FALSE),
  answer("aged", factors, estimator = "MLR", meanstructure = FALSE),
  answer("aged", factors, estimator = "MLM", group = "g", group.equal = c("loadings", "intercepts")),
  answer("aged", factors, estimator = "MLR", group = "g", group.equal = c("loadings", "intercepts")),
  answer("aged_incomplete", factors, estimator = "ML", missing = "ml"),
  answer("aged_incomplete", factors, estimator = "MLR", missing = "ml"),
  answer("aged_gaps", factors, estimator = "ML", missing = "ml", fixed.x = FALSE)
)
columns <- function(rows) object(names(rows), sapply(rows, function(v) listed(if (is.numeric(v)) number(v) else quoted(v))))
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_means.R",\n"rows": ', object(c("aged", "aged_incomplete", "aged_gaps"),
                  c(columns(drawn("aged")), columns(drawn("aged_incomplete")), columns(drawn("aged_gaps")))), ',\n"fits": [\n',
                  paste(fits, collapse = ",\n"), "\n]}"), given[2])

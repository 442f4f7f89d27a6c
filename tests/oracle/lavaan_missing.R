# Missing values in lavaan: full information (ML and MLR), and ordinal items by all pairs (WLSMV).
# Rscript lavaan_missing.R FOLDER_OF_ROWS OUT.json
# The folder has normal.csv, heavy.csv, covariate.csv, likert.csv and binary.csv, drawn by lavaan_missing.py; the rows are
# stored in the answer.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
names_of <- c("normal", "heavy", "covariate", "likert", "binary")
drawn <- lapply(setNames(names_of, names_of), function(name) read.csv(file.path(given[1], paste0(name, ".csv"))))

number <- function(v) ifelse(is.na(v), "null", sprintf("%.10g", v))
quoted <- function(v) paste0('"', gsub("\n", "\\\\n", v), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")

answer <- function(name, model, estimator, ...) {
  fit <- sem(model, drawn[[name]], std.lv = TRUE, estimator = estimator, ...)
  stopifnot(lavInspect(fit, "converged"))
  test <- fit@test[[length(fit@test)]]
  factor <- if (is.null(test$scaling.factor)) NA else test$scaling.factor
  m <- c(unlist(fitMeasures(fit)), scaling.factor = factor)
  p <- parameterEstimates(fit, standardized = TRUE, remove.nonfree = FALSE)
  p <- p[p$op != "~*~", ]
  rows <- sprintf('{"lhs": %s, "op": %s, "rhs": %s, "est": %s, "se": %s}', quoted(p$lhs), quoted(p$op), quoted(p$rhs),
                  number(p$est), number(p$se))
  cat(name, estimator, m["chisq"], m["df"], "\n")
  object(c("name", "estimator", "model", "measures", "parameters"),
         c(quoted(name), quoted(estimator), quoted(model), object(names(m), number(m)), listed(rows)))
}

two <- "f =~ y1 + y2 + y3 + y4\nh =~ y5 + y6 + y7 + y8"
path <- paste0(two, "\nh ~ f\ny1 ~~ y5")
caused <- paste0(two, "\nf ~ age\nh ~ f + age")
out <- c(
  answer("normal", two, "ML", missing = "fiml"),
  answer("normal", path, "ML", missing = "fiml"),
  answer("normal", two, "MLR", missing = "fiml"),
  answer("heavy", two, "ML", missing = "fiml"),
  answer("heavy", two, "MLR", missing = "fiml"),
  answer("heavy", path, "MLR", missing = "fiml"),
  answer("covariate", caused, "ML", missing = "fiml"),
  answer("covariate", caused, "MLR", missing = "fiml"),
  answer("likert", two, "WLSMV", ordered = TRUE, missing = "pairwise"),
  answer("likert", path, "WLSMV", ordered = TRUE, missing = "pairwise"),
  answer("binary", two, "WLSMV", ordered = TRUE, missing = "pairwise")
)
columns <- function(rows) object(names(rows), sapply(rows, function(v) listed(number(v))))
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_missing.R",\n"rows": ', object(names_of, sapply(drawn, columns)),
                  ',\n"fits": [\n', paste(out, collapse = ",\n"), "\n]}"), given[2])

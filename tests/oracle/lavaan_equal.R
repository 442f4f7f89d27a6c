# Equal labels in lavaan: measures, estimates, modification indices, score tests and standardised residuals.
# Rscript lavaan_equal.R FOLDER_OF_DRAWN_ROWS OUT.json
# The folder has skewed.csv and incomplete.csv, which are stored in lavaan_robust.json.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
drawn <- function(name) read.csv(file.path(given[1], paste0(name, ".csv")))
number <- function(v) ifelse(is.na(v), "null", sprintf("%.10g", v))
quoted <- function(v) paste0('"', gsub("\n", "\\\\n", v), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")

wanted <- c("chisq", "df", "npar", "logl", "aic", "bic", "cfi", "tli", "rmsea", "srmr", "baseline.chisq", "baseline.df",
            "chisq.scaled", "chisq.scaling.factor", "cfi.robust", "tli.robust", "rmsea.robust")

answer <- function(rows, model, marker = FALSE, estimator = "ML", missing = "listwise", group = NULL) {
  fit <- sem(model, drawn(rows), std.lv = !marker, estimator = estimator, missing = missing, group = group,
             meanstructure = missing == "ml" || !is.null(group))
  stopifnot(lavInspect(fit, "converged"))
  m <- fitMeasures(fit)
  m <- m[intersect(wanted, names(m))]
  p <- parameterEstimates(fit)
  if (is.null(p$group)) p$group <- 1
  rows_of <- sprintf("[%d, %s, %s, %s, %s, %s]", as.integer(p$group), quoted(p$lhs), quoted(p$op), quoted(p$rhs), number(p$est), number(p$se))
  mi <- score <- z <- "[]"
  if (estimator == "ML") {
    i <- modindices(fit)
    i <- i[i$op != "~1" & !is.na(i$mi), ]
    if (is.null(i$group)) i$group <- 1
    mi <- listed(sprintf("[%d, %s, %s, %s, %s, %s]", as.integer(i$group), quoted(i$lhs), quoted(i$op), quoted(i$rhs), number(i$mi), number(i$epc)))
  }
  if (is.null(group) && estimator == "ML") {
    s <- try(lavTestScore(fit, information = if (missing == "ml") "observed" else "expected")$uni$X2, silent = TRUE)
    score <- if (inherits(s, "try-error")) "[]" else listed(number(s))
    if (missing != "ml") {
      z <- lavResiduals(fit)$cov.z
      z <- listed(apply(z, 1, function(r) listed(number(r))))
    }
  }
  object(c("rows", "model", "marker", "estimator", "missing", "group", "measures", "parameters", "mi", "score", "z"),
         c(quoted(rows), quoted(model), tolower(marker), quoted(estimator), quoted(missing), if (is.null(group)) "null" else quoted(group),
           object(names(m), number(m)), listed(rows_of), mi, score, z))
}

rest <- "\nh =~ y4 + y5 + y6"
equal <- paste0("f =~ y1 + a*y2 + a*y3", rest)
many <- "f =~ a*y1 + a*y2 + b*y3\nh =~ y4 + b*y5 + y6\ny1 ~~ e*y1\ny2 ~~ e*y2\ny4 ~~ e*y4"
path <- paste0("f =~ a*y1 + a*y2 + y3", rest, "\nh ~ f\ny1 ~~ c*y4\ny2 ~~ c*y5")
fits <- c(
  answer("skewed", paste0("f =~ y1 + y2 + y3", rest)),
  answer("skewed", equal),
  answer("skewed", equal, estimator = "MLM"),
  answer("skewed", equal, estimator = "MLR"),
  answer("skewed", many),
  answer("skewed", many, estimator = "MLR"),
  answer("skewed", path),
  answer("skewed", path, estimator = "MLM"),
  answer("skewed", paste0("f =~ a*y1 + a*y2 + a*y3", rest), marker = TRUE),
  answer("skewed", paste0("f =~ a*y1 + a*y2 + a*y3", rest), marker = TRUE, estimator = "MLR"),
  answer("skewed", "f =~ a*y1 + b*y2 + b*y3\nh =~ a*y4 + y5 + a*y6", marker = TRUE),
  answer("incomplete", equal, missing = "ml"),
  answer("incomplete", equal, missing = "ml", estimator = "MLR"),
  answer("skewed", paste0("f =~ c(a, a)*y1 + c(b, b)*y2 + c(b, b)*y3", rest), group = "g"),
  answer("skewed", paste0("f =~ c(a, b)*y1 + c(b, c)*y2 + y3", rest), marker = TRUE, group = "g")
)
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_equal.R", "fits": [\n', paste(fits, collapse = ",\n"), "\n]}"), given[2])

# Groups, means and equality constraints in lavaan.
# Rscript lavaan_groups.R FOLDER_OF_ROWS FOLDER_OF_DRAWN_ROWS OUT.json
# The first folder has holzinger_swineford.csv, political_democracy.csv, teacher_burnout.csv and big5_25items.csv.gz; the
# second skewed.csv and incomplete.csv, which were drawn for this test and are stored in lavaan_robust.json.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
real <- function(name) read.csv(file.path(given[1], name))
drawn <- function(name) read.csv(file.path(given[2], name))

number <- function(v) ifelse(is.na(v), "null", sprintf("%.8g", v))
quoted <- function(v) paste0('"', gsub('"', '\\\\"', gsub("\n", "\\\\n", v)), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")
kept <- c("chisq", "df", "pvalue", "rmsea", "rmsea.ci.lower", "rmsea.ci.upper", "cfi", "tli", "srmr", "logl", "aic", "bic",
          "npar", "ntotal", "baseline.chisq", "baseline.df", "chisq.scaled", "chisq.scaling.factor", "rmsea.robust",
          "cfi.robust", "tli.robust")

# Score tests of each equality constraint, one by one: group.equal writes them as .p1. == .p25.
tests <- function(fit) {
  s <- tryCatch(lavTestScore(fit)$uni, error = function(e) NULL)
  if (is.null(s)) return("[]")
  t <- parTable(fit)
  at <- match(s$lhs, t$plabel); other <- match(s$rhs, t$plabel)
  listed(sprintf('{"lhs": %s, "op": %s, "rhs": %s, "group": %d, "chi2": %s, "df": %d}', quoted(t$lhs[at]), quoted(t$op[at]),
                 quoted(t$rhs[at]), t$group[other], number(s$X2), s$df))
}

# sem() cannot be asked to leave the residuals of outcomes uncorrelated (auto.cov.y), so its defaults are spelled out.
fitted <- function(model, rows, std, ...)
  lavaan(model, rows, int.ov.free = TRUE, int.lv.free = FALSE, auto.fix.first = !std, std.lv = std, auto.fix.single = TRUE,
         auto.var = TRUE, auto.cov.lv.x = TRUE, auto.cov.y = FALSE, auto.th = TRUE, auto.delta = TRUE, auto.efa = TRUE,
         fixed.x = FALSE, ...)

answer <- function(name, rows, model, group = NULL, equal = character(0), std = TRUE, score = FALSE, estimator = "ML", ...) {
  fit <- fitted(model, rows, std, group = group, group.equal = if (length(equal)) equal else "", meanstructure = TRUE,
                estimator = estimator, ...)
  stopifnot(lavInspect(fit, "converged"))
  m <- unlist(fitMeasures(fit))
  m <- m[intersect(kept, names(m))]
  p <- parameterEstimates(fit, remove.nonfree = FALSE, remove.eq = TRUE, standardized = TRUE)
  p <- p[!p$op %in% c("~*~", "==") & p$se > 0, ]
  labels <- if (is.null(group)) "" else lavInspect(fit, "group.label")
  g <- if (is.null(p$group)) 1 else p$group
  # Of each free parameter: lhs, op, rhs, group, estimate, standard error, standardised estimate.
  rows_of <- sprintf("[%s, %s, %s, %s, %s, %s, %s]", quoted(p$lhs), quoted(p$op), quoted(p$rhs), quoted(labels[g]),
                     number(p$est), number(p$se), number(p$std.all))
  cat(name, equal, m["chisq"], m["df"], "\n")
  object(c("name", "model", "groups", "equal", "scale_latents", "estimator", "measures", "score_tests", "parameters"),
         c(quoted(name), quoted(model), if (is.null(group)) "null" else quoted(group), listed(if (length(equal)) quoted(equal)),
           quoted(if (std) "variance" else "first-indicator"), quoted(estimator), object(names(m), number(m)),
           if (score) tests(fit) else "[]", listed(rows_of)))
}

hs <- "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
hs_path <- paste0(hs, "\nspeed ~ visual + textual")
growth <- "i =~ 1*y1 + 1*y2 + 1*y3 + 1*y4\ns =~ 0*y1 + 1*y2 + 2*y3 + 3*y4\ni ~~ NA*i\ns ~~ NA*s\ny1 + y2 + y3 + y4 ~ 0*1\ni + s ~ 1"
labelled <- "ind60 =~ x1 + x2 + x3\ndem60 =~ a*y1 + b*y2 + c*y3 + d*y4\ndem65 =~ a*y5 + b*y6 + c*y7 + d*y8\ndem60 ~ ind60\ndem65 ~ ind60 + dem60\ny1 ~~ v*y1\ny5 ~~ v*y5"
partial <- "visual =~ c(a, a)*x1 + x2 + c(b, b)*x3\ntextual =~ x4 + x5 + x6\nx1 ~ c(m, m)*1\nx4 ~~ c(0.5, NA)*x4"
burnout <- "CC =~ CC1 + CC2 + CC3 + CC4\nSE =~ SE1 + SE2 + SE3\nELC =~ ELC1 + ELC2 + ELC3 + ELC4 + ELC5\nEE =~ EE1 + EE2 + EE3\nPA =~ PA1 + PA2 + PA3\nEE ~ CC + SE\nPA ~ EE + SE"
traits <- "FO =~ O1 + O2 + O3 + O4 + O5\nFC =~ C1 + C2 + C3 + C4 + C5\nFE =~ E1 + E2 + E3 + E4 + E5\nFA =~ A1 + A2 + A3 + A4 + A5\nFN =~ N1 + N2 + N3 + N4 + N5"
two <- "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
path <- "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\nh ~ f\ny1 ~~ y4"

steps <- list(character(0), "loadings", c("loadings", "intercepts"), c("loadings", "intercepts", "residuals"),
              c("loadings", "intercepts", "residuals", "means"),
              c("loadings", "intercepts", "residuals", "lv.variances", "lv.covariances"))
halves <- function(rows) { rows$half <- ifelse(seq_len(nrow(rows)) %% 2 == 1, "odd", "even"); rows }
every <- function(name, rows, model, group, these = steps, ...)
  sapply(these, function(e) answer(name, rows, model, group, e, ...))

skewed <- drawn("skewed.csv"); incomplete <- drawn("incomplete.csv")
school <- real("holzinger_swineford.csv")
gaps <- school
for (j in 1:9) gaps[[paste0("x", j)]][(seq_len(nrow(gaps)) * j) %% 11 == 3] <- NA
big <- real("big5_25items.csv.gz"); big <- halves(big[rowSums(big != 0) > 0, ][1:2000, ])

out <- c(
  every("skewed", skewed, two, "g", score = TRUE),
  every("incomplete", incomplete, two, "g", missing = "ml"),
  every("skewed", skewed, path, "g", list(character(0), c("loadings", "intercepts", "regressions", "residual.covariances"))),
  every("skewed", skewed, two, "g", steps[1:4], estimator = "MLR"),
  every("skewed", skewed, two, "g", steps[1:4], estimator = "MLM"),
  every("incomplete", incomplete, two, "g", steps[1:4], estimator = "MLR", missing = "ml"),
  every("holzinger_swineford.csv", school, hs, "school", score = TRUE),
  every("holzinger_swineford.csv", school, hs, "school", steps[1:4], std = FALSE),
  every("holzinger_swineford.csv", school, hs_path, "school", list(steps[[3]], c(steps[[3]], "regressions"))),
  answer("holzinger_swineford.csv", school, partial, "school"),
  every("holzinger_swineford.csv gaps", gaps, hs, "school", steps[1:4], missing = "ml"),
  every("teacher_burnout.csv", halves(real("teacher_burnout.csv")), burnout, "half", steps[1:4]),
  every("big5_25items.csv.gz first 2000", big, traits, "half", steps[1:4]),
  answer("political_democracy.csv", real("political_democracy.csv"), growth),
  answer("political_democracy.csv", real("political_democracy.csv"), labelled),
  answer("holzinger_swineford.csv", school, hs),
  answer("skewed", skewed, "f =~ a*y1 + a*y2 + y3\nh =~ y4 + y5 + y6\ny1 ~ m*1\ny2 ~ m*1")
)
# Difference tests of neighbouring steps; with MLM and MLR those of Satorra and Bentler (2001).
differences <- function(name, rows, model, group, estimator, ...) {
  fits <- lapply(steps[1:4], function(e) fitted(model, rows, TRUE, group = group, group.equal = if (length(e)) e else "",
                                                meanstructure = TRUE, estimator = estimator, ...))
  d <- lavTestLRT(fits[[1]], fits[[2]], fits[[3]], fits[[4]])
  object(c("name", "estimator", "model", "groups", "chi2", "df", "pvalue"),
         c(quoted(name), quoted(estimator), quoted(model), quoted(group), listed(number(d[["Chisq diff"]][-1])),
           listed(number(d[["Df diff"]][-1])), listed(number(d[["Pr(>Chisq)"]][-1]))))
}
compared <- c(differences("skewed", skewed, two, "g", "ML"), differences("skewed", skewed, two, "g", "MLM"),
              differences("skewed", skewed, two, "g", "MLR"),
              differences("incomplete", incomplete, two, "g", "MLR", missing = "ml"),
              differences("holzinger_swineford.csv", school, hs, "school", "ML"),
              differences("holzinger_swineford.csv", school, hs, "school", "MLR"))
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_groups.R",\n"differences": [\n', paste(compared, collapse = ",\n"), '],\n"fits": [\n', paste(out, collapse = ",\n"), "\n]}"), given[3])

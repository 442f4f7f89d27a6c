# Robust statistics of lavaan: MLM, MLR (complete and with missing values) and WLSMV.
# Rscript lavaan_robust.R FOLDER_OF_ROWS FOLDER_OF_DRAWN_ROWS OUT.json
# The first folder has holzinger_swineford.csv, political_democracy.csv, teacher_burnout.csv,
# teacher_burnout_10pct_missing.csv and big5_25items.csv.gz; the second skewed.csv, incomplete.csv and likert.csv, which
# were drawn for this test and are stored in the answer.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
real <- function(name) read.csv(file.path(given[1], name))
drawn <- function(name) read.csv(file.path(given[2], name))

number <- function(v) ifelse(is.na(v), "null", sprintf("%.10g", v))
quoted <- function(v) paste0('"', gsub('"', '\\\\"', gsub("\n", "\\\\n", v)), '"')
object <- function(names, values) paste0("{", paste0(quoted(names), ": ", values, collapse = ", "), "}")
listed <- function(values) paste0("[", paste(values, collapse = ", "), "]")

# sem() cannot be asked to leave the residuals of outcomes uncorrelated (auto.cov.y), so its defaults are spelled out.
fitted <- function(model, rows, std, ...)
  lavaan(model, rows, int.ov.free = TRUE, int.lv.free = FALSE, auto.fix.first = !std, std.lv = std, auto.fix.single = TRUE,
         auto.var = TRUE, auto.cov.lv.x = TRUE, auto.cov.y = FALSE, auto.th = TRUE, auto.delta = TRUE, auto.efa = TRUE,
         fixed.x = FALSE, ...)

answer <- function(name, rows, model, estimator, ...) {
  fit <- fitted(model, rows, TRUE, estimator = estimator, ...)
  stopifnot(lavInspect(fit, "converged"))
  m <- unlist(fitMeasures(fit))
  test <- fit@test[[length(fit@test)]]
  shift <- if (is.null(test$shift.parameter)) NA else test$shift.parameter
  scaling <- if (is.null(test$scaling.factor)) NA else test$scaling.factor
  p <- parameterEstimates(fit, remove.nonfree = FALSE)
  p <- p[p$op != "~*~", ]
  rows_of <- sprintf('{"lhs": %s, "op": %s, "rhs": %s, "est": %s, "se": %s}', quoted(p$lhs), quoted(p$op), quoted(p$rhs),
                     number(p$est), number(p$se))
  measures <- object(c(names(m), "scaling.factor", "shift.parameter"), c(number(m), number(scaling), number(shift)))
  cat(name, m["chisq"], m["df"], "\n")
  object(c("name", "estimator", "model", "measures", "parameters"),
         c(quoted(name), quoted(estimator), quoted(model), measures, listed(rows_of)))
}

hs <- "visual =~ x1 + x2 + x3\ntextual =~ x4 + x5 + x6\nspeed =~ x7 + x8 + x9"
democracy <- "ind60 =~ x1 + x2 + x3\ndem60 =~ y1 + y2 + y3 + y4\ndem65 =~ y5 + y6 + y7 + y8\ndem60 ~ ind60\ndem65 ~ ind60 + dem60\ny1 ~~ y5\ny2 ~~ y4 + y6\ny3 ~~ y7\ny4 ~~ y8\ny6 ~~ y8"
burnout <- "RA =~ RA1 + RA2\nRC =~ RC1 + RC2 + WO1 + WO2\nCC =~ CC1 + CC2 + CC3 + CC4\nDM =~ DM1 + DM2\nSS =~ SS1 + SS2\nPS =~ PS1 + PS2\nSE =~ SE1 + SE2 + SE3\nELC =~ ELC1 + ELC2 + ELC3 + ELC4 + ELC5\nEE =~ EE1 + EE2 + EE3\nDP =~ DP1 + DP2\nPA =~ PA1 + PA2 + PA3\nSE ~ DM + SS\nELC ~ SE + RC\nEE ~ RC + CC + SE\nDP ~ EE + CC + SE\nPA ~ RA + DP + SE"
traits <- "FO =~ O1 + O2 + O3 + O4 + O5\nFC =~ C1 + C2 + C3 + C4 + C5\nFE =~ E1 + E2 + E3 + E4 + E5\nFA =~ A1 + A2 + A3 + A4 + A5\nFN =~ N1 + N2 + N3 + N4 + N5"
two <- "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
path <- "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\nh ~ f\ny1 ~~ y4"
items <- "f =~ o1 + o2 + o3\nh =~ o4 + o5 + o6"
regression <- "f =~ o1 + o2 + o3\nh =~ o4 + o5 + o6\nh ~ f\no1 ~~ o4"

skewed <- drawn("skewed.csv"); incomplete <- drawn("incomplete.csv"); likert <- drawn("likert.csv")
big <- real("big5_25items.csv.gz"); big <- big[rowSums(big != 0) > 0, ][1:2000, ]
rounded <- as.data.frame(lapply(real("teacher_burnout.csv"), function(v) floor(v + 0.5)))

out <- c(
  answer("skewed", skewed, two, "MLM"),
  answer("skewed", skewed, two, "MLR"),
  answer("skewed", skewed, path, "MLM"),
  answer("skewed", skewed, path, "MLR"),
  answer("incomplete", incomplete, two, "MLR", missing = "ml"),
  answer("incomplete", incomplete, path, "MLR", missing = "ml"),
  answer("incomplete", incomplete, two, "ML", missing = "ml"),
  answer("likert", likert, items, "WLSMV", ordered = names(likert)),
  answer("likert", likert, regression, "WLSMV", ordered = names(likert)),
  answer("holzinger_swineford.csv", real("holzinger_swineford.csv"), hs, "MLM"),
  answer("holzinger_swineford.csv", real("holzinger_swineford.csv"), hs, "MLR"),
  answer("political_democracy.csv", real("political_democracy.csv"), democracy, "MLM"),
  answer("political_democracy.csv", real("political_democracy.csv"), democracy, "MLR"),
  answer("teacher_burnout.csv", real("teacher_burnout.csv"), burnout, "MLM"),
  answer("teacher_burnout.csv", real("teacher_burnout.csv"), burnout, "MLR"),
  answer("teacher_burnout_10pct_missing.csv", real("teacher_burnout_10pct_missing.csv"), burnout, "MLR", missing = "ml"),
  answer("teacher_burnout.csv rounded", rounded, burnout, "WLSMV", ordered = names(rounded)),
  answer("big5_25items.csv.gz first 2000", big, traits, "WLSMV", ordered = names(big))
)
columns <- function(rows) object(names(rows), sapply(rows, function(v) listed(if (is.numeric(v)) number(v) else quoted(v))))
writeLines(paste0('{"program": "lavaan ', packageVersion("lavaan"), ', R ', getRversion(), '", "date": "', Sys.Date(),
                  '", "script": "lavaan_robust.R",\n"rows": ', object(c("skewed", "incomplete", "likert"),
                  c(columns(skewed), columns(incomplete), columns(likert))), ',\n"fits": [\n', paste(out, collapse = ",\n"), "\n]}"), given[3])

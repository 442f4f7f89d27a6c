# What lavaan says after a fit: modification indices, residuals, factor scores, defined parameters.
# Rscript lavaan_after.R FOLDER: model.txt, options.txt (N), cov.csv; where there are any, rows.csv and missing.csv. Writes
# version.txt, indices.csv, residuals.csv, correlation.csv, standardised.csv, parameters.csv and, with rows, scores_*.csv, errors_*.csv.
suppressMessages(library(lavaan))
folder <- commandArgs(TRUE)[1]
file <- function(name) file.path(folder, name)
text <- paste(readLines(file("model.txt")), collapse = "\n")
put <- function(x, name) write.csv(format(x, digits = 12, trim = TRUE), file(name), row.names = FALSE, quote = FALSE)
S <- as.matrix(read.csv(file("cov.csv"), row.names = 1, check.names = FALSE))
n <- as.numeric(readLines(file("options.txt"))[1])
# lavaan's optimiser ends where the objective no longer falls, which leaves scores right to five digits; a few Newton
# steps with its own gradient and Hessian take it to the optimum.
fitted_well <- function(given) {
  fit <- do.call("lavaan", c(settings, given))
  for (again in 1:10) {
    slope <- lavTech(fit, "gradient")
    if (max(abs(slope)) < 1e-11) break
    start <- parTable(fit)
    free <- coef(fit) - solve(lavTech(fit, "hessian"), slope)
    start$est[start$free > 0] <- free[start$free[start$free > 0]]
    start$start <- start$est
    fit <- do.call("lavaan", c(modifyList(settings, list(model = start)), given, list(do.fit = FALSE)))
  }
  cat("largest slope", max(abs(slope)), "\n")
  stopifnot(max(abs(slope)) < 1e-9)
  fit
}
settings <- list(model = text, model.type = "sem", warn = FALSE, std.lv = TRUE, int.ov.free = TRUE, auto.var = TRUE,
                 auto.fix.single = TRUE, auto.cov.lv.x = TRUE, auto.cov.y = FALSE, fixed.x = FALSE)
fit <- fitted_well(list(sample.cov = S, sample.nobs = n))
writeLines(c(as.character(packageVersion("lavaan")), R.version.string), file("version.txt"))
put(modindices(fit)[, c("lhs", "op", "rhs", "mi", "epc", "sepc.all")], "indices.csv")
put(as.data.frame(unclass(lavResiduals(fit, type = "raw")$cov)), "residuals.csv")
put(as.data.frame(unclass(lavResiduals(fit, type = "cor.bentler")$cov)), "correlation.csv")
put(as.data.frame(unclass(lavResiduals(fit, type = "raw")$cov.z)), "standardised.csv")
# A model that was not fitted but set has no standard errors, so these are of lavaan's own optimum.
estimates <- parameterEstimates(do.call("lavaan", c(settings, list(sample.cov = S, sample.nobs = n))), standardized = TRUE)
put(estimates[, c("lhs", "op", "rhs", "est", "se", "std.all")], "parameters.csv")
if (file.exists(file("rows.csv"))) {
  rows <- read.csv(file("rows.csv"), check.names = FALSE)
  # Means of complete rows are the sample's under both; "ml" makes scores of rows with missing values possible.
  fit <- fitted_well(list(data = rows, missing = "ml"))
  missing <- read.csv(file("missing.csv"), check.names = FALSE)
  for (method in c("regression", "Bartlett")) {
    for (part in c("rows", "missing")) {
      scores <- lavPredict(fit, newdata = get(part), method = method, se = "standard")
      name <- paste0(tolower(method), "_", part, ".csv")
      put(as.data.frame(unclass(scores)[, , drop = FALSE]), paste0("scores_", name))
      errors <- attr(scores, "se")[[1]]
      put(as.data.frame(errors), paste0("errors_", name))
    }
  }
}

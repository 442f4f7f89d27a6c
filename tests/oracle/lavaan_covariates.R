# Fits model text with covariates in lavaan (fixed.x) and writes what it says: measures and estimates.
# Rscript lavaan_covariates.R MODEL.txt COV.csv N OUT.csv
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
text <- paste(readLines(given[1]), collapse = "\n")
S <- as.matrix(read.csv(given[2], row.names = 1, check.names = FALSE))
fit <- sem(text, sample.cov = S, sample.nobs = as.numeric(given[3]), std.lv = TRUE)
stopifnot(lavInspect(fit, "converged"))
wanted <- c("chisq", "df", "logl", "aic", "bic", "npar", "cfi", "tli", "rmsea", "srmr", "baseline.chisq", "baseline.df")
m <- fitMeasures(fit, wanted)
p <- parameterEstimates(fit)
measures <- data.frame(lhs = names(m), op = "measure", rhs = "", est = sprintf("%.9f", m), se = "0")
rows <- data.frame(lhs = p$lhs, op = p$op, rhs = p$rhs, est = sprintf("%.9f", p$est), se = sprintf("%.9f", p$se))
version <- data.frame(lhs = as.character(packageVersion("lavaan")), op = "version", rhs = R.version$version.string,
                      est = "0", se = "0")
write.csv(rbind(version, measures, rows), given[4], row.names = FALSE)

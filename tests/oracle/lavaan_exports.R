# Fits model text in lavaan and writes what it says: chi-square, df, and the standardised solution.
# Rscript lavaan_exports.R MODEL.txt COV.csv N OUT.csv
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
text <- paste(readLines(given[1]), collapse = "\n")
S <- as.matrix(read.csv(given[2], row.names = 1, check.names = FALSE))
fit <- sem(text, sample.cov = S, sample.nobs = as.numeric(given[3]), std.lv = TRUE)
stopifnot(lavInspect(fit, "converged"))
m <- fitMeasures(fit, c("chisq", "df"))
s <- standardizedSolution(fit)
out <- data.frame(lhs = s$lhs, op = s$op, rhs = s$rhs, std = sprintf("%.9f", s$est.std), se = sprintf("%.9f", s$se))
first <- data.frame(lhs = "chisq", op = "", rhs = as.character(packageVersion("lavaan")), std = sprintf("%.9f", m[1]),
                    se = as.character(m[2]))
write.csv(rbind(first, out), given[4], row.names = FALSE)

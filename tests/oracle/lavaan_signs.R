# Fits model text in lavaan, latents scaled by their variance and by the first item: standardised loadings and paths.
# Rscript lavaan_signs.R MODEL.txt COV.csv N OUT.csv
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
text <- paste(readLines(given[1], warn = FALSE), collapse = "\n")
S <- as.matrix(read.csv(given[2], row.names = 1, check.names = FALSE))
out <- NULL
for (std in c(TRUE, FALSE)) {
  fit <- sem(text, sample.cov = S, sample.nobs = as.numeric(given[3]), std.lv = std)
  stopifnot(lavInspect(fit, "converged"))
  s <- standardizedSolution(fit)
  s <- s[s$op %in% c("=~", "~"), ]
  scale <- if (std) "variance" else "first-indicator"
  out <- rbind(out, data.frame(scale, lhs = s$lhs, op = s$op, rhs = s$rhs, std = sprintf("%.6f", s$est.std)))
}
write.csv(rbind(data.frame(scale = "version", lhs = as.character(packageVersion("lavaan")), op = "", rhs = "", std = ""),
                out), given[4], row.names = FALSE)

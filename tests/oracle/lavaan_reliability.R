# Omega and average variance extracted as lavaan's defined parameters, alpha and HTMT from the correlation matrix by base R.
# Rscript lavaan_reliability.R COV.csv N > lavaan_reliability.txt (Holzinger and Swineford; x2 reversed)
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
S <- as.matrix(read.csv(given[1], row.names = 1, check.names = FALSE))
S["x2", ] <- -S["x2", ]
S[, "x2"] <- -S[, "x2"]
n <- as.numeric(given[2])
text <- "
visual =~ l1*x1 + l2*x2 + l3*x3
textual =~ l4*x4 + l5*x5 + l6*x6
speed =~ l7*x7 + l8*x8 + l9*x9
x1 ~~ t1*x1
x2 ~~ t2*x2
x3 ~~ t3*x3
x7 ~~ t7*x7
x8 ~~ t8*x8
x9 ~~ t9*x9
x7 ~~ c*x8
omega_visual := (l1 - l2 + l3)^2 / ((l1 - l2 + l3)^2 + t1 + t2 + t3)
ave_visual := (l1^2 + l2^2 + l3^2) / (l1^2 + l2^2 + l3^2 + t1 + t2 + t3)
omega_speed := (l7 + l8 + l9)^2 / ((l7 + l8 + l9)^2 + t7 + t8 + t9 + 2*c)
ave_speed := (l7^2 + l8^2 + l9^2) / (l7^2 + l8^2 + l9^2 + t7 + t8 + t9)
"
fit <- cfa(text, sample.cov = S, sample.nobs = n, std.lv = TRUE)
e <- parameterEstimates(fit)
e <- e[e$op == ":=", ]
for (i in seq_len(nrow(e))) cat(e$lhs[i], sprintf("%.9f", e$est[i]), "\n")
R <- cov2cor(S)
block <- S[1:3, 1:3] * outer(c(1, -1, 1), c(1, -1, 1))
cat("alpha_visual", sprintf("%.9f", 3 / 2 * (1 - sum(diag(block)) / sum(block))), "\n")
within <- function(i) mean(abs(R[i, i][upper.tri(R[i, i])]))
cat("htmt", sprintf("%.9f", mean(abs(R[1:3, 7:9])) / sqrt(within(1:3) * within(7:9))), "\n")

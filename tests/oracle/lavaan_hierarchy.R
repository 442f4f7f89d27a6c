# Fits of models with latents above latents, for test_lavaan_hierarchy.py. The covariances are in the same file, made by
#   um.simulate.sample(um.simulate.hierarchy(n_traits=2, n_facets=4, n_items=2, rng=3), 800, rng=4).cov()
# Run in this folder: Rscript lavaan_hierarchy.R
library(lavaan)
library(jsonlite)

stored <- fromJSON("lavaan_hierarchy.json", simplifyVector = TRUE)
S <- stored$cov
rownames(S) <- colnames(S) <- paste0("X", 1:16)
items <- function(f) paste0("F", f, " =~ X", 2 * f - 1, " + X", 2 * f)
models <- list(
  two_traits = c(sapply(1:8, items), "T1 =~ F1 + F2 + F3 + F4", "T2 =~ F5 + F6 + F7 + F8", "T2 ~ T1"),
  one_trait = c(sapply(1:4, items), "T1 =~ F1 + F2 + F3 + F4"),
  trait_and_latent = c(sapply(1:5, items), "T1 =~ F1 + F2 + F3 + F4", "F5 ~ T1"),
  three_levels = c(sapply(1:8, items), "T1 =~ F1 + F2 + F3", "G =~ T1 + F4 + F5 + F6", "F7 ~ G", "F8 ~ F7")
)
answers <- lapply(models, function(lines) {
  text <- paste(lines, collapse = "\n")
  names <- intersect(rownames(S), lavNames(lavaanify(text), "ov"))
  fit <- sem(text, sample.cov = S[names, names], sample.nobs = 800, std.lv = TRUE)
  std <- standardizedSolution(fit)
  std <- std[std$op == "=~" | std$op == "~", ]
  index <- fitMeasures(fit, c("chisq", "df", "bic", "rmsea", "cfi"))
  list(
    text = text, indices = as.list(unclass(index)), lhs = std$lhs, op = std$op, rhs = std$rhs,
    std = std$est.std, se = std$se
  )
})
stored$lavaan <- as.character(packageVersion("lavaan"))
stored$date <- as.character(Sys.Date())
stored$models <- answers
writeLines(toJSON(stored, digits = 10, auto_unbox = TRUE, matrix = "rowmajor"), "lavaan_hierarchy.json")

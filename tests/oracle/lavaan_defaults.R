# What lavaan's sem() and growth() make of model text by default.
# Rscript lavaan_defaults.R ROWS.csv OUT.json, from this folder; ROWS.csv is random_models_rows.csv.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
rows <- read.csv(given[1])
holes <- rows
holes$z1[seq(1, 300, 9)] <- NA
holes$a2[seq(4, 300, 7)] <- NA
holes$p2[seq(5, 300, 8)] <- NA
quoted <- function(v) paste0('"', gsub('"', '\\\\"', gsub("\n", "\\\\n", v)), '"')

answer <- function(name, model, by = sem, ...) {
  fit <- by(model, ...)
  m <- fitMeasures(fit)
  wanted <- c("chisq", "chisq.scaled", "df", "logl", "bic", "ntotal")
  figures <- paste(sprintf('"%s": %.9g', wanted, m[wanted]), collapse = ", ")
  sprintf('"%s": {"model": %s, %s}', name, quoted(model), gsub("NA", "null", figures))
}

curve <- "level =~ 1*t1 + 1*t2 + 1*t3 + 1*t4\nslope =~ 0*t1 + 1*t2 + 2*t3 + 3*t4"
with_means <- paste0(curve, "\nlevel ~ 1\nslope ~ 1\nt1 + t2 + t3 + t4 ~ 0*1")
democracy <- "ind60 =~ x1 + x2 + x3\ndem60 =~ y1 + a*y2 + b*y3 + c*y4\ndem65 =~ y5 + a*y6 + b*y7 + c*y8\ndem60 ~ ind60\ndem65 ~ ind60 + dem60\ny1 ~~ y5\ny2 ~~ y4 + y6\ny3 ~~ y7\ny4 ~~ y8\ny6 ~~ y8"
democracy_with_holes <- PoliticalDemocracy
for (j in 0:10) democracy_with_holes[(0:74 * (2 * j + 3) + j * j) %% 17 == 3, c(paste0("y", 1:8), paste0("x", 1:3))[j + 1]] <- NA
to_a_bound <- "dem65 =~ y5 + y6 + y7 + y8\ndem60 =~ y2 + y3 + y4 + la*y7 + la*y8\ny7 ~~ y2\ny2 ~~ y3 + va*y2\ny3 ~~ va*y3\ndem60 ~ dem65"
fits <- c(
  answer("political democracy", democracy, data = PoliticalDemocracy),
  answer("labels", "f =~ a1 + a*a2 + b*a3 + c*a4\nh =~ b1 + a*b2 + b*b3 + c*b4\nh ~ f", data = rows),
  answer("fixed loading", "f =~ a1 + 0.8*a2 + a3 + a4", data = rows),
  answer("fixed covariance", "f =~ a1 + a2 + a3\nh =~ b1 + b2 + b3\nf ~~ 0.5*h", data = rows),
  answer("growth", curve, growth, data = rows),
  answer("growth by sem", curve, data = rows),
  answer("growth with means", with_means, data = rows),
  answer("outcomes", "f =~ a1 + a2 + a3\nb1 ~ f\nb2 ~ f", data = rows),
  answer("latent outcomes", "f =~ a1 + a2 + a3\nh =~ b1 + b2 + b3\nf ~ z1\nh ~ z1", data = rows),
  answer("mean of a predictor", "a1 ~ z1 + z2\na2 ~ a1 + z1\nz1 ~ 1", data = rows),
  answer("groups", "f =~ a1 + la*a2 + a3 + a4", data = rows, group = "g"),
  answer("variance in groups", "f =~ NA*a1 + a2 + a3 + a4\nf ~~ 1*f", data = rows, group = "g", group.equal = "loadings"),
  answer("fixed loading in groups", "f =~ NA*a1 + 0.8*a2 + a3 + a4", data = rows, std.lv = TRUE, group = "g", group.equal = "loadings"),
  answer("mean of a predictor in groups", "f =~ a1 + a2 + a3\nf ~ z1 + z2\nz1 ~ 1", data = rows, std.lv = TRUE, group = "g", group.equal = c("loadings", "intercepts")),
  answer("missing values", "f =~ a1 + a2 + a3 + a4", data = holes),
  answer("covariates with missing values", "f =~ a1 + a2 + a3 + a4\nf ~ z1 + z2", data = holes, missing = "ml"),
  answer("ordinal items", "p =~ p1 + p2 + p3 + p4\np ~ z2", data = rows, ordered = TRUE),
  answer("ordinal items with missing values", "p =~ p1 + p2 + p3 + p4", data = holes, ordered = TRUE),
  answer("growth, MLR", curve, data = rows, std.lv = TRUE, estimator = "MLR"),
  answer("growth with a covariate, MLR", paste0(curve, "\nslope ~ z1"), data = rows, std.lv = TRUE, estimator = "MLR"),
  answer("labels that keep from a bound", to_a_bound, data = democracy_with_holes, missing = "ml"),
  answer("nothing", "f =~ a1 + a2 + a3\nh =~ b1 + b2 + b3\nh ~ f", data = rows)
)
version <- paste0("lavaan ", packageVersion("lavaan"), ", R ", getRversion())
writeLines(sprintf('{"program": "%s", "date": "%s", "script": "lavaan_defaults.R", "fits": {\n%s\n}}', version, Sys.Date(), paste(fits, collapse = ",\n")), given[2])

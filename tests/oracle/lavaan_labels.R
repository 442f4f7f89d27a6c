# Defined parameters and factor scores where labels, groups, means or ordinal items come in, in lavaan.
# Rscript lavaan_labels.R FOLDER_OF_DRAWN_ROWS OUT.json
# The folder has skewed.csv, incomplete.csv and likert.csv, which are stored in lavaan_robust.json.
suppressMessages(library(lavaan))
given <- commandArgs(TRUE)
drawn <- function(name) read.csv(file.path(given[1], paste0(name, ".csv")))
number <- function(v) ifelse(is.na(v), "null", sprintf("%.8g", v))
quoted <- function(v) paste0('"', gsub("\n", "\\\\n", v), '"')

answer <- function(rows, model, ordered = FALSE, scores = FALSE, ...) {
  data <- drawn(rows)
  fit <- if (ordered) sem(model, data, std.lv = TRUE, ordered = TRUE, auto.cov.y = FALSE)
         else sem(model, data, std.lv = TRUE, auto.cov.y = FALSE, meanstructure = TRUE, fixed.x = FALSE, ...)
  p <- parameterEstimates(fit)
  p <- p[p$op == ":=", ]
  s <- "[]"
  if (scores) {
    f <- lavPredict(fit)
    if (is.list(f)) f <- do.call(rbind, lapply(f, function(m) m[1:5, , drop = FALSE])) else f <- f[1:5, , drop = FALSE]
    s <- paste0("[", paste(apply(f, 1, function(r) paste0("[", paste(number(r), collapse = ", "), "]")), collapse = ", "), "]")
  }
  more <- list(...)
  sprintf('{"rows": %s, "model": %s, "ordered": %s, "groups": %s, "equal": [%s], "missing": %s, "defined": [%s], "scores": %s}',
          quoted(rows), quoted(model), tolower(ordered), if (is.null(more$group)) "null" else quoted(more$group),
          if (length(more$group.equal)) paste(quoted(more$group.equal), collapse = ", ") else "",
          if (is.null(more$missing)) quoted("listwise") else quoted(more$missing),
          paste(sprintf("[%s, %s, %s]", quoted(p$lhs), number(p$est), number(p$se)), collapse = ", "), s)
}

two <- "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6"
fits <- c(
  answer("skewed", "f =~ a*y1 + a*y2 + b*y3\nh =~ y4 + c*y5 + y6\nd := a - b\nr := a/c + exp(b)"),
  answer("skewed", "f =~ y1 + y2 + y3\nh =~ y4 + y5 + y6\ny1 ~ m*1\ny2 ~ n*1\ngap := n - m"),
  answer("skewed", "f =~ c(a1, a2)*y1 + y2 + y3\nh =~ y4 + y5 + y6\ny4 ~ c(m1, m2)*1\ndiff := a2 - a1\nmeans := m2 - m1", group = "g"),
  answer("skewed", paste0(two, "\nh ~ c(p, q)*f\nless := p - q"), group = "g", group.equal = c("loadings", "intercepts"), scores = TRUE),
  answer("incomplete", paste0(two, "\nh ~ b*f\ntwice := 2*b"), missing = "fiml", scores = TRUE),
  answer("likert", "f =~ a*o1 + b*o2 + o3\nh =~ o4 + o5 + o6\nh ~ k*f\nab := a*b\nka := k*a", ordered = TRUE)
)
version <- paste0("lavaan ", packageVersion("lavaan"), ", R ", getRversion())
writeLines(sprintf('{"program": "%s", "date": "%s", "script": "lavaan_labels.R", "fits": [\n%s\n]}', version, Sys.Date(), paste(fits, collapse = ",\n")), given[2])

# Fits models in lavaan and writes what it says of each: N.measures.csv and N.parameters.csv, or N.error.
# Rscript random_models.R FOLDER, where the folder has calls.R, N.lav and the rows; tests/oracle/random_models.py writes it.
suppressMessages(library(lavaan))
folder <- commandArgs(TRUE)[1]
file <- function(...) file.path(folder, paste0(...))
known <- list()
rows <- function(name) {
  if (is.null(known[[name]])) known[[name]] <<- read.csv(file(name, ".csv"), check.names = FALSE)
  known[[name]]
}
wanted <- c("chisq", "df", "npar", "ntotal", "chisq.scaled", "logl", "aic", "bic", "rmsea", "cfi", "tli", "srmr",
            "rmsea.robust", "cfi.robust", "tli.robust")
number <- function(x) ifelse(is.na(x), "", sprintf("%.7g", x))

# sem() lets residuals of outcomes covary whatever auto.cov.y says, so what is not its own default goes to lavaan() itself.
of_sem <- list(int.ov.free = TRUE, int.lv.free = FALSE, auto.fix.single = TRUE, auto.var = TRUE, auto.cov.lv.x = TRUE,
               auto.efa = TRUE, auto.th = TRUE, auto.delta = TRUE, model.type = "sem")
fitted_by <- function(...) {
  given <- list(...)
  if (is.null(given$std.lv)) return(do.call("sem", given))
  do.call("lavaan", c(given, of_sem, list(auto.fix.first = !given$std.lv)))
}

# The table of parameters of a fit, to begin at other estimates: rows in any order, covariances either way round.
with_estimates <- function(fit, at) {
  at$group[is.na(at$group)] <- ""
  at$rhs[is.na(at$rhs)] <- ""
  table <- parTable(fit)
  labels <- lavInspect(fit, "group.label")
  group <- if (length(labels)) c("", labels)[table$group + 1] else rep("", length(table$lhs))
  key <- paste(group, table$lhs, table$op, table$rhs)
  other <- ifelse(table$op == "~~", paste(group, table$rhs, table$op, table$lhs), key)
  given <- paste(at$group, at$lhs, at$op, at$rhs)
  found <- match(key, given)
  found[is.na(found)] <- match(other, given)[is.na(found)]
  table$ustart <- ifelse(table$free > 0 & !is.na(found), at$est[found], table$ustart)
  as.list(table)[c("id", "lhs", "op", "rhs", "user", "block", "group", "free", "ustart", "exo", "label", "plabel")]
}

# With a matrix in place of rows `matrix` names the variables whose covariances are used.
answer <- function(id, name, matrix = NULL, ...) {
  model <- paste(readLines(file(id, ".lav")), collapse = "\n")
  fitted <- function(model) {
    if (is.null(matrix)) return(fitted_by(model, data = rows(name), ...))
    fitted_by(model, sample.cov = cov(rows(name)[matrix]), sample.nobs = nrow(rows(name)), ...)
  }
  fit <- tryCatch(suppressWarnings(fitted(model)), error = function(e) e)
  # From the estimates of N.start.csv, where there are any.
  if (file.exists(file(id, ".start.csv"))) {
    fit <- suppressWarnings(fitted(with_estimates(fit, read.csv(file(id, ".start.csv")))))
  }
  if (inherits(fit, "error")) return(writeLines(conditionMessage(fit), file(id, ".error")))
  if (!lavInspect(fit, "converged")) return(writeLines("not converged", file(id, ".error")))
  m <- suppressWarnings(fitMeasures(fit))
  m <- m[names(m) %in% wanted]
  proper <- suppressWarnings(lavInspect(fit, "post.check"))
  singular <- inherits(suppressWarnings(try(vcov(fit), silent = TRUE)), "try-error")
  # lavaan calls a model identified where its matrix of variances could be inverted.
  errors <- suppressWarnings(parTable(fit)$se)
  if (singular || all(is.na(errors) | errors == 0)) return(writeLines("no standard errors", file(id, ".error")))
  measures <- data.frame(name = c(names(m), "proper"), value = c(sprintf("%.9g", m), as.numeric(proper)))
  write.csv(measures, file(id, ".measures.csv"), row.names = FALSE, quote = FALSE)
  p <- suppressWarnings(parameterEstimates(fit, standardized = TRUE))
  labels <- lavInspect(fit, "group.label")
  p$group <- if (length(labels) && !is.null(p$group)) c("", labels)[p$group + 1] else ""
  p$se[is.na(p$se)] <- 0
  table <- data.frame(lhs = p$lhs, op = p$op, rhs = p$rhs, group = p$group,
                      est = number(p$est), se = number(p$se), std = number(p$std.all))
  write.csv(table, file(id, ".parameters.csv"), row.names = FALSE)
}
source(file("calls.R"))
writeLines(c(as.character(packageVersion("lavaan")), R.version.string), file("version.txt"))

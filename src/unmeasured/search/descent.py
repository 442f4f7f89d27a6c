"""Another way to the best class, for very many rows: down from a larger penalty.

With 20,000 answers every model is rejected, and the score at BIC's penalty has many local optima: whichever detail is
added first stands in the way of others. At a larger penalty only the large features pay, and going down from there adds
the details in the order of what they are worth::

    penalty    1  →  as if N were 1000  →  half way on a log scale  →  1
"""

from __future__ import annotations

import math
from dataclasses import replace

from unmeasured.data.sample import Sample
from unmeasured.search.bic import Best, BicSearch
from unmeasured.search.budget import BUDGET
from unmeasured.search.discovery import is_rejected, with_isolated
from unmeasured.search.model import model_of_class
from unmeasured.search.trace import Step, Steps
from unmeasured.sem.fit import fit_many


def best_from_above(search: BicSearch, penalty: float, steps: Steps) -> Best | None:
    """The best class found; with so many rows that it is rejected, also by way of larger penalties."""
    sample, clock = search.sample, search.clock
    is_asked = may_descend(sample, penalty) and not search.guidance.starts  # with starts it is near an answer already
    clock.lap(0.0, BUDGET.first_search if is_asked else 1.0)
    first = search.best(penalty, steps)
    if first is None or not is_asked:
        return first
    (fit,) = fit_many(
        [with_isolated(first.state.cpdag, sample.names)], sample, n_threads=search.n_threads, check=clock.check
    )
    if not is_rejected(fit):
        return first
    best, way = first, list[Step]()
    top = _penalty_of_few_rows(sample.n)
    stages = [top, math.sqrt(top * penalty), penalty]
    for done, at in enumerate(stages):
        if clock.measuring_is_over:
            return first
        clock.lap(
            *(BUDGET.first_search + (1.0 - BUDGET.first_search) * part / len(stages) for part in (done, done + 1))
        )
        start = model_of_class(with_isolated(best.state.cpdag, sample.names), sample.names)
        near, lap = replace(search, guidance=replace(search.guidance, starts=[start])), steps.lap()
        found = near.best(at, lap)
        if found is None or clock.measuring_is_over:
            return first
        best = found
        way += [replace(step, phase=f"At penalty {at:.3g}: {step.phase}") for step in lap]
    if best.value <= first.value:
        return first
    steps += way
    return best


def may_descend(sample: Sample, penalty: float = 1.0) -> bool:
    """Whether there are rows enough for it, and not so many variables that they are worked on in pieces."""
    return _penalty_of_few_rows(sample.n) >= BUDGET.far_penalty * penalty and len(sample.names) <= BUDGET.many_variables


def _penalty_of_few_rows(n: float) -> float:
    return math.log(BUDGET.few_rows) / BUDGET.few_rows * n / math.log(n)

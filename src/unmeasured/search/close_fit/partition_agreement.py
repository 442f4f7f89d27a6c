"""Agreement of the item partition of an exact model with those of replicates of the data.

::

    exact model ──► its partition of the items, beside those of replicates by as many factors ──► agreement
                        │ less than .9: it is said
                        ▼
                    rejected as well: the reproducible partitions (:mod:`unmeasured.search.close_fit.replicability`)
                    beside it

A model may fit well and still have latents that another sample would not show: with 75 rows a search finds two to five
latents behind the same variables. The partition of the model stays the selected one. Broad partitions are reproduced
more often, since two halves of the items are hard to mistake, but that does not make them right: among 25 simulated
factor models of 200 rows, made for this question, the latents of the model agreed with the true ones to .99, the
partition that is reproduced best to .87. Where the model holds, ten replicates and its own number of factors take a few
hundredths of a second; all partitions would take longer than the search.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from unmeasured.data.sample import Sample
from unmeasured.errors import Stopped
from unmeasured.models.exploratory import degrees_of_freedom
from unmeasured.search.budget import BUDGET
from unmeasured.search.canonical import canonical
from unmeasured.search.clock import Clock
from unmeasured.search.close_fit.replicability import Partition, Replicates, agreement_peaks, all_partitions
from unmeasured.search.discovery import Discovery
from unmeasured.search.item_partitions import ItemPartition, model_partitions, name_partition


def add_agreement(
    found: Discovery, sample: Sample, n_effective: float, clock: Clock, *, always: bool, seed: int = 0
) -> Discovery:
    """Add agreement to an exact-fit result; with ``always``, also other reproducible partitions.

    Groups of several latents have no partition into as many sets, and one latent has only one: whether such latents
    come back is not measured. Answers for which no time is left stay as they are.
    """
    if set(found.cpdag.variables.indicators) != set(sample.names):
        return found
    with suppress(Stopped), clock.listening():
        return _read(found, canonical(sample), n_effective, clock, always, seed)
    return found


def _read(found: Discovery, data: Sample, n_effective: float, clock: Clock, always: bool, seed: int) -> Discovery:
    graph = found.cpdag
    n_latents = sum(level == 0 for level in graph.levels.values())
    is_measured = (
        n_latents > 1
        and all(len(group) == 1 for group in graph.latent_groups)
        and degrees_of_freedom(len(data.names), n_latents) >= 0
    )
    if not is_measured and not always:
        return found
    own, *above = model_partitions(graph, found.fit)
    most = BUDGET.n_replicates if always else BUDGET.least_replicates
    replicates = Replicates(data.corr, n_effective, seed, check=clock.check_partition_time, most=most)
    if is_measured:
        own = _measured(own, data, replicates, n_latents)
    is_unstable = own.agreement < BUDGET.stable_agreement  # not where it was not measured
    words = (_in_words(own),) if is_unstable else ()
    found = replace(found, remarks=(*found.remarks, *words))
    if not always:
        return replace(found, partitions=(own, *above), selected_partition=0)
    numbers = {own.n_latents, *(level.n_latents for level in above)}
    levels = [level for level in agreement_peaks(all_partitions(replicates)) if level.n_factors not in numbers]
    merged = sorted([own, *above, *(_named(level, data, own) for level in levels)], key=lambda level: -level.n_latents)
    selected_partition = next(k for k, level in enumerate(merged) if level is own)
    return replace(found, partitions=tuple(merged), selected_partition=selected_partition)


def _measured(own: ItemPartition, data: Sample, replicates: Replicates, n_latents: int) -> ItemPartition:
    """Return the partition of the model with its agreement; an item that loads on no latent is alone."""
    latent = {item: name or f"alone {item}" for item, name in zip(own.items, own.latents, strict=True)}
    number = {name: k for k, name in enumerate(dict.fromkeys(latent.values()))}
    labels = np.array([number[latent[name]] for name in data.names], dtype=np.int64)
    agreement, agreement_se = replicates.agreement(labels, n_latents)
    return replace(own, agreement=agreement, agreement_se=agreement_se)


def _named(level: Partition, data: Sample, own: ItemPartition) -> ItemPartition:
    label = dict(zip(data.names, level.labels.tolist(), strict=True))
    latents = name_partition([label[item] for item in own.items], own.latents)
    return ItemPartition(own.items, latents, level.agreement, level.agreement_se)


def _in_words(own: ItemPartition) -> str:
    return (
        f"Which items belong together is not stable: in replicates of the data, factor analysis with {own.n_latents} "
        f"factors often groups them differently (mean adjusted Rand index {own.agreement:.2f}; 1 is always the same, 0 "
        f"is chance). um.stability shows which items change, LGES(tolerance={BUDGET.close_rmsea:g}) finds latents that "
        "are more stable."
    )

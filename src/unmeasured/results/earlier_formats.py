"""Translation on reading of files that earlier versions wrote: results, runs and records of replicates.

``KEYS`` has for each part of a file the keys that were renamed, old to new. A part is the way to it from the top::

    result                a result in JSON, with or without a run
    result.solution       what is under "solution" in it
    result.run.trace      each step under "trace" under "run"
    replicate.options     what is under "options" in a line of a file of replicates
    benchmark.options     the options of the method in a record of the benchmarks

Readers call :func:`present_result` or :func:`with_present_keys` first and then use the present keys only. Whoever
renames a key adds a row here, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OPTIONS = {"price_knowledge": "compare_without_knowledge", "residual_pairs": "residual_covariances"}

#: The format of results in JSON that is written now; 1 is that of 0.2.
FORMAT = 2

#: Part of a file -> {key in 0.2: present key}.
KEYS: Mapping[str, Mapping[str, str]] = {
    "result": {
        "named": "named_latents",
        "heads": "sign_indicators",
        "confirmed": "estimation_note",
        "levels": "item_partitions",
        "headline": "selected_partition",
    },
    "result.levels": {"error": "agreement_se"},
    "result.options": _OPTIONS,
    "result.solution": {"promised": "predicted_gain", "vanished": "zero_variance_latents"},
    "result.run.trace": {"n_remembered": "n_cached"},
    "result.run.groups": {"highest": "supported_step"},
    "replicate": {"groups": "latent_groups", "headline": "selected_partition"},
    "replicate.start": {"groups": "latent_groups"},
    "replicate.options": _OPTIONS,
    "benchmark.options": {"mended": "corrected", "keep_kernels": "cache_kernels"},
}


def with_present_keys(record: Any, part: str) -> Any:
    """Return a record of an earlier version with the present keys, in its parts too; what is no record stays.

    >>> with_present_keys({"heads": {}, "options": {"residual_pairs": True, "cor": "auto"}}, "result")
    {'sign_indicators': {}, 'options': {'residual_covariances': True, 'cor': 'auto'}}
    >>> with_present_keys({"groups": [], "start": {"groups": []}, "seed": 0}, "replicate")
    {'latent_groups': [], 'start': {'latent_groups': []}, 'seed': 0}
    """
    if isinstance(record, list):
        return [with_present_keys(entry, part) for entry in record]
    if not isinstance(record, dict) or not any(f"{known}.".startswith(f"{part}.") for known in KEYS):
        return record
    keys = KEYS.get(part, {})
    return {keys.get(key, key): with_present_keys(value, f"{part}.{key}") for key, value in record.items()}


def present_result(record: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a result, translated if an earlier version wrote it."""
    return dict(with_present_keys(record, "result")) if record.get("format") == 1 else record

"""Numbers of searches, fits and iterations while a case runs: a guard of speed that no other load disturbs.

Functions of the package that do the work are wrapped for the time of a case, wherever they were imported.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any

Count = dict[str, int]


@dataclass(frozen=True)
class Hook:
    """A function of the package, and what one call of it adds to the counts."""

    module: str
    function: str
    added: Callable[[tuple[Any, ...], Any], Count]


def _batch(arguments: tuple[Any, ...], _: Any) -> Count:
    """Return the problems and the iterations of a compiled batch: its sizes are argument 2, its steps argument 11."""
    return {"fits": len(arguments[2]), "iterations": int(arguments[11].sum())}


HOOKS = (
    Hook("unmeasured.search.pipeline", "discover_items", lambda a, r: {"searches": 1}),
    Hook("unmeasured.search.pipeline", "by_criterion", lambda a, r: {"searches by a criterion": 1}),
    Hook("unmeasured.search.climb", "climb", lambda a, r: {"climbs": 1}),
    Hook("unmeasured.kernels.batch", "fit_batch", _batch),
    Hook("unmeasured.models.factors", "_e_step", lambda a, r: {"rounds of EM": 1}),
    Hook("unmeasured.models.joint", "minimise", lambda a, r: {"joint fits": 1, "joint iterations": r.steps}),
    Hook("unmeasured.models.products", "derivatives", lambda a, r: {"large derivatives": 1}),
)


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Count while the block runs."""
    counts: Counter[str] = Counter()
    replaced: list[tuple[Any, str, Any]] = []
    try:
        for hook in HOOKS:
            original = getattr(import_module(hook.module), hook.function)
            wrapper = _counting(original, hook, counts)
            for module in [m for name, m in sys.modules.items() if name.split(".")[0] == "unmeasured"]:
                for name in [name for name, value in vars(module).items() if value is original]:
                    replaced.append((module, name, original))
                    setattr(module, name, wrapper)
        yield counts
    finally:
        for module, name, original in replaced:
            setattr(module, name, original)


_LOCK = Lock()


def _counting(original: Callable[..., Any], hook: Hook, counts: Counter[str]) -> Callable[..., Any]:
    def wrapper(*arguments: Any, **options: Any) -> Any:
        result = original(*arguments, **options)
        with _LOCK:
            counts.update(hook.added(arguments, result))
        return result

    return wrapper

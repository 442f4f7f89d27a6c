"""Watching a search from outside: the models it comes to, as it comes to them.

>>> seen = []
>>> with watched(lambda model, score: seen.append(model)):
...     show("a model", None)
>>> show("nobody looks at this", None)
>>> seen
['a model']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

# Takes a model and the score it was judged by: values of the same score can be compared.
Watcher = Callable[[Any, object], None]
_WATCHER: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watched(by: Watcher) -> Iterator[None]:
    """Every model that a search inside comes to is shown to ``by``; the search is the same as without."""
    before = _WATCHER.set(by)
    try:
        yield
    finally:
        _WATCHER.reset(before)


def show(model: Any, score: object) -> None:
    """Show a model to whoever watches."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher(model, score)

"""Libraries that only documents need, loaded when one is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unmeasured.errors import UnmeasuredError


def library(module: str, package: str, what: str) -> Any:
    """A module, or a sentence that says how to install it.

    >>> library("no_such_module", "no-such-package", "A document")
    Traceback (most recent call last):
    ...
    unmeasured.errors.UnmeasuredError: A document needs the package no-such-package: pip install 'unmeasured[publish]'.
    """
    try:
        return import_module(module)
    except ImportError:
        raise UnmeasuredError(f"{what} needs the package {package}: pip install 'unmeasured[publish]'.") from None

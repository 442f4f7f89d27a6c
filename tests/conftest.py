"""Makes shared test material importable from every test, and decides what Hypothesis draws.

What gates a change must not fail by chance: by default every property test draws the same examples each time.
``HYPOTHESIS_PROFILE=random`` draws others, ten times as many or more (CONTRIBUTING.md).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# With --import-mode=importlib pytest leaves sys.path alone, so we add this folder ourselves.
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))  # the programs that make notebooks and the site
sys.path.insert(0, str(Path(__file__).parents[1]))  # the package benchmarks, which stands beside src

from profiles import PROFILE, examples

settings.register_profile("fixed", derandomize=True, database=None, deadline=None, max_examples=examples(100))
settings.register_profile("random", derandomize=False, print_blob=True, deadline=None, max_examples=examples(100))
settings.load_profile(PROFILE)


@pytest.fixture(autouse=True)
def _level_of_messages() -> Iterator[None]:
    """Restore the level of messages, which a quiet command lowers if it is called past the entry point."""
    logger = logging.getLogger("unmeasured")
    level = logger.level
    yield
    logger.setLevel(level)

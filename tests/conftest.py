"""Makes modules of shared test material, such as ``graphs_zoo``, importable from every test."""

from __future__ import annotations

import sys
from pathlib import Path

# With --import-mode=importlib pytest leaves sys.path alone, so we add this folder ourselves.
sys.path.insert(0, str(Path(__file__).parent))

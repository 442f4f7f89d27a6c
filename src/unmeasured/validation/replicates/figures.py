"""Items that travel together, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from unmeasured.validation.replicates.result import Stability


def heat_map(stable: Stability) -> Figure:
    """How often two items share a group, items in the order of the groups."""
    order = stable.item_order()
    size = max(3.5, 0.24 * len(order) + 1.6)
    figure = Figure(figsize=(size + 0.9, size), layout="constrained")
    axes = figure.subplots()
    image = axes.imshow(stable.coassignment.loc[order, order], vmin=0, vmax=1, cmap="Blues")
    axes.set_xticks(range(len(order)), order, rotation=90, fontsize=8)
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_title(f"Part of {len(stable.outlines)} replicates in which two items share a group", fontsize=9)
    figure.colorbar(image, shrink=0.7)
    return figure

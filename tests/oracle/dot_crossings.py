"""How many crossings Graphviz's ``dot`` makes on the graphs of the drawing tests; its answers are stored beside it.

Run with Graphviz installed: ``python tests/oracle/dot_crossings.py``. Made with dot 2.43.0, 2026-11.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "unit" / "diagram")]
STORE = HERE / "dot_crossings.json"
_POINTS = 72.0


def dot_text(picture):
    """The nodes with their sizes and the edges, and no advice."""
    number = {node.id: k for k, node in enumerate(node for node in picture.nodes if not node.parent)}
    shape = {"latent": "ellipse", "observed": "box", "group": "box"}
    lines = [
        f'n{number[n.id]} [label="" fixedsize=true shape={shape[n.kind]} '
        f"width={n.width / _POINTS:.3f} height={n.height / _POINTS:.3f}];"
        for n in picture.nodes
        if not n.parent
    ]
    lines += [f"n{number[e.source]} -> n{number[e.target]};" for e in picture.edges]
    return "digraph {\n" + "\n".join(lines) + "\n}\n"


def dot_lines(picture):
    """The edges as dot draws them: its splines in pieces."""
    answer = subprocess.run(["dot", "-Tplain"], input=dot_text(picture), capture_output=True, text=True, check=True)
    lines = []
    for row in answer.stdout.splitlines():
        words = row.split()
        if words[0] == "edge":
            n = int(words[3])
            points = np.array(words[4 : 4 + 2 * n], dtype=float).reshape(n, 2)
            lines.append(_spline(points))
    return lines


def _spline(points, pieces=16):
    t = np.arange(1, pieces + 1)[:, None] / pieces
    line = [points[:1]]
    for k in range(0, len(points) - 1, 3):
        a, b, c, d = points[k : k + 4]
        line.append((1 - t) ** 3 * a + 3 * t * (1 - t) ** 2 * b + 3 * t**2 * (1 - t) * c + t**3 * d)
    return np.concatenate(line)


def main():
    import criteria
    import models

    from unmeasured.results.drawing import picture_of

    counts = {}
    for name, make in models.everyone():
        for view in ("full", "latents"):
            picture = picture_of(make(), view, min_loading=0.0, pairs=True)
            counts[f"{name}:{view}"] = criteria.crossings(dot_lines(picture))
            ours = criteria.crossings(criteria.routes(picture))
            print(f"{name}:{view}  dot {counts[f'{name}:{view}']}  ours {ours}", flush=True)
    STORE.write_text(json.dumps(counts, indent=0) + "\n")


if __name__ == "__main__":
    main()

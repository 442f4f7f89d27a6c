"""What makes a drawing readable, computed from its geometry: nothing here knows how it was made."""

from __future__ import annotations

import numpy as np

from unmeasured.diagram.picture import LABEL_FONT, sampled, text_width


def boxes(picture):
    """Names and rectangles of every node that is not inside of another."""
    for node in picture.nodes:
        if not node.parent:
            w, h = node.width / 2, node.height / 2
            yield node.id, (node.x - w, node.y - h, node.x + w, node.y + h)


def labels(picture):
    """Every label's edge and rectangle: those of edges, then the entries of the legend and the remark."""
    for edge in picture.edges:
        if edge.label:
            x, y = edge.label_at
            half = text_width(edge.label, LABEL_FONT) / 2
            yield edge, (x - half, y - LABEL_FONT / 2, x + half, y + LABEL_FONT / 2)
    for key in picture.legend:
        yield None, (key.x, key.y - 6.0, key.x + 26.0 + text_width(key.text, LABEL_FONT), key.y + 6.0)
    for k, line in enumerate(picture.remark):
        y = picture.remark_y + 1.2 * LABEL_FONT * k
        yield None, (14.0, y - LABEL_FONT / 2, 14.0 + text_width(line, LABEL_FONT), y + LABEL_FONT / 2)


def overlapping(rectangles):
    """Pairs of rectangles that share more than a border."""
    r = np.array(rectangles, dtype=float).reshape(-1, 4)
    apart = (r[:, None, 0] >= r[None, :, 2] - 1e-6) | (r[:, None, 1] >= r[None, :, 3] - 1e-6)
    hit = ~(apart | apart.T)
    return [(i, j) for i, j in zip(*np.nonzero(np.triu(hit, 1)))]


def routes(picture):
    return [np.array(sampled(edge.points, picture.flow, 16)) for edge in picture.edges]


def under_nodes(picture):
    """Edges that pass under a node they do not touch."""
    found = []
    rectangles = dict(boxes(picture))
    for edge, line in zip(picture.edges, routes(picture)):
        for name, (left, top, right, bottom) in rectangles.items():
            if name in (edge.source, edge.target):
                continue
            inside = (line[:, 0] > left) & (line[:, 0] < right) & (line[:, 1] > top) & (line[:, 1] < bottom)
            if inside.any():
                found.append((edge.source, edge.target, name))
    return found


def strange_labels(picture):
    """Labels that are nearer to another edge than to their own, or lie on one."""
    lines, found = routes(picture), []
    for k, edge in enumerate(picture.edges):
        if not edge.label:
            continue
        far = [_distance(line, edge.label_at) for line in lines]
        if far[k] > 0.5 or min([d for i, d in enumerate(far) if i != k], default=9e9) <= far[k] + 0.5:
            found.append((edge.source, edge.target))
    return found


def _distance(line, point):
    """From a point to a broken line."""
    a, b = line[:-1], line[1:]
    step = b - a
    length = np.maximum((step**2).sum(axis=1), 1e-12)
    t = np.clip(((point - a) * step).sum(axis=1) / length, 0.0, 1.0)
    return float(np.sqrt(((a + t[:, None] * step - point) ** 2).sum(axis=1)).min())


def crossings(lines):
    """How often broken lines cross one another; touching at a common end is no crossing."""
    total = 0
    boxes = [(*line.min(axis=0), *line.max(axis=0)) for line in lines]
    for i, first in enumerate(lines):
        for j in range(i):
            a, b = boxes[i], boxes[j]
            if a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]:
                total += _crossings_of(first, lines[j])
    return total


def _crossings_of(first, second):
    p, r = first[:-1, None], (first[1:] - first[:-1])[:, None]
    q, s = second[None, :-1], (second[1:] - second[:-1])[None]
    cross = r[..., 0] * s[..., 1] - r[..., 1] * s[..., 0]
    with np.errstate(divide="ignore", invalid="ignore"):
        d = q - p
        t = (d[..., 0] * s[..., 1] - d[..., 1] * s[..., 0]) / cross
        u = (d[..., 0] * r[..., 1] - d[..., 1] * r[..., 0]) / cross
    hit = (cross != 0) & (t >= 0) & (t < 1) & (u >= 0) & (u < 1)
    return int(hit.sum())

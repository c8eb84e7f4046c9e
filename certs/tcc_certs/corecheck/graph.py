"""Graphs of residuals: which of them lead to an end, and an order from the ends up.

Cost: linear in the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Edges: TypeAlias = "list[list[tuple[int, int]]]"  # by residual, pairs of a letter and a residual


def reaching(stops: Sequence[bool], edges: Edges) -> list[bool]:
    """Which of them reach one where a plan may stop."""
    sources: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        for _, target in row:
            sources[target].append(source)
    live = list(stops)
    todo = [residual for residual, stop in enumerate(stops) if stop]
    while todo:
        fresh = [source for source in sources[todo.pop()] if not live[source]]
        for source in fresh:
            if not live[source]:
                live[source] = True
                todo.append(source)
    return live


def targets_first(edges: Edges, live: Sequence[bool]) -> list[int]:
    """The live ones, each after all that it leads to; what is not live loses its edges.

    Those on a cycle, and those that lead to one, are not among them.
    """
    waits = [0] * len(edges)
    sources: list[list[int]] = [[] for _ in edges]
    for source, row in enumerate(edges):
        row[:] = [(letter, target) for letter, target in row if live[source] and live[target]]
        waits[source] = len(row)
        for _, target in row:
            sources[target].append(source)
    order = [residual for residual, wait in enumerate(waits) if live[residual] and not wait]
    for residual in order:  # grows as it is read
        for source in sources[residual]:
            waits[source] -= 1
            if not waits[source]:
                order.append(source)
    return order

"""A plan with the fewest edits: calls put in, taken out or replaced.

States of the graph times places in the sequence, the nearest first by what is sure to be needed
(the shortest and the longest that may follow), within a bound.
Cost: the edges of each pair that is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, TypeAlias

from tcc_runtime.questions.graph import PlanGraph

MOST_EDGES: Final = 1 << 21

_At: TypeAlias = "tuple[int, int]"  # state, calls of the sequence that are done with


def nearest_plan(
    graph: PlanGraph, calls: Sequence[str], *, prefix: bool = False, most: int = MOST_EDGES
) -> tuple[str, ...] | None:
    """An allowed plan with the fewest edits from `calls`; the beginning of one for `prefix`.

    Returns:
        None where there is no plan, or where more edges than `most` would be looked at.
    """
    if graph.root is None:
        return None
    return _Search(graph, calls, prefix).found(graph.root, most)


class _Search:
    def __init__(self, graph: PlanGraph, calls: Sequence[str], prefix: bool) -> None:
        self._graph = graph
        self._prefix = prefix
        number = {text: call for call, text in enumerate(graph.texts)}
        self._calls = [number.get(text, -1) for text in calls]

    def found(self, root: int, most: int) -> tuple[str, ...] | None:
        start = (root, 0)
        edits = {start: 0}
        came: dict[_At, tuple[_At, int | None]] = {}
        # What it comes to at least, what is behind (the farthest first), then in order of coming.
        todo: list[tuple[int, int, int, _At]] = [(self._needed(start), 0, 0, start)]
        count, done = 0, set[_At]()
        while todo:
            _, _, _, at = heappop(todo)
            if at in done:
                continue
            done.add(at)
            if self._ends(at):
                return self._read(at, came)
            for call, after, cost in self._ways(at):
                count += 1
                spent = edits[at] + cost
                if spent < edits.get(after, spent + 1):
                    edits[after] = spent
                    came[after] = at, call
                    heappush(todo, (spent + self._needed(after), -after[1], count, after))
            if count > most:
                return None
        return None

    def _ends(self, at: _At) -> bool:
        q, done = at
        return done == len(self._calls) and (self._prefix or self._graph.accepts(q))

    def _needed(self, at: _At) -> int:
        """Edits that there are at least, as what is left is too long or too short."""
        q, done = at
        left = len(self._calls) - done
        short = 0 if self._prefix else self._graph.fewest(q) - left
        return max(0, left - self._graph.rank(q), short)

    def _ways(self, at: _At) -> Iterator[tuple[int | None, _At, int]]:
        q, done = at
        ahead = self._calls[done] if done < len(self._calls) else None
        if ahead is not None:
            yield None, (q, done + 1), 1
        for call, target in self._graph.edges(q):
            if ahead is not None:
                yield call, (target, done + 1), int(call != ahead)
            yield call, (target, done), 1

    def _read(self, at: _At, came: dict[_At, tuple[_At, int | None]]) -> tuple[str, ...]:
        calls: list[str] = []
        while at in came:
            at, call = came[at]
            if call is not None:
                calls.append(self._graph.texts[call])
        return tuple(reversed(calls))

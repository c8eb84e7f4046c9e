"""An item's numbers again, along its path, by a finer rung.

Text: docs/spec/race.md, sections 5, 7, 14 and 18.  A winner's arrival is its source's times
weights, so a path costs products and sums along its winners, and an arrival where somebody on the
way did not win; these are kept, as many paths share them.
Cost: a winner on the way an addition or two; a drawn arrival what the rung takes for one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from tcc_runtime.errors import Undecided
from tcc_runtime.item import EDGE, ID, LEFT, SOURCE, VIEW, WORD, Item, mass_of
from tcc_runtime.states import Call

Published: TypeAlias = "tuple[int, int]"  # -ln t and the key, rounded, not clamped


class Finer(Protocol):
    """A rung that can be walked to."""

    def drawn(self, before: Any, calls: list[Call], word: int, mass: int, scale: int) -> Any:
        """E over ``mass * 2^-scale`` after an arrival times the weights of `calls`; None is 0."""

    def published(
        self, arrival: Any, calls: list[Call], cost: int, residual: int
    ) -> Published | None:
        """-ln t and the key of an arrival times the weights of `calls`; None: not decided.

        Args:
            cost: of the prefix, nano-units.
            residual: of the state, Q31.32; 0 at a leaf.
        """

    def exceeded(self, arrival: Any, calls: list[Call]) -> int | None:
        """U_P; None: not decided."""


class Path:
    """The ladder above one rung, for one run.

    Args:
        rungs: what to try, each made when it is wanted.
        fresh: whether every arrival is one of its own, as in the literal race.
        cost_of: the cost of an item's prefix, where it is not the sum of cost_low.
    """

    def __init__(
        self,
        rungs: list[Callable[[], Finer]],
        fresh: bool,
        cost_of: Callable[[Item], int] | None,
    ) -> None:
        self._make = rungs
        self._rungs: list[tuple[Finer, dict[bytes, tuple[Any, int]]]] = []
        self._fresh = fresh
        self._cost_of = cost_of

    def published(self, item: Item, cost: int | None = None) -> Published:
        """-ln t and the key of an item.

        Args:
            cost: of its prefix, where the caller knows it.

        Raises:
            Undecided: no rung decides.
        """
        view = item[VIEW]
        residual = 0 if view is None else view.state.residual
        if cost is None and self._cost_of is not None:
            cost = self._cost_of(item)
        for at in range(len(self._make)):
            rung, kept = self._rung(at)
            calls: list[Call] = []
            arrival, before = self._reached(item, calls, rung, kept)
            expected = before + sum([c.cost_low for c in calls]) if cost is None else cost
            found = rung.published(arrival, calls, expected, residual)
            if found is not None:
                return found
        raise Undecided("the last precision does not decide a rounding")

    def arrival_word(self, leaf: Item) -> int:
        """U_P of a leaf.

        Raises:
            Undecided: no rung decides.
        """
        for at in range(len(self._make)):
            rung, kept = self._rung(at)
            calls: list[Call] = []
            arrival, _ = self._reached(leaf, calls, rung, kept)
            found = rung.exceeded(arrival, calls)
            if found is not None:
                return found
        raise Undecided("the last precision does not decide an arrival")

    def _rung(self, at: int) -> tuple[Finer, dict[bytes, tuple[Any, int]]]:
        while at >= len(self._rungs):
            self._rungs.append((self._make[len(self._rungs)](), {}))
        return self._rungs[at]

    def _reached(
        self, item: Item, calls: list[Call], rung: Finer, kept: dict[bytes, tuple[Any, int]]
    ) -> tuple[Any, int]:
        """The drawn arrival that an item has its own from by winning all along, and its cost.

        Args:
            calls: gets those that won on the way.
        """
        pending: list[tuple[Item, list[Call]]] = []
        step: Item | None = item
        on_way = calls
        found: tuple[Any, int] | None = None
        while step is not None:
            word = step[WORD]
            if word is None or word < 0:
                call = step[EDGE][2]
                if call is not None:
                    on_way.append(call)
                step = step[SOURCE]
                continue
            found = kept.get(step[ID])
            if found is not None:
                break
            on_way = []
            pending.append((step, on_way))
            edge = step[EDGE]
            if edge is not None and edge[2] is not None:
                on_way.append(edge[2])
            step = step[SOURCE]
        arrival, cost = (None, 0) if found is None else found
        for step, on_way in reversed(pending):
            cost += sum([call.cost_low for call in on_way])
            mass, scale = _rate(step)
            # A fresh arrival owes nothing to the one before.
            before, weights = (None, []) if self._fresh else (arrival, on_way)
            arrival = rung.drawn(before, weights, step[WORD], mass, scale)
            kept[step[ID]] = arrival, cost
        return arrival, cost


def _rate(step: Item) -> tuple[int, int]:
    """The rate of a drawn arrival: mass / 2^scale."""
    view, left = step[VIEW], step[LEFT]
    if view is None:
        return 1, 0
    state = view.state
    return (state.count if left is None else mass_of(left, view)), state.scale

"""Small subsets that are enough: for statements that imply another, or that leave no plan together.

The question is monotone: what holds of a set holds of every larger one.
Cost: about k log(n/k) questions for an irreducible set of k among n; for a smallest one as many as
there are smaller sets, within a bound.
Source: Junker, QUICKXPLAIN: preferred explanations and relaxations, 2004.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from math import comb
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Test: TypeAlias = Callable[[Sequence[T]], bool]


def irreducible(items: Sequence[T], enough: Test[T]) -> list[T]:
    """Items that are enough, none of which can be left out, in their order.

    Args:
        items: all of them are enough.
    """
    if enough([]):
        return []
    found = _explain([], items, enough, fresh=False)
    return [item for item in items if any(item is other for other in found)]


def _explain(
    background: Sequence[T], items: Sequence[T], enough: Test[T], *, fresh: bool
) -> list[T]:
    if fresh and enough(background):
        return []
    if len(items) == 1:
        return list(items)
    left, right = items[: len(items) // 2], items[len(items) // 2 :]
    last = _explain([*background, *left], right, enough, fresh=True)
    return [*_explain([*background, *last], left, enough, fresh=bool(last)), *last]


def smallest(items: Sequence[T], enough: Test[T], most: int) -> tuple[list[T], bool]:
    """Of the smallest sets that are enough the first, and whether it is known to be that.

    Args:
        items: all of them are enough.
        most: questions that may be asked beyond those for an irreducible set.
    """
    found = irreducible(items, enough)
    asked = 0
    for size in range(1, len(found) + 1):
        asked += comb(len(items), size)
        if asked > most:
            return found, size == len(found)
        better = next(_enough(items, size, enough), None)
        if better is not None:
            return better, True
    return found, True


def _enough(items: Sequence[T], size: int, enough: Test[T]) -> Iterator[list[T]]:
    return (list(chosen) for chosen in combinations(items, size) if enough(chosen))

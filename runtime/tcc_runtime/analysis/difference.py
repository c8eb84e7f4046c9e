"""The plans that one artifact has and another lacks: the product of two graphs of plans.

Calls are identified by their canonical texts.  A pair of states represents the continuations of a
prefix that both artifacts have.  If one side has no further edge, the counts of the other side
apply.  No plan is enumerated.
Cost: for each pair of states that a prefix leads to, the edges of both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_runtime.analysis.graph import PlanGraph, Stored
from tcc_runtime.process import collection_put_off

MOST_EDGES: Final = 1 << 20  # about 300 bytes each, with the rows of both sides
_FAR: Final = 1 << 200  # beyond every sum of costs

Plan: TypeAlias = "tuple[str, ...]"
_Row: TypeAlias = "Sequence[tuple[int, int]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSided:
    """The plans that only one of two sides has.

    Attributes:
        plans: number of plans; None if a side has infinitely many.
        shortest: the plan with the fewest calls, the first in call order, or None.
        cheapest: the plan with the least cost, by the low costs of its side, or None.
    """

    plans: int | None
    shortest: Plan | None
    cheapest: Plan | None


def only_in(one: PlanGraph, other: PlanGraph, most_edges: int = MOST_EDGES) -> OneSided:
    """Return the plans of `one` that `other` lacks.

    Raises:
        Rejected: D201: the product has more than `most_edges` pairs of edges.
    """
    if one.root is None:
        return OneSided(plans=0, shortest=None, cheapest=None)
    with collection_put_off(True):  # creates a million rows, and no garbage
        return _Product(one, other, most_edges).answer()


class _Product:
    """The pairs of states, with the number of plans below each pair that only the first side has.

    A pair of states (q, p) has the code q * width + p + 1.  The remainder 0 means that the second
    side lacks the prefix.
    """

    def __init__(self, one: PlanGraph, other: PlanGraph, most: int) -> None:
        self._one, self._other = one, other
        self._width = 2 + (-1 if other.root is None else other.root)
        call_of = {text: call for call, text in enumerate(other.texts)}
        self._beside = [call_of.get(text, -1) for text in one.texts]
        self._ahead: dict[int, Mapping[int, int]] = {}
        self._rows: dict[int, _Row] = {}
        self._plans: dict[int, int] = {}
        self._fewest: dict[int, int] = {}
        self._least: dict[int, int] = {}
        beside = -1 if other.root is None else other.root
        self._root = (one.root or 0) * self._width + beside + 1
        if not self._in_arrays(most):
            self._find(most)
            self._sum()

    def _in_arrays(self, most: int) -> bool:
        """Compute the results of :meth:`_find` and :meth:`_sum` with arrays; return False if that
        is not possible.
        """
        one, other = self._one, self._other
        if not (isinstance(one, Stored) and isinstance(other, Stored)):
            return False
        if not (one.artifact.is_wide and other.artifact.is_wide):
            return False
        from tcc_runtime.artifact import pairs  # numpy

        found = pairs.pairs_of(one.artifact, other.artifact, self._beside, most)
        if found is None:
            raise _too_many(most)
        sums = pairs.plan_sums(found, one.artifact, other.artifact)
        if sums is None:
            return False
        codes, (plans, fewest, least) = found.codes.tolist(), sums
        self._plans = dict(zip(codes, plans.tolist(), strict=True))
        self._fewest = dict(zip(codes, fewest.tolist(), strict=True))
        self._least = dict(zip(codes, least.tolist(), strict=True))
        return True

    def _find(self, most: int) -> None:
        """Store the edges of every pair of two states."""
        rows, width = self._rows, self._width
        todo, edges = [self._root] if self._root % width else [], 0
        while todo:
            pair = todo.pop()
            if pair not in rows:
                row = rows[pair] = self._edges(pair)
                edges += 1 + len(row)
                if edges > most:
                    raise _too_many(most)
                todo.extend([to for _, to in row if to not in rows and to % width])

    def _edges(self, pair: int) -> _Row:
        """Return the edges of the first side in call order: the call, and the pair that it leads
        to.
        """
        q, p = divmod(pair, self._width)
        ahead, beside, width = self._targets(p - 1), self._beside, self._width
        return [(call, to * width + ahead.get(beside[call], 0)) for call, to in self._one.edges(q)]

    def _targets(self, p: int) -> Mapping[int, int]:
        """Return, for each call of the second side, its target plus one."""
        if p < 0:
            return {}
        found = self._ahead.get(p)
        if found is None:
            found = self._ahead[p] = {call: to + 1 for call, to in self._other.edges(p)}
        return found

    def _sum(self) -> None:
        """Compute the number of plans, the fewest calls and the least cost below each pair.

        The inner loop rarely calls a function, because a million edges are possible.
        """
        plans, fewest, least = self._plans, self._fewest, self._least
        price, known = self._one.cost_low, plans.get
        for pair in sorted(self._rows):
            total = int(self._stops(pair))
            few = cost = 0 if total else _FAR
            for call, target in self._rows[pair]:
                below = known(target)
                if below is None:
                    below = plans[target] = self._below(target)
                    if below:
                        fewest[target], least[target] = self._few(target), self._cost(target)
                if below:
                    total += below
                    if fewest[target] < few:
                        few = fewest[target] + 1
                    if price[call] + least[target] < cost:
                        cost = price[call] + least[target]
            plans[pair] = total
            if total:
                fewest[pair], least[pair] = few, cost

    def _stops(self, pair: int) -> bool:
        q, p = divmod(pair, self._width)
        return self._one.accepts(q) and not (p and self._other.accepts(p - 1))

    def _below(self, pair: int) -> int:
        q, p = divmod(pair, self._width)
        return self._plans[pair] if p else self._one.plans(q)

    def _few(self, pair: int) -> int:
        q, p = divmod(pair, self._width)
        return self._fewest[pair] if p else self._one.fewest(q)

    def _cost(self, pair: int) -> int:
        q, p = divmod(pair, self._width)
        return self._least[pair] if p else self._one.cost_to_go(q)

    def answer(self) -> OneSided:
        """Return the plans below the root that only the first side has."""
        plans = self._below(self._root)
        if not plans:
            return OneSided(plans=0, shortest=None, cheapest=None)
        return OneSided(
            plans=plans,
            shortest=self._first(self._few, [1] * len(self._one.texts)),
            cheapest=self._first(self._cost, self._one.cost_low),
        )

    def _first(self, of: Callable[[int], int], adds: Sequence[int]) -> Plan:
        """Return the first plan, in call order, with the least sum.

        Args:
            of: returns the least sum below a pair.
            adds: the amount that each call adds.
        """
        calls: list[str] = []
        pair, cost = self._root, of(self._root)
        while cost or not self._stops(pair):
            call, pair = next(
                (call, target)
                for call, target in self._rows.get(pair) or self._edges(pair)
                if self._below(target) and adds[call] + of(target) == cost
            )
            calls.append(self._one.texts[call])
            cost -= adds[call]
        return tuple(calls)


def _too_many(most: int) -> Rejected:
    return Rejected(Code.LIMIT, "plans", f"at most {most} pairs of edges", "more")

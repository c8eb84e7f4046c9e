"""Random plans, drawn independently and with replacement: uniformly, or in proportion to e^(-beta
cost).

A plan is drawn call by call: each child has a probability in proportion to the weighted number of
plans below it.  Weights are relative to the least cost below a state: e^(-beta (cost + least below
- least here)), between 0 and 1, as integer enclosures.  A uniform number has as many bits of a
keyed stream as are needed to decide which child it selects.  If a draw is undecided, it is repeated
with more bits on both sides.  So the distribution is exact, whatever the tilt, because no rounded
weight is used.  With beta 0 the distribution is uniform.
Cost: one pass over the edges; then a bisection for each call.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from blake3 import blake3

from tcc_certs.errors import Code, Rejected
from tcc_certs.race.enclosures import Beta, enclose_fraction, exp_enclosure, score
from tcc_runtime.analysis.graph import PlanGraph

UNIFORM: Final[Beta] = (0, 0)
_FIRST_BITS: Final = 128
_MOST_BITS: Final = 1 << 13

Plan: TypeAlias = "tuple[str, ...]"


def draws(graph: PlanGraph, beta: Beta, seed: bytes) -> Iterator[Plan]:
    """Yield plans without end, which depend only on the graph, beta and the seed.

    Raises:
        Rejected: D202: a draw is undecided at the greatest precision.  This needs numbers of plans
            of thousands of bits.
    """
    laws = _Laws(graph, beta)
    number = 0
    while graph.root is not None:
        yield _draw(graph, laws, graph.root, _key(seed, number))
        number += 1


def _key(seed: bytes, number: int) -> bytes:
    return blake3(b"tcc.draw.v1\x00" + number.to_bytes(8, "little") + seed).digest()


def _draw(graph: PlanGraph, laws: _Laws, q: int, key: bytes) -> Plan:
    calls: list[str] = []
    while True:
        child = laws.child(q, key, len(calls))
        row = graph.edges(q)
        if child == len(row):
            return tuple(calls)
        call, q = row[child]
        calls.append(graph.texts[call])


@dataclass(frozen=True, slots=True)
class _Shares:
    """Cumulated weights of the children of a state, as lower and upper ends; `stop` is last."""

    low: Sequence[int]
    high: Sequence[int]


class _Laws:
    """The distributions of the next call, at each precision that was needed."""

    def __init__(self, graph: PlanGraph, beta: Beta) -> None:
        self._graph = graph
        self._beta = beta
        self._at: dict[int, _Law] = {}

    def child(self, q: int, key: bytes, step: int) -> int:
        """Return the index of the child of `q` that is drawn at this step; the number of edges
        means `stop`.
        """
        bits = _FIRST_BITS
        while bits <= _MOST_BITS:
            law = self._at.get(bits)
            if law is None:
                law = self._at[bits] = _Law(self._graph, self._beta, bits)
            found = _decided(law.shares(q), _uniform(key, step, bits), bits)
            if found is not None:
                return found
            bits *= 2
        raise Rejected(Code.PRECISION, "a draw", f"decided with {_MOST_BITS} bits", "open")


def _uniform(key: bytes, step: int, bits: int) -> int:
    """Return the first bits of the uniform number of a step, the highest bit first."""
    stream = blake3(step.to_bytes(8, "little"), key=key)
    return int.from_bytes(stream.digest(bits >> 3), "big")


def _decided(shares: _Shares, word: int, bits: int) -> int | None:
    """Return the child whose share contains the interval (word .. word + 1) / 2^bits; None:
    undecided.
    """
    least = word * shares.low[-1]
    child = bisect_right(shares.high, least >> bits)
    if child == len(shares.high):
        return None
    begins = shares.high[child - 1] << bits if child else 0
    ends = (word + 1) * shares.high[-1]
    return child if begins <= least and ends <= shares.low[child] << bits else None


class _Law:
    """The weight below each state, at one precision."""

    def __init__(self, graph: PlanGraph, beta: Beta, bits: int) -> None:
        self._graph = graph
        self._beta = beta
        self._bits = bits
        self._factors: dict[int, tuple[int, int]] = {}
        self._whole: list[tuple[int, int]] = []
        self._known: dict[int, _Shares] = {}
        for q in range((graph.root or 0) + 1):
            low, high = 0, 0
            for one, other in self._children(q):
                low, high = low + one, high + other
            self._whole.append((low, high))

    def shares(self, q: int) -> _Shares:
        """Return the cumulated weights of the children of `q`."""
        found = self._known.get(q)
        if found is None:
            lows, highs, low, high = [], [], 0, 0
            for one, other in self._children(q):
                low, high = low + one, high + other
                lows.append(low)
                highs.append(high)
            found = self._known[q] = _Shares(lows, highs)
        return found

    def _children(self, q: int) -> Iterator[tuple[int, int]]:
        """Yield the weight of each edge of a state, in order; then that of stopping, if plans may
        stop there.
        """
        graph, bits = self._graph, self._bits
        least = graph.cost_to_go(q)
        for call, target in graph.edges(q):
            above = graph.cost_low[call] + graph.cost_to_go(target) - least
            (low, high), (one, other) = self._factor(above), self._whole[target]
            yield low * one >> bits, -(-high * other >> bits)
        if graph.accepts(q):
            yield self._factor(-least)

    def _factor(self, above: int) -> tuple[int, int]:
        """Return an enclosure of e^(-beta above) * 2^bits, for `above` >= 0 in nano-units."""
        found = self._factors.get(above)
        if found is None:
            found = self._factors[above] = _power(self._beta, above, self._bits)
        return found


def _power(beta: Beta, above: int, bits: int) -> tuple[int, int]:
    numerator, denominator = score(beta, above)
    if numerator == 0:
        return 1 << bits, 1 << bits
    if -numerator >= bits * denominator:  # e^-bits < 2^-bits
        return 0, 1
    low, high = exp_enclosure(enclose_fraction(numerator, denominator, bits + 32), bits + 32, bits)
    return max(0, low), min(1 << bits, high)

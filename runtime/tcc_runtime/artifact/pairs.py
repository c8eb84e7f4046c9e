"""Pairs of states that the same prefixes lead to in two large artifacts, as arrays.

What :mod:`tcc_runtime.analysis.difference` and :mod:`tcc_runtime.exact.search` find pair by pair,
a rank at a time: targets have lower ranks, so the pairs of a rank are all known once those of
higher ranks have been followed, and sums go back up the same way.  For artifacts
that are wide (:attr:`Artifact.is_wide`) alone.
Cost: a sort of the pairs and a search for each pair of edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.fastcheck.spans import column

Ints: TypeAlias = NDArray[np.int64]
Exact: TypeAlias = NDArray[Any]  # 64 bits, or integers of Python

FAR: Final = 1 << 61  # beyond every sum of 64 bits that is looked at


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """The pairs of two states, by their codes, with the edges of the first one.

    Attributes:
        width: a code is the first state times this, and one more than the second.
        codes: [pairs], increasing.
        first: [pairs + 1], where the edges of each begin.
        call: [edges], of the first artifact.
        code: [edges], of the pair that an edge leads to; with 0 for the second state where that
            has no such call.
        at: [edges], the pair's number; -1 where there is none.
        ends: where the pairs of each rank end, lowest rank first.
    """

    width: int
    codes: Ints
    first: Ints
    call: Ints
    code: Ints
    at: Ints
    ends: tuple[int, ...]

    def up(
        self, own: Exact, beside: Exact, best: np.ufunc, add: Exact | int, most: int | None = None
    ) -> Exact:
        """[pairs], what is put together from the edges of each, targets first.

        Args:
            own: [pairs], of a pair by itself.
            beside: [edges], of what follows an edge that the second has not.
            best: ``add``, ``minimum``.
            add: to what follows each edge.
            most: greater ones are brought down to it.
        """
        found = own.copy()
        for low, high in pairwise((0, *self.ends)):
            begin, end = int(self.first[low]), int(self.first[high])
            if begin == end:
                continue
            at = self.at[begin:end]
            ways = np.where(at < 0, beside[begin:end], found.take(at, mode="clip"))
            ways = ways + (add if isinstance(add, int) else add[begin:end])
            ways = best.reduceat(ways, self.first[low:high] - begin)
            ways = best(ways, own[low:high])
            found[low:high] = ways if most is None else np.minimum(ways, most)
        return found

    def edges(self, at: int) -> list[tuple[int, int]]:
        """The edges of a pair as (call, number of the pair that it leads to, or -1), in order."""
        some = slice(int(self.first[at]), int(self.first[at + 1]))
        return list(zip(self.call[some].tolist(), self.at[some].tolist(), strict=True))


def pairs_of(
    one: Artifact,
    other: Artifact,
    beside: Sequence[int],
    most_edges: int,
    most_pairs: int | None = None,
) -> Pairs | None:
    """The pairs that prefixes of plans of both lead to.

    Args:
        one, other: both :attr:`Artifact.is_wide`.
        beside: for each call of `one` that of `other`, -1 where it has none.
        most_edges: pairs and pairs of edges, together; each takes some 100 bytes.
        most_pairs: None: as many as there are.

    Returns:
        None where there are more.
    """
    start, call, target = _rows(one)
    others_start, others_call, others_target = _rows(other)
    degree, rank = np.diff(start), column(one.file, "rank")
    calls, same = other.manifest.calls, np.array(beside, dtype=np.int64)
    source = np.repeat(np.arange(other.manifest.states), np.diff(others_start))
    keys = source * calls + others_call  # increasing: rows are in call order
    width = other.root + 2
    waiting: list[list[Ints]] = [[] for _ in range(one.rank(one.root) + 1)]
    waiting[-1].append(np.array([one.root * width + other.root + 1], dtype=np.int64))
    found: list[tuple[Ints, Ints, Ints, Ints]] = []
    pairs = held = 0
    for codes in (_once(waiting[level]) for level in range(len(waiting) - 1, -1, -1)):
        q, p = np.divmod(codes, width)
        size = degree.take(q)
        pairs += len(codes)
        held += len(codes) + int(size.sum())
        if held > most_edges or (most_pairs is not None and pairs > most_pairs):
            return None
        rows = _spread(start.take(q), size)
        own, to = call.take(rows), target.take(rows)
        wanted = same.take(own)
        key = np.repeat((p - 1) * calls, size) + wanted
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        there = (wanted >= 0) & (keys.take(place) == key)
        code = to * width + np.where(there, others_target.take(place) + 1, 0)
        found.append((codes, size, own, code))
        ranks = rank.take(to[there])
        order = np.argsort(ranks, kind="stable")
        after, ranks = code[there][order], ranks[order]
        cuts = np.flatnonzero(np.diff(ranks)) + 1
        for some in np.split(after, cuts) if len(after) else ():
            waiting[int(rank[some[0] // width])].append(some)
    found.reverse()
    every, sizes, own, code = (np.concatenate(parts) for parts in zip(*found, strict=True))
    at = np.searchsorted(every, code)
    first = np.zeros(len(every) + 1, dtype=np.int64)
    np.cumsum(sizes, out=first[1:])
    ends = np.cumsum([len(codes) for codes, _, _, _ in found]).tolist()
    return Pairs(
        width=width,
        codes=every,
        first=first,
        call=own,
        code=code,
        at=np.where(code % width == 0, -1, at),
        ends=tuple(ends),
    )


def stops(pairs: Pairs, one: Artifact, other: Artifact) -> NDArray[np.bool_]:
    """[pairs], whether a plan may stop in the first state, and none in the second."""
    q, p = np.divmod(pairs.codes, pairs.width)
    accept, others = (column(artifact.file, "accept") != 0 for artifact in (one, other))
    found: NDArray[np.bool_] = accept.take(q) & ~others.take(p - 1)
    return found


def shortest_session(pairs: Pairs, one: Artifact, other: Artifact) -> tuple[list[int], bool] | None:
    """The first of the shortest sessions of the first artifact alone; None where there is none.

    Returns:
        its calls, and whether it may end there; else the last call is the one that is refused.
    """
    # Twice the calls of a session that may end, and one more where a last call is refused.
    refused = np.full(len(pairs.call), -1, dtype=np.int64)
    far = np.where(stops(pairs, one, other), 0, FAR)
    value = pairs.up(far, refused, np.minimum, 2, FAR)
    at, calls = len(value) - 1, list[int]()
    if value[at] == FAR:
        return None
    while value[at] > 1:
        left = int(value[at]) - 2
        call, at = next((c, to) for c, to in pairs.edges(at) if to >= 0 and value[to] == left)
        calls.append(call)
    if value[at]:
        calls.append(next(call for call, to in pairs.edges(at) if to < 0))
    return calls, not value[at]


def plan_sums(pairs: Pairs, one: Artifact, other: Artifact) -> tuple[Exact, Ints, Ints] | None:
    """[pairs], how many plans the first has alone, their fewest calls and their least cost.

    The two last are :data:`FAR` where there is none.  None where sums may leave 64 bits.
    """
    cost = column(one.file, "call_cost_low").astype(np.int64)
    if int(np.abs(cost).max()) * (one.rank(one.root) + 2) >= FAR >> 1:
        return None
    own, target = stops(pairs, one, other), pairs.code // pairs.width
    alone = pairs.at < 0
    states, where = np.unique(target[alone], return_inverse=True)
    kind = np.int64 if one.plans(one.root) < FAR else object
    plans = np.zeros(len(target), dtype=kind)
    plans[alone] = np.array([one.plans(q) for q in states.tolist()], dtype=kind)[where]
    far = np.where(own, 0, FAR)
    fewest = fewest_in(one).take(target)
    least = column(one.file, "cost_to_go").take(target)
    return (
        pairs.up(own.astype(np.int64).astype(kind), plans, np.add, 0),
        pairs.up(far, fewest, np.minimum, 1, FAR),
        _far(pairs.up(far, least, np.minimum, cost.take(pairs.call))),
    )


def _far(least: Ints) -> Ints:
    """Sums of costs to no plan are far, whatever was added on the way."""
    found: Ints = np.where(least > FAR >> 1, FAR, least)
    return found


def fewest_in(artifact: Artifact) -> Ints:
    """[states], the fewest calls that may still follow; kept as a list, as others need it."""
    kept = artifact.kept.get("fewest_calls")
    if isinstance(kept, list):
        return np.array(kept, dtype=np.int64)
    start, _, target = _rows(artifact)
    rank, accept = column(artifact.file, "rank"), column(artifact.file, "accept") != 0
    found = np.zeros(artifact.manifest.states, dtype=np.int64)
    ends = np.searchsorted(rank, np.arange(1, int(rank[-1]) + 2)).tolist()
    for low, high in pairwise(ends):
        begin, end = int(start[low]), int(start[high])
        ways = np.minimum.reduceat(found.take(target[begin:end]), start[low:high] - begin) + 1
        found[low:high] = np.where(accept[low:high], 0, ways)
    artifact.kept["fewest_calls"] = found.tolist()
    return found


def _rows(artifact: Artifact) -> tuple[Ints, Ints, Ints]:
    start, call, target = (
        column(artifact.file, f"edge_{name}").astype(np.int64)
        for name in ("start", "call", "target")
    )
    return start, call, target


def _once(parts: list[Ints]) -> Ints:
    found: Ints = np.unique(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.int64)
    return found


def _spread(first: Ints, sizes: Ints) -> Ints:
    """first[0], first[0]+1, .. (sizes[0] of them), first[1], .. and so on."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) + np.repeat(first - (ends - sizes), sizes)
    return found

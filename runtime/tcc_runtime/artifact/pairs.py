"""The pairs of states that the same prefixes lead to in two large artifacts, as arrays.

:mod:`tcc_runtime.analysis.difference` follows smaller artifacts pair by pair.  Here all pairs of a
rank are followed together.  Targets have lower ranks, so the pairs of a rank are complete once the
higher ranks have been followed.  Sums are computed in the other direction.  Both artifacts are wide
(:attr:`Artifact.is_wide`).
Cost: a sort of the pairs, and a search for each pair of edges.
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

FAR: Final = 1 << 61  # greater than every sum here


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairs:
    """The pairs of two states, by their codes, with the edges of the first one.

    Attributes:
        width: a code is first state * width + second state + 1.
        codes: [pairs], increasing.
        first: [pairs + 1], the index of the first edge of each pair.
        call: [edges], the call in the first artifact.
        code: [edges], the code of the pair that an edge leads to.  If the second artifact lacks the
            call, the code is a multiple of width.
        at: [edges], the index of this pair; -1 if the second artifact lacks the call.
        ends: the index after the last pair of each rank, lowest rank first.
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
        """Return a value for each pair, combined from the values after its edges; targets are
        computed first.

        Args:
            own: [pairs], the value of a plan that ends here.
            beside: [edges], the value after an edge that the second artifact lacks.
            best: combines values: ``add`` or ``minimum``.
            add: [edges] or one number; added to the value after each edge.
            most: the largest value; greater ones are replaced by it.
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


def pairs_of(
    one: Artifact,
    other: Artifact,
    beside: Sequence[int],
    most_edges: int,
) -> Pairs | None:
    """Return the pairs that common prefixes of plans lead to; None if there are too many.

    Args:
        one, other: both :attr:`Artifact.is_wide`.
        beside: the index in `other` of each call of `one`; -1 if `other` lacks it.
        most_edges: the most pairs plus pairs of edges; each takes about 100 bytes.
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
    size_so_far = 0
    for codes in (_once(waiting[level]) for level in range(len(waiting) - 1, -1, -1)):
        q, p = np.divmod(codes, width)
        size = degree.take(q)
        size_so_far += len(codes) + int(size.sum())
        if size_so_far > most_edges:
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
    """Return, for each pair, whether a plan may stop in the first state and not in the second."""
    q, p = np.divmod(pairs.codes, pairs.width)
    accept, others = (column(artifact.file, "accept") != 0 for artifact in (one, other))
    found: NDArray[np.bool_] = accept.take(q) & ~others.take(p - 1)
    return found


def plan_sums(pairs: Pairs, one: Artifact, other: Artifact) -> tuple[Exact, Ints, Ints] | None:
    """Return how many plans only the first artifact has, their fewest calls and least cost.

    Each is an array over the pairs.  The last two are `FAR` for a pair without such plans.
    None if sums may need more than 64 bits.
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
    """Replace sums that contain `FAR` by `FAR`."""
    found: Ints = np.where(least > FAR >> 1, FAR, least)
    return found


def fewest_in(artifact: Artifact) -> Ints:
    """Return the fewest calls that may follow each state; cached with the artifact as a list."""
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
    """Return first[0], first[0]+1, .. (sizes[0] numbers), then first[1], .. and so on."""
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    found: Ints = np.arange(total) + np.repeat(first - (ends - sizes), sizes)
    return found

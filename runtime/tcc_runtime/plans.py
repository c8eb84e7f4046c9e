"""Plans without a race: counted by length, listed in call order, looked up, drawn uniformly.

All of it walks the automaton and its counts; nothing lists plans to count them.
Plans are compared call by call, calls by the bytes of their text, and a plan that begins another
comes before it.
Cost: stands with each function; D is the longest plan, B the most edges of a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from blake3 import blake3

from tcc_runtime.load import Artifact


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """How far a sequence of calls can be followed.

    Attributes:
        position: calls that were taken, from the front.
        state: where they lead.
        allowed: whether the whole sequence is a plan.
    """

    position: int
    state: int
    allowed: bool


def plans_by_depth(artifact: Artifact) -> list[int]:
    """How many plans have 0, 1, .. d(root) calls; at most D passes over the edges."""
    found = []
    level = {artifact.root: 1}
    while level:
        found.append(sum(ways for q, ways in level.items() if artifact.accepts(q)))
        after: dict[int, int] = {}
        for q, ways in level.items():
            for _, target in artifact.edges(q):
                after[target] = after.get(target, 0) + ways
        level = after
    return found


def cheapest_plan(artifact: Artifact) -> tuple[str, ...]:
    """The plan of least cost, the first in call order among equals; D states are looked at."""
    q = artifact.root
    calls: list[str] = []
    while True:
        due = artifact.cost_to_go(q)
        if artifact.accepts(q) and due == 0:
            return tuple(calls)
        step = next(
            (
                (call, target)
                for call, target in artifact.edges(q)
                if artifact.cost_low[call] + artifact.cost_to_go(target) == due
            ),
            None,
        )
        if step is None:
            raise ValueError(f"no edge of state {q} attains its cost to go")
        calls.append(artifact.texts[step[0]])
        q = step[1]


def enumerate_plans(artifact: Artifact, limit: int | None = None) -> Iterator[tuple[str, ...]]:
    """The plans in call order, the first `limit` of them; at most D edges between two."""
    left = artifact.plans(artifact.root) if limit is None else limit
    calls: list[str] = []
    rows: list[Iterator[tuple[int, int]]] = []
    arrived: int | None = artifact.root
    while left > 0:
        if arrived is not None:
            if artifact.accepts(arrived):
                yield tuple(calls)
                left -= 1
            rows.append(iter(artifact.edges(arrived)))
        edge = next(rows[-1], None)
        if edge is not None:
            calls.append(artifact.texts[edge[0]])
            arrived = edge[1]
            continue
        rows.pop()
        if not rows:
            return
        calls.pop()
        arrived = None


def walk(artifact: Artifact, calls: Sequence[str]) -> Walk:
    """Follows `calls` from the root as far as they are edges; B a call."""
    q = artifact.root
    for position, text in enumerate(calls):
        index = artifact.call_index(text)
        target = next((t for call, t in artifact.edges(q) if call == index), None)
        if target is None:
            return Walk(position=position, state=q, allowed=False)
        q = target
    return Walk(position=len(calls), state=q, allowed=artifact.accepts(q))


def contains(artifact: Artifact, calls: Sequence[str]) -> bool:
    """Whether `calls` is a plan."""
    return walk(artifact, calls).allowed


def next_calls(artifact: Artifact, state: int) -> list[str]:
    """The calls that may come next in `state`, in order."""
    return [artifact.texts[call] for call, _ in artifact.edges(state)]


def plan_at(artifact: Artifact, index: int) -> tuple[str, ...]:
    """The plan with `index` plans before it in call order; at most D * B additions.

    Raises:
        IndexError: there are not that many.
    """
    q = artifact.root
    calls: list[str] = []
    if not 0 <= index < artifact.plans(q):
        raise IndexError(index)
    while True:
        if artifact.accepts(q):
            if index == 0:
                return tuple(calls)
            index -= 1
        for call, target in artifact.edges(q):
            below = artifact.plans(target)
            if index < below:
                calls.append(artifact.texts[call])
                q = target
                break
            index -= below
        else:
            raise ValueError(f"the counts of state {q} do not add up")


def uniform_plan(artifact: Artifact, seed: bytes, draw: int = 0) -> tuple[str, ...]:
    """A plan drawn uniformly: the `draw`-th of the sequence that `seed` determines.

    The index is exactly uniform: words of the least sufficient width are drawn until one is below
    the number of plans.
    """
    total = artifact.plans(artifact.root)
    bits = (total - 1).bit_length()
    size = -(-bits // 8)
    stream = blake3(b"tcc.sample.v1\x00" + seed + draw.to_bytes(8, "little"))
    at = 0
    while True:
        word = int.from_bytes(stream.digest(size, seek=at), "little") & ((1 << bits) - 1)
        if word < total:
            return plan_at(artifact, word)
        at += size

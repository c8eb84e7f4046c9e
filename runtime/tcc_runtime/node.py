"""A node of the prefix DAG as a run has it, and what an expansion drew.

Text: docs/spec/race.md, sections 2 and 5.  Millions of them: plain slots, filled by the race.
"""

from __future__ import annotations

from tcc_runtime.constraints import Held
from tcc_runtime.numbers import Real
from tcc_runtime.tables import Call, State


class Node:
    """A node of the prefix DAG, or a leaf; made once, when its parent is expanded.

    Attributes:
        parent: None at the root.
        call: the call that leads here; None at the root and at a leaf.
        state: None at a leaf.
        held: what the run's own constraints have seen; None where there are none.
        digest: D, or L at a leaf; 32 bytes.
        depth: calls of the prefix.
        cost: sum of their cost_low, nano-units.
        place: index among the parent's children, `stop` last.
        won: whether it is the winner of its parent.
        word: the PRF word of its arrival; None for a winner, and until it is drawn.
        time: t, as a working real.
        log, log_error: ln t in units of 2^-S and a bound of its error; until t is realised those of
            the arrival that the parent's bounds it by.
        key: its place in the frontier, published, Q64.64.
        neg_log_t: published, Q64.64; None until t is realised.
        value: V of a leaf, Q64.64, once it is known.
        clamp: whether one of the published numbers had to be clamped.
        after, units: in the rest race alone: the item whose arrival this one's is made from, None
            at the root; and the relative error of `time`, in units of 2^-p.
    """

    __slots__ = (
        "after",
        "call",
        "clamp",
        "cost",
        "depth",
        "digest",
        "held",
        "key",
        "log",
        "log_error",
        "neg_log_t",
        "parent",
        "place",
        "state",
        "time",
        "units",
        "value",
        "won",
        "word",
    )

    parent: Node | None
    call: Call | None
    state: State | None
    held: Held | None
    digest: bytes
    depth: int
    cost: int
    place: int
    won: bool
    word: int | None
    time: Real
    log: int
    log_error: int
    key: int
    neg_log_t: int | None
    value: int
    clamp: bool
    after: Node | None
    units: int


class Expansion:
    """What an expansion drew.

    Attributes:
        node: the node that was expanded.
        word: the winner's PRF word; None where no winner is drawn.
        winner: its place; None where a phantom won.
        children: those that were pushed, in canonical order.
        late: whether the node's own arrival was realised by this pop.
    """

    __slots__ = ("children", "late", "node", "winner", "word")

    def __init__(
        self,
        node: Node,
        word: int | None,
        winner: int | None,
        children: list[Node],
        late: bool = False,
    ) -> None:
        self.node = node
        self.word = word
        self.winner = winner
        self.children = children
        self.late = late

    @property
    def items(self) -> list[Node]:
        """What enters the frontier."""
        return self.children

    @property
    def dead_end(self) -> bool:
        """Whether none of the node's children was pushed, nor will be."""
        return not self.children


_STANDING = ("clamp", "cost", "key", "neg_log_t", "value", "word")


def standing(node: Node) -> dict[str, object]:
    """What a change of the race changes of a node, for :func:`restore`."""
    return {name: getattr(node, name) for name in _STANDING if hasattr(node, name)}


def restore(node: Node, before: dict[str, object]) -> None:
    """Gives a node back what it had."""
    for name, value in before.items():
        setattr(node, name, value)


def prefix(node: Node) -> tuple[str, ...]:
    """The calls that lead to `node`, first to last."""
    calls: list[str] = []
    step: Node | None = node
    while step is not None:
        if step.call is not None:
            calls.append(step.call.text)
        step = step.parent
    return tuple(reversed(calls))

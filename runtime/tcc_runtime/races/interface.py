"""The interface of a race for the loop, the uniforms of a run, and the checks of statements.

Text: docs/spec/race.md, sections 2, 5 and 12.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Protocol, TypeAlias, cast

from blake3 import blake3

from tcc_certs.statements import Constraints, StatementSteps
from tcc_runtime.artifact.constraints import Held
from tcc_runtime.item import SOURCE, VIEW, Item
from tcc_runtime.numbers.rung import KEY_CLAMP, SHOWN_CLAMP, Rung
from tcc_runtime.states import Edge, View

# The popped item; the drawn word and place; the pushed children; the remainder or None. The last
# member is True if no child of the node was or will be pushed. The word is None if the race draws
# nothing. The place is None if nothing is drawn or if a phantom won.
Step: TypeAlias = "tuple[Item, int | None, int | None, Sequence[Item], Item | None, bool]"
Word: TypeAlias = Callable[[bytes], int]
Digest: TypeAlias = Callable[[bytes], bytes]
Digests: TypeAlias = Callable[[Iterable[bytes]], list[bytes]]


class Race(Protocol):
    """One realised race.

    Attributes:
        late: True if items other than the root are realised when they are popped.
        timed: True if -ln t of items other than the root is published when they are pushed.
        clamping: True if a published number may have to be clamped.
        shown: returns the published -ln t of an item, or None, and the clamp flags.
    """

    late: bool
    timed: bool

    @property
    def clamping(self) -> bool: ...

    @property
    def shown(self) -> Callable[[Item], tuple[int | None, int]]: ...

    def root(self) -> Item:
        """Return the root, as it is pushed."""

    def expand(self, item: Item) -> Step:
        """Return the step of popping a node.

        Raises:
            Undecided: a rounding stays open at the last precision; nothing was changed.
            Rejected: an unverified artifact leads out of its ranges.
        """

    def draw(self, item: Item) -> Step:
        """Return the step of popping the remainder of a node; raises as :meth:`expand` does."""

    def settle(self, leaf: Item) -> Item:
        """Return a popped leaf with minus its value as its order."""

    def leaf_word(self, leaf: Item) -> int:
        """Return U_P of a settled leaf."""

    def recost(self, item: Item, cost: int) -> Item:
        """Return the item at another cost of its prefix, or `item` itself if the cost is the
        same.
        """


class RunHashers:
    """The PRF and the digests of one run.  Each has its own hasher, so use them in one thread only.

    Args:
        key: K.

    Attributes:
        word: returns x of a purpose followed by an id.
        digest: BLAKE3 of one text.
        digests: BLAKE3 of each of several texts.
    """

    __slots__ = ("digest", "digests", "word")

    def __init__(self, key: bytes) -> None:
        self.word: Word = _words(key)
        self.digest: Digest
        self.digests: Digests
        self.digest, self.digests = _digests()


def _words(key: bytes) -> Word:
    hasher, from_bytes = blake3(key=key), int.from_bytes
    reset, update, digest = hasher.reset, hasher.update, hasher.digest

    def word(named: bytes) -> int:
        reset()
        update(named)
        return from_bytes(digest(8), "little")

    return word


def _digests() -> tuple[Digest, Digests]:
    hasher = blake3()
    reset, update, finish = hasher.reset, hasher.update, hasher.digest

    def digest(data: bytes) -> bytes:
        reset()
        update(data)
        found: bytes = finish()
        return found

    def digests(texts: Iterable[bytes]) -> list[bytes]:
        found = []
        for text in texts:
            reset()
            update(text)
            found.append(finish())
        return found

    return digest, digests


def held_after(steps: StatementSteps, edge: Edge) -> Held | None:
    """Return the state of the statements at a child, or None if a statement forbids the child."""
    call = edge[2]
    return steps.stopped() if call is None else steps[call.index]


def children_of(
    numbers: Rung, constraints: Constraints | None, view: View, held: Held | None
) -> tuple[Sequence[int], Sequence[Edge], Iterable[Held | None]]:
    """Return the allowed children of an opened view: places, edges, and states of the
    statements.
    """
    if not all(view.edges):
        for place, edge in enumerate(view.edges):
            if edge is None:
                numbers.edge(view, place)
    edges = cast("list[Edge]", view.edges)
    if constraints is None or held is None:
        return range(view.size), edges, repeat(held)
    steps = constraints.after(held)
    after = [held_after(steps, edge) for edge in edges]
    places = [place for place, kept in enumerate(after) if kept is not None]
    return places, [edges[place] for place in places], [after[place] for place in places]


def clamps(race: Race, item: Item, popped: bool) -> bool:
    """Return whether a number was clamped that the push of an item publishes, or its pop if
    `popped`.
    """
    bits = race.shown(item)[1]
    if not bits:
        return False
    if popped:
        return item[VIEW] is None or bits & SHOWN_CLAMP != 0
    return not race.late or item[SOURCE] is None or bits & KEY_CLAMP != 0

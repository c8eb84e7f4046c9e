"""What the loop asks of a race, the uniforms of a run, and what statements forbid.

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

# What was popped; the word and the place that were drawn from it, None where none is drawn or a
# phantom won; the children that are pushed; what is left; whether no child of the node was pushed,
# nor will be.
Step: TypeAlias = "tuple[Item, int | None, int | None, Sequence[Item], Item | None, bool]"
Word: TypeAlias = Callable[[bytes], int]
Digest: TypeAlias = Callable[[bytes], bytes]
Digests: TypeAlias = Callable[[Iterable[bytes]], list[bytes]]


class Race(Protocol):
    """One realised race.

    Attributes:
        late: whether an item other than the root is realised when it is popped.
        timed: whether -ln t of an item other than the root is published when it is pushed.
        clamping: whether a published number may have to be clamped.
        shown: of an item, -ln t as it is published, None where there is none; and what was clamped.
    """

    late: bool
    timed: bool

    @property
    def clamping(self) -> bool: ...

    @property
    def shown(self) -> Callable[[Item], tuple[int | None, int]]: ...

    def root(self) -> Item:
        """The root, as it is pushed."""

    def expand(self, item: Item) -> Step:
        """What the pop of a node makes.

        Raises:
            Undecided: a rounding stays open at the last precision; nothing was changed.
            Rejected: an unverified artifact leads out of its ranges.
        """

    def draw(self, item: Item) -> Step:
        """What the pop of the remainder of a node makes; errors as of :meth:`expand`."""

    def settle(self, leaf: Item) -> Item:
        """A leaf that is popped, its order minus its value."""

    def leaf_word(self, leaf: Item) -> int:
        """U_P of a leaf that was settled."""

    def recost(self, item: Item, cost: int) -> Item:
        """The same item at another cost of its prefix; itself where it is no other."""


class RunHashers:
    """The PRF and the digests of one run; each has a hasher, so not for two threads.

    Args:
        key: K.

    Attributes:
        word: x of a purpose and an id, in one.
        digest: BLAKE3.
        digests: BLAKE3 of each of some texts.
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
    """What is held at a child; None where a statement forbids it."""
    call = edge[2]
    return steps.stopped() if call is None else steps[call.index]


def children_of(
    numbers: Rung, constraints: Constraints | None, view: View, held: Held | None
) -> tuple[Sequence[int], Sequence[Edge], Iterable[Held | None]]:
    """The children of an opened view that are not forbidden: places, edges, and what is held."""
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
    """Return whether a number had to be clamped that the push of an item publishes, or its pop."""
    bits = race.shown(item)[1]
    if not bits:
        return False
    if popped:
        return item[VIEW] is None or bits & SHOWN_CLAMP != 0
    return not race.late or item[SOURCE] is None or bits & KEY_CLAMP != 0

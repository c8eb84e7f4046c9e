"""The items of an unrecorded run's frontier: an enclosure of a key, and where the item comes from.

Text: docs/spec/race.md, section 21.  An item is a tuple, as millions of them are made and compared,
and names its gauge and its source by number: so nearly all hold nothing but numbers and bytes, and
the garbage collector lets go of them at its first look.
What an expanded node has left in the rest race is the node's own record too: its children refer to
it as the node that it was.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from tcc_runtime.rest_item import Pool
from tcc_runtime.tables import State

LOW: Final = 0
NAME: Final = 1
GAUGE: Final = 4
LAST: Final = 5
SOURCE: Final = 6
CODE: Final = 7
MORE: Final = 8
LEAF = -1  # at GAUGE
ROOT = -1  # at SOURCE
WHOLE = -1  # at LAST: a node or a leaf, nothing of it drawn


class Left:
    """What is left of a node from its second draw on.

    Attributes:
        digest: D of the node.
        step: how many draws were before.
        mass: what is left.
        pool: the children before the latest draw.
    """

    __slots__ = ("digest", "mass", "pool", "step")

    def __init__(self, digest: bytes, step: int, mass: int, pool: Pool) -> None:
        self.digest = digest
        self.step = step
        self.mass = mass
        self.pool = pool


# LOW: a lower bound of minus the key, in units of Q64.64, and no lower than two error bounds below
# it.  NAME: D of a node, also of what is left of it after the first draw; later D and the step; L
# of a leaf.  tau.  beta*C - level in units of Q64.64.  GAUGE: the number of
# its state's, LEAF at a leaf.  LAST:
# the place of the latest draw; the number of children where that was a phantom; WHOLE.  SOURCE:
# the number, among the run's records, of what it was drawn from, ROOT at the root; for what is left
# after a further draw, of what was left before.
# CODE: its place; the complement of it where it was drawn from what was left of its parent or, in
# the coupled race, did not win.  MORE: of WHOLE the logarithm, in units of Q64.64, of what tau was
# multiplied by; else 0, or what is left.
Item: TypeAlias = tuple[float, bytes, float, float, int, int, int, int, float | Left]

# One whose key is known: minus the key, the id, the item.
Known: TypeAlias = tuple[int, bytes, Item]


def left_after_first(state: State, last: int) -> int:
    """The mass that the first draw leaves, in units of m."""
    masses = state.cumulative
    if last == len(masses):
        return masses[-1]
    return state.count - masses[last] + (masses[last - 1] if last else 0)

"""A child of a node as its state has it, and what is left of a node's children.

Normative text: docs/spec/race.md, sections 4, 5, 8 and 18.  Numbers are in units of 2^-96, each off
by less than :mod:`tcc_runtime.fastreplay.estimates` allows.  Made by
:mod:`tcc_runtime.fastreplay.tables`.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from tcc_certs.replay.language import States
from tcc_certs.replay.left import Children, Left


class Step(NamedTuple):
    """A call, or ``stop``.

    Attributes:
        text: canonical.
        suffix: what the digest of a child takes from it; None for ``stop``.
        weight, fraction_bits: W, 2^F of ``stop``; F.
        share: the residue of w (:mod:`tcc_certs.replay.shares`).
        lean: -ln w.
        low: -beta * cost_low, rounded down.
        cost_low, cost_high: nano-units.
        middle: of a record, from the call up to the digest.
    """

    text: str
    suffix: bytes | None
    weight: int
    fraction_bits: int
    share: int
    lean: int
    low: int
    cost_low: int
    cost_high: int
    middle: str


class Place(NamedTuple):
    """A state that a call leads to, or the leaf.

    Attributes:
        states: None for the leaf.
        race_count, unit: n = race_count / 2^unit.
        level: ln n + 96 ln 2: what -ln t is above the logarithm of n * t in units.
        ahead: what M is above -beta * C.
        opening, closing: of a record, before the uniform, and up to the index.
    """

    states: States | None
    race_count: int
    unit: int
    level: int
    ahead: int
    opening: str
    closing: str


class Child(NamedTuple):
    """A child of a node.

    Attributes:
        position: its index among the children.
        mass: in units of the children's masses.
        part: the residue of it that a node of weight 1 has (:mod:`tcc_certs.replay.shares`).
        step, place: what leads to it, and where.
    """

    position: int
    mass: int
    part: int
    step: Step
    place: Place


# A child; its suffix; its share of the parent's race count; its level; its lean; what M is above
# the parent's -beta * C; its opening and its middle; what its record has behind the parent's id.
Row: TypeAlias = "tuple[Child, bytes | None, int, int, int, int, str, str, str]"


# Of what is left: i, the same as digests take it, its share of what the draw was made from and its
# level, as of a child.
Entering: TypeAlias = "tuple[int, bytes, int, int]"


class Remainder(NamedTuple):
    """What is left of a node's children after a draw, and which one was drawn.

    Attributes:
        drawn: index of the child; None: a phantom was.
        row: that child, its share that of what the draw was made from; empty for a phantom.
        children: of the node.
        entering: what `rest` is made of; None where no child is left: no record tells of R then,
            and what is left of the mass is lost.
        mass, part: as of a child, of R.
        lost: the part of what the draw has lost: a drawn phantom mass, and R without children.
        lines: how many there are of what the draw pushes.
        left: R; None after a first draw, which `drawn` tells of any node at its state.
    """

    drawn: int | None
    row: tuple[Row, ...]
    children: Children
    entering: Entering | None
    mass: int
    part: int
    lost: int
    lines: int
    left: Left | None

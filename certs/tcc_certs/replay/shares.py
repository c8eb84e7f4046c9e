"""Shares of the root, omega * n, as residues modulo a prime.

Normative text: docs/spec/ledger.md, section 9.  That a node's mass is that of what it pushes and of
what is lost holds in integers wherever a node is popped, and implies coverage by induction from the
root.  The sum over the whole run, which shows that nothing that was pushed got lost or
counted twice on the way, is taken modulo 2^127 - 1: written out, omega has F bits for each call of
a path, and all of them together the square of the run.  A power of two is a rotation there, so
every product of the definition has its residue.
Cost: linear in the bits of a mass.
"""

from __future__ import annotations

from typing import Final

_EXPONENT: Final = 127
PRIME: Final = (1 << _EXPONENT) - 1


def share_of(weight: int, mass: int, unit: int) -> int:
    """The residue of omega * mass / 2^unit; of omega itself after a call of weight mass / 2^unit.

    Args:
        weight: omega, or what has its residue.
        mass: any integer.
    """
    return (weight * (mass % PRIME) << -unit % _EXPONENT) % PRIME

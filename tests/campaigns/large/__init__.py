"""Large inputs for the fuzzers: what small seeds with small edits never grow into.

Long lines and texts, deep nesting, many statements, huge numbers.  Sizes are drawn so that each
doubling is as likely as the one before: most are of some KB, some of a hundred.
"""

from __future__ import annotations

from random import Random


def drawn_size(rng: Random, least: int, most: int) -> int:
    """A size from `least` to `most`, each doubling as likely as the one before."""
    doublings = (most // least).bit_length() - 1
    return min(most, int(least * 2 ** (rng.random() * (doublings + 1))))

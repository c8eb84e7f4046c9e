"""How many draws are made by default, and how many in all."""

from __future__ import annotations

import os
from typing import Any

import pytest


def blocks(default: int, every: int) -> list[Any]:
    """The numbers of all blocks, those that are left to the campaign with its marker."""
    rest = range(default, every)
    return [*range(default), *[pytest.param(n, marks=pytest.mark.campaign) for n in rest]]


def cases(default: int, every: int) -> int:
    """How many draws a test makes, or how far apart they are; all with ``TCC_ALL_CASES=1``."""
    return every if os.environ.get("TCC_ALL_CASES") else default


def cuts(data: bytes) -> list[int]:
    """The sizes at which a ledger is cut: near the end of each line, and at each fifth byte.

    At each byte with ``TCC_ALL_CASES=1``.
    """
    ends = [at for at, byte in enumerate(data) if byte == ord("\n")]
    near = {at + by for at in ends for by in (-1, 0, 1)}
    return sorted({*range(0, len(data), cases(5, 1)), *near} - {len(data)})

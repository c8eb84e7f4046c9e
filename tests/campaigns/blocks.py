"""Blocks of draws, of which the first are made by default and the rest in the campaign."""

from __future__ import annotations

from typing import Any

import pytest


def blocks(default: int, every: int) -> list[Any]:
    """The numbers of all blocks, those that are left to the campaign with its marker."""
    rest = range(default, every)
    return [*range(default), *[pytest.param(n, marks=pytest.mark.campaign) for n in rest]]

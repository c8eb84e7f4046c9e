"""What a run may be told: the seed, the bound, how many plans, and where to stop.

Text: docs/spec/race.md, sections 6 to 8.  Everything else a run depends on is in the artifact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import parse_decimal
from tcc_runtime.errors import SettingsError


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of one run.

    Attributes:
        seed: 32 bytes; the race is a function of these and of the artifact.
        mode: ``exact``.
        keys: ``finalized``: a child is pushed with its own arrival.
        recipe: the bound, ``r1`` per-step envelope or ``r2`` monotone remainder.
        top: how many plans to find, k >= 1.
        max_expansions: stop before one more than that; None is no cap.
        max_seconds: stop once they have passed; None is no cap.
        count_bits: refuse race counts wider than that; 0 is no limit.
        alpha, eta: of the potential Phi, exact decimals, alpha >= 0, 0 < eta <= 1.

    Raises:
        SettingsError: one of them is out of its range.
    """

    seed: bytes
    mode: Literal["exact"] = "exact"
    keys: Literal["finalized"] = "finalized"
    recipe: Literal["r1", "r2"] = "r2"
    top: int = 1
    max_expansions: int | None = None
    max_seconds: float | None = None
    count_bits: int = 0
    alpha: str = "0"
    eta: str = "1"

    def __post_init__(self) -> None:
        _hold(len(self.seed) == 32, "seed", "32 bytes", f"{len(self.seed)} bytes")
        _hold(self.mode == "exact", "mode", "exact", self.mode)
        _hold(self.keys == "finalized", "keys", "finalized", self.keys)
        _hold(self.recipe in ("r1", "r2"), "recipe", "r1 or r2", self.recipe)
        _hold(1 <= self.top < 1 << 53, "top", "1 or more", self.top)
        cap = self.max_expansions
        _hold(cap is None or 1 <= cap < 1 << 53, "max_expansions", "1 or more", cap)
        seconds = self.max_seconds
        legal = seconds is None or (math.isfinite(seconds) and 0.001 <= seconds <= 1e12)
        _hold(legal, "max_seconds", "0.001 or more", seconds)
        _hold(0 <= self.count_bits < 1 << 53, "count_bits", "0 or more", self.count_bits)
        _hold(_decimal("alpha", self.alpha)[0] >= 0, "alpha", "0 or more", self.alpha)
        eta, places = _decimal("eta", self.eta)
        _hold(0 < eta <= 10**places, "eta", "above 0, at most 1", self.eta)

    @property
    def max_ms(self) -> int | None:
        """The time cap in whole milliseconds."""
        return None if self.max_seconds is None else max(1, round(self.max_seconds * 1000))


def _hold(holds: bool, field: str, expected: str, found: object) -> None:
    if not holds:
        raise SettingsError(field, expected, found)


def _decimal(field: str, text: str) -> tuple[int, int]:
    try:
        return parse_decimal(text, field, Code.LEDGER_SCHEMA)
    except Rejected:
        raise SettingsError(field, "an exact decimal, such as 0.25", text) from None

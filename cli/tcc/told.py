"""What a run may be told by name: the keyword arguments of :func:`tcc.search` and its like.

They are the fields of :class:`tcc_runtime.settings.Settings`, which says what they mean, without
the seed; a test holds the two together.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Literal, TypedDict

from tcc_runtime.settings import Ask, Keys, Mode, Race


class Told(TypedDict, total=False):
    """Settings of a run by name; what is left out keeps its default."""

    mode: Mode | None
    race: Race | None
    keys: Keys | None
    recipe: Literal["r1", "r2"]
    top: int
    inflate: str
    truncate: int | None
    tau: str
    max_expansions: int | None
    max_seconds: float | None
    count_bits: int
    alpha: str
    eta: str
    opening_salt: bytes | None
    beacon: bytes | None
    client_nonce: bytes | None
    ask: Ask | None
    price_cap: int | None
    sla_ms: int | None
    epsilon_cap: str | None
    price_weight: str
    latency_weight: str
    epsilon_weight: str


def require_known(function: str, told: Mapping[str, object]) -> None:
    """Every name is that of a setting.

    Raises:
        TypeError: one is not; it names the nearest.
    """
    for name in told:
        if name not in Told.__annotations__:
            near = difflib.get_close_matches(name, Told.__annotations__, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no setting {name!r}{hint}")

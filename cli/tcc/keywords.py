"""What a run may be told by name: the keyword arguments of :func:`tcc.search` and its like.

They are the fields of :class:`~tcc_runtime.terms.settings.Settings`, which says what they mean,
without the seed; a test holds the two together.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Literal, TypedDict, Union, get_args, get_origin, get_type_hints

from tcc_runtime.terms.settings import Ask, Keys, Mode, Race


class SettingsByName(TypedDict, total=False):
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
    after: list[str] | tuple[str, ...]


def require_known(function: str, told: Mapping[str, object]) -> None:
    """Every name is that of a setting, and every value of its type; ranges are for the settings.

    Raises:
        TypeError: it names the nearest name, or the types that are taken.
    """
    kinds = _kinds()
    for name, value in told.items():
        if name not in kinds:
            near = difflib.get_close_matches(name, kinds, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no setting {name!r}{hint}")
        # A bool is an int to Python, and never what is meant here.
        if isinstance(value, bool) or not isinstance(value, kinds[name]):
            due = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds[name])
            found = type(value).__name__
            raise TypeError(f"{function}() takes {due} for {name!r}, not {found}")


@cache
def _kinds() -> Mapping[str, tuple[type, ...]]:
    """For each setting the types of its values: names of modes and the like are texts."""
    found = {}
    for name, hint in get_type_hints(SettingsByName).items():
        kinds: list[type] = []
        for part in get_args(hint) if get_origin(hint) is UnionType else (hint,):
            for leaf in get_args(part) if get_origin(part) is Union else (part,):
                origin = get_origin(leaf) or leaf
                kinds.append(str if origin is Literal else origin)
        found[name] = (int, *kinds) if float in kinds else tuple(kinds)
    return found

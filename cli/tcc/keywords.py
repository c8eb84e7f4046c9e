"""What a run and a compilation may be told by name: keyword arguments of the library.

They are the options of the tables, :class:`tcc_runtime.terms.settings.Settings` without the seed
and :class:`tcc_compiler.options.Options`, which say what they mean.  Here they stand again because
a checker of types reads no table; a test holds them together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from tcc_runtime.terms.settings import Ask, Keys, Mode, Race
from tcc_runtime.terms.table import Option


class SettingsByName(TypedDict, total=False):
    """Settings of a run by name; what is left out keeps its default."""

    mode: Mode | None
    top: int
    recipe: Literal["r1", "r2"]
    keys: Keys | None
    race: Race | None
    inflate: str
    truncate: int | None
    tau: str
    alpha: str
    eta: str
    max_expansions: int | None
    max_seconds: float | None
    count_bits: int
    ask: Ask | None
    price_cap: int | None
    sla_ms: int | None
    epsilon_cap: str | None
    price_weight: str
    latency_weight: str
    epsilon_weight: str
    margin: str | None
    delta: str | None
    raw_input_dependent: bool
    opening_salt: bytes | None
    beacon: bytes | None
    client_nonce: bytes | None
    after: Sequence[str]


class OptionsByName(TypedDict, total=False):
    """Options of a compilation by name; what is left out keeps its default."""

    beta: str
    tilt: int
    max_states: int
    timeout: float | None
    count_bits: int | None
    relax: Sequence[str]
    round_counts: int | None


def require_known(function: str, told: Mapping[str, object], table: Iterable[Option]) -> None:
    """Every name is that of an option, and every value of its type; ranges are for others.

    Raises:
        TypeError: it names the nearest name, or the types that are taken.
    """
    options = {option.name: option for option in table}
    for name, value in told.items():
        if name not in options:
            near = difflib.get_close_matches(name, options, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no setting {name!r}{hint}")
        kinds = _kinds(options[name])
        # A bool is an int to Python, and never what is meant here.
        boolean = isinstance(value, bool) and bool not in kinds
        if boolean or not isinstance(value, kinds):
            expected = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            found = type(value).__name__
            raise TypeError(f"{function}() takes {expected} for {name!r}, not {found}")


def _kinds(option: Option) -> tuple[type, ...]:
    """The types of an option's values; texts where they are names of something, too."""
    several = {float: (int, float), tuple: (Sequence,)}
    kinds: tuple[type, ...] = several.get(option.kind, (option.kind,))
    if option.calls:  # one text is no sequence of calls
        kinds = (list, tuple)
    return (*kinds, type(None)) if option.optional else kinds

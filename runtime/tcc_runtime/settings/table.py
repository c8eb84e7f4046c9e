"""One table of options: the rows that the fields of a dataclass of options define.

A field's type defines its values, and its default the value if nothing is given.  Its metadata
define the rest:

- ``about``: a line of help.
- ``least``, ``above``, ``most`` and ``below``: the range of a number, or of the number of bytes.
- ``places``: the most decimal places.
- ``short``: another name for a command line and a request.
- ``metavar``: the name of a value in help.
- ``asking``: whether the option is about asking for the costs of calls.
- ``calls``: whether the value is a sequence of calls.

Cost: once for each dataclass, well below a millisecond.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import parse_decimal
from tcc_runtime.errors import SettingsError

_UNIONS = (Union, UnionType)
_MOST_SIZE: Final = (1 << 53) - 1
_MOST_SECONDS: Final = 1e12  # an integer may exceed all floats
_ALL_PLACES: Final = 40  # more than any exact decimal has


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """A row of the table.

    Attributes:
        name: of the field.
        kind: the type of its values, without None: bool, int, float, str, bytes or tuple (of
            texts).
        choices: the allowed texts; empty if any text is allowed.
        optional: whether it may be None.
        default: the value if nothing is given; None also if a value is required.
        about: a line of help.
        least, above, most, below: of the number, or of the number of bytes; None is no limit.
        places: most decimal places.
        short: its name for people, with underscores.
        metavar: the name of a value in help; None leaves it to the type.
        asking: whether the option is about asking for the costs of calls.
        calls: whether its texts are consecutive calls: one text on a command line.
    """

    name: str
    kind: type
    choices: tuple[str, ...]
    optional: bool
    default: Any
    about: str
    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    places: int = _ALL_PLACES
    short: str
    metavar: str | None = None
    asking: bool = False
    calls: bool = False

    def holds(self, number: float, one: int = 1) -> bool:
        """Return whether `number / one` is in range."""
        return (
            (self.least is None or number >= self.least * one)
            and (self.above is None or number > self.above * one)
            and (self.most is None or number <= self.most * one)
            and (self.below is None or number < self.below * one)
        )

    @property
    def range(self) -> str:
        """The range, for people."""
        if self.kind is bytes:
            same = self.least == self.most
            return f"{self.least} bytes" if same else f"{self.least} to {self.most} bytes"
        text = f"above {self.above}" if self.least is None else f"{self.least} or more"
        text += "" if self.most is None else f", at most {self.most}"
        text += "" if self.below is None else f", below {self.below}"
        return text if self.places == _ALL_PLACES else f"{text}, with at most {self.places} places"


def table_of(options: type) -> tuple[Option, ...]:
    """Return the rows of a dataclass of options: of each field with ``about``, in order."""
    hints = get_type_hints(options)
    return tuple(_row(at, hints[at.name]) for at in fields(options) if "about" in at.metadata)


def check_value(option: Option, value: Any) -> None:
    """Check that a value of the right type is in the range of its row.

    Raises:
        SettingsError: the value is out of the range.
    """
    if value is None and option.optional:
        return
    if option.choices:
        _hold(value in option.choices, option, " or ".join(option.choices), value)
    elif option.calls:
        calls = isinstance(value, tuple) and all(isinstance(call, str) for call in value)
        _hold(calls, option, "a list of calls", value)
    elif option.kind is bool:
        _hold(isinstance(value, bool), option, "true or false", value)
    elif option.kind is bytes:
        _hold(option.holds(len(value)), option, option.range, f"{len(value)} bytes")
    elif option.kind is str:
        number, places = _decimal(option.name, value)
        holds = option.holds(number, 10**places) and places <= option.places
        _hold(holds, option, option.range, value)
    else:
        most = _MOST_SECONDS if option.kind is float else _MOST_SIZE
        expected = f"at most {int(most)}" if value > most else option.range
        _hold(option.holds(value) and value <= most, option, expected, value)


def _hold(holds: bool, option: Option, expected: str, found: object) -> None:
    if not holds:
        raise SettingsError(option.name, expected, found)


def _decimal(name: str, text: str) -> tuple[int, int]:
    try:
        return parse_decimal(text, name, Code.LEDGER_SCHEMA)
    except Rejected:
        raise SettingsError(name, "an exact decimal, such as 0.25", text) from None


def _row(at: Field[Any], hint: Any) -> Option:
    leaves = list(_leaves(hint))
    first = next(leaf for leaf in leaves if leaf is not NoneType)
    return Option(
        name=at.name,
        kind=_kind(first),
        choices=tuple(text for leaf in leaves for text in _texts(leaf)),
        optional=NoneType in leaves,
        default=None if at.default is MISSING else at.default,
        **{"short": at.name, **at.metadata},
    )


def _kind(leaf: Any) -> type:
    if _texts(leaf):
        return str
    origin = get_origin(leaf)
    return tuple if origin is Sequence else origin or leaf


def _leaves(hint: Any) -> Iterator[Any]:
    if get_origin(hint) not in _UNIONS:
        yield hint
        return
    for part in get_args(hint):
        yield from _leaves(part)


def _texts(leaf: Any) -> tuple[str, ...]:
    return get_args(leaf) if get_origin(leaf) is Literal else ()

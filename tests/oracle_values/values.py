"""From JSON to the values that relations compare: kinds, places, and what is none or unknown.

A value is a pair of a kind and what it is: ``("s", text) ("n", Fraction) ("b", flag) ("t", ms)
("j", canonical text) ("z", None) ("l", (value, ..)) ("r", ((name, value), ..))``.  Values are equal
if they are the same pair.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from tests.oracle_values.language import Field, Type

Value: TypeAlias = "tuple[str, Any]"
NONE: Literal["none"] = "none"
UNKNOWN: Literal["unknown"] = "unknown"
State: TypeAlias = "Value | Literal['none', 'unknown']"

MISSING = object()  # there is nothing at the place
WRONG = object()  # a value of another type
MOST = 1000  # elements of a list


def is_known(state: State) -> bool:
    """Whether it is a value."""
    return not isinstance(state, str)


def number_of(value: Any) -> Fraction | None:
    """A whole number of 64 bits, or one that its nearest double prints back; None of all else."""
    if type(value) not in (int, float, Decimal):
        return None
    if type(value) is float and not math.isfinite(value):
        return None
    if type(value) is Decimal and not value.is_finite():
        return None
    exact = Fraction(Decimal(repr(value)) if type(value) is float else value)
    if type(value) is not float and exact.denominator == 1 and -(2**63) <= exact < 2**64:
        return exact
    try:
        near = float(exact)
    except OverflowError:
        return None
    return exact if math.isfinite(near) and Fraction(Decimal(repr(near))) == exact else None


def plain(value: Any) -> Value:
    """The value of a constant or of a listed value."""
    if value is None or isinstance(value, bool):
        return ("z", None) if value is None else ("b", value)
    if isinstance(value, str):
        return "s", value
    if isinstance(value, (list, tuple)):
        return "l", tuple(plain(item) for item in value)
    found = number_of(value)
    assert found is not None, value
    return "n", found


# Places.


def steps_of(field: Field) -> list[str]:
    """The steps of a field's pointer."""
    if field.place is None:
        return [field.name]
    if field.place == "":
        return []
    assert field.place[0] == "/"
    return [step.replace("~1", "/").replace("~0", "~") for step in field.place[1:].split("/")]


def at(value: Any, steps: Sequence[str]) -> Any:
    """What stands there; MISSING.  A ``*`` makes one list of what stands in each."""
    if not steps:
        return value
    step, rest = steps[0], steps[1:]
    if step == "*":
        if isinstance(value, dict):
            members = [value[name] for name in sorted(value)]
        elif isinstance(value, (list, tuple)):
            members = list(value)
        else:
            return MISSING
        found = [at(member, rest) for member in members]
        if any(one is MISSING for one in found):
            return MISSING
        return [item for one in found for item in one] if "*" in rest else found
    if isinstance(value, dict):
        return at(value[step], rest) if step in value else MISSING
    if isinstance(value, (list, tuple)):
        if step == "-1":
            return at(value[-1], rest) if value else MISSING
        if re.fullmatch("0|[1-9][0-9]*", step) and int(step) < len(value):
            return at(value[int(step)], rest)
    return MISSING


# Types.


def read(value: Any, field: Field) -> State | object:
    """The value of a field as it stands in JSON: a state (never unknown), or WRONG, or MISSING."""
    found = at(value, steps_of(field))
    if found is MISSING:
        return NONE if field.optional else MISSING
    if found is None and field.null:
        return NONE
    if field.values is not None:
        return listed(found, field)
    assert field.type is not None
    return typed(found, field.type)


def rest_of(field: Field) -> Value:
    """What is not listed: a value of its own kind, that is none of the listed ones."""
    return "*", tuple(plain(one) for one in field.values or ())


def listed(value: Any, field: Field) -> Value | object:
    """A listed value; ``*`` is a value of its own kind."""
    assert field.values is not None
    if isinstance(value, (dict, list, tuple)):
        return rest_of(field) if field.rest else WRONG
    if value is not None and not isinstance(value, (str, bool)) and number_of(value) is None:
        return rest_of(field) if field.rest else WRONG
    mine = plain(value)
    if mine in [plain(one) for one in field.values]:
        return mine
    return rest_of(field) if field.rest else WRONG


def typed(value: Any, kind: Type) -> Value | object:
    """A value of an open type, or WRONG."""
    match kind.kind:
        case "text":
            return ("s", value) if isinstance(value, str) and _text(value, kind) else WRONG
        case "integer" | "number":
            exact = None if isinstance(value, bool) else number_of(value)
            if exact is None or (kind.kind == "integer" and exact.denominator != 1):
                return WRONG
            within = kind.low is None or Fraction(kind.low) <= exact <= Fraction(kind.high)
            return ("n", exact) if within else WRONG
        case "flag":
            return ("b", value) if isinstance(value, bool) else WRONG
        case "json":
            text = canonical(value)
            most = 65536 if kind.high is None else kind.high
            return ("j", text) if text is not None and len(text.encode()) <= most else WRONG
        case "time" | "date":
            ms = moment(value, kind) if isinstance(value, str) else None
            return WRONG if ms is None else ("t", ms)
        case "list":
            return _list(value, kind)
        case "record":
            return _record(value, kind)
    raise AssertionError(kind)


def _text(value: str, kind: Type) -> bool:
    least = 0 if kind.low is None else kind.low
    most = 65536 if kind.high is None else kind.high
    if not least <= len(value) <= most or any("\ud800" <= char <= "\udfff" for char in value):
        return False
    return kind.pattern is None or re.fullmatch(kind.pattern, value) is not None


def _list(value: Any, kind: Type) -> Value | object:
    assert kind.of is not None
    most = MOST if kind.high is None else kind.high
    if not isinstance(value, (list, tuple)) or not (kind.low or 0) <= len(value) <= most:
        return WRONG
    items = [typed(item, kind.of) for item in value]
    if any(item is WRONG for item in items):
        return WRONG
    if kind.distinct and any(one == other for i, one in enumerate(items) for other in items[:i]):
        return WRONG
    return "l", tuple(items)


def _record(value: Any, kind: Type) -> Value | object:
    found: list[tuple[str, State | object]] = []
    for field in kind.fields:
        one = read(value, field)
        if one is MISSING or one is WRONG:
            return WRONG
        found.append((field.name, one))
    return "r", tuple(found)


def canonical(value: Any, depth: int = 64) -> str | None:
    """Canonical JSON: the same text for the same value; None where it has none."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        lone = any("\ud800" <= char <= "\udfff" for char in value)
        return None if lone else json.dumps(value, ensure_ascii=False)
    if depth == 0 and isinstance(value, (dict, list, tuple)):
        return None
    if isinstance(value, (list, tuple)):
        parts = [canonical(item, depth - 1) for item in value]
        return None if None in parts else f"[{','.join(part or '' for part in parts)}]"
    if isinstance(value, dict):
        pairs = [(canonical(name), canonical(value[name], depth - 1)) for name in sorted(value)]
        if any(None in pair for pair in pairs):
            return None
        return f"{{{','.join(f'{name}:{item}' for name, item in pairs)}}}"
    exact = number_of(value)
    return None if exact is None else decimal_text(exact)


def decimal_text(exact: Fraction) -> str:
    """A finite decimal, without an exponent and without zeros that say nothing."""
    places = 0
    while (exact * 10**places).denominator != 1:
        places += 1
    digits = str(abs(exact.numerator * 10**places // exact.denominator)).rjust(places + 1, "0")
    whole, part = digits[: len(digits) - places], digits[len(digits) - places :]
    return ("-" if exact < 0 else "") + whole + (f".{part}" if part else "")


_TIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"([Zz]|[+-][0-9]{2}:[0-9]{2})?"
)


def moment(text: str, kind: Type) -> int | None:
    """UTC milliseconds of a time or a date."""
    if kind.kind == "date":
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is None:
            return None
        day, clock, part, zone = text, "00:00:00", None, None
    else:
        found = _TIME.fullmatch(text)
        if found is None:
            return None
        day, clock, part, zone = found.groups()
        if clock.startswith("24"):  # midnight, to Python 3.14
            return None
    zone = zone or kind.zone or ("utc" if kind.kind == "date" else None)
    if zone is None:
        return None
    try:
        local = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
    except ValueError:
        return None
    ms = round(local.timestamp()) * 1000 + int((part or "0").ljust(3, "0")[:3])
    if zone in ("utc", "Z", "z"):
        return ms
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    if hours > 23 or minutes > 59:
        return None
    return ms - (1 if zone[0] == "+" else -1) * (hours * 60 + minutes) * 60_000

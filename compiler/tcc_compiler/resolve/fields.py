"""Open parameters and open answers of tools: their types, places and null.

Normative text: docs/spec/language.md, sections 2 and 5.  An open parameter has a type of the
kernel; a field of 1.2 has a place, null, or a type that 1.1 has not.  Cost: linear in the
declarations and the patterns of text, of which each has at most 1,000 positions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, written
from tcc_certs.values import declared as types
from tcc_certs.values.numbers import ensure_survives
from tcc_certs.values.text_pattern import parse
from tcc_certs.values.text_syntax import MAX_STEPS, ensure_quick, read_tree, size_of
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region
from tcc_compiler.language.syntax.words import OTHER_TYPES
from tcc_compiler.language.values import decimal_text
from tcc_compiler.resolve.parameters import declared_name, pointer_of

# Open parameters: what stands behind the semicolon of a tool, as the types of the kernel.

MAX_LENGTH = 1 << 20
DEFAULT_LENGTH = 65536
_TAKES = {
    "text": ("min", "max", "~"),
    "integer": ("..",),
    "number": ("..",),
    "flag": (),
    "json": ("max",),
}
_ONE = "take one of them away"
_WHOLE = "write whole numbers, or the type `number`"
_SHOWN = {"min": "`min n`", "max": "`max n`", "~": '`~ "pattern"`', "..": "`LOW .. HIGH`"}


def opened_of(
    tool: ast.ToolStatement, listed: Mapping[str, Region], report: Report
) -> tuple[types.OpenParameter, ...] | None:
    """The open parameters of a tool, None after an error.

    Args:
        listed: the names of its other parameters, and where they are declared.
    """
    opened: dict[str, types.OpenParameter] = {}
    names = dict(listed)
    sound = True
    for declared in tool.opened:
        report.tick()
        if isinstance(declared, ast.ParameterDeclaration):
            _report_listed(declared, report)
            sound = False
            continue
        name = declared.name
        sound &= declared_name(name, names, report)
        names.setdefault(name.text, name.region)
        if is_new_field(declared):
            continue
        kind = _type(declared, report)
        if kind is None:
            sound = False
        else:
            opened[name.text] = types.OpenParameter(
                name=name.text, type=kind, optional=declared.optional
            )
    return tuple(opened.values()) if sound else None


# Fields of 1.2: with a place, null, or a type that 1.1 has not; and open answers.


Kind: TypeAlias = "str | tuple[str, Any]"  # of values; ``("list", of)``, ``("record", fields)``


@frozen
class OpenField:
    """An open argument or answer, or an attribute of the session.

    Attributes:
        members: as the core has it.
        kind: of its values.
        new: no core of 1.1 has it.
    """

    name: str
    members: Mapping[str, Json]
    kind: Kind
    optional: bool
    new: bool


def is_new_field(declared: ast.OpenDeclaration) -> bool:
    """Whether a field has something that 1.1 does not know."""
    placed = declared.nullable is not None or declared.at is not None
    return placed or declared.type.text not in _TAKES


def fields_of(
    declarations: Sequence[ast.OpenDeclaration | ast.ParameterDeclaration],
    taken: Mapping[str, Region],
    report: Report,
    *,
    inside: bool = False,
) -> tuple[OpenField, ...] | None:
    """Open fields, in declared order; None after an error.

    Args:
        taken: names of other fields, and where they are declared.
        inside: they are those of a record, where no name begins an attribute.
    """
    names = dict(taken)
    found: list[OpenField] = []
    sound = True
    for declared in declarations:
        report.tick()
        if isinstance(declared, ast.ParameterDeclaration):
            _report_listed(declared, report)
            sound = False
            continue
        sound &= declared_name(declared.name, names, report, inside=inside)
        names.setdefault(declared.name.text, declared.name.region)
        field = _field(declared, report)
        if field is None:
            sound = False
        else:
            found.append(field)
    return tuple(found) if sound else None


def _field(declared: ast.OpenDeclaration, report: Report) -> OpenField | None:
    made = _made_type(declared, declared.made, report)
    at = pointer_of(declared.at, declared.name.text, report)
    if made is None or at is False:
        return None
    members, kind = made
    if declared.nullable is not None and not declared.optional:
        _report_null(declared.name, declared.nullable, report)
        return None
    if isinstance(at, str) and "*" in at.split("/") and kind[0] != "list":
        message = "a place with `*` is of many values"
        report.error("TCC317", declared.made.region, message, "give it the type `list of T`")
        return None
    whole: dict[str, Json] = {"name": declared.name.text, **members}
    whole |= {"at": at} if isinstance(at, str) else {}
    whole |= {"null": True} if declared.nullable is not None else {}
    whole |= {"optional": True} if declared.optional else {}
    return OpenField(
        name=declared.name.text,
        members=whole,
        kind=kind,
        optional=declared.optional,
        new=is_new_field(declared),
    )


def _report_null(name: ast.Word, region: Region, report: Report) -> None:
    message = "only a field that may be left out takes null for that"
    report.error("TCC317", region, message, f"write `{written(name.text)}?: ..`")


def _made_type(
    declared: ast.OpenDeclaration, made: ast.TypeTerm, report: Report
) -> tuple[Mapping[str, Json], Kind] | None:
    """The members of a type and the kind of its values; None after an error."""
    match made.name.text:
        case "list":
            return _list_type(declared, made, report)
        case "time" | "date":
            return _time_type(made, report)
        case "record":
            hint = "write `list of (f: text, ..)`, or a place: f: text at .."
            report.error("TCC317", made.region, "a record is an element of a list", hint)
            return None
        case kind:
            plain = ast.OpenDeclaration(
                name=declared.name,
                optional=False,
                type=made.name,
                parts=made.parts,
                made=made,
            )
            found = _type(plain, report)
            if found is None:
                return None
            parameter = types.OpenParameter(name=declared.name.text, type=found, optional=False)
            members = opened_json(parameter)
            kinds = {"integer": "number"}
            if not isinstance(members, dict):
                return None
            shown = {name: value for name, value in members.items() if name != "name"}
            return shown, kinds.get(kind, kind)


def _list_type(
    declared: ast.OpenDeclaration, made: ast.TypeTerm, report: Report
) -> tuple[Mapping[str, Json], Kind] | None:
    numbers = {"min": 0, "max": MAX_ELEMENTS}
    seen: set[str] = set()
    for part in made.parts:
        if part.kind in seen:
            message = f"a second `{part.kind}` of this list"
            report.error("TCC317", part.region, message, _ONE)
            return None
        seen.add(part.kind)
        if part.kind == "distinct":
            continue
        value = part.numbers[0].value
        if value.denominator != 1 or not 0 <= value <= MAX_ELEMENTS:
            message = f"`{part.kind}` of a list takes a whole number from 0 to {MAX_ELEMENTS}"
            report.error("TCC317", part.region, message, "write one in this range")
            return None
        numbers[part.kind] = value.numerator
    if numbers["min"] > numbers["max"]:
        message = "no list has so many elements at least and so few at most"
        report.error("TCC317", made.region, message, "write the smaller number behind `min`")
        return None
    inner = made.of
    if inner is None:
        return None
    if inner.name.text == "record":
        fields = fields_of(inner.fields, {}, report, inside=True)
        if fields is None:
            return None
        of: Mapping[str, Json] = {"type": "record", "fields": [dict(f.members) for f in fields]}
        kind: Kind = ("record", tuple((one.name, one.kind) for one in fields))
    else:
        found = _made_type(declared, inner, report)
        if found is None:
            return None
        of, kind = found
    members: dict[str, Json] = {"type": "list", **numbers, "of": dict(of)}
    members |= {"distinct": True} if "distinct" in seen else {}
    return members, ("list", kind)


def _time_type(made: ast.TypeTerm, report: Report) -> tuple[Mapping[str, Json], Kind] | None:
    members: dict[str, Json] = {"type": made.name.text}
    if made.zone is not None:
        zone = made.zone.value
        if zone != "utc" and not _ZONE.fullmatch(zone):
            message = f"{quote(zone)} is no zone"
            hint = 'write `utc`, or an offset: time "-05:00"'
            report.error("TCC317", made.zone.region, message, hint)
            return None
        members["zone"] = zone
    return members, "time"


def given_of(declared: ast.ParameterDeclaration, report: Report) -> OpenField | None:
    """A given attribute that lists its texts: a text with them as its pattern."""
    values = declared.domain.values
    texts = [types.json_of(value.text) for value in values]
    if declared.domain.ends or declared.domain.rest or not all(isinstance(t, str) for t in texts):
        message = "only texts are listed for what is given"
        hint = "write a type: most: integer 1 .. 5"
        report.error("TCC317", declared.domain.region, message, hint)
        return None
    at = pointer_of(declared.at, declared.name.text, report)
    if not declared_name(declared.name, {}, report) or at is False:
        return None
    if declared.nullable is not None and not declared.optional:
        _report_null(declared.name, declared.nullable, report)
        return None
    shown = [str(text) for text in texts]
    pattern = "|".join(re.sub(r"([^A-Za-z0-9_ ])", r"\\\1", text) for text in shown)
    most = max(map(len, shown))
    members: dict[str, Json] = {
        "name": declared.name.text, "type": "text", "min": 0, "max": most, "pattern": pattern,
    }  # fmt: skip
    members |= {"at": at} if isinstance(at, str) else {}
    members |= {"null": True} if declared.nullable is not None else {}
    members |= {"optional": True} if declared.optional else {}
    return OpenField(
        name=declared.name.text, members=members, kind="text", optional=declared.optional, new=True
    )


MAX_ELEMENTS = 1000
_ZONE = re.compile(r"[+-](?:[01][0-9]|2[0-3]):[0-5][0-9]")


def _report_listed(declared: ast.ParameterDeclaration, report: Report) -> None:
    name = written(declared.name.text)
    values = declared.domain.values
    if len(values) == 1 and values[0].text in OTHER_TYPES:
        meant = OTHER_TYPES[values[0].text]
        message = f"no type is called {quote(values[0].text)} here"
        report.error("TCC317", declared.domain.region, message, f"write `{meant}`")
        return
    hint = f"move it before the semicolon: ({name}: ..; ..)"
    if declared.domain.ends is not None:
        low, high = (decimal_text(end.value) for end in declared.domain.ends)
        hint += f", or write a type: {name}: integer {low} .. {high}"
    message = f"{quote(declared.name.text)} lists its values, and stands behind the semicolon"
    report.error("TCC317", declared.domain.region, message, hint)


def _type(declared: ast.OpenDeclaration, report: Report) -> types.OpenType | None:
    """The type with its limits, None after an error."""
    kind = declared.type.text
    parts: dict[str, ast.TypePart] = {}
    sound = True
    for part in declared.parts:
        if part.kind not in _TAKES[kind]:
            takes = " and ".join(_SHOWN[item] for item in _TAKES[kind])
            hint = f"{kind} takes {takes}" if takes else f"{kind} takes nothing more"
            message = f"{kind} takes no {_SHOWN[part.kind]}"
            report.error("TCC317", part.region, message, hint)
            sound = False
        elif part.kind in parts:
            report.error(
                "TCC317", part.region, f"a second {_SHOWN[part.kind]} of this parameter", _ONE
            )
            sound = False
        parts[part.kind] = part
    if not sound:
        return None
    match kind:
        case "text":
            return _text(parts, report)
        case "json":
            most = _length(parts.get("max"), DEFAULT_LENGTH, report)
            return None if most is None else types.JsonType(most=most)
        case "flag":
            return types.FlagType()
        case _:
            return _number(kind == "integer", parts.get(".."), report)


def _text(parts: Mapping[str, ast.TypePart], report: Report) -> types.TextType | None:
    least = _length(parts.get("min"), 0, report)
    most = _length(parts.get("max"), DEFAULT_LENGTH, report)
    pattern, sound = _pattern(parts.get("~"), report)
    if least is None or most is None or not sound:
        return None
    if least > most:
        part = parts["min"]
        hint = None if "max" in parts else f"without `max n` a text has at most {most} characters"
        message = f"no text has at least {least} characters and at most {most}"
        report.error("TCC317", part.region, message, hint)
        return None
    if pattern is not None and not _is_quick(pattern, most, parts, report):
        return None
    return types.TextType(least=least, most=most, pattern=pattern)


def _is_quick(pattern: str, most: int, parts: Mapping[str, ast.TypePart], report: Report) -> bool:
    """Whether a gate may be held up by a text of this pattern; else it is reported."""
    try:
        ensure_quick(pattern, most, "pattern")
    except Rejected:
        size = size_of(read_tree(pattern, "pattern"))
        where = parts["max"] if "max" in parts else parts["~"]
        message = (
            f"this pattern has {size} positions, and its texts up to {most} characters: "
            f"together more than {MAX_STEPS}, too much for one check"
        )
        hint = f"write `max {MAX_STEPS // size}` or less, or a shorter pattern"
        report.error("TCC323", where.region, message, hint)
        return False
    return True


def _length(part: ast.TypePart | None, default: int, report: Report) -> int | None:
    if part is None:
        return default
    value = part.numbers[0].value
    if value.denominator == 1 and 0 <= value <= MAX_LENGTH:
        return value.numerator
    message = f"`{part.kind}` takes a whole number from 0 to {MAX_LENGTH}"
    hint = "write one in this range"
    report.error("TCC317", part.numbers[0].region, message, hint)
    return None


def _pattern(part: ast.TypePart | None, report: Report) -> tuple[str | None, bool]:
    """The source of a pattern, and whether it is one."""
    if part is None or part.text is None:
        return None, True
    sound = pattern_is_sound(part.text, report)
    return part.text.value if sound else None, sound


def pattern_is_sound(text: ast.Text, report: Report) -> bool:
    """Whether a text is a pattern; else reported."""
    try:
        parse(text.value)
    except Rejected as refusal:
        message = f"this pattern of text is none: {refusal.mismatch}"
        hint = "the whole value has to match; there is no look-around and no back reference"
        report.error("TCC318", text.region, message, hint)
        return False
    return True


def _number(whole: bool, part: ast.TypePart | None, report: Report) -> types.NumberType | None:
    if part is None:
        return types.NumberType(whole=whole)
    low, high = part.numbers
    texts = [_end(end, whole, report) for end in part.numbers]
    if low.value > high.value:
        message = "this range is empty: its first end is above its last"
        report.error("TCC317", part.region, message, "write the smaller number first")
        return None
    if texts[0] is None or texts[1] is None:
        return None
    return types.NumberType(whole=whole, low=texts[0], high=texts[1])


def _end(end: ast.Number, whole: bool, report: Report) -> str | None:
    """The canonical decimal of the end of a range, None after an error."""
    if whole and end.value.denominator != 1:
        report.error("TCC317", end.region, "the ends of a range of integers are whole", _WHOLE)
        return None
    text = decimal_text(end.value)
    try:
        ensure_survives(text, "end", Code.CORE_SCHEMA)
    except Rejected:
        message = f"{quote(text)} has more digits than a number keeps, so no argument can be it"
        help_text = "write a whole number from -2^63 to 2^64 - 1, or one with at most 15 digits"
        report.error("TCC317", end.region, message, help_text)
        return None
    return text


def opened_json(parameter: types.OpenParameter) -> Json:
    """The member of ``open`` of the core."""
    members: dict[str, Json] = {"name": parameter.name}
    match parameter.type:
        case types.TextType(least=least, most=most, pattern=pattern):
            members |= {"type": "text", "min": least, "max": most}
            if pattern is not None:
                members["pattern"] = pattern
        case types.NumberType(whole=whole, low=low, high=high):
            members["type"] = "integer" if whole else "number"
            if low is not None and high is not None:
                members |= {"low": low, "high": high}
        case types.FlagType():
            members["type"] = "flag"
        case types.JsonType(most=most):
            members |= {"type": "json", "max": most}
    if parameter.optional:
        members["optional"] = True
    return members

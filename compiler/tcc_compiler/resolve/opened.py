"""Open parameters: what stands behind the semicolon of a tool, as the types of the kernel.

Normative text: docs/spec/language.md, section 5.  Cost: linear in the declarations and the patterns
of text, of which each has at most 1,000 positions.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.names import written
from tcc_certs.values.numbers import ensure_survives
from tcc_certs.values.text_pattern import parse
from tcc_certs.values.text_source import MAX_STEPS, ensure_quick, read_tree, size_of
from tcc_certs.values.types import (
    FlagType,
    JsonType,
    NumberType,
    OpenParameter,
    OpenType,
    TextType,
)
from tcc_compiler.language.ast.leaves import Number
from tcc_compiler.language.ast.statements import ToolStatement
from tcc_compiler.language.ast.tools import OpenDeclaration, ParameterDeclaration, TypePart
from tcc_compiler.language.decimals import decimal_text
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.words import OTHER_TYPES
from tcc_compiler.resolve.declared import declared_name

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
    tool: ToolStatement, listed: Mapping[str, Region], report: Report
) -> tuple[OpenParameter, ...] | None:
    """The open parameters of a tool, None after an error.

    Args:
        listed: the names of its other parameters, and where they are declared.
    """
    opened: dict[str, OpenParameter] = {}
    names = dict(listed)
    sound = True
    for declared in tool.opened:
        report.tick()
        if isinstance(declared, ParameterDeclaration):
            _report_listed(declared, report)
            sound = False
            continue
        name = declared.name
        sound &= declared_name(name, names, report)
        names.setdefault(name.text, name.region)
        kind = _type(declared, report)
        if kind is None:
            sound = False
        else:
            opened[name.text] = OpenParameter(name=name.text, type=kind, optional=declared.optional)
    return tuple(opened.values()) if sound else None


def _report_listed(declared: ParameterDeclaration, report: Report) -> None:
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


def _type(declared: OpenDeclaration, report: Report) -> OpenType | None:
    """The type with its limits, None after an error."""
    kind = declared.type.text
    parts: dict[str, TypePart] = {}
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
            return None if most is None else JsonType(most=most)
        case "flag":
            return FlagType()
        case _:
            return _number(kind == "integer", parts.get(".."), report)


def _text(parts: Mapping[str, TypePart], report: Report) -> TextType | None:
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
    return TextType(least=least, most=most, pattern=pattern)


def _is_quick(pattern: str, most: int, parts: Mapping[str, TypePart], report: Report) -> bool:
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


def _length(part: TypePart | None, default: int, report: Report) -> int | None:
    if part is None:
        return default
    value = part.numbers[0].value
    if value.denominator == 1 and 0 <= value <= MAX_LENGTH:
        return value.numerator
    message = f"`{part.kind}` takes a whole number from 0 to {MAX_LENGTH}"
    hint = "write one in this range"
    report.error("TCC317", part.numbers[0].region, message, hint)
    return None


def _pattern(part: TypePart | None, report: Report) -> tuple[str | None, bool]:
    """The source of a pattern, and whether it is one."""
    if part is None or part.text is None:
        return None, True
    source = part.text.value
    try:
        parse(source)
    except Rejected as refusal:
        message = f"this pattern of text is none: {_reason(refusal)}"
        hint = "the whole value has to match; there is no look-around and no back reference"
        report.error("TCC318", part.text.region, message, hint)
        return None, False
    return source, True


def _reason(refusal: Rejected) -> str:
    return f"expected {refusal.expected}, found {refusal.found}"


def _number(whole: bool, part: TypePart | None, report: Report) -> NumberType | None:
    if part is None:
        return NumberType(whole=whole)
    low, high = part.numbers
    texts = [_end(end, whole, report) for end in part.numbers]
    if low.value > high.value:
        message = "this range is empty: its first end is above its last"
        report.error("TCC317", part.region, message, "write the smaller number first")
        return None
    if texts[0] is None or texts[1] is None:
        return None
    return NumberType(whole=whole, low=texts[0], high=texts[1])


def _end(end: Number, whole: bool, report: Report) -> str | None:
    """The canonical decimal of the end of a range, None after an error."""
    if whole and end.value.denominator != 1:
        report.error("TCC317", end.region, "the ends of a range of integers are whole", _WHOLE)
        return None
    text = decimal_text(end.value)
    try:
        ensure_survives(text, "end", Code.CORE_SCHEMA)
    except Rejected:
        message = f"{quote(text)} is no value that a double holds, so no argument can be it"
        report.error("TCC317", end.region, message, "choose the nearest number with fewer digits")
        return None
    return text


def opened_json(parameter: OpenParameter) -> Json:
    """The member of ``open`` of the core."""
    members: dict[str, Json] = {"name": parameter.name}
    match parameter.type:
        case TextType(least=least, most=most, pattern=pattern):
            members |= {"type": "text", "min": least, "max": most}
            if pattern is not None:
                members["pattern"] = pattern
        case NumberType(whole=whole, low=low, high=high):
            members["type"] = "integer" if whole else "number"
            if low is not None and high is not None:
                members |= {"low": low, "high": high}
        case FlagType():
            members["type"] = "flag"
        case JsonType(most=most):
            members |= {"type": "json", "max": most}
    if parameter.optional:
        members["optional"] = True
    return members

"""The statement of an exact question, read with the tools of an artifact as a grammar has them.

Text: docs/proving.md.  Cost: that of reading a grammar of these tools and one statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from tcc.library import CompileError
from tcc_certs.core.model import Core, Parameter, PolicyMonitor, Tool
from tcc_certs.core.policies import Apart, Ban, Count, Let, LookUp, Need, Tree
from tcc_certs.core.reader import read_core
from tcc_certs.core.wording import Wording
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import Json, decode, encode, written
from tcc_certs.proof.question import statement_core as as_kernel_reads
from tcc_certs.values import fields
from tcc_certs.values.declared import FlagType, JsonType, NumberType, OpenParameter, TextType
from tcc_runtime.exact.atoms import OpenQuestion

_WORDS: Final = {"after", "before", "with", "same"}
_BEGIN: Final = {
    *("grammar", "use", "tool", "rule", "plan", "start", "goal"),
    *("limit", "require", "forbid", "accept", "reject", "expect"),
}
_TOKEN: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[A-Za-z_][A-Za-z0-9_]*|\s+|#[^\n]*|.', re.DOTALL)


def rewritten(text: str) -> str:
    """A statement of the language for one that begins with ``never``."""
    tokens = [token for token in _TOKEN.findall(text.strip()) if token[0] != "#"]  # no comments
    if not tokens or tokens[0] != "never":
        return text
    depth, parts, words = 0, [[]], list[str]()  # type: ignore[var-annotated]
    for token in tokens[1:]:
        depth += {"(": 1, ")": -1}.get(token, 0)
        if depth == 0 and token in _WORDS:
            words.append(token)
            parts.append([])
        else:
            parts[-1].append(token)
    said = ["".join(part).strip() for part in parts]
    if words not in (["after"], ["after", "same"]):
        return "forbid" + "".join(tokens[1:])
    first, second, *same = said
    turned = f"forbid {second} before {first}"
    return f"{turned} same {_turned(same[0])}" if same else turned


def _turned(same: str) -> str:
    """The pairs of ``same``, each the other way round."""
    pairs: list[list[str]] = [[""]]
    for token in _TOKEN.findall(same):
        if token == ",":
            pairs.append([""])
        elif token == "=":
            pairs[-1].append("")
        else:
            pairs[-1][-1] += token
    return ", ".join(" = ".join(side.strip() for side in reversed(pair)) for pair in pairs)


def statement_core(core: Core, statement: str, asked: str) -> tuple[Core, Json | None]:
    """The core with a statement and the tools of another core, and nothing else.

    Its companion is the JSON of a statement of version 1.2, else None.

    Raises:
        CompileError: the text is no statement about these tools.
    """
    from tcc_compiler.frontend import read_grammar_text

    if sum(token in _BEGIN for token in _TOKEN.findall(statement)) > 1:  # these are never names
        raise _no_statement(asked)
    tools = "\n".join(map(_tool_text, core.tools))
    given = "".join([f"given {_field_text(one)}\n" for one in core.given])
    lets: tuple[Let | LookUp, ...] = (*core.lets, *core.looks)
    learned = "".join([f"let {_learned_text(core, one)}\n" for one in lets])
    head = f'grammar asked version "1"\n{given}{tools}\n{learned}plan = any*\n'
    bare = read_grammar_text(head, "<tools>")
    front = read_grammar_text(f"{head}{statement}\n", "<statement>")
    if bare.core is None:
        raise OpenQuestion("P501", "the tools of this artifact cannot be written as a grammar")
    if front.core is None:
        raise CompileError(front.diagnostics)
    plans = [_plan(one) for one in (bare.core, front.core)]
    if _frame(front.core) != _frame(bare.core) or front.core == bare.core or plans[0] != plans[1]:
        # Of sets of calls some statements are part of the plan there: the kernel reads them, too.
        if _frame(front.core) == _frame(bare.core):
            try:
                return as_kernel_reads(core, "statement", statement), None
            except Rejected as unread:
                if plans[0] != plans[1]:
                    if monitor := _as_monitor(core, statement, asked):
                        return monitor
                    raise OpenQuestion("P501", f"{asked!r} is not covered: {unread}") from None
        raise _no_statement(asked)
    found = read_core(front.core)
    texts = [call.text for call in core.calls]
    known = {call.text: call for call in core.calls}
    if [tool.name for tool in found.tools] != [tool.name for tool in core.tools]:
        raise OpenQuestion("P501", "the tools of this artifact cannot be written as a grammar")
    if set(texts) - {call.text for call in found.calls}:
        raise OpenQuestion("P501", "the tools of this artifact cannot be written as a grammar")
    calls = tuple([known.get(call.text, call) for call in found.calls])
    later = any(isinstance(one, PolicyMonitor) for one in found.monitors)
    # What is not read is a statement about sets of calls.
    if not (later or _is_read(core, statement)) and (
        monitor := _as_monitor(core, statement, asked)
    ):
        return monitor
    return replace(found, tools=core.tools, calls=calls), _monitor(front.core) if later else None


def _no_statement(asked: str) -> CompileError:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Span

    nowhere = Span(file="<statement>", line=1, column=1, end_line=1, end_column=1)
    message = f"{asked!r} is no statement"
    return CompileError(
        (Diagnostic(code="TCC101", severity="error", message=message, span=nowhere),)
    )


def _as_monitor(core: Core, statement: str, asked: str) -> tuple[Core, Json | None] | None:
    """The core of a statement as a monitor of version 1.2, where that says the same of a session.

    A monitor does not know the answers of the call that it decides on, so a statement about calls
    with some answers would be broken by calls with others.
    """
    if statement.startswith("monitor "):
        return None
    try:
        found = statement_core(core, f"monitor {statement}", asked)
    except CompileError:  # its conditions are about such answers
        return None
    told = {
        (at, p.name) for at, tool in enumerate(core.tools) for p in tool.parameters if p.observed
    }
    decided: list[Tree] = []
    for one in found[0].monitors:
        match one:
            case PolicyMonitor(policy=Need(of=of) | Ban(of=of) | Count(of=of)):
                decided.append(of)
            case PolicyMonitor(policy=Apart(one=first, other=second)):
                decided += [first, second]
    return found if told.isdisjoint(_bound(decided)) else None


def _bound(sets: Sequence[Tree]) -> Iterator[tuple[int, str]]:
    """The tools and listed fields that patterns of sets of calls bind."""
    for one in sets:
        match one:
            case ("calls", int(tool), where):
                yield from ((tool, name) for name, _ in where)
            case ("or", some):
                yield from _bound(some)
            case ("but", first, second):
                yield from _bound([first, second])


def _is_read(core: Core, statement: str) -> bool:
    """Whether the kernel of proofs reads a statement."""
    try:
        as_kernel_reads(core, "statement", statement)
    except Rejected:
        return False
    return True


def _monitor(core: bytes) -> Json | None:
    """The JSON of the one monitor of a core."""
    value = decode(core, "core")
    monitors = value.get("monitors") if isinstance(value, dict) else None
    return monitors[0] if isinstance(monitors, list) and len(monitors) == 1 else None


_STATEMENTS: Final = ("limits", "requires", "forbids", "monitors", "patterns", "version")


def _frame(core: bytes) -> bytes:
    """What a statement leaves as it is; patterns move with it, so the plan is looked at apart."""
    value = decode(core, "core")
    if not isinstance(value, dict):
        return core
    kept = {name: part for name, part in value.items() if name not in (*_STATEMENTS, "plan")}
    return encode(kept)


def _plan(core: bytes) -> object:
    """The kind of a core's plan."""
    value = decode(core, "core")
    plan = value.get("plan") if isinstance(value, dict) else None
    return isinstance(plan, list) and plan[0]


def _tool_text(tool: Tool) -> str:
    """A tool as a grammar writes it, without what no statement is about."""
    chosen, told = (
        [_listed_text(p) for p in tool.parameters if p.observed is observed]
        for observed in (False, True)
    )
    text = f"tool {written(tool.name)}" + _fields_text(chosen, map(_field_text, tool.opened))
    answers = _fields_text(told, map(_field_text, tool.answers))
    return text + (f" gives {answers}" if answers else "")


def _fields_text(listed: Sequence[str], opened: Iterable[str]) -> str:
    behind = ", ".join(opened)
    inside = ", ".join(listed) + (f"; {behind}" if behind else "")
    return f"({inside})" if inside else ""


def _listed_text(of: Parameter) -> str:
    shown = [value for value in of.values if value]
    mark = "?" if len(shown) < len(of.values) else ""
    return f"{written(of.name)}{mark}: {' | '.join(shown)}{_place_text(of.at)}"


def _field_text(of: OpenParameter) -> str:
    null = " or null" if of.null else ""
    mark = "?" * of.optional
    return f"{written(of.name)}{mark}: {_type_text(of.type)}{null}{_place_text(of.at)}"


def _place_text(steps: Sequence[str] | None) -> str:
    return "" if steps is None else f" at {_quoted(fields.pointer_of(steps))}"


def _learned_text(core: Core, of: Let | LookUp) -> str:
    if isinstance(of, Let):
        return f"{written(of.name)} = {_fields_of(core, of.of, ' or ')}"
    names = [tool.name for tool in core.tools]
    some = _fields_of(core, of.rows, " | ") if of.calls is None else Wording(names).set_of(of.calls)
    return f"{written(of.name)}({', '.join(map(written, of.keys))}) = {some}"


def _fields_of(core: Core, of: Sequence[tuple[int, str]], between: str) -> str:
    return between.join([f"{written(core.tools[at].name)}.{written(name)}" for at, name in of])


def _type_text(kind: fields.FieldType) -> str:
    match kind:
        case TextType(least=least, most=most, pattern=pattern):
            beside = "" if pattern is None else f" ~ {_quoted(pattern)}"
            return f"text{beside} min {least} max {most}"
        case NumberType(whole=whole, low=low, high=high):
            name = "integer" if whole else "number"
            return name if low is None else f"{name} {low} .. {high}"
        case FlagType():
            return "flag"
        case JsonType(most=most):
            return f"json max {most}"
        case fields.NullableType(of=of):
            return f"{_type_text(of)} or null"
        case fields.TimeType(zone=zone):
            return "time" if zone is None else f"time {_zone_text(zone)}"
        case fields.DateType(zone=zone):
            return f"date {_zone_text(zone)}"
        case fields.ListType(of=of, least=least, most=most, distinct=distinct):
            alone = " distinct" if distinct else ""
            return f"list min {least} max {most}{alone} of {_type_text(of)}"
        case fields.RecordType(fields=cells):
            return f"({', '.join(map(_record_text, cells))})"


def _record_text(of: fields.Field) -> str:
    null = " or null" if of.null else ""
    place = "" if of.steps == (of.name,) else _place_text(of.steps)
    kind = " | ".join(of.values) if of.type is None else _type_text(of.type)
    return f"{written(of.name)}{'?' * of.optional}: {kind}{null}{place}"


def _zone_text(minutes: int) -> str:
    sign, size = ("-" if minutes < 0 else "+"), abs(minutes)
    return "utc" if minutes == 0 else _quoted(f"{sign}{size // 60:02}:{size % 60:02}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

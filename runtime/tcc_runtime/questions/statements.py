"""The statements of a core as they can be left out: their texts, their places, and a core without.

Where the grammar is known, a statement is what its author wrote, though the core may have it in
parts; of an artifact alone, each part is a statement, written in the language's words.
Language: docs/spec/language.md, sections 7 and 8.  Cost: linear in the core.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcc_certs.core.model import (
    Core,
    Forbid,
    ForbidBefore,
    ForbidNext,
    ForbidWith,
    OneCall,
    OrderMonitor,
    Repeat,
    Require,
)
from tcc_certs.formats.names import written
from tcc_runtime.questions.texts import Texts

Part: TypeAlias = "tuple[str, int]"  # a member of the core, and which one of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a statement begins; lines and columns from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A statement as its author wrote it."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What can be left out as one.

    Attributes:
        kind: ``plan``, ``signature`` (start and goal), ``strict``, ``limit``, ``require``,
            ``forbid``; ``monitor`` of what a monitor leaves behind for the automaton.
        text: parses as that statement.
        place: None where the grammar is not known.
        parts: of the core.
        says: the same in words that depend on the core alone, a text for each part.
    """

    kind: str
    text: str
    place: Place | None
    parts: tuple[Part, ...]
    says: frozenset[str]


def statements_of(core: Core, known: Mapping[str, Written]) -> list[Statement]:
    """The statements in the order of the text, or of the core.

    Args:
        known: by the names that the compiler gives to places, what was written; may be empty.
    """
    found: dict[object, Statement] = {}
    for name, statement in _parts(core):
        wrote = known.get(name)
        key = statement.parts if wrote is None else wrote.place
        if wrote is not None:
            # What makes a tool strict is a word of its statement, whose text is another one.
            text = statement.text if statement.kind == "strict" else wrote.text
            statement = replace(statement, text=text, place=wrote.place)
        if key in found:
            first = found[key]
            parts, says = first.parts + statement.parts, first.says | statement.says
            statement = replace(first, parts=parts, says=says)
        found[key] = statement
    goal, start = known.get("goal"), known.get("start")
    listed = list(found.values())
    if goal is not None and start is not None:
        both = f"{start.text}\n{goal.text}"
        listed = [replace(s, text=both) if s.kind == "signature" else s for s in listed]
    return sorted(listed, key=_order)


def _order(statement: Statement) -> tuple[int, int]:
    place = statement.place
    return (0, 0) if place is None else (place.line, place.column)


def _parts(core: Core) -> Iterator[tuple[str, Statement]]:
    """Each part with the name of its place: see tcc_compiler/resources/place.py."""
    texts = Texts(core)
    plan = _made("plan", f"plan = {texts.expression(core.plan)}", "plan", 0)
    rules = [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    yield "plan", replace(plan, says=frozenset(["\n".join([plan.text, *rules])]))
    if core.start is not None:
        text = f"start {core.start}\ngoal {' | '.join(core.goals)}"
        yield "start", _made("signature", text, "start", 0)
    for i, tool in enumerate(core.tools):
        if tool.strict:
            yield f"tool {tool.name}", _made("strict", f"strict {written(tool.name)}", "tools", i)
    for i, limit in enumerate(core.limits):
        yield f"limit {limit.text}", _made("limit", texts.limit(limit), "limits", i)
    monitors = {
        (texts.selected(m.first), texts.selected(m.second)): m.text
        for m in core.monitors
        if isinstance(m, OrderMonitor) and m.kind == "require"
    }
    for i, require in enumerate(core.requires):
        ends = core.patterns[require.first], core.patterns[require.second]
        left = monitors.get(ends) if require.order == "before" else None
        name = f"require {require.order} {require.first} {require.second}"
        if left is not None:
            yield name, _made("monitor", left, "requires", i)
        else:
            yield name, _made("require", texts.require(require), "requires", i)
    for i, forbid in enumerate(core.forbids):
        yield _forbid_name(forbid), _made("forbid", texts.forbid(forbid), "forbids", i)


def _forbid_name(forbid: Forbid) -> str:
    match forbid:
        case ForbidNext(patterns):
            return f"forbid next {' '.join(map(str, patterns))}"
        case ForbidWith(first, second):
            return f"forbid with {first} {second}"
        case ForbidBefore(first, second):
            return f"forbid before {first} {second}"


def _made(kind: str, text: str, member: str, index: int) -> Statement:
    return Statement(
        kind=kind, text=text, place=None, parts=((member, index),), says=frozenset([text])
    )


def without(core: Core, parts: Collection[Part]) -> Core:
    """The core without these parts; without its plan it allows any sequence of calls."""
    out = frozenset(parts)
    changes: dict[str, object] = {
        name: tuple(part for i, part in enumerate(getattr(core, name)) if (name, i) not in out)
        for name in ("limits", "requires", "forbids")
    }
    changes["tools"] = tuple(
        replace(tool, strict=False) if ("tools", i) in out else tool
        for i, tool in enumerate(core.tools)
    )
    if ("start", 0) in out:
        changes |= {"start": None, "goals": ()}
    if ("plan", 0) in out:
        every = ((0, len(core.calls)),)
        any_call = OneCall(len(core.patterns))
        changes |= {
            "patterns": (*core.patterns, every), "rules": {}, "plan": Repeat(any_call, 0, None),
        }  # fmt: skip
    return replace(core, **changes)  # type: ignore[arg-type]


def alone(core: Core, parts: Collection[Part]) -> Core:
    """The core with these parts and nothing else, its strict tools aside; few call sets stay."""
    limits, requires, forbids = (
        tuple(getattr(core, name)[i] for member, i in sorted(parts) if member == name)
        for name in ("limits", "requires", "forbids")
    )
    signed = ("start", 0) in parts
    left = replace(
        core, limits=limits, requires=requires, forbids=forbids,
        tools=tuple(replace(tool, strict=False) if tool.strict else tool for tool in core.tools),
        start=core.start if signed else None, goals=core.goals if signed else (),
    )  # fmt: skip
    if ("plan", 0) in parts:
        return left
    patterns = (*core.patterns, ((0, len(core.calls)),))
    numbers: dict[int, int] = {}

    def number(pattern: int) -> int:
        return numbers.setdefault(pattern, len(numbers))

    requires = tuple(Require(r.order, number(r.first), number(r.second)) for r in requires)
    forbids = tuple(_renumbered(forbid, number) for forbid in forbids)
    plan = Repeat(OneCall(number(len(core.patterns))), 0, None)
    return replace(
        left, requires=requires, forbids=forbids, rules={}, plan=plan,
        patterns=tuple(patterns[pattern] for pattern in numbers),
    )  # fmt: skip


def _renumbered(forbid: Forbid, number: Callable[[int], int]) -> Forbid:
    match forbid:
        case ForbidNext(patterns):
            return ForbidNext(tuple(map(number, patterns)))
        case ForbidWith(first, second):
            return ForbidWith(number(first), number(second))
        case ForbidBefore(first, second):
            return ForbidBefore(number(first), number(second))

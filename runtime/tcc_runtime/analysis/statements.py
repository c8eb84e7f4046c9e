"""Statements of a core in the words of the language, their places, and a core without some of them.

If the grammar is known, a statement is what its author wrote, even if the core has it in parts; of
an artifact alone, each part is a statement, written in the language, and parses as that statement.
A call set that no pattern of the language expresses, which only a core from elsewhere has, is
written as a choice.  Language: docs/spec/language.md, sections 7 and 8.
Cost: linear in the core and its call sets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcc_certs.core import model
from tcc_certs.core.derived import Owned, selection_text
from tcc_certs.formats.codec import written

# Texts of statements and expressions.


class StatementTexts:
    """Texts of one core; each call set is written once."""

    def __init__(self, core: model.Core) -> None:
        self._core = core
        self._owned = Owned(core.tools, core.calls)
        self._patterns: dict[int, str] = {}

    def selected(self, selection: model.Selection) -> model.CallSet:
        """The calls that a selection stands for."""
        return self._owned.selected(selection)

    def limit(self, limit: model.Limit) -> str:
        """A limit; a latency has its unit."""
        head, op, tail = limit.text.rpartition(">=" if limit.least else "<=")
        return f"limit {head} {op} {tail}{' ms' if limit.kind == 'latency' else ''}"

    def require(self, of: model.Require) -> str:
        """A `require`; of calls that there are not nothing can be asked, so none may need them."""
        if not self._core.patterns[of.first]:
            return f"limit uses({self.pattern(of.second)}) <= 0"
        order = "before each" if of.order == "each" else of.order
        return f"require {self.pattern(of.first)} {order} {self.pattern(of.second)}"

    def forbid(self, of: model.Forbid) -> str:
        """A `forbid`."""
        match of:
            case model.ForbidNext(patterns):
                return f"forbid {' '.join(map(self.pattern, patterns))}"
            case model.ForbidBefore(first, second):
                return f"forbid {self.pattern(first)} before {self.pattern(second)}"
            case model.ForbidWith(first, second):
                return f"forbid {self.pattern(first)} with {self.pattern(second)}"

    def pattern(self, number: int) -> str:
        """A call set as a pattern."""
        found = self._patterns.get(number)
        if found is None:
            found = self._patterns[number] = self._pattern(self._core.patterns[number])
        return found

    def _pattern(self, calls: model.CallSet) -> str:
        found = [self._core.calls[index] for index in model.members(calls)]
        tools = {call.tool for call in found}
        if len(tools) == 1:
            (tool,) = tools
            parameters = self._core.tools[tool].parameters
            columns = zip(*(call.values for call in found), strict=True)
            chosen = [tuple(sorted(set(column))) for column in columns]
            where = tuple(
                (place, values)
                for place, (values, parameter) in enumerate(zip(chosen, parameters, strict=True))
                if len(values) < len(parameter.values)
            )
            selection = model.Selection(tool=tool, where=where)
            if self._owned.selected(selection) == calls:
                return selection_text(selection, self._core.tools)
        return " | ".join(call.text for call in found) or "(no call)"

    def expression(self, of: model.Expr) -> str:
        """An expression; parentheses around every operand that is not an atom."""
        done: dict[int, str] = {}
        todo: list[tuple[model.Expr, bool]] = [(of, False)]
        while todo:
            part, ready = todo.pop()
            if not ready:
                todo.append((part, True))
                todo += [(inner, False) for inner in _inside(part)]
            else:
                done[id(part)] = self._written(part, done)
        return done[id(of)]

    def _written(self, of: model.Expr, done: dict[int, str]) -> str:
        inner = [_atom(part, done[id(part)]) for part in _inside(of)]
        match of:
            case model.Empty():
                return "()"
            case model.OneCall(pattern):
                if self._core.patterns[pattern] == ((0, len(self._core.calls)),):
                    return "any"
                return self.pattern(pattern)
            case model.RuleRef(name):
                return written(name)
            case model.Seq():
                return " ".join(inner)
            case model.Alt():
                return " | ".join(inner)
            case model.Both():
                return " & ".join(inner)
            case model.Diff():
                return " - ".join(inner)
            case model.Repeat(low=low, high=high):
                return f"{inner[0]}{_times(low, high)}"


def _inside(of: model.Expr) -> tuple[model.Expr, ...]:
    match of:
        case model.Seq(items) | model.Alt(items) | model.Both(items):
            return items
        case model.Diff(base, minus):
            return (base, *minus)
        case model.Repeat(body):
            return (body,)
    return ()


def _atom(of: model.Expr, text: str) -> str:
    """An operand: in parentheses, but for what needs none."""
    bare = isinstance(of, model.Empty | model.RuleRef) or (
        isinstance(of, model.OneCall) and " | " not in text
    )
    return text if bare else f"({text})"


def _times(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    return short.get((low, high)) or f"{{{low},{'' if high is None else high}}}"


Part: TypeAlias = "tuple[str, int]"  # a member of the core, and which one of it


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPlace:
    """Where a statement begins; lines and columns from 1."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A statement as its author wrote it."""

    text: str
    place: StatementPlace


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenStatement:
    """A unit that can be left out.

    Attributes:
        kind: ``plan``, ``signature`` (start and goal), ``strict``, ``limit``, ``require``,
            ``forbid``; ``monitor`` for what a monitor adds to the automaton.
        text: parses as that statement.
        place: None if the grammar is not known.
        parts: of the core.
        says: the same in words that depend on the core alone, a text for each part.
    """

    kind: str
    text: str
    place: StatementPlace | None
    parts: tuple[Part, ...]
    says: frozenset[str]


def statements_of(core: model.Core, known: Mapping[str, Written]) -> list[WrittenStatement]:
    """The statements in the order of the text, or of the core.

    Args:
        known: what was written, by the names that the compiler gives to places; may be empty.
    """
    found: dict[object, WrittenStatement] = {}
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


def _order(statement: WrittenStatement) -> tuple[int, int]:
    place = statement.place
    return (0, 0) if place is None else (place.line, place.column)


def _parts(core: model.Core) -> Iterator[tuple[str, WrittenStatement]]:
    """Each part with the name of its place: see tcc_compiler/resources.py."""
    texts = StatementTexts(core)
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
        if isinstance(m, model.OrderMonitor) and m.kind == "require"
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


def _forbid_name(forbid: model.Forbid) -> str:
    match forbid:
        case model.ForbidNext(patterns):
            return f"forbid next {' '.join(map(str, patterns))}"
        case model.ForbidWith(first, second):
            return f"forbid with {first} {second}"
        case model.ForbidBefore(first, second):
            return f"forbid before {first} {second}"


def _made(kind: str, text: str, member: str, index: int) -> WrittenStatement:
    return WrittenStatement(
        kind=kind, text=text, place=None, parts=((member, index),), says=frozenset([text])
    )


def without(core: model.Core, parts: Collection[Part]) -> model.Core:
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
        any_call = model.OneCall(len(core.patterns))
        changes |= {
            "patterns": (*core.patterns, every),
            "rules": {},
            "plan": model.Repeat(any_call, 0, None),
        }
    return replace(core, **changes)  # type: ignore[arg-type]


def alone(core: model.Core, parts: Collection[Part]) -> model.Core:
    """The core with only these parts, without its strict tools; few call sets remain."""
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

    requires = tuple(model.Require(r.order, number(r.first), number(r.second)) for r in requires)
    forbids = tuple(_renumbered(forbid, number) for forbid in forbids)
    plan = model.Repeat(model.OneCall(number(len(core.patterns))), 0, None)
    return replace(
        left, requires=requires, forbids=forbids, rules={}, plan=plan,
        patterns=tuple(patterns[pattern] for pattern in numbers),
    )  # fmt: skip


def _renumbered(forbid: model.Forbid, number: Callable[[int], int]) -> model.Forbid:
    match forbid:
        case model.ForbidNext(patterns):
            return model.ForbidNext(tuple(map(number, patterns)))
        case model.ForbidWith(first, second):
            return model.ForbidWith(number(first), number(second))
        case model.ForbidBefore(first, second):
            return model.ForbidBefore(number(first), number(second))

"""The restrictions of the plans of a core: plan expression, states, strict tools and statements.

Each restriction has a text in the language.  If the grammar is known, it also has the author's text
and its place.  Language: docs/spec/language.md, sections 6 and 7.
Cost: linear in the core and its call sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tcc_certs.policy import plans
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import (
    Ask,
    Forbid,
    Limit,
    Name,
    Owe,
    Require,
    Statement,
    Total,
    statement_text,
    written,
)
from tcc_certs.policy.plans import CallSet, Expr, members

_KINDS: Mapping[type[Statement], str] = {
    Require: "require", Ask: "ask", Forbid: "forbid", Owe: "owe", Limit: "limit", Total: "total",
}  # fmt: skip


def kind_of(statement: Statement) -> str:
    """Return the kind of a statement, as the core names it: ``require``, ``forbid`` and so on."""
    return _KINDS[type(statement)]


class PlanTexts:
    """Texts of the plan expressions of one core; each call set is written once."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._patterns: dict[int, str] = {}

    def pattern(self, number: int) -> str:
        """Return the text of a call set, as a choice of patterns."""
        found = self._patterns.get(number)
        if found is None:
            found = self._patterns[number] = self._pattern(self._core.patterns[number])
        return found

    def _pattern(self, calls: CallSet) -> str:
        if calls == ((0, len(self._core.calls)),):
            return "any"
        by_tool: dict[int, list[tuple[int, ...]]] = {}
        for index in members(calls):
            call = self._core.calls[index]
            by_tool.setdefault(call.tool, []).append(call.values)
        parts = [part for tool, rows in by_tool.items() for part in self._of_tool(tool, rows)]
        return " | ".join(parts) or "(no call)"

    def _of_tool(self, tool: int, rows: list[tuple[int, ...]]) -> list[str]:
        """Return one pattern for these calls of a tool if possible, else a pattern for each
        call.
        """
        columns = [sorted(set(column)) for column in zip(*rows, strict=True)]
        size = 1
        for column in columns:
            size *= len(column)
        if size == len(rows):
            return [self._selection(tool, columns)]
        return [self._selection(tool, [[value] for value in row]) for row in rows]

    def _selection(self, tool: int, columns: list[list[int]]) -> str:
        declared = self._core.tools[tool]
        inside = []
        for field, chosen in zip(declared.listed, columns, strict=True):
            values = ("", *field.values) if field.optional else field.values
            if len(chosen) < len(values):
                texts = [values[at] for at in chosen if values[at]]
                inside.append(f"{written([Name(field.name)])} = {' | '.join(texts) or 'absent'}")
        name = written([Name(declared.name)])
        return f"{name}({', '.join(inside)})" if inside else name

    def expression(self, of: Expr) -> str:
        """Return the text of an expression, with parentheses around operands that are no atoms."""
        done: dict[int, str] = {}
        todo: list[tuple[Expr, bool]] = [(of, False)]
        while todo:
            part, ready = todo.pop()
            if not ready:
                todo.append((part, True))
                todo += [(inner, False) for inner in _inside(part)]
            else:
                done[id(part)] = self._written(part, done)
        return done[id(of)]

    def _written(self, of: Expr, done: dict[int, str]) -> str:
        inner = [_atom(part, done[id(part)]) for part in _inside(of)]
        match of:
            case plans.Empty():
                return "()"
            case plans.OneCall(pattern):
                return self.pattern(pattern)
            case plans.RuleRef(name):
                return name
            case plans.Seq():
                return " ".join(inner)
            case plans.Alt():
                return " | ".join(inner)
            case plans.Both():
                return " & ".join(inner)
            case plans.Diff():
                return " - ".join(inner)
            case plans.Repeat(low=low, high=high):
                return f"{inner[0]}{_times(low, high)}"


def _inside(of: Expr) -> tuple[Expr, ...]:
    match of:
        case plans.Seq(items) | plans.Alt(items) | plans.Both(items):
            return items
        case plans.Diff(base, minus):
            return (base, *minus)
        case plans.Repeat(body):
            return (body,)
    return ()


def _atom(of: Expr, text: str) -> str:
    bare = isinstance(of, plans.Empty | plans.RuleRef) or (
        isinstance(of, plans.OneCall) and " | " not in text
    )
    return text if bare else f"({text})"


def _times(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    return short.get((low, high)) or f"{{{low},{'' if high is None else high}}}"


Part: TypeAlias = "tuple[str, int]"  # a member of the core, and an index in it


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementPlace:
    """The place where a statement begins; lines and columns count from 1."""

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
    """A restriction that blame can name.

    Attributes:
        kind: ``plan``, ``signature`` (start and goal), ``strict``, or the kind of a statement.
        text: the author's text if it is known, else the canonical text.
        place: None if the grammar is not known.
        part: ``("plan", 0)``, ``("start", 0)``, ``("tools", i)`` or ``("statements", i)``.
        canonical: a text that depends only on the core.
        because: the sentence of the policy that the statement implements, or None.
        relation, remedy: the conditions that are not true for a refused call, and conditions under
            which it would be allowed.  Empty if the statement does not refuse the call by itself,
            or if they are not known.
    """

    kind: str
    text: str
    place: StatementPlace | None
    part: Part
    canonical: str
    because: str | None = None
    relation: str = ""
    remedy: str = ""


def statements_of(core: Core, known: Mapping[str, Written]) -> list[WrittenStatement]:
    """Return the restrictions of a core, in the order of the author's text if it is known, else of
    the core.

    Args:
        known: the author's texts by ``plan``, ``start``, ``goal``, ``tool NAME`` and
            ``statement NUMBER``; it may be empty.
    """
    listed = [_with_words(name, statement, known) for name, statement in _parts(core)]
    return sorted(listed, key=_order)


def _with_words(
    name: str, statement: WrittenStatement, known: Mapping[str, Written]
) -> WrittenStatement:
    wrote = known.get(name)
    if wrote is None:
        return statement
    text = wrote.text
    if statement.kind == "strict":  # the author wrote a word of the tool
        text = statement.text
    elif statement.kind == "signature" and "goal" in known:
        text = f"{text}\n{known['goal'].text}"
    return replace(statement, text=text, place=wrote.place)


def _order(statement: WrittenStatement) -> tuple[int, int]:
    place = statement.place
    return (0, 0) if place is None else (place.line, place.column)


def _parts(core: Core) -> Iterator[tuple[str, WrittenStatement]]:
    """Yield each restriction, with its name in `known`."""
    texts = PlanTexts(core)
    plan = f"plan = {texts.expression(core.plan)}"
    rules = [f"rule {name} = {texts.expression(body)}" for name, body in core.rules.items()]
    yield "plan", _made("plan", plan, ("plan", 0), "\n".join([plan, *rules]))
    if core.start is not None:
        text = f"start {core.start}\ngoal {' | '.join(core.goals)}"
        yield "start", _made("signature", text, ("start", 0), text)
    for i, tool in enumerate(core.tools):
        if tool.strict:
            text = f"strict {written([Name(tool.name)])}"
            yield f"tool {tool.name}", _made("strict", text, ("tools", i), text)
    for i, statement in enumerate(core.statements):
        text = statement_text(statement)
        made = _made(kind_of(statement), text, ("statements", i), text)
        yield f"statement {i}", replace(made, because=statement.because)


def _made(kind: str, text: str, part: Part, canonical: str) -> WrittenStatement:
    return WrittenStatement(kind=kind, text=text, place=None, part=part, canonical=canonical)

"""A grammar of :mod:`tests.oracle_policies.language` as the text of a `.tcg` file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tests.oracle_policies import language as l
from tests.oracle_policies.values import decimal_text

_RESERVED = (
    "grammar use tool rule plan start goal limit require forbid accept reject expect version"
)
_WORDS = (
    "any when before after with or where unless last within every some let given monitor now seen"
    " session count max own in not as pass across same per each gives true false null currency"
)
WORDS = frozenset(f"{_RESERVED} {_WORDS}".split())
_SCOPES = ("own", "seen")


def text_of(grammar: l.Grammar, name: str = "g") -> str:
    """All of it; the plan is ``any*``."""
    lines = [f'grammar {name} version "1"']
    if grammar.given:
        lines.append("given " + ", ".join(map(_field, grammar.given)))
    lines += map(_tool, grammar.tools)
    lines += [f"rule {rule.rule} = {calls_of(rule.of)}" for rule in grammar.rules]
    lines += map(_let, grammar.lets)
    lines += map(statement_of, grammar.statements)
    return "\n".join(lines) + "\n"


# Names and values.


def name_of(name: str) -> str:
    """A name, in quotes where it has to be."""
    bare = name.isidentifier() and name.isascii() and name not in WORDS
    return name if bare else json.dumps(name, ensure_ascii=False)


def number_text(value: Any) -> str:
    """A number without an exponent."""
    return decimal_text(Fraction(Decimal(repr(value)) if isinstance(value, float) else value))


def value_of(value: Any, *, quoted: bool = False) -> str:
    """A listed value; in a relation a text is always in quotes."""
    if value is l.REST:
        return "*"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        bare = value.isidentifier() and value.isascii() and value not in WORDS
        return value if bare and not quoted else json.dumps(value, ensure_ascii=False)
    return number_text(value)


def window_of(ms: int) -> str:
    """A duration in the largest unit in which it is whole."""
    unit = next(unit for unit in ("d", "h", "m", "s", "ms") if ms % l.UNITS[unit] == 0)
    return f"{ms // l.UNITS[unit]} {unit}"


# Tools and their fields.


def _field(field: l.Field) -> str:
    head = name_of(field.name) + "?" * field.optional + ": "
    if field.values is not None:
        head += " | ".join([*map(value_of, field.values), *["*"] * field.rest])
    else:
        assert field.type is not None
        head += type_of(field.type)
    if field.null:
        head += " or null"
    return head if field.place is None else f"{head} at {json.dumps(field.place)}"


def type_of(kind: l.Type) -> str:
    """An open type."""
    match kind.kind:
        case "list":
            assert kind.of is not None
            parts = ["list"]
            parts += [] if kind.low is None else [f"min {kind.low}"]
            parts += [] if kind.high is None else [f"max {kind.high}"]
            parts += ["distinct"] * kind.distinct
            return " ".join([*parts, "of", type_of(kind.of)])
        case "record":
            return f"({', '.join(map(_field, kind.fields))})"
        case "text":
            parts = ["text"]
            parts += [] if kind.low is None else [f"min {kind.low}"]
            parts += [] if kind.high is None else [f"max {kind.high}"]
            parts += [] if kind.pattern is None else [f"~ {json.dumps(kind.pattern)}"]
            return " ".join(parts)
        case "integer" | "number":
            if kind.low is None:
                return kind.kind
            return f"{kind.kind} {number_text(kind.low)} .. {number_text(kind.high)}"
        case "time" | "date":
            if kind.zone is None:
                return kind.kind
            return f"{kind.kind} {'utc' if kind.zone == 'utc' else json.dumps(kind.zone)}"
        case "json":
            return "json" if kind.high is None else f"json max {kind.high}"
    return kind.kind


def _fields(fields: Iterable[l.Field]) -> str:
    listed = [_field(field) for field in fields if field.listed]
    opened = [_field(field) for field in fields if not field.listed]
    inside = ", ".join(listed)
    return f"({inside}; {', '.join(opened)})" if opened else f"({inside})"


def _tool(tool: l.Tool) -> str:
    arguments = [field for field in tool.fields if not field.answer]
    answers = [field for field in tool.fields if field.answer]
    text = f"tool {name_of(tool.name)}"
    text += _fields(arguments) if arguments else ""
    text += f" gives {_fields(answers)}" if answers else ""
    block = ["errors mean failed"] * tool.errors + ["parallel"] * tool.parallel
    return f"{text} {{ {' '.join(block)} }}" if block else text


# Sets, terms, relations.


def calls_of(calls: l.Calls, level: int = 0) -> str:
    """A set; `level` 1 where it stands beside an operator that binds tighter than a choice."""
    match calls:
        case l.Any_():
            return "any"
        case l.Named(rule=rule):
            return rule
        case l.Pattern(tool=tool, where=where):
            items = [f"{name_of(name)}={'|'.join(map(value_of, values))}" for name, values in where]
            return f"{name_of(tool)}({', '.join(items)})" if items else name_of(tool)
        case l.Either(sets=sets):
            text = " | ".join(calls_of(one, 1) for one in sets)
            return f"({text})" if level else text
        case l.But(one=one, other=other):
            text = f"{calls_of(one, 1)} - {calls_of(other, 1)}"
            return f"({text})" if level else text
    raise AssertionError(calls)


def term_of(term: l.Term | l.ListTerm, *, inner: bool = False) -> str:
    """A term; `inner` where it stands inside of a sum."""
    match term:
        case l.Const(value=value, unit=unit):
            return f"{number_text(value)} {unit}" if unit else value_of(value, quoted=True)
        case l.Constants(values=values):
            return f"({', '.join(value_of(value, quoted=True) for value in values)})"
        case l.Of():
            return _of(term)
        case l.Attribute(name=name):
            return f"session.{name_of(name)}"
        case l.Now():
            return "now"
        case l.Max(one=one, other=other):
            return f"max({term_of(one)}, {term_of(other)})"
        case l.Linear(parts=parts):
            return _linear(parts)
        case l.Count(of=of, op=op):
            if op is None:
                return f"count({term_of(of)})"
            if term.pattern is not None:
                return f"count({term_of(of)} {op} {json.dumps(term.pattern)})"
            other = term.among if term.among is not None else term.than
            assert other is not None
            return f"count({term_of(of)} {op} {term_of(other)})"
        case l.Look(name=name, keys=keys, field=field):
            return f"{name}({', '.join(map(term_of, keys))}).{name_of(field)}"
    raise AssertionError(term)


def _of(term: l.Of) -> str:
    parts = [name_of(part) for part in (term.name, term.part) if part is not None]
    if term.scope == "own":
        # A name in quotes is a text.
        return ".".join(["own", *parts] if parts[0].startswith('"') else parts)
    return ".".join([name_of(term.scope) if term.scope not in _SCOPES else term.scope, *parts])


def _linear(parts: Sequence[tuple[Any, l.Term]]) -> str:
    text = ""
    for factor, part in parts:
        sign = "-" if factor < 0 else "+"
        mine = term_of(part, inner=True)
        if abs(factor) != 1:
            mine = f"{number_text(abs(factor))} * {mine}"
        text += f" {sign} {mine}" if text else ("- " if factor < 0 else "") + mine
    return text


def _right(relation: l.Compare | l.In | l.Like) -> str:
    match relation:
        case l.Compare(op=op, right=right):
            return f"{op} {term_of(right)}"
        case l.In(right=right, negated=negated):
            return f"{'not ' * negated}in {term_of(right)}"
        case l.Like(pattern=pattern, negated=negated):
            return f"{'!' * negated}~ {json.dumps(pattern)}"
    raise AssertionError(relation)


def relation_of(relation: l.Relation) -> str:
    """A relation."""
    match relation:
        case l.Compare(left=left, maybe=maybe) | l.In(left=left, maybe=maybe):
            return f"{term_of(left)}{'?' * maybe} {_right(relation)}"
        case l.Like(left=left, maybe=maybe):
            return f"{term_of(left)}{'?' * maybe} {_right(relation)}"
        case l.Every(of=of, each=each):
            return f"every {term_of(of)} {_right(each)}"
        case l.Group(every=every, lists=lists, relations=relations):
            heads = ", ".join(f"{term_of(one)} as {name_of(name)}" for one, name in lists)
            inside = ", ".join(map(relation_of, relations))
            return f"{'every' if every else 'some'} {heads} ({inside})"
    raise AssertionError(relation)


def _same(pairs: Sequence[tuple[str, l.Term]]) -> str:
    return ", ".join(_pair(name, term) for name, term in pairs)


def _pair(name: str, term: l.Term) -> str:
    if isinstance(term, l.Of) and term.scope == "own" and term.part is None:
        if term.name == name:
            return name_of(name)
        assert term.name is not None
        return f"{name_of(name)} = {name_of(term.name)}"
    return f"{name_of(name)} = {term_of(term)}"


def alternative_of(one: l.Alternative) -> str:
    """An alternative."""
    parts = []
    if one.calls is not None:
        parts += ["last"] * one.last
        parts += [str(one.least)] * (one.least > 1)
        # A set of several stands in parentheses: what follows would be read as part of it.
        parts.append(calls_of(one.calls))
    parts += [f"same {_same(one.same)}"] if one.same else []
    parts += ["where " + ", ".join(map(relation_of, one.where))] if one.where else []
    parts += [] if one.within is None else [f"within {window_of(one.within)}"]
    return " ".join(parts)


# Statements.


def _behind(alternatives: Sequence[l.Alternative]) -> bool:
    """Whether `same` may stand behind B: of the one alternative, which has nothing else."""
    one = alternatives[0]
    bare = not one.where and one.within is None and not one.last and one.least == 1
    return len(alternatives) == 1 and bare and bool(one.same)


def statement_of(statement: l.Statement) -> str:
    """A statement on its line."""
    text = _statement(statement)
    return f"monitor {text}" if getattr(statement, "monitor", False) else text


def _statement(statement: l.Statement) -> str:
    match statement:
        case l.Depth(most=most):
            return f"limit depth <= {most}"
        case l.Neighbours(sets=sets):
            return "forbid " + " ".join(calls_of(one, 1) for one in sets)
        case l.Apart(one=one, other=other, same=same):
            text = f"forbid {calls_of(one)} with {calls_of(other)}"
            return text + (f" same {_same(same)}" if same else "")
        case l.Owed(calls=calls, after=after, same=same):
            text = f"require {calls_of(calls)} after {calls_of(after)}"
            return text + (f" same {_same(same)}" if same else "")
        case l.Sum():
            return _sum(statement)
        case l.Uses():
            return _uses(statement)
        case l.Require(alternatives=alternatives, before=before):
            return _require(statement, alternatives, before)
        case l.Forbid(alternatives=alternatives, before=before, unless=unless):
            text = "forbid " + " or ".join(map(alternative_of, alternatives))
            text += " before " + calls_of(before)
            if _behind(alternatives):
                text = f"forbid {calls_of(alternatives[0].calls)} before {calls_of(before)}"
                text += f" same {_same(alternatives[0].same)}"
            if unless:
                text += " unless " + " or ".join(map(alternative_of, unless))
            return text
    raise AssertionError(statement)


def _require(statement: l.Require, alternatives: Sequence[l.Alternative], before: l.Calls) -> str:
    only = alternatives[0]
    if len(alternatives) == 1 and only.calls is None:
        return f"require {calls_of(before)} " + alternative_of(only)
    order = "before each" if statement.each else "before"
    if _behind(alternatives):
        text = f"require {calls_of(only.calls)} {order} {calls_of(before)}"
        return f"{text} same {_same(only.same)}"
    text = " or ".join(map(alternative_of, alternatives))
    return f"require {text} {order} {calls_of(before)}"


def _per(per: Sequence[l.Term], within: int | None, op: str, most: Any) -> str:
    text = " per " + ", ".join(map(term_of, per)) if per else ""
    text += f" {op} {number_text(most)}"
    return text if within is None else f"{text} within {window_of(within)}"


def _uses(one: l.Uses) -> str:
    inside = calls_of(one.calls)
    if one.where:
        inside += " where " + ", ".join(map(relation_of, one.where))
    return f"limit uses({inside})" + _per(
        one.per, one.within, ">=" if one.least else "<=", one.most
    )


def _sum(one: l.Sum) -> str:
    head = f"limit sum({name_of(one.tool)}.{name_of(one.field)})"
    return head + _per(one.per, one.within, "<=", one.most)


def _let(let: l.Let | l.LookUp) -> str:
    if isinstance(let, l.Let):
        sources = " or ".join(f"{name_of(t)}.{name_of(f)}" for t, f in let.sources)
        return f"let {let.name} = {sources}"
    head = f"let {let.name}({', '.join(map(name_of, let.keys))}) = "
    if let.calls is not None:
        return head + calls_of(let.calls)
    return head + " | ".join(f"{name_of(t)}.{name_of(f)}" for t, f in let.rows)

"""A grammar of :mod:`tests.oracle_policies.language` as the statements of a core of version 1.2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tcc_certs.core.policies import Fields, LookUp, Policy, read_policy, read_set
from tcc_certs.errors import Code
from tcc_certs.formats.codec import encode
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType, text_of
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    RecordType,
    TimeType,
    steps_of,
    zone_of,
)
from tcc_certs.values.places import NONE, UNKNOWN, State
from tests.oracle_policies import language as l, values as slow
from tests.oracle_policies.writer import number_text

HELD = (l.Require, l.Forbid, l.Apart, l.Owed, l.Uses, l.Sum)


def field_of(one: l.Field) -> Field:
    """A field."""
    pointer = "/" + one.name.replace("~", "~0").replace("/", "~1")
    values: tuple[str, ...] = ()
    if one.values is not None:
        values = tuple([str(text_of(value)) for value in one.values])
        values = ("",) * one.optional + values + ("*",) * one.rest
    return Field(
        name=one.name,
        steps=steps_of(pointer if one.place is None else one.place, "at", Code.CORE_SCHEMA),
        type=None if one.type is None else type_of(one.type),
        values=values,
        optional=one.optional,
        null=one.null,
    )


def type_of(kind: l.Type) -> FieldType:
    """An open type."""
    match kind.kind:
        case "text":
            most = 65536 if kind.high is None else kind.high
            return TextType(least=kind.low or 0, most=most, pattern=kind.pattern)
        case "integer" | "number":
            ends = (
                {} if kind.low is None
                else {"low": number_text(kind.low), "high": number_text(kind.high)}
            )  # fmt: skip
            return NumberType(whole=kind.kind == "integer", **ends)
        case "flag":
            return FlagType()
        case "json":
            return JsonType(most=65536 if kind.high is None else kind.high)
        case "time":
            return TimeType(zone=None if kind.zone is None else zone_of(kind.zone))
        case "date":
            return DateType(zone=0 if kind.zone is None else zone_of(kind.zone) or 0)
        case "list":
            assert kind.of is not None
            most = 1000 if kind.high is None else kind.high
            of = type_of(kind.of)
            return ListType(of=of, least=kind.low or 0, most=most, distinct=kind.distinct)
    return RecordType(fields=tuple(map(field_of, kind.fields)))


def fields_of(grammar: l.Grammar) -> Fields:
    """The fields that statements speak of."""
    tools = tuple([{one.name: field_of(one) for one in tool.fields} for tool in grammar.tools])
    lets = [one for one in grammar.lets if isinstance(one, l.Let)]
    names = [one.name for one in (*grammar.given, *lets)]
    fields, writer = Fields(tools=tools, session=frozenset(names)), Writer(grammar)
    looks = {}
    for one in grammar.lets:
        if isinstance(one, l.LookUp):
            calls = None
            if one.calls is not None:
                calls = read_set(writer.calls(one.calls), "lets", Code.CORE_SCHEMA, fields)
            rows = tuple([(writer.tool(tool), name) for tool, name in one.rows])
            looks[one.name] = LookUp(name=one.name, keys=one.keys, calls=calls, rows=rows)
    return replace(fields, looks=looks)


class Writer:
    """Statements as JSON."""

    def __init__(self, grammar: l.Grammar) -> None:
        self._tool = {tool.name: at for at, tool in enumerate(grammar.tools)}

    def tool(self, name: str) -> int:
        return self._tool[name]

    def calls(self, of: l.Calls) -> Any:
        match of:
            case l.Pattern(tool=tool, where=where):
                bound = sorted([name, sorted({_text(v) for v in values})] for name, values in where)
                return ["calls", self._tool[tool], bound]
            case l.Any_():
                return ["any"]
            case l.Named(of=inner):
                return self.calls(inner)
            case l.Either(sets=sets):
                return ["or", [self.calls(one) for one in sets]]
            case l.But(one=one, other=other):
                return ["but", self.calls(one), self.calls(other)]

    def term(self, term: Any) -> Any:
        match term:
            case l.Const(value=value, unit=unit):
                return ["ms", value * l.UNITS[unit]] if unit else _constant(value)
            case l.Constants(values=values):
                return ["list", [_constant(value) for value in values]]
            case l.Of(scope="own" | "seen" as side, name=name, part=part):
                return [side, name] if part is None else [side, name, part]
            case l.Of(scope="", name=None):
                return ["it"]
            case l.Of(scope=scope, name=name):
                return ["as", scope] if name is None else ["as", scope, name]
            case l.Attribute(name=name):
                return ["session", name]
            case l.Now():
                return ["now"]
            case l.Max(one=one, other=other):
                return ["max", self.term(one), self.term(other)]
            case l.Linear(parts=parts):
                return ["sum", [[number_text(f), self.term(part)] for f, part in parts]]
            case l.Count(of=of, op=None):
                return ["count", self.term(of)]
            case l.Count(of=of, op=op):
                if term.pattern is not None:
                    right = term.pattern
                else:
                    right = self.term(term.among if term.among is not None else term.than)
                return ["count", self.term(of), [op, ["it"], right]]
            case l.Look(name=name, keys=keys, field=field):
                return ["look", name, list(map(self.term, keys)), field]
        raise AssertionError(term)

    def relation(self, of: l.Relation) -> Any:
        match of:
            case l.Compare(op=op, left=left, right=right, maybe=maybe):
                return _maybe(maybe, [op, self.term(left), self.term(right)])
            case l.In(left=left, right=right, negated=negated, maybe=maybe):
                op = "not in" if negated else "in"
                return _maybe(maybe, [op, self.term(left), self.term(right)])
            case l.Like(left=left, pattern=pattern, negated=negated, maybe=maybe):
                return _maybe(maybe, ["!~" if negated else "~", self.term(left), pattern])
            case l.Every(of=many, each=each):
                return ["every", self.term(many), self.relation(each)]
            case l.Group(every=every, lists=lists, relations=relations):
                heads = [[self.term(one), name] for one, name in lists]
                return ["all" if every else "some", heads, list(map(self.relation, relations))]

    def alternative(self, one: l.Alternative) -> Any:
        found: dict[str, Any] = {}
        if one.calls is not None:
            found["calls"] = self.calls(one.calls)
        if one.last:
            found["last"] = True
        if one.least > 1:
            found["n"] = one.least
        if one.same:
            found["same"] = self.same(one.same)
        if one.where:
            found["where"] = list(map(self.relation, one.where))
        if one.within is not None:
            found["within"] = one.within
        return found

    def same(self, pairs: Any) -> Any:
        return sorted(([name, self.term(term)] for name, term in pairs), key=encode)

    def statement(self, of: l.Statement) -> Any:
        match of:
            case l.Require(alternatives=alternatives, before=before, each=each):
                found = list(map(self.alternative, alternatives))
                order = "each" if each else "before"
                return {"kind": "need", "order": order, "any": found, "of": self.calls(before)}
            case l.Forbid(alternatives=alternatives, before=before, unless=unless):
                found = list(map(self.alternative, alternatives))
                more = {"unless": list(map(self.alternative, unless))} if unless else {}
                return {"kind": "ban", "any": found, "of": self.calls(before), **more}
            case l.Apart(one=one, other=other, same=same):
                pairs = {"same": self.same(same)} if same else {}
                return {
                    "kind": "apart",
                    "one": self.calls(one),
                    "other": self.calls(other),
                    **pairs,
                }
            case l.Owed(calls=calls, after=after, same=same):
                pairs = {"same": self.same(same)} if same else {}
                return {"kind": "owe", "first": self.calls(calls), "of": self.calls(after), **pairs}
            case l.Uses(calls=calls, most=most, where=where, per=per, within=within):
                found = {"kind": "count", "of": self.calls(calls), "value": most}
                found |= {"where": list(map(self.relation, where))} if where else {}
            case l.Sum(tool=tool, field=name, most=most, per=per, within=within):
                value = number_text(most)
                found = {"kind": "total", "tool": self._tool[tool], "param": name, "value": value}
            case _:
                raise AssertionError(of)
        found |= {"per": list(map(self.term, per))} if per else {}
        return found if within is None else {**found, "within": within}


def _maybe(maybe: bool, relation: Any) -> Any:
    return ["?", relation] if maybe else relation


def _text(value: Any) -> str:
    return "*" if value is l.REST else str(text_of(value))


def _constant(value: Any) -> Any:
    match value:
        case None:
            return ["z"]
        case bool():
            return ["b", "true" if value else "false"]
        case str():
            return ["s", value]
    return ["n", number_text(value)]


def policies_of(grammar: l.Grammar) -> tuple[Fields, list[tuple[l.Statement, Policy]]]:
    """The statements that a gate holds, each as the kernel reads it."""
    fields, writer, found = fields_of(grammar), Writer(grammar), []
    for one in grammar.statements:
        if isinstance(one, HELD) and not (isinstance(one, l.Uses) and one.least):
            policy = read_policy(writer.statement(one), "monitors", Code.CORE_SCHEMA, fields)
            found.append((one, policy))
    return fields, found


def state_of(state: slow.State) -> State:
    """A state of the definition as the kernel has it."""
    match state:
        case "none":
            return NONE
        case "unknown":
            return UNKNOWN
        case ("n", exact):
            whole = Fraction(exact)
            return "n", whole.numerator if whole.denominator == 1 else whole
        case ("j", text):
            return "j", text.encode()
        case ("*", listed):
            return "*", frozenset(map(state_of, listed))
        case ("l", items):
            return "l", tuple(map(state_of, items))
        case ("r", cells):
            return "r", tuple([(name, state_of(cell)) for name, cell in cells])
    return state  # type: ignore[return-value]


def states_of(states: Mapping[str, slow.State]) -> dict[str, State]:
    """Those of a call."""
    return {name: state_of(state) for name, state in states.items()}

"""Terms and relations: each name replaced by the field that it means, each type checked.

Normative text: docs/spec/language.md, section 7.  A term comes out as nested tuples, its operator
first, so that it can be compared, sorted and written as JSON.  Different kinds of values are never
equal, and to order them is an error here.  Cost: linear in the terms and the tools of a set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fractions import Fraction
from typing import Any, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.values.declared import FlagType, NumberType, TextType, json_of
from tcc_certs.values.text_pattern import parse
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast
from tcc_compiler.language.diagnostics import Report, quote, some, suggest
from tcc_compiler.language.source import Region
from tcc_compiler.language.values import REST
from tcc_compiler.resolve.fields import Kind
from tcc_compiler.resolve.parameters import ResolvedParameter
from tcc_compiler.resolve.tools import ResolvedTool

# An operator and what it takes.
Made: TypeAlias = tuple[Any, ...]

MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
MAX_WINDOW = 10**15  # milliseconds
_WORDS = ("true", "false", "null")
_ORDERED = ("number", "time")
_NUMERIC = "compare numbers with numbers, and times with times"


@frozen
class CheckedTerm:
    """A term: what it is, and the kind of its values."""

    made: Made
    kind: Kind
    region: Region


@frozen
class NamedField:
    """A field that all tools of a set have.

    Attributes:
        listed: it is part of the call in each of them.
        answer: some tool answers it.
        optional: some tool may leave it out.
    """

    name: str
    kind: Kind
    listed: bool
    answer: bool
    optional: bool


def kind_of_listed(parameter: ResolvedParameter) -> Kind:
    """The kind of the values that a listed field has."""
    kinds = {_kind_of_text(text) for text in parameter.index if text != REST}
    return kinds.pop() if len(kinds) == 1 else "mixed"


def _kind_of_text(text: str) -> str:
    value = json_of(text)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "flag"
    return "text" if isinstance(value, str) else "number"


def field_of(tool: ResolvedTool, name: str) -> NamedField | None:
    """The field of a tool with a name; None where it has none."""
    place = tool.places.get(name)
    if place is not None:
        listed = tool.parameters[place]
        return NamedField(
            name=name,
            kind=kind_of_listed(listed),
            listed=True,
            answer=listed.observed,
            optional=listed.optional,
        )
    for answer, fields in ((False, tool.arguments), (True, tool.answers)):
        for one in fields:
            if one.name == name:
                return NamedField(
                    name=name, kind=one.kind, listed=False, answer=answer, optional=one.optional
                )
    opened = tool.opened.get(name)
    if opened is None:
        return None
    match opened.type:
        case TextType():
            kind = "text"
        case NumberType():
            kind = "number"
        case FlagType():
            kind = "flag"
        case _:
            kind = "json"
    return NamedField(name=name, kind=kind, listed=False, answer=False, optional=opened.optional)


def shared_field(
    tools: Sequence[ResolvedTool], name: ast.Word, report: Report
) -> NamedField | None:
    """The field that every tool of a set has, of one kind; else reported."""
    found: list[NamedField] = []
    for tool in tools:
        mine = field_of(tool, name.text)
        if mine is None:
            known = [*tool.places, *tool.opened]
            known += [one.name for one in (*tool.arguments, *tool.answers) if one.name not in known]
            message = f"tool {quote(tool.name)} has no field {quote(name.text)}"
            hint = suggest(name.text, known) or (
                f"it has {some(known)}" if known else "it has none"
            )
            report.error("TCC204", name.region, message, hint)
            return None
        found.append(mine)
    kinds = {one.kind for one in found}
    if len(kinds) != 1:
        message = f"{quote(name.text)} is of another kind in {quote(tools[-1].name)}"
        hint = "name sets of calls whose fields are of one kind, in a statement each"
        report.error("TCC225", name.region, message, hint)
        return None
    return NamedField(
        name=name.text,
        kind=found[0].kind,
        listed=all(one.listed for one in found),
        answer=any(one.answer for one in found),
        optional=any(one.optional for one in found),
    )


@frozen
class ResolvedLookUp:
    """``let x(k, ..) = ..``: its keys and its fields, with their kinds."""

    keys: Sequence[tuple[str, Kind]]
    fields: Mapping[str, Kind]


@frozen
class Names:
    """What names mean in a statement.

    Attributes:
        own: the tools of the calls that are decided on.
        seen: those of the earlier call; None where there is none.
        answers: whether answers of the calls decided on are known.
        session: the kind of each attribute of the session.
        elements: those that `as` has named here, innermost last.
        looks: the look-ups.
    """

    own: Sequence[ResolvedTool]
    seen: Sequence[ResolvedTool] | None
    session: Mapping[str, Kind]
    report: Report
    answers: bool = False
    elements: tuple[tuple[str, Kind], ...] = ()
    looks: Mapping[str, ResolvedLookUp] = field(default_factory=dict)

    def term(self, term: ast.Term) -> CheckedTerm | None:
        """The term; None after an error."""
        self.report.tick()
        match term:
            case ast.Constant():
                return self._constant(term)
            case ast.FieldTerm():
                return self._field(term)
            case ast.Now():
                return CheckedTerm(made=("now",), kind="time", region=term.region)
            case ast.GroupTerm():
                return self.term(term.inner)
            case ast.SumTerm() | ast.ProductTerm():
                return self._linear(term)
            case ast.Greater():
                return self._greater(term)
            case ast.CountTerm():
                return self._count(term)
            case ast.LookedUp():
                return self._looked_up(term)

    def _wrong(self, region: Region, message: str, hint: str) -> None:
        self.report.error("TCC225", region, message, hint)

    def _constant(self, term: ast.Constant) -> CheckedTerm | None:
        if term.number is None:
            return CheckedTerm(made=("text", term.text), kind="text", region=term.region)
        if term.unit is None:
            return CheckedTerm(made=("number", term.number), kind="number", region=term.region)
        span = term.number * MILLISECONDS[term.unit]
        if span.denominator != 1:
            hint = "write it in a smaller unit"
            self._wrong(term.region, "a duration is a whole number of milliseconds", hint)
            return None
        return CheckedTerm(made=("ms", span), kind="number", region=term.region)

    def _field(self, term: ast.FieldTerm) -> CheckedTerm | None:
        first = term.names[0]
        if not term.scope:
            kinds = dict(self.elements)
            if first.text in kinds:
                return self._element(term, kinds[first.text])
            if first.text in _WORDS and len(term.names) == 1:
                kind = "null" if first.text == "null" else "flag"
                return CheckedTerm(made=("word", first.text), kind=kind, region=term.region)
        if term.scope == "session":
            return self._attribute(term)
        if term.scope == "seen" and self.seen is None:
            hint = "name a set of earlier calls before the `where`"
            self._wrong(term.region, "there is no earlier call here that `seen` could be", hint)
            return None
        scope = term.scope or "own"
        tools = self.seen if scope == "seen" and self.seen is not None else self.own
        field = shared_field(tools, first, self.report)
        if field is None:
            return None
        if scope == "own" and field.answer and not self.answers:
            self.report.error(
                "TCC220",
                first.region,
                f"{quote(first.text)} is answered, and not known when the call is decided on",
                f"compare an argument; of an earlier call write `seen.{first.text}`",
            )
            return None
        made: Made = (scope, first.text)
        return self._parts(
            CheckedTerm(made=made, kind=field.kind, region=term.region), term.names[1:]
        )

    def _element(self, term: ast.FieldTerm, kind: Kind) -> CheckedTerm | None:
        found = CheckedTerm(made=("as", term.names[0].text), kind=kind, region=term.region)
        return self._parts(found, term.names[1:])

    def _attribute(self, term: ast.FieldTerm) -> CheckedTerm | None:
        name = term.names[0]
        kind = self.session.get(name.text)
        if kind is None:
            known = list(self.session)
            message = f"the session has no attribute {quote(name.text)}"
            hint = suggest(name.text, known)
            hint = hint or f"declare it: given {name.text}: text, or let {name.text} = TOOL.FIELD"
            self.report.error("TCC204", name.region, message, hint)
            return None
        found = CheckedTerm(made=("session", name.text), kind=kind, region=term.region)
        return self._parts(found, term.names[1:])

    def _parts(self, whole: CheckedTerm, names: Sequence[ast.Word]) -> CheckedTerm | None:
        """The field of a record, or of each record of a list."""
        for name in names:
            kind = whole.kind
            if whole.made[0] not in ("own", "seen", "as"):
                hint = "only a field of a call, or an element, has fields"
                self._wrong(name.region, f"{quote(name.text)} is no field of a record here", hint)
                return None
            listed = isinstance(kind, tuple) and kind[0] == "list"
            inner = kind[1] if listed and isinstance(kind, tuple) else kind
            fields = dict(inner[1]) if isinstance(inner, tuple) and inner[0] == "record" else {}
            if name.text not in fields:
                message = f"{quote(name.text)} is no field of a record here"
                hint = f"it has {some(list(fields))}" if fields else "only records have fields"
                self._wrong(name.region, message, hint)
                return None
            part = fields[name.text]
            whole = CheckedTerm(
                made=("part", whole.made, name.text),
                kind=("list", part) if listed else part,
                region=whole.region,
            )
        return whole

    def _linear(self, term: ast.SumTerm | ast.ProductTerm) -> CheckedTerm | None:
        found = self._parts_of(term, Fraction(1))
        if found is None:
            return None
        times = Fraction(0)
        parts: list[tuple[Made, Fraction]] = []
        for factor, part in found:
            if part.kind not in _ORDERED:
                hint = "add up numbers, and times with durations"
                self._wrong(part.region, "this is no number, and is not added up", hint)
                return None
            times += factor if part.kind == "time" else 0
            parts.append((part.made, factor))
        if times not in (0, 1):
            message = "times are neither added up nor multiplied"
            hint = "take one time from another, or move one by a duration: now - 24 h"
            self._wrong(term.region, message, hint)
            return None
        if all(made[0] == "number" for made, _ in parts):
            total = sum((by * made[1] for made, by in parts), Fraction(0))
            return CheckedTerm(made=("number", total), kind="number", region=term.region)
        if len(parts) == 1 and parts[0][1] == 1:
            return CheckedTerm(made=parts[0][0], kind=found[0][1].kind, region=term.region)
        kind = "time" if times == 1 else "number"
        return CheckedTerm(made=("sum", tuple(parts)), kind=kind, region=term.region)

    def _parts_of(
        self, term: ast.Term, factor: Fraction
    ) -> list[tuple[Fraction, CheckedTerm]] | None:
        """The terms of a sum with their factors."""
        while isinstance(term, ast.GroupTerm):
            term = term.inner
        if isinstance(term, ast.SumTerm):
            found: list[tuple[Fraction, CheckedTerm]] = []
            for sign, part in term.parts:
                inner = self._parts_of(part, factor * sign)
                if inner is None:
                    return None
                found += inner
            return found
        if isinstance(term, ast.ProductTerm):
            return self._product(term, factor)
        single = self.term(term)
        return None if single is None else [(factor, single)]

    def _product(
        self, term: ast.ProductTerm, factor: Fraction
    ) -> list[tuple[Fraction, CheckedTerm]] | None:
        variable: list[tuple[Fraction, CheckedTerm]] | None = None
        for part in term.parts:
            found = self._parts_of(part, Fraction(1))
            if found is None:
                return None
            fixed = all(one.made[0] in ("number", "ms") for _, one in found)
            if fixed:
                factor *= sum((by * one.made[1] for by, one in found), Fraction(0))
            elif variable is None:
                variable = found
            else:
                hint = "multiply by a number: 2 * amount"
                self._wrong(term.region, "two fields are not multiplied with each other", hint)
                return None
        if variable is None:
            one = CheckedTerm(made=("number", Fraction(1)), kind="number", region=term.region)
            return [(factor, one)]
        return [(by * factor, one) for by, one in variable]

    def _greater(self, term: ast.Greater) -> CheckedTerm | None:
        one, other = self.term(term.one), self.term(term.other)
        if one is None or other is None:
            return None
        if one.kind != other.kind or one.kind not in _ORDERED:
            self._wrong(term.region, "`max` takes two numbers or two times", _NUMERIC)
            return None
        return CheckedTerm(made=("max", one.made, other.made), kind=one.kind, region=term.region)

    def _count(self, term: ast.CountTerm) -> CheckedTerm | None:
        of = self.list_of(term.of)
        if of is None:
            return None
        made: Made = ("count", of.made)
        if term.tail is not None:
            inner = self._tail(self._element_of(of), term.tail, term.region)
            if inner is None:
                return None
            made = (*made, inner)
        return CheckedTerm(made=made, kind="number", region=term.region)

    def _looked_up(self, term: ast.LookedUp) -> CheckedTerm | None:
        found = self.looks.get(term.name.text)
        if found is None:
            message = f"no look-up is named {quote(term.name.text)}"
            hint = f"declare it: let {term.name.text}(FIELD) = TOOL"
            self.report.error("TCC204", term.name.region, message, hint)
            return None
        keys = [self.term(key) for key in term.keys]
        sound = [key for key in keys if key is not None]
        if len(sound) < len(keys):
            return None
        if len(keys) != len(found.keys):
            message = f"{quote(term.name.text)} takes {len(found.keys)} keys"
            self._wrong(term.region, message, f"they are {', '.join(n for n, _ in found.keys)}")
            return None
        for key, (name, kind) in zip(sound, found.keys, strict=True):
            if not _comparable(key.kind, kind):
                message = f"{_shown(key.kind)} is never the key {quote(name)}"
                self._wrong(key.region, message, "compare values of one kind")
                return None
        of = found.fields.get(term.field.text)
        if of is None:
            message = f"{quote(term.name.text)} has no field {quote(term.field.text)}"
            hint = suggest(term.field.text, list(found.fields)) or "a field of all that it looks in"
            self.report.error("TCC204", term.field.region, message, hint)
            return None
        made = ("look", term.name.text, tuple(key.made for key in sound), term.field.text)
        return CheckedTerm(made=made, kind=of, region=term.region)

    def list_of(self, term: ast.Term) -> CheckedTerm | None:
        """A term that is a list; else reported."""
        found = self.term(term)
        if found is None or (isinstance(found.kind, tuple) and found.kind[0] == "list"):
            return found
        self._wrong(term.region, "this is no list", "name a field of the type `list of T`")
        return None

    def _element_of(self, of: CheckedTerm) -> CheckedTerm:
        kind = of.kind[1] if isinstance(of.kind, tuple) else of.kind
        return CheckedTerm(made=("each",), kind=kind, region=of.region)

    # Relations.

    def relations(self, relations: Sequence[ast.RelationTerm]) -> tuple[Made, ...] | None:
        """All of them; None after an error."""
        found = [self.relation(relation) for relation in relations]
        sound = tuple(one for one in found if one is not None)
        return sound if len(sound) == len(found) else None

    def relation(self, relation: ast.RelationTerm) -> Made | None:
        """The relation; None after an error."""
        self.report.tick()
        match relation:
            case ast.Comparison():
                left = self.term(relation.left)
                if left is None:
                    return None
                if relation.maybe and left.made[0] not in ("own", "seen", "session", "part"):
                    hint = "write the `?` behind a field that may be left out"
                    self._wrong(left.region, "only a field may be left out", hint)
                    return None
                made = self._tail(left, relation.tail, relation.region)
                return ("maybe", left.made, made) if made and relation.maybe else made
            case ast.EveryElement():
                of = self.list_of(relation.of)
                if of is None:
                    return None
                made = self._tail(self._element_of(of), relation.tail, relation.region)
                return None if made is None else ("every", of.made, made)
            case ast.Elements():
                return self._elements(relation)

    def _elements(self, relation: ast.Elements) -> Made | None:
        named = self.elements
        lists: list[Made] = []
        for term, word in relation.lists:
            of = self.list_of(term)
            if of is None:
                return None
            lists.append((of.made, word.text))
            named = (*named, (word.text, self._element_of(of).kind))
        if not relation.every and len(lists) > 1:
            hint = "`some` speaks of one list; `every L as a, M as b (..)` of pairs"
            self._wrong(relation.region, "`some` takes one list", hint)
            return None
        inner = Names(
            own=self.own, seen=self.seen, session=self.session, report=self.report,
            answers=self.answers, elements=named, looks=self.looks,
        )  # fmt: skip
        made = inner.relations(relation.relations)
        kind = "every_of" if relation.every else "some_of"
        return None if made is None else (kind, tuple(lists), made)

    def _tail(self, left: CheckedTerm, tail: ast.Compared, region: Region) -> Made | None:
        """A relation whose left side is known."""
        if tail.text is not None:
            return self._like(left, tail)
        if tail.op == "in":
            return self._among(left, tail)
        right = self.term(tail.terms[0])
        if right is None:
            return None
        ordered = tail.op not in ("=", "!=")
        if ordered and (left.kind != right.kind or left.kind not in _ORDERED):
            shown = f"{_shown(left.kind)} with {_shown(right.kind)}"
            self._wrong(region, f"{quote(tail.op)} does not order {shown}", _NUMERIC)
            return None
        if not ordered and not _comparable(left.kind, right.kind):
            shown = f"{_shown(left.kind)} and {_shown(right.kind)}"
            hint = "compare values of one kind"
            self._wrong(region, f"{shown} are never equal", hint)
            return None
        return tail.op, left.made, right.made

    def _like(self, left: CheckedTerm, tail: ast.Compared) -> Made | None:
        if left.kind not in ("text", "mixed") or tail.text is None:
            hint = "a pattern is of a text; of each of a list write: every LIST ~ .."
            self._wrong(left.region, f"{_shown(left.kind)} matches no pattern", hint)
            return None
        source = tail.text.value
        try:
            parse(source)
        except Rejected as refusal:
            message = f"this pattern of text is none: {refusal.mismatch}"
            hint = "the whole value has to match; there is no look-around and no back reference"
            self.report.error("TCC318", tail.text.region, message, hint)
            return None
        return ("!~" if tail.negated else "~", left.made, source)

    def _among(self, left: CheckedTerm, tail: ast.Compared) -> Made | None:
        op = "not in" if tail.negated else "in"
        alone = tail.terms[0]
        in_group = isinstance(alone, ast.GroupTerm)
        if not tail.listed and not in_group:
            of = self.list_of(alone)
            if of is None:
                return None
            inner = self._element_of(of).kind
            if not _comparable(left.kind, inner):
                hint = "compare values of one kind"
                message = f"{_shown(left.kind)} is never an element of this list"
                self._wrong(tail.region, message, hint)
                return None
            return op, left.made, of.made
        values: list[Made] = []
        for term in tail.terms:
            found = self.term(term)
            if found is None:
                return None
            if found.made[0] not in ("text", "number", "word"):
                hint = 'write constants: ("a", "b")'
                self._wrong(term.region, "a list in parentheses has constants alone", hint)
                return None
            if not _comparable(left.kind, found.kind):
                message = f"{_shown(left.kind)} is never equal to {_shown(found.kind)}"
                self._wrong(term.region, message, "compare values of one kind")
                return None
            values.append(found.made)
        return op, left.made, ("constants", tuple(values))


def _comparable(one: Kind, other: Kind) -> bool:
    """Whether values of two kinds may be equal."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        if one[0] == "list" == other[0]:
            return _comparable(one[1], other[1])
        return one == other
    if isinstance(one, tuple) or isinstance(other, tuple):
        return "json" in (one, other)
    return one == other or not {"mixed", "json", "null"}.isdisjoint((one, other))


def _shown(kind: Kind) -> str:
    if isinstance(kind, tuple):
        return "a list" if kind[0] == "list" else "a record"
    return {"json": "a value of the type json", "mixed": "a listed value"}.get(kind, f"a {kind}")


def window_of(duration: ast.Duration | None, report: Report) -> int | None:
    """The milliseconds of a `within`; None without one, or after an error."""
    if duration is None:
        return None
    value = duration.number.value * MILLISECONDS[duration.unit]
    if value.denominator == 1 and 0 < value <= MAX_WINDOW:
        return value.numerator
    message = f"a window is a whole number of milliseconds from 1 to {MAX_WINDOW}"
    report.error("TCC227", duration.region, message, "write `within 24 h`, say")
    return None

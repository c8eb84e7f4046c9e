"""Cores as text, so that tests read as policies do.

This reader knows just enough of the language for tests of `tcc_certs.policy`: a test of the trusted
package does not need the compiler.  Mistakes in a text raise an AssertionError.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.plans import Empty
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
    zone_of,
)

_TOKEN = re.compile(
    r"\s*(?:#[^\n]*\n\s*)*(?P<text>\"[^\"]*\")|\s*(?P<quoted>`[^`]*`)"
    r"|\s*(?P<number>[0-9]+(?:\.[0-9]+)?)"
    r"|\s*(?P<word>[A-Za-z_][A-Za-z0-9_]*)|\s*(?P<sign>\.\.|->|<=|>=|!=|!~|[-+*|=<>~(){},.:?])"
)
_TYPES = (
    "text", "number", "integer", "flag", "json", "path", "url", "time", "date", "list", "object",
)  # fmt: skip
_COMPARED = ("=", "!=", "<", "<=", ">", ">=", "~", "!~", "under")


@dataclass
class _Core:
    tools: list[Tool] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    lets: list[n.Definition] = field(default_factory=list)
    statements: list[n.Statement] = field(default_factory=list)


def core_of(text: str) -> Core:
    """The core that a text declares, without plans."""
    reader = _Reader(text)
    found = _Core()
    while reader.kind != "end":
        reader.statement(found)
    return Core(
        name="t",
        version="1",
        tools=tuple(found.tools),
        rules={},
        plan=Empty(),
        given=tuple(found.given),
        lets=tuple(found.lets),
        statements=tuple(found.statements),
    )


def condition_of(text: str) -> n.Node:
    """The node of a condition or term."""
    reader = _Reader(text)
    found = reader.expression()
    assert reader.kind == "end", reader.rest()
    return found


def _joined(types: list[FieldType]) -> FieldType:
    return types[0] if len(types) == 1 else UnionType(of=tuple(types))


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = re.sub(r"#[^\n]*", "", text)
        self._at = 0
        self.kind = self.token = ""
        self._next()

    def _next(self) -> str:
        token = self.token
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            assert not self._text[self._at :].strip(), self._text[self._at :]
            self.kind, self.token = "end", ""
            return token
        self._at = found.end()
        self.kind = str(found.lastgroup)
        self.token = found[self.kind]
        return token

    def rest(self) -> str:
        return self.token + self._text[self._at :]

    def _is(self, *tokens: str) -> bool:
        return self.kind in ("word", "sign") and self.token in tokens

    def _take(self, token: str) -> bool:
        if self._is(token):
            self._next()
            return True
        return False

    def _expect(self, token: str) -> None:
        assert self._take(token), f"expected {token}: {self.rest()}"

    def _name(self) -> str:
        assert self.kind in ("word", "quoted"), self.rest()
        return self._next().strip("`")

    # Declarations.

    def statement(self, into: _Core) -> None:
        match self._name():
            case "tool":
                into.tools.append(self._tool())
            case "given":
                into.given += self._given()
            case "let":
                into.lets.append(self._let())
            case "before":
                into.statements += self._before()
            case "finally":
                self._expect("require")
                into.statements.append(n.Require(on=None, then=self.expression()))
            case "forbid":
                on, where = self._calls()
                into.statements.append(n.Forbid(on=on, where=where))
            case "after":
                after, where = self._calls()
                self._expect("owe")
                calls, pays = self._calls()
                within = self._window()
                into.statements.append(
                    n.Owe(after=after, where=where, calls=calls, pays=pays, within=within)
                )
            case "limit":
                into.statements.append(self._limit())
            case other:
                raise AssertionError(other)

    def _tool(self) -> Tool:
        name = self._name()
        arguments = self._fields() if self._is("(") else ()
        answers = self._fields(answers=True) if self._take("gives") else ()
        return Tool(name=name, arguments=arguments, answers=answers)

    def _fields(self, *, answers: bool = False) -> tuple[Field, ...]:
        self._expect("(")
        found = []
        while not self._take(")"):
            found.append(self._field(answers=answers))
            self._take(",")
        return tuple(found)

    def _field(self, *, answers: bool = False) -> Field:
        return self._declared(self._name(), answers=answers)

    def _declared(self, name: str, *, answers: bool = False) -> Field:
        optional = self._take("?")
        self._expect(":")
        values: tuple[str, ...] = ()
        kind: FieldType | None = None
        if self.token in _TYPES:
            kind = self._type()
        else:
            values = self._values()
        nullable = isinstance(kind, NullableType)
        return Field(
            name=name,
            steps=(name,),
            type=kind,
            values=values,
            optional=optional,
            null=answers and optional and not nullable,
        )

    def _values(self) -> tuple[str, ...]:
        found = []
        if self.kind == "number":
            low = int(self._next())
            if self._take(".."):
                return tuple([str(value) for value in range(low, int(self._next()) + 1)])
            found.append(str(low))
        else:
            found.append(self._next())
        while self._take("|"):
            found.append(self._next())
        return tuple(found)

    def _type(self) -> FieldType:
        types = [self._plain_type()]
        while self._take("or"):
            if self._take("null"):
                return NullableType(of=_joined(types))
            types.append(self._plain_type())
        return _joined(types)

    def _plain_type(self) -> FieldType:
        match self._name():
            case "text":
                return TextType(pattern=self._next()[1:-1]) if self._take("~") else TextType()
            case "number" | "integer" as name:
                whole = name == "integer"
                if self.kind != "number":
                    return NumberType(whole=whole)
                low = self._next()
                self._expect("..")
                return NumberType(whole=whole, low=low, high=self._next())
            case "flag":
                return FlagType()
            case "json":
                return JsonType()
            case "path":
                return PathType(under=self._next()[1:-1] if self._take("under") else None)
            case "url":
                return UrlType(under=self._next()[1:-1] if self._take("under") else None)
            case "time":
                return TimeType(zone=zone_of(self._next()[1:-1]) if self.kind == "text" else None)
            case "date":
                return DateType(
                    zone=(zone_of(self._next()[1:-1]) if self.kind == "text" else 0) or 0
                )
            case "object":
                return RecordType(fields=self._fields(answers=True))
        most = int(self._next()) if self._take("max") else 1000
        self._expect("of")
        of = RecordType(fields=self._fields(answers=True)) if self._is("(") else self._type()
        return ListType(of=of, most=most)

    def _given(self) -> list[Given]:
        name = self._name()
        if not self._take("from"):
            return [self._declared(name)]
        sources = []
        while True:
            tool = self._name()
            self._expect(".")
            sources.append((tool, self._name()))
            if not self._take("|"):
                return [Learned(name=name, sources=tuple(sources))]

    def _let(self) -> n.Definition:
        name = self._name()
        parameters = []
        if self._take("("):
            while not self._take(")"):
                parameters.append(self._name())
                self._take(",")
        self._expect("=")
        return n.Definition(name=name, parameters=tuple(parameters), body=self.expression())

    # Statements.

    def _calls(self) -> tuple[n.Node, tuple[n.Node, ...]]:
        node = self._sum()
        return (node.of, node.conditions) if isinstance(node, n.Where) else (node, ())

    def _window(self) -> n.Duration | None:
        return n.Duration(self._next(), self._name()) if self._take("within") else None

    def _before(self) -> list[n.Statement]:
        on, where = self._calls()
        lets: list[n.Definition] = []
        found: list[n.Statement] = []
        many = self._take("{")
        while self._take("let"):
            lets.append(self._let())
        while self._is("require", "ask"):
            if self._take("require"):
                then = self.expression()
                found.append(n.Require(on=on, where=where, lets=tuple(lets), then=then))
            else:
                self._next()
                who = self._next()[1:-1]
                within = self._window()
                found.append(n.Ask(on=on, where=where, lets=tuple(lets), who=who, within=within))
            if not many:
                return found
        self._expect("}")
        return found

    def _limit(self) -> n.Statement:
        what = self._name()
        if what in n.TOTALS:
            self._expect("<=")
            return n.Total(what=what, most=self._next())
        self._expect("(")
        node = self._sum()
        within = self._window()
        self._expect(")")
        name = None
        if what == "sum":
            assert isinstance(node, n.Get)
            node, name = node.of, node.name
        on, where = (node.of, node.conditions) if isinstance(node, n.Where) else (node, ())
        per = []
        if self._take("per"):
            per.append(self._sum())
            while self._take(","):
                per.append(self._sum())
        self._expect("<=")
        most = self._source()
        scope = None
        if self._take("in"):
            self._expect("session")
            scope = "session"
        elif self._take("across"):
            self._expect("sessions")
            scope = "across"
        return n.Limit(
            of=on, where=where, field=name, per=tuple(per), within=within, most=most, scope=scope
        )  # type: ignore[arg-type]

    # Expressions.

    def expression(self) -> n.Node:
        parts = [self._negated()]
        for word, kind in (("and", n.And), ("or", n.Or)):
            while self._take(word):
                parts.append(self._negated())
                if not self._is(word):
                    return kind(tuple(parts))
        return parts[0]

    def _negated(self) -> n.Node:
        if self._take("not"):
            return n.Not(self._negated())
        for word, kind in (("no", n.No), ("every", n.Every), ("unused", n.Unused)):
            if self._take(word):
                return kind(self._source())
        left = self._source()
        if self._is(*_COMPARED):
            return n.Compare(self._next(), left, self._sum())
        operator = "in"
        if self._take("not"):
            if self._take("under"):
                return n.Compare("not under", left, self._sum())
            operator = "not in"
        if not self._take("in"):
            return left
        right = self._sum()
        if self._take(".."):
            return n.Between(operator, left, right, self._sum())
        return n.Compare(operator, left, right)

    def _source(self) -> n.Node:
        node = self._sum()
        while self._is("within", "since"):
            if self._take("within"):
                node = n.Within(node, self._next(), self._name())
            else:
                self._next()
                node = n.Since(node, self._sum())
        return node

    def _sum(self) -> n.Node:
        node = self._product()
        while self._is("+", "-"):
            kind = n.Add if self._next() == "+" else n.Minus
            node = kind(node, self._product())
        return node

    def _product(self) -> n.Node:
        node = self._union()
        while self._take("*"):
            node = n.Times(node, self._union())
        return node

    def _union(self) -> n.Node:
        parts = [self._sign()]
        while self._take("|"):
            parts.append(self._sign())
        return n.Union(tuple(parts)) if len(parts) > 1 else parts[0]

    def _sign(self) -> n.Node:
        if self._take("-"):
            of = self._sign()
            return n.Number(f"-{of.value}") if isinstance(of, n.Number) else n.Negative(of)
        node = self._atom()
        while self._is(".", "("):
            if self._take("."):
                node = n.Get(node, self._name())
                continue
            arguments = self._arguments()
            if isinstance(node, n.Word) and node.name in n.FUNCTIONS:
                node = n.Apply(node.name, arguments)
            else:
                node = n.Where(node, arguments)
        return node

    def _arguments(self) -> tuple[n.Node, ...]:
        self._expect("(")
        found: list[n.Node] = []
        while not self._take(")"):
            found.append(self._same() if self._take("same") else self.expression())
            self._take(",")
        return tuple(found)

    def _same(self) -> n.Node:
        if not self._take("("):
            return n.Same((self._name(),))
        names = []
        while not self._take(")"):
            names.append(self._name())
            self._take(",")
        return n.Same(tuple(names))

    def _atom(self) -> n.Node:
        if self.kind == "text":
            return n.Text(self._next()[1:-1])
        if self.kind == "number":
            amount = self._next()
            return n.Duration(amount, self._next()) if self.token in n.UNITS else n.Number(amount)
        if self._take("("):
            node = self.expression()
            self._expect(")")
            return node
        if self.kind == "quoted":
            return n.Word(self._name())
        if self._take("match"):
            return self._match()
        name = self._name()
        match name:
            case "this":
                return n.This()
            case "it":
                return n.It()
            case "now":
                return n.Now()
            case "any":
                return n.AnyTool()
            case "null":
                return n.Null()
            case "true" | "false":
                return n.Flag(name == "true")
            case "session":
                self._expect(".")
                return n.Session(self._name())
        return n.Word(name)

    def _match(self) -> n.Node:
        of = self._sum()
        self._expect("{")
        arms: list[n.Node] = []
        while not self._take("}"):
            if self._take("else"):
                self._expect(":")
                arms.append(n.Else(self._sum()))
            else:
                values = self._union()
                parts = values.parts if isinstance(values, n.Union) else (values,)
                self._expect(":")
                arms.append(n.Arm(self._sum(), parts))
            self._take(",")
        return n.Match(of, tuple(arms))

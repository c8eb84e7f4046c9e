"""Random policies and random sessions of them, from a seed; small pools, so that values meet.

`FORMS` names what a grammar may use; a grammar of `OLD` alone is one of language 1.1.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from tests.oracle_policies import language as l

T = TypeVar("T")
Kind: TypeAlias = "str | tuple[str, Any]"  # of a value; of a list with that of its elements

OLD = frozenset(
    {"listed", "open", "answers", "per", "sum", "owed", "next", "with", "each", "least"}
)
FORMS = OLD | frozenset(
    {
        "lists", "records", "time", "null", "places", "open answers", "rest", "optional answers",
        "given", "let", "or", "last", "count", "where", "within", "unless", "require where",
        "owed same", "per several", "uses where", "sets", "rules", "monitor", "in", "every", "some",
        "pairs", "like", "maybe", "linear", "max", "count of", "look", "sum per", "errors",
        "names",
    }
)  # fmt: skip

# Of these alone a grammar speaks of listed fields alone, and all of it is in the automaton.
LISTED = frozenset(
    {
        "listed", "answers", "per", "sum", "owed", "next", "with", "each", "least", "or", "last",
        "count", "where", "unless", "owed same", "per several", "uses where", "sets", "rules", "in",
        "maybe", "names",
    }
)  # fmt: skip


TEXTS = ("a", "b", "c d")
NUMBERS = (0, 1, 2, 2.5)
WHOLE = (0, 1, 2)
TIMES = ("2024-05-15T10:00:00Z", "2024-05-15T12:00:00+02:00", "2024-05-16T00:00:00Z",
         "2024-05-16T01:30:00.250Z")  # fmt: skip
BARE_TIMES = ("2024-05-15T10:00:00", "2024-05-15T05:00:00")
DATES = ("2024-05-15", "2024-05-16")
START = 1_715_767_200_000  # 2024-05-15T10:00:00Z
WRONGS: tuple[Any, ...] = (None, True, 7, "zz", [], {}, ["zz"], [1], {"a": 1}, 1e300, "2024-13-01")
WINDOWS = (60_000, 3_600_000, 90_000)

_NUMBER = l.Type(kind="number", low=0, high=100)
_TEXT = l.Type(kind="text", high=20)
POOL: tuple[tuple[str, l.Type, str], ...] = (  # open fields: name, type, the form that it needs
    ("order", _TEXT, "open"),
    ("user", _TEXT, "open"),
    ("amount", _NUMBER, "open"),
    ("pieces", l.Type(kind="integer", low=0, high=100), "open"),
    ("urgent", l.Type(kind="flag"), "open"),
    ("extra", l.Type(kind="json"), "open"),
    ("code", l.Type(kind="text", low=1, high=9, pattern="[a-z]( d)?"), "open"),
    ("at", l.Type(kind="time"), "time"),
    ("since", l.Type(kind="time", zone="-05:00"), "time"),
    ("until", l.Type(kind="time", zone="utc"), "time"),
    ("day", l.Type(kind="date", zone="utc"), "time"),
    ("ids", l.Type(kind="list", of=l.Type(kind="text")), "lists"),
    ("tags", l.Type(kind="list", low=1, high=3, distinct=True, of=l.Type(kind="text")), "lists"),
    ("sizes", l.Type(kind="list", of=_NUMBER), "lists"),
    (
        "legs",
        l.Type(
            kind="list",
            of=l.Type(
                kind="record",
                fields=(
                    l.Field(name="number", type=_TEXT),
                    l.Field(name="price", type=_NUMBER, place="/cost/total"),
                ),
            ),
        ),
        "records",
    ),
)


_CELLS = ("number", "price")  # of the records of ``legs``


def _has(tool: l.Tool, argument: l.Field) -> bool:
    """Whether a tool has an argument of that name and kind."""
    mine = [one for one in tool.fields if one.name == argument.name]
    return any(not one.answer and kind_of(one) == kind_of(argument) for one in mine)


def kind_of(field: l.Field) -> Kind | None:
    """The kind of its values; None of listed ones of several kinds."""
    if field.values is not None:
        kinds = {
            "s" if isinstance(v, str) else "b" if isinstance(v, bool) else "n" for v in field.values
        }
        return kinds.pop() if len(kinds) == 1 else None
    assert field.type is not None
    return kind_of_type(field.type)


def kind_of_type(kind: l.Type) -> Kind:
    """The kind of an open type's values."""
    match kind.kind:
        case "text":
            return "s"
        case "integer" | "number":
            return "n"
        case "flag":
            return "b"
        case "json":
            return "j"
        case "time" | "date":
            return "t"
        case "list":
            assert kind.of is not None
            return "l", kind_of_type(kind.of)
        case "record":
            return "r", tuple((field.name, kind_of(field)) for field in kind.fields)
    raise AssertionError(kind)


class Draw:
    """Draws one grammar.

    Args:
        forms: what it may use.
    """

    def __init__(self, seed: object, forms: frozenset[str] = FORMS) -> None:
        self.rng = random.Random(f"policy {seed}")
        self.forms = forms
        # Some forms that this grammar is mostly about: so that rare ones meet in one statement.
        self.theme = frozenset(self.rng.sample(sorted(forms), 3))
        self.tools: tuple[l.Tool, ...] = ()
        self.given: tuple[l.Field, ...] = ()
        self.lets: list[l.Let | l.LookUp] = []
        self.rules: list[l.Named] = []

    def may(self, form: str, chance: float = 0.5) -> bool:
        """Whether to use a form now."""
        if form in self.theme:
            chance = max(chance, 0.8)
        return form in self.forms and self.rng.random() < chance

    def choice(self, options: Sequence[T]) -> T:
        """One of them."""
        return self.rng.choice(options)

    def grammar(self) -> l.Grammar:
        """The grammar."""
        names = ["find", "pay", "ask", "ship"]
        if self.may("names", 0.3):
            names = ["get-order", "pay", "own", "last"]
        self.tools = tuple(self._tool(name) for name in names[: self.rng.randint(2, 4)])
        if self.may("given", 0.4):
            self.given = (
                l.Field(name="who", type=_TEXT),
                *[l.Field(name="role", values=("agent", "chief"))] * (self.rng.random() < 0.5),
                *[l.Field(name="most", type=_NUMBER)] * (self.rng.random() < 0.5),
            )
        if self.may("let", 0.5):
            self._let()
        if self.may("look", 0.4):
            self._look()
        if self.may("rules", 0.3):
            self.rules.append(l.Named(rule="some_calls", of=self._set(plain=True)))
        statements: list[l.Statement] = [self._statement() for _ in range(self.rng.randint(1, 3))]
        statements += [l.Depth(most=self._depth(statements))]
        return l.Grammar(
            tools=self.tools,
            statements=tuple(dict.fromkeys(statements)),
            given=self.given,
            lets=tuple(self.lets),
            rules=tuple(rule for rule in self.rules),
        )

    def _depth(self, statements: Sequence[l.Statement]) -> int:
        looks_on = any(
            isinstance(one, l.Owed) or (isinstance(one, l.Uses) and one.least) for one in statements
        )
        return 4 if looks_on else self.rng.choice((5, 7, 9))

    # Tools.

    def _tool(self, name: str) -> l.Tool:
        fields = []
        if self.may("listed", 0.5):
            values = self.choice((("x", "y"), ("x", "y", "z"), (1, 2), ("a", "b")))
            optional = self.rng.random() < 0.2
            fields.append(l.Field(name="way", values=values, optional=optional))
        pool = [one for one in POOL if one[2] in self.forms]
        for field, kind, _ in self.rng.sample(pool, min(len(pool), self.rng.randint(0, 3))):
            optional = self.rng.random() < 0.2
            null = optional and self.may("null", 0.5)
            fields.append(l.Field(name=field, type=kind, optional=optional, null=null))
        if self.may("places", 0.3):
            fields += self._derived()
        if self.may("answers", 0.5):
            values = self.choice((("p", "q"), ("p", "q", "r"), ("a", "b")))
            fields.append(
                l.Field(
                    name="result",
                    values=values,
                    answer=True,
                    rest=self.may("rest", 0.3),
                    optional=self.may("optional answers", 0.15),
                    place="/state" if self.may("places", 0.3) else None,
                )
            )
        if self.may("open answers", 0.7):
            fields += self._open_answers({field.name for field in fields})
        return l.Tool(name=name, fields=tuple(fields), errors=self.may("errors", 0.3))

    def _derived(self) -> list[l.Field]:
        optional = self.rng.random() < 0.3
        kind = l.Type(kind="list", of=_TEXT)
        pays = l.Field(name="pays", type=l.Type(kind="json"), optional=optional)
        place = self.choice(("/pays/*/id", "/pays/*"))
        found = [pays, l.Field(name="paid_by", type=kind, place=place, optional=optional)]
        if self.rng.random() < 0.4:
            found.append(
                l.Field(
                    name="last_paid",
                    type=_TEXT,
                    place=self.choice(("/pays/-1/id", "/pays/0/id", "/pays/-1")),
                    optional=self.rng.random() < 0.5,
                )
            )
        return found

    def _open_answers(self, taken: set[str]) -> list[l.Field]:
        pool = [one for one in POOL if one[2] in self.forms and one[0] not in taken]
        found = []
        for name, kind, _ in self.rng.sample(pool, min(len(pool), self.rng.randint(1, 3))):
            place = None
            if self.may("places", 0.4):
                place = self.choice((f"/data/{name}", f"/{name}_of"))
                if kind.kind == "list" and self.rng.random() < 0.4:
                    place = self.choice((f"/{name}/*", f"/all/*/{name}"))
                    kind = replace(kind, low=None, high=None, distinct=False)
            optional = self.may("optional answers", 0.25)
            null = optional and self.may("null", 0.5)
            found.append(
                l.Field(
                    name=name, type=kind, answer=True, place=place, optional=optional, null=null
                )
            )
        return found

    # Attributes.

    def _let(self) -> None:
        options = [
            (tool.name, field.name, kind_of(field))
            for tool in self.tools
            for field in tool.fields
            if kind_of(field) in ("s", "n", "t", "b")
        ]
        if not options:
            return
        first = self.choice(options)
        others = [one for one in options if one[2] == first[2] and one != first]
        sources = [first, *self.rng.sample(others, min(len(others), self.rng.randint(0, 1)))]
        self.lets.append(
            l.Let(name="first", sources=tuple((tool, name) for tool, name, _ in sources))
        )

    def _look(self) -> None:
        """Of the latest call with an argument, or of the latest row with a field."""
        options: list[l.LookUp] = []
        for tool in self.tools:
            for field in tool.fields:
                if field.answer:
                    if field.name == "legs":
                        options.append(
                            l.LookUp(name="leg", keys=("number",), rows=((tool.name, "legs"),))
                        )
                elif kind_of(field) in ("s", "n"):
                    calls: l.Calls = l.Pattern(tool=tool.name)
                    others = [one for one in self.tools if one is not tool and _has(one, field)]
                    if others and self.rng.random() < 0.5:
                        other = l.Pattern(tool=self.choice(others).name)
                        calls = l.Either(sets=(calls, other))
                    keys = [field.name]
                    more = [
                        one.name
                        for one in self._fields(calls, answers=False)
                        if one.name != field.name and kind_of(one) in ("s", "n")
                    ]
                    if more and self.rng.random() < 0.3:
                        keys.append(self.choice(more))
                    options.append(l.LookUp(name="known", keys=tuple(keys), calls=calls))
        rows = [one.rows[0] for one in options if one.rows]
        if len(rows) > 1:
            options += [replace(one, rows=tuple(rows[:2])) for one in options if one.rows]
        if options:
            self.lets.append(self.choice(options))

    def kind_of_attribute(self, name: str) -> Kind | None:
        """The kind of ``session.x``."""
        for one in self.given:
            if one.name == name:
                return kind_of(one)
        for let in self.lets:
            if isinstance(let, l.Let) and let.name == name:
                tool, field = let.sources[0]
                return kind_of(self._of(tool, field))
        return None

    def _of(self, tool: str, field: str) -> l.Field:
        return next(one for one in self.tools if one.name == tool).field(field)

    # Sets.

    def _pattern(self, *, answers: bool = True) -> l.Pattern:
        tool = self.choice(self.tools)
        where = []
        for field in tool.fields:
            if field.values is not None and self.rng.random() < 0.4:
                if field.answer and not answers:
                    continue
                values: list[Any] = [*field.values, *[l.REST] * field.rest]
                size = self.rng.randint(1, max(1, len(values) - 1))
                where.append((field.name, tuple(self.rng.sample(values, size))))
        return l.Pattern(tool=tool.name, where=tuple(where))

    def _set(self, *, answers: bool = True, plain: bool = False) -> l.Calls:
        if not plain and self.may("sets", 0.3):
            which = self.rng.random()
            if which < 0.5:
                return l.Either(
                    sets=(self._pattern(answers=answers), self._pattern(answers=answers))
                )
            if which < 0.65 and answers:
                return l.Any_()
            if which < 0.75 and answers:
                return l.But(one=l.Any_(), other=self._pattern(answers=answers))
            if self.rules and answers:
                return self.choice(self.rules)
        if not plain and self.may("sets", 0.1):
            tool = self.choice(self.tools).name
            one = l.Pattern(tool=tool)
            same = [self._pattern(answers=answers) for _ in range(4)]
            fitting = [p for p in same if p.tool == tool and p.where]
            if fitting:
                return l.But(one=one, other=fitting[0])
        return self._pattern(answers=answers)

    def _fields(self, calls: l.Calls, *, answers: bool = True) -> list[l.Field]:
        """Fields that every tool of a set has, of one kind."""
        tools = [t for t in self.tools if t.name in l.tools_of(calls, self.tools)]
        found = []
        for field in tools[0].fields:
            mine = [other for tool in tools for other in tool.fields if other.name == field.name]
            kinds = {kind_of(other) for other in mine}
            chosen = answers or not any(other.answer for other in mine)
            if chosen and len(mine) == len(tools) and len(kinds) == 1 and None not in kinds:
                found.append(field)
        return found

    # Terms and relations.

    def term(self, kind: Kind, own: l.Calls, seen: l.Calls | None, depth: int = 1) -> l.Term:
        """A term of a kind."""
        options: list[Callable[[], l.Term]] = [lambda: self._const(kind)]
        for field in self._fields(own, answers=seen is None and False):
            if kind_of(field) == kind:
                options += [lambda name=field.name: l.Of(scope="own", name=name)] * 2
        if seen is not None:
            for field in self._fields(seen):
                if kind_of(field) == kind:
                    options += [lambda name=field.name: l.Of(scope="seen", name=name)] * 4
        options += self._attributes(kind)
        if kind == "t" and "time" in self.forms:
            options.append(l.Now)
        if kind in ("n", "t") and depth:
            if self.may("linear", 0.4):
                options.append(lambda: self._linear(kind, own, seen))
            if self.may("max", 0.2):
                sides = [self.term(kind, own, seen, 0) for _ in range(2)]
                options += [lambda: l.Max(one=sides[0], other=sides[1])] * 2
        if kind == "n" and depth and self.may("count of", 0.5):
            lists = self._lists("s", own, seen) + self._lists("n", own, seen)
            if lists:
                options.append(lambda: self._count(self.choice(lists), own, seen))
        found = self._look_of(kind, own, seen) if depth else None
        if found is not None:
            options += [lambda: found] * 12
        return self.choice(options)()

    def _look_of(self, kind: Any, own: l.Calls, seen: l.Calls | None) -> l.Look | None:
        """A look-up that is of a kind, some of the time."""
        looks = [one for one in self.lets if isinstance(one, l.LookUp)]
        if not looks or not self.may("look", 0.6):
            return None
        return self._looked(looks[0], kind, own, seen)

    def _attributes(self, kind: Kind) -> list[Callable[[], l.Term]]:
        names = [one.name for one in self.given]
        names += [let.name for let in self.lets if isinstance(let, l.Let)]
        return [
            lambda name=name: l.Attribute(name=name)
            for name in names
            if self.kind_of_attribute(name) == kind
            for _ in range(2)
        ]

    def _const(self, kind: Kind) -> l.Term:
        if kind == "s":
            return l.Const(value=self.choice((*TEXTS, "x", "p")))
        if kind == "n":
            return l.Const(value=self.choice(NUMBERS))
        if kind == "b":
            return l.Const(value=self.choice((True, False)))
        if kind == "t":
            return l.Now()
        raise LookupError(kind)

    def _linear(self, kind: Kind, own: l.Calls, seen: l.Calls | None) -> l.Term:
        first = self.term(kind, own, seen, 0)
        if kind == "t":
            unit = self.choice(("m", "h", "s"))
            more: l.Term = l.Const(value=self.choice((1, 30)), unit=unit)
        else:
            more = self.term(kind, own, seen, 0)
            if isinstance(first, l.Const) and isinstance(more, l.Const):
                return first
        sign = self.choice((1, -1) if kind == "t" else (1, -1, 2))
        return l.Linear(parts=((1, first), (sign, more)))

    def _lists(self, kind: Kind, own: l.Calls, seen: l.Calls | None) -> list[l.ListTerm]:
        """List terms whose elements are of a kind."""
        found: list[l.ListTerm] = []
        scopes = [("own", self._fields(own, answers=False))]
        if seen is not None:
            scopes.append(("seen", self._fields(seen)))
        for scope, fields in scopes:
            for field in fields:
                mine = kind_of(field)
                if mine == ("l", kind):
                    found.append(l.Of(scope=scope, name=field.name))
                elif isinstance(mine, tuple) and isinstance(mine[1], tuple):
                    if isinstance(kind, str) and mine[1][0] == "r":
                        found += [
                            l.Of(scope=scope, name=field.name, part=part)
                            for part, one in mine[1][1]
                            if one == kind
                        ]
                    elif kind == "r":
                        found.append(l.Of(scope=scope, name=field.name))
        return found

    def _count(self, of: l.ListTerm, own: l.Calls, seen: l.Calls | None) -> l.Term:
        kind = "s" if of in self._lists("s", own, seen) else "n"
        which = self.rng.random()
        if which < 0.4:
            return l.Count(of=of)
        if kind == "s" and which < 0.6 and "like" in self.forms:
            return l.Count(of=of, op=self.choice(("~", "!~")), pattern="[ab]")
        op = self.choice(("=", "!=") if kind == "s" else ("=", "!=", "<", ">="))
        return l.Count(of=of, op=op, than=self.term(kind, own, seen, 0))

    def _looked(
        self, look: l.LookUp, kind: Kind, own: l.Calls, seen: l.Calls | None
    ) -> l.Look | None:
        """A look-up of a field of a kind."""
        if look.calls is not None:
            fields = self._fields(look.calls)
            kinds = [kind_of(f) for name in look.keys for f in fields if f.name == name]
            mine = [f.name for f in fields if kind_of(f) == kind and f.name not in look.keys]
        else:
            mine = {"s": ["number"], "n": ["price"]}.get(str(kind), [])
            kinds = ["s"]
            if len(look.rows) == 1:  # or of the call that the row is of
                of = self._fields(l.Pattern(tool=look.rows[0][0]))
                mine += [f.name for f in of if kind_of(f) == kind and f.name not in _CELLS]
        if not mine:
            return None
        keys = tuple([self.term(one, own, seen, 0) for one in kinds])
        return l.Look(name=look.name, keys=keys, field=self.choice(mine))

    def relation(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        """A relation over B's fields, and those of the earlier call where there is one."""
        makers: list[Callable[[], l.Relation | None]] = [lambda: self._compare(own, seen)] * 3
        if "in" in self.forms:
            makers.append(lambda: self._in(own, seen))
        if "like" in self.forms:
            makers.append(lambda: self._like(own, seen))
        if "every" in self.forms:
            makers.append(lambda: self._every(own, seen))
        if "some" in self.forms or "pairs" in self.forms:
            makers.append(lambda: self._group(own, seen))
        for _ in range(4):
            found = self.choice(makers)()
            if found is not None:
                return found
        return None

    def _left(
        self, kinds: Sequence[Kind], own: l.Calls, seen: l.Calls | None
    ) -> tuple[l.Of, Kind, l.Field] | None:
        options: list[tuple[l.Of, Kind, l.Field]] = []
        scopes = [("own", self._fields(own, answers=False))]
        if seen is not None:
            scopes += [("seen", self._fields(seen))] * 2
        for scope, fields in scopes:
            for field in fields:
                mine = kind_of(field)
                if mine in kinds:
                    options.append((l.Of(scope=scope, name=field.name), mine, field))
        return self.choice(options) if options else None

    def _compare(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        kinds: list[Kind] = ["s", "n", "b", "t", "j", ("l", "s"), ("l", "n")]
        found = self._left(kinds, own, seen)
        if found is None:
            return None
        left, kind, field = found
        mine: l.Term = left
        maybe = field.optional and self.may("maybe", 0.4)
        if not maybe and kind in ("n", "t") and self.may("linear", 0.2):
            mine = self._linear(kind, own, seen)
        if kind == "j" or isinstance(kind, tuple):
            others = self._left([kind], own, seen)
            assert others is not None
            return l.Compare(op=self.choice(("=", "!=")), left=left, right=others[0], maybe=maybe)
        ops = ("=", "!=", "<", "<=", ">", ">=") if kind in ("n", "t") else ("=", "=", "!=")
        return l.Compare(
            op=self.choice(ops), left=mine, right=self.term(kind, own, seen), maybe=maybe
        )

    def _in(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        found = self._left(["s", "n"], own, seen)
        if found is None:
            return None
        left, kind, field = found
        among: list[l.ListTerm] = self._lists(kind, own, seen)
        pool: Sequence[Any] = TEXTS if kind == "s" else NUMBERS
        among.append(l.Constants(values=tuple(self.rng.sample(pool, self.rng.randint(1, 2)))))
        maybe = field.optional and self.may("maybe", 0.4)
        return l.In(
            left=left, right=self.choice(among), negated=self.rng.random() < 0.3, maybe=maybe
        )

    def _like(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        found = self._left(["s"], own, seen)
        if found is None:
            return None
        left, _, field = found
        maybe = field.optional and self.may("maybe", 0.4)
        pattern = self.choice(("[ab]", "a|c d", "x.*", ".*d"))
        return l.Like(left=left, pattern=pattern, negated=self.rng.random() < 0.3, maybe=maybe)

    def _every(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        kind = self.choice(("s", "n"))
        lists = self._lists(kind, own, seen)
        if not lists:
            return None
        element = l.Of(scope=l.ELEMENT, name=None)
        of = self.choice(lists)
        which = self.rng.random()
        if which < 0.3 and kind == "s" and "like" in self.forms:
            return l.Every(
                of=of, each=l.Like(left=element, pattern="[ab]", negated=self.rng.random() < 0.3)
            )
        if which < 0.6 and "in" in self.forms:
            others = [one for one in self._lists(kind, own, seen) if one != of]
            among = (
                self.choice(others)
                if others
                else l.Constants(values=("a", "b") if kind == "s" else (1, 2))
            )
            return l.Every(
                of=of, each=l.In(left=element, right=among, negated=self.rng.random() < 0.3)
            )
        ops = ("=", "!=") if kind == "s" else ("=", "<=", ">")
        right = self.term(kind, own, seen, 0)
        return l.Every(of=of, each=l.Compare(op=self.choice(ops), left=element, right=right))

    def _group(self, own: l.Calls, seen: l.Calls | None) -> l.Relation | None:
        kind = self.choice(("s", "n", "r"))
        lists = self._lists(kind, own, seen)
        if not lists:
            return None
        one = self.choice(lists)
        pairs = "pairs" in self.forms and (self.rng.random() < 0.5 or "some" not in self.forms)
        if pairs and len(lists) > 1:
            other = self.choice([x for x in lists if x != one])
            relation = self._about(
                "a", kind, own, seen, l.Of(scope="b", name="number" if kind == "r" else None)
            )
            return l.Group(every=True, lists=((one, "a"), (other, "b")), relations=(relation,))
        if "some" not in self.forms:
            return None
        relations = [self._about("a", kind, own, seen) for _ in range(self.rng.randint(1, 2))]
        return l.Group(every=False, lists=((one, "a"),), relations=tuple(dict.fromkeys(relations)))

    def _about(
        self, name: str, kind: str, own: l.Calls, seen: l.Calls | None, other: l.Of | None = None
    ) -> l.Relation:
        """A relation over an element, and one of another list."""
        part = (
            None
            if kind != "r"
            else "number"
            if other is not None
            else self.choice(("number", "price"))
        )
        mine: Kind = "s" if kind == "s" or part == "number" else "n"
        left = l.Of(scope=name, name=part)
        ops = ("=", "!=") if mine == "s" else ("=", "<=", ">")
        right = self.term(mine, own, seen, 0) if other is None else other
        return l.Compare(op=self.choice(ops), left=left, right=right)

    # Statements.

    def _statement(self) -> l.Statement:
        makers: list[Callable[[], l.Statement | None]] = [self._require] * 3 + [self._forbid] * 3
        makers += [self._uses] * 2
        if self.theme & {"unless", "last"}:
            makers += [self._forbid] * 4
        for form, maker in (
            ("sum", self._sum), ("owed", self._owed), ("next", self._next), ("with", self._with),
            ("least", self._least), ("require where", self._where),
        ):  # fmt: skip
            if form in self.forms:
                makers += [maker] * (5 if form in self.theme else 1)
        while True:
            found = self.choice(makers)()
            if found is not None:
                return found

    def _pairs(
        self, one: l.Calls, other: l.Calls, *, old: bool = False
    ) -> list[tuple[str, l.Term]]:
        """Pairs of `same`: an argument of each tool of the one, a term of the other."""
        old = old or "where" not in self.forms
        options: list[tuple[str, l.Term]] = []
        for a in self._fields(one, answers=False):
            kind = kind_of(a)
            if kind == "j" or isinstance(kind, tuple) or (a.optional and old):
                continue
            for b in self._fields(other, answers=False):
                if kind_of(b) != kind or (old and (b.optional or a.listed is not b.listed)):
                    continue
                options.append((a.name, l.Of(scope="own", name=b.name)))
            if not old:
                options += [(a.name, make()) for make in self._attributes(kind or "")]
            found = self._look_of(kind, other, None)
            options += [] if found is None else [(a.name, found)] * 4
        size = min(len(options), self.choice((0, 1, 1, 1, 2)))
        return self.rng.sample(options, size)

    def _alternative(
        self, other: l.Calls, *, answers: bool = True, bare: bool = False
    ) -> l.Alternative:
        """An alternative before a call in a set."""
        if not bare and self.may("require where", 0.15):
            relation = self.relation(other, None)
            if relation is not None:
                return l.Alternative(calls=None, where=(relation,))
        calls = self._set(answers=answers)
        same = tuple(dict.fromkeys(self._pairs(calls, other)))
        where: list[l.Relation] = []
        if self.may("where", 0.6):
            found = [self.relation(other, calls) for _ in range(self.choice((1, 1, 2)))]
            where = [one for one in found if one is not None]
        last = self.may("last", 0.3)
        least = 2 if not last and self.may("count", 0.12) else 1
        within = self.choice(WINDOWS) if self.may("within", 0.2) else None
        return l.Alternative(
            calls=calls, last=last, least=least, same=same, where=tuple(dict.fromkeys(where)),
            within=within,
        )  # fmt: skip

    def _alternatives(self, other: l.Calls, *, answers: bool = True) -> tuple[l.Alternative, ...]:
        many = 2 if self.may("or", 0.25) else 1
        return tuple(dict.fromkeys(self._alternative(other, answers=answers) for _ in range(many)))

    def _monitor(self) -> bool:
        return self.may("monitor", 0.1)

    def _require(self) -> l.Statement | None:
        before = self._set(answers=False)
        each = self.may("each", 0.25)
        alternatives = self._alternatives(before)
        if all(one.calls is None for one in alternatives) and (each or len(alternatives) > 1):
            return None
        return l.Require(alternatives=alternatives, before=before, each=each)

    def _where(self) -> l.Statement | None:
        before = self._set(answers=False)
        relation = self.relation(before, None)
        if relation is None:
            return None
        return l.Require(
            alternatives=(l.Alternative(calls=None, where=(relation,)),), before=before
        )

    def _forbid(self) -> l.Statement | None:
        before = self._set(answers=False)
        alternatives = self._alternatives(before)
        unless: tuple[l.Alternative, ...] = ()
        if self.may("unless", 0.4):
            unless = (self._alternative(before, bare=True),)
        if any(one.calls is None for one in (*alternatives, *unless)):
            return None
        return l.Forbid(alternatives=alternatives, before=before, unless=unless)

    def _owed(self) -> l.Statement | None:
        one, other = self._set(plain=True), self._set(plain=True)
        same = tuple(dict.fromkeys(self._pairs(one, other, old=True)))
        if "owed same" not in self.forms:
            same = ()
        return l.Owed(calls=one, after=other, same=same)

    def _next(self) -> l.Statement | None:
        return l.Neighbours(sets=tuple(self._pattern() for _ in range(self.choice((1, 2, 2, 3)))))

    def _with(self) -> l.Statement | None:
        one, other = self._pattern(answers=False), self._pattern(answers=False)
        same = tuple(dict.fromkeys(self._pairs(one, other, old=True)))
        return l.Apart(one=one, other=other, same=same)

    def _least(self) -> l.Statement | None:
        return l.Uses(calls=self._pattern(), most=self.choice((1, 1, 2)), least=True)

    def _uses(self) -> l.Statement | None:
        calls = self._set(answers=False)
        where: tuple[l.Relation, ...] = ()
        if self.may("uses where", 0.4):
            relation = self.relation(calls, None)
            where = () if relation is None else (relation,)
        names = [
            f.name
            for f in self._fields(calls, answers=False)
            if not f.optional and kind_of(f) in ("s", "n", "b")
        ]
        many = self.choice((1, 2)) if "per several" in self.forms else 1
        per: tuple[l.Term, ...] = ()
        if names and self.may("per", 0.6):
            per = tuple(
                l.Of(scope="own", name=name)
                for name in self.rng.sample(names, min(many, len(names)))
            )
        found = self._look_of("s", calls, None) if self.may("per", 0.3) else None
        per += () if found is None else (found,)
        within = self.choice(WINDOWS) if self.may("within", 0.25) else None
        return l.Uses(
            calls=calls, most=self.choice((0, 1, 1, 2)), where=where, per=per, within=within,
            monitor=self._monitor(),
        )  # fmt: skip

    def _sum(self) -> l.Statement | None:
        options = [
            (tool, field)
            for tool in self.tools
            for field in tool.fields
            if not field.answer and kind_of(field) == "n"
            and not (field.optional and not field.listed)
        ]  # fmt: skip
        if not options:
            return None
        tool, field = self.choice(options)
        per: tuple[l.Term, ...] = ()
        if self.may("sum per", 0.4):
            names = [
                f.name
                for f in tool.fields
                if not f.answer and not f.optional and kind_of(f) in ("s", "b") and f != field
            ]
            per = tuple(l.Of(scope="own", name=name) for name in names[:1])
        found = self._look_of("s", l.Pattern(tool=tool.name), None)
        per += () if found is None else (found,)
        within = self.choice(WINDOWS) if self.may("within", 0.25) else None
        return l.Sum(
            tool=tool.name, field=field.name, most=self.choice((1, 2.5, 4)), per=per,
            within=within, monitor=self._monitor(),
        )  # fmt: skip


# Sessions.


@dataclass(frozen=True, kw_only=True)
class Step:
    """What happens next: a call and what comes of it.

    Attributes:
        later: seconds since the step before; the clock may go back.
        outcome: ``done failed answered unknown``, if it is let through.
        answer: JSON.
        resolve: a draw below 1: whether, and which, unknown outcome is then resolved.
    """

    tool: str
    arguments: dict[str, Any]
    later: int
    outcome: str
    answer: Any
    resolve: float
    resolved: str


class Play:
    """Draws the steps of a session."""

    def __init__(self, seed: object, grammar: l.Grammar) -> None:
        self.rng = random.Random(f"session {seed}")
        self.grammar = grammar

    def given(self) -> dict[str, Any]:
        """What is handed in at the opening."""
        return {field.name: self._value(field, 1.0) for field in self.grammar.given}

    def step(self) -> Step:
        """The next one."""
        rng = self.rng
        tool = rng.choice(self.grammar.tools)
        outcomes = ["done"] * 7 + ["failed", "unknown", "unknown"] + ["answered"] * tool.errors
        return Step(
            tool=tool.name,
            arguments=self.arguments(tool),
            later=rng.choice((0, 0, 1, 30, 60, 90, 1800, 3600, -100)),
            outcome=rng.choice(outcomes),
            answer=self.answer(tool),
            resolve=rng.random(),
            resolved=rng.choice(("done", "failed")),
        )

    def arguments(self, tool: l.Tool) -> dict[str, Any]:
        """Arguments, mostly good ones."""
        found = self._object([f for f in tool.fields if not f.answer], 0.985)
        if self.rng.random() < 0.02:
            found["undeclared"] = 1
        return found

    def answer(self, tool: l.Tool) -> Any:
        """An answer, mostly a good one."""
        if self.rng.random() < 0.04:
            return self.rng.choice(WRONGS)
        return self._object([f for f in tool.fields if f.answer], 0.92)

    def _object(self, fields: Sequence[l.Field], good: float) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for field in fields:
            missing = self.rng.random()
            if missing < (0.4 if field.optional else 1 - good):
                continue
            if field.null and self.rng.random() < 0.3:
                put(found, field.place or "/" + field.name, None)
                continue
            if field.name == "pays":
                found["pays"] = self._pays(good)
                continue
            if not field.answer and field.place is not None:
                continue  # it is read out of its head
            value = self._value(field, good)
            many = field.place is not None and "*" in field.place and isinstance(value, list)
            put(found, field.place or "/" + field.name, value, many=many)
        return found

    def _pays(self, good: float) -> Any:
        if self.rng.random() > good:
            return self.rng.choice(WRONGS)
        size = self.rng.randint(0, 3)
        which = self.rng.random()
        items = [self.rng.choice(TEXTS) for _ in range(size)]
        if which < 0.3:
            return items
        rows: list[Any] = [{"id": item} for item in items]
        if which < 0.4 and rows:
            rows[-1] = {}
        return {f"p{i}": row for i, row in enumerate(rows)} if which > 0.8 else rows

    def _value(self, field: l.Field, good: float) -> Any:
        if self.rng.random() > good:
            return self.rng.choice(WRONGS)
        if field.values is not None:
            if field.rest and self.rng.random() < 0.3:
                return self.rng.choice(("other", 9, None, [1]))
            return self.rng.choice(field.values)
        assert field.type is not None
        return self._typed(field.type)

    def _typed(self, kind: l.Type) -> Any:
        rng = self.rng
        match kind.kind:
            case "text":
                return rng.choice(TEXTS)
            case "integer":
                return rng.choice((*WHOLE, 2.0))
            case "number":
                return rng.choice(NUMBERS)
            case "flag":
                return rng.choice((True, False))
            case "json":
                return rng.choice((None, 1, 1.0, "a", [1, "a"], {"a": 1, "b": [True]}))
            case "time":
                return rng.choice((*TIMES, *(BARE_TIMES if kind.zone else ())))
            case "date":
                return rng.choice(DATES)
            case "list":
                assert kind.of is not None
                size = rng.choice((0, 1, 2, 2, 3))
                if kind.of.kind != "text" or kind.low is None:
                    return [self._typed(kind.of) for _ in range(size)]
                return rng.sample(TEXTS, max(1, size)) if rng.random() < 0.9 else ["a", "a"]
            case "record":
                found: dict[str, Any] = {}
                for field in kind.fields:
                    if rng.random() < 0.98:
                        assert field.type is not None
                        put(found, field.place or "/" + field.name, self._typed(field.type))
                if rng.random() < 0.2:
                    found["more"] = [1]
                return found
        raise AssertionError(kind)


def put(into: dict[str, Any], place: str, value: Any, *, many: bool = False) -> None:
    """Set what stands at a pointer; `many`: each element of the value for its ``*``."""
    steps = place[1:].split("/")
    at = into
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if after is None:
            at[step] = value
        elif after == "*":
            rest = steps[steps.index("*") + 1 :]
            if not many:
                at[step] = value
            else:
                at[step] = [{rest[0]: item} for item in value] if rest else value
            return
        else:
            inner = at.setdefault(step, {})
            if not isinstance(inner, dict):
                return
            at = inner

"""Random cores, statements and histories for :mod:`tests.oracle_meaning`.

Names say their kind.  Fields begin with ``f``, members of records with ``m``, tools with ``t``,
`let`s with ``d``, parameters with ``p``, attributes with ``g`` and listed values with ``v``.  The
second letter of a field, member or attribute is its type: ``s`` text, ``n`` number, ``b`` flag,
``t`` time, ``d`` date, ``p`` path, ``u`` text or number, ``e`` listed, ``r`` record, and ``l`` a
list of what the third letter says (``o`` is a record).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tcc_certs.policy import nodes as n
from tcc_certs.policy.core import Core, Given, Learned, Tool
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, OPEN, Call
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.plans import Empty
from tcc_certs.values.declared import FlagType, NumberType, PathType, TextType
from tcc_certs.values.fields import (
    DateType,
    Field,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import rest_of
from tests.oracle_meaning.world import ABSENT, NULL, Located, Moment, Record

HOUR, DAY = 3_600_000, 86_400_000
START = 1_790_000_000_000 // DAY * DAY  # a midnight
_TIMES = (START, START + 90 * 60_000, START + DAY, START + DAY + 23 * HOUR)
_TIME_TEXTS = ("2026-09-21T00:00:00Z", "2026-09-22T01:30:00+02:00", "2026-09-22T23:00:00Z")
_DATES = (START, START + DAY, START + 2 * DAY)
_DATE_TEXTS = ("2026-09-21", "2026-09-22", "2026-09-23")
_SPANS = (("30", "m"), ("1", "h"), ("24", "h"), ("2", "d"))
_PATHS = ("/", "/a", "/a/b", "/ab", "/b")
_PATTERNS = ("a.*", "[ab]", ".*", "[^a]+")
_MOST = 3  # elements of a list

_RECORD = RecordType(
    fields=(
        Field(name="ms1", steps=("ms1",), type=TextType()),
        Field(name="mn1", steps=("mn1",), type=NumberType(whole=False)),
        Field(name="mb1", steps=("mb1",), type=FlagType(), optional=True, null=True),
        Field(name="mls1", steps=("mls1",), type=ListType(of=TextType(), most=_MOST)),
    )
)
_UNION = UnionType(of=(TextType(), NumberType(whole=False)))
_LISTED = {"fe1": ("v1", "v2", "v3"), "fe2": ("v1", "v4", "*"), "fe3": ("v1", "v2")}
_TYPES: dict[str, Any] = {
    "fs1": TextType(), "fs2": TextType(), "fs3": NullableType(of=TextType()),
    "fn1": NumberType(whole=False), "fn2": NumberType(whole=False, low="0", high="9"),
    "fb1": FlagType(), "ft1": TimeType(zone=None), "fd1": DateType(zone=0),
    "fp1": PathType(), "fp2": NullableType(of=PathType()), "gp1": PathType(),
    "flp1": ListType(of=PathType(), most=_MOST),
    "fu1": _UNION, "fu2": NullableType(of=_UNION), "gu1": _UNION,
    "flu1": ListType(of=_UNION, most=_MOST),
    "fls1": ListType(of=TextType(), most=_MOST),
    "fln1": ListType(of=NumberType(whole=False), most=_MOST),
    "flo1": ListType(of=_RECORD, most=_MOST), "fr1": _RECORD,
    "gs1": TextType(), "gn1": NumberType(whole=False), "gls1": ListType(of=TextType(), most=_MOST),
}  # fmt: skip
_MEMBERS = {"ms1": "s", "mn1": "n", "mb1": "b", "mls1": "ls"}
_ARGUMENTS = ("fs1", "fs2", "fs3", "fn1", "fn2", "fb1", "ft1", "fd1", "fe1", "fe3", "fls1", "fln1",
              "flo1", "fr1", "fp1", "fp2", "flp1", "fu1", "fu2", "flu1")  # fmt: skip
_ANSWERS = (*_ARGUMENTS, "fe2")


def type_of(name: str) -> str:
    """The type letters of a name."""
    return name[1:3] if name[1] == "l" else name[1]


# Values.


def state(letters: str, rng: random.Random) -> tuple[str, Any]:
    """The state of a value of a type."""
    match letters:
        case "s":
            return "s", rng.choice("ab")
        case "n":
            return "n", rng.choice((0, 1, 2, Fraction(5, 2)))
        case "b":
            return "b", rng.random() < 0.5
        case "t":
            return "t", rng.choice(_TIMES)
        case "d":
            return "t", rng.choice(_DATES)
        case "p":
            return "p", rng.choice(_PATHS)
        case "u":
            return state(rng.choice("sn"), rng)
        case "r" | "o":
            members = []
            for name, of in _MEMBERS.items():
                absent = name == "mb1" and rng.random() < 0.3
                members.append((name, ("none", None) if absent else state(of, rng)))
            return "r", tuple(members)
    size = rng.choice((0, 1, 1, 2, 3))
    return "l", tuple([state(letters[1], rng) for _ in range(size)])


def listed_state(values: Sequence[str], rng: random.Random) -> tuple[str, Any]:
    value = rng.choice(values)
    return rest_of(tuple(values)) if value == "*" else ("s", value)


def pool(name: str) -> Sequence[Any]:
    """Values that an unknown field of a name may have: declared ones and others."""
    return _POOLS[type_of(name)]


def _record(text: Any, number: Any, flag: Any, texts: Any) -> Record:
    return Record((("ms1", text), ("mn1", number), ("mb1", flag), ("mls1", texts)))


_R1 = _record("a", Fraction(1), True, ("a",))
_R2 = _record("b", Fraction(0), ABSENT, ())
_R3 = _record(Fraction(1), "a", NULL, ("b", "c"))
_POOLS: dict[str, Sequence[Any]] = {
    "s": ("a", "b", "c", Fraction(1), NULL, ABSENT),
    "n": (Fraction(0), Fraction(1), Fraction(2), Fraction(5, 2), Fraction(-3), "a", NULL, ABSENT),
    "b": (True, False, "a", ABSENT),
    "t": (*[Moment(ms) for ms in _TIMES], Moment(0), "a", ABSENT),
    "d": (*[Moment(ms) for ms in _DATES], Moment(0), "a", ABSENT),
    "p": (Located("/a"), Located("/a/b"), Located("/"), "a", NULL, ABSENT),
    "lp": (ABSENT, (), (Located("/a"),), ("a", Located("/ab")), (Located("/"), Located("/a/b"))),
    "u": ("a", "b", Fraction(1), Fraction(2), True, NULL, ABSENT),
    "lu": (ABSENT, (), ("a", Fraction(1)), (Fraction(2),), (True, "b")),
    "e": ("v1", "v2", "v3", "v4", "zz", Fraction(1), ABSENT),
    "r": (_R1, _R2, _R3, "a", ABSENT),
    "ls": (ABSENT, (), ("a",), ("b", "a"), (Fraction(1), "c"), ("a", "a", "b")),
    "ln": (ABSENT, (), (Fraction(1),), (Fraction(0), Fraction(2)), ("a",), (Fraction(1),) * 3),
    "lo": (ABSENT, (), (_R1,), (_R2, _R1), (_R3,), ("a", _R2)),
}


# Places.


@dataclass(frozen=True)
class Elem:
    """What an element or a call is.

    Attributes:
        letters: ``call``, or the type of a value.
        tools: of a call, or of the call of a row.
        any: whether the set was written with `any`.
        decided: whether its answers do not exist yet.
    """

    letters: str
    tools: tuple[str, ...] = ()
    any: bool = False
    decided: bool = False


@dataclass(frozen=True)
class Place:
    """What may be named at a place."""

    this: Elem | None
    it: Elem | None = None
    names: tuple[tuple[str, Elem], ...] = ()
    bare: bool = True  # whether bare names are fields of `this` where there is no `it`
    levels: int = 2  # of sources that may be in a filter
    clause: bool = False  # whether `unused` fits


@dataclass
class Case:
    """A core with statements."""

    core: Core
    conditions: list[n.Require] = field(default_factory=list)


class Drawer:
    """Draws what a core has."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.tools = self._tools()
        self.tool_of = {tool.name: tool for tool in self.tools}
        self.given = self._given()
        self.lets: list[n.Definition] = []
        self._block: list[n.Definition] = []
        self._count = 0

    def _tools(self) -> list[Tool]:
        rng = self.rng
        found = []
        for at in range(rng.randint(2, 4)):
            names = rng.sample(_ANSWERS, rng.randint(3, 7))
            cut = rng.randint(1, len(names) - 1)
            arguments = [one for one in names[:cut] if one != "fe2"] or ["fs1"]
            answers = [one for one in names[cut:] if one not in arguments]
            found.append(
                Tool(
                    name=f"t{at}",
                    arguments=tuple([self._field(one, False) for one in arguments]),
                    answers=tuple([self._field(one, True) for one in answers]),
                )
            )
        return found

    def _field(self, name: str, answer: bool) -> Field:
        optional = self.rng.random() < 0.35
        kind = _TYPES.get(name)
        null = answer and optional and not isinstance(kind, NullableType)
        return Field(
            name=name, steps=(name,), type=kind, values=_LISTED.get(name, ()), optional=optional,
            null=null,
        )  # fmt: skip

    def _given(self) -> list[Given]:
        found: list[Given] = [
            Field(name=name, steps=(name,), type=_TYPES[name], optional=self.rng.random() < 0.3)
            for name in ("gs1", "gn1", "gp1", "gu1", "gls1")
        ]
        sources = [
            (tool.name, one.name)
            for tool in self.tools
            for one in (*tool.arguments, *tool.answers)
            if one.name in ("fs1", "fs2")
        ]
        if sources:
            found.append(Learned(name="gs2", sources=tuple(sources[:2])))
        return found

    # Fields.

    def fields(self, tools: Sequence[str], decided: bool, any_: bool = False) -> list[str]:
        """The names of fields that all these tools have; with `any`, that one has."""
        found: list[set[str]] = []
        for name in tools:
            tool = self.tool_of[name]
            found.append({one.name for one in tool.arguments})
            if not decided:
                found[-1] |= {one.name for one in tool.answers}
        return sorted(set.union(*found) if any_ else set.intersection(*found))

    def paths(self, place: Place) -> list[tuple[n.Node, str]]:
        """Terms that read a value, each with its type."""
        found: list[tuple[n.Node, str]] = []
        it, this = place.it, place.this
        if it is not None:
            found += self._paths_of(it, n.Word, it.any) if self.rng.random() < 0.8 else []
            found += self._paths_of(it, lambda name: n.Get(n.It(), name), it.any)
            if it.letters not in ("call", "r", "o", "pair"):
                found += [(n.It(), it.letters)] * 4
        if this is not None:
            bare = it is None and place.bare and self.rng.random() < 0.7
            found += self._paths_of(this, n.Word if bare else lambda name: n.Get(n.This(), name))
        for word, elem in place.names:
            if elem.letters == "call":
                found += self._paths_of(elem, lambda name, word=word: n.Get(n.Word(word), name)) * 3
            else:
                found += [(n.Word(word), elem.letters)] * 4
        for given in self.given:
            found.append((n.Session(given.name), type_of(given.name)))
        return found

    def _paths_of(
        self, elem: Elem, read: Callable[[str], n.Node], any_: bool = False
    ) -> list[tuple[n.Node, str]]:
        found: list[tuple[n.Node, str]] = []
        if elem.letters in ("r", "o"):
            found += [(read(name), letters) for name, letters in _MEMBERS.items()]
        if elem.letters == "pair":
            found += [(read("left"), elem.tools[0]), (read("right"), elem.tools[1])]
        elif elem.tools and (elem.letters == "call" or not any_):
            for name in self.fields(elem.tools, elem.decided, any_):
                letters = type_of(name)
                found.append((read(name), name if letters == "e" else letters))
                if letters == "r":
                    found += [(n.Get(read(name), m), of) for m, of in _MEMBERS.items()]
        return found

    # Conditions.

    def condition(self, place: Place, depth: int) -> n.Node:
        rng = self.rng
        if depth <= 0 or (place.it is not None and place.it.any):
            return self._simple(place, depth)
        if place.it is None and rng.random() < 0.08:
            return self._named(place, depth)
        what = rng.random()
        if what < 0.12:
            return n.Not(self._negatable(place, depth - 1))
        if what < 0.32:
            kind = n.And if rng.random() < 0.5 else n.Or
            return kind(
                tuple([self.condition(place, depth - 1) for _ in range(rng.choice((2, 2, 3)))])
            )
        if what < 0.62 and place.levels:
            return self._quantified(place, depth)
        if what < 0.70 and place.it is not None and rng.random() < 0.7:
            return self._through(place, depth)
        if what < 0.76 and place.clause:
            found = self._unused(place, depth)
            if found is not None:
                return found
        return self._simple(place, depth)

    def _negatable(self, place: Place, depth: int) -> n.Node:
        for _ in range(5):
            found = self.condition(place, depth)
            if isinstance(found, n.Compare | n.Between | n.And | n.Or | n.No | n.Every | n.Not):
                return found
        return self._compared(place, 0)

    def _simple(self, place: Place, depth: int) -> n.Node:
        rng = self.rng
        paths = self.paths(place)
        what = rng.random()
        if what < 0.10 and place.it is not None and place.it.letters == "call" and place.this:
            both = set(self.fields(place.it.tools, False)) & set(
                self.fields(place.this.tools, place.this.decided)
            )
            if both:
                names = rng.sample(sorted(both), min(len(both), rng.choice((1, 1, 2))))
                return n.Same(tuple(names))
        if what < 0.16:
            flags = [node for node, letters in paths if letters == "b"]
            if flags:
                return rng.choice(flags)
        if what < 0.24:
            node, _ = rng.choice(paths) if paths else (n.Session("gs1"), "s")
            return n.Compare(rng.choice(("=", "!=")), node, n.Null())
        if what < 0.30:
            texts = [node for node, letters in paths if letters == "s"]
            if texts:
                pattern = n.Text(rng.choice(_PATTERNS))
                return n.Compare(rng.choice(("~", "!~")), rng.choice(texts), pattern)
        if what < 0.36:
            located = [node for node, letters in paths if letters == "p"]
            if located:
                around = self.term("p", place, depth)
                return n.Compare(rng.choice(("under", "not under")), rng.choice(located), around)
        if what < 0.42:
            unions = [node for node, letters in paths if letters == "u"]
            if unions:
                return self._of_union(rng.choice(unions), place, depth)
        if what < 0.51 and place.levels:
            found = self._among(place, depth)
            if found is not None:
                return found
        return self._compared(place, depth)

    def _compared(self, place: Place, depth: int) -> n.Node:
        rng = self.rng
        listed = [(node, of) for node, of in self.paths(place) if of[0] == "f"]
        if listed and rng.random() < 0.25:
            return self._listed(place, *rng.choice(listed))
        letters = rng.choices("sntbxp", (5, 6, 2, 1, 1, 1))[0]
        for _ in range(8):
            left = self.term(letters, place, depth)
            if isinstance(left, n.Text | n.Number | n.Flag | n.Duration):
                continue
            break
        right = self.term(letters, place, depth)
        if letters == "x":
            right = n.Duration(*rng.choice(_SPANS))
        if left == right:
            right = self._constant(letters)
        if letters in "sbp" or rng.random() < 0.35:
            operator = rng.choice(("=", "!="))
            if rng.random() < 0.2:
                right = n.Union((right, self._constant(letters), self._constant(letters)))
            return n.Compare(operator, left, right)
        if rng.random() < 0.2:
            operator = rng.choice(("in", "not in"))
            return n.Between(
                operator, left, right, self.term(letters if letters != "x" else "x", place, 0)
            )
        return n.Compare(rng.choice(("<", "<=", ">", ">=")), left, right)

    def _of_union(self, node: n.Node, place: Place, depth: int) -> n.Node:
        """A comparison of a text or number with a text, a number, or another of both."""
        rng = self.rng
        if rng.random() < 0.3:
            return n.Compare(rng.choice(("~", "!~")), node, n.Text(rng.choice(_PATTERNS)))
        letters = rng.choice("snu")
        others = [other for other, of in self.paths(place) if of == letters and other != node]
        right = rng.choice(others) if others else self._constant(rng.choice("sn"))
        return n.Compare(rng.choice(("=", "!=")), node, right)

    def _listed(self, place: Place, node: n.Node, name: str) -> n.Node:
        rng = self.rng
        values = [value for value in _LISTED[name] if value != "*"]
        operator = rng.choice(("=", "!="))
        others = [other for other, of in self.paths(place) if of == name and other != node]
        if others and rng.random() < 0.4:
            return n.Compare(operator, node, rng.choice(others))
        words: list[n.Node] = [n.Word(value) for value in rng.sample(values, rng.choice((1, 1, 2)))]
        return n.Compare(operator, node, words[0] if len(words) == 1 else n.Union(tuple(words)))

    def _constant(self, letters: str) -> n.Node:
        rng = self.rng
        match letters:
            case "s":
                return n.Text(rng.choice("abc"))
            case "n":
                return n.Number(rng.choice(("1", "2", "2.5", "3", "-1")))
            case "b":
                return n.Flag(rng.random() < 0.5)
            case "t":
                return n.Text(rng.choice(_DATE_TEXTS if rng.random() < 0.7 else _TIME_TEXTS))
            case "d":
                return n.Text(rng.choice(_DATE_TEXTS))
            case "p":
                return n.Text(rng.choice(_PATHS))
            case "u":
                return self._constant(rng.choice("sn"))
        return n.Duration(*rng.choice(_SPANS))

    def _among(self, place: Place, depth: int) -> n.Node | None:
        node, elem = self.source(place, min(depth, 1), rows=True)
        if elem.letters not in ("s", "n", "t", "p", "u"):
            return None
        left = self.term(elem.letters, place, 0)
        return n.Compare(self.rng.choice(("in", "not in")), left, node)

    def _quantified(self, place: Place, depth: int) -> n.Node:
        what = self.rng.random()
        if what < 0.35:
            return n.Every(self.source(place, depth, filtered=True)[0])
        node, _ = self.source(place, depth)
        return n.No(node) if what < 0.7 else node

    def _unused(self, place: Place, depth: int) -> n.Node | None:
        this = place.this
        assert this is not None
        for name in self.rng.sample(sorted(self.tool_of), len(self.tool_of)):
            both = set(self.fields([name], False)) & set(self.fields(this.tools, True))
            if not both:
                continue
            key = self.rng.choice(sorted(both))
            it = Elem("call", (name,))
            inner = replace(place, it=it, levels=0, clause=False)
            match self.rng.randrange(3):
                case 0:
                    first: n.Node = n.Same((key,))
                case 1:
                    first = n.Compare("=", n.Word(key), n.Get(n.This(), key))
                case _:
                    first = n.And((n.Same((key,)), self._simple(inner, 0)))
            conditions = [first]
            if self.rng.random() < 0.5:
                conditions.append(self._simple(inner, 0))
            node: n.Node = n.Where(n.Word(name), tuple(conditions))
            if self.rng.random() < 0.3:
                node = n.Within(node, *self.rng.choice(_SPANS))
            return n.Unused(node)
        return None

    # Lets.

    def _new(self, letter: str) -> str:
        self._count += 1
        return f"{letter}{self._count}"

    def _named(self, place: Place, depth: int) -> n.Node:
        """A condition that a `let` names."""
        name = self._new("d")
        in_file = self.rng.random() < 0.4
        names = () if in_file else place.names
        inner = replace(place, names=names, bare=not in_file and place.bare, clause=False)
        body = self._negatable(inner, depth - 1)
        let = n.Definition(name=name, body=body)
        (self.lets if in_file else self._block).append(let)
        return n.Word(name)

    def _through(self, place: Place, depth: int) -> n.Node:
        """A condition on the element by a `let` with a parameter."""
        assert place.it is not None
        parameter, name = self._new("p"), self._new("d")
        in_file = self.rng.random() < 0.5
        argument: n.Node = n.It()
        elem = place.it
        if elem.letters != "call":
            options = [(node, of) for node, of in self.paths(place) if of in ("s", "n")]
            if not options:
                return self._simple(place, depth)
            argument, letters = self.rng.choice(options)
            elem = Elem(letters)
        bound = ((parameter, elem),) if in_file else (*place.names, (parameter, elem))
        inner = Place(
            this=place.this, it=None, names=bound, bare=not in_file and place.bare,
            levels=place.levels,
        )  # fmt: skip
        body = self._negatable(inner, depth - 1)
        let = n.Definition(name=name, parameters=(parameter,), body=body)
        (self.lets if in_file else self._block).append(let)
        return n.Where(n.Word(name), (argument,))

    # Collections.

    def calls(self, place: Place, depth: int, *, wide: bool = True) -> tuple[n.Node, Elem]:
        """A set of calls, perhaps with a filter."""
        rng = self.rng
        names = sorted(self.tool_of)
        what = rng.random()
        any_ = False
        if wide and what < 0.08:
            return n.AnyTool(), Elem("call", tuple(names), any=True)
        if wide and what < 0.16:
            out = rng.choice(names)
            left = tuple([name for name in names if name != out])
            return n.Minus(n.AnyTool(), n.Word(out)), Elem("call", left, any=True)
        if wide and what < 0.20:
            out = rng.choice(names)
            inner = replace(place, it=Elem("call", (out,)), levels=0, clause=False)
            excluded = n.Where(n.Word(out), (self._simple(inner, 0),))
            return n.Minus(n.AnyTool(), excluded), Elem("call", tuple(names), any=True)
        if what < 0.35:
            some = rng.sample(names, 2)
            return n.Union(tuple([n.Word(name) for name in some])), Elem(
                "call", tuple(sorted(some))
            )
        name = rng.choice(names)
        if rng.random() < 0.08:
            let = self._new("d")
            self.lets.append(n.Definition(name=let, body=n.Word(name)))
            return n.Word(let), Elem("call", (name,), any=any_)
        return n.Word(name), Elem("call", (name,), any=any_)

    def source(
        self, place: Place, depth: int, *, filtered: bool = False, rows: bool = False
    ) -> tuple[n.Node, Elem]:
        """A collection with its filter and modifiers."""
        rng = self.rng
        node, elem = self._base(place, depth, rows)
        is_list = not elem.tools or elem.letters == "pair"
        if elem.any and isinstance(node, n.Minus) and isinstance(node.right, n.Where):
            filtered_here = False
        else:
            filtered_here = filtered or rng.random() < 0.7
        if filtered_here or filtered:
            node = n.Where(node, self._filter(place, elem, depth - 1))
        if not is_list and rng.random() < 0.2:
            node = n.Within(node, *rng.choice(_SPANS))
        if not is_list and rng.random() < 0.22:
            node = n.Since(node, self._mark(place, depth))
        return node, replace(elem, any=False)

    def _mark(self, place: Place, depth: int) -> n.Node:
        mark, elem = self.calls(place, depth)
        if self.rng.random() < 0.5 and not (
            isinstance(mark, n.Minus) and isinstance(mark.right, n.Where)
        ):
            mark = n.Where(mark, self._filter(place, elem, depth - 1))
        return mark

    def _filter(self, place: Place, elem: Elem, depth: int) -> tuple[n.Node, ...]:
        inner = replace(place, it=elem, levels=place.levels - 1, clause=False)
        size = 2 if self.rng.random() < 0.2 else 1
        return tuple([self.condition(inner, depth) for _ in range(size)])

    def _base(self, place: Place, depth: int, rows: bool) -> tuple[n.Node, Elem]:
        rng = self.rng
        what = rng.random()
        if not rows and what < 0.5:
            return self.calls(place, depth)
        lists = [(node, of) for node, of in self.paths(place) if of[0] == "l"]
        if lists and what < 0.68:
            node, of = rng.choice(lists)
            if rng.random() < 0.15:
                other, of_other = rng.choice(lists)
                return n.Apply("pairs", (node, other)), Elem("pair", (of[1], of_other[1]))
            return node, Elem(of[1])
        calls, elem = self.calls(place, depth, wide=False)
        if place.levels and rng.random() < 0.4:
            calls = n.Where(calls, self._filter(place, elem, depth - 1))
        names = self.fields(elem.tools, False)
        wanted = [name for name in names if type_of(name)[0] != "e"]
        if not wanted:
            return self.calls(place, depth)
        name = rng.choice(wanted)
        letters = type_of(name)
        if letters[0] == "l" and rng.random() < 0.3:
            return n.Get(n.Apply("last", (calls,)), name), Elem(letters[1])
        node = n.Get(calls, name)
        of = letters[1] if letters[0] == "l" else letters
        if of in ("o", "r") and rng.random() < 0.5:
            member = rng.choice(sorted(_MEMBERS))
            if rng.random() < 0.4 and place.levels:
                node = n.Where(node, self._filter(place, Elem(of, elem.tools), 0))
            letters = _MEMBERS[member]
            if rng.random() < 0.25:
                member = rng.choice(wanted)
                letters = type_of(member)
            return n.Get(node, member), Elem(letters[-1], elem.tools)
        if rng.random() < 0.15:
            others = [t for t in self.tool_of if name in self.fields([t], False)]
            other = rng.choice(others)
            node = n.Union((node, n.Get(n.Word(other), name)))
            return node, Elem(of, tuple(sorted({*elem.tools, other})))
        return node, Elem(of, elem.tools)

    # Terms.

    def term(self, letters: str, place: Place, depth: int) -> n.Node:
        rng = self.rng
        wanted = ("t", "d") if letters == "t" else (letters,)
        paths = [node for node, of in self.paths(place) if of in wanted]
        simple = place.it is not None and place.it.any
        if paths and (depth <= 0 or simple or rng.random() < 0.5):
            return rng.choice(paths)
        if depth <= 0 or simple:
            return n.Now() if letters == "t" and rng.random() < 0.5 else self._plain(letters)
        what = rng.random()
        if what < 0.12 and place.levels:
            found = self._last(letters, place, depth)
            if found is not None:
                return found
        if what < 0.2:
            return self._match(letters, place, depth)
        if letters == "n":
            return self._number(place, depth)
        if letters == "t":
            return self._time(place, depth)
        if letters == "x":
            return n.Minus(n.Now(), self.term("t", place, 0))
        return rng.choice(paths) if paths else self._plain(letters)

    def _plain(self, letters: str) -> n.Node:
        if letters == "x":
            return n.Minus(n.Now(), n.Now())
        return n.Now() if letters == "t" else self._constant(letters)

    def _last(self, letters: str, place: Place, depth: int) -> n.Node | None:
        rng = self.rng
        for _ in range(4):
            node, elem = self.calls(place, depth, wide=False)
            names = [one for one in self.fields(elem.tools, False) if type_of(one) == letters]
            if not names:
                continue
            if rng.random() < 0.7:
                node = n.Where(node, self._filter(place, elem, depth - 1))
            if rng.random() < 0.15:
                node = n.Since(node, self._mark(place, 0))
            if rng.random() < 0.3:
                return n.Apply("last", (n.Get(node, rng.choice(names)),))
            return n.Get(n.Apply("last", (node,)), rng.choice(names))
        return None

    def _match(self, letters: str, place: Place, depth: int) -> n.Node:
        rng = self.rng
        listed = [(node, of) for node, of in self.paths(place) if of[0] == "f"]
        if letters not in ("s", "n"):
            return self.term(letters, place, 0)
        if listed and rng.random() < 0.7:
            node, name = rng.choice(listed)
            values = [value for value in _LISTED[name] if value != "*"]
            arms: list[n.Node] = [
                n.Arm(self.term(letters, place, 0), (n.Word(value),)) for value in values
            ]
            if "*" in _LISTED[name] or rng.random() < 0.4:
                arms[rng.randrange(len(arms)) :] = [n.Else(self.term(letters, place, 0))]
        else:
            node = self.term("s", place, 0)
            arms = [
                n.Arm(self.term(letters, place, 0), (n.Text("a"),)),
                n.Else(self.term(letters, place, 0)),
            ]
        return n.Match(node, tuple(arms))

    def _number(self, place: Place, depth: int) -> n.Node:
        rng = self.rng
        what = rng.random()
        if what < 0.25:
            kind = rng.choice((n.Add, n.Minus, n.Times))
            return kind(self.term("n", place, depth - 1), self.term("n", place, 0))
        if what < 0.30:
            return n.Negative(self.term("n", place, 0))
        if what < 0.38:
            name = rng.choice(("min", "max"))
            return n.Apply(name, (self.term("n", place, depth - 1), self.term("n", place, 0)))
        if what < 0.45:
            name = rng.choice(("hour", "weekday"))
            zone: tuple[n.Node, ...] = (n.Text("+05:30"),) if rng.random() < 0.5 else ()
            return n.Apply(name, (self.term("t", place, 0), *zone))
        if not place.levels:
            return self.term("n", place, 0)
        if what < 0.65:
            return n.Apply("count", (self.source(place, depth - 1)[0],))
        node, elem = self.source(place, depth - 1, rows=True)
        if what < 0.75 and elem.letters in ("s", "n", "t", "b"):
            return n.Apply("count", (n.Apply("distinct", (node,)),))
        if elem.letters == "n":
            return n.Apply(rng.choice(("sum", "min", "max")), (node,))
        node, elem = self.source(place, depth - 1)
        inner = replace(place, it=elem, levels=place.levels - 1, clause=False)
        return n.Apply("sum", (node, self.term("n", inner, rng.choice((0, 1)))))

    def _time(self, place: Place, depth: int) -> n.Node:
        rng = self.rng
        what = rng.random()
        if what < 0.4:
            kind = rng.choice((n.Add, n.Minus))
            return kind(self.term("t", place, 0), n.Duration(*rng.choice(_SPANS)))
        if what < 0.55:
            return n.Apply("day", (self.term("t", place, 0),))
        if what < 0.8 and place.levels:
            node, elem = self.source(place, depth - 1, rows=True)
            if elem.letters in ("t", "d"):
                return n.Apply(rng.choice(("min", "max")), (node,))
        return self.term("t", place, 0)

    # Statements.

    def on(self) -> tuple[n.Node, tuple[str, ...]]:
        """A set of calls that a statement restricts."""
        rng = self.rng
        names = sorted(self.tool_of)
        what = rng.random()
        if what < 0.1:
            return n.AnyTool(), tuple(names)
        if what < 0.25:
            some = sorted(rng.sample(names, 2))
            return n.Union(tuple([n.Word(name) for name in some])), tuple(some)
        name = rng.choice(names)
        return n.Word(name), (name,)

    def _where(self, tools: tuple[str, ...], *, decided: bool, levels: int) -> tuple[n.Node, ...]:
        if self.rng.random() < 0.5:
            return ()
        this = Elem("call", tools, decided=decided)
        # In this filter `it` and `this` are the same call: bare names are its fields.
        place = Place(this=this, it=None, levels=levels)
        return (self.condition(place, 1),)

    def require(self, depth: int = 3) -> n.Require:
        on, tools = self.on()
        self._block = []
        where = self._where(tools, decided=True, levels=1) if self.rng.random() < 0.4 else ()
        assert not self._block or where
        where = () if self._block else where
        self._block = []
        place = Place(this=Elem("call", tools, decided=True), clause=True)
        then = self.condition(place, depth)
        return n.Require(on=on, where=where, lets=tuple(self._block), then=then)

    def statement(self) -> n.Statement:
        rng = self.rng
        what = rng.random()
        if what < 0.35:
            return self.require(2)
        if what < 0.45:
            on, tools = self.on()
            where = self._plain_where(tools, decided=True, levels=1)
            return n.Forbid(on=on, where=where)
        if what < 0.55:
            self._block = []
            then = self.condition(Place(this=None), 2)
            return n.Require(on=None, lets=tuple(self._block), then=then)
        if what < 0.72:
            return self._owe()
        if what < 0.96:
            return self._limit()
        return n.Total(what="depth", most=str(rng.randint(1, 5)))

    def _plain_where(
        self, tools: tuple[str, ...], *, decided: bool, levels: int
    ) -> tuple[n.Node, ...]:
        for _ in range(6):
            self._block = []
            where = self._where(tools, decided=decided, levels=levels)
            if not self._block:
                return where
        self._block = []
        return ()

    def _owe(self) -> n.Owe:
        rng = self.rng
        after, tools = self.on()
        calls, paying = self.on()
        where = self._plain_where(tools, decided=False, levels=0)
        pays: tuple[n.Node, ...] = ()
        if rng.random() < 0.8:
            first = Elem("call", tools)
            place = Place(this=first, it=Elem("call", paying), levels=0)
            self._block = []
            pays = (self.condition(place, 1),)
            pays = () if self._block else pays
        within = n.Duration(*rng.choice(_SPANS)) if rng.random() < 0.5 else None
        return n.Owe(after=after, where=where, calls=calls, pays=pays, within=within)

    def _limit(self) -> n.Limit:
        rng = self.rng
        of, tools = self.on()
        where = self._plain_where(tools, decided=True, levels=0)
        names = self.fields(tools, True)
        per: list[n.Node] = []
        if rng.random() < 0.6:
            options: list[n.Node] = [n.Word(name) for name in names]
            options += [n.Session(given.name) for given in self.given if given.name != "gls1"]
            per = rng.sample(options, min(len(options), rng.choice((1, 1, 2))))
        within = n.Duration(*rng.choice(_SPANS)) if rng.random() < 0.4 else None
        name = None
        if "fn2" in names and rng.random() < 0.6:
            name = "fn2"
        most: n.Node = n.Number(str(rng.randint(0, 4)))
        if rng.random() < 0.3:
            place = Place(this=Elem("call", tools, decided=True), levels=1)
            self._block = []
            most = self.term("n", place, 2)
            if self._block:
                most = n.Number("2")
        return n.Limit(
            of=of, where=where, field=name, per=tuple(per), within=within, most=most,
            scope="session",
        )  # fmt: skip

    # Cores.

    def core(self, statements: Sequence[n.Statement]) -> Core:
        return Core(
            name="t", version="1", tools=tuple(self.tools), rules={}, plan=Empty(),
            given=tuple(self.given), lets=tuple(self.lets), statements=tuple(statements),
        )  # fmt: skip

    def sound(self, draw: Callable[[], n.Statement]) -> tuple[n.Statement, Fault | None]:
        """A statement, and the mistake in it, if there is one; then its `let`s are dropped."""
        kept = list(self.lets)
        statement = draw()
        try:
            Kinds(self.core([statement])).rule(statement)
        except Fault as fault:
            self.lets = kept
            return statement, fault
        return statement, None


# Histories.


@dataclass
class Step:
    """A call of a history and its outcome; `late`: it is recorded after all decisions."""

    tool: str
    at_ms: int
    arguments: dict[str, tuple[str, Any]]
    outcome: str
    answers: dict[str, tuple[str, Any]]
    late: bool = False


def history(drawer: Drawer, rng: random.Random, size: int, *, known: bool = False) -> list[Step]:
    """The steps of a history; `known`: every outcome and answer is known, no error was read."""
    found = []
    now = START
    for _ in range(size):
        now += rng.choice((0, 20 * 60_000, 30 * 60_000, HOUR, 25 * HOUR))
        tool = rng.choice(drawer.tools)
        arguments = {one.name: state_of(one, rng) for one in tool.arguments}
        chances = (8, 1, 0, 0, 0) if known else (9, 1, 2, 2, 2)
        outcome = rng.choices((DONE, FAILED, ANSWERED, OPEN, LOST), chances)[0]
        answers = answers_of(tool, rng, known=known) if outcome == DONE else {}
        found.append(Step(tool.name, now, arguments, outcome, answers, rng.random() < 0.2))
    return found


def answers_of(tool: Tool, rng: random.Random, *, known: bool) -> dict[str, tuple[str, Any]]:
    """The states of the answers of a call that is done."""
    return {
        one.name: ("unknown", None) if not known and rng.random() < 0.15 else state_of(one, rng)
        for one in tool.answers
    }


def state_of(one: Field, rng: random.Random) -> tuple[str, Any]:
    if one.optional and rng.random() < 0.3:
        return "none", None
    if one.type is None:
        return listed_state(one.values, rng)
    if isinstance(one.type, NullableType) and rng.random() < 0.3:
        return "z", None
    return state(type_of(one.name), rng)


def given_of(drawer: Drawer, rng: random.Random) -> dict[str, tuple[str, Any]]:
    """The states of the attributes of a session."""
    return {
        one.name: ("none", None)
        if one.optional and rng.random() < 0.5
        else state(type_of(one.name), rng)
        for one in drawer.given
        if isinstance(one, Field)
    }


def deciding(drawer: Drawer, rng: random.Random, tools: Sequence[str], at: int, now: int) -> Call:
    """A call that is being decided."""
    tool = drawer.tool_of[rng.choice(list(tools))]
    arguments = {one.name: state_of(one, rng) for one in tool.arguments}
    return Call(tool.name, at, now, arguments)

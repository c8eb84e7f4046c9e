"""Which values statements of version 1.2 tell apart.

What a statement compares for equality alone is a token; what it orders against a constant has atoms
that end there; what it adds up, or orders otherwise, has one value in each atom.
Normative text: docs/spec/proof.md, section 1.  Cost: linear in the statements.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeAlias

from tcc_certs.core.mentions import attributes_named, fields_compared
from tcc_certs.core.model import Core, Tool
from tcc_certs.core.opened import fields_of
from tcc_certs.core.policies import (
    Alternative,
    Apart,
    Ban,
    Count,
    Need,
    Owe,
    Policy,
    Total,
    Tree,
    tools_of,
)
from tcc_certs.proof.fields import ANY, Uncovered, is_scalar
from tcc_certs.proof.lists import element_of
from tcc_certs.session.monitors.alternatives import MOST_KEPT
from tcc_certs.session.monitors.relations import MAX_WAYS
from tcc_certs.values.declared import NumberType, TextType, text_of
from tcc_certs.values.fields import Field, FieldType, ListType
from tcc_certs.values.text_pattern import MAX_STEPS, pattern_of

Part: TypeAlias = "Any"  # of a key: the text of a listed value, or a token
_ORDERS = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Attribute:
    """What a session is given, or learns.

    Attributes:
        sources: of what it learns the fields that tell it, each a tool's name and its own; of what
            it is given none.
    """

    name: str
    sources: tuple[tuple[str, str], ...] = ()


GIVEN = ""  # in the place of a tool's name: what a session is given


@dataclass(slots=True, kw_only=True)
class Spoken:
    """Which values statements tell apart, by the names of a tool and of its field.

    Attributes:
        compared: the fields, those of what a session is given with GIVEN as tool.
        constants: canonical texts that any of them may be compared with.
        patterns: that any text may be held to.
        cuts: constants that a field is ordered against; exact: fields whose values are computed
            with, or ordered among each other; full: lists whose elements are gone through.
    """

    compared: set[tuple[str, str]] = field(default_factory=set)
    constants: set[str] = field(default_factory=set)
    patterns: set[str] = field(default_factory=set)
    cuts: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    exact: set[tuple[str, str]] = field(default_factory=set)
    full: set[tuple[str, str]] = field(default_factory=set)
    # Of the core that is read.
    _tools: Mapping[str, Tool] = field(default_factory=dict)
    _given: Mapping[str, FieldType] = field(default_factory=dict)

    def read(self, core: Core, policy: Policy, calls: int) -> None:
        """Gather what a statement tells apart.

        Args:
            calls: so many there are at most before one that is decided.

        Raises:
            Uncovered: it speaks of what no token stands for.
        """
        self._tools = {tool.name: tool for tool in core.tools}
        self._given = {one.name: one.type for one in core.given}
        for tool, names in named_by(core, policy).items():
            self.compared.update((core.tools[tool].name, name) for name in names)
            # A field that lists its values may be compared with one that is open.
            compared = fields_compared(policy)[1]
            for listed in core.tools[tool].parameters:
                if listed.name in compared:
                    self.constants.update([text for text in listed.values if text not in ("", ANY)])
        for one in attributes_of(core, policy).values():
            self._attribute(core, one)
        own = {"own": _tools(core, policy)}
        for part in alternatives_of(policy):
            sides = dict(own)
            if part.calls is not None:
                sides["seen"] = tools_of(part.calls, len(core.tools))
            for name, term in part.same:
                self._same(core, sides["seen"], name, term, sides)
            asked = 0
            for relation in part.where:
                self._relation(core, relation, sides)
                asked += self._asked(core, relation, sides)
            looked = min(max(MOST_KEPT, 2 * part.least), calls)
            if asked * (looked - 1) >= MAX_WAYS:  # a gate would be sure of nothing then
                raise Uncovered("relations that ask too much of each call")
        match policy:
            case Count() | Total():
                for term in policy.per:
                    self._term(core, term, own, exact=False)
                for relation in policy.where if isinstance(policy, Count) else ():
                    self._relation(core, relation, own)
                if isinstance(policy, Total):
                    self.exact.add((core.tools[policy.tool].name, policy.parameter))
            case Apart() | Owe():
                first = policy.one if isinstance(policy, Apart) else policy.first
                for name, term in policy.same:
                    self._same(core, tools_of(first, len(core.tools)), name, term, own)

    def _same(
        self,
        core: Core,
        tools: Iterable[int],
        name: str,
        term: Tree,
        sides: Mapping[str, frozenset[int]],
    ) -> None:
        """A field of earlier calls of tools, and what it is equal to."""
        self._plainly([(core.tools[tool].name, name) for tool in tools])
        self._term(core, term, sides, exact=False)

    def _attribute(self, core: Core, of: Attribute) -> None:
        if not of.sources:
            known = next(one for one in core.given if one.name == of.name)
            if not is_scalar(known.type):
                raise Uncovered(f"session.{of.name}, which is no text, number or flag")
            self.compared.add((GIVEN, of.name))
        self._plainly(of.sources)
        for name, field_name in of.sources:
            tool = self._tools[name]
            self.compared.add((name, field_name))
            for listed in tool.parameters:
                if listed.name == field_name:
                    if ANY in listed.values:
                        raise Uncovered(f"session.{of.name}, which may be what is not listed")
                    self.constants.update([text for text in listed.values if text])

    def _names(
        self, core: Core, term: Tree, sides: Mapping[str, frozenset[int]]
    ) -> Iterable[tuple[str, str]]:
        """The fields that a term is one of."""
        if term[0] == "session":
            of = _attribute_of(core, term[1])
            return of.sources or ((GIVEN, of.name),)
        return [(core.tools[tool].name, term[1]) for tool in sides[term[0]]]

    def _relation(self, core: Core, tree: Tree, sides: Mapping[str, frozenset[int]]) -> None:
        match tree:
            case ("?", inner):
                self._relation(core, inner, sides)
            case ("=" | "!=", one, other):
                simple = one[0] not in ("sum", "max") and other[0] not in ("sum", "max")
                for term in (one, other):
                    self._term(core, term, sides, exact=not simple)
            case ("in" | "not in", one, ("list", _) as many):
                self._term(core, one, sides, exact=False)
                self._term(core, many, sides, exact=False)
            case ("in" | "not in", one, ("own" | "seen", _) as many):
                self._among(core, one, many, sides)
            case ("every", many, inner):
                self._each(core, many, ("it",), [inner], sides)
            case ("all" | "some", ((many, name),), relations):
                self._each(core, many, ("as", name), relations, sides)
            case ("~" | "!~", one, str() as pattern):
                self._term(core, one, sides, exact=False)
                self.patterns.add(pattern)
            case (op, ("own" | "seen" | "session", _) as term, ("n", text)) if op in _ORDERS:
                self._cut(self._names(core, term, sides), text)
            case (op, ("n", text), ("own" | "seen" | "session", _) as term) if op in _ORDERS:
                self._cut(self._names(core, term, sides), text)
            case (op, one, other) if op in _ORDERS:
                for term in (one, other):
                    self._term(core, term, sides, exact=True)
            case _:
                raise Uncovered(f"a relation of the kind {tree[0]!r}")

    def _among(
        self, core: Core, one: Tree, many: Tree, sides: Mapping[str, frozenset[int]]
    ) -> None:
        """A value among the elements of a list."""
        if not _is_simple(one):
            raise Uncovered("what is computed, or a list, among the elements of a list")
        self._term(core, one, sides, exact=False)
        self._ensure_lists(self._names(core, many, sides))
        # Whether what is not listed is an element would hang on elements that are not live.
        for name in self._names(core, one, sides) if one[0] in ("own", "seen", "session") else ():
            if name[0] != GIVEN and ANY in self._field(name).values:
                raise Uncovered(f"{'.'.join(name)}, which may be what is not listed, in a list")

    def _each(
        self,
        core: Core,
        many: Tree,
        element: Tree,
        relations: Sequence[Tree],
        sides: Mapping[str, frozenset[int]],
    ) -> None:
        """Relations of each element of a list, which hold of each value of a summary or of none."""
        names = self._lists(core, many, sides)
        for relation in relations:
            op, one, *others = relation[1] if relation[0] == "?" else relation
            terms = [term for term in (one, *others) if term != element]
            match op, one, others:
                case ("=" | "!=", _, _) if all(map(_is_simple, terms)):
                    for term in terms:
                        self._term(core, term, sides, exact=False)
                case ("in" | "not in", _, [("list", _) as constants]) if one == element:
                    self._term(core, constants, sides, exact=False)
                case ("in" | "not in", _, [("own" | "seen", _) as other]) if one == element:
                    self._lists(core, other, sides)
                case ("~" | "!~", _, [str() as pattern]) if one == element:
                    self.patterns.add(pattern)
                case ("<" | "<=" | ">" | ">=", _, _) if [term[0] for term in terms] == ["n"]:
                    self._cut(names, terms[0][1])
                case _:
                    raise Uncovered("a relation of elements that is computed, or of other lists")

    def _asked(self, core: Core, tree: Tree, sides: Mapping[str, frozenset[int]]) -> int:
        """How much a relation asks of a call at most: see :mod:`tcc_certs.session.monitors`."""
        match tree:
            case ("?", inner):
                return self._asked(core, inner, sides)
            case ("~" | "!~", ("own" | "seen" | "session", _) as term, str() as pattern):
                return self._steps(self._names(core, term, sides), pattern)
            case ("every", many, inner):
                return self._asked_of(self._names(core, many, sides), [inner])
            case ("all" | "some", ((many, _),), relations):
                return self._asked_of(self._names(core, many, sides), relations)
        return 0

    def _asked_of(self, names: Iterable[tuple[str, str]], relations: Sequence[Tree]) -> int:
        kinds = [self._field(name).type for name in names]
        most = max([kind.most for kind in kinds if isinstance(kind, ListType)], default=0)
        bare = [one[1] if one[0] == "?" else one for one in relations]
        each = [one[2] for one in bare if one[0] in ("~", "!~")]
        return most * (1 + sum([self._steps(names, pattern) for pattern in each]))

    def _steps(self, names: Iterable[tuple[str, str]], pattern: str) -> int:
        """How much the texts of fields, or in lists, ask of a pattern at most."""
        found = [self._type_of(name) for name in names]
        kinds = [element_of(kind) or kind for kind in found]
        most = max([kind.most for kind in kinds if isinstance(kind, TextType)], default=0)
        return most * pattern_of(pattern).size >> 6

    def _lists(
        self, core: Core, many: Tree, sides: Mapping[str, frozenset[int]]
    ) -> Sequence[tuple[str, str]]:
        """The fields that a list is whose elements are gone through."""
        if many[0] not in ("own", "seen") or len(many) != 2:
            raise Uncovered(f"a list of the kind {many[0]!r}")
        names = list(self._names(core, many, sides))
        self._ensure_lists(names)
        self.full.update(names)
        return names

    def _ensure_lists(self, names: Iterable[tuple[str, str]]) -> None:
        for name in names:
            if element_of(self._field(name).type) is None:
                raise Uncovered(f"{'.'.join(name)}, which is no list of texts, numbers or flags")

    def _type_of(self, name: tuple[str, str]) -> FieldType | None:
        return self._given[name[1]] if name[0] == GIVEN else self._field(name).type

    def _field(self, name: tuple[str, str]) -> Field:
        tool = self._tools[name[0]]
        return fields_of(tool)[name[1]]

    def _plainly(self, names: Iterable[tuple[str, str]]) -> None:
        """Fields are compared as they are: none is a list.

        Raises:
            Uncovered: one is.
        """
        for name in names:
            if isinstance(self._type_of(name), ListType):
                raise Uncovered(f"{'.'.join(name)}, a list that is compared")

    def _cut(self, names: Iterable[tuple[str, str]], text: str) -> None:
        self.constants.add(text)
        for name in names:
            self.cuts.setdefault(name, set()).add(text)

    def _term(
        self, core: Core, tree: Tree, sides: Mapping[str, frozenset[int]], *, exact: bool
    ) -> None:
        match tree:
            case ("s" | "n" | "b", _):
                state = constant_text(tree)
                self.constants.add(state)
            case ("z",):
                pass
            case ("list", items):
                for item in items:
                    self._term(core, item, sides, exact=False)
            case ("own" | "seen" | "session", _):
                names = self._names(core, tree, sides)
                self._plainly(names)
                if exact:
                    self.exact.update(names)
            case ("max", one, other):
                self._term(core, one, sides, exact=True)
                self._term(core, other, sides, exact=True)
            case ("sum", items):
                for _, item in items:
                    self._term(core, item, sides, exact=True)
            case _:
                raise Uncovered(f"a term of the kind {tree[0]!r}")

    def pattern_types(self, kinds: Sequence[TextType]) -> dict[str, TextType]:
        """Types that separate the texts of others at the patterns that they are held to.

        Raises:
            Uncovered: of some text it would not be decided whether it matches.
        """
        least = min([kind.least for kind in kinds], default=0)
        most = max([kind.most for kind in kinds], default=0)
        for pattern in self.patterns if kinds else ():
            if most > MAX_STEPS // pattern_of(pattern).size:
                raise Uncovered(f"texts of {most} characters held to {pattern!r}")
        made = [TextType(least=least, most=most, pattern=one) for one in sorted(self.patterns)]
        return dict(zip(sorted(self.patterns), made, strict=True)) if kinds else {}

    def cut_types(self, kinds: Sequence[NumberType]) -> list[NumberType]:
        """Types that separate the numbers of others at the constants that they are ordered against.

        Raises:
            Uncovered: some have no least value.
        """
        texts = sorted(set().union(*self.cuts.values()), key=Fraction)
        if not texts or not kinds:
            return []
        lows = [kind.low for kind in kinds if kind.low is not None]
        if len(lows) < len(kinds):
            raise Uncovered("an order of numbers without a range")
        low = min(lows, key=Fraction)
        above = [text for text in texts if Fraction(text) > Fraction(low)]
        return [NumberType(whole=False, low=low, high=text) for text in above]


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """Some number between two constants, and none that is one: it is ordered against constants.

    Two of them are ordered where a constant is between them; else each constant is to both alike.
    """

    low: Fraction
    high: Fraction
    token: Part

    @classmethod
    def of(
        cls, token: Part, kinds: Sequence[NumberType], holding: Collection[int], cuts: Sequence[int]
    ) -> Between:
        """The number of a token whose atom these types hold, some of which are cuts."""
        ends = [kinds[at] for at in holding]
        beyond = [Fraction(kinds[at].high or 0) for at in cuts if at not in holding]
        return cls(
            low=max([*[Fraction(kind.low or 0) for kind in ends], *beyond]),
            high=min([Fraction(kind.high or 0) for kind in ends]),
            token=token,
        )

    def __lt__(self, other: Any) -> bool:
        return bool(self.high <= other)

    def __gt__(self, other: Any) -> bool:
        return bool(self.low >= other)

    __le__, __ge__ = __lt__, __gt__


def _is_simple(term: Tree) -> bool:
    return term[0] in ("own", "seen", "session", "s", "n", "b") and len(term) == 2


def constant_text(tree: Tree) -> str:
    """The canonical text of a constant term."""
    return str(text_of(tree[1])) if tree[0] == "s" else str(tree[1])


def alternatives_of(policy: Policy) -> tuple[Alternative, ...]:
    """The alternatives of a statement, those that lift it last."""
    if isinstance(policy, Ban):
        return policy.alternatives + policy.unless
    return policy.alternatives if isinstance(policy, Need) else ()


def attributes_of(core: Core, policy: Policy) -> dict[str, Attribute]:
    """What a session is given or learns that a statement speaks of, by its names."""
    return {name: _attribute_of(core, name) for name in sorted(attributes_named(policy))}


def _attribute_of(core: Core, name: str) -> Attribute:
    found = [one for one in core.lets if one.name == name]
    sources = [(core.tools[tool].name, of) for one in found for tool, of in one.of]
    return Attribute(name=name, sources=tuple(sources))


def _tools(core: Core, policy: Policy) -> frozenset[int]:
    """The tools of the calls that a statement decides on."""
    match policy:
        case Apart():
            return tools_of(policy.other, len(core.tools))
        case Total():
            return frozenset([policy.tool])
        case _:
            return tools_of(policy.of, len(core.tools))


def named_by(core: Core, policy: Policy) -> Mapping[int, frozenset[str]]:
    """For each tool that a statement speaks of the fields that it names."""
    calls, names = fields_compared(policy)
    bound = _bound((calls,))
    return {
        tool: frozenset(
            [one for one in fields_of(core.tools[tool]) if one in names or (tool, one) in bound]
        )
        for tool in tools_of(calls, len(core.tools))
    }


def _bound(tree: Any) -> set[tuple[int, str]]:
    """The fields that patterns in sets bind, with their tools."""
    if not isinstance(tree, tuple):
        return set()
    if tree[:1] == ("calls",):
        return {(tree[1], name) for name, _ in tree[2]}
    return set().union(*map(_bound, tree))

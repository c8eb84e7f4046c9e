"""The two sides of a question compared: which values monitors compare, and which are added up.

A *token* stands for a value of an open parameter that a monitor compares: its atom and a number.
A sum is an interval of a grid: its values are consecutive, because each call adds the values of one
range of the grid (P506 if numbers are not known to fill it).  If the values that are added are also
compared, and there are too many to tell apart, a call adds any value of the range, whatever its
token is.
Cost: linear in both cores and in their atoms.
No theorem is claimed: tests/exact compares with brute force.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import count, islice, takewhile
from typing import Any, TypeAlias

from tcc_certs.core.model import Tool
from tcc_certs.proof.fields import Uncovered, ensure_alike, given_alike, is_scalar, some_value
from tcc_certs.proof.histories import Histories
from tcc_certs.proof.lists import Elements, element_of, listed_of
from tcc_certs.proof.spoken import GIVEN, Between, Spoken
from tcc_certs.session.monitors.alternatives import MOST_KEPT
from tcc_certs.session.monitors.relations import DIGESTED
from tcc_certs.values import declared
from tcc_certs.values.fields import ListType
from tcc_certs.values.numbers import MOST_WHOLE
from tcc_certs.values.places import State as FieldState, constant
from tcc_certs.values.types import check
from tcc_runtime.exact.atoms import Atom, OpenQuestion, Value, atoms_of, inside, outside, sort_of
from tcc_runtime.exact.sides import Side

Token: TypeAlias = "tuple[int, int]"  # atom, number of the value
Span: TypeAlias = "tuple[int, int]"  # least and greatest sum, in units of its grid
Choice: TypeAlias = "Token | None"  # of a field; None: left out
MAX_ALONE = 64  # values of a field that is added up and compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A parameter that is added up, in units of its grid.

    Attributes:
        caps: of the left and of the right side; None if there is none.
        range: of the left type.  both: of both types; None if they have no value in common.
        step: of `both`; odd: the least value that only the left type has; None if there is none.
    """

    places: int
    caps: tuple[int | None, int | None]
    range: Span
    both: Span | None
    step: int
    odd: int | None


@dataclass(slots=True, kw_only=True)
class Kind:
    """A tool as both sides have it.

    Attributes:
        fields: names of the parameters with tokens.  domains: their atoms.  optional: whether each
            may be left out.
        plain: other open parameters of the left side, each with a value that both sides accept, or
            None.
        escape: an argument that the right side refuses; None if there is none.
        refused: whether the right side refuses every call.
        sums: positions of sums, each with its field, or None.
        told: which fields are answers.
        lists: the fields that are lists.
    """

    tool: Tool
    fields: list[str]
    domains: list[list[int]]
    optional: list[bool]
    plain: dict[str, Value | None]
    spare: dict[str, Value]
    escape: tuple[str, Any] | None
    refused: bool
    sums: list[tuple[int, int | None, str]]
    told: frozenset[str]
    lists: dict[str, ListType]


class Compared:
    """Two sides and the atoms of their values.

    Raises:
        OpenQuestion: P501, P504, P505, P506.
    """

    def __init__(self, left: Side, right: Side) -> None:
        self.left, self.right = left, right
        self.atoms: list[Atom] = []
        self.sums: list[Sum] = []
        self._types: dict[str, list[declared.OpenType]] = {}
        self._constants: dict[str, list[Value]] = {}
        self._of_sort: dict[str, list[int]] = {}
        self._constant_token: dict[tuple[str, Any], Token] = {}
        self.loose = False
        self.forgot: tuple[str, str] | None = None  # why what does not replay is no answer
        self._fields: dict[int, list[tuple[str, declared.OpenParameter]]] = {}
        self._spoken = self._read()
        for at, tool in enumerate(left.core.tools):
            self._fields[at] = self._fields_of(at, tool)
        self.given = self._given()
        self._cuts = self._cut()
        self._likes = self._like()
        self._make_atoms()
        self._lists: dict[ListType, int] = {}  # by their types their atoms
        self.elements = self._listed()
        self.kinds = [self._kind(at, tool) for at, tool in enumerate(left.core.tools)]
        self._ensure_exact()
        try:
            self.histories = Histories(
                [left.core, right.core], self._value_of, self._matches, self.elements
            )
        except Uncovered as why:
            raise OpenQuestion("P501", str(why)) from None

    def _read(self) -> Spoken:
        """What statements of version 1.2 tell apart."""
        found, calls = Spoken(), self.left.longest - 1
        for side in (self.left, self.right):
            for one in side.policies:
                try:
                    found.read(side.core, one.policy, calls)
                except Uncovered as why:
                    raise OpenQuestion("P501", f"{one.text!r} has {why}") from None
        if self.right.policies and self.left.longest > MOST_KEPT:
            raise OpenQuestion(
                "P501", f"{self.right.policies[0].text!r} beside plans of more calls"
            )
        return found

    def _given(self) -> list[declared.OpenParameter]:
        """What a session is given that statements speak of: where both sides have it, the same."""
        names = [name for tool, name in self._spoken.compared if tool == GIVEN]
        try:
            found = given_alike(self.left.core, self.right.core, names)
        except Uncovered as why:
            raise OpenQuestion("P501", str(why)) from None
        for one in found:
            self._type(one.type)
            if (GIVEN, one.name) in self._spoken.exact:
                self._alone(one)
            for text in sorted(self._spoken.constants):
                self._constant(one.type, declared.json_of(text))
        return found

    def _cut(self) -> list[int]:
        """The places of types that separate numbers at constants."""
        kinds = [k for k in self._types.get("number", ()) if isinstance(k, declared.NumberType)]
        try:
            return [self._type(kind) for kind in self._spoken.cut_types(kinds)]
        except Uncovered as why:
            raise OpenQuestion("P501", str(why)) from None

    def _like(self) -> dict[str, int]:
        """The places of types that separate texts at patterns."""
        kinds = [k for k in self._types.get("text", ()) if isinstance(k, declared.TextType)]
        try:
            made = self._spoken.pattern_types(kinds)
        except Uncovered as why:
            raise OpenQuestion("P501", str(why)) from None
        return {pattern: self._type(kind) for pattern, kind in made.items()}

    def _matches(self, pattern: str, token: Token) -> bool:
        """Whether the text that a token stands for matches a pattern."""
        return self._likes[pattern] in self.atoms[token[0]].types

    def _ensure_exact(self) -> None:
        """Of a field whose values are computed with each value is an atom by itself."""
        every = [(GIVEN, one.name, self._domain(one.type)) for one in self.given]
        for kind in self.kinds:
            pairs = zip(kind.fields, kind.domains, strict=True)
            every += [(kind.tool.name, name, domain) for name, domain in pairs]
        for tool, name, domain in every:
            computed = (tool, name) in self._spoken.exact
            if computed and any(self.atoms[at].only is None for at in domain):
                raise OpenQuestion("P501", f"{tool or 'session'}.{name} is computed with")

    def _value_of(self, token: Token) -> FieldState:
        """The value that a token stands for, in statements of version 1.2."""
        atom = self.atoms[token[0]]
        if atom.only is not None:
            return constant(declared.text_of(atom.only) or "")
        sort = next(sort for sort, some in self._of_sort.items() if token[0] in some)
        if sort == "text" and self._likes:
            return DIGESTED, token
        if sort != "number" or not self._spoken.cuts:
            return {"text": "s", "number": "n", "flag": "b"}[sort], token
        kinds = [kind for kind in self._types["number"] if isinstance(kind, declared.NumberType)]
        return "n", Between.of(token, kinds, atom.types, self._cuts)

    def _fields_of(self, at: int, tool: Tool) -> list[tuple[str, declared.OpenParameter]]:
        """The open parameters of the left that are compared, or that the right side lists."""
        number = self.right.tools.get(tool.name)
        other = None if number is None else self.right.core.tools[number]
        compared = set(self.left.monitors.compared.get(at, ()))
        listed: dict[str, Sequence[str]] = {}
        if other is not None and number is not None:
            compared |= {name for of, name in self._spoken.compared if of == tool.name}
            try:
                ensure_alike(tool, other, compared)
            except Uncovered as why:
                raise OpenQuestion("P501", str(why)) from None
            theirs = {p.name: p for p in other.opened}
            compared |= self.right.monitors.compared.get(number, set())
            listed = {p.name: p.values for p in other.parameters}
            for mine in tool.parameters:
                if (tool.name, mine.name) in self.right.caps:
                    raise OpenQuestion("P501", f"{tool.name}.{mine.name} is listed and added up")
                if mine.name in theirs and mine.name in compared:
                    for text in mine.values:
                        if text:
                            self._constant(theirs[mine.name].type, declared.json_of(text))
        found = []
        for opened in (*tool.opened, *tool.answers):
            named = tool.name, opened.name
            spoken = named in self._spoken.compared
            if opened.name not in compared and opened.name not in listed and not spoken:
                continue
            element = element_of(opened.type) if spoken else None
            if element is not None:
                self._type(element)
                for text in sorted(self._spoken.constants):
                    self._constant(element, declared.json_of(text))
                found.append((opened.name, opened))
                continue
            sort = sort_of(opened.type)
            if not is_scalar(opened.type) and sort != "json":
                raise OpenQuestion("P501", f"{tool.name}.{opened.name} is compared: its type")
            if sort == "json":
                raise OpenQuestion("P505", f"{opened.name} is listed beside a whole JSON value")
            self._type(opened.type)
            if other is not None and opened.name in {p.name for p in other.opened}:
                theirs_type = next(p.type for p in other.opened if p.name == opened.name)
                if sort_of(theirs_type) == sort:
                    self._type(theirs_type)
            for text in listed.get(opened.name, ()):
                if text:
                    self._constant(opened.type, declared.json_of(text))
            if any(named in side.caps for side in (self.left, self.right)):
                self.loose = not self._alone(opened) or self.loose
            elif named in self._spoken.exact:
                self._alone(opened)
            for text in sorted(self._spoken.constants) if spoken else ():
                self._constant(opened.type, declared.json_of(text))
            found.append((opened.name, opened))
        return found

    def _alone(self, opened: declared.OpenParameter) -> bool:
        """Whether the values are few enough to be told apart, each for itself."""
        kind = opened.type
        if not isinstance(kind, declared.NumberType) or not kind.whole or kind.low is None:
            return False
        low, high = -(-Fraction(kind.low) // 1), Fraction(kind.high or 0) // 1
        if high - low > MAX_ALONE:
            return False
        for value in range(int(low), int(high) + 1):
            self._constant(kind, value)
        return True

    def _type(self, kind: declared.OpenType) -> int:
        types = self._types.setdefault(sort_of(kind), [])
        if kind not in types:
            types.append(kind)
        return types.index(kind)

    def _constant(self, kind: declared.OpenType, value: Any) -> None:
        if check(kind, value) is None:
            self._type(kind)
            self._constants.setdefault(sort_of(kind), []).append(value)

    def _make_atoms(self) -> None:
        for sort in sorted(self._types):
            made = atoms_of(sort, self._types[sort], self._constants.get(sort, ()))
            numbers = list(range(len(self.atoms), len(self.atoms) + len(made)))
            self._of_sort[sort] = numbers
            self.atoms += made
            for number in numbers:
                only = self.atoms[number].only
                if only is not None:
                    self._constant_token[sort, declared.text_of(only)] = (number, 0)

    def _listed(self) -> Elements:
        """The lists that statements compare with values; each type of lists has an atom."""
        tools = [(tool.name, self._fields[at]) for at, tool in enumerate(self.left.core.tools)]
        kinds_of = [(tool, [(name, one.type) for name, one in some]) for tool, some in tools]
        names, kinds = listed_of(kinds_of, self._spoken.full)
        self._lists = {kind: len(self.atoms) + at for at, kind in enumerate(kinds)}
        self.atoms += [Atom(types=frozenset(), only=None, _values=count()) for _ in kinds]
        lists = self._lists.items()
        typed = {at: of for kind, at in lists if (of := element_of(kind)) is not None}
        return Elements(
            fields=names,
            kinds={at: kind for kind, at in lists},
            domains={at: self._domain(typed[at]) for at in typed},
            full=frozenset([self._lists[kind] for kind, full in kinds.items() if full]),
            constants=frozenset(self._constant_token.values()),
            atom_of=lambda token: token[0],
            token=lambda atom, number: (atom, number),
            has=lambda atom, many: self.atoms[atom].value(many - 1) is not None,
        )

    def _domain(self, kind: declared.OpenType) -> list[int]:
        if isinstance(kind, ListType):
            return [self._lists[kind]]
        sort = sort_of(kind)
        at = self._types[sort].index(kind)
        return [number for number in self._of_sort[sort] if at in self.atoms[number].types]

    def _kind(self, at: int, tool: Tool) -> Kind:
        number = self.right.tools.get(tool.name)
        other = None if number is None else self.right.core.tools[number]
        fields = self._fields[at]
        named = {name for name, _ in fields}
        theirs = {} if other is None else {p.name: p for p in other.opened}
        listed = set() if other is None else {p.name for p in other.parameters}
        mine = {p.name for p in tool.opened} | {p.name for p in tool.parameters}
        found = Kind(
            tool=tool,
            fields=[name for name, _ in fields],
            domains=[self._domain(one.type) for _, one in fields],
            optional=[one.optional for _, one in fields],
            plain={},
            spare={},
            escape=None,
            refused=other is None
            or any(not p.optional and p.name not in mine for p in theirs.values()),
            sums=[],
            told=frozenset([one.name for one in tool.answers]),
            lists={name: one.type for name, one in fields if isinstance(one.type, ListType)},
        )
        for one in tool.answers:
            if one.name not in named:
                found.plain[one.name] = found.spare[one.name] = self.spare(tool.name, one)
        for one in tool.opened:
            name = one.name
            if name in named:
                if (tool.name, name) in {**self.left.caps, **self.right.caps}:
                    number_of = self._sum(tool.name, one.type, one.type, name)
                    found.sums.append((number_of, found.fields.index(name), name))
                continue
            their = theirs.get(name)
            spare = self.spare(tool.name, one)
            found.spare[name] = spare
            if (tool.name, name) in self.left.caps or (
                their is not None and (tool.name, name) in self.right.caps
            ):
                their_type = one.type if their is None else their.type
                if other is not None and their is None and name not in listed:
                    found.escape = (name, spare)
                if one.optional and their is not None and not their.optional:
                    found.escape = (name, None)
                found.sums.append((self._sum(tool.name, one.type, their_type, name), None, name))
                continue
            if other is None:
                found.plain[name] = None if one.optional else spare
                continue
            self._plain(found, one, their)
        return found

    @staticmethod
    def spare(whose: str, of: declared.OpenParameter) -> Value:
        """Some value of a field that nothing compares."""
        try:
            known = is_scalar(of.type) or isinstance(of.type, declared.JsonType)
            spare = inside(of.type) if known else _some_list(of.type) or some_value(of.type)
        except Uncovered as why:
            raise OpenQuestion("P501", f"{whose}.{of.name}: {why}") from None
        if spare is None:
            raise OpenQuestion("P505", f"{whose}.{of.name} has no value")
        return spare

    def _plain(
        self, found: Kind, one: declared.OpenParameter, their: declared.OpenParameter | None
    ) -> None:
        """An open parameter that nothing compares: only its types matter."""
        name = one.name
        if their is None:
            found.escape = (name, found.spare[name])
            found.plain[name] = None
            found.refused = found.refused or not one.optional
            return
        if one.optional and not their.optional:
            found.escape = (name, None)
        beside = outside(one.type, their.type)
        if beside is not None:
            found.escape = (name, beside)
        both = one.type if one.type == their.type else None
        value = found.spare[name] if both is not None else inside(one.type, their.type)
        if value is None and not (one.optional and their.optional):
            found.refused = True
        found.plain[name] = None if one.optional and their.optional else value

    def _sum(self, tool: str, mine: declared.OpenType, theirs: declared.OpenType, name: str) -> int:
        """The place of a sum of a parameter with these types on the two sides."""
        if not isinstance(mine, declared.NumberType) or mine.low is None or mine.high is None:
            raise OpenQuestion("P506", f"{tool}.{name} is added up without a range")
        if mine.low.startswith("-"):
            raise OpenQuestion("P506", f"{tool}.{name} is added up and may be below 0")
        key = tool, name
        caps = [side.caps.get(key) for side in (self.left, self.right)]
        if not isinstance(theirs, declared.NumberType):
            theirs = declared.NumberType(whole=True, low="1", high="0")
        constants = [mine.low, mine.high, theirs.low, theirs.high, *caps]
        places = max([_places(text) for text in constants if text is not None])
        odd_places = theirs.whole and not mine.whole
        places += odd_places
        unit = 10**places

        def units(text: str) -> int:
            return int(Fraction(text) * unit)

        low, high = units(mine.low), units(mine.high)
        # Every whole number of 64 bits is a value; of others, doubles print back fifteen digits.
        filled = MOST_WHOLE * unit if mine.whole else 10**15
        if high > filled or max([units(c) for c in caps if c is not None], default=0) > 10**300:
            raise OpenQuestion("P506", f"the sum of {tool} is on a grid that numbers may not fill")
        least = units(theirs.low) if theirs.low is not None else low
        most = units(theirs.high) if theirs.high is not None else high
        whole = theirs.whole or mine.whole
        step = unit if whole else 1
        first = max(low, least)
        last = min(high, most)
        if whole:
            first, last = -(-first // unit) * unit, last // unit * unit
        odd: int | None = None
        if low < first or first > last:
            odd = low
        elif odd_places and low < high:
            odd = low + 1 if low % unit == 0 else low
        elif last < high:
            odd = last + (unit if mine.whole else 1)
        self.sums.append(
            Sum(
                places=places,
                caps=(
                    None if caps[0] is None else units(caps[0]),
                    None if caps[1] is None else units(caps[1]),
                ),
                range=(low, high),
                both=(first, last) if first <= last else None,
                step=step,
                odd=odd,
            )
        )
        return len(self.sums) - 1

    # What is added.

    def _added(self, of: Sum, token: Choice, fixed: bool) -> Span | None:
        if not fixed:
            return of.both
        if token is None:
            return (0, 0)
        atom = self.atoms[token[0]]
        if atom.only is not None:
            ends = [Fraction(str(atom.only))] * 2
        else:
            kinds = [self._types["number"][at] for at in sorted(atom.types)]
            spans = [k for k in kinds if isinstance(k, declared.NumberType) and k.low and k.high]
            lows = [Fraction(kind.low or 0) for kind in spans]
            ends = [max(lows), min(Fraction(kind.high or 0) for kind in spans)]
        step = Fraction(of.step, 10**of.places)
        return int(-(-ends[0] // step)) * of.step, int(ends[1] // step) * of.step

    def span(self, number: int, token: Token) -> Span:
        """The least and the greatest of what a value may be that is added up and compared."""
        found = self._added(self.sums[number], token, True)
        return (0, 0) if found is None else found

    def member(self, atom: int, value: Value) -> bool:
        """Whether a number is a value of an atom."""
        of = self.atoms[atom]
        if of.only is not None:
            return value == of.only
        kinds = enumerate(self._types["number"])
        holding = frozenset(at for at, kind in kinds if check(kind, value) is None)
        return holding == of.types and value not in self._constants.get("number", ())

    def _is_of(self, token: Token, kind: declared.OpenType) -> bool:
        if token[0] in self.elements.domains:  # both sides have the same type
            return element_of(kind) is not None
        sort = sort_of(kind)
        atom = self.atoms[token[0]]
        if token[0] not in self._of_sort.get(sort, ()):
            return False
        return self._types[sort].index(kind) in atom.types


def _some_list(kind: Any) -> Any:
    """A list with elements that can be compared; None: it is no such type, or may be empty."""
    element = element_of(kind)
    if element is None or not isinstance(kind, ListType):
        return None
    values = (
        value
        for atom in atoms_of(sort_of(element), [element], ())
        for value in takewhile(lambda one: one is not None, map(atom.value, count()))
    )
    found = list(islice(values, kind.least if kind.distinct else min(1, kind.least)))
    return found if len(found) >= kind.least else found * kind.least


def _places(text: str) -> int:
    return len(text.partition(".")[2])


def grid_value(units: int, places: int) -> Value:
    """A value of a grid, as JSON."""
    value = Fraction(units, 10**places)
    if value.denominator == 1:
        return value.numerator
    return Decimal(units).scaleb(-places).normalize()

"""Two sides beside each other: which values are compared, which are added up, which are refused.

Normative text: docs/spec/proof.md, section 1.  Cost: linear in both cores, and in their atoms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from tcc_certs.core.model import Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.proof.atoms import Atom, atoms_of, has_value, sort_of, within
from tcc_certs.proof.fields import Uncovered, ensure_alike, given_alike, is_scalar, surely_fit
from tcc_certs.proof.histories import Histories
from tcc_certs.proof.lists import LIST, MEMBERS, Elements, element_of, listed_of
from tcc_certs.proof.rules import attribute_of
from tcc_certs.proof.sides import Side
from tcc_certs.proof.spoken import GIVEN, Between, Spoken
from tcc_certs.proof.sums import Sum, sum_between, text_of_units
from tcc_certs.session.machine import Place
from tcc_certs.session.monitors.alternatives import MOST_KEPT
from tcc_certs.session.monitors.relations import DIGESTED
from tcc_certs.values import declared
from tcc_certs.values.declared import JsonType, NumberType, OpenParameter, OpenType, TextType
from tcc_certs.values.fields import ListType
from tcc_certs.values.places import State as FieldState, constant
from tcc_certs.values.types import check as of_type

OTHER = -1  # a value that is not tracked
_LETTERS = {"text": DIGESTED, "flag": "b"}  # of states
MAX_ALONE = 64  # values of a field that is added up and compared
Key: TypeAlias = "tuple[Any, ...]"  # tokens as numbers, listed values as texts
# Side, slot of the monitor, key and count; from side 2 on a call that statements of 1.2 remember.
Fact: TypeAlias = "tuple[int, int, Key, int]"
Sums: TypeAlias = "tuple[tuple[int, int], ...]"
State: TypeAlias = "tuple[Place, Place, tuple[Fact, ...], Sums]"
Choice: TypeAlias = "int | None"  # the token of a field; None: left out


# Both sides of a question.


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A tool of the left, as the right has it.

    Attributes:
        fields: names of the parameters and answers with tokens; domains: their atoms;
            optional: each.
        refused: why the right refuses some call whatever the session is; empty: it does not.
        sums: number of the sum, its field or None.
        possible: whether every other parameter has a value, or may be left out.
        told: which of the fields are answers.
    """

    tool: Tool
    fields: tuple[str, ...]
    domains: tuple[tuple[int, ...], ...]
    optional: tuple[bool, ...]
    types: tuple[OpenType, ...]
    refused: str
    sums: tuple[tuple[int, int | None], ...]
    possible: bool
    told: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What one list of states is about.

    Attributes:
        tracked: the tokens of the keys that are looked at; None: all values are.
        rule: the right monitor that is asked about; None: all of them are, and plans and sums.
        uses: the left monitors, without sums, that are used.
        plans: whether plans and sums of the right are looked at.
        key: of `rule`, the one that is asked about; None in the place of a listed value.
        call: the left tool whose call may break it, and that call's fields; None: any call.
        walked: whether plans of the left are followed; else any call that a monitor of the part
            names may come at any time.
    """

    tracked: tuple[int, ...] | None
    rule: int | None
    uses: frozenset[int]
    plans: bool = True
    key: Key = ()
    call: tuple[int, tuple[tuple[str, Choice], ...]] | None = None
    walked: bool = True


class Move:
    """A call with tokens: its state after it, None where the right side may refuse it, and why.

    Attributes:
        sure: whether time may go on as it does there, whatever the session was.
    """

    __slots__ = ("call", "state", "sure", "tokens", "why")

    def __init__(
        self, call: int, tokens: tuple[Choice, ...], state: State | None, why: str
    ) -> None:
        self.call, self.tokens, self.state, self.why = call, tokens, state, why
        self.sure = True


class Compared:
    """What of two sides is compared: the atoms of their values, their tools, their sums."""

    def __init__(self, left: Side, right: Side) -> None:
        self.left, self.right = left, right
        self.atoms: list[Atom] = []
        self.sums: list[Sum] = []
        self._added: list[tuple[str, str]] = []
        self._types: dict[str, list[OpenType]] = {}
        self._constants: dict[str, set[str]] = {}
        self._tokens: dict[tuple[str, str], int] = {}
        self._lists: dict[ListType, int] = {}  # by their types their atoms
        self.spoken = self._spoken()
        fields = [self._fields(at, tool) for at, tool in enumerate(left.core.tools)]
        self.given = self._given()
        self._cuts = self._cut()
        self._likes = self._like()
        of_sort: dict[str, list[int]] = {}
        for sort in sorted(self._types):
            for atom in atoms_of(sort, self._types[sort], self._constants.get(sort, ())):
                if atom.only is not None:
                    self._tokens[sort, atom.only] = len(self.atoms)
                of_sort.setdefault(sort, []).append(len(self.atoms))
                self.atoms.append(atom)
        self._of_sort = of_sort
        self._elements = self._listed(fields)
        tools = enumerate(left.core.tools)
        self.kinds = [self._kind(at, tool, fields[at]) for at, tool in tools]
        self._ensure_exact()
        try:
            cores = [left.core, right.core]
            self.histories = Histories(cores, self.value_of, self.matches, self._elements)
        except Uncovered as why:
            raise Rejected(Code.UNKNOWN_FEATURE, "core", "statements", str(why)) from None

    # What is compared.

    def _listed(self, fields: Sequence[Sequence[OpenParameter]]) -> Elements:
        """The lists that statements compare with values; each type of lists has an atom."""
        some = [[(one.name, one.type) for one in of] for of in fields]
        tools = [tool.name for tool in self.left.core.tools]
        names, kinds = listed_of(zip(tools, some, strict=True), self.spoken.full)
        self._lists = {kind: len(self.atoms) + at for at, kind in enumerate(kinds)}
        bare = Atom(sort=LIST, types=frozenset(), only=None, least=0, most=None)
        self.atoms += [bare] * len(kinds)
        lists = self._lists.items()
        typed = {at: of for kind, at in lists if (of := element_of(kind)) is not None}
        return Elements(
            fields=names,
            kinds={at: kind for kind, at in lists},
            domains={at: self._domain(typed[at]) for at in typed},
            full=frozenset([self._lists[kind] for kind, full in kinds.items() if full]),
            constants=frozenset(self._tokens.values()),
            atom_of=lambda token: token % len(self.atoms),
            token=lambda atom, number: atom + len(self.atoms) * number,
            has=lambda atom, many: many <= (self.atoms[atom].most or many),
        )

    def _spoken(self) -> Spoken:
        """What statements of version 1.2 tell apart."""
        found, calls = Spoken(), self.left.longest - 1
        for side in (self.left, self.right):
            for one in side.policies:
                try:
                    found.read(side.core, one.policy, calls)
                except Uncovered as why:
                    raise Rejected(Code.UNKNOWN_FEATURE, "core", "a statement", str(why)) from None
        most = self.left.longest if self.right.policies else 0
        ensure(most <= MOST_KEPT, Code.UNKNOWN_FEATURE, "core", f"plans of {MOST_KEPT}", most)
        return found

    def _given(self) -> list[OpenParameter]:
        """What a session is given that statements speak of: where both sides have it, the same."""
        names = [name for tool, name in self.spoken.compared if tool == GIVEN]
        try:
            found = given_alike(self.left.core, self.right.core, names)
        except Uncovered as why:
            raise Rejected(Code.UNKNOWN_FEATURE, "given", "the same", str(why)) from None
        for one in found:
            self._type(one.type)
            if (GIVEN, one.name) in self.spoken.exact:
                self._alone(one)
            for text in sorted(self.spoken.constants):
                self._constant(one.type, text)
        return found

    def _cut(self) -> list[int]:
        """The places of types that separate numbers at constants."""
        known = self._types.get("number", [])
        try:
            kinds = [kind for kind in known if isinstance(kind, NumberType)]
            made = self.spoken.cut_types(kinds)
        except Uncovered as why:
            raise Rejected(Code.UNKNOWN_FEATURE, "core", "a statement", str(why)) from None
        known += [kind for kind in made if kind not in known]
        return [known.index(kind) for kind in made]

    def _like(self) -> dict[str, int]:
        """The places of types that separate texts at patterns."""
        known = self._types.get("text", [])
        try:
            kinds = [kind for kind in known if isinstance(kind, TextType)]
            made = self.spoken.pattern_types(kinds)
        except Uncovered as why:
            raise Rejected(Code.UNKNOWN_FEATURE, "core", "a statement", str(why)) from None
        known += [kind for kind in made.values() if kind not in known]
        return {pattern: known.index(kind) for pattern, kind in made.items()}

    def matches(self, pattern: str, value: Any) -> bool:
        """Whether the text that a token stands for matches a pattern."""
        return self._likes[pattern] in self.atoms[value[0] % len(self.atoms)].types

    def _ensure_exact(self) -> None:
        """Of a field whose values are computed with each value is an atom by itself."""
        every = [((GIVEN, one.name), self._domain(one.type)) for one in self.given]
        for kind in self.kinds:
            pairs = zip(kind.fields, kind.domains, strict=True)
            every += [((kind.tool.name, name), domain) for name, domain in pairs]
        for named, domain in every:
            if named in self.spoken.exact:
                alone = all(self.atoms[at].only is not None for at in domain)
                ensure(alone, Code.UNKNOWN_FEATURE, named[1], "few whole numbers", "more")

    def texts(self, tool: str, name: str) -> tuple[tuple[str, ...], bool]:
        """The texts that a field of a remembered call may have, and whether it has no tokens."""
        at = attribute_of(name)
        if tool == MEMBERS:
            return (), False
        if at is None:
            found = self.values(tool, name)
            return found, bool(found)
        sources = self.histories.attributes[at].sources
        listed = [self.values(*one) for one in sources if one[0] in self.left.tools]
        return tuple([text for some in listed for text in some if text]), False

    def values(self, tool: str, name: str) -> tuple[str, ...]:
        """The texts that the left side lists for a field; none of an open one."""
        of = self.left.core.tools[self.left.tools[tool]]
        return next((one.values for one in of.parameters if one.name == name), ())

    def value_of(self, token: int) -> FieldState:
        """The value that a token stands for, in statements of version 1.2."""
        of = self.atoms[token % len(self.atoms)]
        if of.only is not None:
            return constant(of.only)
        if of.sort != "number":
            return _LETTERS[of.sort], (token,)
        kinds = [kind for kind in self._types["number"] if isinstance(kind, NumberType)]
        return "n", Between.of(token, kinds, of.types, self._cuts)

    def _fields(self, at: int, tool: Tool) -> list[OpenParameter]:
        number = self.right.tools.get(tool.name)
        compared = set(self.left.monitors.compared.get(at, ()))
        listed: dict[str, Sequence[str]] = {}
        theirs: dict[str, OpenType] = {}
        if number is not None:
            other = self.right.core.tools[number]
            compared |= {name for of, name in self.spoken.compared if of == tool.name}
            try:
                ensure_alike(tool, other, compared)
            except Uncovered as why:
                raise Rejected(Code.UNKNOWN_FEATURE, tool.name, "fields alike", str(why)) from None
            theirs = {p.name: p.type for p in other.opened}
            compared |= set(self.right.monitors.compared.get(number, ()))
            listed = {p.name: p.values for p in other.parameters}
            for mine in tool.parameters:
                added = (tool.name, mine.name) in self.right.caps
                ensure(not added, Code.UNKNOWN_FEATURE, mine.name, "an open number", "listed ones")
                if mine.name in theirs and mine.name in compared:
                    for text in mine.values:
                        self._constant(theirs[mine.name], text)
        found = []
        for opened in (*tool.opened, *tool.answers):
            spoken = (tool.name, opened.name) in self.spoken.compared
            if opened.name not in compared and opened.name not in listed and not spoken:
                continue
            element = element_of(opened.type) if spoken else None
            if element is not None:
                self._type(element)
                for text in sorted(self.spoken.constants):
                    self._constant(element, text)
                found.append(opened)
                continue
            sort = sort_of(opened.type)
            ensure(
                is_scalar(opened.type), Code.UNKNOWN_FEATURE, opened.name, "a text or number", sort
            )
            self._type(opened.type)
            if opened.name in theirs and sort_of(theirs[opened.name]) == sort:
                self._type(theirs[opened.name])
            for text in listed.get(opened.name, ()):
                self._constant(opened.type, text)
            named = tool.name, opened.name
            if named in self.spoken.exact or any(
                named in side.caps for side in (self.left, self.right)
            ):
                self._alone(opened)
            for text in sorted(self.spoken.constants) if spoken else ():
                self._constant(opened.type, text)
            found.append(opened)
        return found

    def _alone(self, opened: OpenParameter) -> None:
        """Few values that are added up and compared are told apart, each for itself.

        Of many it is known between what ends they are, each time that one is added.
        """
        kind = opened.type
        if not isinstance(kind, NumberType) or not kind.whole or not kind.low or not kind.high:
            return
        low, high = Fraction(kind.low), Fraction(kind.high)
        if int(high - low) > MAX_ALONE:
            return
        for value in range(int(-(-low // 1)), int(high // 1) + 1):
            self._constant(kind, str(value))

    def _type(self, kind: OpenType) -> None:
        types = self._types.setdefault(sort_of(kind), [])
        if kind not in types:
            types.append(kind)

    def _constant(self, kind: OpenType, text: str) -> None:
        if not text or isinstance(kind, JsonType):
            return
        if of_type(kind, declared.json_of(text)) is None:
            self._type(kind)
            self._constants.setdefault(sort_of(kind), set()).add(text)

    def _domain(self, kind: OpenType) -> tuple[int, ...]:
        if isinstance(kind, ListType):
            return (self._lists[kind],)
        sort = sort_of(kind)
        at = self._types[sort].index(kind)
        return tuple([n for n in self._of_sort.get(sort, ()) if at in self.atoms[n].types])

    def _kind(self, at: int, tool: Tool, fields: Sequence[OpenParameter]) -> Kind:
        number = self.right.tools.get(tool.name)
        other = None if number is None else self.right.core.tools[number]
        theirs = {} if other is None else {p.name: p for p in other.opened}
        mine = {p.name for p in tool.opened} | {p.name for p in tool.parameters}
        refused = "" if other is not None else "the other side has no such tool"
        for name, one in theirs.items():
            if not one.optional and name not in mine:
                refused = f"{name} is missing"
        named = [one.name for one in fields]
        told = {one.name for one in tool.answers}
        sums, possible = list[tuple[int, int | None]](), surely_fit(tool)
        rest = [one for one in tool.answers if one.name not in named]
        possible = possible and all(one.optional or has_value(one.type) for one in rest)
        for one in tool.opened:
            their = theirs.get(one.name)
            added = any((tool.name, one.name) in side.caps for side in (self.left, self.right))
            if one.name in named:
                if added:
                    sums.append((self._sum(tool.name, one, one), named.index(one.name)))
                continue
            possible = possible and (one.optional or has_value(one.type))
            if other is None:
                continue
            if their is None:
                refused = refused or f"{one.name} is not theirs"
                their = one
            if one.optional and not their.optional:
                refused = refused or f"{one.name} may be left out"
            if added:
                sums.append((self._sum(tool.name, one, their), None))
                least = self.sums[-1]
                value = declared.json_of(text_of_units(least.left_least, least.units))
                possible = possible and of_type(one.type, value) is None
            elif not within(one.type, their.type):
                refused = refused or f"{one.name} may be of another type"
        return Kind(
            tool=tool,
            fields=tuple(named),
            domains=tuple([self._domain(one.type) for one in fields]),
            optional=tuple([one.optional for one in fields]),
            types=tuple([one.type for one in fields]),
            refused=refused,
            sums=tuple(sums),
            possible=possible,
            told=frozenset(told.intersection(named)),
        )

    def _sum(self, tool: str, mine: OpenParameter, theirs: OpenParameter) -> int:
        caps = [side.caps.get((tool, mine.name)) for side in (self.left, self.right)]
        self._added.append((tool, mine.name))
        self.sums.append(sum_between(mine, theirs, caps))
        return len(self.sums) - 1

    def _holds(self, atom: Atom, kind: OpenType) -> bool:
        if atom.sort == LIST:  # of a tool with a list both sides have the same type
            return element_of(kind) is not None
        types = self._types.get(atom.sort, [])
        return kind in types and types.index(kind) in atom.types

    def worth(self, of: Sum, token: Choice) -> tuple[int, int]:
        """The least and the greatest of what a value may be that is added up and compared."""
        if token is None:
            return 0, 0
        # In a list that tracks few keys a value that is not one of them still has its atom.
        atom = self.atoms[token % len(self.atoms) if token >= 0 else OTHER - 1 - token]
        if atom.only is not None:
            ends = [Fraction(atom.only)] * 2
        else:
            kinds = [self._types[atom.sort][at] for at in sorted(atom.types)]
            spans = [k for k in kinds if isinstance(k, NumberType) and k.low and k.high]
            ends = [
                max(Fraction(k.low or 0) for k in spans),
                min(Fraction(k.high or 0) for k in spans),
            ]
        return int(ends[0] * of.units // 1), int(-(-ends[1] * of.units // 1))

    def surely(self, state: State, move: Move) -> State | None:
        """Where a call leads, with the least that it can be made to add; None: it may not be made.

        A value that is compared may be any that its token stands for: so it counts as the greatest.

        Args:
            state: with the greatest of its sums.
        """
        if move.state is None or not move.sure or not self._there(state, move):
            return None
        left, right, facts, sums = move.state
        least = [low for low, _ in sums]
        for number, place in self.kinds[self.left.core.calls[move.call].tool].sums:
            of = self.sums[number]
            if place is not None:
                least[number] = state[3][number][1] + self.worth(of, move.tokens[place])[1]
                if of.caps[0] is not None and least[number] > of.caps[0]:
                    return None
        return left, right, facts, tuple([(low, low) for low in least])

    def _there(self, state: State, move: Move) -> bool:
        """Whether all values of a call are known to be there."""
        kind = self.kinds[self.left.core.calls[move.call].tool]
        there: dict[int, set[int]] = {}
        for token in (*held_tokens(state[2]), *[t for t in move.tokens if t is not None]):
            there.setdefault(token % len(self.atoms), set()).add(token)
        used = {token % len(self.atoms) for token in move.tokens if token is not None}
        return kind.possible and all(self.atoms[at].least >= len(there[at]) for at in used)

    def atom_of(self, value: object) -> int:
        """The atom of a value that is compared."""
        sort = "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        text = declared.text_of(value)
        known = self._tokens.get((sort, str(text)))
        if known is not None:
            return known
        kinds = self._types[sort]
        holding = frozenset(i for i, kind in enumerate(kinds) if of_type(kind, value) is None)
        for at in self._of_sort[sort]:
            if self.atoms[at].only is None and self.atoms[at].types == holding:
                return at
        raise Rejected(Code.PROOF_SESSION, "value", "a value of an atom", text)

    def totals(self, spent: Mapping[tuple[str, str], Fraction]) -> list[tuple[int, int]]:
        """The sums of a session, in their units, down and up."""
        exact = [
            spent.get(name, Fraction(0)) * of.units
            for name, of in zip(self._added, self.sums, strict=True)
        ]
        return [(int(total // 1), int(-(-total // 1))) for total in exact]


def held_tokens(facts: Iterable[Fact]) -> list[int]:
    """The tokens that facts hold, increasing."""
    return sorted({part for fact in facts for part in fact[2] if isinstance(part, int)})


def renamed(facts: Sequence[Fact], names: Mapping[int, int]) -> tuple[Fact, ...]:
    """Facts with their tokens renamed."""
    made = [
        (side, slot, tuple([names[p] if isinstance(p, int) else p for p in key]), value)
        for side, slot, key, value in facts
    ]
    return tuple(sorted(made))

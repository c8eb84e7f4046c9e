"""Proofs of exact questions (``tcc.proof/1.0``), checked: the kernel.

Normative text: docs/spec/proof.md.  A *configuration* is where a session is: places of both sides,
what their monitors remember, exact sums.  A listed *state* stands for every configuration that one
gets by giving each of its tokens a value of its own out of the token's atom, and each of its sums a
number out of its interval.  The list is closed if the start is in it, and if each call that the
left side lets through at a state leads into a listed state under a renaming within atoms.  Then
every session of the left side is at a listed state, and what no listed state allows never happens.

What has to be tried is made here from the cores alone: atoms, calls, choices of tokens, and which
keys are asked about.  A file says where each of them leads, and nothing more.  What is not known
(how many texts a pattern has) is taken to be possible where a session would refute, and to be
impossible where one is needed.
No Coq theorem covers this file; tests/exact holds it to brute force and to forgeries.
Cost: linear in the steps of the file; one state in memory for each state of the file.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, TypeAlias

from tcc_certs.core.derived import minor_version
from tcc_certs.core.model import (
    CallSet,
    Core,
    Forbid,
    ForbidBefore,
    ForbidNext,
    ForbidWith,
    Limit,
    OrderMonitor,
    Require,
    Selection,
    SumMonitor,
    Tool,
    UsesMonitor,
)
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats import schema
from tcc_certs.formats.artifact import ArtifactFile, Automaton, Relaxed
from tcc_certs.formats.codec import Json, blake, decode, parse_decimal, read_large
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.session.machine import Place, SessionMachine
from tcc_certs.session.monitors import Counts, Monitors, Seen, Values
from tcc_certs.statements import Constraints, statement_constraints
from tcc_certs.values.canonical import json_value
from tcc_certs.values.declared import OpenParameter, json_of, text_of
from tcc_certs.values.numbers import canonical_number, compare
from tcc_certs.values.text_pattern import TextPattern, pattern_of
from tcc_certs.values.types import FlagType, JsonType, NumberType, OpenType, TextType, encoded
from tcc_certs.values.types import check as of_type

FORMAT = "tcc.proof"
MAX_PROOF_BYTES = 1 << 28
MAX_PROOF_STATES = 1 << 20
MAX_CHOICES = 20_000  # choices of tokens for one call
MAX_PARTS = 4096
MAX_ALONE = 64  # values of a field that is added up and compared
_MAX_TYPES = 24  # of one sort
_MAX_PRODUCT = 600  # states of a product of patterns
_MAX_LENGTH = 3000  # characters that are counted out beside a pattern
_MANY = 1 << 14  # no more values of an atom are counted
_GREATEST = Fraction(10**400)  # no canonical number is beyond
OTHER = -1  # a value that is not tracked

Key: TypeAlias = "tuple[Any, ...]"  # tokens as numbers, listed values as texts
Fact: TypeAlias = "tuple[int, int, Key, int]"  # side, slot of the monitor, key, count
Sums: TypeAlias = "tuple[tuple[int, int], ...]"
State: TypeAlias = "tuple[Place, Place, tuple[Fact, ...], Sums]"
Choice: TypeAlias = "int | None"  # the token of a field; None: left out
NOT_WALKED: Place = ((), ())


# Atoms.


@dataclass(frozen=True, slots=True, kw_only=True)
class Atom:
    """Values of one sort that all types of a question hold or exclude together.

    Attributes:
        types: places of the types of its sort that hold them.
        only: the text of its one value, where that is a constant.
        least, most: so many values it has; None: no end is known.
    """

    sort: str
    types: frozenset[int]
    only: str | None
    least: int
    most: int | None


def sort_of(kind: OpenType) -> str:
    """Values of two sorts are never equal."""
    match kind:
        case TextType():
            return "text"
        case NumberType():
            return "number"
        case FlagType():
            return "flag"
        case JsonType():
            return "json"


_Group: TypeAlias = "dict[frozenset[int], tuple[int, int | None]]"  # types; least, most


def atoms_of(sort: str, types: Sequence[OpenType], constants: Iterable[str]) -> list[Atom]:
    """The atoms of types of one sort; each constant is one by itself."""
    ensure(len(types) <= _MAX_TYPES, Code.LIMIT, "types", f"{_MAX_TYPES} of one sort", len(types))
    found, taken = [], dict[frozenset[int], int]()
    for text in sorted(set(constants)):
        value = json_of(text)
        holding = frozenset(i for i, kind in enumerate(types) if of_type(kind, value) is None)
        taken[holding] = taken.get(holding, 0) + 1
        if holding:
            found.append(Atom(sort=sort, types=holding, only=text, least=1, most=1))
    groups = {"flag": _flags, "number": _numbers, "text": _texts}[sort](types)
    for holding, (least, most) in sorted(groups.items(), key=lambda pair: sorted(pair[0])):
        less = taken.get(holding, 0)
        most = None if most is None else most - less
        if holding and (most is None or most > 0):
            least = max(0, least - less)
            found.append(Atom(sort=sort, types=holding, only=None, least=least, most=most))
    return found


def _plus(groups: _Group, holding: frozenset[int], least: int, most: int | None) -> None:
    one, other = groups.get(holding, (0, 0))
    total = None if other is None or most is None else other + most
    groups[holding] = (
        min(_MANY, one + least),
        None if total is None or total >= _MANY else total,
    )


def _flags(types: Sequence[OpenType]) -> _Group:
    return {frozenset(range(len(types))): (2, 2)}


def _numbers(types: Sequence[OpenType]) -> _Group:
    kinds = [kind for kind in types if isinstance(kind, NumberType)]
    ends = [
        (
            -_GREATEST if kind.low is None else Fraction(kind.low),
            _GREATEST if kind.high is None else Fraction(kind.high),
        )
        for kind in kinds
    ]
    points = sorted({end for pair in ends for end in pair})
    groups: _Group = {}
    spans = [(point, point) for point in points] + list(pairwise(points))
    for low, high in spans:
        for whole in (True, False):
            holding = frozenset(
                i
                for i, (kind, (least, most)) in enumerate(zip(kinds, ends, strict=True))
                if least <= low and high <= most and (whole or not kind.whole)
            )
            if low < high:
                _plus(groups, holding, *_between(low, high, whole))
            elif (low.denominator == 1) == whole:
                _plus(groups, holding, 0 if abs(low) > 1 << 53 or not whole else 1, 1)
    return groups


def _between(low: Fraction, high: Fraction, whole: bool) -> tuple[int, int | None]:
    """How many numbers are strictly between, whole ones or others."""
    size = 1 << 53 if whole else 10**9
    least, most = max(low, Fraction(-size)), min(high, Fraction(size))
    inner = max(0, -(-most // 1) - 1 - least // 1)
    if whole:
        return min(_MANY, int(inner)), max(0, int(-(-high // 1) - 1 - low // 1))
    # A double prints back fourteen digits.
    fine = max(0, -(-most * 10**5 // 1) - 1 - least * 10**5 // 1)
    return max(0, min(_MANY, int(fine - inner))), None


def _texts(types: Sequence[OpenType]) -> _Group:
    kinds = [kind for kind in types if isinstance(kind, TextType)]
    patterns = list(dict.fromkeys([kind.pattern for kind in kinds if kind.pattern is not None]))
    cuts = sorted({cut for kind in kinds for cut in (kind.least, kind.most + 1)})
    pieces = []
    for low, beyond in pairwise(cuts):
        held = [kind.least <= low and beyond <= kind.most + 1 for kind in kinds]
        if any(held):
            pieces.append((low, beyond, held))
    groups: _Group = {}
    counted = _Words([pattern_of(pattern) for pattern in patterns])
    for low, beyond, held in pieces:
        for vector, (least, most) in counted.of_lengths(low, beyond).items():
            holding = frozenset(
                i
                for i, kind in enumerate(kinds)
                if held[i] and (kind.pattern is None or vector[patterns.index(kind.pattern)])
            )
            _plus(groups, holding, least, most)
    return groups


class _Words:
    """How many texts each pattern of a list accepts or not, by lengths.

    A product of the patterns' automata; where it has too many states nothing is known.
    """

    def __init__(self, patterns: Sequence[TextPattern]) -> None:
        self._patterns = patterns
        marks = {0, 0xD800, 0xE000, 0x110000}
        for pattern in patterns:
            marks.update(bound for bound in pattern.bounds if bound <= 0x110000)
        classes = [(low, high) for low, high in pairwise(sorted(marks)) if not _half(low)]
        self._rows: list[dict[int, int]] = []
        self._vectors: list[tuple[bool, ...]] = []
        self._whole = self._explore(classes)
        self._counts: list[dict[int, int]] = [{0: 1}]  # by length, of states, to some bound

    def _explore(self, classes: Sequence[tuple[int, int]]) -> bool:
        start = (1,) * len(self._patterns)
        number, order = {start: 0}, [start]
        for at in order:
            sets = zip(self._patterns, at, strict=True)
            self._vectors.append(tuple([p.set_of(bits).accepts for p, bits in sets]))
            after = [p.after(bits) for p, bits in zip(self._patterns, at, strict=True)]
            row: dict[int, int] = {}
            for low, high in classes:
                to = tuple(
                    [
                        bits & p.at[bisect_right(p.bounds, low) - 1]
                        for p, bits in zip(self._patterns, after, strict=True)
                    ]
                )
                if to not in number:
                    if len(order) >= _MAX_PRODUCT:
                        return False
                    number[to] = len(order)
                    order.append(to)
                row[number[to]] = row.get(number[to], 0) + high - low
            self._rows.append(row)
        return True

    def of_lengths(self, low: int, beyond: int) -> dict[tuple[bool, ...], tuple[int, int | None]]:
        """For each way of being accepted how many texts of these lengths are."""
        if not self._whole:
            vectors = product((False, True), repeat=len(self._patterns))
            ensure(len(self._patterns) <= 8, Code.LIMIT, "types", "fewer patterns", "more")
            return dict.fromkeys(vectors, (0, None))
        open_ones = set(self._vectors)
        found: dict[tuple[bool, ...], int] = dict.fromkeys(open_ones, 0)
        ways = {vector: self._alive(vector) for vector in open_ones}
        length = low
        while open_ones and length < beyond and length <= _MAX_LENGTH:
            counts = self._of_length(length)
            for state, count in counts.items():
                found[self._vectors[state]] += count
            for vector in list(open_ones):
                if found[vector] >= _MANY or ways[vector].isdisjoint(counts):
                    open_ones.discard(vector)
            length += 1
        unknown = open_ones if length < beyond else set()
        return {
            vector: (min(count, _MANY), None if vector in unknown or count >= _MANY else count)
            for vector, count in found.items()
        }

    def _of_length(self, length: int) -> dict[int, int]:
        while len(self._counts) <= length:
            after: dict[int, int] = {}
            for state, count in self._counts[-1].items():
                for to, size in self._rows[state].items():
                    after[to] = min(_MANY, after.get(to, 0) + count * size)
            self._counts.append(after)
        return self._counts[length]

    def _alive(self, vector: tuple[bool, ...]) -> set[int]:
        """The states from which some text is accepted so."""
        into: dict[int, list[int]] = {}
        for state, row in enumerate(self._rows):
            for to in row:
                into.setdefault(to, []).append(state)
        found = {state for state, one in enumerate(self._vectors) if one == vector}
        todo = list(found)
        while todo:
            for state in into.get(todo.pop(), ()):
                if state not in found:
                    found.add(state)
                    todo.append(state)
        return found


def _half(low: int) -> bool:
    return 0xD800 <= low < 0xE000


def within(kind: OpenType, other: OpenType) -> bool:
    """Whether each value of a type is known to be one of the other."""
    if kind == other:
        return True
    if isinstance(kind, JsonType) or isinstance(other, JsonType):
        both = isinstance(kind, JsonType) and isinstance(other, JsonType)
        return both and kind.most <= other.most  # type: ignore[union-attr]
    if sort_of(kind) != sort_of(other):
        return False
    return all(1 in atom.types for atom in atoms_of(sort_of(kind), [kind, other], ()) if 0 in atom.types)


# Sides.


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A grammar, or the statements of a question beside the tools of one.

    Attributes:
        machine: its plans; statements: what stands in their place for a question's statement.
        monitors: without sums.  caps: of each summed parameter, by names, the least cap.
    """

    core: Core
    machine: SessionMachine | None
    statements: Constraints
    core_calls: Sequence[int]
    monitors: Monitors
    caps: Mapping[tuple[str, str], str]
    tools: Mapping[str, int]
    own: Mapping[int, int]  # of a call of the core that of the artifact
    states: int
    shapes: Mapping[int, tuple[bool, ...]]  # of the keys of a slot: which parts are of open values

    @property
    def start(self) -> Place:
        """Before the first call."""
        return ((), ()) if self.machine is None else self.machine.start[0]

    def step(self, place: Place, call: int) -> Place | None:
        """After a call of the core; None: it may not come next."""
        if self.machine is None:
            after = self.statements.step(place[1], call)
            return None if after is None else ((), after)
        mine = self.own.get(call)
        return None if mine is None else self.machine.step(place, mine)

    def accepts(self, place: Place) -> bool:
        """Whether a session may end there."""
        if self.machine is None:
            return self.statements.may_stop(place[1])
        return self.machine.accepts(place)

    def calls(self, place: Place) -> list[int]:
        """The calls of the core that plans go on with, increasing."""
        if self.machine is None:
            return []
        return sorted({self.core_calls[c] for q in place[0] for c in self.machine.row(q)})


def grammar_side(
    core: Core, automaton: Automaton, core_calls: Sequence[int], relaxed: Relaxed | None
) -> Side:
    """The side of a grammar: what its artifact has."""
    machine = SessionMachine(core, automaton, core_calls, relaxed)
    items = statement_constraints(core, core_calls, relaxed)
    return _side(core, machine, items, core_calls, automaton.states)


def statement_side(core: Core) -> Side:
    """The side of the statements of a core, over any sequence of its calls."""
    every = Relaxed(
        limits=tuple(range(len(core.limits))),
        requires=tuple(range(len(core.requires))),
        forbids=tuple(range(len(core.forbids))),
    )
    calls = range(len(core.calls))
    return _side(core, None, statement_constraints(core, calls, every), calls, 0)


_KNOWN = (OrderMonitor, SumMonitor, UsesMonitor)


def _side(
    core: Core, machine: SessionMachine | None, items: list[Any], calls: Sequence[int], states: int
) -> Side:
    ensure(minor_version(core) <= 1, Code.UNKNOWN_FEATURE, "core", "1.1 at most", "a later one")
    caps: dict[tuple[str, str], str] = {}
    for one in core.monitors:
        ensure(isinstance(one, _KNOWN), Code.UNKNOWN_FEATURE, "core", "monitors of 1.1", one.text)
        if isinstance(one, SumMonitor):
            name = core.tools[one.tool].name, one.parameter
            caps[name] = min_decimal(caps.get(name, one.value), one.value)
    for tool in core.tools:
        for opened in tool.opened:
            kinds = (TextType, NumberType, FlagType, JsonType)
            known = type(opened.type) in kinds
            ensure(known, Code.UNKNOWN_FEATURE, "core", "types of 1.1", opened.name)
    rest = tuple([one for one in core.monitors if not isinstance(one, SumMonitor)])
    return Side(
        core=core,
        machine=machine,
        statements=Constraints(items=items, calls=max(1, len(calls))),
        core_calls=calls,
        monitors=Monitors(replace(core, monitors=rest)),
        caps=caps,
        tools={tool.name: at for at, tool in enumerate(core.tools)},
        own={index: call for call, index in enumerate(calls)},
        states=states,
        shapes=_shapes(core, rest),
    )


def _shapes(core: Core, monitors: Sequence[Any]) -> dict[int, tuple[bool, ...]]:
    found: dict[int, tuple[bool, ...]] = {}
    for number, one in enumerate(monitors):
        if isinstance(one, UsesMonitor):
            found[2 * number] = (True,)
            continue
        for at, of in enumerate((one.first, one.second)):
            opened = {p.name for p in core.tools[of.tool].opened}
            found[2 * number + at] = tuple([pair[at] in opened for pair in one.same])
    return found


def min_decimal(one: str, other: str) -> str:
    """The lesser of two canonical decimals."""
    return one if compare(one, other) <= 0 else other


# Both sides of a question.


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """A parameter that is added up, in units of 10^-places.

    Attributes:
        caps: of the left and of the right.  span: the least and the greatest value of both types;
            None: they have none in common.  grid: of the sums; 0: there is none.
        left_least: the least value of the left type.
        odd: the least value that is of the left type alone, and whether all are above it.
    """

    caps: tuple[int | None, int | None]
    span: tuple[int, int] | None
    grid: int
    left_least: int
    odd: tuple[int, bool] | None
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A tool of the left, as the right has it.

    Attributes:
        fields: names of the parameters with tokens; domains: their atoms; optional: each.
        refused: why the right refuses some call whatever the session is; empty: it does not.
        sums: number of the sum, its field or None.
        possible: whether every other parameter has a value, or may be left out.
    """

    tool: Tool
    fields: tuple[str, ...]
    domains: tuple[tuple[int, ...], ...]
    optional: tuple[bool, ...]
    types: tuple[OpenType, ...]
    refused: str
    sums: tuple[tuple[int, int | None], ...]
    possible: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What one list of states is about.

    Attributes:
        tracked: the tokens of the keys that are looked at; None: all values are.
        rule: the right monitor that is asked about; None: all of them are, and plans and sums.
        uses: the left monitors, without sums, that are used.
    """

    tracked: tuple[int, ...] | None
    rule: int | None
    uses: frozenset[int]
    plans: bool = True


class Move:
    """A call with tokens: its state after it, None where the right side may refuse it, and why."""

    __slots__ = ("call", "state", "tokens", "why")

    def __init__(self, call: int, tokens: tuple[Choice, ...], state: State | None, why: str) -> None:
        self.call, self.tokens, self.state, self.why = call, tokens, state, why


_Looks: TypeAlias = "tuple[tuple[Seen, ...], tuple[Seen, ...], int, str]"


class System:
    """Two sides, the atoms of their values, and what has to be tried at a state."""

    def __init__(self, left: Side, right: Side) -> None:
        self.left, self.right = left, right
        self.atoms: list[Atom] = []
        self.sums: list[Sum] = []
        self._added: list[tuple[str, str]] = []
        self._types: dict[str, list[OpenType]] = {}
        self._constants: dict[str, set[str]] = {}
        self._tokens: dict[tuple[str, str], int] = {}
        fields = [self._fields(at, tool) for at, tool in enumerate(left.core.tools)]
        of_sort: dict[str, list[int]] = {}
        for sort in sorted(self._types):
            for atom in atoms_of(sort, self._types[sort], self._constants.get(sort, ())):
                if atom.only is not None:
                    self._tokens[sort, atom.only] = len(self.atoms)
                of_sort.setdefault(sort, []).append(len(self.atoms))
                self.atoms.append(atom)
        self._of_sort = of_sort
        tools = enumerate(left.core.tools)
        self.kinds = [self._kind(at, tool, fields[at]) for at, tool in tools]
        self._right_calls = {
            _named(right.core.tools[call.tool], call.values): number
            for number, call in enumerate(right.core.calls)
        }
        self._looks: dict[tuple[Part, int, tuple[Choice, ...]], _Looks] = {}

    def start(self, part: Part) -> State:
        """Before the first call."""
        right = self.right.start if part.plans else NOT_WALKED
        return self.left.start, right, (), tuple([(0, 0)] * len(self.sums)) if part.plans else ()

    # What is compared.

    def _fields(self, at: int, tool: Tool) -> list[OpenParameter]:
        number = self.right.tools.get(tool.name)
        other = None if number is None else self.right.core.tools[number]
        compared = set(self.left.monitors.compared.get(at, ()))
        listed: dict[str, Sequence[str]] = {}
        theirs: dict[str, OpenType] = {}
        if other is not None and number is not None:
            answers = [sorted(p.name for p in of.parameters if p.observed) for of in (tool, other)]
            ensure(
                answers[0] == answers[1], Code.UNKNOWN_FEATURE, tool.name, "the same answers", other.name
            )
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
        for opened in tool.opened:
            if opened.name not in compared and opened.name not in listed:
                continue
            sort = sort_of(opened.type)
            ensure(sort != "json", Code.UNKNOWN_FEATURE, opened.name, "a text or number", sort)
            self._type(opened.type)
            if opened.name in theirs and sort_of(theirs[opened.name]) == sort:
                self._type(theirs[opened.name])
            for text in listed.get(opened.name, ()):
                self._constant(opened.type, text)
            if any((tool.name, opened.name) in side.caps for side in (self.left, self.right)):
                self._alone(opened)
            found.append(opened)
        return found

    def _alone(self, opened: OpenParameter) -> None:
        """Values that are added up and compared are told apart, each for itself."""
        kind = opened.type
        few = isinstance(kind, NumberType) and kind.whole and kind.low is not None
        if not few or int(Fraction(kind.high) - Fraction(kind.low)) > MAX_ALONE:  # type: ignore[union-attr, arg-type]
            raise Rejected(Code.UNKNOWN_FEATURE, opened.name, "few values", "added and compared")
        low, high = Fraction(kind.low), Fraction(kind.high)  # type: ignore[union-attr, arg-type]
        for value in range(int(-(-low // 1)), int(high // 1) + 1):
            self._constant(kind, str(value))

    def _type(self, kind: OpenType) -> None:
        types = self._types.setdefault(sort_of(kind), [])
        if kind not in types:
            types.append(kind)

    def _constant(self, kind: OpenType, text: str) -> None:
        if text and not isinstance(kind, JsonType) and of_type(kind, json_of(text)) is None:
            self._type(kind)
            self._constants.setdefault(sort_of(kind), set()).add(text)

    def _domain(self, kind: OpenType) -> tuple[int, ...]:
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
        sums, possible = list[tuple[int, int | None]](), True
        for one in tool.opened:
            their = theirs.get(one.name)
            added = any((tool.name, one.name) in side.caps for side in (self.left, self.right))
            if one.name in named:
                if added:
                    sums.append((self._sum(tool.name, one, one), named.index(one.name)))
                continue
            possible = possible and (one.optional or _has_value(one.type))
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
                value = Decimal(least.left_least) / least.units
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
        )

    def _sum(self, tool: str, mine: OpenParameter, theirs: OpenParameter) -> int:
        kind, other = mine.type, theirs.type
        if not isinstance(kind, NumberType) or kind.low is None or kind.high is None:
            raise Rejected(Code.UNKNOWN_FEATURE, mine.name, "a range of numbers", "another type")
        ensure(not kind.low.startswith("-"), Code.UNKNOWN_FEATURE, mine.name, "0 or more", kind.low)
        caps = [side.caps.get((tool, mine.name)) for side in (self.left, self.right)]
        self._added.append((tool, mine.name))
        ours = (Fraction(kind.low), Fraction(kind.high))
        limits = list(ours)
        whole, odd = kind.whole, None
        if not isinstance(other, NumberType):
            self.sums.append(_sum_of(caps, (), kind.whole, ours, (ours[0], False)))
            return len(self.sums) - 1
        if other.low is not None and other.high is not None:
            low, high = Fraction(other.low), Fraction(other.high)
            limits = [max(ours[0], low), min(ours[1], high)]
            first = Fraction(-(-ours[0] // 1)) if whole else ours[0]
            beyond = Fraction(high // 1 + 1) if whole else high
            if ours[1] > high and max(first, beyond) <= ours[1]:
                odd = (max(first, beyond), not whole and first <= high)
            if first < low:
                odd = (first, False)
        if other.whole and not whole:
            if odd is None or odd[0] > ours[0]:
                odd = (ours[0], ours[0].denominator == 1)
            whole = True
        self.sums.append(_sum_of(caps, limits, whole, ours, odd, kind.whole))
        return len(self.sums) - 1

    # What has to be tried.

    def moves(self, part: Part, state: State) -> Iterator[Move]:
        """Every call of the left that may come next, by increasing calls, with every choice.

        A token that is held may come again; all that are not are alike, so the least of each atom
        stands for them, where the atom has so many values.
        """
        held: dict[int, list[int]] = {}
        atoms = len(self.atoms)
        for token in part.tracked if part.tracked is not None else held_tokens(state[2]):
            held.setdefault(token % atoms, []).append(token)
        counts = {fact[:3]: fact[3] for fact in state[2]}
        for call in self.left.calls(state[0]):
            after = self.left.step(state[0], call)
            if after is None:
                continue
            kind = self.kinds[self.left.core.calls[call].tool]
            for number, tokens in enumerate(self._choices(part, kind, held)):
                ensure(number < MAX_CHOICES, Code.LIMIT, "choices", f"{MAX_CHOICES}", "more")
                move = self._move(part, state, counts, call, after, kind, tokens)
                if move is not None:
                    yield move

    def _choices(
        self, part: Part, kind: Kind, held: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[Choice, ...]]:
        if not kind.fields:
            return iter(((),))
        atoms = len(self.atoms)
        used = {atom: list(tokens) for atom, tokens in held.items()}
        chosen: list[Choice] = []

        def choose(at: int) -> Iterator[tuple[Choice, ...]]:
            if at == len(kind.fields):
                yield tuple(chosen)
                return
            if kind.optional[at]:
                chosen.append(None)
                yield from choose(at + 1)
                chosen.pop()
            for atom in kind.domains[at]:
                there = used.setdefault(atom, [])
                for token in list(there):
                    chosen.append(token)
                    yield from choose(at + 1)
                    chosen.pop()
                most = self.atoms[atom].most
                if most is not None and most <= len(there):
                    continue
                if part.tracked is not None:
                    chosen.append(OTHER - 1 - atom)
                    yield from choose(at + 1)
                    chosen.pop()
                    continue
                fresh = next(t for t in range(atom, atom + atoms * len(there) + 1, atoms) if t not in there)
                there.append(fresh)
                chosen.append(fresh)
                yield from choose(at + 1)
                chosen.pop()
                there.remove(fresh)

        return choose(0)

    def _move(
        self,
        part: Part,
        state: State,
        counts: Mapping[Any, int],
        call: int,
        after: Place,
        kind: Kind,
        tokens: tuple[Choice, ...],
    ) -> Move | None:
        key = part, call, tokens
        look = self._looks.get(key)
        if look is None:
            if len(self._looks) > 1 << 16:
                self._looks.clear()
            look = self._looks[key] = self._look(part, call, kind, tokens)
        mine, theirs, pair, why = look
        left = _after(mine, counts, 0)
        if left is None:
            return None
        sums = state[3]
        if part.plans:
            summed = self._summed(state[3], kind, tokens)
            if summed is None:
                return None
            sums, over = summed
            if why or over:
                return Move(call, tokens, None, why or over)
        right = _after(theirs, counts, 1)
        if right is None:
            return Move(call, tokens, None, "a monitor of the other side")
        place = NOT_WALKED
        if part.plans:
            stepped = self.right.step(state[1], pair)
            if stepped is None:
                return Move(call, tokens, None, "the other side's plans or statements")
            place = stepped
        facts = state[2]
        if left or right:
            made = dict(counts)
            for fact, value in (*left, *right):
                if value:
                    made[fact] = value
                else:
                    made.pop(fact, None)
            facts = tuple(sorted([(*fact, value) for fact, value in made.items()]))
        return Move(call, tokens, (after, place, facts, sums), "")

    def _summed(
        self, sums: Sums, kind: Kind, tokens: tuple[Choice, ...]
    ) -> tuple[Sums, str] | None:
        """The intervals after a call; None: the left side never allows it; or why the right may not."""
        if not kind.sums:
            return sums, ""
        found, over = list(sums), ""
        for number, place in kind.sums:
            of = self.sums[number]
            low, high = found[number]
            least, span = of.left_least, of.span
            if place is not None:
                least = self._worth(of, tokens[place])
                span = (least, least)
            elif of.odd is not None and _odd_fits(low + of.odd[0], of.caps[0], of.odd[1]):
                over = "a value that the other side has not"
            if not _fits(low + least, of.caps[0]):
                return None
            if span is None or not _fits(low + span[0], of.caps[0]):
                if not over:
                    return None
                continue
            most = _cut(high + span[1], of.caps[0], of.grid)
            if not _fits(most, of.caps[1]):
                over = over or "a sum of the other side"
            found[number] = low + span[0], most
        return tuple(found), over

    def _worth(self, of: Sum, token: Choice) -> int:
        if token is None:
            return 0
        # In a list that tracks few keys a value that is not one of them still has its atom.
        atom = self.atoms[token % len(self.atoms) if token >= 0 else OTHER - 1 - token]
        if atom.only is None:
            raise Rejected(Code.UNKNOWN_FEATURE, "sums", "a value that is told apart", "any")
        return int(Fraction(atom.only) * of.units)

    def _look(self, part: Part, call: int, kind: Kind, tokens: tuple[Choice, ...]) -> _Looks:
        """How the monitors of both sides see a call; the right's call; why it refuses it anyway."""
        made = self.left.core.calls[call]
        given = dict(zip(kind.fields, tokens, strict=True))
        opened = {name: max(token, OTHER) for name, token in given.items() if token is not None}
        seen = self.left.monitors.see(made.tool, _chosen(kind.tool, made.values), opened, {})
        mine = [(one, made.values) for one in map(_known_keys, seen) if one.rule.number in part.uses]
        left = tuple([one for one, _ in mine])
        if part.rule is None and not part.plans:
            return _with(left, made.values), (), 0, ""
        found = self._theirs(part, call, kind, given)
        if isinstance(found, str):
            return _with(left, made.values), (), 0, found
        pair, theirs = found
        values = self.right.core.calls[pair].values
        number = self.right.core.calls[pair].tool
        tool = self.right.core.tools[number]
        seen = self.right.monitors.see(number, _chosen(tool, values), theirs, {})
        right = tuple(
            [
                one
                for one in map(_known_keys, seen)
                if (part.rule is None and part.tracked is None) or one.rule.number == part.rule
            ]
        )
        return _with(left, made.values), _with(right, values), pair, kind.refused

    def _theirs(
        self, part: Part, call: int, kind: Kind, given: Mapping[str, Choice]
    ) -> tuple[int, dict[str, object]] | str:
        """The right's call for one of the left and its open values; or why it has none."""
        number = self.right.tools.get(kind.tool.name)
        if number is None:
            return "the other side has no such tool"
        tool = self.right.core.tools[number]
        listed = {p.name for p in tool.parameters}
        types = {p.name: p for p in tool.opened}
        made = self.left.core.calls[call]
        texts: dict[str, str] = {}
        opened: dict[str, object] = {}
        for param, index in zip(kind.tool.parameters, made.values, strict=True):
            text = param.values[index]
            if not text:
                continue
            if param.name in listed:
                texts[param.name] = text
            elif param.name not in types or of_type(types[param.name].type, json_of(text)) is not None:
                return f"{param.name} is of another type"
            else:
                of = self._tokens.get((sort_of(types[param.name].type), text))
                tracked = part.tracked is None or of in part.tracked
                opened[param.name] = of if of is not None and tracked else OTHER
        for name, token in given.items():
            if token is None:
                continue
            at = token % len(self.atoms) if token >= 0 else OTHER - 1 - token
            atom = self.atoms[at]
            if name in listed:
                if atom.only is None:
                    return f"{name} is none of the other side's values"
                texts[name] = atom.only
            elif name not in types or not self._holds(atom, types[name].type):
                return f"{name} is of another type"
            else:
                opened[name] = max(token, OTHER)
        if any(not p.optional and p.name not in opened for p in tool.opened if p.name in given):
            return "a parameter is left out"
        for param in kind.tool.parameters:
            their = types.get(param.name)
            if their is not None and not their.optional and param.name not in opened:
                return f"{param.name} is left out"
        pair = self._right_calls.get((tool.name, frozenset(texts.items())))
        return "the other side has no such call" if pair is None else (pair, opened)

    def _holds(self, atom: Atom, kind: OpenType) -> bool:
        types = self._types.get(atom.sort, [])
        return sort_of(kind) == atom.sort and kind in types and types.index(kind) in atom.types

    def surely(self, state: State, move: Move) -> bool:
        """Whether a call can be made, with the least of what it adds: its values are there."""
        kind = self.kinds[self.left.core.calls[move.call].tool]
        there: dict[int, set[int]] = {}
        for token in (*held_tokens(state[2]), *[t for t in move.tokens if t is not None]):
            there.setdefault(token % len(self.atoms), set()).add(token)
        used = {token % len(self.atoms) for token in move.tokens if token is not None}
        return kind.possible and all(self.atoms[at].least >= len(there[at]) for at in used)

    def atom_of(self, value: object) -> int:
        """The atom of a value that is compared."""
        sort = "flag" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"
        text = text_of(value)
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
        exact = [spent.get(name, Fraction(0)) * of.units for name, of in zip(self._added, self.sums, strict=True)]
        return [(int(total // 1), int(-(-total // 1))) for total in exact]

    # Which keys are asked about, one at a time.

    def parts(self, uses: Sequence[frozenset[int]] | frozenset[int]) -> list[Part]:
        """Plans, types and sums; then each monitor of the right with each kind of key.

        A session that breaks a monitor breaks it at one key: its values are tracked, and no others.
        """
        every = uses if isinstance(uses, frozenset) else None
        found = [Part(tracked=(), rule=None, uses=self._use(every, uses, 0))]
        monitors = [m for m in self.right.core.monitors if not isinstance(m, SumMonitor)]
        for number, monitor in enumerate(monitors):
            for tracked in self._keys(monitor):
                ensure(len(found) < MAX_PARTS, Code.LIMIT, "parts", f"{MAX_PARTS}", "more")
                using = self._use(every, uses, len(found))
                found.append(Part(tracked=tracked, rule=number, uses=using, plans=False))
        return found

    @staticmethod
    def _use(every: frozenset[int] | None, uses: Any, at: int) -> frozenset[int]:
        if every is not None:
            return every
        return uses[at] if at < len(uses) else frozenset()

    def _keys(self, monitor: OrderMonitor | UsesMonitor) -> list[tuple[int, ...]]:
        """The tokens that a key of a monitor may be of."""
        tools = self.right.core.tools
        if isinstance(monitor, UsesMonitor):
            sides = [(tools[monitor.calls.tool], [monitor.per])]
        else:
            ones, others = zip(*monitor.same, strict=True)
            sides = [(tools[monitor.second.tool], list(others))]
            if monitor.order == "with":
                sides.append((tools[monitor.first.tool], list(ones)))
        found: dict[tuple[int, ...], None] = {}
        for tool, names in sides:
            atoms = [self._values_of(tool.name, name) for name in names]
            for chosen in product(*[one for one in atoms if one is not None]):
                for tracked in self._tokens_of(chosen):
                    found[tracked] = None
                    ensure(len(found) < MAX_PARTS, Code.LIMIT, "keys", f"{MAX_PARTS}", "more")
        return list(found)

    def _values_of(self, tool: str, name: str) -> list[int] | None:
        """The atoms of the values that the left gives a parameter; None: the right lists it."""
        number = self.right.tools[tool]
        if any(p.name == name for p in self.right.core.tools[number].parameters):
            return None
        at = self.left.tools.get(tool)
        if at is None:
            return []
        kind = self.kinds[at]
        if name in kind.fields:
            return list(kind.domains[kind.fields.index(name)])
        their = next(p for p in self.right.core.tools[number].opened if p.name == name)
        mine = [p.values for p in kind.tool.parameters if p.name == name]
        tokens = [self._tokens.get((sort_of(their.type), text)) for some in mine for text in some]
        return [token % len(self.atoms) for token in tokens if token is not None]

    def _tokens_of(self, chosen: Sequence[int]) -> Iterator[tuple[int, ...]]:
        """Every way in which values of these atoms are equal or not, as tokens from 0."""
        atoms = len(self.atoms)

        def choose(at: int, used: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
            if at == len(chosen):
                yield tuple(sorted(set(used)))
                return
            there = sorted({token for token in used if token % atoms == chosen[at]})
            for token in there:
                yield from choose(at + 1, (*used, token))
            most = self.atoms[chosen[at]].most
            if most is None or most > len(there):
                yield from choose(at + 1, (*used, chosen[at] + atoms * len(there)))

        return choose(0, ())


_Watched: TypeAlias = "tuple[tuple[Seen, Values], ...]"


def _with(seen: Sequence[Seen], values: Values) -> Any:
    return tuple([(one, values) for one in seen])


def _known_keys(one: Seen) -> Seen:
    """Without keys that hold a value which is not tracked: nothing is asked or kept of them."""
    a = None if one.a is None or OTHER in one.a else one.a
    b = None if one.b is None or OTHER in one.b else one.b
    return Seen(rule=one.rule, a=a, b=b, adds=one.adds)


def _after(watched: Any, counts: Mapping[Any, int], side: int) -> Any:
    """What monitors remember of a call from now on; None: one does not allow it."""
    if not watched:
        return ()
    view: Counts = _View(counts, side)
    for seen, _ in watched:
        if not seen.rule.allows(view, seen):
            return None
    found = []
    for seen, values in watched:
        for (slot, key), value in seen.rule.marks(view, seen, True, values):
            view.made[slot, key] = value  # type: ignore[attr-defined]
            found.append(((side, slot, key), value))
    return found


class _View(dict[Any, int]):
    """The counts of one side, as its monitors ask for them."""

    __slots__ = ("counts", "made", "side")

    def __init__(self, counts: Mapping[Any, int], side: int) -> None:
        super().__init__()
        self.counts, self.side = counts, side
        self.made: dict[Any, int] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        """A count; those that this call has made come first."""
        if key in self.made:
            return self.made[key] or default
        return self.counts.get((self.side, *key), default)

    def __contains__(self, key: Any) -> bool:
        return bool(self.get(key, 0))


def _named(tool: Tool, values: Sequence[int]) -> tuple[str, frozenset[tuple[str, str]]]:
    pairs = zip(tool.parameters, values, strict=True)
    return tool.name, frozenset([(p.name, p.values[i]) for p, i in pairs if p.values[i]])


def _chosen(tool: Tool, values: Sequence[int]) -> Values:
    pairs = zip(tool.parameters, values, strict=True)
    return tuple([None if param.observed else value for param, value in pairs])


def _has_value(kind: OpenType) -> bool:
    if isinstance(kind, JsonType):
        return kind.most >= 1
    return any(atom.least for atom in atoms_of(sort_of(kind), [kind], ()))


def _sum_of(
    caps: Sequence[str | None],
    limits: Sequence[Fraction],
    whole: bool,
    ours: tuple[Fraction, Fraction],
    odd: tuple[Fraction, bool] | None,
    our_whole: bool = False,
) -> Sum:
    given = [*limits, *ours, *[Fraction(cap) for cap in caps if cap is not None]]
    if odd is not None:
        given.append(odd[0])
    places = 0
    while any((one * 10**places).denominator != 1 for one in given):
        places += 1
    unit = 10**places
    least, most = (-(-limits[0] // 1), limits[1] // 1) if whole and limits else limits or (1, 0)
    left_least = -(-ours[0] // 1) if our_whole else ours[0]
    span = (int(least * unit), int(most * unit)) if least <= most else None
    return Sum(
        caps=tuple([None if cap is None else int(Fraction(cap) * unit) for cap in caps]),  # type: ignore[arg-type]
        span=span,
        grid=unit if whole else 0,
        left_least=int(left_least * unit),
        odd=None if odd is None else (int(odd[0] * unit), odd[1]),
        units=unit,
    )


def _fits(total: int, cap: int | None) -> bool:
    return cap is None or total <= cap


def _odd_fits(total: int, cap: int | None, above: bool) -> bool:
    """Whether some total fits; where all values are above one, its total has to be below the cap."""
    return cap is None or total + above <= cap


def _cut(most: int, cap: int | None, grid: int) -> int:
    """The greatest sum: at most the cap, on the grid."""
    end = most if cap is None else min(most, cap)
    return end // grid * grid if grid else end


def held_tokens(facts: Iterable[Fact]) -> list[int]:
    """The tokens that facts hold, increasing."""
    return sorted({part for fact in facts for part in fact[2] if isinstance(part, int)})


def renamed(facts: Sequence[Fact], names: Mapping[int, int]) -> tuple[Fact, ...]:
    """Facts with their tokens renamed."""
    return tuple(
        sorted(
            [
                (side, slot, tuple([names[p] if isinstance(p, int) else p for p in key]), value)
                for side, slot, key, value in facts
            ]
        )
    )


# The question's statement.

_TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<name>[A-Za-z_][A-Za-z0-9_]*)'
    r"|(?P<number>[0-9]+(?:\.[0-9]+)?)|(?P<mark><=|>=|.))",
    re.DOTALL,
)
_PLAIN = ("depth", "price", "cost", "epsilon", "latency")


class _Reader:
    """A statement about the tools of a core: ``never``, ``forbid``, ``require`` or ``limit``."""

    def __init__(self, core: Core, text: str) -> None:
        self._core = core
        self._tokens: list[tuple[str, str]] = []
        self._at = 0
        self._patterns: list[CallSet] = []
        end = len(text.rstrip())
        ensure(end <= 1 << 16, Code.LIMIT, "question", "a statement of 65536 characters", end)
        place = 0
        while place < end:
            found = _TOKEN.match(text, place)
            if found is None:
                raise self._fault("a statement", text[place : place + 20])
            self._tokens.append((str(found.lastgroup), found[str(found.lastgroup)]))
            place = found.end()
        self._of: dict[int, list[int]] = {}
        for number, call in enumerate(core.calls):
            self._of.setdefault(call.tool, []).append(number)

    @staticmethod
    def _fault(expected: str, found: object) -> Rejected:
        return Rejected(Code.PROOF_QUESTION, "question", expected, found)

    # Tokens.

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._at += 1
        return token

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "")

    def _take(self, *words: str) -> str | None:
        kind, text = self._peek()
        if kind in ("name", "mark") and text in words:
            self._at += 1
            return text
        return None

    def _must(self, *words: str) -> str:
        found = self._take(*words)
        if found is None:
            raise self._fault(" or ".join(words), self._peek()[1])
        return found

    def _name(self) -> str:
        kind, text = self._next()
        if kind == "text":
            value = decode(text.encode("utf-8", "surrogatepass"), "question")
            return str(value)
        if kind != "name":
            raise self._fault("a name", text)
        return text

    # Statements.

    def read(self) -> Core:
        """The core that has the statement, and the tools and calls of the other, and no more."""
        word = self._must("never", "forbid", "require", "limit")
        bare = replace(
            self._core, limits=(), requires=(), forbids=(), monitors=(), patterns=(), start=None, goals=()
        )
        made: dict[str, Any]
        if word == "limit":
            made = self._limit()
        elif word == "require":
            made = self._require()
        else:
            made = self._forbid(turned=word == "never")
        if self._peek()[0] != "end":
            raise self._fault("the end of the statement", self._peek()[1])
        return replace(bare, **made, patterns=tuple(self._patterns))

    def _forbid(self, *, turned: bool) -> dict[str, Any]:
        places = [self._at]
        sets = [self._set()]
        ends = [self._at]
        while self._peek()[0] != "end" and self._peek()[1] not in ("with", "before", "after"):
            sets.append(self._single())
        if self._peek()[0] == "end":
            return {"forbids": (ForbidNext(tuple(map(self._pattern, sets))),)}
        if len(sets) > 1:
            raise self._fault("the end of the statement", self._peek()[1])
        word = self._must(*(("with", "before", "after") if turned else ("with", "before")))
        places.append(self._at)
        sets.append(self._set())
        ends.append(self._at)
        if self._take("same"):
            pairs = self._same()
            if word == "after":
                places.reverse()
                ends.reverse()
                pairs = [(b, a) for a, b in pairs]
            order = "with" if word == "with" else "before"
            return {"monitors": (self._order("forbid", order, places, ends, pairs),)}
        if word == "after":
            sets.reverse()
        one, other = map(self._pattern, sets)
        kind: type[ForbidWith] | type[ForbidBefore] = ForbidWith if word == "with" else ForbidBefore
        found: Forbid = kind(one, other)
        return {"forbids": (found,)}

    def _require(self) -> dict[str, Any]:
        places = [self._at]
        sets = [self._set()]
        ends = [self._at]
        word = self._must("before", "after")
        if word == "before" and self._take("each"):
            word = "each"
        places.append(self._at)
        sets.append(self._set())
        ends.append(self._at)
        if self._take("same"):
            if word == "after":
                raise self._fault("before", word)
            return {"monitors": (self._order("require", word, places, ends, self._same()),)}
        one, other = map(self._pattern, sets)
        return {"requires": (Require(word, one, other),)}  # type: ignore[arg-type]

    def _limit(self) -> dict[str, Any]:
        core, kind = self._core, self._must("uses", "sum", *_PLAIN)
        if kind in _PLAIN:
            if kind != "depth":
                raise Rejected(Code.UNKNOWN_FEATURE, "question", "a limit on calls", kind)
            self._must("<=")
            limit = Limit(kind="depth", value=self._whole(), text="")
            return {"limits": (limit,)}
        self._must("(")
        if kind == "sum":
            tool, _, name = self._tool(), self._must("."), self._name()
            self._must(")")
            self._must("<=")
            value = self._decimal()
            return self._sum_limit(tool, name, value)
        place, calls, end = self._at, self._set(), self._at
        self._must(")")
        if self._take("per"):
            per = self._name()
            self._must("<=")
            selection = self._selection(place, end)
            if all(one.name != per or one.optional for one in core.tools[selection.tool].opened):
                raise self._fault("an open parameter of every call", per)
            value = self._whole()
            return {"monitors": (UsesMonitor(calls=selection, per=per, value=value, text=""),)}
        least = self._must("<=", ">=") == ">="
        return {
            "limits": (Limit(kind="uses", value=self._whole(), text="", least=least, calls=calls),)
        }

    def _sum_limit(self, tool: int, name: str, value: str) -> dict[str, Any]:
        of = self._core.tools[tool]
        for opened in of.opened:
            if opened.name == name:
                low = opened.type.low if isinstance(opened.type, NumberType) else None
                if low is None or low.startswith("-") or opened.optional:
                    raise self._fault("a number of at least 0", name)
                return {"monitors": (SumMonitor(tool=tool, parameter=name, value=value, text=""),)}
        for at, param in enumerate(of.parameters):
            if param.name == name:
                number, places = parse_decimal(value, "question", Code.PROOF_QUESTION)
                if places > 9:
                    raise self._fault("nine decimals", value)
                nano = number * 10 ** (9 - places)
                limit = Limit(kind="sum", value=nano, text="", parameter=(tool, at))
                if any(text and _negative(text) for text in param.values):
                    raise self._fault("numbers of at least 0", name)
                return {"limits": (limit,)}
        raise self._fault(f"a parameter of {of.name}", name)

    def _order(
        self,
        kind: str,
        order: str,
        places: Sequence[int],
        ends: Sequence[int],
        pairs: Sequence[tuple[str, str]],
    ) -> OrderMonitor:
        one, other = map(self._selection, places, ends)
        tools = self._core.tools
        some = False
        for left, right in pairs:
            sorts = [_sort_in(tools[of.tool], name) for of, name in ((one, left), (other, right))]
            if sorts[0] != sorts[1] or sorts[0] is None:
                raise self._fault("parameters that can be compared", f"{left} = {right}")
            some = some or sorts[0] != "listed"
        if not some:
            raise self._fault("a pair of open parameters", "none")
        last = [one, other] if order == "with" else [other]
        if any(tools[of.tool].parameters[at].observed for of in last for at, _ in of.where):
            raise self._fault("what its caller chooses", "an answer")
        return OrderMonitor(
            kind=kind,  # type: ignore[arg-type]
            order=order,  # type: ignore[arg-type]
            first=one,
            second=other,
            same=tuple(sorted(set(pairs))),
            text="",
        )

    def _same(self) -> list[tuple[str, str]]:
        pairs = []
        while True:
            one = self._name()
            pairs.append((one, self._name() if self._take("=") else one))
            if not self._take(","):
                return pairs

    # Sets of calls.

    def _set(self) -> CallSet:
        found = self._calls()
        while self._take("-"):
            found = _without(found, self._calls())
        return found

    def _calls(self) -> CallSet:
        found = self._single()
        while self._take("|"):
            found = _union(found, self._single())
        return found

    def _single(self) -> CallSet:
        if self._peek() == ("name", "any"):
            self._at += 1
            return ((0, len(self._core.calls)),) if self._core.calls else ()
        if self._peek() == ("mark", "("):
            if sum(token == ("mark", "(") for token in self._tokens) > 100:
                raise Rejected(Code.LIMIT, "question", "100 parentheses", "more")
            self._at += 1
            found = self._set()
            self._must(")")
            return found
        of = self._selection(self._at)
        where = [(at, frozenset(some)) for at, some in of.where]
        return _ranges(
            [
                number
                for number in self._of.get(of.tool, ())
                if all(self._core.calls[number].values[at] in some for at, some in where)
            ]
        )

    def _tool(self) -> int:
        name = self._name()
        for at, tool in enumerate(self._core.tools):
            if tool.name == name:
                return at
        raise self._fault("a tool", name)

    def _selection(self, place: int, end: int | None = None) -> Selection:
        """The pattern at a place; of one that has been read before it has to be all up to `end`."""
        kept, self._at = self._at, place
        tool = self._tool()
        parameters = self._core.tools[tool].parameters
        where: dict[int, tuple[int, ...]] = {}
        if self._take("("):
            while True:
                name = self._name()
                at = next((i for i, p in enumerate(parameters) if p.name == name), None)
                if at is None or at in where:
                    raise self._fault("a listed parameter, once", name)
                self._must("=")
                values = [self._value(parameters[at].values, name)]
                while self._take("|"):
                    values.append(self._value(parameters[at].values, name))
                where[at] = tuple(sorted(set(values)))
                if not self._take(","):
                    break
            self._must(")")
        if end is not None:
            if self._at != end:
                raise self._fault("one pattern beside same or per", "a set")
            self._at = kept
        return Selection(tool=tool, where=tuple(sorted(where.items())))

    def _value(self, values: Sequence[str], name: str) -> int:
        sign = self._take("-", "+")
        kind, text = self._next()
        value: str | None = text
        if kind == "number":
            value = text_of(Decimal(("-" if sign == "-" else "") + text))
        elif kind == "text" and sign is None:
            value = text_of(decode(text.encode("utf-8", "surrogatepass"), "question"))
        elif kind != "name" or sign is not None:
            raise self._fault("a value", text)
        if value is None or value not in values or not value:
            raise self._fault(f"a value of {name}", text)
        return values.index(value)

    def _whole(self) -> int:
        kind, text = self._next()
        if kind != "number" or "." in text or len(text) > 18:
            raise self._fault("a whole number", text)
        return int(text)

    def _decimal(self) -> str:
        kind, text = self._next()
        if kind != "number" or len(text) > 60:
            raise self._fault("a number", text)
        return str(text_of(Decimal(text)))

    def _pattern(self, calls: CallSet) -> int:
        self._patterns.append(calls)
        return len(self._patterns) - 1


def _negative(text: str) -> bool:
    value = json_of(text)
    return isinstance(value, (str, bool)) or value is None or value < 0


def _sort_in(tool: Tool, name: str) -> str | None:
    """What the values of a parameter of every call can be compared with; None: with nothing."""
    for param in tool.parameters:
        if param.name == name:
            return None if param.optional or param.observed else "listed"
    for opened in tool.opened:
        if opened.name == name and not opened.optional:
            sort = sort_of(opened.type)
            return None if sort == "json" else sort
    return None


def _members(calls: CallSet) -> set[int]:
    return {number for low, high in calls for number in range(low, high)}


def _union(one: CallSet, other: CallSet) -> CallSet:
    return _ranges(sorted(_members(one) | _members(other)))


def _without(one: CallSet, other: CallSet) -> CallSet:
    return _ranges(sorted(_members(one) - _members(other)))


def _ranges(numbers: Iterable[int]) -> CallSet:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number:
            found[-1] = found[-1][0], number + 1
        else:
            found.append((number, number + 1))
    return tuple(found)


def statement_core(core: Core, kind: str, text: str) -> Core:
    """The core of a question's statement; that of ``reachable`` forbids its pattern.

    Raises:
        Rejected: T102 it is no statement about the tools of the core; D101 the kernel reads none of
            its kind.
    """
    return _Reader(core, text if kind == "statement" else f"forbid {text}").read()


# The file.


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """A call: its listed values and answers as canonical texts, its open ones as written."""

    tool: str
    listed: tuple[tuple[str, str], ...]
    opened: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """The verdict on a proof.

    Attributes:
        verdict: 0 VALID, 1 INVALID, 2 DECLINED.  question: its kind and its text.
        proof: ``proved`` or ``refuted``; empty where that is not known.
        finding: the rule that failed.
        checked: states, steps and calls.
    """

    verdict: int
    question: Mapping[str, str]
    proof: str
    finding: Rejected | None
    checked: Mapping[str, int]


_CODE = Code.PROOF_FORM


def check_proof(data: bytes, artifacts: Sequence[bytes]) -> ProofReport:
    """Whether the verdict of a proof follows from it and these artifacts; never an exception.

    Args:
        data: the proof.
        artifacts: in the order of the question.
    """
    proof = _Check()
    try:
        proof.run(data, artifacts)
    except Rejected as refusal:
        return ProofReport(
            verdict=2 if refusal.code.declines else 1,
            question=proof.question,
            proof=proof.proof,
            finding=refusal,
            checked={},
        )
    return ProofReport(
        verdict=0, question=proof.question, proof=proof.proof, finding=None, checked=proof.checked
    )


class _Check:
    """One proof, from its first line to its last."""

    def __init__(self) -> None:
        self.question: dict[str, str] = {}
        self.proof = ""
        self.checked = {"states": 0, "steps": 0, "calls": 0}
        self._lines: Iterator[bytes] = iter(())
        self._number = 0

    def run(self, data: bytes, artifacts: Sequence[bytes]) -> None:
        """Check it.

        Raises:
            Rejected: the first rule that fails.
        """
        size = len(data)
        ensure(size <= MAX_PROOF_BYTES, Code.LIMIT, "proof", f"{MAX_PROOF_BYTES} bytes", size)
        ensure(data.endswith(b"\n"), _CODE, "proof", "a line feed at the end", data[-8:])
        self._lines = _split(data)
        head = self._line()
        if not isinstance(head, dict):
            raise Rejected(_CODE, "line 1", "an object", type(head).__name__)
        require(FORMAT, head.get("format"), _CODE, "format")
        require("1.0", head.get("format_version"), Code.UNKNOWN_VERSION, "format_version")
        asked = {"statement": True, "reachable": True, "implies": False, "finishable": False}
        question = schema.as_mapping(head.get("question", ""), "question", _CODE)
        kind = question.get("kind")
        ensure(kind in asked, _CODE, "question.kind", "a kind of question", kind)
        texts = {"kind", "text"} if asked[str(kind)] else {"kind"}
        require(texts, set(question), _CODE, "question")
        self.question = {name: schema.as_text(question[name], "question", _CODE) for name in sorted(question)}
        proof = head.get("proof")
        ensure(proof in ("proved", "refuted"), _CODE, "proof", "proved or refuted", proof)
        self.proof = str(proof)
        sides = self._sides(head, artifacts)
        system = System(*sides)
        kind = self.question["kind"]
        if kind == "finishable":
            self._finishable(system, head)
        elif (self.proof == "proved") == (kind != "reachable"):
            self._included(system, head)
        else:
            self._shown(system, head)
        rest = next(self._lines, None)
        ensure(rest is None, _CODE, f"line {self._number + 1}", "the end", "more")

    def _sides(self, head: Mapping[str, Json], artifacts: Sequence[bytes]) -> tuple[Side, Side]:
        kind = self.question["kind"]
        due = 2 if kind == "implies" else 1
        require(due, len(artifacts), Code.PROOF_ARTIFACTS, "artifacts")
        cores = schema.as_tuple(head.get("cores", ""), "cores", _CODE, due, "digests")
        made = [check(data) for data in artifacts]
        for at, (artifact, core) in enumerate(zip(made, cores, strict=True)):
            found = core_digest(artifact.file)
            require(found, core, Code.PROOF_CORE, f"cores[{at}]")
        left = _of_artifact(made[0])
        if kind == "implies":
            return left, _of_artifact(made[1])
        if kind == "finishable":
            return left, left
        return left, statement_side(statement_core(left.core, kind, self.question["text"]))

    def _line(self) -> Json:
        self._number += 1
        raw = next(self._lines, None)
        if raw is None:
            raise Rejected(_CODE, f"line {self._number}", "another line", "the end")
        size = len(raw)
        ensure(size <= MAX_LINE_BYTES, Code.LIMIT, f"line {self._number}", "16 MiB", size)
        return decode(raw, f"line {self._number}")

    def _whole(self, value: Json, path: str, code: Code = _CODE) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise Rejected(code, path, "a whole number", value)
        return value

    # Closed sets.

    def _included(self, system: System, head: Mapping[str, Json]) -> None:
        members = {"format", "format_version", "question", "proof", "cores", "parts"}
        require(members, set(head), _CODE, "line 1")
        given = schema.as_list(head["parts"], "parts", _CODE, 1)
        monitors = len(system.left.core.monitors)
        uses, sizes = [], []
        for at, part in enumerate(given):
            entry = schema.as_mapping(part, f"parts[{at}]", _CODE)
            require({"keys", "states", "uses"}, set(entry), _CODE, f"parts[{at}]")
            numbers = [
                schema.as_whole(one, f"parts[{at}].uses", Code.PROOF_USES, monitors)
                for one in schema.as_list(entry["uses"], f"parts[{at}].uses", _CODE)
            ]
            uses.append(frozenset(numbers))
            sizes.append(self._whole(entry["states"], f"parts[{at}].states"))
        ways = [schema.as_mapping(part, "parts", _CODE)["keys"] for part in given]
        if ways == ["all"]:
            parts = [Part(tracked=None, rule=None, uses=uses[0])]
        else:
            parts = system.parts(uses)
            require(["each"] * len(parts), ways, Code.PROOF_USES, "parts")
        total = sum(sizes)
        ensure(total <= MAX_PROOF_STATES, Code.LIMIT, "parts", f"{MAX_PROOF_STATES} states", total)
        for part, size in zip(parts, sizes, strict=True):
            self._closed(system, part, size, ends=True)

    def _closed(self, system: System, part: Part, size: int, *, ends: bool, begin: State | None = None) -> list[State]:
        """A list of states that holds the start, and that every call leads into."""
        states = [self._state(system, part) for _ in range(size)]
        first = system.start(part) if begin is None else begin
        row = _numbers_of(self._line(), f"line {self._number}")
        self._leads(system, first, row, states, Code.PROOF_START)
        for state in states:
            if ends and part.plans and system.left.accepts(state[0]):
                fine = system.right.accepts(state[1])
                where = f"line {self._number}"
                ensure(fine, Code.PROOF_FINISH, where, "an end that the other side allows", "none")
            steps = self._line()
            where = f"line {self._number}"
            rows = schema.as_list(steps, where, _CODE)
            at = 0
            for move in system.moves(part, state):
                if move.state is None:
                    text = system.left.core.calls[move.call].text
                    raise Rejected(Code.PROOF_REFUSED, where, f"{text} to be allowed", move.why)
                ensure(at < len(rows), Code.PROOF_STEPS, where, "a step for each call", len(rows))
                row = _numbers_of(rows[at], where)
                self._leads(system, move.state, row, states, Code.PROOF_TARGET)
                at += 1
            require(at, len(rows), Code.PROOF_STEPS, where)
            self.checked["steps"] += at
        self.checked["states"] += size
        return states

    def _leads(
        self, system: System, to: State, row: Sequence[int], states: Sequence[State], code: Code
    ) -> None:
        """A state, renamed as a row says, is a listed one; each of its sums is in the interval."""
        where = f"line {self._number}"
        ensure(bool(row) and row[0] < len(states), code, where, "a listed state", row[:1])
        target = states[row[0]]
        tokens = held_tokens(to[2])
        require(len(tokens), len(row) - 1, Code.PROOF_RENAMING, where)
        names = dict(zip(tokens, row[1:], strict=True))
        once = len(set(names.values())) == len(names)
        ensure(once, Code.PROOF_RENAMING, where, "each token once", row[1:])
        atoms = len(system.atoms)
        for token, name in names.items():
            require(token % atoms, name % atoms, Code.PROOF_ATOM, where)
        facts = renamed(to[2], names) if any(a != b for a, b in names.items()) else to[2]
        there = to[0] == target[0] and to[1] == target[1] and facts == target[2]
        ensure(there, code, where, "the state that the call leads to", f"state {row[0]}")
        for (low, high), (least, most) in zip(to[3], target[3], strict=True):
            inside = least <= low and high <= most
            ensure(inside, Code.PROOF_INTERVAL, where, f"{low} .. {high}", f"{least} .. {most}")

    def _state(self, system: System, part: Part) -> State:
        value = self._line()
        where = f"line {self._number}"
        left, right, facts, sums = schema.as_tuple(value, where, _CODE, 4, "members")
        due = len(system.sums) if part.plans else 0
        spans = schema.as_tuple(sums, where, _CODE, due, "sums")
        found = tuple([self._fact(fact, where, system) for fact in schema.as_list(facts, where, _CODE)])
        ensure(all(a[:3] < b[:3] for a, b in pairwise(found)), _CODE, where, "facts in order", "others")
        return (
            self._place(left, where, system.left),
            self._place(right, where, system.right),
            found,
            tuple([self._span(span, where) for span in spans]),
        )

    def _place(self, value: Json, where: str, side: Side) -> Place:
        states, tally = schema.as_tuple(value, where, _CODE, 2, "members")
        numbers = [schema.as_whole(q, where, _CODE, side.states) for q in schema.as_list(states, where, _CODE)]
        pairs = []
        items = len(side.statements.items)
        for pair in schema.as_list(tally, where, _CODE):
            number, seen = schema.as_tuple(pair, where, _CODE, 2, "members")
            pairs.append((schema.as_whole(number, where, _CODE, items), self._whole(seen, where)))
        return tuple(numbers), tuple(pairs)

    def _fact(self, value: Json, where: str, system: System) -> Fact:
        side, slot, key, count = schema.as_tuple(value, where, _CODE, 4, "members")
        number = schema.as_whole(side, where, _CODE, 2)
        of = (system.left, system.right)[number]
        place = schema.as_whole(slot, where, _CODE, 2 * len(of.core.monitors))
        shape = of.shapes.get(place, ())
        items = schema.as_tuple(key, where, _CODE, len(shape), "parts")
        parts = []
        for opened, part in zip(shape, items, strict=True):
            text = not opened and isinstance(part, str)
            parts.append(part if text else self._whole(part, where))
            ensure(text or opened, _CODE, where, "a key of the monitor", part)
        return number, place, tuple(parts), self._whole(count, where)

    def _span(self, value: Json, where: str) -> tuple[int, int]:
        low, high = schema.as_tuple(value, where, _CODE, 2, "ends")
        return read_large(low, where, _CODE, 4096), read_large(high, where, _CODE, 4096)

    # Sessions.

    def _shown(self, system: System, head: Mapping[str, Json]) -> None:
        members = {"format", "format_version", "question", "proof", "cores", "calls", "ends"}
        require(members, set(head), _CODE, "line 1")
        ends = head["ends"]
        ensure(ends in ("call", "finish"), _CODE, "ends", "call or finish", ends)
        calls = self._calls(head)
        mine, theirs = Replay(system.left, system.left), Replay(system.right, system.left)
        for at, call in enumerate(calls):
            where = f"call {at + 1}"
            why = mine.refuses(call)
            ensure(why == "", Code.PROOF_SESSION, where, "a call that is let through", why)
            last = at == len(calls) - 1 and ends == "call"
            refused = theirs.refuses(call) != ""
            require(last, refused, Code.PROOF_SHOWS, where)
        if ends == "finish":
            may = mine.accepts and not theirs.accepts
            ensure(may, Code.PROOF_SHOWS, "end", "an end of one side alone", "none")
        else:
            ensure(calls != [], Code.PROOF_SHOWS, "calls", "a call", "none")

    def _calls(self, head: Mapping[str, Json]) -> list[SessionCall]:
        count = self._whole(head["calls"], "calls")
        self.checked["calls"] = count
        return [self._call() for _ in range(count)]

    def _call(self) -> SessionCall:
        value = self._line()
        where = f"line {self._number}"
        tool, listed, opened = schema.as_tuple(value, where, _CODE, 3, "members")
        return SessionCall(
            tool=schema.as_text(tool, where, _CODE),
            listed=self._pairs(listed, where),
            opened=self._pairs(opened, where),
        )

    def _pairs(self, value: Json, where: str) -> tuple[tuple[str, str], ...]:
        pairs = []
        for item in schema.as_list(value, where, _CODE):
            name, text = schema.as_tuple(item, where, _CODE, 2, "members")
            pairs.append((schema.as_text(name, where, _CODE), schema.as_text(text, where, _CODE)))
        schema.ensure_increasing([name for name, _ in pairs], where, _CODE)
        return tuple(pairs)

    # Finishable.

    def _finishable(self, system: System, head: Mapping[str, Json]) -> None:
        members = {"format", "format_version", "question", "proof", "cores", "states"}
        members.add("ends" if self.proof == "proved" else "calls")
        require(members, set(head), _CODE, "line 1")
        size = self._whole(head["states"], "states")
        ensure(size <= MAX_PROOF_STATES, Code.LIMIT, "states", f"{MAX_PROOF_STATES}", size)
        every = frozenset(range(len(system.left.core.monitors)))
        part = Part(tracked=None, rule=None, uses=every)
        if self.proof == "refuted":
            replay = Replay(system.left, system.left)
            for at, call in enumerate(self._calls(head)):
                why = replay.refuses(call)
                ensure(why == "", Code.PROOF_SESSION, f"call {at + 1}", "one let through", why)
            states = self._closed(system, part, size, ends=False, begin=replay.state(system))
            for at, state in enumerate(states):
                stuck = not system.left.accepts(state[0])
                ensure(stuck, Code.PROOF_STUCK, f"state {at}", "no end", "an end")
            return
        ways = self._whole(head["ends"], "ends")
        ensure(ways <= MAX_PROOF_STATES, Code.LIMIT, "ends", f"{MAX_PROOF_STATES}", ways)
        states = self._closed(system, part, size, ends=False)
        good: list[State] = []
        for _ in range(ways):
            good.append(self._nearer(system, part, good))
        row_line = self._line()
        rows = schema.as_list(row_line, f"line {self._number}", _CODE)
        require(len(states), len(rows), Code.PROOF_END, f"line {self._number}")
        for state, row in zip(states, rows, strict=True):
            row = _numbers_of(row, f"line {self._number}")
            self._leads_down(system, most_of(state), row, good)

    def _leads_down(
        self, system: System, to: State, row: Sequence[int], good: Sequence[State]
    ) -> None:
        """Whatever is at a state, and has sums that are no greater, is at a good state."""
        self._leads(system, to, row, _Below(good), Code.PROOF_END)

    def _nearer(self, system: System, part: Part, good: Sequence[State]) -> State:
        """A state from which every session that has no greater sums can be finished."""
        state = self._state(system, part)
        value = self._line()
        where = f"line {self._number}"
        step = schema.as_list(value, where, _CODE)
        if not step:
            ends = system.left.accepts(state[0])
            ensure(ends, Code.PROOF_END, where, "an end", "none")
            return state
        number, row = schema.as_tuple(step, where, _CODE, 2, "members")
        wanted = self._whole(number, where)
        for at, move in enumerate(system.moves(part, most_of(state))):
            if at == wanted and move.state is not None:
                possible = system.surely(state, move)
                ensure(possible, Code.PROOF_END, where, "a call that can surely be made", "another")
                self._leads_down(system, least_of(move.state), _numbers_of(row, where), good)
                return state
        raise Rejected(Code.PROOF_END, where, "a call of the state", wanted)


class _Below(Sequence[State]):
    """States whose intervals begin at no sum: whoever has less can do what they can."""

    def __init__(self, states: Sequence[State]) -> None:
        self._states = states

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, at: Any) -> Any:
        left, right, facts, sums = self._states[at]
        return left, right, facts, tuple([(0, high) for _, high in sums])


def most_of(state: State) -> State:
    """A state with the greatest of its sums."""
    left, right, facts, sums = state
    return left, right, facts, tuple([(high, high) for _, high in sums])


def least_of(state: State) -> State:
    """A state with the least of its sums: what a call that adds the least leads to."""
    left, right, facts, sums = state
    return left, right, facts, tuple([(low, low) for low, _ in sums])


def _numbers_of(value: Json, where: str) -> list[int]:
    row = schema.as_list(value, where, _CODE)
    for one in row:
        if type(one) is not int or one < 0:
            raise Rejected(_CODE, where, "whole numbers", one)
    return row  # type: ignore[return-value]


def _split(data: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        yield data[at:end]
        at = end + 1


def core_digest(file: ArtifactFile) -> str:
    """The digest of an artifact's core, in hex."""
    return blake(file.columns["core"].data).hex()


def _of_artifact(of: CheckedArtifact) -> Side:
    return grammar_side(of.core, of.automaton, of.core_calls, of.file.manifest.relaxed)


# Sessions with values.


class Replay:
    """A session on a side, call by call; values are read by the types of its left side.

    The meaning of a session is that of :mod:`tcc_certs.session`: values are compared by their
    canonical bytes, and sums are exact.
    """

    def __init__(self, side: Side, left: Side) -> None:
        self._side, self._left = side, left
        self._monitors = Monitors(side.core)
        self._counts: Counts = {}
        self._place = side.start
        self._calls = {
            _named(side.core.tools[call.tool], call.values): at
            for at, call in enumerate(side.core.calls)
        }
        self._values: dict[bytes, Any] = {}
        self._totals: dict[tuple[str, str], Fraction] = {}

    @property
    def accepts(self) -> bool:
        """Whether the session may end."""
        return self._side.accepts(self._place)

    def refuses(self, call: SessionCall) -> str:
        """Why the side refuses the next call; empty: it does not, and the call is done.

        Raises:
            Rejected: T301 its values are none of the left side's.
        """
        side = self._side
        given = self._read(call)
        number = side.tools.get(call.tool)
        if number is None:
            return "no such tool"
        tool = side.core.tools[number]
        texts: dict[str, str] = {}
        keys: dict[str, object] = {}
        numbers: dict[str, str] = {}
        listed = {p.name for p in tool.parameters}
        types = {p.name: p for p in tool.opened}
        for name, value in given.items():
            if name in listed:
                texts[name] = text_of(value) or "?"
            elif name in types and of_type(types[name].type, value) is None:
                key = b"".join(encoded(types[name].type, value))
                self._values[key] = value
                keys[name] = key
                if isinstance(types[name].type, NumberType):
                    numbers[name] = canonical_number(value)
            else:
                return f"{name} is of another type"
        if any(not p.optional and p.name not in keys for p in tool.opened):
            return "a parameter is left out"
        made = self._calls.get((tool.name, frozenset(texts.items())))
        if made is None:
            return "no such call"
        values = side.core.calls[made].values
        after = side.step(self._place, made)
        if after is None:
            return "no plan goes on with it"
        seen = self._monitors.see(number, _chosen(tool, values), keys, numbers)
        for one in seen:
            if not one.rule.allows(self._counts, one):
                return f"a monitor forbids it: {self._monitors.texts[one.rule.number]}"
        for one in seen:
            for mark, value in one.rule.marks(self._counts, one, True, values):
                self._counts[mark] = value
                if not value:
                    del self._counts[mark]
        for name, amount in numbers.items():
            at = tool.name, name
            self._totals[at] = self._totals.get(at, Fraction(0)) + Fraction(amount)
        self._place = after
        return ""

    def _read(self, call: SessionCall) -> dict[str, Any]:
        """The values by names: listed ones and answers, then open ones by the left's types."""
        tool = self._left.tools.get(call.tool)
        if tool is None:
            raise Rejected(Code.PROOF_SESSION, "calls", "a tool of the left side", call.tool)
        of = self._left.core.tools[tool]
        found: dict[str, Any] = {}
        texts = {p.name: p.values for p in of.parameters}
        for name, text in call.listed:
            ensure(text in texts.get(name, ()) and text != "", Code.PROOF_SESSION, name, "a listed value", text)
            found[name] = json_of(text)
        types = {p.name: p.type for p in of.opened}
        for name, text in call.opened:
            ensure(name in types, Code.PROOF_SESSION, name, f"a parameter of {of.name}", "none")
            found[name] = _value_of(types[name], text)
        return found

    def state(self, system: System) -> State:
        """Where the session is, as a state: each value that is remembered a token of its atom."""
        sums = {2 * at for at, one in enumerate(self._side.core.monitors) if isinstance(one, SumMonitor)}
        order = [at for at, one in enumerate(self._side.core.monitors) if not isinstance(one, SumMonitor)]
        slots = {2 * at + i: 2 * to + i for to, at in enumerate(order) for i in (0, 1)}
        tokens: dict[bytes, int] = {}
        taken: dict[int, int] = {}
        facts = []
        for (slot, key), value in self._counts.items():
            if slot in sums:
                continue
            parts: list[Any] = []
            for part in key:
                if isinstance(part, bytes):
                    if part not in tokens:
                        atom = system.atom_of(self._values[part])
                        tokens[part] = atom + len(system.atoms) * taken.get(atom, 0)
                        taken[atom] = taken.get(atom, 0) + 1
                    parts.append(tokens[part])
                else:
                    parts.append(part)
            for side in (0, 1):
                facts.append((side, slots[slot], tuple(parts), value))
        spent = tuple(system.totals(self._totals))
        return self._place, self._place, tuple(sorted(facts)), spent


def _value_of(kind: OpenType, text: str) -> Any:
    """The value of a type that a text writes down.

    Raises:
        Rejected: T301 none.
    """
    value: Any = text
    match kind:
        case NumberType():
            known = re.fullmatch(r"-?[0-9]{1,400}(\.[0-9]{1,400})?", text) is not None
            ensure(known, Code.PROOF_SESSION, "value", "a number", text)
            value = Decimal(text) if "." in text else int(text)
        case FlagType():
            ensure(text in ("true", "false"), Code.PROOF_SESSION, "value", "true or false", text)
            value = text == "true"
        case JsonType():
            value = json_value(text)
    ensure(of_type(kind, value) is None, Code.PROOF_SESSION, "value", "a value of the type", text)
    return value

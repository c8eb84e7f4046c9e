"""Atoms: values of one sort that all types of a question hold or exclude together, counted.

Normative text: docs/spec/proof.md, section 1.  What is not known of their number (the texts of a
pattern) counts as none at least and without end at most.
Cost: of texts the states of the product of the patterns times lengths, both bounded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise, product
from typing import Any, TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.proof.fields import Uncovered, is_scalar, some_value
from tcc_certs.proof.lists import element_of
from tcc_certs.values.declared import FlagType, JsonType, NumberType, OpenType, TextType, json_of
from tcc_certs.values.fields import ListType
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE, is_exact
from tcc_certs.values.text_pattern import TextPattern, pattern_of
from tcc_certs.values.types import check as of_type

_MAX_TYPES = 24  # of one sort
_MAX_PRODUCT = 600  # states of a product of patterns
_MAX_LENGTH = 400  # characters that are counted out beside a pattern
_MANY = 1 << 14  # no more values of an atom are counted
_GREATEST = Fraction(10**400)  # no canonical number is beyond


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
        case _:
            return "later"  # of version 1.2: never compared


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
                _plus(groups, holding, 1 if whole and is_exact(low) else 0, 1)
    return groups


def _between(low: Fraction, high: Fraction, whole: bool) -> tuple[int, int | None]:
    """How many numbers are strictly between, whole ones or others."""
    if whole:
        least, most = max(low, Fraction(LEAST_WHOLE - 1)), min(high, Fraction(MOST_WHOLE + 1))
        return min(_MANY, _wholes(least, most)), _wholes(low, high)
    # A double prints back fourteen digits.
    least, most = max(low, Fraction(-(10**9))), min(high, Fraction(10**9))
    inner = _wholes(least, most)
    fine = max(0, -(-most * 10**5 // 1) - 1 - least * 10**5 // 1)
    return max(0, min(_MANY, int(fine - inner))), None


def _wholes(low: Fraction, high: Fraction) -> int:
    """How many whole numbers are strictly between."""
    return max(0, int(-(-high // 1) - 1 - low // 1))


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
            marks.update(pattern.bounds)
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
    if isinstance(kind, JsonType) and isinstance(other, JsonType):
        return kind.most <= other.most
    if sort_of(kind) != sort_of(other):
        return False
    return all(
        1 in atom.types for atom in atoms_of(sort_of(kind), [kind, other], ()) if 0 in atom.types
    )


def has_value(kind: Any) -> bool:
    """Whether a type is known to have a value."""
    if isinstance(kind, JsonType):
        return kind.most >= 1
    element = element_of(kind)
    if element is not None and isinstance(kind, ListType):
        count = sum(atom.least for atom in atoms_of(sort_of(element), [element], ()))
        return count >= (kind.least if kind.distinct else min(1, kind.least))
    if not is_scalar(kind):
        try:
            some_value(kind)
        except Uncovered:
            return False
        return True
    return any(atom.least for atom in atoms_of(sort_of(kind), [kind], ()))

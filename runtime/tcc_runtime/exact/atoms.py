"""Atoms: sets of values that every type of a question either contains or excludes as a whole.

Monitors compare values with values, so a value matters only up to a renaming within its atom.
An atom lists its values on demand; their number is known only as far as somebody has asked.
Numbers are the whole ones of 64 bits and those that a double prints.
Patterns meet in the product of their automata, which is bounded (P505).
Cost: for texts the states of the product times the length; otherwise linear in the values asked
for.
No theorem is claimed: tests/exact compares with brute force.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.proof.atoms import sort_of as sort_of
from tcc_certs.values.declared import JsonType, NumberType, OpenType, TextType
from tcc_certs.values.numbers import canonical_number, is_exact
from tcc_certs.values.text_pattern import TextPattern, pattern_of
from tcc_certs.values.types import check

MAX_PRODUCT = 600  # states of a product of patterns
MAX_LENGTH = 3000  # characters that are counted out beside a pattern
MAX_TYPES = 24
_GREATEST = float.fromhex("0x1.fffffffffffffp+1023")
Value: TypeAlias = "str | int | Decimal | bool"


class OpenQuestion(Exception):
    """A question remains open.

    Args:
        code: P501 to P507.
        why: what is not decided, in words.
    """

    def __init__(self, code: str, why: str) -> None:
        super().__init__(f"{code}: {why}")
        self.code, self.why = code, why


@dataclass(slots=True, kw_only=True, eq=False)
class Atom:
    """A set of values.

    Attributes:
        types: positions of the types that contain all of its values.
        only: its one value, if that is a constant of a grammar.
    """

    types: frozenset[int]
    only: Value | None = None
    _values: Iterator[Value] = field(default_factory=lambda: iter(()))
    _known: list[Value] = field(default_factory=list)

    def value(self, at: int) -> Value | None:
        """Value number `at`; None where there are no more."""
        while len(self._known) <= at:
            found = next(self._values, None)
            if found is None:
                return None
            self._known.append(found)
        return self._known[at]

    def keep(self, few: int) -> None:
        """Keep only the first `few` values; what is found with these holds with all values."""
        self.value(few - 1)
        del self._known[few:]
        self._values = iter(())


def atoms_of(sort: str, types: Sequence[OpenType], constants: Sequence[Value]) -> list[Atom]:
    """The non-empty atoms of types of one sort; each constant is an atom by itself.

    Raises:
        OpenQuestion: P505.
    """
    if len(types) > MAX_TYPES:
        raise OpenQuestion("P505", f"more than {MAX_TYPES} types of one sort")
    alone = list(dict.fromkeys(constants))
    found = [
        Atom(
            types=frozenset(i for i, kind in enumerate(types) if check(kind, one) is None),
            only=one,
            _values=iter([one]),
        )
        for one in alone
    ]
    skip = set(alone)
    make = {"flag": _flags, "number": _numbers, "text": _texts}[sort]
    for holding, values in make(types):
        atom = Atom(types=holding, _values=_without(values, skip))
        if atom.value(0) is not None:
            found.append(atom)
    return [atom for atom in found if atom.types]


def _without(values: Iterator[Value], skip: set[Value]) -> Iterator[Value]:
    return (value for value in values if value not in skip)


def _flags(types: Sequence[OpenType]) -> Iterator[tuple[frozenset[int], Iterator[Value]]]:
    yield frozenset(range(len(types))), iter([True, False])


# Numbers: points and the open spans between them, whole and not whole.

_Span: TypeAlias = "tuple[Fraction, Fraction, bool, bool]"  # low, high, whether both are in, whole


def _numbers(types: Sequence[OpenType]) -> Iterator[tuple[frozenset[int], Iterator[Value]]]:
    top = Fraction(Decimal(float.__repr__(_GREATEST)))  # what prints back, not the double's value
    kinds = [kind for kind in types if isinstance(kind, NumberType)]
    ends = [
        (
            -top if kind.low is None else Fraction(kind.low),
            top if kind.high is None else Fraction(kind.high),
        )
        for kind in kinds
    ]
    points = sorted({end for pair in ends for end in pair})
    pairs = [(point, point, True) for point in points]
    pairs += [(low, high, False) for low, high in pairwise(points)]
    groups: dict[frozenset[int], list[_Span]] = {}
    for low, high, closed in pairs:
        for whole in (True, False):
            holding = frozenset(
                i
                for i, (kind, (least, most)) in enumerate(zip(kinds, ends, strict=True))
                if least <= low and high <= most and (whole or not kind.whole)
            )
            if holding:
                groups.setdefault(holding, []).append((low, high, closed, whole))
    for holding, spans in groups.items():
        yield holding, _of_spans(spans)


def _of_spans(spans: Sequence[_Span]) -> Iterator[Value]:
    near = sorted(spans, key=lambda span: (min(abs(span[0]), abs(span[1])), not span[2], span[0]))
    for low, high, closed, whole in near:
        if closed:
            if (low.denominator == 1) == whole:
                yield _exact(low)
        else:
            yield from _wholes(low, high) if whole else _parts(low, high)


def _exact(value: Fraction) -> Value:
    if value.denominator == 1:
        return value.numerator
    return Decimal(canonical_number(Decimal(value.numerator) / Decimal(value.denominator)))


def _wholes(low: Fraction, high: Fraction) -> Iterator[Value]:
    """Whole values strictly between: from 0 or the least upwards, then those below."""
    first = max(math.floor(low) + 1, min(0, math.ceil(high) - 1))
    at, seen = first, set[int]()
    while at < high:
        text = _survivor(at)
        if text is not None and low < text < high and text not in seen:
            seen.add(text)
            yield text
        at = at + 1 if is_exact(at) else int(math.nextafter(float(at), math.inf))
        if at > _GREATEST:
            break
    at = first - 1
    while at > low:
        text = _survivor(at)
        if text is not None and low < text < high and text not in seen:
            seen.add(text)
            yield text
        at = at - 1 if is_exact(at) else int(math.nextafter(float(at), -math.inf))
        if at < -_GREATEST:
            break


def _survivor(at: int) -> int | None:
    """`at` where it is a value, else the whole number that its nearest double prints."""
    if is_exact(at):
        return at
    try:
        return int(Decimal(float.__repr__(float(at))))
    except OverflowError:
        return None


def _parts(low: Fraction, high: Fraction) -> Iterator[Value]:
    """Values that are not whole, strictly between: short ones first."""
    seen: set[Decimal] = set()
    start = max(low, min(Fraction(0), high - 1))
    for places in range(1, 10):
        scale = 10**places
        for step in range(2000):
            at = Fraction(math.floor(start * scale) + 1 + step, scale)
            if at >= high:
                break
            value = Decimal(at.numerator) / Decimal(at.denominator)
            fits = at > low and at.denominator != 1 and Fraction(value) == at
            if fits and value not in seen and _prints_back(value):
                seen.add(value)
                yield value
    for value in _doubles(low, high):
        if value not in seen:
            yield value


def _prints_back(value: Decimal) -> bool:
    try:
        canonical_number(value)
    except Rejected:
        return False
    return True


def _doubles(low: Fraction, high: Fraction) -> Iterator[Decimal]:
    at = math.nextafter(float(low), -math.inf)
    while True:
        at = math.nextafter(at, math.inf)
        if at == math.inf:
            return
        value = Decimal(float.__repr__(at))
        if Fraction(value) >= high:
            return
        if Fraction(value) > low and not at.is_integer():
            yield value


# Texts: the product of the patterns' automata, and lengths.

_NICE = "azAZ09"


def _texts(types: Sequence[OpenType]) -> Iterator[tuple[frozenset[int], Iterator[Value]]]:
    kinds = [kind for kind in types if isinstance(kind, TextType)]
    patterns = list(dict.fromkeys([kind.pattern for kind in kinds if kind.pattern is not None]))
    space = _Product([pattern_of(pattern) for pattern in patterns])
    cuts = sorted({cut for kind in kinds for cut in (kind.least, kind.most + 1)})
    for least, beyond in pairwise(cuts):
        held = [kind.least <= least and beyond <= kind.most + 1 for kind in kinds]
        if not any(held):
            continue
        for accepted in sorted(space.vectors):
            holding = frozenset(
                i
                for i, kind in enumerate(kinds)
                if held[i] and (kind.pattern is None or accepted[patterns.index(kind.pattern)])
            )
            if holding:
                first = space.first(accepted, least, beyond - 1)
                if first is not None:
                    yield holding, space.words(accepted, first, beyond - 1)


class _Product:
    """Automata of patterns side by side; a state is the tuple of theirs.

    Raises:
        OpenQuestion: P505 it has too many states.
    """

    def __init__(self, patterns: Sequence[TextPattern]) -> None:
        marks = {0, 0xD800, 0xE000, 0x110000}
        marks |= {ord(mark) + step for mark, step in zip(_NICE, (0, 1) * 3, strict=True)}
        for pattern in patterns:
            marks.update(bound for bound in pattern.bounds if bound <= 0x10FFFF)
        ends = sorted(marks)
        classes = [(low, high) for low, high in pairwise(ends) if low != 0xD800]
        classes.sort(key=lambda pair: (_niceness(pair[0]), pair))
        self._classes = classes
        self._rows: list[list[int]] = []
        self._vectors: list[tuple[bool, ...]] = []
        self._explore(patterns)
        self.vectors = set(self._vectors)
        self._backs: dict[tuple[bool, ...], list[frozenset[int]]] = {}

    def _explore(self, patterns: Sequence[TextPattern]) -> None:
        """States by sets of positions, as bits: a pattern may forget its own objects."""
        start = tuple([1] * len(patterns))
        number, order = {start: 0}, [start]
        for at in order:
            self._vectors.append(
                tuple([p.set_of(bits).accepts for p, bits in zip(patterns, at, strict=True)])
            )
            next_of = [p.after(bits) for p, bits in zip(patterns, at, strict=True)]
            row = []
            for low, _ in self._classes:
                to = tuple(
                    [bits & p.at[_place(p, low)] for p, bits in zip(patterns, next_of, strict=True)]
                )
                if to not in number:
                    if len(order) >= MAX_PRODUCT:
                        raise OpenQuestion("P505", "the product of patterns has too many states")
                    number[to] = len(order)
                    order.append(to)
                row.append(number[to])
            self._rows.append(row)

    def first(self, accepted: tuple[bool, ...], least: int, most: int) -> int | None:
        """The least length in a range of a text that is accepted so; None if there is none."""
        if len(self._rows) == 1:
            return least
        alive, now = self._alive(accepted), {0}
        for length in range(min(most, least + len(self._rows)) + 1):
            now &= alive
            if not now:
                return None
            if length >= least and any(self._vectors[q] == accepted for q in now):
                return length
            if length >= MAX_LENGTH:
                raise OpenQuestion(
                    "P505", "lengths beside a pattern are too great to be counted out"
                )
            now = {to for q in now for to in self._rows[q]}
        return None

    def _alive(self, accepted: tuple[bool, ...]) -> set[int]:
        """The states from which some text is accepted so."""
        found = {q for q, vector in enumerate(self._vectors) if vector == accepted}
        grown = True
        while grown:
            more = {q for q, row in enumerate(self._rows) if q not in found and found & set(row)}
            found |= more
            grown = bool(more)
        return found

    def words(self, accepted: tuple[bool, ...], least: int, most: int) -> Iterator[str]:
        """The texts of a range of lengths, short ones first."""
        alive, now = self._alive(accepted), {0}
        for length in range(most + 1):
            if len(self._rows) > 1:
                now &= alive
                if not now:
                    return
                now = {to for q in now for to in self._rows[q]}
            if length < least:
                continue
            if length > MAX_LENGTH and len(self._rows) > 1:
                raise OpenQuestion(
                    "P505", "lengths beside a pattern are too great to be counted out"
                )
            yield from self._of_length(accepted, length)

    def _back(self, accepted: tuple[bool, ...], length: int) -> frozenset[int]:
        """The states from which a text of that length leads where it is accepted so."""
        found = self._backs.setdefault(accepted, [])
        if not found:
            found.append(frozenset(q for q, v in enumerate(self._vectors) if v == accepted))
        while len(found) <= length:
            if len(self._rows) == 1:
                found.append(found[-1])
            else:
                last = found[-1]
                found.append(frozenset(q for q, r in enumerate(self._rows) if last & set(r)))
        return found[length]

    def _of_length(self, accepted: tuple[bool, ...], length: int) -> Iterator[str]:
        if 0 not in self._back(accepted, length):
            return
        text: list[str] = []
        stack = [self._steps(accepted, 0, length)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                if text:
                    text.pop()
                continue
            char, to = step
            if char == "":
                yield "".join(text)
                continue
            text.append(char)
            stack.append(self._steps(accepted, to, length - len(text)))

    def _steps(self, accepted: tuple[bool, ...], q: int, left: int) -> Iterator[tuple[str, int]]:
        if left == 0:
            yield "", q
            return
        good = self._back(accepted, left - 1)
        for (low, high), to in zip(self._classes, self._rows[q], strict=True):
            if to in good:
                for code in range(low, high):
                    yield chr(code), to


def _niceness(low: int) -> int:
    return next((i for i, c in enumerate("a0A") if ord(c) <= low < ord(c) + 26), 3) + (
        9 if low < 32 else 0
    )


def _place(pattern: TextPattern, code: int) -> int:
    from bisect import bisect_right

    return bisect_right(pattern.bounds, code) - 1


def outside(kind: OpenType, other: OpenType) -> Value | None:
    """A value of `kind` that is not of `other`; None if there is none.

    Raises:
        OpenQuestion: P505.
    """
    if kind == other:
        return None
    if not isinstance(kind, JsonType) and sort_of(kind) == sort_of(other):
        for atom in atoms_of(sort_of(kind), [kind, other], ()):
            if 0 in atom.types and 1 not in atom.types:
                return atom.value(0)
        return None
    if isinstance(kind, JsonType) and isinstance(other, JsonType):
        if kind.most <= other.most:
            return None
        return "a" * (kind.most - 2) if kind.most >= 2 else 0
    if isinstance(other, JsonType):
        raise OpenQuestion("P505", "a type beside one of whole JSON values")
    tries: list[Value] = [True, 1, "a", "", 0]
    for value in tries:
        if check(kind, value) is None and check(other, value) is not None:
            return value
    if not isinstance(kind, JsonType):
        return inside(kind)
    raise OpenQuestion("P505", "a type beside one of whole JSON values")


def inside(*kinds: OpenType) -> Value | None:
    """A value that is of all types; None if there is none.

    Raises:
        OpenQuestion: P505.
    """
    if any(isinstance(kind, JsonType) for kind in kinds):
        rest = [kind for kind in kinds if not isinstance(kind, JsonType)]
        tries: list[Value] = [1, True, "", "a"]
        if rest and (found := inside(*rest)) is not None:
            tries.insert(0, found)
        for value in tries:
            if all(check(kind, value) is None for kind in kinds):
                return value
        raise OpenQuestion("P505", "a type beside one of whole JSON values")
    if len({sort_of(kind) for kind in kinds}) > 1:
        return None
    for atom in atoms_of(sort_of(kinds[0]), kinds, ()):
        if len(atom.types) == len(set(range(len(kinds)))):
            return atom.value(0)
    return None

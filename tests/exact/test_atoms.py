"""Atoms of values beside the values themselves, listed and counted.

Normative: docs/spec/proof.md, section 1: an atom has the values of one sort that all types hold or
exclude together; it has no fewer than the least that is counted, and no more than the most.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.proof import atoms
from tcc_certs.proof.atoms import atoms_of, has_value, within
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType
from tcc_certs.values.fields import ListType, RecordType, TimeType
from tcc_certs.values.types import check
from tcc_runtime.exact.atoms import atoms_of as listed_atoms

MANY = 1 << 14


def _number(low: str, high: str, *, whole: bool = False) -> NumberType:
    return NumberType(whole=whole, low=low, high=high)


NUMBERS = [
    *[_number(low, high) for low, high in combinations_with_replacement(("-1", "0.5", "2"), 2)],
    *[_number(low, high, whole=True) for low, high in combinations_with_replacement("024", 2)],
    NumberType(whole=False),
    NumberType(whole=True),
]


def _grid(of: int) -> list[Fraction]:
    return [Fraction(at, of) for at in range(-3 * of, 5 * of + 1)]


def _holding(value: Fraction, kinds: Sequence[NumberType]) -> frozenset[int]:
    return frozenset(
        [
            at
            for at, kind in enumerate(kinds)
            if (kind.low is None or Fraction(kind.low) <= value)
            and (kind.high is None or value <= Fraction(kind.high))
            and (value.denominator == 1 or not kind.whole)
        ]
    )


def test_each_number_is_in_the_atom_of_the_types_that_hold_it_or_a_constant() -> None:
    for kinds in combinations_with_replacement(NUMBERS, 2):
        constants = ["1", "2.5"]
        found = atoms_of("number", kinds, constants)
        counts = []
        for of in (4, 8):
            members: dict[Any, int] = {}
            for value in _grid(of):
                holding = _holding(value, kinds)
                name = next((one for one in constants if Fraction(one) == value), None)
                if holding:
                    members[holding, name] = members.get((holding, name), 0) + 1
            counts.append(members)
        assert {(one.types, one.only) for one in found} == set(counts[0])
        assert len(found) == len(counts[0])
        for one in found:
            many = [members[one.types, one.only] for members in counts]
            if one.only is not None:
                assert (one.least, one.most) == (1, 1)
            elif many[0] < many[1] or all(kinds[at].low is None for at in one.types):
                assert one.least >= MANY - 2 and one.most is None
            else:
                points = [at for at in _grid(4) if at.denominator > 1]
                fine = sum(_holding(at, kinds) == one.types for at in points)
                assert (one.least, one.most) == (many[0] - fine, many[0])


@pytest.mark.parametrize(
    ("kind", "counted"),
    [
        (_number("0", "0.0001"), (9 + 1, None)),  # of five decimals between the ends, and 0
        (_number("2000000000", "2000000001"), (2, None)),
        (_number("2000000000", "2000000005", whole=True), (6, 6)),
        (_number("9007199254740992", "9007199254740992", whole=True), (1, 1)),
        (_number("9007199254740993", "9007199254740993"), (1, 1)),
        (_number("9007199254740994", "9007199254740998", whole=True), (5, 5)),
        (_number("-9223372036854775808", "-9223372036854775807", whole=True), (2, 2)),
        (_number("18446744073709551613", "18446744073709551615", whole=True), (3, 3)),
        (_number("18446744073709552000", "18446744073709552000", whole=True), (0, 1)),
        (_number("18446744073709551614", "18446744073709552000", whole=True), (2, 387)),
        (_number("-9223372036854776000", "-9223372036854775808", whole=True), (1, 193)),
        (_number("1", str(MANY - 1), whole=True), (MANY - 1, MANY - 1)),
        (_number("1", str(MANY), whole=True), (MANY, None)),
        (FlagType(), (2, 2)),
        (TextType(most=0), (1, 1)),
        (TextType(least=1, most=1), (MANY, None)),
        (TextType(most=20, pattern="[ab]{13}"), (1 << 13, 1 << 13)),
        (TextType(most=20, pattern="[ab]{14}"), (MANY, None)),
        (TextType(most=20, pattern="[ab]{13}|c|(d|e){13}"), (MANY, None)),
        (TextType(most=65536, pattern="a{3}|b"), (2, 2)),
        (TextType(most=400, pattern="a*"), (401, 401)),
        (TextType(most=401, pattern="a*"), (401, None)),
        (TextType(least=401, most=401, pattern="a*"), (0, None)),
        (TextType(least=1, most=1, pattern="[\ud7ff-\ue000]"), (2, 2)),
        (TextType(least=1, most=1, pattern="[\U0010fffe-\U0010ffff]"), (2, 2)),
    ],
    ids=str,
)
def test_values_of_a_type_are_counted_as_far_as_they_are_known(
    kind: Any, counted: tuple[int, int | None]
) -> None:
    sort = atoms.sort_of(kind)
    (one,) = atoms_of(sort, [kind], ())
    assert (one.least, one.most) == counted
    assert has_value(kind) == (counted[0] > 0)


@pytest.mark.parametrize(
    ("low", "high"),
    [
        (2**53 - 4, 2**53 + 4),
        (2**64 - 4, 18446744073709556000),
        (-9223372036854780000, -(2**63) + 4),
    ],
)
def test_whole_numbers_of_64_bits_are_all_listed(low: int, high: int) -> None:
    kind = _number(str(low), str(high), whole=True)
    (one,) = listed_atoms("number", [kind], ())
    due = [value for value in range(low, high + 1) if check(kind, value) is None]
    found = [one.value(at) for at in range(len(due) + 1)]
    assert sorted(value for value in found if value is not None) == due


def test_a_part_of_a_large_number_is_listed_or_left_out() -> None:
    kind = _number(str(2**64 - 3), str(2**64 - 1))
    (one,) = listed_atoms("number", [kind], ())
    found = {one.value(at) for at in range(3)}
    assert found == {2**64 - 3, 2**64 - 2, 2**64 - 1}


PATTERNS = ("a*", "(a|b)*", "(ab)*", "b|ab")
TEXTS = [
    *[TextType(least=0, most=3, pattern=one) for one in PATTERNS],
    TextType(least=1, most=2, pattern="(a|b)*"),
    TextType(least=2, most=4, pattern="a*b?"),
    TextType(least=0, most=2),
    TextType(least=2, most=3),
]
WORDS = ["".join(word) for size in range(5) for word in product("abc", repeat=size)]


def test_each_text_is_in_the_atom_of_the_types_that_hold_it_or_a_constant() -> None:
    held = {kind: frozenset([w for w in WORDS if check(kind, w) is None]) for kind in TEXTS}
    for kinds in (*combinations_with_replacement(TEXTS, 2), TEXTS[1:5]):
        constants = ["a", "ab", "cc"]
        found = {(one.types, one.only): one for one in atoms_of("text", kinds, constants)}
        members: dict[Any, int] = {}
        for word in WORDS:
            holding = frozenset([at for at, kind in enumerate(kinds) if word in held[kind]])
            if holding:
                key = holding, word if word in constants else None
                members[key] = members.get(key, 0) + 1
        assert set(found) == set(members)
        for key, one in found.items():
            patterned = any(kinds[at].pattern is not None for at in one.types)
            if patterned or one.only is not None:
                assert one.least == one.most == members[key]
            elif max(kinds[at].most for at in one.types) == 0:
                assert one.least == one.most == 1
            else:  # any character may stand in them
                assert one.least >= MANY - 3 and one.most is None


def test_flags_are_two_and_a_constant_is_one_of_them() -> None:
    kinds = [FlagType(), FlagType()]
    both = frozenset([0, 1])
    assert [(one.types, one.only, one.most) for one in atoms_of("flag", kinds, ["true"])] == [
        (both, "true", 1), (both, None, 1),
    ]  # fmt: skip
    assert [one.only for one in atoms_of("flag", kinds, ["true", "false"])] == ["false", "true"]
    assert not atoms_of("flag", kinds, ["p"])[0].only  # what no type holds is no atom


def test_what_is_counted_has_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [TextType(most=at) for at in range(25)]
    assert atoms_of("text", many[:24], ())
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", many, ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")
    kind = TextType(most=9, pattern="a{5}")  # six states and one that accepts nothing more
    both = [kind, TextType(most=9, pattern="b")]
    monkeypatch.setattr(atoms, "_MAX_PRODUCT", 7)
    assert _counted([kind]) == {((0,), 1, 1)}
    monkeypatch.setattr(atoms, "_MAX_PRODUCT", 6)
    assert _counted([kind]) == {((0,), 0, None)}
    assert _counted(both) == {((0,), 0, None), ((1,), 0, None), ((0, 1), 0, None)}
    eight = [TextType(most=9, pattern=f"a{{5}}{name}") for name in "abcdefgh"]
    assert len(_counted(eight)) == 255
    with pytest.raises(Rejected) as refusal:
        atoms_of("text", [*eight, kind], ())
    assert (refusal.value.code.value, refusal.value.path) == ("D201", "types")


def _counted(kinds: Sequence[TextType]) -> set[tuple[tuple[int, ...], int, int | None]]:
    found = atoms_of("text", kinds, ())
    return {(tuple(sorted(one.types)), one.least, one.most) for one in found}


LIST = ListType(of=TextType(most=9, pattern="a|b"), least=0, most=9, distinct=False)


def _list(of: Any = LIST.of, **more: Any) -> ListType:
    return ListType(**{"of": of, "least": 0, "most": 9, "distinct": False, **more})


@pytest.mark.parametrize(
    ("kind", "due"),
    [
        (TextType(most=9, pattern="a{10}"), False),
        (TextType(most=10, pattern="a{10}"), True),
        (_number("2.5", "2.5"), False),  # of what is not whole it is not known
        (JsonType(most=0), False),
        (JsonType(most=1), True),
        (TimeType(zone=None), True),
        (_list(), True),
        (_list(least=1), True),
        (_list(least=3), True),  # one value, three times
        (_list(least=2, distinct=True), True),
        (_list(least=3, distinct=True), False),
        (_list(of=TextType(most=0, pattern="a")), True),
        (_list(of=TextType(most=0, pattern="a"), least=1), False),
        (_list(of=TimeType(zone=None)), True),
        (_list(of=TimeType(zone=None), least=1), False),
        (RecordType(fields=()), True),
    ],
    ids=str,
)
def test_a_type_is_known_to_have_a_value(kind: Any, due: bool) -> None:
    assert has_value(kind) == due


@pytest.mark.parametrize(
    ("kind", "other", "due"),
    [
        (LIST, LIST, True),
        (JsonType(most=8), JsonType(most=9), True),
        (JsonType(most=9), JsonType(most=8), False),
        (JsonType(most=8), TextType(), False),
        (TextType(), JsonType(most=8), False),
        (TextType(most=1), JsonType(most=8), False),
        (TextType(most=1), FlagType(), False),
        (TextType(most=8), TextType(most=9), True),
        (TextType(most=9), TextType(most=8), False),
        (TextType(most=9, pattern="a"), TextType(most=9, pattern="a|b"), True),
        (TextType(most=9, pattern="a|b"), TextType(most=9, pattern="a"), False),
        (_number("1", "2", whole=True), _number("0.5", "2"), True),
        (_number("1", "2"), _number("0", "2", whole=True), False),
    ],
    ids=str,
)
def test_a_type_is_within_another_where_each_value_is(kind: Any, other: Any, due: bool) -> None:
    assert within(kind, other) == due

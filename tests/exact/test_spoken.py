"""What statements of version 1.2 tell apart, form by form.

Normative: docs/spec/proof.md, section 1: a constant of a statement is an atom by itself, numbers
that are ordered against constants have atoms that end there, texts are told apart by each pattern,
and of a field whose values are computed with each value has to be an atom.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.core.model import Core
from tcc_certs.core.policies import Alternative, Apart, Ban, Count, Need, Owe, Policy, Total
from tcc_certs.proof.atoms import atoms_of
from tcc_certs.proof.fields import Uncovered
from tcc_certs.proof.spoken import Between, Spoken
from tcc_certs.values.declared import NumberType, TextType
from tcc_certs.values.text_pattern import MAX_STEPS, pattern_of

TEXT = """grammar g version "1"

given u: text max 9, all: list of text max 9

tool a(k: p | "q r", x: text max 9, n: integer 0 .. 9, l: list of text max 9, i: list of number,
       r: list of (x: text max 9)) gives (s: ok | *)
tool b(k: p | t, o?: v | w, x: text max 9, y: text max 9, n: number 0 .. 9, m: number 0 .. 9,
       l: list of text max 9, i: list max 3 of number, d: time)
tool d(t: text max 16384, l: list max 64 of text max 255, i: list max 512 of number 0 .. 9)

given both from a.x | b.k
given told from a.s
given many from a.l

limit depth <= 2
"""
A, B, LONG = (("calls", at, ()) for at in (0, 1, 2))
X, N, M, L, I = (("own", name) for name in "xnmli")  # noqa: E741
SEEN_X, SEEN_N, SEEN_L, SEEN_I = (("seen", name) for name in "xnli")
TWO = {("a", "x"), ("b", "x")}


@cache
def _core() -> Core:
    return tcc.compile_text(TEXT).core


def _read(policy: Policy, calls: int = 8) -> dict[str, Any]:
    """What is gathered, without what nothing is in."""
    found = Spoken()
    found.read(_core(), policy, calls)
    names = ("compared", "constants", "patterns", "cuts", "exact", "full")
    return {name: some for name in names if (some := getattr(found, name))}


def _where(*relations: Any, **more: Any) -> Need:
    one = Alternative(calls=A, where=relations, **more)
    return Need(order="before", of=B, alternatives=(one,))


def _both(*names: str) -> set[tuple[str, str]]:
    return {(tool, name) for tool in "ab" for name in names if (tool, name) not in (("a", "m"),)}


RELATIONS: list[tuple[Any, dict[str, Any]]] = [
    (("=", SEEN_X, X), {"compared": TWO}),
    (("?", ("!=", SEEN_X, ("s", "c"))), {"compared": TWO, "constants": {"c"}}),
    (("=", X, ("s", "c")), {"compared": TWO, "constants": {"c"}}),
    (("=", ("s", "c d"), X), {"compared": TWO, "constants": {'"c d"'}}),
    (("=", X, ("s", "true")), {"compared": TWO, "constants": {'"true"'}}),
    (("!=", X, ("b", "true")), {"compared": TWO, "constants": {"true"}}),
    (("=", X, ("z",)), {"compared": TWO}),
    (("=", N, ("n", "1.5")), {"compared": _both("n"), "constants": {"1.5"}}),
    (("=", ("own", "k"), X), {"compared": _both("k", "x"), "constants": {"p", '"q r"', "t"}}),
    # An order against a constant: atoms end there.
    (("<", N, ("n", "5")),
     {"compared": _both("n"), "constants": {"5"}, "cuts": {("b", "n"): {"5"}}}),
    (("<=", SEEN_N, ("n", "5")),
     {"compared": _both("n"), "constants": {"5"}, "cuts": {("a", "n"): {"5"}}}),
    ((">", ("n", "5"), N),
     {"compared": _both("n"), "constants": {"5"}, "cuts": {("b", "n"): {"5"}}}),
    ((">=", ("n", "5"), SEEN_N),
     {"compared": _both("n"), "constants": {"5"}, "cuts": {("a", "n"): {"5"}}}),
    # All else of numbers is computed: each value is an atom.
    (("<", SEEN_N, N), {"compared": _both("n"), "exact": _both("n")}),
    (("=", ("sum", (("2", N), ("1", ("n", "1")))), M),
     {"compared": {("a", "n"), ("b", "n"), ("b", "m")}, "constants": {"1"},
      "exact": {("b", "n"), ("b", "m")}}),
    (("!=", M, ("sum", (("2", N),))),
     {"compared": {("a", "n"), ("b", "n"), ("b", "m")}, "exact": {("b", "n"), ("b", "m")}}),
    (("=", ("max", N, M), ("n", "3")),
     {"compared": {("a", "n"), ("b", "n"), ("b", "m")}, "constants": {"3"},
      "exact": {("b", "n"), ("b", "m")}}),
    (("=", M, ("max", ("n", "3"), N)),
     {"compared": {("a", "n"), ("b", "n"), ("b", "m")}, "constants": {"3"},
      "exact": {("b", "n"), ("b", "m")}}),
    (("~", X, "[a-c]*"), {"compared": TWO, "patterns": {"[a-c]*"}}),
    (("!~", SEEN_X, "d"), {"compared": TWO, "patterns": {"d"}}),
    # Lists.
    (("in", X, ("list", (("s", "c"), ("s", "d")))), {"compared": TWO, "constants": {"c", "d"}}),
    (("in", X, SEEN_L), {"compared": _both("x", "l")}),
    (("not in", ("s", "c"), L), {"compared": _both("l"), "constants": {"c"}}),
    (("in", ("session", "u"), L), {"compared": {*_both("l"), ("", "u")}}),
    (("every", SEEN_L, ("=", ("it",), X)), {"compared": _both("x", "l"), "full": {("a", "l")}}),
    (("every", L, ("?", ("!=", ("s", "c"), ("it",)))),
     {"compared": _both("l"), "constants": {"c"}, "full": {("b", "l")}}),
    (("every", L, ("in", ("it",), ("list", (("s", "c"),)))),
     {"compared": _both("l"), "constants": {"c"}, "full": {("b", "l")}}),
    (("every", L, ("not in", ("it",), SEEN_L)),
     {"compared": _both("l"), "full": {("a", "l"), ("b", "l")}}),
    (("every", L, ("~", ("it",), "e*")),
     {"compared": _both("l"), "patterns": {"e*"}, "full": {("b", "l")}}),
    (("every", I, ("<", ("n", "5"), ("it",))),
     {"compared": _both("i"), "constants": {"5"}, "cuts": {("b", "i"): {"5"}},
      "full": {("b", "i")}}),
    (("some", ((I, "e"),), ((">=", ("as", "e"), ("n", "5")), ("=", ("as", "e"), N))),
     {"compared": _both("i", "n"), "constants": {"5"}, "cuts": {("b", "i"): {"5"}},
      "full": {("b", "i")}}),
    (("all", ((SEEN_L, "e"),), (("!~", ("as", "e"), "f"),)),
     {"compared": _both("l"), "patterns": {"f"}, "full": {("a", "l")}}),
    # What a session is given, and learns.
    (("=", X, ("session", "u")), {"compared": {*TWO, ("", "u")}}),
    (("=", X, ("session", "both")), {"compared": {*TWO, ("b", "k")}, "constants": {"p", "t"}}),
    (("<", ("session", "both"), ("n", "5")),
     {"compared": {("a", "x"), ("b", "k")}, "constants": {"p", "t", "5"},
      "cuts": {("a", "x"): {"5"}, ("b", "k"): {"5"}}}),
]  # fmt: skip


@pytest.mark.parametrize(("relation", "due"), RELATIONS, ids=[str(one) for one, _ in RELATIONS])
def test_a_relation_tells_apart_what_it_compares(relation: Any, due: dict[str, Any]) -> None:
    """Wherever it stands."""
    assert _read(_where(relation)) == due
    one = Alternative(calls=A, where=(relation,))
    assert _read(Ban(of=B, alternatives=(one,))) == due
    other = Alternative(calls=B)
    assert _read(Ban(of=B, alternatives=(other,), unless=(one,))) == due


STATEMENTS: list[tuple[Policy, dict[str, Any]]] = [
    (_where(same=(("x", ("own", "y")),)), {"compared": {*TWO, ("b", "y")}}),
    (_where(same=(("k", X),)), {"compared": _both("k", "x"), "constants": {"p", '"q r"', "t"}}),
    (_where(same=(("n", ("n", "2")),)), {"compared": _both("n"), "constants": {"2"}}),
    (_where(same=(("s", X),)), {"compared": {*TWO, ("a", "s")}, "constants": {"ok"}}),
    (Need(order="before", of=B, alternatives=(Alternative(where=(("=", X, ("s", "c")),)),)),
     {"compared": {("b", "x")}, "constants": {"c"}}),
    (Apart(one=A, other=B, same=(("x", ("own", "y")),)), {"compared": {*TWO, ("b", "y")}}),
    (Apart(one=A, other=B, same=(("x", ("s", "c")),)), {"compared": TWO, "constants": {"c"}}),
    (Owe(first=A, of=B, same=(("x", ("own", "y")),)), {"compared": {*TWO, ("b", "y")}}),
    (Owe(first=A, of=B, same=(("x", ("s", "c")),)), {"compared": TWO, "constants": {"c"}}),
    (Count(of=("or", (A, B)), value=1, per=(X, ("session", "u"))), {"compared": {*TWO, ("", "u")}}),
    (Count(of=B, value=1, where=(("<", N, ("n", "5")),)),
     {"compared": {("b", "n")}, "constants": {"5"}, "cuts": {("b", "n"): {"5"}}}),
    (Count(of=B, value=1, per=(("s", "c"),)), {"constants": {"c"}}),
    (Total(tool=1, parameter="n", value="9", per=(X,)),
     {"compared": {("b", "x"), ("b", "n")}, "exact": {("b", "n")}}),
    # A pattern of calls binds what it names.
    (Count(of=("but", ("any",), ("calls", 1, (("k", ("p",)), ("o", ("v",))))), value=1),
     {"compared": {("b", "k"), ("b", "o")}}),
    (Count(of=("calls", 1, (("o", ("v",)),)), value=1), {"compared": {("b", "o")}}),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "due"), STATEMENTS, ids=[str(one) for one, _ in STATEMENTS])
def test_a_statement_tells_apart_what_it_compares(policy: Policy, due: dict[str, Any]) -> None:
    assert _read(policy) == due


DECLINED: list[tuple[Policy, str]] = [
    (_where(("=", SEEN_L, L)), "a.l, a list that is compared"),
    (_where(("=", L, ("s", "c"))), "b.l, a list that is compared"),
    (_where(("in", L, ("list", (("s", "c"),)))), "b.l, a list that is compared"),
    (_where(("~", L, "c")), "b.l, a list that is compared"),
    (_where(("in", L, SEEN_L)), "b.l, a list that is compared"),
    (_where(same=(("l", X),)), "a.l, a list that is compared"),
    (_where(same=(("x", L),)), "b.l, a list that is compared"),
    (Apart(one=A, other=B, same=(("l", X),)), "a.l, a list that is compared"),
    (Owe(first=A, of=B, same=(("l", X),)), "a.l, a list that is compared"),
    (Count(of=B, value=1, per=(L,)), "b.l, a list that is compared"),
    (Total(tool=1, parameter="n", value="9", per=(L,)), "b.l, a list that is compared"),
    (_where(("=", X, ("session", "all"))), "session.all, which is no text"),
    (_where(("=", X, ("session", "many"))), "a.l, a list that is compared"),
    (_where(("<", ("session", "many"), ("n", "5"))), "a.l, a list that is compared"),
    (_where(("=", X, ("session", "told"))), "session.told, which may be what is not listed"),
    (_where(("in", ("sum", (("2", N),)), I)), "what is computed, or a list, among"),
    (_where(("in", ("seen", "r", "x"), L)), "what is computed, or a list, among"),
    (_where(("in", X, ("own", "y"))), "b.y, which is no list of texts"),
    (_where(("in", X, ("seen", "r"))), "a.r, which is no list of texts"),
    (_where(("in", ("seen", "s"), L)), "a.s, which may be what is not listed, in a list"),
    (_where(("in", X, ("session", "u"))), "a relation of the kind 'in'"),
    (_where(("every", X, ("=", ("it",), X))), "b.x, which is no list of texts"),
    (_where(("every", ("session", "u"), ("=", ("it",), X))), "a list of the kind 'session'"),
    (_where(("every", ("seen", "r", "x"), ("=", ("it",), X))), "a list of the kind 'seen'"),
    (_where(("every", L, ("in", ("it",), ("own", "x")))), "b.x, which is no list of texts"),
    (_where(("every", L, ("=", ("it",), ("sum", (("1", N),))))), "a relation of elements"),
    (_where(("every", L, ("in", X, SEEN_L))), "a relation of elements"),
    (_where(("every", L, ("in", X, ("list", (("s", "c"),))))), "a relation of elements"),
    (_where(("every", L, ("~", X, "c"))), "a relation of elements"),
    (_where(("every", I, ("<", ("it",), N))), "a relation of elements"),
    (_where(("every", I, ("<", ("it",), ("it",)))), "a relation of elements"),
    (_where(("every", L, ("=", ("it",), ("own", "l")))), "b.l, a list that is compared"),
    (_where(("all", ((L, "e"), (SEEN_L, "f")), (("=", ("as", "e"), X),))),
     "a relation of the kind 'all'"),
    (_where(("<", ("own", "d"), ("now",))), "a term of the kind 'now'"),
    (_where(("<", ("seen", "r", "x"), ("n", "5"))), "a term of the kind 'seen'"),
    (_where((">", ("n", "5"), ("count", L))), "a term of the kind 'count'"),
]  # fmt: skip


@pytest.mark.parametrize(("policy", "why"), DECLINED, ids=[str(one) for one, _ in DECLINED])
def test_what_no_token_stands_for_is_declined(policy: Policy, why: str) -> None:
    with pytest.raises(Uncovered) as refused:
        Spoken().read(_core(), policy, 8)
    assert str(refused.value).startswith(why)


SIZED = next(of for at in range(99) if pattern_of(of := f"[a-z]{{{at}}}").size == 64)
OTHER = SIZED.replace("z", "y")
ASKED = [
    ([("~", ("seen", "t"), SIZED)], 33, 65),
    ([("?", ("!~", ("seen", "t"), SIZED))], 33, 65),
    ([("every", ("seen", "l"), ("~", ("it",), SIZED))], 33, 65),
    ([("some", ((("seen", "l"), "e"),), (("?", ("~", ("as", "e"), SIZED)),))], 33, 65),
    ([("every", ("seen", "l"), ("=", ("it",), ("s", "c")))], 8193, 16385),
    ([("all", ((("seen", "i"), "e"),), (("=", ("as", "e"), ("n", "5")),))], 1025, 2049),
    ([("~", ("seen", "t"), SIZED), ("~", ("seen", "t"), OTHER)], 1, 33),
]


@pytest.mark.parametrize(("relations", "least", "calls"), ASKED, ids=str)
def test_what_is_asked_of_all_earlier_calls_is_less_than_a_gate_asks(
    relations: list[Any], least: int, calls: int
) -> None:
    """So many calls before the one that is decided are asked as a statement looks at."""
    alternative = Alternative(calls=LONG, least=least, where=tuple(relations))
    policy = Need(order="before", of=B, alternatives=(alternative,))
    _read(policy, calls - 1)
    with pytest.raises(Uncovered, match="ask too much"):
        _read(policy, calls)
    few = Need(order="before", of=B, alternatives=(replace(alternative, least=1),))
    if least > 1:
        _read(few, 1 << 20)  # it looks at no more than 64


def test_types_separate_texts_at_patterns_where_all_texts_are_decided() -> None:
    found = Spoken(patterns={"b*", "a"})
    kinds = [TextType(least=2, most=5), TextType(least=1, most=9, pattern="c")]
    due = {one: TextType(least=1, most=9, pattern=one) for one in ("a", "b*")}
    assert found.pattern_types(kinds) == due
    assert found.pattern_types([]) == Spoken().pattern_types(kinds) == {}
    most = MAX_STEPS // max(pattern_of(one).size for one in ("a", "b*"))
    assert found.pattern_types([TextType(most=most)])
    with pytest.raises(Uncovered, match=f"texts of {most + 1} characters"):
        found.pattern_types([TextType(most=most + 1)])


def test_types_separate_numbers_at_the_constants_that_they_are_ordered_against() -> None:
    found = Spoken(cuts={("b", "n"): {"10", "2"}, ("b", "m"): {"1", "0.5"}})
    kinds = [NumberType(whole=True, low=low, high="20") for low in ("3", "1")]
    due = [NumberType(whole=False, low="1", high=high) for high in ("2", "10")]
    assert found.cut_types(kinds) == due
    assert found.cut_types([]) == Spoken().cut_types([NumberType(whole=False)]) == []
    with pytest.raises(Uncovered, match="without a range"):
        found.cut_types([*kinds, NumberType(whole=False)])


def test_some_number_is_ordered_against_constants_as_all_of_its_atom_are() -> None:
    """Two of them, whatever stands for each, are ordered as no constant contradicts."""
    cuts = ["-2", "2", "3.5", "5"]
    for ends in [("-4", "9")], [("0", "9"), ("2.5", "3")], [("-3", "4"), ("3", "9")]:
        for whole in (False, True) if len(ends) == 1 else (False,):
            kinds = [NumberType(whole=whole, low=low, high=high) for low, high in ends]
            made = Spoken(cuts={("b", "n"): set(cuts)}).cut_types(kinds)
            known = [*kinds, *[one for one in made if one not in kinds]]
            at = [known.index(one) for one in made]
            atoms = [one for one in atoms_of("number", known, cuts) if one.only is None]
            tokens = [Between.of(n, known, one.types, at) for n, one in enumerate(atoms)]
            values = [_values(one.types, known, cuts) for one in atoms]
            assert len(atoms) > 3 and all(values)
            for one, mine in zip(tokens, values, strict=True):
                for cut in map(Fraction, cuts):
                    assert (one < cut) == (one <= cut) == all(value < cut for value in mine)
                    assert (one > cut) == (one >= cut) == all(value > cut for value in mine)
                    assert (cut > one) == (one < cut) and (cut < one) == (one > cut)
                for other, theirs in zip(tokens, values, strict=True):
                    apart = any(max(mine) < cut < min(theirs) for cut in map(Fraction, cuts))
                    assert (one < other) == (other > one) == apart


def _values(types: frozenset[int], known: list[NumberType], cuts: list[str]) -> list[Fraction]:
    """Numbers that these types hold and no other, and that are no constant."""
    grid = [Fraction(at, 4) for at in range(-16, 40)]
    return [
        value
        for value in grid
        if value not in map(Fraction, cuts)
        and types
        == {
            at
            for at, kind in enumerate(known)
            if Fraction(kind.low or 0) <= value <= Fraction(kind.high or 0)
            and (value.denominator == 1 or not kind.whole)
        }
    ]

"""Rows of lists, pairs of lists, and paths before a call with listed values."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcc
from tcc_certs.policy.meaning import policy_of
from tcc_certs.proof import rules
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.ground import constant
from tcc_certs.proof.plans import Plan, most_counted
from tcc_certs.proof.reasons import facts_about, value_of
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import Scene
from tcc_runtime.exact.planned import plan_of

HEAD = """# lint: allow TCC709 a test needs no costs
grammar lists version "1"
tool look(k: text) { errors mean failed }
tool find gives (rows: list of (k: text, n: integer 0 .. 9))
tool pack(key: text, old: list min 1 of text, new: list min 1 of text, more?: list min 1 of text,
          free: list of text)
limit depth <= 30
"""
ROW = "before pack require last(find.rows(k = this.key)).n >= 5"
NOT_ROW = "before pack require not last(find.rows).n >= 5"
PAIRS = "let seen(i) = look(k = i)\nbefore pack require every pairs(old, new)(seen(left))"


@pytest.mark.parametrize(
    ("policy", "asked", "verdict"),
    [
        (ROW, "find.rows(k = this.key, n >= 5)", "proved"),
        (ROW, "find.rows(n >= 5)", "proved"),
        (ROW, "find", "proved"),
        (ROW, "find.rows(k = this.key, n >= 6)", "refuted"),
        (ROW, "find.rows(k != this.key)", "refuted"),
        (ROW, "every find.rows(n >= 5)", "refuted"),
        (NOT_ROW, "find.rows(n < 5)", "proved"),
        (NOT_ROW, "no find.rows(n >= 5)", "refuted"),
        (PAIRS, "look", "proved"),
        (PAIRS, "every old(it in look.k)", "undecided"),
        (PAIRS.replace("old, new", "more, old"), "look", "proved"),
        (PAIRS.replace("old, new", "more, free"), "look", "refuted"),
        (PAIRS.replace("old, new", "free, free"), "look", "refuted"),
        (PAIRS.replace("every pairs", "no pairs"), "no look", "refuted"),
    ],
)
def test_a_question_about_rows_has_its_answer(policy: str, asked: str, verdict: str) -> None:
    artifact = tcc.compile_text(f"{HEAD}{policy}\n", purpose="gate")
    timeout = 2 if verdict == "undecided" else 60
    found = tcc.prove(artifact, f"before pack require {asked}", timeout=timeout)
    assert found.verdict == verdict, found.missing
    if verdict == "proved":
        assert found.proof is not None
        check_proof(found.proof, artifact.core)


# Each rule says no more than this.

PACK, FIND, ELEMENT = ("call", 0), ("call", 1), ("bound", 0)
FIVE = (constant(("n", 5)),)


def scene_of() -> Scene:
    found = Scene(policy_of(tcc.compile_text(HEAD, purpose="gate").core), None)
    found.enter("pack")
    found.enter("find", 0)
    return found


def pairs(left: str, right: str, *where: Any) -> Any:
    base = "pairs", ("get", PACK, left), ("get", PACK, right)
    return "source", PACK, base, where, None, ()


def filled(literal: Any, **assigned: bool) -> bool | None:
    """The truth of the lemma if a literal is true, there are no pairs, and others as given."""
    scene = scene_of()
    formula = rules.filled(scene, literal)
    truths = {scene.number(literal): True}
    truths[scene.number(("some", pairs(*assigned.pop("of")), False))] = False  # type: ignore[misc]
    for name, truth in assigned.items():
        truths[scene.number(("known", ("get", PACK, name)))] = truth
    return value_of(formula, {one: truth for one, truth in truths.items() if one is not None})


def test_pairs_of_lists_that_have_elements_have_one() -> None:
    same = ("compare", "=", ("get", ELEMENT, "left"), (("get", ELEMENT, "right"),))
    none = "none", pairs("old", "new", same), False
    assert filled(none, of=("old", "new")) is False  # type: ignore[arg-type]
    one_side = "none", pairs("free", "new", same), False
    assert filled(one_side, of=("free", "new")) is False  # type: ignore[arg-type]
    free = "none", pairs("free", "free", same), False
    assert rules.filled(scene_of(), free) is True
    # A list that may be absent has no elements then.
    absent = "none", pairs("more", "free", same), False
    assert filled(absent, of=("more", "free"), more=False) is True  # type: ignore[arg-type]
    assert filled(absent, of=("more", "free"), more=True) is False  # type: ignore[arg-type]
    with pytest.raises(Wrong):
        rules.filled(scene_of(), ("some", pairs("old", "new", same), False))


def test_a_list_without_a_declaration_may_have_no_element() -> None:
    calls = "source", PACK, ("calls", ("find",)), (), None, ()
    base = "items", ("get", ("last", calls), "rows"), None
    some = "some", ("source", PACK, base, (), None, ()), False
    assert rules.filled(scene_of(), some) is True


def test_a_known_list_has_as_many_elements_as_its_type_allows() -> None:
    def most(of: Any, bound: Any, tag: str = "items") -> list[Any]:
        elements = "source", PACK, (tag, of, bound), (), None, ()
        found = facts_about(scene_of(), ("high", ("count", elements, False)))
        return [fact.most for fact in found if fact.most]

    old, answer = ("get", PACK, "old"), ("get", FIND, "rows")
    assert most(old, 1000) == [1000]
    assert most(old, None) == most(answer, 1000) == []
    assert most(("get", ("last", pairs("old", "new")), "x"), 1000) == []
    assert most(old, 1000, tag="calls") == []


def test_a_condition_of_the_last_row_is_one_of_a_row() -> None:
    calls = "source", PACK, ("calls", ("find",)), (), None, ()
    rows = "source", PACK, ("rows", calls, ("get", ELEMENT, "rows"), 1000), (), None, ()
    last = ("get", ("last", rows), "n")
    big = ("compare", ">=", last, FIVE)

    def named(condition: Any, wanted: bool) -> list[Any]:
        scene = scene_of()
        rules.missing(scene, ("truth", condition, False, wanted))
        return [one[1][3] for one in scene.literals if one[0] == "some"][-1:]

    def of_rows(*conditions: Any) -> list[Any]:
        inside = "source", PACK, ("items", ("get", ELEMENT, "rows"), 1000), conditions, None, ()
        return [(("some", inside),)]

    row = ("compare", ">=", ("get", ELEMENT, "n"), FIVE)
    assert named(big, True) == of_rows(row)
    assert named(big, False) == of_rows(("not", row))
    # Whether a call is in another source may depend on the `not`s around the condition.
    other = "source", PACK, ("calls", ("look",)), (), None, ()
    assert named(("among", last, other), True) == of_rows()
    assert named(("compare", ">=", ("get", ("last", calls), "n"), FIVE), True) == [()]


SHIPPED = """# lint: allow TCC709 a test needs no costs
grammar shipped version "1"
tool pay
tool ship(speed: slow | fast, fee: 0 | 10 | 20)
plan = (pay ship{0,2}){1,3}
limit sum(ship.fee) <= 40
forbid ship(speed = fast, fee = 0)
forbid ship(speed = slow, fee = 10 | 20)
"""


@cache
def shipped() -> Plan:
    return plan_of(tcc.compile_text(SHIPPED))


@pytest.mark.parametrize(("most", "verdict"), [(4, "proved"), (3, "refuted")])
def test_a_path_before_a_call_has_a_number_of_calls(most: int, verdict: str) -> None:
    asked = f"limit count(ship(speed = fast)) <= {most}"
    assert tcc.prove(tcc.compile_text(SHIPPED), asked, timeout=60).verdict == verdict


def test_literals_say_which_call_is_decided() -> None:
    scene = Scene(policy_of(shipped().core), None)
    scene.enter("ship")
    scene.enter("ship", 0)
    fast = constant(("s", "fast"))
    where = (("compare", "=", ("get", ELEMENT, "speed"), (fast,)),)
    count = "high", ("count", ("source", PACK, ("calls", ("ship",)), where, None, ()), False)
    is_fast = ("eq", ("get", PACK, "speed"), fast)
    assert most_counted(shipped(), scene, count) == 4
    assert most_counted(shipped(), scene, count, [(is_fast, True)]) == 3
    assert most_counted(shipped(), scene, count, [(is_fast, False)]) == 4
    other = ("eq", ("get", ("call", 1), "speed"), fast)
    for literal in (other, ("done", PACK), ("eq", ("get", PACK, "speed"), ("get", PACK, "fee"))):
        with pytest.raises(Wrong):
            most_counted(shipped(), scene, count, [(literal, True)])

"""Whether every session of one grammar is a session of another one: the question, and its proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_certs.policy.core import Core
from tcc_certs.proof.implication import check_implication, difference, implication, is_any
from tcc_compiler.names.compile import compile_source

TOOLS = """tool find(order: text)
tool refund(order: text, amount: number 0 .. 20)
"""
PARENT = f"""grammar parent version "1"
{TOOLS}tool wire(amount: number)
let big = wire(amount > 5)
let found(o) = find(order = o)
before refund require found(order)
forbid big
limit count(wire) <= 1
limit sum(refund.amount) <= 30
"""
CHILD = f"""grammar child version "1"
{TOOLS}before refund require find(same order)
limit sum(refund.amount) <= 20
"""


def core(text: str) -> Core:
    found = compile_source(text).core
    assert found is not None
    return found


def test_statements_about_tools_that_the_core_lacks_are_left_out() -> None:
    question = implication(core(CHILD), core(PARENT))
    assert [type(one).__name__ for one in question.statements] == ["Require", "Limit"]
    assert [let.name for let in question.lets or ()] == ["found"]


def test_a_child_with_fewer_tools_is_proved() -> None:
    child, parent = tcc.compile_text(CHILD), tcc.compile_text(PARENT)
    found = tcc.prove(child, implies=parent)
    assert found.verdict == "proved" and found.proof is not None
    assert check_implication(found.proof, child.core, parent.core).used == (0, 1)


def test_the_parent_has_each_call_of_the_child() -> None:
    """A core may lack a call of its tools.  Its plan `any*` is a repetition of the others."""
    text = 'grammar g version "1"\ntool pay(x: 1 | 2)\n'
    child = core(text)
    parent = replace(child, calls=child.calls[:1], patterns=(((0, 1),),))
    assert is_any(parent)
    assert difference(parent, child) == ""
    assert difference(child, parent) == "call `pay(x=2)`"


def test_a_statement_that_names_a_lacking_tool_beside_others_has_no_question() -> None:
    parent = PARENT.replace("forbid big", "forbid (wire | refund)(amount > 25)")
    with pytest.raises(Rejected, match="tool `wire`") as error:
        implication(core(CHILD), core(parent))
    assert error.value.code is Code.PROOF_QUESTION
    found = tcc.prove(tcc.compile_text(CHILD), implies=tcc.compile_text(parent))
    assert found.verdict == "undecided" and "`forbid wire` refuses its calls" in found.missing


def test_a_proof_is_about_the_statements_of_the_parent() -> None:
    child, parent = tcc.compile_text(CHILD), core(PARENT)
    weaker = core(PARENT.replace("<= 30", "<= 40"))
    proof = tcc.prove(child, implies=tcc.compile_text(PARENT)).proof
    assert proof is not None
    with pytest.raises(Rejected) as error:
        check_implication(proof, child.core, weaker)
    assert error.value.code is Code.PROOF_QUESTION
    with pytest.raises(Rejected, match="the same tool `wire`") as error:
        implication(parent, child.core)
    assert error.value.code is Code.PROOF_QUESTION


def test_a_core_has_the_zones_of_the_other_one() -> None:
    text = 'grammar g version "1"\ntool a\nbefore a require hour(now, "ZONE") = 8\n'
    berlin, oslo = (
        core(text.replace("ZONE", "Europe/Berlin")),
        core(text.replace("ZONE", "Europe/Oslo")),
    )
    assert difference(berlin, berlin) == ""
    assert difference(oslo, berlin) == "record of the zone Europe/Berlin"


def test_every_session_is_one_of_a_grammar_without_statements() -> None:
    child = tcc.compile_text(CHILD)
    parent = tcc.compile_text(f'grammar parent version "1"\n{TOOLS}')
    found = tcc.prove(child, implies=parent)
    assert found.verdict == "proved" and found.proof is not None
    assert check_implication(found.proof, child.core, parent.core).arguments == 0


PLANS = """grammar one version "1"
tool a : p -> p
tool b gives (r: x | y) : p -> q
tool c : q -> q
plan = (a | b | c){0,3}
start p
goal p | q
"""


@pytest.mark.parametrize(
    ("was", "now", "differs"),
    [
        ("tool c : q -> q", "tool c : p -> q", "plans"),
        (": p -> q", ": p -> q { strict }", "plans"),
        ("goal p | q", "goal q", "plans"),
        ("{0,3}", "{0,4}", "plans"),
        ("tool a", "tool e : p -> p\ntool a", "plans"),
        (
            "tool c : q -> q",
            "tool c : q -> q { errors mean failed }",
            "`errors mean failed` of `c`",
        ),
        ("(r: x | y)", "(r: x | z)", "fields of `b`"),
        ("plan =", "given who: text\nplan =", "attributes of sessions"),
        ("grammar one", "grammar two", ""),
    ],
)
def test_all_that_statements_do_not_say_is_equal(was: str, now: str, differs: str) -> None:
    assert difference(core(PLANS), core(PLANS.replace(was, now))) == differs


@pytest.mark.parametrize(
    ("limit", "price", "differs"),
    [("price", 4, "amounts of calls"), ("price", 5, ""), ("depth", 4, "")],
)
def test_totals_of_amounts_need_the_same_amounts(limit: str, price: int, differs: str) -> None:
    text = f'grammar g version "1"\ntool a {{ price 5 }}\nlimit depth <= 9\nlimit {limit} <= 50\n'
    assert difference(core(text.replace("price 5", f"price {price}")), core(text)) == differs

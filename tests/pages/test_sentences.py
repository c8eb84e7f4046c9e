"""Statements as sentences: each kind of statement, and what is said to enforce it."""

from __future__ import annotations

import tcc as library
from tcc.library.plan_questions import cheapest, sample
from tcc.pages.artifact_page import statements_section, tools_section
from tcc.pages.near_misses import near_misses
from tests.pages.reading import read

GRAMMAR = """grammar shop version "1"

tool look(k: 1 | 2 | 5) { cost 0.5 * k }
tool ask(order: text max 20, note?: flag) gives (answer: yes | no) { strict }
tool pay(order: text max 20, amount: number 0 .. 10)
tool stop

rule begin = look{1,3}
plan = begin ask* pay{0,2} stop?

limit depth <= 6
limit count(look(k = 5)) <= 1
limit price <= 20
limit latency <= 1000 ms
limit cost <= 4.5
limit sum(look.k) <= 6
limit sum(pay.amount) <= 15
limit count(pay) per order <= 1 in session
before pay require look
before pay require look since pay
after look(k = 5) owe stop
before pay require ask(same order, answer = yes)
before look(k = 2) require no look(k = 2) since any - look(k = 2)
before stop require no look(k = 1)
before stop require no look(k = 2)
before look(k = 2) require no stop
before look require no ask
before pay require no ask(same order)
before ask require no pay(same order)
"""
SAID = (
    "A plan has this shape",
    "Where begin is named",
    "ask is called only where a plan goes on after every answer it may give.",
    "A plan has at most 6 calls.",
    "A plan calls look(k=5) at most 1 time.",
    "The prices of its calls add up to at most 20",
    "The latencies of its calls add up to at most 1000 ms.",
    "The cost of a plan is at most 4.5.",
    "The values of look.k in a plan add up to at most 6.",
    "Every call of pay has a call of look somewhere before it.",
    "Every call of pay has a call of look of its own: one since the pay before it.",
    "Every call of look(k=5) has a call of stop somewhere after it.",
    "No plan has look(k=2), directly followed by look(k=2).",
    "No call of look(k=1) comes anywhere before a call of stop.",
    "No plan has both a call of look(k=2) and a call of stop.",
    "The values of pay.amount in a session add up to at most 15.",
    "With one value of order, pay is called at most 1 time.",
    "Every call of pay has a call of ask before it with the same order.",
    "No call of ask together with a call of pay with the same order.",
    "ask.note may be left out; given, it is flag.",
    "pay.amount is always given, and is number 0 .. 10.",
)


def test_every_kind_of_statement_is_said_with_what_enforces_it() -> None:
    core = library.compile_text(GRAMMAR).core
    found = read(statements_section(core, None).body.encode())
    for sentence in SAID:
        assert sentence in found.text, sentence
    rows = found.tags.count("tr") - 1
    assert (
        rows
        == 2
        + 1
        + len(core.limits)
        + len(core.requires)
        + len(core.forbids)
        + len(core.monitors)
        + 4
    )


def test_what_is_left_to_the_run_is_said_to_be() -> None:
    relaxed = library.compile_text(GRAMMAR.replace("{ strict }", ""), relax=["cost"])
    assert relaxed.relaxed is not None
    found = read(statements_section(relaxed.core, relaxed.relaxed).body.encode())
    assert "limit cost <= 4.5run" in found.text
    assert "limit price <= 20automaton" in found.text


def test_tools_have_their_parameters_and_spans_of_amounts() -> None:
    core = library.compile_text(GRAMMAR).core
    text = read(tools_section(core).body.encode()).text
    assert "k: 1 | 2 | 5" in text and "0.5 \u2013 2.5" in text
    assert "answer: yes | no answered by the tool" in text
    assert "note?: flag any value of the type" in text


def test_a_near_miss_is_no_plan_and_one_edit_from_one() -> None:
    artifact = library.compile_file("grammars/support_refund.tcg")
    drawn = sample(artifact, 5, seed=b"near")
    plans = [plan.calls for plan in (*cheapest(artifact, 5), *drawn)]
    found = near_misses(artifact, plans)
    assert len(found) == 5
    for miss in found:
        assert not library.why(artifact, miss.found.calls).allowed
        assert miss.found.because
        assert any(abs(len(plan) - len(miss.found.calls)) <= 1 for plan in plans)
        nearest = miss.found.nearest
        assert nearest is not None and library.why(artifact, nearest).allowed
    reasons = [tuple(s.text for s in miss.found.because) for miss in found]
    assert len(set(reasons)) == 5
    assert sum(not any(text.startswith("plan") for text in reason) for reason in reasons) >= 2
    assert found == near_misses(artifact, plans)

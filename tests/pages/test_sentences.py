"""Statements, plans and tools on the page of an artifact."""

from __future__ import annotations

import tcc as library
from tcc.library.plan_questions import cheapest, sample
from tcc.pages.artifact_page import plan_section, statements_section, tools_section
from tcc.pages.near_misses import near_misses
from tcc_certs.policy.places import parts_of
from tests.pages.reading import read

WORDS = {"automaton": "automaton", "both": "The automaton holds: ", "gate": "gate"}

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


def test_every_statement_is_shown_once_with_its_place() -> None:
    core = library.compile_text(GRAMMAR).core
    found = read(statements_section(core, ()).body.encode())
    assert found.tags.count("tr") - 1 == len(core.statements)
    for statement, part in zip(core.statements, parts_of(core), strict=True):
        assert f"{part.text}{WORDS[part.place]}" in found.text, statement


def test_the_reason_and_the_part_that_the_automaton_holds_are_shown() -> None:
    text = GRAMMAR.replace(
        "before pay require look\n",
        """before pay
  require look and amount <= 5 because "Look first."
""",
    )
    found = read(statements_section(library.compile_text(text).core, ()).body.encode()).text
    shown = "Look first.before pay require look and amount <= 5"
    assert f"{shown}The automaton holds: before pay require look and _automaton and gate" in found


def test_what_is_left_to_the_run_is_said_to_be() -> None:
    relaxed = library.compile_text(GRAMMAR.replace("{ strict }", ""), relax=["cost"])
    assert relaxed.manifest.relaxed
    found = read(statements_section(relaxed.core, relaxed.manifest.relaxed).body.encode())
    assert "limit cost <= 4.5run" in found.text
    assert "limit price <= 20automaton" in found.text


def test_the_shape_of_a_plan_is_shown_with_its_rules() -> None:
    found = read(plan_section(library.compile_text(GRAMMAR).core).body.encode()).text
    for line in ("plan = begin (ask*) (pay{0,2}) (stop?)", "rule begin = look{1,3}", "strict ask"):
        assert line in found


def test_tools_have_their_parameters_and_spans_of_amounts() -> None:
    core = library.compile_text(GRAMMAR).core
    text = read(tools_section(core).body.encode()).text
    assert "k: 1 | 2 | 5" in text and "0.5 \u2013 2.5" in text
    assert "answer: yes | no answered by the tool" in text
    assert "note?: flag" in text


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

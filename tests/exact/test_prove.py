"""`tcc prove` by hand: verdicts, sessions, ends, codes, bad usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc.library import artifact_bytes
from tcc.library.proving import Proof, rewritten
from tcc_certs.proof.check import check_proof
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)

SHOP = """grammar shop version "1"

tool find(order: text min 1 max 9)
tool refund(part: half | full, order: text min 1 max 9, amount: number 0 .. 20)

plan = (find | refund){0,3}
"""


# What is paid was asked for: intervals do not know that both are one amount.
TWICE = """grammar twice version "1"

tool ask(amount: number 0 .. 100)
tool pay(amount: number 0 .. 100)

plan = ask? pay?

before pay require ask(same amount)
limit sum(ask.amount) <= 10
limit sum(pay.amount) <= 60
"""


def ask(text: str, statement: str | None = None, **asked: Any) -> Proof:
    return tcc.prove(tcc.compile_text(text), statement, **asked)


def test_two_monitors_that_exclude_each_other_make_a_tool_unreachable() -> None:
    both = "require find before refund same order\nforbid find before refund same order\n"
    assert ask(SHOP + both, reachable="refund").verdict == "refuted"
    assert ask(SHOP, reachable="refund(part=full)").session is not None


def test_a_cap_that_nothing_can_reach_adds_nothing() -> None:
    low = SHOP.replace("0 .. 20", "30 .. 40") + "limit sum(refund.amount) <= 50\n"
    high = low.replace("<= 50", "<= 55")
    wider = low.replace("<= 50", "<= 60")
    assert ask(high, implies=tcc.compile_text(low)).verdict == "proved"
    found = ask(wider, implies=tcc.compile_text(low))
    assert found.verdict == "refuted" and found.session is not None
    amounts = [call.arguments["amount"] for call in found.session.calls]
    assert len(amounts) == 2 and 50 < sum(amounts) <= 60


def test_what_is_owed_is_asked_at_an_end() -> None:
    found = ask(SHOP, "require refund after find")
    assert found.session is not None
    assert (len(found.session.calls), found.session.ends) == (1, "finish")


def test_a_beginning_that_a_monitor_bars_from_every_end_is_stuck() -> None:
    text = SHOP.replace("{0,3}", "{0,3} & (find refund)?").replace("(find | refund)", "any")
    found = ask(text + "forbid find before refund same order\n", finishable=True)
    assert found.verdict == "proved"  # another order may be refunded
    one = 'text ~ "x"'
    found = ask(
        text.replace("text min 1 max 9", one) + "forbid find before refund same order\n",
        finishable=True,
    )
    assert found.session is not None
    assert (found.verdict, found.session.ends, len(found.session.calls)) == ("refuted", "stuck", 1)


def test_listed_on_one_side_and_open_on_the_other() -> None:
    listed = """grammar g version "1"

tool f(k: p | q)

plan = f{0,2}
"""
    opened = """grammar g version "1"

tool f(k: text ~ "p|q|r")

plan = f{0,2}
"""
    once = opened + "limit uses(f) per k <= 1\n"
    left, right = tcc.compile_text(listed), tcc.compile_text(opened)
    assert tcc.prove(left, implies=right).verdict == "proved"
    back = tcc.prove(right, implies=left)
    assert back.session is not None and back.session.calls[0].arguments == {"k": "r"}
    twice = tcc.prove(left, implies=tcc.compile_text(once))
    assert twice.session is not None
    first, second = [call.arguments["k"] for call in twice.session.calls]
    assert first == second


def test_answers_are_observed() -> None:
    text = """grammar g version "1"

tool ask(id: text max 5) gives (ok: yes | no)
tool pay(id: text max 5)

plan = (ask | pay){0,3}

before pay require ask(same id, ok = yes)
"""
    assert ask(text, "require ask(ok=yes) before pay same id").proved
    found = ask(text, "forbid ask before pay same id")
    assert found.session is not None
    assert found.session.calls[0].answer == {"ok": "yes"}


@pytest.mark.parametrize(
    ("code", "text", "statement"),
    [
        ("P504", TWICE, "limit sum(pay.amount) <= 10"),
        ("P504", TWICE.replace("plan = ask? pay?", "plan = ask pay"), None),
        (
            "P506",
            SHOP.replace("0 .. 20", "0 .. 10000000000000000") + "limit sum(refund.amount) <= 50\n",
            "forbid find",
        ),
    ],
)
def test_undecided_names_its_code(code: str, text: str, statement: str | None) -> None:
    found = ask(text, statement, finishable=statement is None)
    assert (found.verdict, found.codes, found.session) == ("undecided", (code,), None)


@pytest.mark.parametrize(
    ("statement", "verdict", "amounts"),
    [
        ("limit sum(pay.amount) <= 60", "proved", None),
        ("limit uses(pay) per amount <= 1", "proved", None),
        ("limit sum(pay.amount) <= 5", "refuted", [10, 10]),
        ("limit sum(ask.amount) <= 9.5", "refuted", [10]),
        ("forbid ask before pay same amount", "refuted", [0, 0]),
    ],
)
def test_a_sum_over_values_that_are_keys(
    statement: str, verdict: str, amounts: list[float] | None
) -> None:
    artifact = tcc.compile_text(TWICE)
    found = tcc.prove(artifact, statement)
    assert found.verdict == verdict
    if amounts is not None:
        assert found.session is not None
        assert [call.arguments["amount"] for call in found.session.calls] == amounts
    assert found.certificate is not None
    assert check_proof(found.certificate, [artifact_bytes(artifact)]).verdict == 0


def test_a_sum_over_values_that_are_keys_leaves_no_end() -> None:
    text = TWICE.replace("plan = ask? pay?", "plan = pay pay").replace("0 .. 100", "9.5 .. 100")
    text = text.replace("require ask before pay same amount", "limit uses(pay) per amount <= 1")
    found = ask(text.replace("<= 60", "<= 18"), finishable=True)
    assert found.session is not None
    assert (found.verdict, found.session.calls, found.session.ends) == ("refuted", (), "stuck")


def test_states_and_time_are_bounded() -> None:
    held = SHOP + "forbid find before refund same order\n"
    assert ask(held, finishable=True, max_states=1).codes == ("P503",)
    assert ask(held, finishable=True, timeout=1e-9).codes == ("P507",)


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("never a", "forbid a"),
        ("never a(k=3) with b", "forbid a(k=3) with b"),
        ("never a before b same p = q", "forbid a before b same p = q"),
        ("never a after b", "forbid b before a"),
        ("never a after b(x=1) same p = q, r", "forbid b(x=1) before a same q = p, r"),
        ("never a after b # c", "forbid b before a"),
        ("never a # after b\nafter c", "forbid c before a"),
        ('never "#" after b', 'forbid b before "#"'),
        ("require a before b", "require a before b"),
    ],
)
def test_never_is_a_forbid(text: str, turned: str) -> None:
    assert rewritten(text) == turned


@pytest.mark.parametrize(
    "statement",
    [
        "forbid nobody",
        "",
        "plan = find",
        "tool x",
        "forbid find\ntool x",
        "forbid find\nlimit uses(refund) <= 1",
        "forbid find accept find",
        "never find after refund with order",
        "never find after refund same order same user",
    ],
)
def test_what_is_no_statement_about_the_tools_is_refused(statement: str) -> None:
    with pytest.raises(tcc.CompileError):
        ask(SHOP, statement)
    with pytest.raises(tcc.CompileError):
        ask(SHOP, reachable=statement.removeprefix("forbid "))


def test_a_statement_behind_a_pattern_is_not_what_makes_it_reachable() -> None:
    assert ask(SHOP + "forbid find\n", reachable="find").verdict == "refuted"
    with pytest.raises(tcc.CompileError):
        ask(SHOP + "forbid find\n", reachable="find\nrequire find before refund")


def test_words_of_statements_are_texts_in_quotes() -> None:
    text = """grammar g version "1"

tool a(k: "limit" | "require")

plan = a{0,2}
"""
    asked = 'forbid a(k="limit") a(k="require")  # forbid expect'
    assert ask(text, asked).verdict == "refuted"


SETS = """grammar sets version "1"

tool a
tool b(k?: p | q, x: text max 2)
tool c

plan = (a | b | c){0,3}
"""


@pytest.mark.parametrize(
    ("statement", "verdict", "calls"),
    [
        ("limit uses(a | b) <= 3", "proved", None),
        ("limit uses(a | b) <= 2", "refuted", 3),
        ("limit uses(any) >= 1", "refuted", 0),
        ("limit uses(a | c) >= 0", "proved", None),
        ("require a before each (b | c)", "refuted", 1),
        ("forbid (a - a) with b", "proved", None),
        ("never (any - c)", "refuted", 1),
    ],
)
def test_statements_about_sets_of_calls(statement: str, verdict: str, calls: int | None) -> None:
    """Some are part of the plan in a grammar, where no core has them as statements."""
    artifact = tcc.compile_text(SETS)
    found = tcc.prove(artifact, statement)
    shown = None if found.session is None else len(found.session.calls)
    assert (found.verdict, shown) == (verdict, calls)
    assert found.certificate is not None
    assert check_proof(found.certificate, [artifact_bytes(artifact)]).verdict == 0


def test_a_statement_that_is_part_of_the_plan_and_not_read_is_asked_as_a_monitor() -> None:
    found = ask(SETS, "limit uses(b) per k <= 0")
    assert (found.verdict, found.codes) == ("refuted", ())
    data = found.certificate
    assert data is not None
    assert check_proof(data, [artifact_bytes(tcc.compile_text(SETS))]).verdict == 0


# Statements that a grammar holds by its plans, which know an answer with its call.
BY_PLANS = [
    'forbid probe(n=0) with probe(r="pass") same n',
    "forbid probe before probe(r=pass) same n",
    "require probe(r=fail) before each probe(r=pass) same n",
    "require other before probe(r=pass) same n",
    "limit uses(probe(r=pass) | other) <= 1",
    "limit uses(probe(r=pass)) per n <= 1",
    "forbid (probe - probe(r=fail)) with other",
    "forbid other before (any - probe(r=fail)) same n",
    "require other before (any - probe(r=fail)) same n",
]


@pytest.mark.parametrize("statement", BY_PLANS)
def test_a_statement_about_answers_is_what_a_grammar_with_it_holds(statement: str) -> None:
    tools = """grammar g version "1"

tool probe(n: 0 | 3) gives (r: pass | fail)
tool other(n: 0 | 3)

plan = any{0,3}
"""
    found = ask(tools, statement)
    assert found.verdict == "refuted" and found.session is not None
    last = found.session.calls[-1]
    assert last.answer == {"r": "pass"} or last.tool == "other", "another answer does not break it"
    assert ask(f"{tools}{statement}\n", statement).verdict == "proved"


def test_what_a_monitor_would_say_otherwise_is_left_open() -> None:
    """A monitor of 1.2 does not know the answer of the call that it decides on."""
    text = """grammar g version "1"

tool probe gives (r: pass | fail)

plan = probe{0,3}
"""
    found = ask(text, "require last probe before probe(r=pass)")
    assert (found.verdict, found.codes) == ("undecided", ("P501",))
    assert ask(text, "monitor require last probe before probe(r=pass)").verdict == "refuted"


def test_answers_are_not_what_a_session_is_given(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    text = """grammar g version "1"

tool probe gives (r: pass | fail)

plan = probe{0,3}
"""
    (tmp_path / "g.tcg").write_text(text)
    found = tcc_command("prove", tmp_path / "g.tcg", "never probe(r=pass)")
    assert '1. probe -> r="pass"\n' in found.out


def test_the_command_ends_with_its_verdict(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "shop.tcg"
    path.write_text(SHOP, "utf-8")
    found = tcc_command("prove", path, "never refund(part=full)", "--json")
    assert found.code == 1 and found.json["verdict"] == "refuted"
    assert found.json["question"] == {"kind": "statement", "text": "never refund(part=full)"}
    assert found.json["session"]["ends"] == "call"
    assert found.json["session"]["calls"][0]["arguments"].keys() == {"part", "order", "amount"}
    assert tcc_command("prove", path, "--implies", path).code == 0
    assert tcc_command("prove", path, "--finishable", "--max-states", "1").code in (0, 2)
    assert tcc_command("prove", path, "forbid nobody").code == 2
    assert tcc_command("prove", path).code == 2


def test_a_later_monitor_is_left_open() -> None:
    artifact = tcc.compile_text(SHOP + "forbid find before refund same order\n")

    class Later:
        text = "a later statement"

    object.__setattr__(artifact.core, "monitors", (*artifact.core.monitors, Later()))
    assert tcc.prove(artifact, finishable=True).codes == ("P501",)
    assert tcc.prove(artifact, implies=artifact).codes == ("P501",)


def test_a_sum_that_was_spent_at_once_leaves_no_way_to_an_end() -> None:
    text = SHOP.replace("(find | refund){0,3}", "refund refund").replace("0 .. 20", "5 .. 20")
    found = ask(text + "limit sum(refund.amount) <= 22\n", finishable=True)
    assert found.session is not None
    assert found.session.ends == "stuck"
    assert [call.arguments["amount"] for call in found.session.calls] == [20]
    assert ask(text + "limit sum(refund.amount) <= 25\n", finishable=True).proved


def test_a_number_without_a_range_beside_one_with_a_range() -> None:
    text = 'grammar g version "1"\ntool f(; k: {})\nplan = f{{0,1}}\n'
    for kind in ("integer", "number"):
        open_, held = (tcc.compile_text(text.format(f"{kind}{end}")) for end in ("", " 0 .. 5"))
        found = tcc.prove(open_, implies=held)
        assert found.verdict == "refuted" and found.session is not None
        assert not 0 <= found.session.calls[0].arguments["k"] <= 5
        assert tcc.prove(held, implies=open_).proved

"""Questions as proofs have them: their statements, sums, limits, and sides that are not alike."""

from __future__ import annotations

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.proof import compared as compared_sides
from tcc_runtime.exact import certificate, compared as searched
from tests.exact.test_proofs import (
    SHOP,
    STATEMENT,
    ask,
    asked,
    changed_at,
    code_of,
    every_certificate,
    file_of,
    lines_of,
)


def test_a_call_that_breaks_may_be_looked_at_whole() -> None:
    """The key of the question is not enough: the way there has another, too."""
    text = SHOP.replace(
        "tool refund(part: half | full;",
        'tool mark(; order: text ~ "p|q", amount: number 0 .. 20)\ntool refund(part: half | full;',
    )
    text = (
        text.replace("(find | refund)", "(find | mark | refund)")
        .replace(
            "require find before refund same order",
            "require find before mark same order\nrequire mark before refund same order, amount",
        )
        .replace("limit sum(refund.amount) <= 50\n", "")
    )
    found, artifacts = asked(text, STATEMENT)
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    assert {part["keys"] for part in lines[0]["parts"]} == {"call"}
    assert code_of(found.certificate, artifacts) == "VALID"
    lines[0]["parts"][0]["keys"] = "each"
    assert code_of(file_of(lines), artifacts) == "T209"


@pytest.mark.parametrize(
    "text",
    [
        "forbid find(part=full)", "forbid find with", "require find", "limit uses(find) <= x",
        "forbid find before refund same user = part", "limit price >= 3", "limit price <= 3 s",
        "limit latency <= 3", "limit cost <= 0.0000000001",
        "limit price <= 0.5", "limit latency <= 9223372036854775808", "plan = find",
        "forbid find before any same order", "forbid (find | refund) before refund same order",
        "limit sum(find.order) <= 3", 'forbid "', "limit uses(find) per part <= 1",
        "require find before each refund same order, order extra",
        "limit sum(refund.part) <= 2", "forbid " + "(" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_statement_is_no_question(text: str) -> None:
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    ask(lines, text)
    assert code_of(file_of(lines), artifacts) in ("T102", "D101", "D201", "B101")


@pytest.mark.parametrize("text", ["forbid any before b same x", "limit uses(any) per x <= 0"])
def test_any_is_no_tool_of_that_name(text: str) -> None:
    artifact = tcc.compile_text(
        """grammar g version "1"

tool `any`(x: text)
tool a(x: text)
tool b(x: text)

plan = a b
"""
    )
    of = certificate.ProvedQuestion(kind="statement", text=text, artifacts=(artifact,))
    with pytest.raises(Rejected) as refusal:
        of.system()
    assert refusal.value.code.value == "T102"
    quoted = certificate.ProvedQuestion(
        kind="statement", text=text.replace("any", '"any"'), artifacts=(artifact,)
    )
    assert len(quoted.system().right.core.monitors) == 1


@pytest.mark.parametrize("kind", ["number 0 .. 20", "integer 0 .. 2000", "number 7 .. 20.5"])
def test_a_sum_over_values_that_are_keys_is_an_interval_where_they_are_many(kind: str) -> None:
    text = SHOP.replace("number 0 .. 20", kind) + "limit uses(refund) per amount <= 1\n"
    found, artifacts = asked(text, finishable=True)
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    # Of a value that is known to be somewhere in an interval none may be chosen.
    size = lines[0]["states"]
    for state in lines[1 : size + 1]:
        if state[3][0][1]:
            state[3][0][1] -= 1
            break
    assert code_of(file_of(lines), artifacts) == "T206"


def test_a_value_that_is_held_is_not_the_least_on_the_way_to_an_end() -> None:
    """An amount that was asked for is paid as it is, whatever is left of the sum."""
    text = """grammar g version "1"

tool ask(amount: integer 0 .. 200)
tool pay(amount: integer 0 .. 200)

plan = ask pay

before pay require ask(same amount)
limit sum(pay.amount) <= 100
"""
    found, _ = asked(text, finishable=True)
    assert (found.verdict, found.codes) == ("undecided", ("P504",))
    few, artifacts = asked(text.replace("200", "20").replace("100", "10"), finishable=True)
    assert few.verdict == "refuted" and few.certificate is not None
    assert code_of(few.certificate, artifacts) == "VALID"


@pytest.mark.parametrize("seed", range(4))
def test_few_values_as_intervals_are_never_wrong(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(compared_sides, "MAX_ALONE", -1)
    monkeypatch.setattr(searched, "MAX_ALONE", -1)
    for at in range(8 * seed, 8 * seed + 8):
        every_certificate(at, {})


@pytest.mark.parametrize("kind", ["number", "number -5 .. 20", "text max 4"])
def test_what_the_other_side_adds_up_has_a_range_from_0(kind: str) -> None:
    other = tcc.compile_text(SHOP)
    free = SHOP.replace("limit sum(refund.amount) <= 50\n", "")
    mine = tcc.compile_text(free.replace("number 0 .. 20", kind))
    with pytest.raises(Rejected) as refusal:
        certificate.ProvedQuestion(kind="implies", text=None, artifacts=(mine, other)).system()
    assert (refusal.value.code.value, refusal.value.path) == ("D101", "amount")


@pytest.mark.parametrize(
    ("mine", "theirs", "path"),
    [
        # What is listed here and added up there is in no sum of the left.
        ("tool a(n: 1 | 2)", "tool a(; n: integer 1 .. 2)", "n"),
        ("tool a gives (s: ok | bad)", "tool a gives (t: ok | bad)", "a"),
        ("tool a(; x: json)", "tool a(x: p | q)", "x"),
    ],
)
def test_sides_that_differ_in_what_is_not_known_are_declined(
    mine: str, theirs: str, path: str
) -> None:
    limit = "limit sum(a.n) <= 1\n" if path == "n" else ""
    artifacts = tuple(
        [
            tcc.compile_text(f'grammar g version "1"\n{tool}\nplan = a a\n{say}')
            for tool, say in ((mine, ""), (theirs, limit))
        ]
    )
    with pytest.raises(Rejected) as refusal:
        certificate.ProvedQuestion(kind="implies", text=None, artifacts=artifacts).system()
    assert (refusal.value.code.value, refusal.value.path) == ("D101", path)


def test_plans_that_are_left_aside_let_more_through() -> None:
    """A monitor alone implies another, whatever plans are; a plan that implies it is needed."""
    found, artifacts = asked(SHOP, STATEMENT)
    assert found.certificate is not None
    lines = lines_of(found.certificate)
    assert [part.get("plans") for part in lines[0]["parts"]] == [None, False]
    forged = changed_at(lines, lambda copy: copy[0]["parts"][0].update(plans=False))
    assert code_of(forged, artifacts) == "T209"
    for value in (True, 0, "none"):
        forged = changed_at(lines, lambda copy, v=value: copy[0]["parts"][1].update(plans=v))
        assert code_of(forged, artifacts) == "T101"
    forged = changed_at(lines, lambda copy: copy[0]["parts"][1].pop("plans"))
    assert code_of(forged, artifacts) == "T201"

    text = SHOP.replace("(find | refund){0,3}", "refund find")
    text = text.replace("require find before refund same order\n", "")
    found, artifacts = asked(text, "never find before refund same order")
    assert found.proved and found.certificate is not None
    lines = lines_of(found.certificate)
    assert [part.get("plans") for part in lines[0]["parts"]] == [None, None]
    artifact = tcc.compile_text(text)
    of = certificate.ProvedQuestion(
        kind="statement", text="never find before refund same order", artifacts=(artifact,)
    )
    made = of.system()
    part = made.parts(frozenset(), unwalked=frozenset({1}))[1]
    assert certificate.closed(made, part, max_states=99, check_time=lambda: None) is None


COSTS = """grammar costs version "1"

tool find(k: 1 | 3) { cost 0.25 * k price 2 * k latency 100 ms epsilon 0.5 }
tool ask(who: text max 9) { cost 0.5 price 5 latency 2 s epsilon 0 }

plan = (find | ask){0,3}

limit count(ask) <= 1
"""


@pytest.mark.parametrize(
    ("kind", "most", "below"),
    [
        ("cost", "2.25", "2.249999999"),  # three of find(k=3)
        ("price", "18", "17"),
        ("latency", "2.2 s", "2199 ms"),
        ("epsilon", "1.5", "1.499999999"),
        ("depth", "3", "2"),
    ],
)
def test_limits_on_what_calls_take_are_proved_and_refuted(kind: str, most: str, below: str) -> None:
    found, artifacts = asked(COSTS, f"limit {kind} <= {most}")
    assert found.proved and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    ask(lines, f"limit {kind} <= {below}")
    assert code_of(file_of(lines), artifacts) == "T207"
    found, artifacts = asked(COSTS, f"limit {kind} <= {below}")
    assert found.verdict == "refuted" and found.certificate is not None
    assert found.session is not None and len(found.session.calls) == 3
    assert code_of(found.certificate, artifacts) == "VALID"
    lines = lines_of(found.certificate)
    ask(lines, f"limit {kind} <= {most}")
    assert code_of(file_of(lines), artifacts) == "T302"


@pytest.mark.parametrize("most", [0, 2, 7, 8])
def test_a_limit_on_costs_that_may_go_down_has_a_proof(most: int) -> None:
    """Of each beginning: a later call may cost less than 0, and that is too late."""
    costs = (
        "tool a { cost -1.5 }\ntool b { cost 2 }\ntool c(k: x | y) { cost 1  cost -3 when k = y }"
    )
    text = f'grammar costs version "1"\n{costs}\nplan = (a | b | c){{0,4}}\n'
    found, artifacts = asked(text, f"limit cost <= {most}")
    assert found.proved is (most == 8) and found.certificate is not None
    assert code_of(found.certificate, artifacts) == "VALID"

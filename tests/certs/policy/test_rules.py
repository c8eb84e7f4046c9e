"""The twelve rules of meaning, fact by fact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.policy import meaning, plans as model
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call
from tcc_certs.policy.kinds import Fault
from tests.certs.policy.told import Told
from tests.oracle_meaning.written import core_of

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
BASE = """
given g?: text
tool x(k: text, n?: number, f?: flag, t?: time, l?: list of text)
tool a(k: text, n?: number, f?: flag)
  gives (r?: text, m?: number, l?: list of text, o?: list of (p: text, q?: number), at?: time)
tool b(k: text) gives (r?: text, m?: number)
"""


@pytest.fixture
def told() -> Told:
    return Told(BASE)


# Rule 1: a comparison is sure only if both sides are known values.


def test_a_comparison_with_an_unknown_answer_is_unsure(told: Told) -> None:
    told.done("a", {"r": 1}, k="1")  # a number is no text
    for text in (
        'last(a).r = "1"',
        'last(a).r != "1"',
        "last(a).r = null",
        "last(a).r = last(a).r",
    ):
        assert told.truth(text, k="1") is None
    for text in ('last(a).r ~ ".*"', 'last(a).r !~ ".*"'):
        assert told.truth(text, k="1") is None


def test_a_comparison_with_an_absent_field_is_unsure_but_for_null(told: Told) -> None:
    for text in ("n = 1", "n != 1", "n < 1", "n in 1 .. 2", "n = n", "n + 1 = 2", "f", "not f"):
        assert told.truth(text, k="1") is None
    assert told.truth("n = null", k="1") is True
    assert told.truth("null = n", k="1") is True
    assert told.truth("n != null", k="1") is False
    assert told.truth("n = null | 1", k="1") is True
    assert told.truth("n = null", k="1", n=1) is False
    assert told.truth("session.g = null", k="1") is True


def test_a_comparison_with_a_field_of_a_missing_element_is_unsure(told: Told) -> None:
    for text in ("last(a).n = null", "last(a).n = 1", "last(a).n != null", "last(a.m) = null"):
        assert told.truth(text, k="1") is None
    assert told.truth("no a or last(a).n = 1", k="1") is True


def test_a_list_that_is_absent_is_empty(told: Told) -> None:
    told.done("a", {}, k="1")
    assert told.truth('every l(it = "1")', k="1") is True
    assert told.truth("no l", k="1") is True
    assert told.truth("l", k="1") is False
    assert told.truth("count(l) in 0 .. 0", k="1") is True
    assert told.truth("sum(last(a).o.q) = 0", k="1") is True
    assert told.truth('"1" in l', k="1") is False
    assert told.truth("session.g in l", k="1") is None
    assert told.truth('every last(a).l(it = "1")', k="1") is True


def test_a_list_of_a_missing_element_is_unsure(told: Told) -> None:
    for text in ('every last(a).l(it = "1")', "no last(a).l", "count(last(a).l) >= 0",
                 '"1" in last(a).l', "sum(last(a).o, q) >= 0", "last(last(a).l) = null",
                 "count(distinct(last(a).l)) >= 0", "max(last(a).o.q) = null",
                 "last(a.o).k = null", "last(a.o).p = null"):  # fmt: skip
        assert told.truth(text, k="1") is None


def test_a_value_is_unsurely_in_an_unknown_list(told: Told) -> None:
    told.lost("a", k="1")
    assert told.truth("k in last(a).l", k="1") is None
    assert told.truth("k not in a.l", k="1") is None
    assert told.truth("k in a.r", k="1") is None
    told.done("a", {"r": "1", "l": ["2"]}, k="1")
    assert told.truth("k in a.r", k="1") is True
    assert told.truth("k in a.l", k="2") is True
    assert told.truth("k in a.l", k="1") is None
    assert told.truth("k in a.k", k="2") is False


def test_values_of_different_types_are_different(told: Told) -> None:
    told.done("a", {"l": ["1"]}, k="1")
    listed = Told("tool x(k: text)\ntool a gives (v: 1 | one | true)")
    listed.done("a", {"v": True})
    assert listed.truth("last(a).v = 1", k="1") is False
    assert listed.truth("last(a).v = true", k="1") is True


def test_comparisons_of_numbers(told: Told) -> None:
    cases = {"n < 2": (True, False, False), "n <= 2": (True, True, False),
             "n > 2": (False, False, True), "n >= 2": (False, True, True),
             "n = 2": (False, True, False), "n != 2": (True, False, True),
             "n in 1 .. 2": (True, True, False), "n not in 1 .. 2": (False, False, True),
             "n in 2 .. 3": (False, True, True), "n = 1 | 3": (True, False, True),
             "n != 1 | 3": (False, True, False), "2 < n": (False, False, True),
             "n = 2.5 - 0.5": (False, True, False)}  # fmt: skip
    for text, truths in cases.items():
        assert tuple([told.truth(text, k="1", n=n) for n in (1, 2, 3)]) == truths, text


def test_kleene(told: Told) -> None:
    texts = {True: "k = k or false", False: 'k != "1"', None: "n = 1"}
    for one, left in texts.items():
        assert told.truth(f"not ({left})", k="1") is (None if one is None else not one)
        for other, right in texts.items():
            both = False if False in (one, other) else None if None in (one, other) else True
            either = True if True in (one, other) else None if None in (one, other) else False
            assert told.truth(f"({left}) and ({right})", k="1") is both
            assert told.truth(f"({left}) or ({right})", k="1") is either


def test_null_has_no_order_and_no_members() -> None:
    told = Told("""
    tool x(n: number or null, m: number or null)
    tool a gives (r: object (p?: text, l: list of text) or null)
    """)
    for text in ("n < m", "n >= 1", "1 <= n", "n + 1 = 2", "min(n, 1) = 1", "n in 0 .. 9",
                 "n = count(a)"):  # fmt: skip
        assert told.truth(text, n=None, m=1) is (False if "count" in text else None), text
    assert told.truth("n = m", n=None, m=None) is True
    assert told.truth("n = m", n=None, m=1) is False
    assert told.truth("n = null", n=None, m=1) is True
    told.done("a", {"r": None})
    assert told.truth("last(a).r = null", n=1, m=1) is True
    assert told.truth("last(a).r.p = null", n=1, m=1) is None
    assert told.truth("no last(a).r.l", n=1, m=1) is None
    told.lost("a")
    assert told.truth("n = count(a)", n=None, m=1) is None


# Terms.


def test_arithmetic(told: Told) -> None:
    for text in ("n + 1 = 3", "n - 1 = 1", "n * 3 = 6", "-n = 0 - 2", "min(n, 3) = 2",
                 "max(n, 3) = 3", "min(3, n) = 2", "max(1, n) = 2", "5 - n * 2 = 1"):  # fmt: skip
        assert told.truth(text, k="1", n=2) is True, text
        assert told.truth(text, k="1", n=7) is False, text
        assert told.truth(text, k="1") is None, text


def test_times_and_durations(told: Told) -> None:
    told.now = 3 * DAY + HOUR
    at = "1970-01-03T01:30:00+00:30"  # 2 days and an hour
    for text in ("now - t = 1 d", "t + 1 d = now", "1 d + t = now",
                 "now - 24 h = t", "now - t < 2 d", "t < now",
                 'day(t) = "1970-01-03"', "hour(t) = 1", 'hour(t, "-02:00") = 23',
                 'weekday(t) = 6', 'weekday(t, "-02:00") = 5', 'day(t, "-02:00") = "1970-01-02"',
                 't = "1970-01-03T01:00:00Z"', 't > "1970-01-03"', "2 * 30 m = 1 h",
                 't in "1970-01-03" .. "1970-01-04"', "min(t, now) = t"):  # fmt: skip
        assert told.truth(text, k="1", t=at) is True, text
        if text[:3] != "2 *":
            assert told.truth(text, k="1") is None, text
    assert told.truth("hour(last(a).at) = 1", k="1") is None


def test_a_week_begins_on_monday(told: Told) -> None:
    for day in range(1, 8):
        at = f"2024-01-{day:02}T23:59:59.999Z"  # 2024 began on a Monday
        assert told.truth(f"weekday(t) = {day} and hour(t) = 23", k="1", t=at) is True
        assert told.truth(f'day(t) = "2024-01-{day:02}"', k="1", t=at) is True


def test_the_arms_of_a_match() -> None:
    told = Told("tool x(k: text, v?: p | q | r)\ntool a gives (v: p | q)")
    text = "match v { p: 1, q | r: 2 }"
    assert told.truth(f"{text} = 1", k="1", v="p") is True
    assert told.truth(f"{text} = 2", k="1", v="r") is True
    assert told.truth(f"{text} = 2", k="1") is None
    assert told.truth("match v { p: 1, else: 2 } = 2", k="1", v="q") is True
    assert told.truth("match v { p: 1, else: 2 } = null", k="1") is True
    assert told.truth("match v { p: 1, else: 2 } in 1 .. 2", k="1") is None
    assert told.truth("match last(a).v { p: 1, else: 2 } in 1 .. 2", k="1") is None
    told.done("a", {"v": "undeclared"})
    assert told.truth("match last(a).v { p: 1, else: 1 } = 1", k="1") is None
    told.lost("a")
    assert told.truth("match count(a) { 1: 5, else: 6 } = 5", k="1") is None
    assert told.truth("match count(a) { 3: 5, else: 6 } = 6", k="1") is True


def test_a_pattern_matches_the_whole_text(told: Told) -> None:
    assert told.truth('k ~ "a.*"', k="abc") is True
    assert told.truth('k ~ "a.*"', k="bab") is False
    assert told.truth('k !~ "a.*"', k="bab") is True
    assert told.truth('k ~ "a|ab"', k="ab") is True


def test_a_pattern_is_unsure_of_a_text_that_takes_too_many_steps(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = meaning.pattern_of("a.*b").size
    monkeypatch.setattr(meaning, "MAX_STEPS", 5 * size)
    assert told.truth('k ~ "a.*b"', k="axxxb") is True
    assert told.truth('k ~ "a.*b"', k="axxxxb") is None


# Rules 2 and 4: what is in a collection.


def test_calls_that_are_done_are_in_a_collection_if_the_filter_is_true(told: Told) -> None:
    assert told.truth("a", k="1") is False
    assert told.truth("no a", k="1") is True
    assert told.truth("every a(n = 1)", k="1") is True
    told.done("a", k="1", n=1)
    assert told.truth("a(n = 1)", k="1") is True
    assert told.truth("a(n = 2)", k="1") is False
    assert told.truth("no a(n = 2)", k="1") is True
    assert told.truth("no a(n = 1)", k="1") is False
    assert told.truth("every a(n = 1)", k="1") is True
    assert told.truth("every a(n = 2)", k="1") is False
    assert told.truth("b", k="1") is False


def test_a_call_whose_filter_is_unsure_is_maybe_in_a_collection(told: Told) -> None:
    told.done("a", k="1")
    for text in ("a(n = 1)", "no a(n = 1)", "every a(n = 1)", "not every a(n = 1)"):
        assert told.truth(text, k="1") is None
    told.done("a", k="1", n=2)
    assert told.truth("a(n = 1)", k="1") is None
    assert told.truth("every a(n = 1)", k="1") is False
    assert told.truth("every a(n = 2)", k="1") is None
    told.done("a", k="1", n=1)
    assert told.truth("a(n = 1)", k="1") is True
    assert told.truth("no a(n = 1)", k="1") is False
    assert told.truth("every a(n = null)", k="1") is False
    assert told.truth("every a(n > 2)(n = 2)", k="1") is None
    assert told.truth("every a(n != null, n > 2)(n = 3)", k="1") is True
    told.done("a", k="1")
    assert told.truth("every a(n = 1)", k="1") is False


@pytest.mark.parametrize("outcome", [LOST, "open"])
def test_a_call_without_a_known_outcome_is_maybe_in_a_collection(told: Told, outcome: str) -> None:
    told.add("a", outcome, k="1", n=1)
    for text in ("a", "a(n = 1)", "no a", 'a(r = "1")', "every a(n = 2)", 'every a(r = "1")',
                 "a(n = 1)(r = null)"):  # fmt: skip
        assert told.truth(text, k="1") is None
    assert told.truth("a(n = 2)", k="1") is False
    assert told.truth("every a(n = 1)", k="1") is True
    assert told.truth('k = "1"', k="1") is True


def test_a_failed_call_is_not_in_a_collection(told: Told) -> None:
    told.failed("a", k="1", n=1)
    assert told.truth("no a", k="1") is True
    assert told.truth("a", k="1") is False
    assert told.truth("count(a) <= 0.5", k="1") is True


# Rule 3: errors that were read.


def test_an_error_that_was_read_blocks_and_never_satisfies(told: Told) -> None:
    told.answered("a", k="1", n=1)
    assert told.truth("a", k="1") is False
    assert told.truth("no a", k="1") is None
    assert told.truth("not (not (no a))", k="1") is None
    assert told.truth("not no a", k="1") is False
    assert told.truth("no a(n = 2)", k="1") is True
    assert told.truth('no a(r = "1")', k="1") is None
    assert told.truth("every a(n = 1)", k="1") is True
    assert told.truth("every a(n = 2)", k="1") is None
    assert told.truth('every a(r = "1")', k="1") is None
    assert told.truth("not every a(n = 2)", k="1") is False
    assert told.truth("k in a.k", k="1") is False
    assert told.truth("k not in a.k", k="1") is None
    assert told.truth("k not in a.k", k="2") is True
    assert told.truth("not (k in a.k)", k="1") is None
    assert told.truth("not (k not in a.k)", k="1") is False


def test_an_error_that_was_read_enters_no_term(told: Told) -> None:
    told.done("a", k="1", n=1)
    told.answered("a", k="1", n=2)
    for text in ("count(a) = 1", "not (count(a) != 1)", "last(a).n = 1", "not (last(a).n != 1)",
                 "sum(a.n) = 1", "max(a.n) = 1", "not (sum(a, n) != 1)"):  # fmt: skip
        assert told.truth(text, k="1") is True


def test_an_error_that_was_read_blocks_in_the_filter_of_a_term(told: Told) -> None:
    told.done("a", {"m": 1, "l": ["1"]}, k="1", n=1)
    told.answered("b", k="1")
    for text in ("last(a(no b)).n = 1", "count(a(no b)) = 1", "sum(a(no b).n) = 1",
                 "sum(a(no b), n) = 1", "max(a(no b).n) = 1",
                 "count(distinct(a(no b).l)) = 1"):  # fmt: skip
        assert told.truth(text, k="1") is None
        assert told.truth(text.replace("no b", "not no b"), k="1") is not True


def test_an_error_that_was_read_is_no_mark(told: Told) -> None:
    told.done("a", k="1")
    told.answered("b", k="1")
    assert told.truth("a since b", k="1") is True
    assert told.truth("no a since b", k="1") is False
    assert told.truth("count(a since b) = 1", k="1") is True


def test_polarity_goes_into_filters(told: Told) -> None:
    told.done("b", k="1")
    told.answered("a", k="1")
    assert told.truth("b(no a)", k="1") is None
    assert told.truth("no b(no a)", k="1") is False
    assert told.truth("b(not no a)", k="1") is False
    assert told.truth("every b(no a)", k="1") is None
    assert told.truth("every b(a)", k="1") is False
    assert told.truth("every b(a)(no a)", k="1") is None
    assert told.truth('every b(no a)(k = "2")', k="1") is False
    assert told.truth('every (any - b(a))(k = "1")', k="1") is True


def test_an_error_that_was_read_blocks_in_the_filter_of_a_statement() -> None:
    told = Told(BASE + 'forbid x(no a)\nbefore b(a) require k = "2"')
    told.answered("a", k="1")
    assert told.refused("x", k="1") == ["R202"]  # no error was read by a C under two negations
    assert told.refused("b", k="1") == ["R202"]
    told = Told(BASE + "before x(a) require false or k != k")
    assert told.refused("x", k="1") == []
    told.answered("a", k="1")
    assert told.refused("x", k="1") == ["R202"]


# Rule 5: since, within and unused.


def test_since_counts_what_is_after_the_last_mark(told: Told) -> None:
    told.done("a", k="1")
    assert told.truth("a since b", k="1") is True
    told.done("b", k="1")
    assert told.truth("a since b", k="1") is False
    assert told.truth('a since b(k = "2")', k="1") is True
    told.done("a", k="2")
    assert told.truth("a since b", k="1") is True
    assert told.truth('a(k = "1") since b', k="1") is False
    assert told.truth("a since a", k="1") is False
    assert told.truth('every a(k = "2") since b', k="1") is True
    assert told.truth("a since b since a", k="1") is False


@pytest.mark.parametrize("outcome", [LOST, "open"])
def test_a_maybe_mark_makes_what_is_before_it_unsure(told: Told, outcome: str) -> None:
    told.done("b", k="1")
    told.done("a", k="1")
    at = told.add("b", outcome, k="1")
    assert told.truth("a since b", k="1") is None
    assert told.truth("no a since b", k="1") is None
    told.done("a", k="2")
    assert told.truth("a since b", k="1") is True
    assert told.truth("count(a since b) = 1", k="1") is None
    assert told.truth("count(a since b) in 1 .. 2", k="1") is True
    told.later(at, DONE)
    assert told.truth("count(a since b) = 1", k="1") is True
    told.later(at, FAILED)
    assert told.truth("count(a since b) = 2", k="1") is True
    told.later(at, ANSWERED)
    assert told.truth("count(a since b) = 2", k="1") is True


def test_a_mark_whose_filter_is_unsure_is_a_maybe_mark(told: Told) -> None:
    told.done("a", k="1")
    told.done("b", {}, k="1")
    assert told.truth('a since b(r = "1")', k="1") is None
    assert told.truth("a since b(r = null)", k="1") is False


def test_a_field_of_a_collection_has_the_order_of_its_calls(told: Told) -> None:
    told.done("a", {"r": "1", "l": ["1"]}, k="1")
    told.done("b", {"r": "2"}, k="1")
    told.done("a", {"r": "3", "l": ["3"]}, k="1")
    assert told.truth('every a.r(it = "3") since b', k="1") is True
    assert told.truth('every a.l(it = "3") since b', k="1") is True
    assert told.truth('last(a.r | b.r) = "3"', k="1") is True
    assert told.truth('last((a.r | b.r)(it != "3")) = "2"', k="1") is True
    assert told.truth('last((b.r | a.r)(it != "3")) = "2"', k="1") is True
    assert told.truth("count((a.r | b.r) since b) = 1", k="1") is True


def test_within_counts_from_now_and_has_both_ends(told: Told) -> None:
    told.done("a", {"r": "1", "l": ["1"]}, k="1")
    told.now = HOUR
    for text in ("a within 1 h", "a.r within 1 h", "a.l within 60 m", "(a.r | b.r) within 1 h",
                 "a(k = \"1\") within 1 h", "a.o within 1 h or a within 1 h"):  # fmt: skip
        assert told.truth(text, k="1") is True, text
    told.now += 1
    for text in ("a within 1 h", "a.r within 1 h", "a.l within 60 m", "(a.r | b.r) within 1 h",
                 "a within 2 h within 1 h", "a within 1 h within 2 h"):  # fmt: skip
        assert told.truth(text, k="1") is False, text
    assert told.truth('every a(k = "2") within 1 h', k="1") is True
    assert told.truth("a within 1.5 h", k="1") is True


DESK = """
tool approve(order: text, amount: number 0 .. 99) gives (answer?: yes | no)
tool refund(order: text, amount: number 0 .. 99, fast?: flag)
"""


def test_an_approval_serves_one_call() -> None:
    told = Told(DESK + "before refund require unused approve(same (order, amount), answer = yes)")
    assert told.refused("refund", order="1", amount=5) == ["R202"]
    told.done("approve", {"answer": "yes"}, order="1", amount=5)
    assert told.refused("refund", order="1", amount=6) == ["R202"]
    assert told.refused("refund", order="2", amount=5) == ["R202"]
    assert told.refused("refund", order="1", amount=5) == []
    told.done("refund", order="1", amount=6)
    assert told.refused("refund", order="1", amount=5) == []
    at = told.lost("refund", order="1", amount=5)
    assert told.refused("refund", order="1", amount=5) == ["R202"]
    told.later(at, FAILED)
    assert told.refused("refund", order="1", amount=5) == []
    told.later(at, ANSWERED)
    assert told.refused("refund", order="1", amount=5) == []
    told.later(at, DONE)
    assert told.refused("refund", order="1", amount=5) == ["R202"]
    told.done("approve", {"answer": "no"}, order="1", amount=5)
    assert told.refused("refund", order="1", amount=5) == ["R202"]
    told.done("approve", {"answer": "yes"}, order="1", amount=5)
    assert told.refused("refund", order="1", amount=5) == []


def test_only_restricted_calls_use_an_approval() -> None:
    told = Told(
        DESK
        + """
    let o = this.order
    before refund(amount > 10 and this.fast != true) {
      require unused approve(order = o, answer = yes) within 1 h
    }
    """
    )
    told.done("approve", {"answer": "yes"}, order="1", amount=5)
    assert told.refused("refund", order="1", amount=5) == []
    told.done("refund", order="1", amount=5, fast=False)
    assert told.refused("refund", order="1", amount=11, fast=False) == []
    told.done("refund", order="1", amount=11, fast=True)
    assert told.refused("refund", order="1", amount=11, fast=False) == []
    told.done("refund", order="2", amount=11, fast=False)
    told.now = HOUR
    assert told.refused("refund", order="1", amount=11, fast=False) == []
    told.now = HOUR + 1
    assert told.refused("refund", order="1", amount=11, fast=False) == ["R202"]
    told.now = HOUR
    told.done("refund", order="1", amount=12)
    assert told.refused("refund", order="1", amount=11, fast=False) == ["R202"]


def test_the_key_of_unused_takes_absent_as_equal() -> None:
    text = """
    tool approve(order?: text)
    tool refund(order?: text)
    before refund require unused approve(same order)
    """
    told = Told(text)
    told.done("approve")
    assert told.refused("refund") == []
    assert told.refused("refund", order="1") == ["R202"]
    told.done("refund", order="1")
    assert told.refused("refund") == []
    told.done("refund")
    assert told.refused("refund") == ["R202"]


# `same`.


def test_same_takes_absent_as_equal_and_as_different_from_every_value(told: Told) -> None:
    told.done("a", k="1")
    assert told.truth("a(same n)", k="1") is True
    assert told.truth("a(n = this.n)", k="1") is None
    assert told.truth("a(same n)", k="1", n=1) is False
    assert told.truth("a(n = this.n)", k="1", n=1) is None
    assert told.truth("a(same (k, n))", k="1") is True
    assert told.truth("a(same (k, n))", k="2") is False
    told.done("a", k="2", n=1)
    assert told.truth("a(same n)", k="1", n=1) is True
    assert told.truth("every a(same n)", k="1") is False
    assert told.truth('a(same n, k = "2")', k="1") is False
    assert told.truth('a(n = this.n, k = "2")', k="1") is None


# Rule 6: last.


def test_the_last_element_is_sure_only_if_no_later_one_may_be(told: Told) -> None:
    told.done("a", {"r": "1"}, k="1", n=1)
    assert told.truth('last(a).r = "1"', k="1") is True
    at = told.lost("a", k="1", n=2)
    assert told.truth('last(a).r = "1"', k="1") is None
    assert told.truth("last(a).n in 1 .. 2", k="1") is True
    assert told.truth("last(a).n = 3", k="1") is False
    assert told.truth("last(a(n = 1)).n = 1", k="1") is True
    told.later(at, FAILED)
    assert told.truth('last(a).r = "1"', k="1") is True
    told.later(at, DONE, {"r": "2"})
    assert told.truth('last(a).r = "2"', k="1") is True


def test_without_a_sure_element_the_last_one_may_be_missing(told: Told) -> None:
    told.lost("a", k="1", n=1)
    told.lost("a", k="1", n=1)
    assert told.truth("last(a).n = 1", k="1") is None
    assert told.truth("last(a).n = 2", k="1") is None
    assert told.truth("no a or last(a).n = 1", k="1") is None
    told.done("a", k="1", n=1)
    assert told.truth("last(a).n = 1", k="1") is True


def test_a_comparison_of_last_elements_holds_for_every_combination(told: Told) -> None:
    told.done("a", k="1", n=1)
    told.lost("a", k="1", n=2)
    told.done("b", {"m": 2}, k="1")
    assert told.truth("last(a).n <= last(b).m", k="1") is True
    assert told.truth("last(a).n + last(a).n = 2 | 4", k="1") is True  # the same element twice
    assert told.truth("last(a).n = last(b).m", k="1") is None
    assert told.truth("last(a).n > last(b).m", k="1") is False
    assert told.truth('every last(a).l(it = "1")', k="1") is None
    assert told.truth('last(last(a).l) = "1"', k="1") is None


def test_more_combinations_than_are_looked_at_are_unsure(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 4)
    for outcome in (DONE, LOST):
        told.add("a", outcome, k="1", n=1)
        told.add("b", outcome, k="1")
    text = "last(a).k = last(b).k"
    assert told.evaluated(text, k="1") == (True, False)
    at = told.lost("b", k="1")
    assert told.evaluated(text, k="1") == (None, True)
    told.later(at, FAILED)
    assert told.evaluated(text, k="1") == (True, False)
    told.later(at, DONE)
    assert told.evaluated(text, k="1") == (True, False)
    for _ in range(3):
        told.lost("a", k="1")
    assert told.evaluated("last(a).k = k", k="1") == (None, True)


def test_combinations_that_are_still_to_be_looked_at_count(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 5)
    told.done("a", k="1")
    told.lost("a", k="2")
    for outcome in (DONE, LOST, LOST, LOST, LOST):
        told.add("b", outcome, k="1")
    text = 'match last(a).k { "1": last(b).k, else: "1" } = "1"'
    assert told.evaluated(text, k="1") == (None, True)


def test_the_last_call_is_not_null(told: Told) -> None:
    assert told.truth("last(a) = null", k="1") is None
    told.done("a", k="1")
    assert told.truth("last(a) = null", k="1") is False


def test_two_to_the_ten_combinations_are_looked_at(told: Told) -> None:
    for tool in ("a", "b"):
        for at in range(32):
            told.add(tool, LOST if at else DONE, k="1")
    assert told.evaluated("last(a).k = last(b).k", k="1") == (True, False)
    told.lost("b", k="1")
    assert told.evaluated("last(a).k = last(b).k", k="1") == (None, True)


def test_a_refusal_by_too_many_combinations_is_r207(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 2)
    told = Told(BASE + 'before x require last(a).k = "1"\nfinally require last(a).k = "1"')
    told.done("a", k="1")
    told.lost("a", k="1")
    assert (told.refused("x", k="1"), told.unmet()) == ([], [])
    told.lost("a", k="1")
    assert (told.refused("x", k="1"), told.unmet()) == (["R207"], [1])


# Rule 7: aggregates.


def test_a_count_is_between_the_sure_elements_and_all(told: Told) -> None:
    told.done("a", k="1")
    told.lost("a", k="1")
    assert told.truth("count(a) >= 1", k="1") is True
    assert told.truth("count(a) <= 2", k="1") is True
    assert told.truth("count(a) >= 2", k="1") is None
    assert told.truth("count(a) = 1", k="1") is None
    assert told.truth("count(a) = 3", k="1") is False
    assert told.truth("count(a) = 0.5", k="1") is False
    assert told.truth("0.5 = count(a)", k="1") is False
    assert told.truth("count(a) < 1", k="1") is False
    assert told.truth("count(a) > 2", k="1") is False
    assert told.truth("3 > count(a)", k="1") is True
    assert told.truth("count(a) in 1 .. 2", k="1") is True
    assert told.truth("count(a) * 2 + 1 in 3 .. 5", k="1") is True
    for text in ("count(a) * 2 = 2", "count(a) * 2 = 4", "1 - count(a) = 0", "1 - count(a) = -1",
                 "count(a) + 1 = 2", "count(a) + 1 = 3"):  # fmt: skip
        assert told.truth(text, k="1") is None
    assert told.truth("10 - count(a) in 8 .. 9", k="1") is True
    assert told.truth("-count(a) in -2 .. -1", k="1") is True
    assert told.truth("max(count(a), 2) = 2", k="1") is True
    assert told.truth("min(count(a), 1) = 1", k="1") is True
    assert told.truth("count(a) * -1 in -2 .. -1", k="1") is True
    assert told.truth("count(a) = count(a)", k="1") is None
    assert told.truth("count(a) * count(a) in 1 .. 4", k="1") is True


def test_an_unknown_list_has_any_number_of_elements(told: Told) -> None:
    told.done("a", {"l": ["1"]}, k="1")
    assert told.truth("count(a.l) = 1", k="1") is True
    told.lost("a", k="1")
    assert told.truth("count(a.l) >= 1", k="1") is True
    assert told.truth("count(a.l) <= 1000000", k="1") is None
    assert told.truth("count(a.l) = 0.5", k="1") is False
    assert told.truth("count(a.l) = 5", k="1") is None
    assert told.truth("count(a.l) < 1", k="1") is False
    assert told.truth("5 > count(a.l)", k="1") is None
    assert told.truth("max(count(a.l), 5) >= 5", k="1") is True
    assert told.truth("min(count(a.l), 5) in 1 .. 5", k="1") is True
    assert told.truth("min(count(a.l), 5) <= 4", k="1") is None
    assert told.truth("max(5, count(a.l)) <= 5", k="1") is None
    assert told.truth("min(5, count(a.l)) <= 5", k="1") is True
    assert told.truth("count(a.l) + 1 >= 2", k="1") is True
    assert told.truth("1 - count(a.l) <= 0", k="1") is True
    assert told.truth("1 - count(a.l) >= 0", k="1") is None
    assert told.truth("count(a.l) * 2 >= 2", k="1") is None  # no end to multiply
    assert told.truth("count(distinct(a.l)) >= 1", k="1") is True
    assert told.truth("count(distinct(a.l)) <= 9", k="1") is None
    assert told.truth("sum(a.o.q) >= 0", k="1") is None
    assert told.truth('a.l(it = "1")', k="1") is True
    assert told.truth('a.l(it = "2")', k="1") is None
    assert told.truth('every a.l(it = "1")', k="1") is None
    assert told.truth('last(a.l) = "1"', k="1") is None
    assert told.truth('"2" in a.l', k="1") is None


def test_an_unknown_list_of_the_last_call(told: Told) -> None:
    told.done("a", {"l": 5}, k="1")  # no list
    assert told.truth("count(last(a).l) >= 0", k="1") is True
    assert told.truth("last(a).l", k="1") is None
    assert told.truth('every last(a).l(it = "1")', k="1") is None
    assert told.truth("every last(a).l(1 = 1)", k="1") is True
    assert told.truth("k in last(a).l", k="1") is None
    assert told.truth('last(last(a).l) = "1"', k="1") is None


def test_a_row_whose_value_is_absent_is_no_element(told: Told) -> None:
    told.done("a", {"m": 1}, k="1")
    told.done("a", {}, k="1")
    assert told.truth("count(a.m) = 1", k="1") is True
    assert told.truth("last(a.m) = 1", k="1") is True
    assert told.truth("last(a).m = 1", k="1") is None
    assert told.truth("sum(a.m) = 1", k="1") is True
    assert told.truth("sum(a, m) = 1", k="1") is None
    assert told.truth("every a.m(it = 1)", k="1") is True


def test_a_row_whose_value_is_unknown_is_maybe_an_element(told: Told) -> None:
    told.done("a", {"m": "no number"}, k="1")
    assert told.truth("a.m", k="1") is None
    assert told.truth("count(a.m) in 0 .. 1", k="1") is True
    assert told.truth("count(a.m) = 1", k="1") is None
    assert told.truth("sum(a.m) = 0", k="1") is None
    assert told.truth("every a.m(it = 1)", k="1") is None
    assert told.truth('every a.m(k = "1")', k="1") is True
    assert told.truth("1 in a.m", k="1") is None


def test_a_maybe_element_adds_anything_up_to_its_value_to_a_sum(told: Told) -> None:
    told.done("a", k="1", n=2)
    told.lost("a", k="1", n=3)
    assert told.truth("sum(a.n) in 2 .. 5", k="1") is True
    assert told.truth("sum(a.n) = 5", k="1") is None
    assert told.truth("sum(a.n) > 5", k="1") is False
    assert told.truth("sum(a, n * 2) in 4 .. 10", k="1") is True
    assert told.truth("sum(a, 0 - n) in -5 .. -2", k="1") is True
    told.lost("a", k="1", n=-4)
    assert told.truth("sum(a.n) in -2 .. 5", k="1") is True
    assert told.truth("sum(a.n) < -2", k="1") is False
    assert told.truth("sum(a(n > 0).n) in 2 .. 5", k="1") is True
    assert told.truth("sum(a.n) = 5", k="1") is None
    told.lost("a", k="1")
    assert told.truth("sum(a.n) in -2 .. 5", k="1") is True  # absent: no row
    assert told.truth("sum(a, n) in -2 .. 5", k="1") is None
    told.lost("a", k="1", n=0)
    assert told.truth("sum(a.m) >= 0", k="1") is None


def test_a_sum_of_a_term_takes_each_element(told: Told) -> None:
    told.done("b", {"m": 10}, k="1")
    told.done("a", {"l": ["1", "2"]}, k="1", n=2)
    told.done("a", {"l": ["3"]}, k="2", n=3)
    assert told.truth("sum(a, n * last(b).m) = 50", k="1") is True
    assert told.truth("sum(a, count(l)) = 3", k="1") is True
    assert told.truth('sum(a(k = "2"), n) = 3', k="1") is True
    told.lost("b", k="1")
    assert told.truth("sum(a, n * last(b).m) = 50", k="1") is None
    assert told.truth("sum(a, count(b)) in 2 .. 4", k="1") is True
    assert told.truth("sum(a, count(b)) = 4", k="1") is None
    assert told.truth("sum(a, count(b)) = 2", k="1") is None
    assert told.truth("sum(a, -count(b)) in -4 .. -2", k="1") is True
    assert told.truth("sum(a, -count(b)) = -4", k="1") is None
    told.lost("a", k="1", n=3)
    assert told.truth("sum(a, count(b)) in 2 .. 6", k="1") is True
    assert told.truth("sum(a, count(b)) = 6", k="1") is None
    assert told.truth("sum(a, -count(b)) = -6", k="1") is None
    assert told.truth("sum(a, -count(b)) >= -1", k="1") is False
    assert told.truth("sum(a, count(l)) >= 0", k="1") is None


def test_a_term_with_more_combinations_than_are_looked_at_is_unknown(
    told: Told, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 2)
    told.done("a", k="1", n=2)
    told.done("b", {"m": 1}, k="1")
    assert told.evaluated("sum(a, last(a).n) = 2", k="1") == (True, False)
    for _ in range(2):
        told.lost("a", k="1", n=2)
    assert told.evaluated("sum(b, last(a).n) = 2", k="1") == (None, True)


def test_many_unknown_rows_with_a_known_field_of_their_call(told: Told) -> None:
    told.done("a", {"o": [{"p": "1"}]}, k="1", n=2)
    told.lost("a", k="1", n=3)
    assert told.truth("sum(a.o.n) <= 100", k="1") is None
    assert told.truth("max(a.o.n) <= 3", k="1") is None
    assert told.truth("max(a.o.n) >= 2", k="1") is True
    assert told.truth("count(a.o.n) <= 2", k="1") is None
    assert told.truth("every a.o.n(it in 2 .. 3)", k="1") is True


def test_distinct_values(told: Told) -> None:
    assert told.truth("count(distinct(a.m)) <= 0.5", k="1") is True
    told.done("a", {"m": 1}, k="1")
    told.done("a", {"m": 1.0}, k="1")
    assert told.truth("count(distinct(a.m)) = 1", k="1") is True
    told.done("a", {"m": 2}, k="1", n=1)
    assert told.truth("count(distinct(a.m)) = 2", k="1") is True
    assert told.truth("count(distinct(a(n = 1).m)) in 1 .. 2", k="1") is True
    assert told.truth("count(distinct(a(n = 1).m)) = 1", k="1") is None
    told.done("a", {"m": "?"}, k="1")
    assert told.truth("count(distinct(a.m)) in 2 .. 3", k="1") is True
    assert told.truth("count(distinct(a.m)) = 2", k="1") is None
    told.done("a", {"m": "?"}, k="1")
    assert told.truth("count(distinct(a.m)) in 2 .. 4", k="1") is True
    assert told.truth("count(distinct(a.m)) in 2 .. 3", k="1") is None


def test_the_least_and_the_greatest(told: Told) -> None:
    assert told.truth("min(a.n) = null", k="1") is None
    told.lost("a", k="1", n=2)
    for text in ("max(a.n) = 2", "max(a.n) <= 2", "min(a.n) >= 2"):
        assert told.truth(text, k="1") is None  # perhaps missing
    told.done("a", k="1", n=3)
    assert told.truth("min(a.n) in 2 .. 3", k="1") is True
    assert told.truth("min(a.n) = 3", k="1") is None
    assert told.truth("max(a.n) = 3", k="1") is True
    told.lost("a", k="1", n=5)
    assert told.truth("max(a.n) in 3 .. 5", k="1") is True
    assert told.truth("max(a.n) = 5", k="1") is None
    assert told.truth("max(a.n) < 3", k="1") is False
    assert told.truth("min(a.n) > 3", k="1") is False


def test_an_unknown_value_is_an_unknown_number_in_min_and_max(told: Told) -> None:
    told.done("a", {"m": 3}, k="1")
    told.done("a", {"m": "?"}, k="1")
    assert told.truth("max(a.m) >= 3", k="1") is True
    assert told.truth("max(a.m) <= 3", k="1") is None
    assert told.truth("min(a.m) <= 3", k="1") is True
    assert told.truth("min(a.m) >= 3", k="1") is None
    assert told.truth("max(a.m) + 1 >= 4", k="1") is True
    assert told.truth("max(min(a.m), 1) >= 1", k="1") is True
    assert told.truth("max(1, min(a.m)) >= 1", k="1") is True
    assert told.truth("max(min(a.m), 1) <= 3", k="1") is True
    assert told.truth("min(min(a.m), 1) <= 1", k="1") is True
    assert told.truth("min(min(a.m), 1) >= -9", k="1") is None
    assert told.truth("min(a.m) - 1 > 2", k="1") is False
    assert told.truth('max(a(k = "2").m) >= 0', k="1") is None


def test_nulls_in_a_list_are_unknown_numbers() -> None:
    told = Told("tool x(l: list of number or null)")
    assert told.truth("max(l) >= 2", l=[2, None]) is True
    assert told.truth("max(l) <= 2", l=[2, None]) is None
    assert told.truth("max(l) = max(l)", l=[None]) is None
    told.done("x", l=[None])
    told.lost("x", l=[3])
    assert told.truth("max(x.l) >= 3", l=[]) is None
    assert told.truth("max(x.l) >= -9", l=[]) is None
    assert told.truth("max(x.l) = max(x.l)", l=[]) is None
    assert told.truth("min(max(x.l), 1) <= 1", l=[]) is True  # a number, if an unknown one
    told.lost("x", l=[None])
    assert told.truth("min(max(x.l), 1) <= 1", l=[]) is True
    maybe = Told("tool x(l: list of number or null)")
    maybe.lost("x", l=[None])
    maybe.lost("x", l=[3])
    assert maybe.truth("min(max(x.l), 1) <= 1", l=[]) is None
    assert told.truth("sum(l) = 2", l=[2, None]) is None
    assert told.truth("count(distinct(l)) = 2", l=[2, None]) is True


def test_the_least_of_times(told: Told) -> None:
    told.done("a", {"at": "1970-01-02T00:00:00Z"}, k="1")
    told.done("a", {"at": "1970-01-03T00:00:00Z"}, k="1")
    assert told.truth('min(a.at) = "1970-01-02"', k="1") is True
    assert told.truth('max(a.at) + 1 d = "1970-01-04"', k="1") is True
    assert told.truth("max(a.at) - min(a.at) = 24 h", k="1") is True


def test_rows_have_their_own_fields_and_those_of_their_call(told: Told) -> None:
    told.done("a", {"o": [{"p": "1", "q": 1}, {"p": "2"}]}, k="7", n=3)
    assert told.truth('a.o(p = "2", k = "7")', k="1") is True
    assert told.truth("every a.o(n = 3)", k="1") is True
    assert told.truth("count(a.o(q = null)) = 1", k="1") is True
    assert told.truth("sum(a.o.q) = 1", k="1") is True
    assert told.truth('last(a.o).p = "2" and last(a.o).k = "7"', k="1") is True
    assert told.truth("count(a.o.k) = 2", k="1") is True
    assert told.truth('last(last(a).o).p = "2"', k="1") is True
    told.done("a", {"o": 5}, k="8")
    assert told.truth('last(a.o).k = "7" | "8"', k="1") is True
    assert told.truth("count(a.o.k) >= 2", k="1") is True
    assert told.truth("count(a.o.k) <= 3", k="1") is None


# Pairs.


def test_pairs_are_elements_by_position() -> None:
    told = Told("tool x(l?: list of text, m?: list of text)")
    assert told.truth("every pairs(l, m)(left = right)", l=["1", "2"], m=["1", "2"]) is True
    assert told.truth("every pairs(l, m)(left = right)", l=["1", "2"], m=["2", "1"]) is False
    for text in ("every pairs(l, m)(left = right)", "pairs(l, m)(left = right)",
                 "no pairs(l, m)", "count(pairs(l, m)) >= 0"):  # fmt: skip
        assert told.truth(text, l=["1"], m=["1", "2"]) is None
        assert told.truth(text, l=["1"]) is None
    assert told.truth("count(pairs(l, m)) in 1 .. 1", l=["1"], m=["2"]) is True
    assert told.truth("every pairs(l, m)(left = right)") is True


# Sets of calls.


def test_sets_of_calls(told: Told) -> None:
    told.done("a", k="1", n=1)
    told.done("b", k="2")
    assert told.truth("count(a | b) = 2", k="1") is True
    assert told.truth('count(any - a) = 1 and (any - a)(k = "2")', k="1") is True
    assert told.truth("count(any - a(n = 1)) = 1", k="1") is True
    assert told.truth("count(any - a(n = 2)) = 2", k="1") is True
    assert told.truth("count(any - a(f)) in 1 .. 2", k="1") is True
    assert told.truth("count(any - a(f)) = 2", k="1") is None


# Rule 8: limits.

SHOP = """
given g?: text
given who from find.owner
tool find(k: text) gives (owner?: text, total?: number)
tool pay(k: text, n: number 0 .. 99, to?: text)
tool other(k: text)
"""


def test_a_limit_counts_the_call_being_decided(told: Told) -> None:
    told = Told(SHOP + "limit count(pay) <= 2")
    for _ in range(2):
        assert told.refused("pay", k="1", n=1) == []
        told.done("pay", k="1", n=1)
    assert told.refused("pay", k="1", n=1) == ["R202"]
    assert told.refused("other", k="1") == []


@pytest.mark.parametrize(("outcome", "counts"), [(LOST, True), (FAILED, False), (ANSWERED, False)])
def test_a_call_counts_from_its_decision_unless_it_failed(outcome: str, counts: bool) -> None:
    told = Told(SHOP + "limit count(pay) <= 1")
    at = told.open("pay", k="1", n=1)
    assert told.refused("pay", k="1", n=1) == ["R202"]
    told.later(at, outcome)
    assert told.refused("pay", k="1", n=1) == (["R202"] if counts else [])


def test_a_limit_of_a_sum_for_each_key() -> None:
    told = Told(SHOP + "limit sum(pay.n) per k <= 10 in session")
    told.done("pay", k="1", n=8)
    assert told.refused("pay", k="1", n=2) == []
    assert told.refused("pay", k="1", n=2.5) == ["R202"]
    assert told.refused("pay", k="2", n=10) == []
    told.done("pay", k="2", n=10)
    assert told.refused("pay", k="1", n=2) == []


def test_a_limit_with_a_filter_and_a_window() -> None:
    told = Told(SHOP + "limit count(pay(n > 5) within 1 h) <= 1 in session")
    told.done("pay", k="1", n=9)
    assert told.refused("pay", k="1", n=9) == ["R202"]
    assert told.refused("pay", k="1", n=5) == []
    told.done("pay", k="1", n=5)
    told.now = HOUR
    assert told.refused("pay", k="1", n=9) == ["R202"]
    told.now = HOUR + 1
    assert told.refused("pay", k="1", n=9) == []


def test_an_absent_key_is_a_key_of_its_own() -> None:
    told = Told(SHOP + "limit count(pay) per to <= 1 in session")
    told.done("pay", k="1", n=1)
    assert told.refused("pay", k="1", n=1) == ["R202"]
    assert told.refused("pay", k="1", n=1, to="1") == []
    told.done("pay", k="1", n=1, to="1")
    assert told.refused("pay", k="1", n=1, to="1") == ["R202"]
    assert told.refused("pay", k="1", n=1, to="2") == []


def test_a_call_with_an_unknown_key_counts_for_every_key() -> None:
    told = Told(SHOP + "limit sum(pay.n) per session.who <= 10 in session")
    told.done("pay", k="1", n=4)
    assert told.refused("pay", k="1", n=7) == ["R202"]
    told.done("find", {"owner": "ann"}, k="1")
    assert told.refused("pay", k="1", n=6) == []
    assert told.refused("pay", k="1", n=7) == ["R202"]
    told.done("pay", k="1", n=6)
    assert told.refused("pay", k="1", n=0) == []
    assert told.refused("pay", k="1", n=1) == ["R202"]


def test_a_call_with_an_unknown_key_is_held_to_the_bound_of_every_key() -> None:
    told = Told(SHOP + "limit sum(pay.n) per k, session.who <= 10 in session")
    told.done("pay", k="1", n=4)
    assert told.refused("pay", k="2", n=7) == ["R202"]
    told = Told(
        SHOP + 'limit sum(pay.n) per match k { "u": session.who, else: k } <= 10 in session'
    )
    told.done("pay", k="1", n=8)
    told.done("pay", k="2", n=3)
    assert told.refused("pay", k="u", n=3) == ["R202"]
    assert told.refused("pay", k="u", n=2) == []
    assert told.refused("pay", k="2", n=7) == []
    told.done("pay", k="u", n=1)
    assert told.refused("pay", k="2", n=7) == ["R202"]
    assert told.refused("pay", k="2", n=6) == []


def test_a_filter_that_is_unsure_counts_the_call() -> None:
    told = Told(SHOP + 'limit count(pay(to = "1")) <= 1')
    told.done("pay", k="1", n=1, to="2")
    assert told.refused("pay", k="1", n=1, to="1") == []
    told.done("pay", k="1", n=1)
    assert told.refused("pay", k="1", n=1, to="1") == ["R202"]
    assert told.refused("pay", k="1", n=1) == ["R202"]
    assert told.refused("pay", k="1", n=1, to="2") == []


def test_filter_and_key_of_a_limit_are_kept() -> None:
    told = Told(SHOP + 'limit count(pay(session.who = "ann")) <= 1')
    told.done("pay", k="1", n=1)  # unsure when it was decided
    told.done("find", {"owner": "ann"}, k="1")
    assert told.refused("pay", k="1", n=1) == ["R202"]
    told = Told(SHOP + 'limit count(pay(session.who = "ann")) <= 1')
    told.done("find", {"owner": "bob"}, k="1")
    told.done("pay", k="1", n=1)
    assert told.refused("pay", k="1", n=1) == []


def test_the_bound_of_a_limit_is_a_term_over_the_call_being_decided() -> None:
    told = Told(SHOP + "limit sum(pay.n) per k <= last(find(same k)).total in session")
    assert told.refused("pay", k="1", n=1) == ["R202"]
    told.done("find", {"total": 10}, k="1")
    assert told.refused("pay", k="1", n=10) == []
    assert told.refused("pay", k="1", n=11) == ["R202"]
    told.lost("find", k="1")
    assert told.refused("pay", k="1", n=1) == ["R202"]


def test_a_limit_across_sessions_counts_the_calls_of_all() -> None:
    core = core_of(SHOP + "limit count(pay within 1 h) per k <= 2 across sessions\n"
                   "limit count(pay) per k <= 2 in session")  # fmt: skip
    accounts: list[dict[int, list[meaning.Draw]]] = [{}, {}]
    one, other = Told(core, accounts), Told(core, accounts)
    one.done("pay", k="1", n=1)
    other.done("pay", k="1", n=1)
    for told in (one, other):
        assert [refusal.statement for refusal in told.refusals("pay", k="1", n=1)] == [0]
        assert told.refused("pay", k="2", n=1) == []
        told.now = HOUR + 1
        assert told.refused("pay", k="1", n=1) == []


def test_other_calls_answers_and_learned_attributes_are_not_counted_by() -> None:
    for text in ("limit count(pay(no find)) <= 1", "limit count(find(owner = null)) <= 1",
                 "limit count(pay) per session.who <= 1 across sessions",
                 'limit count(pay(session.who = "a")) <= 1 across sessions',
                 "limit sum(find.total) <= 1", "limit sum(pay.to) <= 1"):  # fmt: skip
        with pytest.raises(Fault) as fault:
            Told(SHOP + text)
        assert fault.value.code in ("TCC225", "TCC204")
    for text in ("limit count(pay) per k <= 1", "limit count(pay within 1 h) <= 1"):
        with pytest.raises(Fault) as fault:
            Told(SHOP + text)
        assert fault.value.code == "TCC230"


def test_a_bound_that_was_cut_refuses_with_r207(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "BOUNDS", (1, 1, 1))
    told = Told(SHOP + "limit count(pay) <= count(find)")
    told.done("find", k="1")
    assert told.refused("pay", k="1", n=1) == []
    told.done("pay", k="1", n=1)
    told.done("find", k="1")
    assert told.refused("pay", k="1", n=1) == ["R207"]


def test_a_sum_of_terms_that_are_not_sure_has_their_least_and_their_most(told: Told) -> None:
    told.done("a", k="1")
    told.lost("b", k="1")
    assert told.truth("sum(a, count(b)) <= 1", k="1") is True
    assert told.truth("sum(a, count(b)) >= 1", k="1") is None
    assert told.truth("sum(a, count(b)) <= 0", k="1") is None


# Learned attributes.


def test_an_attribute_is_learned_from_the_first_known_value() -> None:
    told = Told(SHOP + "tool y(k: text)\ngiven first from find.owner | other.k")
    assert told.truth('session.who = "ann"', "y", k="1") is None
    assert told.truth("session.who = null", "y", k="1") is None
    first = told.open("find", k="1")
    told.done("find", {}, k="1")
    told.done("find", {"owner": 5}, k="1")
    told.failed("find", k="1")
    assert told.truth("session.who = null", "y", k="1") is None
    told.done("find", {"owner": "bob"}, k="1")
    assert told.truth('session.who = "bob"', "y", k="1") is True
    told.later(first, DONE, {"owner": "ann"})
    assert told.truth('session.who = "bob"', "y", k="1") is True
    assert told.truth('session.first = "bob"', "y", k="1") is True


def test_an_attribute_is_learned_from_the_field_of_any_of_its_tools() -> None:
    told = Told(SHOP + "tool y(k: text)\ngiven first from find.owner | other.k")
    told.done("pay", k="0", n=1)
    told.done("other", k="7")
    assert told.truth('session.first = "7"', "y", k="1") is True
    assert told.truth('session.who = "7"', "y", k="1") is None


def test_an_attribute_is_learned_from_the_field_of_a_call_that_is_named_first() -> None:
    told = Told(SHOP + "tool y(k: text)\ngiven first from find.owner | find.k")
    told.done("find", {"owner": "bob"}, k="1")
    assert told.truth('session.first = "bob"', "y", k="1") is True


def test_nothing_is_learned_from_a_call_that_is_not_done() -> None:
    told = Told(SHOP + "tool y(k: text)\ngiven first from other.k")
    for outcome in (FAILED, ANSWERED, LOST):
        told.add("other", outcome, k="7")
    assert told.truth('session.first = "7"', "y", k="1") is None


def test_a_value_that_is_not_listed_is_not_learned() -> None:
    told = Told("tool x\ntool s gives (v: p | q | *)\ngiven g from s.v")
    told.done("s", {"v": "z"})
    assert (
        told.truth(
            "session.g = p",
        )
        is None
    )
    told.done("s", {"v": "q"})
    assert told.truth("session.g = q") is True


# Rule 9: obligations.

OWE = """
tool book(k: text) gives (ref?: text, paid?: flag)
tool pay(k: text, ref?: text) gives (ok?: flag)
tool other(k: text)
"""


def test_an_obligation_is_open_until_a_later_call_is_done() -> None:
    told = Told(OWE + "after book owe pay(same k)")
    assert told.unmet() == []
    told.done("pay", k="1")
    told.done("book", k="1")
    assert told.unmet() == [0]
    told.done("pay", k="2")
    assert told.unmet() == [0]
    at = told.open("pay", k="1")
    assert told.unmet() == [0]
    told.later(at, LOST)
    assert told.unmet() == [0]
    told.later(at, DONE)
    assert told.unmet() == []
    assert told.refused("book", k="1") == []


@pytest.mark.parametrize(
    ("outcome", "is_open"), [(LOST, True), ("open", True), (FAILED, False), (ANSWERED, False)]
)
def test_calls_that_may_be_in_the_first_set_open_an_obligation(outcome: str, is_open: bool) -> None:
    told = Told(OWE + "after book(paid != true) owe pay(same k, ok)")
    told.add("book", outcome, k="1")
    assert told.unmet() == ([0] if is_open else [])


def test_an_error_that_was_read_pays_nothing() -> None:
    told = Told(OWE + "after book owe pay")
    told.done("book", k="1")
    told.answered("pay", k="1")
    assert told.unmet() == [0]
    told.done("pay", k="1")
    assert told.unmet() == []


def test_an_unknown_answer_is_not_the_same_as_an_absent_one() -> None:
    told = Told(OWE + "after book owe pay(same ref)")
    told.done("book", {"ref": 5}, k="1")  # a number is no text
    told.done("pay", k="1")
    assert told.unmet() == [0]
    told = Told(OWE + "after book owe pay(same ref)")
    told.done("book", {}, k="1")
    told.done("pay", k="1")
    assert told.unmet() == []


def test_the_filters_of_an_obligation_read_what_is_known_now() -> None:
    told = Told(OWE + "after book(paid != true) owe pay(ref = this.ref, ok)")
    at = told.open("book", k="1")
    assert told.unmet() == [0]
    told.later(at, DONE, {"paid": True})
    assert told.unmet() == []
    told.later(at, DONE, {"paid": False, "ref": "r"})
    told.done("pay", {"ok": True}, k="1", ref="q")
    assert told.unmet() == [0]
    told.done("pay", {}, k="1", ref="r")
    assert told.unmet() == [0]
    told.done("pay", {"ok": True}, k="1", ref="r")
    assert told.unmet() == []


def test_overdue_obligations_refuse_calls_of_the_first_set() -> None:
    told = Told(OWE + 'after book(k != "free") owe pay(same k) within 1 h')
    told.done("book", k="1")
    told.now = HOUR
    assert told.refused("book", k="2") == []
    told.now = HOUR + 1
    assert told.refused("book", k="2") == ["R208"]
    assert told.refused("book", k="free") == []
    assert told.refused("pay", k="1") == []
    assert told.refused("other", k="1") == []
    debts = told.policy.debts(told.courses[0].history, told.now)
    assert [(debt.statement, debt.call.at, debt.due_ms) for debt in debts] == [(0, 0, HOUR)]
    told.done("pay", k="1")  # a late call pays, too
    assert told.refused("book", k="2") == []
    assert told.unmet() == []


def test_an_obligation_without_a_deadline_is_never_overdue() -> None:
    told = Told(OWE + "after book owe pay")
    told.done("book", k="1")
    told.now = 1000 * DAY
    assert told.refused("book", k="1") == []
    assert told.unmet() == [0]


def test_what_ends_a_session_is_named_in_order() -> None:
    told = Told(OWE + "finally require pay\nafter book owe pay\nfinally require no other\n"
                "before other require no pay")  # fmt: skip
    assert told.unmet() == [0]
    told.done("book", k="1")
    assert told.unmet() == [0, 1]
    told.lost("other", k="1")
    assert told.unmet() == [0, 1, 2]
    told.done("pay", k="1")
    assert told.unmet() == [2]


# Statements.


def test_a_clause_applies_unless_its_filter_is_surely_false() -> None:
    told = Told(BASE + 'before x(n = 1) require k = "1"\nforbid x(f)')
    assert told.refused("x", k="2", n=2, f=False) == []
    assert told.refused("x", k="2", n=1, f=False) == ["R202"]
    assert told.refused("x", k="2", f=False) == ["R202"]
    assert told.refused("x", k="1", f=False) == []
    assert told.refused("x", k="1", f=True) == ["R202"]
    assert told.refused("x", k="1") == ["R202"]
    assert [refusal.statement for refusal in told.refusals("x", k="2")] == [0, 1]
    assert told.refused("a", k="2") == []


def test_a_clause_needs_a_true_condition() -> None:
    told = Told(BASE + "before x require n = 1\nbefore any require no b\nforbid a")
    assert told.refused("x", k="1") == ["R202"]
    assert told.refused("x", k="1", n=1) == []
    assert told.refused("a", k="1") == ["R202"]
    told.lost("b", k="1")
    assert told.refused("x", k="1", n=1) == ["R202"]


def test_a_question_to_a_person_applies_like_a_clause() -> None:
    told = Told(BASE + 'before x(n > 5) ask "boss" within 1 h')
    assert told.refused("x", k="1", n=6) == ["R211"]
    assert told.refused("x", k="1") == ["R211"]
    assert told.refused("x", k="1", n=5) == []


def test_a_set_written_with_any_has_the_tools_that_have_the_fields() -> None:
    told = Told(BASE + 'tool plain\nforbid any(not k = "1")')
    assert told.refused("plain") == []
    assert told.refused("x", k="1") == []
    assert told.refused("x", k="2") == ["R202"]


def test_statements_over_many_tools() -> None:
    names = [f"t{at}" for at in range(100)]
    tools = "".join(f"tool {name}\n" for name in names)
    told = Told(tools + "forbid t7\nbefore any require no t3\nbefore any - t5 require no t4")
    assert [told.refused(name) for name in ("t7", "t5", "t6")] == [["R202"], [], []]
    told.done("t4")
    assert [told.refused(name) for name in ("t7", "t5", "t6")] == [["R202"] * 2, [], ["R202"]]
    told.done("t3")
    found = [[one.statement for one in told.refusals(name)] for name in ("t7", "t5", "t6")]
    assert found == [[0, 1, 2], [1], [1, 2]]


def test_only_limits_draw() -> None:
    told = Told(BASE + "before x require no b\nlimit count(x) <= 3\nlimit count(x | a) <= 3")
    history = told.courses[0].history
    for tool, limits in (("x", {1, 2}), ("a", {2}), ("b", set())):
        at = told.open(tool, k="1")
        assert told.policy.draws(history, history.calls[at], 0).keys() == limits


def test_arguments_of_another_type_are_no_call(told: Told) -> None:
    with pytest.raises(Rejected):
        told.refused("x", k=5)
    with pytest.raises(Rejected):
        told.refused("x")


# Rule 12: bounds of work.


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "BOUNDS", (3, 2, 1))


@pytest.mark.usefixtures("few")
def test_a_source_looks_at_its_latest_candidates(told: Told) -> None:
    told.done("a", k="1", n=9)
    for _ in range(2):
        told.done("a", k="1", n=1)
    assert told.evaluated("a(n > 8)", k="1") == (True, False)
    told.done("a", k="1", n=1)
    assert told.evaluated("a(n > 8)", k="1") == (None, True)
    assert told.evaluated("a(n < 2)", k="1") == (True, True)
    assert told.evaluated("every a(n < 2)", k="1") == (None, True)
    assert told.evaluated("count(a) in 3 .. 4", k="1") == (True, True)
    assert told.evaluated("count(a) = 4", k="1") == (None, True)
    assert told.evaluated("sum(a.n) in 3 .. 12", k="1")[0] is True
    assert told.evaluated("last(a).n = 1", k="1") == (True, True)
    assert told.evaluated("last(a(n > 8)).n = 9", k="1") == (None, True)
    assert told.evaluated("every a(n > 2)", k="1") == (False, True)


@pytest.mark.usefixtures("few")
def test_failed_calls_are_candidates_and_other_keys_are_not(told: Told) -> None:
    told.done("a", k="1")
    for k in "2345":
        told.done("a", k=k)
    assert told.evaluated("a(same k)", k="1") == (True, False)
    assert told.evaluated("a(k = this.k)", k="1") == (True, False)
    assert told.evaluated('a(k = "1")', k="1") == (True, False)
    assert told.evaluated("a(k = this.k or k = this.k)", k="1") == (None, True)
    for _ in range(2):
        told.failed("a", k="1")
    assert told.evaluated("a(same k)", k="1") == (True, False)
    told.answered("a", k="1")
    assert told.evaluated("a(same k)", k="1") == (None, True)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("kind", "value", "other"),
    [
        ("text", "1", "2"), ("number", 1, 2), ("flag", True, False), ("json", [1], [2]),
        ("time", "2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z"), ("text or null", None, "2"),
        ("text", None, "2"), ("list of text", ["1"], ["1", "2"]), ("1 | 2", 1, 2),
        ("list of object (p: text)", [{"p": "1"}], None),
        ("list of object (p: text) or null", [None, {"p": "1"}], None),
    ],
)  # fmt: skip
def test_arguments_of_every_type_are_keys_but_records(
    kind: str, value: object, other: object
) -> None:
    told = Told(f"tool x(v?: {kind})\ntool a(v?: {kind})")
    is_key = "object" not in kind
    absent = value is None and kind == "text"
    arguments = {} if absent else {"v": value}
    told.done("a", **arguments)
    for _ in range(3):
        told.done("a", **({} if other is None else {"v": other}))
    assert told.evaluated("a(same v)", **arguments) == ((True, False) if is_key else (None, True))


@pytest.mark.usefixtures("few")
def test_an_absent_side_leaves_the_other_keys(told: Told) -> None:
    told.done("a", k="1", n=1)
    for _ in range(3):
        told.done("a", k="1")
    assert told.evaluated("a(same n)", k="1", n=1) == (True, False)
    assert told.evaluated("a(n = this.n)", k="1", n=1) == (None, True)
    told.done("a", k="2")
    for text in ("a(n = this.n, k = this.k)", "a(n = this.n, same k)"):
        assert told.evaluated(text, k="2") == (None, False)
    told = Told(BASE)
    told.done("a", k="1")
    for _ in range(3):
        told.done("a", k="1", f=True)
    assert told.evaluated("a(n = this.n, same f)", k="1") == (None, False)


@pytest.mark.usefixtures("few")
def test_calls_outside_the_window_are_no_candidates(told: Told) -> None:
    for _ in range(3):
        told.done("a", k="1")
    told.now = HOUR
    told.done("a", k="1")
    assert told.evaluated('every a(k = "1") within 30 m', k="1") == (True, False)
    assert told.evaluated('every a(k = "1") within 1 h', k="1") == (None, True)


@pytest.mark.usefixtures("few")
def test_levels_of_sources_lower_the_bound(told: Told) -> None:
    told.done("b", {"m": 1}, k="1")
    told.done("a", k="1")
    for text, bound in (("no a(n = 1, n = null)", 3), ("no a(no b)", 2), ("no a(no b(no x))", 1)):
        one = Told(BASE)
        one.done("b", k="1")
        for at in range(4):
            assert one.evaluated(text, k="1")[1] == (at > bound), (text, at)
            one.done("a", k="1")
    told.done("b", {"m": 1}, k="1")
    assert told.evaluated("a(no b(m = 2))", k="1") == (True, False)
    told.done("b", {"m": 1}, k="1")
    assert told.evaluated("a(no b(m = 2))", k="1") == (None, True)
    assert told.evaluated("no b(m = 2)", k="1") == (True, False)


@pytest.mark.usefixtures("few")
def test_elements_of_a_list_beyond_the_bound_are_maybe_elements(told: Told) -> None:
    assert told.evaluated('l(it = "1")', k="1", l=["1", "2", "3"]) == (True, False)
    assert told.evaluated('l(it = "1")', k="1", l=["1", "2", "3", "4"]) == (None, True)
    assert told.evaluated('l(it = "4")', k="1", l=["1", "2", "3", "4"]) == (True, True)
    told.done("a", {"l": ["1"]}, k="1")
    told.done("a", {"l": ["2", "3"]}, k="1")
    assert told.evaluated('a.l(it = "1")', k="1") == (True, False)
    told.done("a", {"l": ["4"]}, k="1")
    assert told.evaluated('a.l(it = "1")', k="1") == (None, True)
    assert told.evaluated('a.l(it = "2")', k="1") == (True, True)
    told.done("a", {"l": []}, k="1")
    assert told.evaluated('a.l(it = "2")', k="1") == (True, True)
    told.lost("a", k="1")
    assert told.evaluated('a.l(it = "4")', k="1") == (None, True)
    assert told.evaluated('pairs(l, l)(left = "1")', k="1", l=["1", "2", "3", "4"]) == (None, True)
    assert told.evaluated('pairs(l, l)(left = "2")', k="1", l=["1", "2", "3", "4"])[0] is True


@pytest.mark.usefixtures("few")
def test_rows_count_even_if_they_are_unknown_or_absent(told: Told) -> None:
    for _ in range(3):
        told.lost("a", k="1")
    assert told.evaluated("no a.m(it = 1)", k="1") == (None, False)
    assert told.evaluated("every a.m(1 = 1)", k="1") == (True, False)
    told.done("a", {}, k="1")
    assert told.evaluated("every a.m(1 = 1)", k="1") == (None, True)


@pytest.mark.usefixtures("few")
def test_what_a_part_of_a_union_does_not_look_at_is_cut(told: Told) -> None:
    told.done("a", {"m": 1}, k="1")
    for _ in range(2):
        told.done("a", {}, k="1")
    assert told.evaluated("every (a.m | b.m)(1 = 1)", k="1") == (True, False)
    told.done("a", {}, k="1")
    assert told.evaluated("every (a.m | b.m)(1 = 1)", k="1") == (None, True)
    assert told.evaluated("every (b.m | a.m)(it = 2)", k="1") == (None, True)


def test_unknown_lists_inside_unknown_lists_count_with_the_product(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for bound, is_cut in ((8, True), (9, False)):
        monkeypatch.setattr(meaning, "BOUNDS", (bound, 1, 1))
        told = Told("tool x\ntool a gives (o: list max 3 of (l: list max 3 of text))")
        told.lost("a")
        assert told.evaluated('a.o.l(it = "1")')[1] == is_cut
        told = Told("tool x\ntool a gives (o: list max 4 of (l: list max 2 of text))")
        told.lost("a")
        assert told.evaluated('a.o.l(it = "1")') == (None, False)
        assert told.evaluated("a.o") == (None, False)


@pytest.mark.usefixtures("few")
def test_a_refusal_by_a_cut_source_is_r207() -> None:
    told = Told(BASE + "before x require no a(n < 2)\nforbid b(a(n < 2))")
    for _ in range(3):
        told.done("a", k="1", n=2)
    assert (told.refused("x", k="1"), told.refused("b", k="1")) == ([], [])
    told.done("a", k="1", n=2)
    assert (told.refused("x", k="1"), told.refused("b", k="1")) == (["R207"], ["R207"])


@pytest.mark.usefixtures("few")
def test_a_sum_with_sources_does_not_look_at_cut_elements(told: Told) -> None:
    told.done("b", {"m": 1}, k="1")
    for _ in range(3):
        told.done("a", k="1", n=1)
    assert told.evaluated("sum(a, n) = 3", k="1") == (True, False)
    assert told.evaluated("sum(a, n * last(b).m) >= 0", k="1") == (None, True)


def test_the_bounds_are_powers_of_two() -> None:
    assert meaning.MAX_STEPS == 2**20
    assert meaning.BOUNDS == (2**20, 2**10, 2**7)
    assert meaning.MAX_COMBINATIONS == 2**10


# Totals.


def prices() -> Told:
    """Calls with prices by their listed fields."""
    core = core_of("""
    tool buy(k: text, size: small | big, gift?: yes) gives (tier: basic | gold | *)
    tool look(k: text)
    limit price <= 100
    limit depth <= 4
    """)
    calls = []
    for size in range(2):
        for gift in range(2):
            for tier in range(3):
                price = 10 * (1 + size) + gift + (0, 5, 30)[tier]
                calls.append(call(0, (size, gift, tier), price))
    return Told(replace(core, calls=(*calls, call(1, (), 7))))


def call(tool: int, values: tuple[int, ...], price: int) -> model.Call:
    return model.Call(
        text=f"{tool}{values}", tool=tool, values=values, cost_low=0, cost_high=0, price=price,
        latency=0, epsilon=0,
    )  # fmt: skip


def test_a_total_takes_the_least_of_the_call_being_decided_and_the_most_of_others() -> None:
    told = prices()
    look = Call("look", 9, 0, {"k": ("s", "1")})
    total = lambda: told.policy.total(0, told.courses[0].history, look) - 7  # noqa: E731
    at = told.open("buy", k="1", size="big", gift="yes")
    assert total() == 51
    told.later(at, DONE, {"tier": "gold"})
    assert total() == 26
    told.later(at, DONE, {"tier": "other"})
    assert total() == 51
    told.later(at, DONE, {"tier": None})
    assert total() == 51
    told.later(at, FAILED)
    assert total() == 0
    told.later(at, ANSWERED)
    assert total() == 0
    told.later(at, DONE, {"tier": "gold"})
    told.lost("buy", k="1", size="small")
    assert total() == 66
    told.done("look", k="1")
    assert total() == 73
    assert told.refused("buy", k="1", size="big", gift="yes") == []


def test_calls_that_no_plan_has_cost_nothing() -> None:
    told = Told("tool x(k: text)\nlimit price <= 0\nlimit cost <= 0.5\nlimit latency <= 0")
    told.done("x", k="1")
    assert told.refused("x", k="1") == []


def test_costs_are_in_nano_units_and_take_the_high_end() -> None:
    core = core_of("tool x(k: text)\nlimit cost <= 0.5\nlimit epsilon <= 3")
    one = replace(call(0, (), 0), cost_low=1, cost_high=250_000_000, epsilon=10**9)
    told = Told(replace(core, calls=(one,)))
    assert told.refused("x", k="1") == []
    told.done("x", k="1")
    assert told.refused("x", k="1") == []
    told.done("x", k="1")
    assert told.refused("x", k="1") == ["R203"]


def test_totals_refuse_with_r203() -> None:
    told = prices()
    told.done("buy", {"tier": "other"}, k="1", size="big")
    told.done("buy", {"tier": "basic"}, k="1", size="big")
    assert told.refused("buy", k="1", size="big") == []
    told.done("buy", {"tier": "basic"}, k="1", size="small")
    assert told.refused("buy", k="1", size="big") == []
    assert told.refused("buy", k="1", size="big", gift="yes") == ["R203"]
    at = told.done("look", k="1")
    assert told.refused("look", k="1") == ["R203"]
    told.later(at, FAILED)
    assert told.refused("look", k="1") == []


def test_lets_are_checked_whether_or_not_they_are_used() -> None:
    with pytest.raises(Fault) as fault:
        Told(BASE + "let wrong = last(a)(k = nobody)")
    assert fault.value.code in ("TCC202", "TCC225")

"""What conditions and statements mean, fact by fact."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.policy import meaning
from tcc_certs.policy.history import DONE, Call, ListHistory
from tcc_certs.policy.kinds import Fault
from tcc_certs.values.places import NONE, UNKNOWN
from tcc_certs.values.zones import Zone
from tests.certs.policy.told import Told
from tests.oracle_meaning.written import core_of

BASE = """
tool x(k: text, n?: number)
tool a(k: text, n?: number) gives (r?: text, m?: number)
"""


# Filters on `any`.


def test_every_of_any_is_false_for_a_call_without_the_field() -> None:
    told = Told(BASE + "tool plain")
    assert told.truth('every any(k = "1")', k="1") is True
    told.done("a", k="1")
    assert told.truth('every any(k = "1")', k="1") is True
    told.done("plain")
    assert told.truth('every any(k = "1")', k="1") is False
    assert told.truth('any(k = "2")', k="1") is False
    assert told.truth('any(not k = "1")', k="1") is False


def test_a_key_of_an_earlier_filter_is_an_argument_of_all_tools() -> None:
    told = Told(BASE + "tool c gives (k: text)")
    told.done("c", {"k": "1"})
    told.done("a", {"r": "2"}, k="1")
    assert told.truth('every any(k = "1")(r = "2")', k="1") is False
    assert told.truth('every any(k = "2")(r = "2")', k="1") is True


# Values that `*` admits.

STATUS = BASE + "tool s gives (status: open | closed | *, same_again: open | closed | *)"


def test_an_unlisted_value_differs_from_every_listed_value() -> None:
    told = Told(STATUS)
    told.done("s", {"status": "lost", "same_again": "lost"})
    assert told.truth("last(s).status = open", k="1") is False
    assert told.truth("last(s).status != open | closed", k="1") is True
    assert told.truth("match last(s).status { open: 1, else: 2 } = 2", k="1") is True


def test_nothing_else_is_known_of_an_unlisted_value() -> None:
    told = Told(STATUS)
    told.done("s", {"status": "lost", "same_again": "lost"})
    told.done("s", {"status": None, "same_again": "lost"})
    assert told.truth("last(s).status = last(s).same_again", k="1") is None
    assert told.truth("last(s).status = null", k="1") is None
    assert told.truth("count(distinct(s.status)) = 2", k="1") is None
    assert told.truth("count(distinct(s.status)) in 0 .. 2", k="1") is True
    assert told.truth('last(s).status ~ ".*"', k="1") is None
    assert told.truth("last(s).status = k", k="other") is None
    assert told.truth("k = last(s).status", k="other") is None
    assert told.truth("k = last(s).status", k="open") is False
    told.done("s", {"status": "open", "same_again": "lost"})
    assert told.truth("last(s).status = last(s).same_again", k="1") is False
    assert told.truth("last(s).same_again = last(s).status", k="1") is False


def test_an_unlisted_value_is_not_null_where_null_is_listed() -> None:
    told = Told("tool x\ntool s gives (v: null | p | *)")
    told.done("s", {"v": "lost"})
    assert told.truth("last(s).v = null") is False
    told.done("s", {"v": None})
    assert told.truth("last(s).v = null") is True


def test_an_unlisted_value_has_no_order() -> None:
    told = Told(BASE + "tool s gives (v: 1 | 2 | *)")
    told.done("s", {"v": 3})
    for text in ("last(s).v < 2", "last(s).v >= 0", "2 > last(s).v", "last(s).v + 1 = 4",
                 "max(s.v) <= 3", "min(last(s).v, 1) = 1", "sum(s.v) >= 0"):  # fmt: skip
        assert told.truth(text, k="1") is None
    assert told.truth("last(s).v = 2", k="1") is False
    assert told.truth("last(s).v = 3 - 1", k="1") is False
    assert told.truth("last(s).v = count(s) + count(x)", k="1") is False
    told.lost("x", k="1")
    assert told.truth("last(s).v = count(x)", k="1") is None


def test_records_with_an_unlisted_value_are_not_surely_equal() -> None:
    told = Told(BASE + "tool o gives (r: object (s: open | *, n: number, m?: text))")
    told.done("o", {"r": {"s": "lost", "n": 1}})
    told.done("o", {"r": {"s": "lost", "n": 1}})
    told.done("o", {"r": {"s": "open", "n": 3}})
    told.done("o", {"r": {"s": "open", "n": 3}})
    told.done("o", {"r": {"s": "lost", "n": 2}})
    assert told.truth("last(o(r.n = 1)).r in o(r.n = 1).r", k="1") is None
    assert told.truth("last(o(r.n = 1)).r in o(r.n = 2).r", k="1") is False
    assert told.truth("last(o(r.s = open)).r in o(r.s = open).r", k="1") is True


def test_records_are_equal_whatever_the_order_of_their_members() -> None:
    told = Told("tool x(r: object (p: text, q: text))\ntool a(r: object (q: text, p: text))")
    told.done("a", r={"p": "1", "q": "2"})
    assert told.truth("a(same r)", r={"p": "1", "q": "2"}) is True
    told = Told("""
    tool x(l: list of object (p: text, q: text))
    tool a(l: list of object (q: text, p: text))
    """)
    told.done("a", l=[{"p": "1", "q": "2"}])
    assert told.truth("a(same l)", l=[{"p": "1", "q": "2"}]) is True
    assert told.truth("a(same l)", l=[{"p": "2", "q": "2"}]) is False
    told = Told("tool x(r: object (p: text, q: text))\ntool a(r: object (q: text, p: text))")
    told.done("a", r={"p": "1", "q": "2"})
    assert told.truth("a(same r)", r={"p": "2", "q": "2"}) is False


def test_records_of_types_with_other_members_are_not_surely_different() -> None:
    told = Told("tool x(r: object (p: text))\ntool a(r: object (p: text, q?: text))")
    told.done("a", r={"p": "1"})
    assert told.truth("a(same r)", r={"p": "1"}) is None


def test_lists_are_equal_element_by_element() -> None:
    told = Told("tool x(l: list of text)\ntool a(l: list of text)")
    told.done("a", l=["1", "2"])
    assert told.truth("a(same l)", l=["1", "2"]) is True
    assert told.truth("a(same l)", l=["2", "1"]) is False
    assert told.truth("a(same l)", l=["1"]) is False


# Pairs.

PAIRS = """
given g: list of text
given none: list of text
tool x(k: text)
tool a gives (l?: list of text)
"""


def test_pairs_of_an_unknown_list_may_be_of_different_lengths() -> None:
    told = Told(PAIRS, g=["1"], none=[])
    for text in ("last(a).l, session.none", "session.none, last(a).l"):
        assert told.truth(f"every pairs({text})(1 = 1)", k="1") is None
    at = told.lost("a")
    assert told.truth("every pairs(last(a).l, session.g)(1 = 1)", k="1") is None
    assert told.truth("no pairs(last(a).l, session.g)(1 = 2)", k="1") is None
    told.later(at, DONE, {"l": 5})
    for text in ("last(a).l, session.none", "session.none, last(a).l"):
        assert told.truth(f"every pairs({text})(1 = 1)", k="1") is None
    told.later(at, DONE, {"l": ["1", "2"]})
    assert told.truth("every pairs(last(a).l, session.g)(1 = 1)", k="1") is None
    told.later(at, DONE, {"l": ["1"]})
    assert told.truth("every pairs(last(a).l, session.g)(1 = 1)", k="1") is True
    assert told.truth("pairs(last(a).l, session.g)(left != right)", k="1") is False


# Words.


def test_a_parameter_stands_for_the_element_that_it_is_given() -> None:
    text = """
    let holds(c) = every this.to(it in c.emails)
    tool x(to: list of text)
    tool d(k: text) gives (emails: list of text)
    """
    told = Told(text)
    told.done("d", {"emails": ["p", "q"]}, k="1")
    assert told.truth("d(holds(it))", to=["p", "q"]) is True
    assert told.truth("d(holds(it))", to=["p", "z"]) is False


def test_flags_are_values_of_a_comparison() -> None:
    told = Told("tool x(p: flag, q: flag)")
    assert told.truth("p = q | true", p=True, q=False) is True
    assert told.truth("p = q | true", p=False, q=True) is False
    assert told.truth("p != q | true", p=False, q=True) is True


def test_a_member_that_only_some_records_declare_cannot_be_named() -> None:
    told = Told("""
    tool x(k: text)
    tool a gives (r: object (p: text, q: text), l: list of (p: text))
    tool b gives (r: object (q: text, s: text), l: list of (q: text))
    """)
    told.done("b", {"r": {"q": "1", "s": "1"}, "l": []})
    assert told.truth('(a | b)(r.q = "1")', k="1") is True
    for text in ("(a | b)(r.p = null)", "(a | b).l(p = null)", "(a.r | b.r)(s = null)"):
        with pytest.raises(Fault) as fault:
            told.truth(text, k="1")
        assert fault.value.code in ("TCC202", "TCC204")


# Bounds of work (rule 12).

LISTS = """
tool x(k: text)
tool a(k: text, n?: number) gives (r?: text, l?: list max 3 of text,
  m?: list max 3 of (t: text, l: list max 3 of text))
tool b(k: text) gives (l: list max 3 of text)
"""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "BOUNDS", (4, 3, 2))


@pytest.mark.usefixtures("small")
def test_a_last_element_does_not_lower_the_bound_of_other_sources() -> None:
    told = Told(LISTS)
    told.done("b", {"l": ["1"]}, k="1")
    for _ in range(4):
        told.done("a", {"r": "1"}, k="1")
    whole = 'every a(r = "1")'
    assert told.evaluated(whole, k="1") == (True, False)
    inside = f"every last(b).l(it in b.l) and {whole}"
    assert told.evaluated(inside, k="1") == (True, False)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    "inside", ["a since b(no x)", "last(a(no x)).l", "pairs(last(a(no x)).l, last(b).l)"]
)
def test_levels_of_sources_count_those_of_marks_and_of_lists(inside: str) -> None:
    told = Told(LISTS)
    for _ in range(3):
        told.done("a", {"r": "1"}, k="1")
    assert told.evaluated(f"no a(no {inside})", k="1")[1]
    with pytest.raises(Fault) as fault:
        told.truth(f"no a(no a(no {inside}))", k="1")
    assert fault.value.code == "TCC225"


@pytest.mark.usefixtures("small")
def test_an_unknown_list_counts_with_its_maximum_in_a_union() -> None:
    told = Told(LISTS)
    told.done("b", {"l": ["9"]}, k="1")
    told.done("a", {"l": ["1"]}, k="1")
    at = told.lost("a", k="1")
    assert told.evaluated('(a.l | b.l)(it = "9")', k="1") == (None, True)
    told.later(at, DONE, {"l": ["1", "1"]})
    assert told.evaluated('(a.l | b.l)(it = "9")', k="1") == (True, False)
    told.later(at, DONE, {"l": ["1", "1", "1"]})
    assert told.evaluated('(a.l | b.l)(it = "9")', k="1") == (None, True)


@pytest.mark.usefixtures("small")
def test_an_unknown_list_counts_with_its_maximum_for_each_list_inside() -> None:
    told = Told(LISTS)
    told.done("a", {"m": [{"t": "1", "l": ["9"]}]}, k="1")
    at = told.lost("a", k="1")
    assert told.evaluated('a.m.l(it = "9")', k="1") == (None, True)
    told.later(at, DONE, {"m": [{"t": "1", "l": ["1", "1", "1"]}]})
    assert told.evaluated('a.m.l(it = "9")', k="1") == (True, False)
    told.later(at, DONE, {"m": [{"t": "1", "l": ["1", "1"]}] * 2})
    assert told.evaluated('a.m.l(it = "9")', k="1") == (None, True)


@pytest.mark.usefixtures("small")
def test_an_unknown_list_is_cut_if_it_may_have_more_elements_than_are_looked_at() -> None:
    told = Told(LISTS)
    at = told.lost("b", k="1")
    every = "every last(b).l(no a(no a))"
    assert told.evaluated(every, k="1") == (None, True)
    told.later(at, DONE, {"l": ["1", "1", "1"]})
    assert told.evaluated(every, k="1") == (None, True)
    told.later(at, DONE, {"l": ["1", "1"]})
    assert told.evaluated(every, k="1") == (True, False)
    assert told.truth("every last(b).l(no a)", k="1") is True


# Sums.


def test_a_sum_of_a_number_with_an_open_end_is_unknown() -> None:
    for of in ("min", "max"):
        told = Told(BASE)
        told.done("a", {"m": 3}, k="1")
        told.open("a", k="1")
        assert told.truth(f"sum(x, {of}(a.m)) = 0", k="1") is True
        told.done("x", k="1")
        assert told.truth(f"sum(x, {of}(a.m)) in -9 .. 9", k="1") is None


# Bounds of limits.


def bound_of(told: Told, number: int = 0) -> list[Any]:
    """The bound of a limit for a call of `x`, in both forms of a history."""
    call = Call("x", 9, 0, {"k": ("s", "1"), "n": NONE})
    return [told.policy.bound(number, course.history, call, 0) for course in told.courses]


def test_the_bound_of_a_limit_is_the_least_value_of_its_term() -> None:
    text = f"{BASE}limit count(x) <= last(a).n in session\nbefore x require a"
    for done, open_, least in ((5, 3, 3), (3, 5, 3), (5, None, None), (None, 5, None)):
        told = Told(text)
        told.done("a", k="1", **({} if done is None else {"n": done}))
        told.open("a", k="1", **({} if open_ is None else {"n": open_}))
        assert bound_of(told) == [least, least]
        assert bound_of(told, 1) == [None, None]


def test_the_bound_of_a_limit_is_the_low_end_of_a_number_between_two_ends() -> None:
    told = Told(f"{BASE}limit count(x) <= sum(a.n) in session")
    told.done("a", k="1", n=5)
    told.open("a", k="1", n=3)
    assert bound_of(told) == [5, 5]


def test_a_bound_that_too_many_last_calls_may_have_is_unknown() -> None:
    told = Told(f"{BASE}limit count(x) <= last(a).n in session")
    for n in range(meaning.MAX_COMBINATIONS + 1):
        told.open("a", k="1", n=n)
    assert bound_of(told) == [None, None]


def test_rules_beside_those_of_the_core_are_decided_after_them() -> None:
    core = core_of(f"{BASE}forbid x")
    (rule,) = meaning.Policy(core_of(f'{BASE}forbid x(k = "1")')).rules
    policy = meaning.Policy(core, also=[rule])
    assert policy.rules == (*meaning.Policy(core).rules, rule)
    call = Call("x", 0, 0, {"k": ("s", "1"), "n": NONE})
    found = policy.refusals(ListHistory(core, {}), call, 0)
    assert [refusal.statement for refusal in found] == [0, 1]


# URLs.


def test_the_host_of_a_url_is_a_text() -> None:
    told = Told("tool x(link: url)")
    link = "https://a.example/x"
    assert told.truth('host(link) = "a.example"', link=link) is True
    assert told.truth('host(link) = "b.example"', link=link) is False


# Clocks.

MIDNIGHT, HOUR = 20 * 86_400_000, 3_600_000
ZONE = Zone("Near/Here", (MIDNIGHT, MIDNIGHT + 12 * HOUR), (HOUR, 2 * HOUR), MIDNIGHT + 40 * HOUR)


def test_a_named_zone_has_the_offset_of_each_moment() -> None:
    noon = MIDNIGHT + 12 * HOUR
    assert meaning.clock("hour", ("t", noon - 1), ZONE) == ("n", 12)
    assert meaning.clock("hour", ("t", noon), ZONE) == ("n", 14)
    assert meaning.clock("weekday", ("t", noon), ZONE) == ("n", 3)
    assert meaning.clock("day", ("t", MIDNIGHT + 30 * HOUR), ZONE) == ("t", MIDNIGHT + 22 * HOUR)
    assert meaning.clock("hour", ("t", noon), 120) == ("n", 14)
    assert meaning.clock("day", ("t", noon), 120) == ("t", MIDNIGHT - 2 * HOUR)


def test_nothing_is_known_of_a_moment_outside_of_the_recorded_time() -> None:
    for moment in (MIDNIGHT - 1, ZONE.until):
        for function in ("hour", "weekday", "day"):
            assert meaning.clock(function, ("t", moment), ZONE) == UNKNOWN
    assert meaning.clock("day", ("t", MIDNIGHT), ZONE) == UNKNOWN  # it began before the record
    assert meaning.clock("hour", ("n", 5), ZONE) == UNKNOWN


def test_a_core_has_one_policy() -> None:
    core = core_of(BASE)
    assert isinstance(meaning.policy_of(core), meaning.Policy)
    assert meaning.policy_of(core) is meaning.policy_of(core)

"""What conditions and statements mean, fact by fact."""

from __future__ import annotations

from tests.certs.policy.told import Told

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

"""What a session ledger says of values that it has by their digests, and of paths and URLs."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.policy import forms, meaning
from tcc_certs.policy.history import Call, ListHistory
from tcc_certs.values.places import NONE, UNKNOWN, Digested, State
from tests.oracle_meaning.written import core_of

A, B, NULL, THREE = ("s", "a"), ("s", "b"), ("z", None), ("n", 3)


def digested(
    value: State | None = None, constants: Any = (), marks: dict[Any, Any] | None = None
) -> State:
    """A value by its digest, which the ledger shows or not."""
    found = Digested(constants=constants)
    found.value = value
    found.marks = marks or {}
    return "d", found


HIDDEN, OTHER = digested(constants=(A,)), digested()
SHOWN, OF_THREE, OF_NULL = digested(A), digested(THREE), digested(NULL)
PATH, URL = ("p", "/a/b"), ("u", "https://a.example/x")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (HIDDEN, HIDDEN, True),
        (HIDDEN, OTHER, False),  # each digest has one object
        (HIDDEN, A, False),  # the ledger has the digest of this constant
        (HIDDEN, B, None),
        (SHOWN, A, True),
        (SHOWN, B, False),
        (SHOWN, NONE, None),
        (("l", (HIDDEN, B)), ("l", (HIDDEN, B)), True),
        (("l", (HIDDEN, B)), ("l", (OTHER, B)), False),
        (("r", (("x", HIDDEN),)), ("r", (("x", NONE),)), False),
        (("r", (("x", SHOWN),)), ("r", (("x", A),)), True),
        (("*", (A, B)), HIDDEN, None),
    ],
)
def test_a_digest_equals_a_value(one: State, other: State, equal: bool | None) -> None:
    assert meaning.compare("=", one, other) is equal
    assert meaning.compare("=", other, one) is equal


def test_an_absent_value_differs_from_a_digest() -> None:
    assert meaning.same(NONE, HIDDEN) is False and meaning.same(HIDDEN, NONE) is False
    assert meaning.same(HIDDEN, HIDDEN) is True


def test_an_exact_state_can_be_looked_up() -> None:
    exact = (NONE, A, THREE, ("b", True), ("t", 0), PATH, URL, ("j", b"{}"), NULL, HIDDEN)
    assert all(map(meaning.is_exact, exact)) and meaning.is_exact(("l", exact))
    others = UNKNOWN, ("missing", None), ("*", (A,)), ("r", (("x", A),)), ("between", ("n", 1, 2))
    assert not any(map(meaning.is_exact, others))
    assert not any(meaning.is_exact(("l", (A, other))) for other in others)


def test_a_key_that_may_be_computed_is_a_value() -> None:
    key = forms.Get(forms.Element(0), "k")
    same = forms.Constant(A)
    computed = forms.Choose(same, (((same,), key),), forms.Now())
    core = core_of("tool x(k: text)")
    for state, value in ((HIDDEN, UNKNOWN), (SHOWN, A), (A, A)):
        call = Call("x", 0, 0, {"k": state})
        evaluation = meaning.Evaluation(ListHistory(core, {}), call, 0)
        assert evaluation.key(key) == state and evaluation.key(computed) == value


def test_only_a_shown_number_has_an_order() -> None:
    assert meaning.compare("<", OF_THREE, ("n", 4)) is True
    assert meaning.compare("<", OF_THREE, THREE) is False
    assert meaning.compare("<", HIDDEN, ("n", 4)) is None
    assert meaning.compare("<", SHOWN, ("n", 4)) is None
    assert meaning.arithmetic("+", OF_THREE, THREE) == ("n", 6)
    assert meaning.arithmetic("+", HIDDEN, THREE) == UNKNOWN


def test_a_digest_is_null_if_the_ledger_shows_null() -> None:
    assert meaning.is_null(OF_NULL) is True
    assert meaning.is_null(SHOWN) is False and meaning.is_null(HIDDEN) is False


def test_a_mark_says_whether_a_digested_text_matches() -> None:
    for mark in (True, False, None):
        assert meaning.matches(digested(marks={"a.*": mark}), "a.*") is mark
    assert meaning.matches(SHOWN, "a.*") is True and meaning.matches(SHOWN, "b.*") is False
    assert meaning.matches(PATH, "/a/.*") is True and meaning.matches(URL, "https:.*") is True
    assert meaning.matches(HIDDEN, "a.*") is None and meaning.matches(THREE, "a.*") is None


def test_a_mark_says_whether_a_digested_path_is_under_a_directory() -> None:
    scope = "p", "/a"
    for mark in (True, False, None):
        assert meaning.under(digested(marks={scope: mark}), scope) is mark
    assert meaning.under(digested(PATH), scope) is True
    assert meaning.under(PATH, digested(("p", "/c"))) is False
    assert meaning.under(HIDDEN, scope) is None


@pytest.mark.parametrize(
    ("state", "scope", "holds"),
    [
        (PATH, ("p", "/a"), True),
        (PATH, ("p", "/c"), False),
        (URL, ("u", "https://a.example/"), True),
        (URL, ("u", "https://b.example/"), False),
        (PATH, ("u", "https://a.example/"), None),
        (A, A, None),
    ],
)
def test_paths_and_urls_are_under_scopes_of_their_kind(
    state: State, scope: State, holds: bool | None
) -> None:
    assert meaning.under(state, scope) is holds


def test_a_url_has_a_host() -> None:
    of_host = "s", "a.example"
    assert meaning.host(URL) == of_host and meaning.host(digested(URL)) == of_host
    assert meaning.host(NONE) == NONE
    assert meaning.host(HIDDEN) == UNKNOWN and meaning.host(A) == UNKNOWN

"""Histories that scan and that look up: both have the same candidates."""

from __future__ import annotations

import pytest

from tcc_certs.policy.history import DictHistory, ListHistory
from tcc_certs.policy.meaning import Call
from tcc_certs.values.places import NONE, UNKNOWN
from tests.oracle_meaning.written import core_of

CORE = core_of("tool a(f?: text, g?: text)\ntool b(f?: text, g?: text)")
ONE, TWO = ("s", "1"), ("s", "2")
STATES = (ONE, TWO, NONE, UNKNOWN)


@pytest.mark.parametrize("kind", [ListHistory, DictHistory])
def test_candidates_do_not_surely_differ_from_the_keys(kind: type[ListHistory]) -> None:
    history = kind(CORE, {})
    for f in STATES:
        for g in STATES:
            for tool in "ab":
                call = Call(tool, len(history.calls), len(history.calls), {"f": f, "g": g})
                history.add(call, {})
                history.candidates(frozenset("ab"), [("f", ONE, True)], None)
    for wanted in STATES:
        for same in (False, True):
            found = history.candidates(frozenset("a"), [("f", wanted, same)], None)
            assert [call.at for call in found] == sorted([call.at for call in found])
            assert {call.tool for call in found} == {"a"}
            states = {call.arguments["f"] for call in found}
            if wanted == UNKNOWN or (wanted == NONE and not same):
                assert states == set(STATES)
            elif wanted == NONE:
                assert states == {NONE, UNKNOWN}
            else:
                assert states == ({wanted, UNKNOWN} if same else {wanted, NONE, UNKNOWN})
    keys = [("g", NONE, True), ("f", NONE, False)]
    found = history.candidates(frozenset("ab"), keys, None)
    assert {call.arguments["g"] for call in found} == {NONE, UNKNOWN}
    assert {call.arguments["f"] for call in found} == set(STATES)
    keys = [("g", ONE, False), ("f", NONE, False)]
    found = history.candidates(frozenset("ab"), keys, 7)
    assert {call.arguments["g"] for call in found} == {ONE, NONE, UNKNOWN}
    assert min(call.at for call in found) == 7


@pytest.mark.parametrize("kind", [ListHistory, DictHistory])
def test_windows_begin_at_the_first_call_of_a_time(kind: type[ListHistory]) -> None:
    history = kind(CORE, {})
    for at, at_ms in enumerate((1, 1, 2, 2, 5)):
        history.add(Call("a", at, at_ms, {"f": ONE, "g": ONE}), {})
    for since, first in ((0, 0), (1, 0), (2, 2), (3, 4), (5, 4), (6, 5)):
        found = history.candidates(frozenset("ab"), [("f", ONE, True)], since)
        assert [call.at for call in found] == list(range(first, 5))

"""What the indexes of the fast version do in cases that random sessions seldom have."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST, Call, Draw, ListHistory
from tcc_certs.policy.meaning import Policy
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_runtime.gate.decide import FastHistory, FastPolicy, Tally
from tests.oracle_meaning.written import core_of

TOOLS = """
tool find(order: text, n: number 0 .. 9, note?: text) gives (owner: text, score: number or null)
tool refund(order: text, n: number 0 .. 9, note?: text)
tool login() gives (user: text)
given user from login.user
"""
A, B = ("s", "a"), ("s", "b")


class Pair:
    """A session by the definition, and by its fast version: both answer alike."""

    def __init__(self, *statements: str) -> None:
        core = core_of("\n".join([TOOLS, *statements]))
        self.slow = Policy(core), ListHistory(core, {})
        self.fast = FastPolicy(core), FastHistory(core, {})
        self._calls: list[tuple[Call, Call]] = []

    def make(self, tool: str, at_ms: int = 0, **arguments: State) -> int:
        """Add a call that is under way; its number."""
        both = []
        for policy, history in (self.slow, self.fast):
            call = Call(tool, len(self._calls), at_ms, _whole(tool, arguments))
            history.add(call, policy.draws(history, call, at_ms))
            both.append(call)
        self._calls.append((both[0], both[1]))
        return len(self._calls) - 1

    def record(self, number: int, outcome: str, **answers: State) -> None:
        """Record an outcome."""
        for (_, history), call in zip((self.slow, self.fast), self._calls[number], strict=True):
            history.record(call, outcome, answers)

    def done(self, tool: str, answers: dict[str, State], **arguments: State) -> int:
        """Make a call that is done."""
        number = self.make(tool, **arguments)
        self.record(number, DONE, **answers)
        return number

    def codes(self, tool: str, now: int = 0, **arguments: State) -> list[str]:
        """The codes of the statements that refuse a call."""
        found = []
        for policy, history in (self.slow, self.fast):
            call = Call(tool, len(self._calls), now, _whole(tool, arguments))
            found.append([code for _, code in policy.refusals(history, call, now)])
        assert found[0] == found[1]
        return found[0]

    def debts(self) -> list[int]:
        """The first calls of open debts."""
        found = [
            [debt.call.at for debt in policy.debts(history, 0)]
            for policy, history in (self.slow, self.fast)
        ]
        assert found[0] == found[1]
        return found[0]


def _whole(tool: str, arguments: dict[str, State]) -> dict[str, State]:
    if tool == "login":
        return {}
    return {"order": A, "n": ("n", 1), "note": NONE, **arguments}


FOUND = {"owner": A, "score": ("n", 1)}


def test_a_condition_on_an_attribute_changes_when_the_attribute_is_learned() -> None:
    pair = Pair("before refund require find(owner = session.user)")
    pair.done("find", {**FOUND, "owner": B})
    assert pair.codes("refund") == ["R202"]
    pair.done("login", {"user": B})
    assert pair.codes("refund") == []


def test_a_debt_changes_when_an_attribute_is_learned() -> None:
    pair = Pair("after find(owner = session.user) owe refund(note = session.user)")
    pair.done("find", FOUND)
    pair.done("find", {**FOUND, "owner": B})
    pair.done("refund", {}, note=B)
    assert pair.debts() == [0, 1]
    pair.done("login", {"user": B})
    assert pair.debts() == []
    pair.done("find", {**FOUND, "owner": B})
    assert pair.debts() == [4]


def test_an_outcome_that_is_recorded_again_is_taken_into_account() -> None:
    pair = Pair(
        "before refund require find(same order) and sum(find.n) < 3", "limit count(find) <= 1",
        "after find owe refund(same order)",
    )  # fmt: skip
    number = pair.done("find", FOUND)
    assert pair.codes("refund") == [] and pair.codes("find") == ["R202"] and pair.debts() == [0]
    pair.record(number, FAILED)
    assert pair.codes("refund") == ["R202"] and pair.codes("find") == [] and pair.debts() == []
    pair.record(number, DONE, **FOUND)
    assert pair.codes("refund") == [] and pair.codes("find") == ["R202"] and pair.debts() == [0]
    pair.record(number, ANSWERED)
    assert pair.codes("refund") == ["R202"] and pair.codes("find") == [] and pair.debts() == []


def test_a_late_outcome_is_taken_into_account_by_every_index() -> None:
    pair = Pair(
        "before refund require count(find(same order)) = 1",
        "before refund require sum(find.n) = 1",
        "before refund require max(find.score) = 1",
        "before refund require max(find.n) = 1",
        "before refund require count(distinct(find.owner)) = 1",
        "before refund require order in find.order",
        "before refund require last(find).owner = order",
    )
    number = pair.make("find")
    assert len(pair.codes("refund")) == 7
    pair.record(number, LOST)
    assert len(pair.codes("refund")) == 7
    pair.record(number, DONE, **FOUND)
    assert pair.codes("refund") == []
    other = pair.make("find", order=B, n=("n", 2))
    assert len(pair.codes("refund")) == 5
    pair.record(other, FAILED)
    assert pair.codes("refund") == []


def test_a_call_leaves_a_source_when_its_answer_becomes_known() -> None:
    pair = Pair("before refund require no find(same order, owner = note)")
    number = pair.make("find", note=B)
    assert pair.codes("refund") == ["R202"]
    pair.record(number, DONE, **FOUND)
    assert pair.codes("refund") == []


def test_a_debt_is_paid_when_the_answer_of_the_first_call_becomes_known() -> None:
    pair = Pair("after find owe refund(note = this.owner)")
    number = pair.make("find")
    pair.done("refund", {}, note=A)
    pair.done("refund", {}, note=B)
    assert pair.debts() == [0]
    pair.record(number, DONE, **FOUND)
    assert pair.debts() == []


def test_marks_whose_filter_looks_at_the_decided_call_are_the_last_ones() -> None:
    pair = Pair(
        "before refund require find since login",
        "before refund require find since find(n <= this.n)",
    )
    for n in (1, 2, 3):
        pair.done("find", FOUND, n=("n", n))
    assert [pair.codes("refund", n=("n", n)) for n in (0, 1, 2, 3)] == [[], [], [], ["R202"]]
    pair.make("find", n=("n", 1))
    assert pair.codes("refund", n=("n", 1)) == ["R202"]
    pair.done("find", FOUND, n=("n", 2))
    assert pair.codes("refund", n=("n", 1)) == []
    pair.make("login")
    assert pair.codes("refund", n=("n", 1)) == ["R202"]


def test_each_call_that_may_be_the_last_is_looked_at() -> None:
    pair = Pair("before refund require last(find).order = order")
    pair.done("find", FOUND, order=B)
    pair.done("find", FOUND)
    for _ in range(3):
        pair.make("find")
    assert pair.codes("refund") == []
    pair.record(3, DONE, **FOUND)
    pair.make("find", order=B)
    assert pair.codes("refund") == ["R202"]


def test_the_last_call_of_a_window_is_in_it_from_its_first_to_its_last_moment() -> None:
    pair = Pair(
        "before refund require last(find within 10 ms).order = order",
        "before refund require count(find within 10 ms) = 1",
    )
    pair.record(pair.make("find", at_ms=5, order=B), DONE, **FOUND)
    pair.record(pair.make("find", at_ms=10), DONE, **FOUND)
    assert [len(pair.codes("refund", now)) for now in (15, 16, 20, 21)] == [1, 0, 0, 2]


def test_an_unknown_value_among_known_ones_leaves_extremes_open_until_it_is_known() -> None:
    pair = Pair("before refund require max(find.score) = 1 and min(find.score) = 1")
    pair.done("find", FOUND)
    number = pair.make("find")
    assert pair.codes("refund") == ["R202"]
    pair.record(number, FAILED)
    assert pair.codes("refund") == []
    pair.done("find", {**FOUND, "score": ("z", None)})
    assert pair.codes("refund") == ["R202"]


def test_more_last_calls_than_are_combined_are_unsure() -> None:
    pair = Pair("before refund require last(find).order = order")
    for _ in range(1023):
        pair.make("find")
    assert pair.codes("refund") == ["R202"]
    pair.record(0, DONE, **FOUND)
    assert pair.codes("refund") == []
    pair.make("find")
    pair.make("find")
    assert pair.codes("refund") == ["R207"]


def test_absent_keys_are_looked_for_one_by_one() -> None:
    pair = Pair(
        "before refund require find(note = this.note)", "before refund require find(same note)",
        "before refund require find(note = null)",
        "before refund require find(same note, note = this.note) or note != null",
    )  # fmt: skip
    assert pair.codes("refund") == ["R202"] * 4
    pair.done("find", FOUND, note=A)
    assert pair.codes("refund", note=A) == ["R202"]
    assert pair.codes("refund") == ["R202"] * 4
    pair.done("find", FOUND)
    assert pair.codes("refund", note=A) == []
    assert pair.codes("refund") == ["R202"] * 2


def test_a_term_that_is_unsure_equals_no_value_for_sure() -> None:
    pair = Pair("before refund require note not in find.order")
    pair.done("find", FOUND)
    assert pair.codes("refund") == ["R202"]
    assert pair.codes("refund", note=A) == ["R202"]
    assert pair.codes("refund", note=B) == []


def test_an_index_that_was_interrupted_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    pair = Pair("before refund require find(same order, owner = note)", "after find owe refund")
    pair.done("find", FOUND, note=A)
    pair.done("find", FOUND, note=A)
    state = Call.state

    def interrupted(call: Call, name: str) -> State:
        if call.at == 1:
            raise KeyboardInterrupt
        return state(call, name)

    monkeypatch.setattr(Call, "state", interrupted)
    policy, history = pair.fast
    call = Call("refund", 2, 0, _whole("refund", {}))
    with pytest.raises(KeyboardInterrupt):
        policy.refusals(history, call, 0)
    monkeypatch.undo()
    assert pair.codes("refund") == [] and pair.debts() == [0, 1]


# Limits.


def _draw(at_ms: int, amount: int, key: Any = ()) -> Draw:
    return Draw(Call("a", 0, at_ms, {}), key, amount)


def test_a_tally_adds_up_draws_of_a_key_and_of_an_unknown_one() -> None:
    tally = Tally()
    for key, amount in (((A,), 1), ((A,), 2), ((B,), 4), (None, 8)):
        tally.add(_draw(0, amount, key))
    assert tally.amount((A,), None) == 11
    assert tally.amount((("s", "c"),), None) == 8
    assert tally.amount(None, None) == 12
    assert [draw.amount for draw in tally.draws((B,), None)] == [4, 8]
    assert [draw.amount for draw in tally.draws(None, None)] == [1, 2, 4, 8]


def test_a_window_moves_in_both_directions_and_takes_earlier_draws() -> None:
    tally = Tally()
    draws = [_draw(at_ms, 1 << at) for at, at_ms in enumerate((10, 20, 20, 30))]
    for draw in draws:
        tally.add(draw)
    assert [tally.amount((), since) for since in (20, 31, 10, 11, 21, 0)] == [14, 0, 15, 14, 8, 15]
    tally.amount((), 20)
    tally.add(_draw(15, 16))  # of another session of the account, whose clock is behind
    tally.add(_draw(25, 32))
    assert [tally.amount((), since) for since in (20, 15, 26)] == [46, 62, 8]
    draws[1].call.outcome = FAILED
    tally.change(draws[1], counts=False)
    assert [tally.amount((), since) for since in (26, 20, 16, 15)] == [8, 44, 44, 60]
    draws[1].call.outcome = DONE
    tally.change(draws[1], counts=True)
    assert [tally.amount((), since) for since in (20, 21)] == [46, 40]
    assert [draw.amount for draw in tally.draws((), 20)] == [2, 4, 32, 8]


def test_failed_calls_give_back_to_an_account_that_sessions_share() -> None:
    core = core_of(f"{TOOLS}\nlimit count(refund) per order <= 2 across sessions")
    policy = FastPolicy(core)
    account: dict[int, Tally] = {}
    sessions = [FastHistory(core, {}, account) for _ in range(2)]
    calls = []
    for history in sessions:
        call = Call("refund", 0, 0, _whole("refund", {}))
        history.add(call, policy.draws(history, call, 0))
        calls.append(call)
    other = Call("refund", 1, 0, _whole("refund", {}))
    assert [code for _, code in policy.refusals(sessions[0], other, 0)] == ["R202"]
    assert [len(history.draws(0, (A,), None, False)) for history in sessions] == [1, 1]
    sessions[1].record(calls[1], FAILED, {})
    assert policy.refusals(sessions[0], other, 0) == []
    assert account[0].amount((A,), None) == 1


def test_candidates_are_those_of_the_definition() -> None:
    core = core_of(TOOLS)
    histories = ListHistory(core, {}), FastHistory(core, {})
    for at, order in enumerate((A, B, NONE, UNKNOWN, A)):
        for history in histories:
            history.add(Call("find", at, at, _whole("find", {"order": order})), {})
    for wanted in (A, B, NONE, UNKNOWN):
        for same in (False, True):
            for since in (None, 1, 9):
                keys = [("order", wanted, same), ("n", ("n", 1), True)]
                found = [
                    [call.at for call in history.candidates(frozenset({"find"}), keys, since)]
                    for history in histories
                ]
                assert found[0] == found[1], (wanted, same, since)

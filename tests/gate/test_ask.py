"""Questions to persons: which calls wait, what a verdict lets through, and when it ends."""

from __future__ import annotations

import asyncio
import json
import pickle
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.gate import grammars
from tests.oracle_session.writer import KEY

START = 1_700_000_000_000
HOUR = 3_600_000
DAY = 24 * HOUR
DESK = """grammar desk version "1"

tool find(order: text)
tool refund(order: text, amount: number 0 .. 500, way: cash | card) {{ errors mean failed }}
tool note(text: text)

before refund(amount > 100) ask "finance" within 2 h because "Large refunds need finance."
before refund(way = cash) ask "lead"
before refund require find(same order)
limit depth <= {depth}
"""
FINANCE = 'before refund(amount > 100) ask "finance" within 2 h'
LEAD = 'before refund(way = cash) ask "lead"'
BIG = {"order": "a", "amount": 200, "way": "card"}
BOTH = {"order": "a", "amount": 200, "way": "cash"}


class Desk:
    """A session of the desk in which the order `a` was found."""

    def __init__(self, folder: Path | None, depth: int = 30, **options: Any) -> None:
        self.artifact = grammars.artifact(DESK.format(depth=depth))
        self.ledger = None if folder is None else folder / "s.ledger"
        self.options = options
        self.ms = START
        self.gate = self.opened()
        self.make("find", order="a")

    def opened(self) -> tcc.Gate:
        return tcc.Gate(
            self.artifact, ledger=self.ledger, key=KEY, durable=False, clock=lambda: self.ms,
            **self.options,
        )  # fmt: skip

    def make(self, tool: str, told: str = "done", /, **arguments: Any) -> int:
        with self.gate.call(tool, arguments) as permit:
            if told == "answered":
                permit.failed("read", answered=True)
            else:
                getattr(permit, told)()
        return permit.seq

    def pending(self, **arguments: Any) -> tcc.Pending:
        """The question about a refund, which is not made."""
        with pytest.raises(tcc.Pending) as raised:
            self.make("refund", **arguments)
        return raised.value

    def approved(self, **arguments: Any) -> tcc.Pending:
        question = self.pending(**arguments)
        self.gate.approve(question.id, who="Ann")
        return question

    def code(self, **arguments: Any) -> str | None:
        code = self.gate.check("refund", arguments).code
        return None if code is None else str(code)

    def records(self, *kinds: str) -> list[dict[str, Any]]:
        if self.ledger is None:
            return []
        lines = map(json.loads, self.ledger.read_text().splitlines())
        return [record for record in lines if record["kind"] in kinds]


@pytest.fixture(params=["ledger", "memory"])
def desk(request: pytest.FixtureRequest, tmp_path: Path) -> Desk:
    return Desk(tmp_path if request.param == "ledger" else None)


def test_a_held_call_is_not_made_and_says_whom_it_waits_for(desk: Desk) -> None:
    question = desk.pending(**BIG)
    assert not isinstance(question, tcc.Refused)
    assert (question.who, question.text, question.because) == (
        "finance", FINANCE, "Large refunds need finance.",
    )  # fmt: skip
    assert (question.asked_ms, question.expires_ms) == (START, START + 2 * HOUR)
    assert question.is_new and len(question.id) == 32
    assert [one.call for one in desk.gate.history] == ["find"]
    assert [one.to_json() for one in desk.gate.pending] == [question.to_json()]
    assert question.id in str(question) and "'finance'" in str(question)
    assert desk.code(**{**BIG, "amount": 100}) is None
    assert desk.code(**{**BIG, "order": "b"}) == "R202"


def test_the_same_call_has_one_question_while_it_is_open(desk: Desk) -> None:
    first, again = desk.pending(**BIG), desk.pending(**BIG)
    assert (again.id, again.is_new) == (first.id, False)
    assert desk.pending(**{**BIG, "amount": 201}).id != first.id
    assert [one.arguments["amount"] for one in desk.gate.pending] == ["200", "201"]


def test_an_approval_lets_exactly_this_call_through_once(desk: Desk) -> None:
    desk.approved(**BIG)
    assert desk.gate.pending == ()
    assert desk.code(**BIG) is None
    assert desk.code(**{**BIG, "amount": 201}) == "R211"
    desk.make("refund", **BIG)
    assert desk.code(**BIG) == "R211"
    assert desk.pending(**BIG).is_new


def test_each_ask_that_applies_needs_its_own_approval_in_the_order_of_statements(
    desk: Desk,
) -> None:
    first = desk.approved(**BOTH)
    second = desk.pending(**BOTH)
    assert (first.text, second.text) == (FINANCE, LEAD)
    assert second.expires_ms == START + 7 * DAY
    assert desk.code(**BOTH) == "R211"
    desk.gate.approve(second.id, who="Ben")
    desk.make("refund", **BOTH)
    if desk.ledger is not None:
        assert desk.records("call")[-1]["approvals"] == [first.id, second.id]
        found = [(one["verdict"], one["who"]) for one in desk.records("approval")]
        assert found == [("approved", "Ann"), ("approved", "Ben")]


@pytest.mark.parametrize(
    ("told", "usable"), [("done", False), ("unknown", False), ("answered", False), ("failed", True)]
)
def test_only_a_failed_call_gives_its_approval_back(desk: Desk, told: str, usable: bool) -> None:
    desk.approved(**BIG)
    desk.make("refund", told, **BIG)
    assert desk.code(**BIG) == (None if usable else "R211")


def test_an_unknown_call_that_turns_out_to_have_failed_gives_its_approval_back(desk: Desk) -> None:
    desk.approved(**BIG)
    seq = desk.make("refund", "unknown", **BIG)
    desk.gate.resolve(seq, "failed")
    desk.make("refund", **BIG)
    assert desk.code(**BIG) == "R211"


def test_a_denied_call_is_refused_until_its_question_expires(desk: Desk) -> None:
    question = desk.pending(**BIG)
    desk.gate.deny(question.id, who="Ann", reason="Not in June.")
    desk.ms += 2 * HOUR
    with pytest.raises(tcc.Refused) as raised:
        desk.make("refund", **BIG)
    assert raised.value.code == "R209"
    assert str(raised.value) == f"R209: refund: a person denied the call: Not in June. ({FINANCE})"
    assert raised.value.because[0]["kind"] == "ask"
    assert desk.code(**{**BIG, "amount": 201}) == "R211"
    desk.ms += 1
    assert desk.pending(**BIG).is_new
    if desk.ledger is not None:
        refusal = desk.records("refusal")[-1]
        assert (refusal["code"], refusal["statement"]) == ("R209", 0)
        assert "June" not in desk.ledger.read_text()


def test_a_denial_stands_beside_an_approval_that_is_given_back(desk: Desk) -> None:
    desk.approved(**BIG)
    seq = desk.make("refund", "unknown", **BIG)
    desk.gate.deny(desk.pending(**BIG).id, who="Ben")
    desk.gate.resolve(seq, "failed")
    assert desk.code(**BIG) == "R209"


def test_a_question_and_an_approval_serve_up_to_their_last_millisecond(desk: Desk) -> None:
    question = desk.pending(**BIG)
    desk.ms += 2 * HOUR
    assert desk.pending(**BIG).id == question.id
    desk.gate.approve(question.id, who="Ann")
    desk.ms += 2 * HOUR
    assert desk.code(**BIG) is None
    desk.ms += 1
    assert desk.code(**BIG) == "R211"
    late = desk.pending(**BIG)
    desk.ms += 2 * HOUR + 1
    assert desk.gate.pending == ()
    with pytest.raises(tcc.VerdictError) as raised:
        desk.gate.approve(late.id, who="Ann")
    assert (raised.value.why, raised.value.code) == ("expired", "S215")


def test_a_verdict_stands(desk: Desk) -> None:
    question = desk.approved(**BIG)
    for decide in (desk.gate.approve, desk.gate.deny):
        with pytest.raises(tcc.VerdictError) as raised:
            decide(question.id, who="Ben")
        assert raised.value.why == "decided"
    for unknown in ("0" * 32, "", "x", None, b"0", [question.id]):
        with pytest.raises(tcc.VerdictError) as raised:
            desk.gate.approve(unknown, who="Ann")  # type: ignore[arg-type]
        assert raised.value.why == "unknown"
    assert pickle.loads(pickle.dumps(raised.value)).why == "unknown"
    assert len(desk.records("approval")) == (desk.ledger is not None)


@pytest.mark.parametrize("who", ["", "a" * 256, "a\nb", "\ud800", None, 7])
def test_a_name_is_a_text_that_can_be_printed(desk: Desk, who: Any) -> None:
    question = desk.pending(**BIG)
    with pytest.raises(ValueError, match="who: a text of 1 to 255"):
        desk.gate.approve(question.id, who=who)
    with pytest.raises(ValueError, match="reason: a text of at most 1000"):
        desk.gate.deny(question.id, who="Ann", reason="x" * 1001)
    desk.gate.approve(question.id, who="Zoë \U0001f469 \"'<b>")
    assert desk.code(**BIG) is None


def test_other_statements_decide_again_when_the_call_is_made(tmp_path: Path) -> None:
    text = (
        'grammar g version "1"\ntool stop\ntool pay(amount: number)\n'
        'before pay ask "lead"\nbefore pay require no stop\nlimit depth <= 9\n'
    )
    gate = tcc.Gate(grammars.artifact(text), ledger=tmp_path / "s.ledger", durable=False)
    with pytest.raises(tcc.Pending) as raised, gate.call("pay", {"amount": 1}):
        pass
    gate.approve(raised.value.id, who="Ann")
    with gate.call("stop") as permit:
        permit.done()
    assert str(gate.check("pay", {"amount": 1}).code) == "R202"


def test_a_held_call_is_among_the_allowed_ones_until_a_person_denies_it() -> None:
    text = (
        'grammar g version "1"\ntool wipe(what: all | some)\ntool look\n'
        'before wipe(what = all) ask "lead"\nlimit depth <= 9\n'
    )
    gate = tcc.Gate(grammars.artifact(text))
    wiped = tcc.Allowed("wipe", {"what": "all"})
    assert wiped in gate.allowed()
    with pytest.raises(tcc.Pending) as raised, gate.call("wipe", {"what": "all"}):
        pass
    assert wiped in gate.allowed()
    gate.deny(raised.value.id, who="Ann")
    assert wiped not in gate.allowed()
    with pytest.raises(tcc.Refused) as refused, gate.call("wipe", {"what": "all"}):
        pass
    assert [one.arguments for one in refused.value.allowed_next] == [{}, {"what": "some"}]


def test_check_decides_as_a_call_and_writes_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    before = (tmp_path / "s.ledger").read_bytes()
    found = desk.gate.check("refund", BIG)
    assert (found.allowed, str(found.code), found.place) == (False, "R211", FINANCE)
    assert found.because == [
        {"kind": "ask", "text": FINANCE, "because": "Large refunds need finance."}
    ]
    assert desk.gate.pending == ()
    assert (tmp_path / "s.ledger").read_bytes() == before


def test_the_ledger_hides_values_that_statements_do_not_need(tmp_path: Path) -> None:
    question = Desk(tmp_path).pending(**BIG)
    assert dict(question.arguments) == {"amount": "200", "way": "card"}
    assert question.hidden == ("order",)
    assert dict(Desk(None).pending(**BIG).arguments) == {k: str(v) for k, v in BIG.items()}


def test_questions_and_verdicts_outlive_the_process(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    approved, denied = desk.approved(**BIG), desk.pending(**{**BIG, "amount": 300})
    desk.gate.deny(denied.id, who="Ben")
    waiting = desk.pending(**{**BIG, "amount": 400})
    desk.gate.close()
    desk.gate = desk.opened()
    assert [one.to_json() for one in desk.gate.pending] == [waiting.to_json()]
    assert desk.code(**{**BIG, "amount": 300}) == "R209"
    assert desk.pending(**{**BIG, "amount": 400}).id == waiting.id
    with pytest.raises(tcc.VerdictError):
        desk.gate.approve(approved.id, who="Ann")
    desk.make("refund", **BIG)
    assert desk.code(**BIG) == "R211"


def test_a_call_without_an_outcome_keeps_its_approval(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.approved(**BIG)
    with desk.gate.call("refund", BIG) as permit:
        crashed = shutil.copy(tmp_path / "s.ledger", tmp_path / "crashed.ledger")
        permit.done()
    desk.ledger = Path(crashed)
    desk.gate = desk.opened()
    assert desk.code(**BIG) == "R211"
    desk.gate.resolve(2, "failed")
    assert desk.code(**BIG) is None


def test_another_gate_of_the_session_decides_and_asks(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    other = desk.opened()
    question = desk.pending(**BIG)
    assert [one.id for one in other.pending] == [question.id]
    other.approve(question.id, who="Ann")
    with pytest.raises(tcc.VerdictError):
        desk.gate.deny(question.id, who="Ben")
    desk.make("refund", **BIG)
    with pytest.raises(tcc.Pending) as raised, other.call("refund", BIG):
        pass
    assert desk.gate.pending[0].id == raised.value.id


def test_a_verdict_is_recorded_beside_a_call_under_way(desk: Desk) -> None:
    question = desk.pending(**BIG)
    with desk.gate.call("note", {"text": "x"}) as permit:
        desk.gate.approve(question.id, who="Ann")
        permit.done()
    desk.make("refund", **BIG)


def test_of_two_verdicts_at_once_one_stands(desk: Desk) -> None:
    question = desk.pending(**BIG)
    errors: list[Exception] = []
    ready = threading.Barrier(8)

    def approve(decide: Callable[..., None]) -> None:
        ready.wait()
        try:
            decide(question.id, who="Ann")
        except Exception as error:
            errors.append(error)

    choices = [desk.gate.approve, desk.gate.deny] * 4
    threads = [threading.Thread(target=approve, args=[choice]) for choice in choices]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(errors) == 7
    assert all(isinstance(one, tcc.VerdictError) for one in errors)
    assert desk.code(**BIG) in (None, "R209")


def test_a_task_gets_the_question_and_makes_the_call_after_the_approval(desk: Desk) -> None:
    async def refund() -> None:
        async with desk.gate.call("refund", BIG) as permit:
            permit.done()

    with pytest.raises(tcc.Pending) as raised:
        asyncio.run(refund())
    desk.gate.approve(raised.value.id, who="Ann")
    asyncio.run(refund())
    assert desk.code(**BIG) == "R211"


def test_a_wrapped_function_returns_what_stands_for_a_pending_call(desk: Desk) -> None:
    def refund(order: str, amount: int, way: str) -> dict[str, Any]:
        return {"paid": amount}

    with pytest.raises(tcc.Pending):
        desk.gate.wrap(refund)(**BIG)
    wrapped = desk.gate.wrap(refund, pending=lambda question: {"waits": question.id})
    waits = wrapped(**BIG)["waits"]
    desk.gate.approve(waits, who="Ann")
    assert wrapped(**BIG) == {"paid": 200}


def test_so_many_questions_are_open_that_the_next_call_is_refused(tmp_path: Path) -> None:
    desk = Desk(None, depth=30)
    for number in range(10_000):
        desk.pending(**{**BIG, "amount": 101 + number / 50})
    with pytest.raises(tcc.Refused) as raised:
        desk.make("refund", **{**BIG, "amount": 400})
    assert raised.value.code == "R309"
    assert len(desk.gate.pending) == 10_000
    desk.gate.deny(desk.gate.pending[5000].id, who="Ann")
    assert desk.pending(**{**BIG, "amount": 400}).is_new
    desk.ms += 2 * HOUR + 1
    assert desk.gate.pending == ()


def test_a_clock_that_goes_back_neither_expires_nor_extends_anything(desk: Desk) -> None:
    question = desk.pending(**BIG)
    desk.ms -= 61_000
    assert desk.code(**BIG) == "R210"
    desk.gate.approve(question.id, who="Ann")
    desk.ms = START + 2 * HOUR
    assert desk.code(**BIG) is None
    desk.ms += 1
    assert desk.code(**BIG) == "R211"


def test_a_shadow_session_asks_nobody(tmp_path: Path) -> None:
    desk = Desk(tmp_path, shadow=True)
    with desk.gate.call("refund", BIG) as permit:
        assert permit.shadowed == "R211"
    assert desk.gate.pending == ()
    (refusal,) = desk.records("refusal")
    assert (refusal["code"], refusal["statement"], refusal["made"]) == ("R211", 0, True)
    assert desk.records("ask") == []


def test_a_call_that_an_account_has_no_room_for_is_refused_and_nobody_is_asked(
    tmp_path: Path,
) -> None:
    text = (
        'grammar g version "1"\ntool pay(amount: number 0 .. 100)\nbefore pay ask "lead"\n'
        "limit sum(pay.amount) <= 100 across sessions\nlimit depth <= 9\n"
    )
    account = tcc.Account(tmp_path / "a.account")
    first, second = (
        tcc.Gate(
            grammars.artifact(text), ledger=tmp_path / name, key=KEY, account=account, durable=False
        )
        for name in ("1.ledger", "2.ledger")
    )
    with pytest.raises(tcc.Pending) as raised, first.call("pay", {"amount": 60}):
        pass
    first.approve(raised.value.id, who="Ann")
    with first.call("pay", {"amount": 60}) as permit:
        permit.done()
    with pytest.raises(tcc.Refused) as refused, second.call("pay", {"amount": 50}):
        pass
    assert refused.value.code == "R202"
    assert second.pending == ()
    with pytest.raises(tcc.Pending), second.call("pay", {"amount": 40}):
        pass


def test_a_call_waits_for_an_outcome_that_may_spare_the_question(tmp_path: Path) -> None:
    text = (
        'grammar g version "1"\ntool ok { parallel }\ntool pay { parallel }\n'
        'before pay(no ok) ask "lead"\nlimit depth <= 9\n'
    )
    gate = tcc.Gate(grammars.artifact(text), ledger=tmp_path / "s.ledger", durable=False)
    paid: list[int] = []

    def pay() -> None:
        with gate.call("pay") as permit:
            permit.done()
        paid.append(permit.seq)

    with gate.call("ok") as permit:
        thread = threading.Thread(target=pay)
        thread.start()
        thread.join(0.1)
        assert gate.pending == ()
        permit.done()
    thread.join()
    assert paid == [2]


def test_questions_and_errors_survive_pickle(desk: Desk) -> None:
    question = desk.pending(**BIG)
    again = pickle.loads(pickle.dumps(question))
    assert (again.to_json(), again.is_new, str(again)) == (
        question.to_json(), question.is_new, str(question),
    )  # fmt: skip

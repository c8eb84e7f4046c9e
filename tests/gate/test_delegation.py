"""A child's gate: each of its calls is its parent's, too; without a proof it is not opened."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_certs.session import SessionValidation
from tcc_certs.values.canonical import record_key, record_mac
from tcc_runtime.errors import LedgerError, ResumeError, SessionEnded, SettingsError
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.session import made as made_calls
from tests.gate import grammars

KEY = bytes(range(32))
TOOLS = """tool find(order: text)
tool refund(order: text, amount: integer 1 .. 20)
tool check gives (result: pass | fail)
"""
PARENT = f"""grammar desk version "1"
{TOOLS}tool wire
before refund require find(same order)
limit sum(refund.amount) <= 30
limit count(wire) <= 1
"""
CHILD = f"""grammar sub version "1"
{TOOLS}before refund require find(same order)
limit sum(refund.amount) <= 20
"""
Call = tuple[str, dict[str, Any]]
FIND: Call = ("find", {"order": "a"})
REFUND: Call = ("refund", {"order": "a", "amount": 12})


def refund(amount: int) -> Call:
    return "refund", {"order": "a", "amount": amount}


@cache
def proof_of(child: str = CHILD, parent: str = PARENT) -> bytes:
    found = tcc.prove(grammars.artifact(child), implies=grammars.artifact(parent))
    assert found.verdict == "proved" and found.proof is not None, found.missing
    return found.proof


def opened(
    folder: Path, child: str = CHILD, parent: str = PARENT, name: str = "child", **options: Any
) -> tuple[tcc.Gate, tcc.Gate]:
    """Gates of a child and its parent, with ledgers in a folder."""
    gate = tcc.Gate(
        grammars.artifact(parent), ledger=folder / "parent.session", key=KEY, durable=False
    )
    return tcc.Gate(
        grammars.artifact(child), ledger=folder / f"{name}.session", durable=False, parent=gate,
        proof=proof_of(child, parent), **options,
    ), gate  # fmt: skip


def do(gate: tcc.Gate, call: Call, result: object = "x", outcome: str = "done") -> int:
    with gate.call(*call) as permit:
        if outcome == "done":
            permit.done(result)
        elif outcome == "failed":
            permit.failed()
    return permit.seq


def judged(
    folder: Path, child: str = CHILD, parent: str = PARENT, name: str = "child"
) -> SessionValidation:
    found = tcc.validate(
        folder / f"{name}.session",
        grammars.artifact(child),
        parent=folder / "parent.session",
        parent_artifact=grammars.artifact(parent),
        key=KEY,
    )
    assert isinstance(found, SessionValidation)
    return found


def outcomes(gate: tcc.Gate) -> list[tuple[str, str]]:
    return [(one.call, one.outcome) for one in gate.history]


# The proof.


def changed(data: bytes, **members: Any) -> bytes:
    return bytes(encode({**json.loads(data), **members}))


def _others() -> Iterator[tuple[str, Callable[[], bytes], str]]:
    def question(**members: Any) -> bytes:
        document = json.loads(proof_of())
        return changed(proof_of(), question={**document["question"], **members})

    def less() -> bytes:
        """A proof of some of the parent's statements."""
        child = grammars.artifact(CHILD)
        found = tcc.prove(child, "before refund require find(same order)").proof
        assert found is not None
        return found

    def longer() -> bytes:
        document = json.loads(proof_of())
        document["arguments"][0]["steps"].append(["split", 0])
        return bytes(encode(document))

    yield "empty", lambda: b"", "B101"
    yield "of another child", lambda: proof_of(CHILD.replace("<= 20", "<= 19")), "T103"
    yield "of the parent", lambda: proof_of(PARENT), "T103"
    yield "of another parent", lambda: proof_of(CHILD, PARENT.replace("<= 30", "<= 40")), "T102"
    yield "of some statements", less, "T102"
    yield "without a statement", lambda: question(statements=[]), "T104"
    yield "of another kind", lambda: question(kind="reachable"), "T101"
    yield "that assumes outcomes", lambda: changed(proof_of(), outcomes=["done"]), "T101"
    yield "with another core", lambda: changed(proof_of(), core="00" * 32), "T103"
    yield "without arguments", lambda: changed(proof_of(), arguments=[]), "T104"
    yield "with a step more", longer, "T105"
    yield "of an older schema", lambda: changed(proof_of(), schema="tcc.proof/1"), "D102"


@pytest.mark.parametrize(
    ("make", "code"), [pytest.param(make, code, id=name) for name, make, code in _others()]
)
def test_a_proof_of_something_else_opens_nothing(
    tmp_path: Path, make: Callable[[], bytes], code: str
) -> None:
    parent = tcc.Gate(grammars.artifact(PARENT))
    with pytest.raises(Rejected) as error:
        tcc.Gate(grammars.artifact(CHILD), ledger=tmp_path / "s", parent=parent, proof=make())
    assert error.value.code.value == code
    assert not list(tmp_path.iterdir())


def test_a_child_that_allows_more_borrows_no_proof() -> None:
    child = grammars.artifact(CHILD.replace("<= 20", "<= 40"))
    with pytest.raises(Rejected, match="T103"):
        tcc.Gate(child, parent=tcc.Gate(grammars.artifact(PARENT)), proof=proof_of())


def test_a_flipped_byte_of_a_proof_opens_nothing() -> None:
    parent, data = tcc.Gate(grammars.artifact(PARENT)), proof_of()
    for at in range(0, len(data), 23):
        forged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        with pytest.raises(Rejected):
            tcc.Gate(grammars.artifact(CHILD), parent=parent, proof=forged)


def test_a_proof_is_a_file_or_bytes_and_belongs_to_a_parent(tmp_path: Path) -> None:
    child, parent = grammars.artifact(CHILD), tcc.Gate(grammars.artifact(PARENT), key=KEY)
    file = tmp_path / "proof"
    file.write_bytes(proof_of())
    tcc.Gate(child, parent=parent, proof=file).close()
    tcc.Gate(child, parent=parent, proof=str(file)).close()
    for options, name in (
        ({"parent": parent}, "proof"),
        ({"proof": file}, "parent"),
        ({"parent": parent, "proof": file, "key": bytes(32)}, "key"),
        ({"parent": parent, "proof": file, "shadow": True}, "shadow"),
    ):
        with pytest.raises(SettingsError) as error:
            tcc.Gate(child, **options)  # type: ignore[arg-type]
        assert error.value.field == name


def test_errors_that_mean_failed_for_the_child_alone_open_nothing() -> None:
    child = CHILD.replace("find(order: text)", "find(order: text) { errors mean failed }")
    with pytest.raises(Rejected, match=r"T102.*`errors mean failed` of `find`"):
        tcc.Gate(
            grammars.artifact(child), parent=tcc.Gate(grammars.artifact(PARENT)), proof=proof_of()
        )


# Parents that are no parents.


@pytest.mark.parametrize("how", ["ended", "closed", "shadow"])
def test_a_parent_that_may_make_no_call_has_no_child(how: str) -> None:
    parent = tcc.Gate(grammars.artifact(PARENT), shadow=how == "shadow")
    if how == "ended":
        parent.finish()
    elif how == "closed":
        parent.close()
    with pytest.raises(SettingsError) as error:
        tcc.Gate(grammars.artifact(CHILD), parent=parent, proof=proof_of())
    assert error.value.field == "parent"


def test_a_child_of_a_parent_that_has_ended_makes_no_call(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    parent.finish()
    with pytest.raises(tcc.Refused) as error:
        do(child, FIND)
    assert error.value.code == "R303"
    assert len(child.history) == 1
    child.finish()
    assert judged(tmp_path).claim_type == "Conformant"


def test_a_child_that_outlives_its_parents_gate_makes_no_call(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    with child.call(*FIND) as permit:
        parent.close()
        permit.done("x")
    with pytest.raises(tcc.Refused) as error:
        do(child, FIND)
    assert error.value.code == "R306"
    child.close()
    child, parent = opened(tmp_path)
    assert [one for _, one in outcomes(child)] == ["done", "done"]
    assert [one for _, one in outcomes(parent)] == ["done", "unknown"]
    assert judged(tmp_path).claim_type == "ConformantPrefix"


# Calls.


def test_a_call_of_the_child_is_one_of_both(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    do(child, REFUND)
    do(child, ("check", {}), {"result": "pass"})
    do(child, FIND, outcome="failed")
    assert outcomes(child) == outcomes(parent)
    assert parent.history[2].observed == {"result": "pass"}
    child.finish()
    found = judged(tmp_path)
    assert (found.verdict, found.claim_type) == (0, "Conformant")
    assert found.summary.endswith("each call is a call of its parent's session, too")
    header = json.loads((tmp_path / "child.session").read_bytes().splitlines()[0])
    assert header["parent"] == parent.session_id and not parent.ended
    assert sorted(path.name for path in tmp_path.iterdir()) == ["child.session", "parent.session"]


@pytest.mark.parametrize("whose", ["child", "parent"])
def test_a_call_that_either_refuses_is_a_call_of_neither(tmp_path: Path, whose: str) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    do(*((child, refund(9)) if whose == "child" else (parent, refund(19))))
    before = len(child.history), len(parent.history)
    assert child.check(*REFUND).code == "R202"
    with pytest.raises(tcc.Refused) as error:
        do(child, REFUND)
    limit = 20 if whose == "child" else 30
    assert error.value.because[0]["text"] == f"limit sum(refund.amount) <= {limit}"
    assert (len(child.history), len(parent.history)) == before
    do(child, refund(1))
    assert judged(tmp_path).claim_type == "ConformantPrefix"


def test_an_unknown_outcome_is_unknown_to_both_and_resolved_in_both(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    seq = do(child, REFUND, outcome="unknown")
    assert outcomes(child)[1][1] == outcomes(parent)[1][1] == "unknown"
    with pytest.raises(ValueError, match="no unknown call"):
        child.resolve(seq + 1, "failed")
    child.resolve(seq, "failed")
    assert outcomes(child)[1][1] == outcomes(parent)[1][1] == "failed"
    seq = do(child, REFUND, outcome="unknown")
    parent.resolve(3, "done")
    with pytest.raises(ValueError, match="has the outcome of call 3 as done"):
        child.resolve(seq, "failed")
    child.resolve(seq, "done")
    assert judged(tmp_path).claim_type == "ConformantPrefix"


def test_an_answer_that_is_unforeseen_is_so_for_both(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    with child.call("check") as permit:
        permit.done({"result": "maybe"})
    assert permit.unforeseen
    assert child.history[0].unforeseen and parent.history[0].unforeseen
    do(child, FIND)
    assert judged(tmp_path).claim_type == "ConformantPrefix"


def test_a_child_of_a_child_is_three_sessions(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    text = CHILD.replace("<= 20", "<= 15")
    leaf = tcc.Gate(
        grammars.artifact(text), ledger=tmp_path / "leaf.session", parent=child,
        proof=proof_of(text, CHILD), durable=False,
    )  # fmt: skip
    do(leaf, FIND)
    do(leaf, REFUND)
    assert outcomes(leaf) == outcomes(child) == outcomes(parent)
    with pytest.raises(tcc.Refused, match="R202"):
        do(leaf, refund(4))
    assert len(parent.history) == 2


def test_a_budget_is_the_parents() -> None:
    child = tcc.Gate(
        grammars.artifact(CHILD), parent=tcc.Gate(grammars.artifact(PARENT)), proof=proof_of()
    )
    with pytest.raises(SettingsError, match="the budget of the parent's gate"):
        child.budget(price_cap=1)


def test_a_call_inside_a_call_of_the_parent_is_refused(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    with parent.call(*FIND) as permit:
        with pytest.raises(tcc.Refused) as error:
            do(child, FIND)
        assert error.value.code == "R305"
        permit.done()
    assert not child.history
    do(child, FIND)


def test_children_of_one_parent_share_what_it_has_left(tmp_path: Path) -> None:
    parent = tcc.Gate(
        grammars.artifact(PARENT), ledger=tmp_path / "parent.session", key=KEY, durable=False
    )
    children = [
        tcc.Gate(
            grammars.artifact(CHILD), ledger=tmp_path / f"{number}.session", parent=parent,
            proof=proof_of(), durable=False,
        )
        for number in range(3)
    ]  # fmt: skip
    taken: list[int] = []

    def work(gate: tcc.Gate) -> None:
        do(gate, FIND)
        for amount in (9, 5, 4):
            with suppress(tcc.Refused):
                do(gate, refund(amount))
                taken.append(amount)

    threads = [threading.Thread(target=work, args=(gate,)) for gate in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 24 < sum(taken) <= 30
    assert len(parent.history) == sum(len(gate.history) for gate in children)
    for number in range(3):
        assert judged(tmp_path, name=str(number)).claim_type == "ConformantPrefix"


def test_tasks_with_a_child_each_wait_for_one_another(tmp_path: Path) -> None:
    parent = tcc.Gate(
        grammars.artifact(PARENT), ledger=tmp_path / "parent.session", key=KEY, durable=False
    )

    async def work(number: int) -> None:
        gate = tcc.Gate(
            grammars.artifact(CHILD), ledger=tmp_path / f"{number}.session", parent=parent,
            proof=proof_of(), durable=False,
        )  # fmt: skip
        for call in (FIND, refund(5)):
            async with gate.call(*call) as permit:
                await asyncio.sleep(0)
                permit.done("x")

    async def run() -> None:
        await asyncio.gather(*[work(number) for number in range(3)])

    asyncio.run(run())
    assert [one.outcome for one in parent.history] == ["done"] * 6
    for number in range(3):
        assert judged(tmp_path, name=str(number)).claim_type == "ConformantPrefix"


def test_parallel_calls_of_a_child_are_under_way_together(tmp_path: Path) -> None:
    tools = "tool read(path: text) { parallel }\nlimit count(read) <= 8"
    parent = f'grammar g version "1"\n{tools}\n'
    text = parent.replace("<= 8", "<= 4")
    child, above = opened(tmp_path, text, parent)
    inside, gone = threading.Barrier(3), []

    def work(path: str) -> None:
        with child.call("read", {"path": path}) as permit:
            inside.wait(20)
            permit.done(path)
            gone.append(path)

    threads = [threading.Thread(target=work, args=(path,)) for path in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(gone) == ["a", "b", "c"]
    assert [one.outcome for one in above.history] == ["done"] * 3
    child.finish()
    assert judged(tmp_path, text, parent).claim_type == "Conformant"


def test_a_turn_that_is_handed_in_is_a_turn_of_both(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    turn = child.try_turn()
    assert turn is not None and parent.try_turn() is None
    child.give_back(turn)
    turn = child.try_turn()
    with child.call(*FIND, turn=turn) as permit:
        pass
    held = parent.try_turn()
    assert held is not None and child.try_turn() is None
    parent.give_back(held)
    child.resolve(permit.seq, "done", turn=child.try_turn())
    assert outcomes(parent) == outcomes(child) == [("find", "done")]
    child.finish(turn=child.try_turn())
    turn = parent.try_turn()
    assert turn is not None
    parent.give_back(turn)


# Persons.

ASKS = f"""grammar desk version "1"
{TOOLS}before refund(amount > 5) ask "lead"
"""


def test_a_call_that_both_ask_about_needs_a_verdict_in_each_session(tmp_path: Path) -> None:
    child, parent = opened(tmp_path, ASKS, ASKS)
    questions = []
    for gate in (child, parent):
        with pytest.raises(tcc.Pending) as error:
            do(child, REFUND)
        assert [one.id for one in gate.pending] == [error.value.id]
        questions.append(error.value.id)
        asked = child.ask(*REFUND)
        assert asked is not None and asked.id == error.value.id
        assert child.is_only_question(asked.id)
        child.approve(error.value.id, who="kim")
    do(child, REFUND)
    assert len(set(questions)) == 2 and child.ask(*refund(1)) is None
    assert judged(tmp_path, ASKS, ASKS).claim_type == "ConformantPrefix"


def test_a_child_that_does_not_ask_has_no_proof() -> None:
    found = tcc.prove(grammars.artifact(CHILD), implies=grammars.artifact(ASKS))
    assert found.verdict == "refuted"


# Limits across sessions.

ACROSS = f"""grammar desk version "1"
{TOOLS}limit count(refund) <= 2 across sessions
"""


def test_the_parents_account_counts_calls_of_its_children(tmp_path: Path) -> None:
    artifact, proof = grammars.artifact(ACROSS), proof_of(ACROSS, ACROSS)
    parent = tcc.Gate(artifact, key=KEY, account=tcc.Account(tmp_path / "account"))
    for number in range(3):
        account = tcc.Account(tmp_path / f"{number}.account")
        child = tcc.Gate(artifact, parent=parent, proof=proof, account=account)
        if number < 2:
            do(child, refund(1))
            continue
        assert child.check(*refund(1)).code == "R202"
        with pytest.raises(tcc.Refused) as error:
            do(child, refund(1))
        assert error.value.because[0]["text"] == "limit count(refund) <= 2 across sessions"
        assert not child.history
    assert [one.outcome for one in parent.history] == ["done"] * 2


def test_one_account_does_not_count_a_call_twice(tmp_path: Path) -> None:
    account, other = (tcc.Account(tmp_path / name) for name in "ab")
    artifact, proof = grammars.artifact(ACROSS), proof_of(ACROSS, ACROSS)
    parent = tcc.Gate(artifact, key=KEY, account=account)
    with pytest.raises(SettingsError) as error:
        tcc.Gate(artifact, parent=parent, proof=proof, account=account)
    assert error.value.field == "account"
    child = tcc.Gate(artifact, parent=parent, proof=proof, account=other)
    with pytest.raises(SettingsError):
        tcc.Gate(artifact, parent=child, proof=proof, account=account)
    do(child, refund(1))
    do(child, refund(1))
    with pytest.raises(tcc.Refused, match="R202"):
        do(child, refund(1))


def test_a_call_that_the_child_cannot_begin_is_given_back_to_the_parents_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    artifact = grammars.artifact(ACROSS)
    parent = tcc.Gate(
        artifact, ledger=tmp_path / "parent.session", key=KEY,
        account=tcc.Account(tmp_path / "a.account"),
    )  # fmt: skip
    child = tcc.Gate(
        artifact, ledger=tmp_path / "child.session", parent=parent, proof=proof_of(ACROSS, ACROSS),
        account=tcc.Account(tmp_path / "b.account"),
    )  # fmt: skip
    append = InFile.append

    def full(self: InFile, render: Any) -> None:
        if self.path.name == "child.session":
            raise LedgerError("child.session", OSError(28, "no space"))
        append(self, render)

    monkeypatch.setattr(InFile, "append", full)
    with pytest.raises(tcc.Refused, match="R306"):
        do(child, refund(1))
    assert [one.outcome for one in parent.history] == ["failed"]
    do(parent, refund(1))
    do(parent, refund(1))


# What sessions are given, and learn.

LEARNED = """grammar desk version "1"
given user: text
given owner from find.owner
tool find(order: text) gives (owner: text)
tool refund(order: text, to?: text)
before refund require find(same order, owner = session.user)
before refund require (to = null or to = session.owner)
"""


def test_a_child_learns_and_is_given_its_own(tmp_path: Path) -> None:
    text = f"{LEARNED}limit count(refund) <= 1\n"
    parent = tcc.Gate(
        grammars.artifact(LEARNED), ledger=tmp_path / "parent.session", key=KEY, durable=False,
        given={"user": "me"},
    )  # fmt: skip
    child = tcc.Gate(
        grammars.artifact(text), ledger=tmp_path / "child.session", durable=False, parent=parent,
        proof=proof_of(text, LEARNED), given={"user": "you"},
    )  # fmt: skip
    do(child, ("find", {"order": "o"}), {"owner": "you"})
    with pytest.raises(tcc.Refused, match="R202"):  # by the parent, which is given another user
        do(child, ("refund", {"order": "o"}))
    assert len(parent.history) == 1
    assert judged(tmp_path, text, LEARNED).claim_type == "ConformantPrefix"


# Reopening.


def test_a_child_is_reopened_with_its_parent_only(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    parent.close()
    child.close()
    before = (tmp_path / "child.session").read_bytes()
    artifact = grammars.artifact(CHILD)
    stranger = tcc.Gate(grammars.artifact(PARENT), key=KEY)
    tcc.Gate(artifact, ledger=tmp_path / "alone.session", key=KEY).close()
    for name, options in (
        ("child", {"key": KEY}),
        ("child", {"parent": stranger, "proof": proof_of()}),
        ("alone", {"parent": stranger, "proof": proof_of()}),
    ):
        with pytest.raises(ResumeError) as error:
            tcc.Gate(artifact, ledger=tmp_path / f"{name}.session", **options)  # type: ignore[arg-type]
        assert error.value.path == "line 1: parent"
    assert (tmp_path / "child.session").read_bytes() == before
    child, parent = opened(tmp_path)
    do(child, REFUND)
    assert outcomes(child) == outcomes(parent)


def test_a_child_is_not_reopened_with_an_older_copy_of_its_parent(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    old = (tmp_path / "parent.session").read_bytes()
    do(child, FIND)
    parent.close()
    child.close()
    (tmp_path / "parent.session").write_bytes(old)
    with pytest.raises(ResumeError) as error:
        opened(tmp_path)
    assert (error.value.path, error.value.found) == ("line 2: call 1", "none")


def test_a_child_is_not_reopened_with_a_parent_that_has_another_call(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    do(child, ("find", {"order": "b"}))
    parent.close()
    child.close()
    path = tmp_path / "parent.session"
    records = records_of(path)
    first, second = of_kind(records, "call")
    records[first]["open"], records[second]["open"] = (
        records[second]["open"], records[first]["open"],
    )  # fmt: skip
    path.write_bytes(sealed(records))
    with pytest.raises(ResumeError) as error:
        opened(tmp_path)
    assert (error.value.path, error.value.expected) == ("line 2: call 1", "the parent's call")


def test_a_long_child_is_reopened_though_gates_drop_old_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(made_calls, "MOST_TOLD", 3)
    child, parent = opened(tmp_path)
    seq = do(child, FIND, outcome="unknown")
    for _ in range(20):
        do(child, FIND)
    child.close()
    parent.close()
    child, parent = opened(tmp_path)
    assert len(list(child.kept_history)) < 21
    child.resolve(seq, "done")
    do(child, REFUND)
    assert child.call_count == parent.call_count == 22
    child.finish()
    assert judged(tmp_path).claim_type == "Conformant"


def killed_at(folder: Path, number: int, place: str) -> bool:
    """Return whether the process was killed; False: it ended before so many writes."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    try:
        write, at = InFile.append, count()

        def append(self: InFile, render: Callable[[bytes], bytes]) -> None:
            now = next(at) == number
            if now and place == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            write(self, render)
            if now:
                os.kill(os.getpid(), signal.SIGKILL)

        InFile.append = append  # type: ignore[method-assign]
        child, _ = opened(folder)
        for call in (FIND, REFUND):
            with child.call(*call) as permit:
                with (folder / "world").open("a") as world:
                    world.write(f"{permit.seq}\n")
                permit.done("x")
        child.finish()
    finally:
        os._exit(0)


def go_on(folder: Path, number: int, place: str) -> bool:
    """Kill a process at a write, and continue both sessions; return whether one was killed."""
    folder.mkdir()
    killed = killed_at(folder, number, place)
    world = folder / "world"
    done = world.read_text().split() if world.exists() else []
    try:
        child, parent = opened(folder)
    except SessionEnded:
        return killed
    # A call that only the parent has was not made.
    assert len(done) <= len(child.history) <= len(parent.history) <= len(child.history) + 1
    for one in parent.history[len(child.history) :]:
        assert one.outcome == "unknown"
        parent.resolve(one.seq, "failed")
    for seq, one in enumerate(child.history, 1):
        if one.outcome == "unknown":
            child.resolve(seq, "done" if str(seq) in done else "failed")
    for call in (FIND, refund(3)):
        do(child, call)
    child.finish()
    assert judged(folder).claim_type == "Conformant"
    return killed


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_kill_after_a_write_leaves_two_ledgers_that_go_on(tmp_path: Path, number: int) -> None:
    """The parent's call, the child's call, and the parent's outcome."""
    proof_of()
    assert go_on(tmp_path / "s", number, "after")


@pytest.mark.campaign
@pytest.mark.parametrize("place", ["before", "after"])
def test_a_kill_at_any_write_leaves_two_ledgers_that_go_on(tmp_path: Path, place: str) -> None:
    proof_of()
    number = 0
    while go_on(tmp_path / str(number), number, place):
        number += 1
    assert number >= 10


def test_processes_with_a_child_each_share_one_parent(tmp_path: Path) -> None:
    proof_of()
    pids = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                child, _ = opened(tmp_path, name=str(number))
                for amount in (9, 4):
                    do(child, FIND)
                    with suppress(tcc.Refused):
                        do(child, refund(amount))
                child.close()
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    for number in range(3):
        assert judged(tmp_path, name=str(number)).claim_type == "ConformantPrefix"
    _, parent = opened(tmp_path, name="last")
    assert 6 <= len(parent.history) <= 12


# Ledgers that are forged with the key.


def sealed(records: list[dict[str, Any]]) -> bytes:
    """A ledger of these records, with the chain and the MACs of the key."""
    head, lines = FIRST_HEAD, []
    for record in records:
        record.pop("mac", None)
        record.pop("~", None)
        mac = record_mac(record_key(KEY), head, encode(record)).hex()
        line, head = seal(encode({**record, "mac": mac}), head)
        lines.append(line)
    return b"".join(lines)


def records_of(path: Path) -> list[dict[str, Any]]:
    return [dict(json.loads(line)) for line in path.read_bytes().splitlines()]


def of_kind(records: list[dict[str, Any]], kind: str) -> list[int]:
    return [at for at, record in enumerate(records) if record["kind"] == kind]


Records = list[dict[str, Any]]
Forge = Callable[[Records, Records], None]


def _forgeries() -> Iterator[tuple[Forge, str]]:
    def without_ref(child: Records, parent: Records) -> None:
        del parent[of_kind(parent, "call")[1]]["ref"]

    def other_order(child: Records, parent: Records) -> None:
        first, _, third = of_kind(parent, "call")
        parent[first]["ref"], parent[third]["ref"] = parent[third]["ref"], parent[first]["ref"]

    def other_value(child: Records, parent: Records) -> None:
        for at in of_kind(child, "call"):
            child[at]["open"]["order"] = {"digest": "ab" * 32}

    def failed(child: Records, parent: Records) -> None:
        at = of_kind(parent, "outcome")[2]
        parent[at]["outcome"] = "failed"
        parent[at].pop("result")

    def cut(child: Records, parent: Records) -> None:
        del child[of_kind(child, "call")[2] : of_kind(child, "outcome")[2] + 1]

    def cut_parent(child: Records, parent: Records) -> None:
        del parent[of_kind(parent, "call")[2] :]

    def no_parent(child: Records, parent: Records) -> None:
        del child[0]["parent"]

    def other_parent(child: Records, parent: Records) -> None:
        child[0]["parent"] = child[0]["session_id"]

    yield without_ref, "S502"
    yield other_order, "S502"
    yield other_value, "S502"
    yield failed, "S503"
    yield cut, "S502"
    yield cut_parent, "S502"
    yield no_parent, "S102"  # the id of a session follows from its first record
    yield other_parent, "S102"


@pytest.mark.parametrize(
    ("forge", "code"), [pytest.param(*one, id=one[0].__name__) for one in _forgeries()]
)
def test_a_forged_pair_is_found_though_each_ledger_holds(
    tmp_path: Path, forge: Forge, code: str
) -> None:
    child, parent = opened(tmp_path)
    for call in (FIND, refund(4), FIND):
        do(child, call)
    child.finish()
    child.close()
    parent.close()
    paths = [tmp_path / "child.session", tmp_path / "parent.session"]
    records = [records_of(path) for path in paths]
    for path, made in zip(paths, records, strict=True):
        path.write_bytes(sealed(made))
    assert judged(tmp_path).verdict == 0  # sealing changes nothing
    forge(records[0], records[1])
    for path, made in zip(paths, records, strict=True):
        path.write_bytes(sealed(made))
    found = judged(tmp_path)
    codes = [one.code for one in found.findings]
    assert (found.verdict, found.claim_type, codes[-1:]) == (1, "NoClaim", [code])


def test_a_ledger_of_no_parent_or_of_another_one_is_found(tmp_path: Path) -> None:
    child, _ = opened(tmp_path)
    do(child, FIND)
    tcc.Gate(grammars.artifact(PARENT), ledger=tmp_path / "other.session", key=KEY).close()
    tcc.Gate(grammars.artifact(CHILD), ledger=tmp_path / "alone.session", key=KEY).close()
    for ledger, above in (("child", "other"), ("alone", "parent")):
        found = tcc.validate(
            tmp_path / f"{ledger}.session", grammars.artifact(CHILD),
            parent=tmp_path / f"{above}.session", parent_artifact=grammars.artifact(PARENT),
            key=KEY,
        )  # fmt: skip
        assert [one.code for one in found.findings][-1] == "S501"


def test_an_error_that_only_one_side_read_is_found(tmp_path: Path) -> None:
    text = f'grammar g version "1"\n{TOOLS}'.replace("fail)", "fail) { errors mean failed }")
    child, parent = opened(tmp_path, text, text)
    with child.call("check") as permit:
        permit.failed("no", answered=True)
    child.close()
    parent.close()
    assert judged(tmp_path, text, text).claim_type == "ConformantPrefix"
    path = tmp_path / "child.session"
    records = records_of(path)
    del records[of_kind(records, "outcome")[0]]["answered"]
    path.write_bytes(sealed(records))
    assert [one.code for one in judged(tmp_path, text, text).findings][-1:] == ["S503"]

"""A child's gate: each of its calls is its parent's too, whoever is killed between the records."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tcc
import tcc_certs
from tcc.library import artifact_bytes
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import FIRST_HEAD, seal
from tcc_certs.kernel import check
from tcc_certs.session import SessionValidation, delegation
from tcc_certs.values.canonical import record_key, record_mac
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.gate.journal.ledger_file import InFile

KEY = bytes(range(32))
TOOLS = """
tool find(order: text min 1 max 9)
tool refund(part: half | full, order: text min 1 max 9, amount: integer 1 .. 20)
tool check gives (result: pass | fail)
"""
PARENT = f"""grammar desk version "1"
{TOOLS}
plan = (find | refund | check){{0,9}}
before refund require find(same order)
limit sum(refund.amount) <= 30
"""
CHILD = f"""grammar sub version "1"
{TOOLS}
plan = (find | refund | check){{0,5}}
before refund require find(same order)
limit sum(refund.amount) <= 20
"""
# Values that are listed for the child and open for its parent.
LISTED = """grammar narrow version "1"

tool find(order: ord1 | "a b")
tool refund(part: half, order: ord1, amount: 2 | 3)

plan = find{1,2} refund?

before refund require find(order = ord1)
"""
WIDE = f"""grammar wide version "1"
{TOOLS}
plan = (find | refund | check){{0,30}}
"""
Call = tuple[str, dict[str, Any]]
FIND: Call = ("find", {"order": "a"})
REFUND: Call = ("refund", {"part": "half", "order": "a", "amount": 12})


@cache
def pair(child: str = CHILD, parent: str = PARENT) -> tuple[Artifact, Artifact, bytes]:
    """Both artifacts, and the proof that the one implies the other."""
    made = tcc.compile_text(child), tcc.compile_text(parent)
    found = tcc.prove(made[0], implies=made[1])
    assert found.proved and found.certificate is not None, found.whys
    return *made, found.certificate


def opened(folder: Path, child: str = CHILD, parent: str = PARENT, name: str = "child") -> Any:
    """Gates of both, on ledgers in a folder."""
    made, above, proof = pair(child, parent)
    gate = tcc.Gate(above, ledger=folder / "parent.session", key=KEY, durable=False)
    ledger = folder / f"{name}.session"
    return tcc.Gate(made, ledger=ledger, parent=gate, proof=proof, durable=False), gate


def do(gate: tcc.Gate, call: Call, result: object = "x", outcome: str = "done") -> int:
    with gate.call(*call) as permit:
        if outcome == "done":
            permit.done(result)
        elif outcome == "failed":
            permit.failed()
    return permit.seq


def validated(
    folder: Path, child: str = CHILD, parent: str = PARENT, name: str = "child"
) -> SessionValidation:
    made, above, _ = pair(child, parent)
    found = tcc.validate(
        folder / f"{name}.session",
        made,
        parent=folder / "parent.session",
        parent_artifact=above,
        key=KEY,
    )
    assert isinstance(found, SessionValidation)
    return found


def outcomes(gate: tcc.Gate) -> list[tuple[str, str]]:
    return [(one.call, one.outcome) for one in gate.history]


# The proof.


def test_a_child_without_a_proof_that_holds_is_not_opened(tmp_path: Path) -> None:
    child, parent, proof = pair()
    gate = tcc.Gate(parent)
    wider = tcc.compile_text(CHILD.replace("<= 20", "<= 40"))
    refuted = tcc.prove(wider, implies=parent)
    other = tcc.prove(child, "never check after refund").certificate
    assert refuted.verdict == "refuted"
    short = tcc.compile_text(CHILD.replace("{0,5}", "{0,4}"))
    cut = proof[: proof.rindex(b"\n", 0, -1) + 1]
    later = proof.replace(b'"format_version":"1.0"', b'"format_version":"9.0"')
    # fmt: off
    cases: list[tuple[Artifact, bytes | None, str]] = [
        (child, None, "T101"),
        (child, b"", "T101"),
        (child, cut, "T101"),
        (wider, refuted.certificate, "T102"),
        (child, other, "T102"),
        (wider, proof, "T103"),
        (short, proof, "T103"),
        (child, tcc.prove(parent, implies=parent).certificate, "T103"),
        (child, later, "D102"),
    ]
    # fmt: on
    for number, (artifact, data, code) in enumerate(cases):
        ledger = tmp_path / f"{number}.session"
        with pytest.raises(Rejected) as error:
            tcc.Gate(artifact, ledger=ledger, parent=gate, proof=data)
        assert error.value.code.value == code, number
        assert not ledger.exists()
    file = tmp_path / "proof.tccp"
    file.write_bytes(proof)
    tcc.Gate(child, parent=gate, proof=file).close()
    with pytest.raises(SettingsError):
        tcc.Gate(child, proof=proof)
    with pytest.raises(SettingsError):
        tcc.Gate(child, parent=gate, proof=proof, key=bytes(32))


def test_a_proof_whose_first_line_is_changed_opens_nothing() -> None:
    """The question, the cores and the sizes; what is flipped behind it is in tests/exact."""
    child, parent, proof = pair()
    gate = tcc.Gate(parent)
    for at in range(0, proof.index(b"\n") + 1, 17):
        changed = proof[:at] + bytes([proof[at] ^ 1]) + proof[at + 1 :]
        with pytest.raises(Rejected):
            tcc.Gate(child, parent=gate, proof=changed)


def test_errors_that_mean_failed_for_the_child_alone_open_nothing() -> None:
    find = "tool find(order: text min 1 max 9)"
    tools = TOOLS.replace(find, find + " { errors mean failed }")
    child, parent, proof = pair(CHILD.replace(TOOLS, tools))
    with pytest.raises(SettingsError, match="errors mean failed"):
        tcc.Gate(child, parent=tcc.Gate(parent), proof=proof)
    child, parent, proof = pair(CHILD.replace(TOOLS, tools), PARENT.replace(TOOLS, tools))
    tcc.Gate(child, parent=tcc.Gate(parent), proof=proof).close()


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
    found = validated(tmp_path)
    assert (found.verdict, found.claim_type) == (0, "Conformant")
    assert found.summary.endswith("each call is one of its parent's session, too")
    assert not parent.ended


@pytest.mark.parametrize("whose", ["child", "parent"])
def test_what_either_refuses_is_a_call_of_neither(tmp_path: Path, whose: str) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    if whose == "parent":
        do(parent, ("refund", {"part": "full", "order": "a", "amount": 19}))
    before = len(child.history), len(parent.history)
    amount = 12 if whose == "parent" else 20
    if whose == "child":
        do(child, ("refund", {"part": "half", "order": "a", "amount": 2}))
        before = len(child.history), len(parent.history)
    call = ("refund", {"part": "half", "order": "a", "amount": amount})
    assert child.check(*call).code == "R202"
    with pytest.raises(tcc.Refused) as error:
        do(child, call)
    limit = 20 if whose == "child" else 30
    assert error.value.because[0]["text"] == f"limit sum(refund.amount) <= {limit}"
    assert (len(child.history), len(parent.history)) == before
    do(child, ("refund", {"part": "half", "order": "a", "amount": 1}))
    assert validated(tmp_path).word == "INCOMPLETE"
    assert validated(tmp_path).claim_type == "ConformantPrefix"


def test_an_unknown_outcome_is_unknown_to_both_and_resolved_for_both(tmp_path: Path) -> None:
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
    with pytest.raises(ValueError, match="has call 3 as done"):
        child.resolve(seq, "failed")
    child.resolve(seq, "done")
    assert validated(tmp_path).claim_type == "ConformantPrefix"


def test_an_answer_that_is_unforeseen_ends_neither(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    with child.call("check") as permit:
        permit.done({"result": "maybe"})
    assert permit.unforeseen
    for gate in (child, parent):
        assert gate.check(*FIND).code is None
    do(child, FIND)
    assert outcomes(child) == outcomes(parent) and len(child.history) == 2


def test_a_child_of_a_child_is_three_sessions(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    inner = tcc.compile_text(CHILD.replace("{0,5}", "{0,2}"))
    proof = tcc.prove(inner, implies=child.artifact).certificate
    leaf = tcc.Gate(inner, ledger=tmp_path / "leaf.session", parent=child, proof=proof)
    do(leaf, FIND)
    do(leaf, REFUND)
    assert outcomes(leaf) == outcomes(child) == outcomes(parent)
    found = tcc.validate(
        tmp_path / "leaf.session",
        inner,
        parent=tmp_path / "child.session",
        parent_artifact=child.artifact,
        key=KEY,
    )
    assert found.word == "INCOMPLETE" and found.claim_type == "ConformantPrefix"


def test_values_that_are_listed_for_the_child_are_the_open_ones_of_its_parent(
    tmp_path: Path,
) -> None:
    child, _ = opened(tmp_path, LISTED, WIDE)
    do(child, ("find", {"order": "ord1"}))
    do(child, ("find", {"order": "a b"}))
    do(child, ("refund", {"part": "half", "order": "ord1", "amount": 3}))
    child.close()
    opened(tmp_path, LISTED, WIDE)[0].finish()
    assert validated(tmp_path, LISTED, WIDE).claim_type == "Conformant"


def test_nothing_in_the_shadow_is_delegated() -> None:
    child, parent, proof = pair()
    with pytest.raises(SettingsError, match="shadow"):
        tcc.Gate(child, parent=tcc.Gate(parent, shadow=True), proof=proof)
    with pytest.raises(SettingsError, match="shadow"):
        tcc.Gate(child, parent=tcc.Gate(parent), proof=proof, shadow=True)


def test_a_budget_is_the_parents() -> None:
    child, parent, proof = pair()
    gate = tcc.Gate(child, parent=tcc.Gate(parent), proof=proof)
    with pytest.raises(SettingsError, match="the budget of the parent's gate"):
        gate.budget(price_cap=1)


def test_calls_inside_a_call_of_the_parent_are_refused_at_once(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    with parent.call(*FIND) as permit:
        with pytest.raises(tcc.Refused) as error:
            do(child, FIND)
        assert error.value.code == "R305"
        permit.done()
    assert not child.history
    do(child, FIND)


def test_children_of_one_parent_share_what_it_has_left(tmp_path: Path) -> None:
    """Threads with a child each: the parent's cap holds over all of them."""
    made, above, proof = pair()
    parent = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY, durable=False)
    children = []
    for number in range(4):
        ledger = tmp_path / f"{number}.session"
        children.append(tcc.Gate(made, ledger=ledger, parent=parent, proof=proof, durable=False))
    do(children[0], FIND)
    taken: list[int] = []

    def work(gate: tcc.Gate) -> None:
        for amount in (9, 5, 4):
            try:
                do(gate, FIND)
                do(gate, ("refund", {"part": "half", "order": "a", "amount": amount}))
                taken.append(amount)
            except tcc.Refused:
                pass

    threads = [threading.Thread(target=work, args=(gate,)) for gate in children]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert 0 < sum(taken) <= 30
    assert len(parent.history) == sum(len(gate.history) for gate in children) == 9
    for number in range(4):
        assert validated(tmp_path, name=str(number)).claim_type == "ConformantPrefix"


def test_tasks_with_a_child_each_wait_for_one_another(tmp_path: Path) -> None:
    made, above, proof = pair()
    parent = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY)

    async def work(number: int) -> None:
        ledger = tmp_path / f"{number}.session"
        gate = tcc.Gate(made, ledger=ledger, parent=parent, proof=proof)
        for call in (FIND, ("refund", {"part": "half", "order": "a", "amount": 5})):
            async with gate.call(*call) as permit:
                await asyncio.sleep(0)
                permit.done("x")

    async def run() -> None:
        await asyncio.gather(*[work(number) for number in range(3)])

    asyncio.run(run())
    assert [one.outcome for one in parent.history] == ["done"] * 6
    for number in range(3):
        assert validated(tmp_path, name=str(number)).claim_type == "ConformantPrefix"


def test_parallel_calls_of_a_child_are_under_way_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No proof covers parallel tools yet; what the gate does does not depend on it."""
    monkeypatch.setattr("tcc_runtime.gate.gate.require_proof", lambda *_: None)
    tools = "tool read(path: text max 9) { parallel }\n"
    texts = [f'grammar g version "1"\n{tools}plan = read{{0,{most}}}\n' for most in (4, 8)]
    made = [tcc.compile_text(text) for text in texts]
    parent = tcc.Gate(made[1], ledger=tmp_path / "parent.session", key=KEY)
    child = tcc.Gate(made[0], ledger=tmp_path / "child.session", parent=parent)
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
    assert [one.outcome for one in parent.history] == ["done"] * 3
    child.finish()
    found = tcc.validate(
        tmp_path / "child.session",
        made[0],
        parent=tmp_path / "parent.session",
        parent_artifact=made[1],
        key=KEY,
    )
    assert found.claim_type == "Conformant"


def test_a_turn_that_is_handed_in_is_one_of_both(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    turn = child.try_turn()
    assert turn is not None
    assert parent.try_turn() is None
    child.give_back(turn)
    turn = child.try_turn()
    with child.call(*FIND, turn=turn) as permit:
        permit.done()
    held = parent.try_turn()
    assert held is not None and child.try_turn() is None
    parent.give_back(held)
    turn = child.try_turn()
    child.finish(turn=turn)
    assert parent.try_turn() is not None


# Reopening.


def test_a_child_is_reopened_with_its_parent_alone(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    parent.close()
    child.close()
    made, above, proof = pair()
    before = (tmp_path / "child.session").read_bytes()
    with pytest.raises(ResumeError, match="parent"):
        tcc.Gate(made, ledger=tmp_path / "child.session", key=KEY)
    stranger = tcc.Gate(above, key=KEY)
    with pytest.raises(ResumeError, match="parent"):
        tcc.Gate(made, ledger=tmp_path / "child.session", parent=stranger, proof=proof)
    alone = tcc.Gate(made, ledger=tmp_path / "alone.session", key=KEY)
    alone.close()
    gate = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY)
    with pytest.raises(ResumeError, match="parent"):
        tcc.Gate(made, ledger=tmp_path / "alone.session", parent=gate, proof=proof)
    assert (tmp_path / "child.session").read_bytes() == before
    again = tcc.Gate(made, ledger=tmp_path / "child.session", parent=gate, proof=proof)
    do(again, REFUND)
    assert outcomes(again) == outcomes(gate)


def test_a_child_is_not_reopened_beside_an_older_copy_of_its_parent(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    old = (tmp_path / "parent.session").read_bytes()
    do(child, FIND)
    parent.close()
    child.close()
    (tmp_path / "parent.session").write_bytes(old)
    with pytest.raises(ResumeError, match="a call of the parent's"):
        opened(tmp_path)


PLACES = ("before", "torn", "after")


def killed_at(folder: Path, number: int, place: str) -> bool:
    """A process that is killed at a write; False: it had fewer writes."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    try:
        write, at = InFile.append, count()

        def append(self: InFile, body: bytes) -> None:
            now = next(at) == number
            if now and place == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if now and place == "torn":
                os.write(self._handle, seal(body, self.head)[0][:-9])
                os.kill(os.getpid(), signal.SIGKILL)
            write(self, body)
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


@pytest.mark.parametrize("place", PLACES)
def test_whoever_is_killed_at_a_write_leaves_both_ledgers_to_be_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    pair()
    # That the proof is checked each time is tested above.
    monkeypatch.setattr("tcc_runtime.gate.gate.require_proof", lambda *_: None)
    for number in count():
        folder = tmp_path / str(number)
        folder.mkdir()
        killed = killed_at(folder, number, place)
        world = folder / "world"
        done = world.read_text().split() if world.exists() else []
        try:
            child, parent = opened(folder)
        except ResumeError:
            assert records_of(folder / "child.session")[-1]["kind"] == "end"
            if killed:
                continue
            break
        # What happened is a call of both; one that the parent has alone never happened.
        assert len(done) <= len(child.history) <= len(parent.history) <= len(child.history) + 1
        assert all(one.outcome != "failed" for one in parent.history)
        alone = parent.history[len(child.history) :]
        assert all(one.outcome == "unknown" for one in alone)
        for one in alone:
            parent.resolve(one.seq, "failed")
        for seq, one in enumerate(child.history, 1):
            if one.outcome == "unknown":
                child.resolve(seq, "done" if str(seq) in done else "failed")
        for call in (FIND, ("refund", {"part": "half", "order": "a", "amount": 3})):
            do(child, call)
        child.finish()
        found = validated(folder)
        assert found.claim_type == "Conformant", (number, found.summary)
    assert number >= 10


def test_processes_with_a_child_each_share_one_parent(tmp_path: Path) -> None:
    pair()
    pids = []
    for number in range(3):
        pid = os.fork()
        if pid == 0:
            try:
                child, _ = opened(tmp_path, name=str(number))
                for amount in (9, 4):
                    do(child, FIND)
                    try:
                        do(child, ("refund", {"part": "half", "order": "a", "amount": amount}))
                    except tcc.Refused:
                        time.sleep(0.001)
                child.close()
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
    parent = tcc.Gate(pair()[1], ledger=tmp_path / "parent.session", key=KEY)
    assert len(parent.history) == 9  # a parent's plan has no more calls
    for number in range(3):
        assert validated(tmp_path, name=str(number)).claim_type == "ConformantPrefix"


# Pairs that are forged by somebody who has the key.


def sealed(records: list[dict[str, Any]]) -> bytes:
    """A ledger of these records, with chain and MACs of the key."""
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


Forge = Callable[[list[dict[str, Any]], list[dict[str, Any]]], None]


def _forgeries() -> Iterator[tuple[str, Forge, str]]:
    def without_ref(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        del parent[of_kind(parent, "call")[1]]["ref"]

    def other_order(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        first, _, third = of_kind(parent, "call")
        parent[first]["ref"], parent[third]["ref"] = parent[third]["ref"], parent[first]["ref"]

    def other_value(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        first, _, third = of_kind(child, "call")
        for at in (first, third):
            child[at]["open"]["order"] = {"digest": "ab" * 32}
        refund = of_kind(child, "call")[1]
        child[refund]["open"]["order"] = {"digest": "ab" * 32}

    def settled(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        at = of_kind(parent, "outcome")[2]
        parent[at]["outcome"] = "failed"
        parent[at].pop("result")

    def cut(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        del child[of_kind(child, "call")[2] : of_kind(child, "outcome")[2] + 1]

    def cut_parent(child: list[dict[str, Any]], parent: list[dict[str, Any]]) -> None:
        del parent[of_kind(parent, "call")[2] :]

    yield "a call without the child's id", without_ref, "S502"
    yield "calls in another order", other_order, "S502"
    yield "another value", other_value, "S502"
    yield "failed for the parent", settled, "S503"
    yield "a call that the child leaves out", cut, "S502"
    yield "a call that the parent leaves out", cut_parent, "S502"


@pytest.mark.parametrize(("name", "forge", "code"), list(_forgeries()))
def test_a_forged_pair_is_seen_though_both_ledgers_hold(
    tmp_path: Path, name: str, forge: Forge, code: str
) -> None:
    child, parent = opened(tmp_path)
    for call in (FIND, ("refund", {"part": "half", "order": "a", "amount": 4}), FIND):
        do(child, call)
    child.finish()
    child.close()
    parent.close()
    paths = [tmp_path / "child.session", tmp_path / "parent.session"]
    records = [records_of(path) for path in paths]
    assert validated(tmp_path).verdict == 0
    for path, made in zip(paths, records, strict=True):
        path.write_bytes(sealed(made))
    assert validated(tmp_path).verdict == 0  # sealing changes nothing
    forge(records[0], records[1])
    for path, made in zip(paths, records, strict=True):
        path.write_bytes(sealed(made))
    artifacts = pair()[:2]
    for path, artifact in zip(paths, artifacts, strict=True):
        alone = tcc.validate(path, artifact, key=KEY)
        assert alone.claim_type in ("Conformant", "ConformantPrefix"), (name, alone.summary)
    found = validated(tmp_path)
    assert (found.verdict, found.claim_type, found.findings[0].code) == (1, "NoClaim", code), name


def test_a_ledger_of_no_parent_or_of_another_one_is_seen(tmp_path: Path) -> None:
    child, _ = opened(tmp_path)
    do(child, FIND)
    made, above, _ = pair()
    tcc.Gate(above, ledger=tmp_path / "other.session", key=KEY).close()
    tcc.Gate(made, ledger=tmp_path / "alone.session", key=KEY).close()
    for ledger, beside in (("child", "other"), ("alone", "parent")):
        found = tcc.validate(
            tmp_path / f"{ledger}.session",
            made,
            parent=tmp_path / f"{beside}.session",
            parent_artifact=above,
            key=KEY,
        )
        assert [one.code for one in found.findings][-1] == "S501"
    changed = (tmp_path / "parent.session").read_bytes().replace(b'"call":"find"', b'"call":"fing"')
    found = tcc.validate(
        tmp_path / "child.session", made, parent=changed, parent_artifact=above, key=KEY
    )
    assert [one.code for one in found.findings][-1] == "S501"
    with pytest.raises(SettingsError):
        tcc.validate(tmp_path / "child.session", made, parent=tmp_path / "parent.session", key=KEY)


def test_whatever_is_flipped_in_either_ledger_is_a_verdict(tmp_path: Path) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    do(child, REFUND)
    child.finish()
    child.close()
    parent.close()
    made, above, _ = pair()
    texts = [(tmp_path / f"{name}.session").read_bytes() for name in ("child", "parent")]
    for which in (0, 1):
        for at in range(0, len(texts[which]), 97):
            both = list(texts)
            both[which] = texts[which][:at] + bytes([texts[which][at] ^ 4]) + texts[which][at + 1 :]
            found = tcc.validate(both[0], made, parent=both[1], parent_artifact=above, key=KEY)
            assert found.verdict in (1, 2) and found.claim_type != "Conformant"


ANSWERS = "gives (result: pass | fail, size: small | big)"


@pytest.mark.parametrize(
    ("known", "code"), [({}, None), ({"size": "big"}, None), ({"size": "small"}, "S503")]
)
def test_what_both_know_of_an_answer_is_the_same(
    tmp_path: Path, known: dict[str, str], code: str | None
) -> None:
    """Where an answer was unforeseen for the child, its parent may know more of it."""
    texts = [text.replace("gives (result: pass | fail)", ANSWERS) for text in (CHILD, PARENT)]
    child, parent = opened(tmp_path, *texts)
    with child.call("check") as permit:
        permit.done({"result": "pass", "size": "big"})
    child.close()
    parent.close()
    path = tmp_path / "child.session"
    records = records_of(path)
    (at,) = of_kind(records, "outcome")
    records[at]["unforeseen"] = True
    records[at]["observed"] = known
    if not known:
        del records[at]["observed"]
    path.write_bytes(sealed(records))
    found = validated(tmp_path, *texts)
    assert [one.code for one in found.findings] == ["D301", *([code] if code else [])]
    assert found.claim_type == ("NoClaim" if code else "ConformantPrefix")


@pytest.mark.parametrize("forged", [False, True])
def test_the_verb_of_certs_holds_a_ledger_to_its_parent(tmp_path: Path, forged: bool) -> None:
    child, parent = opened(tmp_path)
    do(child, FIND)
    child.close()
    parent.close()
    made, above, _ = pair()
    for name, of in (("child.tcca", made), ("parent.tcca", above)):
        tcc.save(of, tmp_path / name)
    ledger = tmp_path / "child.session"
    words = [str(ledger), "--artifact", str(tmp_path / "child.tcca"), "--key", KEY.hex()]
    beside = ["--parent", str(tmp_path / "parent.session")]
    if forged:  # a session of that grammar, and not the parent
        (tmp_path / "parent.session").unlink()
        other = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY, durable=False)
        do(other, FIND)
        other.close()
    asked = [*words, *beside, "--parent-artifact", str(tmp_path / "parent.tcca")]
    assert verb(asked) == ((1, True) if forged else (2, False))  # INCOMPLETE, and no S501
    assert verb([*words, *beside]) == (2, False)  # they go together


def verb(words: list[str]) -> tuple[int, bool]:
    """How ``python -m tcc_certs validate`` ends, and whether it says S501."""
    certs = Path(tcc_certs.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-m", "tcc_certs", "validate", *words],
        env={"PYTHONPATH": str(certs)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, "S501" in done.stdout


OPEN = """grammar g version "1"

tool find(order: text) gives (owner: text, ids: list of text, n: integer)
tool pay(order: text, owner: text)

limit depth <= 4
before pay require find(owner = this.owner, n >= 1, this.owner in ids)
"""


@pytest.mark.parametrize(
    ("answer", "same"),
    [
        ({"owner": "me", "ids": ["me"], "n": 1}, True),
        ({"owner": "me", "ids": ["me"]}, True),  # of an answer that one does not know
        ({"owner": "you", "ids": ["me"], "n": 1}, False),
        ({"owner": "me", "ids": ["you"], "n": 1}, False),
        ({"owner": "me", "ids": ["me"], "n": 2}, False),
    ],
)
def test_open_answers_that_both_have_are_the_same(
    tmp_path: Path, answer: dict[str, Any], same: bool
) -> None:
    artifact = tcc.compile_text(OPEN)
    checked = check(artifact_bytes(artifact))
    made = []
    for name, told in (("a", {"owner": "me", "ids": ["me"], "n": 1}), ("b", answer)):
        gate = tcc.Gate(artifact, ledger=tmp_path / name, key=KEY, durable=False)
        do(gate, ("find", {"order": "o"}), told)
        gate.close()
        made.append(delegation._read((tmp_path / name).read_bytes(), checked))
    (one, other) = (of.calls[0] for of in made)
    assert delegation._answers_agree(checked.core, one, checked.core, other) is same


LEARNED = """grammar desk version "1"

given user: text max 9

tool find(order: text max 9) gives (state: open | *, owner: text max 9)
tool refund(order: text max 9, to?: text max 9 or null)

limit depth <= 3

given owner from find.owner

before refund require find(same order, owner = session.user)
before refund require (to = null or to = session.owner)
"""


def test_a_child_with_open_answers_and_what_it_learns_has_a_proof(tmp_path: Path) -> None:
    """Both know what a call answered, and what their session is given."""
    child = f"{LEARNED}limit count(refund) <= 1\n"
    made, above, proof = pair(child, LEARNED)
    user = {"user": "me"}
    parent = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY, durable=False, given=user)
    gate = tcc.Gate(
        made,
        ledger=tmp_path / "child.session",
        parent=parent,
        proof=proof,
        durable=False,
        given=user,
    )
    with pytest.raises(tcc.Refused, match="R201"):
        do(gate, ("refund", {"order": "o"}))
    do(gate, ("find", {"order": "o"}), {"state": "paid", "owner": "me"})
    with pytest.raises(tcc.Refused, match="R202"):
        do(gate, ("refund", {"order": "o", "to": "you"}))
    do(gate, ("refund", {"order": "o", "to": "me"}))
    gate.finish()
    parent.finish()
    assert validated(tmp_path, child, LEARNED).verdict == 0
    wider = tcc.prove(tcc.compile_text(LEARNED), implies=tcc.compile_text(child))
    assert wider.verdict == "refuted" and wider.session is not None
    assert [call.tool for call in wider.session.calls] == ["find", "refund", "refund"]


def test_a_child_that_is_given_something_else_does_nothing_that_its_parent_may_not(
    tmp_path: Path,
) -> None:
    """The proof speaks of sessions that are given the same; the parent decides every call."""
    made, above, proof = pair(LEARNED, LEARNED)
    me, you = {"user": "me"}, {"user": "you"}
    parent = tcc.Gate(above, ledger=tmp_path / "parent.session", key=KEY, durable=False, given=me)
    more: dict[str, Any] = {"parent": parent, "proof": proof, "durable": False, "given": you}
    gate = tcc.Gate(made, ledger=tmp_path / "child.session", **more)
    do(gate, ("find", {"order": "o"}), {"state": "open", "owner": "you"})
    assert gate.check("refund", {"order": "o"}).code == "R202"  # of the parent
    with pytest.raises(tcc.Refused, match="R202"):
        do(gate, ("refund", {"order": "o"}))
    assert [[one.call for one in of.history] for of in (gate, parent)] == [["find"], ["find"]]
    gate.finish()
    parent.finish()
    assert validated(tmp_path, LEARNED, LEARNED).verdict == 0
    # By itself the child's grammar lets it through.
    with tcc.Gate(made, durable=False, given=you) as alone:
        do(alone, ("find", {"order": "o"}), {"state": "open", "owner": "you"})
        do(alone, ("refund", {"order": "o"}))
        alone.finish()

"""An execution that is killed at any write of its ledger, and gone on with; leases that expire.

The process is a fork that ends itself with SIGKILL before, within or after the write; another gate
goes on then, whose owner knows what the tools have done.  Each tool is called once, as often as the
plan says; the ledger is VALID with the session's key; and the account has what the ledger says, or
more where the kill left a reservation that nobody settled.
"""

from __future__ import annotations

import gc
import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.errors import Rejected
from tcc_certs.session import validate
from tcc_runtime.account import file as account_module
from tcc_runtime.account.account import Account
from tcc_runtime.errors import BindingError, ResumeError
from tcc_runtime.executor.execute import execute
from tcc_runtime.gate.journal import ledger_file
from tests.gate.grammars import artifact, bytes_of

GRAMMAR = """grammar desk version "1"

tool find(by: mail | phone)
tool check gives (ok: yes | no)
tool answer {
  model fast { price 1 latency 50 ms execute { price 2 latency 300 ms } }
  model deep { price 9 latency 100 ms execute }
}
tool tell

plan = find check (answer){2} tell
"""
KEY = bytes(range(32))
WRITES = 12  # the header, the budget, and an outcome behind each of five calls


def executed(folder: Path, key: bytes = KEY, **more: Any) -> Any:
    """The plan, its tools noting under which key they were called."""

    def noted(tool: str, result: object = None) -> Callable[..., object]:
        def called(idempotency_key: str, model: str = "", **given: object) -> object:
            with (folder / "calls").open("a") as file:
                file.write(json.dumps([tool, idempotency_key]) + "\n")
            return result

        return called

    tools = {name: noted(name) for name in ("find", "answer", "tell")}
    tools["check"] = noted("check", {"ok": "yes"})
    options: dict[str, Any] = {"ledger": folder / "s", "key": key, "durable": False}
    with (
        tcc.Gate(artifact(GRAMMAR), **options) as gate,
        Account(folder / "account", price=20) as account,
    ):
        return execute(tools=tools, gate=gate, account=account, price_cap=9, **more)


def killed(folder: Path, number: int, place: str) -> None:
    """The same in a fork that dies at that write."""
    gc.freeze()  # a fork that collects copies all memory that it goes through
    child = os.fork()
    if child == 0:  # pragma: no cover
        written = [0]
        append = ledger_file.InFile.append

        def dying(self: ledger_file.InFile, render: Callable[[bytes], bytes]) -> None:
            body = render(self.head)
            written[0] += 1
            if written[0] == number and place == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            if written[0] == number and place == "torn":
                os.write(self._handle, body[: len(body) // 2])
                os.kill(os.getpid(), signal.SIGKILL)
            append(self, lambda _: body)
            if written[0] == number:
                os.kill(os.getpid(), signal.SIGKILL)

        ledger_file.InFile.append = dying  # type: ignore[method-assign]
        try:
            executed(folder)
        finally:
            os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def killed_at_transaction(folder: Path, number: int, place: str) -> bool:
    """The same at a transaction of the account that writes; whether there are so many."""
    gc.freeze()  # a fork that collects copies all memory that it goes through
    child = os.fork()
    if child == 0:  # pragma: no cover
        begun = [0]
        transaction = account_module.transaction

        @contextmanager
        def dying(*given: Any, reading: bool = False) -> Iterator[Any]:
            begun[0] += not reading
            due = begun[0] == number and not reading
            if due and place == "before":
                os.kill(os.getpid(), signal.SIGKILL)
            with transaction(*given, reading=reading) as connection:
                yield connection
                if due and place == "uncommitted":
                    os.kill(os.getpid(), signal.SIGKILL)
            if due:
                os.kill(os.getpid(), signal.SIGKILL)

        account_module.transaction = dying  # type: ignore[assignment]
        code = 7
        try:
            code = 0 if executed(folder).finished else 7
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL)
    return code != 0


def called(folder: Path) -> Counter[tuple[str, str]]:
    path = folder / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return Counter([tuple(json.loads(line)) for line in lines])


def knowing(folder: Path) -> Callable[[Any], Any]:
    """An owner who looks at what the tools have noted."""

    def resolve(made: Any) -> Any:
        made_known = called(folder).total() >= made.seq
        return ("done", {"ok": "yes"} if made.call == "check" else None) if made_known else "failed"

    return resolve


@pytest.mark.parametrize("place", ["before", "torn", "after"])
def test_an_execution_is_killed_at_each_write(place: str, tmp_path: Path) -> None:
    for number in range(1, WRITES + 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        killed(folder, number, place)
        ended = executed(folder, resolve=knowing(folder))
        assert ended.finished, (number, ended.reason)
        _is_sound(folder, ended, number)


def _is_sound(folder: Path, ended: Any, number: int) -> None:
    found = validate((folder / "s").read_bytes(), bytes_of(artifact(GRAMMAR)), key=KEY)
    assert (found.word, found.claim_type) == ("VALID", "Conformant"), (number, found.findings)
    calls = called(folder)
    assert sorted(calls.values()) == [1] * 5, (number, calls)
    assert [made.outcome for made in ended.calls].count("done") == 5
    with Account(folder / "account") as account:
        sums = account.statement().sums
    spent = ended.spent.price
    assert sums.caps.left(sums.spent.plus(sums.held)).price >= 0
    assert spent <= sums.spent.price + sums.held.price <= spent + 2, (number, sums)


@pytest.mark.parametrize("place", ["before", "uncommitted", "after"])
def test_an_execution_is_killed_at_each_transaction_of_its_account(
    place: str, tmp_path: Path
) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        folder.mkdir()
        if not killed_at_transaction(folder, number, place):
            break
        ended = executed(folder, resolve=knowing(folder))
        assert ended.finished, (number, ended.reason)
        _is_sound(folder, ended, number)
    assert number > 6  # two calls of a model: reserved, begun, settled


def test_it_is_gone_on_with_by_nobody_else(tmp_path: Path) -> None:
    killed(tmp_path, 6, "after")
    data = (tmp_path / "s").read_bytes()
    with pytest.raises(ResumeError, match="key_commitment: S104"):
        executed(tmp_path, key=bytes(32))
    other = tcc.compile_text(GRAMMAR.replace("{2}", "{3}"))
    with pytest.raises(ResumeError, match="artifact: L202"):
        tcc.Gate(other, ledger=tmp_path / "s", key=KEY)
    with pytest.raises(ResumeError, match="budget"):
        executed(tmp_path, epsilon_cap="1")
    kept = (tmp_path / "s").read_bytes()
    assert kept.startswith(data) and len(kept.splitlines()) <= len(data.splitlines()) + 1
    # A result that was recorded cannot be told again, nor another one in its place.
    lines = data.splitlines(keepends=True)
    for forged in ([*lines, lines[-1]], [*lines, lines[3]], [*lines[:3], *lines[4:]]):
        (tmp_path / "s").write_bytes(b"".join(forged))
        with pytest.raises((ResumeError, Rejected)):
            executed(tmp_path)


def test_other_tools_go_on_only_where_they_can_make_every_call(tmp_path: Path) -> None:
    killed(tmp_path, 6, "after")
    before, done = (tmp_path / "s").read_bytes(), called(tmp_path)
    without_model = {name: lambda **_: None for name in ("find", "check", "tell")}
    without_model["answer"] = lambda: None  # type: ignore[assignment]
    for tools in ({}, {"find": print}, without_model):
        with (
            tcc.Gate(artifact(GRAMMAR), ledger=tmp_path / "s", key=KEY, durable=False) as gate,
            Account(tmp_path / "account") as account,
            pytest.raises(BindingError),
        ):
            execute(tools=tools, gate=gate, account=account, price_cap=9)
    assert (tmp_path / "s").read_bytes().startswith(before) and called(tmp_path) == done
    assert executed(tmp_path, resolve=knowing(tmp_path)).finished


def test_a_lease_that_expires_while_its_call_is_made_is_settled_once(tmp_path: Path) -> None:
    """It counts in full until its holder says what it took, however late that is."""
    now = [1000]
    account = Account(tmp_path / "a", price=20, lease_ms=50, clock=lambda: now[0])
    gate = tcc.Gate(artifact(GRAMMAR), ledger=tmp_path / "s", key=KEY, durable=False)
    gate.budget(account=account, price_cap=9)
    for tool, given, told in (("find", {"by": "mail"}, None), ("check", {}, {"ok": "yes"})):
        with gate.call(tool, given) as permit:
            permit.done(told)
    with gate.call("answer") as permit:
        now[0] += 500  # the lease is over, and somebody sweeps
        assert account.statement().numbers["lapsed"] == 1
        assert account.statement().sums.spent.price == 2
        permit.done(took=tcc.Took(price=1))
    assert account.statement().sums.spent.price == 1
    with gate.call("answer"):  # nobody says what it took
        now[0] += 500
    statement = account.statement()
    assert (statement.sums.spent.price, statement.sums.held.price) == (3, 0)
    gate.finish(abandon=True)
    found = validate((tmp_path / "s").read_bytes(), bytes_of(artifact(GRAMMAR)), key=KEY)
    assert found.word == "VALID", found.findings

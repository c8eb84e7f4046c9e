"""``--account``: several runs draw on one account, in processes that are killed, and resumed."""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import tcc as library
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.container import write_container
from tcc_certs.verbs import validate as verbs
from tcc_runtime.pricing.quotes import Answer
from tcc_runtime.resume import resume
from tests.oracle_session.writer import KEY

GRAMMARS = Path(__file__).parents[2] / "grammars"
GRAMMAR, BOOK = GRAMMARS / "research.tcg", GRAMMARS / "research.quotes.json"
SEED = "11" * 32


@pytest.fixture
def artifact(tcc, tmp_path):
    path = tmp_path / "research.tcca"
    assert tcc("compile", GRAMMAR, "-o", path).code == 0
    return path


@pytest.fixture
def account(tcc, tmp_path):
    path = tmp_path / "team.account"
    made = tcc("account", "create", path, "--price", 20, "--epsilon", "0.5", "--json")
    assert (made.code, made.json["caps"]) == (0, {"price": "20", "epsilon": "0.5"})
    return path


def drawn(ledger: Path, artifact: Path, account: Path, seed: str = SEED, *more: object) -> tuple:
    told = ("--quotes", BOOK, "--account", account, "--seed", seed, "--ledger", ledger, *more)
    return ("run", artifact, *told)


def test_runs_draw_on_one_account_until_it_has_nothing_left(tcc, artifact, account, tmp_path):
    spent, claims = 0, []
    for number in range(5):
        ledger = tmp_path / f"{number}.ledger"
        ran = tcc(*drawn(ledger, artifact, account, f"{number:064x}"), "--json")
        claims.append(ran.json["claim_type"])
        spent += ran.json["price_spent"]
        shown = tcc("account", "show", account, "--json").json
        assert shown["spent"]["price"] == str(spent)
        assert shown["held"] == {"price": "0", "latency_ms": "0", "epsilon": "0"}
        found = tcc("validate", ledger, "--artifact", artifact, "--account", account)
        assert found.code == 0, found.out
    assert spent <= 20
    assert claims[0] == "RunWiseExact"
    assert claims[-1] == "NoCert"
    assert "BudgetFail" in ran.json["guards"]
    records = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    refused = [r for r in records if r.get("budget_event") == "refused"]
    assert refused
    assert all(set(r["account_left"]) == {"price", "epsilon"} for r in refused)


def test_an_account_that_says_otherwise_refuses_the_ledger(tcc, artifact, account, tmp_path):
    ledger = tmp_path / "run.ledger"
    tcc(*drawn(ledger, artifact, account))
    told = ("validate", ledger, "--artifact", artifact, "--json", "--account")
    assert tcc(*told, account).code == 0
    other = tmp_path / "other.account"
    tcc("account", "create", other)
    assert [f["code"] for f in tcc(*told, other).json["findings"]] == ["K201"]
    database = sqlite3.connect(account)
    database.execute("UPDATE reservation SET took_latency_ms = took_latency_ms + 1")
    database.commit()
    found = tcc(*told, account)
    assert (found.code, {f["code"] for f in found.json["findings"]}) == (1, {"K201"})
    database.execute("DELETE FROM reservation")
    database.commit()
    assert {f["code"] for f in tcc(*told, account).json["findings"]} == {"K201"}
    database.close()


def test_a_ledger_that_changes_before_it_is_compared_is_refused(
    tcc, artifact, account, tmp_path, monkeypatch
):
    """The validator and the comparison read the file one after the other."""
    mine, other = tmp_path / "a.ledger", tmp_path / "b.ledger"
    for ledger, seed in ((mine, "11"), (other, "22")):
        assert tcc(*drawn(ledger, artifact, account, seed * 32)).code == 0

    class Changing(verbs.LedgerInput):
        """What stands in the other file, once the validator has read this one."""

        def __iter__(self) -> Iterator[bytes]:
            readings.append(self)
            yield (other if len(readings) > 3 else mine).read_bytes()

    opened = library.Account(account)
    registry = tmp_path / "none.toml"
    registry.write_text("[adapters]\n")
    monkeypatch.setattr(verbs, "LedgerInput", Changing)
    monkeypatch.setattr("tcc_runtime.adapters.registry.read_registry", lambda path: ())
    for given in ({"account": opened}, {"adapters": registry}):
        readings: list[Changing] = []
        found = library.validate(mine, artifact, **given)
        assert [one.code.value for one in found.findings] == ["L102"]
        assert (found.word, found.claim_upheld) == ("INVALID", False)
    monkeypatch.undo()
    assert library.validate(mine, artifact, account=opened).claim_upheld


def test_a_run_that_was_cut_off_goes_on_with_its_account(tcc, artifact, account, tmp_path):
    ledger = tmp_path / "run.ledger"
    whole = tcc(*drawn(ledger, artifact, account), "--json").json
    full, spent = ledger.read_bytes(), tcc("account", "show", account, "--json").json["spent"]
    last = full.rindex(b'"budget_event":"reserve"')
    ledger.write_bytes(full[: full.index(b"\n", last) + 1])  # reserved, and no answer
    told = ("--resume",)
    refused = tcc("run", artifact, "--quotes", BOOK, "--seed", SEED, "--ledger", ledger, *told)
    assert refused.code == 2
    assert "open: account" in refused.err
    again = tcc(*drawn(ledger, artifact, account, SEED, *told), "--json")
    assert again.json["plans"] == whole["plans"]
    assert tcc("validate", ledger, "--artifact", artifact, "--account", account).code == 0
    # The question that was cut off was put twice, and is paid for twice.
    after = tcc("account", "show", account, "--json").json
    assert int(after["spent"]["price"]) > int(spent["price"])


def test_what_is_no_account_ends_in_its_code(tcc, artifact, tmp_path):
    for name, data in (("text", b"no database, but long enough" * 99), ("empty", b"")):
        path = tmp_path / name
        path.write_bytes(data)
        for told in (("account", "show", path), drawn(tmp_path / "l", artifact, path)):
            ended = tcc(*told)
            assert ended.code == 1
            assert "K101" in ended.err
    there = tcc("account", "create", artifact)
    assert there.code == 2
    assert "never replaced" in there.err
    assert tcc("account", "create", tmp_path / "x", "--epsilon", "a lot").code == 1


def test_an_account_needs_somebody_to_ask_and_a_ledger(tcc, artifact, account):
    ended = tcc("run", artifact, "--account", account, "--seed", SEED)
    assert ended.code == 2
    assert "nobody is asked" in ended.err
    opened = library.load(artifact)
    with pytest.raises(ValueError, match="account: expected none without a ledger"):
        library.search(opened, quoter=lambda q: None, account=library.Account(account))


WORKER = """
import sys
from pathlib import Path
import tcc
from tcc_certs.errors import Code, Rejected
from tests.cli.test_account import slowly
artifact, account = tcc.load(sys.argv[1]), tcc.Account(sys.argv[2], must_exist=True)
for number in range(10**6):
    name = f"{int(sys.argv[4]):032x}{number:032x}"
    told = {"quoter": slowly, "ledger": Path(sys.argv[3]) / f"{name}.ledger", "account": account}
    try:
        tcc.search(artifact, seed=bytes.fromhex(name), top=2, **told)
    except Rejected as refusal:
        if refusal.code is not Code.ACCOUNT_LEASE:
            raise  # else it was slower than its lease: its ledger is as one that was cut off
"""


def slowly(question):
    time.sleep(0.01)
    rng = random.Random(f"{question.call} {question.occurrence} {question.low} {question.high}")
    cost = rng.randint(question.low, question.high)
    return Answer(low=cost, high=cost, latency_ms=rng.randint(1, 30))


def gone_on(artifact: library.Artifact, ledger: Path, account: library.Account) -> None:
    """Resume a run until it ends, as often as it is slower than its lease."""
    for _ in range(20):
        try:
            resume(artifact, ledger, bytes.fromhex(ledger.stem), quoter=slowly, account=account)
        except Rejected as refusal:
            assert refusal.code is Code.ACCOUNT_LEASE, refusal
        else:
            return
    pytest.fail("slower than its lease, 20 times")


def test_runs_of_eight_processes_that_are_killed_go_on_and_keep_to_one_account(artifact, tmp_path):
    path, ledgers = tmp_path / "team.account", tmp_path / "ledgers"
    ledgers.mkdir()
    account = library.Account(path, price=4000, lease_ms=300)
    told = [sys.executable, "-c", WORKER, artifact, path, ledgers]
    workers = [subprocess.Popen([*told, str(number)]) for number in range(8)]
    try:
        for worker in workers:
            while len(list(ledgers.iterdir())) < 12:
                time.sleep(0.02)
            time.sleep(0.1)
            worker.send_signal(signal.SIGKILL)
            assert worker.wait() == -signal.SIGKILL
            assert not account.statement().sums.left.overdrawn
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    opened, cut = library.load(artifact), 0
    for ledger in sorted(ledgers.iterdir()):
        if b'"kind":"close"' not in ledger.read_bytes():
            if not ledger.read_bytes():
                continue  # it was killed before the first line
            cut += 1
            gone_on(opened, ledger, account)
        found = library.validate(ledger, artifact, account=account)
        assert (found.word, found.findings) == ("VALID", ())
    time.sleep(0.4)
    found = account.statement()
    assert cut > 0
    assert found.sums.held == (0, 0, 0)
    assert found.sums.spent.price <= 4000


def test_a_run_that_is_slower_than_its_lease_is_resumed_and_ends_as_if_it_were_not(
    artifact, tmp_path
):
    """The lease ends before each of the first transactions in turn: reserve, begin, settle, .."""
    opened, seed, refused = library.load(artifact), bytes.fromhex(SEED), []

    def run(name: str, slow: int) -> list:
        reads = iter(range(10**6))
        account = library.Account(
            tmp_path / f"{name}.account",
            price=4000,
            lease_ms=100,
            clock=lambda: 1000 * (next(reads) >= slow),
        )
        ledger = tmp_path / f"{name}.ledger"
        try:
            library.search(opened, seed=seed, quoter=slowly, ledger=ledger, account=account)
        except Rejected as refusal:
            refused.append((slow, refusal.code))
            resume(opened, ledger, seed, quoter=slowly, account=account)
        found = library.validate(ledger, opened, account=account)
        assert (found.word, found.findings) == ("VALID", ()), slow
        assert account.statement().sums.held == (0, 0, 0)
        return json.loads(ledger.read_bytes().splitlines()[-1])["plans"]

    whole = run("whole", 10**6)
    assert [run(str(slow), slow) for slow in range(6)] == [whole] * 6
    assert refused == [(slow, Code.ACCOUNT_LEASE) for slow in (1, 4)]


EXECUTED = """grammar desk version "1"

tool answer { model fast { execute { price 3 latency 10 ms } } }

plan = answer{0,9}
"""


def test_a_call_of_a_session_that_has_no_outcome_took_what_was_reserved(tcc, tmp_path):
    """A gate that reopens the session records that the outcome is unknown."""
    artifact, cut, ledger = library.compile_text(EXECUTED), tmp_path / "cut", tmp_path / "s"
    (tmp_path / "a.tcca").write_bytes(write_container(artifact.file.columns))
    account = library.Account(tmp_path / "team.account", price=40)
    gate = library.Gate(artifact, ledger=cut, key=KEY, durable=False)
    gate.budget(price_cap=60, account=account)
    permit = gate.call("answer").__enter__()
    ledger.write_bytes(cut.read_bytes())  # as a process leaves it that is killed here
    again = library.Gate(artifact, ledger=ledger, key=KEY, durable=False)
    again.budget(price_cap=60, account=account)
    again.resolve(1, "failed")
    with again.call("answer") as other:
        other.done()
    again.close()
    records = [json.loads(line) for line in ledger.read_text().splitlines()]
    kinds = [record["kind"] for record in records]
    assert kinds == ["session", "budget", "call", "outcome", "resolve", "call", "outcome"]
    told = ("validate", ledger, "--artifact", tmp_path / "a.tcca", "--account", account.path)
    found = tcc(*told, "--key", KEY.hex(), "--json").json
    assert {one["code"] for one in found["findings"]} == {"D301"}
    assert permit.seq == 1

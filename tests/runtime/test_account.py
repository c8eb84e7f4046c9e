"""Accounts: what is reserved is left, leases end, and no kill, file or clock overdraws one."""

from __future__ import annotations

import os
import pickle
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from tcc_certs.errors import Rejected
from tcc_runtime.account.account import Account
from tcc_runtime.account.amounts import AccountAmounts, Caps
from tcc_runtime.account.file import rows_of

WORKER = Path(__file__).with_name("drawing_worker.py")
PROCESSES, ROUNDS = 8, 16


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def account(tmp_path, clock):
    with Account(tmp_path / "a", price=10, epsilon="0.5", lease_ms=100, clock=clock) as made:
        yield made


def used(account: Account) -> tuple[AccountAmounts, AccountAmounts]:
    sums = account.statement().sums
    return sums.spent, sums.held


def test_what_is_reserved_is_no_longer_left(account):
    assert account.reserve("one", "run", AccountAmounts(7, 50, 10**8)).left == (3, None, 4 * 10**8)
    refused = account.reserve("two", "run", AccountAmounts(4, 0, 0))
    assert (refused.granted, refused.left) == (False, (3, None, 4 * 10**8))
    assert not account.reserve("two", "run", AccountAmounts(0, 0, 4 * 10**8 + 1)).granted
    assert account.reserve("two", "run", AccountAmounts(3, 10**9, 4 * 10**8)).granted
    assert used(account) == ((0, 0, 0), (10, 10**9 + 50, 5 * 10**8))


def test_what_was_taken_stands_in_the_place_of_what_was_reserved(account):
    account.reserve("one", "run", AccountAmounts(7, 50, 0))
    account.begin("one")
    assert account.settle("one", AccountAmounts(2, 80, 0)).price == 8
    assert used(account) == ((2, 80, 0), (0, 0, 0))


def test_a_lease_that_was_not_begun_goes_back_when_it_ends(account, clock):
    account.reserve("one", "run", AccountAmounts(7, 0, 0))
    clock.now += 99
    assert not account.reserve("two", "run", AccountAmounts(4, 0, 0)).granted
    clock.now += 1
    assert account.reserve("two", "run", AccountAmounts(4, 0, 0)).granted
    with pytest.raises(Rejected, match="K106"):
        account.begin("one")
    assert account.statement().numbers["returned"] == 1


def test_a_lease_whose_question_was_put_counts_in_full_when_it_ends(account, clock):
    account.reserve("one", "run", AccountAmounts(7, 5, 0))
    account.begin("one")
    clock.now += 100
    assert used(account) == ((7, 5, 0), (0, 0, 0))
    assert account.statement().numbers["lapsed"] == 1
    # Its holder was only slow: what it took is known after all.
    assert account.settle("one", AccountAmounts(3, 5, 0)).price == 7
    assert used(account) == ((3, 5, 0), (0, 0, 0))


def test_a_question_that_took_more_than_was_reserved_leaves_less_than_nothing(account):
    account.reserve("one", "run", AccountAmounts(7, 0, 0))
    account.begin("one")
    left = account.settle("one", AccountAmounts(12, 0, 1 << 63))
    assert (left.price, left.overdrawn) == (-2, True)
    assert not account.reserve("two", "run", AccountAmounts()).granted


def test_nothing_is_settled_twice_or_before_it_was_asked(account):
    account.reserve("one", "run", AccountAmounts(1, 0, 0))
    with pytest.raises(Rejected, match=r"K106 .* found held"):
        account.settle("one", AccountAmounts())
    account.begin("one")
    account.settle("one", AccountAmounts())
    for name in ("one", "never"):
        with pytest.raises(Rejected, match="K106"):
            account.settle(name, AccountAmounts(1, 1, 1))
        with pytest.raises(Rejected, match="K106"):
            account.begin(name)
    assert used(account) == ((0, 0, 0), (0, 0, 0))


def test_a_run_that_is_resumed_pays_for_the_question_that_was_cut_off(account):
    account.reserve("one", "run", AccountAmounts(4, 0, 0))
    account.begin("one")
    assert account.reserve("one", "run", AccountAmounts(4, 0, 0)).granted
    account.begin("one")
    account.settle("one", AccountAmounts(3, 0, 0))
    assert used(account) == ((7, 0, 0), (0, 0, 0))
    assert [(row.attempt, row.state) for row in account.reservations("run")] == [
        (0, "lapsed"),
        (1, "settled"),
    ]


def test_a_reservation_that_is_given_back_is_left_again(account):
    account.reserve("one", "run", AccountAmounts(10, 0, 0))
    account.give_back("one")
    account.give_back("one")
    account.give_back("never")
    assert account.reserve("two", "run", AccountAmounts(10, 0, 0)).granted


def test_an_account_is_the_same_for_all_who_open_it(tmp_path):
    first = Account(tmp_path / "a", price=10, epsilon="1.25")
    again = Account(tmp_path / "a", price=10)
    sent = pickle.loads(pickle.dumps(first))
    assert first.id == again.id == sent.id
    assert sent.caps == Caps(10, None, 1_250_000_000)
    first.reserve("one", "run", AccountAmounts(9, 0, 0))
    assert not sent.reserve("two", "run", AccountAmounts(2, 0, 0)).granted


@pytest.mark.parametrize(
    "other", [{"price": 11}, {"latency_ms": 5}, {"epsilon": "1.2"}, {"lease_ms": 7}]
)
def test_an_account_keeps_the_caps_that_it_was_made_with(tmp_path, other):
    Account(tmp_path / "a", price=10, epsilon="1.25")
    with pytest.raises(Rejected, match=f"K105 .*{next(iter(other))}"):
        Account(tmp_path / "a", **other)


@pytest.mark.parametrize(
    "bad", [{"price": -1}, {"price": True}, {"latency_ms": 1 << 53}, {"epsilon": "0.1234567891"},
            {"epsilon": 0.5}, {"epsilon": "-1"}, {"epsilon": "x"}, {"lease_ms": 1.5}],
)  # fmt: skip
def test_a_cap_out_of_range_is_refused_and_makes_no_file(tmp_path, bad):
    with pytest.raises(Rejected, match="K105"):
        Account(tmp_path / "a", **bad)
    assert list(tmp_path.iterdir()) == []


def damaged(path: Path, how: str) -> None:
    Account(path, price=10).close()
    data = path.read_bytes()
    if how == "text":
        path.write_text("price = 10\n" * 100)
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "cut off":
        path.write_bytes(data[: len(data) // 2])
    elif how == "folder":
        path.unlink()
        path.mkdir()
    elif how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        database = sqlite3.connect(path)
        database.execute(how)
        database.commit()
        database.close()


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("text", "K101"),
        ("empty", "K101"),
        ("cut off", "K101"),
        ("folder", "K101"),
        ("pipe", "K101"),
        ("PRAGMA application_id = 7", "K101"),
        ("PRAGMA user_version = 1", "K102"),
        ("PRAGMA user_version = 3", "K102"),
        ("DROP TABLE reservation", "K101"),
        ("CREATE TABLE more (x)", "K101"),
        ("CREATE TRIGGER t AFTER UPDATE ON account BEGIN DELETE FROM reservation; END", "K101"),
        ("DELETE FROM account", "K101"),
        ("INSERT INTO account SELECT * FROM account", "K101"),
        ("UPDATE account SET cap_price = '-1'", "K101"),
        ("UPDATE account SET spent_price = x'00'", "K101"),
        ("UPDATE account SET lease_ms = 'long'", "K101"),
        ("UPDATE account SET spent_price = '3'", "K101"),
        ("INSERT INTO reservation VALUES ('a', 0, 'r', 'odd', 0, '1', '0', '0', '', '', '')",
         "K101"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_account_ends_in_its_code(tmp_path, how, code):
    damaged(tmp_path / "a", how)
    with pytest.raises(Rejected) as caught:
        Account(tmp_path / "a", must_exist=True).statement()
    assert caught.value.code.value == code


def test_a_missing_account_is_not_made_where_one_has_to_be_there(tmp_path):
    with pytest.raises(Rejected, match="K101"):
        Account(tmp_path / "a", must_exist=True)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(Rejected, match="K103"):
        Account(tmp_path / "nowhere" / "a")


def test_an_account_that_is_locked_for_too_long_says_so(tmp_path):
    account = Account(tmp_path / "a", wait_ms=50)
    other = sqlite3.connect(tmp_path / "a", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Rejected, match="K104"):
        account.reserve("one", "run", AccountAmounts())
    other.execute("ROLLBACK")
    assert account.reserve("one", "run", AccountAmounts()).granted
    other.close()


def test_who_looks_at_an_account_keeps_nobody_from_drawing(tmp_path, monkeypatch):
    account, other = (Account(tmp_path / "a", price=9, wait_ms=0) for _ in range(2))
    for number in range(3):
        assert account.reserve(f"{number}", "run", AccountAmounts(1)).granted
    drawn = []

    def between(*told):
        if told[1:] and not told[1].startswith("WHERE run"):
            yield from rows_of(*told)  # a reservation is looked for
            return
        for row in rows_of(*told):
            drawn.append(other.reserve(f"other {row.id}", "other", AccountAmounts(1)).granted)
            yield row

    monkeypatch.setattr("tcc_runtime.account.file.rows_of", between)
    # What comes meanwhile is not in it: it is the account of one moment.
    found = account.statement()
    assert drawn == [True] * 3 and (found.sums.held.price, found.numbers["held"]) == (3, 3)
    assert len(account.reservations("run")) == 3 and len(drawn) == 6
    monkeypatch.undo()
    assert account.statement().sums.held.price == 6


def refused_to_a_stranger(path: Path) -> str:
    """What a process without rights to the file is told; root, who has all, becomes nobody."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(65534)
            Account(path).close()
            os.write(writer, b"opened")
        except Rejected as refusal:
            os.write(writer, refusal.code.value.encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader) as told:
        return told.read()


def test_an_account_that_may_not_be_written_says_so():
    folder = Path(tempfile.mkdtemp())
    try:
        Account(folder / "a").close()
        folder.chmod(0o555)
        (folder / "a").chmod(0o444)
        assert refused_to_a_stranger(folder / "a") == "K103"
        assert refused_to_a_stranger(folder / "b") == "K103"
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_threads_share_one_account(tmp_path):
    account = Account(tmp_path / "a", price=100)
    granted: list[str] = []

    def draw(worker: int) -> None:
        for number in range(40):
            if account.reserve(f"{worker} {number}", "run", AccountAmounts(1, 0, 0)).granted:
                granted.append(f"{worker} {number}")

    threads = [threading.Thread(target=draw, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 100
    assert used(account)[1].price == 100


def test_many_processes_may_make_one_account(tmp_path):
    code = "import sys; from tcc_runtime.account.account import Account; "
    code += "print(Account(sys.argv[1], price=3).id)"
    told = [sys.executable, "-c", code, str(tmp_path / "a")]
    made = [subprocess.Popen(told, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    names = {process.communicate()[0] for process in made}
    assert names == {Account(tmp_path / "a").id + "\n"}
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def stress(folder: Path, rounds: int) -> None:
    """Eight processes draw on one account and are killed at random, again and again."""
    lease = 400
    path, rng = folder / "a", random.Random(7)
    cap = AccountAmounts(60 * rounds, 600 * rounds, 10**9)
    account = Account(path, price=cap.price, latency_ms=cap.latency_ms, lease_ms=lease)
    running: dict[int, subprocess.Popen] = {}

    def start(seed: int) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, WORKER, path, folder / f"{seed}.log", str(seed)])

    try:
        for seed in range(PROCESSES + rounds):
            if len(running) == PROCESSES:
                time.sleep(rng.random() * 0.1)
                victim = running.pop(drawing(folder, sorted(running), rng))
                victim.send_signal(signal.SIGKILL)
                assert victim.wait() == -signal.SIGKILL
                assert not account.statement().sums.left.overdrawn
            running[seed] = start(seed)
        time.sleep(1)
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    # What is over ends when somebody looks.
    time.sleep(2 * lease / 1000)
    found = account.statement()  # which makes its sums again
    assert found.sums.held == (0, 0, 0)
    assert found.numbers["held"] == found.numbers["asking"] == 0
    truly = taken(folder)
    for name, most, spent, took in zip(
        AccountAmounts._fields, cap, found.sums.spent, truly, strict=True
    ):
        assert took <= spent, name
        assert name == "epsilon" or spent <= most, name
    print(dict(found.numbers), found.sums.spent, truly)
    assert found.numbers["settled"] > PROCESSES
    assert found.numbers["lapsed"] > 0


def drawing(folder: Path, running: list[int], rng: random.Random) -> int:
    """One of those that have drawn by now."""
    for _ in range(1000):
        begun = [seed for seed in running if (folder / f"{seed}.log").exists()]
        if begun:
            return rng.choice(begun)
        time.sleep(0.02)
    raise AssertionError("no process ever drew")


def taken(folder: Path) -> AccountAmounts:
    """What the processes have truly taken."""
    total = AccountAmounts()
    for log in folder.glob("*.log"):
        for line in log.read_text().splitlines():
            _, *amounts = line.split(",")
            total = total.plus(AccountAmounts(*map(int, amounts)))
    return total


def test_eight_processes_that_are_killed_at_random_never_overdraw_an_account(tmp_path):
    stress(tmp_path, ROUNDS)


@pytest.mark.campaign
def test_eight_processes_that_are_killed_at_random_never_overdraw_an_account_campaign(tmp_path):
    stress(tmp_path, 1500)

"""Runs resumed after a cut at any byte, a kill, a full disk: as if nothing had been."""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.formats.ledger_schema import check_record
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerFile, MemorySink
from tcc_runtime.resume import resume
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.campaigns.blocks import cuts
from tests.runtime.graphs import build, chain_rows, free_core, vec_core, vec_rows

SEED = bytes(range(32))
STARTED = 1_700_000_000_000


def tiny() -> bytes:
    return build(free_core([10**9], 1), [(True, []), (False, [(0, 0)])])


def vec() -> bytes:
    return build(vec_core(), vec_rows())


def large() -> bytes:
    rng = random.Random(5)
    return build(free_core([rng.randrange(10**9) for _ in range(4)], 9), chain_rows(rng, 4, 9, 3))


def whole(data: bytes, **told):
    """An uninterrupted run: its result, and its ledger."""
    sink = MemorySink()
    told = {"seed": SEED, **told}
    run = search(
        load(data), Settings(**{"race": "coupled", **told}), Recorder(sink, started_ms=STARTED)
    )
    return run, bytes(sink.data)


def records(ledger: bytes) -> list:
    found = list(LedgerReader([ledger]))
    for line, record in enumerate(found, 1):
        check_record(record, line)
    return found


def same(run, due) -> None:
    """Equal but for the chain, which a `recovered` record goes into."""
    assert replace(run, ledger_head=None) == replace(due, ledger_head=None)


def resumed(artifact, path: Path, cut: bytes, ledger: bytes, due) -> list:
    path.write_bytes(cut)
    run = resume(artifact, path, SEED)
    same(run, due)
    after = path.read_bytes()
    kept = cut[: cut.rfind(b"\n") + 1]
    assert after.startswith(kept)
    found = records(after)
    plain = [record for record in found if record["kind"] != "recovered"]
    assert plain == records(ledger)
    assert json.loads(after.splitlines()[-1])["~"] == run.ledger_head
    return found


@pytest.fixture
def memory_path(tmp_path):
    """A file where thousands of fsyncs take no time, if the system has such a place."""
    folder = Path("/dev/shm")
    if not folder.is_dir():
        yield tmp_path / "run.ndjson"
        return
    with TemporaryDirectory(dir=folder) as name:
        yield Path(name) / "run.ndjson"


def test_a_ledger_cut_at_every_byte_is_resumed(memory_path):
    data = tiny()
    due, ledger = whole(data)
    path = memory_path
    artifact = load(data)
    first = ledger.index(b"\n") + 1
    for size in cuts(ledger):
        cut = ledger[:size]
        reader = LedgerReader([cut])
        assert len(list(reader)) == cut.count(b"\n")
        if size < first:
            path.write_bytes(cut)
            with pytest.raises(ResumeError, match="a whole record"):
                resume(load(data), path, SEED)
            assert path.read_bytes() == cut
            continue
        found = resumed(artifact, path, cut, ledger, due)
        whole_records = cut.count(b"\n")
        dropped = len(cut) - cut.rfind(b"\n") - 1
        note = {"kind": "recovered", "records": whole_records, "dropped_bytes": dropped}
        assert found[whole_records] == note


def test_what_is_resumed_is_valid_in_every_mode(tmp_path):
    data = vec()
    ways = [
        {"top": 3},
        {"top": 3, "mode": "surrogate", "inflate": "1.5", "keys": "anchored", "recipe": "r1"},
        {"top": 3, "mode": "fallback", "tau": "2"},
        {"top": 12, "truncate": 2},
        {"top": 4, "race": "rest"},
        {"top": 12, "race": "rest", "truncate": 2, "max_expansions": 4},
        {"top": 3, "count_bits": 20},
        {"top": 12, "max_expansions": 3, "alpha": "0.5", "eta": "0.9"},
        {"beacon": b"b", "client_nonce": b"n", "opening_salt": bytes(32)},
    ]
    for told in ways:
        due, ledger = whole(data, **told)
        ends = [at + 1 for at, byte in enumerate(ledger) if byte == 10]
        for end in ends[:-1]:
            path = tmp_path / "run.ndjson"
            path.write_bytes(ledger[: end + 5])
            same(resume(load(data), path, SEED, opening_salt=told.get("opening_salt")), due)
            found = validate(path.read_bytes(), data)
            assert (found.verdict, found.findings) == (0, ())
            assert found.claim_type == due.claim_type


def test_a_run_may_be_cut_and_resumed_many_times(tmp_path):
    data = vec()
    due, ledger = whole(data, top=5)
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger[: len(ledger) // 4])
    for part in (0.3, 0.45, 0.7, 0.95):
        same(resume(load(data), path, SEED), due)
        path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    same(resume(load(data), path, SEED), due)
    kinds = [record["kind"] for record in records(path.read_bytes())]
    assert kinds.count("recovered") == 4 + 1
    assert validate(path.read_bytes(), data).verdict == 0


def test_a_closed_ledger_is_played_again_and_not_touched(tmp_path):
    data = vec()
    due, ledger = whole(data)
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger)
    assert resume(load(data), path, SEED) == due
    assert path.read_bytes() == ledger


@pytest.mark.parametrize("more", [b"{", b'{"kind":"node"}\n'])
def test_nothing_follows_the_close_of_a_ledger(tmp_path, more):
    _, ledger = whole(vec())
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger + more)
    with pytest.raises(Rejected) as refusal:
        resume(load(vec()), path, SEED)
    assert refusal.value.code in (Code.LEDGER_ORDER, Code.LEDGER_LINE)
    assert path.read_bytes() == ledger + more


def resealed(ledger: bytes, line: int, **fields) -> bytes:
    head, lines = FIRST_HEAD, []
    for at, record in enumerate(records(ledger), 1):
        sealed, head = seal({**record, **(fields if at == line else {})}, head)
        lines.append(sealed)
    return b"".join(lines)


@pytest.mark.parametrize(
    ("line", "fields", "place"),
    [
        (1, {"artifact": "0" * 64}, "open: artifact"),
        (1, {"seed_commitment": "0" * 64}, "open: seed_commitment"),
        (1, {"root_state": "0" * 64}, "line 1"),
        (1, {"claim_type": "NoCert"}, "line 1"),
        (2, {"U": "1"}, "line 2"),
        (3, {"winner": "phantom"}, "line 3"),
    ],
)
def test_a_prefix_of_another_run_is_never_continued(tmp_path, line, fields, place):
    _, ledger = whole(vec())
    forged = resealed(ledger, line, **fields)
    forged = forged[: forged.rfind(b"\n", 0, len(forged) - 1) + 1]
    path = tmp_path / "run.ndjson"
    path.write_bytes(forged)
    with pytest.raises(ResumeError) as refusal:
        resume(load(vec()), path, SEED)
    assert refusal.value.path == place
    assert path.read_bytes() == forged


def test_another_seed_is_refused(tmp_path):
    _, ledger = whole(vec())
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger[:3000])
    with pytest.raises(ResumeError, match="seed_commitment"):
        resume(load(vec()), path, bytes(32))


def test_a_broken_line_is_refused(tmp_path):
    _, ledger = whole(vec())
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger[:2500].replace(b'"tie_token":1', b'"tie_token":2'))
    with pytest.raises(Rejected) as refusal:
        resume(load(vec()), path, SEED)
    assert refusal.value.code == Code.LEDGER_CHAIN


def test_a_missing_ledger_is_a_ledger_error(tmp_path):
    with pytest.raises(LedgerError) as refusal:
        resume(load(vec()), tmp_path / "none", SEED)
    assert refusal.value.errno == errno.ENOENT


def test_ctrl_c_during_the_replay_leaves_the_ledger_alone(tmp_path):
    _, ledger = whole(vec(), top=9)
    path = tmp_path / "run.ndjson"
    cut = ledger[: len(ledger) // 2]
    path.write_bytes(cut)
    with pytest.raises(KeyboardInterrupt):
        resume(load(vec()), path, SEED, on_expand=lambda p: p.expansions == 1)
    assert path.read_bytes() == cut


def test_ctrl_c_after_the_replay_ends_the_run(tmp_path):
    _, ledger = whole(vec(), top=9)
    path = tmp_path / "run.ndjson"
    cut = ledger[: len(ledger) // 2]
    path.write_bytes(cut)
    before = cut[: cut.rfind(b"\n") + 1].count(b'"kind":"expand"')
    run = resume(load(vec()), path, SEED, on_expand=lambda p: p.expansions == before + 1)
    assert (run.stop, run.claim_type) == ("interrupted", "NoCert")
    assert validate(path.read_bytes(), vec()).verdict == 0


def test_a_time_cap_counts_from_where_the_prefix_ended(tmp_path):
    due, ledger = whole(vec(), top=9, max_seconds=1000.0)
    path = tmp_path / "run.ndjson"
    path.write_bytes(ledger[: len(ledger) // 2])
    same(resume(load(vec()), path, SEED), due)


_RUN = """
import sys
from pathlib import Path
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tcc_runtime.ledger.sinks import LedgerFile
artifact, ledger, sync_ms = load(Path(sys.argv[1])), Path(sys.argv[2]), int(sys.argv[3])
recorder = Recorder(LedgerFile(ledger, sync_ms=sync_ms), started_ms=1_700_000_000_000)
search(artifact, Settings(seed=bytes(range(32)), race="coupled", top=150), recorder)
print("done")
"""


def started(artifact: Path, ledger: Path, sync_ms: int = 1000, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", _RUN, str(artifact), str(ledger), str(sync_ms)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        **options,
    )


def test_a_run_killed_at_a_random_moment_is_resumed(tmp_path):
    data = large()
    artifact = tmp_path / "large.tcca"
    artifact.write_bytes(data)
    due, ledger = whole(data, top=150)
    rng, met = random.Random(1), 0
    for attempt in range(4):
        path = tmp_path / f"{attempt}.ndjson"
        with started(artifact, path, rng.choice((0, 5, 1000))) as process:
            until = time.monotonic() + 30
            least = rng.randrange(1, len(ledger))
            while time.monotonic() < until and process.poll() is None:
                if path.exists() and path.stat().st_size >= min(least, 1 << 16):
                    break
                time.sleep(0.001)
            time.sleep(rng.random() / 50)
            process.send_signal(signal.SIGKILL)
            process.wait(30)
        kept = path.read_bytes()
        assert ledger.startswith(kept)
        met += 0 < len(kept) < len(ledger)
        same(resume(load(data), path, SEED), due)
    assert met > 0
    assert validate(path.read_bytes(), data).verdict == 0


def test_a_disk_that_fills_up_ends_the_run_and_it_is_resumed(tmp_path):
    data = large()
    artifact = tmp_path / "large.tcca"
    artifact.write_bytes(data)
    due, ledger = whole(data, top=150)
    for most in (1, 700, 40_001):
        path = tmp_path / f"{most}.ndjson"
        limited = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (most, most))
        with started(artifact, path, 0, preexec_fn=limited) as process:
            _, errors = process.communicate(timeout=60)
        assert process.returncode == 1
        assert b"LedgerError" in errors
        assert path.stat().st_size <= most
        assert ledger.startswith(path.read_bytes())
        if b"\n" in path.read_bytes():
            same(resume(load(data), path, SEED), due)


def descriptor(path: Path) -> int:
    """The descriptor under which this process has `path` open."""
    for entry in Path("/proc/self/fd").iterdir():
        if entry.exists() and entry.readlink() == path:
            return int(entry.name)
    raise FileNotFoundError(path)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")
@pytest.mark.parametrize("code", [errno.EBADF, errno.EINVAL, errno.EPIPE])
def test_a_descriptor_that_fails_ends_the_run_and_it_is_resumed(tmp_path, code):
    data = vec()
    due, ledger = whole(data, top=9)
    path = tmp_path / "run.ndjson"
    reading, writing = os.pipe()
    if code == errno.EPIPE:
        os.close(reading)

    def spoil(progress) -> None:
        if progress.expansions != 2:
            return
        held = descriptor(path)
        if code == errno.EBADF:
            os.close(held)
        else:
            os.dup2(writing, held)  # a pipe takes bytes, and cannot be synced

    told = Settings(seed=SEED, race="coupled", top=9)
    sink = LedgerFile(path, sync_ms=0)
    with pytest.raises(LedgerError) as refusal:
        search(load(data), told, Recorder(sink, started_ms=STARTED), spoil)
    assert (refusal.value.errno, refusal.value.path) == (code, str(path))
    os.close(writing)
    if code != errno.EPIPE:
        os.close(reading)
    kept = path.read_bytes()
    assert ledger.startswith(kept)
    assert kept.endswith(b"\n")
    same(resume(load(data), path, SEED), due)


def test_a_full_disk_while_a_run_is_resumed(tmp_path):
    data = vec()
    due, ledger = whole(data, top=9)
    path = tmp_path / "run.ndjson"
    cut = ledger[: len(ledger) // 2]
    path.write_bytes(cut)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(cut) + 300, hard))
    try:
        with pytest.raises(LedgerError) as refusal:
            resume(load(data), path, SEED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert refusal.value.errno == errno.EFBIG
    same(resume(load(data), path, SEED), due)
    assert validate(path.read_bytes(), data).verdict == 0


def interrupted(data: bytes, after: int, path: Path, **told):
    """The ledger of a run in which Ctrl-C came behind so many expansions."""
    met = 0

    def on_expand(_progress):
        nonlocal met
        met += 1
        if met == after:
            raise KeyboardInterrupt

    recorder = Recorder(LedgerFile(path, sync_ms=0), started_ms=STARTED)
    settings = Settings(**{"seed": SEED, "race": "coupled", **told})
    run = search(load(data), settings, recorder, on_expand)
    assert str(run.stop) == "interrupted"
    return path.read_bytes()


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("after", [1, 3])
def test_a_ledger_closed_by_ctrl_c_is_resumed(memory_path, race, after):
    data = vec()
    due, ledger = whole(data, race=race, top=3)
    path = memory_path
    closed = interrupted(data, after, path, race=race, top=3)
    assert validate(closed, data).verdict == 0
    last = closed.splitlines(keepends=True)[-1]
    run = resume(load(data), path, SEED)
    same(run, due)
    after_it = path.read_bytes()
    assert after_it.startswith(closed[: -len(last)])
    kept = closed.count(b"\n") - 1
    found = records(after_it)
    assert found[kept] == {"kind": "recovered", "records": kept, "dropped_bytes": len(last)}
    assert [r for r in found if r["kind"] != "recovered"] == records(ledger)
    report = validate(after_it, data)
    assert report.verdict == 0, report.summary


def test_another_close_is_the_last_line_for_good(memory_path):
    data = vec()
    due, ledger = whole(data, max_expansions=2)
    memory_path.write_bytes(ledger)
    same(resume(load(data), memory_path, SEED), due)
    assert memory_path.read_bytes() == ledger

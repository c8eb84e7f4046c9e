"""Many runs at once: the same bytes as alone, in order; what is lost is an error, never a wait."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_runtime import pool
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, SettingsError, WorkerLost
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pool import RunRequest, runs
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tcc_runtime.workers import Worker, send
from tests.runtime.graphs import build, vec_core, vec_rows


@pytest.fixture(scope="module")
def vec() -> bytes:
    return build(vec_core(), vec_rows())


@pytest.fixture
def mapped(vec: bytes, tmp_path: Path) -> Artifact:
    path = tmp_path / "vec.tcca"
    path.write_bytes(vec)
    return load(path)


def requests(count: int, folder: Path | None = None) -> list[RunRequest]:
    return [
        RunRequest(
            settings=Settings(
                seed=number.to_bytes(32, "little"),
                race=("coupled", "rest")[number % 2],
                top=1 + number % 3,
            ),
            ledger=None if folder is None else folder / str(number),
            started_ms=7,
        )
        for number in range(count)
    ]


@pytest.mark.parametrize("processes", [1, 3])
def test_runs_come_in_order_and_are_those_made_alone(
    mapped: Artifact, tmp_path: Path, processes: int
) -> None:
    asked = requests(20, tmp_path)
    found = list(runs(mapped, iter(asked), processes=processes))
    for request, run in zip(asked, found, strict=True):
        sink = MemorySink()
        assert run == search(mapped, request.settings, Recorder(sink, started_ms=7))
        assert request.ledger is not None
        assert request.ledger.read_bytes() == bytes(sink.data)


def test_an_artifact_in_memory_is_shared_by_a_file_that_does_not_stay(
    vec: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    artifact = load(vec)
    found = list(runs(artifact, requests(3), processes=2))
    assert [run.claim_type for run in found] == ["RunWiseExact"] * 3
    assert not list(tmp_path.iterdir())


def test_an_unverified_artifact_claims_nothing_here_either(vec: bytes, tmp_path: Path) -> None:
    path = tmp_path / "vec.tcca"
    path.write_bytes(vec)
    artifact = load(path, verify=False)
    assert [run.claim_type for run in runs(artifact, requests(2), processes=1)] == ["NoCert"] * 2


def test_a_file_put_in_the_artifacts_place_is_refused(mapped: Artifact) -> None:
    other = build(vec_core(), vec_rows(), tilt=0)
    assert mapped.path is not None
    place = mapped.path.with_suffix(".new")
    place.write_bytes(other)
    place.replace(mapped.path)
    with pytest.raises(Rejected) as refused:
        list(runs(mapped, requests(1), processes=1))
    assert refused.value.code == Code.PIN


def test_a_killed_worker_is_an_error_and_not_a_wait(
    mapped: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    found: list[int] = []
    begin = Worker.__init__

    def noted(worker: Worker) -> None:
        begin(worker)
        found.append(worker.pid)

    monkeypatch.setattr(Worker, "__init__", noted)
    made = runs(mapped, endless(), processes=2)
    next(made)
    os.kill(found[0], signal.SIGKILL)
    with pytest.raises(WorkerLost, match="signal 9"):
        for _ in made:
            pass
    for pid in found:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def endless() -> Iterator[RunRequest]:
    number = 0
    while True:
        yield RunRequest(settings=Settings(seed=number.to_bytes(32, "little"), race="coupled"))
        number += 1


def test_requests_are_taken_as_they_are_needed(mapped: Artifact) -> None:
    made = runs(mapped, endless(), processes=1)
    assert [next(made).claim_type for _ in range(5)] == ["RunWiseExact"] * 5
    made.close()


def test_what_the_artifact_does_not_allow_is_refused_before_it_is_run(mapped: Artifact) -> None:
    asked = [
        *requests(1),
        RunRequest(settings=Settings(seed=bytes(32), race="coupled", mode="exact", inflate="2")),
    ]
    with pytest.raises(SettingsError):
        list(runs(mapped, asked, processes=1))


def test_a_ledger_that_is_there_is_not_replaced(mapped: Artifact, tmp_path: Path) -> None:
    (tmp_path / "1").write_bytes(b"kept")
    made = runs(mapped, requests(3, tmp_path), processes=2)
    next(made)
    with pytest.raises(LedgerError):
        next(made)
    assert (tmp_path / "1").read_bytes() == b"kept"


@pytest.mark.parametrize(
    "error",
    [
        Rejected(Code.PIN, "a", 1, 2),
        SettingsError("a", "b", "c"),
        LedgerError("a", OSError(2, "b")),
    ],
)
def test_errors_of_a_worker_arrive_as_they_are(error: Exception) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)


INTERRUPTED = """
    import sys
    from pathlib import Path
    from tcc_runtime.artifact.load import load
    from tcc_runtime.pool import RunRequest, runs
    from tcc_runtime.settings.settings import Settings

    def endless():
        while True:
            yield RunRequest(settings=Settings(seed=bytes(32), race="coupled"))

    try:
        for _ in runs(load(Path(sys.argv[1])), endless(), processes=2):
            print("run", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
"""


def test_ctrl_c_ends_the_workers_and_then_the_batch(mapped: Artifact) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(INTERRUPTED), str(mapped.path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "run\n"
    child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    out, err = child.communicate(timeout=60)
    assert (out.splitlines()[-1], err, child.returncode) == ("interrupted", "", 0)
    assert time.monotonic() - begin < 30


UNGUARDED = """
    import math
    from tcc_runtime.workers import Processes
    print("begun", flush=True)
    with Processes(2) as workers:
        print(workers.submit(math.factorial, 5).result(), flush=True)
"""


def test_no_worker_runs_the_program_of_its_parent_again(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(UNGUARDED), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["begun", "120"], "")


def test_a_worker_whose_parent_is_gone_ends_without_a_word(mapped: Artifact) -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", "from tcc_runtime.workers import serve; serve()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
    worker.stdout.close()
    opening = pool.Opening(path=str(mapped.path), digest=mapped.digest.hex(), verified=True)
    send(worker.stdin, pickle.dumps(partial(pool._run, opening, requests(1)[0])))
    worker.stdin.close()
    said = worker.stderr.read()
    worker.stderr.close()
    assert (said, worker.wait(60)) == (b"", 0)


def test_a_worker_ends_with_what_its_calls_have_printed_and_left_for_the_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    worker = Worker()
    worker.ask(partial(print, "said", end=""))
    worker.ask(partial(atexit.register, os.mkdir, str(tmp_path / "left")))
    worker.close(patient=True)
    assert capfd.readouterr() == ("", "said")
    assert (tmp_path / "left").is_dir()
    assert worker._process.returncode == 0

"""A batch on Dask, with real clusters: the same bytes, a killed worker, no scheduler."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import psutil
import pytest

import tcc as library
from tcc.batches import engines
from tcc_runtime.pool import opening_of
from tests.cli.batches import Here, lines, parts, settings
from tests.cli.conftest import Tcc


@pytest.fixture(scope="module")
def scheduler() -> Iterator[distributed.LocalCluster]:
    """A cluster that is there already, with two workers that know nothing of this process."""
    started = distributed.LocalCluster(
        host="127.0.0.1",
        n_workers=2,
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        memory_limit=None,
        silence_logs=50,
    )
    yield started
    started.close()


def test_the_command_makes_the_same_bytes_on_a_cluster_of_its_own(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = lines(tmp_path / "asked", settings(7))
    command = ("batch", artifact, "--requests", asked, "--shard-size", 3, "--started-ms", 7)
    done = tcc(*command, "--out", tmp_path / "dask", "--dask", "local", "--processes", 2)
    assert (done.code, done.err) == (0, "")
    library.batch(
        library.load(artifact), asked, tmp_path / "here", executor=Here(), shard_size=3,
        started_ms=7,
    )  # fmt: skip
    assert parts(tmp_path / "dask") == parts(tmp_path / "here")
    again = ("batch", artifact, "--validate", "--out", tmp_path / "dask", "--json")
    found = tcc(*again, "--dask", "local", "--processes", 2)
    assert (found.code, found.err) == (0, "")
    assert found.json["verdicts"] == {"valid": 7}


def test_the_same_bytes_by_the_address_of_a_scheduler(
    tcc: Tcc, artifact: Path, tmp_path: Path, scheduler: distributed.LocalCluster
) -> None:
    asked = lines(tmp_path / "asked", settings(9))
    command = ("batch", artifact, "--requests", asked, "--shard-size", 2, "--started-ms", 7)
    more = ("--format", "parquet", "--out", tmp_path / "dask", "--dask")
    done = tcc(*command, *more, scheduler.scheduler_address)
    assert (done.code, done.err) == (0, "")
    library.batch(
        library.load(artifact), asked, tmp_path / "here", executor=Here(), shard_size=2,
        started_ms=7, part_format="parquet",
    )  # fmt: skip
    assert parts(tmp_path / "dask") == parts(tmp_path / "here")


def size_of(*given: object) -> int:
    return max(len(each) for each in given if isinstance(each, bytes))


def test_the_artifact_is_brought_once_to_each_worker_under_its_digest(
    artifact: Path, scheduler: distributed.LocalCluster
) -> None:
    opened = library.load(artifact)
    with engines.connected(scheduler.scheduler_address, None) as engine, opening_of(opened) as way:
        bare, data = engine.brought(way)
        assert (bare.path, bare.digest) == (None, opened.digest.hex())
        assert isinstance(data, distributed.Future)
        assert data.key == f"tcc-artifact-{bare.digest}"
        found = list(engine.done(lambda executor, _: executor.submit(size_of, data), range(20)))
        assert found == [artifact.stat().st_size] * 20
        client = data.client
        assert len(client.who_has()[data.key]) == 2


def test_a_killed_worker_of_a_cluster_loses_nothing(
    artifact: Path, tmp_path: Path, scheduler: distributed.LocalCluster
) -> None:
    opened = library.load(artifact)
    killed: list[int] = []

    class Killing(Here):
        """Dask's executor, and a worker is killed when the third piece is handed out."""

        def __init__(self, client: distributed.Client) -> None:
            self._client = client
            self._inner = client.get_executor(pure=False)
            self._given = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            self._given += 1
            future = self._inner.submit(fn, *args, **kwargs)
            if self._given == 3:
                pids = self._client.run(os.getpid)
                killed.append(min(pids.values()))
                os.kill(killed[0], signal.SIGKILL)
            return future

    with distributed.Client(scheduler, set_as_default=False) as client:
        done = library.batch(
            opened, settings(60, top=8), tmp_path / "dask", executor=Killing(client),
            shard_size=6, started_ms=7,
        )  # fmt: skip
        until = time.monotonic() + 30
        while len(client.nthreads()) < 2 and time.monotonic() < until:
            time.sleep(0.05)
    assert killed and done.made + done.kept + done.redone == 10
    library.batch(
        opened, settings(60, top=8), tmp_path / "here", executor=Here(), shard_size=6, started_ms=7
    )
    assert parts(tmp_path / "dask") == parts(tmp_path / "here")


def test_a_local_cluster_listens_on_the_loopback_alone() -> None:
    with engines.connected("local", 1) as engine:
        assert engine.workers == 1
        mine = psutil.Process()
        open_ports = [
            (process.pid, each.laddr.ip)
            for process in (mine, *mine.children(recursive=True))
            for each in process.net_connections()
            if each.status == psutil.CONN_LISTEN
        ]
    assert len({pid for pid, _ in open_ports}) >= 2
    assert {address for _, address in open_ports} == {"127.0.0.1"}


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:PORT", "nothing", "tcp://no.such.host.invalid:1", "", "x://y"]
)
def test_no_scheduler_is_said_in_time(address: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = address.replace("PORT", str(taken.getsockname()[1]))
        begin = time.monotonic()
        refused = pytest.raises(library.BatchError, match="TCC810")
        with refused, engines.connected(address, None, patience=1):
            pass
    assert time.monotonic() - begin < 15


def test_one_that_accepts_and_says_nothing_is_no_scheduler() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        refused = pytest.raises(library.BatchError, match="within 1 s")
        with refused, engines.connected(address, None, patience=1):
            pass


def test_a_scheduler_without_workers_is_said() -> None:
    empty = distributed.LocalCluster(
        host="127.0.0.1", n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50
    )
    try:
        refused = pytest.raises(library.BatchError, match="TCC810: the scheduler has no worker")
        with refused, engines.connected(empty.scheduler_address, None):
            pass
    finally:
        empty.close()


def test_the_command_says_that_there_is_no_scheduler(
    tcc: Tcc, artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_PATIENCE", 0.5)
    asked = lines(tmp_path / "asked", settings(1))
    command = ("batch", artifact, "--requests", asked, "--out", tmp_path / "out", "--dask")
    ended = tcc(*command, "tcp://127.0.0.1:1")
    assert ended.code == 2
    assert "tcp://127.0.0.1:1: TCC810: no scheduler of Dask answers there" in ended.err

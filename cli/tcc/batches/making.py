"""A batch in shards, on one page: survey the requests, take the folder, hand out the shards.

Text: docs/batch.md.  What is in the folder at the end follows from the artifact, the requests and
what ``batch.json`` says, whatever did the work, and however often it was begun.
Cost: two passes over the requests; the runs; memory for some shards of requests a worker.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tcc.batches import folder as folders
from tcc.batches.engines import Engine, engine_of
from tcc.batches.folder import Batch, BatchError, PartFormat
from tcc.batches.parts import Done, Shard, format_of, make_part, shards, survey
from tcc.compilation import Given, artifact_of
from tcc.requests import RequestError, read_requests
from tcc_runtime.pool import Opening, opening_of
from tcc_runtime.settings.settings import Settings

SHARD_SIZE = 1000
Requests: TypeAlias = "str | Path | Sequence[Settings]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDone:
    """A finished batch in shards.

    Attributes:
        folder: where its parts are.
        batch: what it was made of.
        certified: how many runs claim something.
        made, kept, redone: how many parts were made, were finished before, and were there but cut
            off, altered or of something else, and so were made again.
    """

    folder: Path
    batch: Batch
    certified: int
    made: int
    kept: int
    redone: int


def batch(
    artifact: Given,
    requests: Requests,
    out: str | Path,
    *,
    executor: Executor | None = None,
    dask: str | None = None,
    processes: int | None = None,
    shard_size: int = SHARD_SIZE,
    part_format: PartFormat = "ndjson",
    ledgers: bool = True,
    started_ms: int | None = None,
    overwrite: bool = False,
) -> BatchDone:
    """Make one run for each request, in shards, on any executor, or go on with such a batch.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`; or a file of one, or of a
            grammar.
        requests: a file with one JSON object a line, or a Parquet table (``.parquet``), as
            ``tcc batch --requests`` takes them; or settings.
        out: the folder of the batch; parts that are finished there stay.
        executor: calls functions in threads or in processes that read this machine's files; None
            starts processes.
        dask: in place of an executor, the address of a scheduler of Dask, or ``local``.
        processes: of those started here; None is one for each processor.
        shard_size: how many requests are one part.
        part_format: ``ndjson`` or ``parquet``.
        ledgers: keep them, in the parts.
        started_ms: UTC milliseconds for all ledgers; None asks the clock, when the batch is new.
        overwrite: begin anew, whatever batch is in the folder.

    Raises:
        BatchError: it cannot be made, or not there; what was finished stays.
        tcc_runtime.errors.WorkerLost: workers were killed, more often than is tried again.
        tcc_certs.errors.Rejected: the artifact's file was changed.
        OSError: the requests or the folder cannot be read.
        ValueError: `shard_size` or `processes` is less than 1, or there is another such mistake.
    """
    _require(shard_size, processes, executor, dask)
    source = _source(requests)
    artifact = artifact_of(artifact)
    digest, number = survey(artifact, source())
    asked = Batch(
        artifact=artifact.digest.hex(),
        verified=artifact.verified,
        requests=digest,
        runs=number,
        shard_size=shard_size,
        part_format=part_format,
        ledgers=ledgers,
        started_ms=time.time_ns() // 1_000_000 if started_ms is None else started_ms,
    )
    format_of(part_format)
    folder = Path(out).resolve()
    with folders.hold(folder):
        current = folders.begin(folder, asked, started_ms=started_ms, overwrite=overwrite)
        with opening_of(artifact) as opening, engine_for(executor, dask, processes) as engine:
            done = _made(engine, opening, current, folder, source())
        folders.tidy(folder)
    return done


def engine_for(
    executor: Executor | None, dask: str | None, processes: int | None
) -> AbstractContextManager[Engine]:
    """The engine that was asked for."""
    if dask is None:
        return engine_of(executor, processes)
    from tcc.batches.engines import connected

    return connected(dask, processes)


def _made(
    engine: Engine, opening: Opening, batch: Batch, folder: Path, requests: Iterable[Settings]
) -> BatchDone:
    bare, data = engine.brought(opening)

    def submit(executor: Executor, shard: Shard) -> Future[Done]:
        return executor.submit(make_part, bare, batch, folder, shard, data)  # type: ignore[arg-type] # bytes, once they are there

    counts: Counter[str] = Counter()
    for done in engine.done(submit, shards(batch, requests)):
        counts[done.state] += 1
        counts["certified"] += done.certified
    return BatchDone(
        folder=folder,
        batch=batch,
        certified=counts["certified"],
        made=counts["made"],
        kept=counts["kept"],
        redone=counts["redone"],
    )


def _source(requests: Requests) -> Callable[[], Iterable[Settings]]:
    """The requests, from the first one on each time."""
    if isinstance(requests, str | Path):
        return partial(read_file, Path(requests))
    return partial(iter, requests)


def read_file(path: Path) -> Iterable[Settings]:
    """The requests of a file, one after the other.

    Raises:
        BatchError: TCC902, a line or row is no request; TCC903, a table is none of requests.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        try:
            if path.suffix == ".parquet":
                from tcc.batches.parquet import read_table

                yield from read_table(file, str(path))
            else:
                yield from read_requests(file)
        except RequestError as error:
            raise BatchError(error.code, f"{path}:{error.line}", error.what) from None


def _require(
    shard_size: int, processes: int | None, executor: Executor | None, dask: str | None
) -> None:
    if shard_size < 1 or (processes is not None and processes < 1):
        raise ValueError("shard_size and processes are 1 or more")
    if executor is not None and (dask is not None or processes is not None):
        raise ValueError("an executor excludes dask and processes")

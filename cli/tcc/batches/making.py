"""A batch in shards, on one page: survey the requests, lock the folder, submit the shards.

Documentation: docs/batch.md.  The final content of the folder depends only on the artifact, the
requests and ``batch.json``.  It does not depend on the executor or on interruptions.
Cost: two passes over the requests, the runs, and memory for a few shards of requests per worker.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Literal, Protocol, TypeAlias, cast

from blake3 import blake3

from tcc import batches as folders
from tcc.batches import Batch, BatchError, PartDamaged, PartFormat, rows as ndjson
from tcc.batches.engines import BatchEngine, engine_of
from tcc.batches.rows import RequestError, RunRow, Seal, read_requests, row_of
from tcc.files import is_regular
from tcc.library import Given, artifact_of
from tcc_certs.formats.codec import Json, encode
from tcc_certs.policy.atoms import atom_document
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.ledger.outputs import written_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pool import Opening, opened, opening_of
from tcc_runtime.run import search
from tcc_runtime.settings.modes import terms_of
from tcc_runtime.settings.settings import TABLE, Settings, options_in

_MOST_PASSED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Requests that become one part.

    Attributes:
        number: the number of the shard, from 1.
        first: the number of its first run in the batch, from 1.
        settings: the settings of its runs, in order.
        inputs: a digest of the batch, the shard's number and its requests, hex.
    """

    number: int
    first: int
    settings: tuple[Settings, ...]
    inputs: str


def canonical(settings: Settings) -> bytes:
    """Return the only text of a request: canonical JSON and a line feed."""
    found: dict[str, Json] = {}
    for option in TABLE:
        value = getattr(settings, option.name)
        if isinstance(value, bytes):
            found[option.name] = value.hex()
        elif isinstance(value, tuple):
            found[option.name] = list(value)
        elif value is not None:
            found[option.name] = str(value)
    if settings.atoms:
        found["atoms"] = [atom_document(atom) for atom in settings.atoms]
    return encode(found) + b"\n"


def survey(artifact: Artifact, requests: Iterable[Settings]) -> tuple[str, int]:
    """Return the digest (hex) and the number of all requests.

    Raises:
        BatchError: TCC902, the artifact does not allow the settings of a request.
    """
    hasher, number = blake3(), 0
    passed: set[object] = set()
    for number, settings in enumerate(requests, 1):
        options = options_in(settings)
        if options not in passed:
            _require_allowed(artifact, settings, number)
            if len(passed) >= _MOST_PASSED:
                passed.clear()
            passed.add(options)
        hasher.update(canonical(settings))
    return hasher.hexdigest(), number


def _require_allowed(artifact: Artifact, settings: Settings, number: int) -> None:
    try:
        terms_of(artifact, settings, quoted=False)
    except SettingsError as error:
        raise BatchError("TCC902", f"request {number}", str(error)) from None


def shards(batch: Batch, requests: Iterable[Settings]) -> Iterator[Shard]:
    """Yield the requests in shards.

    Raises:
        BatchError: TCC806, the requests changed since the survey.  The error comes at the end, or
            as soon as there are too many requests.
    """
    hasher, number, first = blake3(), 0, 1
    held: list[Settings] = []
    texts: list[bytes] = []
    for settings in requests:
        held.append(settings)
        texts.append(canonical(settings))
        hasher.update(texts[-1])
        if len(held) == batch.shard_size:
            number += 1
            yield _shard(batch, number, first, held, texts)
            first, held, texts = first + len(held), [], []
        if first + len(held) - 1 > batch.runs:
            break
    if held:
        yield _shard(batch, number + 1, first, held, texts)
    if (first + len(held) - 1, hasher.hexdigest()) != (batch.runs, batch.requests):
        what = "they were changed while the batch was made; put them back, or begin anew"
        raise BatchError("TCC806", "requests", what)


def _shard(
    batch: Batch, number: int, first: int, held: list[Settings], texts: list[bytes]
) -> Shard:
    hasher = blake3(encode({"batch": batch.identity, "shard": number}) + b"\n")
    hasher.update(b"".join(texts))
    return Shard(number=number, first=first, settings=tuple(held), inputs=hasher.hexdigest())


State: TypeAlias = Literal["made", "kept", "redone"]
_MOST_LEDGER = 1 << 28


class Format(Protocol):
    """A module that writes and reads parts in one format."""

    def write(self, file: BinaryIO, rows: Iterable[RunRow], batch: str, inputs: str) -> Seal:
        """Write a part and return its seal."""

    def read(self, path: Path) -> Generator[RunRow, None, Seal]:
        """Yield the rows of a part; the generator returns its seal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished part.

    Attributes:
        number: the number of the part, from 1.
        state: ``made`` for a new part, ``kept`` for a part that was finished before, ``redone`` if
            the existing file was no finished part of this batch.
        rows: the number of runs in the part.
        certified: the number of those runs that claim something.
    """

    number: int
    state: State
    rows: int
    certified: int


def format_of(name: PartFormat) -> Format:
    """Return the module that writes and reads parts in that format.

    Raises:
        BatchError: TCC807, pyarrow is not installed.
    """
    found: ModuleType = ndjson
    if name == "parquet":
        from tcc.batches import parquet

        parquet.arrow()
        found = parquet
    return cast("Format", found)


def make_part(
    opening: Opening, batch: Batch, folder: Path, shard: Shard, data: bytes | None = None
) -> Done:
    """Make the part of a shard unless a finished one exists.  Runs in a worker.

    Args:
        data: the artifact's bytes; None if the worker can read the artifact's file.

    Raises:
        BatchError: TCC805, the worker does not see the folder or the artifact; TCC807, pyarrow is
            not installed; TCC808, the part cannot be written; TCC809, the ledger of a run is too
            large.
        Rejected: the artifact's file was changed.
    """
    folders.confirm(folder, batch)
    path = folder / batch.part(shard.number)
    form = format_of(batch.part_format)
    there = os.path.lexists(path)
    seal = _finished(form, path, shard) if there else None
    if seal is not None:
        return _done(shard, "kept", seal)
    rows = _rows(_opened(opening, data), batch, shard)
    try:
        # A write would follow a link and change a file outside the batch.
        if path.is_symlink():
            path.unlink()
        with written_whole(path) as file:
            seal = form.write(file, rows, batch.identity, shard.inputs)
            folders.confirm(folder, batch)
    except OSError as error:
        what = (
            f"it cannot be written: {error.strerror or error}; parts that are finished stay, and "
            "the same command goes on from there"
        )
        raise BatchError("TCC808", str(path), what) from None
    return _done(shard, "redone" if there else "made", seal)


def _done(shard: Shard, state: State, seal: Seal) -> Done:
    return Done(number=shard.number, state=state, rows=seal.rows, certified=seal.certified)


def _finished(form: Format, path: Path, shard: Shard) -> Seal | None:
    """Return the seal of a part that is undamaged and belongs to this shard, else None."""
    if not is_regular(path):
        return None
    rows = form.read(path)
    try:
        for number, settings in enumerate(shard.settings, shard.first):
            row = next(rows)
            if (row.number, row.fields.get("seed")) != (number, settings.seed.hex()):
                return None
        next(rows)
        return None
    except StopIteration as end:
        seal: Seal = end.value
        return seal if (seal.inputs, seal.rows) == (shard.inputs, len(shard.settings)) else None
    except (PartDamaged, OSError):
        return None


def _opened(opening: Opening, data: bytes | None) -> Artifact:
    try:
        return opened(opening, data)
    except OSError as error:
        what = f"a worker cannot read the artifact: {error.strerror or error}"
        raise BatchError("TCC805", str(opening.path), what) from None


def _rows(artifact: Artifact, batch: Batch, shard: Shard) -> Iterator[RunRow]:
    for number, settings in enumerate(shard.settings, shard.first):
        if not batch.ledgers:
            yield row_of(number, search(artifact, settings), None)
            continue
        sink = MemorySink()
        run = search(artifact, settings, Recorder(sink, started_ms=batch.started_ms))
        if len(sink.data) > _MOST_LEDGER:
            what = (
                f"its ledger has {len(sink.data)} bytes, more than {_MOST_LEDGER}; cap the run, "
                "or make the batch without shards, where each ledger is a file"
            )
            raise BatchError("TCC809", f"run {number}", what)
        yield row_of(number, run, sink.data)


SHARD_SIZE = 1000
Requests: TypeAlias = "str | Path | Sequence[Settings]"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDone:
    """A finished batch in shards.

    Attributes:
        folder: the folder of the parts.
        batch: the identity of the batch.
        certified: the number of runs that claim something.
        made: the number of new parts.
        kept: the number of parts that were finished before.
        redone: the number of existing files that were no finished part of this batch and were made
            again.
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
    """Make one run for each request, in shards, on any executor; continue an unfinished batch.

    Args:
        artifact: from :func:`tcc.load` or :func:`tcc.compile_file`, or the path of an artifact or a
            grammar.
        requests: a file with one JSON object per line, or a Parquet table (``.parquet``), as ``tcc
            batch --requests`` takes them; or a sequence of settings.
        out: the folder of the batch; finished parts in it are kept.
        executor: runs calls in threads or in processes that read this machine's files; None starts
            processes.
        dask: instead of an executor, the address of a Dask scheduler, or ``local``.
        processes: the number of processes to start; None is one for each processor.
        shard_size: requests per part.
        part_format: ``ndjson`` or ``parquet``.
        ledgers: whether to store the ledgers in the parts.
        started_ms: the start time in all ledgers, UTC milliseconds; None reads the clock when the
            batch is new.
        overwrite: whether to remove an existing batch in the folder first.

    Raises:
        BatchError: the batch cannot be made, or not in this folder; finished parts stay.
        tcc_runtime.errors.WorkerLost: workers were lost three times over one shard.
        tcc_certs.errors.Rejected: the artifact's file was changed.
        OSError: the requests or the folder cannot be read.
        ValueError: `shard_size` or `processes` is less than 1, or `executor` excludes another
            argument.
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
) -> AbstractContextManager[BatchEngine]:
    """Return a context manager for the engine that the arguments of :func:`batch` select."""
    if dask is None:
        return engine_of(executor, processes)
    from tcc.batches.engines import connected

    return connected(dask, processes)


def _made(
    engine: BatchEngine, opening: Opening, batch: Batch, folder: Path, requests: Iterable[Settings]
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
    """Return a function that starts to read the requests from the first one at each call."""
    if isinstance(requests, str | Path):
        return partial(read_file, Path(requests))
    return partial(iter, requests)


def read_file(path: Path) -> Iterable[Settings]:
    """Yield the requests of a file in order.

    Raises:
        BatchError: TCC902, a line or row is not a request; TCC903, the table is not a table of
            requests.
        OSError: the file cannot be read.
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

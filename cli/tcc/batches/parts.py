"""Shards of requests, and the part that a worker makes of each: whole under its name, or not.

A shard's digest ties a part to its requests.  Two requests have the same canonical text exactly
when all their settings agree, however they were written.
Format: docs/batch.md.  Cost: the runs of a shard, held one shard at a time, and one pass over a
part that exists already.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, Literal, Protocol, TypeAlias, cast

from blake3 import blake3

from tcc.batches import folder as folders
from tcc.batches import rows as ndjson
from tcc.batches.folder import Batch, BatchError, PartDamaged, PartFormat
from tcc.batches.rows import Row, Seal, row_of
from tcc.files import is_regular
from tcc_certs.core.atoms import atom_document
from tcc_certs.formats.codec import Json, encode
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.ledger.outputs import written_whole
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pool import Opening, opened
from tcc_runtime.search import search
from tcc_runtime.settings.modes import terms_of
from tcc_runtime.settings.settings import TABLE, Settings, options_in

_MOST_PASSED = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Requests that are made into one part.

    Attributes:
        number: from 1.
        first: the number of its first run in the batch, from 1.
        settings: of its runs, in order.
        inputs: a digest of the batch, the number and the requests, hex.
    """

    number: int
    first: int
    settings: tuple[Settings, ...]
    inputs: str


def canonical(settings: Settings) -> bytes:
    """The one text of a request, a line."""
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
    """The digest of all requests, and how many there are.

    Raises:
        BatchError: TCC902, the artifact does not allow one of them.
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
    """The requests in shards.

    Raises:
        BatchError: TCC806, they are not those that the batch was begun with; at the end, or where
            they are too many.
    """
    hasher, number, first = blake3(), 0, 1
    held: list[Settings] = []
    for settings in requests:
        held.append(settings)
        hasher.update(canonical(settings))
        if len(held) == batch.shard_size:
            number += 1
            yield _shard(batch, number, first, held)
            first, held = first + len(held), []
        if first + len(held) - 1 > batch.runs:
            break
    if held:
        yield _shard(batch, number + 1, first, held)
    if (first + len(held) - 1, hasher.hexdigest()) != (batch.runs, batch.requests):
        what = "they were changed while the batch was made; put them back, or begin anew"
        raise BatchError("TCC806", "requests", what)


def _shard(batch: Batch, number: int, first: int, held: list[Settings]) -> Shard:
    hasher = blake3(encode({"batch": batch.identity, "shard": number}) + b"\n")
    for settings in held:
        hasher.update(canonical(settings))
    return Shard(number=number, first=first, settings=tuple(held), inputs=hasher.hexdigest())


State: TypeAlias = Literal["made", "kept", "redone"]
_MOST_LEDGER = 1 << 28


class Format(Protocol):
    """How a part is written and read."""

    def write(self, file: BinaryIO, rows: Iterable[Row], batch: str, inputs: str) -> Seal:
        """Writes a part, and gives its seal."""

    def read(self, path: Path) -> Generator[Row, None, Seal]:
        """The rows of a part; its seal is the generator's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A finished part.

    Attributes:
        number: from 1.
        state: ``made``; ``kept``: it was finished before; ``redone``: what was there was no
            finished part of this batch.
        rows, certified: how many runs it has, and how many of them claim something.
    """

    number: int
    state: State
    rows: int
    certified: int


def format_of(name: PartFormat) -> Format:
    """The module that writes and reads parts of that format.

    Raises:
        BatchError: TCC807, what it needs is not installed.
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
    """The part of a shard, made where it is not there, or not as it has to be; in a worker.

    Args:
        data: the artifact's bytes, where the worker cannot read its file.

    Raises:
        BatchError: TCC805, the worker does not see the folder or the artifact; TCC808, the part
            cannot be written; TCC807, pyarrow is not installed.
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
        # What a link leads to is not the batch's, and a write would follow it.
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
    """The seal of a part that is as it was written, and of this shard; else None."""
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


def _rows(artifact: Artifact, batch: Batch, shard: Shard) -> Iterator[Row]:
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

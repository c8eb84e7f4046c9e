"""``tcc batch --validate``: every ledger of a batch's folder, in parallel.

A folder in shards is taken apart by its parts, one without by the lines of its results.
Cost: that of validating the ledgers; a line of results is held for each run of a piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from tcc.batches import folder as folders
from tcc.batches.engines import Engine
from tcc.batches.folder import HEAD, PLAIN, Batch, BatchError
from tcc.batches.making import engine_for
from tcc.batches.parts import format_of
from tcc.batches.verifying import (
    MOST_FINDINGS,
    BatchFinding,
    FilesPiece,
    PartPiece,
    Verified,
    merged,
    missing_parts,
    verify_files,
    verify_part,
)
from tcc_certs.errors import Code, require
from tcc_certs.formats.artifact import read_artifact
from tcc_runtime.artifact.load import Artifact, mapped
from tcc_runtime.pool import Opening, opening_of

_LINES = 100  # of results in a piece
_MOST_LINE = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchValidation:
    """What a batch shows.

    Attributes:
        verdict: 0 all ledgers are valid, 1 one is not, 2 the batch is not whole or has none.
        runs: how many there are.
        verdicts: how many ledgers by verdict: ``VALID``, ``INVALID``, ``INCOMPLETE``,
            ``DECLINED``.
        claims: how many valid ledgers by what they claim.
        findings: the first hundred, by run and line.
        more: how many findings there are besides.
    """

    verdict: int
    runs: int
    verdicts: dict[str, int]
    claims: dict[str, int]
    findings: tuple[BatchFinding, ...]
    more: int

    @property
    def word(self) -> str:
        """The verdict as a word."""
        return ("VALID", "INVALID", "INCOMPLETE")[self.verdict]


def validate_batch(
    out: str | Path,
    artifact: Artifact | str | Path,
    *,
    pin: str | None = None,
    executor: Executor | None = None,
    dask: str | None = None,
    processes: int | None = None,
) -> BatchValidation:
    """Validate every ledger of a batch, and hold every result beside its ledger.

    Args:
        out: the folder of the batch, in shards or without.
        artifact: the file of the artifact that was run, or the artifact; every worker checks it.
        pin: the artifact digest that it must have, hex.
        executor, dask, processes: as of :func:`tcc.batch`.

    Raises:
        BatchError: the folder has no batch, or one of another artifact.
        tcc_certs.errors.Rejected: the artifact is refused.
        OSError: something cannot be read.
    """
    folder = Path(out).resolve()
    with ExitStack() as held:
        file = Path(_file_of(artifact, held)).resolve()
        digest = read_artifact(mapped(file)).digest.hex()
        if pin is not None:
            require(pin, digest, Code.PIN, "artifact")
        opening = Opening(digest=digest, verified=True, path=str(file))
        engine = held.enter_context(engine_for(executor, dask, processes))
        if (folder / PLAIN).is_file() and not (folder / HEAD).exists():
            found = merged(_of_files(engine, opening, folder))
        else:
            found = merged(_of_parts(engine, opening, folder))
    return _validation(found)


def _file_of(artifact: Artifact | str | Path, held: ExitStack) -> str | Path:
    """A file of the artifact that all workers can open, there for as long as `held`."""
    if not isinstance(artifact, Artifact):
        return artifact
    return str(held.enter_context(opening_of(artifact)).path)


def _validation(found: Verified) -> BatchValidation:
    whole = found.verdicts["VALID"] == found.number
    invalid = found.verdicts["INVALID"] > 0
    return BatchValidation(
        verdict=0 if whole and not found.findings else 1 if invalid or whole else 2,
        runs=found.number,
        verdicts=dict(sorted(found.verdicts.items())),
        claims=dict(sorted(found.claims.items())),
        findings=found.findings,
        more=found.more,
    )


def _of_parts(engine: Engine, opening: Opening, folder: Path) -> Iterator[Verified]:
    batch = folders.read(folder)
    if batch.artifact != opening.digest:
        what = f"it is a batch of the artifact {batch.artifact}, not of {opening.digest}"
        raise BatchError("TCC802", str(folder), what)
    if not batch.ledgers:
        what = "the batch was made without ledgers: there is nothing to validate"
        raise BatchError("TCC804", str(folder), what)
    format_of(batch.part_format)
    bare, data = engine.brought(opening)

    def submit(executor: Executor, piece: PartPiece) -> Future[Verified]:
        return executor.submit(verify_part, bare, batch, folder, piece, data)  # type: ignore[arg-type] # bytes, once they are there

    there = folders.parts_in(folder, batch)
    yield from engine.done(submit, (_piece(batch, number) for number in there))
    yield _missing(batch, there)


def _piece(batch: Batch, number: int) -> PartPiece:
    first = (number - 1) * batch.shard_size + 1
    runs = min(batch.shard_size, batch.runs - first + 1)
    return PartPiece(number=number, first=first, runs=runs)


def _missing(batch: Batch, there: Sequence[int]) -> Verified:
    """What is to be said of parts that are not there, however many they are."""
    runs = batch.runs - sum(_piece(batch, number).runs for number in there)
    have = set(there)
    absent = (number for number in range(1, batch.parts + 1) if number not in have)
    files = [batch.part(number) for number in islice(absent, MOST_FINDINGS)]
    return missing_parts(files, runs, batch.parts - len(there))


def _of_files(engine: Engine, opening: Opening, folder: Path) -> Iterator[Verified]:
    bare, data = engine.brought(opening)

    def submit(executor: Executor, piece: FilesPiece) -> Future[Verified]:
        return executor.submit(verify_files, bare, folder, piece, data)  # type: ignore[arg-type] # bytes, once they are there

    with (folder / PLAIN).open("rb") as lines:
        yield from engine.done(submit, _pieces(lines))


def _pieces(lines: BinaryIO) -> Iterator[FilesPiece]:
    first, held = 1, []
    while line := lines.readline(_MOST_LINE):
        held.append(line)
        if len(held) == _LINES:
            yield FilesPiece(first=first, lines=tuple(held))
            first, held = first + len(held), []
    if held:
        yield FilesPiece(first=first, lines=tuple(held))

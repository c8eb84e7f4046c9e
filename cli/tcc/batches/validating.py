"""``tcc batch --validate``: every ledger of a batch's folder, in parallel.

A batch in shards is split by its parts, a batch without shards by the lines of its results.
Cost: the validation of the ledgers, and memory for one result line per run of a piece.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from tcc import batches as folders
from tcc.batches import HEAD, PLAIN, Batch, BatchError, PartDamaged
from tcc.batches.engines import BatchEngine
from tcc.batches.making import engine_for, format_of
from tcc.batches.rows import RunRow, read_object
from tcc.files import is_regular
from tcc_certs.errors import Code, require
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import Validation, validate
from tcc_runtime.artifact.load import Artifact, content_of
from tcc_runtime.pool import Opening, opening_of
from tcc_runtime.process import collection_put_off

MOST_FINDINGS = 100
DAMAGED = "TCC811"
DIFFERS = "TCC812"
# Members of a result that must equal those in the last line of its ledger.
_TOLD = (
    "claim_type",
    "law",
    "stop",
    "plans",
    "expansions",
    "leaves",
    "materialised",
    "tail_lse",
    "frontier_key",
    "gap",
    "seed",
)
_here = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class BatchFinding:
    """A problem in a batch.

    Attributes:
        run: the number of the run in the batch; 0 for a problem of a whole part.
        line: the line in the run's ledger; 0 if the problem has no line.
        code: a code of the validator or of the catalogue of diagnostics.
        file: the name of the part or the ledger in the folder.
        field, expected, found: the same as in a finding of the validator.
    """

    run: int
    line: int
    code: str
    file: str
    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedLedgers:
    """The results of validating some ledgers.

    Attributes:
        verdicts: the number of ledgers by verdict.
        claims: the number of valid ledgers by claim.
        findings: the first findings.
        more: the number of findings that were left out.
        number: the number of runs examined.
    """

    verdicts: Counter[str]
    claims: Counter[str]
    findings: tuple[BatchFinding, ...]
    more: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run to verify.

    Attributes:
        number: the number of the run in the batch.
        told: the members of its result.
        ledger: the bytes or the file of the ledger; None if the ledger is missing.
        file: the name, in the folder, of the file that contains the ledger.
    """

    number: int
    told: dict[str, Any]
    ledger: bytes | Path | None
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPiece:
    """A part to verify: its number, the number of its first run, and its number of runs."""

    number: int
    first: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPiece:
    """Results whose ledgers are files: lines of results, and the number of the first run."""

    first: int
    lines: tuple[bytes, ...]


def verify_part(
    opening: Opening,
    batch: Batch,
    folder: Path,
    piece: PartPiece,
    data: bytes | None = None,
) -> VerifiedLedgers:
    """Validate the ledgers of a part.  Runs in a worker.

    Args:
        data: the artifact's bytes; None if the worker can read the artifact's file.

    Raises:
        BatchError: TCC805, the worker cannot read the artifact.
        Rejected: the artifact is refused.
    """
    tally = _Tally()
    name = batch.part(piece.number)
    artifact = _checked(opening, data)
    number, last = piece.first, piece.first + piece.runs
    try:
        if not is_regular(folder / name):
            raise PartDamaged("it is no regular file")
        for row in _sealed_rows(batch, folder / name):
            if row.number != number or number >= last:
                raise PartDamaged(f"run {row.number} stands in the place of run {number}")
            tally.take(
                Claimed(number=number, told=row.fields, ledger=row.ledger, file=name),
                artifact,
            )
            number += 1
        if number != last:
            raise PartDamaged(f"it ends before run {number}")
    except (PartDamaged, OSError) as error:
        tally.damaged(name, str(error), last - number)
    return tally.verified()


def _sealed_rows(batch: Batch, path: Path) -> Iterator[RunRow]:
    """Yield the rows of a part and check that its seal names this batch.

    Raises:
        PartDamaged: the part is damaged, or (at the end) belongs to another batch.
        OSError: the part cannot be read.
    """
    seal = yield from format_of(batch.part_format).read(path)
    if seal.batch != batch.identity:
        raise PartDamaged("it is a part of another batch")


def verify_files(
    opening: Opening, folder: Path, piece: FilesPiece, data: bytes | None = None
) -> VerifiedLedgers:
    """Validate ledgers in separate files.  Runs in a worker.

    Raises:
        BatchError, Rejected: as :func:`verify_part`.
    """
    tally = _Tally()
    artifact = _checked(opening, data)
    for number, line in enumerate(piece.lines, piece.first):
        name = f"{number:08d}.ledger"
        try:
            told = read_object(line)
            if told.get("number") != number:
                raise PartDamaged(f"line {number} is not that of run {number}")
        except PartDamaged as error:
            tally.damaged("runs.ndjson", str(error), 1)
            continue
        ledger = folder / name if (folder / name).is_file() else None
        tally.take(Claimed(number=number, told=told, ledger=ledger, file=name), artifact)
    return tally.verified()


class _Tally:
    """Counts verdicts and claims, and keeps the first 100 findings."""

    def __init__(self) -> None:
        self._verdicts: Counter[str] = Counter()
        self._claims: Counter[str] = Counter()
        self._findings: list[BatchFinding] = []
        self._more = 0

    def take(self, claimed: Claimed, artifact: CheckedArtifact) -> None:
        if claimed.ledger is None:
            self._verdicts["INCOMPLETE"] += 1
            self._find(claimed.number, claimed.file, "ledger", "a ledger", "none")
            return
        try:
            found, last = _validated(claimed.ledger, artifact)
        except OSError as error:
            self._verdicts["INVALID"] += 1
            self._find(claimed.number, claimed.file, "ledger", "a ledger", str(error.strerror))
            return
        differing = list(_differences(claimed.told, found, last)) if found.verdict == 0 else []
        self._verdicts["INVALID" if differing else found.word] += 1
        if found.verdict == 0 and not differing:
            self._claims[found.claim_type] += 1
        for item in found.findings:
            self._keep(
                BatchFinding(
                    run=claimed.number,
                    line=item.line,
                    code=item.code.value,
                    file=claimed.file,
                    field=item.field,
                    expected=item.expected,
                    found=item.found,
                )
            )
        for name, expected, there in differing:
            self._find(claimed.number, claimed.file, name, expected, there, DIFFERS)

    def damaged(self, file: str, what: str, runs: int) -> None:
        """Record a part or a result line that cannot be read; `runs` runs were not examined."""
        self._verdicts["INVALID"] += max(runs, 0)
        self._find(0, file, "part", "a part as it was written", what, DAMAGED)

    def _find(
        self, run: int, file: str, field: str, expected: str, found: str, code: str = DAMAGED
    ) -> None:
        self._keep(
            BatchFinding(
                run=run, line=0, code=code, file=file, field=field, expected=expected, found=found
            )
        )

    def _keep(self, finding: BatchFinding) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(finding)
        else:
            self._more += 1

    def verified(self) -> VerifiedLedgers:
        return VerifiedLedgers(
            verdicts=self._verdicts,
            claims=self._claims,
            findings=tuple(self._findings),
            more=self._more,
            number=sum(self._verdicts.values()),
        )


def _validated(ledger: bytes | Path, artifact: CheckedArtifact) -> tuple[Validation, bytes]:
    """Validate a ledger; return the validation and the ledger's last line."""
    data = ledger if isinstance(ledger, bytes) else ledger.read_bytes()
    with collection_put_off(True):
        found = validate(data, artifact)
    return found, data[data.rfind(b"\n", 0, -1) + 1 :]


def _differences(
    told: dict[str, Any], found: Validation, last: bytes
) -> Iterator[tuple[str, str, str]]:
    """Yield each member in which a result differs from its valid ledger: name, expected, found."""
    closed = json.loads(last)
    if told.get("ledger_head") != found.head:
        yield "ledger_head", found.head, _short(told.get("ledger_head"))
    if told.get("after", []) != list(found.after):
        yield "after", _short(list(found.after)), _short(told.get("after"))
    # A ledger ends with the guard that ended the run; a result lists all guards that fired.
    names = dict.fromkeys([*_TOLD, *sorted((told.keys() & closed.keys()) - {"guards"})])
    for name in names:
        there = _plans(told.get(name)) if name == "plans" else told.get(name)
        if not _same(there, closed.get(name)):
            yield name, _short(closed.get(name)), _short(there)


def _same(told: object, closed: object) -> bool:
    """Return whether two members are equal; some numbers of a result are texts in a ledger."""
    if type(told) is int and isinstance(closed, str):
        return str(told) == closed
    return type(told) is type(closed) and told == closed


def _plans(told: object) -> object:
    """Return plans as a ledger has them, without the member `assumed`."""
    if not isinstance(told, list):
        return told
    return [
        {name: value for name, value in plan.items() if name != "assumed"}
        if isinstance(plan, dict)
        else plan
        for plan in told
    ]


def _short(value: object) -> str:
    return json.dumps(value, ensure_ascii=True)[:200]


def _checked(opening: Opening, data: bytes | None) -> CheckedArtifact:
    """Return the artifact, checked once per thread."""
    kept: tuple[str, CheckedArtifact] | None = getattr(_here, "kept", None)
    if kept is None or kept[0] != opening.digest:
        try:
            raw = Path(opening.path or "").read_bytes() if data is None else data
        except OSError as error:
            what = f"a worker cannot read the artifact: {error.strerror or error}"
            raise BatchError("TCC805", str(opening.path), what) from None
        kept = _here.kept = opening.digest, check(raw, pin=opening.digest)
    return kept[1]


def missing_parts(files: Sequence[str], runs: int, number: int) -> VerifiedLedgers:
    """Return the findings for missing parts, which mean that the batch is not finished.

    Args:
        files: the names of the first missing parts.
        runs: the number of runs in all missing parts.
        number: the number of missing parts.
    """
    findings = tuple(
        BatchFinding(
            run=0, line=0, code=DAMAGED, file=file, field="part", expected="a part", found="none"
        )
        for file in files
    )
    verdicts = Counter({"INCOMPLETE": runs} if runs else {})
    more = number - len(findings)
    return VerifiedLedgers(
        verdicts=verdicts, claims=Counter(), findings=findings, more=more, number=runs
    )


def merged(pieces: Iterable[VerifiedLedgers]) -> VerifiedLedgers:
    """Combine the results of all pieces; the order of the pieces does not matter."""
    verdicts: Counter[str] = Counter()
    claims: Counter[str] = Counter()
    findings: list[BatchFinding] = []
    more = number = 0
    for piece in pieces:
        verdicts += piece.verdicts
        claims += piece.claims
        number += piece.number
        findings = sorted([*findings, *piece.findings])
        more += piece.more + max(0, len(findings) - MOST_FINDINGS)
        findings = findings[:MOST_FINDINGS]
    return VerifiedLedgers(
        verdicts=verdicts, claims=claims, findings=tuple(findings), more=more, number=number
    )


_LINES = 100  # result lines per piece
_MOST_LINE = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchValidation:
    """The result of validating a batch.

    Attributes:
        verdict: 0 if all ledgers are valid, 1 if a ledger or a part is invalid, 2 if only ledgers
            or parts are missing, incomplete or declined.
        runs: the number of runs.
        verdicts: the number of ledgers by verdict: ``VALID``, ``INVALID``, ``INCOMPLETE``,
            ``DECLINED``.
        claims: the number of valid ledgers by claim.
        findings: the first hundred findings, by run and line.
        more: the number of findings that were left out.
    """

    verdict: int
    runs: int
    verdicts: dict[str, int]
    claims: dict[str, int]
    findings: tuple[BatchFinding, ...]
    more: int

    @property
    def word(self) -> str:
        """The verdict as a word: VALID, INVALID or INCOMPLETE."""
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
    """Validate every ledger of a batch, and compare every result with its ledger.

    Args:
        out: the folder of the batch, in shards or without.
        artifact: the artifact that was run, or its file; every worker checks it.
        pin: the digest that the artifact must have, hex.
        executor, dask, processes: the same as for :func:`tcc.batch`.

    Raises:
        BatchError: the folder has no batch, a batch without ledgers, or a batch of another
            artifact.
        tcc_certs.errors.Rejected: the artifact is refused or has another digest than `pin`.
        OSError: a file cannot be read.
    """
    folder = Path(out).resolve()
    with ExitStack() as held:
        file = Path(_file_of(artifact, held)).resolve()
        digest = read_artifact(content_of(file)).digest.hex()
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
    """Return a file of the artifact that all workers can open until `held` is closed."""
    if not isinstance(artifact, Artifact):
        return artifact
    return str(held.enter_context(opening_of(artifact)).path)


def _validation(found: VerifiedLedgers) -> BatchValidation:
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


def _of_parts(engine: BatchEngine, opening: Opening, folder: Path) -> Iterator[VerifiedLedgers]:
    batch = folders.read(folder)
    if batch.artifact != opening.digest:
        what = f"it is a batch of the artifact {batch.artifact}, not of {opening.digest}"
        raise BatchError("TCC802", str(folder), what)
    if not batch.ledgers:
        what = "the batch was made without ledgers: there is nothing to validate"
        raise BatchError("TCC804", str(folder), what)
    format_of(batch.part_format)
    bare, data = engine.brought(opening)

    def submit(executor: Executor, piece: PartPiece) -> Future[VerifiedLedgers]:
        return executor.submit(verify_part, bare, batch, folder, piece, data)  # type: ignore[arg-type] # bytes, once they are there

    there = folders.parts_in(folder, batch)
    yield from engine.done(submit, (_piece(batch, number) for number in there))
    yield _missing(batch, there)


def _piece(batch: Batch, number: int) -> PartPiece:
    first = (number - 1) * batch.shard_size + 1
    runs = min(batch.shard_size, batch.runs - first + 1)
    return PartPiece(number=number, first=first, runs=runs)


def _missing(batch: Batch, there: Sequence[int]) -> VerifiedLedgers:
    """Return the findings for the parts that are not in the folder, the first 100 by name."""
    runs = batch.runs - sum(_piece(batch, number).runs for number in there)
    have = set(there)
    absent = (number for number in range(1, batch.parts + 1) if number not in have)
    files = [batch.part(number) for number in islice(absent, MOST_FINDINGS)]
    return missing_parts(files, runs, batch.parts - len(there))


def _of_files(engine: BatchEngine, opening: Opening, folder: Path) -> Iterator[VerifiedLedgers]:
    bare, data = engine.brought(opening)

    def submit(executor: Executor, piece: FilesPiece) -> Future[VerifiedLedgers]:
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

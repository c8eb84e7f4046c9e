"""One piece of a batch verified by a worker: every ledger of it, and that results say the same.

A ledger is validated as :func:`tcc_certs.replay.validate` has it; the artifact is checked once by
each worker.  A result is a copy of what its ledger ends with, and is compared with that, so that
who reads results alone is not told something else.
Cost: that of validating; one ledger is held at a time.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcc.batches.folder import Batch, BatchError, PartDamaged
from tcc.batches.parts import format_of
from tcc.batches.rows import Row, read_object
from tcc.files import is_regular
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import Validation, validate
from tcc_runtime.pool import Opening
from tcc_runtime.process import collection_put_off

MOST_FINDINGS = 100
DAMAGED = "TCC811"
DIFFERS = "TCC812"
# What the last line of a ledger says of the run, as a result has it.
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
    """One thing that does not hold.

    Attributes:
        run: its number in the batch; 0 where a part as a whole is at fault.
        line: of the run's ledger; 0 where it is about something else.
        code: of the validator, or of the catalogue of diagnostics.
        file: the part or the ledger, as it is named in the folder.
        field, expected, found: as of a validator's finding.
    """

    run: int
    line: int
    code: str
    file: str
    field: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What came of some ledgers.

    Attributes:
        verdicts: how many ledgers by verdict.
        claims: how many ledgers that are valid by claim.
        findings: the first of them, by run and line.
        more: how many findings there are besides.
        number: how many runs were looked at.
    """

    verdicts: Counter[str]
    claims: Counter[str]
    findings: tuple[BatchFinding, ...]
    more: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """A run to be verified.

    Attributes:
        number: in the batch.
        told: the fields of its result.
        ledger: its bytes, or the file; None where there is none.
        file: how the folder names what holds it.
    """

    number: int
    told: dict[str, Any]
    ledger: bytes | Path | None
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPiece:
    """A part to verify: its number, the number of its first run, and how many it has."""

    number: int
    first: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesPiece:
    """Results whose ledgers are files: the lines of the results, from that number on."""

    first: int
    lines: tuple[bytes, ...]


def verify_part(
    opening: Opening,
    batch: Batch,
    folder: Path,
    piece: PartPiece,
    data: bytes | None = None,
) -> Verified:
    """What comes of the ledgers of a part; in a worker.

    Raises:
        BatchError: TCC805, the worker does not see the artifact.
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


def _sealed_rows(batch: Batch, path: Path) -> Iterator[Row]:
    """The rows of a part that is sealed for that batch.

    Raises:
        PartDamaged, OSError: as of reading it; at the end, where it is a part of another batch.
    """
    seal = yield from format_of(batch.part_format).read(path)
    if seal.batch != batch.identity:
        raise PartDamaged("it is a part of another batch")


def verify_files(
    opening: Opening, folder: Path, piece: FilesPiece, data: bytes | None = None
) -> Verified:
    """What comes of ledgers that are files; in a worker.

    Raises:
        BatchError, Rejected: as of a part.
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
    """Counts verdicts and claims, and keeps the first findings."""

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
        """A part, or a line of results, that cannot be read on; `runs` were not."""
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

    def verified(self) -> Verified:
        return Verified(
            verdicts=self._verdicts,
            claims=self._claims,
            findings=tuple(self._findings),
            more=self._more,
            number=sum(self._verdicts.values()),
        )


def _validated(ledger: bytes | Path, artifact: CheckedArtifact) -> tuple[Validation, bytes]:
    """What a ledger shows, and its last line."""
    data = ledger if isinstance(ledger, bytes) else ledger.read_bytes()
    with collection_put_off(True):
        found = validate(data, artifact)
    return found, data[data.rfind(b"\n", 0, -1) + 1 :]


def _differences(
    told: dict[str, Any], found: Validation, last: bytes
) -> Iterator[tuple[str, str, str]]:
    """Where a result says something else than its valid ledger."""
    closed = json.loads(last)
    if told.get("ledger_head") != found.head:
        yield "ledger_head", found.head, _short(told.get("ledger_head"))
    if told.get("after", []) != list(found.after):
        yield "after", _short(list(found.after)), _short(told.get("after"))
    # A ledger ends with the guard that ended the run, a result has all that fired.
    names = dict.fromkeys([*_TOLD, *sorted((told.keys() & closed.keys()) - {"guards"})])
    for name in names:
        there = _plans(told.get(name)) if name == "plans" else told.get(name)
        if not _same(there, closed.get(name)):
            yield name, _short(closed.get(name)), _short(there)


def _same(told: object, closed: object) -> bool:
    """Whether both are one value; amounts that a result has as numbers are texts in a ledger."""
    if type(told) is int and isinstance(closed, str):
        return str(told) == closed
    return type(told) is type(closed) and told == closed


def _plans(told: object) -> object:
    """Plans as a ledger has them: which calls are assumed is not in it."""
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
    """The artifact, checked in this thread the first time."""
    kept: tuple[str, CheckedArtifact] | None = getattr(_here, "kept", None)
    if kept is None or kept[0] != opening.digest:
        try:
            raw = Path(opening.path or "").read_bytes() if data is None else data
        except OSError as error:
            what = f"a worker cannot read the artifact: {error.strerror or error}"
            raise BatchError("TCC805", str(opening.path), what) from None
        kept = _here.kept = opening.digest, check(raw, pin=opening.digest)
    return kept[1]


def missing_parts(files: Sequence[str], runs: int, number: int) -> Verified:
    """What is to be said of parts that are not there: the batch is not finished.

    Args:
        files: the first of them.
        runs: how many they would have.
        number: how many parts are missing.
    """
    findings = tuple(
        BatchFinding(
            run=0, line=0, code=DAMAGED, file=file, field="part", expected="a part", found="none"
        )
        for file in files
    )
    verdicts = Counter({"INCOMPLETE": runs} if runs else {})
    more = number - len(findings)
    return Verified(verdicts=verdicts, claims=Counter(), findings=findings, more=more, number=runs)


def merged(pieces: Iterable[Verified]) -> Verified:
    """All pieces together, in whatever order they come."""
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
    return Verified(
        verdicts=verdicts, claims=claims, findings=tuple(findings), more=more, number=number
    )

"""Many artifacts checked in one go, and held to their pins: what ``tcc check`` says of them.

Each is read once: what is compared with its pin are the bytes whose certificates were checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from tcc.documents import to_json
from tcc.exits import CLEAN, DECLINED, FINDINGS
from tcc.files import is_regular
from tcc.found import Found, as_object, of_check
from tcc.pins import LockError, Pin, check_pin, check_source, missing, name_in, read_pins
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.report import VERDICTS, Report

Check: TypeAlias = "Callable[[bytes], Report]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What was found about artifacts.

    Attributes:
        reports: of each artifact that could be read, its path and the report of its check.
        pins: what does not agree with the lock.
    """

    reports: Sequence[tuple[Path, Report]]
    pins: Sequence[Found]

    @property
    def verdict(self) -> int:
        """1 where anything is invalid or not pinned, else 2 where anything is declined, else 0."""
        verdicts = {report.verdict for _, report in self.reports}
        if self.pins or FINDINGS in verdicts:
            return FINDINGS
        return DECLINED if DECLINED in verdicts else CLEAN

    @property
    def found(self) -> list[Found]:
        """Everything as findings, artifact by artifact, then the pins."""
        by_check = [one for path, report in self.reports for one in of_check(report.findings, path)]
        return [*by_check, *self.pins]


def check_each(paths: Iterable[Path], check: Check) -> Checked:
    """Check artifacts.

    Raises:
        OSError: one cannot be read.
    """
    return Checked(reports=[(path, check(path.read_bytes())) for path in paths], pins=())


def check_locked(lock: Path, paths: Sequence[Path], check: Check) -> Checked:
    """Check artifacts and hold them to their pins; all pinned ones where none is named.

    Raises:
        OSError: one that is there cannot be read.
    """
    try:
        pins = read_pins(lock)
        named = {name_in(lock, path): path for path in paths}
    except LockError as error:
        return Checked(reports=(), pins=(error.found,))
    wanted = named if paths else {name: lock.parent / name for name in sorted(pins)}
    reports: list[tuple[Path, Report]] = []
    found: list[Found] = []
    for name, path in wanted.items():
        if not is_regular(path):
            found.append(missing(path))
            continue
        data = path.read_bytes()
        report = check(data)
        reports.append((path, report))
        if report.verdict == CLEAN:
            found += check_pin(name, path, pins, _pin(data))
            core = bytes(read_artifact(data, digests=False).columns["core"].data)
            found += check_source(lock, pins.get(name), path, core)
        elif name not in pins:
            found += check_pin(name, path, pins, Pin(digest="", grammar="", version=""))
    return Checked(reports=reports, pins=found)


def _pin(data: bytes) -> Pin:
    """The pin of bytes that were checked."""
    file = read_artifact(data, digests=False)
    manifest = file.manifest
    return Pin(digest=file.digest.hex(), grammar=manifest.grammar, version=manifest.version)


def checked_fields(checked: Checked) -> Mapping[str, Any]:
    """The JSON fields of ``check`` over several artifacts."""
    artifacts = []
    for path, report in checked.reports:
        fields = to_json(report)
        del fields["format"], fields["format_version"]
        artifacts.append({"artifact": str(path), **fields})
    return {
        "verdict": VERDICTS[checked.verdict],
        "artifacts": artifacts,
        "findings": [as_object(one) for one in checked.pins],
    }

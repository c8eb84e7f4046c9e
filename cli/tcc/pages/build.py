"""From files to a page: what is validated first, and how much is told then.

A page says VALID only by the verdict of a validation made here, of the bytes that it tells of: an
artifact is read once, and a ledger's records have to end in the head that was validated.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tcc.pages import verdicts
from tcc.pages.artifact_page import Known, artifact_page
from tcc.pages.blocks import code
from tcc.pages.frame import Page
from tcc.pages.reading import lines_named, records
from tcc.pages.records import kept_of
from tcc.pages.run_page import run_page
from tcc.pages.session_page import session_page
from tcc.verification import validate
from tcc_certs.errors import Code
from tcc_certs.formats.container import write_container
from tcc_certs.formats.ledger import Record
from tcc_certs.replay import Validation
from tcc_certs.report import VALID, Report, check_artifact
from tcc_certs.session import SessionValidation
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.gate.retold import retell

# From so many bytes on the certificates alone are checked, by the fast kernel.
_LARGE = 1 << 24
_CHECKED = "Certificates checked by"
_UNTOLD = {
    "INVALID": "This {} does not hold",
    "DECLINED": "This {} cannot be judged",
    "INCOMPLETE": "Of this {} there is too little",
}
# What leaves nothing of the records that were read in doubt but the end, or the uniforms.
_TOLD = frozenset({Code.INCOMPLETE, Code.WITHHELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A page, and what it says.

    Attributes:
        verdict: the word at its top.
        code: the exit code that it comes to.
    """

    page: Page
    kind: str
    verdict: str
    summary: str
    code: int


def of_artifact(given: Artifact | bytes, since: Artifact | None, pin: str | None) -> Built:
    """The page of an artifact: of its bytes, or of one that was compiled in this process."""
    whole = write_container(given.file.columns) if isinstance(given, Artifact) else given
    report, by = _checked(whole, pin)
    verdict = verdicts.of_artifact(report, by)
    if report.verdict != VALID:
        page = Page(
            kind="artifact",
            title=_UNTOLD[verdict.word].format("artifact"),
            verdict=verdict,
            facts=(),
            sections=[verdicts.artifact_findings(report)],
        )
    else:
        artifact = given if isinstance(given, Artifact) else load(whole, checked=report.digest)
        page = artifact_page(Known(artifact=artifact, verdict=verdict, since=since))
    return Built(
        page=page,
        kind="artifact",
        verdict=verdict.word,
        summary=verdict.summary,
        code=report.verdict,
    )


def _checked(data: bytes, pin: str | None) -> tuple[Report, str]:
    """The verdict, and who says so; of a core that is too large to walk the certificates alone."""
    if len(data) >= _LARGE:
        from tcc_runtime.fastcheck.kernel import check as fast

        by = f"{_CHECKED} the fast kernel when this page was written; tcc check --core says more."
        return check_artifact(data, pin=pin, kernel=fast), by
    report = check_artifact(data, core=True, pin=pin)
    by = f"{_CHECKED} the kernel alone when this page was written; the automaton, against its core."
    if report.findings and report.findings[0].code is Code.LIMIT:
        report = check_artifact(data, pin=pin)
        by = f"{_CHECKED} the kernel alone when this page was written; too large for more."
    return report, by


def of_ledger(ledger: Path, artifact: bytes, given: dict[str, Any]) -> Built:
    """The page of a run or of a session.

    Args:
        given: keyword arguments of :func:`tcc.verification.validate`.

    Raises:
        tcc.pages.reading.Changed: the ledger was changed between the two times it was read.
        SettingsError: what was given is for the other kind of ledger.
        OSError: a file cannot be read.
    """
    found = validate(ledger, artifact, **given)
    kind = "session" if isinstance(found, SessionValidation) else "run"
    page = _told(ledger, artifact, found, given["kernel"]) or _untold(
        ledger, found, kind, given["kernel"]
    )
    return Built(
        page=page, kind=kind, verdict=found.word, summary=found.summary, code=found.verdict
    )


def _told(
    ledger: Path, data: bytes, found: Validation | SessionValidation, kernel: str
) -> Page | None:
    """The page of a ledger that holds as far as it goes; None of any other."""
    if not {finding.code for finding in found.findings} <= _TOLD or not any(found.checked.values()):
        return None

    def read() -> Iterator[Record]:
        return records(ledger, found.head)

    artifact = load(data, verify=False)
    verdict = verdicts.of_ledger(found, kernel)
    if isinstance(found, SessionValidation):
        told = retell(artifact, read())
        page = session_page(artifact, told, kept_of(read()), found, verdict)
    else:
        page = run_page(artifact, read, verdict)
    if found.findings:
        page = replace(page, sections=[verdicts.findings(found, ()), *page.sections])
    return page


def _untold(ledger: Path, found: Validation | SessionValidation, kind: str, kernel: str) -> Page:
    named = lines_named(ledger, [finding.line for finding in found.findings])
    return Page(
        kind=kind,
        title=_UNTOLD[found.word].format(f"{kind}'s ledger"),
        verdict=verdicts.of_ledger(found, kernel),
        facts=[("ledger", "nothing that it says is taken over"), ("head", code(found.head))],
        sections=[verdicts.findings(found, named)],
    )

"""``tcc report``: writes one page about an artifact, a run or a session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from tcc import options, pages, screen
from tcc.files import GRAMMAR_ENDINGS, looks_like_artifact, same_file
from tcc.library.validation import validate
from tcc.opening import open_artifact, options_of, refuse_compile_options, require_artifact, writing
from tcc.pages.artifact_page import Known, artifact_page
from tcc.pages.proved import with_proof
from tcc.pages.record_table import ShownRecords, lines_named, records
from tcc.pages.run_page import run_page
from tcc.pages.session_page import session_page
from tcc.pages.transcript import Teller
from tcc.screen import CLEAN
from tcc_certs.errors import Code
from tcc_certs.formats.container import write_container
from tcc_certs.formats.ledger import Record
from tcc_certs.replay import Validation
from tcc_certs.report import VALID, VERDICTS, CheckReport, check_artifact
from tcc_certs.session import SessionValidation
from tcc_certs.session.files import files_of
from tcc_certs.session.replay import ReplayedSession
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.process import collection_put_off

# For an artifact of at least so many bytes the fast kernel checks the certificates, but no core.
_LARGE = 1 << 24
_CHECKED = "Certificates checked by"
_UNTOLD = {
    "INVALID": "This {} does not hold",
    "DECLINED": "This {} cannot be judged",
    "INCOMPLETE": "Of this {} there is too little",
}
# Findings that leave the records before the end valid: a missing end, or a withheld seed.
_TOLD = frozenset({Code.INCOMPLETE, Code.WITHHELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltPage:
    """A page about an artifact, a run or a session, with its verdict.

    Attributes:
        page: the page.
        kind: ``artifact``, ``run`` or ``session``.
        verdict: the word at the top of the page.
        summary: the verdict as a sentence.
        code: the exit code of the verdict.
    """

    page: pages.Page
    kind: str
    verdict: str
    summary: str
    code: int


def of_artifact(given: Artifact | bytes, since: Artifact | None, pin: str | None) -> BuiltPage:
    """Build the page of an artifact.

    Args:
        given: the bytes of the artifact, or an artifact compiled in this process.
        since: an older artifact to compare with, or None.
        pin: the digest that the artifact must have, hex, or None.
    """
    whole = write_container(given.file.columns) if isinstance(given, Artifact) else given
    report, by = _checked(whole, pin)
    verdict = artifact_verdict(report, by)
    if report.verdict != VALID:
        page = pages.Page(
            kind="artifact",
            title=_UNTOLD[verdict.word].format("artifact"),
            verdict=verdict,
            facts=(),
            sections=[artifact_findings(report)],
        )
    else:
        artifact = given if isinstance(given, Artifact) else load(whole, checked=report.digest)
        page = with_proof(
            artifact_page(Known(artifact=artifact, verdict=verdict, since=since)), whole
        )
    return BuiltPage(
        page=page,
        kind="artifact",
        verdict=verdict.word,
        summary=verdict.summary,
        code=report.verdict,
    )


def _checked(data: bytes, pin: str | None) -> tuple[CheckReport, str]:
    """Check an artifact; return the report, and a sentence that says how much was checked."""
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


def of_ledger(ledger: Path, artifact: bytes, given: dict[str, Any]) -> BuiltPage:
    """Build the page of a run or a session from its ledger.

    Args:
        artifact: the bytes of the artifact.
        given: keyword arguments of :func:`tcc.library.validation.validate`.

    Raises:
        tcc.pages.record_table.Changed: the ledger of a run changed between its two readings.  The
            ledger of a session is read once.
        SettingsError: an argument is for the other kind of ledger.
        OSError: a file cannot be read.
    """
    teller, kept = Teller(), ShownRecords()

    def tell(record: Record, session: ReplayedSession) -> None:
        kept.add(record)
        teller.tell(record, session)

    found = validate(ledger, artifact, tell=tell, **given)
    kind = "session" if isinstance(found, SessionValidation) else "run"
    page = _told(ledger, artifact, found, teller, kept) or _untold(ledger, found, kind)
    return BuiltPage(
        page=page, kind=kind, verdict=found.word, summary=found.summary, code=found.verdict
    )


def _told(
    ledger: Path,
    data: bytes,
    found: Validation | SessionValidation,
    teller: Teller,
    kept: ShownRecords,
) -> pages.Page | None:
    """Build the page with all records, or return None.

    None means that the ledger has faults other than a missing end or a withheld seed.

    Args:
        teller, kept: contain the records of a session.
    """
    if not {finding.code for finding in found.findings} <= _TOLD or not any(found.checked.values()):
        return None

    artifact = load(data, verify=False)
    verdict = ledger_verdict(found)
    if isinstance(found, SessionValidation):
        with collection_put_off(True):
            told = teller.transcript(artifact)
            page = session_page(artifact, told, kept, found, verdict)
        page = with_proof(page, data)
    else:

        def read() -> Iterator[Record]:
            return records(ledger, found.head)

        page = run_page(artifact, read, verdict)
    if found.findings:
        page = replace(page, sections=[ledger_findings(found, ()), *page.sections])
    return page


def _untold(ledger: Path, found: Validation | SessionValidation, kind: str) -> pages.Page:
    files = files_of(ledger) if kind == "session" else [ledger]
    named = lines_named(files, [finding.line for finding in found.findings])
    return pages.Page(
        kind=kind,
        title=_UNTOLD[found.word].format(f"{kind}'s ledger"),
        verdict=ledger_verdict(found),
        facts=[("ledger", "nothing that it says is taken over"), ("head", pages.code(found.head))],
        sections=[ledger_findings(found, named)],
    )


# The verdict at the top of a page, and the section of findings.

_MOST_FINDINGS = 100


def ledger_verdict(found: Validation | SessionValidation) -> pages.Verdict:
    """Return the verdict on a ledger, for the top of its page."""
    upheld = found.verdict == CLEAN and found.claim_upheld
    mood: pages.Mood = "good" if upheld else "bad" if found.word == "INVALID" else "doubtful"
    checked = ", ".join(f"{count} {name}" for name, count in found.checked.items())
    # A ledger that is INVALID or DECLINED claims nothing here, whatever its last record says.
    read = found.word in ("VALID", "INCOMPLETE")
    claim = f" Claim: {found.claim_type}." if read and found.claim_type else ""
    by = f"Validated by the kernel alone when this page was written: {checked}.{claim}"
    return pages.Verdict(word=found.word, summary=_sentence(found.summary), mood=mood, by=by)


def artifact_verdict(report: CheckReport, by: str) -> pages.Verdict:
    """Return the verdict on an artifact, for the top of its page."""
    word = VERDICTS[report.verdict]
    mood: pages.Mood = ("good", "bad", "doubtful")[report.verdict]
    first = report.lines[0].removeprefix(f"{word}: ")
    more = [line.strip() for line in report.lines[1:] if "automaton of its core" in line]
    return pages.Verdict(word=word, summary="; ".join([first, *more]) + ".", mood=mood, by=by)


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."


def ledger_findings(
    found: Validation | SessionValidation, lines: Sequence[tuple[int, str]]
) -> pages.Section:
    """Return the section of findings about a ledger, with the text of the lines that they name.

    Args:
        lines: number and text of each line that a finding names.
    """
    shown = found.findings[:_MOST_FINDINGS]
    rows = [
        (
            pages.code(f.code.value),
            f.line or "-",
            pages.code(f.field),
            pages.code(f.expected),
            pages.code(f.found),
        )
        for f in shown
    ]
    names = ("code", "line", "field", "expected", "found")
    quoted = [
        pages.element("p", pages.element("b", f"line {number}"), " ", pages.code(text))
        for number, text in lines
    ]
    return pages.Section(
        name="findings",
        title="What does not hold",
        lead="Each thing that the validation found. tcc explain CODE says more about a code.",
        body=pages.joined(
            [
                pages.table(names, rows, label="Findings", numbers="line"),
                pages.left_out(len(shown), len(found.findings), "findings"),
                pages.element("h3", "The lines named, as they stand") if quoted else "",
                *quoted,
            ]
        ),
    )


def artifact_findings(report: CheckReport) -> pages.Section:
    """Return the section of findings about an artifact."""
    rows = [
        (pages.code(f.code.value), pages.code(f.path), pages.code(f.expected), pages.code(f.found))
        for f in report.findings
    ]
    names = ("code", "place", "expected", "found")
    return pages.Section(
        name="findings",
        title="What does not hold",
        body=pages.joined(
            [
                pages.table(names, rows, label="Findings"),
                pages.note("Nothing else is told of an artifact that does not hold."),
            ]
        ),
    )


_OF_LEDGERS = ("seed", "opening_salt", "opening", "beacon", "nonce", "counts", "key")


@click.command("report")
@click.argument("source", type=options.INPUT, callback=options.is_regular_file)
@options.input_option("--artifact", "for a ledger: the artifact of the run or of the session")
@click.option("-o", "--output", type=options.OUTPUT, required=True, help="file of the page")
@options.input_option(
    "--since", "for an artifact: an older artifact or grammar; the page shows what changed since"
)
@options.pin_option
@options.audit_options
@options.compile_options
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    source: Path,
    artifact: Path | None,
    output: Path,
    since: Path | None,
    pin: bytes | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Write a page about SOURCE: an artifact (or a grammar), the ledger of a run, or of a session.

    The page is one HTML file that loads nothing from elsewhere. SOURCE is first checked or
    validated; the page states the verdict at its top, and the exit code is that of the verdict. If
    SOURCE is INVALID, the page shows only the findings.
    """
    read = [path for path in (source, artifact, since) if path is not None]
    pinned = None if pin is None else pin.hex()
    if artifact is None:
        built = _of_artifact(source, since, pinned, given, read)
    else:
        built = _of_ledger(source, artifact, since, pinned, given)
    if same_file(output, read):
        raise click.BadParameter(f"{str(output)!r} is what is reported on", param_hint="-o")
    with writing(output):
        write_whole(output, pages.page_bytes(built.page))
    _print(built, output, as_json)
    ctx.exit(built.code)


def _of_artifact(
    source: Path, since: Path | None, pin: str | None, given: dict[str, Any], read: list[Path]
) -> BuiltPage:
    for name in _OF_LEDGERS:
        if given.pop(name) is not None:
            raise click.UsageError(
                f"--{name.replace('_', '-')} is for ledgers: name --artifact too"
            )
    options = options_of(given)
    old = None
    if since is not None:
        old = open_artifact(since, command="report", options=options, read=read, beside=source)
    if source.suffix in GRAMMAR_ENDINGS:
        opened = open_artifact(source, command="report", options=options, read=read)
        return of_artifact(opened, old, pin)
    if since is None or since.suffix not in GRAMMAR_ENDINGS:
        refuse_compile_options()
    data = source.read_bytes()
    if data[:1] == b"{" and not looks_like_artifact(data):
        raise click.UsageError(
            f"{source} is a ledger: name its artifact, tcc report {source} --artifact A -o R.html"
        )
    return of_artifact(data, old, pin)


def _of_ledger(
    ledger: Path, artifact: Path, since: Path | None, pin: str | None, given: dict[str, Any]
) -> BuiltPage:
    require_artifact(artifact)
    if since is not None:
        raise click.UsageError("--since is for artifacts, and this is a ledger")
    refuse_compile_options()
    options_of(given)  # taken out
    with ledger.open("rb") as file:
        if looks_like_artifact(file.read(16)):
            raise click.UsageError(f"{ledger} is an artifact; --artifact is for its ledgers")
    return of_ledger(ledger, artifact.read_bytes(), {**given, "pin": pin})


def _print(built: BuiltPage, output: Path, as_json: bool) -> None:
    if as_json:
        from tcc.outputs.verdicts import ReportOutput

        told = ReportOutput(
            kind=built.kind, verdict=built.verdict, summary=built.summary, output=str(output)
        )
        screen.print_output(told)
        return
    screen.say(f"wrote {output}, about {'an' if built.kind == 'artifact' else 'a'} {built.kind}")
    say = screen.good if built.code == CLEAN else screen.bad
    say(f"{built.verdict}: {built.summary}")

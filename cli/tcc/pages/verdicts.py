"""The verdict at the top of a page and its findings: made from a validation, and from nothing else.

No other module writes the word VALID on a page.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc.exits import CLEAN
from tcc.pages.blocks import code, left_out, note, table
from tcc.pages.frame import Mood, Section, Verdict
from tcc.pages.markup import element, joined
from tcc_certs.replay import Validation
from tcc_certs.report import VERDICTS, Report
from tcc_certs.session import SessionValidation

_MOST_FINDINGS = 100


def of_ledger(found: Validation | SessionValidation, kernel: str) -> Verdict:
    """The verdict on a ledger."""
    upheld = found.verdict == CLEAN and found.claim_upheld
    mood: Mood = "good" if upheld else "bad" if found.word == "INVALID" else "doubtful"
    checked = ", ".join(f"{count} {name}" for name, count in found.checked.items())
    # A ledger that does not hold claims nothing here, whatever it says.
    read = found.word in ("VALID", "INCOMPLETE")
    claim = f" Claim: {found.claim_type}." if read and found.claim_type else ""
    how = "the kernel alone" if kernel == "pure" else "the fast kernel"
    by = f"Validated by {how} when this page was written: {checked}.{claim}"
    return Verdict(word=found.word, summary=_sentence(found.summary), mood=mood, by=by)


def of_artifact(report: Report, by: str) -> Verdict:
    """The verdict on an artifact."""
    word = VERDICTS[report.verdict]
    mood: Mood = ("good", "bad", "doubtful")[report.verdict]
    first = report.lines[0].removeprefix(f"{word}: ")
    more = [line.strip() for line in report.lines[1:] if "automaton of its core" in line]
    return Verdict(word=word, summary="; ".join([first, *more]) + ".", mood=mood, by=by)


def _sentence(summary: str) -> str:
    return f"{summary[:1].upper()}{summary[1:]}."


def findings(found: Validation | SessionValidation, lines: Sequence[tuple[int, str]]) -> Section:
    """What does not hold, and what stands in those lines.

    Args:
        lines: numbers and texts of lines that are named.
    """
    shown = found.findings[:_MOST_FINDINGS]
    rows = [
        (code(f.code.value), f.line or "-", code(f.field), code(f.expected), code(f.found))
        for f in shown
    ]
    names = ("code", "line", "field", "expected", "found")
    quoted = [
        element("p", element("b", f"line {number}"), " ", code(text)) for number, text in lines
    ]
    return Section(
        name="findings",
        title="What does not hold",
        lead="Each thing that the validation found. tcc explain CODE says more about a code.",
        body=joined(
            [
                table(names, rows, label="Findings", numbers="line"),
                left_out(len(shown), len(found.findings), "findings"),
                element("h3", "The lines named, as they stand") if quoted else "",
                *quoted,
            ]
        ),
    )


def artifact_findings(report: Report) -> Section:
    """What does not hold of an artifact."""
    rows = [(code(f.code.value), code(f.path), code(f.expected), code(f.found))
            for f in report.findings]  # fmt: skip
    names = ("code", "place", "expected", "found")
    return Section(
        name="findings",
        title="What does not hold",
        body=joined(
            [
                table(names, rows, label="Findings"),
                note("Nothing else is told of an artifact that does not hold."),
            ]
        ),
    )

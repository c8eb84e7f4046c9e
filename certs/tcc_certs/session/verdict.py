"""What a session shows, in a verdict, a claim and plain words.

Normative text: docs/spec/session.md, section 7.  A claim is about what is recorded: that it
conforms to the grammar, not that all was recorded, nor that the tools did what they answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tcc_certs.core.model import SumMonitor
from tcc_certs.errors import Code
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.findings import DECLINED, INVALID, VALID, Finding, Findings
from tcc_certs.session.header import open_name
from tcc_certs.session.replay import Session

CONFORMANT = "Conformant"
CONFORMANT_PREFIX = "ConformantPrefix"
NO_CLAIM = "NoClaim"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionValidation:
    """The outcome of :func:`tcc_certs.session.validate`.

    Attributes:
        verdict: 0 valid, 1 invalid, 2 declined or incomplete.
        claim_type: ``Conformant``: the session ended where a plan may end, whatever its unknown
            outcomes were; ``ConformantPrefix``: every call was allowed, and it was abandoned or
            has not ended; ``NoClaim``.
        asserted: what whoever wrote the ledger answers for, as nothing in it shows it.
        monitors: the statements over open parameters that the session was held to.
        checked: calls, outcomes, refusals; and calls whose outcome is unknown.
        findings: in the order of the lines, at most 100.
        head: the chain's head after the verified prefix, hex.
        summary: the outcome in plain words.
    """

    verdict: int
    claim_type: str
    asserted: tuple[str, ...]
    monitors: tuple[str, ...]
    checked: Mapping[str, int]
    findings: tuple[Finding, ...]
    head: str
    summary: str

    @property
    def claim_upheld(self) -> bool:
        """True where the verdict is 0 and the claim is more than NoClaim."""
        return self.verdict == VALID and self.claim_type != NO_CLAIM

    @property
    def word(self) -> str:
        """The verdict as a word; INCOMPLETE where all that is missing is the end."""
        if self.verdict == DECLINED and any(f.code is Code.INCOMPLETE for f in self.findings):
            return "INCOMPLETE"
        return ("VALID", "INVALID", "DECLINED")[self.verdict]


def conclude(
    findings: Findings, session: Session | None, reader: LedgerReader
) -> SessionValidation:
    """The validation that these findings and this session come to."""
    claim = _claim(findings, session)
    tally = None if session is None else session.tally
    return SessionValidation(
        verdict=findings.verdict,
        claim_type=claim,
        asserted=() if session is None or claim == NO_CLAIM else tuple(_asserted(session)),
        monitors=()
        if session is None
        else tuple([monitor.text for monitor in session.core.monitors]),
        checked={
            "calls": 0 if tally is None else tally.calls,
            "outcomes": 0 if tally is None else tally.outcomes,
            "refusals": 0 if tally is None else tally.refusals,
            "unknown": 0 if tally is None or session is None else _unknown(session),
        },
        findings=tuple(findings.items),
        head=reader.head.hex(),
        summary=_summary(findings, session, claim, reader),
    )


def _unknown(session: Session) -> int:
    return session.tally.unknown + (session.pending is not None)


def _claim(findings: Findings, session: Session | None) -> str:
    if session is None or session.unforeseen or findings.verdict == INVALID:
        return NO_CLAIM
    if findings.verdict == VALID:
        return CONFORMANT_PREFIX if session.abandoned else CONFORMANT
    incomplete = all(item.code is Code.INCOMPLETE for item in findings.items)
    return CONFORMANT_PREFIX if incomplete else NO_CLAIM


def _asserted(session: Session) -> Iterator[str]:
    """What no reader of this ledger could have found to be wrong."""
    tally, arguments = session.tally, session.arguments
    if tally.calls:
        yield "that every call was recorded, and every outcome is what came of its call"
    if tally.failed:
        yield f"that {tally.failed} calls said to have failed did not happen"
    if tally.resolved:
        yield f"that {tally.resolved} outcomes said later are what they are said to be"
    if tally.refusals:
        yield f"that {tally.refusals} refusals were of these tools, for these reasons"
    executions = session.makers.executions
    if executions is not None and executions.made:
        yield f"that {executions.made} calls were made by the models named, and took what is said"
    if executions is not None and executions.asked_times:
        yield f"what the asks of {executions.asked_times} searches took"
    for name in sorted(arguments.hidden):
        yield f"that values of {name} are of its type and within its limits: they are not shown"
    for monitor in session.core.monitors:
        if isinstance(monitor, SumMonitor):
            name = open_name(session.core.tools[monitor.tool].name, monitor.parameter)
            if name in arguments.hidden:
                yield f"{monitor.text}: the values are not shown"
    if arguments.hidden:
        yield "that digests of values that are not shown are the same exactly where the values are"
    if not session.header.macs:
        yield "that every record is its writer's: a ledger of 1.0 has no MACs"
    elif session.header.key is None:
        yield "that every record is its writer's: MACs show it to who has the key"
    if arguments.shown and session.header.key is None:
        yield "that digests are those of the values shown: the key is not known"


def _summary(findings: Findings, session: Session | None, claim: str, reader: LedgerReader) -> str:
    if findings.verdict == VALID and session is not None:
        return _valid_text(session, claim)
    first = findings.items[0]
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    if findings.verdict == INVALID:
        return f"invalid ({len(findings.items)} findings); first {first.code}, {what}"
    if any(item.code is Code.INCOMPLETE for item in findings.items):
        if session is None:
            return f"incomplete: not one whole line that ends in an LF; {first.found}"
        so_far = "an answer came that was not foreseen" if session.unforeseen else "it conforms"
        return f"incomplete: no end record; {so_far} as far as it goes; {first.found}"
    return f"declined: {first.code}, {what}"


def _valid_text(session: Session, claim: str) -> str:
    if claim == NO_CLAIM:
        return (
            "valid, no claim: an answer came that no plan foresees, and nothing was done after it"
        )
    unknown = _unknown(session)
    whatever = f", whatever its {unknown} unknown outcomes were" if unknown else ""
    if claim == CONFORMANT_PREFIX:
        return f"claim upheld: every recorded call was allowed{whatever}; the session was abandoned"
    return (
        "claim upheld: every recorded call was allowed, and the session ended where a plan may "
        f"end{whatever}"
    )

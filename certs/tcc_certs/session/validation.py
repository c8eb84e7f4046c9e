"""The order of the checks of a session's ledger.  Start here.

    artifact    the kernel passes it, and its digest is the pinned one where one is given
    line        canonical bytes, chained to the line before; nothing has ended the session
    record      of a known kind, with its fields in their form
    session     of version 1.0 or 1.1; names this artifact, what follows from it, the key if known
                (:func:`tcc_certs.session.records.read_header`)
    mac         of each record of 1.1, where the key is known: by whoever has the key
    call        it commutes with those that are open; its number, its text, its open arguments; the
                states that it may be made at; keys of its own; plans, statements and monitors
                allow it wherever the session may be; the model that makes it, and the budget
    budget      at most one, no call is open; asked: what a search took beside
    outcome     of a call that is open; observed values where there are any to observe
    resolve     of a call whose outcome is unknown: all is gone through again from there
    refusal     a tool of the grammar, a code of a refused call
    end         where every state that may be held accepts, or abandoned

Normative text: docs/spec/session.md.  What is trusted comes from the arguments, never from the
ledger.  Cost: the kernel's pass over the artifact, then linear in the ledger, but for outcomes that
become known late; memory: the artifact, and what monitors and keys need of each call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.core.model import SumMonitor
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import LedgerReader, Line, Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.findings import DECLINED, INVALID, VALID, Finding, Findings
from tcc_certs.session import records
from tcc_certs.session.machine import SessionMachine
from tcc_certs.session.replay import ReplayedSession, Tally
from tcc_certs.values.canonical import RecordMacs

Tell: TypeAlias = "Callable[[Record, ReplayedSession], None]"

# What a session shows, in a verdict, a claim and plain words (session.md, section 7).

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
        checked: calls, outcomes, refusals; calls whose outcome is unknown, and `unforeseen`, those
            of whose answer a part is, where there are any.
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
    findings: Findings, session: ReplayedSession | None, reader: LedgerReader
) -> SessionValidation:
    """The validation that these findings and this session come to."""
    claim = _claim(findings, session)
    tally = Tally() if session is None else session.tally
    return SessionValidation(
        verdict=findings.verdict,
        claim_type=claim,
        asserted=() if session is None or claim == NO_CLAIM else tuple(_asserted(session)),
        monitors=() if session is None else session.machine.monitors.texts,
        checked={
            "calls": tally.calls,
            "outcomes": tally.outcomes,
            "refusals": tally.refusals,
            "unknown": 0 if session is None else _unknown(session),
            **({"unforeseen": tally.unforeseen} if tally.unforeseen else {}),
        },
        findings=tuple(findings.items),
        head=reader.head.hex(),
        summary=_summary(findings, session, claim, reader),
    )


def _unknown(session: ReplayedSession) -> int:
    return session.tally.unknown + len(session.open)


def _claim(findings: Findings, session: ReplayedSession | None) -> str:
    if session is None or session.lost or findings.verdict == INVALID:
        return NO_CLAIM
    if session.header.shadow:
        return NO_CLAIM
    if findings.verdict == VALID:
        return CONFORMANT_PREFIX if session.abandoned else CONFORMANT
    incomplete = all(item.code is Code.INCOMPLETE for item in findings.items)
    return CONFORMANT_PREFIX if incomplete else NO_CLAIM


def _asserted(session: ReplayedSession) -> Iterator[str]:
    """What no reader of this ledger could have found to be wrong."""
    tally, arguments = session.tally, session.arguments
    if tally.calls:
        yield "that every call was recorded, and every outcome is that of its call"
    if tally.failed > tally.read:
        yield f"that {tally.failed - tally.read} calls said to have failed did not happen"
    if tally.read:
        yield f"that {tally.read} calls that were answered with an error changed nothing"
    if tally.unforeseen:
        yield f"that {tally.unforeseen} answers that are not known were some that are listed"
    if tally.resolved:
        yield f"that {tally.resolved} outcomes said later are what they are said to be"
    if tally.refusals:
        yield f"that {tally.refusals} refusals were of these tools, for these reasons"
    if session.core.given:
        names = ", ".join([f"session.{name}" for name in sorted(session.header.given)])
        yield f"that the session was given what it says: {names or 'nothing'}"
    if session.core.passed:
        yield f"passed: {', '.join(session.core.passed)} (unread; the ledger has nothing of it)"
    statements = session.machine.statements
    if tally.calls and statements is not None and statements.timed:
        yield "that calls were decided at the times that are said, which never go back"
    across = session.across
    if across is not None and across.drawn:
        yield (
            f"that {across.drawn} calls had room under the limits across sessions: account "
            f"{across.account} shows it (--account)"
        )
    executions = session.makers.executions
    if executions is not None and executions.made:
        yield f"that {executions.made} calls were made by the models named, and took what is said"
    if executions is not None and executions.asked_times:
        yield f"what the asks of {executions.asked_times} searches took"
    for name in sorted(arguments.hidden):
        yield f"that values of {name} are of its type and within its limits: they are not shown"
    for monitor in session.core.monitors:
        if isinstance(monitor, SumMonitor):
            name = records.open_name(session.core.tools[monitor.tool].name, monitor.parameter)
            if name in arguments.hidden:
                yield f"{monitor.text}: the values are not shown"
    if arguments.marked:
        names = ", ".join(sorted(arguments.marked))
        yield f"that texts of {names} match the patterns asked of them as is said"
    if arguments.hidden:
        yield "that digests of values that are not shown are the same exactly where the values are"
    if not session.header.macs:
        yield "that every record is its writer's: a ledger of 1.0 has no MACs"
    elif session.header.key is None:
        yield "that every record is its writer's: MACs show it to who has the key"
    if session.header.constants and session.header.key is None:
        yield "that digests of constants are those of the constants: the key is not known"
    if arguments.shown and session.header.key is None:
        yield "that digests are those of the values shown: the key is not known"


def _summary(
    findings: Findings, session: ReplayedSession | None, claim: str, reader: LedgerReader
) -> str:
    if findings.verdict == VALID and session is not None:
        return _valid_text(session, claim)
    first = findings.items[0]
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    if findings.verdict == INVALID:
        return f"invalid ({len(findings.items)} findings); first {first.code}, {what}"
    if any(item.code is Code.INCOMPLETE for item in findings.items):
        if session is None:
            return f"incomplete: not one whole line that ends in an LF; {first.found}"
        if session.header.shadow:
            return f"incomplete, no claim: {_in_shadow(session)}; {first.found}"
        so_far = "no plan goes on after an answer" if session.lost else "it conforms"
        return f"incomplete: no end record; {so_far} as far as it goes; {first.found}"
    return f"declined: {first.code}, {what}"


def _in_shadow(session: ReplayedSession) -> str:
    many = session.tally.shadowed
    return f"a session in the shadow: {many} calls were made that would have been refused"


def _valid_text(session: ReplayedSession, claim: str) -> str:
    if session.header.shadow:
        return f"valid, no claim: {_in_shadow(session)}"
    if claim == NO_CLAIM:
        return "valid, no claim: an answer came after which no plan goes on"
    unknown = _unknown(session)
    whatever = f", whatever its {unknown} unknown outcomes were" if unknown else ""
    if claim == CONFORMANT_PREFIX:
        return f"claim upheld: every recorded call was allowed{whatever}; the session was abandoned"
    return (
        "claim upheld: every recorded call was allowed, and the session ended where a plan may "
        f"end{whatever}"
    )


# The checks.


def validate(
    ledger: bytes | Iterable[bytes],
    artifact: bytes | CheckedArtifact,
    *,
    pin: str | None = None,
    key: bytes | None = None,
    tell: Tell | None = None,
) -> SessionValidation:
    """What the ledger of a session shows, by going through it with the artifact.

    Args:
        ledger: the whole file, or chunks of it cut anywhere.
        artifact: the artifact's bytes, or what the kernel made of them.
        pin: the artifact digest to require, hex.
        key: 32 bytes, of the digests; with it digests of shown values, the keys of calls and the
            MACs of records are derived again.
        tell: is called with each record that passes, and the session after it.

    Returns:
        a verdict, never an exception, whatever the bytes are.
    """
    reader = LedgerReader((ledger,) if isinstance(ledger, bytes) else ledger)
    findings = Findings()
    try:
        checked = _checked(artifact, pin)
    except Rejected as refusal:
        findings.refuse(refusal, 0)
        return conclude(findings, None, reader)
    replay = SessionReplay(checked, machine_of(checked), key)
    try:
        _read(replay, reader, tell)
    except Rejected as refusal:
        replay.findings.refuse(refusal, replay.line)
    return conclude(replay.findings, replay.session, reader)


def _read(replay: SessionReplay, reader: LedgerReader, tell: Tell | None = None) -> None:
    """Every record, and the end of the input.

    Raises:
        Rejected: what ends the replay; D301 there was no ``end``.
    """
    for line in reader.lines():
        record = replay.step(line, line.previous, line.body)
        if tell is not None and replay.session is not None:
            tell(record, replay.session)
    replay.line = reader.records + 1
    ended = replay.session is not None and replay.session.ended
    if ended and reader.tail:
        raise Rejected(Code.LEDGER_ORDER, "line", "nothing after end", reader.tail[:40])
    if not ended:
        known = f"{reader.records} verified records, head {reader.head.hex()}"
        if reader.tail:
            known += f", then {len(reader.tail)} bytes without an LF"
        raise Rejected(Code.INCOMPLETE, "end", "an end record", known)


class SessionReplay:
    """Goes through the records of a session, one after the other.

    Attributes:
        findings: what does not follow, so far.
        session: where it is; None before its header.
        line: of the last record.
    """

    def __init__(
        self, artifact: CheckedArtifact, machine: SessionMachine, key: bytes | None
    ) -> None:
        self.findings = Findings()
        self.session: ReplayedSession | None = None
        self.line = 0
        self._artifact, self._machine, self._key = artifact, machine, key
        self._mac = None if key is None else RecordMacs(key)
        self._macs = False

    def step(self, record: Record, previous: bytes, body: bytes | None = None) -> Record:
        """Go on by a record.

        Args:
            record: or a line, which is parsed where its bytes do not say enough.
            previous: the hash of the record before it.
            body: its canonical bytes, where whoever read it has them.

        Returns:
            the record.

        Raises:
            Rejected: what ends the replay; L101 of a line.
        """
        plain = records.plain_record(body) if self._macs and body is not None else None
        rest = None
        if plain is not None:
            record, rest = plain
        elif isinstance(record, Line):
            record = record.record
        self.line += 1
        session = self.session
        if session is None:
            kind = record.get("kind")
            if kind != "session":
                raise Rejected(Code.LEDGER_ORDER, "kind", "session", kind)
            self._macs = records.has_macs(record)
        elif session.ended:
            raise Rejected(Code.LEDGER_ORDER, "kind", "nothing after end", record.get("kind"))
        form = (
            records.check_record(record, self.line, macs=self._macs)
            if plain is None
            else record["kind"]
        )
        if session is None:
            header = records.read_header(record, self._artifact, self._key, self.findings)
            self._check_mac(record, previous, body, rest)
            self.session = ReplayedSession(self._machine, header, self.findings)
        else:
            self._check_mac(record, previous, body, rest)
            session.step(str(form), record, self.line)
        return record

    def _check_mac(
        self, record: Record, previous: bytes, body: bytes | None, rest: bytes | None
    ) -> None:
        """Ends the replay: behind a record that is not the key's nothing is the writer's word.

        Args:
            body: its canonical bytes; rest: the same without the MAC; where they are known.
        """
        if self._mac is None or not self._macs:
            return
        found = text(record, records.MAC)
        if rest is None:
            # No text holds these bytes, as its quotes are escaped: where they stand once, there is
            # the record's own member, and what is left without it is canonical as well.
            member = b'"mac":"%s"' % found.encode()
            if body is not None and body.count(member) == 1 and member + b"," in body:
                rest = body.replace(member + b",", b"")
            else:
                rest = encode(
                    {name: value for name, value in record.items() if name != records.MAC}
                )
        same = self._mac.same(previous, rest, bytes.fromhex(found))
        ensure(
            same, Code.SESSION_DIGEST, records.MAC, "the MAC of this record under the key", found
        )


def machine_of(artifact: CheckedArtifact) -> SessionMachine:
    """The session machine of an artifact."""
    relaxed = artifact.file.manifest.relaxed
    return SessionMachine(artifact.core, artifact.automaton, artifact.core_calls, relaxed)


def _checked(artifact: bytes | CheckedArtifact, pin: str | None) -> CheckedArtifact:
    if isinstance(artifact, bytes):
        return check(artifact, pin=pin)
    found = artifact.file.digest.hex()
    if pin is not None and pin != found:
        raise Rejected(Code.PIN, "artifact", pin, found)
    return artifact

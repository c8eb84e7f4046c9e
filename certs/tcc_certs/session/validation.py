"""The order of the checks of a session's ledger.  Start here.

    artifact    the kernel passes it, and its digest is the pinned one where one is given
    line        canonical bytes, chained to the line before; nothing has ended the session
    record      of a known kind, with its fields in their form
    session     of version 1.0 or 1.1; names this artifact, what follows from it, the key if known
    mac         of each record of 1.1, where the key is known: by whoever has the key
    call        none is open, nothing was unforeseen; its number, its text, its open arguments; the
                states that it may be made at; keys of its own; plans, statements and monitors
                allow it wherever the session may be; the model that makes it, and the budget
    budget      at most one, no call is open; asked: what a search took beside
    outcome     of the call that is open; observed values where there are any to observe
    resolve     of a call whose outcome is unknown: all is gone through again from there
    refusal     a tool of the grammar, a code of a refused call
    end         where every state that may be held accepts, or abandoned

Normative text: docs/spec/session.md.  What is trusted comes from the arguments, never from the
ledger.  Cost: the kernel's pass over the artifact, then linear in the ledger, but for outcomes that
become known late; memory: the artifact, and what monitors and keys need of each call.
"""

from __future__ import annotations

from collections.abc import Iterable

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import encode
from tcc_certs.formats.ledger import LedgerReader, Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.findings import Findings
from tcc_certs.session.header import has_macs, read_header
from tcc_certs.session.machine import Machine
from tcc_certs.session.records import MAC, check_record
from tcc_certs.session.replay import Session
from tcc_certs.session.verdict import SessionValidation, conclude
from tcc_certs.values.digest import record_key, record_mac


def validate(
    ledger: bytes | Iterable[bytes],
    artifact: bytes | CheckedArtifact,
    *,
    pin: str | None = None,
    key: bytes | None = None,
) -> SessionValidation:
    """What the ledger of a session shows, by going through it with the artifact.

    Args:
        ledger: the whole file, or chunks of it cut anywhere.
        artifact: the artifact's bytes, or what the kernel made of them.
        pin: the artifact digest to require, hex.
        key: 32 bytes, of the digests; with it digests of shown values, the keys of calls and the
            MACs of records are derived again.

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
    replay = Replay(checked, machine_of(checked), key)
    try:
        _read(replay, reader)
    except Rejected as refusal:
        replay.findings.refuse(refusal, replay.line)
    return conclude(replay.findings, replay.session, reader)


def _read(replay: Replay, reader: LedgerReader) -> None:
    """Every record, and the end of the input.

    Raises:
        Rejected: what ends the replay; D301 there was no ``end``.
    """
    head = reader.head
    for record in reader:
        replay.step(record, head)
        head = reader.head
    replay.line = reader.records + 1
    ended = replay.session is not None and replay.session.ended
    if ended and reader.tail:
        raise Rejected(Code.LEDGER_ORDER, "line", "nothing after end", reader.tail[:40])
    if not ended:
        known = f"{reader.records} verified records, head {reader.head.hex()}"
        if reader.tail:
            known += f", then {len(reader.tail)} bytes without an LF"
        raise Rejected(Code.INCOMPLETE, "end", "an end record", known)


class Replay:
    """Goes through the records of a session, one after the other.

    Attributes:
        findings: what does not follow, so far.
        session: where it is; None before its header.
        line: of the last record.
    """

    def __init__(self, artifact: CheckedArtifact, machine: Machine, key: bytes | None) -> None:
        self.findings = Findings()
        self.session: Session | None = None
        self.line = 0
        self._artifact, self._machine, self._key = artifact, machine, key
        self._record_key = None if key is None else record_key(key)
        self._macs = False

    def step(self, record: Record, previous: bytes) -> None:
        """Go on by a record.

        Args:
            previous: the hash of the record before it.

        Raises:
            Rejected: what ends the replay.
        """
        self.line += 1
        session = self.session
        if session is None:
            kind = record.get("kind")
            if kind != "session":
                raise Rejected(Code.LEDGER_ORDER, "kind", "session", kind)
            self._macs = has_macs(record)
        elif session.ended:
            raise Rejected(Code.LEDGER_ORDER, "kind", "nothing after end", record.get("kind"))
        kind = check_record(record, self.line, macs=self._macs)
        if session is None:
            header = read_header(record, self._artifact, self._key, self.findings)
            self._check_mac(record, previous)
            self.session = Session(self._machine, header, self.findings)
        else:
            self._check_mac(record, previous)
            session.step(kind, record, self.line)

    def _check_mac(self, record: Record, previous: bytes) -> None:
        """Ends the replay: behind a record that is not the key's nothing is the writer's word."""
        if self._record_key is None or not self._macs:
            return
        from hmac import compare_digest  # here: it loads OpenSSL, and who has no key needs none

        body = encode({name: value for name, value in record.items() if name != MAC})
        expected = record_mac(self._record_key, previous, body)
        found = text(record, MAC)
        same = compare_digest(expected, bytes.fromhex(found))
        ensure(same, Code.SESSION_DIGEST, MAC, "the MAC of this record under the key", found)


def machine_of(artifact: CheckedArtifact) -> Machine:
    """The session machine of an artifact."""
    relaxed = artifact.file.manifest.relaxed
    return Machine(artifact.core, artifact.automaton, artifact.core_calls, relaxed)


def _checked(artifact: bytes | CheckedArtifact, pin: str | None) -> CheckedArtifact:
    if isinstance(artifact, bytes):
        return check(artifact, pin=pin)
    found = artifact.file.digest.hex()
    if pin is not None and pin != found:
        raise Rejected(Code.PIN, "artifact", pin, found)
    return artifact

"""The order of the checks of a session's ledger.  Start here.

    artifact    the kernel passes it, and its digest is the pinned one where one is given
    line        canonical bytes, chained to the line before; nothing has ended the session
    record      of a known kind, with its fields in their form
    session     of this version; names this artifact, what follows from it, and the key if known
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

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.findings import Findings
from tcc_certs.session.header import check_version, read_header
from tcc_certs.session.records import check_record
from tcc_certs.session.replay import Session
from tcc_certs.session.states import Plans
from tcc_certs.session.verdict import SessionValidation, conclude


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
        key: 32 bytes, of the digests; with it digests of shown values and the keys of calls are
            derived again.

    Returns:
        a verdict, never an exception, whatever the bytes are.
    """
    replay = _Replay(key)
    reader = LedgerReader((ledger,) if isinstance(ledger, bytes) else ledger)
    try:
        replay.read(reader, _checked(artifact, pin))
    except Rejected as refusal:
        replay.findings.refuse(refusal, replay.line)
    return conclude(replay.findings, replay.session, reader)


class _Replay:
    """Where a validation stands: no session until the header has been passed."""

    def __init__(self, key: bytes | None) -> None:
        self.findings = Findings()
        self.session: Session | None = None
        self.line = 0
        self._key = key

    def read(self, reader: LedgerReader, artifact: CheckedArtifact) -> None:
        """Every record, and the end of the input.

        Raises:
            Rejected: what ends the replay; D301 there was no ``end``.
        """
        for record in reader:
            self.line = reader.records
            session = self.session
            if session is None:
                kind = record.get("kind")
                if kind != "session":
                    raise Rejected(Code.LEDGER_ORDER, "kind", "session", kind)
                check_version(record)
                check_record(record, self.line)
                header = read_header(record, artifact, self._key, self.findings)
                plans = Plans(artifact)
                self.session = Session(plans, artifact.core, header, self.findings)
            else:
                if session.ended:
                    kind = record.get("kind")
                    raise Rejected(Code.LEDGER_ORDER, "kind", "nothing after end", kind)
                session.step(check_record(record, self.line), record, self.line)
        self.line = reader.records + 1
        ended = self.session is not None and self.session.ended
        if ended and reader.tail:
            raise Rejected(Code.LEDGER_ORDER, "line", "nothing after end", reader.tail[:40])
        if not ended:
            known = f"{reader.records} verified records, head {reader.head.hex()}"
            if reader.tail:
                known += f", then {len(reader.tail)} bytes without an LF"
            raise Rejected(Code.INCOMPLETE, "end", "an end record", known)


def _checked(artifact: bytes | CheckedArtifact, pin: str | None) -> CheckedArtifact:
    if isinstance(artifact, bytes):
        return check(artifact, pin=pin)
    found = artifact.file.digest.hex()
    if pin is not None and pin != found:
        raise Rejected(Code.PIN, "artifact", pin, found)
    return artifact

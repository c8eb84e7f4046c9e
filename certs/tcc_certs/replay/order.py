"""The order of the checks.  Start here.

    artifact    the kernel passes it, and its digest is the pinned one where one is given
    line        canonical bytes, chained to the line before; every line before it is looked at
    record      of a known kind, with its fields in their form
    open        of a version and a mode that has rules here; names this artifact; its run id
    seed        the one that the header commits to
    node        each child of the node just expanded, in order: digest, uniform, arrival, key, names
    expand      the greatest item of the frontier; no guard held it back; uniform, winner, Phi
    leaf        the greatest item of the frontier; value, incumbent
    close       the stop rule, coverage of the root, best plans, counts, claim, seed

Normative text: docs/spec/ledger.md.  What is trusted comes from the arguments, never from the
ledger.  Cost: the kernel's pass over the artifact, then linear in the ledger; memory: the artifact
and the run's frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tcc_certs.digest import race_key
from tcc_certs.errors import Code, Rejected
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.ledger import LedgerReader, Record
from tcc_certs.ledger_schema import check_record, text
from tcc_certs.replay.closing import check_close
from tcc_certs.replay.findings import Findings, Validation
from tcc_certs.replay.header import check_header, check_version, read_header
from tcc_certs.replay.language import read_language
from tcc_certs.replay.outcome import conclude
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import Seed, given_seed, logged_seed


def validate(
    ledger: bytes | Iterable[bytes],
    artifact: bytes | CheckedArtifact,
    *,
    pin: str | None = None,
    seed: bytes | None = None,
    opening_salt: bytes | None = None,
) -> Validation:
    """What a ledger shows, by replaying its run against the artifact.

    Args:
        ledger: the whole file, or chunks of it cut anywhere.  Chunks are read twice, the first
            time for the seed in the last line; an iterator that can be read only once is gathered
            in memory.
        artifact: the artifact's bytes, or what the kernel made of them, for many ledgers of one.
        pin: the artifact digest to require, hex.
        seed: 32 bytes, where `close` withholds them.
        opening_salt: of the seed's commitment; without it the default one.

    Returns:
        a verdict, never an exception, whatever the bytes are.
    """
    findings = Findings()
    chunks = _again(ledger)
    replay = _Replay(findings)
    reader = LedgerReader(chunks)
    try:
        replay.prepare(chunks, artifact, pin, given_seed(seed, opening_salt))
        for record in reader:
            replay.step(record, reader.records)
        replay.end(reader)
    except Rejected as refusal:
        findings.refuse(refusal, replay.line)
    return conclude(findings, replay.run, replay.claim, reader, replay.seed is not None)


def _again(ledger: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(ledger, bytes):
        return (ledger,)
    return tuple(ledger) if isinstance(ledger, Iterator) else ledger


class _Replay:
    """Where a validation stands: no run until the header has been passed."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.run: Run | None = None
        self.seed: Seed | None = None
        self.claim = ""
        self.line = 0
        self._artifact: CheckedArtifact | None = None
        self._closed = False

    def prepare(
        self,
        chunks: Iterable[bytes],
        artifact: bytes | CheckedArtifact,
        pin: str | None,
        given: Seed | None,
    ) -> None:
        """The artifact passes the kernel; the seed is found."""
        if isinstance(artifact, bytes):
            artifact = check(artifact, pin=pin)
        elif pin is not None and pin != artifact.file.digest.hex():
            raise Rejected(Code.PIN, "artifact", pin, artifact.file.digest.hex())
        self._artifact = artifact
        self.seed = given or logged_seed(chunks)
        self.line = 1

    def step(self, record: Record, line: int) -> None:
        """One verified record."""
        self.line = line
        if self._closed:
            raise Rejected(Code.LEDGER_ORDER, "kind", "nothing after close", record.get("kind"))
        if self.run is None:
            self._open(record)
        else:
            self._replay(self.run, record, check_record(record, line))
        self.line = line + 1

    def _open(self, record: Record) -> None:
        if record.get("kind") != "open":
            raise Rejected(Code.LEDGER_ORDER, "kind", "open", record.get("kind"))
        check_version(record)
        check_record(record, 1)
        if self._artifact is None:
            raise Rejected(Code.LEDGER_ARTIFACT, "artifact", "an artifact", "none")
        check_header(record, self._artifact, self.findings)
        header = read_header(record)
        self.claim = text(record, "claim_type")
        language = read_language(self._artifact)
        key = None
        if self.seed is not None:
            self.seed.check(header.seed_commitment)
            key = race_key(self.seed.seed, language.root_digest)
        self.run = Run(language, header, key, self.findings)

    def _replay(self, run: Run, record: Record, kind: str) -> None:
        if kind == "open":
            raise Rejected(Code.LEDGER_ORDER, "kind", "one open, the first record", kind)
        if run.waits and kind != "node":
            raise Rejected(Code.MISSING_CHILD, "kind", "node", kind)
        if kind == "node":
            run.node(record, self.line)
        elif kind == "expand":
            run.expand(record, self.line)
        elif kind == "leaf":
            run.leaf(record, self.line)
        else:
            self._closed = True
            self.claim = text(record, "claim_type")
            check_close(record, self.line, run, self.seed, self.findings)
            if self.seed is None:
                self.findings.add(Code.WITHHELD, self.line, "seed", "a seed", "none")

    def end(self, reader: LedgerReader) -> None:
        """The end of the input.

        Raises:
            Rejected: D301 there was no ``close``, L104 there are bytes after it.
        """
        if self._closed and reader.tail:
            raise Rejected(Code.LEDGER_ORDER, "line", "nothing after close", reader.tail[:40])
        if not self._closed:
            known = f"{reader.records} verified records, head {reader.head.hex()}"
            raise Rejected(Code.INCOMPLETE, "close", "a close record", known)

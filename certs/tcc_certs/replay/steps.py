"""A validation, record by record: which rules a record of each kind has to meet.

Normative text: docs/spec/ledger.md, section 3; the order of the checks is in
:mod:`tcc_certs.replay.order`.  Cost: that of the run's replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import LedgerReader, Line, Record
from tcc_certs.formats.ledger_schema import check_record, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import Uniforms, race_key
from tcc_certs.replay.closing import check_close
from tcc_certs.replay.commitment import check_public, opening, race_salt
from tcc_certs.replay.constraints import residual_constraints
from tcc_certs.replay.coupled import Coupled
from tcc_certs.replay.diagnostics import NodeSink
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.findings import Findings
from tcc_certs.replay.header import Header, read_header
from tcc_certs.replay.kappa import Exact, Kappa, handed_counts, own_counts
from tcc_certs.replay.kinds import KINDS
from tcc_certs.replay.language import Language, language_of
from tcc_certs.replay.left import listing_of
from tcc_certs.replay.literal import Literal
from tcc_certs.replay.opening import check_header, check_version
from tcc_certs.replay.policy import Policy
from tcc_certs.replay.protocol import Protocol
from tcc_certs.replay.records import looked_into
from tcc_certs.replay.refinement import Refinement, read_asking
from tcc_certs.replay.root import Root
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import Seed
from tcc_certs.replay.shortcut import Shortcut

_DERIVED = ("draw", "expand", "leaf", "node", "rest")  # a seed says all of what these have to say
_AWAITED = {"refine": Code.ASK, "downgrade": Code.GUARD}  # what refuses another kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """What does not come from the ledger; see :func:`tcc_certs.replay.validate`.

    Attributes:
        artifact: the kernel has passed it.
        seed: the one to check uniforms with, given or found in `close`; None: it is withheld.
        opening, beacon, nonce: what the auditor knows of them.
        counts: an artifact with exact counts, for kappa.
        tell: gets the diagnostics of each node.
    """

    artifact: CheckedArtifact
    seed: Seed | None
    opening: bytes | None
    beacon: bytes | None
    nonce: bytes | None
    counts: CheckedArtifact | None
    tell: NodeSink | None = None


class Replay:
    """Where a validation stands: no run until the header has been passed.

    Attributes:
        trust: None until the artifact has been passed.
        run: None until the header has.
        claim: the claim that the ledger makes, as far as it was read.
        line: of the current record; 0 before the first.
    """

    def __init__(self, findings: Findings, shortcut: Shortcut | None = None) -> None:
        self.findings = findings
        self.trust: Trust | None = None
        self.run: Run | None = None
        self.claim = ""
        self.line = 0
        self._protocol = Protocol()
        self._shortcut = shortcut

    def read(self, reader: LedgerReader) -> None:
        """Every line of the ledger, and its end.

        Raises:
            Rejected: what ends the replay.
        """
        lines = self._protocol.lines(reader)
        while (line := self._ahead(reader, lines)) is not None:
            self.step(reader.verified(line), reader.records)
        self._end(reader)

    def _ahead(self, reader: LedgerReader, lines: Iterator[bytes]) -> bytes | None:
        """The next line that is for the definition."""
        shortcut, run, trust = self._shortcut, self.run, self.trust
        if shortcut is None or run is None or trust is None or not self._protocol.lets_pass(run):
            return next(lines, None)
        line = shortcut.follow(trust.artifact, run, reader, lines)
        self.line = reader.records + 1
        return line

    def step(self, record: Line, line: int) -> None:
        """One line whose chain holds.

        Where it has the bytes of the expected record it is not parsed.  A refusal of the line
        itself comes before all others.
        """
        self.line = line
        if self.run is None:
            self._open(record.record)
        else:
            try:
                self._record(self.run, record)
            except Rejected:
                looked_into(record, line)
                raise
        self.line = line + 1

    def _open(self, record: Record) -> None:
        if record.get("kind") != "open":
            raise Rejected(Code.LEDGER_ORDER, "kind", "open", record.get("kind"))
        check_version(record)
        check_record(record, 1)
        trust = self.trust
        if trust is None:
            raise Rejected(Code.LEDGER_ARTIFACT, "artifact", "an artifact", "none")
        header = read_header(record)
        root = check_header(record, header, trust.artifact, self.findings)
        self.claim = header.claim_type
        told = header.inflate, header.recipe, header.count_bits, root.states
        language = language_of(trust.artifact, *told)
        bound = opening(record, rounded=language.rounded and header.mode != "fallback")
        check_public(record, bound, opened=trust.opening, beacon=trust.beacon, nonce=trust.nonce)
        key = refinement = None
        if header.rule is not None:
            refinement = Refinement(
                language, read_asking(trust.artifact), header.rule, header.account
            )
        if trust.seed is not None:
            trust.seed.check(header.seed_commitment)
            key = Uniforms(race_key(trust.seed.seed, race_salt(record, bound, root.digest)))
        self.run = Run(
            language=language,
            root=root,
            constraints=residual_constraints(
                trust.artifact, header.truncate, root.rank, root.tally
            ),
            header=header,
            policy=policy_of(header, language),
            refinement=refinement,
            key=key,
            kappa=_kappa(trust, language, root),
            findings=self.findings,
            listing=listing_of(trust.artifact, language),
            tell=trust.tell,
        )

    def _record(self, run: Run, line: Line) -> None:
        """A record after the header."""
        kind: str = line.kind
        record: Record = line
        if run.key is None or kind not in _DERIVED:
            record = looked_into(line, self.line)
            kind = text(record, "kind")
        if kind == "open":
            raise Rejected(Code.LEDGER_ORDER, "kind", "one open, the first record", kind)
        root = kind == "close" and run.nodes == 0 and not run.narrows
        undecided = root and record["stop"] == "precision"
        awaited = run.awaits
        if awaited is not None and kind not in (awaited, "recovered") and not undecided:
            raise Rejected(_AWAITED.get(awaited, Code.MISSING_CHILD), "kind", awaited, kind)
        if kind == "close":
            self._close(run, record)
        else:
            KINDS[kind](run, record, self.line)

    def _close(self, run: Run, record: Record) -> None:
        self._protocol.closed = True
        self.claim = text(record, "claim_type")
        seed = None if self.trust is None else self.trust.seed
        check_close(record, self.line, run, seed, self.findings)
        if seed is None:
            self.findings.add(Code.WITHHELD, self.line, "seed", "a seed", "none")

    def _end(self, reader: LedgerReader) -> None:
        """The end of the input.

        Raises:
            Rejected: D301 there was no ``close``, L104 there are bytes after it.
        """
        if self._protocol.closed and reader.tail:
            raise Rejected(Code.LEDGER_ORDER, "line", "nothing after close", reader.tail[:40])
        if not self._protocol.closed:
            known = f"{reader.records} verified records, head {reader.head.hex()}"
            if reader.tail:
                known += f", then {len(reader.tail)} bytes without an LF"
            raise Rejected(Code.INCOMPLETE, "close", "a close record", known)


def policy_of(header: Header, language: Language) -> Policy:
    """The race and the keys that a run begins with."""
    if header.mode == "fallback":
        return Fallback(language=language, tau=header.tau)
    if header.race == "literal":
        return Literal(language=language, recipe=header.recipe)
    anchored = header.keys == "anchored"
    one_by_one = header.race == "rest"
    return Coupled(
        language=language, recipe=header.recipe, anchored=anchored, one_by_one=one_by_one
    )


def _kappa(trust: Trust, language: Language, root: Root) -> Kappa:
    if trust.counts is not None:
        exact: Exact | None = handed_counts(trust.counts, trust.artifact, language)
    else:
        exact = own_counts(trust.artifact, language)
    return Kappa(language, exact, root)

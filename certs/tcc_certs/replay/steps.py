"""A validation, record by record: which rules a record of each kind has to meet.

Normative text: docs/spec/ledger.md, section 3; the order of the checks is in
:mod:`tcc_certs.replay.order`.  Cost: that of the run's replay.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcc_certs.digest import Uniforms, race_key
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.ledger import LedgerReader, Line, Record
from tcc_certs.ledger_schema import check_record, size, text
from tcc_certs.replay.asking import budget, refine, requeue
from tcc_certs.replay.closing import check_close
from tcc_certs.replay.commitment import check_public, race_salt
from tcc_certs.replay.constraints import residual_constraints
from tcc_certs.replay.coupled import Coupled
from tcc_certs.replay.downgrade import replay_downgrade
from tcc_certs.replay.fallback import Fallback
from tcc_certs.replay.families import Families, families_of
from tcc_certs.replay.findings import Findings
from tcc_certs.replay.header import Header, read_header
from tcc_certs.replay.kappa import Kappa, handed_counts, own_counts
from tcc_certs.replay.language import Language
from tcc_certs.replay.literal import Literal
from tcc_certs.replay.opening import check_header, check_version
from tcc_certs.replay.policy import Policy
from tcc_certs.replay.protocol import Protocol
from tcc_certs.replay.records import looked_into
from tcc_certs.replay.refinement import Refinement, read_asking
from tcc_certs.replay.rest import replay_draw, replay_rest
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import Seed
from tcc_certs.replay.straight import Straight, straight_way

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
    """

    artifact: CheckedArtifact
    seed: Seed | None
    opening: bytes | None
    beacon: bytes | None
    nonce: bytes | None
    counts: CheckedArtifact | None


class Replay:
    """Where a validation stands: no run until the header has been passed.

    Attributes:
        trust: None until the artifact has been passed.
        run: None until the header has.
        claim: the claim that the ledger makes, as far as it was read.
        line: of the record in hand; 0 before the first.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.trust: Trust | None = None
        self.run: Run | None = None
        self.claim = ""
        self.line = 0
        self._protocol = Protocol()
        self._straight: Straight | None = None
        self._families: Families | None = None

    def lines(self, reader: LedgerReader) -> Iterator[bytes]:
        """The lines for :meth:`after` and whoever passes records for their bytes.

        Raises:
            Rejected: L104 a line after ``close``; else as the reader.
        """
        return self._protocol.lines(reader)

    def after(self, reader: LedgerReader, lines: Iterator[bytes]) -> bytes | None:
        """The next of these lines that is for :meth:`step`; those before it went straight.

        Args:
            lines: those of :meth:`lines`.

        Raises:
            Rejected: as :meth:`lines`.
        """
        straight = self._straight_way(reader) if self._protocol.lets_pass(self.run) else None
        found = next(lines, None) if straight is None else straight.follow(lines)
        self.line = reader.records + 1
        return found

    def _straight_way(self, reader: LedgerReader) -> Straight | None:
        if self._straight is None and self.run is not None and self._families is not None:
            self._straight = straight_way(self.run, self._families, reader)
        return self._straight

    def step(self, record: Line, line: int) -> None:
        """One line whose chain holds.

        Where it has the bytes of the record that is due it is not parsed.  A refusal of the line
        itself comes before all others.
        """
        self.line = line
        if self.run is None:
            self._open(record.record)
        else:
            try:
                self._looked_at(self.run, record)
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
        check_header(record, header, trust.artifact, self.findings)
        self.claim = header.claim_type
        check_public(record, opened=trust.opening, beacon=trust.beacon, nonce=trust.nonce)
        families = families_of(trust.artifact, (header.inflate, header.recipe))
        self._families, language = families, families.language
        key = refinement = None
        if header.rule is not None:
            refinement = Refinement(language, read_asking(trust.artifact), header.rule)
        if trust.seed is not None:
            trust.seed.check(header.seed_commitment)
            key = Uniforms(race_key(trust.seed.seed, race_salt(record, language.root_digest)))
        self.run = Run(
            language=language,
            constraints=residual_constraints(trust.artifact, header.truncate),
            header=header,
            policy=policy_of(header, language),
            refinement=refinement,
            key=key,
            kappa=_kappa(trust, language),
            findings=self.findings,
            listing=families.listing,
        )

    def _looked_at(self, run: Run, record: Line) -> None:
        kind = record.kind
        if run.key is not None and kind in _DERIVED:
            self._replay(run, record, kind)
        else:
            found = looked_into(record, self.line)
            self._replay(run, found, text(found, "kind"))

    def _replay(self, run: Run, record: Record, kind: str) -> None:
        if kind == "open":
            raise Rejected(Code.LEDGER_ORDER, "kind", "one open, the first record", kind)
        if kind == "recovered":
            kept, found = self.line - 1, size(record, "records")
            ensure(found == kept, Code.LEDGER_ORDER, "records", kept, found)
            return
        undecided = kind == "close" and run.nodes == 0 and record["stop"] == "precision"
        awaited = run.awaits
        if awaited is not None and kind != awaited and not undecided:
            raise Rejected(_AWAITED.get(awaited, Code.MISSING_CHILD), "kind", awaited, kind)
        if kind == "close":
            self._close(run, record)
        elif kind == "node":
            run.node(record, self.line)
        elif kind == "expand":
            run.expand(record, self.line)
        elif kind == "leaf":
            run.leaf(record, self.line)
        elif kind == "rest":
            replay_rest(run, record, self.line)
        elif kind == "draw":
            replay_draw(run, record, self.line)
        elif kind == "requeue":
            requeue(run, record, self.line)
        elif kind == "budget":
            budget(run, record, self.line)
        elif kind == "refine":
            refine(run, record, self.line)
        else:
            replay_downgrade(run, record, self.line)

    def _close(self, run: Run, record: Record) -> None:
        self._protocol.closed = True
        self.claim = text(record, "claim_type")
        seed = None if self.trust is None else self.trust.seed
        check_close(record, self.line, run, seed, self.findings)
        if seed is None:
            self.findings.add(Code.WITHHELD, self.line, "seed", "a seed", "none")

    def end(self, reader: LedgerReader) -> None:
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


def _kappa(trust: Trust, language: Language) -> Kappa:
    if trust.counts is not None:
        return Kappa(language, handed_counts(trust.counts, trust.artifact, language))
    return Kappa(language, own_counts(trust.artifact, language))

"""The order of the checks.  Start here.

    artifact    the kernel passes it, and its digest is the pinned one where one is given
    line        canonical bytes, chained to the line before; nothing has closed the ledger; every
                line before it is looked at
    record      of a known kind, with its fields in their form
    open        of a version and a mode that has rules here; names this artifact; its run id; the
                opening, beacon and nonce that the auditor knows
    seed        the one that the header commits to
    node        each child of the node just expanded that nothing forbids, in order: digest,
                uniform, arrival, key, names
    expand      the greatest item of the frontier; no guard held it back; uniforms, winner, Phi
    leaf        the greatest item of the frontier; value, incumbent
    rest, draw  the remainder of a node's children: uniforms, arrival, key, the one that is next
    requeue     the greatest item, whose key answers have brought down: its key now
    budget      the ask that comes next: the edge, the model, what it is taken to gain and to spend
    refine      its answer: strictly inside, or RangeFail; what it gained and took
    downgrade   the guard that asks for it fired; every key and value is another one from here on
    recovered   how many records it stands behind
    close       the stop rule, coverage of the root, best plans, counts, tail, claim, seed

Normative text: docs/spec/ledger.md.  What is trusted comes from the arguments, never from the
ledger.  Cost: the kernel's pass over the artifact, then linear in the ledger; memory: the artifact
and the run's frontier.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import LedgerReader, Line, Record, format_q64
from tcc_certs.formats.ledger_schema import check_record, text
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.race.digest import Uniforms, race_key
from tcc_certs.replay.closing import check_close
from tcc_certs.replay.findings import INVALID, NO_CERT, TRUNCATION_ONLY, VALID, Findings, Validation
from tcc_certs.replay.header import POST_PROCESSING, RAW_INPUT, Header, read_header
from tcc_certs.replay.header_check import (
    Trust,
    check_header,
    check_public,
    check_version,
    given_seed,
    logged_seed,
    opening,
    race_salt,
)
from tcc_certs.replay.kappa import NO_KAPPA, ExactCounts, Kappa, NodeSink, handed_counts, own_counts
from tcc_certs.replay.kinds import KINDS, passes
from tcc_certs.replay.language import Language, RunRoot, language_of
from tcc_certs.replay.races.children import Listing, listing_of
from tcc_certs.replay.races.coupled import CoupledReplay, RacePolicy
from tcc_certs.replay.records import DERIVED, looked_into
from tcc_certs.replay.run import ReplayedRun
from tcc_certs.statements import residual_constraints

_AWAITED = {"refine": Code.ASK, "downgrade": Code.GUARD}  # what refuses another kind


class RunReplay:
    """Where a validation stands: no run until the header has been passed.

    Attributes:
        trust: None until the artifact has been passed.
        run: None until the header has.
        claim: the claim that the ledger makes, as far as it was read.
        line: of the current record; 0 before the first.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.trust: Trust | None = None
        self.run: ReplayedRun | None = None
        self.claim = ""
        self.line = 0
        self._closed = False

    def read(self, reader: LedgerReader) -> None:
        """Every line of the ledger, and its end.

        Raises:
            Rejected: what ends the replay.
        """
        for line in reader.unverified():
            self.step(reader, line)
        self._end(reader)

    def step(self, reader: LedgerReader, line: bytes) -> None:
        """One line: nothing comes after ``close``, and its chain holds.

        Where it has the bytes of the expected record it is not parsed.  A refusal of the line
        itself comes before all others.

        Raises:
            Rejected: L104 a line after ``close``; as the reader; what ends the replay.
        """
        if self._closed:
            kind = reader.verified(line).record.get("kind")
            path = f"line {reader.records}: kind"
            raise Rejected(Code.LEDGER_ORDER, path, "nothing after close", kind)
        previous, run = reader.head, self.run
        body = reader.body(line)
        self.line = reader.records
        if run is None:
            self._open(Line(reader, line, previous, body).record)
        elif not passes(run, body):
            record = Line(reader, line, previous, body)
            try:
                self._record(run, record)
            except Rejected:
                looked_into(record, self.line)
                raise
        self.line += 1

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
            # Who asks nothing has none of that to trust, nor to load.
            from tcc_certs.replay.asking.refinement import ReplayRefinement, read_asking

            refinement = ReplayRefinement(
                language, read_asking(trust.artifact), header.rule, header.account
            )
        if trust.seed is not None:
            trust.seed.check(header.seed_commitment)
            key = Uniforms(race_key(trust.seed.seed, race_salt(record, bound, root.digest)))
        listing = listing_of(trust.artifact, language)
        self.run = ReplayedRun(
            language=language,
            root=root,
            constraints=residual_constraints(
                trust.artifact, header.truncate, root.rank, root.tally
            ),
            header=header,
            policy=policy_of(header, language, listing),
            refinement=refinement,
            key=key,
            kappa=_kappa(trust, language, root),
            findings=self.findings,
            listing=listing,
            tell=trust.tell,
        )

    def _record(self, run: ReplayedRun, line: Line) -> None:
        """A record after the header."""
        kind: str = line.kind
        record: Record = line
        if run.key is None or kind not in DERIVED:
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

    def _close(self, run: ReplayedRun, record: Record) -> None:
        self._closed = True
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
        if self._closed and reader.tail:
            raise Rejected(Code.LEDGER_ORDER, "line", "nothing after close", reader.tail[:40])
        if not self._closed:
            known = f"{reader.records} verified records, head {reader.head.hex()}"
            if reader.tail:
                known += f", then {len(reader.tail)} bytes without an LF"
            raise Rejected(Code.INCOMPLETE, "close", "a close record", known)


def policy_of(header: Header, language: Language, listing: Listing | None = None) -> RacePolicy:
    """The race and the keys that a run begins with."""
    if header.mode == "fallback" or header.race == "literal":
        from tcc_certs.replay.races.heuristic import FallbackReplay, LiteralReplay

        if header.mode == "fallback":
            return FallbackReplay(language=language, tau=header.tau, recipe=header.recipe)
        return LiteralReplay(language=language, recipe=header.recipe)
    anchored, one_by_one = header.keys == "anchored", header.race == "rest"
    met = {} if listing is None else listing.met[0]
    return CoupledReplay(
        language=language, recipe=header.recipe, anchored=anchored, one_by_one=one_by_one, met=met
    )


def _kappa(trust: Trust, language: Language, root: RunRoot) -> Kappa:
    if trust.counts is not None:
        exact: ExactCounts | None = handed_counts(trust.counts, trust.artifact, language)
    else:
        exact = own_counts(trust.artifact, language)
    return Kappa(language, exact, root)


def validate(
    ledger: bytes | Iterable[bytes],
    artifact: bytes | CheckedArtifact,
    *,
    pin: str | None = None,
    seed: bytes | None = None,
    opening_salt: bytes | None = None,
    opening: bytes | None = None,
    beacon: bytes | None = None,
    nonce: bytes | None = None,
    counts: bytes | CheckedArtifact | None = None,
    tell: NodeSink | None = None,
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
        opening: O, 32 bytes, as it was handed out before beacon and nonce were known.
        beacon, nonce: the public randomness, and the client's own; without these three nothing is
            said about lucky seeds.
        counts: an artifact with exact counts of the same core, for kappa.
        tell: gets kappa and the tightened key of each pushed node, as its record is held against
            the expected one: diagnostics, on which no verdict rests.

    Returns:
        a verdict, never an exception, whatever the bytes are.
    """
    findings = Findings()
    chunks = _again(ledger)
    replay = RunReplay(findings)
    reader = LedgerReader(chunks)
    try:
        checked = _checked(artifact, pin)
        replay.trust = Trust(
            artifact=checked,
            seed=given_seed(seed, opening_salt) or logged_seed(chunks),
            opening=opening,
            beacon=beacon,
            nonce=nonce,
            counts=check(counts) if isinstance(counts, bytes) else counts,
            tell=tell,
        )
        replay.read(reader)
    except Rejected as refusal:
        findings.refuse(refusal, replay.line)
    return conclude(findings, replay.claim, replay.run, replay.trust, reader)


def _again(ledger: bytes | Iterable[bytes]) -> Iterable[bytes]:
    if isinstance(ledger, bytes):
        return (ledger,)
    return tuple(ledger) if isinstance(ledger, Iterator) else ledger


def _checked(artifact: bytes | CheckedArtifact, pin: str | None) -> CheckedArtifact:
    if isinstance(artifact, bytes):
        return check(artifact, pin=pin)
    digest = artifact.file.digest.hex()
    if pin is not None and pin != digest:
        raise Rejected(Code.PIN, "artifact", pin, digest)
    return artifact


# The outcome upholds what was shown and nothing more.


def conclude(
    findings: Findings,
    claim: str,
    run: ReplayedRun | None,
    trust: Trust | None,
    reader: LedgerReader,
) -> Validation:
    """The validation that these findings come to.

    Args:
        claim: that the ledger makes, as far as it was read.
        run: None where the header did not pass; trust: None where the artifact did not.
    """
    verdict = findings.verdict
    upheld = verdict == VALID and claim != NO_CERT
    return Validation(
        verdict=verdict,
        claim_type=claim,
        claim_upheld=upheld,
        findings=tuple(findings.items),
        checked={
            "records": reader.records,
            "nodes": 0 if run is None else run.nodes,
            "expansions": 0 if run is None else run.expansions,
            "leaves": 0 if run is None else run.leaves,
        },
        kappa=NO_KAPPA if run is None else run.kappa.document(),
        head=reader.head.hex(),
        summary=_summary(findings, claim if upheld else NO_CERT, run, trust, reader),
        after=() if run is None else run.header.after,
        privacy=None if run is None or verdict != VALID else _privacy(run),
    )


def _privacy(run: ReplayedRun) -> Mapping[str, Json] | None:
    """What the ledger states: on the word of who ran it that its scope is the right one."""
    if run.header.raw:
        return {"privacy_scope": RAW_INPUT}
    refinement = run.refinement
    taken = run.header.taken if refinement is None else refinement.controller.spent.taken
    stated = {} if taken is None else taken.fields()
    if taken is None or not stated:
        return None
    return {"privacy_scope": POST_PROCESSING, "atoms": taken.total.atoms, **stated}


def _summary(
    findings: Findings,
    claim: str,
    run: ReplayedRun | None,
    trust: Trust | None,
    reader: LedgerReader,
) -> str:
    verdict = findings.verdict
    if verdict == VALID and run is not None:
        said = _no_claim_text(run) if claim == NO_CERT else _claim_text(run, claim)
        return said + _chosen_text(trust)
    first = findings.items[0]
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    if verdict == INVALID:
        return f"invalid ({len(findings.items)} findings); first {first.code}, {what}"
    codes = [item.code for item in findings.items]
    if Code.INCOMPLETE in codes and reader.records == 0:
        return f"incomplete: not one whole line that ends in an LF; {first.found}"
    if Code.INCOMPLETE in codes:
        seeded = trust is not None and trust.seed is not None
        uniforms = "" if seeded else ", its uniforms unchecked for want of the seed"
        return f"incomplete: no close record; what is there replays{uniforms}; {first.found}"
    if Code.WITHHELD in codes:
        return "not decided: it replays, but the seed is withheld and the uniforms are unchecked"
    return f"declined: {first.code}, {what}"


def _claim_text(run: ReplayedRun, claim: str) -> str:
    incumbent, found = run.best.incumbent, len(run.best.ranked)
    within = f" of at most {run.header.truncate} calls" if claim == TRUNCATION_ONLY else ""
    if made := len(run.header.after):
        within += " after the call made" if made == 1 else f" after the {made} calls made"
    if incumbent is None and found == 0:
        return f"claim upheld: there is no plan{within}"
    if incumbent is None and found == 1:
        return f"claim upheld: this is the only plan{within} there is"
    if incumbent is None:
        return f"claim upheld: these {found} are all the plans{within} there are"
    value = format_q64(incumbent)
    if run.header.top == 1:
        who = f"no other plan{within}"
    else:
        who = f"no plan{within} but these {run.header.top}"
    ranges = "" if run.refinement is None else ", whatever it costs within its range"
    return f"claim upheld: {who} could have scored above V = {value} in this run{ranges}"


def _no_claim_text(run: ReplayedRun) -> str:
    incumbent, top = run.best.incumbent, run.frontier.top
    if not run.best.ranked:
        return "valid, no claim: the run replays; it found no plan, and does not show there is none"
    if incumbent is None or top is None:
        return "valid, no claim: the run replays, and shows nothing about other plans"
    if run.policy.law != "softmax":
        return "valid, no claim: the run replays; its keys bound nothing"
    if top.key <= incumbent:
        value, reason = format_q64(incumbent), _no_claim_reason(run)
        return f"valid, no claim: the run replays; no key left exceeds V = {value}, but {reason}"
    gap = format_q64(top.key - incumbent)
    return f"valid, no claim: the run replays; another plan may score up to {gap} above V"


def _no_claim_reason(run: ReplayedRun) -> str:
    """Why a run that its stop rule ended claims nothing."""
    if run.header.raw:
        return "the raw input decided the grammar or the models, so nothing is certified"
    if run.header.claim_type == NO_CERT:
        return "the ledger claims nothing from its first line"
    return "a guard took the claim away"


def _chosen_text(trust: Trust | None) -> str:
    """What was shown of how the seed came about; without all three nothing."""
    if trust is None or trust.opening is None or (trust.beacon is None and trust.nonce is None):
        return ""
    return "; seed and settings were fixed before what the auditor gave was known"

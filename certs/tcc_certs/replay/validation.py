"""Validates the ledger of a run.  The checks, in this order:

    artifact    the kernel accepts it; its digest is the pinned digest, if one is given
    line        canonical bytes, chained to the previous line; no line follows `close`
    record      its kind is known, and its fields are well formed
    open        this program knows its version and mode; it names this artifact; its run id;
                the opening, beacon and nonce that the auditor knows
    seed        the seed that the header commits to
    node        each allowed child of the node just expanded, in order: digest, uniform,
                arrival, key, names
    expand      the greatest item of the frontier; no guard forbids it; uniforms, winner, Phi
    leaf        the greatest item of the frontier; value, incumbent
    rest, draw  the remainder of a node's children: uniforms, arrival, key, the next child
    requeue     the greatest item, whose key fell because of answers: its present key
    budget      the next question: the edge, the model, its expected gain and amounts
    refine      the answer: strictly inside the known interval, or RangeFail; gain and amounts
    downgrade   the guard that requires it fired; all later keys and values are different
    recovered   the number of records before it
    close       the stop rule, coverage of the root, best plans, counts, tail, claim, seed

Normative text: docs/spec/ledger.md.  Trusted inputs come from the arguments, never from the ledger.
Cost: the kernel's check of the artifact, then linear in the ledger.  Memory: the artifact and the
run's frontier.
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

# the code that refuses a record of another kind
_AWAITED = {"refine": Code.ASK, "downgrade": Code.GUARD}


class RunReplay:
    """The state of a validation.

    Attributes:
        trust: the trusted inputs; None before the artifact is accepted.
        run: the replayed run; None before the header is accepted.
        claim: the claim of the ledger, as far as it was read.
        line: the number of the current record; 0 before the first.
    """

    def __init__(self, findings: Findings) -> None:
        self.findings = findings
        self.trust: Trust | None = None
        self.run: ReplayedRun | None = None
        self.claim = ""
        self.line = 0
        self._closed = False

    def read(self, reader: LedgerReader) -> None:
        """Read every line of the ledger, and check its end.

        Raises:
            Rejected: a record ends the replay.
        """
        for line in reader.unverified():
            self.step(reader, line)
        self._end(reader)

    def step(self, reader: LedgerReader, line: bytes) -> None:
        """Process one line.

        A line with the bytes of the expected record is not parsed.  If the line itself is
        malformed, this error comes before all others.

        Raises:
            Rejected: L104 a line after ``close``.  Otherwise a code of the reader, or a code that
                ends the replay.
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
            # imported only here: a run that asks nothing does not need this code
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
        """Process a record after the header."""
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
        """Check the end of the input.

        Raises:
            Rejected: D301 there is no ``close``; L104 there are bytes after it.
        """
        if self._closed and reader.tail:
            raise Rejected(Code.LEDGER_ORDER, "line", "nothing after close", reader.tail[:40])
        if not self._closed:
            known = f"{reader.records} verified records, head {reader.head.hex()}"
            if reader.tail:
                known += f", then {len(reader.tail)} bytes without an LF"
            raise Rejected(Code.INCOMPLETE, "close", "a close record", known)


def policy_of(header: Header, language: Language, listing: Listing | None = None) -> RacePolicy:
    """Return the race and the keys that a run starts with."""
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
    """Replay the run of a ledger against the artifact, and return the verdict.

    Args:
        ledger: the whole file, or chunks of it, cut anywhere.  Chunks are read twice, first for the
            seed in the last line.  A one-time iterator is therefore copied into memory.
        artifact: the artifact's bytes, or the kernel's result for them, for many ledgers of one
            artifact.
        pin: the digest that the artifact must have, hex.
        seed: 32 bytes, if `close` withholds it.
        opening_salt: the salt of the seed's commitment; by default it is derived from the seed.
        opening: O, 32 bytes, as it was published before beacon and nonce were known.
        beacon, nonce: the public randomness, and the client's own.  Without these three inputs the
            verdict does not exclude a chosen seed.
        counts: an artifact with exact counts of the same core, for kappa.
        tell: a function that receives kappa and the tightened key of each pushed node.  These are
            diagnostics that do not affect the verdict.

    Returns:
        a verdict for any bytes; no exception.
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


# The result: only what the replay has shown is upheld.


def conclude(
    findings: Findings,
    claim: str,
    run: ReplayedRun | None,
    trust: Trust | None,
    reader: LedgerReader,
) -> Validation:
    """Return the result for these findings.

    Args:
        claim: the claim of the ledger, as far as it was read.
        run: None if the header was not accepted.
        trust: None if the artifact was not accepted.
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
    """Return the privacy statement of the ledger.

    That its scope is right is asserted by its author.
    """
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
    """Return the reason why a run that the stop rule ended claims nothing."""
    if run.header.raw:
        return "the raw input decided the grammar or the models, so nothing is certified"
    if run.header.claim_type == NO_CERT:
        return "the ledger claims nothing from its first line"
    return "a guard took the claim away"


def _chosen_text(trust: Trust | None) -> str:
    """Return the text about the choice of the seed; '' if an input for the check is missing."""
    if trust is None or trust.opening is None or (trust.beacon is None and trust.nonce is None):
        return ""
    return "; seed and settings were fixed before what the auditor gave was known"

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
    rest, draw  what is left of a node's children: uniforms, arrival, key, the one that is next
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

from collections.abc import Iterable, Iterator

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay.diagnostics import NodeSink
from tcc_certs.replay.findings import Findings, Validation
from tcc_certs.replay.outcome import conclude
from tcc_certs.replay.seeds import given_seed, logged_seed
from tcc_certs.replay.shortcut import Shortcut
from tcc_certs.replay.steps import Replay, Trust


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
    shortcut: Shortcut | None = None,
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
            the expected one: diagnostics, on which no verdict rests. Goes without a shortcut.
        shortcut: passes lines faster than the definition, which takes those that it leaves.  Who
            hands one in trusts it; without one, nothing but this package is trusted.

    Returns:
        a verdict, never an exception, whatever the bytes are.
    """
    findings = Findings()
    chunks = _again(ledger)
    replay = Replay(findings, None if tell is not None else shortcut)
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
    return conclude(findings, replay, reader)


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

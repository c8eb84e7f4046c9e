"""Checks the header of a ledger against the artifact, itself, and the auditor's knowledge.

Normative text: docs/spec/ledger.md, sections 3, 4, 6 and 7.  Rules of a later version, such as
another race, are declined first: such a ledger is not broken, but never valid.  Before its
randomness is public, a run commits to its settings (the opening O) and to its seed.  Cost: a hash
for each commitment, and one pass over the bytes for the seed in the last line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, blake, decode, encode, format_decimal
from tcc_certs.formats.ledger import SCHEMA, Record
from tcc_certs.formats.ledger_schema import HEX, PRF_DOMAIN, size, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.limits import MAX_LINE_BYTES
from tcc_certs.race.digest import opening_salt, seed_commitment, uuid7
from tcc_certs.replay.amounts import SpendingCaps
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.header import POST_PROCESSING, RAW_INPUT, Header, named_adapters
from tcc_certs.replay.kappa import NodeSink
from tcc_certs.replay.language import RunRoot, root_of

Rule: TypeAlias = "tuple[str, bool, object]"  # field, whether the check passes, expectation

_ASKS = ("leaf", "node", "never")
_KNOWN: Mapping[str, tuple[str, ...]] = {
    "mode": ("exact", "surrogate", "fallback"),
    "race": ("coupled", "literal", "rest"),
    "keys": ("finalized", "anchored"),
    "recipe": ("r1", "r2"),
    "prf_domain": (PRF_DOMAIN,),
    "privacy_scope": (POST_PROCESSING, RAW_INPUT),
    "accounting": ("pld",),
}


def check_version(record: Record) -> None:
    """Check that this version knows the schema, the mode and the policies of a ledger.

    Raises:
        Rejected: D102 another schema; D101 an unknown mode or policy.
    """
    schema = record.get("schema")
    if isinstance(schema, str):
        ensure(schema == SCHEMA, Code.UNKNOWN_VERSION, "schema", SCHEMA, schema)
    for name, known in _KNOWN.items():
        value = record.get(name)
        if isinstance(value, str):
            ensure(value in known, Code.UNKNOWN_FEATURE, name, " or ".join(known), value)


def check_header(
    record: Record, header: Header, artifact: CheckedArtifact, findings: Findings
) -> RunRoot:
    """Check that the header names this artifact and has consistent settings; return the run's root.

    Args:
        record: `open`, whose fields are well formed.
        header: the values of the same record.

    Raises:
        Rejected: L202 the ledger belongs to another artifact.  D101 this version does not know the
            way of asking.  L201 a setting is not allowed.
    """
    body = encode({name: value for name, value in record.items() if name != "run_id"})
    run_id = uuid7(size(record, "started_ms"), blake(body))
    _compare(record, "run_id", run_id, Code.RUN_ID, findings)
    digest = artifact.file.digest.hex()
    named = text(record, "artifact")
    ensure(named == digest, Code.LEDGER_ARTIFACT, "artifact", digest, named)
    manifest = artifact.file.manifest
    written: dict[str, Json] = {
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
    }
    for name, value in written.items():
        _compare(record, name, value, Code.LEDGER_HEADER, findings)
    root = root_of(artifact, header.after)
    rank = root.rank
    for name, holds, expected in _rules(header, manifest.counts, manifest.tilt, rank):
        ensure(holds, Code.LEDGER_HEADER, name, expected, record[name])
    rules = (*_asking_rules(header, ranged(artifact)), *_privacy_rules(record, header, artifact))
    for name, holds, expected in rules:
        ensure(holds, Code.LEDGER_HEADER, name, expected, record.get(name, "no field"))
    _check_adapters(record, header, artifact)
    claims = (header.full_claim(rank), NO_CERT)
    if header.claim_type not in claims:
        findings.add(Code.CLAIM, 1, "claim_type", " or ".join(claims), header.claim_type)
    if "guards" in record:
        findings.add(Code.GUARD, 1, "guards", "no field", record["guards"])
    return root


def ranged(artifact: CheckedArtifact) -> bool:
    """Return whether the cost of any call is a range."""
    return any(map(int.__ne__, artifact.table.cost_low, artifact.table.cost_high))


def atomic(artifact: CheckedArtifact) -> bool:
    """Return whether any model has an atom."""
    return any(model.atom for tool in artifact.core.tools for model in tool.models)


def _check_adapters(record: Record, header: Header, artifact: CheckedArtifact) -> None:
    """Check that the adapters are exactly those of the core's models, if the run asks questions."""
    asks = header.rule is not None and header.rule.ask != "never"
    named = named_adapters(artifact.core) if asks else []
    found = [adapter.name for adapter in header.adapters]
    listed = record.get("adapters", "no field")
    ensure(found == named, Code.LEDGER_HEADER, "adapters", named or "no field", listed)


def _compare(record: Record, name: str, expected: Json, code: Code, findings: Findings) -> None:
    if record[name] != expected:
        findings.add(code, 1, name, expected, record[name])


def _rules(header: Header, counts: str, tilt: int, rank: int) -> Iterator[Rule]:
    """Yield the checks of section 6 about the settings."""
    literal, fallback = header.race == "literal", header.mode == "fallback"
    yield "mode", header.mode != "exact" or counts == "exact", "surrogate, fallback: upper counts"
    yield "race", not literal or (header.mode == "surrogate" and tilt == 0), "coupled"
    yield "keys", not literal or header.keys == "anchored", "anchored"
    rest = header.race == "rest"
    yield "race", not (rest and fallback), "coupled"
    yield "keys", not (rest or fallback) or header.keys == "finalized", "finalized"
    inflate, places = header.inflate
    yield "inflate", inflate >= 10**places, "at least 1"
    yield "inflate", header.mode == "surrogate" or header.inflate == (1, 0), "1"
    yield "tau", header.tau[0] > 0, "above 0"
    yield "alpha", header.alpha[0] >= 0, "at least 0"
    eta, places = header.eta
    yield "eta", 0 < eta <= 10**places, "above 0, at most 1"
    least = rank if literal or fallback else 0
    yield "truncate", least <= header.truncate <= rank, f"{least} .. {rank}"


def _privacy_rules(record: Record, header: Header, artifact: CheckedArtifact) -> Iterator[Rule]:
    """Yield the checks of section 6 about privacy spending."""
    asks, handed, there = header.rule is not None, "atoms" in record, header.taken is not None
    needed = handed or (asks and atomic(artifact))
    yield "delta", there or not needed, "a delta, as atoms are counted"
    yield "delta", not there or handed or asks, "no field, as nothing takes any"
    yield "accounting", there == ("accounting" in record), "pld with a delta, else no field"
    if header.taken is not None:
        number, places = header.taken.delta
        yield "delta", 0 < number < 10**places, "above 0, below 1"
    yield "atoms", not (handed and header.raw), "no field: this run states nothing of privacy"


def _asking_rules(header: Header, has_ranges: bool) -> Iterator[Rule]:
    """Yield the checks of section 6 about costs that are ranges.

    Raises:
        Rejected: D101: this version does not know the way of asking.
    """
    rule = header.rule
    there = "a controller, as costs are ranges" if has_ranges else "no field"
    yield "controller", (rule is not None) == has_ranges, there
    yield "run_limits", has_ranges or header.caps == SpendingCaps(), "no caps on asking"
    asks = rule is not None and rule.ask != "never"
    yield "account", asks or header.account is None, "no field, as nobody is asked"
    if rule is None:
        return
    known = " or ".join(_ASKS)
    ensure(rule.ask in _ASKS, Code.UNKNOWN_FEATURE, "controller.ask", known, rule.ask)
    weights = (rule.price_weight[0] > 0, rule.latency_weight[0] > 0, rule.epsilon_weight[0] >= 0)
    yield "controller", all(weights), "weights above 0; of epsilon, at least 0"
    number, places = rule.margin or (1, 1)
    yield "controller", 0 < number < 10**places, "a margin above 0, below 1"


# ---- Commitments: the opening O, the race's salt, and their values as the auditor knows them.

_OPENED = (
    "artifact", "beta", "inflate", "keys", "mode", "race", "recipe", "seed_commitment", "tau",
    "tilt", "top", "truncate",
)  # fmt: skip


def opening(header: Record, *, rounded: bool) -> bytes:
    """Return O, the digest of the settings in `open`, including the calls before the run.

    Args:
        rounded: whether the run's counts are rounded up; then its race depends on `count_bits`.
    """
    names = (*_OPENED, "after") if "after" in header else _OPENED
    names = (*names, "count_bits") if rounded else names
    return blake(b"tcc.open.v1\x00" + encode({name: header[name] for name in names}))


def race_salt(header: Record, bound: bytes, root: bytes) -> bytes:
    """Return the salt of the race key: D(root), or a digest of O, beacon and client nonce.

    Args:
        bound: O.
        root: D(root).
    """
    beacon, nonce = _public(header, "beacon"), _public(header, "client_nonce")
    if beacon is None and nonce is None:
        return root
    parts = [b"tcc.salt.v1\x00", root, bound]
    for part in (beacon or b"", nonce or b""):
        parts += [len(part).to_bytes(4, "little"), part]
    return blake(b"".join(parts))


def _public(header: Record, name: str) -> bytes | None:
    value = header.get(name)
    return bytes.fromhex(value) if isinstance(value, str) else None


def check_public(
    header: Record,
    bound: bytes,
    *,
    opened: bytes | None,
    beacon: bytes | None,
    nonce: bytes | None,
) -> None:
    """Check that the header agrees with the auditor's O, beacon and nonce.

    Args:
        header: a record `open` whose fields are well formed.
        bound: O of this record.
        opened, beacon, nonce: the values that the auditor knows; None: not known.

    Raises:
        Rejected: L303, L304, L305: the header has another value, or none.
    """
    if opened is not None:
        require(opened.hex(), bound.hex(), Code.OPENING_DIGEST, "opening")
    for name, known, code in (
        ("beacon", beacon, Code.BEACON),
        ("client_nonce", nonce, Code.NONCE),
    ):
        stated = header.get(name, "none")
        if known is not None and stated != known.hex():
            raise Rejected(code, name, known.hex(), stated)


# ---- The seed: an argument, or found in the last record.
#
# Checking uniforms while reading requires the seed, which is in the last line.  So the input is
# read once for this line, and then again for everything.  The first reading needs no trust: the
# seed has to match the commitment in the header, and the second reading compares `close` with it.

_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A seed and the salt of its commitment, 32 bytes each."""

    seed: bytes
    salt: bytes

    def check(self, commitment: bytes) -> None:
        """Check that the commitment is to this seed.

        Raises:
            Rejected: L301: it is to another seed.
        """
        expected = seed_commitment(self.seed, self.salt)
        require(expected.hex(), commitment.hex(), Code.SEED, "seed_commitment")


def given_seed(seed: bytes | None, salt: bytes | None) -> Seed | None:
    """Return the seed that the caller passes; without a salt, use the default salt.

    Raises:
        Rejected: L301, L302 a value is not 32 bytes long; L302 a salt without a seed.
    """
    if seed is None:
        ensure(salt is None, Code.OPENING, "argument opening_salt", "a seed with it", "none")
        return None
    ensure(len(seed) == _BYTES, Code.SEED, "argument seed", "32 bytes", len(seed))
    if salt is None:
        salt = opening_salt(seed)
    ensure(len(salt) == _BYTES, Code.OPENING, "argument opening_salt", "32 bytes", len(salt))
    return Seed(seed=seed, salt=salt)


def logged_seed(chunks: Iterable[bytes]) -> Seed | None:
    """Return the seed in the last line, if that line looks like a record with a seed."""
    try:
        record = decode(_last_line(chunks), "last line")
    except Rejected:
        return None
    if not isinstance(record, dict):
        return None
    seed, salt = record.get("seed"), record.get("opening_salt")
    if not (isinstance(seed, str) and isinstance(salt, str) and HEX[1](seed) and HEX[1](salt)):
        return None
    return Seed(seed=bytes.fromhex(seed), salt=bytes.fromhex(salt))


def _last_line(chunks: Iterable[bytes]) -> bytes:
    """Return the last complete line without its LF, or b'' if it is too long."""
    last, pieces, size = b"", list[bytes](), 0
    for chunk in chunks:
        end = chunk.rfind(b"\n")
        if end >= 0:
            start = chunk.rfind(b"\n", 0, end)
            before = [] if start >= 0 else pieces
            last = b"".join([*before, chunk[start + 1 : end]]) if size <= MAX_LINE_BYTES else b""
            pieces, size = [], 0
        rest = chunk[end + 1 :]
        size += len(rest)
        if size <= MAX_LINE_BYTES:
            pieces.append(rest)
    return last


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The inputs that do not come from the ledger; see :func:`tcc_certs.replay.validate`.

    Attributes:
        artifact: the artifact that the kernel accepted.
        seed: the seed to check uniforms with, from an argument or from `close`; None: withheld.
        opening, beacon, nonce: the values that the auditor knows.
        counts: an artifact with exact counts, for kappa.
        tell: receives the diagnostics of each node.
    """

    artifact: CheckedArtifact
    seed: Seed | None
    opening: bytes | None
    beacon: bytes | None
    nonce: bytes | None
    counts: CheckedArtifact | None
    tell: NodeSink | None = None

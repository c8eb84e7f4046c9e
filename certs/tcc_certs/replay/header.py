"""The header of a ledger: its values, and what the artifact has to say to them.

Normative text: docs/spec/ledger.md, sections 3 and 6.  Rules of a later version, such as another
mode, are declined before anything else is looked at: their ledgers are not broken, and never pass.
Cost: nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.codec import Json, encode
from tcc_certs.digest import blake, uuid7
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.fixed import format_decimal, parse_decimal
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.ledger import Record
from tcc_certs.ledger_schema import PRF_DOMAIN, SCHEMA, size, text
from tcc_certs.replay.findings import RUN_WISE_EXACT, Findings

_KNOWN: Mapping[str, tuple[str, ...]] = {
    "mode": ("exact",),
    "race": ("coupled",),
    "keys": ("finalized",),
    "recipe": ("r1", "r2"),
    "prf_domain": (PRF_DOMAIN,),
    "privacy_scope": ("post_processing_only",),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the replay needs of `open`.

    Attributes:
        started_ms: for node ids.
        seed_commitment: 32 bytes.
        recipe: ``r1`` or ``r2``.
        alpha, eta: of the potential, exact decimals (numerator, places).
        top: k.
        count_bits: 0 is no limit.
        max_expansions: None is no cap.
        timed: whether there is a cap on the time.
    """

    started_ms: int
    seed_commitment: bytes
    recipe: str
    alpha: tuple[int, int]
    eta: tuple[int, int]
    top: int
    count_bits: int
    max_expansions: int | None
    timed: bool


def check_version(record: Record) -> None:
    """The ledger is one of version 1.0, an exact coupled run, as far as it says so in texts.

    Raises:
        Rejected: D102 another schema, D101 a mode or a policy that this version has no rules for.
    """
    schema = record.get("schema")
    if isinstance(schema, str):
        ensure(schema == SCHEMA, Code.UNKNOWN_VERSION, "schema", SCHEMA, schema)
    for name, known in _KNOWN.items():
        value = record.get(name)
        if isinstance(value, str):
            ensure(value in known, Code.UNKNOWN_FEATURE, name, " or ".join(known), value)


def check_header(record: Record, artifact: CheckedArtifact, findings: Findings) -> None:
    """The header names this artifact and its settings.

    Raises:
        Rejected: L202 it is another artifact's ledger; D101 a truncated run, or an artifact with
            a call whose cost is a range.
    """
    body = encode({name: value for name, value in record.items() if name != "run_id"})
    run_id = uuid7(size(record, "started_ms"), blake(body))
    _compare(record, "run_id", run_id, Code.RUN_ID, findings)
    digest = artifact.file.digest.hex()
    found = text(record, "artifact")
    ensure(found == digest, Code.LEDGER_ARTIFACT, "artifact", digest, found)
    manifest = artifact.file.manifest
    due: dict[str, Json] = {
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "inflate": "1",
        "tau": "1",
    }
    for name, value in due.items():
        _compare(record, name, value, Code.LEDGER_HEADER, findings)
    _compare(record, "claim_type", RUN_WISE_EXACT, Code.CLAIM, findings)
    if "guards" in record:
        findings.add(Code.GUARD, 1, "guards", "no field", record["guards"])
    _check_potential(record, findings)
    _check_supported(record, artifact, findings)


def _compare(record: Record, name: str, due: Json, code: Code, findings: Findings) -> None:
    if record[name] != due:
        findings.add(code, 1, name, due, record[name])


def _check_potential(record: Record, findings: Findings) -> None:
    alpha = _decimal(record, "alpha")
    if alpha[0] < 0:
        findings.add(Code.LEDGER_HEADER, 1, "alpha", "at least 0", record["alpha"])
    eta, places = _decimal(record, "eta")
    if not 0 < eta <= 10**places:
        findings.add(Code.LEDGER_HEADER, 1, "eta", "above 0, at most 1", record["eta"])


def _check_supported(record: Record, artifact: CheckedArtifact, findings: Findings) -> None:
    rank = artifact.automaton.rank[artifact.automaton.root]
    truncate = size(record, "truncate")
    if truncate > rank:
        findings.add(Code.LEDGER_HEADER, 1, "truncate", rank, truncate)
    ensure(truncate >= rank, Code.UNKNOWN_FEATURE, "truncate", rank, truncate)
    columns = artifact.file.columns
    low, high = columns["call_cost_low"].items(), columns["call_cost_high"].items()
    ranged = next((i for i in range(len(low)) if low[i] != high[i]), None)
    if ranged is not None:
        raise Rejected(
            Code.UNKNOWN_FEATURE, "artifact", "costs that are points", artifact.calls[ranged]
        )


def read_header(record: Record) -> Header:
    """The values of a header that :func:`check_header` has seen."""
    limits = record["run_limits"]
    cap = limits.get("max_expansions") if isinstance(limits, dict) else None
    return Header(
        started_ms=size(record, "started_ms"),
        seed_commitment=bytes.fromhex(text(record, "seed_commitment")),
        recipe=text(record, "recipe"),
        alpha=_decimal(record, "alpha"),
        eta=_decimal(record, "eta"),
        top=size(record, "top"),
        count_bits=size(record, "count_bits"),
        max_expansions=cap if type(cap) is int else None,
        timed=isinstance(limits, dict) and "max_ms" in limits,
    )


def _decimal(record: Record, name: str) -> tuple[int, int]:
    return parse_decimal(text(record, name), name, Code.LEDGER_SCHEMA)

"""The header of a ledger against the artifact, and against itself.

Normative text: docs/spec/ledger.md, sections 3, 4 and 6.  Rules of a later version, such as another
race, are declined before anything else is looked at: their ledgers are not broken, and never pass.
Cost: nothing to speak of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.hashes import blake
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import PRF_DOMAIN, SCHEMA, size, text
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.race.digest import uuid7
from tcc_certs.replay.adapters import named_adapters
from tcc_certs.replay.budgets import Caps
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.header import POST_PROCESSING, RAW_INPUT, Header
from tcc_certs.replay.refinement import atomic, ranged
from tcc_certs.replay.root import Root, root_of

Rule: TypeAlias = "tuple[str, bool, object]"  # field, whether it holds, what is expected

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
    """The ledger is one of version 1.0, with rules that this version has, as far as texts say so.

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


def check_header(
    record: Record, header: Header, artifact: CheckedArtifact, findings: Findings
) -> Root:
    """The header names this artifact, and its settings go together; the root of the run.

    Args:
        record: `open`, its fields in their form.
        header: the values of the same record.

    Raises:
        Rejected: L202 it is another artifact's ledger; D101 a way of asking that this version has
            no rules for; L201 a setting that no run can have.
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


def _check_adapters(record: Record, header: Header, artifact: CheckedArtifact) -> None:
    """The adapters are those that the models of the core run with, where anybody is asked."""
    asks = header.rule is not None and header.rule.ask != "never"
    named = named_adapters(artifact.core) if asks else []
    found = [adapter.name for adapter in header.adapters]
    listed = record.get("adapters", "no field")
    ensure(found == named, Code.LEDGER_HEADER, "adapters", named or "no field", listed)


def _compare(record: Record, name: str, expected: Json, code: Code, findings: Findings) -> None:
    if record[name] != expected:
        findings.add(code, 1, name, expected, record[name])


def _rules(header: Header, counts: str, tilt: int, rank: int) -> Iterator[Rule]:
    """What section 6 asks of the settings."""
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
    """What section 6 asks of the account of privacy."""
    asks, handed, there = header.rule is not None, "atoms" in record, header.taken is not None
    needed = handed or (asks and atomic(artifact))
    yield "delta", there or not needed, "a delta, as atoms are counted"
    yield "delta", not there or handed or asks, "no field, as nothing takes any"
    yield "accounting", there or "accounting" not in record, "no field, as nothing is counted"
    if header.taken is not None:
        number, places = header.taken.delta
        yield "delta", 0 < number < 10**places, "above 0, below 1"
    yield "atoms", not (handed and header.raw), "no field: this run states nothing of privacy"


def _asking_rules(header: Header, has_ranges: bool) -> Iterator[Rule]:
    """What section 6 asks of the settings about costs that are ranges.

    Raises:
        Rejected: D101 a way of asking that this version has no rules for.
    """
    rule = header.rule
    there = "a controller, as costs are ranges" if has_ranges else "no field"
    yield "controller", (rule is not None) == has_ranges, there
    yield "run_limits", has_ranges or header.caps == Caps(), "no caps on asking"
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

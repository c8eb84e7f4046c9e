"""The documents that judge: artifacts, ledgers, sessions, signatures, pins; and those of errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.parts import (
    CLAIM,
    CODE,
    DECIMAL,
    DIAGNOSTICS,
    FLAG,
    HEX16,
    HEX32,
    INTEGER,
    STATED,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    by_name,
    closed,
    listed,
    one_of,
    shared,
)

_JUDGED = one_of("VALID", "INVALID", "DECLINED")
_REPLAYED = one_of("VALID", "INVALID", "DECLINED", "INCOMPLETE")
_STATED = closed({"privacy_scope": {"const": "post_processing_only"}, "atoms": WHOLE, **STATED})
_NOT_STATED = closed({"privacy_scope": {"const": "raw_input_dependent"}})
_NOT_READ = {"const": ""}  # of a ledger that was not read as far as its claim
_AMOUNTS = {"price": DECIMAL, "latency_ms": DECIMAL, "epsilon": DECIMAL}
_SESSION_CLAIM = one_of("Conformant", "ConformantPrefix", "NoClaim")
_DIGEST = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
_CHECKED = {
    "verdict": _JUDGED,
    "findings": listed(shared("finding")),
    "checked": by_name(WHOLE),
    "digest": _DIGEST,
    "enforced": {"anyOf": [shared("enforced"), {"type": "object", "maxProperties": 0}]},
}
_VALIDATED = {
    "verdict": _REPLAYED,
    "claim_upheld": FLAG,
    "findings": listed(shared("line")),
    "checked": by_name(WHOLE),
    "ledger_head": HEX32,
    "summary": TEXT,
}
_HEADER = closed(
    {
        "schema": TEXT,
        "session_id": TEXT,
        "started_ms": WHOLE,
        "nonce": HEX16,
        "artifact": HEX32,
        "grammar": TEXT,
        "grammar_version": TEXT,
        "root_state": HEX32,
        "monitors": TEXTS,
        "arguments": closed({"show": TEXTS}),
        "key_commitment": HEX32,
    },
    {"mac": HEX16},
)
_PIN = closed(
    {"digest": HEX32, "grammar": TEXT, "version": TEXT}, {"source": TEXT, "source_core": HEX32}
)
_ADAPTER = closed(
    {
        "name": TEXT,
        "tier": TEXT,
        "adapter_id": HEX32,
        "dp_cert_id": TEXT,
        "eps_train": DECIMAL,
        "delta_train": DECIMAL,
    }
)
_EVENT = closed(
    {
        "kind": one_of("call", "refusal", "resolve", "budget", "asked", "end"),
        "before": listed(INTEGER),
        "after": listed(INTEGER),
    },
    {
        "seq": WHOLE,
        "text": TEXT,
        "outcome": TEXT,
        "ms": WHOLE,
        "why": TEXT,
        "opened": by_name(TEXT),
        "observed": by_name(TEXT),
        "model": TEXT,
        "took": by_name(DECIMAL),
    },
)
_TOLD = closed(
    {
        "session": _HEADER,
        "events": listed(_EVENT),
        "states": listed(INTEGER),
        "may_finish": FLAG,
        "ended": FLAG,
        "allowed_next": TEXTS,
        "claim_type": _SESSION_CLAIM,
        "ledger_head": HEX32,
        "summary": TEXT,
    }
)

VERDICTS: Final[Mapping[str, Sequence[Schema]]] = {
    "check": (
        closed(_CHECKED),
        closed(
            {
                "verdict": _JUDGED,
                "artifacts": listed(closed({"artifact": TEXT, **_CHECKED})),
                "findings": listed(shared("diagnostic")),
            }
        ),
        closed({"diagnostics": {**DIAGNOSTICS, "minItems": 1}}),
    ),
    "validate": (
        closed(
            {
                **_VALIDATED,
                "claim_type": {"anyOf": [CLAIM, _NOT_READ]},
                "kappa": closed({"nodes": WHOLE, "tightened": WHOLE, "mean": DECIMAL}),
            },
            {"after": TEXTS, "privacy": {"anyOf": [_STATED, _NOT_STATED]}},
        ),
        closed({**_VALIDATED, "claim_type": _SESSION_CLAIM, "asserted": TEXTS, "monitors": TEXTS}),
    ),
    "pin": (closed({"lock": TEXT, "artifacts": by_name(_PIN)}),),
    "adapters": (
        closed({"folder": TEXT, "adapter_id": HEX32}),
        closed({"adapters": listed(_ADAPTER)}),
    ),
    "account": (
        closed(
            {
                "id": HEX32,
                "lease_ms": WHOLE,
                "caps": closed({}, _AMOUNTS),
                "spent": closed(_AMOUNTS),
                "held": closed(_AMOUNTS),
                "left": closed({}, _AMOUNTS),
                "reservations": by_name(WHOLE),
            }
        ),
    ),
    "session": (_TOLD,),
    "report": (
        closed(
            {
                "kind": one_of("artifact", "run", "session"),
                "verdict": _REPLAYED,
                "summary": TEXT,
                "output": TEXT,
            }
        ),
        closed({"diagnostics": {**DIAGNOSTICS, "minItems": 1}}),
    ),
    "explain": (
        closed({"code": CODE, "text": TEXT}),
        closed({"codes": listed(closed({"code": CODE, "title": TEXT}))}),
    ),
    "error": (
        closed(
            {"error": TEXT},
            {
                "findings": listed({"anyOf": [shared("finding"), shared("line")]}),
                "diagnostics": DIAGNOSTICS,
            },
        ),
    ),
    "schema": (closed({"schemas": by_name({"type": "object"})}),),
}

"""The documents of runs, executions and batches, and of the experiments over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tcc.schemas.grammars import REFUSED
from tcc.schemas.parts import (
    CELL,
    CLAIM,
    CODE,
    DECIMAL,
    FLAG,
    HEX32,
    NUMBER,
    ORDER,
    STATED,
    TEXT,
    TEXTS,
    WHOLE,
    Schema,
    by_name,
    closed,
    listed,
    one_of,
)

_MODE = one_of("exact", "surrogate", "fallback")
_STOP = one_of(
    "bound", "exhausted", "max_expansions", "max_seconds", "interrupted", "precision", "guard"
)
_PLAN = closed(
    {"calls": TEXTS, "cost": DECIMAL, "value": DECIMAL, "leaf_id": HEX32},
    {
        "cost_high": DECIMAL,
        "assumed": TEXTS,
        "pam": closed({"value": DECIMAL, "rank": WHOLE}),
    },
)
_RUN = closed(
    {
        "mode": _MODE,
        "claim_type": CLAIM,
        "law": one_of("softmax", "run_wise_only", "none"),
        "stop": _STOP,
        "plans": listed(_PLAN),
        "expansions": WHOLE,
        "leaves": WHOLE,
        "guards": TEXTS,
        "seed": HEX32,
    },
    {
        "after": TEXTS,
        "pam_claim": one_of("NoCert"),
        "predicted_expansions": closed({"lower": NUMBER, "upper": NUMBER}),
        "estimated_expansions": closed(
            {
                "lower": NUMBER,
                "upper": {"type": ["number", "null"]},
                "drawn": WHOLE,
                "kept": WHOLE,
            }
        ),
        "materialised": WHOLE,
        "tail_lse": DECIMAL,
        "frontier_key": DECIMAL,
        "gap": DECIMAL,
        "ledger_head": HEX32,
        "price_spent": WHOLE,
        "latency_ms": WHOLE,
        "epsilon_used": DECIMAL,
        **STATED,
    },
)
_CALL = closed(
    {"seq": WHOLE, "call": TEXT, "outcome": one_of("done", "failed", "unknown", "open")},
    {"observed": by_name(TEXT), "model": TEXT},
)
_EXEC = closed(
    {
        "stop": one_of(
            "finished", "unknown", "unforeseen", "failed", "refused", "budget", "no_plan"
        ),
        "reason": TEXT,
        "calls": listed(_CALL),
        "ledger_head": HEX32,
        "searches": listed(closed({"claim_type": CLAIM, "after": TEXTS})),
    },
    {
        "budget": closed(
            {
                "price_spent": DECIMAL,
                "latency_ms": DECIMAL,
                "epsilon_used": DECIMAL,
                "left": by_name(DECIMAL),
            },
            STATED,
        )
    },
)
_EXPERIMENT = closed(
    {
        "name": TEXT,
        "title": TEXT,
        "paper": TEXTS,
        "seconds": closed({"quick": WHOLE, "full": WHOLE}),
    }
)
_DIFFERING = closed({"table": TEXT, "row": WHOLE, "column": TEXT, "here": TEXT, "there": TEXT})
_CLAIM_OF_PAPER = closed(
    {
        "claim": TEXT,
        "found": TEXT,
        "verdict": one_of("holds", "does not hold", "differs because", "not in the paper"),
        "because": TEXT,
    }
)

_MADE = {"runs": WHOLE, "certified": WHOLE, "out": TEXT}
_IN_SHARDS = ("parts", "made", "kept", "redone", "started_ms")
_BATCH_FINDING = dict.fromkeys(("file", "field", "expected", "found"), TEXT)
_VALIDATED = {
    "verdict": one_of("VALID", "INVALID", "INCOMPLETE"),
    "out": TEXT,
    "runs": WHOLE,
    "verdicts": by_name(WHOLE),
    "claims": by_name(WHOLE),
    "findings": listed(closed({"run": WHOLE, "line": WHOLE, "code": CODE, **_BATCH_FINDING})),
    "more_findings": WHOLE,
}

RUNS: Final[Mapping[str, Sequence[Schema]]] = {
    "run": (_RUN, closed({"opening": HEX32}), REFUSED),
    "epsilon": (
        closed(
            {
                "epsilon": DECIMAL,
                "delta": DECIMAL,
                "alpha": ORDER,
                "rdp": DECIMAL,
                "atoms": WHOLE,
                "orders": listed({**listed(DECIMAL), "minItems": 2, "maxItems": 2}),
            }
        ),
    ),
    "exec": (_EXEC, REFUSED),
    "batch": (
        closed(_MADE),
        closed({**_MADE, **dict.fromkeys(_IN_SHARDS, WHOLE)}),
        closed(_VALIDATED),
        REFUSED,
    ),
    "demo": (
        closed({"modes": listed(by_name(CELL)), "queries": listed(by_name(CELL)), "valid": FLAG}),
    ),
    "experiments": (
        closed(
            {"size": one_of("quick", "full"), "findings": by_name(listed(_CLAIM_OF_PAPER))},
            {"differing": listed(_DIFFERING)},
        ),
        closed({"experiments": listed(_EXPERIMENT)}),
    ),
}

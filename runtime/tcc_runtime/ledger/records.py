"""The few records of a ledger, as values for the canonical writer.

Format: docs/spec/ledger.md, sections 3 and 5; the many are made in :mod:`tcc_runtime.ledger.lines`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.core.atoms import atom_document
from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.formats.fixed import format_q32
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.guards import Descent, Guard, Stop
from tcc_runtime.ledger.asks import (
    account_field,
    adapters_field,
    cap_fields,
    controller_field,
    rule_field,
    spent_fields,
    taken_fields,
)
from tcc_runtime.outcome import Run
from tcc_runtime.terms.modes import Claim, Terms
from tcc_runtime.terms.settings import Mode, Settings


def open_record(
    artifact: Artifact, terms: Terms, commitment: bytes, started_ms: int
) -> dict[str, Json]:
    """`open`, without `run_id`; `commitment` is the one to the seed."""
    manifest, settings = artifact.manifest, terms.settings
    return {
        "kind": "open",
        "schema": "tcc.ledger/1.0",
        "started_ms": started_ms,
        "artifact": artifact.digest.hex(),
        "grammar": manifest.grammar,
        "grammar_version": manifest.version,
        "root_state": manifest.root.hex(),
        "seed_commitment": commitment.hex(),
        "prf_domain": "tcc.race.v1",
        "mode": terms.mode,
        "claim_type": terms.claim.value,
        "race": terms.race,
        "keys": terms.keys,
        "recipe": settings.recipe,
        "tilt": manifest.tilt,
        "beta": format_decimal(*manifest.beta),
        "inflate": settings.inflate,
        "tau": settings.tau,
        "alpha": settings.alpha,
        "eta": settings.eta,
        "top": settings.top,
        "truncate": terms.truncate,
        "count_bits": settings.count_bits,
        "run_limits": _caps(settings),
        "privacy_scope": (
            "raw_input_dependent" if settings.raw_input_dependent else "post_processing_only"
        ),
        **_public(settings),
        **({"after": list(settings.after)} if settings.after else {}),
        **controller_field(terms),
        **adapters_field(terms),
        **account_field(terms),
        **_privacy(terms),
    }


def _privacy(terms: Terms) -> dict[str, Json]:
    """The delta and the rule of a run that counts atoms, and those that it was handed."""
    if terms.taken is None:
        return {}
    atoms = [atom_document(atom) for atom in terms.settings.atoms]
    said: dict[str, Json] = {"delta": terms.taken.delta.text, **rule_field(terms.taken)}
    return {**said, **({"atoms": atoms} if atoms else {})}


def _caps(settings: Settings) -> Mapping[str, Json]:
    limits: dict[str, Json] = {}
    if settings.max_expansions is not None:
        limits["max_expansions"] = settings.max_expansions
    if settings.max_ms is not None:
        limits["max_ms"] = settings.max_ms
    return {**limits, **cap_fields(settings)}


def _public(settings: Settings) -> dict[str, Json]:
    named = {"beacon": settings.beacon, "client_nonce": settings.client_nonce}
    return {name: value.hex() for name, value in named.items() if value is not None}


def downgrade_record(mode: Mode, claim: Claim, guard: Guard) -> dict[str, Json]:
    """`downgrade`."""
    return {
        "kind": "downgrade",
        "mode": mode,
        "claim_type": claim.value,
        "guards": [guard.value],
    }


def descent_members(descent: Descent) -> dict[str, Json]:
    """What an `expand` record says of Phi."""
    return {
        "phi_before": format_q32(descent.before),
        "phi_after": format_q32(descent.after),
        "delta_phi": format_q32(descent.delta),
    }


def close_record(run: Run, settings: Settings) -> dict[str, Json]:
    """`close`, without the seed."""
    record: dict[str, Json] = {
        "kind": "close",
        "stop": run.stop.value,
        "claim_type": run.claim_type.value,
        "plans": [
            {
                "calls": list(plan.calls),
                "cost": plan.cost,
                "leaf_id": plan.leaf_id,
                "value": plan.value,
                **({} if plan.cost_high is None else {"cost_high": plan.cost_high}),
            }
            for plan in run.plans
        ],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": run.law,
    }
    if run.frontier_key is not None:
        record["frontier_key"] = run.frontier_key
    if run.gap is not None:
        record["gap"] = run.gap
    if run.materialised is not None:
        record["materialised"] = run.materialised
    if run.tail_lse is not None:
        record["tail_lse"] = run.tail_lse
    if run.spent is not None:
        record |= {**spent_fields(run.spent), **cap_fields(settings)}
    else:
        record |= taken_fields(run.taken)
    ending = _ending_guard(run)
    if ending is not None:
        record["guards"] = [ending.value]
    return record


def _ending_guard(run: Run) -> Guard | None:
    """The guard that ended the run: it fired last, and only there."""
    if run.stop in (Stop.MAX_EXPANSIONS, Stop.MAX_SECONDS, Stop.GUARD):
        return run.guards[-1]
    return None

"""The outcome of a validation in numbers and in plain words.

It upholds what was shown and nothing more: only a ledger without any finding, whose claim is more
than NoCert, has its claim upheld.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.replay.findings import (
    INVALID,
    NO_CERT,
    TRUNCATION_ONLY,
    VALID,
    Findings,
    Validation,
)
from tcc_certs.replay.header import POST_PROCESSING, RAW_INPUT
from tcc_certs.replay.kappa import NO_KAPPA
from tcc_certs.replay.opening import Trust
from tcc_certs.replay.run import Run


def conclude(
    findings: Findings, claim: str, run: Run | None, trust: Trust | None, reader: LedgerReader
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


def _privacy(run: Run) -> Mapping[str, Json] | None:
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
    findings: Findings, claim: str, run: Run | None, trust: Trust | None, reader: LedgerReader
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


def _claim_text(run: Run, claim: str) -> str:
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


def _no_claim_text(run: Run) -> str:
    incumbent, top = run.best.incumbent, run.frontier.top
    if not run.best.ranked:
        return "valid, no claim: the run replays; it found no plan, and does not show there is none"
    if incumbent is None or top is None:
        return "valid, no claim: the run replays, and shows nothing about other plans"
    if run.policy.law != "softmax":
        return "valid, no claim: the run replays; its keys bound nothing"
    gap = format_q64(top.key - incumbent)
    return f"valid, no claim: the run replays; another plan may score up to {gap} above V"


def _chosen_text(trust: Trust | None) -> str:
    """What was shown of how the seed came about; without all three nothing."""
    if trust is None or trust.opening is None or (trust.beacon is None and trust.nonce is None):
        return ""
    return "; seed and settings were fixed before what the auditor gave was known"

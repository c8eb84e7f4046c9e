"""The outcome of a validation in numbers and in plain words.

It upholds what was shown and nothing more: only a ledger without any finding, whose claim is more
than NoCert, has its claim upheld.
"""

from __future__ import annotations

from tcc_certs.errors import Code
from tcc_certs.fixed import format_q32, format_q64
from tcc_certs.ledger import LedgerReader
from tcc_certs.replay.findings import (
    INVALID,
    NO_CERT,
    VALID,
    Findings,
    Validation,
)
from tcc_certs.replay.run import Run


def conclude(
    findings: Findings, run: Run | None, claim: str, reader: LedgerReader, seeded: bool
) -> Validation:
    """The validation that these findings and this replay come to."""
    verdict = findings.verdict
    upheld = verdict == VALID and claim != NO_CERT
    nodes = 0 if run is None else run.nodes
    return Validation(
        verdict=verdict,
        claim_type=claim,
        claim_upheld=upheld,
        findings=tuple(findings.items),
        checked={
            "records": reader.records,
            "nodes": nodes,
            "expansions": 0 if run is None else run.expansions,
            "leaves": 0 if run is None else run.leaves,
        },
        # Exact counts are the counts that were used, so ln(exact / used) is 0 at every node.
        kappa={"nodes": nodes, "tightened": 0, "mean": format_q32(0)},
        head=reader.head.hex(),
        summary=_summary(findings, run, upheld, seeded),
    )


def _summary(findings: Findings, run: Run | None, upheld: bool, seeded: bool) -> str:
    verdict = findings.verdict
    if verdict == VALID and run is not None:
        return _claim_text(run) if upheld else _no_claim_text(run)
    first = findings.items[0]
    what = f"line {first.line}, {first.field}: expected {first.expected}, found {first.found}"
    if verdict == INVALID:
        return f"invalid ({len(findings.items)} findings); first {first.code}, {what}"
    codes = [item.code for item in findings.items]
    if Code.INCOMPLETE in codes:
        uniforms = "" if seeded else ", its uniforms unchecked for want of the seed"
        return f"incomplete: no close record; what is there replays{uniforms}; {first.found}"
    if Code.WITHHELD in codes:
        return "not decided: it replays, but the seed is withheld and the uniforms are unchecked"
    return f"declined: {first.code}, {what}"


def _claim_text(run: Run) -> str:
    incumbent = run.incumbent
    if incumbent is None and len(run.best) == 1:
        return "claim upheld: this is the only plan there is"
    if incumbent is None:
        return f"claim upheld: these {len(run.best)} are all the plans there are"
    value = format_q64(incumbent)
    if run.header.top == 1:
        return f"claim upheld: no other plan could have scored above V = {value} in this run"
    return (
        f"claim upheld: no plan but these {run.header.top} could have scored "
        f"above V = {value} in this run"
    )


def _no_claim_text(run: Run) -> str:
    incumbent, top = run.incumbent, run.top
    if incumbent is None or top is None:
        return "valid, no claim: the run replays, and ended before it could show anything"
    gap = format_q64(top.published.key - incumbent)
    return f"valid, no claim: the run replays; another plan may score up to {gap} above V"

"""The end of a run: the stop rule, that nothing of the root was lost, and the claim that follows.

Normative text: docs/spec/ledger.md, sections 3 to 5, 7 to 9.  Cost: one sum over the frontier; the
tail of a cut run, where it is claimed or stated (:mod:`tcc_certs.replay.tail`).
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.errors import Code, require
from tcc_certs.formats.codec import Json
from tcc_certs.formats.fixed import format_q64
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import text
from tcc_certs.race.published import clamp
from tcc_certs.replay.amounts import cap_fields, spent_fields
from tcc_certs.replay.findings import NO_CERT, Findings
from tcc_certs.replay.guards import CAP, TIMEOUT
from tcc_certs.replay.records import compare, plan_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import Seed
from tcc_certs.replay.shares import PRIME, share_of
from tcc_certs.replay.tail import tail_lse
from tcc_certs.replay.tree import Node
from tcc_certs.replay.turn import Turn

_CERTIFIES = ("bound", "exhausted")
_ALWAYS_POSSIBLE = ("interrupted", "precision")
_STOP_GUARD: Mapping[str, str] = {"max_expansions": CAP, "max_seconds": TIMEOUT}


def possible_stops(run: Run) -> tuple[str, ...]:
    """Why a run may have ended here; where the stop rule holds, that is the only reason."""
    if run.nodes == 0:
        return ("precision",)
    turn = run.turn
    if turn is Turn.CLOSE:
        return ("exhausted",) if run.frontier.top is None else ("bound",)
    stops = [*_ALWAYS_POSSIBLE]
    if run.header.timed and turn not in (Turn.REQUEUE, Turn.LEAF):
        stops.append("max_seconds")
    if turn is Turn.CAP:
        stops.append("max_expansions")
    return tuple(stops)


def check_coverage(run: Run) -> None:
    """Frontier, popped leaves, and what expanded nodes lost make up the root, exactly.

    n(root) = sum of omega * n over the frontier and the popped leaves + sum over expanded nodes of
    omega * (n - the masses of all children + the masses of the forbidden ones).  Every pop has kept
    its mass as integers (:meth:`tcc_certs.replay.run.Run.begin`), so this holds in exact rationals
    if every share is counted once; that is what the sum shows, as residues.

    Raises:
        Rejected: L608 they do not.
    """
    language = run.language
    root = share_of(1, *language.rate(run.root.states))
    covered = (run.outside + run.frontier.covered(language)) % PRIME
    require(root, covered, Code.COVERAGE, "coverage")


def close_record(run: Run, stop: str, seed: Seed | None, tail: bool) -> dict[str, Json]:
    """The ``close`` expected record after a stop of kind `stop`.

    Args:
        tail: whether it has the tail of a cut run even where nothing is claimed.

    Raises:
        Rejected: D201, D202: the tail is more than is computed.
    """
    claim = run.claim if stop in _CERTIFIES else NO_CERT
    record: dict[str, Json] = {
        "kind": "close",
        "stop": stop,
        "claim_type": claim,
        "plans": [_plan(run, leaf, -value) for value, _, leaf in run.best.ranked],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": _law(run),
    }
    if run.refinement is not None:
        record |= spent_fields(run.refinement.controller.spent)
        record |= cap_fields(run.header.caps)
    elif run.header.taken is not None:
        record |= run.header.taken.fields()
    top, incumbent = run.frontier.top, run.best.incumbent
    if top is not None:
        record["frontier_key"] = format_q64(top.key)
        if incumbent is not None:
            record["gap"] = format_q64(clamp(top.key - incumbent))
    if run.policy.counts_leaves:
        record["materialised"] = run.leaf_nodes
    if run.header.truncate < run.root.rank and (tail or claim != NO_CERT):
        record["tail_lse"] = format_q64(
            tail_lse(run.language, run.header.truncate, run.root.states)
        )
    if stop in _STOP_GUARD:
        record["guards"] = [_STOP_GUARD[stop]]
    if seed is not None:
        record["seed"] = seed.seed.hex()
        record["opening_salt"] = seed.salt.hex()
    return record


def _plan(run: Run, leaf: Node, value: int) -> dict[str, Json]:
    refinement = run.refinement
    high = leaf.cost_low if refinement is None else refinement.costs(leaf)[1]
    return plan_record(leaf, value, high)


def _law(run: Run) -> str:
    """The law of the race, where each edge has one cost, whoever asks for it and when."""
    refinement, law = run.refinement, run.policy.law
    if law == "softmax" and refinement is not None and not refinement.same:
        return "run_wise_only"
    return law


def check_close(record: Record, line: int, run: Run, seed: Seed | None, findings: Findings) -> None:
    """The ``close`` record ends the run that was replayed.

    Args:
        seed: the one that the uniforms were checked with.

    Raises:
        Rejected: L608 the coverage; D201, D202 the tail.
    """
    stops = possible_stops(run)
    stop = text(record, "stop")
    if stop not in stops:
        findings.add(Code.STOP_RULE, line, "stop", " or ".join(stops), stop)
    if run.nodes:
        check_coverage(run)
    logged = {name: record[name] for name in ("seed", "opening_salt") if name in record}
    stated = "tail_lse" in record
    ending = stop if stop in stops else stops[0]
    expected = close_record(run, ending, seed if logged else None, stated)
    if seed is None and len(logged) == 2:
        expected |= logged  # not the last line, so the seed was not found; that is said apart
    compare({**expected, "stop": stop}, record, line, Code.CLOSE_FIELD, findings)

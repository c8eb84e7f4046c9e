"""The end of a run: the stop rule, that nothing of the root was lost, and the claim that follows.

Normative text: docs/spec/ledger.md, sections 3 to 5, 7.  Cost: one sum over the frontier.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcc_certs.codec import Json
from tcc_certs.errors import Code, require
from tcc_certs.fixed import format_q64
from tcc_certs.ledger import Record
from tcc_certs.ledger_schema import text
from tcc_certs.replay.findings import NO_CERT, RUN_WISE_EXACT, Findings
from tcc_certs.replay.records import compare, plan_record
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import Seed
from tcc_certs.replay.tree import share

_CERTIFIES = ("bound", "exhausted")
_ALWAYS_POSSIBLE = ("interrupted", "precision")
_STOP_GUARD: Mapping[str, str] = {"max_expansions": "CapExceeded", "max_seconds": "Timeout"}


def possible_stops(run: Run) -> tuple[str, ...]:
    """Why a run may have ended here; where the stop rule holds, that is the only reason."""
    top = run.top
    if top is None:
        return ("exhausted",)
    if run.bounded:
        return ("bound",)
    guard = None if top.state is None else run.ending_guard(top.state)
    stops = [*_ALWAYS_POSSIBLE]
    if top.state is not None and run.header.timed:
        stops.append("max_seconds")
    if guard == "CapExceeded":
        stops.append("max_expansions")
    elif guard == "CountFail":
        stops.append("guard")
    return tuple(stops)


def check_coverage(run: Run) -> None:
    """Frontier, popped leaves and brackets of expanded nodes make up the root, exactly.

    n(root) = sum of omega * n over the frontier and the popped leaves + sum over expanded nodes of
    omega * (n - the masses of all children), as integers in the units of the root's race count.

    Raises:
        Rejected: L608 they do not.
    """
    language = run.language
    covered = run.outside + sum(share(language, node) for _, _, node in run.frontier)
    root = language.race_count[language.automaton.root]
    require(root, covered, Code.COVERAGE, "coverage")


def close_record(run: Run, stop: str, seed: Seed | None) -> dict[str, Json]:
    """The ``close`` record that is due after a stop of kind `stop`."""
    certified = stop in _CERTIFIES and run.certified
    record: dict[str, Json] = {
        "kind": "close",
        "stop": stop,
        "claim_type": RUN_WISE_EXACT if certified else NO_CERT,
        "plans": [plan_record(leaf) for _, _, leaf in run.best],
        "expansions": run.expansions,
        "leaves": run.leaves,
        "law": "softmax",
    }
    top, incumbent = run.top, run.incumbent
    if top is not None:
        record["frontier_key"] = format_q64(top.published.key)
        if incumbent is not None:
            record["gap"] = format_q64(top.published.key - incumbent)
    if stop in _STOP_GUARD:
        record["guards"] = [_STOP_GUARD[stop]]
    elif stop == "guard":
        record["guards"] = ["CountFail"]
    if seed is not None:
        record["seed"] = seed.seed.hex()
        record["opening_salt"] = seed.salt.hex()
    return record


def check_close(record: Record, line: int, run: Run, seed: Seed | None, findings: Findings) -> None:
    """The ``close`` record ends the run that was replayed.

    Args:
        seed: the one that the uniforms were checked with.

    Raises:
        Rejected: L608 the coverage.
    """
    stops = possible_stops(run)
    stop = text(record, "stop")
    if stop not in stops:
        findings.add(Code.STOP_RULE, line, "stop", " or ".join(stops), stop)
    check_coverage(run)
    logged = {name: record[name] for name in ("seed", "opening_salt") if name in record}
    due = close_record(run, stop if stop in stops else stops[0], seed if logged else None)
    if seed is None and len(logged) == 2:
        due |= logged  # not the last line, so the seed was not found; that is said apart
    compare({**due, "stop": stop}, record, line, Code.CLOSE_FIELD, findings)

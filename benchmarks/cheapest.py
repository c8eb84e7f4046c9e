"""The hundred cheapest plans: from the stored cost to go, compared with OpenFst's shortest paths.

The artifact is opened without verification, and both sides start with the finished automaton.
OpenFst also has to compute distances, because an acceptor stores none.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pynini

from benchmarks.compile import UNCHECKED, core_bytes
from benchmarks.family import TWELVE
from benchmarks.measure import head, machine, ratio, row, side_by_side
from tcc_compiler.pipeline import compile_core
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.artifact.plans import cheapest_plans

PLANS = 100
NANO = 10**9


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("states", "ours", "OpenFst", "ours / OpenFst")
    for one in TWELVE[:3]:
        data = compile_core(core_bytes(one), UNCHECKED).artifact
        if data is None:
            raise ValueError("the compiler refuses the core")
        artifact = load(data, verify=False)
        fst = weighted(artifact)
        times, results = side_by_side(
            {
                "ours": lambda data=data: ours(load(data, verify=False)),
                "OpenFst": lambda fst=fst: theirs(fst),
            },
            5,
        )
        check_equal(results["ours"], results["OpenFst"])
        speed = ratio(times["OpenFst"], times["ours"])
        yield row(artifact.manifest.states, times["ours"], times["OpenFst"], speed)


def ours(artifact: Artifact) -> list[int]:
    """Return the costs of the cheapest plans; list the plans."""
    return [cost for cost, _ in cheapest_plans(artifact, PLANS)]


def theirs(fst: Any) -> Any:
    """Return an acceptor of the cheapest plans."""
    return pynini.shortestpath(fst, nshortest=PLANS, unique=True)


def weighted(artifact: Artifact) -> Any:
    """Return the automaton with its costs as an acceptor, whose first state is the start."""
    last = artifact.manifest.states - 1
    found = pynini.Fst()
    found.add_states(last + 1)
    found.set_start(0)
    for q in range(last + 1):
        if artifact.accepts(q):
            found.set_final(last - q)
        for call, target in artifact.edges(q):
            cost = artifact.cost_low[call] / NANO
            found.add_arc(last - q, pynini.Arc(call + 1, call + 1, cost, last - target))
    return found.arcsort("ilabel")


def check_equal(costs: list[int], fst: Any) -> None:
    """Check that both found equally many plans with equal costs, within single precision."""
    found = sorted(float(weight) for _, _, weight in fst.paths("byte", "byte").items())
    same = len(found) == len(costs) and all(
        abs(cost / NANO - other) < 1e-4 for cost, other in zip(costs, found, strict=True)
    )
    if not same:
        raise ValueError(f"costs differ: {costs[:5]} .. and {found[:5]} ..")

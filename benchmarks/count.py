"""Exact counts compared with graphillion: subsets of tools whose prices add up to at most a bound.

Each tool is used or skipped, in a fixed order.  So plans are subsets, and every state has two
edges.  graphillion represents the same subsets as a zero-suppressed decision diagram under one
linear constraint.  "Count" is the pass over the finished structure; "all" includes building it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from graphillion import GraphSet

from benchmarks.compile import minimal
from benchmarks.cores import core_of
from benchmarks.measure import head, machine, ratio, row, side_by_side
from tcc_certs.policy.core import Core
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Table, ranked
from tcc_compiler.counting import integer, weighted_sums
from tcc_compiler.options import Options
from tcc_compiler.resources import Guard

SIZES = ((40, 150), (100, 800), (120, 1300))


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("tools", "bound", "plans", "states", "count: ours", "graphillion", "ours / "
                    "graphillion", "all: ours", "graphillion", "ours / graphillion")  # fmt: skip
    for tools, bound in SIZES:
        core = knapsack(tools, bound)
        found, letters = minimal(core)
        made = ranked(found)
        sets = subsets(tools, bound)
        times, results = side_by_side(
            {
                "ours": lambda made=made, letters=letters: counted(made, letters),
                "theirs": lambda sets=sets: sets.len(),
                "all": lambda core=core: from_core(core),
                "their all": lambda tools=tools, bound=bound: subsets(tools, bound).len(),
            },
            5,
        )
        if len(set(results.values())) != 1:
            raise ValueError(f"answers differ: {results}")
        yield row(
            tools, bound, f"{float(results['ours']):.2e}", found.states,
            times["ours"], times["theirs"], ratio(times["theirs"], times["ours"]),
            times["all"], times["their all"], ratio(times["their all"], times["all"]),
        )  # fmt: skip


def price(tool: int) -> int:
    """Return the price of a tool."""
    return 1 + (tool * 7) % 23


def knapsack(tools: int, bound: int) -> Core:
    """Return the core of the grammar whose plans are those subsets."""
    lines = ['grammar subsets version "1"']
    lines += [f"tool t{at:03d} {{ price {price(at)} }}\ntool no{at:03d}" for at in range(tools)]
    lines.append("plan = " + " ".join(f"(t{at:03d} | no{at:03d})" for at in range(tools)))
    lines.append(f"limit price <= {bound}")
    return core_of("\n".join(lines) + "\n")


def counted(found: Table, letters: Letters) -> int:
    """Return the number of plans, by one pass over a ranked table with exact counts."""
    sizes = [len(group) for group in letters.calls]
    return integer(weighted_sums(found, sizes, 0, Guard(Options())), found.start)


def from_core(core: Core) -> int:
    """Return the number of plans of a core."""
    found, letters = minimal(core)
    return counted(ranked(found), letters)


def subsets(tools: int, bound: int) -> Any:
    """Return the same subsets in graphillion, as sets of edges of a star."""
    edges = [(0, at + 1) for at in range(tools)]
    GraphSet.set_universe(edges)
    weights = [(0, at + 1, price(at)) for at in range(tools)]
    return GraphSet.graphs(linear_constraints=[(weights, (0, bound))])

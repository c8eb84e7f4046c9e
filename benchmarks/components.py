"""Strongly connected components: the compiler's function compared with networkx.

The compiler needs them for cycles among rules, for recursion and for infinite languages.  The
graphs are random with three edges per node.  Both take turns and must find the same components.
Processor times in milliseconds, medians.  The time of the import is measured in a new process.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import networkx as nx

from benchmarks.measure import head, row
from tcc_compiler.automata.table import components

SIZES = (1_000, 20_000, 100_000)
RUNS = 5
_IMPORT = "import time; t = time.process_time(); import networkx; print(time.process_time() - t)"


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield from head("nodes", "edges", "compiler", "networkx", "making its graph", "importing it")
    command = [sys.executable, "-c", _IMPORT]
    told = [subprocess.run(command, check=True, capture_output=True).stdout for _ in range(RUNS)]
    imported = median(map(float, told))
    for size in SIZES:
        rng = random.Random(size)
        steps = [[rng.randrange(size) for _ in range(3)] for _ in range(size)]
        times = [compared(size, steps) for _ in range(RUNS)]
        columns = [median(column) for column in zip(*times, strict=True)]
        yield row(size, 3 * size, *(f"{1000 * seconds:.1f}" for seconds in (*columns, imported)))


def compared(size: int, steps: list[list[int]]) -> tuple[float, float, float]:
    """Return the seconds of the compiler, of networkx, and of building a networkx graph."""
    own, found = timed(lambda: components(size, steps.__getitem__))
    made, graph = timed(lambda: graph_of(size, steps))
    other, others = timed(lambda: list(nx.strongly_connected_components(graph)))
    if {frozenset(part) for part in found} != {frozenset(part) for part in others}:
        raise ValueError("the components differ")
    return own, other, made


def graph_of(size: int, steps: list[list[int]]) -> nx.DiGraph[int]:
    """Return the same graph as a networkx graph."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from((at, to) for at, targets in enumerate(steps) for to in targets)
    return graph


def timed(act: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of a call, and its result."""
    begin = time.process_time()
    found = act()
    return time.process_time() - begin, found

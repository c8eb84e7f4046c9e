"""Minimising a given acyclic automaton, compared with OpenFst.

The automaton is the intersection of the family's plan expression and limits, without merged states,
in the order in which OpenFst created them.  Ours starts from arrays in that order, and also has to
find the levels.  OpenFst starts from an acceptor; copying it is not part of the work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pynini

from benchmarks import openfst
from benchmarks.family import shape
from benchmarks.measure import head, machine, ratio, row, side_by_side
from tcc_compiler.automata.minimise import merged
from tcc_compiler.automata.table import Bools, Ints, Numbers, Table, layered
from tcc_compiler.options import Options
from tcc_compiler.resources import Guard

SHAPES = (
    shape(12, 7, 5, 18, 48, 2),
    shape(12, 14, 12, 36, 112, 3),
    shape(12, 16, 14, 38, 122, 3),
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given:
    """An automaton as arrays; the first state is the start."""

    accept: Bools
    degree: Ints
    letter: Numbers
    target: Numbers


def table() -> Iterator[str]:
    """Yield the rows of the table, in Markdown."""
    yield machine()
    yield ""
    yield from head("states", "edges", "minimal states", "ours", "OpenFst", "ours / OpenFst")
    for one in SHAPES:
        fst = openfst.product(one)
        given = as_arrays(fst)
        times, results = side_by_side(
            {"ours": lambda given=given: ours(given), "OpenFst": lambda fst=fst: theirs(fst)}, 5
        )
        states = results["ours"].states
        if results["OpenFst"].num_states() != states:
            raise ValueError(f"{states} states, and {results['OpenFst'].num_states()}")
        speed = ratio(times["OpenFst"], times["ours"])
        yield row(
            len(given.accept), len(given.letter), states, times["ours"], times["OpenFst"], speed
        )


def ours(given: Given) -> Table:
    """Return the minimal automaton by tcc's algorithm."""
    found = layered(given.accept, given.degree, given.letter, given.target)
    if found is None:
        raise ValueError("there is a cycle")
    return merged(found, Guard(Options()))


def theirs(fst: Any) -> Any:
    """Return the minimal automaton by OpenFst; its copy is only made when it is written to."""
    return fst.copy().minimize()


def as_arrays(fst: Any) -> Given:
    """Return the states and arcs of an acceptor as arrays."""
    zero = pynini.Weight.zero("tropical")
    states = range(fst.num_states())
    arcs = np.array(
        [(arc.ilabel, arc.nextstate) for state in states for arc in fst.arcs(state)],
        dtype=np.int32,
    )
    return Given(
        accept=np.array([fst.final(state) != zero for state in states]),
        degree=np.array([fst.num_arcs(state) for state in states]),
        letter=np.ascontiguousarray(arcs[:, 0]),
        target=np.ascontiguousarray(arcs[:, 1]),
    )

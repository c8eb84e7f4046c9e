"""The same automata by OpenFst, through pynini.

The program is written as an experienced user would write it, with unweighted acceptors over integer
labels.  The plan expression is built by concatenation, union and bounded closure, then epsilon
removal, determinisation and minimisation.  Each limit is a deterministic counter.  The counters are
intersected one at a time, the smallest first, and each result is minimised. :func:`written_order`
takes the limits in the order of the grammar.  :func:`at_once` intersects all of them and minimises
at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pynini

from benchmarks.family import Shape

Amount = Callable[[str], int]


def best_order(shape: Shape) -> Any:
    """Return the minimal acceptor, with the limits in the order uses, depth, price."""
    return _limited(shape, (*_uses(shape), _depth(shape), _price(shape)), between=True)


def written_order(shape: Shape) -> Any:
    """Return the minimal acceptor, with the limits in the order depth, price, uses."""
    return _limited(shape, (_depth(shape), _price(shape), *_uses(shape)), between=True)


def at_once(shape: Shape) -> Any:
    """Return the minimal acceptor, minimised only at the end."""
    return _limited(shape, (*_uses(shape), _depth(shape), _price(shape)), between=False)


def product(shape: Shape) -> Any:
    """Return the intersection of all limits, trimmed but not merged."""
    found = _plan(shape)
    for amount, bound in (*_uses(shape), _depth(shape), _price(shape)):
        found = pynini.intersect(found, _counter(shape, amount, bound))
        found.arcsort("ilabel")
    return found


def _limited(shape: Shape, limits: Sequence[tuple[Amount, int]], between: bool) -> Any:
    found = _plan(shape)
    for amount, bound in limits:
        found = pynini.intersect(found, _counter(shape, amount, bound))
        if between:
            found.minimize()
        found.arcsort("ilabel")
    return found if between else found.minimize()


def _plan(shape: Shape) -> Any:
    def one(*roles: int) -> Any:
        return _one_of(_labels(shape, shape.names(*roles)))

    gather = pynini.closure(one(0, 1, 2), 1, shape.gather)
    step = one(3) + one(4, 5).ques
    refine = one(6) + pynini.closure(one(7, 8), 0, 2)
    finish = pynini.union(one(9), one(10) + one(11))
    plan = gather + pynini.closure(step, 0, shape.steps)
    plan = plan + pynini.closure(refine, 0, shape.steps) + finish
    return pynini.determinize(plan.rmepsilon()).minimize().arcsort("ilabel")


def _labels(shape: Shape, names: Sequence[str]) -> list[int]:
    number = {name: at for at, name in enumerate(shape.prices(), 1)}
    return [number[name] for name in names]


def _one_of(labels: Sequence[int]) -> Any:
    found = pynini.Fst()
    first, last = found.add_state(), found.add_state()
    found.set_start(first)
    found.set_final(last)
    for label in labels:
        found.add_arc(first, pynini.Arc(label, label, 0, last))
    return found


def _counter(shape: Shape, amount: Amount, bound: int) -> Any:
    """Return an acceptor of all sequences of tools whose amounts add up to at most `bound`."""
    found = pynini.Fst()
    found.add_states(bound + 1)
    found.set_start(0)
    amounts = [(label, amount(name)) for label, name in enumerate(shape.prices(), 1)]
    for state in range(bound + 1):
        found.set_final(state)
        for label, due in amounts:
            if state + due <= bound:
                found.add_arc(state, pynini.Arc(label, label, 0, state + due))
    return found


def _depth(shape: Shape) -> tuple[Amount, int]:
    return lambda _: 1, shape.depth


def _price(shape: Shape) -> tuple[Amount, int]:
    return shape.prices().__getitem__, shape.price


def _uses(shape: Shape) -> list[tuple[Amount, int]]:
    return [(lambda name, of=tool: int(name == of), shape.uses) for tool in shape.limited()]


def plans(fst: Any) -> int:
    """Return the exact number of strings of an acyclic deterministic acceptor."""
    zero = pynini.Weight.zero("tropical")
    fst = fst.copy().topsort()
    found = [0] * fst.num_states()
    for state in reversed(range(len(found))):
        found[state] = int(fst.final(state) != zero) + sum(
            found[arc.nextstate] for arc in fst.arcs(state)
        )
    return found[fst.start()]

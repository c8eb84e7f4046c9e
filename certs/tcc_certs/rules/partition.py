"""C1, partition: the edges of a state are distinct calls, so its children part its plans.

Every plan below a state either stops there or goes on by one call, and by one edge alone; with
that, counts of children add up.  In a nondeterministic artifact the edges are distinct pairs of a
call and a target, and part the derivations.  Cost: one pass over the edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, islice, repeat
from operator import ge, gt
from typing import Any

from tcc_certs.automaton import Automaton
from tcc_certs.errors import Code, Rejected, require


def check_partition(automaton: Automaton, calls: int, nondeterministic: bool = False) -> None:
    """Rows are well formed; calls strictly increase inside a state and are below `calls`.

    Args:
        automaton: the states.
        calls: c.
        nondeterministic: whether the pairs of call and target increase, and not the calls alone.

    Raises:
        Rejected: C104 `edge_start`, C101 a call out of range, C102 the order, C103 `accept`.
    """
    _check_starts(automaton)
    labels = automaton.edge_call
    if max(labels, default=-1) >= calls:
        at = next(compress(count(), map(ge, labels, repeat(calls))))
        raise Rejected(Code.EDGE_RANGE, f"edge_call[{at}]", f"below {calls}", labels[at])
    if nondeterministic:
        _check_order(list(zip(labels, automaton.edge_target, strict=True)), automaton)
    else:
        _check_order(labels, automaton)
    if max(automaton.accept) > 1:
        at = next(compress(count(), map(gt, automaton.accept, repeat(1))))
        raise Rejected(Code.ACCEPT_VALUE, f"accept[{at}]", "0 or 1", automaton.accept[at])


def _check_order(keys: Sequence[Any], automaton: Automaton) -> None:
    # Where keys do not increase, another state must begin; both sequences rise.
    falls = compress(count(1), map(ge, keys, islice(keys, 1, None)))
    begins = iter(automaton.edge_start)
    at = next((at for at in falls if at not in begins), None)
    if at is not None:
        due = f"greater than {keys[at - 1]}"
        raise Rejected(Code.EDGE_ORDER, f"edge_call[{at}]", due, keys[at])


def _check_starts(automaton: Automaton) -> None:
    starts = automaton.edge_start
    require(0, starts[0], Code.EDGE_START, "edge_start[0]")
    at = next(compress(count(1), map(gt, starts, islice(starts, 1, None))), None)
    if at is not None:
        due = f"at least {starts[at - 1]}"
        raise Rejected(Code.EDGE_START, f"edge_start[{at}]", due, starts[at])
    last = automaton.states
    require(len(automaton.edge_call), starts[last], Code.EDGE_START, f"edge_start[{last}]")

"""The same automata by automata-lib: a regular expression, then one intersection for each limit.

Validation of intermediate automata is off, and state names are not kept.  Every intersection is
minimised, and the smallest limit comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from automata.base import config
from automata.fa.dfa import DFA
from automata.fa.nfa import NFA

from benchmarks.family import Shape

# One character for each tool, from a block without a meaning in regular expressions.
_FIRST = 0x4E00


def best_order(shape: Shape) -> Any:
    """Return the minimal partial DFA, with the limits in the order uses, depth, price."""
    config.should_validate_automata = False
    prices = shape.prices()
    symbol = {name: chr(_FIRST + at) for at, name in enumerate(prices)}
    plan = NFA.from_regex(_regex(shape, symbol), input_symbols=set(symbol.values()))
    found = DFA.from_nfa(plan)
    limits: list[tuple[Callable[[str], int], int]] = [
        (lambda name, of=tool: int(name == of), shape.uses) for tool in shape.limited()
    ]
    limits += [(lambda _: 1, shape.depth), (prices.__getitem__, shape.price)]
    for amount, bound in limits:
        found = found.intersection(_counter(symbol, amount, bound))
    return found


def _regex(shape: Shape, symbol: dict[str, str]) -> str:
    def one(*roles: int) -> str:
        return f"({'|'.join(symbol[name] for name in shape.names(*roles))})"

    step = f"({one(3)}{one(4, 5)}?){{0,{shape.steps}}}"
    refine = f"({one(6)}{one(7, 8)}{{0,2}}){{0,{shape.steps}}}"
    finish = f"({one(9)}|{one(10)}{one(11)})"
    return f"{one(0, 1, 2)}{{1,{shape.gather}}}{step}{refine}{finish}"


def _counter(symbol: dict[str, str], amount: Callable[[str], int], bound: int) -> Any:
    amounts = [(symbol[name], amount(name)) for name in symbol]
    return DFA(
        states=set(range(bound + 1)),
        input_symbols=set(symbol.values()),
        transitions={
            state: {char: state + due for char, due in amounts if state + due <= bound}
            for state in range(bound + 1)
        },
        initial_state=0,
        final_states=set(range(bound + 1)),
        allow_partial=True,
    )

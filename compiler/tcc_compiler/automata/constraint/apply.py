"""The statements, applied to the automaton one at a time; it is minimised after each.

First the statements on the order of calls.  Then the limits: depth, if there are cycles, since it
removes them all; then the other sums, the lowest bound of a kind first; cost last, since costs may
be negative.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Core, Limit
from tcc_compiler.automata.constraint.apply import at_least, at_most
from tcc_compiler.automata.constraint.limit_cyclic import (
    NegativeCycle,
    cyclic_at_least,
    cyclic_at_most,
    least_to_go,
)
from tcc_compiler.automata.constraint.statements import constraints, product
from tcc_compiler.automata.letters import Letters, letter_amounts
from tcc_compiler.automata.machine import Machine, trim
from tcc_compiler.automata.minimise import minimise
from tcc_compiler.automata.table import Table, as_machine
from tcc_compiler.automata.witness import infinite, word_to
from tcc_compiler.resources import CompileRefused, Guard

_ORDER = ("depth", "uses", "price", "latency", "epsilon", "sum", "cost")


def constrain(core: Core, letters: Letters, machine: Machine, guard: Guard) -> Machine | Table:
    """The smallest automaton of the words that meet every statement; a table if it is acyclic.

    Raises:
        Refused: TCC402 with the statement that leaves no plan; TCC401 for a cycle of negative
            cost; TCC403, TCC404.
    """
    automaton = _tidy(machine, "the plan expression", "plan", guard)
    for constraint in constraints(core, letters):
        if constraint.statement is None:
            guard.enter(f"`{constraint.text}`")
        else:
            guard.apply(constraint.statement, f"`{constraint.text}`", automaton.states)
        paired = product(
            as_machine(automaton) if isinstance(automaton, Table) else automaton, constraint, guard
        )
        automaton = _tidy(paired, f"`{constraint.text}`", guard.place, guard)
        guard.applied(automaton.states)
    return apply_limits(core, letters, automaton, guard)


def apply_limits(
    core: Core, letters: Letters, automaton: Machine | Table, guard: Guard
) -> Machine | Table:
    """The smallest automaton of the words of a trimmed automaton that meet every limit.

    Raises:
        Refused: as :func:`constrain`.
    """
    for limit in in_order(core.limits, cyclic=isinstance(automaton, Machine)):
        guard.apply(limit, f"`limit {limit.text}`", automaton.states)
        automaton = _limit(core, letters, automaton, limit, guard)
        guard.applied(automaton.states)
    return automaton


def in_order(limits: Sequence[Limit], cyclic: bool) -> list[Limit]:
    """Depth, uses, price, latency, epsilon, sum, cost; within a kind the lowest bound first.

    Without cycles depth is a sum like another, and seldom the lowest bound: it comes after uses.
    """
    order = _ORDER if cyclic else ("uses", "depth", *_ORDER[2:])
    return sorted(limits, key=lambda limit: (order.index(limit.kind), limit.value, limit.text))


def _limit(
    core: Core, letters: Letters, machine: Machine | Table, limit: Limit, guard: Guard
) -> Machine | Table:
    amounts = letter_amounts(core, letters, limit)
    place = f"limit {limit.text}"
    if isinstance(machine, Table):
        table = (at_least if limit.least else at_most)(machine, amounts, limit.value, guard)
        if table is None:
            raise _no_plan(f"`{place}`", place)
        return table
    if limit.least:
        limited = cyclic_at_least(machine, amounts, limit.value, guard)
        return _tidy(limited, f"`{place}`", place, guard)
    to_go = least_to_go(machine, amounts, guard)
    if isinstance(to_go, NegativeCycle):
        raise infinite(core, letters, word_to(machine, to_go.states[0]), to_go.letters)
    limited = cyclic_at_most(machine, amounts, limit.value, to_go, guard)
    return _tidy(limited, f"`{place}`", place, guard)


def _tidy(
    machine: Machine | None, statement: str, place: str | None, guard: Guard
) -> Machine | Table:
    trimmed = None if machine is None else trim(machine)
    if trimmed is None:
        raise _no_plan(statement, place)
    return minimise(trimmed, guard)


def _no_plan(statement: str, place: str | None) -> CompileRefused:
    return CompileRefused(
        "TCC402",
        f"there is no plan: {statement} leaves none",
        hint="take statements away until plans appear",
        place=place,
    )

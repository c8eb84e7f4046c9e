"""The statements, applied to the machine one at a time, made minimal in between.

First what looks at the order of calls; then, if there are cycles, depth, after which there are
none; then the other sums, the narrowest first; a limit on cost, whose costs may be negative, comes
last.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Core, Limit
from tcc_compiler.constraint.cyclic import at_least_met, at_most_met
from tcc_compiler.constraint.least import NegativeCycle, least_to_go
from tcc_compiler.constraint.limit import at_least, at_most
from tcc_compiler.constraint.product import product
from tcc_compiler.constraint.statements import rules
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters, letter_amounts
from tcc_compiler.machine import Machine
from tcc_compiler.minimise import minimise
from tcc_compiler.refusal import Refused
from tcc_compiler.table import Table, as_machine
from tcc_compiler.trim import trim
from tcc_compiler.witness import infinite, word_to

_ORDER = ("depth", "uses", "price", "latency", "epsilon", "cost")


def constrain(core: Core, letters: Letters, machine: Machine, guard: Guard) -> Machine | Table:
    """The smallest machine of the words that meet every statement; a table without cycles.

    Raises:
        Refused: TCC402 with the statement that leaves no plan; TCC401 for a cycle of negative
            cost; TCC403, TCC404.
    """
    found = _tidy(machine, "the plan expression", "plan", guard)
    for rule in rules(core, letters):
        if rule.statement is None:
            guard.enter(f"`{rule.text}`")
        else:
            guard.apply(rule.statement, f"`{rule.text}`", found.states)
        paired = product(as_machine(found) if isinstance(found, Table) else found, rule, guard)
        found = _tidy(paired, f"`{rule.text}`", guard.place, guard)
        guard.applied(found.states)
    for limit in in_order(core.limits, cyclic=isinstance(found, Machine)):
        guard.apply(limit, f"`limit {limit.text}`", found.states)
        found = _limit(core, letters, found, limit, guard)
        guard.applied(found.states)
    return found


def in_order(limits: Sequence[Limit], cyclic: bool) -> list[Limit]:
    """Depth, uses, price, latency, epsilon, cost; within a kind the narrowest first.

    Without cycles depth is a sum like another, and seldom the narrowest: it comes after uses.
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
        found = at_least_met(machine, amounts, limit.value, guard)
        return _tidy(found, f"`{place}`", place, guard)
    to_go = least_to_go(machine, amounts, guard)
    if isinstance(to_go, NegativeCycle):
        raise infinite(core, letters, word_to(machine, to_go.states[0]), to_go.letters)
    found = at_most_met(machine, amounts, limit.value, to_go, guard)
    return _tidy(found, f"`{place}`", place, guard)


def _tidy(
    machine: Machine | None, statement: str, place: str | None, guard: Guard
) -> Machine | Table:
    trimmed = None if machine is None else trim(machine)
    if trimmed is None:
        raise _no_plan(statement, place)
    return minimise(trimmed, guard)


def _no_plan(statement: str, place: str | None) -> Refused:
    return Refused(
        "TCC402",
        f"there is no plan: {statement} leaves none",
        hint="take statements away until plans appear",
        place=place,
    )

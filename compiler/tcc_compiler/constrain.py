"""The statements, applied to the machine one at a time, made minimal in between.

First what looks at the order of calls, then depth (after which there is no cycle), then the other
sums, the narrowest first; a limit on cost, whose costs may be negative, comes last.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.grammar import Core, Limit
from tcc_compiler.constraint.least import NegativeCycle, least_to_go
from tcc_compiler.constraint.limit import at_least, at_most
from tcc_compiler.constraint.product import product
from tcc_compiler.constraint.statements import rules
from tcc_compiler.guard import Guard
from tcc_compiler.letters import Letters, letter_amounts
from tcc_compiler.machine import Machine
from tcc_compiler.minimise import minimise
from tcc_compiler.refusal import Refused
from tcc_compiler.trim import trim
from tcc_compiler.witness import infinite, word_to

_ORDER = ("depth", "uses", "price", "latency", "epsilon", "cost")


def constrain(core: Core, letters: Letters, machine: Machine, guard: Guard) -> Machine:
    """The minimal machine of the words that meet every statement.

    Raises:
        Refused: TCC402 with the statement that leaves no plan; TCC401 for a cycle of negative
            cost; TCC403, TCC404.
    """
    machine = _tidy(machine, "the plan expression", "plan", guard)
    for rule in rules(core, letters):
        if rule.statement is None:
            guard.enter(f"`{rule.text}`")
        else:
            guard.apply(rule.statement, f"`{rule.text}`", machine)
        machine = _tidy(product(machine, rule, guard), f"`{rule.text}`", guard.place, guard)
        guard.applied(machine)
    for limit in in_order(core.limits):
        guard.apply(limit, f"`limit {limit.text}`", machine)
        machine = _limit(core, letters, machine, limit, guard)
        guard.applied(machine)
    return machine


def in_order(limits: Sequence[Limit]) -> list[Limit]:
    """Depth, uses, price, latency, epsilon, cost; within a kind the narrowest first."""
    return sorted(limits, key=lambda limit: (_ORDER.index(limit.kind), limit.value, limit.text))


def _limit(core: Core, letters: Letters, machine: Machine, limit: Limit, guard: Guard) -> Machine:
    amounts = letter_amounts(core, letters, limit)
    place = f"limit {limit.text}"
    if limit.least:
        found = at_least(machine, amounts, limit.value, guard)
        return _tidy(found, f"`{place}`", place, guard)
    to_go = least_to_go(machine, amounts, guard)
    if isinstance(to_go, NegativeCycle):
        raise infinite(core, letters, word_to(machine, to_go.states[0]), to_go.letters)
    found = at_most(machine, amounts, limit.value, to_go, guard)
    return _tidy(found, f"`{place}`", place, guard)


def _tidy(machine: Machine | None, statement: str, place: str | None, guard: Guard) -> Machine:
    # A sorted machine was merged as it was made: it has no dead state.
    if machine is not None and machine.sorted:
        return machine
    trimmed = None if machine is None else trim(machine)
    if trimmed is None:
        raise Refused(
            "TCC402",
            f"there is no plan: {statement} leaves none",
            hint="take statements away until plans appear",
            place=place,
        )
    return minimise(trimmed, guard)

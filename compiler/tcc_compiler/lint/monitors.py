"""What a gate holds of a statement, and whether it can ever come to refuse a call.

Specification: docs/lint.md.  Cost: a pass over the edges for each monitor.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tcc_certs.core.model import Monitor, OrderMonitor, Selection, SumMonitor, UsesMonitor
from tcc_certs.values.kinds import NumberType
from tcc_compiler.automata.best_to_go import best_to_go, exact_array
from tcc_compiler.automata.table import Table
from tcc_compiler.lint.plans import Plans


def selected(plans: Plans, chosen: Selection) -> list[int]:
    """The calls of a selection."""
    where = dict(chosen.where)
    return [
        number
        for number, call in enumerate(plans.core.calls)
        if call.tool == chosen.tool
        and all(call.values[place] in values for place, values in where.items())
    ]


def most_used(plans: Plans, table: Table, chosen: Selection) -> int:
    """The most calls of a selection in a plan.

    A letter may have calls of the selection and others: where it may stand, one of the first may.
    """
    weights = [0] * len(plans.letters.calls)
    for call in selected(plans, chosen):
        weights[plans.letters.letter[call]] = 1
    weight = exact_array(weights, len(table.levels) + 1).take(table.letter)
    return int(best_to_go(table, weight, np.maximum, plans.guard())[table.start])


def never_refuses(plans: Plans, table: Table, monitor: Monitor) -> str | None:
    """Why a monitor refuses no call of any session, in words; None where it may refuse one."""
    match monitor:
        case OrderMonitor(kind=kind, first=first, second=second):
            for side in (second,) if kind == "require" else (first, second):
                if not most_used(plans, table, side):
                    return f"no plan calls `{plans.core.tools[side.tool].name}` so"
        case UsesMonitor(calls=calls, value=value):
            most = most_used(plans, table, calls)
            if most <= value:
                return f"no plan has more than {most} such calls"
        case SumMonitor():
            return _sum_never_reached(plans, table, monitor)
    return None


def _sum_never_reached(plans: Plans, table: Table, monitor: SumMonitor) -> str | None:
    tool = plans.core.tools[monitor.tool]
    most = most_used(plans, table, Selection(tool=monitor.tool))
    if most == 0:
        return f"no plan calls `{tool.name}`"
    kind = next(item.type for item in tool.opened if item.name == monitor.parameter)
    if not isinstance(kind, NumberType) or kind.high is None:
        return None
    if most * Fraction(kind.high) > Fraction(monitor.value):
        return None
    return f"no plan has more than {most} such calls, of at most {kind.high} each"

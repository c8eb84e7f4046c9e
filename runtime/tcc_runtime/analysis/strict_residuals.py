"""The residuals of a core with strict tools, without what no plan of its largest part goes through.

A call of a strict tool stays only where a plan goes on after each of its answers
(docs/spec/core.md, section 5); what then leads to no plan is taken out, until nothing changes.
Cost: all residuals of the core, within the budget, for each round of taking out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tcc_certs.corecheck.letters import WorkBudget
from tcc_certs.corecheck.residuals import Residuals

_Row: TypeAlias = "dict[int, int]"


def strict_edges(residuals: Residuals, budget: WorkBudget) -> Sequence[Mapping[int, int] | None]:
    """By residual, letters and residuals after them; None of one that leads to no plan.

    Raises:
        Rejected: D201 it takes too much work.
    """
    rows = _explored(residuals, budget)
    while True:
        alive = _alive(residuals, rows, budget)
        changed = False
        for row in rows:
            budget.spend(1 + len(row))
            gone = [letter for letter in row if not _stays(residuals, row, letter, alive)]
            changed = changed or bool(gone)
            for letter in gone:
                del row[letter]
        if not changed:
            return [row if at in alive else None for at, row in enumerate(rows)]


def _explored(residuals: Residuals, budget: WorkBudget) -> list[_Row]:
    rows: list[_Row] = []
    met = 0 if residuals.first is None else 1
    while len(rows) < met:
        left = residuals.left[len(rows)]
        after = [(letter, table[left]) for letter, table in residuals.moves(len(rows))]
        row = {letter: to for letter, to in after if to is not None}
        budget.spend(1 + len(after))
        met = max([met, *(to + 1 for to in row.values())])
        rows.append(row)
    return rows


def _alive(residuals: Residuals, rows: Sequence[_Row], budget: WorkBudget) -> set[int]:
    before: list[list[int]] = [[] for _ in rows]
    for at, row in enumerate(rows):
        budget.spend(1 + len(row))
        for target in row.values():
            before[target].append(at)
    todo = [at for at in range(len(rows)) if residuals.stops[at]]
    alive = set(todo)
    while todo:
        for at in before[todo.pop()]:
            if at not in alive:
                alive.add(at)
                todo.append(at)
    return alive


def _stays(residuals: Residuals, row: _Row, letter: int, alive: set[int]) -> bool:
    if row[letter] not in alive:
        return False
    sisters = residuals.alphabet.letters[letter].sisters
    if sisters is None:
        return True
    return bool(sisters) and all(row.get(sister, -1) in alive for sister in sisters)

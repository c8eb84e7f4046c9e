"""Random cores, and the artifacts of them with some statements left to the run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.places import StatementPart, parts_of
from tests.differential.tree_oracle import Tree
from tests.oracle.cores import random_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.runtime.graphs import Row, named_rows, plan_rows

LONGEST = 4


@dataclass(frozen=True, kw_only=True)
class Relaxed:
    """A core, the automaton of a part of its statements, and its plans.

    Attributes:
        named: the numbers of the statements that the automaton omits.
        plans: of the core, as texts.
        wider: of the automaton.
    """

    data: bytes
    core: Core
    rows: list[Row]
    named: list[int]
    plans: frozenset[tuple[str, ...]]
    wider: frozenset[tuple[str, ...]]

    def tree(self, **options) -> Tree:
        """As the oracle reads it."""
        rows = named_rows(self.data, self.rows)
        # The calls of the artifact alone: the costliest of them decides the fraction bits.
        used = {call for _, edges in rows for call, _ in edges}
        return Tree(
            rows=rows,
            cost={call.text: call.cost_low for call in self.core.calls if call.text in used},
            name=self.core.name,
            version=self.core.version,
            limits=self.core.limit_texts,
            allowed=self.plans.__contains__,
            **options,
        )


def random_relaxed(
    rng: random.Random,
    most: int = 120,
    draw: Callable[[random.Random, int], tuple[bytes, Core]] = random_core,
) -> Relaxed:
    """A core with at least one statement that is left out; it may have no plan itself.

    Args:
        draw: a random core whose plans have at most so many calls.
    """
    while True:
        data, core = draw(rng, LONGEST)
        named = [part.number for part in parts_of(core) if _may_go(core, part, rng)]
        if not named:
            continue
        wider = plans(without(core, named), LONGEST)
        if not 1 <= len(wider) <= most:
            continue
        return Relaxed(
            data=data,
            core=core,
            rows=plan_rows(wider),
            named=named,
            plans=frozenset(_texts(core, plan) for plan in plans(core, LONGEST)),
            wider=frozenset(_texts(core, plan) for plan in wider),
        )


def _may_go(core: Core, part: StatementPart, rng: random.Random) -> bool:
    statement = core.statements[part.number]
    if part.place == "gate" or (isinstance(statement, Total) and statement.what == "depth"):
        return False  # the depth makes the language finite
    return rng.random() < 0.8


def _texts(core: Core, plan) -> tuple[str, ...]:
    return tuple(core.calls[index].text for index in plan)

"""Races over any rung, with uniforms that a test gives; the engines that a run may be forced to."""

from __future__ import annotations

from collections.abc import Callable

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.item import ID, LEFT, ORDER, VIEW, Item, calls_of
from tcc_runtime.numbers.ladder import Numbers, rung_of
from tcc_runtime.numbers.rung import PROVEN, Precision
from tcc_runtime.races.coupled import Anchored, Coupled
from tcc_runtime.races.interface import Race, RunHashers
from tcc_runtime.run import Engine
from tcc_runtime.states import Tables

# Every rung, and every rung with errors so wide that what it decides goes to the next.
WIDE = Precision(margin=2.0**-12, error=1 << 46)
OPEN = Precision(error=1 << 47, first=98)
RECORDED = {
    "fixed": Engine(numbers="fixed"),
    "fixed, half of it open": Engine(numbers="fixed", precision=WIDE),
    "fixed, all of it open": Engine(numbers="fixed", precision=OPEN),
    "mpfr": Engine(numbers="mpfr"),
    "mpfr, from 98 bits": Engine(numbers="mpfr", precision=OPEN),
}
UNRECORDED = {
    "floats": Engine(numbers="floats"),
    "floats, wide": Engine(numbers="floats", precision=WIDE),
    "floats, all of them open": Engine(numbers="floats", precision=Precision(margin=1.0)),
    "floats, all open all along": Engine(
        numbers="floats", precision=Precision(margin=1.0, error=1 << 47)
    ),
}
MPFR = RECORDED["mpfr"]


class Given(RunHashers):
    """Words that a test gives by purpose and id."""

    def __init__(self, draw: Callable[[int, bytes], int]) -> None:
        super().__init__(bytes(32))
        self.word = lambda named: draw(named[0], named[1:])


def race_over(
    artifact: Artifact,
    uniforms: RunHashers,
    kind: type[Coupled] = Coupled,
    numbers: Numbers = "mpfr",
    precision: Precision = PROVEN,
    recipe: str = "r2",
    inflate: str = "1",
    tables: Tables | None = None,
) -> Race:
    """A race with what a run would give it."""
    tables = tables or Tables(artifact, recipe, inflate)
    told = tables, rung_of(numbers, tables, precision), uniforms, None
    return kind(*told, None) if issubclass(kind, Anchored) else kind(*told)


def all_leaves(race: Race) -> list[Item]:
    """Every leaf of a race, settled, best first."""
    leaves, todo = [], [race.root()]
    while todo:
        item = todo.pop()
        if item[VIEW] is None:
            leaves.append(race.settle(item))
            race.leaf_word(leaves[-1])
            continue
        step = race.expand(item) if item[LEFT] is None else race.draw(item)
        todo += [*step[3], *([] if step[4] is None else [step[4]])]
    return sorted(leaves, key=lambda leaf: (leaf[ORDER], leaf[ID]))


def prefix(item: Item) -> tuple[str, ...]:
    """The calls that lead to an item."""
    return tuple(call.text for call in calls_of(item))

"""Choice of the rung that a run begins with, and construction of the ladder above it.

Text: docs/spec/race.md, sections 7, 21 and 22.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, TypeAlias

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.item import Item
from tcc_runtime.numbers import fixed, floats, mpfr
from tcc_runtime.numbers.reals import clamped
from tcc_runtime.numbers.rung import PROVEN, Finer, Path, Precision, Rung
from tcc_runtime.states import Tables

Numbers: TypeAlias = Literal["floats", "fixed", "mpfr"]
LONGEST: Final = 4096  # calls of a plan, for the error analyses
LARGEST: Final = 1 << 48  # greatest beta * cost: below it no published number can be clamped


def begin_with(
    artifact: Artifact, wanted: Numbers | None, *, recorded: bool, ranged: bool
) -> Numbers:
    """Return the rung that a run begins with: `wanted`, or else the fastest rung that the run
    allows.

    Args:
        recorded: True if every key is published.
        ranged: True if costs can rise during the run.

    Raises:
        ValueError: the run does not allow `wanted`.
    """
    allowed: list[Numbers] = ["mpfr"]
    if fits(artifact):
        allowed.append("fixed")
        # An enclosure would miss a cost that rises by less than the enclosure's width.
        if not recorded and not ranged:
            allowed.append("floats")
    if wanted is None:
        return allowed[-1]
    if wanted not in allowed:
        raise ValueError(f"this run cannot be computed with {wanted}")
    return wanted


def fits(artifact: Artifact) -> bool:
    """Return whether the error analyses of floats and of fixed-size integers hold for an artifact.

    They hold if a kernel accepted the artifact and no published number can be clamped.
    """
    longest = artifact.rank(artifact.root)
    return artifact.verified and longest <= LONGEST and _most_cost(artifact) <= LARGEST


def _most_cost(artifact: Artifact) -> float:
    """Return an upper bound of beta times the cost of a prefix, capped at twice `LARGEST`."""
    found = artifact.kept.get("most_cost")
    if isinstance(found, float):
        return found
    beta, places = artifact.manifest.beta
    most = max(map(abs, artifact.cost_low), default=0)
    if not artifact.fixed_costs:
        most = max(most, *map(abs, artifact.cost_high))
    size: int = beta * most * (artifact.rank(artifact.root) + 1) // 10 ** (places + 9)
    found = artifact.kept["most_cost"] = float(min(size + 1, 2 * LARGEST))
    return found


def heuristic_of(
    tables: Tables,
    tau: tuple[int, int],
    precision: Precision = PROVEN,
    *,
    fresh: bool = False,
    cost_of: Callable[[Item], int] | None = None,
) -> Callable[[Item], int]:
    """Return a function that computes the PaM value of a leaf from its own arrival: Q64.64,
    clamped.

    Args:
        tau: above 0, exact decimal (numerator, places).
        fresh, cost_of: see :func:`rung_of`.

    Raises:
        Undecided: raised by the function, if no precision decides.
    """
    walks: list[Callable[[], Finer]] = []
    bits = precision.first
    while bits < 2 * precision.last:
        told = tau[0], 10 ** tau[1], tables, min(bits, precision.last)
        walks.append(partial(mpfr.HeuristicWalk, *told))
        bits *= 2
    path = Path(walks, fresh, cost_of)
    return lambda leaf: clamped(path.published(leaf)[0])


def rung_of(
    numbers: Numbers,
    tables: Tables,
    precision: Precision = PROVEN,
    *,
    fresh: bool = False,
    cost_of: Callable[[Item], int] | None = None,
) -> Rung:
    """Return a rung for one run.

    Args:
        numbers: name of the rung, which :func:`begin_with` allows.
        fresh: True if each arrival is drawn independently, as in the literal race.
        cost_of: returns the cost of an item's prefix; only for costs that can rise during the run.
    """
    above: list[Callable[[], Finer]] = []
    path = Path(above, fresh, cost_of)
    bits = precision.first
    if numbers == "mpfr":
        rung: Rung = mpfr.Mpfr(tables, bits, path)
        bits *= 2
    elif numbers == "fixed":
        rung = fixed.Fixed(tables, precision.error, path)
    else:
        rung = floats.Floats(tables, _most_cost(tables.artifact), precision.margin, path)
        above.append(partial(fixed.FixedWalk, tables, precision.error))
    while bits < 2 * precision.last:
        above.append(partial(mpfr.MpfrWalk, tables, min(bits, precision.last)))
        bits *= 2
    return rung

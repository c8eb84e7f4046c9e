"""Letters: classes of calls that a core does not distinguish, and the sums that it bounds.

A meter is a sum with a bound, for example the number of calls so far (the depth), which is always
the first meter.  Two calls have the same letter if they are in the same patterns, have the same
class in every table, add the same to every meter, and have the same signature.  For calls of strict
tools the sisters of both also have the same letters.

Cost: linear in the sizes of patterns and class runs, and in letters times meters.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected
from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Total
from tcc_certs.policy.places import Runs, StatementPart
from tcc_certs.policy.plans import members

# Stored values also cost units of work, so the bound on work bounds the memory.
KEPT = 16  # units for a stored edge
ENTRY = 4  # units for a stored entry of a table of arrivals


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A class of calls that the core does not distinguish.

    Attributes:
        calls: the indices of the calls in the core.
        group: the number of the letters' group; letters of one group are in the same patterns.
        weights: the amount that a call adds to each meter.
        classes: pairs of a table's index and the class in this table; only classes other than 0.
        takes, gives: the signature of the calls' tools.
        sisters: the letters of a strict call and its sisters, increasing.  It is empty if the core
            lacks a sister, and None for calls of other tools.
    """

    calls: tuple[int, ...]
    group: int
    weights: tuple[int, ...]
    classes: tuple[tuple[int, int], ...]
    takes: str | None
    gives: str | None
    sisters: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet:
    """The letters and meters of a core.

    Attributes:
        letters: the letters by number.
        letter_of: for each call of the core the number of its letter.
        by_group: for each group the numbers of its letters.
        groups: for each pattern the groups that are in it.
        tables: the statement parts that have a table.
        bounds: the bound of each meter; None: no bound.  The first meter is the depth.
        strict: whether some tool is strict.
    """

    letters: tuple[Letter, ...]
    letter_of: Sequence[int]
    by_group: tuple[tuple[int, ...], ...]
    groups: tuple[frozenset[int], ...]
    tables: tuple[StatementPart, ...]
    bounds: tuple[int | None, ...]
    strict: bool


def alphabet_of(core: Core, parts: Sequence[StatementPart], budget: WorkBudget) -> Alphabet:
    """Return the letters and the meters of a core.

    Args:
        parts: the statements that its plans have to satisfy.

    Raises:
        Rejected: D201 the work budget is used up.
    """
    size = len(core.calls)
    budget.spend(size + sum(high - low for ranges in core.patterns for low, high in ranges))
    tables = tuple([part for part in parts if part.table is not None])
    depth, meters = _meters(core, parts)
    group_of = _Partition(size)
    for pattern in core.patterns:
        group_of.split((call, True) for call in members(pattern))
    groups = group_of.numbered()
    letter_of = _Partition(size)
    letter_of.split(enumerate(groups))
    if core.start is not None:
        ends = [(core.tools[call.tool].takes, core.tools[call.tool].gives) for call in core.calls]
        letter_of.split(enumerate(ends))
    runs = [part.class_of for part in tables] + [amounts for amounts, _ in meters]
    for one in runs:
        budget.spend(sum(run.high - run.low for run in one.runs))
        letter_of.split((call, run.number) for run in one.runs for call in range(run.low, run.high))
    parted, sisters = with_sisters(core, letter_of.numbered())
    calls: list[list[int]] = [[] for _ in range(max(parted, default=-1) + 1)]
    for call, number in enumerate(parted):
        calls[number].append(call)
    letters = _letters(core, calls, groups, tables, [amounts for amounts, _ in meters], sisters)
    by_group: list[list[int]] = [[] for _ in range(max(groups, default=-1) + 1)]
    for number, letter in enumerate(letters):
        by_group[letter.group].append(number)
    budget.spend(len(letters) * (1 + len(meters)))
    return Alphabet(
        letters=letters,
        letter_of=parted,
        by_group=tuple(map(tuple, by_group)),
        groups=tuple(
            frozenset(groups[call] for call in members(pattern)) for pattern in core.patterns
        ),
        tables=tables,
        bounds=(depth, *[bound for _, bound in meters]),
        strict=bool(sisters),
    )


def _meters(
    core: Core, parts: Sequence[StatementPart]
) -> tuple[int | None, list[tuple[Runs, int]]]:
    """The least bound on the depth, and each other sum with its least bound."""
    depths = []
    least: dict[tuple[object, ...], tuple[Runs, int]] = {}
    for part in parts:
        if part.total is None:
            continue
        statement = core.statements[part.number]
        if isinstance(statement, Total) and statement.what == "depth":
            depths.append(part.total.bound)
            continue
        amounts, bound = part.total.amounts, part.total.bound
        _, known = least.get(amounts.runs, (amounts, bound))
        least[amounts.runs] = amounts, min(known, bound)
    return min(depths, default=None), list(least.values())


class _Partition:
    """A partition of the calls that is made finer step by step."""

    def __init__(self, calls: int) -> None:
        self._classes = [0] * calls
        self._fresh = calls

    def split(self, marks: Iterable[tuple[int, Hashable]]) -> None:
        """Split each class by the marks of its calls; calls without a mark keep their class."""
        known: dict[tuple[int, Hashable], int] = {}
        for call, mark in marks:
            key = (self._classes[call], mark)
            self._classes[call] = known.setdefault(key, self._fresh + len(known))
        self._fresh += len(known)

    def numbered(self) -> list[int]:
        """The class of each call; classes are numbered in the order of their first calls."""
        number: dict[int, int] = {}
        return [number.setdefault(name, len(number)) for name in self._classes]


def _letters(
    core: Core,
    calls: Sequence[Sequence[int]],
    groups: Sequence[int],
    tables: Sequence[StatementPart],
    meters: Sequence[Runs],
    sisters: Mapping[int, tuple[int, ...]],
) -> tuple[Letter, ...]:
    first = {alike[0]: letter for letter, alike in enumerate(calls)}
    classes: list[list[tuple[int, int]]] = [[] for _ in calls]
    weights = [[1] + [0] * len(meters) for _ in calls]
    for place, part in enumerate(tables):
        for low, high, number in part.class_of.runs:
            for call in range(low, high):
                if call in first:
                    classes[first[call]].append((place, number))
    for place, amounts in enumerate(meters):
        for low, high, amount in amounts.runs:
            for call in range(low, high):
                if call in first:
                    weights[first[call]][place + 1] = amount
    return tuple(
        Letter(
            calls=tuple(alike),
            group=groups[alike[0]],
            weights=tuple(weights[number]),
            classes=tuple(classes[number]),
            takes=core.tools[core.calls[alike[0]].tool].takes,
            gives=core.tools[core.calls[alike[0]].tool].gives,
            sisters=sisters.get(number),
        )
        for number, alike in enumerate(calls)
    )


def with_sisters(
    core: Core, letter_of: Sequence[int]
) -> tuple[Sequence[int], Mapping[int, tuple[int, ...]]]:
    """Split letters so that strict calls of one letter have sisters with the same letters.

    Args:
        letter_of: the letter of each call when sisters are ignored.

    Returns:
        The new letter of each call.  Also, for each letter of strict calls, the letters of these
        calls and their sisters, increasing; empty if the core lacks a sister.
    """
    if not any(tool.strict for tool in core.tools):
        return letter_of, {}
    from tcc_certs.strict import strict_groups  # imported here because other cores do not need it

    answers = strict_groups(core)
    calls: list[list[int]] = [[] for _ in answers.size]
    for call, group in enumerate(answers.group):
        if group >= 0:
            calls[group].append(call)
    whole = [len(found) == size for found, size in zip(calls, answers.size, strict=True)]
    kinds: dict[tuple[bool, frozenset[int]], int] = {}
    kind = [
        kinds.setdefault((complete, frozenset([letter_of[call] for call in found])), len(kinds))
        for complete, found in zip(whole, calls, strict=True)
    ]
    number: dict[tuple[int, int], int] = {}
    parted = []
    for letter, group in zip(letter_of, answers.group, strict=True):
        key = (letter, kind[group] if group >= 0 else -1)
        parted.append(number.setdefault(key, len(number)))
    sisters: dict[int, tuple[int, ...]] = {}
    for group, found in enumerate(calls):
        letters = {parted[call] for call in found}
        sisters.update(dict.fromkeys(letters, tuple(sorted(letters)) if whole[group] else ()))
    return parted, sisters


class WorkBudget:
    """A bound on the work of a check, in units such as steps of residuals and parts of terms.

    A residual may have more derivatives than the artifact has states, so the search counts its
    work.
    """

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, units: int) -> None:
        """Subtract `units` from the units that are left.

        Raises:
            Rejected: D201 more than the limit was spent.
        """
        self._left -= units
        if self._left < 0:
            raise Rejected(Code.LIMIT, "core", f"a check within {self._limit} steps", "more")

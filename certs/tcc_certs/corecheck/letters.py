"""Letters: classes of calls that nothing in a core tells apart, and the meters of its limits.

Every limit is a meter, the sum over a plan of one weight a call, at most a bound: ``depth`` weighs
every call 1, ``uses(P) >= n`` weighs calls of P -1 against -n.  Two calls are one letter when they
are in the same patterns, weigh the same on every meter and have the same signature; calls of strict
tools when moreover their sisters are alike, letter by letter: then a letter of a strict tool has
its sisters as letters, the same for each of its calls.
Cost: linear in the sizes of the patterns and in calls times limits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.core.derived import summed_parameter
from tcc_certs.core.model import Call, CallSet, Core, Limit, Tool, members
from tcc_certs.errors import Code, Rejected

# What is kept counts for more than one unit: what bounds the time bounds the memory.
KEPT = 16  # an edge, with what goes with it
ENTRY = 4  # what a step leads to, in each table that has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """Calls that the core treats alike.

    Attributes:
        calls: their indices in the core.
        group: letters of one group are in the same patterns.
        weights: one for each meter.
        takes, gives: the signature of their tools.
        sisters: of a strict call the letters of all answers that it may get, its own among them,
            increasing; none where the core has not all of these calls.  None of another call.
    """

    calls: tuple[int, ...]
    group: int
    weights: tuple[int, ...]
    takes: str | None
    gives: str | None
    sisters: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alphabet:
    """The letters of a core.

    Attributes:
        letters: by number.
        letter_of: for each call of the core its letter.
        by_group: for each group the numbers of its letters.
        groups: for each pattern the groups in it.
        bounds: for each meter the most that its sum may be; None is without end.  The first meter
            is the depth.
        strict: whether a tool is strict.
    """

    letters: tuple[Letter, ...]
    letter_of: Sequence[int]
    by_group: tuple[tuple[int, ...], ...]
    groups: tuple[frozenset[int], ...]
    bounds: tuple[int | None, ...]
    strict: bool


def alphabet_of(core: Core, budget: WorkBudget) -> Alphabet:
    """The letters and the meters of `core`.

    Raises:
        Rejected: D201 where the patterns are too large together.
    """
    sets = [*core.patterns, *(limit.calls for limit in core.limits if limit.calls is not None)]
    budget.spend(sum(high - low for ranges in sets for low, high in ranges))
    limits = [limit for limit in core.limits if limit.kind != "depth"]
    budget.spend(len(core.calls) * (len(limits) + 1))
    depths = [limit.value for limit in core.limits if limit.kind == "depth"]
    weights = [
        [1] * len(core.calls),
        *(_weights(limit, core.tools, core.calls) for limit in limits),
    ]
    inside = _memberships(core.patterns, len(core.calls))
    group_of = _numbered(inside)
    keys = []
    for index, call in enumerate(core.calls):
        tool = core.tools[call.tool]
        amounts = tuple(weight[index] for weight in weights)
        keys.append((group_of[index], amounts, tool.takes, tool.gives))
    letter_of, sisters = with_sisters(core, _numbered(keys))
    letters = _letters(letter_of, keys, sisters)
    by_group: list[list[int]] = [[] for _ in range(max(group_of, default=-1) + 1)]
    for number, letter in enumerate(letters):
        by_group[letter.group].append(number)
    return Alphabet(
        letters=letters,
        letter_of=letter_of,
        by_group=tuple(map(tuple, by_group)),
        groups=tuple(
            frozenset(group_of[call] for call in members(pattern)) for pattern in core.patterns
        ),
        bounds=(min(depths, default=None), *map(_bound, limits)),
        strict=bool(sisters),
    )


def _memberships(patterns: Sequence[CallSet], calls: int) -> list[tuple[int, ...]]:
    """For each call the patterns that it is in."""
    inside: list[list[int]] = [[] for _ in range(calls)]
    for number, pattern in enumerate(patterns):
        for call in members(pattern):
            inside[call].append(number)
    return [tuple(numbers) for numbers in inside]


def _numbered(keys: Sequence[object]) -> list[int]:
    """Equal keys get equal numbers, in order of first appearance."""
    number: dict[object, int] = {}
    return [number.setdefault(key, len(number)) for key in keys]


def _letters(
    letter_of: Sequence[int],
    keys: Sequence[tuple[int, tuple[int, ...], str | None, str | None]],
    sisters: Mapping[int, tuple[int, ...]],
) -> tuple[Letter, ...]:
    calls: list[list[int]] = [[] for _ in range(max(letter_of, default=-1) + 1)]
    for call, letter in enumerate(letter_of):
        calls[letter].append(call)
    return tuple(
        Letter(
            calls=tuple(alike),
            group=keys[alike[0]][0],
            weights=keys[alike[0]][1],
            takes=keys[alike[0]][2],
            gives=keys[alike[0]][3],
            sisters=sisters.get(number),
        )
        for number, alike in enumerate(calls)
    )


def _weights(limit: Limit, tools: Sequence[Tool], calls: Sequence[Call]) -> list[int]:
    """What each call weighs on the meter of a limit."""
    if limit.calls is not None:
        weights = [0] * len(calls)
        for index in members(limit.calls):
            weights[index] = -1 if limit.least else 1
        return weights
    if limit.parameter is not None:
        return summed_parameter(tools, calls, limit.parameter)
    match limit.kind:
        case "price":
            return [call.price for call in calls]
        case "latency":
            return [call.latency for call in calls]
        case "epsilon":
            return [call.epsilon for call in calls]
        case _:
            return [call.cost_high for call in calls]


def _bound(limit: Limit) -> int:
    return -limit.value if limit.least else limit.value


def with_sisters(
    core: Core, letter_of: Sequence[int]
) -> tuple[Sequence[int], Mapping[int, tuple[int, ...]]]:
    """Letters parted by their sisters.

    Args:
        letter_of: for each call the letter that it has without regard to sisters.

    Returns:
        for each call its letter; for each letter of strict calls those of all their answers, its
        own among them, increasing, or none where the core lacks some of these calls.
    """
    if not any(tool.strict for tool in core.tools):
        return letter_of, {}
    from tcc_certs.strict import strict_groups  # here: nobody else has it to trust, nor to load

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
    """Units of work that are left; a unit is one step of a residual or one member of a term.

    A residual may have more derivatives than any file has states, so the search is counted, not
    trusted to end.
    """

    __slots__ = ("_left", "_limit")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._left = limit

    def spend(self, units: int) -> None:
        """Take `units` off.

        Raises:
            Rejected: D201 where nothing is left.
        """
        self._left -= units
        if self._left < 0:
            raise Rejected(Code.LIMIT, "core", f"a check within {self._limit} steps", "more")

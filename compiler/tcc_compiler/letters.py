"""Letters: the coarsest classes of calls that no statement of the core can tell apart.

Every later pass works on letters; calls come back only when the artifact is written.  Two calls
share a letter when the same patterns that are used and the same `uses` limits hold them, their
signatures act alike, and each summed attribute that a limit bounds has the same value.
Cost: linear in the calls and in the members of the patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

from tcc_certs.core.expressions import walk
from tcc_certs.core.model import CallSet, Core, ForbidNext, Limit, OneCall, members


@dataclass(frozen=True, slots=True, kw_only=True)
class Letters:
    """The letters of a core, numbered by their first call.

    Attributes:
        calls: [letters], the calls of each letter, increasing.
        letter: [calls], the letter of each call.
        patterns: [patterns of the core], the letters of each pattern that is used, increasing; of
            others, the letters that have a call of it.
    """

    calls: tuple[tuple[int, ...], ...]
    letter: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]

    def of(self, calls: CallSet) -> frozenset[int]:
        """The letters of a call set that the partition respects."""
        return frozenset(self.letter[call] for call in members(calls))


def partition(core: Core) -> Letters:
    """The letters of `core`."""
    classes = [0] * len(core.calls)
    for calls in _sets(core):
        _split(classes, ((call, True) for call in members(calls)))
    if core.start is not None:
        ends = [(core.tools[call.tool].takes, core.tools[call.tool].gives) for call in core.calls]
        _split(classes, enumerate(ends))
    for kind in sorted({limit.kind for limit in core.limits} - {"depth", "uses"}):
        _split(classes, enumerate(call_amounts(core, kind)))
    return _number(core, classes)


def _sets(core: Core) -> Iterable[CallSet]:
    """The call sets that statements look at; patterns that nothing uses tell no calls apart."""
    used = {
        part.pattern
        for expr in (core.plan, *core.rules.values())
        for part in walk(expr)
        if isinstance(part, OneCall)
    }
    for require in core.requires:
        used |= {require.first, require.second}
    for forbid in core.forbids:
        used |= (
            {*forbid.patterns} if isinstance(forbid, ForbidNext) else {forbid.first, forbid.second}
        )
    yield from (core.patterns[pattern] for pattern in sorted(used))
    for limit in core.limits:
        if limit.calls is not None:
            yield limit.calls


def _split(classes: list[int], marks: Iterable[tuple[int, Hashable]]) -> None:
    """Give the marked calls new classes, one for each old class and mark."""
    fresh: dict[tuple[int, Hashable], int] = {}
    first = len(classes) + max(classes, default=0)
    for call, mark in marks:
        classes[call] = fresh.setdefault((classes[call], mark), first + len(fresh))


def _number(core: Core, classes: list[int]) -> Letters:
    numbers: dict[int, int] = {}
    letter = tuple(numbers.setdefault(found, len(numbers)) for found in classes)
    calls: list[list[int]] = [[] for _ in numbers]
    for call, number in enumerate(letter):
        calls[number].append(call)
    patterns = tuple(
        tuple(sorted({letter[call] for call in members(pattern)})) for pattern in core.patterns
    )
    return Letters(calls=tuple(tuple(group) for group in calls), letter=letter, patterns=patterns)


def call_amounts(core: Core, kind: str) -> list[int]:
    """What each call adds to a limit of this kind, in the limit's unit."""
    match kind:
        case "price":
            return [call.price for call in core.calls]
        case "latency":
            return [call.latency for call in core.calls]
        case "epsilon":
            return [call.epsilon for call in core.calls]
        case "cost":
            return [call.cost_high for call in core.calls]
        case _:
            return [1] * len(core.calls)


def letter_amounts(core: Core, letters: Letters, limit: Limit) -> list[int]:
    """What each letter adds to `limit`."""
    if limit.calls is not None:
        counted = letters.of(limit.calls)
        return [1 if letter in counted else 0 for letter in range(len(letters.calls))]
    amounts = call_amounts(core, limit.kind)
    return [amounts[group[0]] for group in letters.calls]

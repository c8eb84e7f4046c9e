"""Letters: the coarsest classes of calls that no statement of the core distinguishes.

The automata are over letters; calls return when the artifact is written.  Two calls have the same
letter if they belong to the same patterns (of those that are used) and the same `uses` limits, have
the same signature, and have equal amounts of each sum that a limit bounds.  Of a strict tool, they
have to have the same letters among their answers, too: what is kept of one is then kept of both.
Cost: linear in the calls and in the members of the patterns.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from tcc_certs.core.expressions import walk
from tcc_certs.core.model import CallSet, Core, ForbidNext, Limit, OneCall, members
from tcc_compiler.automata.amounts import call_amounts
from tcc_compiler.automata.answers import answers_of, possible_answers
from tcc_compiler.frozen import frozen


@frozen
class Letters:
    """The letters of a core, numbered by their first call.

    Attributes:
        calls: [letters], the calls of each letter, increasing.
        letter: [calls], the letter of each call.
        patterns: [patterns of the core], the letters of each pattern, increasing; of a pattern that
            is not used, the letters with at least one call of it.
    """

    calls: tuple[tuple[int, ...], ...]
    letter: tuple[int, ...]
    patterns: tuple[tuple[int, ...], ...]

    def of(self, calls: CallSet) -> frozenset[int]:
        """The letters of a call set that is a union of letters."""
        return frozenset(self.letter[call] for call in members(calls))


def partition(core: Core) -> Letters:
    """The letters of `core`."""
    classes = [0] * len(core.calls)
    for calls in _sets(core):
        _split(classes, ((call, True) for call in members(calls)))
    if core.start is not None:
        ends = [(core.tools[call.tool].takes, core.tools[call.tool].gives) for call in core.calls]
        _split(classes, enumerate(ends))
    _split_sums(core, classes)
    _split_answers(core, classes)
    return _number(core, classes)


def _split_sums(core: Core, classes: list[int]) -> None:
    """Part the calls by what they add to each sum that is limited."""
    added = [limit for limit in core.limits if limit.kind not in ("depth", "uses")]
    sums = {(limit.kind, limit.parameter): limit for limit in added}
    owned: dict[int, list[int]] = {limit.parameter[0]: [] for limit in added if limit.parameter}
    for number, call in enumerate(core.calls):
        if call.tool in owned:
            owned[call.tool].append(number)
    for (_, parameter), limit in sums.items():
        chosen = range(len(core.calls)) if parameter is None else owned[parameter[0]]
        marks = zip(chosen, call_amounts(core, limit, chosen), strict=True)
        # What adds nothing stays with the calls of other tools.
        _split(classes, (mark for mark in marks if parameter is None or mark[1]))


def _split_answers(core: Core, classes: list[int]) -> None:
    """Part the calls of strict tools by the classes that their possible answers have.

    Then the answers to a call of one letter have the same letters as those to any other of it.
    """
    marks = []
    for tool, groups in answers_of(core, strict=True).items():
        whole = possible_answers(core.tools[tool])
        for calls in groups:
            mark = frozenset([classes[call] for call in calls]), len(calls) == whole
            marks += [(call, mark) for call in calls]
    _split(classes, marks)


def _sets(core: Core) -> Iterable[CallSet]:
    """The call sets that distinguish calls: the patterns that are used, and those of limits."""
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
    letter = tuple(numbers.setdefault(name, len(numbers)) for name in classes)
    calls: list[list[int]] = [[] for _ in numbers]
    for call, number in enumerate(letter):
        calls[number].append(call)
    patterns = tuple(
        tuple(sorted({letter[call] for call in members(pattern)})) for pattern in core.patterns
    )
    return Letters(calls=tuple(tuple(group) for group in calls), letter=letter, patterns=patterns)


def letter_amounts(core: Core, letters: Letters, limit: Limit) -> list[int]:
    """What each letter adds to `limit`."""
    if limit.calls is not None:
        counted = letters.of(limit.calls)
        return [1 if letter in counted else 0 for letter in range(len(letters.calls))]
    return call_amounts(core, limit, [group[0] for group in letters.calls])

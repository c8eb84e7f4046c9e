"""Statements that a run enforces itself: its cut, and the statements that its automaton omits.

The search and the validator of run ledgers share this module.  A *tally* lists the state of each
constraint whose state is not 0.  A constraint depends only on the calls so far.  A call is
forbidden if a constraint has no state after it, and a plan may end if every constraint accepts.

Normative text: docs/spec/race.md, section 12; docs/spec/artifact.md, section 9.

Cost: a step for each constraint whose state is not 0 or that the call changes from 0.  No table of
statements and calls is made: it could have the square of the size of an artifact.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from tcc_certs.kernel import CheckedArtifact
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import StatementPart, parts_of

# pairs of a constraint and its state, increasing; states are never 0
Tally: TypeAlias = "tuple[tuple[int, int], ...]"
_MOST_STEPS = 1 << 16  # how many steps a run caches
_MOST_RANGES = 8  # above this, touches() of a sum yields one range


class Constraint(Protocol):
    """One constraint; its state before the first call is 0.

    Calls of one class have the same effect.
    """

    def class_of(self, call: int) -> int:
        """The class of a call of the artifact."""

    def step(self, state: int, call_class: int) -> int | None:
        """Return the state after a call of a class; None if the call is forbidden."""

    def accepts(self, state: int) -> bool:
        """Return whether a plan may end in a state."""

    def touches(self) -> Iterator[tuple[int, int]]:
        """Ranges of calls of the artifact.

        They include all calls that are forbidden in state 0 or that change it.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class AtMost:
    """The cut of a run: at most `most` calls; `calls` is the number of calls of the artifact."""

    most: int
    calls: int

    def class_of(self, call: int) -> int:
        """See :class:`Constraint`."""
        return 0

    def step(self, state: int, call_class: int) -> int | None:
        """See :class:`Constraint`."""
        return state + 1 if state < self.most else None

    def accepts(self, state: int) -> bool:
        """See :class:`Constraint`."""
        return True

    def touches(self) -> Iterator[tuple[int, int]]:
        """See :class:`Constraint`."""
        yield 0, self.calls


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A statement of the core as a constraint on the calls of an artifact.

    Attributes:
        part: the statement.
        calls: for each call of the artifact its index in the core, increasing.
    """

    part: StatementPart
    calls: Sequence[int]

    def class_of(self, call: int) -> int:
        """See :class:`Constraint`."""
        return self.part.class_of[self.calls[call]]

    def step(self, state: int, call_class: int) -> int | None:
        """See :class:`Constraint`."""
        return self.part.step(state, call_class)

    def accepts(self, state: int) -> bool:
        """See :class:`Constraint`."""
        return self.part.accepts(state)

    def touches(self) -> Iterator[tuple[int, int]]:
        """See :class:`Constraint`."""
        part, calls = self.part, self.calls
        runs = part.class_of.runs
        if part.total is not None and len(runs) > _MOST_RANGES:
            yield bisect_left(calls, runs[0].low), bisect_left(calls, runs[-1].high)
            return
        moving = [part.step(part.start, at) != part.start for at in range(part.classes)]
        for low, high, number in runs:
            if moving[number]:
                yield bisect_left(calls, low), bisect_left(calls, high)


class _Touched:
    """Finds the constraints that a call touches.

    The calls are the leaves of a binary tree.  Each range of calls is stored at the few nodes that
    cover it.  The path from the leaf of a call to the root has all ranges that contain the call.
    """

    __slots__ = ("_leaves", "_nodes")

    def __init__(self, items: Sequence[Constraint]) -> None:
        ranges = [(at, *ends) for at, item in enumerate(items) for ends in item.touches()]
        self._leaves = 1 << max([high for _, _, high in ranges], default=0).bit_length()
        self._nodes: dict[int, list[int]] = {}
        for number, low, high in ranges:
            self._add(number, low + self._leaves, high + self._leaves)

    def _add(self, number: int, low: int, high: int) -> None:
        while low < high:
            if low & 1:
                self._nodes.setdefault(low, []).append(number)
                low += 1
            if high & 1:
                high -= 1
                self._nodes.setdefault(high, []).append(number)
            low, high = low >> 1, high >> 1

    def by(self, call: int) -> list[int]:
        """The numbers of the constraints that a call touches, increasing."""
        found: set[int] = set()
        node = call + self._leaves if call < self._leaves else 0
        while node:
            found.update(self._nodes.get(node, ()))
            node >>= 1
        return sorted(found)


class Constraints:
    """All constraints of a run.

    Attributes:
        items: the constraints, by number.
        start: the tally at the root of the run.
    """

    __slots__ = (
        "_after", "_classes", "_first", "_most", "_owed", "_steps", "_touched", "items", "start",
    )  # fmt: skip

    def __init__(self, *, items: Sequence[Constraint], calls: int = 1, start: Tally = ()) -> None:
        """Take the constraints of an artifact with `calls` calls."""
        self.items = items
        self.start = start
        self._touched = _Touched(items)
        self._first: dict[int, tuple[Tally, Sequence[int]]] = {}
        self._steps = [item.part.step if isinstance(item, Kept) else item.step for item in items]
        self._classes: dict[int, Sequence[int]] = {}
        self._owed = frozenset([at for at, item in enumerate(items) if not item.accepts(0)])
        self._after: dict[Tally, StatementSteps] = {}
        self._most = max(1, _MOST_STEPS // max(1, calls))

    def step(self, tally: Tally, call: int) -> Tally | None:
        """Return the tally after a call; None if a constraint forbids the call."""
        first = self._first.get(call)
        if first is None:
            first = self._first[call] = self._from_zero(call)
        moved, refusing = first
        if not tally:
            return None if refusing else moved
        known = {number for number, _ in tally}
        if not known.issuperset(refusing):
            return None
        found = [one for one in moved if one[0] not in known]
        steps, classes = self._steps, self._classes.get(call) or self._classes_of(call)
        for number, state in tally:
            after = steps[number](state, classes[number])
            if after is None:
                return None
            if after:
                found.append((number, after))
        found.sort()
        return tuple(found)

    def _from_zero(self, call: int) -> tuple[Tally, Sequence[int]]:
        """The tally after a call in state 0, and the constraints that forbid the call there."""
        items = self.items
        steps = [
            (number, items[number].step(0, items[number].class_of(call)))
            for number in self._touched.by(call)
        ]
        moved = [(number, after) for number, after in steps if after]
        return tuple(moved), [number for number, after in steps if after is None]

    def _classes_of(self, call: int) -> Sequence[int]:
        """The class of a call for each constraint."""
        if (len(self._classes) + 1) * len(self.items) > _MOST_STEPS:
            self._classes.clear()
        found = self._classes[call] = [item.class_of(call) for item in self.items]
        return found

    def after(self, tally: Tally) -> StatementSteps:
        """Return the tallies after each call; all nodes with this tally share the object."""
        found = self._after.get(tally)
        if found is None:
            if len(self._after) >= self._most:
                self._after.clear()
            found = self._after[tally] = StatementSteps(self, tally)
        return found

    def may_stop(self, tally: Tally) -> bool:
        """Return whether a plan may end with this tally."""
        if not all(self.items[number].accepts(state) for number, state in tally):
            return False
        return not self._owed or self._owed <= {number for number, _ in tally}


class StatementSteps(dict[int, "Tally | None"]):
    """Maps a call to the tally after it, from the tally `held`; computed when first needed."""

    __slots__ = ("_constraints", "held")

    def __init__(self, constraints: Constraints, held: Tally) -> None:
        self._constraints = constraints
        self.held = held

    def __missing__(self, call: int) -> Tally | None:
        found = self[call] = self._constraints.step(self.held, call)
        return found

    def stopped(self) -> Tally | None:
        """Return the tally of a leaf; None if a plan may not end here."""
        return self.held if self._constraints.may_stop(self.held) else None


def residual_constraints(
    artifact: CheckedArtifact, truncate: int | None, rank: int | None = None, start: Tally = ()
) -> Constraints:
    """Return the constraints that a run over an artifact enforces itself.

    Args:
        truncate: the most calls of a plan; None: no cut.
        rank: the rank of the run's root; None: the root of the artifact.
        start: the tally at the root.  The cut is the last constraint, and counts calls after the
            root.
    """
    calls, automaton = artifact.core_calls, artifact.automaton
    relaxed = artifact.file.manifest.relaxed
    items = statement_constraints(artifact.core, calls, relaxed)
    rank = automaton.rank[automaton.root] if rank is None else rank
    if truncate is not None and truncate < rank:
        items.append(AtMost(most=truncate, calls=len(calls)))
    return Constraints(items=items, calls=len(calls), start=start)


def statement_constraints(
    core: Core, calls: Sequence[int], numbers: Sequence[int]
) -> list[Constraint]:
    """Return statements of the core as constraints on the calls of an artifact.

    Args:
        calls: for each call of the artifact its index in the core, increasing.
        numbers: the numbers of the statements.
    """
    parts = parts_of(core) if numbers else ()
    return [Kept(part=parts[number], calls=calls) for number in numbers]

"""Where a session may be in the automaton, and how calls lead on from there.

A *place* is what the calls so far lead to, if all outcomes are known: a state of a deterministic
artifact; else a set of states, and what the statements have seen that the automaton leaves to the
run (the statements are enforced here, call by call; nothing is looked ahead for them).  A place
that nothing leads on from, because an answer came that has no edge, is no state: its number is -1.
Text: docs/spec/session.md, section 4.
Cost: a state's edges are read when it is first asked about; then a call is one look-up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from tcc_runtime.artifact.constraints import Constraints, Held, constraints_of
from tcc_runtime.artifact.load import Artifact

Place: TypeAlias = "Any"  # an int, or a pair; each walk knows its own and orders them
_MOST_EDGES = 1 << 20
NOWHERE: Final = -1


class Walk(Protocol):
    """How calls lead from place to place."""

    start: Place
    dead: Place

    def step(self, place: Place, call: int) -> Place | None:
        """The place after a call of the artifact; None where it may not be made."""

    def has_edge(self, place: Place, call: int) -> bool:
        """Whether the automaton has an edge for it, whatever the statements left out say."""

    def accepts(self, place: Place) -> bool:
        """Whether a plan may end here."""

    def states(self, place: Place) -> tuple[int, ...]:
        """The states of the artifact; -1 alone is none."""

    def calls(self, place: Place) -> Iterable[int]:
        """The calls that may come next, increasing."""


class StateWalk:
    """Over a deterministic artifact that leaves nothing to the run: a place is a state."""

    __slots__ = ("_artifact", "_edges", "_rows", "dead", "start")

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._rows: dict[int, dict[int, int]] = {NOWHERE: {}}
        self._edges = 0
        self.start: Place = artifact.root
        self.dead: Place = NOWHERE

    def row(self, place: int) -> dict[int, int]:
        """The edges of a state, call by call."""
        found = self._rows.get(place)
        if found is None:
            found = dict(self._artifact.edges(place))
            self._edges += len(found)
            if self._edges > _MOST_EDGES:
                self._rows, self._edges = {NOWHERE: {}}, len(found)
            self._rows[place] = found
        return found

    def step(self, place: Place, call: int) -> Place | None:
        """See :class:`Walk`."""
        return self.row(place).get(call)

    def has_edge(self, place: Place, call: int) -> bool:
        """See :class:`Walk`."""
        return call in self.row(place)

    def accepts(self, place: Place) -> bool:
        """See :class:`Walk`."""
        return place != NOWHERE and self._artifact.accepts(place)

    def states(self, place: Place) -> tuple[int, ...]:
        """See :class:`Walk`."""
        return (place,)

    def calls(self, place: Place) -> Iterable[int]:
        """See :class:`Walk`."""
        return sorted(self.row(place))


class SetWalk:
    """Over any artifact: a place is a set of states, and what the statements have seen."""

    __slots__ = ("_artifact", "_rows", "_statements", "dead", "start")

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._statements = constraints_of(artifact, None) or Constraints((), 0)
        self._rows: dict[int, dict[int, list[int]]] = {NOWHERE: {}}
        self.start: Place = ((artifact.root,), _ordered(self._statements.start))
        self.dead: Place = ((NOWHERE,), ())

    def _row(self, state: int) -> dict[int, list[int]]:
        found = self._rows.get(state)
        if found is None:
            if len(self._rows) > _MOST_EDGES >> 4:
                self._rows = {NOWHERE: {}}
            found = {}
            for call, target in self._artifact.edges(state):
                found.setdefault(call, []).append(target)
            self._rows[state] = found
        return found

    def _targets(self, states: Sequence[int], call: int) -> tuple[int, ...]:
        found: set[int] = set()
        for state in states:
            found.update(self._row(state).get(call, ()))
        return tuple(sorted(found))

    def step(self, place: Place, call: int) -> Place | None:
        """See :class:`Walk`."""
        states, held = place
        targets = self._targets(states, call)
        if not targets:
            return None
        after = self._statements.step(held, call)
        return None if after is None else (targets, _ordered(after))

    def has_edge(self, place: Place, call: int) -> bool:
        """See :class:`Walk`."""
        return any(call in self._row(state) for state in place[0])

    def accepts(self, place: Place) -> bool:
        """See :class:`Walk`."""
        states, held = place
        known = states[0] != NOWHERE
        return (
            known and any(map(self._artifact.accepts, states)) and self._statements.may_stop(held)
        )

    def states(self, place: Place) -> tuple[int, ...]:
        """See :class:`Walk`."""
        found: tuple[int, ...] = place[0]
        return found

    def calls(self, place: Place) -> Iterable[int]:
        """See :class:`Walk`."""
        named = sorted({call for state in place[0] for call in self._row(state)})
        return [call for call in named if self.step(place, call) is not None]


def _ordered(held: Held) -> Held:
    """One form for what is one: the order in which it was seen says nothing."""
    return tuple(sorted(held))


def walk_of(artifact: Artifact) -> Walk:
    """The walk over an artifact; the simplest that it allows."""
    if artifact.nondeterministic or artifact.relaxed is not None:
        return SetWalk(artifact)
    return StateWalk(artifact)

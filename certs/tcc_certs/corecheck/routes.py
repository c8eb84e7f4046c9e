"""Signatures: the state that calls hand on, and how far it is from a goal.

Cost: states times letters, once.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Core
from tcc_certs.corecheck.letters import Letter
from tcc_certs.corecheck.outlook import FAR

BROKEN = -1


class Routes:
    """The states of the signatures by number; a grammar without `start` has one, and it is a goal.

    Attributes:
        start: the number of the start state.
        least_calls: for each state the fewest calls to a goal, FAR where none leads there.
    """

    __slots__ = ("_moves", "least_calls", "start")

    def __init__(self, core: Core, letters: Sequence[Letter]) -> None:
        self.start = 0
        signed = core.start is not None
        names = _names(core, letters) if signed else [""]
        number = {name: index for index, name in enumerate(names)}
        # For each letter the state that it takes, or -1 for any, and the state that it gives.
        self._moves: list[tuple[int, int]] = [
            (number[letter.takes], number[letter.gives])
            if signed and letter.takes is not None and letter.gives is not None
            else (-1, 0)
            for letter in letters
        ]
        goals = {number[goal] for goal in core.goals} if signed else {0}
        self.least_calls = _distances(len(names), goals, self._moves)

    def move(self, place: int, letter: int) -> int:
        """The state after a letter, or BROKEN."""
        takes, gives = self._moves[letter]
        if takes < 0:
            return place
        return gives if takes == place else BROKEN


def _names(core: Core, letters: Sequence[Letter]) -> list[str]:
    """The start first, then all other states in order."""
    ends = {end for letter in letters for end in (letter.takes, letter.gives) if end is not None}
    first = core.start or ""
    return [first, *sorted((ends | set(core.goals)) - {first})]


def _distances(size: int, goals: set[int], moves: Sequence[tuple[int, int]]) -> list[int]:
    """Fewest calls to a goal, breadth first against the moves."""
    into: list[list[int]] = [[] for _ in range(size)]
    for takes, gives in sorted({move for move in moves if move[0] >= 0}):
        into[gives].append(takes)
    found = [FAR] * size
    layer = sorted(goals)
    for goal in layer:
        found[goal] = 0
    calls = 0
    while layer:
        calls += 1
        layer = [p for place in layer for p in into[place] if found[p] == FAR]
        for place in layer:
            found[place] = calls
    return found

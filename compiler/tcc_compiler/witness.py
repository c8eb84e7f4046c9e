"""Why a language is infinite: calls that can be repeated for ever, and the limits that cut them.

Cost: linear in the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.core.model import Core
from tcc_compiler.letters import Letters
from tcc_compiler.machine import Machine, components
from tcc_compiler.refusal import Refused

_MOST_CALLS = 12


def find_cycle(machine: Machine) -> tuple[list[int], list[int]] | None:
    """Letters that lead to a cycle of a trimmed machine, and a shortest cycle there.

    The cycle is one that is reached in the fewest calls; None where there is no cycle.
    """
    looping = [False] * machine.states
    for part in components(machine.states, machine.targets):
        for q in part:
            looping[q] = len(part) > 1 or q in machine.targets(q)
    if not any(looping):
        return None
    before, state = _walk(machine, machine.start, looping)
    goal = [False] * machine.states
    goal[state] = True
    cycle, _ = _walk(machine, state, goal, leave=True)
    return before, cycle


def _walk(
    machine: Machine, start: int, goal: Sequence[bool], leave: bool = False
) -> tuple[list[int], int]:
    """The letters of a shortest walk from `start` to a goal (of one step or more: `leave`)."""
    if goal[start] and not leave:
        return [], start
    came: dict[int, tuple[int, int]] = {}
    todo = [start]
    for q in todo:
        for letter, target in machine.edges[q]:
            if target in came:
                continue
            came[target] = (letter, q)
            if goal[target]:
                return _trace(came, start, target), target
            todo.append(target)
    return [], start


def _trace(came: dict[int, tuple[int, int]], start: int, end: int) -> list[int]:
    letters: list[int] = []
    q = end
    while not letters or q != start:
        letter, q = came[q]
        letters.append(letter)
    return letters[::-1]


def infinite(core: Core, letters: Letters, before: Sequence[int], cycle: Sequence[int]) -> Refused:
    """The refusal of a language in which `cycle` can be repeated after `before`."""
    lead = f"after {calls_text(core, letters, before)}, " if before else ""
    return Refused(
        "TCC401",
        f"there are infinitely many plans: {lead}"
        f"{calls_text(core, letters, cycle)} can be repeated for ever",
        hint=f"add {' or '.join(cuts(core, letters, cycle))}",
        place="plan",
    )


def calls_text(core: Core, letters: Letters, word: Sequence[int]) -> str:
    """A word for people: the first call of each letter, cut where it is long."""
    texts = [core.calls[letters.calls[letter][0]].text for letter in word[:_MOST_CALLS]]
    rest = len(word) - len(texts)
    return f"`{' '.join(texts)}`" + (f" (and {rest} more calls)" if rest else "")


def cuts(core: Core, letters: Letters, cycle: Sequence[int]) -> list[str]:
    """The limits that would cut a cycle."""
    calls = [core.calls[letters.calls[letter][0]] for letter in cycle]
    found = ["`limit depth <= N`"]
    tools = list(dict.fromkeys(core.tools[call.tool].name for call in calls))
    found += [f"`limit uses({name}) <= N`" for name in tools[:2]]
    sums = {
        "price": sum(call.price for call in calls),
        "latency": sum(call.latency for call in calls),
        "epsilon": sum(call.epsilon for call in calls),
        "cost": sum(call.cost_high for call in calls),
    }
    return found + [f"`limit {kind} <= X`" for kind, total in sums.items() if total > 0]


def word_to(machine: Machine, state: int) -> list[int]:
    """The letters of a shortest walk from the start to `state`."""
    goal = [False] * machine.states
    goal[state] = True
    return _walk(machine, machine.start, goal)[0]

"""Why a language is infinite: calls that can be repeated without end, and limits against it.

Cost: linear in the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_certs.policy.core import Core
from tcc_certs.policy.nodes import Get, Name, Word, text_of, written
from tcc_certs.policy.plans import Call
from tcc_certs.values.places import listed_states
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.table import Machine, components
from tcc_compiler.resources import CompileRefused

_MOST_CALLS = 12


def find_cycle(machine: Machine) -> tuple[list[int], list[int]] | None:
    """Return the letters that lead to a cycle of a trimmed machine, and a shortest cycle there.

    The cycle is one that is reached in the fewest calls. Return None if there is no cycle.
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
    """Return a shortest walk from `start` to a goal, as letters, and the state that it reaches.

    Args:
        leave: True: the walk has at least one step, even if `start` is a goal.
    """
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


def infinite(
    core: Core, letters: Letters, before: Sequence[int], cycle: Sequence[int]
) -> CompileRefused:
    """Return the refusal of a language in which `cycle` can be repeated after `before`."""
    without = "" if core.has_plan else ", as no `plan` says what a plan is"
    first = "say in `plan` what follows what, or " if without else ""
    lead = f"after {calls_text(core, letters, before)}, " if before else ""
    limits = " or ".join(cuts(core, letters, cycle))
    return CompileRefused(
        "TCC401",
        f"there are infinitely many plans: {lead}"
        f"{calls_text(core, letters, cycle)} can be repeated for ever{without}",
        hint=f"{first}add {limits}; a gate needs no limit: --for gate",
        place="plan",
    )


def calls_text(core: Core, letters: Letters, word: Sequence[int]) -> str:
    """Return a word for messages: the first call of each letter; a long word is cut."""
    texts = [core.calls[letters.calls[letter][0]].text for letter in word[:_MOST_CALLS]]
    rest = len(word) - len(texts)
    return f"`{' '.join(texts)}`" + (f" (and {rest} more calls)" if rest else "")


def cuts(core: Core, letters: Letters, cycle: Sequence[int]) -> list[str]:
    """Return the limits that would make the repetitions of a cycle finite."""
    calls = [core.calls[letters.calls[letter][0]] for letter in cycle]
    limits = ["`limit depth <= N`"]
    tools = list(dict.fromkeys([written([Name(core.tools[call.tool].name)]) for call in calls]))
    limits += [f"`limit count({name}) <= N`" for name in tools[:2]]
    sums = {
        "price": sum(call.price for call in calls),
        "latency": sum(call.latency for call in calls),
        "epsilon": sum(call.epsilon for call in calls),
        "cost": sum(call.cost_high for call in calls),
    }
    units = {"latency": " ms"}
    limits += [f"`limit {kind} <= X{units.get(kind, '')}`" for kind, n in sums.items() if n > 0]
    return limits + [f"`limit sum({text}) <= X`" for text in _added_up(core, calls)[:2]]


def _added_up(core: Core, calls: Sequence[Call]) -> list[str]:
    """Return the arguments, as `tool.argument`, whose values in the calls add up to more than 0."""
    found = {}
    for call in calls:
        tool = core.tools[call.tool]
        for field, value in zip(tool.listed, call.values, strict=True):
            states = listed_states(field)
            numbers = all(kind == "n" and amount >= 0 for kind, amount in states)
            if field in tool.arguments and numbers and states[value][1]:
                found[text_of(Get(Word(tool.name), field.name))] = True
    return list(found)


def word_to(machine: Machine, state: int) -> list[int]:
    """Return the letters of a shortest walk from the start to `state`."""
    goal = [False] * machine.states
    goal[state] = True
    return _walk(machine, machine.start, goal)[0]

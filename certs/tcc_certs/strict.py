"""C9 strict: if a call of a strict tool is allowed, plans go on after every answer that it may get.

Normative text: docs/spec/artifact.md, section 5; groups of answers: docs/spec/core.md, section 5.
Loaded for a core that has a strict tool.  That strict cut no more than C9 asks for is for
:mod:`tcc_certs.corecheck.check`.
Cost: linear in the calls and in the edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.core.derived import call_text
from tcc_certs.core.model import Core, Tool
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import GATE, ROUNDED, Automaton, Manifest
from tcc_certs.limits import MAX_CALLS


def check_strict(
    manifest: Manifest, automaton: Automaton, core: Core, core_calls: Sequence[int]
) -> None:
    """C9 holds.

    Args:
        automaton: C1 holds of it: no call has two edges in one state.
        core_calls: for each call of the artifact its index in the core.

    Raises:
        Rejected: C902 a strict tool in an artifact whose automaton is wider than its core, or has
            several edges of a call; C901 an edge of a strict call without one of its sisters.
    """
    answers = allowed_answers(manifest, core)
    group = [answers.group[call] for call in core_calls]
    first = 0
    for last in automaton.edge_start[1:]:
        groups = [group[call] for call in automaton.edge_call[first:last]]
        for number, found in Counter(groups).items():
            if number >= 0 and found != answers.size[number]:
                edge = first + groups.index(number)
                call = core.calls[core_calls[automaton.edge_call[edge]]]
                text = call_text(core.tools[call.tool], call.values, observed=False)
                expected = f"an edge for each of {answers.size[number]} answers to {text}"
                raise Rejected(Code.STRICT_ANSWER, f"edge_call[{edge}]", expected, found)
        first = last


def allowed_answers(manifest: Manifest, core: Core) -> StrictGroups:
    """The groups that C9 is about.

    Args:
        core: it has a strict tool.

    Raises:
        Rejected: C902.
    """
    loose = [name for name in manifest.critical if name not in (GATE, ROUNDED)]
    expected = "no strict tool beside these features"
    ensure(not loose, Code.STRICT_FEATURE, "manifest.critical", expected, ", ".join(loose))
    return strict_groups(core)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictGroups:
    """The calls of strict tools, in groups of those that differ in observed values alone.

    Attributes:
        group: for each call of the core the number of its group, -1 for one that is not strict.
        size: by group, how many combinations of observed values there are; past MAX_CALLS no more
            than that there are too many.
    """

    group: Sequence[int]
    size: Sequence[int]


def strict_groups(core: Core) -> StrictGroups:
    """The groups of the calls of strict tools."""
    chosen = [sum(not param.observed for param in tool.parameters) for tool in core.tools]
    combinations = [_combinations(tool) for tool in core.tools]
    known: dict[tuple[int, tuple[int, ...]], int] = {}
    group: list[int] = []
    size: list[int] = []
    for call in core.calls:
        if not core.tools[call.tool].strict:
            group.append(-1)
            continue
        number = known.setdefault((call.tool, call.values[: chosen[call.tool]]), len(known))
        group.append(number)
        if number == len(size):
            size.append(combinations[call.tool])
    return StrictGroups(group=group, size=size)


def _combinations(tool: Tool) -> int:
    """How many answers a call of a tool may get, counted up to more than there can be calls."""
    found = 1
    for parameter in tool.parameters:
        if parameter.observed and found <= MAX_CALLS:
            found *= len(parameter.values)
    return found

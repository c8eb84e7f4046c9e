"""C9 strict: if a plan may go on by a call of a strict tool, then with each of its answers.

Normative text: docs/spec/artifact.md, section 5; sisters: docs/spec/core.md, section 5.  Only
artifacts with a strict tool load this module.  :mod:`tcc_certs.corecheck.check` shows that
strictness removed no more than C9 requires.  Cost: linear in the calls and in the edges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.artifact import CYCLIC, GATE, ROUNDED, Automaton, Manifest
from tcc_certs.formats.codec import written
from tcc_certs.limits import MAX_CALLS
from tcc_certs.policy.core import Core, Tool


def check_strict(
    manifest: Manifest, automaton: Automaton, core: Core, core_calls: Sequence[int]
) -> None:
    """Check C9.

    Args:
        automaton: C1 holds for it, so no two edges of a state have the same call.
        core_calls: for each call of the artifact its index in the core.

    Raises:
        Rejected: C902 a relaxed or nondeterministic artifact has a strict tool; C901 a state has an
            edge of a strict call but lacks an edge of a sister.
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
                text = _asked(core.tools[call.tool], call.values)
                expected = f"an edge for each of {answers.size[number]} answers to {text}"
                raise Rejected(Code.STRICT_ANSWER, f"edge_call[{edge}]", expected, found)
        first = last


def allowed_answers(manifest: Manifest, core: Core) -> StrictGroups:
    """Return the groups of strict calls that C9 concerns.

    Args:
        core: a core with a strict tool.

    Raises:
        Rejected: C902.
    """
    loose = [name for name in manifest.critical if name not in (CYCLIC, GATE, ROUNDED)]
    expected = "no strict tool beside these features"
    ensure(not loose, Code.STRICT_FEATURE, "manifest.critical", expected, ", ".join(loose))
    return strict_groups(core)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictGroups:
    """The calls of strict tools in groups of sisters, which differ only in listed answers.

    Attributes:
        group: for each call of the core the number of its group; -1 if its tool is not strict.
        size: for each group the number of combinations of listed answers; above MAX_CALLS it is
            only a lower bound.
    """

    group: Sequence[int]
    size: Sequence[int]


def strict_groups(core: Core) -> StrictGroups:
    """The groups of the calls of strict tools."""
    chosen = [sum(one.type is None for one in tool.arguments) for tool in core.tools]
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
    """The number of combinations of listed answers of a tool; above MAX_CALLS a lower bound."""
    found = 1
    for field in tool.answers:
        if field.type is None and found <= MAX_CALLS:
            found *= len(field.values) + field.optional
    return found


def _asked(tool: Tool, values: Sequence[int]) -> str:
    """The canonical text of a call without its answers."""
    arguments = [field for field in tool.arguments if field.type is None]
    texts = []
    for field, index in zip(arguments, values[: len(arguments)], strict=True):
        options = ("", *field.values) if field.optional else field.values
        texts += [f"{written(field.name)}={options[index]}"] if options[index] else []
    name = written(tool.name)
    return f"{name}({','.join(texts)})" if texts else name

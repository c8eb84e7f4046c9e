"""C9, strict: where a strict call has an edge, every answer that it may get has one.

Normative text: docs/spec/artifact.md, section 5.  That nothing more was cut than this asks for is a
question of the core, for :mod:`tcc_certs.corecheck.check`.  Cost: linear in the edges, and nothing
where no tool is strict.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tcc_certs.core.derived import StrictGroups, call_text, strict_groups
from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.automaton import Automaton
from tcc_certs.formats.manifest import NONDETERMINISTIC, RELAXED, Manifest


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
    if answers is None:
        return
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


def allowed_answers(manifest: Manifest, core: Core) -> StrictGroups | None:
    """The groups that C9 is about; None where no tool is strict.

    Raises:
        Rejected: C902.
    """
    answers = strict_groups(core)
    if answers is not None:
        loose = [name for name in manifest.critical if name in (NONDETERMINISTIC, RELAXED)]
        expected = "no strict tool beside these features"
        ensure(not loose, Code.STRICT_FEATURE, "manifest.critical", expected, ", ".join(loose))
    return answers

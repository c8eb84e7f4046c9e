"""The statements that a run over an artifact enforces itself, and its cut.

What they mean: :mod:`tcc_certs.statements`.  Text: docs/spec/race.md, section 12.
Cost: linear in the calls, once for a run; of a call some integer operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import lt
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Relaxed
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:  # loaded where a run has something to enforce
    from tcc_certs.statements import Constraint, Constraints, Tally

Held: TypeAlias = "Tally"


def constraints_of(
    artifact: Artifact, truncate: int | None, start: Held = ()
) -> Constraints | None:
    """What a run over `artifact` enforces: what it relaxed, and depth <= `truncate`.

    Args:
        truncate: most calls of a plan; None is no cut.
        start: what the statements that it relaxed have seen before the root of the run.  The cut
            is the last statement and counts from there, so the others have their numbers without.

    Returns:
        None where there is nothing to enforce.

    Raises:
        Rejected: M301, of an unverified artifact whose calls are in no order.
    """
    relaxed, calls = artifact.relaxed, artifact.manifest.calls
    if relaxed is None and truncate is None:
        return None
    from tcc_certs.statements import AtMost, Constraints, statement_constraints

    items: list[Constraint] = []
    if relaxed is not None:
        items += statement_constraints(artifact.core, core_calls(artifact), relaxed)
    if truncate is not None:
        items.append(AtMost(amount=[1] * calls, most=truncate))
    return Constraints(items=items, calls=calls, start=start) if items else None


def every_statement(artifact: Artifact) -> Sequence[Constraint]:
    """All limits, requires and forbids of the core, whoever enforces them.

    Returns:
        the limits, the strictest of those on one sum; then the requires and the forbids.

    Raises:
        Rejected: M301, of an unverified artifact whose calls are in no order.
    """
    from tcc_certs.statements import statement_constraints

    core = artifact.core
    limits, requires, forbids = map(len, (core.limits, core.requires, core.forbids))
    everything = Relaxed(
        limits=tuple(range(limits)), requires=tuple(range(requires)), forbids=tuple(range(forbids))
    )
    return statement_constraints(core, core_calls(artifact), everything)


def core_calls(artifact: Artifact) -> tuple[int, ...]:
    """For each call of the artifact its index in the core, increasing; kept with the artifact.

    Raises:
        Rejected: M301, of an unverified artifact whose calls are not the core's, in order.
    """
    found = artifact.kept.get("core_calls")
    if not isinstance(found, tuple):
        numbers = {call.text: index for index, call in enumerate(artifact.core.calls)}
        found = tuple([numbers.get(text, -1) for text in artifact.texts])
        if not all(map(lt, (-1, *found), found)):
            raise Rejected(Code.CALL_TABLE, "call_text", "strictly increasing texts", "others")
        artifact.kept["core_calls"] = found
    return found

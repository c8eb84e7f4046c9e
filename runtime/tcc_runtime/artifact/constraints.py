"""The constraints that a run over an artifact enforces itself: relaxed statements, and its cut.

Meaning: :mod:`tcc_certs.statements`.  Text: docs/spec/race.md, section 12.
Cost: linear in the calls, once for each run.
"""

from __future__ import annotations

from operator import lt
from typing import TYPE_CHECKING, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.policy.places import parts_of
from tcc_runtime.artifact.load import Artifact

if TYPE_CHECKING:  # loaded where a run has something to enforce
    from tcc_certs.statements import Constraint, Constraints, Tally

Held: TypeAlias = "Tally"


def constraints_of(
    artifact: Artifact, truncate: int | None, start: Held = ()
) -> Constraints | None:
    """Return the constraints that a run enforces: the relaxed statements, and depth <= `truncate`.

    Args:
        truncate: the most calls of a plan; None: no cut.
        start: the tally of the relaxed statements at the root of the run.  The cut is the last
            constraint and counts from the root, so it does not change the numbers of the others.

    Returns:
        None if nothing has to be enforced.

    Raises:
        Rejected: M301: the calls of an unverified artifact are not sorted.
    """
    relaxed, calls = artifact.relaxed, artifact.manifest.calls
    if not relaxed and truncate is None:
        return None
    from tcc_certs.statements import AtMost, Constraints, statement_constraints

    items: list[Constraint] = []
    if relaxed:
        items += statement_constraints(artifact.core, core_calls(artifact), relaxed)
    if truncate is not None:
        items.append(AtMost(most=truncate, calls=calls))
    return Constraints(items=items, calls=calls, start=start)


def every_statement(artifact: Artifact) -> list[Constraint]:
    """Return the statements that plans can break, in order, whether the automaton or the run
    enforces them.

    Raises:
        Rejected: M301: the calls of an unverified artifact are not sorted.
    """
    from tcc_certs.statements import statement_constraints

    numbers = [part.number for part in parts_of(artifact.core) if part.place != "gate"]
    return statement_constraints(artifact.core, core_calls(artifact), numbers)


def core_calls(artifact: Artifact) -> tuple[int, ...]:
    """Return the index in the core of each call of the artifact; cached with the artifact.

    Raises:
        Rejected: M301: the calls of an unverified artifact are not calls of the core, or not
            sorted.
    """
    found = artifact.kept.get("core_calls")
    if not isinstance(found, tuple):
        numbers = {call.text: index for index, call in enumerate(artifact.core.calls)}
        found = tuple([numbers.get(text, -1) for text in artifact.texts])
        if not all(map(lt, (-1, *found), found)):
            raise Rejected(Code.CALL_TABLE, "call_text", "strictly increasing texts", "others")
        artifact.kept["core_calls"] = found
    return found

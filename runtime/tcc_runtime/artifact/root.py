"""Where a run begins: at the root of the artifact, or where the calls before it have led.

Text: docs/spec/race.md, sections 2 and 23.  Costs, depth, ranks, a cut and its tail begin there; D
is folded along the calls, and the statements left to the run have seen them.
Cost: the edges of the states held, for each call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcc_certs.race.digest import child_context
from tcc_runtime.artifact.constraints import Constraints, Held, constraints_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.typed import read_calls
from tcc_runtime.errors import AfterRefused

_NAMED = 5  # calls that a refusal lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """Where a run begins.

    Attributes:
        members: the states, increasing; one where the artifact is deterministic.
        digest: D.
        held: what the statements left to the run have seen; nothing of a cut.
        rank: the most calls that may follow.
    """

    members: tuple[int, ...]
    digest: bytes
    held: Held
    rank: int


def root_of(artifact: Artifact, after: Sequence[str] = ()) -> Root:
    """The root of a run after these calls, as they were typed.

    Raises:
        AfterRefused: they are no prefix of a plan.
        CallTextError: one is no call.
        Rejected: an unverified artifact leads out of its ranges.
    """
    members: tuple[int, ...] = (artifact.root,)
    digest: bytes = artifact.root_digest
    held: Held = ()
    statements = constraints_of(artifact, None) if after else None
    for place, text in enumerate(read_calls(artifact.core, after) if after else (), 1):
        found = _step(artifact, statements, members, held, text)
        if found is None:
            allowed = _allowed(artifact, statements, members, held)
            raise AfterRefused(place, text, allowed[:_NAMED], len(allowed))
        members, held = found
        digest = child_context(digest, text.encode())
    rank = max([artifact.rank(q) for q in members])
    return Root(members=members, digest=digest, held=held, rank=rank)


def _step(
    artifact: Artifact,
    statements: Constraints | None,
    members: tuple[int, ...],
    held: Held,
    text: str,
) -> tuple[tuple[int, ...], Held] | None:
    """Where a call leads, and what is held there; None where it is not allowed."""
    call = artifact.call_index(text)
    led = {target for q in members for by, target in artifact.edges(q) if by == call}
    if call is None or not led:
        return None
    after = held if statements is None else statements.step(held, call)
    return None if after is None else (tuple(sorted(led)), after)


def _allowed(
    artifact: Artifact, statements: Constraints | None, members: tuple[int, ...], held: Held
) -> list[str]:
    """The calls that might have come there, in order."""
    return [
        artifact.texts[call]
        for call, _ in artifact.steps(members)
        if statements is None or statements.step(held, call) is not None
    ]

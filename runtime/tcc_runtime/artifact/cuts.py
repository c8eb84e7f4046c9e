"""The work of weighing the plans that a cut leaves out, estimated before any is weighed.

Text: docs/spec/race.md, section 13.  After j calls that led to state q, it is open whether a plan
is longer than K calls only if j + s(q) <= K < j + d(q).  Here s and d are the fewest and the most
calls that may follow.  Only such pairs of q and j are visited one by one.
Cost: two passes over the edges, once for each K.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tcc_runtime.artifact.load import Artifact

FREE_STEPS: Final = 1 << 17
STEPS_PER_EDGE: Final = 8
_NEVER: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A cut below the rank of the root.

    Attributes:
        most: K, the most calls of a plan.
        steps: a bound of the number of edge visits.
        allowed: the largest number of steps that a run accepts.
    """

    most: int
    steps: int
    allowed: int

    @property
    def fits(self) -> bool:
        """True if a run accepts the cut."""
        return self.steps <= self.allowed


def cut_of(artifact: Artifact, most: int, members: tuple[int, ...] | None = None) -> Cut:
    """Return the cut at `most` calls; cached with the artifact.

    Args:
        members: the states at which the run begins; None: the root of the artifact.

    Raises:
        Rejected: a number of an unverified artifact is outside its range.
    """
    members = (artifact.root,) if members is None else members
    name = f"cut.{most}.{members}"
    found = artifact.kept.get(name)
    if not isinstance(found, Cut):
        found = artifact.kept[name] = _cut_of(artifact, most, members)
    return found


def fewest_calls(artifact: Artifact) -> Sequence[int]:
    """Return s, the fewest calls that may follow, for each state; cached with the artifact.

    Raises:
        Rejected: a number of an unverified artifact is outside its range.
    """
    found = artifact.kept.get("fewest_calls")
    if isinstance(found, list):
        return found
    fewest: list[int] = []
    for q in range(artifact.manifest.states):
        ahead = [1 + fewest[target] for _, target in artifact.edges(q)]
        fewest.append(0 if artifact.accepts(q) else min(ahead, default=_NEVER))
    artifact.kept["fewest_calls"] = fewest
    return fewest


def _cut_of(artifact: Artifact, most: int, members: tuple[int, ...]) -> Cut:
    states, fewest = artifact.manifest.states, fewest_calls(artifact)
    first, last = [_NEVER] * states, [-1] * states  # fewest and most calls from the root
    steps = 0
    for q in members:
        first[q] = last[q] = 0
    for q in range(max(members), -1, -1):
        if last[q] < 0:  # not reachable from the start of the run
            continue
        edges = artifact.edges(q)
        least, greatest = max(first[q], most + 1 - artifact.rank(q)), min(last[q], most - fewest[q])
        steps += len(edges) * max(0, greatest - least + 1)
        for _, target in edges:
            first[target] = min(first[target], first[q] + 1)
            last[target] = max(last[target], last[q] + 1)
    allowed = FREE_STEPS + STEPS_PER_EDGE * artifact.manifest.edges
    return Cut(most=most, steps=steps, allowed=allowed)

"""What it takes to weigh the plans that a cut leaves out, known before any is weighed.

Text: docs/spec/race.md, section 13.  Whether a plan is longer than K calls is open after j calls
that led to state q only where j + s(q) <= K < j + d(q), s and d the fewest and the most calls that
may still follow.  Those q and j alone are gone through one by one.
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
    """A cut below the root's rank.

    Attributes:
        most: K.
        steps: a bound of the edges that are gone through, each as often as it is.
        allowed: the greatest such number that a run takes on.
    """

    most: int
    steps: int
    allowed: int

    @property
    def fits(self) -> bool:
        """True if a run takes it on."""
        return self.steps <= self.allowed


def cut_of(artifact: Artifact, most: int, members: tuple[int, ...] | None = None) -> Cut:
    """The cut at `most` calls, kept with the artifact.

    Args:
        members: the states that the run begins at; None: the root of the artifact.

    Raises:
        Rejected: an unverified artifact leads out of its ranges.
    """
    members = (artifact.root,) if members is None else members
    name = f"cut.{most}.{members}"
    found = artifact.kept.get(name)
    if not isinstance(found, Cut):
        found = artifact.kept[name] = _cut_of(artifact, most, members)
    return found


def fewest_calls(artifact: Artifact) -> Sequence[int]:
    """s: the fewest calls that may still follow, of each state; kept with the artifact.

    Raises:
        Rejected: an unverified artifact leads out of its ranges.
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
        if last[q] < 0:  # nothing leads there from where the run begins
            continue
        edges = artifact.edges(q)
        least, greatest = max(first[q], most + 1 - artifact.rank(q)), min(last[q], most - fewest[q])
        steps += len(edges) * max(0, greatest - least + 1)
        for _, target in edges:
            first[target] = min(first[target], first[q] + 1)
            last[target] = max(last[target], last[q] + 1)
    allowed = FREE_STEPS + STEPS_PER_EDGE * artifact.manifest.edges
    return Cut(most=most, steps=steps, allowed=allowed)

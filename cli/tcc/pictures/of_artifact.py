"""The picture of an artifact's shared graph: its first states, by calls from the root.

Cost: linear in the edges of the states that are shown.
"""

from __future__ import annotations

from typing import Final

from tcc import screen
from tcc.pictures.picture import Arrow, Box, Picture, arrow, short
from tcc_certs.core.enforced import enforced, shortened
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.load import Artifact

MOST_ARROWS: Final = 1500


def picture_of(artifact: Artifact, max_states: int) -> Picture:
    """The picture of at most `max_states` states, fewer where they have too many arrows."""
    shown = max(1, max_states)
    while True:
        chosen = _first_states(artifact, shown)
        found = _Drawing(artifact, chosen)
        if len(found.arrows) <= MOST_ARROWS or shown == 1:
            break
        shown = max(1, min(shown, len(chosen)) // 2)
    return Picture(
        title=f"{artifact.manifest.grammar} {artifact.manifest.version}",
        about=about(artifact),
        boxes=tuple(found.boxes),
        arrows=tuple(found.arrows),
        left_out=_left_out(artifact, len(chosen)),
    )


def about(artifact: Artifact) -> tuple[tuple[str, str], ...]:
    """What is said of an artifact beside a picture of it."""
    manifest, root = artifact.manifest, artifact.root
    bound = "" if manifest.counts == "exact" else "at most "
    where = enforced(artifact.core, artifact.relaxed)
    left = [("left to a run", short(shortened(where.run)))] if where.run else []
    return (
        ("plans", bound + screen.big(artifact.plans(root))),
        ("states", f"{screen.big(manifest.states)}, {screen.big(manifest.edges)} edges"),
        ("calls", f"{manifest.calls}, at most {artifact.rank(root)} in a plan"),
        ("cheapest", format_decimal(artifact.cost_to_go(root), 9)),
        *left,
        ("digest", artifact.digest.hex()),
    )


def _left_out(artifact: Artifact, shown: int) -> str | None:
    states = artifact.manifest.states
    if shown == states:
        return None
    return (
        f"the first {screen.big(shown)} of {screen.big(states)} states, nearest to the root first; "
        f"and {screen.big(states - shown)} more"
    )


def _first_states(artifact: Artifact, most: int) -> list[int]:
    """States breadth first, edges in call order; then by decreasing number, so sources first."""
    found = {artifact.root: True}
    todo = [artifact.root]
    for q in todo:
        if len(found) == most:
            break
        for _, target in artifact.edges(q):
            if target not in found and len(found) < most:
                found[target] = True
                todo.append(target)
    return sorted(found, reverse=True)


class _Drawing:
    """Boxes and arrows of the chosen states."""

    def __init__(self, artifact: Artifact, chosen: list[int]) -> None:
        self._artifact = artifact
        self._tools = {
            call.text: artifact.core.tools[call.tool].name for call in artifact.core.calls
        }
        self.boxes = [self._state(q) for q in chosen]
        self.arrows: list[Arrow] = []
        place = {q: at for at, q in enumerate(chosen)}
        for at, q in enumerate(chosen):
            self._leaving(at, q, place)

    def _leaving(self, at: int, q: int, place: dict[int, int]) -> None:
        artifact = self._artifact
        by_target: dict[int, list[str]] = {}
        outside: list[str] = []
        missing: set[int] = set()
        for call, target in artifact.edges(q):
            text = artifact.texts[call]
            if target in place:
                by_target.setdefault(target, []).append(text)
            else:
                outside.append(text)
                missing.add(target)
        for target, calls in by_target.items():
            self.arrows.append(arrow(at, place[target], calls, self._tools))
        if outside:
            self.arrows.append(arrow(at, len(self.boxes), outside, self._tools))
            self.boxes.append(_more(q, len(missing)))

    def _state(self, q: int) -> Box:
        artifact = self._artifact
        plans = screen.big(artifact.plans(q))
        bound = "" if artifact.manifest.counts == "exact" else "at most "
        facts = (
            ("state", str(q)),
            ("plans below", bound + plans),
            ("a plan may stop here", "yes" if artifact.accepts(q) else "no"),
            ("most calls to come", str(artifact.rank(q))),
            ("least cost to come", format_decimal(artifact.cost_to_go(q), 9)),
        )
        return Box(
            name=f"q{q}",
            kind="state",
            root=q == artifact.root,
            accept=artifact.accepts(q),
            lines=(f"state {q}", f"{bound}{plans} plan{'' if plans == '1' else 's'}"),
            facts=facts,
        )


def _more(q: int, states: int) -> Box:
    said = f"{states} more state{'' if states == 1 else 's'}"
    return Box(
        name=f"m{q}",
        kind="more",
        root=False,
        accept=False,
        lines=(said,),
        facts=(("not shown", said),),
    )

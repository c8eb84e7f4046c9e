"""Pictures of artifacts: DOT, Mermaid, SVG, and an HTML page to explore the SVG."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tcc import screen
from tcc.pictures.graph import Prefix
from tcc_certs.errors import escaped
from tcc_certs.formats.codec import format_decimal, written
from tcc_certs.policy.listing import relaxed_texts, shortened
from tcc_runtime.artifact.load import Artifact

_NO_XML = re.compile("[\ufffe\uffff]")

Kind: TypeAlias = Literal["state", "leaf", "cut", "more"]

MOST_LINES: Final = 4
MOST_CELLS: Final = 44
MOST_CALLS: Final = 60  # calls listed for an arrow


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A state, a prefix, or a placeholder for states that are left out.

    Attributes:
        name: a unique name of letters and digits.
        kind: `state`; `leaf`, a complete plan; `cut`, a prefix that is not followed further;
            `more`, a placeholder.
        root: whether plans begin here.
        accept: whether a plan may stop here.
        lines: the text in the box.
        facts: names and values, shown when the pointer is over the box.
    """

    name: str
    kind: Kind
    root: bool
    accept: bool
    lines: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """All calls that lead from a box to another.

    Attributes:
        source, target: indices in the list of boxes, the source before the target.
        lines: the text on the arrow, at most MOST_LINES lines.
        calls: the texts of the calls, at most MOST_CALLS of them.
        more: the number of further calls.
    """

    source: int
    target: int
    lines: tuple[str, ...]
    calls: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Boxes and arrows without a cycle.

    Attributes:
        title: the name of the artifact.
        about: names and values about the artifact.
        boxes: the boxes, sources before targets.
        arrows: the arrows between boxes.
        left_out: a sentence about omitted states or prefixes; None if everything is shown.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: str | None


def arrow(source: int, target: int, calls: Sequence[str], tools: Mapping[str, str]) -> Arrow:
    """Return the arrow for some calls; many calls are shown as tools with numbers of calls."""
    return Arrow(
        source=source,
        target=target,
        lines=_lines(calls, tools),
        calls=tuple(seen(call) for call in calls[:MOST_CALLS]),
        more=max(0, len(calls) - MOST_CALLS),
    )


def _lines(calls: Sequence[str], tools: Mapping[str, str]) -> tuple[str, ...]:
    if len(calls) <= MOST_LINES:
        return tuple(short(call) for call in calls)
    by_tool: dict[str, int] = {}
    for call in calls:
        by_tool[tools[call]] = by_tool.get(tools[call], 0) + 1
    texts = [
        short(written(tool)) if count == 1 else f"{short(written(tool))} ({count} calls)"
        for tool, count in by_tool.items()
    ]
    return tuple(_cut(texts))


def _cut(texts: Sequence[str]) -> Iterable[str]:
    if len(texts) <= MOST_LINES:
        return texts
    return [*texts[: MOST_LINES - 1], f"and {len(texts) - MOST_LINES + 1} more tools"]


def seen(text: str) -> str:
    """Return a text with hidden characters escaped, and characters that XML does not allow."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(text))


def short(text: str) -> str:
    """Return a text as :func:`seen`, cut to MOST_CELLS columns."""
    # `seen` escapes half of a surrogate pair, so cutting a pair here does no harm.
    shown = seen(text[: 4 * MOST_CELLS])
    if len(text) <= 4 * MOST_CELLS and cells(shown) <= MOST_CELLS:
        return shown
    kept, width = [], 0
    for char in shown:
        width += cells(char)
        if width > MOST_CELLS - 1:
            break
        kept.append(char)
    return f"{''.join(kept)}…"


def cells(text: str) -> int:
    """Return the number of columns that a text takes in a font of fixed width."""
    if text.isascii():
        return len(text)
    wide = sum(1 for char in text if unicodedata.east_asian_width(char) in "WF")
    return len(text) + wide


# The shared graph: the first states in breadth-first order from the root.

MOST_ARROWS: Final = 1500


def picture_of(artifact: Artifact, max_states: int) -> Picture:
    """Return a picture of at most `max_states` states; of fewer if they have too many arrows."""
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
    """Return names and values that describe an artifact next to its picture."""
    manifest, root = artifact.manifest, artifact.root
    bound = "" if manifest.counts == "exact" else "at most "
    relaxed = relaxed_texts(artifact.core, manifest.relaxed)
    left = [("left to a run", short(shortened(relaxed)))] if relaxed else []
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
    """Return the first states in breadth-first order, sorted so that sources precede targets."""
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
    """The boxes and arrows of the chosen states."""

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


# The unrolled part of the prefix DAG.


def picture_of_prefixes(artifact: Artifact, prefixes: Sequence[Prefix], depth: int) -> Picture:
    """Return the prefixes as a tree; a cut prefix shows how many plans begin with it."""
    tools = {call.text: artifact.core.tools[call.tool].name for call in artifact.core.calls}
    cut = sum(1 for node in prefixes if node.kind == "cut")
    return Picture(
        title=f"{artifact.manifest.grammar} {artifact.manifest.version}, prefixes to depth {depth}",
        about=(*about(artifact), ("prefixes", screen.big(len(prefixes)))),
        boxes=tuple(_box(node) for node in prefixes),
        arrows=tuple(_arrows(artifact, prefixes, tools)),
        left_out=f"{screen.big(cut)} prefixes are not followed further" if cut else None,
    )


def _arrows(artifact: Artifact, prefixes: Sequence[Prefix], tools: dict[str, str]) -> list[Arrow]:
    found = []
    for node in prefixes:
        if node.parent is None:
            continue
        if node.call is None:
            found.append(
                Arrow(source=node.parent, target=node.number, lines=("stop",), calls=(), more=0)
            )
        else:
            found.append(arrow(node.parent, node.number, [artifact.texts[node.call]], tools))
    return found


def _box(node: Prefix) -> Box:
    plans = screen.big(node.plans)
    cost = format_decimal(node.cost, 9)
    count = f"{plans} plan{'' if plans == '1' else 's'}"
    facts = (
        ("calls so far", seen(node.prefix) or "none"),
        ("plans that begin so", plans),
        ("cost so far", cost),
        ("least cost to come", format_decimal(node.cost_to_go, 9)),
        ("a plan may stop here", "yes" if node.accept else "no"),
        ("state", str(node.state)),
        ("context", node.context.hex()),
        *((("leaf", node.leaf_id.hex()),) if node.leaf_id is not None else ()),
    )
    return Box(
        name=f"p{node.number}",
        kind="state" if node.kind == "node" else node.kind,
        root=node.parent is None,
        accept=node.kind == "leaf",
        lines=(f"plan, cost {cost}",) if node.kind == "leaf" else (count, f"cost {cost}"),
        facts=facts,
    )

"""The picture of the unrolled part of the prefix DAG.  Cost: linear in its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from tcc import screen
from tcc.graphs.unrolling import Prefix
from tcc.pictures.of_artifact import about
from tcc.pictures.picture import Arrow, Box, Picture, arrow, seen
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.artifact.load import Artifact


def picture_of_prefixes(artifact: Artifact, prefixes: Sequence[Prefix], depth: int) -> Picture:
    """The prefixes as a tree; those that are not followed say how many plans begin so."""
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

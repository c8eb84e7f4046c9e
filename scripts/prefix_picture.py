"""Draws an automaton and its prefix DAG, with the digests of a real artifact: Fig. 1a of the paper.

    python scripts/prefix_picture.py docs/paper/prefix.svg

Nodes with the same state have the same colour and numbers; their digests differ.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import tcc

GRAMMAR = """grammar diamond version "1"

tool search { cost 1 }
tool ask { cost 2 }
tool summarise { cost 1 }
tool check { cost 1 }

plan = (search | ask) summarise check?
"""
DEPTH = 3
WIDTH, LEVEL, TOP = 900, 104, 96
INK, SOFT = "#222222", "#767676"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#8a5a83")  # of the states 0, 1, 2, ..


def picture() -> str:
    """Return the SVG."""
    artifact = tcc.compile_text(GRAMMAR)
    states, prefixes = artifact.to_networkx(), artifact.prefix_dag(DEPTH)
    height = TOP + LEVEL * DEPTH + 90
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="Helvetica, Arial, sans-serif" font-size="12" '
        f'fill="{INK}" role="img">'
    )
    lines = [
        head,
        "<title>The states of an artifact, and the prefix DAG that they stand for</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(110, 30, f"The artifact: {states.number_of_nodes()} states", 15),
        _text(580, 30, f"The prefix DAG: {prefixes.number_of_nodes()} nodes", 15),
        _text(110, 50, "q, and N(q) plans from here", 12, SOFT),
        _text(580, 50, "(state, first digits of D), and N(v) plans below", 12, SOFT),
        *_automaton(states),
        *_tree(prefixes),
        _text(
            WIDTH / 2,
            height - 18,
            "One colour, one state: the same may follow, so N, m, h and g are the same. "
            "The prefixes differ. A small circle is a leaf.",
            12,
            SOFT,
        ),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _automaton(states: Any) -> list[str]:
    root = states.graph["root"]
    ranks = {q: data["rank"] for q, data in states.nodes(data=True)}
    places = {q: (110.0, TOP + LEVEL * (ranks[root] - rank)) for q, rank in ranks.items()}
    lines: list[str] = []
    seen: dict[tuple[int, int], list[str]] = {}
    for source, target, data in states.edges(data=True):
        seen.setdefault((source, target), []).append(data["call"])
    for (source, target), calls in sorted(seen.items()):
        (x, y), (to_x, to_y) = places[source], places[target]
        for number, call in enumerate(sorted(calls)):
            bend = 34 * (2 * number - len(calls) + 1) if len(calls) > 1 else 0
            curve = (
                f"M {x:.0f} {y + 20:.0f} Q {x + 2 * bend:.0f} {(y + to_y) / 2:.0f} "
                f"{to_x:.0f} {to_y - 20:.0f}"
            )
            lines += [
                f'<path d="{curve}" fill="none" stroke="{SOFT}"/>',
                _text(x + bend + (0 if bend else 34), (y + to_y) / 2 + 4, call, 12),
            ]
    for q, data in states.nodes(data=True):
        x, y = places[q]
        lines += _box(x, y, 92, COLOURS[q], f"state {q}", f"N = {data['plans']}", data["accept"])
    return lines


def _tree(prefixes: Any) -> list[str]:
    places: dict[int, tuple[float, float]] = {}
    ends = [node for node in prefixes if prefixes.out_degree(node) == 0]

    def place(node: int) -> float:
        children = list(prefixes.successors(node))
        x = (
            sum(map(place, children)) / len(children)
            if children
            else 280 + 640 * (ends.index(node) + 0.5) / len(ends)
        )
        level = prefixes.nodes[node]["depth"] + 0.8 * _stops(prefixes, node)
        places[node] = (x, TOP + LEVEL * level)
        return x

    ends = _in_order(prefixes, 0)
    place(0)
    lines: list[str] = []
    for source, target, data in prefixes.edges(data=True):
        (x, y), (to_x, to_y) = places[source], places[target]
        end = to_y - (7 if prefixes.nodes[target]["kind"] == "leaf" else 20)
        line = f'x1="{x:.0f}" y1="{y + 20:.0f}" x2="{to_x:.0f}" y2="{end:.0f}"'
        lines += [
            f'<line {line} stroke="{SOFT}"/>',
            _text(
                (x + to_x) / 2,
                (y + to_y) / 2 + 4,
                "stop" if _stops(prefixes, target) else data["call"],
                12,
            ),
        ]
    for node, data in prefixes.nodes(data=True):
        x, y = places[node]
        if data["kind"] == "leaf":
            lines.append(f'<circle cx="{x:.0f}" cy="{y:.0f}" r="6" fill="#ffffff" stroke="{INK}"/>')
            lines.append(_text(x, y + 22, f"L = {data['leaf_id'][:4]}..", 11, SOFT))
        else:
            name = f"({data['state']}, {data['context'][:4]}..)"
            lines += _box(x, y, 104, COLOURS[data["state"]], name, f"N = {data['plans']}", False)
    return lines


def _stops(prefixes: Any, node: int) -> bool:
    """Return whether a node is the leaf for stopping at its parent, without another call."""
    (above,) = list(prefixes.predecessors(node)) or [node]
    return above != node and prefixes.nodes[above]["depth"] == prefixes.nodes[node]["depth"]


def _in_order(prefixes: Any, node: int) -> list[int]:
    """Return the leaves below a node, from left to right."""
    children = list(prefixes.successors(node))
    return [end for child in children for end in _in_order(prefixes, child)] or [node]


def _box(
    x: float, y: float, width: int, colour: str, name: str, more: str, ends: bool
) -> list[str]:
    outline = f'x="{x - width / 2:.0f}" y="{y - 20:.0f}" width="{width}" height="40" rx="6"'
    return [
        f'<rect {outline} fill="#ffffff" stroke="{colour}" stroke-width="{4 if ends else 2}"/>',
        _text(x, y - 3, name, 12, colour),
        _text(x, y + 13, more, 12),
    ]


def _text(x: float, y: float, words: str, size: int, colour: str = INK) -> str:
    return (
        f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" fill="{colour}" '
        f'text-anchor="middle" stroke="#ffffff" stroke-width="5" paint-order="stroke">'
        f"{words}</text>"
    )


def main(places: list[str]) -> int:
    """Write the picture to each path; return the exit code."""
    for place in places:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(picture(), encoding="utf-8", newline="\n")
    return 0 if places else 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

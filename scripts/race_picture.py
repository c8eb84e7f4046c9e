"""Draws one realised race at a node, with the numbers of a run: the paper's Fig. 1b.

    python scripts/race_picture.py docs/paper/race.svg experiments/figures/race.svg

The first arrival below the node is the arrival of the node itself.  The winning child reuses it.
Each other child arrives later by an exponential with its own rate.  Seed and plans are fixed, so
the picture has the same bytes each time.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tcc_experiments.graphs import compiled
from tcc_experiments.listing import Listing
from tcc_experiments.model import seed_of

# Three first calls, which lead to three plans, one plan and two plans.
PLANS = """grammar race version "1"

tool search { cost 1 }
tool ask { cost 1 }
tool count { cost 1 }
tool a { cost 1 }
tool b { cost 1 }
tool c { cost 1 }

plan = search (a | b | c) | ask | count (a | b)
"""
SEED = seed_of("race picture", 1)
WIDTH, LEFT, RIGHT, TOP, ROW = 640, 150, 600, 96, 62
LEGEND = (
    "The winner is drawn by its share of the plans; each other child comes after t(v) by an "
    "exponential of its own."
)
INK, SOFT, WINNER, LATE = "#222222", "#8a8a8a", "#0072B2", "#D55E00"


def picture() -> str:
    """Return the SVG."""
    listing = Listing(compiled(PLANS))
    race = listing.race(SEED)
    first = race.arrival[0]
    children = [
        (_name(listing, at), listing.count(at), race.arrival[at]) for at in listing.children(0)
    ]
    last = max(arrival for _, _, arrival in children)
    height = TOP + ROW * len(children) + 64

    def x(arrival: float) -> float:
        return LEFT + (RIGHT - LEFT) * arrival / (1.18 * last)

    style = (
        f'width="{WIDTH}" height="{height}" font-family="Helvetica, Arial, sans-serif" '
        f'font-size="13" fill="{INK}" role="img"'
    )
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {style}>',
        "<title>One race at a node: the winner reuses the arrival, the others come later</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(20, 30, f"A node v with {listing.count(0)} plans below: its first arrival", 15),
        _text(20, 52, f"t(v) = {first:.3f}, an exponential of rate {listing.count(0)}", 13, SOFT),
        _line(x(first), TOP - 22, x(first), height - 74, WINNER, ' stroke-dasharray="4 4"'),
        _text(x(first), TOP - 28, "t(v)", 13, WINNER, "middle"),
    ]
    for row, (name, plans, arrival) in enumerate(children):
        y = TOP + ROW * row + 20
        won = arrival == first
        colour = WINNER if won else LATE
        many = f"{plans} plan{'s' * (plans > 1)}"
        lines += [
            _text(20, y + 1, name, 13),
            _text(20, y + 17, many, 11, SOFT),
            _line(LEFT, y, RIGHT, y, "#d0d0d0"),
        ]
        if not won:
            lines += [
                _line(x(first), y, x(arrival), y, LATE, ' stroke-width="3"'),
                _text(
                    (x(first) + x(arrival)) / 2,
                    y + 18,
                    f"E = {arrival - first:.3f}, rate {plans}",
                    11,
                    LATE,
                    "middle",
                ),
            ]
        said = f"wins: t = t(v) = {arrival:.3f}" if won else f"t = {arrival:.3f}"
        lines += [
            f'<circle cx="{x(arrival):.1f}" cy="{y}" r="5" fill="{colour}"/>',
            _text(x(arrival) + (9 if won else 0), y - 9, said, 12, colour, *_anchor(won)),
        ]
    base = TOP + ROW * len(children)
    lines += [
        _line(LEFT, base, RIGHT, base, INK),
        f'<path d="M {RIGHT} {base} l -8 -4 v 8 z"/>',
        _text(RIGHT, base + 18, "time", 12, INK, "end"),
        _text(LEFT, base + 18, "0", 12, INK, "middle"),
        _text(20, base + 46, LEGEND, 11, SOFT),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _anchor(won: bool) -> tuple[str]:
    return ("start",) if won else ("middle",)


def _name(listing: Listing, at: int) -> str:
    """Return the call that leads to a child of the root."""
    artifact = listing.artifact
    call = artifact.edges(artifact.root)[at - listing.places[0].first][0]
    return artifact.texts[call]


def _line(x: float, y: float, to_x: float, to_y: float, colour: str, more: str = "") -> str:
    return (
        f'<line x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}" stroke="{colour}"{more}/>'
    )


def _text(
    x: float, y: float, words: str, size: int, colour: str = INK, anchor: str = "start"
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{colour}" '
        f'text-anchor="{anchor}">{words}</text>'
    )


def main(places: list[str]) -> int:
    """Write the picture to each path; return the exit code."""
    for place in places:
        Path(place).parent.mkdir(parents=True, exist_ok=True)
        Path(place).write_text(picture(), encoding="utf-8", newline="\n")
    return 0 if places else 2


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

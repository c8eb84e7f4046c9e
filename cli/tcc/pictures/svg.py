"""Pictures as SVG, and as an HTML page around the SVG with details and a search for calls.

Why a new layout: Graphviz is a separate program, and its versions place boxes differently.  The
layouts of networkx use random numbers, numpy or scipy, and have no layers.  Here the same artifact
gives the same bytes on every machine, and ranks already give the layers of the automaton.  Texts
are escaped for XML, and the title of a box or an arrow contains all its details.  The page loads
nothing, and its policy allows only its own script.  Without the script the drawing and its titles
are still complete.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise
from typing import Final, Literal, TypeAlias
from xml.sax.saxutils import escape

from tcc.pictures import Arrow, Box, Picture, cells
from tcc.pictures.markup import dot_text, mermaid_text

Size: TypeAlias = "tuple[int, int]"

MOST_BENDS: Final = 20_000
BEND: Final = (0, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layered:
    """Items in layers, and the lines between neighbouring layers.

    The items are first the boxes, by their indices, then labels and bends of arrows.

    Attributes:
        layers: the items of each layer, in the order of their creation.
        sizes: the width and height of each item.
        before: for each item, the items in the previous layer that a line joins to it.
        after: for each item, the items in the next layer that a line joins to it.
        ways: the items on each arrow, from its source to its target.  They are in consecutive
            layers, except that an arrow without bends may skip layers before its target.
    """

    layers: list[list[int]]
    sizes: list[Size]
    before: list[list[int]]
    after: list[list[int]]
    ways: list[list[int]]


def layered(
    boxes: Sequence[Size], arrows: Sequence[tuple[int, int]], labels: Sequence[Size]
) -> Layered:
    """Assign boxes, and the labels and bends of arrows, to layers; sources precede targets."""
    depth = _depths(len(boxes), arrows)
    spans = [depth[target] - depth[source] for source, target in arrows]
    longest = _longest_bent(spans)
    sizes = list(boxes)
    layers: list[list[int]] = [[] for _ in range(2 * max(depth, default=0) + 1)]
    for box, at in enumerate(depth):
        layers[2 * at].append(box)
    ways = []
    for (source, target), label, span in zip(arrows, labels, spans, strict=True):
        way = [source]
        first = 2 * depth[source] + 1
        last = 2 * depth[target] if span <= longest else first + 1
        for layer in range(first, last):
            way.append(len(sizes))
            layers[layer].append(len(sizes))
            sizes.append(label if layer == first else BEND)
        ways.append([*way, target])
    return _joined(layers, sizes, ways)


def _joined(layers: list[list[int]], sizes: list[Size], ways: list[list[int]]) -> Layered:
    before: list[list[int]] = [[] for _ in sizes]
    after: list[list[int]] = [[] for _ in sizes]
    where = {item: at for at, layer in enumerate(layers) for item in layer}
    for way in ways:
        for one, other in pairwise(way):
            if where[other] == where[one] + 1:  # false before the target of an arrow without bends
                after[one].append(other)
                before[other].append(one)
    return Layered(layers=layers, sizes=sizes, before=before, after=after, ways=ways)


def _depths(boxes: int, arrows: Sequence[tuple[int, int]]) -> list[int]:
    leaving: list[list[int]] = [[] for _ in range(boxes)]
    for source, target in arrows:
        leaving[source].append(target)
    depth = [0] * boxes
    for source in range(boxes):
        for target in leaving[source]:
            depth[target] = max(depth[target], depth[source] + 1)
    return depth


def _longest_bent(spans: Sequence[int]) -> int:
    """Return the longest span whose arrows get bends; there are at most MOST_BENDS bends."""
    longest = bends = 0
    for span in sorted(spans):
        bends += 2 * span
        if bends > MOST_BENDS:
            break
        longest = span
    return longest


# The order in each layer: barycentres in a fixed number of sweeps, of which the best order is kept.
# Ties keep their previous order.  Cost: SWEEPS sorts and counts of crossings, each nearly linear in
# the lines.

SWEEPS: Final = 8
_SCALE: Final = 1 << 16


def ordered(found: Layered) -> list[list[int]]:
    """Return the layers with their items in an order that has few crossings."""
    layers = [list(layer) for layer in found.layers]
    best, fewest = layers, crossings(found, layers)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        layers = [list(layer) for layer in layers]
        forward = sweep % 2 == 0
        steps = range(1, len(layers)) if forward else range(len(layers) - 2, -1, -1)
        for at in steps:
            beside = layers[at - 1] if forward else layers[at + 1]
            _sort(layers[at], beside, found.before if forward else found.after)
        crossed = crossings(found, layers)
        if crossed < fewest:
            best, fewest = layers, crossed
    return best


def _sort(layer: list[int], beside: list[int], joined: list[list[int]]) -> None:
    """Sort a layer by the mean place of each item's neighbours; an item without any stays put."""
    place = {item: at for at, item in enumerate(beside)}
    means = {}
    for at, item in enumerate(layer):
        near = joined[item]
        total = sum([place[other] for other in near])
        means[item] = total * _SCALE // len(near) if near else at * _SCALE
    layer.sort(key=means.__getitem__)


def crossings(found: Layered, layers: list[list[int]]) -> int:
    """Count the pairs of lines that cross between neighbouring layers."""
    total = 0
    for upper, lower in pairwise(layers):
        place = {item: at for at, item in enumerate(lower)}
        ends = [
            end for item in upper for end in sorted(place[other] for other in found.after[item])
        ]
        total += _inversions(ends, len(lower))
    return total


def _inversions(ends: list[int], width: int) -> int:
    """Count the pairs in decreasing order with a binary indexed tree (Fenwick 1994)."""
    tree = [0] * (width + 1)
    total = 0
    for seen, end in enumerate(ends):
        at, not_above = end + 1, 0
        while at:
            not_above += tree[at]
            at &= at - 1
        total += seen - not_above
        at = end + 1
        while at <= width:
            tree[at] += 1
            at += at & -at
    return total


# Coordinates: layers from left to right, items from top to bottom.  The items of a layer keep their
# order and their minimal distances, and come as near as possible, in least squares, to the items
# that they are joined to.  This is an isotonic regression (pool adjacent violators; Barlow et al.,
# "Statistical Inference under Order Restrictions", 1972).  Bends have a greater weight, so that
# long lines are straight.

PASSES: Final = 6
GAP: Final = 14  # between two items of a layer
NARROW: Final = 5  # between two items of which at least one is a bend
ASIDE: Final = 34  # between two layers
_BEND_WEIGHT: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """The places of the items.

    Attributes:
        left: the left edge of each item.
        middle: the vertical centre of each item.
        width, height: the size of the drawing, whose coordinates start at 0.
    """

    left: list[int]
    middle: list[int]
    width: int
    height: int


def placed(found: Layered, order: Sequence[Sequence[int]]) -> Placed:
    """Compute the places of the items; the layers have this order."""
    sizes = found.sizes
    middle = [0] * len(sizes)
    for layer in order:
        _settle(layer, [0] * len(layer), sizes, middle)
    for turn in range(PASSES):
        forward = turn % 2 == 0
        for layer in order if forward else reversed(order):
            beside = found.before if forward else found.after
            last = turn >= PASSES - 2
            wanted = [_wanted(item, beside, found, middle, last) for item in layer]
            _settle(layer, wanted, sizes, middle)
    top = min((middle[item] - sizes[item][1] // 2 for item in range(len(sizes))), default=0)
    middle = [at - top for at in middle]
    left, width = _columns(order, sizes)
    height = max((middle[item] + sizes[item][1] // 2 + 1 for item in range(len(sizes))), default=0)
    return Placed(left=left, middle=middle, width=width, height=height)


def _wanted(
    item: int, beside: list[list[int]], found: Layered, middle: list[int], both: bool
) -> int:
    """Return the mean height of an item's neighbours, or its own height if it has none."""
    near = [*found.before[item], *found.after[item]] if both else beside[item]
    if not near:
        return middle[item]
    return sum([middle[other] for other in near]) // len(near)


def _settle(
    layer: Sequence[int], wanted: Sequence[int], sizes: Sequence[Size], middle: list[int]
) -> None:
    """Place the items of a layer as near as possible to the wanted heights, without overlaps."""
    offsets, at = [], 0
    for place, item in enumerate(layer):
        if place:
            above = layer[place - 1]
            gap = NARROW if BEND in (sizes[above], sizes[item]) else GAP
            at += (sizes[above][1] + sizes[item][1] + 1) // 2 + gap
        offsets.append(at)
    # Blocks of touching items: weighted sum of their wanted places, weight, number of items.
    blocks: list[tuple[int, int, int]] = []
    for item, want, offset in zip(layer, wanted, offsets, strict=True):
        weight = _BEND_WEIGHT if sizes[item] == BEND else 1
        block = (weight * (want - offset), weight, 1)
        while blocks and blocks[-1][0] * block[1] > block[0] * blocks[-1][1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    place = 0
    for total, weight, count in blocks:
        for _ in range(count):
            middle[layer[place]] = total // weight + offsets[place]
            place += 1


def _columns(order: Sequence[Sequence[int]], sizes: Sequence[Size]) -> tuple[list[int], int]:
    """Return the left edge of each item, centred in its layer, and the total width."""
    left = [0] * len(sizes)
    at = 0
    for layer in order:
        width = max(sizes[item][0] for item in layer) if layer else 0
        for item in layer:
            left[item] = at + (width - sizes[item][0]) // 2
        at += width + ASIDE
    return left, max(0, at - ASIDE)


CELL, LINE = 7, 16  # width and height of a character, in pixels
MARGIN: Final = 24


def svg_text(picture: Picture) -> str:
    """Return a complete SVG document: the drawing with its style, below its title."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing(picture, style=True)}\n'


def drawing(picture: Picture, *, style: bool) -> str:
    """Return the `svg` element, without the style if the surrounding page has it."""
    boxes = [_size(box.lines, 18, 12) for box in picture.boxes]
    labels = [_size(arrow.lines, 8, 4) for arrow in picture.arrows]
    found = layered(boxes, [(arrow.source, arrow.target) for arrow in picture.arrows], labels)
    places = placed(found, ordered(found))
    return "\n".join(_lines(picture, found, places, style))


def _lines(picture: Picture, found: Layered, places: Placed, style: bool) -> Iterator[str]:
    heading = [picture.title, *(f"{name}: {value}" for name, value in picture.about)]
    if picture.left_out is not None:
        heading.append(picture.left_out)
    above = LINE * (len(heading) + 1) if style else 0
    widest = max(map(cells, heading)) * CELL if style else 0
    width = 2 * MARGIN + max(places.width, widest)
    height = 2 * MARGIN + places.height + above
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{xml(picture.title)}">'
    )
    yield f"<title>{xml(picture.title)}</title>"
    if style:
        yield f"<style>{files('tcc.pictures').joinpath('drawing.css').read_text('utf-8')}</style>"
        yield f'<rect class="paper" width="{width}" height="{height}"/>'
        for at, line in enumerate(heading):
            place = f'x="{MARGIN}" y="{MARGIN + LINE * at + 4}"'
            yield f'<text class="{"heading" if not at else "about"}" {place}>{xml(line)}</text>'
    yield (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>'
    )
    yield f'<g transform="translate({MARGIN} {MARGIN + above})">'
    for number, arrow in enumerate(picture.arrows):
        yield from _arrow(number, arrow, picture.boxes, found, places)
    for at, box in enumerate(picture.boxes):
        yield from _box(box, found.sizes[at], places.left[at], places.middle[at])
    yield "</g>"
    yield "</svg>"


def _size(lines: Sequence[str], wider: int, higher: int) -> Size:
    return CELL * max(map(cells, lines), default=0) + wider, LINE * len(lines) + higher


def _box(box: Box, size: Size, left: int, middle: int) -> Iterator[str]:
    width, height = size
    top = middle - height // 2
    kinds = [box.kind, *(["root"] if box.root else []), *(["accept"] if box.accept else [])]
    yield f'<g class="box {" ".join(kinds)}" id="{box.name}">'
    yield f"<title>{xml(_told(box.facts))}</title>"
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'
    if box.accept:
        inner = f'width="{width - 6}" height="{height - 6}" rx="4"'
        yield f'<rect class="inner" x="{left + 3}" y="{top + 3}" {inner}/>'
    yield from _texts(box.lines, left + width // 2, top + 6)
    yield "</g>"


def _arrow(
    number: int, arrow: Arrow, boxes: Sequence[Box], found: Layered, places: Placed
) -> Iterator[str]:
    way = found.ways[number]
    label = way[1]
    width, height = found.sizes[label]
    left, middle = places.left[label], places.middle[label]
    ends = f'data-from="{boxes[arrow.source].name}" data-to="{boxes[arrow.target].name}"'
    yield f'<g class="arrow" id="a{number}" {ends}>'
    more = [f"and {arrow.more} more"] if arrow.more else []
    yield f"<title>{xml(chr(10).join([*(arrow.calls or arrow.lines), *more]))}</title>"
    yield f'<path marker-end="url(#head)" d="{_curve(way, found, places)}"/>'
    top = middle - height // 2
    yield f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="3"/>'
    yield from _texts(arrow.lines, left + width // 2, top + 2)
    yield "</g>"


def _curve(way: Sequence[int], found: Layered, places: Placed) -> str:
    """Return the path from the source's right edge through the bends to the target's left edge."""
    at = places.left[way[0]] + found.sizes[way[0]][0], places.middle[way[0]]
    parts = [f"M{at[0]} {at[1]}"]
    for place, item in enumerate(way[1:], 1):
        left, middle, width = places.left[item], places.middle[item], found.sizes[item][0]
        half = (at[0] + left) // 2
        parts.append(f"C{half} {at[1]} {half} {middle} {left} {middle}")
        if place < len(way) - 1 and width:
            parts.append(f"H{left + width}")
        at = left + width, middle
    return "".join(parts)


def _texts(lines: Sequence[str], centre: int, top: int) -> Iterator[str]:
    for at, line in enumerate(lines):
        yield f'<text x="{centre}" y="{top + LINE * at + 12}">{xml(line)}</text>'


def _told(facts: Sequence[tuple[str, str]]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in facts)


def xml(text: str) -> str:
    """Escape a text for XML, in an element or in double quotes."""
    return escape(text, {'"': "&quot;", "'": "&#39;"})


# The page.


def page_text(picture: Picture) -> str:
    """Return the HTML document."""
    script = _resource("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    about = "".join(
        f"<div><dt>{xml(name)}</dt><dd>{xml(value)}</dd></div>" for name, value in picture.about
    )
    left_out = f'<p id="left-out">{xml(picture.left_out)}</p>' if picture.left_out else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{xml(picture.title)}</title>
<style>{_resource("drawing.css")}{_resource("page.css")}</style>
</head>
<body>
<header>
<h1>{xml(picture.title)}</h1>
<dl>{about}</dl>
{left_out}
</header>
<div id="tools">
<label>Find a call <input id="search" type="search" autocomplete="off" spellcheck="false"></label>
<output id="found"></output>
<span id="buttons">
<button id="nearer" type="button" aria-label="Nearer">+</button>
<button id="farther" type="button" aria-label="Farther">&minus;</button>
<button id="whole" type="button">All of it</button>
</span>
<span id="keys">drag, wheel, arrows, + and &minus;, 0 for all of it, / to find, Tab for the
next box</span>
</div>
<main>
<div id="picture" tabindex="0">
{drawing(picture, style=False)}
</div>
<aside id="details" aria-live="polite"><p>Point at a box or an arrow.</p></aside>
</main>
<script type="application/json" id="data">{_data(picture)}</script>
<script>{script}</script>
</body>
</html>
"""


def _data(picture: Picture) -> str:
    """Return the data of the script as JSON that cannot close its own element."""
    said = {box.name: _box_details(box) for box in picture.boxes}
    said |= {
        f"a{number}": _arrow_details(arrow, picture.boxes)
        for number, arrow in enumerate(picture.arrows)
    }
    text = json.dumps(said, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _box_details(box: Box) -> dict[str, object]:
    return {"title": ", ".join(box.lines), "facts": box.facts}


def _arrow_details(arrow: Arrow, boxes: tuple[Box, ...]) -> dict[str, object]:
    source, target = boxes[arrow.source].lines[0], boxes[arrow.target].lines[0]
    title = f"from {source} to {target}"
    return {"title": title, "calls": arrow.calls or arrow.lines, "more": arrow.more}


def _resource(name: str) -> str:
    return files("tcc.pictures").joinpath(name).read_text("utf-8")


# All formats.

Format: TypeAlias = Literal["dot", "mermaid", "svg", "html"]

FORMATS: Final = ("dot", "mermaid", "svg", "html")


def drawn(picture: Picture, output_format: Format) -> str:
    """Return the text of a picture in one of FORMATS, ending with one line feed."""
    match output_format:
        case "dot":
            return dot_text(picture)
        case "mermaid":
            return mermaid_text(picture)
        case "svg":
            return svg_text(picture)
        case "html":
            return page_text(picture)

"""Pictures as SVG, and as an HTML page around the SVG with details and a search of calls.

The layout is our own (:mod:`tcc.pictures.layout` says why): no other program is needed, and the
bytes are always the same.  Texts are escaped for XML; the title of a box or an arrow states
everything about it.  The page loads nothing, and its policy allows no script but its own; without
that script the drawing and its titles are complete.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from importlib.resources import files
from typing import Final
from xml.sax.saxutils import escape

from tcc.pictures.layout import Layered, Placed, Size, layered, ordered, placed
from tcc.pictures.picture import Arrow, Box, Picture, cells

CELL, LINE = 7, 16  # of a character of the font, in pixels
MARGIN: Final = 24


def svg_text(picture: Picture) -> str:
    """A document of its own: the drawing with its style, its title above it."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{drawing(picture, style=True)}\n'


def drawing(picture: Picture, *, style: bool) -> str:
    """The `svg` element; without its style for a page that has it."""
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
    """From the right of the source through labels and bends to the left of the target."""
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
    """A text that was escaped for people as one for XML, in an element or in double quotes."""
    return escape(text, {'"': "&quot;", "'": "&#39;"})


# The page.


def page_text(picture: Picture) -> str:
    """The HTML document."""
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
    """What the script shows, as JSON in which nothing can end the element."""
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

"""A picture as a page of its own: the drawing, what is known of its parts, a search of calls.

Nothing is loaded from elsewhere: style and script stand in the page, and its policy lets no other
script run, whatever stands in a text.  Without a script the drawing and its titles are all there.
"""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files

from tcc.pictures.picture import Arrow, Box, Picture
from tcc.pictures.svg import drawing, xml


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
    said = {box.name: _box(box) for box in picture.boxes}
    said |= {
        f"a{number}": _arrow(arrow, picture.boxes) for number, arrow in enumerate(picture.arrows)
    }
    text = json.dumps(said, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _box(box: Box) -> dict[str, object]:
    return {"title": ", ".join(box.lines), "facts": box.facts}


def _arrow(arrow: Arrow, boxes: tuple[Box, ...]) -> dict[str, object]:
    source, target = boxes[arrow.source].lines[0], boxes[arrow.target].lines[0]
    title = f"from {source} to {target}"
    return {"title": title, "calls": arrow.calls or arrow.lines, "more": arrow.more}


def _resource(name: str) -> str:
    return files("tcc.pictures").joinpath(name).read_text("utf-8")

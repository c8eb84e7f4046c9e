"""A picture as a flowchart of Mermaid.

Texts stand in double quotes, and every character that might mean something there, or in the HTML
that Mermaid makes of it, is written as its number (`#35;`; https://mermaid.js.org/syntax/flowchart.html).
Cost: linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcc.pictures.picture import Box, Picture

_OTHER = re.compile(r"[^A-Za-z0-9 _.,=():/+*^-]")
_CLASSES = {
    "accept": "stroke:#2b7a3f,stroke-width:2px",
    "more": "stroke-dasharray:5 4",
    "root": "stroke-width:3px",
}


def mermaid_text(picture: Picture) -> str:
    """The text of one flowchart."""
    # A comment ends with its line, and has no quotes to leave.
    said = [picture.title, *(f"{name}: {value}" for name, value in picture.about)]
    if picture.left_out is not None:
        said.append(picture.left_out)
    lines = ["flowchart LR", *(f"  %% {_numbered(text)}" for text in said)]
    lines += [f"  {_box(box)}" for box in picture.boxes]
    names = [box.name for box in picture.boxes]
    lines += [
        f"  {names[arrow.source]} -->|{_quoted(arrow.lines)}| {names[arrow.target]}"
        for arrow in picture.arrows
    ]
    lines += [f"  classDef {name} {style}" for name, style in _CLASSES.items()]
    return "\n".join(lines) + "\n"


def _box(box: Box) -> str:
    kinds = ["root"] if box.root else []
    kinds += ["accept"] if box.accept else []
    kinds += ["more"] if box.kind in ("cut", "more") else []
    ends = ("([", "])") if box.accept else ("[", "]")
    classes = f":::{kinds[0]}" if kinds else ""
    return f"{box.name}{ends[0]}{_quoted(box.lines)}{ends[1]}{classes}"


def _quoted(lines: Sequence[str]) -> str:
    return f'"{"<br/>".join(map(_numbered, lines))}"'


def _numbered(text: str) -> str:
    return _OTHER.sub(lambda found: f"#{ord(found[0])};", text)

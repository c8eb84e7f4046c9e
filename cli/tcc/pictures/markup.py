"""Pictures as text that other programs draw: DOT for Graphviz, flowcharts for Mermaid.

Texts are escaped as each language requires.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tcc.pictures import Box, Picture

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_STYLES = {"state": "", "leaf": "", "cut": ", style=dashed", "more": ", style=dashed"}


def dot_text(picture: Picture) -> str:
    """Return the picture as one `digraph`."""
    note = [f"{name}: {value}" for name, value in picture.about]
    if picture.left_out is not None:
        note.append(picture.left_out)
    said = _dot_quoted([picture.title, *note], left=True)
    lines = [
        f"digraph {_dot_quoted([picture.title])} {{",
        f'  graph [rankdir=LR, labelloc=t, labeljust=l, fontname="monospace", label={said}];',
        '  node [shape=box, fontname="monospace", fontsize=11];',
        '  edge [fontname="monospace", fontsize=10];',
    ]
    lines += [f"  {_dot_box(box)}" for box in picture.boxes]
    names = [box.name for box in picture.boxes]
    lines += [
        f"  {names[arrow.source]} -> {names[arrow.target]} [label={_dot_quoted(arrow.lines)}];"
        for arrow in picture.arrows
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_box(box: Box) -> str:
    double = ", peripheries=2" if box.accept else ""
    bold = ", penwidth=2" if box.root else ""
    return f"{box.name} [label={_dot_quoted(box.lines)}{double}{bold}{_STYLES[box.kind]}];"


def _dot_quoted(lines: list[str] | tuple[str, ...], left: bool = False) -> str:
    """Return lines as one quoted text, centred or left-aligned."""
    texts = [line.translate(_ESCAPES) for line in lines]
    text = "".join([text + "\\l" for text in texts]) if left else "\\n".join(texts)
    return f'"{text}"'


# Mermaid.

_OTHER = re.compile(r"[^A-Za-z0-9 _.,=():/+*^-]")
_CLASSES = {
    "accept": "stroke:#2b7a3f,stroke-width:2px",
    "more": "stroke-dasharray:5 4",
    "root": "stroke-width:3px",
}


def mermaid_text(picture: Picture) -> str:
    """Return the picture as one flowchart."""
    # Titles are comments, which end with the line and need no quotes.
    said = [picture.title, *(f"{name}: {value}" for name, value in picture.about)]
    if picture.left_out is not None:
        said.append(picture.left_out)
    lines = ["flowchart LR", *(f"  %% {_numbered(text)}" for text in said)]
    lines += [f"  {_mermaid_box(box)}" for box in picture.boxes]
    names = [box.name for box in picture.boxes]
    lines += [
        f"  {names[arrow.source]} -->|{_mermaid_quoted(arrow.lines)}| {names[arrow.target]}"
        for arrow in picture.arrows
    ]
    lines += [f"  classDef {name} {style}" for name, style in _CLASSES.items()]
    return "\n".join(lines) + "\n"


def _mermaid_box(box: Box) -> str:
    kinds = ["root"] if box.root else []
    kinds += ["accept"] if box.accept else []
    kinds += ["more"] if box.kind in ("cut", "more") else []
    ends = ("([", "])") if box.accept else ("[", "]")
    classes = f":::{kinds[0]}" if kinds else ""
    return f"{box.name}{ends[0]}{_mermaid_quoted(box.lines)}{ends[1]}{classes}"


def _mermaid_quoted(lines: Sequence[str]) -> str:
    return f'"{"<br/>".join(map(_numbered, lines))}"'


def _numbered(text: str) -> str:
    return _OTHER.sub(lambda found: f"#{ord(found[0])};", text)

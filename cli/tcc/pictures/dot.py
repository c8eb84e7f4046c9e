"""A picture in DOT, the language of Graphviz.

Every text stands in double quotes.  There a backslash begins an escape and an ampersand an entity
of HTML, so both are written as such (https://graphviz.org/doc/info/lang.html).  Cost: linear.
"""

from __future__ import annotations

from tcc.pictures.picture import Box, Picture

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "&": "&amp;"})
_STYLES = {"state": "", "leaf": "", "cut": ", style=dashed", "more": ", style=dashed"}


def dot_text(picture: Picture) -> str:
    """The text of one `digraph`."""
    note = [f"{name}: {value}" for name, value in picture.about]
    if picture.left_out is not None:
        note.append(picture.left_out)
    said = _quoted([picture.title, *note], left=True)
    lines = [
        f"digraph {_quoted([picture.title])} {{",
        f'  graph [rankdir=LR, labelloc=t, labeljust=l, fontname="monospace", label={said}];',
        '  node [shape=box, fontname="monospace", fontsize=11];',
        '  edge [fontname="monospace", fontsize=10];',
    ]
    lines += [f"  {_box(box)}" for box in picture.boxes]
    names = [box.name for box in picture.boxes]
    lines += [
        f"  {names[arrow.source]} -> {names[arrow.target]} [label={_quoted(arrow.lines)}];"
        for arrow in picture.arrows
    ]
    return "\n".join([*lines, "}"]) + "\n"


def _box(box: Box) -> str:
    double = ", peripheries=2" if box.accept else ""
    bold = ", penwidth=2" if box.root else ""
    return f"{box.name} [label={_quoted(box.lines)}{double}{bold}{_STYLES[box.kind]}];"


def _quoted(lines: list[str] | tuple[str, ...], left: bool = False) -> str:
    """Lines as one text, each centred, or at the left."""
    texts = [line.translate(_ESCAPES) for line in lines]
    text = "".join([text + "\\l" for text in texts]) if left else "\\n".join(texts)
    return f'"{text}"'

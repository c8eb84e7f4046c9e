"""The state diagram of an artifact: the picture of `tcc graph`, as an image of the page.

An image runs no script and fetches nothing, whatever its texts are; light and dark it follows by
itself.
Cost: that of the picture, of at most `_STATES` states.
"""

from __future__ import annotations

import base64
from typing import Final

from tcc.pages.blocks import note, scrolled
from tcc.pages.frame import Section
from tcc.pages.markup import element, joined
from tcc.pictures.of_artifact import picture_of
from tcc.pictures.svg import svg_text
from tcc_runtime.artifact.load import Artifact

_STATES: Final = 14


def diagram_section(artifact: Artifact) -> Section:
    """The first states, nearest to the root first."""
    picture = picture_of(artifact, _STATES)
    drawn = base64.b64encode(svg_text(picture).encode("utf-8")).decode("ascii")
    label = f"State diagram of {picture.title}"
    image = element("img", src=f"data:image/svg+xml;base64,{drawn}", alt=label, class_="picture")
    left_out = f"Shown: {picture.left_out}." if picture.left_out is not None else ""
    more = "tcc graph A --format html is a page to look around in."
    return Section(
        name="states",
        title="State diagram",
        lead="A state is everything that may still follow; an arrow has the calls that lead on.",
        body=joined([scrolled(image, label), note(f"{left_out} {more}".strip())]),
    )

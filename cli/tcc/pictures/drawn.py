"""A picture in any of the formats that pictures have."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from tcc.pictures.picture import Picture

Format: TypeAlias = Literal["dot", "mermaid", "svg", "html"]

FORMATS: Final = ("dot", "mermaid", "svg", "html")


def drawn(picture: Picture, output_format: Format) -> str:
    """The text of a picture, one line feed at its end."""
    match output_format:
        case "dot":
            from tcc.pictures.dot import dot_text

            return dot_text(picture)
        case "mermaid":
            from tcc.pictures.mermaid import mermaid_text

            return mermaid_text(picture)
        case "svg":
            from tcc.pictures.svg import svg_text

            return svg_text(picture)
        case "html":
            from tcc.pictures.page import page_text

            return page_text(picture)

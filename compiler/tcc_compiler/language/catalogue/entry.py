"""The catalogue's entry for one code."""

from __future__ import annotations

from tcc_compiler.frozen import frozen


@frozen(kw_only=False)
class Entry:
    """The page of a code.

    Attributes:
        title: the problem in a few words.
        explanation: why it is refused, and how to correct it; paragraphs of plain text.
        example: a grammar with this error; for codes of imports, another file. Empty if a short
            example cannot show the error.
    """

    title: str
    explanation: str
    example: str = ""

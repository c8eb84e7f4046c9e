"""What the catalogue says of one code."""

from __future__ import annotations

from tcc_compiler.frozen import frozen


@frozen(kw_only=False)
class Entry:
    """The page of a code.

    Attributes:
        title: what is wrong, in a few words.
        explanation: why it is refused, and how to correct it; paragraphs of plain text.
        example: a grammar (for codes of imports, another file) that has this error, or empty
            where a short one cannot show it.
    """

    title: str
    explanation: str
    example: str = ""

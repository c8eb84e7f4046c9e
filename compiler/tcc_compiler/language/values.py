"""Values of listed parameters: their canonical texts.

Normative text: docs/spec/language.md, section 3.  Cost: linear in the text.
"""

from __future__ import annotations

from tcc_certs.values.listed import text_of


def string_value(text: str) -> str:
    """The canonical text of a string in quotes: a name stands bare, anything else in quotes.

    ``true``, ``false`` and ``null`` stay in quotes: bare they are other values of JSON.  `text` has
    no half of a surrogate pair.
    """
    return text_of(text) or ""

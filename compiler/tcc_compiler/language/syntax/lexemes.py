"""Tokens with their regions.

Cost: constant each.
"""

from __future__ import annotations

from tcc_compiler.language.spans import Region


class Lexeme(str):
    """The text of a token, with its kind and its region in the source."""

    __slots__ = ("region", "type")

    type: str
    region: Region


def lexeme(kind: str, text: str, region: Region) -> Lexeme:
    """A token of a kind that grammar.lark declares."""
    token = Lexeme(text)
    token.type = kind
    token.region = region
    return token

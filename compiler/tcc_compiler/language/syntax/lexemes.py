"""Tokens with their regions.

Cost: constant each.
"""

from __future__ import annotations

from lark import Token

from tcc_compiler.language.spans import Region


class Lexeme(Token):
    """A token with its region in the source."""

    region: Region


def lexeme(kind: str, text: str, region: Region) -> Lexeme:
    """A token of a kind that grammar.lark declares."""
    # The constructor of the base class is left out: it costs more than everything else here.
    token = str.__new__(Lexeme, text)
    token.type = kind
    token.value = text
    token.region = region
    return token

"""Patterns of open texts, matched as fast as the interpreter can.

The definition is :mod:`tcc_certs.values.text_pattern`.
Cost: linear in the text.
"""

from __future__ import annotations

from collections.abc import Callable

from tcc_certs.values.text_pattern import pattern_of


def matcher(source: str) -> Callable[[str], bool]:
    """What tells whether all of a text matches.

    Raises:
        Rejected: C801 `source` is no pattern of the dialect.
    """
    return pattern_of(source).matches

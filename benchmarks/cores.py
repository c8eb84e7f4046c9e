"""Cores of grammars, for benchmarks."""

from __future__ import annotations

from tcc_certs.policy.core import Core
from tcc_compiler.frontend import read_grammar_text


def core_of(text: str) -> Core:
    """Return the core of a grammar; raise ValueError if the grammar has errors."""
    found = read_grammar_text(text).core
    if found is None:
        raise ValueError("the front end refuses the grammar")
    return found

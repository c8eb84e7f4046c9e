"""Small pieces that the tests of the front end share."""

from __future__ import annotations

from typing import Any

from tcc_certs.policy.core import Core
from tcc_certs.policy.reader import core_json
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.names.compile import Compiled

HEAD = 'grammar g version "1"\n'
TOOLS = HEAD + "tool a\ntool b\ntool c(k: 1 | 2 | 3) { cost 0.1 * k }\n"


def core_of(text: str) -> Core:
    """The core of a grammar that has one."""
    result = read_grammar_text(text)
    assert [item.message for item in result.diagnostics] == []
    assert result.core is not None
    return result.core


def core(text: str) -> Any:
    """The core of a grammar that has one, as JSON."""
    return core_json(core_of(text))


def plan(expression: str) -> Any:
    """The core's plan, its call sets written out as texts of calls."""
    found = core(f"{TOOLS}plan = {expression}\n")
    return _named(found["plan"], found)


def _named(node: Any, found: Any) -> Any:
    if isinstance(node, list) and node and node[0] == "call":
        names = ["a", "b", "c1", "c2", "c3"]
        ranges = found["patterns"][node[1]]
        return " ".join(name for low, high in ranges for name in names[low:high])
    return [_named(part, found) for part in node] if isinstance(node, list) else node


def codes(text: str) -> list[tuple[str, int, int]]:
    """Code, line and column of every diagnostic."""
    return places(read_grammar_text(text))


def places(result: Compiled) -> list[tuple[str, int, int]]:
    """Code, line and column of every diagnostic of a result."""
    return [
        (item.code, item.span.line if item.span else 0, item.span.column if item.span else 0)
        for item in result.diagnostics
    ]

"""Small pieces that the tests of the front end share."""

from __future__ import annotations

import json
from typing import Any

from tcc_compiler.frontend import Frontend, read_grammar_text

HEAD = 'grammar g version "1"\n'
TOOLS = HEAD + "tool a\ntool b\ntool c(k: 1 | 2 | 3) { cost 0.1 * k }\n"


def core(text: str) -> Any:
    """The core of a grammar that has one, as JSON."""
    result = read_grammar_text(text)
    assert [item.message for item in result.diagnostics] == []
    assert result.core is not None
    return json.loads(result.core)


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


def places(result: Frontend) -> list[tuple[str, int, int]]:
    """Code, line and column of every diagnostic of a result."""
    return [
        (item.code, item.span.line if item.span else 0, item.span.column if item.span else 0)
        for item in result.diagnostics
    ]

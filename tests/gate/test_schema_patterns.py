"""Patterns of arguments in the schemas that models and clients see."""

from __future__ import annotations

import re

import tcc


def shown(pattern: str) -> dict[str, object]:
    text = f'grammar g version "1"\ntool t(a: text ~ "{pattern}")\nplan = t\n'
    gate = tcc.Gate(tcc.compile_text(text))
    (tool,) = gate.allowed_tools("mcp")
    return dict(tool["inputSchema"]["properties"]["a"])


def test_a_dot_is_every_character_for_readers_of_the_schema() -> None:
    pattern = shown("a.[.]").get("pattern")
    assert pattern == "^(?:a[\\s\\S][.])$"
    assert re.search(str(pattern), "a\n.")


def test_a_pattern_that_ignores_case_is_left_to_the_gate() -> None:
    assert "pattern" not in shown("(?i)abc")

"""docs/policies.md: lines compile or fail with the code that they show; sessions are real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tcc_compiler.names.compile import compile_source
from tests.docs.test_language import code_of, shown
from tests.docs.transcripts import decisions

PAGE = Path(__file__).parents[2] / "docs" / "policies.md"
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(one[1], one[2]) for one in _BLOCK.finditer(PAGE.read_text("utf-8"))]
POLICIES = [text for kind, text in BLOCKS if kind == "tcg" and text.startswith("grammar")]
LINES = [text for kind, text in BLOCKS if kind == "tcg" and not text.startswith("grammar")]


def additions() -> Iterator[Any]:
    """Each block that is added to the first policy, without its mistakes and with each of them."""
    head = POLICIES[0].splitlines()
    for number, block in enumerate(LINES):
        lines = block.splitlines()
        sound = ["" if code_of(line) else line for line in lines]
        yield pytest.param([*head, *sound], [], id=f"block {number}")
        for at, line in enumerate(lines):
            if code := code_of(line):
                text = [*head, *sound[:at], line, *sound[at + 1 :]]
                yield pytest.param(text, [(code, len(head) + at + 1)], id=f"{code} {line[:30]}")


@pytest.mark.parametrize(("lines", "expected"), list(additions()))
def test_a_line_compiles_or_fails_with_its_code(
    lines: list[str], expected: list[tuple[str, int]]
) -> None:
    found = compile_source("\n".join(lines) + "\n")
    reported = [(one.code, one.span.line if one.span else 0) for one in found.diagnostics]
    assert reported == expected, shown(found)


def sessions() -> Iterator[Any]:
    """Each block of sessions with the policy above it."""
    policy = ""
    for kind, text in BLOCKS:
        if text.startswith("grammar"):
            policy = text
        elif kind == "session":
            yield pytest.param(policy, text, id=policy.split()[1])


@pytest.mark.parametrize(("policy", "transcript"), list(sessions()))
def test_a_gate_decides_each_call_as_the_page_shows(
    policy: str, transcript: str, tmp_path: Path
) -> None:
    for line, expected, decided in decisions(policy, transcript, tmp_path):
        assert decided == expected, line


def test_each_policy_compiles_and_all_but_the_first_have_sessions() -> None:
    assert all(compile_source(text).diagnostics == () for text in POLICIES)
    assert len(list(sessions())) == len(POLICIES) - 1

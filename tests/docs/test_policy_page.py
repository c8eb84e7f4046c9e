"""The page that writes a policy sentence by sentence: each block is read, with those before it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tcc_compiler.frontend import read_grammar, read_grammar_text
from tcc_compiler.lint.policies import policy_lints

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "policies.md"
BLOCKS = re.findall(r"^```tcg\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)

PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("count", range(1, len(BLOCKS) + 1))
def test_each_block_is_read_with_those_before_it(count: int) -> None:
    front = read_grammar_text("".join(BLOCKS[:count]))
    assert front.diagnostics == ()
    assert front.core is not None


def test_the_page_is_the_shipped_grammar() -> None:
    front = read_grammar_text("".join(BLOCKS))
    assert front.core == read_grammar(ROOT / "grammars" / "airline_desk.tcg").core is not None


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_each_program_of_the_page_runs(number: int) -> None:
    exec(compile(PROGRAMS[number], f"program {number} of {PAGE.name}", "exec"), {})


def test_every_statement_of_the_page_is_in_the_core() -> None:
    front = read_grammar_text("".join(BLOCKS))
    assert front.core is not None and front.program is not None
    core = json.loads(front.core)
    assert core["version"] == [1, 2]
    kinds = [one["kind"] for one in core["monitors"]]
    due = {"ban": 1, "need": 15, "total": 1, "uses": 1}
    assert {kind: kinds.count(kind) for kind in sorted(set(kinds))} == due
    found = policy_lints(front.program, tuple(front.sources.values()))
    assert [one.diagnostic.code for one in found] == ["TCC725"]  # what was read is known

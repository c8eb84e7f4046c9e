"""The page that writes a policy sentence by sentence: its blocks are the shipped grammar."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcc_compiler.names.compile import compile_file, compile_source

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "policies.md"
BLOCKS = re.findall(r"^```tcg\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
PROGRAMS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("count", range(1, len(BLOCKS) + 1))
def test_each_block_compiles_with_those_before_it(count: int) -> None:
    compiled = compile_source("\n".join(BLOCKS[:count]))
    assert compiled.core is not None
    assert compiled.diagnostics == ()


def test_the_blocks_are_the_shipped_grammar() -> None:
    core = compile_source("\n".join(BLOCKS)).core
    assert core is not None
    assert core == compile_file(ROOT / "grammars" / "airline_desk.tcg").core


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_each_program_of_the_page_runs(number: int) -> None:
    exec(compile(PROGRAMS[number], f"program {number} of {PAGE.name}", "exec"), {})

"""The page of each code of statements has an example with this mistake and no other."""

from __future__ import annotations

import pytest

from tcc_compiler.language.catalogue.statements import STATEMENTS
from tcc_compiler.names.compile import compile_source


@pytest.mark.parametrize("code", [code for code, entry in STATEMENTS.items() if entry.example])
def test_the_example_has_the_mistake_and_no_other(code: str) -> None:
    found = compile_source(STATEMENTS[code].example)
    assert [one.code for one in found.diagnostics] == [code]

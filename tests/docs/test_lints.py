"""The grammars of the pages have no lint of a policy, apart from those that a page shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tcc_compiler.language.catalogue.lints import LINTS
from tcc_compiler.lint.allowances import Allowances
from tcc_compiler.lint.linter import lint_compiled
from tcc_compiler.names.compile import compile_source

ROOT = Path(__file__).parents[2]
# The page of errors shows each mistake.
PAGES = sorted({*(ROOT / "docs").glob("*.md"), ROOT / "README.md"} - {ROOT / "docs" / "errors.md"})
# The page and the lint, with the reason why the page has it.
SHOWN = {
    ("gate.md", "TCC731"): "a full refund after checks, without a bound on their age",
    ("policies.md", "TCC739"): "the page shows that an absent argument is unsure",
}
_GRAMMAR = re.compile(r'```tcg\n(grammar .*?)```|"""\s*(grammar .*?)"""', re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_a_page_shows_no_mistake_that_it_does_not_mean(page: Path) -> None:
    found = set()
    for block in _GRAMMAR.finditer(page.read_text("utf-8")):
        compiled = compile_source(block[1] or block[2], page.name)
        if compiled.core is None:
            continue
        lints = lint_compiled(compiled, None)
        allowed = Allowances(tuple(compiled.sources.values()), lints.head, LINTS)
        found |= {
            (page.name, one.diagnostic.code)
            for one in lints.findings
            if "TCC730" <= one.diagnostic.code != "TCC745" and not allowed.allows(one.diagnostic)
        }
    assert found <= set(SHOWN)

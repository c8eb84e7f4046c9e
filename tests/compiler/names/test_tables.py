"""The tables are those of the grammar, and the parser makes the trees that Lark makes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import lark
import pytest

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tables import GRAMMAR, SERIALISED, built, text_of
from tcc_compiler.syntax.tree import Token, Tree
from tests.compiler.names.corpus import DESK, FORMS, SHIPPED

TEXTS = [DESK, FORMS, *[path.read_text("utf-8") for path in SHIPPED]]


def test_the_tables_are_those_of_the_grammar() -> None:
    assert SERIALISED.read_text("utf-8") == text_of(built(GRAMMAR.read_text("utf-8")))


def test_a_grammar_with_a_conflict_is_refused() -> None:
    with pytest.raises(ValueError, match="conflict"):
        built('start: e\ne: e "+" e | "x"\n')


@pytest.fixture(scope="module")
def by_lark() -> lark.Lark:
    return lark.Lark(
        GRAMMAR.read_text("utf-8"), parser="lalr", lexer="contextual",
        keep_all_tokens=True, maybe_placeholders=False,
    )  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_the_trees_are_those_of_lark(text: str, by_lark: lark.Lark) -> None:
    source = source_of(text, "<text>")
    report = Report([source])
    file = parse(source, 0, report)
    assert report.diagnostics() == ()
    theirs = by_lark.parse(text)
    assert [_shape(tree) for tree in file.statements] == [_shape(one) for one in theirs.children]


def test_the_corpus_has_every_production(by_lark: lark.Lark) -> None:
    used = {tree.data for tree in by_lark.parse(FORMS).iter_subtrees()}
    named = {str(rule.alias or rule.origin.name) for rule in by_lark.rules}
    inlined = {str(rule.origin.name) for rule in by_lark.rules if rule.options.expand1}
    aliases = {str(rule.alias) for rule in by_lark.rules if rule.alias}
    hidden = {name for name in inlined if name not in aliases}
    missing = {name for name in named if name[:1] != "_"} - used - hidden - {"statement", "policy"}
    assert not missing


def _shape(part: Any) -> Any:
    """A tree or token by kinds and texts, with lists of alternatives flat."""
    if isinstance(part, Token):
        return part.text
    if isinstance(part, lark.Token):
        return str(part)
    kind = part.kind if isinstance(part, Tree) else str(part.data)
    parts = [_shape(one) for one in (part.parts if isinstance(part, Tree) else part.children)]
    flat: list[Any] = []
    for one in parts:
        same = kind in ("values", "either_of") and one[0] == kind
        flat += one[1] if same and isinstance(one, tuple) else [one]
    return kind, flat


def test_parsing_does_not_import_lark() -> None:
    program = (
        "import json, sys\n"
        "from tcc_compiler.language.diagnostics import Report\n"
        "from tcc_compiler.language.source import source_of\n"
        "from tcc_compiler.syntax.parse import parse\n"
        f"source = source_of({DESK!r}, 'x')\n"
        "assert parse(source, 0, Report([source])).statements\n"
        "print(json.dumps([m for m in sys.modules if m.split('.')[0] == 'lark']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []

"""The colours of every grammar by VS Code's own engine.  Run by scripts/editors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tree import Token, Tree

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))
from tests.compiler.names.corpus import FORMS  # noqa: E402 - the tests are no installed package

GRAMMARS = sorted((ROOT / "grammars").rglob("*.tcg"))
HARD = r"""# a comment with "a quote
grammar g version "1" # "
tool a { doc "a # in \" quotes # 😀" cost 1 } # (
tool `plan # x`(k: 1 | "b \\") { doc "open
plan = a
"""


def scopes(files: list[Path]) -> dict[str, list[list[list[str]]]]:
    """Of each file, of each line, of each character, its scopes, joined."""
    ended = subprocess.run(
        ["node", "tokens.js", *map(str, files)],
        cwd=ROOT / "editors" / "vscode", capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, list[list[str]]] = {}
    for name, tokens in json.loads(ended.stdout).items():
        lines: dict[int, list[str]] = {}
        for number, _, text, names in tokens:
            lines.setdefault(number, []).extend([" ".join(names)] * len(text))
        found[name] = [lines[number] for number in sorted(lines)]
    return found


def tokens(tree: Tree) -> Iterator[Token]:
    """The tokens of a tree."""
    for part in tree.parts:
        if isinstance(part, Token):
            yield part
        elif isinstance(part, Tree):
            yield from tokens(part)


def check(text: str, lines: list[list[str]], file: str) -> int:
    """Check that each token of the compiler has the colour of its kind; return their number."""
    source = source_of(text, file)
    checked = 0
    for statement in parse(source, 0, Report([source])).statements:
        for token in tokens(statement):
            line, column = source.place(token.start)
            scope = lines[line - 1][column - 1]
            where = f"{file}:{line}:{column} {token!r} is {scope!r}"
            checked += 1
            if token.kind == "STRING":
                assert "string" in scope, where
            elif token.kind == "NUMBER":
                assert "constant.numeric" in scope, where
            elif token.kind == token.text and token.text.isalpha():
                assert "keyword" in scope or "storage.type" in scope, where
            else:
                assert "comment" not in scope and "string" not in scope, where
    return checked


def test_every_token_of_every_grammar_has_the_colour_of_its_kind() -> None:
    found = scopes(GRAMMARS)
    assert len(found) > 10
    for file in GRAMMARS:
        text = file.read_text("utf-8")
        assert max(text) < "\U00010000"  # columns are units of UTF-16 there
        assert check(text, found[str(file)], str(file)) > 20


def test_every_token_of_every_form_of_the_language_has_the_colour_of_its_kind(
    tmp_path: Path,
) -> None:
    file = tmp_path / "forms.tcg"
    file.write_text(FORMS, "utf-8")
    assert check(FORMS, scopes([file])[str(file)], "forms.tcg") > 500


def test_a_word_that_is_a_name_at_its_place_has_no_colour_of_a_keyword(tmp_path: Path) -> None:
    text = (
        'grammar g version "1"\ntool t(count: text, last?: integer, text: a | no)\n'
        "before t(count = session.limit) require t(same last).text = no\n"
    )
    file = tmp_path / "names.tcg"
    file.write_text(text, "utf-8")
    lines = scopes([file])[str(file)]
    for line, name in ((1, "count"), (1, "last"), (1, "text: a"), (2, "limit"), (2, "text =")):
        at = text.split("\n")[line].index(name)
        assert "keyword" not in lines[line][at], (line, name)
        assert "storage" not in lines[line][at], (line, name)


def test_comments_and_strings_end_where_they_end(tmp_path: Path) -> None:
    file = tmp_path / "hard.tcg"
    file.write_text(HARD, "utf-8")
    lines = scopes([file])[str(file)]
    assert all("comment" in scope for scope in lines[0])
    assert "keyword.control" in lines[1][0] and "comment" in lines[1][-1]
    inside = HARD.split("\n")[2].index("# in")
    assert "string" in lines[2][inside] and "comment" not in lines[2][inside]
    assert "comment" in lines[2][-1]
    # A string that is not closed ends with its line.
    assert "string" in lines[3][-1]
    assert lines[4][0].startswith("keyword.control")

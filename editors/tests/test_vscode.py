"""The colours of every grammar by VS Code's own engine.  Run by scripts/editors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.language.syntax.tokens import split
from tcc_compiler.language.syntax.words import PUNCTUATION

ROOT = Path(__file__).parents[2]
GRAMMARS = sorted((ROOT / "grammars").rglob("*.tcg"))
HARD = r"""# a comment with "a quote
grammar g version "1" # "
tool a { doc "a # in \" quotes # 😀" cost 1 } # (
tool "plan # x"(k: 1 | "b \\") { doc "open
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


def check(text: str, lines: list[list[str]], file: str) -> int:
    """Every token of the compiler has the colour of its kind; how many there are."""
    source = source_of(text, file)
    names = set(PUNCTUATION.values())
    seen = 0
    report = Report([source])
    for chunk in split(text, 0, report):
        for token in chunk.tokens:
            line, column = source.place(token.region.start)
            scope = lines[line - 1][column - 1]
            where = f"{file}:{line}:{column} {token!r} is {scope!r}"
            seen += 1
            if token.type == "STRING":
                assert "string" in scope, where
            elif token.type == "NUMBER":
                assert "constant.numeric" in scope, where
            elif token.type == "UNIT":
                assert "unit" in scope, where
            elif token.type == "TYPE":
                assert "storage.type" in scope, where
            elif token.type not in ("NAME", *names, "_ARGS"):
                assert "keyword" in scope, where
            else:
                assert "comment" not in scope and "string" not in scope, where
    return seen


def test_every_token_of_every_grammar_has_the_colour_of_its_kind() -> None:
    found = scopes(GRAMMARS)
    assert len(found) > 10
    for file in GRAMMARS:
        text = file.read_text("utf-8")
        assert max(text) < "\U00010000"  # columns are units of UTF-16 there
        assert check(text, found[str(file)], str(file)) > 20


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

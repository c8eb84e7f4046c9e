"""The folder for VS Code: its colours know every word, and its files are there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tcc_certs.policy.nodes import FUNCTIONS

FOLDER = Path(__file__).parents[2] / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "tcg.tmLanguage.json").read_text("utf-8"))
LARK = (FOLDER.parents[1] / "compiler" / "tcc_compiler" / "syntax" / "grammar.lark").read_text(
    "utf-8"
)
# Words that the parser takes for names: they have a meaning in conditions, and in `limit`.
NAMES = {"any", "depth", "false", "it", "now", "this", "true"}
WORDS = {*re.findall(r'"([a-z_]+)"', LARK), *FUNCTIONS, *NAMES}


def listed(node: Any) -> Iterator[str]:
    """The words that stand between marks of alternatives in any expression."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "match":
                yield from re.findall(r"(?<![\\A-Za-z_\[-])[a-z_]{1,}(?![A-Za-z_\[-])", value)
                yield from re.findall(r"(?<=\\b)[a-z_]+", value)
            else:
                yield from listed(value)
    elif isinstance(node, list):
        for item in node:
            yield from listed(item)


def test_every_word_of_the_compiler_has_a_colour_and_no_other_has() -> None:
    found = set(listed(GRAMMAR["repository"]))
    assert found - WORDS <= {"lint", "allow", "b", "u", "bfnrt", "_"}
    assert found >= WORDS


def test_every_expression_is_one_and_every_include_is_there() -> None:
    def includes(node: Any) -> Iterator[str]:
        if isinstance(node, dict):
            if "include" in node:
                yield node["include"].removeprefix("#")
            for value in node.values():
                yield from includes(value)
        elif isinstance(node, list):
            for item in node:
                yield from includes(item)

    assert set(includes(GRAMMAR)) == set(GRAMMAR["repository"])


def test_the_manifest_names_files_that_are_there_and_the_settings_that_the_client_reads() -> None:
    manifest = json.loads((FOLDER / "package.json").read_text("utf-8"))
    given = manifest["contributes"]
    paths = [manifest["main"], given["languages"][0]["configuration"], given["grammars"][0]["path"]]
    assert all((FOLDER / path).is_file() for path in paths)
    assert given["grammars"][0]["scopeName"] == GRAMMAR["scopeName"]
    client = (FOLDER / "extension.js").read_text("utf-8")
    assert list(given["configuration"]["properties"]) == ["tcc.command"]
    assert 'getConfiguration("tcc").get("command")' in client
    # A folder that is opened may not say which program is started.
    assert given["configuration"]["properties"]["tcc.command"]["scope"] == "machine"
    license_ = (FOLDER / "LICENSE").read_bytes()
    assert license_ == (FOLDER.parents[1] / "LICENSE").read_bytes()

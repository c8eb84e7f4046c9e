"""What the pages on exact questions show after a prompt is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tcc
from tests.docs.test_shown import run

DOCS = Path(__file__).parents[2] / "docs"
# A prompt, its lines, and what is printed, up to the next prompt or the end of the block.
SHOWN = re.compile(r"^    \$ ([^\n]+)\n((?:    (?!\$ )[^\n]*\n)*)", re.MULTILINE)


@pytest.mark.parametrize(("name", "least"), [("proving.md", 6), ("questions.md", 2)])
def test_a_transcript_is_what_is_printed(name: str, least: int, tmp_path: Path) -> None:
    shown = SHOWN.findall((DOCS / name).read_text("utf-8"))
    assert len(shown) >= least
    for command, text in shown:
        due = re.sub("^    ", "", text, flags=re.MULTILINE)
        if command.startswith("cat "):
            (tmp_path / command.split()[1]).write_text(due, "utf-8")
        else:
            # A command that finds something ends with 1.
            assert run(f"{{ {command}; }} || true\n", tmp_path) == due, command


def test_lint_finds_in_the_published_rules_what_the_page_says(tmp_path: Path) -> None:
    text = SHOWN.findall((DOCS / "proving.md").read_text("utf-8"))[0][1]
    path = tmp_path / "payouts.tcg"
    path.write_text(re.sub("^    ", "", text, flags=re.MULTILINE), "utf-8")
    found = {
        (one.diagnostic.code, one.diagnostic.span.line)
        for one in tcc.lint(path).findings
        if one.diagnostic.span is not None
    }
    assert found == {("TCC709", 1), ("TCC705", 9), ("TCC704", 10)}

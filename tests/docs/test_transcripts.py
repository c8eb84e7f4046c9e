"""What the pages on exact questions show after a prompt is what is printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.test_shown import run

DOCS = Path(__file__).parents[2] / "docs"
# A prompt, its lines, and what is printed, up to the next prompt or the end of the block.
SHOWN = re.compile(r"^    \$ ([^\n]+)\n((?:    (?!\$ )[^\n]*\n)*)", re.MULTILINE)


@pytest.mark.parametrize(("name", "least"), [("questions.md", 2)])
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

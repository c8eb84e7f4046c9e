"""The code of docs/langgraph.md runs, in one program from its beginning to its end."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.langchain.world import LARGE, SAID, Scripted

PAGE = Path(__file__).parents[2] / "docs" / "langgraph.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    assert len(blocks) == 4
    # The functions of the page are tools: their hints are looked up in its names.
    names: dict[str, Any] = {
        "__name__": "page", "model": Scripted(script=SAID), "large": Scripted(script=LARGE),
    }  # fmt: skip
    for number, block in enumerate(blocks):
        code = compile(block, f"langgraph.md, block {number}", "exec", dont_inherit=True)
        exec(code, names)
    said = capsys.readouterr().out.splitlines()
    assert said == ["['look_up(by=email)', 'refund(part=full)']", "finished "]
    names["gate"].close()
    names["held"].close()


def test_without_the_extra_it_is_said_what_is_missing() -> None:
    program = "import sys; sys.modules['langgraph'] = None; import tcc.langchain"
    found = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": ":".join(sys.path)},
        cwd=PAGE.parents[1],
    )
    assert (
        "tcc.langchain needs the extra: pip install 'tcc[langgraph]'"
        in found.stderr.splitlines()[-1]
    )

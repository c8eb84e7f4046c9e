"""The notebook runs from top to bottom, and prints what stands in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "experiments"
NOTEBOOK = FOLDER / "paper.ipynb"
# As a kernel does, all cells in one namespace; what each prints is kept.
KERNEL = """
import contextlib, io, json, sys
cells, namespace, printed = json.load(sys.stdin), {"__name__": "__main__"}, []
for number, cell in enumerate(cells):
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(cell, f"cell {number}", "exec"), namespace)
    printed.append(out.getvalue())
json.dump(printed, sys.stdout)
"""


def read() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return found


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def as_output(text: str) -> list[dict[str, Any]]:
    lines = text.splitlines(keepends=True)
    return [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []


def test_the_notebook_prints_what_stands_in_it(request: pytest.FixtureRequest) -> None:
    notebook = read()
    there = sorted(FOLDER.iterdir())
    cells = code_cells(notebook)
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        input=json.dumps(["".join(cell["source"]) for cell in cells]),
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed = [as_output(text) for text in json.loads(done.stdout)]
    if request.config.getoption("--update-golden"):
        for number, (cell, outputs) in enumerate(zip(cells, printed, strict=True), 1):
            cell["outputs"], cell["execution_count"] = outputs, number
        text = json.dumps(notebook, indent=1, ensure_ascii=False)
        NOTEBOOK.write_text(text + "\n", encoding="utf-8")
    assert [cell["outputs"] for cell in cells] == printed
    assert sorted(FOLDER.iterdir()) == there


def test_the_notebook_has_the_form_of_one_and_its_links_lead_somewhere() -> None:
    notebook = read()
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert [cell["execution_count"] for cell in code_cells(notebook)] == list(
        range(1, len(code_cells(notebook)) + 1)
    )
    text = "".join(
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    links = [part.split(")")[0] for part in text.split("](")[1:]]
    assert links and all((FOLDER / link).exists() for link in links)

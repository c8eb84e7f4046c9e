"""No link leads nowhere, and no text names a page, a module or a test that is not there."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import ROOT, anchors, links, pages, slug

ELSEWHERE = re.compile(r"(https?|mailto):")
NAMED = r"(docs|proofs|benchmarks|experiments)/[A-Za-z0-9_/.-]+\.(md|txt)"
MODULE = re.compile(r"[a-z_/]*[a-z]\w+\.py")  # longer than the `m.py` of an example
TEXTS = ("*.py", "*.md", "*.v", "*.toml", "*.yml", "*.tcg", "*.sh", "scripts/*", ".ci/*")


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(page: Path) -> None:
    for target in links(page):
        if ELSEWHERE.match(target):
            continue
        path, _, anchor = unquote(target).partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.is_relative_to(ROOT), f"{target} leaves the checkout"
        assert there.exists(), f"{target}: there is no such file"
        assert not anchor or anchor in anchors(there), f"{target}: there is no such heading"


def test_every_page_that_a_text_names_is_there() -> None:
    told = subprocess.run(
        ["git", "grep", "-I", "-n", "-o", "-E", NAMED, "--", *TEXTS],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode > 1:
        pytest.skip("not a checkout of git: which files are the project's is not known")
    found = [line.split(":", 2) for line in told.stdout.splitlines()]
    assert len(found) > 400
    missing = [
        f"{file}:{line}: {name}"
        for file, line, name in found
        if not any((base / name).is_file() for base in (ROOT, (ROOT / file).parent))
    ]
    assert not missing


def test_every_module_and_every_test_that_a_page_names_is_there() -> None:
    modules = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    tests = set(re.findall(r"def (test_\w+)", " ".join(map(_text, (ROOT / "tests").rglob("*.py")))))
    missing = []
    for page in pages():
        code = re.sub(r"^(```|~~~).*?^\1", "", _text(page), flags=re.DOTALL | re.MULTILINE)
        named = set(re.findall(r"`([^`\n]+)`", code))
        gone = {name for name in named if MODULE.fullmatch(name) and Path(name).name not in modules}
        gone |= {name for name in named if re.fullmatch(r"test_\w+", name)} - tests
        missing += [f"{page.relative_to(ROOT)}: {name}" for name in sorted(gone)]
    assert not missing


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_anchors_are_made_as_github_makes_them() -> None:
    assert slug("At once: --watch") == "at-once---watch"
    assert slug("TCC101: unexpected text") == "tcc101-unexpected-text"
    assert slug('Why is this no plan? tcc why A "CALLS"') == "why-is-this-no-plan-tcc-why-a-calls"

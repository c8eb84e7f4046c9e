"""The site is built without a warning, fetches nothing, and shows what the pages hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.docs.pages import ROOT, pages, tokens

DOCS = ROOT / "docs"
# What a browser loads by itself, as against what a reader may follow.
LOADS = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
TAGS = ("li", "table", "tr", "h1", "h2", "h3", "img")


class Reader(HTMLParser):
    """What a page loads, links to, names and holds in its main part."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.names: set[str] = set()
        self.held: Counter[str] = Counter()
        self._main = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in LOADS and LOADS[tag] in given and given.get("rel") != "canonical":
            self.loads.append(given[LOADS[tag]])
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "id" in given:
            self.names.add(given["id"])
        if tag == "div" and (self._main or given.get("role") == "main"):
            self._main += 1
        if self._main:
            self.held[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        if tag == "div" and self._main:
            self._main -= 1


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env=os.environ | {"SOURCE_DATE_EPOCH": "0"},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert "WARNING" not in ended.stderr
    return out


@pytest.fixture(scope="module")
def read(site: Path) -> dict[str, Reader]:
    return {str(path.relative_to(site)): Reader(path.read_text("utf-8"))
            for path in sorted(site.rglob("*.html"))}  # fmt: skip


def test_every_page_is_on_the_site(read: dict[str, Reader]) -> None:
    due = {str(page.relative_to(DOCS).with_suffix(".html")) for page in pages()
           if page.is_relative_to(DOCS)}  # fmt: skip
    assert due <= read.keys()


def test_nothing_is_loaded_from_elsewhere(site: Path, read: dict[str, Reader]) -> None:
    for name, page in read.items():
        for target in page.loads:
            assert "//" not in target and not target.startswith("data:text"), f"{name}: {target}"
            if name == "404.html":  # its addresses are those of the whole site
                continue
            assert (site / name).parent.joinpath(target.partition("?")[0]).is_file(), target
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        assert "@import" not in text and "url(http" not in text and "url(//" not in text, style


def test_every_link_of_the_site_leads_to_a_file_and_a_name(
    site: Path, read: dict[str, Reader]
) -> None:
    seen = 0
    for name, page in read.items():
        if name == "404.html":
            continue
        for target in page.links:
            if target.startswith(("https://", "http://")) or target == "#":
                continue
            path, _, anchor = unquote(target).partition("#")
            there = ((site / name).parent / path).resolve() if path else site / name
            assert there.is_file() or (there / "index.html").is_file(), f"{name}: {target}"
            if anchor and there.suffix == ".html":
                assert anchor in read[str(there.relative_to(site))].names, f"{name}: {target}"
            seen += 1
    assert seen > 1000


@pytest.mark.parametrize(
    "page", [page for page in pages() if page.is_relative_to(DOCS)], ids=lambda page: page.stem
)
def test_the_site_shows_a_page_as_commonmark_has_it(page: Path, read: dict[str, Reader]) -> None:
    due: Counter[str] = Counter()
    for token in tokens(page):
        if token.nesting == 1:
            due[token.tag] += 1
        due["pre"] += token.type in ("fence", "code_block")
        due["img"] += sum(child.type == "image" for child in token.children or ())
    held = read[str(page.relative_to(DOCS).with_suffix(".html"))].held
    for tag in (*TAGS, "pre"):
        assert held[tag] == due[tag], tag

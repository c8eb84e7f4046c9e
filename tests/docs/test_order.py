"""The pages have an order: each stands once among the four kinds, in the index and on the site."""

from __future__ import annotations

import re
from pathlib import Path

from scripts.commands_page import page as commands_page
from scripts.race_picture import PLANS, SEED, picture

from tcc.main import COMMANDS
from tcc_experiments.graphs import compiled
from tcc_experiments.listing import Listing
from tests.docs.pages import ROOT, links, pages

DOCS = ROOT / "docs"
KINDS = ["Tutorial", "How to", "Reference", "Explanation"]


def of_docs() -> list[str]:
    """The pages of docs/ but the index, as paths below it."""
    return [str(page.relative_to(DOCS)) for page in pages()
            if page.is_relative_to(DOCS) and page != DOCS / "index.md"]  # fmt: skip


def nav() -> dict[str, list[str]]:
    """The pages of each kind in mkdocs.yml, read as lines."""
    text = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    parts = re.split(r"^  - (.+?):?$", text, flags=re.MULTILINE)[1:]
    return {name: re.findall(r"- (\S+\.md)$", below, re.MULTILINE)
            for name, below in zip(parts[::2], parts[1::2], strict=True)}  # fmt: skip


def test_the_site_has_the_four_kinds_and_each_page_once() -> None:
    assert list(nav()) == ["index.md", *KINDS]
    listed = [name for names in nav().values() for name in names]
    assert sorted(listed) == of_docs()


def test_the_index_has_the_same_pages_under_the_same_kinds() -> None:
    text = (DOCS / "index.md").read_text("utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == KINDS
    listed = re.findall(r"\]\(([\w/-]+\.md)\)", text.partition("\n## ")[2])
    assert sorted(listed) == of_docs()
    for kind, names in nav().items():
        if kind in KINDS:
            section = text.partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
            assert set(re.findall(r"\]\(([\w/-]+\.md)\)", section)) == set(names), kind


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/index.md" in links(ROOT / "README.md")


def test_the_readme_is_one_screen() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 70


def test_the_page_of_the_command_line_is_that_of_the_commands() -> None:
    made = (DOCS / "commands.md").read_text("utf-8")
    assert made == commands_page(), "python scripts/commands_page.py docs/commands.md"


def test_the_picture_of_a_race_is_that_of_the_code_wherever_it_stands() -> None:
    for place in (
        DOCS / "paper" / "race.svg",
        DOCS.parent / "experiments" / "figures" / "race.svg",
    ):
        assert place.read_text("utf-8") == picture(), "python scripts/race_picture.py"
    listing = Listing(compiled(PLANS))
    arrival = listing.race(SEED).arrival
    children = [arrival[at] for at in listing.children(0)]
    assert min(children) == arrival[0] and children.count(arrival[0]) == 1
    for at in listing.children(0):
        assert f"{arrival[at]:.3f}" in picture()


def test_every_option_says_what_it_does() -> None:
    empty = re.findall(r"^\| `-.*\| (?:at (?:least|most) [0-9.]+.*|default .*|needed)?\|$",
                       commands_page(), re.MULTILINE)  # fmt: skip
    assert not empty


def test_every_page_opens_with_its_title() -> None:
    for page in pages():
        if page.is_relative_to(DOCS):
            assert page.read_text("utf-8").startswith("# "), page


def test_the_pages_that_others_name_stay_where_they_are() -> None:
    for name in ("errors", "trust", "glossary", "errata", "spec/artifact", "spec/core",
                 "spec/language", "spec/ledger", "spec/race", "spec/session"):  # fmt: skip
        assert (DOCS / f"{name}.md").is_file(), Path(name)


def test_every_command_that_a_page_names_is_one() -> None:
    for page in pages():
        if page.is_relative_to(DOCS) or page == ROOT / "README.md":
            for name in re.findall(r"`tcc ([a-z]+)\b", page.read_text("utf-8")):
                assert name in COMMANDS, f"{page.name}: tcc {name}"


OLD = re.compile(
    r"\buses\(|\bseen\.[a-z]+ [=<>]|expect never|minor version"
    r"|tcc\.(core|artifact|session|ledger|proof|lock|account)/1|version 1\.[012] of the language"
)


def test_no_page_shows_forms_that_the_language_does_not_have() -> None:
    read = [page for page in pages() if page.is_relative_to(DOCS) or page == ROOT / "README.md"]
    assert [
        (page.name, old[0]) for page in read if (old := OLD.search(page.read_text("utf-8")))
    ] == []

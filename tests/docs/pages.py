"""The Markdown of the project: which files, and what they link to, read by a CommonMark reader."""

from __future__ import annotations

import re
import subprocess
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]


@cache
def pages() -> tuple[Path, ...]:
    """Every Markdown file that is the project's own, sorted."""
    told = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if told.returncode:
        found = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    else:
        found = [ROOT / name for name in told.stdout.splitlines()]
    return tuple(sorted(path for path in found if path.is_file()))


@cache
def tokens(page: Path) -> tuple[Token, ...]:
    return tuple(MarkdownIt().enable("table").parse(page.read_text("utf-8")))


def links(page: Path) -> list[str]:
    """The targets of the links and pictures of a page, in their order."""
    inner = [child for token in tokens(page) for child in token.children or ()]
    named = [child.attrs.get("href") or child.attrs.get("src") for child in inner]
    return [str(target) for target in named if target]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The names of a page's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    names = set()
    for heading, inline in zip(tokens(page), tokens(page)[1:], strict=False):
        if heading.type == "heading_open":
            name = slug("".join(child.content for child in inline.children or ()))
            names.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(names)


def slug(text: str) -> str:
    """Letters, digits, `_` and `-` in lower case, each space a `-`, nothing else."""
    kept = [c for c in text.lower() if c in " _-" or unicodedata.category(c)[0] in "LN"]
    return re.sub(" ", "-", "".join(kept).strip())

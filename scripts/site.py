"""Puts what the pages of docs/ name outside of it on the site, too, so that no link leads nowhere.

A hook of mkdocs (mkdocs.yml). A page may name any file or folder of the checkout, as it may where
the pages are read in the repository. Each such file becomes a page or a file below `source/`, and
links are turned to it: Markdown is a page, a folder a list of its files, anything else a text or a
picture.
"""

from __future__ import annotations

import os
import posixpath
import re
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
SOURCE = "source/"
AS_IT_IS = {".md", ".svg", ".png", ".css", ".html"}
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)


def targets(text: str) -> list[str]:
    """What the links and pictures of a Markdown text name, in their order."""
    inlines = [token for token in MarkdownIt().enable("table").parse(text) if token.children]
    found = [child for token in inlines for child in token.children or ()]
    named = [str(child.attrs.get("href") or child.attrs.get("src") or "") for child in found]
    return [target for target in named if target]


def place(page: str, target: str) -> str | None:
    """The path in the checkout that a link of the page (a path in the checkout) leads to.

    None where it is an address elsewhere, or an anchor of the page itself.
    """
    if OUTSIDE.match(target):
        return None
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def uri(path: str) -> str:
    """Where a path in the checkout stands among the sources of the site."""
    inside = path.startswith("docs/")
    base = path.removeprefix("docs/") if inside else SOURCE + path
    if (ROOT / path).is_dir():
        has_page = (ROOT / path / "README.md").is_file()
        return f"{base}/{'README.md' if has_page else 'index.md'}"
    return base if inside or Path(path).suffix in AS_IT_IS else f"{base}.txt"


def content(path: str) -> str | bytes:
    """What stands there: of a folder a page that lists its files."""
    at = ROOT / path
    if not at.is_dir():
        return at.read_bytes()
    if (at / "README.md").is_file():
        return (at / "README.md").read_bytes()
    files = sorted(item.name for item in at.iterdir() if item.is_file())
    return "\n".join([f"# {path}", "", *(f"- [{name}]({name})" for name in files), ""])


def _in_checkout(name: str) -> str:
    """The path in the checkout of a source of the site."""
    return name.removeprefix(SOURCE) if name.startswith(SOURCE) else f"docs/{name}"


def slugify(text: str, separator: str) -> str:
    """The name of a heading, as GitHub makes it, so that links hold in both places."""
    kept = [c for c in text.lower() if c in " _-" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).strip().replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Headings get the names that they have in the repository."""
    config.mdx_configs["toc"]["slugify"] = slugify
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds what pages name, and what is named by pages that were added."""
    from mkdocs.structure.files import File

    waiting = list(files.documentation_pages())
    while waiting:
        page = waiting.pop()
        for target in targets(page.content_string):
            path = place(_in_checkout(page.src_uri), target)
            if path is None or not (ROOT / path).exists():
                continue
            if files.get_file_from_path(uri(path)) is None:
                added = File.generated(config, uri(path), content=content(path))
                files.append(added)
                if added.is_documentation_page():
                    waiting.append(added)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns each link to what it names among the sources of the site."""
    here = page.file.src_uri
    for target in sorted(set(targets(markdown)), key=len, reverse=True):
        path = place(_in_checkout(here), target)
        if path is None:
            continue
        anchor = "".join(target.partition("#")[1:])
        turned = os.path.relpath(uri(path), posixpath.dirname(here) or ".") + anchor
        markdown = markdown.replace(f"]({target})", f"]({turned})")
    return markdown

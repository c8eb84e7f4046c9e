"""Adds the files outside docs/ that pages of docs/ link to, so that no link of the site breaks.

A hook of mkdocs (mkdocs.yml).  Pages in the repository may link to any file or folder of the
checkout.  Each such file becomes a page or a file below `source/` of the site, and links are
changed to it.  A Markdown file becomes a page, a folder becomes a list of its files, and any other
file becomes a text or a picture.
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
    """Return the targets of the links and pictures in a Markdown text, in order."""
    inlines = [token for token in MarkdownIt().enable("table").parse(text) if token.children]
    found = [child for token in inlines for child in token.children or ()]
    named = [str(child.attrs.get("href") or child.attrs.get("src") or "") for child in found]
    return [target for target in named if target]


def place(page: str, target: str) -> str | None:
    """Return the path in the checkout that a link leads to.

    Args:
        page: the path of the page in the checkout.
        target: the target of the link.

    Returns:
        None if the target is a URL, or an anchor of the page itself.
    """
    if OUTSIDE.match(target):
        return None
    path = unquote(target.partition("#")[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path))


def uri(path: str) -> str:
    """Return the place of a checkout's path among the sources of the site."""
    inside = path.startswith("docs/")
    base = path.removeprefix("docs/") if inside else SOURCE + path
    if (ROOT / path).is_dir():
        has_page = (ROOT / path / "README.md").is_file()
        return f"{base}/{'README.md' if has_page else 'index.md'}"
    return base if inside or Path(path).suffix in AS_IT_IS else f"{base}.txt"


def content(path: str) -> str | bytes:
    """Return the content for a path; for a folder, its README or a page that lists its files."""
    at = ROOT / path
    if not at.is_dir():
        return at.read_bytes()
    if (at / "README.md").is_file():
        return (at / "README.md").read_bytes()
    files = sorted(item.name for item in at.iterdir() if item.is_file())
    return "\n".join([f"# {path}", "", *(f"- [{name}]({name})" for name in files), ""])


def _in_checkout(name: str) -> str:
    """Return the path in the checkout of a source of the site."""
    return name.removeprefix(SOURCE) if name.startswith(SOURCE) else f"docs/{name}"


def slugify(text: str, separator: str) -> str:
    """Return the anchor of a heading as GitHub makes it, so that links work in both places."""
    kept = [c for c in text.lower() if c in " _-" or unicodedata.category(c)[0] in "LN"]
    return "".join(kept).strip().replace(" ", separator)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give headings the same anchors as in the repository."""
    config.mdx_configs["toc"]["slugify"] = slugify
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that pages link to, and the files that added pages link to."""
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
    """Change each link of a page to the place of its target among the sources of the site."""
    here = page.file.src_uri
    for target in sorted(set(targets(markdown)), key=len, reverse=True):
        path = place(_in_checkout(here), target)
        if path is None:
            continue
        anchor = "".join(target.partition("#")[1:])
        turned = os.path.relpath(uri(path), posixpath.dirname(here) or ".") + anchor
        markdown = markdown.replace(f"]({target})", f"]({turned})")
    return markdown

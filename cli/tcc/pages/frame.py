"""The frame of a page: head, policy, style, script, verdict at the top, sections with their index.

The policy lets nothing be fetched, no script run but this package's own, found by its digest, and
no form or base change where links lead.  The page says all that it says without the script.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from tcc.pages.markup import Html, element, joined

Mood = Literal["good", "bad", "doubtful", "plain"]
_SIGNS = {"good": "\u2713", "bad": "\u2717", "doubtful": "!", "plain": "\u2022"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page.

    Attributes:
        name: the target of its link in the index; letters and hyphens.
        title: its heading.
        lead: what it shows, in a sentence or two; may be empty.
        body: its content.
    """

    name: str
    title: str
    lead: object = ""
    body: Html


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What stands at the top of a page.

    Attributes:
        word: VALID, INVALID, INCOMPLETE or DECLINED, as the validation of this very command said.
        summary: its words.
        mood: how it looks.
        by: what said so.
    """

    word: str
    summary: str
    mood: Mood
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A whole page.

    Attributes:
        kind: what it is about, such as ``run``.
        title: of what, such as the grammar's name.
        facts: names and values below the title.
    """

    kind: str
    title: str
    verdict: Verdict
    facts: Sequence[tuple[str, object]]
    sections: Sequence[Section]


def page_bytes(page: Page) -> bytes:
    """The file: UTF-8, the same bytes for the same page."""
    document = joined(
        [
            Html("<!DOCTYPE html>\n"),
            element("html", _head(page), _body(page), lang="en"),
            Html("\n"),
        ]
    )
    return document.encode("utf-8")


def policy() -> str:
    """The content security policy of every page."""
    digest = base64.b64encode(hashlib.sha256(_own("page.js").encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@cache
def _own(name: str) -> Html:
    """A file of this package, which is markup, style or script already."""
    return Html(resources.files("tcc.pages").joinpath(name).read_text(encoding="utf-8"))


def _head(page: Page) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", **{"http-equiv": "Content-Security-Policy"}, content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="referrer", content="no-referrer"),
        element("title", f"{page.verdict.word}: {page.title} \u00b7 {page.kind}"),
        element("link", rel="icon", href="data:,"),
        element("style", _own("page.css")),
    )


def _body(page: Page) -> Html:
    index = [element("a", part.title, href=f"#{part.name}") for part in page.sections]
    header = element(
        "header",
        element("p", f"tcc report \u00b7 {page.kind}", class_="kind"),
        element("h1", page.title),
        verdict_banner(page.verdict),
        fact_list(page.facts),
    )
    return element(
        "body",
        element("a", "Skip to the content", href="#content", class_="skip"),
        header,
        element("nav", *index, aria_label="Sections") if index else "",
        element("main", *map(_section, page.sections), id="content", tabindex="-1"),
        element("footer", element("p", _FOOTER)),
        element("script", _own("page.js")),
    )


_FOOTER = (
    "One file, nothing is loaded from elsewhere. The verdict is the one of the command that wrote "
    "this page; whoever has the files can ask for it again with tcc validate or tcc check, or with "
    "python -m tcc_certs, which needs nothing else of tcc."
)


def verdict_banner(verdict: Verdict) -> Html:
    """The verdict, as large as it matters."""
    return element(
        "div",
        element("span", _SIGNS[verdict.mood], class_="sign", aria_hidden="true"),
        element(
            "div",
            element("strong", verdict.word, id="verdict"),
            element("p", verdict.summary, id="summary"),
            element("p", verdict.by, class_="by"),
        ),
        class_=f"verdict {verdict.mood}",
        role="status",
    )


def fact_list(rows: Sequence[tuple[str, object]]) -> Html:
    """Names and values."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in rows]
    return element("dl", *pairs, class_="facts") if pairs else Html("")


def _section(part: Section) -> Html:
    return element(
        "section",
        element("h2", part.title, id=f"{part.name}-title"),
        element("p", part.lead, class_="lead") if part.lead else "",
        part.body,
        id=part.name,
        aria_labelledby=f"{part.name}-title",
    )

"""HTML of a page: escaped markup, the frame with its policy, and the blocks of sections.

Every text that becomes part of a page is escaped here, and only here: what is not :class:`Html` is
text of unknown origin, and is escaped when it is put into an element or an attribute.  Hidden
characters are shown as escapes (:mod:`tcc_certs.plain`).  The policy of a page allows no fetch, no
script but this package's own, found by its digest, no form, and no change of the base of links; the
page is complete without its script.
Cost: linear in the texts; callers bound their lists, and say how many items are left out.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Final, Literal

from tcc import screen
from tcc_certs.errors import clip
from tcc_certs.plain import escaped

# Frame: head, policy, style, script, the verdict at the top, sections with their index.

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


_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]*")
_VOID = frozenset({"br", "input", "link", "meta"})


class Html(str):
    """Markup that was made by this module, or stands in a file of this package."""

    __slots__ = ()


def text(value: object) -> Html:
    """A text of any origin as markup; markup as it is."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(escaped(str(value)), quote=True))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """The parts one after the other, each escaped unless it is markup."""
    return Html(text(between).join([text(part) for part in parts]))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """An element.

    Args:
        tag: its name, from this code.
        content: texts and markup.
        attributes: by name, an underscore at the end dropped, others a hyphen (``class_``,
            ``aria_label``); None leaves it out, True is one without a value.

    Raises:
        ValueError: the name of an element or of an attribute is none.
    """
    opening = [_name(tag)]
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        shown = _name(name.rstrip("_").replace("_", "-"))
        opening.append(shown if value is True else f'{shown}="{text(value)}"')
    head = f"<{' '.join(opening)}>"
    return Html(head if tag in _VOID else f"{head}{joined(content)}</{tag}>")


def _name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError(f"no name of an element or attribute: {name!r}")
    return name


# Blocks: tables, plans as rows of calls, badges, remarks.

WIDEST: Final = 240  # characters of one text
_MOST_CALLS: Final = 60  # of one plan

Row = Sequence[object]


def table(names: Sequence[str], rows: Iterable[Row], *, label: str, numbers: str = "") -> Html:
    """A table; below a narrow width each row stands by itself, with the names of its columns.

    Args:
        label: what it shows, for who cannot see it.
        numbers: the names of columns of numbers, with spaces between.
    """
    right = set(numbers.split())
    head = [
        element("th", name, scope="col", class_="number" if name in right else None)
        for name in names
    ]
    body = [
        element(
            "tr",
            *(
                element("td", cell, data_name=name, class_="number" if name in right else None)
                for name, cell in zip(names, row, strict=True)
            ),
            class_="row",
        )
        for row in rows
    ]
    made = element(
        "table", element("thead", element("tr", *head)), element("tbody", *body), class_="stack"
    )
    return scrolled(made, label)


def scrolled(content: Html, label: str) -> Html:
    """What may be wider than the page: it scrolls by itself, by keys too."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def badge(word: str, mood: Mood = "plain") -> Html:
    """A word that stands out."""
    return element("span", word, class_=f"badge {mood}")


def call(text: str, *, wrong: bool = False) -> Html:
    """A call."""
    return element("span", clip(text, WIDEST), class_="call wrong" if wrong else "call")


def calls(texts: Sequence[str], *, wrong: int | None = None, nothing: str = "") -> Html:
    """Calls, one after the other; the one at `wrong` marked."""
    if not texts:
        return element("em", nothing or "the empty plan: no call at all")
    shown = [call(text, wrong=at == wrong) for at, text in enumerate(texts[:_MOST_CALLS])]
    arrow = element("span", "\u2192", class_="arrow", aria_hidden="true")
    line = joined(shown, joined([" ", arrow, " "]))
    more = len(texts) - _MOST_CALLS
    return element("span", line, f" and {more} more calls" if more > 0 else "", class_="calls")


def numbered(items: Iterable[Html]) -> Html:
    """A numbered list of plans."""
    return element("ol", *(element("li", item) for item in items), class_="plans")


def under(*parts: object) -> Html:
    """What is said below an item."""
    return element("p", *parts, class_="under")


def note(*parts: object) -> Html:
    """A remark below a block."""
    return element("p", *parts, class_="note")


def left_out(shown: int, total: int, what: str) -> Html:
    """How much of a list is not there; nothing where all of it is."""
    if shown >= total:
        return Html("")
    return note(
        f"{screen.big(shown)} of {screen.big(total)} {what} are shown; the rest is left out."
    )


def code(text: object) -> Html:
    """A text as it stands in a grammar or a ledger."""
    return element("code", clip(text, WIDEST))


def grouped(digits: str) -> str:
    """A decimal integer with its digits in groups of three; past sixty with its power of ten."""
    if len(digits) > 60:
        return screen.big_text(digits)
    first = len(digits) % 3
    groups = [digits[:first]] if first else []
    groups += [digits[at : at + 3] for at in range(first, len(digits), 3)]
    return "\u2009".join(groups)


def moment(started_ms: int) -> str:
    """A time in UTC; the number itself where it is beyond the calendar."""
    try:
        at = datetime.fromtimestamp(started_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{started_ms} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")

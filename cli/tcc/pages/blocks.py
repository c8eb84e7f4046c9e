"""The blocks that pages are made of: tables, plans as rows of calls, badges, what was left out.

Every list is bounded by who makes it, and says how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from tcc import screen
from tcc.pages.frame import Mood
from tcc.pages.markup import Html, element, joined
from tcc_certs.errors import clip

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

"""Pages for people: what ``tcc report`` writes, one self-contained HTML file each."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from importlib import resources
from typing import Final, Literal

from tcc import screen
from tcc_certs.errors import clip, escaped

# The frame of a page: head, policy, style, script, verdict, index and sections.

Mood = Literal["good", "bad", "doubtful", "plain"]
_SIGNS = {"good": "\u2713", "bad": "\u2717", "doubtful": "!", "plain": "\u2022"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of a page.

    Attributes:
        name: the anchor of the section, of letters and hyphens.
        title: the heading.
        lead: a sentence or two about the content; may be empty.
        body: the content.
    """

    name: str
    title: str
    lead: object = ""
    body: Html


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The verdict at the top of a page.

    Attributes:
        word: VALID, INVALID, INCOMPLETE or DECLINED, as this command's own validation found.
        summary: the verdict as a sentence.
        mood: selects the colour and the sign.
        by: a sentence about the check that gave the verdict.
    """

    word: str
    summary: str
    mood: Mood
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A complete page.

    Attributes:
        kind: the subject: ``artifact``, ``run`` or ``session``.
        title: the name of the subject, such as the grammar's name.
        verdict: the verdict at the top.
        facts: names and values below the title.
        sections: the parts of the page, in order.
        programs: script files of this package that run before the script of every page.
    """

    kind: str
    title: str
    verdict: Verdict
    facts: Sequence[tuple[str, object]]
    sections: Sequence[Section]
    programs: Sequence[str] = ()


def page_bytes(page: Page) -> bytes:
    """Return the page as UTF-8; equal pages give equal bytes."""
    document = joined(
        [
            Html("<!DOCTYPE html>\n"),
            element("html", _head(page), _body(page), lang="en"),
            Html("\n"),
        ]
    )
    return document.encode("utf-8")


def policy(programs: Sequence[str] = ()) -> str:
    """Return the content security policy of a page with these programs."""
    digest = base64.b64encode(hashlib.sha256(_script(programs).encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _script(programs: Sequence[str]) -> Html:
    """Return the single script of a page."""
    return joined([*map(_own, programs), _own("page.js")], Html("\n"))


@cache
def _own(name: str) -> Html:
    """Return a file of this package, which is already markup, style or script."""
    return Html(resources.files("tcc.pages").joinpath(name).read_text(encoding="utf-8"))


def _head(page: Page) -> Html:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", **{"http-equiv": "Content-Security-Policy"}, content=policy(page.programs)),
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
        element("script", _script(page.programs)),
    )


_FOOTER = (
    "One file, nothing is loaded from elsewhere. The verdict is the one of the command that wrote "
    "this page; whoever has the files can ask for it again with tcc validate or tcc check, or with "
    "python -m tcc_certs, which needs nothing else of tcc."
)


def verdict_banner(verdict: Verdict) -> Html:
    """Return the verdict as a banner."""
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
    """Return names and values as a description list; empty for no rows."""
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
    """Markup from this module or from a file of this package; it needs no escaping."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as markup: escape it unless it is already markup."""
    if isinstance(value, Html):
        return value
    return Html(html.escape(escaped(str(value)), quote=True))


def joined(parts: Iterable[object], between: str = "") -> Html:
    """Join parts; each part is escaped unless it is markup."""
    return Html(text(between).join([text(part) for part in parts]))


def element(tag: str, *content: object, **attributes: object) -> Html:
    """Return an element.

    Args:
        tag: the element's name, which must come from code and not from data.
        content: texts, which are escaped, and markup.
        attributes: attributes by name; a final underscore is dropped, others become hyphens
            (``class_``, ``aria_label``).  None and False leave an attribute out; True gives one
            without a value.

    Raises:
        ValueError: an element or attribute name is malformed.
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


# Blocks: tables, plans as rows of calls, badges, notes.

WIDEST: Final = 240  # characters shown of a text
_MOST_CALLS: Final = 60  # calls shown of a plan

Row = Sequence[object]


def table(names: Sequence[str], rows: Iterable[Row], *, label: str, numbers: str = "") -> Html:
    """Return a table; on a narrow screen each row is a block with the names of its columns.

    Args:
        names: the column names.
        label: a description for screen readers.
        numbers: the names of number columns, separated by spaces.
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
    """Wrap content that may be wider than the page, so that it scrolls, also by keyboard."""
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=label)


def badge(word: str, mood: Mood = "plain") -> Html:
    """Return a highlighted word."""
    return element("span", word, class_=f"badge {mood}")


def call(text: str, *, wrong: bool = False) -> Html:
    """Return a call, at most 240 characters of it."""
    return element("span", clip(text, WIDEST), class_="call wrong" if wrong else "call")


def calls(texts: Sequence[str], *, wrong: int | None = None, nothing: str = "") -> Html:
    """Return the first 60 calls in a row, and how many more there are.

    Args:
        wrong: the index of a call to mark.
        nothing: the text for no calls; empty for a default.
    """
    if not texts:
        return element("em", nothing or "the empty plan: no call at all")
    shown = [call(text, wrong=at == wrong) for at, text in enumerate(texts[:_MOST_CALLS])]
    arrow = element("span", "\u2192", class_="arrow", aria_hidden="true")
    line = joined(shown, joined([" ", arrow, " "]))
    more = len(texts) - _MOST_CALLS
    return element("span", line, f" and {more} more calls" if more > 0 else "", class_="calls")


def numbered(items: Iterable[Html]) -> Html:
    """Return a numbered list of plans."""
    return element("ol", *(element("li", item) for item in items), class_="plans")


def under(*parts: object) -> Html:
    """Return a line of text below an item."""
    return element("p", *parts, class_="under")


def note(*parts: object) -> Html:
    """Return a remark below a block."""
    return element("p", *parts, class_="note")


def left_out(shown: int, total: int, what: str) -> Html:
    """Return a note on how many items are shown; empty if all of them are."""
    if shown >= total:
        return Html("")
    return note(
        f"{screen.big(shown)} of {screen.big(total)} {what} are shown; the rest is left out."
    )


def code(text: object) -> Html:
    """Return a text in the notation of a grammar or a ledger, at most 240 characters."""
    return element("code", clip(text, WIDEST))


def grouped(digits: str) -> str:
    """Group the digits of an integer by three; beyond 60 digits use a power of ten."""
    if len(digits) > 60:
        return screen.big_text(digits)
    first = len(digits) % 3
    groups = [digits[:first]] if first else []
    groups += [digits[at : at + 3] for at in range(first, len(digits), 3)]
    return "\u2009".join(groups)


def moment(started_ms: int) -> str:
    """Return a time in UTC as text, or the milliseconds if it is beyond the calendar."""
    try:
        at = datetime.fromtimestamp(started_ms / 1000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{started_ms} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S UTC")


_WIDE, _HIGH = 760, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 12, 40
_TICKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The points of a line in order, drawn as steps or as dots.

    Attributes:
        name: the text in the legend.
        points: step, value, and the value as text.
        style: ``one`` or ``two`` for a line, ``dot`` for dots.
    """

    name: str
    points: Sequence[tuple[int, float, str]]
    style: str  # "one", "two" or "dot"


class Thinned:
    """Keeps every n-th of the points added, so that at most `most` remain, plus the last one.

    The number of points alone decides which of them are kept.
    """

    def __init__(self, most: int = 600) -> None:
        self._most = most
        self._stride = 1
        self._kept: list[tuple[int, float, str]] = []
        self._last: tuple[int, float, str] | None = None
        self.seen = 0

    def add(self, step: int, value: float, label: str) -> None:
        """Add the next point."""
        self._last = step, value, label
        if self.seen % self._stride == 0:
            self._kept.append(self._last)
            if len(self._kept) > self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self.seen += 1

    @property
    def points(self) -> list[tuple[int, float, str]]:
        """The kept points and the last point."""
        if self._last is None or self._kept[-1] == self._last:
            return self._kept
        return [*self._kept, self._last]


def line_chart(
    lines: Sequence[Series], *, across: str, label: str, most: int | None = None
) -> Html:
    """Return a chart of lines over steps.

    Args:
        lines: the first line also provides the readout under the pointer.
        across: the name of a step.
        label: a description of the chart.
        most: the last step on the axis; None takes the last step of the points.
    """
    points = [point for line in lines for point in line.points]
    scale = _Scale(points, most)
    drawn = [*scale.frame(across), *(_drawn(line, scale) for line in lines)]
    spot = element(
        "line", class_="spot", x1=0, x2=0, y1=_TOP, y2=_HIGH - _BOTTOM, visibility="hidden"
    )
    told = [[scale.x(step), f"{across} {step}: {text}"] for step, _, text in lines[0].points]
    chart = element(
        "svg", element("title", label), *drawn, spot,
        viewBox=f"0 0 {_WIDE} {_HIGH}", class_="chart", role="img", aria_label=label,
        tabindex="0", data_points=json.dumps(told),
    )  # fmt: skip
    return element(
        "figure",
        _legend(lines),
        scrolled(chart, label),
        element("p", class_="readout", aria_live="polite"),
    )


class _Scale:
    def __init__(self, points: Sequence[tuple[int, float, str]], most: int | None) -> None:
        values = [value for _, value, _ in points]
        self.low, self.high = min(values), max(values)
        if self.low == self.high:
            self.low, self.high = self.low - 1, self.high + 1
        self._first = min(step for step, _, _ in points)
        self._last = max(self._first + 1, most or 0, max(step for step, _, _ in points))

    def x(self, step: int) -> float:
        return round(
            _LEFT + (step - self._first) / (self._last - self._first) * (_WIDE - _LEFT - _RIGHT), 1
        )

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return round(_HIGH - _BOTTOM - share * (_HIGH - _TOP - _BOTTOM), 1)

    def frame(self, across: str) -> list[Html]:
        """Return the axes, the grid and their numbers."""
        found = []
        for tick in nice_ticks(self.low, self.high):
            y = self.y(float(tick))
            found.append(element("line", class_="grid", x1=_LEFT, x2=_WIDE - _RIGHT, y1=y, y2=y))
            found.append(_label(_LEFT - 8, y + 4, plain_number(tick), "end"))
        bottom = _HIGH - _BOTTOM
        found.append(
            element("line", class_="axis", x1=_LEFT, x2=_WIDE - _RIGHT, y1=bottom, y2=bottom)
        )
        for tick in nice_ticks(self._first, self._last):
            if tick == int(tick):
                found.append(_label(self.x(int(tick)), bottom + 16, plain_number(tick), "middle"))
        found.append(_label((_LEFT + _WIDE - _RIGHT) / 2, _HIGH - 6, across, "middle"))
        return found


def _label(x: float, y: float, text: str, anchor: str) -> Html:
    return element("text", text, x=x, y=round(y, 1), text_anchor=anchor)


def _drawn(line: Series, scale: _Scale) -> Html:
    placed = [(scale.x(step), scale.y(value), text) for step, value, text in line.points]
    if line.style == "dot" or len(placed) == 1:
        return joined(
            element("circle", element("title", text), class_="dot", cx=x, cy=y, r=4.5)
            for x, y, text in placed
        )
    path = [f"M{placed[0][0]} {placed[0][1]}"] if placed else []
    path += [f"H{x}V{y}" for x, y, _ in placed[1:]]
    return element("path", class_=line.style, d="".join(path))


def _legend(lines: Sequence[Series]) -> Html:
    items = []
    for line in lines:
        dotted = line.style == "dot"
        mark = (
            element("circle", class_="dot", cx=15, cy=6, r=4.5)
            if dotted
            else element("path", class_=line.style, d="M0 6H30")
        )
        sample = element("svg", mark, viewBox="0 0 30 12", class_="chart-key", aria_hidden="true")
        items.append(element("span", sample, line.name))
    return element("div", *items, class_="legend")


def bar_chart(bars: Sequence[tuple[str, float, str]], *, across: str, label: str) -> Html:
    """Return a bar chart that starts at zero; a bar is (name, height, text for its tooltip)."""
    top = max((height for _, height, _ in bars), default=0.0) or 1.0
    slot = (_WIDE - _LEFT - _RIGHT) / max(len(bars), 1)
    every = max(1, len(bars) // 16)
    bottom, room = _HIGH - _BOTTOM, _HIGH - _TOP - _BOTTOM
    drawn = [element("line", class_="axis", x1=_LEFT, x2=_WIDE - _RIGHT, y1=bottom, y2=bottom)]
    for at, (name, height, text) in enumerate(bars):
        x, high = _LEFT + at * slot, room * height / top
        drawn.append(
            element(
                "rect",
                element("title", text),
                class_="bar",
                x=round(x + slot * 0.12, 1),
                y=round(bottom - high, 1),
                width=round(slot * 0.76, 1),
                height=round(high, 1),
                rx=2,
            )
        )
        if at % every == 0:
            drawn.append(_label(round(x + slot / 2, 1), bottom + 16, name, "middle"))
    drawn.append(_label((_LEFT + _WIDE - _RIGHT) / 2, _HIGH - 6, across, "middle"))
    chart = element(
        "svg", element("title", label), *drawn,
        viewBox=f"0 0 {_WIDE} {_HIGH}", class_="chart", role="img", aria_label=label,
    )  # fmt: skip
    return element("figure", scrolled(chart, label))


def nice_ticks(low: float, high: float) -> list[Decimal]:
    """Return about five round numbers from `low` to `high`."""
    least, most = Decimal(repr(low)), Decimal(repr(high))
    rough = (most - least) / _TICKS
    if rough <= 0:
        return []
    power = Decimal(1).scaleb(rough.adjusted())
    step = next(power * Decimal(n) for n in (1, 2, 5, 10) if power * Decimal(n) >= rough)
    first = (least / step).to_integral_value(rounding="ROUND_CEILING")
    found = []
    for at in range(2 * _TICKS + 1):
        tick = (first + at) * step
        if tick > most:
            break
        found.append(tick)
    return found


def plain_number(value: Decimal) -> str:
    """Return a number for an axis; beyond 9 characters it has an exponent."""
    if value == 0:
        return "0"
    text = f"{value.normalize():f}"
    return (text if len(text) <= 9 else f"{value:.2e}").replace("-", "\u2212")

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
        programs: files of this package that run before the script of every page.
    """

    kind: str
    title: str
    verdict: Verdict
    facts: Sequence[tuple[str, object]]
    sections: Sequence[Section]
    programs: Sequence[str] = ()


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


def policy(programs: Sequence[str] = ()) -> str:
    """The content security policy of a page with these programs."""
    digest = base64.b64encode(hashlib.sha256(_script(programs).encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _script(programs: Sequence[str]) -> Html:
    """The one script of a page."""
    return joined([*map(_own, programs), _own("page.js")], Html("\n"))


@cache
def _own(name: str) -> Html:
    """A file of this package, which is markup, style or script already."""
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


_WIDE, _HIGH = 760, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 12, 40
_TICKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points (step, value, the value as text), in order; drawn as steps, or as dots alone."""

    name: str
    points: Sequence[tuple[int, float, str]]
    style: str  # "one", "two" or "dot"


class Thinned:
    """Points in order, of which every n-th is kept, so that they never are more than `most`.

    The last one is always kept.  Which are kept depends on how many there were alone.
    """

    def __init__(self, most: int = 600) -> None:
        self._most = most
        self._stride = 1
        self._kept: list[tuple[int, float, str]] = []
        self._last: tuple[int, float, str] | None = None
        self.seen = 0

    def add(self, step: int, value: float, label: str) -> None:
        """The next point."""
        self._last = step, value, label
        if self.seen % self._stride == 0:
            self._kept.append(self._last)
            if len(self._kept) > self._most:
                self._kept = self._kept[::2]
                self._stride *= 2
        self.seen += 1

    @property
    def points(self) -> list[tuple[int, float, str]]:
        """What is kept."""
        if self._last is None or self._kept[-1] == self._last:
            return self._kept
        return [*self._kept, self._last]


def line_chart(
    lines: Sequence[Series], *, across: str, label: str, most: int | None = None
) -> Html:
    """Lines over steps.

    Args:
        across: what a step is.
        label: the chart in a sentence.
        most: the last step of the axis; that of the points where None.
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
        """Axes, grid, and numbers at them."""
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
    """Bars (name, height, what it stands for as text), from nothing up."""
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
    """Some round numbers from `low` to `high`."""
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
    """A number at an axis: no exponent while it is short."""
    if value == 0:
        return "0"
    text = f"{value.normalize():f}"
    return (text if len(text) <= 9 else f"{value:.2e}").replace("-", "\u2212")

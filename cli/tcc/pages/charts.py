"""Charts as SVG: lines over steps, and bars; no library, the same bytes for the same numbers.

Floating point places marks on a picture; every number that is read is text from elsewhere.
Cost: linear in the points, of which callers hand in a bounded number (:class:`Thinned`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tcc.pages.markup import Html, element, joined, scrolled

_WIDE, _HIGH = 760, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 78, 14, 12, 40
_TICKS: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
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


def line_chart(lines: Sequence[Line], *, across: str, label: str, most: int | None = None) -> Html:
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


def _drawn(line: Line, scale: _Scale) -> Html:
    placed = [(scale.x(step), scale.y(value), text) for step, value, text in line.points]
    if line.style == "dot" or len(placed) == 1:
        return joined(
            element("circle", element("title", text), class_="dot", cx=x, cy=y, r=4.5)
            for x, y, text in placed
        )
    path = [f"M{placed[0][0]} {placed[0][1]}"] if placed else []
    path += [f"H{x}V{y}" for x, y, _ in placed[1:]]
    return element("path", class_=line.style, d="".join(path))


def _legend(lines: Sequence[Line]) -> Html:
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

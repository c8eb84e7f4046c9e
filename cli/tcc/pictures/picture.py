"""What a picture shows, before it is drawn: boxes, and arrows with what stands on them.

Every text has been escaped for people (:mod:`tcc_certs.plain`) and shortened; what draws it
escapes it for its own format.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from tcc_certs.formats.names import written
from tcc_certs.plain import escaped

_NO_XML = re.compile("[\ufffe\uffff]")

Kind: TypeAlias = Literal["state", "leaf", "cut", "more"]

MOST_LINES: Final = 4
MOST_CELLS: Final = 44
MOST_CALLS: Final = 60  # of an arrow, that are listed with it


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A state, a prefix, or what stands for those that are left out.

    Attributes:
        name: letters and digits, no two alike.
        kind: `leaf` a complete plan, `cut` a prefix that is not followed, `more` what is left out.
        root: whether plans begin here.  accept: whether one may stop here.
        lines: what stands in it.
        facts: name and value, shown when it is pointed at.
    """

    name: str
    kind: Kind
    root: bool
    accept: bool
    lines: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """All calls that lead from one box to another.

    Attributes:
        source, target: places in the list of boxes, the source before the target.
        lines: what stands on it, at most MOST_LINES.
        calls: their texts, at most MOST_CALLS of them.
        more: how many others there are.
    """

    source: int
    target: int
    lines: tuple[str, ...]
    calls: tuple[str, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """Boxes and arrows without a cycle.

    Attributes:
        title: what it is of.
        about: name and value of what is said of it as a whole.
        boxes: sources before targets.
        left_out: a sentence that says what is not shown; None where everything is.
    """

    title: str
    about: tuple[tuple[str, str], ...]
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    left_out: str | None


def arrow(source: int, target: int, calls: Sequence[str], tools: Mapping[str, str]) -> Arrow:
    """The arrow of some calls; many are shown as their tools, with how many there are of each."""
    return Arrow(
        source=source,
        target=target,
        lines=_lines(calls, tools),
        calls=tuple(seen(call) for call in calls[:MOST_CALLS]),
        more=max(0, len(calls) - MOST_CALLS),
    )


def _lines(calls: Sequence[str], tools: Mapping[str, str]) -> tuple[str, ...]:
    if len(calls) <= MOST_LINES:
        return tuple(short(call) for call in calls)
    by_tool: dict[str, int] = {}
    for call in calls:
        by_tool[tools[call]] = by_tool.get(tools[call], 0) + 1
    texts = [
        short(written(tool)) if count == 1 else f"{short(written(tool))} ({count} calls)"
        for tool, count in by_tool.items()
    ]
    return tuple(_cut(texts))


def _cut(texts: Sequence[str]) -> Iterable[str]:
    if len(texts) <= MOST_LINES:
        return texts
    return [*texts[: MOST_LINES - 1], f"and {len(texts) - MOST_LINES + 1} more tools"]


def seen(text: str) -> str:
    """A text as people may be shown it, in any format: XML has not all characters either."""
    return _NO_XML.sub(lambda found: f"\\u{ord(found[0]):04x}", escaped(text))


def short(text: str) -> str:
    """A text as people may be shown it, cut to MOST_CELLS cells."""
    # Half of a surrogate pair is hidden, so what is left can be written down.
    shown = seen(text[: 4 * MOST_CELLS])
    if len(text) <= 4 * MOST_CELLS and cells(shown) <= MOST_CELLS:
        return shown
    kept, width = [], 0
    for char in shown:
        width += cells(char)
        if width > MOST_CELLS - 1:
            break
        kept.append(char)
    return f"{''.join(kept)}…"


def cells(text: str) -> int:
    """The columns that a text takes in a font of fixed width."""
    if text.isascii():
        return len(text)
    wide = sum(1 for char in text if unicodedata.east_asian_width(char) in "WF")
    return len(text) + wide

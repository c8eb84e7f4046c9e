"""Outlooks: how little and how much the words of a term can weigh, and which patterns they touch.

An outlook is true of every word of its term, and cheap: it looks at one level of the term and at
the outlooks below.  It may be too wide (an intersection or a difference can be narrower than it
says), never too narrow.  It lets the search give up on a residual whose limits can no longer be
met, and forget a counter that can no longer matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

# Beyond every sum that a walk can meet: limits have 64 bits, states 32.
FAR = 1 << 200


class Outlook(NamedTuple):
    """Of every word: at least ``low[i]``, at most ``high[i]`` on meter i; calls only of `touched`.

    `touched` has a bit for each pattern of a require or a forbid.  A term without words has no
    outlook: None stands in its place.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    touched: int


def of_empty(meters: int) -> Outlook:
    """The empty word alone."""
    return Outlook((0,) * meters, (0,) * meters, 0)


def of_calls(weights: Sequence[Sequence[int]], touched: int) -> Outlook | None:
    """One call, of these weights."""
    if not weights:
        return None
    columns = list(zip(*weights, strict=True))
    return Outlook(tuple(map(min, columns)), tuple(map(max, columns)), touched)


def in_sequence(first: Outlook | None, second: Outlook | None) -> Outlook | None:
    """A word of the one, then a word of the other."""
    if first is None or second is None:
        return None
    return Outlook(
        tuple(map(_add_low, first.low, second.low)),
        tuple(map(_add_high, first.high, second.high)),
        first.touched | second.touched,
    )


def _add_low(x: int, y: int) -> int:
    return -FAR if min(x, y) <= -FAR else min(FAR, x + y)


def _add_high(x: int, y: int) -> int:
    return FAR if max(x, y) >= FAR else max(-FAR, x + y)


def any_of(parts: Iterable[Outlook | None]) -> Outlook | None:
    """A word of any of them."""
    some = [part for part in parts if part is not None]
    if not some:
        return None
    touched = 0
    for part in some:
        touched |= part.touched
    return Outlook(
        tuple(map(min, zip(*(part.low for part in some), strict=True))),
        tuple(map(max, zip(*(part.high for part in some), strict=True))),
        touched,
    )


def all_of(parts: Iterable[Outlook | None]) -> Outlook | None:
    """A word of all of them."""
    some = []
    touched = -1
    for part in parts:
        if part is None:
            return None
        some.append(part)
        touched &= part.touched
    low = tuple(map(max, zip(*(part.low for part in some), strict=True)))
    high = tuple(map(min, zip(*(part.high for part in some), strict=True)))
    if any(x > y for x, y in zip(low, high, strict=True)):
        return None
    return Outlook(low, high, touched)


def repeated(body: Outlook | None, least: int, most: int | None, meters: int) -> Outlook | None:
    """From `least` to `most` words of the body, one after the other."""
    if body is None:
        return of_empty(meters) if least == 0 else None
    return Outlook(
        tuple(_times(x, least if x >= 0 else most) for x in body.low),
        tuple(_times(y, most if y > 0 else least) for y in body.high),
        body.touched,
    )


def _times(end: int, times: int | None) -> int:
    if end == 0 or times == 0:
        return 0
    if times is None or abs(end) >= FAR:
        return FAR if end > 0 else -FAR
    return max(-FAR, min(FAR, end * times))


def widened(old: Outlook | None, new: Outlook | None) -> Outlook | None:
    """`new`, with every end that is still moving sent far away."""
    if old is None or new is None:
        return new
    return Outlook(
        tuple(-FAR if y != x else x for x, y in zip(old.low, new.low, strict=True)),
        tuple(FAR if y != x else x for x, y in zip(old.high, new.high, strict=True)),
        new.touched,
    )

"""The unified difference of two texts that differ in white space alone, as `diff -u` prints one.

Where two lines stand follows from how much text is before them, so nothing is searched for.
Cost: linear in the two texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

Line: TypeAlias = tuple[str, str]  # ' ', '-' or '+', and the text with its end
_CONTEXT = 3


def unified(old: str, new: str, name: str) -> str:
    """The difference from `old` to `new`; empty where they are the same.

    Args:
        old, new: texts with the same characters in the same order, but for white space.
        name: of the file that `old` is in.
    """
    hunks = "".join(_hunks(_ordered(_compared(_lines(old), _lines(new)))))
    return f"--- {name}\n+++ {name}\n{hunks}" if hunks else ""


def _lines(text: str) -> list[str]:
    """Lines with their ends; only LF ends one."""
    *whole, last = text.split("\n")
    return [f"{line}\n" for line in whole] + ([last] if last else [])


def _compared(old: Sequence[str], new: Sequence[str]) -> Iterator[Line]:
    i = j = before_old = before_new = 0  # lines, and characters before them
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and before_old == before_new and old[i] == new[j]:
            yield " ", old[i]
            before_old += _size(old[i])
            before_new = before_old
            i, j = i + 1, j + 1
        elif j == len(new) or (i < len(old) and _first(old[i], new[j], before_old - before_new)):
            yield "-", old[i]
            before_old += _size(old[i])
            i += 1
        else:
            yield "+", new[j]
            before_new += _size(new[j])
            j += 1


def _first(old: str, new: str, ahead: int) -> bool:
    """Whether the old line goes before the new one comes; `ahead` is how much more was read."""
    if ahead:
        return ahead < 0
    return not old.strip() or bool(new.strip())


def _size(line: str) -> int:
    return sum(len(part) for part in line.split())


def _ordered(lines: Iterator[Line]) -> Iterator[Line]:
    """What goes before what comes, between two lines that stay."""
    coming: list[Line] = []
    for sign, text in lines:
        if sign == "+":
            coming.append((sign, text))
            continue
        if sign == " ":
            yield from coming
            coming.clear()
        yield sign, text
    yield from coming


def _hunks(lines: Iterator[Line]) -> Iterator[str]:
    """The changed lines with three lines around them, each run under its numbers."""
    hunk: list[Line] = []
    start = [1, 1]
    at = [1, 1]
    same = 0  # lines at the end of the hunk that stay
    for sign, text in lines:
        hunk.append((sign, text))
        same = same + 1 if sign == " " else 0
        changed = same < len(hunk)
        if not changed and same > _CONTEXT:
            del hunk[0]
            start = [start[0] + 1, start[1] + 1]
        elif changed and same > 2 * _CONTEXT:
            yield _hunk(hunk[: -same + _CONTEXT], start)
            kept = hunk[-_CONTEXT:]
            hunk = kept
            same = _CONTEXT
            start = [at[0] - _CONTEXT + 1, at[1] - _CONTEXT + 1]
        at = [at[0] + (sign != "+"), at[1] + (sign != "-")]
    if same < len(hunk):
        yield _hunk(hunk[: len(hunk) - max(0, same - _CONTEXT)], start)


def _hunk(lines: Sequence[Line], start: Sequence[int]) -> str:
    sizes = [sum(sign != other for sign, _ in lines) for other in "+-"]
    # A part without lines is numbered by the line before it.
    places = [f"{at - (size == 0)},{size}" for at, size in zip(start, sizes, strict=True)]
    body = "".join(
        f"{sign}{text}" if text.endswith("\n") else f"{sign}{text}\n\\ No newline at end of file\n"
        for sign, text in lines
    )
    return f"@@ -{places[0]} +{places[1]} @@\n{body}"

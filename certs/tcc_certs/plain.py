"""Text as people may be shown it: what steers a terminal, or is not seen, is written as an escape.

Text out of a file could move the cursor, fake a line of its own, turn the writing direction or
hide.  Everything that is printed for people goes through :func:`escaped`, everything that is
printed for programs through :func:`escaped_json`; and names and versions must need neither.
The characters are listed here and not asked of Unicode's tables, which differ between versions of
Python.  Cost: linear in the text.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

# Controls (C0, DEL, C1), soft hyphen, marks and overrides of the writing direction, separators of
# lines and paragraphs, characters without a width, tags, halves of surrogate pairs.
_HIDDEN = (
    "\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff"
)
_ANY = re.compile(f"[{_HIDDEN}]")
_IN_JSON = re.compile(f"(?!\n)[{_HIDDEN}]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def is_plain(text: str) -> bool:
    """Whether every character of `text` is seen, and steers nothing."""
    return hidden_in(text) is None


def hidden_in(text: str) -> str | None:
    """The first hidden character of `text`, None where it is plain."""
    found = _ANY.search(text)
    return None if found is None else found[0]


def escaped(text: str) -> str:
    """`text` on one line, its hidden characters written as escapes."""
    return _ANY.sub(_escape, text)


def escaped_json(document: str) -> str:
    """A JSON text that says the same, with hidden characters escaped as JSON does.

    Args:
        document: JSON; its own line feeds, which stand between its parts, stay.
    """
    return _IN_JSON.sub(_escape_in_json, document)


def trace_lines(error: BaseException) -> Iterator[str]:
    """A traceback, the first error first: the lines of code, and each error on one line."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from trace_lines(before)
        yield "and then:"
    for frame in traceback.format_tb(error.__traceback__):
        yield from frame.rstrip("\n").split("\n")
    yield escaped(f"{type(error).__name__}: {error}")


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _SHORT:
        return _SHORT[char]
    number = ord(char)
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _escape_in_json(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))

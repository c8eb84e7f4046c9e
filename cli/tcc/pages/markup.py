"""Markup as a value: every text that becomes part of a page is escaped here, and only here.

A page is made of :class:`Html`.  What is no `Html` is text, from anywhere, and is escaped when it
is put into an element or an attribute; so forgetting to say anything about a text escapes it.
Hidden characters are shown as escapes (:mod:`tcc_certs.plain`).
Cost: linear in the texts.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from tcc_certs.plain import escaped

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

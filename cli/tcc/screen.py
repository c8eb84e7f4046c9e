"""What people and machines read: tables and lines, or one JSON document.

People get plain text (colour on a terminal only); ``--json`` gives one object whose first members
are ``format`` and ``format_version``.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

import click

FORMAT_VERSION = "1.0"


def print_json(command: str, fields: Mapping[str, Any]) -> None:
    """Print the one JSON document of `command`."""
    print_document({"format": f"tcc.{command}", "format_version": FORMAT_VERSION} | dict(fields))


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values in two columns."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        click.echo(f"  {click.style(name.ljust(width), dim=True)}  {clean(str(value))}")


def clean(text: str) -> str:
    """`text` without characters that steer a terminal: names come from files that others wrote."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if unicodedata.category(c) not in _HIDDEN else "\ufffd" for c in text)


_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def good(text: str) -> None:
    """Print a good ending."""
    click.secho(clean(text), fg="green", bold=True)


def bad(text: str) -> None:
    """Print a bad ending."""
    click.secho(clean(text), fg="red", bold=True)


def doubtful(text: str) -> None:
    """Print an ending that claims nothing."""
    click.secho(clean(text), fg="yellow", bold=True)


def warn(text: str) -> None:
    """Print a warning, apart from what was asked for."""
    click.secho(clean(text), fg="yellow", err=True)


def decimal(value: int) -> str:
    """The decimal text of an integer of any size (Python's own conversion stops at 4300 digits)."""
    import gmpy2

    return str(gmpy2.mpz(value).digits())


def big(value: int) -> str:
    """A count for people: exact with separators while short, then with its power of ten."""
    return big_text(decimal(value))


def big_text(digits: str) -> str:
    """The same of a count that is decimal text already."""
    if len(digits) <= 15:
        return f"{int(digits):,}".replace(",", " ")
    return f"{digits[0]}.{digits[1:3]} * 10^{len(digits) - 1}"

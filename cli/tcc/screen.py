"""What people and machines read: tables and lines, or one JSON document.

People get plain text (colour on a terminal only); ``--json`` gives one object whose first members
are ``format`` and ``format_version``.  Here alone text leaves the commands.  What a file, a path or
an error says stays on its line and steers no terminal: hidden characters are escaped
(:mod:`tcc_certs.plain`), for people and in JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from typing import Any

import click

FORMAT_VERSION = "1.0"


def say(*cells: str, err: bool = False, **style: Any) -> None:
    """Print one line.

    Args:
        cells: its parts, from anywhere; a tab stands between two of them.
        err: apart from what was asked for.
        style: of :func:`click.style`; seen on a terminal only.
    """
    text = "\t".join(_shown(cell, err) for cell in cells)
    click.echo(click.style(text, **style) if style else text, err=err)


def say_lines(text: str, *, err: bool = False) -> None:
    """Print a text of several lines; what in it comes from a file has been escaped before."""
    for line in text.split("\n"):
        say(line, err=err)


def say_text(text: str) -> None:
    """Print a text out of a file as it is, for programs to read; on a terminal it is escaped."""
    if sys.stdout.isatty():
        say_lines(text.removesuffix("\n"))
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()


def say_json(document: str) -> None:
    """Print a JSON text."""
    from tcc_certs.plain import escaped_json

    click.echo(_encodable(escaped_json(document), False))


def print_json(command: str, fields: Mapping[str, Any]) -> None:
    """Print the one JSON document of `command`."""
    print_document({"format": f"tcc.{command}", "format_version": FORMAT_VERSION} | dict(fields))


def print_document(document: Mapping[str, Any]) -> None:
    """Print a JSON document."""
    say_json(json.dumps(document, indent=2, ensure_ascii=False))


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print names and values in two columns."""
    rows = list(rows)
    width = max((len(name) for name, _ in rows), default=0)
    for name, value in rows:
        text = _shown(str(value), False)
        click.echo(f"  {click.style(name.ljust(width), dim=True)}  {text}")


def _shown(text: str, err: bool) -> str:
    """`text` as people may be shown it."""
    if not (text.isascii() and text.isprintable()):
        from tcc_certs.plain import escaped  # here, so that `tcc --version` stays quick

        text = escaped(text)
    return _encodable(text, err)


def _encodable(text: str, err: bool) -> str:
    """`text` with escapes for what the terminal's encoding does not have."""
    encoding = (sys.stderr if err else sys.stdout).encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def good(text: str) -> None:
    """Print a good ending."""
    say(text, fg="green", bold=True)


def bad(text: str) -> None:
    """Print a bad ending."""
    say(text, fg="red", bold=True)


def doubtful(text: str) -> None:
    """Print an ending that claims nothing."""
    say(text, fg="yellow", bold=True)


def warn(text: str) -> None:
    """Print a warning, apart from what was asked for."""
    say(text, fg="yellow", err=True)


def decimal(value: int) -> str:
    """The decimal text of an integer of any size (Python's own conversion stops at 4300 digits)."""
    if value.bit_length() <= _SHORT:
        return str(value)
    import gmpy2

    return str(gmpy2.mpz(value).digits())


_SHORT = 8192  # bits, fewer than 4300 digits


def big(value: int) -> str:
    """A count for people: exact with separators while short, then with its power of ten."""
    return big_text(decimal(value))


def big_text(digits: str) -> str:
    """The same of a count that is decimal text already."""
    if len(digits) <= 15:
        return f"{int(digits):,}".replace(",", " ")
    return f"{digits[0]}.{digits[1:3]} * 10^{len(digits) - 1}"

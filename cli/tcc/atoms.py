"""What commands take of privacy: a file of atoms, and a delta as people write it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click

from tcc.files import is_regular
from tcc.opening import refuse
from tcc_certs.core.atoms import Atom
from tcc_certs.errors import Rejected
from tcc_certs.formats.decimals import format_decimal
from tcc_certs.privacy.atoms_file import MAX_BYTES, read_atoms

_DELTA = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,40}))?(?:[eE]([+-]?[0-9]{1,2}))?")
_MOST_PLACES = 40


def atoms_in(path: Path) -> tuple[Atom, ...]:
    """The atoms that a file lists; - is standard input.  What is wrong ends the command.

    Raises:
        click.ClickException: it cannot be read, or standard input is closed.
    """
    try:
        return read_atoms(_data(path))
    except Rejected as refusal:
        refuse(path, refusal)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from None


def _data(path: Path) -> bytes:
    """The whole of it; what is too long is refused by its reader."""
    if str(path) == "-":
        if sys.stdin is None:
            raise click.UsageError("standard input is closed")
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    if path.exists() and not is_regular(path):
        raise click.ClickException(f"{path} is not a regular file")
    with path.open("rb") as handle:
        return handle.read(MAX_BYTES + 1)


def delta_of(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """:func:`plain_delta` as a callback of click."""
    return plain_delta(value)


def plain_delta(value: str) -> str:
    """A delta in canonical text, of a decimal with an exponent or without.

    Raises:
        click.BadParameter: it is none, not above 0 and below 1, or has too many places.
    """
    match = _DELTA.fullmatch(value)
    if match is None:
        message = f"{value[:60]!r} is no decimal such as 0.00001 or 1e-5"
        raise click.BadParameter(message, param_hint="--delta")
    part = match[2] or ""
    number, places = int(match[1] + part), len(part) - int(match[3] or 0)
    if places < 0:
        number, places = number * 10**-places, 0
    text = format_decimal(number, places)
    if not 0 < number < 10**places:
        message = f"above 0 and below 1 is needed, not {text[:60]}"
        raise click.BadParameter(message, param_hint="--delta")
    if len(text) > _MOST_PLACES + 2:
        message = f"at most {_MOST_PLACES} places are taken"
        raise click.BadParameter(message, param_hint="--delta")
    return text

"""What commands take of privacy: a delta as people write it."""

from __future__ import annotations

import re

import click

from tcc_certs.formats.decimals import format_decimal

DEFAULT_DELTA = "0.00001"
_DELTA = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,40}))?(?:[eE]([+-]?[0-9]{1,2}))?")
_MOST_PLACES = 40


def delta_of(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """A delta in canonical text, of a decimal with an exponent or without; a callback of click."""
    if value is None:
        return None
    match = _DELTA.fullmatch(value)
    if match is None:
        message = f"{value[:60]!r} is no decimal such as 0.00001 or 1e-5"
        raise click.BadParameter(message, ctx, parameter)
    part = match[2] or ""
    number, places = int(match[1] + part), len(part) - int(match[3] or 0)
    if places < 0:
        number, places = number * 10**-places, 0
    text = format_decimal(number, places)
    if not 0 < number < 10**places:
        raise click.BadParameter(f"above 0 and below 1 is needed, not {text}", ctx, parameter)
    if len(text) > _MOST_PLACES + 2:
        raise click.BadParameter(f"at most {_MOST_PLACES} places are taken", ctx, parameter)
    return text

"""The options of commands that the tables of options make: names, types, ranges, defaults and help.

The tables are the fields of :class:`tcc_compiler.options.Options`, and those of
:mod:`tcc.run_options`; nothing of an option is said a second time here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

import click

from tcc_compiler.options import Options
from tcc_runtime.artifact.typed import typed_calls
from tcc_runtime.terms.table import Option, table_of

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


class Either(click.Option):
    """A flag of two names, one for yes and one for no: both at once are bad usage."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Both names say the same member, and each time counts."""
        for names, value in ((self.opts, True), (self.secondary_opts, False)):
            parser.add_option(
                obj=self, opts=names, dest=self.name, action="append_const", const=value
            )

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """What was told, where it was told in one way."""
        told = opts.get(self.name or "")
        if isinstance(told, list):
            if len(set(told)) > 1:
                names = (self.opts[0], self.secondary_opts[0])
                raise click.UsageError(f"{names[0]} and {names[1]} exclude each other", ctx)
            opts = {**opts, self.name or "": told[-1]}
        return super().handle_parse_result(ctx, opts, args)


COMPILING: Final = table_of(Options)


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of every command that compiles."""
    return all_options(COMPILING, command)


def taken(table: Iterable[Option], given: dict[str, Any]) -> dict[str, Any]:
    """What `given` says of the options of a table, which is taken out of it."""
    return {option.name: given.pop(option.name) for option in table}


def flag(option: Option) -> str:
    """The name of an option on the command line."""
    return f"--{option.short.replace('_', '-')}"


def digest_option(name: str, text: str, *to: str) -> Decorator:
    """An option of 64 hexadecimal digits, handed to the command as 32 bytes."""
    return click.option(name, *to, metavar="HEX64", help=text, callback=_thirty_two_bytes)


def bytes_option(name: str, text: str, *to: str) -> Decorator:
    """An option of hexadecimal digits of any number of bytes."""
    return click.option(name, *to, metavar="HEX", help=text, callback=_any_bytes)


def all_options(table: Iterable[Option], command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of a table."""
    for option in reversed(tuple(table)):
        command = _click_option(option)(command)
    return command


def _click_option(option: Option) -> Decorator:
    if option.kind is bytes:
        of_bytes = digest_option if option.least == option.most else bytes_option
        return of_bytes(flag(option), option.about, option.name)
    if option.calls:
        return click.option(
            flag(option),
            option.name,
            metavar=option.metavar,
            help=option.about,
            callback=lambda _ctx, _parameter, value: typed_calls(value or ""),
        )
    if option.kind is bool:
        return click.option(flag(option), option.name, is_flag=True, help=option.about)
    more: dict[str, Any] = {"multiple": True} if option.kind is tuple else {}
    if option.kind is float:
        more["callback"] = _finite
    return click.option(
        flag(option),
        option.name,
        type=_type(option),
        default=option.default,
        show_default=option.default not in (None, ()),
        metavar=option.metavar,
        help=option.about,
        **more,
    )


def _type(option: Option) -> click.ParamType[Any] | type:
    if option.choices:
        return click.Choice(option.choices)
    if option.kind is int:
        least, most = (None if at is None else int(at) for at in (option.least, option.most))
        return click.IntRange(least, most)
    return str if option.kind is tuple else option.kind


def _finite(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and value >= 0):
        raise click.BadParameter("a number of seconds is needed", ctx, parameter)
    return value


def _any_bytes(ctx: click.Context, parameter: click.Parameter, value: str | None) -> bytes | None:
    if value is None:
        return None
    if re.fullmatch(r"([0-9a-fA-F]{2})+", value) is None:
        raise click.BadParameter("pairs of hexadecimal digits are needed", ctx, parameter)
    return bytes.fromhex(value)


def _thirty_two_bytes(
    ctx: click.Context, parameter: click.Parameter, value: str | None
) -> bytes | None:
    if value is None:
        return None
    if re.fullmatch(r"[0-9a-fA-F]{64}", value) is None:
        raise click.BadParameter("64 hexadecimal digits are needed", ctx, parameter)
    return bytes.fromhex(value)

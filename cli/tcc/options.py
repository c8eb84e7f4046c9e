"""Options and arguments of the commands, each declared once.

The fields of :class:`tcc_runtime.settings.settings.Settings` and
:class:`tcc_compiler.options.Options` define the options of runs and compilations: names, types,
ranges, defaults and help.  This module turns them into click options.  It also has the options that
several commands share, the help sections of `run` and `exec`, the parameter types, and the values
of a ``tcc.toml`` (:mod:`tcc.configuration` reads it).  Settings are imported on use, because
compiling needs none.
"""

from __future__ import annotations

import fnmatch
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import click
from click.core import ParameterSource

from tcc.files import STDIN, is_regular
from tcc_certs.formats.codec import format_decimal
from tcc_compiler.options import Options
from tcc_runtime.artifact.root import typed_calls
from tcc_runtime.settings.table import Option, table_of

if TYPE_CHECKING:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source
    from tcc_runtime.errors import SettingsError

Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]

COMPILING: Final = table_of(Options)
FORMATS: Final = ("text", "json", "sarif", "github")
_NOT_OF_EXECUTIONS: Final = frozenset(
    ("after", "beacon", "client_nonce", "count_bits", "opening_salt", "raw_input_dependent")
)
_DELTA = re.compile(r"([0-9]{1,40})(?:\.([0-9]{1,40}))?(?:[eE]([+-]?[0-9]{1,2}))?")
_MOST_PLACES = 40
_DURATION = re.compile(r"([0-9]{1,9})(s|m|h|d)")
_UNITS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Sections of the help of `run` and `exec`: the parameter names in each.
SECTIONS: Final[Mapping[str, Sequence[str]]] = {
    "Tools": ("tools", "arguments", "servers", "once", "deadline", "retries"),
    "Search": (
        "mode", "top", "recipe", "keys", "race", "after", "truncate", "tau", "alpha", "eta",
        "inflate", "asked", "pam",
    ),
    "Limits": ("max_expansions", "max_seconds"),
    "Costs and budgets": (
        "quotes", "ask", "adapters", "account", "price_cap", "sla_ms", "epsilon_cap",
        "price_weight", "latency_weight", "epsilon_weight", "margin",
    ),
    "Privacy": ("atoms", "delta", "raw_input_dependent"),
    "Randomness and commitments": (
        "seed", "opening_salt", "beacon", "client_nonce", "opening_only", "withhold_seed",
    ),
    "Ledger": ("ledger", "show", "told", "overwrite", "resumes"),
    "Trust in the artifact": ("checked", "no_verify"),
    "Compilation of a grammar": (*(option.name for option in COMPILING), "config", "no_config"),
    "Output": ("as_json",),
}  # fmt: skip


class GivenPath(click.Path):
    """The path of a file, or :data:`tcc.files.STDIN` for `-`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert `-` to STDIN, any other value as click does."""
        return STDIN if value == "-" or value is STDIN else super().convert(value, param, ctx)


class DurationType(click.ParamType[int]):
    """A duration such as `90s`, `30m`, `24h` or `7d`, converted to milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Convert a positive whole number with a unit to milliseconds."""
        found = _DURATION.fullmatch(str(value))
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is no time such as 90s, 30m, 24h or 7d", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


class Sectioned(click.Command):
    """A command whose help groups its options by :data:`SECTIONS`."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one section for each group of options."""
        for title, parameters in sections_of(self, ctx).items():
            rows = (parameter.get_help_record(ctx) for parameter in parameters)
            with formatter.section(title):
                formatter.write_dl([row for row in rows if row is not None])


def sections_of(command: click.Command, ctx: click.Context) -> dict[str, list[click.Parameter]]:
    """Return the options of a command by section; ``Options`` alone if the command has no sections.

    Options without a section are listed in ``Output``.
    """
    options = [one for one in command.get_params(ctx) if isinstance(one, click.Option)]
    if not isinstance(command, Sectioned):
        return {"Options": list(options)}
    named = {one.name: one for one in options}
    sections = dict(SECTIONS)
    if command.name == "run":
        sections["Limits"] = (*SECTIONS["Limits"], "count_bits")
    found: dict[str, list[click.Parameter]] = {
        title: [named.pop(name) for name in names if name in named]
        for title, names in sections.items()
    }
    found["Output"] += named.values()
    return {title: parameters for title, parameters in found.items() if parameters}


class FlagPair(click.Option):
    """A flag with two names, one for true and one for false; giving both is bad usage."""

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Register both names so that the parser collects every occurrence of either."""
        for names, value in ((self.opts, True), (self.secondary_opts, False)):
            parser.add_option(
                obj=self, opts=names, dest=self.name, action="append_const", const=value
            )

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, Any], args: list[str]
    ) -> tuple[Any, list[str]]:
        """Return the flag's value; raise click.UsageError if both names were given."""
        told = opts.get(self.name or "")
        if isinstance(told, list):
            if len(set(told)) > 1:
                names = (self.opts[0], self.secondary_opts[0])
                raise click.UsageError(f"{names[0]} and {names[1]} exclude each other", ctx)
            opts = {**opts, self.name or "": told[-1]}
        return super().handle_parse_result(ctx, opts, args)


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that compiles."""
    return all_options(COMPILING)(command)


def compile_options_of_run(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the compiler options to `tcc run`, where `--count-bits` is the option of the run."""
    from tcc_runtime.settings.settings import TABLE

    (width,) = [option for option in TABLE if option.name == "count_bits"]
    others = [option for option in COMPILING if option.name != width.name]
    return all_options([width, *others])(command)


def taken(table: Iterable[Option], given: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a table's options by name, and remove them from `given`."""
    return {option.name: given.pop(option.name) for option in table}


def flag(option: Option) -> str:
    """Return the name of an option on the command line, such as `--max-states`."""
    return f"--{option.short.replace('_', '-')}"


def digest_option(name: str, text: str, *to: str) -> Decorator:
    """Return an option that takes 64 hexadecimal digits and passes 32 bytes to the command."""
    return click.option(name, *to, metavar="HEX64", help=text, callback=_thirty_two_bytes)


def bytes_option(name: str, text: str, *to: str) -> Decorator:
    """Return an option that takes an even number of hexadecimal digits and passes bytes."""
    return click.option(name, *to, metavar="HEX", help=text, callback=_any_bytes)


def all_options(table: Iterable[Option]) -> Decorator:
    """Return a decorator that adds all options of a table."""
    return lambda command: _all(command, *map(_click_option, table))


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
        more["callback"] = finite
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


def finite(ctx: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Click callback that accepts None or a finite number of at least 0.

    Raises:
        click.BadParameter: the number is negative, infinite or NaN.
    """
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


def running() -> tuple[Option, ...]:
    """Return the options of a run except `count_bits`, which the compiler's options provide."""
    from tcc_runtime.settings.settings import TABLE

    return tuple(option for option in TABLE if option.name != "count_bits")


def executing() -> tuple[Option, ...]:
    """Return the options of an execution's searches; leave out options that its session decides."""
    return tuple(option for option in running() if option.name not in _NOT_OF_EXECUTIONS)


def setting_error(error: SettingsError) -> click.BadParameter:
    """Convert a setting out of its range to the bad usage of its option."""
    named = {option.name: flag(option) for option in running()}
    hint = named.get(error.field, f"--{error.field.replace('_', '-')}")
    return click.BadParameter(error.mismatch, param_hint=hint)


INPUT: Final = click.Path(exists=True, dir_okay=False, path_type=Path)
OUTPUT: Final = click.Path(dir_okay=False, path_type=Path)
GIVEN: Final = GivenPath(exists=True, dir_okay=False, path_type=Path)


def is_regular_file(
    ctx: click.Context, parameter: click.Parameter, value: Path | None
) -> Path | None:
    """Click callback that rejects a path which is no regular file; None and STDIN pass."""
    # Reading a pipe or a device may never end, and it cannot be read twice.
    if value is not None and value is not STDIN and not is_regular(value):
        raise click.BadParameter(f"{str(value)!r} is not a regular file", ctx, parameter)
    return value


def input_option(name: str, text: str, *, type: click.Path = INPUT, **more: Any) -> Decorator:
    """Return an option that names a regular file to read."""
    return click.option(name, type=type, callback=is_regular_file, help=text, **more)


ledger_argument = click.argument("ledger", type=INPUT, callback=is_regular_file)
artifact_argument = click.argument("artifact", type=GIVEN, callback=is_regular_file)
# For commands whose standard input belongs to the client that they serve: `-` is not accepted.
served_argument = click.argument("artifact", type=INPUT, callback=is_regular_file)
json_option = click.option("--json", "as_json", is_flag=True, help="print one JSON document")
pin_option = digest_option("--pin", "the trusted artifact digest")
overwrite_option = click.option("--overwrite", is_flag=True, help="replace existing files")
protocol_option = click.option(
    "--protocol",
    type=click.Choice(("auto", "handshake", "2026-07-28")),
    default="auto",
    show_default=True,
    help="version of the protocol for talking to the server",
)


def kernel_option(text: str, *more: str) -> Decorator:
    """Return the option that selects the checking kernel; `more` are extra kernels of a command."""
    kernels = click.Choice(("pure", "fast", *more))
    return click.option("--kernel", type=kernels, default="pure", show_default=True, help=text)


def lock_option(text: str) -> Decorator:
    """Return the option that names the file of pins."""
    path = click.Path(path_type=Path)
    return click.option("--lock", type=path, default="tcc.lock", show_default=True, help=text)


def asking_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a run or an execution for quotes, adapters, accounts and atoms."""
    return _all(
        command,
        input_option("--quotes", "book of quotes: the costs of calls whose cost is a range"),
        input_option("--adapters", "registry of the adapters that models run with"),
        input_option(
            "--account", "account to charge, shared with other runs (`tcc account create`)"
        ),
        input_option("--atoms", "list of atoms: the mechanisms that privatised the input"),
    )


def given_option(text: str) -> Decorator:
    """Return the option that gives attributes to a session, `--given NAME=VALUE`."""
    return click.option("--given", "told", metavar="NAME=VALUE", multiple=True, help=text)


def audit_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that validate a ledger: the facts that the auditor knows."""
    return _all(
        command,
        digest_option("--seed", "seed of a run whose ledger withholds it"),
        digest_option(
            "--opening-salt", "salt of the seed's commitment, if it is not derived from the seed"
        ),
        digest_option(
            "--opening", "opening that was handed out before beacon and nonce were known"
        ),
        bytes_option("--beacon", "public randomness of the run"),
        bytes_option("--nonce", "the client's randomness of the run"),
        input_option("--counts", "exact artifact of the same core, to compute kappa"),
        digest_option("--key", "key of a session's digests"),
    )


def trust_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of commands that run an artifact: how much of it to check first."""
    return _all(
        command,
        click.option(
            "--no-verify",
            is_flag=True,
            help="open the artifact without checking it; then nothing is claimed",
        ),
        digest_option(
            "--checked",
            "digest of an artifact whose certificates were checked before: check only that "
            "the artifact has this digest",
        ),
    )


def _all(command: Callable[..., Any], *options: Decorator) -> Callable[..., Any]:
    """Add these options to a command; its help lists them in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def format_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--output-format`, for commands that report findings."""
    return click.option(
        "--output-format",
        type=click.Choice(FORMATS),
        default="text",
        show_default=True,
        help="text for people, json (the same as --json) for programs, sarif for code "
        "scanning, github for annotations in GitHub Actions",
    )(command)


def chosen(output_format: str, as_json: bool) -> str:
    """Return the format that `--output-format` and `--json` select; store both in the context.

    Errors that end the command read the format from the context.

    Raises:
        click.UsageError: `--json` is given with sarif or github.
    """
    if as_json and output_format not in ("text", "json"):
        raise click.UsageError(f"--json and --output-format {output_format} exclude each other")
    if as_json and output_format == "text":
        output_format = "json"
    params = click.get_current_context().params
    params["as_json"], params["output_format"] = output_format == "json", output_format
    return output_format


class WithServer(click.Command):
    """A command whose arguments end at ``--``; the words after it become ``server``, a tuple."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remove ``--`` and the words after it before click parses the options."""
        at = args.index("--") if "--" in args else len(args)
        ctx.params["server"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the pieces of the usage line, with the server's command at the end."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ..]"]


def upstream_headers(
    _ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    """Click callback that reads headers for servers behind a URL, each `NAME=env:VAR`.

    Values come from environment variables, because command lines are visible to other users.

    Raises:
        click.BadParameter: a text is malformed, a variable is not set, or a name is repeated.
    """
    from tcc_runtime.mcp.links.http_client import check_header

    found: dict[str, str] = {}
    for value in values:
        name, equals, source = value.partition("=")
        if not equals or not source.startswith("env:"):
            raise click.BadParameter(f"{value!r} is no NAME=env:VAR", param=parameter)
        told = os.environ.get(source[4:])
        if told is None:
            raise click.BadParameter(f"{name}: there is no variable {source[4:]}", param=parameter)
        try:
            check_header(name, told)
        except ValueError as error:
            raise click.BadParameter(f"{name}: {error}", param=parameter) from None
        if name.lower() in map(str.lower, found):
            raise click.BadParameter(f"{name} is given twice", param=parameter)
        found[name] = told
    return found


upstream_header_option = click.option(
    "--upstream-header",
    "upstream_headers",
    metavar="NAME=env:VAR",
    multiple=True,
    callback=upstream_headers,
    help="header for servers behind a URL, with its value from an environment variable; repeatable",
)


def delta_of(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """Click callback for :func:`plain_delta`."""
    return plain_delta(value)


def plain_delta(value: str) -> str:
    """Return a delta as a plain decimal, such as `0.00001` for `1e-5`.

    Raises:
        click.BadParameter: the text is no decimal, is not above 0 and below 1, or has more than 40
            decimal places.
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


# Configuration of a project, ``tcc.toml`` (docs/lint.md): the file that ``--config`` names, or the
# nearest one above a grammar.  The command line overrides it.

CONFIG_NAME: Final = "tcc.toml"
LONG_SEARCH: Final = 100_000  # expansions; a longer predicted search is reported
Level: TypeAlias = 'Literal["error", "warning", "off"]'


class ConfigError(Exception):
    """A ``tcc.toml`` that is refused.

    Attributes:
        diagnostics: the mistakes, at least one.
        source: the text of the file.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], source: Source) -> None:
        self.diagnostics = tuple(diagnostics)
        self.source = source
        super().__init__(f"{source.name}: {self.diagnostics[0].message}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The values of a ``tcc.toml``.

    Attributes:
        path: the file; None for the defaults.
        allow: codes of lints that are not reported.
        levels: the level of a lint, by code.
        per_file: codes that are not reported in some files, by path pattern.  Patterns are relative
            to the folder of ``tcc.toml``.
        long_search: expansions above which a predicted search is reported as long.
        compile, run: defaults of options, by field name.
    """

    path: Path | None = None
    allow: frozenset[str] = frozenset()
    levels: Mapping[str, Level] = field(default_factory=dict)
    per_file: Mapping[str, frozenset[str]] = field(default_factory=dict)
    long_search: int = LONG_SEARCH
    compile: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    def level(self, code: str, file: str) -> Level | None:
        """Return the level of a lint in a file: ``off`` if it is allowed there, None if not set."""
        if code in self.allow or self._allowed_in(code, file):
            return "off"
        return self.levels.get(code)

    def _allowed_in(self, code: str, file: str) -> bool:
        if self.path is None:
            return False
        folder = os.path.realpath(self.path.parent)
        path = os.path.relpath(os.path.realpath(file), folder).replace(os.sep, "/")
        return any(
            code in codes and fnmatch.fnmatchcase(path, pattern)
            for pattern, codes in self.per_file.items()
        )


def find_config(file: Path) -> Path | None:
    """Return the ``tcc.toml`` in the folder of a file or in the nearest folder above, or None."""
    folder = Path(os.path.realpath(file.parent))
    for above in (folder, *folder.parents):
        path = above / CONFIG_NAME
        if os.path.lexists(path):  # an unreadable file is an error
            return path
    return None


def config_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of every command that reads a ``tcc.toml``."""
    chosen = click.option(
        "--config",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="tcc.toml to read; by default the nearest one in the grammar's folder or above",
    )
    none = click.option("--no-config", is_flag=True, help="read no tcc.toml")
    return chosen(none(command))


def fill(given: dict[str, Any], defaults: Mapping[str, Any]) -> None:
    """Replace the values in `given` that the command line left at their defaults."""
    ctx = click.get_current_context()
    for name, value in defaults.items():
        if ctx.get_parameter_source(name) in (None, ParameterSource.DEFAULT) and name in given:
            given[name] = value

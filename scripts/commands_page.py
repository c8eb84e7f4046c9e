"""Writes docs/commands.md from the commands: arguments, options, defaults and help.

    python scripts/commands_page.py docs/commands.md

It reads click's objects instead of the text of `--help`, whose layout differs between versions.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click

from tcc.main import COMMANDS, GROUPS, cli
from tcc.options import COMPILING, sections_of

HEAD = """# The command line

`python scripts/commands_page.py docs/commands.md` makes this page from the commands; do not edit
it. `tcc COMMAND --help` (or `-h`) prints the same text.

Exit codes of every command: 0 clean; 1 findings; 2 declined, incomplete, a limit or bad usage; 3 a
bug in tcc. `tcc --version` prints the version. Output is coloured only on a terminal, and not if
`NO_COLOR` is set.

Debian's package `tcc` is another program, the Tiny C Compiler. `tcc --version` tells them apart:
this one prints `tcc, version` and a number, the C compiler prints no comma. `python -m tcc` is
always this one.
"""


_COMPILING = "compile"
_COMPILE_OPTIONS = {option.name for option in COMPILING}
_ALIKE = "options of the compiler, as for [`tcc compile`](#tcc-compile)"


def page() -> str:
    """Return the whole page, ending in one newline."""
    top = click.Context(cli, info_name="tcc")
    parts = [HEAD]
    for title, group in GROUPS.items():
        rows = [f"| [`tcc {name}`](#tcc-{name}) | {about} |" for name, about in group.items()]
        parts.append("\n".join([f"| {title} | |", "| --- | --- |", *rows]))
    for name in COMMANDS:
        command = cli.get_command(top, name)
        if command is None:
            raise LookupError(name)
        parts += _sections(command, click.Context(command, top, info_name=name), "##")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _sections(command: click.Command, at: click.Context, level: str) -> Iterator[str]:
    """Yield the parts of a command's section, then the sections of its subcommands."""
    yield f"{level} {at.command_path}"
    yield "    " + " ".join([at.command_path, *command.collect_usage_pieces(at)])
    yield _prose(command.help or "")
    for title, options in sections_of(command, at).items():
        rows = [_row(option) for option in options if _is_shown(option)]
        if at.info_name != _COMPILING and _compiles(options):
            # One row for these options, which every command that takes a grammar would repeat.
            alike = [option for option in options if option.name in _COMPILE_OPTIONS]
            rows = [row for row in rows if row not in map(_row, alike)]
            rows.append(f"| {', '.join(f'`{one.opts[0]}`' for one in alike)} | {_ALIKE} |")
        if rows:
            head = "option" if title == "Options" else title
            yield "\n".join([f"| {head} | |", "| --- | --- |", *rows])
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            inner = click.Context(below, at, info_name=name)
            yield from _sections(below, inner, level + "#")


def _compiles(options: Iterable[click.Parameter]) -> bool:
    # `tcc run` has another `--count-bits`.
    return {option.name for option in options} >= _COMPILE_OPTIONS - {"count_bits"}


def _is_shown(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and not option.hidden and "--help" not in option.opts


def _prose(text: str) -> str:
    """Return a docstring as Markdown paragraphs; a paragraph after \\b becomes a code block."""
    parts = re.split(r"\n\s*\n", inspect.cleandoc(text).partition("\f")[0])
    return "\n\n".join(_paragraph(part) for part in parts if part.strip())


def _paragraph(text: str) -> str:
    if text.startswith("\b"):
        return "\n".join(f"    {line}" for line in text.splitlines()[1:])
    return _marked(" ".join(text.split()))


def _row(option: click.Parameter) -> str:
    """Return the table row of an option: its names, its value and its help."""
    names = [*option.opts, *option.secondary_opts]
    taken = _taken(option)
    shown = ", ".join(f"`{name}{taken}`" for name in names)
    about = _marked(" ".join((getattr(option, "help", "") or "").split()))
    return f"| {shown} | {'; '.join(part for part in (about, *_more(option)) if part)} |"


def _taken(option: click.Parameter) -> str:
    """Return the placeholder for an option's value, such as ` N`; empty for a flag."""
    if getattr(option, "is_flag", False) or getattr(option, "count", False):
        return ""
    if isinstance(option.type, click.Choice):
        return " " + "\\|".join(map(str, option.type.choices))
    if option.metavar or not isinstance(option.type, click.IntRange | click.FloatRange):
        name = option.metavar or option.type.name.upper()
        return " " + name.replace("|", "\\|")
    return " N" if isinstance(option.type, click.IntRange) else " NUMBER"


def _more(option: click.Parameter) -> Iterator[str]:
    """Yield the range and the default of an option, and whether it is required or repeatable."""
    if isinstance(option.type, click.IntRange | click.FloatRange):
        if option.type.min is not None:
            yield f"at least {option.type.min}"
        if option.type.max is not None:
            yield f"at most {option.type.max}"
    value = option.default
    if isinstance(value, bool) and option.secondary_opts:
        yield f"default `{(option.opts if value else option.secondary_opts)[0]}`"
    elif getattr(option, "show_default", False) and isinstance(value, str | int | float):
        yield f"default {value}"
    if option.required:
        yield "needed"
    if option.multiple and "repeatable" not in (getattr(option, "help", "") or ""):
        yield "may be given more than once"


def _marked(text: str) -> str:
    """Return help text as Markdown for a table cell, with options in backquotes."""
    parts = text.replace("``", "`").split("`")  # parts at odd indices are in backquotes already
    parts[::2] = [
        re.sub(r"(?<![\w^-])(?<!\^\()(--?[a-z][a-z-]*)(?!\w)", r"`\1`", part) for part in parts[::2]
    ]
    text = "`".join(parts)
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")

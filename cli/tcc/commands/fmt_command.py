"""``tcc fmt``: grammars in their canonical layout."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from tcc import screen
from tcc.exits import CLEAN, FINDINGS
from tcc.findings import print_diagnostics
from tcc.given import STDIN, GivenPath
from tcc.layouts import Layout, files_of, laid_out, written
from tcc.opening import json_option


@click.command("fmt")
@click.argument("grammars", nargs=-1, required=True, type=GivenPath(path_type=Path))
@click.option("--check", "checking", is_flag=True, help="write nothing; exit 1 if it would")
@click.option("--diff", "differing", is_flag=True, help="the same, and show what would change")
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    grammars: tuple[Path, ...],
    checking: bool,
    differing: bool,
    as_json: bool,
) -> None:
    """Lay out GRAMMARS: files, folders with .tcg files, or - for standard input.

    Files are written in place, standard input comes out on standard output. Tokens and comments
    stay as they are, so a grammar means what it meant. A file with an error of syntax is left as
    it is: exit 1.
    """
    quiet = as_json or differing or STDIN in grammars
    layouts = []
    for path in files_of(grammars):
        layout = laid_out(path)
        if not (checking or differing or path is STDIN):
            layout = written(layout)
        layouts.append(layout)
        if not as_json:
            _tell(layout, checking=checking, differing=differing)
    if as_json:
        screen.print_json("fmt", _fields(layouts, differing))
    elif not quiet:
        _summary(layouts, checking)
    found = FINDINGS if checking or differing else CLEAN
    ctx.exit(max((_ending(layout, found) for layout in layouts), default=CLEAN))


def _ending(layout: Layout, found: int) -> int:
    return layout.failed or (found if layout.changed else CLEAN)


def _tell(layout: Layout, *, checking: bool, differing: bool) -> None:
    """What there is to say of one file, for people."""
    source = layout.made.source
    if layout.made.diagnostics:
        found = layout.made.diagnostics
        print_diagnostics("fmt", found, {source.name: source}, "text")
    elif layout.refused is not None:
        screen.say(f"Error: {layout.refused}", err=True)
    elif differing:
        screen.say_text(layout.difference())
    elif checking:
        if layout.changed:
            screen.say(f"would reformat {layout.path}")
    elif layout.path is STDIN:
        screen.say_text(layout.made.text or "")
    elif layout.changed:
        screen.say(f"reformatted {layout.path}")


def _summary(layouts: Iterable[Layout], checking: bool) -> None:
    fine = [layout for layout in layouts if not layout.failed]
    changed = sum(layout.changed for layout in fine)
    verb = "would change" if checking else "changed"
    screen.say(f"{changed} {verb}, {len(fine) - changed} as they should be", err=True)


def _fields(layouts: Iterable[Layout], differing: bool) -> dict[str, object]:
    files = []
    for layout in layouts:
        fields = layout.fields()
        if differing:
            fields["diff"] = layout.difference()
        if layout.path is STDIN:
            fields["text"] = layout.made.text
        files.append(fields)
    return {"changed": sum(bool(fields["changed"]) for fields in files), "files": files}

"""``tcc mine``: a first grammar out of recorded sessions."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import click

from tcc import screen
from tcc.commands.import_command import identifier, tools_in, write_text
from tcc.commands.replay_command import form_option, sessions_argument
from tcc.files import same_file
from tcc.options import INPUT, OUTPUT, is_regular_file, json_option, overwrite_option
from tcc.screen import CLEAN, FINDINGS
from tcc.traces import read_traces
from tcc.traces.mining import CompileError, Mined, mine


@click.command("mine")
@sessions_argument
@click.option("-o", "--output", type=OUTPUT, required=True, help="the grammar")
@click.option(
    "--schemas",
    type=INPUT,
    callback=is_regular_file,
    help="the tools, as `tcc import mcp` reads them; without it, from the recorded arguments",
)
@click.option("--name", help="the grammar's name; by default the first file's")
@form_option
@overwrite_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    files: tuple[Path, ...],
    output: Path,
    schemas: Path | None,
    name: str | None,
    form: str,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a first grammar of the sessions recorded in FILE, which admits them.

    Tools and types are those of the schemas, statements are relations that tie two calls by a value
    and held in every session. Narrow it, and tell with `tcc replay` what that refuses. Ends with 1
    where it does not admit every session, such as one with arguments that no schema has.
    """
    tools = None if schemas is None else tools_in(schemas)
    if same_file(output, [*files, *([] if schemas is None else [schemas])]):
        raise click.ClickException(f"{output} is what is read")
    traces = chain.from_iterable(read_traces(path, form) for path in files)
    try:
        found = mine(traces, identifier(name or files[0].stem), tools)
    except CompileError as error:
        raise click.ClickException(f"no grammar of these tools compiles: {error}") from None
    write_text(output, found.text, overwrite, None)
    if as_json:
        _print_output(found)
    else:
        _print(found, output)
    ctx.exit(CLEAN if found.admitted == found.sessions else FINDINGS)


def _print(found: Mined, output: Path) -> None:
    for item in found.warnings:
        screen.warn(f"{item.code} warning: {item.place}: {item.message}")
    for relation in found.relations:
        kind = "statement" if relation.is_written else "comment"
        screen.say(f"{relation.text}", f"{kind}, {relation.calls} calls")
    told = f"{found.admitted} of {found.sessions} sessions are admitted"
    if found.held_out is not None:
        told += f"; of those left out in turn {found.held_out}"
    if found.admitted == found.sessions:
        screen.good(f"{output}: {told}; now narrow it")
    else:
        screen.bad(f"{output}: {told}: see tcc replay")


def _print_output(found: Mined) -> None:
    from tcc.outputs.questions import MinedRelationJson, MineOutput

    relations = [
        MinedRelationJson(text=one.text, calls=one.calls, written=one.is_written)
        for one in found.relations
    ]
    screen.print_output(
        MineOutput(
            sessions=found.sessions,
            calls=found.calls,
            admitted=found.admitted,
            held_out=found.held_out,
            relations=relations,
            grammar=found.text,
        )
    )

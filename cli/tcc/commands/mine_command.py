"""``tcc mine``: writes a first grammar from recorded sessions."""

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
@click.option("-o", "--output", type=OUTPUT, required=True, help="file of the grammar")
@click.option(
    "--schemas",
    type=INPUT,
    callback=is_regular_file,
    help="schemas of the tools, as `tcc import mcp` reads them; by default derived from the "
    "recorded arguments",
)
@click.option("--name", help="name of the grammar; by default that of the first file")
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
    """Write a first grammar that admits the sessions recorded in FILE.

    Tools and types are those of the schemas. Statements are relations that held in every session
    and tie two calls by a value. Narrow the grammar, and let `tcc replay` report what it then
    refuses. Exit code 1: the grammar does not admit every session, such as one with arguments that
    no schema has.
    """
    tools = None if schemas is None else tools_in(schemas)
    if same_file(output, [*files, *([] if schemas is None else [schemas])]):
        raise click.ClickException(f"{output} is what is read")
    traces = chain.from_iterable(read_traces(path, form) for path in files)
    try:
        found = mine(traces, identifier(name or files[0].stem), tools)
    except CompileError as error:
        raise click.ClickException(f"no grammar of these tools compiles:\n{error}") from None
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

"""``tcc schema``: prints the schemas of the commands' JSON documents."""

from __future__ import annotations

import difflib

import click

from tcc import screen
from tcc.options import json_option
from tcc.outputs.schemas import DOCUMENTS, schema_of


@click.command("schema")
@click.argument("name", required=False, metavar="[COMMAND]")
@json_option
@click.pass_context
def command(ctx: click.Context, /, name: str | None, as_json: bool) -> None:
    """Print the JSON Schema (draft 2020-12) of what COMMAND prints with --json.

    Without COMMAND, list the names of all documents; `error` is the document of a command that
    fails. With --json, print one document with all schemas, or with the named one.
    """
    if name is not None and name not in DOCUMENTS:
        near = difflib.get_close_matches(name, DOCUMENTS, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else f" There are: {', '.join(DOCUMENTS)}."
        raise click.BadParameter(f"{name!r} prints no document.{hint}", ctx, param_hint="COMMAND")
    wanted = list(DOCUMENTS) if name is None else [name]
    if as_json:
        from tcc.outputs.verdicts import SchemaOutput

        screen.print_output(SchemaOutput(schemas={one: schema_of(one) for one in wanted}))
    elif name is None:
        for one in wanted:
            screen.say(one)
    else:
        screen.print_document(schema_of(name))

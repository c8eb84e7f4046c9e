"""``tcc explain``: what a diagnostic code means, with an example and its mend."""

from __future__ import annotations

import difflib

import click

from tcc.exits import BAD_USAGE
from tcc_compiler.catalogue import CATALOGUE, explain


@click.command("explain")
@click.argument("code")
@click.pass_context
def command(ctx: click.Context, code: str) -> None:
    """Explain the diagnostic CODE, such as TCC201."""
    text = explain(code.upper())
    if text is None:
        near = difflib.get_close_matches(code.upper(), CATALOGUE, n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else ""
        click.echo(f"There is no diagnostic {code}.{hint}", err=True)
        ctx.exit(BAD_USAGE)
    click.echo(text)

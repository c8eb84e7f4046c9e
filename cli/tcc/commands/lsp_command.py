"""``tcc lsp``: the language server that editors start (docs/editors.md)."""

from __future__ import annotations

import click


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="use standard input and output, which is the only way")
@click.pass_context
def command(ctx: click.Context, /, stdio: bool) -> None:
    """Serve editors: errors, lints, names and layout of grammars (docs/editors.md).

    Editors start this command, and speak the Language Server Protocol with it over standard input
    and output.
    """
    try:
        from tcc.editor.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException(
            "`tcc lsp` needs pygls; install the extra: pip install 'tcc[lsp]'"
        ) from None
    serve()
    ctx.exit(0)

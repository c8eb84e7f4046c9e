"""``tcc lsp``: the language server that editors start (docs/editors.md)."""

from __future__ import annotations

import click


@click.command("lsp")
@click.option("--stdio", is_flag=True, help="speak over standard input and output, as always")
@click.pass_context
def command(ctx: click.Context, /, stdio: bool) -> None:
    """Answer an editor about grammars: errors, lints, names, layout (docs/editors.md).

    Editors start it, and speak the Language Server Protocol over standard input and output.
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

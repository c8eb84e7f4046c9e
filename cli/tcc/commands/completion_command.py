"""``tcc completion``: prints a shell's completion script (docs/editors.md)."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from tcc import screen

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, /, shell: str) -> None:
    """Print the completion of commands and options for SHELL.

    bash: source <(tcc completion bash). zsh: the same. fish: tcc completion fish | source.
    """
    made = get_completion_class(shell)
    root = ctx.find_root().command
    if made is None:
        raise click.ClickException(f"there is no completion for {shell}")
    screen.say_text(made(root, {}, "tcc", "_TCC_COMPLETE").source())
    ctx.exit(0)

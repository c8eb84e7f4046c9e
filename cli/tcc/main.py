"""The entry of `tcc`: finds the command, runs it, and turns every ending into an exit code.

0 clean, 1 findings, 2 declined, incomplete, limit reached or bad usage, 3 internal error.
Commands are imported when they are named, so that ``tcc --version`` stays quick.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence

import click

from tcc.exits import BAD_USAGE, INTERNAL

COMMANDS = {
    "compile": "compile a grammar to a certified artifact",
    "check": "verify the certificates of an artifact",
    "inspect": "show what is in an artifact",
    "run": "search an artifact for its best plans, with a certificate",
    "validate": "verify a ledger against its artifact",
    "test": "check a grammar's examples and expectations",
    "count": "count the plans of an artifact",
    "enumerate": "list plans in call order",
    "explain": "explain a diagnostic code",
}


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands, in the order of the work."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"tcc.commands.{cmd_name}_command")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``tcc --help``, made without importing a single command."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a suggestion for a name that is nearly right."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tcc", prog_name="tcc")
def cli() -> None:
    """Compile tool grammars into certified plan automata, run them, and audit every run."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `tcc` with `arguments` (the process's own where None), and exit."""
    try:
        code = cli.main(arguments, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        code = BAD_USAGE
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        code = BAD_USAGE
    except BrokenPipeError:
        # The reader of our output went away (`tcc enumerate A | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except Exception as error:  # noqa: BLE001 - the boundary of the process: nothing may get past it
        code = _internal(error)
    sys.exit(code if isinstance(code, int) else 0)


def _internal(error: Exception) -> int:
    click.echo(
        f"internal error: {type(error).__name__}: {error}\n"
        "This is a bug in tcc, not in your input. Run again with TCC_TRACEBACK=1 and report it.",
        err=True,
    )
    if os.environ.get("TCC_TRACEBACK"):
        traceback.print_exception(error)
    return INTERNAL

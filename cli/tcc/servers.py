"""Commands that take the command of a server behind ``--``, as it stands, options and all."""

from __future__ import annotations

import click


class WithServer(click.Command):
    """A command whose arguments end at ``--``; what follows is handed over as ``server``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take the server's command off, before options are looked for."""
        at = args.index("--") if "--" in args else len(args)
        ctx.params["server"] = tuple(args[at + 1 :])
        return super().parse_args(ctx, args[:at])

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line, with the server's command at its end."""
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ..]"]


def required(server: tuple[str, ...]) -> tuple[str, ...]:
    """The server's command.

    Raises:
        click.UsageError: there is none.
    """
    if not server:
        raise click.UsageError("the command of a server is needed, behind --")
    return server

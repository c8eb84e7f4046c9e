"""The entry of `tcc`: finds the command, runs it, and turns every ending into an exit code.

0 clean, 1 findings, 2 declined, incomplete, limit reached or bad usage, 3 internal error.
Commands are imported when they are named, so that ``tcc --version`` stays quick.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from tcc import screen
from tcc.exits import BAD_USAGE, CLEAN, DECLINED, INTERNAL

COMMANDS = {
    "import": "make a grammar from the tools of an MCP server",
    "compile": "compile a grammar to a certified artifact",
    "check": "verify the certificates of an artifact",
    "pin": "write down which artifacts are the ones to be used",
    "inspect": "show what is in an artifact",
    "run": "search an artifact for its best plans, with a certificate",
    "exec": "do the best plan, call by call, through a gate",
    "gate": "hold an MCP server to a grammar",
    "serve": "answer an agent that plans, as an MCP server",
    "batch": "make many runs over one artifact, on all processors",
    "validate": "verify a ledger against its artifact",
    "sign": "sign what was found of an artifact or a ledger",
    "verify": "verify a signed statement",
    "session": "tell what an agent did, from the ledger of its session",
    "account": "make an account that several runs draw on, and show what is in it",
    "adapters": "identify adapters, and check the registry of those that models run with",
    "report": "write a page about an artifact, a run or a session",
    "test": "check a grammar's examples and expectations",
    "fmt": "lay out grammars, comments and all",
    "init": "begin a grammar, and a workflow that checks it",
    "lint": "say what a grammar holds that does nothing",
    "count": "count the plans of an artifact",
    "enumerate": "list plans in call order",
    "why": "say why a sequence of calls is no plan, and what could come instead",
    "diff": "say which plans a new grammar has that an old one has not",
    "cheapest": "list the plans of least cost, cheapest first",
    "sample": "draw plans at random, uniformly or by what they cost",
    "graph": "draw the states of an artifact, or write them as a graph",
    "unroll": "write out the beginnings of all plans down to a depth",
    "epsilon": "compose privacy mechanisms to an epsilon at a delta",
    "explain": "explain a diagnostic code",
    "lsp": "answer an editor, as a language server",
    "completion": "print what a shell needs to complete commands and options",
    "schema": "print the schema of a command's JSON",
    "demo": "show the whole of it at work, on real questions",
    "experiments": "measure the paper's tables and figures",
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
        from tcc.loading import load  # here, since `tcc --help` asks for no command

        command: click.Command = load(f"tcc.commands.{cmd_name}_command").command
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


def _tell_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        # By name, since the package imports the commands' layer for its own names' types.
        version = importlib.import_module("tcc").__version__
        screen.say(f"tcc, version {version}")
        ctx.exit()


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_tell_version,
    help="Show the version and exit.",
)
def cli() -> None:
    """Compile tool grammars into certified plan automata, run them, and audit every run."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `tcc` with `arguments` (the process's own where None), and exit."""
    _open_outputs()
    try:
        # https://no-color.org: any value but the empty one asks for plain text.
        color = False if os.environ.get("NO_COLOR") else None
        code = cli.main(arguments, prog_name="tcc", standalone_mode=False, color=color)
    except click.ClickException as error:
        _say(error)
        _document(error.format_message(), arguments)
        code = BAD_USAGE
    except (click.Abort, KeyboardInterrupt):
        screen.say("interrupted", err=True)
        _document("interrupted", arguments)
        code = BAD_USAGE
    except SystemExit as error:
        code = CLEAN if _is_of_click(error) else _internal(error)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        screen.say(f"Error: {where}{error.strerror or error}", err=True)
        _document(f"{where}{error.strerror or error}", arguments)
        code = BAD_USAGE
    except MemoryError:
        screen.say("Error: not enough memory", err=True)
        _document("not enough memory", arguments)
        code = DECLINED
    except BaseException as error:  # noqa: BLE001 - the boundary of the process
        code = _internal(error)
        _document(f"internal error: {type(error).__name__}: {error}", arguments)
    sys.exit(code if isinstance(code, int) else CLEAN)


def _open_outputs() -> None:
    """An output that is closed takes what is written to it nowhere; the exit code still tells."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end


def _document(text: str, arguments: Sequence[str] | None) -> None:
    """What went wrong, for programs that asked for JSON."""
    asked = sys.argv[1:] if arguments is None else arguments
    for before, given in zip(["", *asked], asked, strict=False):
        if given == "--":
            return
        formatted = before in ("--output-format", "--format") and given == "json"
        if formatted or given in ("--json", "--output-format=json", "--format=json"):
            screen.print_json("error", {"error": text})
            return


def _say(error: click.ClickException) -> None:
    """What went wrong, for people."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        ctx = error.ctx
        screen.say_lines(ctx.get_usage(), err=True)
        if ctx.command.get_help_option(ctx) is not None:
            screen.say(f"Try '{ctx.command_path} {ctx.help_option_names[0]}' for help.", err=True)
        screen.say("", err=True)
    screen.say(f"Error: {error.format_message()}", err=True)


def _is_of_click(error: SystemExit) -> bool:
    """Whether click itself has ended the process.

    It does so when the reader of our output went away (`tcc enumerate A | head`), which is no
    finding, and when it has completed a word for a shell.
    """
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at is not None and at.tb_frame.f_globals.get("__name__") == click.core.__name__


def _internal(error: BaseException) -> int:
    screen.say(f"internal error: {type(error).__name__}: {error}", err=True)
    screen.say(
        "This is a bug in tcc, not in your input. Run again with TCC_TRACEBACK=1 and report it.",
        err=True,
    )
    if os.environ.get("TCC_TRACEBACK"):
        from tcc_certs.plain import trace_lines

        for line in trace_lines(error):
            screen.say(line, err=True)
    return INTERNAL

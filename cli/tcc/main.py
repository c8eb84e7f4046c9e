"""Entry point of `tcc`: finds the command, runs it, and maps every exception to an exit code.

Exit codes: 0 clean, 1 findings, 2 declined, incomplete, limit reached or bad usage, 3 internal
error.  :data:`ENDINGS` is the one table from exceptions to exit codes and messages.  A command's
module is imported when the command is named, so that ``tcc --version`` stays fast; for the same
reason the table names classes by their dotted names.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NamedTuple

import click

from tcc import screen
from tcc.screen import BAD_USAGE, CLEAN, DECLINED, FINDINGS, INTERNAL

GROUPS: Final[Mapping[str, Mapping[str, str]]] = {
    "Write grammars": {
        "init": "start a grammar, and a workflow that checks it",
        "import": "make a grammar from the tools of an MCP server",
        "test": "check a grammar's examples and expectations",
        "fmt": "format grammars, comments included",
        "lint": "report what a grammar says to no effect, or probably means otherwise",
        "explain": "explain a diagnostic code",
        "lsp": "serve an editor, as a language server",
        "completion": "print the shell completion of commands and options",
    },
    "Build artifacts": {
        "compile": "compile a grammar to a certified artifact",
        "check": "verify the certificates of an artifact",
        "pin": "record which artifacts, made from which sources, are in use",
        "inspect": "show the contents of an artifact",
        "graph": "draw the states of an artifact, or export them as a graph",
        "unroll": "write out the prefixes of all plans down to a depth",
    },
    "Ask about plans": {
        "count": "count the plans of an artifact",
        "enumerate": "list plans in call order",
        "cheapest": "list the plans of least cost, cheapest first",
        "sample": "draw plans at random, uniformly or by cost",
        "why": "explain why a sequence of calls is no plan, and what could come instead",
        "prove": "prove that every session satisfies a statement",
        "diff": "compare the plans of a new grammar with those of an old one",
    },
    "Guard calls": {
        "gate": "hold an MCP server to a grammar",
        "exec": "execute the best plan, call by call, through a gate",
        "mine": "write a first grammar from recorded sessions",
        "replay": "report what a grammar would have refused in recorded sessions",
        "serve": "serve an artifact to agents that plan, as an MCP server",
    },
    "Search for plans": {
        "run": "search an artifact for its best plans, with a certificate",
        "batch": "run many requests over one artifact, on all processors",
        "account": "create and show an account that several runs draw on",
        "adapters": "identify adapters, and check the registry that models use",
        "epsilon": "compose privacy mechanisms to an epsilon at a delta",
    },
    "Audit": {
        "validate": "verify a ledger against its artifact",
        "session": "list, show, resolve and end sessions",
        "report": "write a page about an artifact, a run or a session",
        "sign": "sign the verdict on an artifact or a ledger",
        "verify": "verify a signed statement",
        "schema": "print the schema of a command's JSON",
    },
    "Research": {
        "demo": "run the whole pipeline on real questions",
        "experiments": "measure the paper's tables and figures",
    },
}
COMMANDS: Final = {name: about for group in GROUPS.values() for name, about in group.items()}

_THREADS: Final = "OPENBLAS_NUM_THREADS"


def _os_text(error: OSError) -> str:
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}"


class ExitRule(NamedTuple):
    """How an exception ends the process.

    Attributes:
        code: the exit code, or a function that computes it from the exception.
        text: computes the message for people and for the JSON document.
        prefix: printed before the message on stderr.
    """

    code: int | Callable[[Any], int]
    text: Callable[[Any], str] = str
    prefix: str = "Error: "

    def code_of(self, error: BaseException) -> int:
        """Return the exit code for this error."""
        return self.code if isinstance(self.code, int) else self.code(error)


_REFUSED: Final = ExitRule(BAD_USAGE)
_INTERRUPTED: Final = ExitRule(BAD_USAGE, lambda _: "interrupted", "")
# Keys are dotted class names.  The first listed class of an error's MRO decides how the error ends
# the process.  An error without a listed class is an internal error with exit code 3.
ENDINGS: Final[Mapping[str, ExitRule]] = {
    "builtins.KeyboardInterrupt": _INTERRUPTED,
    "builtins.MemoryError": ExitRule(DECLINED, lambda _: "not enough memory"),
    "builtins.OSError": ExitRule(BAD_USAGE, _os_text),
    "click.exceptions.Abort": _INTERRUPTED,
    "click.exceptions.ClickException": ExitRule(BAD_USAGE, lambda error: error.format_message()),
    "tcc.batches.BatchError": _REFUSED,
    "tcc.commands.import_command.NotListed": ExitRule(BAD_USAGE, prefix=""),
    "tcc.pages.record_table.Changed": _REFUSED,
    "tcc.traces.TraceError": _REFUSED,
    "tcc.signing.SigningError": ExitRule(FINDINGS, prefix=""),
    "tcc.signing.MissingExtra": _REFUSED,
    "tcc.commands.sign_command.NotValid": ExitRule(lambda error: error.verdict, prefix=""),
    "tcc_experiments.pipeline.errors.MissingPackage": _REFUSED,
    "tcc_experiments.pipeline.errors.PipelineError": _REFUSED,
    "tcc_runtime.adapters.registry.ReaderMissing": ExitRule(
        BAD_USAGE,
        lambda _: (
            "adapters are read with safetensors, which is not installed: "
            "install the extra: pip install 'tcc[adapters]'"
        ),
    ),
    "tcc_runtime.errors.AnswerError": _REFUSED,
    "tcc_runtime.errors.BindingError": _REFUSED,
    "tcc_runtime.errors.LedgerError": ExitRule(
        BAD_USAGE, lambda error: f"{error.path}: {error.cause.strerror}"
    ),
    "tcc_runtime.errors.ResumeError": _REFUSED,
    "tcc_runtime.errors.ServerError": _REFUSED,
    "tcc_runtime.errors.SettingsError": _REFUSED,
    "tcc_runtime.errors.WorkerLost": _REFUSED,
    "tcc_runtime.gate.refusals.Refused": _REFUSED,
}


def ending_of(error: BaseException) -> ExitRule | None:
    """Return the rule for an error, or None for an internal error.

    A missing requirement has its own rule.  Otherwise the nearest class that the table lists
    decides.
    """
    if isinstance(error, ModuleNotFoundError):
        from tcc.requirements import mend

        said = mend(error)
        return None if said is None else ExitRule(BAD_USAGE, lambda _: said)
    names = (f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__)
    return next((ENDINGS[name] for name in names if name in ENDINGS), None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run `tcc` with `arguments`, or with the arguments of the process if None, and exit."""
    _open_outputs()
    try:
        # https://no-color.org: any value but the empty one asks for plain text.
        color = False if os.environ.get("NO_COLOR") else None
        code = cli.main(arguments, prog_name="tcc", standalone_mode=False, color=color)
    except BaseException as error:  # noqa: BLE001 - the boundary of the process
        ending = ending_of(error)
        if ending is not None:
            code = told(error, ending)
            _document(ending.text(error), arguments)
        elif isinstance(error, SystemExit):
            code = CLEAN if _is_of_click(error) else _internal(error)
        else:
            code = _internal(error)
            _document(f"internal error: {type(error).__name__}: {error}", arguments)
    screen.drop_unwritten()
    sys.exit(code if isinstance(code, int) else CLEAN)


def told(error: BaseException, ending: ExitRule) -> int:
    """Print an error to stderr and return its exit code."""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        ctx = error.ctx
        screen.say_lines(ctx.get_usage(), err=True)
        if ctx.command.get_help_option(ctx) is not None:
            screen.say(f"Try '{ctx.command_path} {ctx.help_option_names[0]}' for help.", err=True)
        screen.say("", err=True)
    screen.say(f"{ending.prefix}{ending.text(error)}", err=True)
    return ending.code_of(error)


def load_module(name: str) -> ModuleType:
    """Import a module with garbage collection off, because imported objects stay anyway."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(name)
    finally:
        if collecting:
            gc.enable()


@contextmanager
def without_threads() -> Iterator[None]:
    """Keep OpenBLAS from starting a thread per processor when numpy is imported in the block.

    Only for commands that run no foreign code, which might want the threads.  Child processes that
    start after the block see the original environment.  A number that the user has set stays.
    """
    if _THREADS in os.environ:
        yield
        return
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]


class LazyGroup(click.Group):
    """A group that imports a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, group by group."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name, or None if it is unknown."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = load_module(f"tcc.commands.{cmd_name}_command").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of commands for ``tcc --help`` without importing any command."""
        width = max(map(len, COMMANDS))
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), about) for name, about in group.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, but suggest the nearest name for an unknown one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


def _tell_version(ctx: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        screen.say(f"tcc, version {screen.version()}")
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


def _open_outputs() -> None:
    """Replace closed outputs by the null device.  The exit code still reports the result."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - to the end


def _document(text: str, arguments: Sequence[str] | None) -> None:
    """Print the JSON document ``error`` if the arguments request JSON."""
    asked = sys.argv[1:] if arguments is None else arguments
    for before, given in zip(["", *asked], asked, strict=False):
        if given == "--":
            return
        formatted = before in ("--output-format", "--format") and given == "json"
        if formatted or given in ("--json", "--output-format=json", "--format=json"):
            # Not by `tcc.outputs`, which imports msgspec: msgspec may be the missing package.
            screen.print_document(screen.headed("error", {"error": text}))
            return


def _is_of_click(error: SystemExit) -> bool:
    """Return whether click itself ended the process.

    Click does so when the reader of the output has closed it (`tcc enumerate A | head`), and after
    completing a word for a shell.  Neither is an error.
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
        from tcc_certs.errors import trace_lines

        for line in trace_lines(error):
            screen.say(line, err=True)
    return INTERNAL

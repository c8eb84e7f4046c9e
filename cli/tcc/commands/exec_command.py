"""``tcc exec``: executes the best plan, call by call, through a gate.

The Python file of tools is the user's code.  An exception in it is reported and ends the command.
"""

from __future__ import annotations

import inspect
import json
import shlex
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click

from tcc import opening, options, screen
from tcc.files import same_file
from tcc.screen import CLEAN, DECLINED
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import format_decimal
from tcc_certs.replay.amounts import SpentAmounts, spent_fields
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.executor.execute import Execution, execute
from tcc_runtime.gate.gate import Gate
from tcc_runtime.settings.settings import DEFAULT_DELTA

if TYPE_CHECKING:
    from tcc.outputs.runs import ExecOutput

_EXECUTING = options.executing()


@click.command("exec", cls=options.Sectioned)
@options.artifact_argument
@options.input_option(
    "--tools", "Python file with a function of each tool's name, or a mapping TOOLS"
)
@click.option(
    "--ledger",
    type=options.OUTPUT,
    help="ledger of the session; an existing session is reopened. By default the session is only"
    " in memory",
)
@options.input_option("--arguments", "JSON object: for each tool its open arguments, by name")
@click.option(
    "--deadline",
    type=float,
    metavar="SECONDS",
    help="limit on each call, in seconds; after it the outcome is unknown",
)
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="limit on failures in a row; one more ends the execution",
)
@click.option(
    "--once",
    multiple=True,
    metavar="TOOL",
    help="tool without a second effect for the same idempotency key; repeatable",
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME=COMMAND",
    help="MCP server over stdio, under the name that the grammar binds tools to; repeatable",
)
@click.option(
    "--show",
    multiple=True,
    metavar="TOOL.FIELD",
    help="field whose values the ledger shows; repeatable",
)
@options.given_option("value that the grammar asks for when a session opens; repeatable")
@options.asking_options
@options.all_options(_EXECUTING)
@options.trust_options
@options.compile_options
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    tools: Path | None,
    ledger: Path | None,
    arguments: Path | None,
    deadline: float | None,
    retries: int,
    once: tuple[str, ...],
    servers: tuple[str, ...],
    show: tuple[str, ...],
    told: tuple[str, ...],
    quotes: Path | None,
    adapters: Path | None,
    account: Path | None,
    atoms: Path | None,
    checked: bytes | None,
    no_verify: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Search ARTIFACT (or a grammar) for its best plan, and execute it call by call.

    If models may execute, one of them makes each call of their tools, within what the caps leave. A
    session that was interrupted is reopened and goes on. Exit code 0: the plan was executed to
    its end. 2: it was not, and the last line says why.
    """
    settings = options.taken(_EXECUTING, given)
    if settings["delta"] is not None:
        settings["delta"] = options.plain_delta(settings["delta"])
    files = (tools, arguments, quotes, adapters, account, atoms)
    inputs = [path for path in files if path is not None]
    opened = opening.open_bounded(
        artifact, command="exec", options=opening.options_of(given), read=inputs,
        checked=checked, no_verify=no_verify,
    )  # fmt: skip
    if ledger is not None and same_file(ledger, inputs):
        raise click.BadParameter(f"{str(ledger)!r} is what is run", param_hint="--ledger")
    named = _servers(servers)
    functions, source, resolve = tools_in(tools, opened)
    source = source if arguments is None else _arguments(arguments)
    quoter = None if quotes is None else opening.quotes_in(quotes, opened)
    if quoter is not None and quoter.names_atoms and settings["delta"] is None:
        settings["delta"] = DEFAULT_DELTA
    counts = None if account is None else opening.account_in(account)
    handed = {
        "quoter": quoter,
        "atoms": () if atoms is None else opening.atoms_in(atoms),
        "adapters": None if adapters is None else opening.adapters_in(adapters),
        "account": counts,
    }
    try:
        values = opening.given_in(told, opened)
        with Gate(opened, ledger=ledger, show=show, given=values, account=counts) as gate:
            try:
                found = execute(
                    None,
                    functions,
                    gate=gate,
                    arguments=source,
                    deadline=deadline,
                    retries=retries,
                    resolve=resolve,
                    once=once,
                    servers=named,
                    **handed,
                    **settings,
                )
            except BaseException:
                gate.withdraw()
                raise
            head = gate.head
    except SettingsError as error:
        raise options.setting_error(error) from None
    except ResumeError as error:
        said = f"{ledger}: this ledger cannot be reopened: {error}"
        raise click.ClickException(said) from None
    except Rejected as refusal:
        about = {"K": account, "A": adapters}.get(refusal.code.value[0])
        opening.refuse(about or ledger or artifact, refusal)
    _print(found, ledger, head, as_json)
    ctx.exit(CLEAN if found.finished else DECLINED)


def _arguments(path: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"no JSON: {error}", param_hint="--arguments") from None
    if not isinstance(found, dict) or not all(isinstance(item, dict) for item in found.values()):
        raise click.BadParameter("an object of objects is needed", param_hint="--arguments")
    return found


def _servers(given: tuple[str, ...]) -> dict[str, list[str]]:
    found = {}
    for text in given:
        name, _, rest = text.partition("=")
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise click.BadParameter(f"{text!r}: {error}", param_hint="--server") from None
        if not name or not words:
            raise click.BadParameter(f"{text!r} is no NAME=COMMAND", param_hint="--server")
        found[name] = words
    return found


def _print(found: Execution, ledger: Path | None, head: str, as_json: bool) -> None:
    if as_json:
        screen.print_output(_output(found, head))
        return
    for made in found.calls:
        told = ", ".join(f"{name}={value}" for name, value in made.observed.items())
        by = f" by {made.model}" if made.model else ""
        screen.say(f"{made.seq:>3}. {made.call}{by}: {made.outcome}{f' ({told})' if told else ''}")
    if found.spent is not None:
        screen.print_fields([("spent", _spent_text(found.spent, found.left))])
    if ledger is not None:
        screen.print_fields([("ledger", f"{ledger}, head {head}")])
    if found.finished:
        screen.good("finished: the plan was done to its end")
    else:
        screen.doubtful(f"{found.stop}: {found.reason}")


def _output(found: Execution, head: str) -> ExecOutput:
    from tcc.outputs import optional
    from tcc.outputs.runs import ExecOutput, MadeCallJson, SearchClaimJson

    return ExecOutput(
        stop=found.stop,
        reason=found.reason,
        calls=[
            MadeCallJson(
                seq=made.seq,
                call=made.call,
                outcome=made.outcome,
                observed=optional(dict(made.observed) or None),
                model=optional(made.model or None),
            )
            for made in found.calls
        ],
        ledger_head=head,
        searches=[
            SearchClaimJson(claim_type=run.claim_type, after=list(run.after)) for run in found.runs
        ],
        budget=optional(None if found.spent is None else _sums(found.spent, found.left)),
    )


def _sums(spent: SpentAmounts, left: Mapping[str, str]) -> dict[str, Any]:
    return {**spent_fields(spent), "left": dict(left)}


def _spent_text(spent: SpentAmounts, left: Mapping[str, str]) -> str:
    amounts = (
        ("price", f"{spent.price} cents"),
        ("latency_ms", f"{spent.latency} ms"),
        ("epsilon", f"epsilon {format_decimal(spent.epsilon_used, 9)}"),
    )
    return ", ".join(
        [f"{text} ({left[name]} left)" if name in left else text for name, text in amounts]
    )


def tools_in(path: Path | None, artifact: Artifact) -> tuple[dict[str, Any] | None, Any, Any]:
    """Run a Python file of tools; return its tools by name, its open arguments and its `resolve`.

    Returns:
        the members `TOOLS`, `arguments` and `resolve`.  Without `TOOLS`, the functions with names
        of tools are the tools.  All three are None if `path` is None, and the last two if the file
        lacks them.

    Raises:
        click.ClickException: the file raises an error, or defines a name in another form.
    """
    if path is None:
        return None, None, None
    if path.suffix != ".py":
        raise click.BadParameter(f"{str(path)!r} is no Python file", param_hint="--tools")
    # Executed, not imported: cached bytecode could be from another file of equal time and size.
    module = ModuleType("tcc_exec_tools")
    module.__file__ = str(path)
    with _owners(str(path)):
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    found = getattr(module, "TOOLS", None)
    if found is None:
        names = [tool.name for tool in artifact.core.tools]
        found = {name: getattr(module, name) for name in names if hasattr(module, name)}
    if not isinstance(found, Mapping):
        raise click.BadParameter("TOOLS is no mapping", param_hint="--tools")
    source, resolve = getattr(module, "arguments", None), getattr(module, "resolve", None)
    if callable(source):
        source = _asked(source, f"{path}: arguments")
    if resolve is not None and not callable(resolve):
        raise click.BadParameter("`resolve` is nothing to call", param_hint="--tools")
    return dict(found), source, None if resolve is None else _told(resolve, f"{path}: resolve")


@contextmanager
def _owners(where: str) -> Iterator[None]:
    """Context manager for the user's code, which may raise any exception or exit the process."""
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit, CancelledError):
        raise
    except BaseException as error:  # noqa: BLE001 - see above
        said = f"{where}: {type(error).__name__}: {error}"
        raise click.ClickException(said) from None


def _asked(source: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    async def ask(step: Any) -> Any:
        with _owners(where):
            found = source(step)
            return await found if inspect.isawaitable(found) else found

    return ask


def _told(resolve: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    def tell(made: Any) -> Any:
        with _owners(where):
            return resolve(made)

    return tell

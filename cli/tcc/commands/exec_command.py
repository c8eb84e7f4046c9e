"""``tcc exec``: the best plan, done call by call through a gate."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.atoms import atoms_in, plain_delta
from tcc.books import quotes_in
from tcc.commands.account_command import account_in
from tcc.commands.adapters_command import adapters_in
from tcc.exits import CLEAN, DECLINED
from tcc.files import same_file
from tcc.opening import (
    artifact_argument,
    input_option,
    json_option,
    open_artifact,
    options_of,
    refuse,
    trust_options,
)
from tcc.options import compile_options, flag, taken
from tcc.run_options import DOING, doing_options
from tcc.tool_files import tools_in
from tcc_certs.errors import Rejected
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.asking.controller import Spending
from tcc_runtime.errors import (
    AnswerError,
    BindingError,
    LedgerError,
    ResumeError,
    SettingsError,
)
from tcc_runtime.executor.execute import Execution, execute
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.ledger.asks import spent_fields
from tcc_runtime.terms.settings import DEFAULT_DELTA


@click.command("exec")
@artifact_argument
@input_option("--tools", "a Python file: functions with the names of tools, or a mapping TOOLS")
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="the session's; one that is there is taken up. Without it the session is in memory alone",
)
@input_option("--arguments", "a JSON object: of each tool the open arguments, by name")
@click.option("--deadline", type=float, metavar="SECONDS", help="of each call; then it is unknown")
@click.option(
    "--retries",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="most failures in a row; one more ends it",
)
@click.option(
    "--once", multiple=True, metavar="TOOL", help="does nothing twice for one key; repeatable"
)
@click.option(
    "--server",
    "servers",
    multiple=True,
    metavar="NAME=COMMAND",
    help="an MCP server over stdio, as the grammar names it; repeatable",
)
@click.option("--show", multiple=True, metavar="TOOL.PARAMETER", help="in the ledger; repeatable")
@input_option("--quotes", "a book of quotes: what calls cost whose cost is a range")
@input_option("--adapters", "the registry of adapters that models run with")
@input_option("--account", "that asks and calls draw on, as others do: of `tcc account create`")
@input_option("--atoms", "a list of atoms: what privatised the input before")
@doing_options
@trust_options
@compile_options
@json_option
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
    quotes: Path | None,
    adapters: Path | None,
    account: Path | None,
    atoms: Path | None,
    checked: bytes | None,
    no_verify: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Search ARTIFACT (or a grammar) for its best plan, and do it, call by call.

    Where models may execute, one of them makes each call of their tools, within what the caps
    leave. A session that was stopped goes on where it was. Exit code 0: the plan was done to its
    end. 2: it was not, and the last line says why.
    """
    settings = taken(DOING, given)
    if settings["delta"] is not None:
        settings["delta"] = plain_delta(settings["delta"])
    files = (tools, arguments, quotes, adapters, account, atoms)
    inputs = [path for path in files if path is not None]
    options = options_of(given)
    opened = open_artifact(
        artifact, command="exec", options=options, read=inputs, checked=checked, no_verify=no_verify
    )
    if ledger is not None and same_file(ledger, inputs):
        raise click.BadParameter(f"{str(ledger)!r} is what is run", param_hint="--ledger")
    named = _servers(servers)
    functions, source, resolve = tools_in(tools, opened)
    source = source if arguments is None else _arguments(arguments)
    quoter = None if quotes is None else quotes_in(quotes, opened)
    if quoter is not None and quoter.names_atoms and settings["delta"] is None:
        settings["delta"] = DEFAULT_DELTA
    handed = {
        "quoter": quoter,
        "atoms": () if atoms is None else atoms_in(atoms),
        "adapters": None if adapters is None else adapters_in(adapters),
        "account": None if account is None else account_in(account),
    }
    try:
        with Gate(opened, ledger=ledger, show=show) as gate:
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
    except Refused as refusal:
        raise click.ClickException(str(refusal)) from None
    except SettingsError as error:
        said = f"expected {error.expected}, found {error.found}"
        named_as = {option.name: flag(option) for option in DOING}
        hint = named_as.get(error.field, f"--{error.field.replace('_', '-')}")
        raise click.BadParameter(said, param_hint=hint) from None
    except (AnswerError, BindingError) as error:
        raise click.ClickException(str(error)) from None
    except ResumeError as error:
        said = f"{ledger}: this ledger cannot be taken up: {error}"
        raise click.ClickException(said) from None
    except Rejected as refusal:
        about = {"K": account, "A": adapters}.get(refusal.code.value[0])
        refuse(about or ledger or artifact, refusal)
    except LedgerError as error:
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
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
    calls = [
        {
            "seq": made.seq,
            "call": made.call,
            "outcome": made.outcome,
            **({"observed": dict(made.observed)} if made.observed else {}),
            **({"model": made.model} if made.model else {}),
        }
        for made in found.calls
    ]
    if as_json:
        fields = {"stop": found.stop, "reason": found.reason, "calls": calls, "ledger_head": head}
        claims = [
            {"claim_type": str(run.claim_type), "after": list(run.after)} for run in found.runs
        ]
        budget = {} if found.spent is None else {"budget": _sums(found.spent, found.left)}
        screen.print_json("exec", {**fields, "searches": claims, **budget})
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


def _sums(spent: Spending, left: Mapping[str, str]) -> dict[str, Any]:
    return {**spent_fields(spent), "left": dict(left)}


def _spent_text(spent: Spending, left: Mapping[str, str]) -> str:
    amounts = (
        ("price", f"{spent.price} cents"),
        ("latency_ms", f"{spent.latency} ms"),
        ("epsilon", f"epsilon {format_decimal(spent.epsilon_used, 9)}"),
    )
    return ", ".join(
        [f"{text} ({left[name]} left)" if name in left else text for name, text in amounts]
    )

"""``tcc gate``: an MCP server over stdio that is another one, held to a grammar."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import click

import tcc
from tcc import screen
from tcc.files import same_file
from tcc.opening import open_artifact, refuse
from tcc.options import (
    FlagPair,
    WithServer,
    digest_option,
    input_option,
    protocol_option,
    required,
    served_argument,
)
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc_certs.errors import Rejected
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, ResumeError, ServerDrift, ServerError, SettingsError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.mcp.guarding import Guarded, guard
from tcc_runtime.mcp.relay import STOPPED
from tcc_runtime.mcp.upstream import Protocol, read_lock

_MOST_NOTES = 100


@click.command("gate", cls=WithServer)
@served_argument
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    help="the record of the session; one that is there is taken up",
)
@input_option("--lock", "the tools that the server has to have, from `tcc import mcp --lock`")
@click.option(
    "--mask", is_flag=True, help="show only the tools that may be called now (handshake clients)"
)
@click.option(
    "--deadline",
    type=click.FloatRange(0.01, 86400),
    default=300.0,
    show_default=True,
    help="seconds that a call may take before its outcome is unknown",
)
@protocol_option
@click.option("--show", metavar="NAMES", help="tool.parameter,.. whose values the ledger shows")
@click.option(
    "--durable/--no-durable",
    cls=FlagPair,
    default=True,
    show_default=True,
    help="wait for the disk before each call, and after its outcome",
)
@click.option("--finish", is_flag=True, help="end the session with the connection, where it may")
@digest_option("--checked", "the digest of an artifact whose certificates were checked before")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    ledger: Path,
    lock: Path | None,
    server: tuple[str, ...],
    show: str | None,
    finish: bool,
    checked: bytes | None,
    **given: Any,
) -> None:
    """Be the MCP server COMMAND, held to ARTIFACT (or to a grammar, compiled on the spot).

    Put it into a client's configuration in place of the server. The session is the ledger's: a
    gate that is started again takes it up.

    Exit code 0: the client is gone. 1: the server's tools are not those of the lock or of the
    grammar, or the ledger is another session's. 2: the server or the ledger failed.
    """
    command_of = required(server)
    read: list[Path] = []
    opened = open_artifact(artifact, command="gate", checked=checked, read=read)
    if same_file(ledger, [*read, *([lock] if lock else [])]):
        raise click.BadParameter(f"{str(ledger)!r} is what is read", param_hint="--ledger")
    locked = None if lock is None else read_lock(lock)
    how = Guarded(
        command=command_of,
        locked=locked,
        seconds=given["deadline"],
        finishes=finish,
        masks=given["mask"],
        protocol=cast(Protocol, given["protocol"]),
        version=tcc.__version__,
    )
    ctx.exit(_guarded(lambda: _gate(opened, ledger, show, given["durable"]), how))


def _guarded(open_gate: Callable[[], Gate | None], how: Guarded) -> int:
    """Relay until the end, and give the exit code."""
    notes = 0

    def note(text: str) -> None:
        nonlocal notes
        notes += 1
        if notes <= _MOST_NOTES:
            screen.say(f"tcc gate: {text}", err=True)

    try:
        trouble = guard(open_gate, how, note)
    except ServerDrift as drift:
        for finding in drift.findings:
            screen.say(f"tcc gate: {finding}", err=True)
        return FINDINGS
    except ServerError as error:
        screen.say(f"tcc gate: {error}", err=True)
        return DECLINED
    if trouble is None or trouble == STOPPED:
        return CLEAN
    screen.say(f"tcc gate: {trouble}", err=True)
    return DECLINED


def _gate(artifact: Artifact, ledger: Path, show: str | None, durable: bool) -> Gate | None:
    """Takes the ledger up; None while another process has its lock."""
    shown = () if show is None else tuple(part.strip() for part in show.split(","))
    try:
        return Gate(artifact, ledger=ledger, show=shown, durable=durable, wait=False)
    except ResumeError as error:
        screen.say(f"{ledger}: this ledger cannot be taken up: {error}", err=True)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.field}") from None
    except Rejected as refusal:
        refuse(ledger, refusal)
    except LedgerError as error:
        if isinstance(error.cause, BlockingIOError):
            return None
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    raise click.exceptions.Exit(FINDINGS)

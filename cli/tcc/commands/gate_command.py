"""``tcc gate``: an MCP server over stdio that is another one, held to a grammar.

The session is that of a ledger, or one of a store: of the connection, of who connects, or one that
is named.  Text: docs/gate.md, docs/sessions.md.
"""

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
    Duration,
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
from tcc_runtime.gate.store import Sessions, local_principal, session_id_of
from tcc_runtime.mcp.guarding import Guarded, guard
from tcc_runtime.mcp.relay import STOPPED
from tcc_runtime.mcp.upstream import Protocol, read_lock

_MOST_NOTES = 100
_ONE_SESSION = (
    "limits hold for one session; a client that connects again begins another"
    " (--session principal, or limits across sessions)"
)


@click.command("gate", cls=WithServer)
@served_argument
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="the record of the session; one that is there is taken up, one that has ended is kept"
    " beside",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="the folder of the sessions of ARTIFACT, in place of --ledger",
)
@click.option(
    "--session",
    metavar="new|principal|ID",
    help="of a store: one for each connection (the default), one for who connects, or that one",
)
@click.option(
    "--renew",
    type=Duration(),
    help="with --session principal: end one that began so long ago, and begin another",
)
@click.option(
    "--idle",
    type=click.FloatRange(0.01, 10**9),
    help="seconds without a word of the client after which the connection is over",
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
    help="wait for the disk before each call",
)
@click.option("--finish", is_flag=True, help="end the session with the connection, where it may")
@digest_option("--checked", "the digest of an artifact whose certificates were checked before")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    ledger: Path | None,
    store: Path | None,
    session: str | None,
    renew: int | None,
    lock: Path | None,
    server: tuple[str, ...],
    show: str | None,
    finish: bool,
    checked: bytes | None,
    **given: Any,
) -> None:
    """Be the MCP server COMMAND, held to ARTIFACT (or to a grammar, compiled on the spot).

    Put it into a client's configuration in place of the server. With --ledger the session is the
    ledger's: a gate that is started again takes it up. With --store each connection has its own.

    Exit code 0: the client is gone. 1: the server's tools are not those of the lock or of the
    grammar, or there is no such session here. 2: the server or the ledger failed.
    """
    command_of = required(server)
    kind = _kind_of(ledger, store, session, renew, finish)
    read: list[Path] = []
    opened = open_artifact(artifact, command="gate", checked=checked, read=read)
    if ledger is not None and same_file(ledger, [*read, *([lock] if lock else [])]):
        raise click.BadParameter(f"{str(ledger)!r} is what is read", param_hint="--ledger")
    locked = None if lock is None else read_lock(lock)
    how = Guarded(
        command=command_of,
        locked=locked,
        seconds=given["deadline"],
        finishes=finish or kind == "new",
        of_connection=kind == "new",
        idle=given["idle"],
        masks=given["mask"],
        protocol=cast(Protocol, given["protocol"]),
        version=tcc.__version__,
    )
    shown = () if show is None else tuple(part.strip() for part in show.split(","))
    durable = given["durable"]
    if kind == "new" and _bounds(opened):
        screen.say(f"tcc gate: {_ONE_SESSION}", err=True)

    def open_gate() -> Gate:
        if store is None:
            return Gate(opened, ledger=ledger, show=shown, durable=durable, wait=False, rolls=True)
        sessions = Sessions(opened, store, durable, show=shown, renew_ms=renew, wait=False)
        if kind == "principal":
            return sessions.open(principal=local_principal())
        return sessions.open() if kind == "new" else sessions.get(kind)

    ctx.exit(_guarded(lambda: _gate(open_gate, store or ledger or Path()), how))


def _kind_of(
    ledger: Path | None, store: Path | None, session: str | None, renew: int | None, finish: bool
) -> str:
    """Which session of a store: `new`, `principal` or an id; empty with a ledger of its own."""
    if (ledger is None) == (store is None):
        raise click.UsageError("one of --ledger and --store says where the session is kept")
    if store is None:
        if session is not None or renew is not None:
            raise click.UsageError("--session and --renew are for --store")
        return ""
    kind = "new" if session is None else session
    if kind not in ("new", "principal"):
        try:
            session_id_of(kind)
        except SettingsError as error:
            raise click.BadParameter(str(error), param_hint="--session") from None
    if renew is not None and kind != "principal":
        raise click.UsageError("--renew is for --session principal")
    if finish and kind == "principal":
        said = "--finish would give who connects again another session: see tcc session end"
        raise click.UsageError(said)
    return kind


def _bounds(artifact: Artifact) -> bool:
    """Whether the grammar says anything that holds for a session as a whole."""
    core = artifact.core
    return bool(core.limits or core.monitors or core.forbids)


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


def _gate(open_gate: Callable[[], Gate], ledger: Path) -> Gate | None:
    """Takes the session up; None while another process has its lock, or the store's."""
    try:
        return open_gate()
    except ResumeError as error:
        screen.say(f"{ledger}: this session cannot be taken up: {error}", err=True)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.field}") from None
    except Rejected as refusal:
        refuse(ledger, refusal)
    except LedgerError as error:
        if isinstance(error.cause, BlockingIOError):
            return None
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    raise click.exceptions.Exit(FINDINGS)

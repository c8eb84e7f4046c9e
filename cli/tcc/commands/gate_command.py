"""``tcc gate``: relays an MCP server, and enforces a grammar on its sessions.

The session is recorded in a ledger or in a store.  With a store, each connection has a new session,
or each principal has one, or one session is named by its id.  Documentation: docs/gate.md,
docs/sessions.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

import tcc
from tcc import options, screen
from tcc.files import same_file
from tcc.opening import CLAIM, account_in, given_in, open_artifact, refuse
from tcc.replaced import Replaced, in_memory, signature_of
from tcc.screen import CLEAN, DECLINED, FINDINGS
from tcc.serving import bound_tools, one_server, serve_http, several_servers, shared_servers
from tcc_certs.errors import Rejected
from tcc_certs.policy.nodes import Ask, Limit, Total
from tcc_runtime.account.windows import across_of
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, ResumeError, ServerDrift, ServerError, SettingsError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.policy import policy_of
from tcc_runtime.gate.session_access.reopening import begun_with
from tcc_runtime.gate.store import Sessions, local_principal, session_id_of
from tcc_runtime.mcp.guarding import STOPPED, Guarded, guard, probe
from tcc_runtime.mcp.links import Target
from tcc_runtime.mcp.links.fan_out import Servers
from tcc_runtime.mcp.lock import read_lock
from tcc_runtime.mcp.notify import Notifier
from tcc_runtime.mcp.server import Protocol

if TYPE_CHECKING:
    from tcc_runtime.account.account import Account
    from tcc_runtime.mcp.tokens import Principal

_MOST_NOTES = 100
_ACCOUNT_MS = 2_000  # milliseconds to wait for a locked account; the relay is blocked meanwhile
_TURN = 0.0005  # seconds that a thread may run while another one waits
_CONNECT = 30.0  # seconds for each of several servers to start
_ONE_SESSION = (
    "limits hold for one session; a client that connects again begins another"
    " (--session principal, or limits across sessions)"
)


_SHADOW = "in the shadow: nothing is refused, and the ledgers of its sessions show nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Web:
    """The options of a gate over HTTP, as the command line gives them."""

    address: tuple[str, int]
    names: Sequence[str]
    origins: Sequence[str]
    tls: tuple[Path, Path] | None
    tokens: tuple[Path, str, str | None] | None
    proxied: bool
    idle: float
    metrics: tuple[str, int] | None
    shares: bool


def _address(
    _ctx: click.Context, parameter: click.Parameter, value: str | None
) -> tuple[str, int] | None:
    """Click callback that splits `HOST:PORT`; an IPv6 host is in brackets."""
    if value is None:
        return None
    host, colon, port = value.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (colon and host and port.isascii() and port.isdigit() and int(port[:6]) < 1 << 16):
        raise click.BadParameter(f"{value!r} is no HOST:PORT", param=parameter)
    return host, int(port)


class _GateCommand(options.WithServer):
    """A command whose option ``--reload`` may have no value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read a bare ``--reload`` as ``--reload=new``, so it never consumes the next argument."""
        end = args.index("--") if "--" in args else len(args)
        whole = ["--reload=new" if one == "--reload" else one for one in args[:end]]
        return super().parse_args(ctx, whole + args[end:])


@click.command("gate", cls=_GateCommand)
@options.served_argument
@click.option(
    "--ledger",
    type=click.Path(dir_okay=False, path_type=Path),
    help="ledger of the session; an existing session is reopened, the ledger of an ended one"
    " is kept beside it",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    help="folder for the sessions of ARTIFACT, instead of --ledger",
)
@click.option(
    "--session",
    metavar="new|principal|ID",
    help="which session of a store: a new one for each connection (the default), one for each"
    " principal, or the one with this id",
)
@options.given_option(
    "value that the grammar asks for when a session opens; with --jwt-key, NAME=claim:CLAIM "
    "takes it from the token; repeatable"
)
@click.option(
    "--renew",
    type=options.DurationType(),
    help="with --session principal: end a session of this age, and begin another",
)
@click.option(
    "--idle",
    type=click.FloatRange(0.01, 10**9),
    help="seconds of silence after which the connection of a client ends",
)
@click.option(
    "--server",
    "named",
    metavar="NAME=URL|COMMAND",
    multiple=True,
    help="one of several servers, instead of COMMAND; the grammar binds tools to them by "
    "name; repeatable",
)
@options.input_option("--servers", "the same, from a file with the member mcpServers")
@options.upstream_header_option
@options.input_option(
    "--lock", "lock that `tcc import mcp --lock` wrote: the tools that the server has to have"
)
@click.option(
    "--mask", is_flag=True, help="list only the tools that may be called now (handshake clients)"
)
@click.option(
    "--deadline",
    type=click.FloatRange(0.01, 86400),
    default=300.0,
    show_default=True,
    help="limit on each call, in seconds; after it the outcome is unknown",
)
@options.protocol_option
@click.option(
    "--show",
    metavar="NAMES",
    help="fields whose values the ledger shows, as tool.field, with commas between them",
)
@click.option(
    "--durable/--no-durable",
    cls=options.FlagPair,
    default=True,
    show_default=True,
    help="wait for the disk before each call",
)
@click.option(
    "--shadow",
    is_flag=True,
    help="refuse nothing, and record what would be refused; such ledgers prove nothing",
)
@click.option(
    "--roll",
    type=click.IntRange(min=1),
    metavar="BYTES",
    help="size at which a ledger NAME continues in NAME.1, then in NAME.2",
)
@click.option(
    "--reload",
    type=click.Choice(("new", "now")),
    help="take another artifact that replaces ARTIFACT: for new sessions (new; also without a "
    "value), or for open sessions, too (now)",
)
@options.input_option(
    "--account",
    "account that counts what limits across sessions bound, shared by all gates that use it",
)
@click.option(
    "--elicit",
    "elicits",
    metavar="ROLE",
    multiple=True,
    help="role of the person at the client: calls that wait for this role are asked about there; "
    "repeatable",
)
@click.option(
    "--notify",
    metavar="COMMAND|URL",
    help="run a command, or post to a URL, once for each question to a person",
)
@click.option(
    "--finish", is_flag=True, help="end the session with the connection, if a plan may end there"
)
@options.digest_option(
    "--checked",
    "digest of an artifact whose certificates were checked before: check only "
    "that the artifact has this digest",
)
@click.option(
    "--http",
    metavar="HOST:PORT",
    callback=_address,
    help="serve over HTTP at this address; port 0 picks a free port",
)
@click.option(
    "--host",
    "names",
    metavar="NAME",
    multiple=True,
    help="another name to accept in the Host header; repeatable",
)
@click.option(
    "--origin",
    "origins",
    metavar="URL",
    multiple=True,
    help="origin of web pages that may connect; repeatable",
)
@options.input_option("--tls-cert", "certificate of this server (PEM)")
@options.input_option("--tls-key", "this server's private key (PEM)")
@click.option(
    "--behind-proxy",
    is_flag=True,
    help="say that a proxy in front terminates TLS; required "
    "beyond loopback unless --tls-cert is given",
)
@click.option(
    "--share-server",
    "shares",
    is_flag=True,
    help="start one server process for all sessions, which then share its memory, instead of "
    "one for each",
)
@click.option(
    "--metrics",
    metavar="HOST:PORT",
    callback=_address,
    help="serve metrics for a monitoring system at /metrics of this address",
)
@options.input_option(
    "--jwt-key", "public key (PEM) or keys (JWKS) that clients' tokens are verified with"
)
@click.option("--jwt-audience", metavar="AUD", help="audience that a token has to name")
@click.option("--jwt-issuer", metavar="ISS", help="issuer that a token has to name")
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
    """Guard the MCP server COMMAND: forward only calls that ARTIFACT (or a grammar) allows.

    Put this command into a client's configuration in place of the server. With --ledger there is
    one session, and a gate that is started again reopens it. With --store each connection has a
    session of its own.

    Exit code 0: the client has gone. 1: the server's tools are not those of the lock or of the
    grammar, or the store has no such session. 2: the server or the ledger failed.
    """
    several = several_servers(server, given)
    web = _web_of(given)
    if session is None and web is not None and web.tokens is not None:
        session = "principal"
    kind = _kind_of(ledger, store, session, renew, finish)
    shadow, roll = given["shadow"], given["roll"]
    if shadow and given["mask"]:
        raise click.UsageError("--mask hides tools, and --shadow refuses nothing: one of them")
    if web is not None:
        _require_http(web, store, kind, given["mask"])
    reloads = given["reload"]
    if reloads and (store is None or several):
        raise click.UsageError("--reload is for --store, and for one server")
    read: list[Path] = []
    signature = signature_of(artifact)  # before it is read
    opened = open_artifact(artifact, command="gate", checked=checked, read=read, gate=True)
    if reloads:
        opened = in_memory(opened)
    if ledger is not None and same_file(ledger, [*read, *([lock] if lock else [])]):
        raise click.BadParameter(f"{str(ledger)!r} is what is read", param_hint="--ledger")
    if shadow:
        screen.say(f"tcc gate: {_SHADOW}", err=True)
    account = _account(given["account"], opened, reloads=bool(reloads))
    locked = None if lock is None else read_lock(lock)
    unread = sorted({"resources", "prompts"} & set(opened.core.passed))
    if several and unread:
        said = f"the grammar says `pass {', '.join(unread)}`: which of several servers is asked?"
        raise click.UsageError(said)
    if several:
        target: Target = Servers(
            targets=several,
            tools=bound_tools(opened, several),
            locked=locked,
            seconds=_CONNECT,
            protocol=cast(Protocol, given["protocol"]),
            version=tcc.__version__,
        )
    else:
        target = one_server(server, given["upstream_headers"], given["deadline"])
    elicits, notifier = _asking(opened, given["elicits"], given["notify"])
    how = Guarded(
        target=target,
        elicits=elicits,
        notify=None if notifier is None else notifier.tell,
        locked=locked,
        seconds=given["deadline"],
        finishes=finish or kind == "new",
        of_connection=kind == "new",
        idle=None if web is not None else given["idle"],
        masks=given["mask"],
        shadow=shadow,
        protocol=cast(Protocol, given["protocol"]),
        version=tcc.__version__,
    )
    told: tuple[str, ...] = given["told"]
    if web is not None and store is not None:
        look = Replaced(artifact, signature) if reloads else None
        reloaded = look, reloads == "now"
        served = opened, store, kind, how, show, renew, given["durable"], told, account, roll
        ctx.exit(_served(web, *served, *reloaded))
    shown = () if show is None else tuple(part.strip() for part in show.split(","))
    durable = given["durable"]
    if kind == "new" and _bounds(opened) and not shadow:
        screen.say(f"tcc gate: {_ONE_SESSION}", err=True)

    values = given_in(told, opened)
    if values is not None:
        try:
            begun_with(policy_of(opened), values)
        except SettingsError as error:
            raise click.BadParameter(str(error), param_hint="--given") from None

    def open_gate() -> Gate:
        if store is None:
            return Gate(
                opened, ledger=ledger, show=shown, durable=durable, wait=False, rolls=True,
                shadow=shadow, given=values, account=account, roll_bytes=roll,
            )  # fmt: skip
        sessions = Sessions(
            opened, store, durable, show=shown, renew_ms=renew, wait=False, shadow=shadow,
            account=account, roll_bytes=roll, reload=bool(reloads), moves=reloads == "now",
        )  # fmt: skip
        if kind == "principal":
            return sessions.open(values, local_principal())
        return sessions.open(values) if kind == "new" else sessions.get(kind, values)

    ctx.exit(_guarded(lambda: _gate(open_gate, store or ledger or Path()), how))


def _asking(
    artifact: Artifact, elicits: Sequence[str], notify: str | None
) -> tuple[frozenset[str], Notifier | None]:
    """Return the roles of the person at the client, and the receiver of notices about questions.

    Raises:
        click.UsageError: no `ask` statement names a role, the grammar has no `ask` statement for
            `--notify`, or the receiver is neither a URL nor a command.
    """
    asked = sorted({one.who for one in artifact.core.statements if isinstance(one, Ask)})
    known = ", ".join(map(repr, asked)) or "none"
    for role in elicits:
        if role not in asked:
            raise click.UsageError(
                f"--elicit {role!r}: no `ask` of the grammar names this role; roles: {known}"
            )
    if notify is None:
        return frozenset(elicits), None
    if not asked:
        raise click.UsageError("--notify is for questions to persons: the grammar has no `ask`")
    try:
        return frozenset(elicits), Notifier(notify, lambda text: screen.say(text, err=True))
    except ValueError as error:
        raise click.UsageError(f"--notify: {error}") from None


def _account(path: Path | None, artifact: Artifact, *, reloads: bool) -> Account | None:
    """Open the account that counts limits across sessions; None if no account is given.

    Args:
        reloads: whether open sessions of the store may change to another policy.  Then an account
            is accepted even if the grammar has no such limit.

    Raises:
        click.UsageError: the grammar has such limits and no account is given, or the reverse.
    """
    if path is None:
        try:
            across_of(artifact.core, None, True)
        except SettingsError:
            raise click.UsageError(
                "--account is missing: the policy has a limit across sessions"
            ) from None
        return None
    account = account_in(path, _ACCOUNT_MS)
    if across_of(artifact.core, account, True) is None and not reloads:
        raise click.UsageError("--account is for limits across sessions, and the grammar has none")
    return account


def _web_of(given: Mapping[str, Any]) -> _Web | None:
    """Return the options of HTTP, or None without --http.

    Raises:
        click.UsageError: an option of HTTP is given without --http, or lacks an option that it
            needs.
    """
    names = {
        "--host": given["names"], "--origin": given["origins"], "--tls-cert": given["tls_cert"],
        "--tls-key": given["tls_key"], "--behind-proxy": given["behind_proxy"],
        "--jwt-key": given["jwt_key"], "--jwt-audience": given["jwt_audience"],
        "--jwt-issuer": given["jwt_issuer"], "--share-server": given["shares"],
        "--metrics": given["metrics"],
    }  # fmt: skip
    if given["http"] is None:
        for name, value in names.items():
            if value:
                raise click.UsageError(f"{name} is for --http")
        return None
    cert, key = given["tls_cert"], given["tls_key"]
    if (cert is None) != (key is None):
        raise click.UsageError("--tls-cert and --tls-key go together")
    if cert is not None and given["behind_proxy"]:
        raise click.UsageError("--tls-cert and --behind-proxy: one of them speaks TLS")
    jwt, audience = given["jwt_key"], given["jwt_audience"]
    if jwt is not None and not audience:
        raise click.UsageError("--jwt-key needs --jwt-audience: whose tokens are these?")
    if jwt is None and (audience or given["jwt_issuer"]):
        raise click.UsageError("--jwt-audience and --jwt-issuer are for --jwt-key")
    return _Web(
        address=given["http"],
        names=given["names"],
        origins=given["origins"],
        tls=None if cert is None else (cert, key),
        tokens=None if jwt is None else (jwt, audience, given["jwt_issuer"]),
        proxied=given["behind_proxy"],
        idle=3600.0 if given["idle"] is None else given["idle"],
        metrics=given["metrics"],
        shares=given["shares"],
    )


def _require_http(web: _Web, store: Path | None, kind: str, masks: bool) -> None:
    """Check the options of HTTP against the other options.

    Raises:
        click.UsageError: two options contradict each other, or a public address is not protected.
    """
    if store is None:
        raise click.UsageError("--http serves many sessions: --store says where they are kept")
    if masks:
        raise click.UsageError("--mask is for a client over pipes: a list over HTTP is one for all")
    if kind == "principal" and web.tokens is None:
        raise click.UsageError("--session principal over HTTP needs --jwt-key: who is it?")
    if web.metrics is not None and not (_is_loopback(web.metrics[0]) or web.proxied):
        raise click.UsageError(
            f"--metrics {web.metrics[0]} is reached from other machines, and asks nobody who he is:"
            " a loopback address, or --behind-proxy"
        )
    safe = web.tls is not None or web.proxied
    if not _is_loopback(web.address[0]) and (web.tokens is None or not safe):
        raise click.UsageError(
            f"{web.address[0]} is reached from other machines: that needs --jwt-key and, for TLS,"
            " --tls-cert with --tls-key, or --behind-proxy"
        )


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _served(
    web: _Web,
    artifact: Artifact,
    store: Path,
    kind: str,
    how: Guarded,
    show: str | None,
    renew: int | None,
    durable: bool,
    told: tuple[str, ...],
    account: Account | None,
    roll: int | None,
    look: Replaced | None,
    moves: bool,
) -> int:
    """Serve over HTTP until a signal arrives, and return the exit code."""
    import asyncio

    try:
        from tcc_runtime.mcp.hosting import Hosting, HostingTerms, Reloading
        from tcc_runtime.mcp.http import Listening
        from tcc_runtime.mcp.metrics import Meter
        from tcc_runtime.mcp.tokens import Tokens
    except ModuleNotFoundError as error:
        said = f"{error.name} is not installed: pip install 'tcc[mcp]'"
        raise click.ClickException(said) from None

    tls = None
    if web.tls is not None:
        import ssl

        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            tls.load_cert_chain(*web.tls)
        except ssl.SSLError as error:
            raise click.BadParameter(f"no certificate and key: {error.reason}") from None
    shown = () if show is None else tuple(part.strip() for part in show.split(","))
    try:
        tokens = None
        if web.tokens is not None:
            key, audience, issuer = web.tokens
            tokens = Tokens(key, audience=audience, issuer=issuer)
        sessions = Sessions(
            artifact, store, durable, show=shown, renew_ms=renew, shadow=how.shadow,
            account=account, roll_bytes=roll, reload=look is not None, moves=moves,
        )  # fmt: skip
        values, claims = _given(told, artifact, tokens is not None)
        if kind not in ("new", "principal"):
            sessions.get(kind, values or None).close()
        elif not claims:
            begun_with(policy_of(artifact), values)  # checked once: equal for every session
        probed = asyncio.run(probe(artifact, how))
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.field}") from None
    except ResumeError as error:
        screen.say(f"{store}: {error}", err=True)
        return FINDINGS
    except ServerDrift as drift:
        for finding in drift.findings:
            screen.say(f"tcc gate: {finding}", err=True)
        return FINDINGS
    if kind == "new" and _bounds(artifact) and not how.shadow:
        screen.say(f"tcc gate: {_ONE_SESSION}", err=True)

    target, shared = (how.target, ()) if not web.shares else shared_servers(how.target)
    if isinstance(target, Servers):
        target = replace(target, seen=probed.locked)

    async def run() -> None:
        hosting = Hosting(
            store=sessions,
            how=replace(how, target=target, locked=probed.locked),
            probed=probed,
            terms=HostingTerms(
                kind=kind, idle=web.idle, given=lambda who: _of_claims(who, values, claims)
            ),
            note=lambda text: screen.say(f"tcc gate: {text}", err=True),
            meter=None
            if web.metrics is None
            else Meter([tool.name for tool in artifact.core.tools]),
            reloading=None
            if look is None
            else Reloading(look=look, how=replace(how, target=target)),
        )
        host, port = web.address
        listening = Listening(
            host=host, port=port, names=web.names, origins=web.origins, tls=tls, tokens=tokens
        )
        try:
            await serve_http(listening, hosting, screen.say, web.metrics)
        finally:
            for server in shared:
                await server.close()

    # The event loop shares the interpreter with threads that wait for the disk.  With Python's
    # default of 5 ms, two thread switches would take longer than a call may at 500 calls a second.
    sys.setswitchinterval(_TURN)
    asyncio.run(run())
    return CLEAN


def _given(
    told: tuple[str, ...], artifact: Artifact, by_token: bool
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the attributes of every session, and the claims that provide other attributes."""
    claims = {}
    if by_token:
        for pair in told:
            name, _, value = pair.partition("=")
            if value.startswith(CLAIM):
                claims[name] = value.removeprefix(CLAIM)
    values = given_in([one for one in told if one.partition("=")[0] not in claims], artifact)
    return values or {}, claims


def _of_claims(
    who: Principal | None, values: Mapping[str, Any], claims: Mapping[str, str]
) -> Mapping[str, Any]:
    """Return the attributes of a principal's session, including those from its claims."""
    if who is None:
        return values
    return {**values, **{name: who.claim(claim) for name, claim in claims.items()}}


def _kind_of(
    ledger: Path | None, store: Path | None, session: str | None, renew: int | None, finish: bool
) -> str:
    """Return which session of a store to use: `new`, `principal` or an id; '' with --ledger.

    Raises:
        click.UsageError: the options contradict each other.
    """
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
    """Return whether the grammar has limits for a single session, which a new session resets."""
    bounds = [one for one in artifact.core.statements if isinstance(one, Limit | Total)]
    return any(isinstance(one, Total) or one.scope != "across" for one in bounds)


def _guarded(open_gate: Callable[[], Gate | None], how: Guarded) -> int:
    """Relay until the client or the server ends, and return the exit code."""
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
    """Open the session; return None if another process has the lock of the ledger or store."""
    try:
        return open_gate()
    except ResumeError as error:
        screen.say(f"{ledger}: this session cannot be reopened: {error}", err=True)
    except SettingsError as error:
        raise click.BadParameter(str(error), param_hint=f"--{error.field}") from None
    except Rejected as refusal:
        refuse(ledger, refusal)
    except LedgerError as error:
        if isinstance(error.cause, BlockingIOError):
            return None
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    raise click.exceptions.Exit(FINDINGS)

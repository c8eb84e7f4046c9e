"""Servers given to commands by command line, URL, name or file; and a gate over HTTP.

Documentation: docs/mcp.md.  Secrets in a file or in the environment go only to the servers.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tcc.files import is_regular
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.executor.binding import declared_bindings
from tcc_runtime.mcp.links import Target
from tcc_runtime.mcp.links.fan_out import Servers
from tcc_runtime.mcp.links.http_client import Remote, check_header, check_url, is_url
from tcc_runtime.mcp.links.shared import SharedServer
from tcc_runtime.mcp.links.stdio import Program
from tcc_runtime.mcp.wire import MalformedMessage, read_json

if TYPE_CHECKING:
    from tcc_runtime.mcp.hosting import Hosting
    from tcc_runtime.mcp.http import Listening

_MOST_BYTES = 1 << 20
_MEMBERS = frozenset(("command", "args", "env", "cwd", "url", "headers"))
_PASSED = frozenset(("type", "transport", "disabled", "timeout", "autoApprove", "description"))


def one_server(server: Sequence[str], headers: Mapping[str, str], seconds: float) -> Target:
    """Return the server given after ``--``: a program with its arguments, or one URL.

    Args:
        headers: headers for a server with a URL.
        seconds: time limit of a request to a URL.

    Raises:
        click.UsageError: no server is given, headers are given for a program, or the URL is
            refused.
    """
    if not server:
        raise click.UsageError("the command of a server is needed, behind --")
    if len(server) > 1 or not is_url(server[0]):
        if headers:
            raise click.UsageError("--upstream-header is for a server behind a URL")
        return Program(command=tuple(server))
    return _remote(server[0], headers, seconds)


def _remote(url: str, headers: Mapping[str, str], seconds: float) -> Remote:
    try:
        check_url(url)
    except ValueError as error:
        raise click.UsageError(f"{url}: {error}") from None
    return Remote(url=url, headers=headers, seconds=seconds)


def named_servers(
    given: Sequence[str], headers: Mapping[str, str], seconds: float
) -> dict[str, Target]:
    """Return the servers of ``--server NAME=URL|COMMAND``, by name.

    Raises:
        click.UsageError: a value is malformed, or a name is repeated.
    """
    found: dict[str, Target] = {}
    for one in given:
        name, equals, told = one.partition("=")
        if not (name and equals and told.strip()):
            raise click.UsageError(f"--server: {one!r} is no NAME=URL or NAME=COMMAND")
        if name in found:
            raise click.UsageError(f"--server: {name!r} is given twice")
        if is_url(told):
            found[name] = _remote(told, headers, seconds)
            continue
        try:
            command = shlex.split(told)
        except ValueError as error:
            raise click.UsageError(f"--server {name}: {error}") from None
        found[name] = Program(command=tuple(command))
    return found


def servers_in(path: Path, headers: Mapping[str, str], seconds: float) -> dict[str, Target]:
    """Return the servers of a client's configuration file, from its member `mcpServers`.

    Raises:
        click.UsageError: the file is no configuration, or it has an invalid server.
    """
    if not is_regular(path) or path.stat().st_size > _MOST_BYTES:
        raise click.UsageError(f"{path} is no configuration of servers")
    try:
        document = read_json(path.read_bytes())
    except MalformedMessage as error:
        raise click.UsageError(f"{path} is no JSON: {error}") from None
    servers = document.get("mcpServers") if isinstance(document, dict) else None
    if not isinstance(servers, dict) or not servers:
        raise click.UsageError(f"{path} has no servers: the member 'mcpServers' lists them by name")
    return {
        name: _server(f"{path}: server {name!r}", told, headers, seconds)
        for name, told in servers.items()
    }


def _server(place: str, told: Any, headers: Mapping[str, str], seconds: float) -> Target:
    if not isinstance(told, dict):
        raise click.UsageError(f"{place} is no object")
    strange = sorted(set(told) - _MEMBERS - _PASSED)
    if strange:
        raise click.UsageError(f"{place} has the unknown member {strange[0]!r}")
    url, command = told.get("url"), told.get("command")
    if (url is None) == (command is None):
        raise click.UsageError(f"{place} has one of the members 'command' and 'url'")
    if url is not None:
        own = told.get("headers", {})
        if not isinstance(url, str) or not _is_texts(own):
            raise click.UsageError(f"{place}: url is a text, headers are texts by name")
        for name, value in own.items():
            try:
                check_header(name, value)
            except ValueError as error:
                raise click.UsageError(f"{place}: header {name}: {error}") from None
        return _remote(url, {**headers, **own}, seconds)
    args, env, folder = told.get("args", []), told.get("env", {}), told.get("cwd")
    is_list = isinstance(args, list) and all(isinstance(one, str) for one in args)
    if not (isinstance(command, str) and command and is_list and _is_texts(env)):
        raise click.UsageError(f"{place}: command and args are texts, env is texts by name")
    if folder is not None and not isinstance(folder, str):
        raise click.UsageError(f"{place}: cwd is a text")
    if any("\0" in one for one in (command, *args, *env, *env.values(), folder or "")):
        raise click.UsageError(f"{place}: a text with a zero byte")
    return Program(command=(command, *args), env=env, folder=folder)


def _is_texts(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(one, str) for one in value.values())


def several_servers(server: tuple[str, ...], given: Mapping[str, Any]) -> Mapping[str, Target]:
    """Return several servers by name; empty if one server is given after ``--``.

    Raises:
        click.UsageError: servers are given in more than one way.
    """
    ways = [bool(server), bool(given["named"]), given["servers"] is not None]
    if sum(ways) > 1:
        raise click.UsageError("--server, --servers and a command behind -- exclude each other")
    headers, seconds = given["upstream_headers"], given["deadline"]
    if given["servers"] is not None:
        return servers_in(given["servers"], headers, seconds)
    return named_servers(given["named"], headers, seconds)


def shared_servers(target: Target) -> tuple[Target, tuple[SharedServer, ...]]:
    """Make each program a single process that all sessions share.

    Returns:
        the target with shared programs, and these programs.

    Raises:
        click.UsageError: no server is a program.
    """
    several = dict(target.targets) if isinstance(target, Servers) else {"": target}
    made = {name: SharedServer(one) for name, one in several.items() if isinstance(one, Program)}
    if not made:
        raise click.UsageError("--share-server is for servers that are programs")
    if isinstance(target, Servers):
        return replace(target, targets={**several, **made}), tuple(made.values())
    return made[""], tuple(made.values())


def bound_tools(artifact: Artifact, servers: Mapping[str, Target]) -> dict[str, tuple[str, str]]:
    """Return, for each tool of a grammar, the server's name and the tool's name there.

    Raises:
        click.UsageError: a tool has no `bind mcp`, or names a server that was not given.
    """
    declared, found = declared_bindings(artifact), dict[str, tuple[str, str]]()
    for tool in artifact.core.tools:
        bind = declared.get(tool.name, {})
        if bind.get("kind") != "mcp":
            said = f'bind mcp "NAME" "tool" in the braces of the tool {tool.name}'
            raise click.UsageError(f"several servers: {said} says which of them has it")
        server = str(bind["server"])
        if server not in servers:
            raise click.UsageError(f"the tool {tool.name} is bound to {server!r}: give --server")
        found[tool.name] = server, str(bind["tool"])
    return found


# A gate over HTTP.  Its modules are imported on use.

_GRACE = 10.0


async def serve_http(
    how: Listening,
    hosting: Hosting,
    announce: Callable[[str], None],
    metrics: tuple[str, int] | None = None,
) -> None:
    """Serve a gate over HTTP until SIGTERM or SIGINT.

    After the signal the gate starts no new calls, and calls under way have ten seconds to end.

    Args:
        how: the address and the options of the listener.
        hosting: the gate to serve.
        announce: receives a JSON line with the URL and the process id, once connections are
            accepted.
        metrics: host and port of a separate listener for the metrics; None serves no metrics.

    Raises:
        OSError: the address cannot be bound.
    """
    import asyncio

    from tcc_runtime.mcp.http import Listener
    from tcc_runtime.mcp.metrics import MetricsListener

    listener = Listener(how, hosting)
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    watched = MetricsListener(hosting.metrics, how.names)
    if metrics is not None:
        hosting.note(f"metrics at {await watched.listen(*metrics)}")
    url = await listener.listen()
    announce(json.dumps({"url": url, "pid": os.getpid()}, separators=(",", ":")))
    tending = asyncio.ensure_future(hosting.tend())
    await asked.wait()
    tending.cancel()
    await hosting.stop(_GRACE)
    listener.close()
    watched.close()

"""``tcc import``: makes a grammar from the tools of an MCP server, or of a Python module."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import click

import tcc
from tcc import options, screen
from tcc.files import is_regular, same_file
from tcc.opening import writing
from tcc.screen import CLEAN
from tcc.serving import one_server, servers_in
from tcc_compiler.imports.mcp_grammar import Skeleton, declarations_of, skeleton_of
from tcc_compiler.imports.refresh import refreshed
from tcc_compiler.language.source import Unreadable, decode, read_bytes, source_of
from tcc_runtime.errors import ServerError
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.mcp.links import Target
from tcc_runtime.mcp.links.http_client import Remote
from tcc_runtime.mcp.links.stdio import Program
from tcc_runtime.mcp.lock import DEEPEST_TOOL, lock_text
from tcc_runtime.mcp.server import Protocol, connected
from tcc_runtime.mcp.wire import MalformedMessage, is_deeper, read_json

_MOST_BYTES = 64 << 20


update_option = click.option(
    "--update",
    type=options.INPUT,
    callback=options.is_regular_file,
    help="add to this grammar what came to the tools, and tell what came, went or changed",
)


class NotListed(Exception):
    """The tools cannot be listed: TCC611."""


@click.group("import")
def command() -> None:
    """Make a grammar from existing tools."""


@command.command("mcp", cls=options.WithServer)
@click.argument("file", required=False, type=click.Path(exists=True, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=options.OUTPUT,
    help="file of the grammar; by default the grammar is printed",
)
@click.option(
    "--lock",
    type=options.OUTPUT,
    help="also write a lock of the tools as they are now, for `tcc gate --lock`",
)
@click.option(
    "--config",
    type=options.INPUT,
    callback=options.is_regular_file,
    help="list the tools of all servers in a client's configuration (its member mcpServers)",
)
@click.option(
    "--rewrite",
    type=options.OUTPUT,
    help="also write that configuration with the gate in place of its servers",
)
@update_option
@options.upstream_header_option
@click.option("--name", help="name of the grammar; by default that of the server or of FILE")
@options.overwrite_option
@click.option(
    "--deadline",
    type=click.FloatRange(0.01, 3600),
    default=60.0,
    show_default=True,
    help="limit on each answer of the server, in seconds",
)
@options.protocol_option
@options.json_option
@click.pass_context
def mcp(
    ctx: click.Context,
    /,
    server: tuple[str, ...],
    file: Path | None,
    output: Path | None,
    lock: Path | None,
    config: Path | None,
    rewrite: Path | None,
    update: Path | None,
    upstream_headers: Mapping[str, str],
    name: str | None,
    overwrite: bool,
    deadline: float,
    protocol: str,
    as_json: bool,
) -> None:
    """List the tools of the MCP server COMMAND, or of FILE, and write a grammar of them.

    FILE holds the result of `tools/list`, or the list itself, or a list of functions in the format
    of the APIs of OpenAI or Anthropic. The grammar allows every tool in any order: narrow it.
    Warnings list what a grammar cannot express of the tools' schemas.
    """
    if [file is None, not server, config is None].count(False) != 1:
        raise click.UsageError("give a file, --config, or the command of a server behind --")
    if rewrite is not None and (config is None or output is None):
        raise click.UsageError("--rewrite is for --config, and needs the grammar, -o")
    _require_apart({"-o": output or update, "--lock": lock, "--rewrite": rewrite})
    bound: dict[str, tuple[str, str]] = {}
    try:
        if config is not None:
            servers = servers_in(config, upstream_headers, deadline)
            tools, bound = _tools_of_all(servers, deadline, cast(Protocol, protocol))
            known = config.stem
        elif file is not None:
            tools, known = tools_in(file), file.stem
        else:
            command = one_server(server, upstream_headers, deadline)
            tools, known = _tools_of(command, deadline, cast(Protocol, protocol))
        locked = lock_text(tools)
    except ServerError as error:
        raise NotListed(f"TCC611: {error}") from None
    read = config or file
    if update is not None:
        write_text(lock, locked, overwrite, read)
        _update(update, output, tools, bound, overwrite, as_json)
        ctx.exit(CLEAN)
    skeleton = skeleton_of(tools, identifier(name or known), bound)
    if rewrite is not None and read is not None and same_file(rewrite, [read]):
        raise click.ClickException(f"{rewrite} is what is read")
    write_text(output, skeleton.text, overwrite, read)
    write_text(lock, locked, overwrite, read)
    if rewrite is not None and output is not None and config is not None:
        _rewrite(rewrite, output, config, lock, overwrite)
    _report(skeleton, tools, output, as_json)
    ctx.exit(CLEAN)


def _update(
    path: Path,
    output: Path | None,
    tools: Sequence[Mapping[str, Any]],
    bound: Mapping[str, tuple[str, str]],
    overwrite: bool,
    as_json: bool,
) -> None:
    """Update a grammar to the current tools: add new tools, and print what changed.

    Raises:
        click.ClickException: the grammar has syntax errors.
    """
    declared, warnings = declarations_of(tools, bound)
    data = read_bytes(path)
    text = decode(data) if isinstance(data, bytes) else data
    if isinstance(text, Unreadable):
        raise click.ClickException(f"{path}: {text.code}: {text.message}")
    found = refreshed(source_of(text, str(path), path), declared)
    for item in found.diagnostics:
        raise click.ClickException(f"{path}: {item.code}: {item.message}")
    if output is None:
        with writing(path):
            write_whole(path, found.text.encode())
    else:
        write_text(output, found.text, overwrite, path)
    if as_json:
        from tcc.outputs.grammars import ImportOutput, SkeletonWarningJson, ToolChangeJson

        screen.print_output(
            ImportOutput(
                tools=len(tools),
                diagnostics=[
                    SkeletonWarningJson(code=item.code, place=item.place, message=item.message)
                    for item in warnings
                ],
                grammar=found.text,
                changes=[
                    ToolChangeJson(
                        kind=one.kind, tool=one.tool, field=one.field or None, old=one.old or None,
                        new=one.new or None,
                    )
                    for one in found.changes
                ],
            )
        )  # fmt: skip
        return
    for one in found.changes:
        place = f"{one.tool}.{one.field}" if one.field else one.tool
        texts = " -> ".join(text for text in (one.old, one.new) if text and one.kind == "changed")
        screen.say(f"{one.kind}: {place}{f': {texts}' if texts else ''}")
    screen.good(f"{output or path}: {len(found.changes)} changes of {len(tools)} tools")


def _tools_of_all(
    servers: Mapping[str, Target], seconds: float, protocol: Protocol
) -> tuple[Sequence[Mapping[str, Any]], dict[str, tuple[str, str]]]:
    """List the tools of several servers.

    Returns:
        the tools, and for each tool's name the server's name and the tool's name there.  A name
        that several servers use becomes SERVER_TOOL.

    Raises:
        ServerError: two tools would still have the same name.
    """
    found: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for server, command in servers.items():
        screen.warn(f"starts {server}: {_shown(command)}")
        for tool in _tools_of(command, seconds, protocol)[0]:
            found.setdefault(tool["name"], []).append((server, tool))
    tools, bound = [], {}
    for name, of in found.items():
        for server, tool in of:
            own = name if len(of) == 1 else f"{server}_{name}"
            if own in bound or (own != name and own in found):
                raise ServerError(f"two tools would have the name {own!r}: rename a server")
            tools.append({**tool, "name": own})
            bound[own] = server, name
    return tools, bound


def _shown(target: Target) -> str:
    """Return the command line or the URL of a server, without its environment and headers."""
    if isinstance(target, Remote):
        return target.url
    return shlex.join(target.command) if isinstance(target, Program) else "a server"


def _require_apart(written: Mapping[str, Path | None]) -> None:
    """Check that the outputs are different files; otherwise the last one would replace the others.

    Raises:
        click.UsageError: two outputs are the same file.
    """
    taken: dict[Path, str] = {}
    for name, path in written.items():
        if path is None:
            continue
        for known, first in taken.items():
            if path.resolve() == known or same_file(path, [known]):
                raise click.UsageError(f"{first} and {name} are one file, {path}")
        taken[path.resolve()] = name


def _rewrite(path: Path, grammar: Path, config: Path, lock: Path | None, overwrite: bool) -> None:
    """Write a client configuration whose only server is the gate, which starts the old servers.

    The servers' environments stay in the old configuration; no command line contains them.
    """
    if not overwrite and (path.exists() or path.is_symlink()):
        raise click.ClickException(f"{path} is there; give --overwrite to replace it")
    store = grammar.absolute().with_suffix(".sessions")
    args = ["gate", str(grammar.absolute()), "--store", str(store)]
    args += ["--servers", str(config.absolute())]
    args += [] if lock is None else ["--lock", str(lock.absolute())]
    document = {"mcpServers": {"tcc": {"command": "tcc", "args": args}}}
    data = (json.dumps(document, indent=2) + "\n").encode()
    with writing(path):
        path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)


def _tools_of(
    target: Target, seconds: float, protocol: Protocol
) -> tuple[Sequence[Mapping[str, Any]], str]:
    async def look() -> tuple[Sequence[Mapping[str, Any]], str]:
        version = tcc.__version__
        async with connected(target, protocol, seconds=seconds, version=version) as server:
            known = server.info.get("name")
            return await server.tools(), known if isinstance(known, str) else "server"

    return asyncio.run(look())


def tools_in(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the tools in a file, as MCP describes them.

    Raises:
        ServerError: the file contains no list of tools.
    """
    if not is_regular(path) or path.stat().st_size > _MOST_BYTES:
        raise ServerError(f"{path} is no file of tools")
    try:
        found = read_json(path.read_bytes())
    except MalformedMessage as error:
        raise ServerError(f"{path} is no JSON: {error}") from None
    for member in ("result", "tools"):
        if isinstance(found, dict) and member in found:
            found = found[member]
    tools = [_described(tool) for tool in found] if isinstance(found, list) else None
    if tools is None or not all(_is_tool(tool) for tool in tools):
        raise ServerError(f"{path} has no list of tools")
    if any(is_deeper(tool, DEEPEST_TOOL) for tool in tools):
        raise ServerError(f"{path} has a tool that is nested too deeply")
    names = [tool["name"] for tool in tools]
    require_distinct(names, str(path))
    return tools


def require_distinct(names: Iterable[str], where: str) -> None:
    """Check that all tools have different names.

    Raises:
        ServerError: two tools have the same name.
    """
    known: set[str] = set()
    for name in names:
        if name in known:
            raise ServerError(f"{where} lists the tool {name!r} twice: rename or remove one")
        known.add(name)


def _described(tool: Any) -> Any:
    """Convert a function in the format of OpenAI's or Anthropic's API to MCP's description."""
    if not isinstance(tool, dict):
        return tool
    if tool.get("type") == "function":  # OpenAI: chat completions nest it, responses do not
        inner = tool.get("function", tool)
        if not isinstance(inner, dict):
            return tool
        schema = inner.get("parameters", {})
    elif "input_schema" in tool:  # Anthropic
        inner, schema = tool, tool["input_schema"]
    else:
        return tool
    described = {name: inner[name] for name in ("name", "description") if name in inner}
    return {**described, "inputSchema": schema}


def _is_tool(tool: object) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str)


def identifier(text: str) -> str:
    """Return a grammar's name: replace all characters except letters, digits and ``_`` by ``_``."""
    made = re.sub(r"[^A-Za-z0-9_]", "_", text)[:100] or "server"
    return f"tools_{made}" if made[0].isdigit() else made


def write_text(path: Path | None, text: str, overwrite: bool, read: Path | None) -> None:
    """Write a text to a file; do nothing if `path` is None.

    Raises:
        click.ClickException: the path is an input, or exists and `overwrite` is false.
    """
    if path is None:
        return
    if read is not None and same_file(path, [read]):
        raise click.ClickException(f"{path} is what is read")
    if not overwrite and (path.exists() or path.is_symlink()):
        raise click.ClickException(f"{path} is there; give --overwrite to replace it")
    with writing(path):
        write_whole(path, text.encode())


def _report(
    skeleton: Skeleton, tools: Sequence[Mapping[str, Any]], output: Path | None, as_json: bool
) -> None:
    if as_json:
        from tcc.outputs.grammars import ImportOutput, SkeletonWarningJson

        warnings = [
            SkeletonWarningJson(code=item.code, place=item.place, message=item.message)
            for item in skeleton.warnings
        ]
        output_json = ImportOutput(tools=len(tools), diagnostics=warnings, grammar=skeleton.text)
        screen.print_output(output_json)
        return
    for item in skeleton.warnings:
        screen.warn(f"{item.code} warning: {item.place}: {item.message}")
    if output is None:
        screen.say_lines(skeleton.text.rstrip("\n"))
    else:
        screen.good(f"{len(tools)} tools to {output}; now narrow it")


@command.command("python")
@click.argument("place", metavar="MODULE:NAME")
@click.option(
    "-o",
    "--output",
    type=options.OUTPUT,
    help="file of the grammar; by default the grammar is printed",
)
@update_option
@click.option("--name", help="name of the grammar; by default that of the module")
@options.overwrite_option
@options.json_option
@click.pass_context
def python(
    ctx: click.Context,
    /,
    place: str,
    output: Path | None,
    update: Path | None,
    name: str | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Write a grammar of the tools that a Python module has.

    NAME is a tool of LangChain, OpenAI Agents or Pydantic AI, a function with annotations, or a
    list, mapping or toolset of these. The library of a tool derives its schema, and pydantic that
    of a function. The module is imported, and no tool is called.
    """
    from tcc.importing import tools_of_module

    try:
        tools = tools_of_module(place)
        require_distinct([str(tool["name"]) for tool in tools], place)
        if any(is_deeper(tool, DEEPEST_TOOL) for tool in tools):
            raise ServerError(f"{place} has a tool that is nested too deeply")
    except ServerError as error:
        raise NotListed(f"TCC611: {error}") from None
    if update is not None:
        _update(update, output, tools, {}, overwrite, as_json)
        ctx.exit(CLEAN)
    module = place.partition(":")[0].rpartition(".")[2]
    skeleton = skeleton_of(tools, identifier(name or module), source="the module")
    write_text(output, skeleton.text, overwrite, None)
    _report(skeleton, tools, output, as_json)
    ctx.exit(CLEAN)

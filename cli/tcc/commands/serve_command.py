"""``tcc serve mcp``: serves an artifact's plans as MCP tools, for agents that plan before they act.

The server has five tools over one artifact; none calls a tool of the grammar.  Arguments are
external input: each one is checked, and a wrong one gives an error result.  A search has a time
limit.  The other tools are linear in their arguments.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import tcc
from tcc.library.running import run_fields
from tcc.opening import open_bounded
from tcc.options import digest_option, served_argument
from tcc_certs.errors import Rejected
from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.root import read_calls
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.arguments import plain
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session_access import Home
from tcc_runtime.mcp.deciding import refusal_result
from tcc_runtime.mcp.serving import serve


@click.group("serve")
def command() -> None:
    """Serve an artifact to other programs."""


@command.command("mcp")
@served_argument
@digest_option(
    "--checked",
    "digest of an artifact whose certificates were checked before: "
    "check only that the artifact has this digest",
)
@click.pass_context
def mcp(ctx: click.Context, /, artifact: Path, checked: bytes | None) -> None:
    """Serve ARTIFACT (or a grammar, compiled on the spot) over stdio, as five MCP tools.

    route searches for the best plans, allowed lists the calls that may follow given calls, check
    decides one call, validate validates a ledger, explain explains a code. No tool of the grammar
    is called.
    """
    opened = open_bounded(artifact, command="serve", checked=checked)
    planner = Planner(opened)
    info = {"name": f"tcc {opened.core.name}", "version": tcc.__version__}
    said = f"Plans of the grammar {opened.core.name}. They plan and check, and call nothing."
    serve(planner.tools(), planner.call, info=info, instructions=said)
    ctx.exit(0)


_TEXTS: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}, "maxItems": 1000}


def _tool(name: str, description: str, properties: Mapping[str, Any], *required: str) -> Any:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = list(required)
    return {
        "name": name,
        "description": description,
        "inputSchema": {**schema, "additionalProperties": False},
        "annotations": {"readOnlyHint": True, "openWorldHint": False},
    }


TOOLS: Sequence[Mapping[str, Any]] = (
    _tool(
        "allowed",
        "The calls that plans allow after the calls in `after` (in order), and "
        "whether a plan may end there.",
        {"after": _TEXTS},
    ),
    _tool(
        "check",
        "Whether these calls may be made in this order, with these arguments: the first that may "
        "not be made, why, and what is allowed there instead. Nothing is called.",
        {
            "calls": {
                "type": "array",
                "maxItems": 1000,
                "items": {
                    "type": "object",
                    "properties": {
                        "tool": {"type": "string"},
                        "arguments": {"type": "object"},
                        "observed": {"type": "object"},
                    },
                    "required": ["tool"],
                    "additionalProperties": False,
                },
            },
            "given": {"type": "object", "description": "what the session is given, by name"},
        },
        "calls",
    ),
    _tool(
        "explain",
        "What a code of a refusal, a diagnostic or a finding means.",
        {"code": {"type": "string"}},
        "code",
    ),
    _tool(
        "route",
        "Search for the best plans, at most 10 seconds: the calls of each, its cost, and what is "
        "claimed. `after` are calls that were made already.",
        {
            "top": {"type": "integer", "minimum": 1, "maximum": 16},
            "after": _TEXTS,
            "seed": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
        },
    ),
    _tool(
        "validate",
        "Whether a ledger, given as its text, is the record of a run or session over these plans.",
        {"ledger": {"type": "string"}},
        "ledger",
    ),
)


_SECONDS = 10.0
_MOST = 1000
_LISTED = 200


class _Wrong(Exception):
    """An argument is invalid; the text goes to the client."""


class Planner:
    """The five tools over one artifact."""

    def __init__(self, artifact: Artifact) -> None:
        self._artifact = artifact
        self._calls: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
            "route": self._route,
            "allowed": self._allowed,
            "check": self._check,
            "validate": self._validate,
            "explain": self._explain,
        }

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Return the descriptions of the tools, for `tools/list`."""
        return TOOLS

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call a tool and return its MCP result; wrong arguments give an error result."""
        known = next((one for one in TOOLS if one["name"] == tool), None)
        try:
            if known is None:
                raise _Wrong(f"there is no tool of that name; there are {', '.join(self._calls)}")
            for name in arguments:
                if name not in known["inputSchema"]["properties"]:
                    raise _Wrong(f"{tool} has no argument {json.dumps(name[:80])}")
            found = self._calls[tool](arguments)
        except (_Wrong, Rejected, SettingsError) as error:
            return _result({"error": str(error)}, error=True)
        return _result(found)

    def _route(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        from tcc.library.running import search

        top = _whole(arguments, "top", 1, 1, 16)
        seed = arguments.get("seed")
        if seed is not None and not (isinstance(seed, str) and re.fullmatch("[0-9a-f]{64}", seed)):
            raise _Wrong("seed: 64 hexadecimal digits")
        more: dict[str, Any] = {"after": after} if (after := _texts(arguments, "after")) else {}
        drawn = None if seed is None else bytes.fromhex(seed)
        run = search(self._artifact, seed=drawn, top=top, max_seconds=_SECONDS, **more)
        kept = ("mode", "claim_type", "plans", "seed", "gap")
        fields = run_fields(run)
        return {name: fields[name] for name in kept if fields.get(name) is not None}

    def _allowed(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        members: tuple[int, ...] = (self._artifact.root,)
        after = read_calls(self._artifact.core, _texts(arguments, "after"))
        for place, text in enumerate(after):
            found = self._following(members)
            if text not in found:
                shown = sorted(found)[:_LISTED]
                return {"refused": place, "call": text, "allowed": shown, "may_finish": False}
            members = found[text]
        following = sorted(self._following(members))
        return {
            "allowed": following[:_LISTED],
            "left_out": max(0, len(following) - _LISTED),
            "may_finish": any(map(self._artifact.accepts, members)),
        }

    def _following(self, members: tuple[int, ...]) -> Mapping[str, tuple[int, ...]]:
        texts = self._artifact.texts
        return {texts[call]: targets for call, targets in self._artifact.steps(members)}

    def _check(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        calls = arguments.get("calls")
        if not isinstance(calls, list) or len(calls) > _MOST:
            raise _Wrong(f"calls: a list of at most {_MOST} calls")
        # This gate only answers, so it records nothing and counts nothing across sessions.
        gate = Gate(self._artifact, given=arguments.get("given"), home=Home(recorded=False))
        for place, call in enumerate(calls):
            tool, given, observed = _call(call, place)
            try:
                with gate.call(tool, given) as permit:
                    permit.done(observed=observed)
            except Refused as refusal:
                said = refusal_result(refusal)["structuredContent"]
                return {"allowed": False, "refused": place, **said}
        return {"allowed": True, "calls": len(calls), "may_finish": gate.may_finish}

    def _validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        from tcc.describe import to_json
        from tcc.library.validation import validate

        ledger = arguments.get("ledger")
        if not isinstance(ledger, str):
            raise _Wrong("ledger: the text of a ledger")
        data = bytes(write_container(self._artifact.file.columns))
        return to_json(validate(ledger.encode("utf-8", "replace"), data))

    def _explain(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        from tcc.code_pages import explain_code
        from tcc_compiler.language.catalogue import explain

        code = arguments.get("code")
        text = None
        if isinstance(code, str):
            text = explain(code.upper()) or explain_code(code.upper())
        if text is None:
            raise _Wrong("code: there is no such code")
        return {"text": text}


def _call(call: object, place: int) -> tuple[str, Mapping[str, Any], Mapping[str, Any] | None]:
    known = isinstance(call, dict) and call.keys() <= {"tool", "arguments", "observed"}
    if not isinstance(call, dict) or not known or not isinstance(call.get("tool"), str):
        raise _Wrong(f"calls: number {place} has no tool, or more than arguments and observed")
    given, observed = call.get("arguments", {}), call.get("observed")
    if not isinstance(given, dict) or not (observed is None or isinstance(observed, dict)):
        raise _Wrong(f"calls: arguments and observed of number {place} are objects")
    return call["tool"], given, observed


def _texts(arguments: Mapping[str, Any], name: str) -> tuple[str, ...]:
    found = arguments.get(name, [])
    if not isinstance(found, list) or len(found) > _MOST:
        raise _Wrong(f"{name}: a list of at most {_MOST} texts of calls")
    if not all(isinstance(text, str) for text in found):
        raise _Wrong(f"{name}: texts of calls, such as search(depth=2)")
    return tuple(found)


def _whole(arguments: Mapping[str, Any], name: str, usual: int, low: int, high: int) -> int:
    value = arguments.get(name, usual)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise _Wrong(f"{name}: a whole number from {low} to {high}")
    return value


def _result(found: Mapping[str, Any], *, error: bool = False) -> Mapping[str, Any]:
    told = plain(found)
    text = json.dumps(told, ensure_ascii=True)
    result = {"content": [{"type": "text", "text": text}], "structuredContent": told}
    return {**result, "isError": True} if error else result

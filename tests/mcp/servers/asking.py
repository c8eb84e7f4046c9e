"""An MCP server written by hand, as since 2026-07-28, that asks as the `id` of a call says.

With ``HANDSHAKE`` it speaks as before that, and asks all the same.
Each call that comes, with all that comes with it, is appended to ``EXECUTED``.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

VERSION = "2026-07-28"
SCHEMA = {"type": "object", "properties": {"id": {"type": "string"}, "amount": {"type": "integer"}}}
TOOLS = [{"name": name, "inputSchema": SCHEMA} for name in ("open_case", "refund", "look")]
out = sys.stdout.buffer


def say(identity: object, result: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": identity, "result": {"resultType": "complete", **result}}
    out.write(json.dumps(message).encode() + b"\n")
    out.flush()


def form(text: str = "sure?") -> dict[str, Any]:
    asked = {"message": text, "requestedSchema": {"type": "object", "properties": {}}}
    return {"method": "elicitation/create", "params": asked}


def call(identity: object, params: dict[str, Any]) -> None:
    how = params.get("arguments", {}).get("id", "")
    state = params.get("requestState")
    done = {"content": [{"type": "text", "text": f"done {how}"}]}
    more: dict[str, Any] = {"resultType": "input_required"}
    asks = {**more, "inputRequests": {"a": form()}, "requestState": "s"}
    match how.split(":"):
        case ["ask", rounds, *_]:
            number = 1 + int((state or "s0")[1:])
            if number > int(rounds):
                say(identity, done)
            else:
                say(identity, {**asks, "requestState": f"s{number}"})
        case ["silent"]:
            answered = params.get("inputResponses")
            say(identity, done if answered else {**more, "inputRequests": {"a": form()}})
        case ["state", size]:
            say(identity, done if state else {**more, "requestState": "x" * int(size)})
        case ["wide", size]:
            # Not in ASCII: as long as it is short.
            told = {
                "jsonrpc": "2.0",
                "id": identity,
                "result": {**asks, "requestState": "\U0001f600" * int(size)},
            }
            if state:
                say(identity, {"content": [{"type": "text", "text": str(len(state))}]})
                return
            out.write(json.dumps(told, ensure_ascii=False).encode() + b"\n")
            out.flush()
        case ["many", size]:
            say(identity, {**more, "inputRequests": {str(at): form() for at in range(int(size))}})
        case ["method", *method]:
            asked = {"method": ":".join(method), "params": {}}
            say(
                identity,
                done if state else {**more, "inputRequests": {"a": asked}, "requestState": "s"},
            )
        case ["params", *text]:
            asked = json.loads(":".join(text))
            say(
                identity,
                done if state else {**more, "inputRequests": {"a": asked}, "requestState": "s"},
            )
        case ["raw", *text]:
            say(identity, {**more, **json.loads(":".join(text))})
        case ["twice"]:
            if not state:
                say(identity, {**more, "requestState": "s"})
            say(identity, done)
        case ["hang"]:
            if not state:
                say(identity, asks)
        case ["late"]:
            if state:
                time.sleep(1.5)
                say(identity, done)
            else:
                say(identity, asks)
        case ["progress"]:
            if not state:
                say(identity, {**more, "requestState": "s"})
                return
            token = params["_meta"]["progressToken"]
            told = {"progressToken": token, "progress": 0.5}
            line = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
            out.write(json.dumps(line).encode() + b"\n")
            say(identity, done)
        case _:
            say(identity, done)


def main() -> None:
    for raw in sys.stdin:
        message = json.loads(raw)
        identity, method, params = (message.get(name) for name in ("id", "method", "params"))
        if method in ("tools/call", "notifications/cancelled"):
            with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as log:
                log.write(json.dumps({"name": method, "arguments": params}) + "\n")
        if identity is None or method is None:
            continue
        if method == "initialize" and "HANDSHAKE" in os.environ:
            told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            say(identity, told)
        elif method == "server/discover":
            say(identity, {"supportedVersions": [VERSION], "capabilities": {"tools": {}}})
        elif method == "tools/list":
            say(identity, {"tools": TOOLS})
        elif method == "tools/call":
            call(identity, params)
        else:
            error = {"code": -32601, "message": method}
            out.write(
                json.dumps({"jsonrpc": "2.0", "id": identity, "error": error}).encode() + b"\n"
            )
            out.flush()


main()

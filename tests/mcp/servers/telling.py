"""An MCP server written by hand, of the handshake, that offers what ``OFFERS`` says.

A resource is answered with as its URI says; every request but lists of tools is appended to
``EXECUTED``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

OFFERS = {"resources": {"subscribe": True, "listChanged": True}, "prompts": {"listChanged": True}}
ID = {"type": "object", "properties": {"id": {"type": "string"}}}
TOOLS = [{"name": name, "inputSchema": ID} for name in ("open_case", "refund")]
UPDATED = "notifications/resources/updated"
out = sys.stdout.buffer


def say(message: dict[str, Any]) -> None:
    out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    out.flush()


def tell(method: str, **params: Any) -> None:
    say({"method": method, "params": params})


def read(identity: object, params: dict[str, Any]) -> None:
    uri = str(params.get("uri"))
    contents = {"contents": [{"uri": uri, "text": "x"}]}
    match uri.split(":"):
        case ["hang"]:
            return
        case ["error"]:
            say({"id": identity, "error": {"code": -32002, "message": "no such thing"}})
        case ["input"]:
            say({"id": identity, "result": {"resultType": "input_required", "requestState": "s"}})
        case ["number"]:
            say({"id": identity, "result": 5})
        case ["twins"]:
            out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"a":1,"a":2}}\n' % identity)
            out.flush()
        case ["exact"]:
            out.write(b'{"jsonrpc":"2.0","id":%d,"result":{"contents":[],"n":1.10,"_meta":{"a":1}'
                      b',"ttlMs":9,"cacheScope":"public"}}\n' % identity)  # fmt: skip
            out.flush()
        case ["huge", size]:
            contents["contents"][0]["text"] = "x" * int(size)
            say({"id": identity, "result": contents})
        case ["twice"]:
            say({"id": identity, "result": contents})
            say({"id": identity, "error": {"code": -32002, "message": "again"}})
        case ["progress"]:
            for token in (params["_meta"]["progressToken"], 77, "foreign"):
                tell("notifications/progress", progressToken=token, progress=0.5)
            say({"id": identity, "result": contents})
        case ["tells"]:
            tell(UPDATED, uri="file:///a", more="private")
            tell(UPDATED, uri=5)
            tell("notifications/resources/list_changed", _meta={"x": 1})
            tell("notifications/prompts/list_changed")
            tell("notifications/message", level="info", data="a log")
            tell("notifications/other")
            say({"id": identity, "result": contents})
        case _:
            say({"id": identity, "result": contents})


def main() -> None:
    for raw in sys.stdin:
        message = json.loads(raw)
        identity, method, params = (message.get(name) for name in ("id", "method", "params"))
        if method not in ("initialize", "notifications/initialized", "tools/list"):
            with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as log:
                log.write(json.dumps({"name": method, "arguments": params}) + "\n")
        if identity is None or method is None:
            continue
        if method == "initialize":
            offers = json.loads(os.environ.get("OFFERS", "null")) or OFFERS
            info = {"name": "telling", "version": "1"}
            told = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, **offers}}
            say({"id": identity, "result": {**told, "serverInfo": info}})
        elif method == "tools/list":
            say({"id": identity, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            say({"id": identity, "result": {"content": []}})
        elif method == "resources/read":
            read(identity, params)
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            say({"id": identity, "result": {}})
            tell(UPDATED, uri=params["uri"])
        else:
            say({"id": identity, "result": {"asked": method}})


main()

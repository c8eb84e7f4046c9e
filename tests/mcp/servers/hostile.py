"""An MCP server written by hand: each call says in `how` what it is to be answered with.

Every call that is really executed is appended to the file that ``EXECUTED`` names.  With ``TOOLS``
a JSON list takes the place of its tools; ``GREETING`` is printed before anything else; a list of
tools takes ``LIST_SECONDS``; with ``STUBBORN`` neither the end of its input nor a signal ends it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

TEXT = {"type": "string"}
IDENTITY = {"type": "string", "pattern": "^c-[0-9]{1,4}$"}


def tool(name: str, **properties: object) -> dict[str, object]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"does {name}", "inputSchema": schema}


TOOLS = [
    tool("open_case", id=IDENTITY),
    tool("act", kind={"enum": ["safe", "risky"]}, how=TEXT, id=IDENTITY),
    tool("delete_case", id=IDENTITY, how=TEXT),
    tool("run_tests", suite={"enum": ["unit", "all"]}, how=TEXT),
    tool("never"),
]
LIST = {"seconds": os.environ.get("LIST_SECONDS", "0"), "error": ""}
out = sys.stdout.buffer


def write(data: bytes) -> None:
    out.write(data)
    out.flush()


def say(message: object) -> None:
    write(json.dumps(message).encode() + b"\n")


def result(identity: object, **more: object) -> None:
    content = [{"type": "text", "text": "ok"}]
    say({"jsonrpc": "2.0", "id": identity, "result": {"content": content, **more}})


def answer(identity: object, how: str, params: dict[str, object]) -> None:
    whole = {"jsonrpc": "2.0", "id": identity, "result": {"content": []}}
    line = json.dumps(whole).encode() + b"\n"
    match how.split(":"):
        case ["noise"]:
            write(b"Listening on stdio ...\n\n\x1b[31mwarn\n")
            result(identity)
        case ["nan"]:
            write(line.replace(b"[]", b'[],"structuredContent":{"x":NaN}'))
        case ["twins"]:
            write(line.replace(b"[]", b'[],"isError":true,"isError":false'))
        case ["batch"]:
            write(b"[" + line.strip() + b"]\n")
        case ["twice"]:
            result(identity)
            result(identity, isError=True)
        case ["hang"]:
            pass
        case ["late", seconds]:
            time.sleep(float(seconds))
            result(identity)
        case ["late_pass", seconds]:
            time.sleep(float(seconds))
            result(identity, structuredContent={"result": "pass"})
        case ["late_gives", seconds, value]:
            time.sleep(float(seconds))
            result(identity, structuredContent={"result": json.loads(value)})
        case ["deep", depth]:
            write(line.replace(b"[]", b'[],"structuredContent":{"x":' + b"[" * int(depth)
                + b"]" * int(depth) + b"}"))  # fmt: skip
        case ["kind", kind]:
            result(identity, resultType=kind)
        case ["garbage", seed]:
            chance, all_of_it = random.Random(seed), bytearray()
            for _ in range(200):
                junk = bytearray(line)
                for _ in range(chance.randint(1, 4)):
                    junk[chance.randrange(len(junk) - 1)] = chance.choice(b'{}[]",:0x\\\xff')
                all_of_it += junk
            # At once: what came later would be taken for an answer to the call behind.
            write(bytes(all_of_it))
            result(identity)
        case ["crash"]:
            os._exit(3)
        case ["half_crash"]:
            write(line[:20])
            os._exit(3)
        case ["huge", size]:
            result(identity, structuredContent={"x": "x" * int(size)})
        case ["stranger"]:
            say({"jsonrpc": "2.0", "id": 987654, "result": {"content": []}})
            say({"jsonrpc": "2.0", "id": "x", "result": {"content": []}})
            result(identity)
        case ["utf8"]:
            write(line.replace(b"[]", b'[{"type":"text","text":"\xff\xfe"}]'))
        case ["slow"]:
            for at in range(len(line)):
                write(line[at : at + 1])
                time.sleep(0.005)
        case ["asks"]:
            for number, method in enumerate(("sampling/createMessage", "roots/list", "ping")):
                say({"jsonrpc": "2.0", "id": f"s{number}", "method": method, "params": {}})
            replies = [json.loads(sys.stdin.readline()) for _ in range(3)]
            result(identity, structuredContent={"replies": replies})
        case ["input_required"]:
            say(
                {
                    "jsonrpc": "2.0",
                    "id": identity,
                    "result": {"resultType": "input_required", "requestState": "x"},
                }
            )
        case ["quote"]:
            said = f"no such case: {params['arguments']}"
            say({"jsonrpc": "2.0", "id": identity, "error": {"code": -32050, "message": said}})
        case ["quote_list"]:
            LIST["error"] = f"no list for {params['arguments']}"
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(identity)
        case ["slow_list", seconds]:
            LIST["seconds"] = seconds
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(identity)
        case ["error"]:
            say({"jsonrpc": "2.0", "id": identity, "error": {"code": -32050, "message": "no luck"}})
        case ["error", code]:
            error = {"code": int(code), "message": "no luck"}
            say({"jsonrpc": "2.0", "id": identity, "error": error})
        case ["is_error"]:
            result(identity, isError=True)
        case ["shape"]:
            say({"jsonrpc": "2.0", "id": identity, "result": {"content": "ok"}})
        case ["number"]:
            say({"jsonrpc": "2.0", "id": identity, "result": 5})
        case ["grow"]:
            TOOLS.append(tool("new_tool"))
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(identity)
        case ["drift"]:
            TOOLS[1]["description"] = "does something else"
            say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            result(identity)
        case ["progress"]:
            meta = params.get("_meta", {})
            token = meta["progressToken"] if isinstance(meta, dict) else None
            for other in (token, "foreign"):
                told = {"progressToken": other, "progress": 0.5, "message": "half"}
                say({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            result(identity)
        case ["exact"]:
            write(line.replace(b"[]", b'[],"structuredContent":{"n":1e999,"m":1.10}'))
        case ["gives", value]:
            result(identity, structuredContent={"result": json.loads(value)})
        case _:
            result(identity)


def main() -> None:
    global TOOLS
    if os.environ.get("TOOLS"):
        TOOLS = json.loads(os.environ["TOOLS"])
    write(os.environ.get("GREETING", "").encode())
    info = {"name": "hostile", "version": "1"}
    capabilities = {"tools": {"listChanged": True}, "logging": {}, "resources": {}, "prompts": {}}
    if os.environ.get("STUBBORN"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for raw in sys.stdin:
        message = json.loads(raw)
        identity, method = message.get("id"), message.get("method")
        if identity is None or method is None:
            continue
        if method == "initialize":
            told = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
            say({"jsonrpc": "2.0", "id": identity, "result": {**told, "serverInfo": info}})
        elif method == "tools/list" and LIST["error"]:
            error = {"code": -32051, "message": LIST["error"]}
            say({"jsonrpc": "2.0", "id": identity, "error": error})
        elif method == "tools/list":
            time.sleep(float(LIST["seconds"]))
            say({"jsonrpc": "2.0", "id": identity, "result": {"tools": TOOLS}})
        elif method == "tools/call":
            params = message["params"]
            with Path(os.environ["EXECUTED"]).open("a", encoding="utf-8") as log:
                log.write(json.dumps(params) + "\n")
            answer(identity, params.get("arguments", {}).get("how", ""), params)
        else:
            error = {"code": -32601, "message": method}
            say({"jsonrpc": "2.0", "id": identity, "error": error})
    while os.environ.get("STUBBORN"):
        time.sleep(60)


main()

"""A server over HTTP that is written by hand, and misbehaves as it is told to."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Odd:
    """A server that answers as it is told to, and notes what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.how: dict[str, Any] = {}
        self.connections: list[socket.socket] = []
        self.session = "s1"
        odd = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                super().setup()
                odd.connections.append(self.connection)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                odd.seen.append((self.path, dict(self.headers), body))
                method = body.get("method", "answer")
                how = odd.how.get(method)
                sent = self.headers.get("mcp-session-id")
                if sent is not None and sent != odd.session:
                    self.say(404, b"")
                elif how is not None:
                    how(self, body)
                elif "id" not in body or "method" not in body:
                    self.say(202, b"")
                elif method == "initialize":
                    told = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
                    self.result(body, told, ("Mcp-Session-Id", odd.session))
                else:
                    self.result(body, {"content": []})

            def do_DELETE(self) -> None:
                odd.seen.append(("DELETE", dict(self.headers), None))
                self.say(204, b"")

            def result(self, body: Any, result: Any, *headers: tuple[str, str]) -> None:
                whole = {"jsonrpc": "2.0", "id": body["id"], "result": result}
                self.say(200, json.dumps(whole).encode(), *headers)

            def say(
                self,
                status: int,
                data: bytes,
                *headers: tuple[str, str],
                kind: str = "application/json",
            ) -> None:
                self.send_response(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/mcp?a=b"

    def methods(self) -> list[str]:
        return [body.get("method", "answer") for _, _, body in self.seen if body is not None]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        for connection in self.connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

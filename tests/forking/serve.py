"""The process that is forked: imports, and forks for each request until its input ends."""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

# What processes of a kind import, with all that is in these packages.
IMPORTS: Final[Mapping[str, Sequence[str]]] = {
    "tcc": ("tcc.commands", "tcc.outputs", "tcc_certs", "tcc_compiler", "tcc_runtime"),
    "sdk": ("mcp.server.mcpserver", "mcp.types", "pydantic", "uvicorn"),
}


def make_imports(kind: str) -> None:
    for package in IMPORTS[kind]:
        module = importlib.import_module(package)
        if kind == "tcc":
            for found in pkgutil.walk_packages(module.__path__, f"{package}."):
                if not found.name.endswith(".__main__"):
                    importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def asked(link: socket.socket) -> tuple[Any, list[int]]:
    """A request for a process and its pipes; None where whoever connected is gone."""
    data, pipes, *_ = socket.recv_fds(link, 1 << 16, 3)
    while not data.endswith(b"\n"):
        if not (more := link.recv(1 << 16)):
            return None, pipes
        data += more
    return json.loads(data), pipes


def tell(link: socket.socket, number: int) -> None:
    with suppress(BrokenPipeError):
        link.sendall(number.to_bytes(8, "big", signed=True))


def serve(listening: socket.socket) -> Any:
    """Fork for each request; return the request in the process that was forked."""
    wakes, wakened = socket.socketpair()
    wakened.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakened.fileno(), warn_on_full_buffer=False)
    children: dict[socket.socket, int] = {}
    while True:
        ready, _, _ = select.select([0, listening, wakes, *children], [], [])
        if 0 in ready:
            for pid in children.values():
                os.kill(pid, signal.SIGKILL)
            sys.exit()
        for link in [one for one in ready if one in children]:
            # Whoever asked for it is gone, so it is wanted no more.
            os.kill(children[link], signal.SIGKILL)
        if wakes in ready:
            wakes.recv(1 << 12)
        for link, pid in list(children.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                tell(link, os.waitstatus_to_exitcode(status))
                del children[link]
                link.close()
        if listening not in ready:
            continue
        link, _ = listening.accept()
        request, pipes = asked(link)
        if request is None:
            link.close()
        elif (pid := os.fork()) == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for place, pipe in enumerate(pipes):
                os.dup2(pipe, place)
            for other in (listening, wakes, wakened, link, *children):
                other.close()
            for pipe in pipes:
                os.close(pipe)
            return request
        else:
            tell(link, pid)
            children[link] = pid
        for pipe in pipes:
            os.close(pipe)


def main(kind: str, listening: socket.socket) -> None:
    make_imports(kind)
    request = serve(listening)
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["folder"])
    try:
        run(request["arguments"])
        leave(0)
    except SystemExit as ended:
        leave(ended.code if isinstance(ended.code, int) else ended.code is not None)


def run(arguments: list[str]) -> None:
    """Run `tcc`, or what an interpreter runs with these arguments."""
    sys.argv = arguments
    if arguments[0] == "-c":
        sys.argv = ["-c", *arguments[2:]]
        exec(compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"})
    elif arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    elif arguments[0].endswith(".py"):
        try:
            runpy.run_path(arguments[0], run_name="__main__")
        except* BrokenPipeError:
            pass  # whoever read the answers of this server is gone
    else:
        sys.argv = ["tcc", *arguments]
        importlib.import_module("tcc.main").main()


def leave(code: int) -> None:
    """End as an interpreter does, but take nothing down: that would copy every page of it."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1], socket.socket(fileno=int(sys.argv[2])))

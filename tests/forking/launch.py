"""Ask for a forked process.  As a program: run as one, on the pipes of this process.

Imports little, because a program starts for each server of a gate.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence


def begin(
    path: str, arguments: Sequence[str], pipes: Sequence[int], env: Mapping[str, str], folder: str
) -> tuple[socket.socket, int]:
    """Begin a process; the link that tells when it has ended, and its id.

    Args:
        path: the socket of the process that is forked.
        pipes: standard input, output and errors, which are closed here.
        folder: where it runs.
    """
    asked = json.dumps({"arguments": list(arguments), "env": dict(env), "folder": folder})
    link = socket.socket(socket.AF_UNIX)
    link.connect(path)
    socket.send_fds(link, [asked.encode() + b"\n"], list(pipes))
    for pipe in pipes:
        os.close(pipe)
    return link, code(link)


def code(link: socket.socket) -> int:
    """The next number that comes over a link."""
    return int.from_bytes(link.recv(8), "big", signed=True)


def main(path: str, arguments: Sequence[str]) -> None:
    link, pid = begin(path, arguments, (0, 1, 2), os.environ, os.getcwd())  # noqa: PTH109
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: os.kill(pid, number))
    ended = code(link)
    if ended < 0:
        if -ended in (signal.SIGTERM, signal.SIGINT):
            signal.signal(-ended, signal.SIG_DFL)
        os.kill(os.getpid(), -ended)
    os._exit(ended)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

"""Processes of `tcc` and of servers of the official SDK that begin with their imports made.

`tcc gate` imports for a quarter of a second before it reads a message, a server of the SDK for more
than half.  Here one process of each kind imports once, and every process of a test is forked from
it.  It has its own pipes, environment and signals.  Tests of how a process starts use
:mod:`subprocess`.
"""

from __future__ import annotations

import atexit
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import IO, Literal

from tests.forking import launch

Kind = Literal["tcc", "sdk"]


def environment(**more: str) -> dict[str, str]:
    """The environment of a process that runs what these tests run: the wheel, or the sources."""
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return {**os.environ, "PYTHONPATH": path, **more}


@functools.cache
def _forking(kind: Kind) -> str:
    """Path of the socket of the process that is forked; the first call starts it."""
    folder = tempfile.TemporaryDirectory(prefix="tcc-forking-")
    path = str(Path(folder.name) / kind)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen(64)
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", str(Path(__file__).with_name("serve.py"))),
                *(kind, str(listening.fileno())),
            ],
            env=environment(OPENBLAS_NUM_THREADS="1"),  # no threads in what is forked
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=(listening.fileno(),),
        )

    def end() -> None:
        assert process.stdin is not None
        process.stdin.close()
        process.wait()
        folder.cleanup()

    atexit.register(end)
    return path


def launcher(kind: Kind, *arguments: str) -> list[str]:
    """Return a command whose process behaves as a forked one, for programs that start commands.

    Args:
        arguments: those of `tcc`, or of an interpreter: a file, or what ``-c`` or ``-m`` runs.
    """
    return [sys.executable, "-S", "-E", launch.__file__, _forking(kind), *arguments]


class Forked:
    """A forked process, with the part of :class:`subprocess.Popen` that tests use.

    Args:
        arguments: those of `tcc`, or of an interpreter: a file, or what ``-c`` or ``-m`` runs.
        env, cwd: the environment and the folder of the process.
        kind: which process is forked: that of `tcc`, or that of servers of the SDK.
        stdin: whether it has a pipe to read from; otherwise its input is empty.
        buffering: of the pipes, as :func:`open` has it.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        *,
        env: Mapping[str, str],
        kind: Kind = "tcc",
        cwd: Path | None = None,
        stdin: bool = True,
        buffering: int = -1,
    ) -> None:
        self.args = arguments
        self.returncode: int | None = None
        given, out, err = os.pipe(), os.pipe(), os.pipe()
        pipes, folder = (given[0], out[1], err[1]), str(cwd or Path.cwd())
        self._link, self.pid = launch.begin(_forking(kind), arguments, pipes, env, folder)
        self.stdin: IO[bytes] | None = os.fdopen(given[1], "wb", buffering)
        self.stdout: IO[bytes] = os.fdopen(out[0], "rb", buffering)
        self.stderr: IO[bytes] = os.fdopen(err[0], "rb", buffering)
        if not stdin:
            self.stdin.close()
            self.stdin = None

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._link], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self.returncode = launch.code(self._link)
            self._link.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Close the input, read what is left of both outputs, and wait for the end."""
        if self.stdin is not None:
            with suppress(BrokenPipeError):
                self.stdin.close()
        if self.stdout.closed:  # both were read to their ends before
            return b"", b""
        with self.stdout, self.stderr, ThreadPoolExecutor(2) as pool:
            out, err = pool.submit(self.stdout.read), pool.submit(self.stderr.read)
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
            return out.result(), err.result()


def run(
    arguments: Sequence[str], *, env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command of `tcc`, which ends within a minute."""
    process = Forked(arguments, env=env, cwd=cwd, stdin=False)
    out, err = process.communicate(60)
    assert process.returncode is not None
    return subprocess.CompletedProcess(arguments, process.returncode, out.decode(), err.decode())

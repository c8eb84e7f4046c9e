"""Worker processes as an executor: each submitted call runs in a worker.

A worker is a process with its own session that reads calls from its input and answers each.  Ctrl-C
reaches only the parent, which ends the workers.  If the parent is gone, a worker ends after its
call.  A worker starts as a fresh interpreter.  If a worker is killed, only its call fails, and
another worker replaces it.

Why not a library: `pebble` and `concurrent.futures` start workers by `multiprocessing`.  With
`spawn` and `forkserver`, each worker runs the program of the parent again.  A script without
``if __name__ == "__main__"`` then fails.  With `fork`, a worker copies a process with threads,
locks and database connections.  These workers are also in the parent's session, so they receive its
Ctrl-C.
Cost: the start of an interpreter for each worker; a message in each direction for each call.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from threading import Lock
from typing import IO, Any, NoReturn, ParamSpec, TypeVar

from tcc_runtime.errors import WorkerLost

_PATIENCE = 5.0  # seconds for a worker to end by itself
_SERVE = "from tcc_runtime.workers import serve; serve()"
_SIZE = 8  # bytes of the length of a message
_P = ParamSpec("_P")
_T = TypeVar("_T")


def number_of(processes: int | None) -> int:
    """Return `processes`, or the number of processors for None.

    Raises:
        ValueError: less than 1.
    """
    number = os.cpu_count() or 1 if processes is None else processes
    if number < 1:
        raise ValueError("at least one process is needed")
    return number


class Processes(Executor):
    """Calls importable functions in worker processes, one at a time in each.

    Args:
        number: how many workers, at least 1; None: one for each processor.

    Raises:
        ValueError: `number` is less than 1.
    """

    def __init__(self, number: int | None) -> None:
        self.number = number = number_of(number)
        self._workers = {at: Worker() for at in range(number)}
        self._idle: SimpleQueue[int] = SimpleQueue()
        for at in self._workers:
            self._idle.put(at)
        self._threads = ThreadPoolExecutor(number)
        self._lock = Lock()
        self._closed = False

    def submit(self, fn: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> Future[_T]:
        """Call ``fn(*args, **kwargs)`` in a worker.

        An exception of the call is the exception of the future.  ``WorkerLost`` means that the
        worker ended before it answered.
        """
        return self._threads.submit(self._ask, partial(fn, *args, **kwargs))

    def _ask(self, task: Callable[[], _T]) -> _T:
        at = self._idle.get()
        try:
            answer: _T = self._workers[at].ask(task)
            return answer
        except WorkerLost:
            self._replace(at)
            raise
        finally:
            self._idle.put(at)

    def _replace(self, at: int) -> None:
        with self._lock:
            if not self._closed:
                self._workers[at].close(patient=False)
                self._workers[at] = Worker()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End every worker after all calls, or immediately with `cancel_futures`.  Always wait for
        the end.

        Args:
            wait: ignored.
            cancel_futures: kill running calls, and drop waiting calls.
        """
        if not cancel_futures:
            self._threads.shutdown()
        with self._lock:
            self._closed = True
            for worker in self._workers.values():
                worker.close(patient=not cancel_futures)
        self._threads.shutdown(cancel_futures=cancel_futures)


class Worker:
    """A process that runs one call at a time.

    Args:
        shared: file descriptors that the process inherits, with the same numbers.
    """

    def __init__(self, shared: Sequence[int] = ()) -> None:
        # The child finds its modules where this process found them.
        found = os.pathsep.join(os.path.abspath(place) for place in sys.path)  # noqa: PTH100
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": found},
            start_new_session=True,
            pass_fds=shared,
        )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """True if the process has ended."""
        return self._process.poll() is not None

    def ask(self, task: Callable[[], Any]) -> Any:
        """Run `task` in the process and return its result.

        Raises:
            WorkerLost: the process ended before it answered.
            Exception: any exception of the task.
        """
        message = pickle.dumps(task)
        incoming, outgoing = self._process.stdout, self._process.stdin
        try:
            if incoming is None or outgoing is None:
                raise EOFError
            send(outgoing, message)
            good, answer = pickle.loads(receive(incoming))
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            raise WorkerLost(self._ended()) from None
        if not good:
            raise answer
        return answer

    def _ended(self) -> str:
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self, *, patient: bool) -> None:
        """End the process: by the end of its input if `patient`, else by a kill."""
        process = self._process
        if not patient:
            process.kill()
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def send(file: IO[bytes], message: bytes) -> None:
    """Write a message with its length."""
    file.write(len(message).to_bytes(_SIZE, "little"))
    file.write(message)
    file.flush()


def receive(file: IO[bytes]) -> bytes:
    """Return the next message.

    Raises:
        EOFError: the file has no complete message.
    """
    size = file.read(_SIZE)
    expected = int.from_bytes(size, "little")
    message = file.read(expected) if len(size) == _SIZE else b""
    if len(size) < _SIZE or len(message) < expected:
        raise EOFError
    return message


def serve() -> None:
    """Run as a worker: read calls from the input, and answer each with its value or its
    exception.
    """
    # Use a duplicate of the output for the answers. So no output of a call gets between the
    # answers, and an answer that the parent no longer reads is not flushed again at the end.
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    while True:
        try:
            message = receive(incoming)
        except EOFError:
            _end()
        try:
            send(outgoing, _answer(message))
        except BrokenPipeError:
            os._exit(0)


def _end() -> NoReturn:
    """End the worker without freeing its objects, which takes 0.2 s after many runs."""
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            file.flush()
    os._exit(0)


def _answer(message: bytes) -> bytes:
    try:
        return pickle.dumps((True, pickle.loads(message)()))
    except Exception as error:  # noqa: BLE001 - the parent raises every exception
        try:
            return pickle.dumps((False, error))
        except Exception:  # noqa: BLE001 - an exception that cannot be sent is sent as text
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))

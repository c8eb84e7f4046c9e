"""Many runs over one artifact, on several processes, their results in the order of the requests.

Text: docs/spec/race.md, section 9; each run is the one that :func:`tcc_runtime.search.search` makes
of the same request, to the byte.  Every worker maps the one file, so its pages are shared; it opens
it as known by its digest, so a file put in its place is refused.  A worker is a process of its own
session: Ctrl-C reaches the parent alone, which ends them; and where the parent is gone, a worker
ends with its run.  Cost: an interpreter's start a worker, a message a run.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import WorkerLost
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerFile
from tcc_runtime.outcome import Run
from tcc_runtime.search import search
from tcc_runtime.terms.modes import terms_of
from tcc_runtime.terms.settings import Settings

_AHEAD = 4  # requests under way or waiting, for each worker
_PATIENCE = 5.0  # seconds for a worker to end by itself
_SERVE = "from tcc_runtime.pool import serve; serve()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One run to make.

    Attributes:
        settings: as for a run alone.
        ledger: where its ledger goes; None keeps none.
        started_ms: UTC milliseconds for the ledger.
        overwrite: replace a ledger that is there.
    """

    settings: Settings
    ledger: Path | None = None
    started_ms: int = 0
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Opening:
    """What a worker is told first: the file, its digest, and whether it was verified."""

    path: str
    digest: str
    verified: bool


def runs(artifact: Artifact, requests: Iterable[Request], *, processes: int) -> Iterator[Run]:
    """The runs of `requests` over one artifact, in their order.

    Args:
        artifact: where it is in memory alone, it is written to a temporary file once.
        requests: taken as they are needed, a few for each process ahead of the results.
        processes: how many runs are made at a time, at least 1.

    Raises:
        ValueError: `processes` is less than 1.
        SettingsError: the artifact does not allow a request's settings; it is not run.
        LedgerError, AnswerError, Rejected: as the run itself; at that run's place.
        WorkerLost: a worker was killed, or could not be started; at the place of its run.
    """
    if processes < 1:
        raise ValueError("at least one process is needed")
    with _shared(artifact) as path:
        opening = _Opening(path=path, digest=artifact.digest.hex(), verified=artifact.verified)
        pool = _Pool(opening, processes)
        try:
            yield from pool.answers(_allowed(artifact, requests))
        finally:
            pool.close()


def _allowed(artifact: Artifact, requests: Iterable[Request]) -> Iterator[Request]:
    for request in requests:
        terms_of(artifact, request.settings, quoted=False)
        yield request


@contextmanager
def _shared(artifact: Artifact) -> Iterator[str]:
    """A file with the artifact's bytes."""
    if artifact.path is not None:
        yield str(artifact.path.resolve())
        return
    handle, name = tempfile.mkstemp(suffix=".tcca")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(write_container(artifact.file.columns))
        yield name
    finally:
        Path(name).unlink(missing_ok=True)


class _Pool:
    """Workers, and a thread for each that waits for its answers."""

    def __init__(self, opening: _Opening, processes: int) -> None:
        self._workers = [_Worker(opening) for _ in range(processes)]
        self._idle: SimpleQueue[_Worker] = SimpleQueue()
        for worker in self._workers:
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(processes)
        self._due: deque[Future[Run]] = deque()

    def answers(self, requests: Iterable[Request]) -> Iterator[Run]:
        """The runs, in order."""
        for request in requests:
            self._due.append(self._threads.submit(self._ask, request))
            if len(self._due) >= _AHEAD * len(self._workers):
                yield self._due.popleft().result()
        while self._due:
            yield self._due.popleft().result()

    def _ask(self, request: Request) -> Run:
        worker = self._idle.get()
        try:
            return worker.ask(request)
        finally:
            self._idle.put(worker)

    def close(self) -> None:
        """Ends every worker; what still runs is killed."""
        for future in self._due:
            future.cancel()
        for worker in self._workers:
            worker.close(patient=not self._due)
        self._threads.shutdown(cancel_futures=True)


class _Worker:
    """A process that makes one run at a time."""

    def __init__(self, opening: _Opening) -> None:
        # The child finds its modules where this process found them.
        found = os.pathsep.join(os.path.abspath(place) for place in sys.path)  # noqa: PTH100
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": found},
            start_new_session=True,
        )
        self._opening: _Opening | None = opening

    def ask(self, request: Request) -> Run:
        """The run of `request`.

        Raises:
            WorkerLost: the process ended before it answered.
        """
        pipes = self._process.stdin, self._process.stdout
        try:
            if pipes[0] is None or pipes[1] is None:
                raise EOFError
            if self._opening is not None:
                pickle.dump(self._opening, pipes[0])
                self._opening = None
            pickle.dump(request, pipes[0])
            pipes[0].flush()
            answer = pickle.load(pipes[1])
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            raise WorkerLost(self._ended()) from None
        if isinstance(answer, BaseException):
            raise answer
        if not isinstance(answer, Run):
            raise WorkerLost("it answered with something else than a run")
        return answer

    def _ended(self) -> str:
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def close(self, *, patient: bool) -> None:
        """Ends the process: where `patient` by the end of its input, else at once."""
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


def serve() -> None:
    """A worker: reads an opening and requests from its input, answers each with its run."""
    # A pipe of its own: what the parent no longer reads must not be flushed at the end again.
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    artifact: Artifact | None = None
    opening: _Opening | None = None
    while True:
        try:
            request = pickle.load(incoming)
        except EOFError:
            return
        if isinstance(request, _Opening):
            opening = request
            continue
        answer: Run | Exception
        try:
            if artifact is None and opening is not None:
                artifact = _opened(opening)
            if artifact is None:
                return
            answer = _run(artifact, request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the parent raises it
            answer = error
        try:
            outgoing.write(pickle.dumps(answer))
            outgoing.flush()
        except BrokenPipeError:
            os._exit(0)


def _opened(opening: _Opening) -> Artifact:
    # An unverified artifact of another digest would be another artifact: nothing else is checked.
    return load(Path(opening.path), verify=opening.verified, checked=opening.digest)


def _run(artifact: Artifact, request: Request) -> Run:
    if request.ledger is None:
        return search(artifact, request.settings)
    sink = LedgerFile(request.ledger, overwrite=request.overwrite)
    return search(artifact, request.settings, Recorder(sink, started_ms=request.started_ms))

"""Many runs over one artifact, on several processes, their results in the order of the requests.

Text: docs/spec/race.md, section 9; each run is the one that :func:`tcc_runtime.run.search` makes
of the same request, to the byte.  Every worker maps the one file, so its pages are shared; it opens
it once, as known by its digest, so a file put in its place is refused.
Cost: an interpreter's start a worker, a message a run.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tcc_certs.formats.container import write_container
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerFile
from tcc_runtime.outcome import Run
from tcc_runtime.run import search
from tcc_runtime.settings.modes import terms_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.workers import Processes

_AHEAD = 4  # requests under way or waiting, for each worker
_here = threading.local()  # a run keeps tables with its artifact: each thread has its own


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
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
class Opening:
    """What a worker opens an artifact by: its digest.

    Attributes:
        digest: hex.
        verified: whether its certificates were checked, by whoever says so.
        path: a file with its bytes; None where they come by themselves.
    """

    digest: str
    verified: bool
    path: str | None


def runs(
    artifact: Artifact, requests: Iterable[RunRequest], *, processes: int | None
) -> Iterator[Run]:
    """The runs of `requests` over one artifact, in their order.

    Args:
        artifact: where it is in memory alone, it is written to a temporary file once.
        requests: taken as they are needed, a few for each process ahead of the results.
        processes: how many runs are made at a time, at least 1; None: one for each processor.

    Raises:
        ValueError: `processes` is less than 1.
        SettingsError: the artifact does not allow a request's settings; it is not run.
        LedgerError, AnswerError, Rejected: as the run itself; at that run's place.
        WorkerLost: a worker was killed, or could not be started; at the place of its run.
    """
    workers = Processes(processes)
    pending: deque[Future[Run]] = deque()
    try:
        with opening_of(artifact) as opening:
            for request in _allowed(artifact, requests):
                pending.append(workers.submit(_run, opening, request))
                if len(pending) >= _AHEAD * workers.number:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
    finally:
        workers.shutdown(cancel_futures=bool(pending))


def _allowed(artifact: Artifact, requests: Iterable[RunRequest]) -> Iterator[RunRequest]:
    for request in requests:
        terms_of(artifact, request.settings, quoted=False)
        yield request


@contextmanager
def opening_of(artifact: Artifact) -> Iterator[Opening]:
    """What other processes of this machine open an artifact by; with a file while it lasts."""
    with _shared(artifact) as path:
        yield Opening(digest=artifact.digest.hex(), verified=artifact.verified, path=path)


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


def opened(opening: Opening, data: bytes | None = None) -> Artifact:
    """The artifact in this thread, opened the first time and kept until another one is opened.

    Args:
        data: its bytes, where it has no file that this process can read.

    Raises:
        Rejected: P101, the file, or `data`, is another artifact.
        OSError: the file cannot be read.
    """
    kept: tuple[Opening, Artifact] | None = getattr(_here, "kept", None)
    if kept is None or kept[0] != opening:
        source = Path(opening.path or "") if data is None else data
        # An unverified artifact of another digest would be another artifact: nothing else is
        # checked.
        found = load(source, verify=opening.verified, checked=opening.digest)
        kept = _here.kept = opening, found
    return kept[1]


def _run(opening: Opening, request: RunRequest) -> Run:
    artifact = opened(opening)
    if request.ledger is None:
        return search(artifact, request.settings)
    sink = LedgerFile(request.ledger, overwrite=request.overwrite)
    return search(artifact, request.settings, Recorder(sink, started_ms=request.started_ms))

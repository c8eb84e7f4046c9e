"""Many runs over one artifact in several processes; results are in the order of the requests.

Text: docs/spec/race.md, section 9.  Each run equals the run of :func:`tcc_runtime.run.search` for
the same request, byte for byte.  All workers map the same file, so its pages are shared.  A worker
opens the file once and compares its digest, so a replaced file is refused.
Cost: the start of an interpreter for each worker, a message for each run.
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

_AHEAD = 4  # requests running or waiting, for each worker
# a run stores tables in its artifact, so each thread has its own artifact
_here = threading.local()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run to make.

    Attributes:
        settings: as for a single run.
        ledger: path of its ledger; None writes none.
        started_ms: UTC milliseconds for the ledger.
        overwrite: True replaces an existing ledger.
    """

    settings: Settings
    ledger: Path | None = None
    started_ms: int = 0
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The data by which a worker opens an artifact.

    Attributes:
        digest: hex.
        verified: True if the sender has checked the certificates.
        path: a file with the artifact's bytes; None if the bytes are passed separately.
    """

    digest: str
    verified: bool
    path: str | None


def runs(
    artifact: Artifact, requests: Iterable[RunRequest], *, processes: int | None
) -> Iterator[Run]:
    """Run `requests` over one artifact and yield the results in the order of the requests.

    Args:
        artifact: if it has no file, it is written to a temporary file once.
        requests: read as needed, a few for each process ahead of the results.
        processes: the number of runs at a time, at least 1; None: one for each processor.

    Raises:
        ValueError: `processes` is less than 1.
        SettingsError: the artifact does not allow a request's settings; the request is not run.
        LedgerError, AnswerError, Rejected: raised by a run, in place of its result.
        WorkerLost: a worker was killed or could not be started; raised in place of its result.
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
    """Yield the opening of an artifact for other processes of this machine, with a file for the
    block.
    """
    with _shared(artifact) as path:
        yield Opening(digest=artifact.digest.hex(), verified=artifact.verified, path=path)


@contextmanager
def _shared(artifact: Artifact) -> Iterator[str]:
    """Yield the path of a file with the artifact's bytes."""
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
    """Return the artifact of `opening`, which this thread opens once and keeps until the next one.

    Args:
        data: the artifact's bytes, if this process can read no file of it.

    Raises:
        Rejected: P101, the file, or `data`, is another artifact.
        OSError: the file cannot be read.
    """
    kept: tuple[Opening, Artifact] | None = getattr(_here, "kept", None)
    if kept is None or kept[0] != opening:
        source = Path(opening.path or "") if data is None else data
        # An unverified artifact needs no other check: with another digest it is another artifact.
        found = load(source, verify=opening.verified, checked=opening.digest)
        kept = _here.kept = opening, found
    return kept[1]


def _run(opening: Opening, request: RunRequest) -> Run:
    artifact = opened(opening)
    if request.ledger is None:
        return search(artifact, request.settings)
    sink = LedgerFile(request.ledger, overwrite=request.overwrite)
    return search(artifact, request.settings, Recorder(sink, started_ms=request.started_ms))

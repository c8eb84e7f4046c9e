"""A batch in one file of results, in the order of the requests, with a ledger for each run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

from tcc.batches import HEAD, PLAIN, BatchError
from tcc.batches.making import read_file
from tcc.files import ledger_name
from tcc.library.running import run_fields
from tcc_certs.errors import escaped_json
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.ledger.outputs import create
from tcc_runtime.outcome import Run
from tcc_runtime.pool import RunRequest, runs


def plain_batch(
    artifact: Artifact,
    requests: Path,
    out: Path,
    *,
    processes: int | None,
    no_ledgers: bool,
    overwrite: bool,
) -> Iterator[Run]:
    """Make the runs in order, and yield each after its result line is written.

    Raises:
        BatchError: TCC802, the folder has a batch in shards.
        SettingsError, LedgerError, Rejected, WorkerLost: as :func:`tcc.runs` raises them, when the
            failing run is reached.
    """
    if (out / HEAD).exists():
        what = "the folder has a batch in shards; name another folder"
        raise BatchError("TCC802", str(out), what)
    started = time.time_ns() // 1_000_000

    def asked() -> Iterator[RunRequest]:
        for number, settings in enumerate(read_file(requests), 1):
            yield RunRequest(
                settings=settings,
                ledger=None if no_ledgers else ledger_name(out, number),
                started_ms=started,
                overwrite=overwrite,
            )

    out.mkdir(parents=True, exist_ok=True)
    handle = create(out / PLAIN, overwrite=overwrite)
    with os.fdopen(handle, "w", encoding="utf-8") as results:
        for number, run in enumerate(runs(artifact, asked(), processes=processes), 1):
            line = json.dumps({"number": number} | run_fields(run), ensure_ascii=False)
            results.write(escaped_json(line) + "\n")
            results.flush()
            yield run
        os.fsync(results.fileno())

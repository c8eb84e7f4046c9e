"""A batch without shards: one file of results in the order of the requests, a ledger file each.

Cost: a message a run; the results are flushed line by line.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import click

from tcc.batches.errors import BatchError
from tcc.batches.folder import HEAD, PLAIN
from tcc.batches.making import read_file
from tcc.files import ledger_name
from tcc.outcome import run_fields
from tcc_certs.plain import escaped_json
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, SettingsError, WorkerLost
from tcc_runtime.ledger.outputs import create
from tcc_runtime.pool import Request, runs


def plain_batch(
    artifact: Artifact,
    requests: Path,
    out: Path,
    *,
    processes: int | None,
    no_ledgers: bool,
    overwrite: bool,
) -> tuple[int, int]:
    """Makes the runs; gives how many they are, and how many of them are certified.

    Raises:
        BatchError: TCC802, the folder has a batch in shards.
        click.ClickException: what `runs` raises, with the place.
        Rejected: the artifact's file was changed.
    """
    if (out / HEAD).exists():
        what = "the folder has a batch in shards; name another folder"
        raise BatchError("TCC802", str(out), what)
    started = time.time_ns() // 1_000_000

    def asked() -> Iterator[Request]:
        for number, settings in enumerate(read_file(requests), 1):
            yield Request(
                settings=settings,
                ledger=None if no_ledgers else ledger_name(out, number),
                started_ms=started,
                overwrite=overwrite,
            )

    out.mkdir(parents=True, exist_ok=True)
    made = certified = 0
    try:
        handle = create(out / PLAIN, overwrite=overwrite)
        with os.fdopen(handle, "w", encoding="utf-8") as results:
            for run in runs(artifact, asked(), processes=processes or os.cpu_count() or 1):
                made += 1
                certified += run.claim_type != "NoCert"
                line = json.dumps({"number": made} | run_fields(run), ensure_ascii=False)
                results.write(escaped_json(line) + "\n")
                results.flush()
            os.fsync(results.fileno())
    except SettingsError as error:
        raise click.ClickException(f"{requests}: request {made + 1} or later: {error}") from None
    except LedgerError as error:
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    except WorkerLost as error:
        raise click.ClickException(f"request {made + 1}: {error}") from None
    return made, certified


def outputs(out: Path, ledgers: int) -> Iterator[Path]:
    """What is there by the names that a batch with so many ledgers writes."""
    for path in out.iterdir() if out.is_dir() else ():
        digits = path.stem if path.stem.isascii() and path.stem.isdigit() else "0"
        numbered = 0 < int(digits) <= ledgers and path.name == ledger_name(out, int(digits)).name
        if path.name in (PLAIN, HEAD) or path.name.startswith("part-") or numbered:
            yield path

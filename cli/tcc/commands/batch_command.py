"""``tcc batch``: many runs over one artifact, on all processors, each with its ledger."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.exits import CLEAN, DECLINED
from tcc.files import ledger_name, same_file
from tcc.forecast import warn_of_relaxed
from tcc.opening import (
    artifact_argument,
    input_option,
    json_option,
    open_artifact,
    options_of,
    refuse,
    trust_options,
)
from tcc.options import compile_options
from tcc.outcome import run_fields
from tcc.requests import RequestError, read_requests
from tcc_certs.errors import Rejected
from tcc_certs.plain import escaped_json
from tcc_runtime.errors import LedgerError, SettingsError, WorkerLost
from tcc_runtime.ledger.outputs import create
from tcc_runtime.pool import Request, runs
from tcc_runtime.terms.settings import Settings

RESULTS = "runs.ndjson"


@click.command("batch")
@artifact_argument
@input_option("--requests", "one JSON object a line: the settings of a run", required=True)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"a folder: {RESULTS}, and the ledgers by number",
)
@click.option("--processes", type=click.IntRange(1, 1024), help="by default one a processor")
@click.option("--no-ledgers", is_flag=True, help="keep the results alone")
@click.option("--overwrite", is_flag=True, help="replace what is there")
@trust_options
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    requests: Path,
    out: Path,
    processes: int | None,
    no_ledgers: bool,
    overwrite: bool,
    checked: bytes | None,
    no_verify: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Make the run of each line of a file of requests over ARTIFACT (or a grammar).

    Each run is the one that `tcc run` makes of the same settings; results stand in the order of the
    requests. Exit code 0: all are certified. 2: some claim nothing.
    """
    inputs = [requests]
    opened = open_artifact(
        artifact,
        command="batch",
        options=options_of(given),
        checked=checked,
        no_verify=no_verify,
        read=inputs,
    )
    first, number = _check_requests(requests)
    for path in _outputs(out, 0 if no_ledgers else number):
        if same_file(path, inputs):
            raise click.BadParameter(f"{str(path)!r} is what is run", param_hint="--out")
    if first is not None:
        warn_of_relaxed(opened, first, None)
    started = time.time_ns() // 1_000_000

    def asked() -> Iterator[Request]:
        with requests.open("rb") as lines:
            for number, settings in enumerate(read_requests(lines), 1):
                yield Request(
                    settings=settings,
                    ledger=None if no_ledgers else ledger_name(out, number),
                    started_ms=started,
                    overwrite=overwrite,
                )

    out.mkdir(parents=True, exist_ok=True)
    made = certified = 0
    try:
        handle = create(out / RESULTS, overwrite=overwrite)
        with os.fdopen(handle, "w", encoding="utf-8") as results:
            for run in runs(opened, asked(), processes=processes or os.cpu_count() or 1):
                made += 1
                certified += run.claim_type != "NoCert"
                line = json.dumps({"number": made} | run_fields(run), ensure_ascii=False)
                results.write(escaped_json(line) + "\n")
                results.flush()
            os.fsync(results.fileno())
    except SettingsError as error:
        raise click.ClickException(f"{requests}: request {made + 1} or later: {error}") from None
    except Rejected as refusal:
        refuse(artifact, refusal)
    except LedgerError as error:
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    except WorkerLost as error:
        raise click.ClickException(f"request {made + 1}: {error}") from None
    fields = {"runs": made, "certified": certified, "out": str(out)}
    if as_json:
        screen.print_json("batch", fields)
    else:
        screen.print_fields(list(fields.items()))
    ctx.exit(CLEAN if certified == made else DECLINED)


def _check_requests(path: Path) -> tuple[Settings | None, int]:
    """The first request, None where there is none, and how many there are; every line is one,
    before the first is run.
    """
    first, number = None, 0
    try:
        with path.open("rb") as lines:
            for settings in read_requests(lines):
                first = first or settings
                number += 1
    except RequestError as error:
        raise click.BadParameter(f"{path}:{error}", param_hint="--requests") from None
    return first, number


def _outputs(out: Path, ledgers: int) -> Iterator[Path]:
    """What is there by the names that a batch with so many ledgers writes."""
    for path in out.iterdir() if out.is_dir() else ():
        digits = path.stem if path.stem.isascii() and path.stem.isdigit() else "0"
        numbered = 0 < int(digits) <= ledgers and path.name == ledger_name(out, int(digits)).name
        if path.name == RESULTS or numbered:
            yield path

"""``tcc batch``: many runs over one artifact, on all processors or a cluster.

A plain batch writes one file of results in the order of the requests, flushed line by line, and a
ledger file for each run.  :mod:`tcc.batches` makes a batch in shards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcc import options, screen
from tcc.batches import FORMATS, HEAD, PLAIN
from tcc.batches.making import SHARD_SIZE, BatchDone, batch, read_file
from tcc.batches.plain import plain_batch
from tcc.batches.validating import BatchValidation, validate_batch
from tcc.files import ledger_name, same_file
from tcc.library.running import warn_of_relaxed
from tcc.opening import open_bounded, options_of, refuse, require_artifact
from tcc.screen import CLEAN, DECLINED
from tcc_certs.errors import Rejected
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, SettingsError, WorkerLost, mismatch
from tcc_runtime.outcome import Run
from tcc_runtime.settings.settings import Settings

_SHARDED = ("shard_size", "part_format", "dask", "started_ms")
_RUNNING = ("requests", "no_ledgers", "overwrite", "shard_size", "part_format", "started_ms")
_VALIDATING = ("pin",)


@click.command("batch")
@options.artifact_argument
@options.input_option("--requests", "settings of each run: JSON lines, or a table (.parquet)")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"folder for {PLAIN} and the ledgers by number; in shards, for one part per shard",
)
@click.option(
    "--processes",
    type=click.IntRange(1, 1024),
    help="number of processes; by default one per processor",
)
@click.option("--no-ledgers", is_flag=True, help="write results without ledgers")
@options.overwrite_option
@click.option(
    "--shard-size",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help=f"work in shards of N runs, by default {SHARD_SIZE}; the same command resumes",
)
@click.option(
    "--format", "part_format", type=click.Choice(FORMATS), help="in shards: format of the parts"
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="in shards, on a Dask cluster: address of its scheduler, or local",
)
@click.option(
    "--started-ms",
    type=click.IntRange(0, (1 << 48) - 1),
    metavar="MS",
    help="in shards: start time of all ledgers in UTC milliseconds; by default that of the batch",
)
@click.option("--validate", "validating", is_flag=True, help="validate every ledger of the folder")
@options.digest_option("--pin", "with --validate: the trusted artifact digest")
@options.trust_options
@options.compile_options
@options.json_option
@click.pass_context
def command(
    ctx: click.Context, /, artifact: Path, out: Path, validating: bool, as_json: bool, **given: Any
) -> None:
    """Run each request over ARTIFACT (or a grammar), or validate the ledgers of a folder.

    Each run has the same result as `tcc run` with the same settings. In shards (`--shard-size`,
    `--format`, `--dask`) the same command resumes a batch that was interrupted. Exit code 0: all
    runs are certified, or all ledgers valid. 1: a ledger is not valid. 2: some runs claim nothing,
    or ledgers are missing.
    """
    if validating:
        _refuse(ctx, _RUNNING, "makes runs, and --validate makes none")
        require_artifact(artifact)
        _validate(ctx, artifact, out, as_json, given)
        return
    _refuse(ctx, _VALIDATING, "is for --validate")
    if given["requests"] is None:
        raise click.MissingParameter(param_hint="--requests", param_type="option", ctx=ctx)
    _run(ctx, artifact, out, as_json, given)


def _validate(
    ctx: click.Context, artifact: Path, out: Path, as_json: bool, given: dict[str, Any]
) -> None:
    pin = given["pin"]
    with endings(artifact):
        found = validate_batch(
            out,
            artifact,
            pin=None if pin is None else pin.hex(),
            dask=given["dask"],
            processes=given["processes"],
        )
    ctx.exit(print_validation(found, out, as_json))


def _run(
    ctx: click.Context, artifact: Path, out: Path, as_json: bool, given: dict[str, Any]
) -> None:
    requests: Path = given.pop("requests")
    told = {name: given.pop(name) for name in (*_SHARDED, "processes", "no_ledgers", "overwrite")}
    trust = {name: given.pop(name) for name in ("checked", "no_verify")}
    del given["pin"]
    inputs = [requests]
    options = options_of(given)
    opened = open_bounded(artifact, command="batch", options=options, read=inputs, **trust)
    plain = all(told[name] is None for name in _SHARDED)
    with endings(artifact):
        first, number = _looked_at(requests, whole=plain)
    for path in outputs(out, 0 if told["no_ledgers"] else number):
        if same_file(path, inputs):
            raise click.BadParameter(f"{str(path)!r} is what is run", param_hint="--out")
    if first is not None:
        warn_of_relaxed(opened, first, None)
    with endings(artifact):
        if not plain:
            ctx.exit(_in_shards(opened, requests, out, as_json, told))
        more = {name: told[name] for name in ("processes", "no_ledgers", "overwrite")}
        made, certified = _counted(plain_batch(opened, requests, out, **more), requests)
        ctx.exit(print_runs(made, certified, out, as_json))


def _counted(runs: Iterator[Run], requests: Path) -> tuple[int, int]:
    """Return the numbers of runs and of certified runs; an error names its request."""
    made = certified = 0
    try:
        for run in runs:
            made += 1
            certified += run.claim_type != "NoCert"
    except SettingsError as error:
        raise click.ClickException(f"{requests}: request {made + 1} or later: {error}") from None
    except LedgerError as error:
        raise click.ClickException(f"{error.path}: {error.cause.strerror}") from None
    except WorkerLost as error:
        raise click.ClickException(f"request {made + 1}: {error}") from None
    return made, certified


def _in_shards(
    artifact: Artifact, requests: Path, out: Path, as_json: bool, told: dict[str, Any]
) -> int:
    done = batch(
        artifact,
        requests,
        out,
        dask=told["dask"],
        processes=told["processes"],
        shard_size=told["shard_size"] or SHARD_SIZE,
        part_format=told["part_format"] or "ndjson",
        ledgers=not told["no_ledgers"],
        started_ms=told["started_ms"],
        overwrite=told["overwrite"],
    )
    return print_done(done, out, as_json)


def _looked_at(path: Path, *, whole: bool) -> tuple[Settings | None, int]:
    """Return the first request, or None, and the number of requests read.

    Args:
        whole: whether to read all requests, so that an invalid one is reported before the first
            run.  A batch in shards surveys the requests itself, so only the first one is read.
    """
    first, number = None, 0
    for settings in read_file(path):
        first = first or settings
        number += 1
        if not whole:
            break
    return first, number


def _refuse(ctx: click.Context, names: tuple[str, ...], why: str) -> None:
    for parameter in ctx.command.params:
        source = ctx.get_parameter_source(parameter.name or "")
        if parameter.name in names and source not in (None, ParameterSource.DEFAULT):
            raise click.UsageError(f"{parameter.opts[0]} {why}", ctx)


@contextmanager
def endings(artifact: Path) -> Iterator[None]:
    """Context manager that converts errors of a batch to errors of the command."""
    try:
        yield
    except WorkerLost as error:
        what = "parts that are finished stay, and the same command goes on from there"
        raise click.ClickException(f"{error}; {what}") from None
    except Rejected as refusal:
        refuse(artifact, refusal)


def print_runs(runs: int, certified: int, out: Path, as_json: bool) -> int:
    """Print the result of a batch without shards, and return the exit code."""
    if as_json:
        from tcc.outputs.runs import BatchOutput

        screen.print_output(BatchOutput(runs=runs, certified=certified, out=str(out)))
    else:
        screen.print_fields([("runs", runs), ("certified", certified), ("out", out)])
    return CLEAN if certified == runs else DECLINED


def print_done(done: BatchDone, out: Path, as_json: bool) -> int:
    """Print the result of a batch in shards, and return the exit code."""
    fields: dict[str, Any] = {
        "runs": done.batch.runs,
        "certified": done.certified,
        "out": str(out),
        "parts": done.batch.parts,
        "made": done.made,
        "kept": done.kept,
        "redone": done.redone,
        "started_ms": done.batch.started_ms,
    }
    if as_json:
        from tcc.outputs.runs import ShardedBatchOutput

        screen.print_output(ShardedBatchOutput(**fields))
    else:
        screen.print_fields(fields.items())
    if done.redone:
        screen.warn(
            f"warning: {done.redone} of the parts that were there had been cut off or altered, "
            "or were of other requests, and were made again"
        )
    return CLEAN if done.certified == done.batch.runs else DECLINED


def print_validation(found: BatchValidation, out: Path, as_json: bool) -> int:
    """Print the validation of a batch, and return the exit code."""
    if as_json:
        from tcc.outputs.runs import BatchFindingJson, BatchValidationOutput

        output = BatchValidationOutput(
            verdict=found.word,
            out=str(out),
            runs=found.runs,
            verdicts={word.lower(): number for word, number in found.verdicts.items()},
            claims=found.claims,
            findings=[BatchFindingJson(**asdict(item)) for item in found.findings],
            more_findings=found.more,
        )
        screen.print_output(output)
        return found.verdict
    for item in found.findings:
        where = f"{out / item.file}: run {item.run}, line {item.line}"
        place = where if item.run else str(out / item.file)
        screen.say(f"{place}: {item.code} {item.field}: {mismatch(item.expected, item.found)}")
    if found.more:
        screen.say(f"and {found.more} more findings")
    screen.print_fields([("runs", found.runs), *_counts(found)])
    say = screen.good if found.verdict == CLEAN else screen.bad
    say(f"{found.word}: {_summary(found)}")
    return found.verdict


def _counts(found: BatchValidation) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = [(word.lower(), n) for word, n in found.verdicts.items()]
    return rows + [(f"claim {claim}", number) for claim, number in found.claims.items()]


def _summary(found: BatchValidation) -> str:
    valid = found.verdicts.get("VALID", 0)
    if found.verdict == CLEAN:
        return f"{valid} ledgers hold, and say what the results say"
    return f"{valid} of {found.runs} ledgers hold"


def outputs(out: Path, ledgers: int) -> Iterator[Path]:
    """Yield the existing files that a batch with that many ledgers would replace."""
    for path in out.iterdir() if out.is_dir() else ():
        digits = path.stem if path.stem.isascii() and path.stem.isdigit() else "0"
        numbered = 0 < int(digits) <= ledgers and path.name == ledger_name(out, int(digits)).name
        if path.name in (PLAIN, HEAD) or path.name.startswith("part-") or numbered:
            yield path

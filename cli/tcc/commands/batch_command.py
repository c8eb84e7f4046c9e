"""``tcc batch``: many runs over one artifact, on all processors or a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcc.batch_reports import endings, print_done, print_runs, print_validation
from tcc.batches.folder import FORMATS, PLAIN
from tcc.batches.making import SHARD_SIZE, batch, read_file
from tcc.batches.validating import validate_batch
from tcc.files import same_file
from tcc.forecast import warn_of_relaxed
from tcc.opening import (
    artifact_argument,
    input_option,
    json_option,
    open_artifact,
    options_of,
    require_artifact,
    trust_options,
)
from tcc.options import compile_options, digest_option
from tcc.plain_batch import outputs, plain_batch
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.terms.settings import Settings

_SHARDED = ("shard_size", "part_format", "dask", "started_ms")
_RUNNING = ("requests", "no_ledgers", "overwrite", "shard_size", "part_format", "started_ms")
_VALIDATING = ("kernel", "pin")


@click.command("batch")
@artifact_argument
@input_option("--requests", "the settings of each run: JSON lines, or a table (.parquet)")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    required=True,
    help=f"a folder: {PLAIN} and the ledgers by number; or, in shards, a part for each",
)
@click.option("--processes", type=click.IntRange(1, 1024), help="by default one a processor")
@click.option("--no-ledgers", is_flag=True, help="keep the results alone")
@click.option("--overwrite", is_flag=True, help="replace what is there")
@click.option(
    "--shard-size",
    type=click.IntRange(1, 1_000_000),
    metavar="N",
    help=f"in shards of so many runs, {SHARD_SIZE} unless told; the same command goes on",
)
@click.option(
    "--format", "part_format", type=click.Choice(FORMATS), help="in shards: of their parts"
)
@click.option("--dask", metavar="ADDRESS", help="in shards, on a cluster: its scheduler, or local")
@click.option(
    "--started-ms",
    type=click.IntRange(0, (1 << 48) - 1),
    metavar="MS",
    help="in shards: UTC milliseconds of all ledgers, by default those of the beginning",
)
@click.option("--validate", "validating", is_flag=True, help="verify every ledger of the folder")
@click.option(
    "--kernel",
    type=click.Choice(["pure", "fast"]),
    default="pure",
    show_default=True,
    help="with --validate: as of tcc validate",
)
@digest_option("--pin", "with --validate: the artifact digest that is trusted")
@trust_options
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context, /, artifact: Path, out: Path, validating: bool, as_json: bool, **given: Any
) -> None:
    """Make the run of each request over ARTIFACT (or a grammar), or verify those of a folder.

    Each run is the one that `tcc run` makes of the same settings. In shards (`--shard-size`,
    `--format`, `--dask`) the same command goes on where a batch was cut off. Exit code 0: all are
    certified, or valid. 1: a ledger is not valid. 2: some runs claim nothing, or ledgers are
    missing.
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
            kernel=given["kernel"],
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
    del given["kernel"], given["pin"]
    inputs = [requests]
    options = options_of(given)
    opened = open_artifact(artifact, command="batch", options=options, read=inputs, **trust)
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
        made, certified = plain_batch(opened, requests, out, **more)
        ctx.exit(print_runs(made, certified, out, as_json))


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
    """The first request, None where there is none, and how many there are.

    Args:
        whole: look at each before the first is run; a batch in shards does so by itself.
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

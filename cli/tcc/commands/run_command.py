"""``tcc run``: the best plans of one realised race, with a certificate and a ledger."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.exits import CLEAN, DECLINED
from tcc.opening import (
    artifact_argument,
    compile_options,
    digest_option,
    json_option,
    open_artifact,
    options_of,
)
from tcc.progress import live_line
from tcc_runtime.errors import LedgerError, SettingsError
from tcc_runtime.outcome import Run
from tcc_runtime.recorder import Recorder
from tcc_runtime.search import search
from tcc_runtime.settings import Settings
from tcc_runtime.sinks import HashOnly, LedgerFile

_STOPS = {
    "max_expansions": "the limit on expansions was reached",
    "max_seconds": "the time limit was reached",
    "interrupted": "the run was interrupted",
    "precision": "a rounding stayed open at the greatest precision",
    "guard": "a guard ended the run",
}


@click.command("run")
@artifact_argument
@click.option("--mode", type=click.Choice(("exact",)), default="exact", show_default=True)
@digest_option("--seed", "drawn where it is not given")
@click.option("--top", default=1, show_default=True, type=click.IntRange(1), help="how many plans")
@click.option("--recipe", type=click.Choice(("r1", "r2")), default="r2", show_default=True)
@click.option("--keys", type=click.Choice(("finalized",)), default="finalized", show_default=True)
@click.option("--race", type=click.Choice(("coupled",)), default="coupled", show_default=True)
@click.option("--alpha", default="0", show_default=True, help="of the potential, a decimal")
@click.option("--eta", default="1", show_default=True, help="of the potential, a decimal")
@click.option("--max-expansions", type=click.IntRange(1), help="stop there, with the gap")
@click.option("--max-seconds", type=float, help="stop then, with the gap")
@click.option("--ledger", type=click.Path(dir_okay=False, path_type=Path), help="a new file")
@click.option("--overwrite", is_flag=True, help="replace a ledger that is there")
@click.option("--withhold-seed", is_flag=True, help="leave the seed out of the ledger")
@compile_options
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    ledger: Path | None,
    overwrite: bool,
    withhold_seed: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Search ARTIFACT (or a grammar, compiled on the spot) for its best plans.

    Exit code 0: certified. 2: a limit was reached, and nothing is claimed.
    """
    compiling = {name: given.pop(name) for name in _COMPILING}
    settings = _settings(given)
    opened = open_artifact(artifact, command="run", options=options_of(**compiling))
    sink = HashOnly() if ledger is None else LedgerFile(ledger, overwrite=overwrite)
    started = time.time_ns() // 1_000_000
    recorder = Recorder(sink, started_ms=started, withhold=withhold_seed)
    try:
        with live_line(quiet=as_json) as on_expand:
            run = search(opened, settings, recorder, on_expand)
    except LedgerError as error:
        hint = (
            "; give --overwrite to replace it" if isinstance(error.cause, FileExistsError) else ""
        )
        raise click.ClickException(f"{error.path}: {error.cause.strerror}{hint}") from None
    if as_json:
        screen.print_json("run", _fields(run))
    else:
        _print(run, ledger)
    ctx.exit(DECLINED if run.claim_type == "NoCert" else CLEAN)


_COMPILING = ("beta", "tilt", "max_states", "timeout", "count_bits")


def _settings(given: dict[str, Any]) -> Settings:
    seed = given.pop("seed")
    given.pop("race")
    try:
        return Settings(seed=seed or os.urandom(32), **given)
    except SettingsError as error:
        raise click.BadParameter(
            f"expected {error.expected}, found {error.found}",
            param_hint=f"--{error.field.replace('_', '-')}",
        ) from None


def _fields(run: Run) -> dict[str, Any]:
    plans = [
        {"calls": list(p.calls), "cost": p.cost, "value": p.value, "leaf_id": p.leaf_id}
        for p in run.plans
    ]
    fields = {
        "mode": run.mode,
        "claim_type": run.claim_type,
        "stop": str(run.stop),
        "plans": plans,
        "expansions": run.expansions,
        "leaves": run.leaves,
        "frontier_key": run.frontier_key,
        "gap": run.gap,
        "guards": [str(guard) for guard in run.guards],
        "seed": run.seed,
        "ledger_head": run.ledger_head,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _print(run: Run, ledger: Path | None) -> None:
    for place, plan in enumerate(run.plans, 1):
        click.echo(f"{place:>3}. {' '.join(plan.calls) or '(the empty plan)'}")
        click.echo(click.style(f"     value {plan.value}, cost {plan.cost}", dim=True))
    if not run.plans:
        click.echo("no plan was found")
    rows: list[tuple[str, object]] = [
        ("expansions", f"{run.expansions}, {run.leaves} leaves"),
        ("seed", run.seed),
    ]
    if run.gap is not None:
        rows.insert(1, ("gap", run.gap))
    if run.guards:
        rows.append(("guards", ", ".join(str(guard) for guard in run.guards)))
    if ledger is not None:
        rows.append(("ledger", f"{ledger}, head {run.ledger_head}"))
    screen.print_fields(rows)
    if run.claim_type == "NoCert":
        why = _STOPS.get(str(run.stop), "a guard fired")
        screen.doubtful(f"NoCert: {why}; another plan may score higher, by up to the gap")
    else:
        rest = "these" if len(run.plans) > 1 else "it"
        screen.good(f"{run.claim_type}: no plan but {rest} could have scored higher in this run")

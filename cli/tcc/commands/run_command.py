"""``tcc run``: searches for the best plans of one realised race, with a certificate and a ledger.

:mod:`tcc.library.running` prints the results as text; :mod:`tcc.outputs.runs` declares the JSON.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from tcc import opening, options, screen
from tcc.files import is_grammar, same_file
from tcc.library.running import announce, forecast, print_run, run_output, warn_of_relaxed
from tcc.screen import CLEAN, DECLINED, OnExpand, live_line
from tcc_certs.errors import Rejected
from tcc_certs.policy.atoms import Atom
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import HashOnly, LedgerFile
from tcc_runtime.outcome import Run
from tcc_runtime.resume import resume
from tcc_runtime.run import search
from tcc_runtime.settings.modes import opening_digest
from tcc_runtime.settings.settings import DEFAULT_DELTA, Settings

_RUNNING = options.running()


@click.command("run", cls=options.Sectioned)
@options.artifact_argument
@options.all_options(_RUNNING)
@options.asking_options
@click.option(
    "--predict/--no-predict",
    "asked",
    cls=options.FlagPair,
    default=None,
    help="first print how many expansions are predicted; by default for small artifacts",
)
@click.option(
    "--opening-only", is_flag=True, help="print the opening of this run, and do not search"
)
@click.option("--withhold-seed", is_flag=True, help="omit the seed from the ledger")
@click.option(
    "--pam", is_flag=True, help="also print a PaM value of each plan, for ranking (NoCert)"
)
@click.option("--ledger", type=options.OUTPUT, help="file of the ledger")
@options.overwrite_option
@click.option("--resume", "resumes", is_flag=True, help="resume the unfinished run of the ledger")
@options.trust_options
@options.config_options
@options.compile_options_of_run
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    /,
    artifact: Path,
    ledger: Path | None,
    quotes: Path | None,
    adapters: Path | None,
    account: Path | None,
    atoms: Path | None,
    overwrite: bool,
    resumes: bool,
    opening_only: bool,
    withhold_seed: bool,
    pam: bool,
    asked: bool | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Search ARTIFACT (or a grammar, compiled on the spot) for its best plans.

    Exit code 0: certified. 2: nothing is claimed, because a limit was reached or the mode claims
    nothing.

    --resume takes the settings of the run from the ledger; give it the seed, and --quotes if the
    run still has questions to ask.
    """
    config = opening.config_of(given, artifact, output_format="json" if as_json else "text")
    options.fill(given, config.run)
    if is_grammar(artifact):
        options.fill(given, config.compile)
    handed = () if atoms is None else opening.atoms_in(atoms)
    settings, predicted = _settings(given, handed), None
    trust = {name: given.pop(name) for name in ("checked", "no_verify")}
    inputs = [path for path in (quotes, adapters, atoms, account) if path is not None]
    opened = opening.open_bounded(
        artifact, command="run", options=opening.options_of(given), read=inputs, **trust
    )
    if ledger is not None and same_file(ledger, inputs):
        raise click.BadParameter(f"{str(ledger)!r} is what is run", param_hint="--ledger")
    quoter = None if quotes is None else opening.quotes_in(quotes, opened)
    known = None if adapters is None else opening.adapters_in(adapters)
    drawn_on = None if account is None else opening.account_in(account)
    if quoter is not None and quoter.names_atoms and settings.delta is None:
        settings = replace(settings, delta=DEFAULT_DELTA)
    try:
        if opening_only:
            digest = opening_digest(opened, settings).hex()
            if as_json:
                from tcc.outputs.runs import OpeningOutput

                screen.print_output(OpeningOutput(opening=digest))
            else:
                screen.say(digest)
            ctx.exit(CLEAN)
        if not resumes:
            predicted = forecast(opened, settings, asked)
        if predicted is not None:
            announce(predicted, settings.max_expansions, quiet=as_json)
        estimated = None if resumes else warn_of_relaxed(opened, settings, asked)
        with live_line(quiet=as_json) as on_expand:
            if resumes:
                asking = {"quoter": quoter, "adapters": known, "account": drawn_on, "pam": pam}
                run = _resume(opened, ledger, settings, withhold_seed, on_expand, asking)
            else:
                sink = HashOnly() if ledger is None else LedgerFile(ledger, overwrite=overwrite)
                started = time.time_ns() // 1_000_000
                recorder = Recorder(sink, started_ms=started, withhold=withhold_seed)
                run = search(
                    opened,
                    settings,
                    recorder,
                    on_expand,
                    quoter=quoter,
                    adapters=known,
                    account=drawn_on,
                    pam=pam,
                )
    except SettingsError as error:
        raise options.setting_error(error) from None
    except Rejected as refusal:
        if refusal.code.value[0] == "K" and account is not None:
            opening.refuse(account, refusal)
        opening.refuse(ledger if resumes and ledger else artifact, refusal)
    except LedgerError as error:
        if not isinstance(error.cause, FileExistsError):
            raise
        hint = "give --overwrite to replace it, --resume to go on with it"
        raise click.ClickException(f"{error.path}: {error.cause.strerror}; {hint}") from None
    if as_json:
        screen.print_output(run_output(run, predicted, estimated))
    else:
        print_run(run, ledger, None if resumes else settings.top, predicted)
    ctx.exit(DECLINED if run.claim_type == "NoCert" else CLEAN)


def _settings(given: dict[str, Any], atoms: tuple[Atom, ...]) -> Settings:
    """Take the settings of the run out of `given`; compiler options remain there."""
    chosen = options.taken(_RUNNING, given)
    # `--count-bits` limits the counts of this run; the grammar is compiled without a limit.
    bits, given["count_bits"] = given["count_bits"], None
    chosen["seed"] = chosen["seed"] or os.urandom(32)
    if chosen["delta"] is not None:
        chosen["delta"] = options.plain_delta(chosen["delta"])
    try:
        return Settings(count_bits=bits or 0, atoms=atoms, **chosen)
    except SettingsError as error:
        raise options.setting_error(error) from None


def _resume(
    artifact: Artifact,
    ledger: Path | None,
    settings: Settings,
    withhold: bool,
    on_expand: OnExpand | None,
    asking: dict[str, Any],
) -> Run:
    ctx = click.get_current_context()
    if ledger is None or ctx.get_parameter_source("seed") != ParameterSource.COMMANDLINE:
        raise click.UsageError("--resume needs the --ledger of the run and its --seed")
    return resume(
        artifact,
        ledger,
        settings.seed,
        opening_salt=settings.opening_salt,
        withhold=withhold,
        on_expand=on_expand,
        **asking,
    )

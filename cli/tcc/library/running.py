"""Runs of the library: one run, many runs, and predictions of their lengths.

:func:`search` and :func:`runs` read the clock or draw randomness only if their arguments leave the
time or the seed open.  :class:`SettingsByName` repeats the settings of a run for type checkers.  A
test compares it with :class:`tcc_runtime.settings.settings.Settings`, which defines them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from tcc import files, screen
from tcc.library import Given, artifact_of, require_known
from tcc_certs.formats.codec import format_decimal
from tcc_certs.policy.listing import relaxed_texts, shortened
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.outcome import Progress, Run
from tcc_runtime.settings import predict as predicting
from tcc_runtime.settings.predict import Estimate, Prediction
from tcc_runtime.settings.settings import TABLE, Ask, Keys, Mode, Race, Settings

if TYPE_CHECKING:
    from tcc.outputs.runs import RunOutput
    from tcc_runtime.account.account import Account
    from tcc_runtime.pricing.quotes import Quoter


_STOPS = {
    "max_expansions": "the limit on expansions was reached",
    "max_seconds": "the time limit was reached",
    "interrupted": "the run was interrupted",
    "precision": "a rounding stayed open at the greatest precision",
    "guard": "a guard ended the run",
}


def run_output(
    run: Run, predicted: Prediction | None = None, estimated: Estimate | None = None
) -> RunOutput:
    """Return the JSON document of a run, without members that have no value.

    Args:
        predicted: the prediction made before the run, if any.
        estimated: the estimate made before a run over a relaxed artifact, if any.
    """
    from tcc.outputs import optional, runs as documents

    known = guessed = None
    if predicted is not None:
        known = documents.PredictionJson(lower=predicted.lower, upper=predicted.upper)
    if estimated is not None:
        guessed = documents.EstimateJson(**estimate_fields(estimated))
    return documents.RunOutput(
        mode=run.mode,
        claim_type=run.claim_type,
        law=run.law,
        stop=run.stop,
        after=optional(list(run.after) or None),
        plans=[
            documents.RunPlanJson(
                calls=list(p.calls),
                cost=p.cost,
                cost_high=optional(p.cost_high),
                value=p.value,
                leaf_id=p.leaf_id,
                assumed=optional(list(p.assumed) or None),
                pam=optional(p.pam and documents.PamJson(value=p.pam[0], rank=p.pam[1])),
            )
            for p in run.plans
        ],
        pam_claim=optional("NoCert" if any(p.pam for p in run.plans) else None),
        expansions=run.expansions,
        predicted_expansions=optional(known),
        estimated_expansions=optional(guessed),
        leaves=run.leaves,
        materialised=optional(run.materialised),
        tail_lse=optional(run.tail_lse),
        frontier_key=optional(run.frontier_key),
        gap=optional(run.gap),
        guards=[str(guard) for guard in run.guards],
        seed=run.seed,
        ledger_head=optional(run.ledger_head),
        **_spent(run),
    )


def run_fields(run: Run) -> dict[str, Any]:
    """Return the members of a run's document, without ``format`` and ``format_version``."""
    return run_output(run).as_fields()


def _spent(run: Run) -> dict[str, Any]:
    """Return the members about amounts spent on questions and about atoms; empty without either."""
    stated = {} if run.taken is None else dict(run.taken.fields())
    if run.spent is None:
        return stated
    return {
        "price_spent": run.spent.price,
        "latency_ms": run.spent.latency,
        "epsilon_used": format_decimal(run.spent.epsilon_used, 9),
        **stated,
    }


def print_run(
    run: Run, ledger: Path | None, top: int | None, predicted: Prediction | None = None
) -> None:
    """Print a run for people: the plans, the amounts, and the claim.

    Args:
        ledger: the file of the ledger, if any.
        top: the number of plans that were requested; None if unknown.
    """
    nothing = "(nothing more)" if run.after else "(the empty plan)"
    if run.after:
        screen.say(f"after {' '.join(run.after)}:")
    for place, plan in enumerate(run.plans, 1):
        screen.say(f"{place:>3}. {' '.join(plan.calls) or nothing}")
        cost = plan.cost if plan.cost_high is None else f"{plan.cost} .. {plan.cost_high}"
        screen.say(f"     value {plan.value}, cost {cost}", dim=True)
        if plan.pam is not None:
            screen.say(f"     PaM {plan.pam[0]}, rank {plan.pam[1]}: NoCert", dim=True)
        if plan.assumed:
            screen.say(f"     assumes the answers in {shortened(plan.assumed)}", dim=True)
    if not run.plans:
        screen.say("no plan was found")
    screen.print_fields(_rows(run, ledger, predicted))
    if run.claim_type == "NoCert":
        screen.doubtful(f"NoCert: {_why(run)}")
        return
    screen.good(f"{run.claim_type}: {claim_text(run, top)}")


def claim_text(run: Run, top: int | None) -> str:
    """Return the claim of a certified run in words.

    Args:
        top: the number of plans that were requested; None if unknown.
    """
    found = len(run.plans)
    short = " this short" if run.claim_type == "TruncationOnly" else ""
    if run.after:
        short += " after these calls" if len(run.after) > 1 else " after this call"
    # A certified run with fewer plans than requested has found every existing plan.
    all_seen = top is not None and found < top
    if found == 0:
        return f"there is no plan{short}"
    if all_seen:
        return (
            f"these {found} are all the plans{short} there are"
            if found > 1
            else (f"this is the only plan{short} there is")
        )
    others = f"no other plan{short}" if found == 1 else f"no plan{short} but these {found}"
    return f"{others} could have scored higher in this run"


def _rows(run: Run, ledger: Path | None, predicted: Prediction | None) -> list[tuple[str, object]]:
    beside = "" if predicted is None else f" ({prediction_text(predicted)} predicted)"
    rows: list[tuple[str, object]] = [
        ("mode", run.mode),
        ("expansions", f"{run.expansions}{beside}, {run.leaves} leaves"),
    ]
    if run.gap is not None:
        rows.append(("gap", run.gap))
    if run.tail_lse is not None:
        rows.append(("longer plans", f"log-sum-exp of their scores at most {run.tail_lse}"))
    if run.spent is not None:
        amounts = "{price_spent} cents, {latency_ms} ms, epsilon {epsilon_used}"
        rows.append(("asking took", amounts.format(**_spent(run))))
    if run.taken is not None and (said := run.taken.fields()):
        pair: Any = said["eps_delta"]
        rows.append(("privacy", f"epsilon {pair['eps']} at delta {pair['delta']}, of its atoms"))
    if run.guards:
        rows.append(("guards", ", ".join(str(guard) for guard in run.guards)))
    rows.append(("seed", run.seed))
    if ledger is not None:
        rows.append(("ledger", f"{ledger}, head {run.ledger_head}"))
    return rows


def _why(run: Run) -> str:
    if not run.plans:
        return _why_none(run)
    stop = _STOPS.get(str(run.stop))
    if stop is not None and run.gap is not None:
        return f"{stop}; another plan may score higher, by up to the gap"
    if stop is not None:
        return stop
    if "BudgetFail" in run.guards:
        return "what plans cost could not all be asked (--quotes, caps); nothing is claimed"
    if run.guards:
        return f"{', '.join(str(guard) for guard in run.guards)}; nothing is claimed"
    if run.raw_input_dependent:
        return "the raw input decided the grammar or the models, so nothing is certified"
    if not run.verified:
        return "the artifact was not verified, so nothing is certified"
    return "this mode claims nothing of the plans that it did not visit"


def _why_none(run: Run) -> str:
    """Return why a run without a claim found no plan; plans may exist nevertheless."""
    reason = _STOPS.get(str(run.stop)) or ", ".join(str(guard) for guard in run.guards)
    before = f"{reason} before a plan was found" if reason else "no plan was found"
    return f"{before}; this does not say that there is none"


_MANY = 20  # factor of the effort for a requested prediction


def forecast(artifact: Artifact, settings: Settings, asked: bool | None) -> Prediction | None:
    """Return the prediction for a run; None if it is not possible or not wanted.

    Args:
        asked: whether to make a prediction; None makes one only for a small artifact.

    Raises:
        SettingsError: as a run with these settings raises it.
        Rejected: as a run over this artifact raises it.
    """
    if predicting.needs_estimate(artifact):
        return None
    if asked is None:
        small = artifact.manifest.edges <= predicting.MOST_EDGES
        return predicting.predict(artifact, settings) if small else None
    if not asked:
        return None
    found = predicting.predict(artifact, settings, effort=_MANY * predicting.EFFORT)
    if found is None:
        why = predicting.why_not(artifact, settings) or "its numbers leave the range of floats"
        screen.say(f"no prediction: {why}", err=True)
    return found


def announce(prediction: Prediction, cap: int | None, *, quiet: bool) -> None:
    """Print the prediction, and warn if the run is likely to reach its limit on expansions."""
    if not quiet:
        screen.say(f"predicted   {prediction_text(prediction)} expansions", dim=True)
    if cap is not None and prediction.lower > cap:
        screen.warn(
            f"warning: {prediction_text(prediction)} expansions are predicted, "
            f"and --max-expansions is {cap}: the run is likely to end there, without a claim"
        )


def warn_of_relaxed(artifact: Artifact, settings: Settings, asked: bool | None) -> Estimate | None:
    """Warn on stderr before a run over a relaxed artifact, with an estimate of its length.

    Prints nothing if the artifact's plans are exactly the grammar's, each once.

    Args:
        asked: False to make no estimate; None makes one unless the artifact is large.

    Returns:
        the estimate, or None.

    Raises:
        SettingsError: as a run with these settings raises it.
        Rejected: as a run over this artifact raises it.
    """
    if not predicting.needs_estimate(artifact):
        return None
    large = artifact.manifest.edges > predicting.MOST_ESTIMATED
    unwanted = asked is False or (asked is None and large)
    found = None if unwanted else predicting.estimate(artifact, settings)
    if found is not None:
        said = estimate_text(found)
    elif unwanted:
        said = "what it takes was not estimated" + ("" if asked is False else " (--predict does)")
    else:
        why = (
            predicting.why_no_estimate(artifact, settings)
            or "its numbers leave the range of floats"
        )
        said = f"what it takes is not known: {why}"
    screen.warn(f"warning: {_left(artifact)}: {said}{_ends(settings, found)}")
    return found


def _left(artifact: Artifact) -> str:
    run = relaxed_texts(artifact.core, artifact.manifest.relaxed)
    if run:
        return f"the automaton leaves to this run: {shortened(run)}"
    return "the automaton has several paths for one plan"


def _ends(settings: Settings, found: Estimate | None) -> str:
    """Return a note on the run's limits if the run is not known to end soon, else ''."""
    cap, limit = settings.max_expansions, settings.max_seconds
    if cap is not None and found is not None and found.lower > cap:
        return f"; --max-expansions is {cap}: it is likely to end there, without a claim"
    if cap is None and limit is None and (found is None or found.upper is None):
        return "; nothing ends it early but --max-expansions or --max-seconds"
    return ""


def estimate_text(found: Estimate) -> str:
    """Return an estimate for people."""
    if found.upper is None:
        size = f"more than about {_short(found.lower)}"
    else:
        lower, upper = _short(found.lower), _short(found.upper)
        size = f"about {lower}" if lower == upper else f"about {lower} to {upper}"
    return (
        f"it is estimated to take {size} expansions ({found.kept} of {found.drawn} plans drawn "
        "from the automaton are plans of the grammar)"
    )


def estimate_fields(found: Estimate) -> dict[str, Any]:
    """Return an estimate as a JSON object."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "drawn": found.drawn,
        "kept": found.kept,
    }


def prediction_text(prediction: Prediction) -> str:
    """Return a predicted mean for people; one number if both ends round to the same."""
    lower, upper = _short(prediction.lower), _short(prediction.upper)
    return f"about {lower}" if lower == upper else f"{lower} to {upper}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 1e6 else f"{value:.1e}"


_NAMED = tuple(option for option in TABLE if option.name != "seed")


class SettingsByName(TypedDict, total=False):
    """Settings of a run, by name; omitted settings keep their defaults."""

    mode: Mode | None
    top: int
    recipe: Literal["r1", "r2"]
    keys: Keys | None
    race: Race | None
    inflate: str
    truncate: int | None
    tau: str
    alpha: str
    eta: str
    max_expansions: int | None
    max_seconds: float | None
    count_bits: int
    ask: Ask | None
    price_cap: int | None
    sla_ms: int | None
    epsilon_cap: str | None
    price_weight: str
    latency_weight: str
    epsilon_weight: str
    margin: str | None
    delta: str | None
    raw_input_dependent: bool
    opening_salt: bytes | None
    beacon: bytes | None
    client_nonce: bytes | None
    after: Sequence[str]


def search(
    artifact: Given,
    *,
    seed: bytes | None = None,
    ledger: str | Path | None = None,
    overwrite: bool = False,
    started_ms: int | None = None,
    on_expand: Callable[[Progress], bool | None] | None = None,
    quoter: Quoter | None = None,
    adapters: str | Path | None = None,
    atoms: Sequence[Mapping[str, Any]] = (),
    account: Account | None = None,
    **settings: Unpack[SettingsByName],
) -> Run:
    """Find the best plans of one realised race, and prove that no other plan is better.

    Args:
        artifact: from :func:`load` or :func:`compile_file`, or the file of an artifact or a
            grammar.
        seed: 32 bytes.  The seed and the artifact determine the race.  None draws a seed.
        ledger: a new file for the record of the run; None writes no ledger.
        overwrite: whether to replace an existing ledger.
        started_ms: the start time in the ledger, UTC milliseconds; None reads the clock.
        on_expand: called after each expansion; the run ends if it returns True.
        quoter: quotes the costs of calls whose cost is a range.  It is a callable from a
            :class:`~tcc_runtime.pricing.quotes.Question` to an
            :class:`~tcc_runtime.pricing.quotes.Answer`.
        adapters: the registry of the adapters that models run with; each is checked against its
            folder.  A run with a ledger and a quoter needs one if models name adapters.
        atoms: the mechanisms that privatised the input before the run, in the form of
            docs/privacy.md: ``{"mechanism": "laplace", "scale": "2", "sensitivity": "1"}``.
        account: the account that pays for questions, shared with other runs, threads and processes.
            The run then needs a ledger.
        settings: the fields of :class:`tcc_runtime.settings.settings.Settings`, by name: ``top``,
            ``mode``, ``max_expansions``, ``max_seconds`` and so on.

    Raises:
        TypeError: a setting is unknown or has another type.
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: the ledger cannot be written.
        tcc_runtime.errors.AnswerError: the quoter returned no valid answer.
        tcc_certs.errors.Rejected: E101 to E104, an atom is invalid; A101 to A107, the registry or
            an adapter is refused; K101 to K106, the account is refused.
    """
    from tcc_certs.privacy.atoms_file import atoms_of
    from tcc_runtime.adapters.registry import read_registry
    from tcc_runtime.ledger.recorder import Recorder
    from tcc_runtime.ledger.sinks import LedgerFile
    from tcc_runtime.run import search as run

    require_known("search", settings, _NAMED)
    artifact = artifact_of(artifact)
    known = None if adapters is None else read_registry(Path(adapters))
    handed = atoms_of(list(atoms))
    chosen = Settings(seed=os.urandom(32) if seed is None else seed, atoms=handed, **settings)
    if ledger is None:
        asking: dict[str, Any] = {"quoter": quoter, "adapters": known, "account": account}
        return run(artifact, chosen, on_expand=on_expand, **asking)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    recorder = Recorder(LedgerFile(Path(ledger), overwrite=overwrite), started_ms=started)
    return run(
        artifact,
        chosen,
        recorder,
        on_expand,
        quoter=quoter,
        adapters=known,
        account=account,
    )


def predict(artifact: Given, **settings: Unpack[SettingsByName]) -> Prediction | None:
    """Predict the number of expansions of a search with these settings, averaged over all seeds.

    Args:
        artifact: the same as for :func:`search`.
        settings: the same as for :func:`search`, without the seed.

    Returns:
        lower and upper bounds of the mean.  None if the mean is unknown: for more than one plan,
            for anchored keys, for cuts, for bounds that count other plans, or beyond the range of
            floats.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
    """
    require_known("predict", settings, _NAMED)
    return predicting.predict(artifact_of(artifact), Settings(seed=bytes(32), **settings))


def estimate(artifact: Given, **settings: Unpack[SettingsByName]) -> Estimate | None:
    """Estimate the number of expansions of a search over a relaxed artifact, averaged over seeds.

    Args:
        artifact: the same as for :func:`search`; for an exact artifact use :func:`predict`.
        settings: the same as for :func:`search`, without the seed.

    Returns:
        an estimate from a fixed sample of plans of the automaton.  None if it is unknown: without a
            race that keys bound, if costs are ranges, or beyond the range of floats.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
    """
    require_known("estimate", settings, _NAMED)
    return predicting.estimate(artifact_of(artifact), Settings(seed=bytes(32), **settings))


def runs(
    artifact: Given,
    seeds: Iterable[bytes],
    *,
    processes: int | None = None,
    ledgers: str | Path | None = None,
    started_ms: int | None = None,
    overwrite: bool = False,
    **settings: Unpack[SettingsByName],
) -> Iterator[Run]:
    """Make one run for each seed, several at a time; yield the runs in the order of the seeds.

    Each run equals the run of :func:`search` with that seed.  All processes share one file of the
    artifact.

    Args:
        artifact: from :func:`load` or :func:`compile_file`, or the file of an artifact or a
            grammar.
        seeds: seeds of 32 bytes, read as they are needed.
        processes: the number of processes; None is one per processor.
        ledgers: a folder for the ledgers, ``00000001.ledger`` and so on; None writes no ledgers.
        started_ms: the start time in the ledgers, UTC milliseconds; None reads the clock.
        overwrite: whether to replace existing ledgers.
        settings: the same as for :func:`search`, equal for all runs.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: a ledger cannot be written.
        ValueError: `processes` is less than 1.
        tcc_runtime.errors.WorkerLost: a process was killed.
        tcc_certs.errors.Rejected: the file of the artifact was changed since it was opened.
    """
    from tcc_runtime.pool import RunRequest, runs as pooled

    require_known("runs", settings, _NAMED)
    artifact = artifact_of(artifact)
    started = time.time_ns() // 1_000_000 if started_ms is None else started_ms
    requests = (
        RunRequest(
            settings=Settings(seed=seed, **settings),
            ledger=None if ledgers is None else files.ledger_name(Path(ledgers), number),
            started_ms=started,
            overwrite=overwrite,
        )
        for number, seed in enumerate(seeds, 1)
    )
    return pooled(artifact, requests, processes=processes)

"""Runs of the library: one, many, and the expected number of expansions of one.

The clock is read and randomness drawn only if the arguments of :func:`search` and :func:`runs`
leave the time or the seed open.  The settings of a run are repeated here by name for type checkers;
the fields of :class:`tcc_runtime.settings.settings.Settings` are the table; a test compares the
two.
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
    """The JSON document of a run, without members that have no value.

    Args:
        predicted: the prediction made before it.
        estimated: the estimate, for a run over a relaxed artifact.
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
    """The members of a run's document, without the head of every document."""
    return run_output(run).as_fields()


def _spent(run: Run) -> dict[str, Any]:
    """What asking has taken, where costs are ranges, and what is stated of atoms, where any are."""
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
    """Print a run for people: the plans, what it took, and the claim.

    Args:
        top: how many plans were asked for; None if that is not known.
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
    """What a certified run has shown, in words, about plans that exist.

    Args:
        top: as for :func:`print_run`; if fewer plans were found, there are no others.
    """
    found = len(run.plans)
    short = " this short" if run.claim_type == "TruncationOnly" else ""
    if run.after:
        short += " after these calls" if len(run.after) > 1 else " after this call"
    # A run that has certified fewer plans than it was asked for has seen every one that there is.
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
    """Of a run that claims nothing and found no plan: that it does not say that there is none."""
    reason = _STOPS.get(str(run.stop)) or ", ".join(str(guard) for guard in run.guards)
    before = f"{reason} before a plan was found" if reason else "no plan was found"
    return f"{before}; this does not say that there is none"


_MANY = 20  # times the effort, where a prediction is asked for


def forecast(artifact: Artifact, settings: Settings, asked: bool | None) -> Prediction | None:
    """The prediction for a run; None if there is none, or none was wanted.

    Args:
        asked: None if it was left open: then it is made if it takes next to no time.

    Raises:
        SettingsError: as a run with these settings.
        Rejected: as a run over this artifact.
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
    """Print the prediction, and warn if a run is not likely to end within its cap."""
    if not quiet:
        screen.say(f"predicted   {prediction_text(prediction)} expansions", dim=True)
    if cap is not None and prediction.lower > cap:
        screen.warn(
            f"warning: {prediction_text(prediction)} expansions are predicted, "
            f"and --max-expansions is {cap}: the run is likely to end there, without a claim"
        )


def warn_of_relaxed(artifact: Artifact, settings: Settings, asked: bool | None) -> Estimate | None:
    """Print on stderr, before a run over a relaxed artifact begins, about what it will take.

    Nothing is printed for an artifact whose plans are the grammar's, each once.

    Args:
        asked: False if no prediction is wanted; None if it was left open.

    Raises:
        SettingsError: as a run with these settings.
        Rejected: as a run over this artifact.
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
    """What ends the run, where it is not known that it ends soon."""
    cap, limit = settings.max_expansions, settings.max_seconds
    if cap is not None and found is not None and found.lower > cap:
        return f"; --max-expansions is {cap}: it is likely to end there, without a claim"
    if cap is None and limit is None and (found is None or found.upper is None):
        return "; nothing ends it early but --max-expansions or --max-seconds"
    return ""


def estimate_text(found: Estimate) -> str:
    """An estimate for people."""
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
    """An estimate as a JSON object."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "drawn": found.drawn,
        "kept": found.kept,
    }


def prediction_text(prediction: Prediction) -> str:
    """The mean for people: one number if both ends agree as far as they are shown."""
    lower, upper = _short(prediction.lower), _short(prediction.upper)
    return f"about {lower}" if lower == upper else f"{lower} to {upper}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 1e6 else f"{value:.1e}"


_NAMED = tuple(option for option in TABLE if option.name != "seed")


class SettingsByName(TypedDict, total=False):
    """Settings of a run by name; omitted ones keep their defaults."""

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
    """Find the best plans of one realised race, and prove that no other is better.

    Args:
        artifact: from :func:`load` or :func:`compile_file`; or a file of one, or of a grammar.
        seed: 32 bytes; the race is a function of it and of the artifact. None draws one.
        ledger: a new file for the record of the run; None keeps none.
        overwrite: replace an existing ledger.
        started_ms: UTC milliseconds for the ledger; None reads the clock.
        on_expand: called after each expansion; returning True ends the run.
        quoter: quotes the costs of calls whose cost is a range: any callable from a
            :class:`~tcc_runtime.pricing.quotes.Question` to an
            :class:`~tcc_runtime.pricing.quotes.Answer`.
        adapters: the registry of adapters that models run with, each checked against its folder; a
            run with a ledger and a quoter needs one if models name adapters.
        atoms: the mechanisms that privatised the input before the run, in the form of
            docs/privacy.md: ``{"mechanism": "laplace", "scale": "2", "sensitivity": "1"}``.
        account: the account that questions draw on, together with other runs, threads and
            processes; the run then needs a ledger.
        settings: those of :class:`tcc_runtime.settings.settings.Settings`, by name: ``top``,
            ``mode``, ``max_expansions``, ``max_seconds`` and so on.

    Raises:
        tcc_certs.errors.Rejected: E101 to E104, an atom is invalid.
        TypeError: there is no setting of that name.
        tcc_runtime.errors.SettingsError: a setting is out of its range.
        tcc_runtime.errors.LedgerError: the ledger cannot be written.
        tcc_runtime.errors.AnswerError: the quoter returned something that is no answer.
        tcc_certs.errors.Rejected: A101 to A107, of the registry and its adapters; K101 to K106, of
            the account.
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
    """Predict how many expansions a search with these settings takes, on average over all seeds.

    Args:
        artifact: as for :func:`search`.
        settings: those of :func:`search`, without the seed.

    Returns:
        an enclosure of the mean; None if it is not known: for more than one plan, anchored keys,
        cuts, bounds that count other plans, or beyond the range of floats.

    Raises:
        tcc_runtime.errors.SettingsError: a setting is out of its range.
    """
    require_known("predict", settings, _NAMED)
    return predicting.predict(artifact_of(artifact), Settings(seed=bytes(32), **settings))


def estimate(artifact: Given, **settings: Unpack[SettingsByName]) -> Estimate | None:
    """Estimate how many expansions a search over a relaxed artifact takes, on average over seeds.

    Args:
        artifact: as for :func:`search`; for an exact one, :func:`predict` says more.
        settings: those of :func:`search`, without the seed.

    Returns:
        an estimate from plans drawn from the automaton, the same each time; None if it is not
        known: without a race that keys bound, if costs are ranges, or beyond the range of floats.

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
    """Make one run for each seed, several at a time, in the order of the seeds.

    Each is the run that :func:`search` makes. All processes map one file of the artifact.

    Args:
        artifact: from :func:`load` or :func:`compile_file`; or a file of one, or of a grammar.
        seeds: 32 bytes each; taken as they are needed.
        processes: how many at a time; None is one per processor.
        ledgers: a folder for the ledgers, ``00000001.ledger`` and on; None keeps none.
        started_ms: UTC milliseconds for the ledgers; None reads the clock.
        overwrite: replace existing ledgers.
        settings: as for :func:`search`, the same for all.

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

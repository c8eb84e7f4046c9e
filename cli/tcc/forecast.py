"""How many expansions a run will take, told before it runs, and held beside what it took."""

from __future__ import annotations

from tcc import screen
from tcc_certs.core.enforced import enforced, shortened
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.terms.estimate import (
    MOST_ESTIMATED,
    Estimate,
    estimate,
    needs_estimate,
    why_no_estimate,
)
from tcc_runtime.terms.predict import EFFORT, MOST_EDGES, Prediction, predict, why_not
from tcc_runtime.terms.settings import Settings

_MANY = 20  # times the effort, where a prediction is asked for


def forecast(artifact: Artifact, settings: Settings, asked: bool | None) -> Prediction | None:
    """The prediction for a run; None where there is none, or none was wanted.

    Args:
        asked: None where it was left open: then it is made where it takes no time to speak of.

    Raises:
        SettingsError: as a run with these settings.
        Rejected: as a run over this artifact.
    """
    if needs_estimate(artifact):
        return None
    if asked is None:
        small = artifact.manifest.edges <= MOST_EDGES
        return predict(artifact, settings) if small else None
    if not asked:
        return None
    found = predict(artifact, settings, effort=_MANY * EFFORT)
    if found is None:
        why = why_not(artifact, settings) or "its numbers leave the range of floats"
        screen.say(f"no prediction: {why}", err=True)
    return found


def announce(prediction: Prediction, cap: int | None, *, quiet: bool) -> None:
    """Says what is predicted, and warns where a run is not likely to end within its cap."""
    if not quiet:
        screen.say(f"predicted   {text(prediction)} expansions", dim=True)
    if cap is not None and prediction.lower > cap:
        screen.warn(
            f"warning: {text(prediction)} expansions are predicted, "
            f"and --max-expansions is {cap}: the run is likely to end there, without a claim"
        )


def warn_of_relaxed(artifact: Artifact, settings: Settings, asked: bool | None) -> Estimate | None:
    """Says on stderr, before a run over a relaxed artifact begins, about what it will take.

    Nothing is said of an artifact whose plans are the grammar's, each once.

    Args:
        asked: False where nothing was to be predicted; None where it was left open.

    Raises:
        SettingsError: as a run with these settings.
        Rejected: as a run over this artifact.
    """
    if not needs_estimate(artifact):
        return None
    large = artifact.manifest.edges > MOST_ESTIMATED
    unwanted = asked is False or (asked is None and large)
    found = None if unwanted else estimate(artifact, settings)
    if found is not None:
        said = estimate_text(found)
    elif unwanted:
        said = "what it takes was not estimated" + ("" if asked is False else " (--predict does)")
    else:
        why = why_no_estimate(artifact, settings) or "its numbers leave the range of floats"
        said = f"what it takes is not known: {why}"
    screen.warn(f"warning: {_left(artifact)}: {said}{_ends(settings, found)}")
    return found


def _left(artifact: Artifact) -> str:
    run = enforced(artifact.core, artifact.relaxed).run
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


def estimate_fields(found: Estimate) -> dict[str, object]:
    """An estimate as a JSON object."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "drawn": found.drawn,
        "kept": found.kept,
    }


def text(prediction: Prediction) -> str:
    """The mean for people: one number where both ends agree as far as they are shown."""
    lower, upper = _short(prediction.lower), _short(prediction.upper)
    return f"about {lower}" if lower == upper else f"{lower} to {upper}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 1e6 else f"{value:.1e}"

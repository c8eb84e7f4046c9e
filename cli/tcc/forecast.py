"""How many expansions a run will take, told before it runs, and held beside what it took."""

from __future__ import annotations

import click

from tcc import screen
from tcc_runtime.artifact.load import Artifact
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
    if asked is None:
        small = artifact.manifest.edges <= MOST_EDGES
        return predict(artifact, settings) if small else None
    if not asked:
        return None
    found = predict(artifact, settings, effort=_MANY * EFFORT)
    if found is None:
        why = why_not(artifact, settings) or "its numbers leave the range of floats"
        click.echo(f"no prediction: {why}", err=True)
    return found


def announce(prediction: Prediction, cap: int | None, *, quiet: bool) -> None:
    """Says what is predicted, and warns where a run is not likely to end within its cap."""
    if not quiet:
        click.echo(click.style(f"predicted   {text(prediction)} expansions", dim=True))
    if cap is not None and prediction.lower > cap:
        screen.warn(
            f"warning: {text(prediction)} expansions are predicted, "
            f"and --max-expansions is {cap}: the run is likely to end there, without a claim"
        )


def text(prediction: Prediction) -> str:
    """The mean for people: one number where both ends agree as far as they are shown."""
    lower, upper = _short(prediction.lower), _short(prediction.upper)
    return f"about {lower}" if lower == upper else f"{lower} to {upper}"


def _short(value: float) -> str:
    return f"{value:.1f}" if value < 1e6 else f"{value:.1e}"

"""``tcc sample``: draws plans at random."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import click

from tcc import screen
from tcc.library.plan_questions import plan_json, sample
from tcc.opening import open_bounded, options_of, refusing
from tcc.options import FlagPair, artifact_argument, bytes_option, compile_options, json_option
from tcc_certs.formats.codec import format_decimal


@click.command("sample")
@artifact_argument
@click.option(
    "-n", "count", type=click.IntRange(1), default=1, show_default=True, help="number of draws"
)
@click.option(
    "--uniform/--softmax",
    "uniform",
    cls=FlagPair,
    default=True,
    help="draw every plan with the same probability (default), or in proportion to e^(-beta "
    "cost), exactly",
)
@bytes_option("--seed", "seed of the draws; by default drawn at random")
@compile_options
@json_option
def command(
    artifact: Path,
    count: int,
    uniform: bool,
    seed: bytes | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Draw plans of ARTIFACT (or of a grammar) at random, independently, with replacement.

    --softmax uses the artifact's beta and the low ends of costs; the law is exact, whatever the
    tilt.
    """
    opened = open_bounded(artifact, command="sample", options=options_of(given))
    seed = secrets.token_bytes(32) if seed is None else seed
    law = "uniform" if uniform else "softmax"
    with refusing(artifact):
        found = sample(opened, count, law="uniform" if uniform else "softmax", seed=seed)
    if as_json:
        from tcc.outputs import optional
        from tcc.outputs.questions import SampleOutput

        beta = None if uniform else format_decimal(*opened.manifest.beta)
        plans = [plan_json(plan) for plan in found]
        screen.print_output(
            SampleOutput(law=law, beta=optional(beta), seed=seed.hex(), plans=plans)
        )
        return
    for plan in found:
        screen.say(plan.cost, " ".join(plan.calls) or "()")

"""Prefixes of plans, drawn at random: what a run may be told to go on from."""

from __future__ import annotations

import random

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.artifact.plans import next_calls, walk


def drawn_prefix(rng: random.Random, artifact: Artifact, most: int = 3) -> tuple[str, ...]:
    """Up to `most` calls, each of which may follow those before it; at least one if one may."""
    calls: list[str] = []
    for _ in range(rng.randint(1, most)):
        following = next_calls(artifact, walk(artifact, calls))
        if not following:
            break
        calls.append(rng.choice(following))
    return tuple(calls)

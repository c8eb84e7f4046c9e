"""Artifacts to ask about, exact ones and ones with bounds, each with the list of its plans."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tcc_runtime.artifact.load import Artifact, load
from tests.oracle.build import build as build_from_plans
from tests.oracle.cores import random_core
from tests.oracle.plans import plans as list_plans
from tests.runtime.graphs import free_core, opened, random_network
from tests.runtime.relaxing import random_relaxed

Plan = tuple[str, ...]


def exact(rng: random.Random) -> tuple[Artifact, set[Plan]]:
    """An artifact with exact counts; all of these have calls of the same few names."""
    while True:
        data, core = random_core(rng)
        words = list_plans(core, 4)
        if words:
            artifact = load(build_from_plans(data, words))
            return artifact, {tuple(core.calls[call].text for call in word) for word in words}


def relaxed(rng: random.Random) -> tuple[Artifact, set[Plan]]:
    """One that leaves statements to the run; there may be no plan."""
    found = random_relaxed(rng, 60)
    return opened(found.data, found.rows, relaxed=found.named), set(found.plans)


def nondeterministic(rng: random.Random) -> tuple[Artifact, set[Plan]]:
    """One in which a call may lead to several states."""
    rows = random_network(rng, 2, 2, 2)
    words: list[set[Plan]] = []
    for accept, edges in rows:
        more = {("ab"[call], *word) for call, target in edges for word in words[target]}
        words.append(more | ({()} if accept else set()))
    return opened(free_core([1, 2], 9), rows, nondeterministic=True), words[-1]


def artifacts(seed: int) -> Iterator[tuple[Artifact, set[Plan]]]:
    """Two of three are exact."""
    rng = random.Random(seed)
    while True:
        yield exact(rng)
        yield exact(rng)
        yield rng.choice([relaxed, nondeterministic])(rng)


def cost_of(artifact: Artifact, plan: Plan) -> int:
    """By the low costs of the grammar, nano-units."""
    costs = {call.text: call.cost_low for call in artifact.core.calls}
    return sum(costs[call] for call in plan)

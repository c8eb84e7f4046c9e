"""Random artifacts with costs that are ranges, quoters, and settings of runs over them."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable

from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.pricing.quotes import Answer, Question
from tests.oracle.cores import depth, letters, make_core
from tests.runtime.graphs import build, random_network, random_rows

WIDTHS = (0, 10**8, 10**9, 3 * 10**9)


def ranged_core(rng: random.Random, calls: int, same: float) -> bytes:
    """A core of that many letters, most of their costs ranges, with 0 to 3 models each."""
    lows = [rng.randrange(-(10**8), 2 * 10**9) for _ in range(calls)]
    highs = [low + rng.choice(WIDTHS) for low in lows]
    parts = letters(calls, cost=lows, high=highs)
    parts["tools"] = [_tool(rng, tool, same) for tool in parts["tools"]]
    plan = ["repeat", ["call", set(range(calls))], 0, 12]
    core = make_core(**parts, plan=plan, statements=[depth(12)])
    new = any("quality" in model for tool in parts["tools"] for model in tool.get("models", ()))
    return core.replace(b'"version":[1,0]', b'"version":[1,1]') if new else core


def _tool(rng: random.Random, tool: dict, same: float) -> dict:
    models = [
        {
            "name": f"m{i}",
            "price": rng.randint(0, 3),
            "latency_ms": rng.randint(0, 90),
            "epsilon": rng.choice((0, 10**7)),
            **rng.choice(({}, {"quality": "1"}, {"quality": "0.03"}, {"quality": "0.6"})),
        }
        for i in range(rng.randint(0, 3))
    ]
    found = {**tool, "models": models} if models else dict(tool)
    return {**found, "quotes": "same"} if rng.random() < same else found


def ranged_artifact(rng: random.Random) -> bytes:
    """A random artifact, deterministic or not, at least one cost a range."""
    while True:
        calls = rng.randint(1, 4)
        core = ranged_core(rng, calls, rng.choice((0, 0.5, 1)))
        network = rng.random() < 0.3
        rows = (random_network if network else random_rows)(rng, calls, rng.randint(1, 4), 3)
        beta, tilt = rng.choice(("1", "3.25", "0")), rng.choice((0, 0, 6, 8))
        data = build(core, rows, beta, tilt, nondeterministic=network)
        artifact = load(data)
        if artifact.cost_low != artifact.cost_high:
            return data


class Unreliable:
    """A quoter that knows nothing at times, answers outside, or not to the point."""

    def __init__(self, rng: random.Random, honest: bool = False) -> None:
        self.asked: list[Question] = []
        self._rng = rng
        self._honest = honest

    def __call__(self, question: Question) -> Answer | None:
        self.asked.append(question)
        rng, low, high = self._rng, question.low, question.high
        kind, took = rng.random(), rng.randint(0, 120)
        if kind < 0.04:
            return None
        if kind < 0.08 and not self._honest:
            return rng.choice(
                (
                    Answer(low=low - 1, high=high - 1),
                    Answer(low=low, high=high + 1),
                    Answer(low=low, high=high),
                    Answer(low=high, high=low),
                )
            )
        one, other = rng.randint(low, high), rng.randint(low, high)
        if kind > 0.3 or {one, other} == {low, high}:
            other = one
        price = rng.choice((None, None, 0, 5))
        return Answer(low=min(one, other), high=max(one, other), latency_ms=took, price=price)


def true_cost(seed: int, question: Question) -> int:
    """One cost for each occurrence of a call that was asked about, within its range."""
    return spread(f"{seed} {question.occurrence}", question.low, question.high)


def spread(name: str, low: int, high: int) -> int:
    """A number between `low` and `high` that `name` decides."""
    word = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "big")
    return low + word % (high - low + 1)


def points(seed: int) -> Callable[[Question], Answer]:
    """A quoter that knows every cost to the last digit."""

    def quoter(question: Question) -> Answer:
        cost = true_cost(seed, question)
        return Answer(low=cost, high=cost, latency_ms=question.occurrence % 50)

    return quoter


def ranged_settings(rng: random.Random, artifact: Artifact, quoted: bool) -> dict:
    """Settings of any mode, race and key policy, with any budgets."""
    manifest = artifact.manifest
    told: dict = {"top": rng.choice((1, 1, 1, 2, 5, 50)), "recipe": rng.choice(("r1", "r2"))}
    kind = rng.choice(("plain", "coupled", "anchored", "rest", "inflated", "fallback", "literal"))
    if kind == "fallback":
        told["mode"] = "fallback"
    elif kind == "literal" and manifest.tilt == 0:
        told |= {"mode": "surrogate", "race": "literal", "keys": "anchored"}
    else:
        if kind == "inflated":
            told |= {"mode": "surrogate", "inflate": "1.7", "keys": "anchored"}
        elif kind in ("rest", "coupled"):
            told["race"] = kind
        elif kind == "anchored":
            told["keys"] = "anchored"
        if rng.random() < 0.2:
            told["truncate"] = rng.randint(0, 2)
    if rng.random() < 0.2:
        told["count_bits"] = rng.randint(3, 25)
    if rng.random() < 0.2:
        told["max_expansions"] = rng.randint(1, 9)
    if rng.random() < 0.2:
        told |= {"alpha": "0.3", "eta": "0.5"}
    for name, cap in (("price_cap", 30), ("sla_ms", 3000)):
        if rng.random() < 0.2:
            told[name] = rng.randint(0, cap)
    if rng.random() < 0.15:
        told["epsilon_cap"] = "0.05"
    if quoted and rng.random() < 0.6:
        told["ask"] = rng.choice(("leaf", "node", "node", "never"))
    if rng.random() < 0.3:
        told |= {"price_weight": "0.25", "latency_weight": "3", "epsilon_weight": "0"}
    if rng.random() < 0.3:
        told["margin"] = rng.choice(("0.1", "0.5", "0.9"))
    return told

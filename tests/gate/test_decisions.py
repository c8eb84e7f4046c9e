"""A call is allowed exactly where a plan goes on, whatever the unknown outcomes were."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

import tcc
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.gate.gate import Gate
from tests.gate.worlds import Group, Language, Worlds, arguments, drawn_grammar
from tests.oracle.cores import random_core
from tests.oracle.network import build_network

MOST = 4


def compiled(rng: random.Random, relax: tuple[str, ...] = ()) -> Artifact:
    """A grammar that has a plan; of `relax` what it has."""
    while True:
        text = drawn_grammar(rng)
        named = [name for name in relax if f" {name}" in text or f"\n{name}" in text]
        try:
            return tcc.compile_text(text, relax=named)
        except tcc.CompileError:
            continue


def deterministic(rng: random.Random) -> tuple[Artifact, Language]:
    artifact = compiled(rng)
    return artifact, Language(artifact.core, MOST)


def relaxed(rng: random.Random) -> tuple[Artifact, Language]:
    while True:
        artifact = compiled(rng, ("uses", "depth", "require", "forbid"))
        if artifact.relaxed is not None:
            return artifact, Language(artifact.core, MOST, artifact.relaxed)


def nondeterministic(rng: random.Random) -> tuple[Artifact, Language]:
    while True:
        data, core = random_core(rng)
        found = build_network(data, 4)
        if found is not None:
            return load(found), Language(core, 4)


KINDS = {
    "deterministic": deterministic,
    "relaxed": relaxed,
    "nondeterministic": nondeterministic,
}


def play(rng: random.Random, artifact: Artifact, language: Language) -> Iterator[int]:
    """One session at random; every decision is held against the list of plans."""
    gate, worlds = Gate(artifact), Worlds(language)
    table = gate._policy.tables.numbered
    groups = sorted(language.groups)
    for _ in range(MOST + 3):
        allowed = [group for group in groups if worlds.allows(group)]
        listed = {str(found) for found in gate.allowed()}
        own = {str(table(g[0]).allowed(offer_of(table(g[0]), g[1]))) for g in allowed}
        assert listed == own
        assert gate.may_finish == worlds.may_finish()
        for group in groups:
            found = gate.check(language.core.tools[group[0]].name, given(gate, group))
            assert found.allowed == (group in allowed), (group, worlds.told)
            if not found.allowed:
                assert found.code in ("R201", "R203")
            yield 1
        if not allowed:
            break
        step(rng, gate, worlds, rng.choice(allowed))
        if rng.random() < 0.2:
            settle_one(rng, gate, worlds)


def given(gate: Gate, group: Group) -> dict[str, object]:
    return arguments(gate._policy.core, group, gate._policy.tables.numbered)


def step(rng: random.Random, gate: Gate, worlds: Worlds, group: Group) -> None:
    core = gate._policy.core
    unknowns = sum(told[1] == "unknown" for told in worlds.told)
    outcome = rng.choice(("done", "done", "done", "failed", *(["unknown"] * (unknowns < 2))))
    observed = rng.choice(worlds.language.combinations(group))
    with gate.call(core.tools[group[0]].name, given(gate, group)) as permit:
        if outcome == "done":
            permit.done(observed=named(gate, group, observed))
        elif outcome == "failed":
            permit.failed("said so")
    assert permit.outcome == outcome
    worlds.told.append([group, outcome, observed])


def named(gate: Gate, group: Group, observed: tuple[int, ...]) -> dict[str, object]:
    table = gate._policy.tables.numbered(group[0])
    return {p.name: p.shown[at] for p, at in zip(table.observed, observed, strict=True)}


def settle_one(rng: random.Random, gate: Gate, worlds: Worlds) -> None:
    unknown = [at for at, told in enumerate(worlds.told) if told[1] == "unknown"]
    if not unknown:
        return
    at = rng.choice(unknown)
    group = worlds.told[at][0]
    if rng.random() < 0.5:
        gate.resolve(at + 1, "failed")
        worlds.told[at] = [group, "failed", ()]
    else:
        observed = rng.choice(worlds.language.combinations(group))
        gate.resolve(at + 1, "done", named(gate, group, observed))
        worlds.told[at] = [group, "done", observed]


def offer_of(table: Any, listed: tuple[int, ...]) -> Any:
    """The call of these listed values."""
    return table._offers[(*listed, *(None for _ in table.observed))]


@pytest.mark.parametrize("kind", KINDS)
def test_allowed_is_exactly_what_plans_go_on_with(kind: str) -> None:
    decisions, seed = 0, 0
    while decisions < 4_000:
        rng = random.Random(f"{kind} {seed}")
        artifact, language = KINDS[kind](rng)
        decisions += sum(sum(play(rng, artifact, language)) for _ in range(40))
        seed += 1


@pytest.mark.campaign
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_decisions(kind: str) -> None:
    decisions, seed = 0, 0
    while decisions < 350_000:
        rng = random.Random(f"many {kind} {seed}")
        artifact, language = KINDS[kind](rng)
        decisions += sum(sum(play(rng, artifact, language)) for _ in range(400))
        seed += 1


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        ("t x | y t(r=a) x", [("strict", "strict t")]),
        (
            "t x | y (t(r=a) x | t(r=b) y)",
            [
                ("strict", "strict t"),
                ("require", "before y require no t(r = b) since any - t(r = b)"),
            ],
        ),
        ("t x | y x", [("plan", "plan")]),
        ("t x | y x x x x t x", [("plan", "plan")]),
        ("t x | y x | y t x x x x", [("limit", "limit depth <= 5")]),
    ],
)
def test_a_refusal_beside_a_strict_tool_blames_what_forbids_it(
    plan: str, because: list[tuple[str, str]]
) -> None:
    text = (
        'grammar g version "1"\ntool t gives (r: a | b) { strict }\ntool x\ntool y\n'
        f"plan = {plan} | y\nlimit depth <= 5\n"
        "before y require no t(r = b) since any - t(r = b)"
    )
    gate = Gate(tcc.compile_text(text))
    with gate.call("y") as permit:
        permit.done()
    decision = gate.check("t")
    assert decision.code == "R201"
    assert [(one["kind"], one["text"]) for one in decision.because] == because

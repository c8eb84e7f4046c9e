"""A call is allowed exactly where the definition and a plan allow it, whatever is unknown."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

import tcc
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.gate.gate import Gate
from tests.campaigns.blocks import cases
from tests.gate.worlds import Group, Language, Worlds, drawn_grammar
from tests.oracle.cores import random_core
from tests.oracle.network import build_network

MOST = 4


def compiled(rng: random.Random, *, relax: bool = False) -> Artifact:
    """A grammar that has a plan."""
    while True:
        text = drawn_grammar(rng)
        named = ["limit", "require"] if relax else []
        try:
            return tcc.compile_text(text, relax=[one for one in named if one in text])
        except tcc.CompileError:
            continue


def deterministic(rng: random.Random) -> tuple[Artifact, Language]:
    artifact = compiled(rng)
    return artifact, Language(artifact.core, MOST)


def relaxed(rng: random.Random) -> tuple[Artifact, Language]:
    while True:
        artifact = compiled(rng, relax=True)
        if artifact.relaxed:
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
    """One session at random; the oracle decides, too."""
    gate, worlds = Gate(artifact), Worlds(language)
    groups = sorted(language.groups)
    for _ in range(MOST + 3):
        allowed = [group for group in groups if worlds.allows(group)]
        listed = [(found.tool, dict(found.arguments)) for found in gate.allowed()]
        assert sorted(map(str, listed)) == sorted(
            [str((language.name(group), language.arguments(group))) for group in allowed]
        )
        assert gate.may_finish == worlds.may_finish()
        for group in groups:
            found = gate.check(language.name(group), language.arguments(group))
            assert found.allowed == (group in allowed), (group, worlds.told)
            assert found.statement == worlds.refused_by(group)
            if not found.allowed:
                assert found.code in ("R201", "R202", "R203")
                assert (found.code == "R201") == (found.statement is None)
            yield 1
        if not allowed:
            break
        step(rng, gate, worlds, rng.choice(allowed))
        if rng.random() < 0.2:
            settle_one(rng, gate, worlds)


def step(rng: random.Random, gate: Gate, worlds: Worlds, group: Group) -> None:
    language = worlds.language
    unknowns = sum(told[1] == "unknown" for told in worlds.told)
    outcome = rng.choice(("done", "done", "done", "failed", *(["unknown"] * (unknowns < 2))))
    observed = rng.choice(language.combinations(group))
    with gate.call(language.name(group), language.arguments(group)) as permit:
        if outcome == "done":
            permit.done(observed=language.answer(group, observed))
        elif outcome == "failed":
            permit.failed("said so")
    assert permit.outcome == outcome
    worlds.made(group)
    worlds.tell(len(worlds.told) - 1, outcome, observed if outcome == "done" else ())


def settle_one(rng: random.Random, gate: Gate, worlds: Worlds) -> None:
    unknown = [at for at, told in enumerate(worlds.told) if told[1] == "unknown"]
    if not unknown:
        return
    at = rng.choice(unknown)
    group = worlds.told[at][0]
    if rng.random() < 0.5:
        gate.resolve(at + 1, "failed")
        worlds.tell(at, "failed")
    else:
        observed = rng.choice(worlds.language.combinations(group))
        gate.resolve(at + 1, "done", worlds.language.answer(group, observed))
        worlds.tell(at, "done", observed)


@pytest.mark.parametrize("kind", KINDS)
def test_allowed_is_exactly_what_plans_go_on_with(kind: str) -> None:
    decisions, seed = 0, 0
    while decisions < cases(2_000, 4_000):
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


APART = "before y require no t(r = b) since any - t(r = b)"


@pytest.mark.parametrize(
    ("plan", "because"),
    [
        ("t x | y t(r = a) x", ["plan", "strict t"]),
        ("t x | y (t(r = a) x | t(r = b) y)", ["plan", "strict t", APART]),
        ("t x | y x", ["plan"]),
        ("t x | y x x x x t x", ["plan"]),
        ("t x | y x | y t x x x x", ["plan", "limit depth <= 5"]),
    ],
)
def test_a_refusal_beside_a_strict_tool_blames_what_forbids_it(
    plan: str, because: list[str]
) -> None:
    text = (
        'grammar g version "1"\ntool t gives (r: a | b) { strict }\ntool x\ntool y\n'
        f"plan = {plan} | y\nlimit depth <= 5\n{APART}"
    )
    gate = Gate(tcc.compile_text(text))
    with gate.call("y") as permit:
        permit.done()
    decision = gate.check("t")
    assert decision.code == "R201"
    assert [one["text"] for one in decision.because] == because

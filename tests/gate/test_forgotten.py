"""A call that is known to have failed leaves nothing: a gate decides as one that never met it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import tcc
from tests.exact import brute_later as brute, drawn_later, drawn_members
from tests.exact.test_brute_later import compiled

AFTER = """grammar g version "1"

tool a gives (m: list of integer 0 .. 1, n: integer 0 .. 1)
tool b gives (x: integer 0 .. 1)
tool c(y?: integer 0 .. 1)

given w from b.x

limit depth <= 9
"""


@pytest.mark.parametrize("where", ["session.w in m", "this.y in m", "this.y > n"])
def test_a_value_that_is_not_known_is_in_no_list_of_a_call_that_failed(
    where: str, tmp_path: Path
) -> None:
    made = tcc.compile_text(f"{AFTER}before c require no a({where})\n")
    path = tmp_path / "s.session"
    with tcc.Gate(made, ledger=path, key=bytes(32)) as gate:
        with gate.call("a", {}) as permit:
            permit.unknown()
        assert not gate.check("c", {}).allowed
        gate.resolve(1, "failed")
        assert gate.check("c", {}).allowed
    with tcc.Gate(made, ledger=path, key=bytes(32)) as again:
        assert again.check("c", {}).allowed


def opened(artifact: tcc.Artifact, given: str) -> tcc.Gate:
    return tcc.Gate(
        artifact, key=bytes(32), durable=False, given=json.loads(given) if given != "{}" else None
    )


@pytest.mark.parametrize("forms", ["members", "lists", "later", "fields"])
def test_decisions_are_those_of_a_gate_that_never_met_it(forms: drawn_later.Forms) -> None:
    asked = 0
    for seed in range(40):
        rng = random.Random(seed)
        is_of = forms == "members"
        made = drawn_members.grammar(rng) if is_of else drawn_later.grammar(rng, forms)
        artifact = compiled(made)
        if artifact is None:
            continue
        given = rng.choice(brute.givens(made))
        gate, beside = opened(artifact, given), opened(artifact, given)
        steps = brute.steps(made, [], (0,), given)
        left = []
        for number in range(1, rng.choice([2, 3]) + 1):
            step = rng.choice(steps)
            arguments = json.loads(step.arguments)
            if not gate.check(step.tool, arguments).allowed:
                break
            fails = rng.random() < 0.6
            with gate.call(step.tool, arguments) as permit:
                if fails:
                    permit.unknown()
                    left.append(number)
                else:
                    permit.done(None, observed=json.loads(step.answer))
            if not fails:
                with beside.call(step.tool, arguments) as permit:
                    permit.done(None, observed=json.loads(step.answer))
        for number in left:
            gate.resolve(number, "failed")
        for step in steps:
            arguments = json.loads(step.arguments)
            decided = [one.check(step.tool, arguments).allowed for one in (gate, beside)]
            assert decided[0] == decided[1], (seed, step, drawn_later.text(made))
            asked += bool(left)
        gate.close()
        beside.close()
    assert asked > 20

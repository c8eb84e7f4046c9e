"""A call that is known to have failed leaves nothing: a gate decides as one that never met it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tcc
from tests.gate.grammars import do, gate
from tests.gate.test_statements import HEAD, STATEMENTS, drawn_call

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


@pytest.mark.parametrize("statement", STATEMENTS)
def test_decisions_are_those_of_a_gate_that_never_met_it(statement: str, tmp_path: Path) -> None:
    asked = 0
    for seed in range(12):
        rng = random.Random(f"{statement} {seed}")
        text = f"{HEAD}{statement}\n"
        ledgers = [tmp_path / f"{seed}.{name}.ledger" if seed % 2 else None for name in "ab"]
        one, beside = (gate(text, ledger=ledger, durable=False) for ledger in ledgers)
        left = []
        for _ in range(3):
            tool, arguments = drawn_call(rng)
            if not one.check(tool, arguments).allowed or not beside.check(tool, arguments).allowed:
                continue
            fails = rng.random() < 0.6
            with one.call(tool, arguments) as permit:
                if fails:
                    permit.unknown()
                    left.append(permit.seq)
                else:
                    permit.done({"r": "yes"})
            if not fails:
                do(beside, tool, arguments, result={"r": "yes"})
        for number in left:
            one.resolve(number, "failed")
        for _ in range(12):
            tool, arguments = drawn_call(rng)
            decided = [some.check(tool, arguments) for some in (one, beside)]
            assert decided[0].code == decided[1].code, (seed, tool, arguments)
            assert decided[0].because == decided[1].because
            asked += bool(left)
    assert asked > 20

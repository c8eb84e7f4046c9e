"""Artifacts for gates: no race counts, and numbers of plans rounded up to a fixed width."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tcc.commands import compile_command
from tcc_certs import kernel
from tcc_certs.call_rules import check_calls
from tcc_certs.errors import Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.policy.reader import read_core
from tcc_certs.replay.language import read_language
from tcc_certs.report import check_artifact
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.fastcheck import kernel as bulk
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.build import build
from tests.oracle.cores import random_core
from tests.oracle.examples import PLANS, example_core
from tests.oracle.plans import plans

DEEP = 'grammar deep version "1"\ntool a\ntool b\nplan = any{{0,{}}}\n'
GATE = Options(purpose="gate")
WIDE = 63
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden" / "ledgers" / "gate-2.tcca"


def deep(depth: int, purpose: Any = "gate") -> bytes:
    found = compile_text(DEEP.format(depth), Options(purpose=purpose)).artifact
    assert found is not None
    return found


def example() -> bytes:
    return build(example_core(), plans(read_core(example_core()), 4), gate=True)


def test_it_has_no_race_counts_and_its_plans_are_bounds() -> None:
    checked = kernel.check(deep(100))
    assert checked.file.manifest.critical == ("gate",)
    assert checked.file.manifest.counts == "upper"
    assert not {"plans", "race_count", "race_mantissa"} & checked.file.columns.keys()
    assert len(checked.race_count) == 0
    for q in range(101):
        exact = 2 ** (q + 1) - 1
        assert exact <= checked.plans[q] <= exact + (exact >> 55)
        assert (checked.plans[q] == exact) == (q < WIDE)


def test_few_plans_are_counted_exactly() -> None:
    checked = kernel.check(example())
    assert checked.plans[-1] == PLANS
    assert check_artifact(example(), core=True).verdict == 0


def test_a_state_takes_the_same_bytes_whatever_the_length_of_plans() -> None:
    sizes = [len(deep(depth)) for depth in (1000, 2000, 3000)]
    assert abs((sizes[2] - sizes[1]) - (sizes[1] - sizes[0])) <= 128


@pytest.mark.parametrize("number", range(60))
@pytest.mark.sampled(20)
def test_the_compiler_writes_what_the_slow_builder_writes(number: int) -> None:
    data, core = random_core(random.Random(number))
    found = compile_core(data, replace(GATE, tilt=8)).artifact
    words = plans(core, 4)
    if not words:
        assert found is None
        return
    assert found is not None
    assert check_artifact(found, core=True).verdict == 0
    if not read_artifact(found).manifest.cyclic:  # else see test_cyclic.py
        assert found == build(data, words, tilt=8, gate=True)


@pytest.mark.parametrize("depth", [1, 62, 63, 64, 200])
def test_the_fast_kernel_shows_every_state(depth: int) -> None:
    data = deep(depth)
    file = read_artifact(data)
    assert bulk.holds(file, check_calls(file))
    fast, plain = bulk.check(data), kernel.check(data)
    assert [*fast.plans] == [*plain.plans]
    assert len(fast.race_count) == 0


@pytest.mark.parametrize("check", [kernel.check, bulk.check], ids=["kernel", "bulk"])
@pytest.mark.parametrize("column", ["plans_mantissa", "plans_exponent"])
@pytest.mark.parametrize("step", [1, -1])
@pytest.mark.parametrize("at", [3, 70, 99])
def test_rejects_a_bound_that_is_off_by_one(check: Any, column: str, step: int, at: int) -> None:
    forge = Forge(deep(100))
    value = forge.values(column)[at] + step
    if value < 0:
        return
    forge.set(column, at, value)
    with pytest.raises(Rejected) as caught:
        check(forge.seal())
    assert (caught.value.code, caught.value.path) == ("C301", f"plans[{at}]")


def test_rejects_a_pair_that_is_not_canonical() -> None:
    forge = Forge(deep(100))
    at = next(q for q, up in enumerate(forge.values("plans_exponent")) if up == 2)
    mantissa = forge.values("plans_mantissa")[at]
    forge.set("plans_mantissa", at, mantissa * 2)
    forge.set("plans_exponent", at, 1)
    assert refusal(forge) == ("C301", f"plans[{at}]")


def test_rejects_columns_that_it_must_not_have() -> None:
    for name, column in (("plans", "plans"), ("race_count", "plans")):
        forge = Forge(deep(3))
        forge.columns[name] = Forge(deep(3, "run")).columns[column]
        assert refusal(forge) == ("M201", "header")


def test_rejects_a_missing_column() -> None:
    for name in ("plans_mantissa", "plans_exponent"):
        forge = Forge(deep(3))
        del forge.columns[name]
        assert refusal(forge)[0] == "M201"


def test_rejects_its_columns_without_the_feature() -> None:
    forge = Forge(deep(3))
    forge.manifest["critical"] = []
    forge.manifest["counts"] = "exact"
    assert refusal(forge)[0] == "M201"


def test_rejects_rounded_race_counts_beside_it() -> None:
    forge = Forge(deep(3))
    forge.manifest["critical"] = ["gate", "rounded"]
    forge.manifest["options"]["round_counts"] = 5
    assert refusal(forge) == ("M102", "manifest.critical")
    found = compile_text(DEEP.format(3), Options(purpose="gate", round_counts=5))
    assert [one.code for one in found.diagnostics] == ["TCC408"]


def test_a_huge_exponent_is_not_written_out() -> None:
    forge = Forge(deep(3))
    forge.set("plans_exponent", 2, (1 << 32) - 1)
    assert refusal(forge) == ("C301", "plans[2]")
    unverified = load(forge.seal(), verify=False)
    with pytest.raises(Rejected) as caught:
        unverified.plans(2)
    assert (caught.value.code, caught.value.path) == ("C301", "plans_exponent[2]")


def opened() -> Artifact:
    return load(deep(4))


def test_a_run_says_how_to_get_an_artifact_for_runs() -> None:
    for mode in (None, "exact", "surrogate", "fallback"):
        with pytest.raises(Rejected) as caught:
            search(opened(), Settings(seed=bytes(32), mode=mode))
        assert caught.value.code == "D203"
        assert "without --for gate" in caught.value.expected


def test_race_counts_are_declined() -> None:
    with pytest.raises(Rejected) as caught:
        opened().race_count(0)
    assert caught.value.code == "D203"


def test_exactness_is_refused() -> None:
    report = check_artifact(deep(4), exact=True)
    assert [(one.code, one.path) for one in report.findings] == [("P102", "manifest.critical")]


def test_the_automaton_is_that_of_the_artifact_for_runs() -> None:
    gate, run = (load(deep(30, purpose)) for purpose in ("gate", "run"))
    assert gate.manifest.root == run.manifest.root
    for name in sorted(run.file.columns.keys() - {"manifest", "plans", "race_count"}):
        assert bytes(gate.file.columns[name].data) == bytes(run.file.columns[name].data), name


@pytest.mark.parametrize(("expect", "codes"), [("<= 40", []), ("= 31", []), ("= 32", ["TCC503"])])
def test_expectations_of_few_plans_are_decided(expect: str, codes: list[str]) -> None:
    found = compile_text(DEEP.format(4) + f"expect plans {expect}\n", GATE)
    assert [one.code for one in found.diagnostics] == codes


def test_an_expectation_of_many_plans_is_not_decided_by_a_bound() -> None:
    many = 2**81 - 1
    found = compile_text(DEEP.format(80) + f"expect plans = {many}\n", GATE)
    assert [one.code for one in found.diagnostics] == ["TCC504"]


def test_the_golden_file_is_what_the_compiler_writes() -> None:
    assert deep(70) == GOLDEN.read_bytes()


def test_the_short_validator_is_out_of_scope() -> None:
    ledger = GOLDEN.parent / "exact-2.ndjson"
    command = [sys.executable, "reference/validate.py", str(ledger), str(GOLDEN)]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (ended.returncode, ended.stdout.split()[0]) == (2, "OUT")


def test_a_validator_of_runs_declines_it() -> None:
    with pytest.raises(Rejected) as caught:
        read_language(kernel.check(deep(3)))
    assert (caught.value.code, caught.value.path) == ("D203", "manifest.critical")


@pytest.mark.parametrize(
    ("arguments", "cost", "hinted"),
    [((), "", True), (("--for", "gate"), "", False), ((), " { cost 1 }", False)],
)
def test_compile_hints_at_it_where_a_large_file_has_no_cost(
    arguments: tuple[str, ...], cost: str, hinted: bool, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(compile_command, "_LARGE", 1000)
    grammar = tmp_path / "deep.tcg"
    grammar.write_text(DEEP.format(5).replace("tool a", f"tool a{cost}"))
    ended = CliRunner().invoke(compile_command.command, [str(grammar), *arguments])
    assert ended.exit_code == 0
    assert ("--for gate leaves them out" in ended.stderr) == hinted

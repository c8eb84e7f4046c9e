"""Open, observed and strict in what the commands print, and the codes of strict tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc

TEXT = """grammar g version "1"

tool `create-issue`(limit: 1 | 2, title: text max 80 ~ "[a-z]+", after?: json, big: number 0 .. 5)
tool run_tests(suite: unit | all, note: text min 2, sure: flag, n: integer)
  gives (result: pass | fail) {
  strict
}
tool merge(n: 1 | 2.5, blob: json max 9) { errors mean failed }
tool edit

limit depth <= 4
limit sum(merge.n) <= 3.5
before run_tests require edit since run_tests
before merge require run_tests(result = pass)
"""
SEED = ("--seed", "11" * 32)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(TEXT, "utf-8")
    return path


def test_inspect_shows_what_tools_declare(tcc: Tcc, written: Path) -> None:
    found = tcc("inspect", written, "--json").json
    assert found["tools"] == [
        {
            "name": "create-issue",
            "open": ['title: text max 80 ~ "[a-z]+"', "after?: json", "big: number 0 .. 5"],
        },
        {
            "name": "run_tests",
            "open": ["note: text min 2", "sure: flag", "n: integer"],
            "observed": ["result: pass | fail"],
            "strict": True,
        },
        {"name": "merge", "open": ["blob: json max 9"], "errors": "failed"},
    ]
    text = tcc("inspect", written).out
    assert (
        "    run_tests(suite: unit | all, note: text min 2, sure: flag, n: integer) "
        "gives (result: pass | fail); strict\n"
        "    merge(n: 1 | 2.5, blob: json max 9); errors mean failed\n    edit\n"
    ) in text


def test_inspect_says_nothing_of_what_is_not_there(tcc: Tcc, grammar: Path) -> None:
    found = tcc("inspect", grammar, "--json").json
    assert "tools" not in found
    assert found["enforced"]["gate"] == []


def test_inspect_shows_what_the_gate_holds(tcc: Tcc, written: Path) -> None:
    statement = "limit sum(`create-issue`.big) <= 7.5"
    written.write_text(TEXT + statement + "\n", "utf-8")
    found = tcc("inspect", written, "--json").json
    assert found["enforced"]["gate"] == [statement]
    assert found["statements"][-1] == {
        "text": statement, "because": None, "place": "gate", "line": 15
    }  # fmt: skip
    assert f"    gate       {statement}\n" in tcc("inspect", written).out


def test_a_run_says_which_answers_its_plans_assume(tcc: Tcc, written: Path) -> None:
    written.write_text(TEXT + "finally require run_tests\nlimit count(run_tests) <= 1\n", "utf-8")
    plans = tcc("run", written, *SEED, "--top", 5, "--json").json["plans"]
    assert len(plans) == 5
    for plan in plans:
        assert plan["assumed"] == [call for call in plan["calls"] if "result=" in call]
        assert len(plan["assumed"]) == 1
    text = tcc("run", written, *SEED).out
    assert f"assumes the answers in {plans[0]['assumed'][0]}" in text
    run = library.search(library.compile_file(written), seed=bytes.fromhex("11" * 32), top=5)
    assert run.assumed == tuple(tuple(plan["assumed"]) for plan in plans)


def test_a_run_without_observed_values_assumes_nothing(tcc: Tcc, grammar: Path) -> None:
    ended = tcc("run", grammar, *SEED, "--json")
    assert all("assumed" not in plan for plan in ended.json["plans"])
    run = library.search(library.compile_file(grammar), seed=bytes(32), top=2)
    assert run.assumed == ((), ())


def test_a_strict_tool_that_leaves_nothing(tcc: Tcc, written: Path) -> None:
    lines = TEXT + "plan = edit run_tests(result = pass)\n"
    written.write_text(lines, "utf-8")
    ended = tcc("compile", written, "-o", written.with_suffix(".tcca"), "--json")
    (found,) = ended.json["diagnostics"]
    assert (ended.code, found["code"], found["line"]) == (1, "TCC414", 4)
    assert found["message"].endswith(
        "after `edit`, `run_tests(suite=all,result=pass)` leads on and "
        "`run_tests(suite=all,result=fail)` does not"
    )


@pytest.mark.parametrize("name", ["sum", "require", "limit sum(merge.n) <= 3.5"])
def test_nothing_is_relaxed_beside_a_strict_tool(tcc: Tcc, written: Path, name: str) -> None:
    ended = tcc("compile", written, "-o", written.with_suffix(".tcca"), "--json", "--relax", name)
    (found,) = ended.json["diagnostics"]
    assert (ended.code, found["code"], found["line"]) == (1, "TCC415", 4)


def test_past_a_limit_a_strict_tool_leaves_nothing_to_relax(tcc: Tcc, written: Path) -> None:
    told = ("compile", written, "-o", written.with_suffix(".tcca"), "--json", "--max-states", 12)
    for relax in ((), ("--relax", "auto")):
        ended = tcc(*told, *relax)
        (found,) = ended.json["diagnostics"]
        assert (ended.code, found["code"]) == (2, "TCC403")
        assert relax or "a strict tool leaves nothing to relax (TCC415)" in found["hint"]
    loose = written.with_name("loose.tcg")
    loose.write_text(TEXT.replace("strict", ""), "utf-8")
    ended = tcc("compile", loose, *told[2:], "--relax", "auto")
    assert ended.code == 0
    assert {d["code"] for d in ended.json["diagnostics"]} == {"TCC411"}


def test_a_sum_is_relaxed_by_its_kind_and_by_its_text(tcc: Tcc, written: Path) -> None:
    written.write_text(TEXT.replace("strict", ""), "utf-8")
    out = written.with_suffix(".tcca")
    for name in ("sum", "limit sum(merge.n) <= 3.5"):
        assert tcc("compile", written, "-o", out, "--relax", name).code == 0
        found = tcc("inspect", out, "--json").json
        assert found["relaxed"] == ["limit sum(merge.n) <= 3.5"]
        plans = tcc("run", out, *SEED, "--top", 200, "--json").json["plans"]
        spent = [json.dumps(plan["calls"]).count("n=2.5") for plan in plans]
        assert max(spent) == 1

"""What a run is said to have shown, by the command and by the validator: of none, one and many."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc
from tcc.library.running import claim_text, print_run
from tests.cli.conftest import Tcc

TWO = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }

plan = a | b
"""
LONG = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }

plan = (a | b){2,3}
"""

HIGHER = "could have scored higher in this run"
EXACT, SHORT = "RunWiseExact", "TruncationOnly"
# The text, the settings, the claim, what the command says, and what the validator says.
CASES = [
    (TWO, {}, EXACT, f"no other plan {HIGHER}", "no other plan could"),
    (TWO, {"top": 2}, EXACT, f"no plan but these 2 {HIGHER}", "no plan but these 2 could"),
    (TWO, {"top": 3}, EXACT, "these 2 are all the plans there are", "these 2 are all the plans"),
    (
        TWO.replace("a | b", "a"),
        {"top": 2},
        EXACT,
        "this is the only plan there is",
        "this is the only plan there is",
    ),
    (
        LONG,
        {"truncate": 2},
        SHORT,
        f"no other plan this short {HIGHER}",
        "no other plan of at most 2 calls could",
    ),
    (
        LONG,
        {"truncate": 2, "top": 9},
        SHORT,
        "these 4 are all the plans this short there are",
        "these 4 are all the plans of at most 2 calls there are",
    ),
    (
        LONG,
        {"truncate": 1},
        SHORT,
        "there is no plan this short",
        "there is no plan of at most 1 calls",
    ),
]


@pytest.mark.parametrize(("text", "told", "claim", "words", "checked"), CASES)
def test_a_certified_run_says_what_it_has_shown(
    text: str,
    told: dict[str, int],
    claim: str,
    words: str,
    checked: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    artifact = tcc.compile_text(text)
    tcc.save(artifact, tmp_path / "a.tcca")
    run = tcc.search(artifact, seed=bytes(32), ledger=tmp_path / "l", started_ms=0, **told)
    assert (run.claim_type, claim_text(run, told.get("top", 1))) == (claim, words)
    print_run(run, None, told.get("top", 1))
    shown = capsys.readouterr().out
    assert f"{claim}: {words}\n" in shown
    assert "no plan but it" not in shown
    found = tcc.validate(tmp_path / "l", tmp_path / "a.tcca")
    assert found.verdict == 0 and checked in found.summary


def test_a_language_that_the_run_empties_has_no_plan(tmp_path: Path) -> None:
    text = """grammar g version "1"

tool a { price 2 }
tool b

plan = a b

limit price <= 3
before b require no a since any - a
"""
    artifact = tcc.compile_text(text.replace("\nlimit price <= 3", ""), relax=["require"])
    tcc.save(artifact, tmp_path / "a.tcca")
    run = tcc.search(artifact, seed=bytes(32), ledger=tmp_path / "l", started_ms=0)
    assert (run.claim_type, run.plans) == ("RunWiseSurrogate", ())
    assert claim_text(run, 1) == "there is no plan"
    found = tcc.validate(tmp_path / "l", tmp_path / "a.tcca")
    assert (found.verdict, found.summary) == (0, "claim upheld: there is no plan")


def test_a_resumed_run_claims_no_more_than_it_knows() -> None:
    run = tcc.search(tcc.compile_text(TWO), seed=bytes(32), top=3)
    assert claim_text(run, None) == "no plan but these 2 could have scored higher in this run"


@pytest.mark.parametrize("told", [{"max_expansions": 1}, {"mode": "fallback", "max_expansions": 1}])
def test_a_run_that_was_cut_off_does_not_say_that_there_is_no_plan(
    told: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = tcc.compile_text(LONG)
    tcc.save(artifact, tmp_path / "a.tcca")
    run = tcc.search(artifact, seed=bytes(32), ledger=tmp_path / "l", started_ms=0, **told)
    assert (run.claim_type, run.plans) == ("NoCert", ())
    print_run(run, None, 1)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        "NoCert: the limit on expansions was reached before a plan was found; this does not say "
        "that there is none"
    )
    found = tcc.validate(tmp_path / "l", tmp_path / "a.tcca")
    assert found.summary == (
        "valid, no claim: the run replays; it found no plan, and does not show there is none"
    )


def test_the_command_says_so_for_the_number_asked_for(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(TWO, "utf-8")
    ended = tcc("run", path, "--top", 5, "--no-predict")
    assert ended.code == 0
    assert ended.out.splitlines()[-1] == "RunWiseExact: these 2 are all the plans there are"

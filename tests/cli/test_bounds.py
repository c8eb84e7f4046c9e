"""Artifacts with bounds on the command line and in the library: nothing passes for exact."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc as library
from tcc.screen import compiling_line as compile_text
from tests.cli.conftest import Tcc

TEXT = """grammar g version "1"

tool a(k: 1 | 2) { cost 1 price 1 }
tool b { cost 2 price 3 }
tool c { cost 0.5 price 2 }

plan = any+

limit depth <= 5
limit price <= 6
before b require a(k = 1)
before c require no c since any - c
before c require no a
before a require no c
"""
HARD = """grammar g version "1"

tool a
tool b

plan = (a | b)* a (a | b){3}

limit depth <= 6
"""


@pytest.fixture
def grammar(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(TEXT, "utf-8")
    return path


def test_a_relaxed_artifact_says_so_everywhere(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    names = ["--relax", "limit price <= 6", "--relax", "require"]
    made = tcc("compile", grammar, "-o", tmp_path / "a", *names, "--json").json
    seen = tcc("inspect", tmp_path / "a", "--json").json
    assert made["relaxed"] == seen["relaxed"] and made["plans"] == seen["plans"]
    assert seen["counts"] == "upper"
    assert seen["relaxed"] == [
        "limit price <= 6",
        "before b require a(k = 1)",
        "before c require no c since any - c",
        "before c require no a",
        "before a require no c",
    ]
    assert seen["plans"] == str(4 + 4**2 + 4**3 + 4**4 + 4**5)
    # The cheapest is a plan of the grammar, too.
    assert (seen["min_cost"], seen["min_cost_plan"]) == ("0.5", ["c"])
    text = tcc("inspect", tmp_path / "a").out
    assert (
        "at most 1 364" in text
        and "left to the run: limit price <= 6, before b require a(k = 1)" in text
    )
    assert tcc("check", "--core", tmp_path / "a").code == 0


def test_no_cheapest_plan_is_made_up(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(TEXT.replace("before c require no c since any - c", "forbid c"), "utf-8")
    seen = tcc("compile", path, "--relax", "forbid", "--json").json
    assert (seen["min_cost"], seen["min_cost_plan"]) == ("0.5", None)
    assert "at least 0.5" in tcc("inspect", path.with_suffix(".tcca")).out


def test_count_says_at_most(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    tcc("compile", grammar, "-o", tmp_path / "a", "--relax", "price")
    exact = int(tcc("count", grammar).out)
    bound = tcc("count", tmp_path / "a")
    assert bound.out.startswith("at most ") and int(bound.out.split()[-1]) > exact
    assert tcc("count", tmp_path / "a", "--json").json["counts"] == "upper"
    assert "1\tat most 3\n" in tcc("count", tmp_path / "a", "--by-depth").out
    # Rounded race counts leave the number of plans as it is.
    tcc("compile", grammar, "-o", tmp_path / "r", "--round-counts", 2)
    assert int(tcc("count", tmp_path / "r").out) == exact


def test_enumerate_lists_the_plans_of_the_grammar(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    tcc("compile", grammar, "-o", tmp_path / "a", "--relax", "price", "--relax", "require")
    due = tcc("enumerate", grammar)
    found = tcc("enumerate", tmp_path / "a")
    assert due.code == found.code == 0
    assert found.out == due.out and found.out.count("\n") == 86
    size = due.out.count("\n")
    for limit, complete in ((size, True), (size + 1, True), (size - 1, False)):
        seen = tcc("enumerate", tmp_path / "a", "--limit", limit, "--json").json
        assert (seen["complete"], seen["counts"]) == (complete, "upper")
        assert len(seen["plans"]) == min(size, limit)


def test_a_guard_gives_a_warning_and_an_artifact(tcc: Tcc, grammar: Path, tmp_path: Path) -> None:
    auto = ("--max-states", 12, "--relax", "auto")
    ended = tcc("compile", grammar, "-o", tmp_path / "a", *auto)
    assert ended.code == 0
    assert "warning[TCC411]: CountFail: `" in ended.err
    made = tcc("compile", grammar, "-o", tmp_path / "a", *auto, "--json").json
    assert [d["code"] for d in made["diagnostics"]] == ["TCC411"] * len(made["diagnostics"])
    assert made["relaxed"] and made["counts"] == "upper"


def test_a_nondeterministic_artifact_lists_each_plan_once(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "h.tcg"
    path.write_text(HARD, "utf-8")
    due = tcc("enumerate", path).out
    auto = ("--max-states", 14, "--relax", "auto")
    ended = tcc("compile", path, "-o", tmp_path / "h", *auto, "--json")
    assert ended.json["nondeterministic"], ended.err
    assert tcc("enumerate", tmp_path / "h").out == due
    assert int(tcc("count", tmp_path / "h").out.split()[-1]) >= due.count("\n")
    assert tcc("check", "--core", tmp_path / "h").code == 0


def test_a_wrong_name_shows_the_mend(tcc: Tcc, grammar: Path) -> None:
    ended = tcc("compile", grammar, "--relax", "prise")
    assert ended.code == 1
    assert "error[TCC412]: `prise` is no kind" in ended.err and "did you mean 'price'?" in ended.err


def test_the_library_takes_the_same_options() -> None:
    artifact = library.compile_text(TEXT, relax=["price"], round_counts=5)
    assert artifact.manifest.critical == ("relaxed", "rounded")
    relaxed = library.compile_text(TEXT, max_states=12, relax="auto")
    assert relaxed.manifest.counts == "upper"
    assert {d.code for d in relaxed.diagnostics} == {"TCC411"}
    with pytest.raises(library.CompileError) as declined:
        library.compile_text(TEXT, max_states=12)
    assert declined.value.declined
    assert [d.code for d in declined.value.diagnostics] == ["TCC403"]


def test_the_line_of_progress() -> None:
    assert compile_text("`limit price<=6`", 1200) == "compiling: `limit price<=6`, 1200 states"
    assert compile_text("the digests", 0) == "compiling: the digests"


def test_whatever_reads_an_artifact_reads_one_for_a_gate(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    gate, run, narrower = (tmp_path / f"{name}.tcca" for name in ("gate", "run", "narrower"))
    less = tmp_path / "less.tcg"
    less.write_text(TEXT.replace("depth <= 5", "depth <= 4"), "utf-8")
    for source, path, purpose in (
        (grammar, gate, "gate"),
        (grammar, run, "run"),
        (less, narrower, "gate"),
    ):
        assert tcc("compile", source, "--for", purpose, "-o", path).code == 0
    for arguments in (["check"], ["check", "--core"]):
        assert tcc(*arguments, gate).code == 0
    assert tcc("inspect", gate).code == 0
    same = tcc("diff", run, gate, "--json").json
    assert (same["verdict"], same["plans"]) == ("equal", "equal")
    found, exact = (tcc("diff", path, narrower, "--json").json for path in (gate, run))
    for name in ("verdict", "plans", "added", "removed", "sessions"):
        assert found[name] == exact[name], name
    for plan in ("c c", "a(k=1) b"):
        assert tcc("why", gate, plan).out == tcc("why", run, plan).out
    told = tcc("lint", grammar, "--for", "gate", "--json")
    assert (told.code, "never run" in told.out) == (tcc("lint", grammar).code, True)
    assert tcc("report", gate, "-o", tmp_path / "page.html").code == 0
    asked = tcc("run", gate, "--seed", "00" * 32)
    assert asked.code == 2 and "without --for gate" in asked.err

"""`tcc cheapest` and `tcc sample`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Tcc

TEXT = """grammar g version "1"

tool a { cost 1 }
tool b { cost 0.5 .. 2 }

plan = (a | b){0,2}
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(TEXT)
    return path


def test_cheapest(tcc: Tcc, source: Path) -> None:
    found = tcc("cheapest", source, "-n", 5, "--json")
    assert found.code == 0
    assert found.json == {
        "format": "tcc.cheapest",
        "format_version": "1.0",
        "plans": [
            {"calls": [], "cost": "0"},
            {"calls": ["b"], "cost": "0.5"},
            {"calls": ["a"], "cost": "1"},
            {"calls": ["b", "b"], "cost": "1"},
            {"calls": ["a", "b"], "cost": "1.5"},
        ],
    }
    assert tcc("cheapest", source, "-n", 2).out == "0\t()\n0.5\tb\n"
    ended = tcc("cheapest", source, "-n", 100, "--json")
    assert ended.code == 0 and len(ended.json["plans"]) == 7
    assert tcc("cheapest", source).out == "0\t()\n"
    # Of equal costs shorter plans come first.
    source.write_text("""grammar g version "1"

tool a
tool b

plan = (a a a | b | a b)
""")
    assert tcc("cheapest", source, "-n", 3).out == "0\tb\n0\ta b\n0\ta a a\n"
    source.write_text(TEXT)
    assert tcc("cheapest", source, "-n", -1).code == 2


def test_sample(tcc: Tcc, source: Path) -> None:
    found = tcc("sample", source, "-n", 4, "--seed", "00ff", "--json")
    assert found.code == 0
    assert (found.json["law"], found.json["seed"]) == ("uniform", "00ff")
    assert len(found.json["plans"]) == 4 and "beta" not in found.json
    again = tcc("sample", source, "-n", 4, "--uniform", "--seed", "00ff", "--json")
    assert again.json == found.json
    weighed = tcc("sample", source, "-n", 4, "--softmax", "--beta", "2.5", "--json").json
    assert (weighed["law"], weighed["beta"]) == ("softmax", "2.5")
    drawn = [tcc("sample", source, "-n", 30).out for _ in range(2)]
    assert drawn[0] != drawn[1] and drawn[0].count("\n") == 30
    assert tcc("sample", source, "--seed", "xyz").code == 2


def test_of_a_relaxed_artifact_the_true_plans_alone(tcc: Tcc, tmp_path: Path) -> None:
    source, made = tmp_path / "g.tcg", tmp_path / "g.tcca"
    source.write_text(TEXT + "before b require a")
    assert tcc("compile", source, "-o", made, "--relax", "require").code == 0
    plans = tcc("cheapest", made, "-n", 9, "--json").json["plans"]
    assert [plan["calls"] for plan in plans] == [[], ["a"], ["a", "b"], ["a", "a"]]
    drawn = tcc("sample", made, "-n", 60, "--softmax", "--seed", "00", "--json").json["plans"]
    assert {tuple(plan["calls"]) for plan in drawn} == {(), ("a",), ("a", "b"), ("a", "a")}


def test_what_cannot_be_unfolded_is_declined(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tcc_runtime.analysis import graph

    source, made = tmp_path / "g.tcg", tmp_path / "g.tcca"
    source.write_text(TEXT + "before b require a")
    assert tcc("compile", source, "-o", made, "--relax", "require").code == 0
    monkeypatch.setattr(graph.Unfolded.__init__, "__defaults__", (2,))
    for command in (("cheapest", made), ("sample", made), ("why", made, "a")):
        ended = tcc(*command, "--json")
        assert ended.code == 2 and ended.json["findings"][0]["code"] == "D201"
    ended = tcc("diff", made, made, "--json")
    assert ended.code == 2 and ended.json["verdict"] is None
    assert (ended.json["counts"], ended.json["added"]) == ("upper", "7")

"""`tcc diff`: exit codes, the fields that programs rely on, and the other formats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc

OLD = """grammar g version "1"

tool a(k: 1 | 2, msg: text max 10) { cost 1 price 2 }
tool b { cost 0.5 }
tool c { cost -1 }

plan = (a | b | c){1,3}

before a require b
limit depth <= 3
"""


@pytest.fixture
def sides(tmp_path: Path) -> tuple[Path, Path]:
    old, new = tmp_path / "old.tcg", tmp_path / "new.tcg"
    old.write_text(OLD)
    new.write_text(OLD.replace("before a require b\n", "").replace("cost 0.5", "cost 0.6"))
    return old, new


def test_wider_is_one_and_narrower_is_none(tcc: Tcc, sides: tuple[Path, Path]) -> None:
    old, new = sides
    found = tcc("diff", old, new, "--json")
    assert found.code == 1
    assert found.json == {
        "format": "tcc.diff",
        "format_version": "1.0",
        "verdict": "wider",
        "plans": "wider",
        "counts": "exact",
        "added": "54",
        "removed": "0",
        "common": "30",
        "witnesses": {
            "added": {"shortest": ["a(k=1)"], "cheapest": ["a(k=1)", "c", "c"]},
            "removed": {"shortest": None, "cheapest": None},
        },
        "because": {
            "added": [
                {
                    "kind": "require",
                    "text": "before a require b",
                    "because": None,
                    "place": {"file": str(old), "line": 9, "column": 1},
                }
            ],
            "removed": [],
        },
        "calls": {"added": [], "removed": [], "amounts": ["b"]},
        "amounts": [{"call": "b", "cost": {"old": "0.5", "new": "0.6"}}],
        "statements": {"added": [], "removed": ["before a require b"], "changed": []},
        "fields": {"added": [], "removed": [], "changed": []},
        "members": [],
        "sessions": {
            "verdict": "wider",
            "added": [{"tool": "a", "arguments": {"k": 1, "msg": "x2"}}],
            "added_given": {},
            "added_ends": False,
            "added_because": "`before a require b`",
            "removed": None,
            "open": [],
        },
        "breaking": True,
    }
    assert tcc("diff", old, new, "--breaking", "narrower").code == 0
    assert tcc("diff", new, old).code == 0
    assert tcc("diff", new, old, "--breaking", "narrower").code == 1
    assert tcc("diff", old, old).out.startswith("equal: the plans are the same")
    assert library.to_json(library.diff(old, new))["added"] == "54"


def test_artifacts_and_grammars_on_either_side(
    tcc: Tcc, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = sides
    made = tmp_path / "old.tcca"
    assert tcc("compile", old, "-o", made).code == 0
    one, other = (tcc("diff", side, new, "--json").json for side in (made, old))
    assert one.pop("because")["added"] == [
        {"kind": "require", "text": "before a require b", "because": None, "place": None}
    ]
    assert other.pop("because") and one == other
    assert tcc("diff", old, made).code == tcc("diff", made, made).code == 0
    assert tcc("diff", made, new, "--beta", "2").code == 1
    refused = tcc("diff", made, made, "--beta", "2")
    assert refused.code == 2 and "--beta is for compiling a grammar" in refused.err


def test_formats(tcc: Tcc, sides: tuple[Path, Path]) -> None:
    old, new = sides
    assert tcc("diff", old, new, "--format", "json").out == tcc("diff", old, new, "--json").out
    line = tcc("diff", old, new, "--format", "github").out
    assert line.startswith(f"::error file={new},title=tcc diff::wider: ") and line.count("\n") == 1
    assert "%0Aadded: 54 plans%0Ashortest: a(k=1)%0A" in line
    assert tcc("diff", new, old, "--format", "github").out.startswith("::notice ")
    page = tcc("diff", old, new, "--format", "markdown").out.splitlines()
    assert page[0].startswith("### Breaking: wider: ") and r"| shortest | a\(k=1\) |" in page


def test_the_empty_plan_is_a_witness(tcc: Tcc, tmp_path: Path) -> None:
    sides = []
    for name, plan in (("old", "a"), ("new", "a?")):
        sides.append(tmp_path / f"{name}.tcg")
        sides[-1].write_text(f'grammar g version "1"\ntool a\nplan = {plan}')
    found = tcc("diff", *sides, "--json").json
    assert found["witnesses"]["added"] == {"shortest": [], "cheapest": []}
    assert re.search(r"shortest +\(the empty plan\)", tcc("diff", *sides).out)


def test_an_invalid_grammar_is_one_without_a_verdict(
    tcc: Tcc, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    wrong = tmp_path / "wrong.tcg"
    wrong.write_text('grammar g version "1"\nplan = nothing')
    for pair in ((sides[0], wrong), (wrong, sides[0])):
        for format_ in ("json", "text", "github"):
            ended = tcc("diff", *pair, "--format", format_)
            assert ended.code == 1 and "verdict" not in ended.out
        assert tcc("diff", *pair, "--json").json["diagnostics"]
    assert tcc("diff", sides[0], tmp_path / "absent.tcg").code == 2


def test_a_statement_of_the_gate_that_is_gone_is_breaking(tcc: Tcc, tmp_path: Path) -> None:
    text = """grammar g version "1"

tool a(m: integer 0 .. 9)

plan = a a?
"""
    old, new = tmp_path / "old.tcg", tmp_path / "new.tcg"
    old.write_text(text + "limit sum(a.m) <= 5")
    new.write_text(text)
    found = tcc("diff", old, new, "--json")
    assert (found.code, found.json["verdict"], found.json["plans"]) == (1, "wider", "equal")
    assert found.json["breaking"]
    assert found.json["statements"]["removed"] == ["limit sum(a.m) <= 5"]
    assert tcc("diff", new, old).code == 0
    old.write_text(text.replace("0 .. 9", "0 .. 8"))
    found = tcc("diff", old, new, "--json")
    assert found.code == 1
    assert found.json["fields"]["changed"] == [
        {"name": "a.m", "old": "integer 0 .. 8", "new": "integer 0 .. 9", "sense": "wider"}
    ]


def test_bounds_take_no_part_where_the_plans_can_be_unfolded(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(OLD)
    relaxed, exact = tmp_path / "r.tcca", tmp_path / "e.tcca"
    assert tcc("compile", source, "-o", exact).code == 0
    assert tcc("compile", source, "-o", relaxed, "--relax", "require").code == 0
    assert tcc("inspect", relaxed, "--json").json["counts"] == "upper"
    found = tcc("diff", relaxed, exact, "--json").json
    assert (found["verdict"], found["counts"], found["common"]) == ("equal", "exact", "30")


def test_what_changed_is_named_where_it_forbids_the_witness(tcc: Tcc, tmp_path: Path) -> None:
    head = """grammar g version "1"

tool a { price 1 }
tool b
"""
    old, new = tmp_path / "old.tcg", tmp_path / "new.tcg"
    pairs = {
        ("plan = r\nrule r = a", "plan = r\nrule r = a | b"): [("plan", "plan = r")],
        ("plan = (a | b){1,2}\nlimit depth <= 1", "plan = (a | b){1,2}"): [
            ("total", "limit depth <= 1")
        ],
        ("plan = a\nlimit price <= 1", "plan = a?\nlimit price <= 1"): [("plan", "plan = a")],
    }
    for (before, after), due in pairs.items():
        old.write_text(head + before)
        new.write_text(head + after)
        found = tcc("diff", old, new, "--json").json["because"]["added"]
        assert [(one["kind"], one["text"]) for one in found] == due
    assert f"plan = a  ({old}:5:1)" in tcc("diff", old, new).out
    old.write_text(head.replace("price 1", "price 2") + "plan = a?\nlimit price <= 1")
    found = tcc("diff", old, new, "--json").json
    assert (found["added"], found["because"]["added"]) == ("1", [])


def test_a_session_that_one_side_allows_is_shown_with_the_statement_of_the_other(
    tcc: Tcc, sides: tuple[Path, Path], tmp_path: Path
) -> None:
    old, new = sides
    shown = tcc("diff", old, new).out
    assert "wider: the new gate allows more sessions" in shown
    [line] = [line for line in shown.splitlines() if "added session" in line]
    assert re.search(r"old gate refuses it +`before a require b`", shown)
    session = tmp_path / "session.json"
    session.write_text(line.partition("session")[2])
    assert (tcc("replay", new, session).code, tcc("replay", old, session).code) == (0, 1)
    assert tcc("diff", old, old, "--json").json["sessions"]["verdict"] == "equal"


def test_a_condition_that_changed_may_allow_more(tcc: Tcc, tmp_path: Path) -> None:
    head = """grammar g version "1"

tool a
tool b(m: integer 0 .. 9)

plan = (a | b){0,3}

"""
    old, new = tmp_path / "old.tcg", tmp_path / "new.tcg"
    old.write_text(head + "before b require m <= 3 or a\n")
    new.write_text(head + "before b require m <= 4 or a\n")
    found = tcc("diff", old, new, "--json")
    assert (found.code, found.json["plans"], found.json["breaking"]) == (1, "equal", True)
    assert found.json["sessions"]["added_because"] == "`before b require m <= 3 or a`"
    assert tcc("diff", new, old, "--json").json["sessions"]["verdict"] == "narrower"
    assert tcc("diff", new, old).code == 0


def test_sides_are_compared_whose_examples_fail(tcc: Tcc, sides: tuple[Path, Path]) -> None:
    old, wrong = sides
    wrong.write_text(OLD + "accept b b b b\nexpect plans = 1\n")
    assert tcc("diff", old, wrong).code == tcc("diff", wrong, old).code == 0

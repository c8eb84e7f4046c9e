"""`tcc diff`: exit codes, the fields that programs rely on, and the other formats."""

from __future__ import annotations

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
                    "place": {"file": str(old), "line": 6, "column": 1},
                }
            ],
            "removed": [],
        },
        "calls": {"added": [], "removed": [], "amounts": ["b"]},
        "amounts": [{"call": "b", "cost": {"old": "0.5", "new": "0.6"}}],
        "monitors": {"added": [], "removed": [], "changed": []},
        "open": {"added": [], "removed": [], "changed": []},
        "members": [
            {
                "of": "statement",
                "name": "require",
                "old": "before a require b",
                "new": None,
                "sense": "other",
            }
        ],
        "sessions": {
            "verdict": "wider",
            "added": {"calls": [{"tool": "a", "arguments": {"k": 1, "msg": ""}}], "ends": "call"},
            "removed": None,
            "codes": [],
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
        {"kind": "require", "text": "before a require b", "place": None}
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
    assert "shortest        (the empty plan)" in tcc("diff", *sides).out


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


def test_a_monitor_that_is_gone_is_breaking(tcc: Tcc, tmp_path: Path) -> None:
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
    assert found.json["monitors"]["removed"] == ["limit sum(a.m) <= 5"]
    assert tcc("diff", new, old).code == 0
    old.write_text(text.replace("0 .. 9", "0 .. 8"))
    found = tcc("diff", old, new, "--json")
    assert found.code == 1
    assert found.json["open"]["changed"] == [
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
            ("limit", "limit depth <= 1")
        ],
        ("plan = a\nlimit price <= 1", "plan = a?\nlimit price <= 1"): [("plan", "plan = a")],
    }
    for (before, after), due in pairs.items():
        old.write_text(head + before)
        new.write_text(head + after)
        found = tcc("diff", old, new, "--json").json["because"]["added"]
        assert [(one["kind"], one["text"]) for one in found] == due
    assert f"by a change of  plan = a  ({old}:2:1)" in tcc("diff", old, new).out
    old.write_text(head.replace("price 1", "price 2") + "plan = a?\nlimit price <= 1")
    found = tcc("diff", old, new, "--json").json
    assert (found["added"], found["because"]["added"]) == ("1", [])


HELD = """grammar g version "1"

tool find(id: text max 5)
tool pay(id: text max 5, amount: integer 1 .. 9)

plan = (find | pay){0,2}

before pay require find(same id)
"""


def sessions_of(tcc: Tcc, tmp_path: Path, old: str, new: str, *options: str) -> tuple[int, dict]:
    sides = tmp_path / "held_old.tcg", tmp_path / "held_new.tcg"
    for path, text in zip(sides, (old, new), strict=True):
        path.write_text(text)
    found = tcc("diff", *sides, "--json", *options)
    return found.code, found.json["sessions"]


def test_a_cap_that_nothing_reaches_is_not_wider(tcc: Tcc, tmp_path: Path) -> None:
    old, new = HELD + "limit sum(pay.amount) <= 20\n", HELD + "limit sum(pay.amount) <= 30\n"
    same = {"verdict": "equal", "added": None, "removed": None, "codes": []}
    assert sessions_of(tcc, tmp_path, old, new) == (0, same)
    assert sessions_of(tcc, tmp_path, old, new, "--breaking", "narrower") == (0, same)
    # A monitor that another implies may go, and one that nothing implies may not.
    twice = HELD + "limit count(pay) per id <= 1 in session\n"
    assert sessions_of(tcc, tmp_path, twice, HELD)[0] == 0
    code, found = sessions_of(
        tcc, tmp_path, HELD, HELD.replace("before pay require find(same id)", "")
    )
    assert (code, found["verdict"], len(found["added"]["calls"])) == (1, "wider", 1)


def test_what_is_left_to_the_run_lets_beginnings_through(tcc: Tcc, tmp_path: Path) -> None:
    """Two artifacts of one core are not always of the same sessions."""
    path = tmp_path / "g.tcg"
    path.write_text(
        """grammar g version "1"

tool a
tool b(x: text ~ "p|q")

plan = (a | b){0,3}

finally require count(a) >= 2
limit count(b) per x <= 2 in session
"""
    )
    whole, run = tmp_path / "whole.tcca", tmp_path / "run.tcca"
    assert tcc("compile", path, "-o", whole).code == 0
    assert tcc("compile", path, "--relax", "uses", "-o", run).code == 0
    found = tcc("diff", whole, run, "--json")
    sessions = found.json["sessions"]
    assert (found.code, found.json["plans"], sessions["verdict"]) == (1, "equal", "wider")
    assert [call["tool"] for call in sessions["added"]["calls"]] == ["b", "b"]
    back = tcc("diff", run, whole, "--json")
    assert (back.code, back.json["sessions"]["verdict"]) == (0, "narrower")
    # Nor do plans decide where another core has as many.
    path.write_text(path.read_text() + "limit count(b) <= 3\n")
    more = tmp_path / "more.tcca"
    assert tcc("compile", path, "-o", more).code == 0
    assert tcc("diff", more, run, "--json").json["sessions"]["verdict"] == "wider"
    assert tcc("diff", whole, whole, "--json").json["sessions"]["verdict"] == "equal"
    assert tcc("diff", run, run, "--json").json["sessions"]["verdict"] == "equal"


def test_an_added_session_stands_where_the_other_side_is_open(
    tcc: Tcc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = HELD.replace("{0,2}", "{1,2}")
    code, found = sessions_of(tcc, tmp_path, HELD, new)
    assert (code, found["verdict"], found["added"]) == (0, "narrower", None)
    assert found["removed"] == {"calls": [], "ends": "finish"}
    assert sessions_of(tcc, tmp_path, HELD, new, "--breaking", "narrower")[0] == 1
    wide = HELD.replace("1 .. 9", "0 .. 9").replace("require", "require pay before find forbid")
    code, found = sessions_of(tcc, tmp_path, HELD, wide, "--max-states", "1000")
    assert code == 1 and found["verdict"] in ("wider", "incomparable")


def test_what_is_not_known_ends_with_two(tcc: Tcc, tmp_path: Path) -> None:
    # Two of the greatest amount would show it, and no two are alike.
    both = HELD + "limit sum(pay.amount) <= 1799\nlimit count(pay) per amount <= 1 in session\n"
    old = both.replace("integer 1 .. 9", "integer 1 .. 900").replace("{0,2}", "{0,3}")
    new = old.replace("<= 1799", "<= 1800")
    code, found = sessions_of(tcc, tmp_path, old, new)
    assert (code, found) == (
        2,
        {"verdict": None, "added": None, "removed": None, "codes": ["P504"]},
    )
    # What a gate acts on besides is breaking whether or not sessions are known.
    code, _ = sessions_of(
        tcc,
        tmp_path,
        old,
        new.replace("find(; id: text max 5)", "find(; id: text max 5) { errors mean failed }"),
    )
    assert code == 1


def test_sides_are_compared_whose_examples_fail(tcc: Tcc, tmp_path: Path) -> None:
    wrong = HELD + "accept pay\nexpect plans = 1\n"
    assert sessions_of(tcc, tmp_path, wrong, HELD)[1]["verdict"] == "equal"
    assert sessions_of(tcc, tmp_path, HELD, wrong)[0] == 0


def test_time_and_states_bound_two_artifacts(tcc: Tcc, tmp_path: Path) -> None:
    made = []
    for name, cap in (("old", 20), ("new", 14)):
        source, artifact = tmp_path / f"{name}.tcg", tmp_path / f"{name}.tcca"
        source.write_text(HELD.replace("{0,2}", "{0,4}") + f"limit sum(pay.amount) <= {cap}\n")
        assert tcc("compile", source, "-o", artifact).code == 0
        made.append(artifact)
    found = tcc("diff", *made, "--json", "--timeout", "30", "--max-states", "1000")
    assert (found.code, found.json["sessions"]["verdict"]) == (0, "narrower")
    assert (
        sum(
            call["arguments"].get("amount", 0)
            for call in found.json["sessions"]["removed"]["calls"]
        )
        > 14
    )
    found = tcc("diff", *made, "--json", "--breaking", "narrower", "--max-states", "1")
    assert (found.code, found.json["sessions"]["codes"]) == (2, ["P503"])


def test_the_session_is_shown_to_people(tcc: Tcc, tmp_path: Path) -> None:
    sides = tmp_path / "o.tcg", tmp_path / "n.tcg"
    sides[0].write_text(HELD)
    sides[1].write_text(HELD.replace("before pay require find(same id)\n", ""))
    assert 'pay(id="", amount=1)' in tcc("diff", *sides).out
    page = tcc("diff", *sides, "--format", "markdown").out
    assert "| sessions | wider |" in page and r"| added 1 | pay\(id=" in page
    assert "added 1: pay(" in tcc("diff", *sides, "--format", "github").out

"""`tcc why`: exit codes, fields, places, what people read."""

from __future__ import annotations

from pathlib import Path

import pytest

import tcc as library
from tests.cli.conftest import Tcc

TEXT = """grammar g version "1"

tool a(k: 1 | 2)
tool b
tool c

plan = (a | b | c){1,3}

before a require b
limit depth <= 3
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "g.tcg"
    path.write_text(TEXT)
    return path


def test_a_plan_is_allowed(tcc: Tcc, source: Path) -> None:
    found = tcc("why", source, "b a(k=1)", "--json")
    assert found.code == 0
    assert found.json == {
        "format": "tcc.why",
        "format_version": "1.0",
        "allowed": True,
        "position": 2,
        "may_stop": True,
        "allowed_next": ["a(k=1)", "a(k=2)", "b", "c"],
        "because": [],
        "smallest": True,
        "nearest": ["b", "a(k=1)"],
    }
    assert tcc("why", source, "b a(k=1)").out.startswith("allowed: this is a plan\n")


def test_a_statement_is_blamed_with_its_place(tcc: Tcc, source: Path) -> None:
    found = tcc("why", source, "c a(k=2)", "--json")
    assert found.code == 1
    assert (found.json["allowed"], found.json["position"]) == (False, 1)
    assert found.json["allowed_next"] == ["b", "c"] and found.json["may_stop"] is True
    place = {"file": str(source), "line": 9, "column": 1}
    assert found.json["because"] == [
        {
            "kind": "require", "text": "before a require b", "because": None,
            "relation": "b", "remedy": "b", "place": place,
        }
    ]  # fmt: skip
    assert len(found.json["nearest"]) in (1, 2)
    assert f"before a require b  ({source}:9:1)" in tcc("why", source, "c a(k=2)").out


def test_the_reason_of_its_author_comes_with_a_statement(tcc: Tcc, source: Path) -> None:
    source.write_text(TEXT.replace("require b\n", 'require b because "First b."\n'))
    (found,) = tcc("why", source, "c a(k=2)", "--json").json["because"]
    assert (found["text"], found["because"]) == ("before a require b", "First b.")
    assert f"First b. before a require b  ({source}:9:1)" in tcc("why", source, "c a(k=2)").out


def test_a_clause_of_a_block_is_blamed_alone(tcc: Tcc, source: Path) -> None:
    block = "before a {\n  let seen = b\n  require seen\n  require no c\n}\n"
    source.write_text(TEXT.replace("before a require b\n", block))
    (found,) = tcc("why", source, "b c a(k=2)", "--json").json["because"]
    assert (found["text"], found["place"]["line"]) == ("before a require no c", 12)


def test_a_session_shows_that_a_call_and_an_end_are_possible(tcc: Tcc, source: Path) -> None:
    for question in (("--finish",), ("--reachable", "a")):
        found = tcc("why", source, *question, "--json")
        assert (found.code, found.json["verdict"], found.json["because"]) == (0, "reachable", [])
    assert [one["tool"] for one in found.json["session"]][-1] == "a"


NEVER = """grammar g version "1"
tool find(order: text max 9) gives (owner: text)
tool refund(order: text max 9, amount: integer 1 .. 20)
tool reply(message: text)
tool idle
plan = (find | refund | reply){0,9}
before refund require find(same order)
before refund require amount <= 10
before refund(amount > 5) require reply
forbid refund(amount > 15) because "Never more."
forbid reply
"""


@pytest.mark.parametrize(
    ("calls", "texts"),
    [
        ("refund(amount = 6)", ["before refund(amount > 5) require reply", "forbid reply"]),
        ("refund(amount > 15)", ["forbid refund(amount > 15)"]),
        ("idle", ["plan = (find | refund | reply){0,9}"]),
        ("refund(amount = 21)", []),
    ],
)
def test_statements_that_exclude_a_call_are_named(
    tcc: Tcc, tmp_path: Path, calls: str, texts: list[str]
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(NEVER)
    found = tcc("why", path, "--reachable", calls, "--json")
    assert (found.code, found.json["verdict"]) == (1, "unreachable")
    assert [one["text"] for one in found.json["because"]] == texts
    shown = tcc("why", path, "--reachable", calls).out
    assert shown.startswith(f"never possible: no session has {calls}")
    assert all(text in shown for text in texts)


def test_plans_that_exclude_a_call_are_named(tcc: Tcc, tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    plan = "plan = look write(k = 1)?"
    path.write_text(f'grammar g version "1"\ntool look\ntool write(k: 1 | 2)\n{plan}\n')
    found = tcc("why", path, "--reachable", "write(k = 2)", "--json")
    assert (found.code, [one["text"] for one in found.json["because"]]) == (1, [plan])


def test_a_set_of_calls_with_a_mistake_is_bad_usage(tcc: Tcc, source: Path) -> None:
    found = tcc("why", source, "--reachable", "nothing")
    assert found.code == 2 and "TCC202" in found.err


def test_an_artifact_has_no_places(tcc: Tcc, source: Path, tmp_path: Path) -> None:
    made = tmp_path / "g.tcca"
    assert tcc("compile", source, "-o", made).code == 0
    found = tcc("why", made, "b b b b", "--json")
    assert found.code == 1 and found.json["position"] == 3
    assert found.json["because"] == [
        {"kind": "plan", "text": "plan = (a | b | c){1,3}", "because": None, "place": None},
        {"kind": "total", "text": "limit depth <= 3", "because": None, "place": None},
    ]
    given = tcc("why", source, "b b b b", "--json").json["because"]
    assert [one["text"] for one in given] == ["plan = (a | b | c){1,3}", "limit depth <= 3"]
    assert "plan = (a | b | c){1,3}  (" in tcc("why", source, "b b b b").out


def test_the_empty_plan_and_prefixes(tcc: Tcc, source: Path) -> None:
    found = tcc("why", source, "", "--json")
    assert found.code == 1 and (found.json["position"], found.json["may_stop"]) == (0, False)
    assert [one["kind"] for one in found.json["because"]] == ["plan"]
    assert "no plan ends here" in tcc("why", source, "").out
    started = tcc("why", source, "", "--prefix", "--json")
    assert started.code == 0 and started.json["nearest"] == []
    assert tcc("why", source, "a(k=1)", "--prefix").code == 1


def test_a_call_that_the_grammar_has_not(tcc: Tcc, source: Path) -> None:
    found = tcc("why", source, "b a(k=3)", "--json")
    assert found.code == 1
    assert (found.json["position"], found.json["because"]) == (1, [])
    assert found.json["hint"].startswith("the grammar has no call a(k=3): did you mean a(k=")


def test_all_smallest_sets(tcc: Tcc, tmp_path: Path) -> None:
    source = tmp_path / "g.tcg"
    source.write_text(
        """grammar g version "1"

tool a
tool b

plan = a b?

after a owe b
limit count(b) <= 1
before b require no a since any - a

accept a b
"""
    )
    assert tcc("why", source, "a", "--json").code == 1  # no artifact: it has no plan
    source.write_text(
        """grammar g version "1"

tool a
tool b
tool c

plan = (a | b | c){1,2}

after a owe b
before a require no b
before b require no a
limit depth <= 2
"""
    )
    first = tcc("why", source, "a", "--json").json
    every = tcc("why", source, "a", "--all", "--json").json
    texts = [[one["text"] for one in chosen] for chosen in (every["because"], *every["others"])]
    assert texts == [["after a owe b"], ["before b require no a"]]
    assert first["because"] == every["because"] and "others" not in first
    assert "\n  or        before b require no a" in tcc("why", source, "a", "--all").out


def test_the_library_gives_the_same_document(tcc: Tcc, source: Path) -> None:
    found = library.to_json(library.why(source, "c a(k=2)"))
    assert found == tcc("why", source, "c a(k=2)", "--json").json


def test_hostile_words(tcc: Tcc, source: Path) -> None:
    for word in ('"', "a(k=1", "\x1b[31m", "b " * 3000, "é" * 50):
        ended = tcc("why", source, word)
        assert ended.code == 1 or (ended.code == 2 and "TCC904" in ended.err), word
        assert "\x1b" not in ended.out + ended.err, word
    assert tcc("why", source, "--json").code == 2


def test_a_statement_that_refuses_the_call_says_what_would_be_allowed(
    tcc: Tcc, tmp_path: Path
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(
        'grammar g version "1"\n'
        "tool check(kind: small | large)\ntool pay(kind: small | large)\nlimit depth <= 3\n"
        'before pay(kind = large) require last(check(same kind)).kind = large because "Checked."\n',
        "utf-8",
    )
    ended = tcc("why", path, "check(kind=small) pay(kind=large)", "--json")
    (found,) = ended.json["because"]
    assert (found["kind"], found["because"], found["place"]["line"]) == ("require", "Checked.", 5)
    assert found["relation"] == "last(check(same kind)).kind = large"
    assert found["remedy"] == "kind != large or last(check(kind = large)).kind = large"
    assert f"needed    {found['remedy']}\n" in tcc("why", path, "pay(kind=large)").out

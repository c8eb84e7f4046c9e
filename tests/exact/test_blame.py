"""`tcc why` over sessions, and TCC707: a smallest set, as brute force over every subset has it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest

import tcc
from tcc.library.blaming import Barred, Blaming, blame_sessions
from tcc_compiler.options import Options
from tcc_runtime.exact.atoms import OpenQuestion
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)
from tests.exact.brute import Holds, Made, Say, fits, grammar, statement

DESK = """grammar desk version "1"

tool find(order: text min 1 max 9) { cost 1 }
tool refund(order: text min 1 max 9, amount: integer 1 .. 20) { cost 1 }
tool reply { cost 1 }

plan = (find | refund | reply){0,6}

limit depth <= 5
before refund require find(same order)
before reply require no reply since any - reply
before refund require no find(same order)
finally require refund
"""


def blamed(
    text: str, folder: Path, reachable: str | None, **options: object
) -> tuple[Barred, list[str]]:
    path = folder / "g.tcg"
    path.write_text(text, "utf-8")
    artifact = tcc.compile_text(text)
    found, because = blame_sessions(
        artifact,
        path,
        Options(timeout=options.get("timeout")),  # type: ignore[arg-type]
        reachable=reachable,
        max_states=int(str(options.get("max_states", 20_000))),
    )
    return found, [one.text for one in because]


def test_two_monitors_bar_a_call_and_a_third_the_end(tmp_path: Path) -> None:
    lines = DESK.splitlines()
    found, because = blamed(DESK, tmp_path, "refund")
    assert (found.verdict, found.smallest, because) == ("impossible", True, [lines[6], lines[8]])
    found, because = blamed(DESK, tmp_path, None)
    assert (found.verdict, because) == ("impossible", [lines[6], lines[8], lines[9]])
    found, because = blamed(DESK, tmp_path, "reply")
    assert found.session is not None and len(found.session.calls) == 1
    assert (found.verdict, because, found.codes) == ("possible", [], ())


LATER = """grammar g version "1"

tool find(order: text max 9)
tool approve(order: text max 9)
tool refund(order: text max 9)

plan = (find | approve | refund){0,3}

before refund require find(same order) or approve(same order)
before refund require no approve
before refund require no find
limit count(find) <= 2
"""


def test_statements_of_language_1_2_are_named(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(LATER, "utf-8")
    ended = tcc_command("why", path, "--reachable", "refund", "--json")
    assert (ended.code, ended.json["verdict"], ended.json["smallest"]) == (1, "impossible", True)
    assert [(one["kind"], one["place"]["line"]) for one in ended.json["because"]] == [
        ("require", 6),
        ("forbid", 7),
        ("forbid", 8),
    ]


@pytest.mark.parametrize(
    "says",
    [
        ["require 2 find before refund", "limit uses(find) <= 1"],
        ["require last find before refund", "forbid find | approve before refund"],
        ["require any - refund before refund", "forbid any before refund"],
    ],
)
def test_statements_of_language_1_2_that_plans_keep_are_named(
    says: list[str], tmp_path: Path
) -> None:
    """Each is one of the automaton: no gate holds it, and without it the call is possible."""
    head = LATER[: LATER.index("require")]
    found, because = blamed(
        head + "\n".join([*says, "limit uses(approve) <= 1\n"]), tmp_path, "refund"
    )
    assert (found.verdict, found.smallest, because) == ("impossible", True, says)


def test_the_plan_bars_a_call_by_itself(tmp_path: Path) -> None:
    text = DESK.replace("(find | refund | reply)", "(find | reply)").replace(" >= 1", " >= 0")
    found, because = blamed(text, tmp_path, "refund")
    assert (found.verdict, found.smallest, because) == ("impossible", True, [])


def test_a_sum_and_a_count_bar_an_end(tmp_path: Path) -> None:
    text = DESK.replace("integer 1 .. 20", "integer 15 .. 20").replace(" >= 1", " >= 3")
    text = text.replace(
        "forbid find before refund same order\n", "limit sum(refund.amount) <= 44\n"
    )
    found, because = blamed(text, tmp_path, None)
    assert found.verdict == "impossible"
    assert because == ["limit sum(refund.amount) <= 44", "limit uses(refund) >= 3"]


def test_the_command_says_so(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(DESK, "utf-8")
    ended = tcc_command("why", path, "--finish", "--json")
    assert (ended.code, ended.json["verdict"], ended.json["smallest"]) == (1, "impossible", True)
    assert [one["place"]["line"] for one in ended.json["because"]] == [7, 9, 10]
    assert (ended.json["session"], ended.json["codes"]) == (None, [])
    ended = tcc_command("why", path, "--reachable", "reply", "--json")
    assert (ended.code, ended.json["verdict"], ended.json["reachable"]) == (0, "possible", "reply")
    assert ended.json["session"]["calls"] == [{"tool": "reply", "arguments": {}}]
    shown = tcc_command("why", path, "--reachable", "refund")
    assert shown.code == 1 and "impossible: a session ends in refund" in shown.out
    assert "require find before refund same order" in shown.out
    for options in (["--reachable", "nope"], [], ["reply", "--finish"], ["--finish", "--all"]):
        assert tcc_command("why", path, *options).code == 2
    saved = tmp_path / "g.tcca"
    tcc.save(tcc.compile_text(DESK), saved)
    assert tcc_command("why", saved, "--finish").code == 2


def test_what_is_not_decided_is_no_answer(tmp_path: Path) -> None:
    found, because = blamed(DESK, tmp_path, "refund", max_states=1)
    assert (found.verdict, because, found.smallest) == ("undecided", [], False)
    assert found.codes == ("P503",)
    found, _ = blamed(DESK, tmp_path, "refund", timeout=0.000_001)
    assert found.codes == ("P507",) and not found.smallest


def test_a_set_that_was_found_stands_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [0]

    def left(_: Blaming) -> float:
        asked[0] += 1
        if asked[0] > 6:
            raise OpenQuestion("P507", "the time of --timeout is over")
        return 100.0

    monkeypatch.setattr(Blaming, "_left", left)
    found, because = blamed(DESK, tmp_path, None)
    assert (found.verdict, found.smallest, found.codes) == ("impossible", False, ("P507",))
    assert {"require find before refund same order", "limit uses(refund) >= 1"} <= set(because)


# Brute force.


def possible(made: Made, says: tuple[Say, ...], tool: str | None) -> bool:
    holds = Holds(replace(made, says=list(says)))
    if tool is None:
        return any(holds.ended(session) for session in holds.sessions())
    return any(session and session[-1][0] == tool for session in holds.sessions())


def drawn(seed: int) -> Made:
    """A grammar with more statements than others have, so that they bar something."""
    rng = random.Random(seed)
    made = grammar(rng)
    says = list(made.says)
    for _ in range(12):
        more = statement(rng, made)
        if more is not None and fits(more, made) and len(says) < 5 and more not in says:
            says.append(more)
    return replace(made, says=says)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_a_smallest_set_is_one_of_brute_force(first: int, tmp_path: Path) -> None:
    barred = 0
    for seed in range(first, first + 20):
        made = drawn(seed)
        try:
            tcc.compile_text(made.text)
        except tcc.CompileError:
            continue  # no plan is left, or a statement is none
        for tool in [*made.tools, None]:
            found, because = blamed(made.text, tmp_path, tool)
            if found.verdict == "undecided":
                assert set(found.codes) <= {"P503", "P504", "P505"}
                continue
            every = tuple(made.says)
            assert (found.verdict == "possible") == possible(made, every, tool), made.text
            if found.verdict == "possible":
                continue
            barred += 1
            chosen = tuple(say for say in every if say.text in because)
            assert len(chosen) == len(because)
            assert not possible(made, chosen, tool), f"{seed} {tool}\n{made.text}\n{because}"
            fewer = [
                one
                for size in range(len(chosen))
                for one in combinations(every, size)
                if not possible(made, one, tool)
            ]
            assert not found.smallest or not fewer, f"{seed} {tool}\n{made.text}\n{because}"
    assert barred > 3


def test_lint_names_what_lets_no_session_finish(tmp_path: Path) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(DESK, "utf-8")
    [found] = [one for one in tcc.lint(path).findings if one.diagnostic.code == "TCC707"]
    assert found.diagnostic.span is not None and found.diagnostic.span.line == 10
    lines = [note.span.line for note in found.diagnostic.notes if note.span is not None]
    assert lines == [7, 9]
    assert found.diagnostic.message.startswith("`limit uses(refund) >= 1` and 2 other statements")
    path.write_text(DESK.replace("limit uses(refund) >= 1\n", ""), "utf-8")
    assert "TCC707" not in {one.diagnostic.code for one in tcc.lint(path).findings}


def test_lint_lists_what_it_could_not_decide_of_the_end(tmp_path: Path) -> None:
    """A sum over a key with many values; its cap leaves no end, and no search shows that."""
    path = tmp_path / "g.tcg"
    text = DESK.replace("integer 1 .. 20", "number 9.5 .. 20").replace(" >= 1", " >= 2")
    barred = "forbid find before refund same order\n"
    both = "limit sum(refund.amount) <= 18\nlimit uses(refund) per amount <= 1\n"
    path.write_text(text.replace(barred, both), "utf-8")
    linted = tcc.lint(path)
    said = [one.message for one in linted.undecided] + [
        one.diagnostic.message for one in linted.findings if one.diagnostic.code == "TCC707"
    ]
    assert any("TCC707" in one or "let no session finish" in one for one in said), said

"""`tcc lint` over monitors: what it reports is what brute force over listed values finds."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

import tcc
from tests.cli.conftest import (
    Tcc,
    tcc as tcc_command,  # noqa: F401 - a fixture
)
from tests.exact import brute_later, drawn_later, drawn_members
from tests.exact.brute import Holds, Made, Say, breaks_inclusion, grammar
from tests.oracle_policies import language as l
from tests.oracle_policies.writer import statement_of, text_of

HEAD = """grammar g version "1"

tool find(id: text max 9) { cost 1 }
tool pay(id: text max 9, n: integer 1 .. 9) { cost 1 }

plan = (find | pay){0,3}
"""
BEFORE = "require find before pay same id\n"


def linted(text: str, tmp_path: Path, **options: object) -> tcc.Linted:
    path = tmp_path / "g.tcg"
    path.write_text(text, "utf-8")
    return tcc.lint(path, **options)


def found(text: str, tmp_path: Path) -> list[tuple[str, int]]:
    result = linted(text, tmp_path)
    assert result.undecided == ()
    return [
        (one.diagnostic.code, one.diagnostic.span.line)
        for one in result.findings
        if one.diagnostic.span is not None
    ]


def test_a_tool_that_two_monitors_bar(tmp_path: Path) -> None:
    text = HEAD + BEFORE + "forbid find before pay same id\n"
    assert found(text, tmp_path) == [("TCC716", 3)]
    assert found(HEAD + BEFORE, tmp_path) == []


def test_statements_that_other_monitors_imply(tmp_path: Path) -> None:
    once = BEFORE + "limit uses(find) per id <= 1\nforbid pay before find\n"
    # Each statement is asked about alone, with all others held.
    each = BEFORE.replace("pay", "each pay")
    assert found(HEAD + BEFORE + each, tmp_path) == [("TCC705", 5)]
    assert found(HEAD + once + "limit sum(pay.n) <= 17\n", tmp_path) == []
    assert found(HEAD + BEFORE + "limit sum(pay.n) <= 18\n", tmp_path) == [("TCC704", 6)]


def test_a_limit_across_sessions_is_never_redundant(tmp_path: Path) -> None:
    """A session of three calls cannot break it, and a second session can."""
    assert found(HEAD + "limit uses(pay) per id <= 3\n", tmp_path) == [("TCC704", 5)]
    assert found(HEAD + "limit uses(pay) per id <= 3 across sessions\n", tmp_path) == []


def test_a_shadow_goes_with_its_statement(tmp_path: Path) -> None:
    """Without it nothing asks for a find: were its shadow left, one value would make it idle."""
    text = HEAD.replace("text max 9", 'text ~ "x"')
    assert found(text + BEFORE, tmp_path) == []
    assert found(text + BEFORE + "require find before pay\n", tmp_path) == [
        ("TCC705", 5),
        ("TCC705", 6),
    ]


def test_a_shadow_that_cuts_beginnings_is_needed(tmp_path: Path) -> None:
    """Without the `require` nothing calls a `b` too early, but a session may begin with `c`."""
    text = """grammar g version "1"

tool a(x: text "p") { cost 1 }
tool b(x: text "p", y: text "k") { cost 1 }
tool c(y: text "k") { cost 1 }

plan = a b | c b | a c

before b require no c(same y)
"""
    require = "require a before b same x\n"
    wide, narrow = tcc.compile_text(text), tcc.compile_text(text + require)
    assert tcc.prove(wide, require).proved
    assert tcc.prove(wide, implies=narrow).verdict == "refuted"
    assert ("TCC705", 7) not in found(text + require, tmp_path)


PAID_AS_FOUND = """grammar g version "1"

tool find(n: number 1 .. 9) { cost 1 }
tool pay(n: number 1 .. 9) { cost 1 }

plan = find? pay?

before pay require find(same n)
limit sum(find.n) <= 5
limit sum(pay.n) <= 5
"""


def test_sums_of_values_that_are_compared_are_intervals(tmp_path: Path) -> None:
    number = HEAD.replace("integer 1 .. 9", "number 1 .. 9.5").replace("text max 9", 'text ~ "x|y"')
    held = (
        "limit uses(pay) per id <= 1\nforbid find before pay same id\nlimit uses(pay) per n <= 1\n"
    )
    line = number.count("\n") + 1
    assert ("TCC704", line) in found(number + "limit sum(pay.n) <= 19\n" + held, tmp_path)
    assert ("TCC704", line) not in found(number + "limit sum(pay.n) <= 18.5\n" + held, tmp_path)


def test_what_is_left_open_is_listed(
    tcc_command: Tcc,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "g.tcg"
    path.write_text(PAID_AS_FOUND, "utf-8")
    ended = tcc_command("lint", path, "--json")
    left = [(one["code"], one["message"]) for one in ended.json["undecided"]]
    start = "not decided: TCC704: `limit sum(pay.n) <= 5`: "
    assert (ended.code, ended.json["findings"]) == (2, [])
    assert any(c == "TCC715" and m.startswith(start) and m.endswith("(P504)") for c, m in left)


@pytest.mark.parametrize(
    ("says", "said"),
    [
        ("require find same id or find before pay", "alternative 1 of"),
        ("require find same id or pay same id before pay", "alternative 2 of"),
        ("require find where seen.id = id or find same id before pay", "alternative 1 of"),
        ("forbid find same id or find before pay", "alternative 1 of"),
        ("forbid find before pay unless find same id", "`unless` of"),  # the last one stands
        ("forbid find before find unless pay same id", ""),
        ("monitor limit uses(pay where id = id) <= 1", "the condition of"),
        ('monitor limit uses(pay where id = "a") <= 1', ""),
    ],
)
def test_parts_without_which_nothing_changes(tmp_path: Path, says: str, said: str) -> None:
    found = linted(HEAD + says + "\n", tmp_path)
    texts = [
        one.diagnostic.message
        for one in found.findings
        if "changes nothing" in one.diagnostic.message
    ]
    assert [text[: len(said)] for text in texts][:1] == ([said] if said else [])
    assert found.undecided == ()


def removed(made: Made, say: Say) -> Made:
    return replace(made, says=[one for one in made.says if one is not say])


def is_monitor(say: Say) -> bool:
    return bool(say.same) or say.word in ("sum", "per")


@pytest.mark.parametrize("first", range(0, 120, 12))
def test_findings_are_those_of_brute_force(first: int, tmp_path: Path) -> None:
    asked = 0
    for seed in range(first, first + 12):
        made = grammar(random.Random(seed))
        held = [say for say in made.says if is_monitor(say)]
        if not held or not made.words():
            continue
        text = made.text
        result = linted(text, tmp_path)
        if result.artifact is None:
            continue
        lines = text.splitlines()
        open_ = {code for one in result.undecided for code in ("TCC704", "TCC705", "TCC716")
                 if code in one.message}  # fmt: skip
        told = {
            one.diagnostic.span.line
            for one in result.findings
            if one.diagnostic.span and one.diagnostic.code in ("TCC704", "TCC705", "TCC706")
        }
        for say in held:
            code = "TCC704" if say.word in ("sum", "per") else "TCC705"
            if code in open_:
                continue
            without = Holds(removed(made, say))
            expected = breaks_inclusion(without, Holds(made)) is None
            assert (1 + lines.index(say.text) in told) == expected, f"{seed}\n{text}\n{say.text}"
            asked += 1
        called = {tool for session in Holds(made).sessions() for tool, _ in session}
        planned = {tool for word in made.words() for tool in word}
        if "TCC716" not in open_:
            barred = {
                one.diagnostic.span.line
                for one in result.findings
                if one.diagnostic.span and one.diagnostic.code == "TCC716"
            }
            names = {lines[line - 1].split()[1].partition("(")[0] for line in barred}
            assert names == planned - called, f"{seed}\n{text}"
    assert asked > 0


@pytest.mark.parametrize(("forms", "first"), [("members", 0), ("lists", 25), ("later", 25)])
def test_findings_about_later_statements_are_those_of_brute_force(
    forms: drawn_later.Forms, first: int, tmp_path: Path
) -> None:
    asked = 0
    for seed in range(first, first + 10):
        rng = random.Random(seed)
        is_of = forms == "members"
        made = drawn_members.grammar(rng) if is_of else drawn_later.grammar(rng, forms)
        result, lines = linted(text_of(made), tmp_path), text_of(made).splitlines()
        told = [
            (one.diagnostic.span.line, one.diagnostic.message)
            for one in result.findings
            if one.diagnostic.span and one.diagnostic.code in ("TCC704", "TCC705")
        ]
        for say in made.statements[1:]:
            line = 1 + lines.index(statement_of(say))
            mine = [message for at, message in told if at == line]
            parts = [message for message in mine if "changes nothing" in message]
            rest = tuple([one for one in made.statements if one is not say])
            if any("is redundant" in message for message in mine):
                less = replace(made, statements=rest)
                assert brute_later.breaks_inclusion(less, made) is None, (seed, say)
                asked += 1
            for message in parts if isinstance(say, l.Require | l.Forbid) else ():
                if not message.startswith("alternative "):
                    continue
                at = int(message.split()[1]) - 1
                less_of = replace(
                    say, alternatives=say.alternatives[:at] + say.alternatives[at + 1 :]
                )
                less = replace(made, statements=(*rest, less_of))
                assert brute_later.breaks_inclusion(less, made) is None, (seed, message)
                assert brute_later.breaks_inclusion(made, less) is None, (seed, message)
                asked += 1
    assert asked > 2

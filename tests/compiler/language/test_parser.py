"""The parser of statements: loaded from its data it is the one that Lark builds of grammar.lark."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lark
import pytest

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Region, source_of
from tcc_compiler.language.syntax import parser
from tcc_compiler.language.syntax.actions import Actions
from tcc_compiler.language.syntax.parser import (
    GRAMMAR,
    SERIALISED,
    Parser,
    UnexpectedToken,
    serialised,
    text_of,
)
from tcc_compiler.language.syntax.tokens import Lexeme, lexeme, split
from tcc_compiler.language.syntax.tool_actions import ToolActions

ROOT = Path(__file__).parents[3]
STATEMENTS = """
grammar g version "1" currency "EUR" use "a.tcg" start x goal x | y
tool a tool b(k: 1 | -2) tool c(k?: a | b; t: text min 1 max 9 ~ "x*", n: number 0 .. 1, f: flag)
tool d(; j: json max 5) gives (ok: yes | no) : x -> y { strict errors mean failed }
tool e(k: 1..8) { cost 1 + 2 * (k - -3) when k = 1 | 2 cost 0.5 .. 1.5 price 2 latency 80 ms }
tool f { epsilon 0.1 quotes same doc "d" bind mcp "s" "t" bind python "m:f" cost "a b" }
tool h { model m { price 1 latency 2 s epsilon 0.5 adapter "x" quality 0.5 } model n { } }
tool i { model m { execute } model n { execute { price 1 latency 2 s atom laplace(1, 2) times 3 }
} }
rule r = a b? (c | d)* & any - e+ f{3} g{1,} h{1,2} () "q r"(k=1|2, l=x)
plan = a
limit depth <= 3 limit uses(a(k=1)) >= 2 limit uses(a) per k <= 1 limit sum(a.b) <= 5
limit cost <= -1 limit latency <= 5 s
require a before b require a after b require a before b same k, l = m
require a before each b require a before each b same k
forbid a forbid a b c forbid a with b forbid a before b same k
monitor require a | b - (c | any) before each b - c forbid (a | b) c monitor limit depth <= 2
given user: text, role: agent | boss, most?: number 0 .. 9 or null at "/m" pass resources, prompts
let x = a.f or b.g let y(k, l) = a | b let z(k) = a.rows | b.rows
tool j(x: a | b at "/x", y?: 1..8 at "/y"; l: list min 1 max 2 distinct of text at "/l/*",
  r: list of (u: text at "/u", v?: time "-05:00" or null)) gives (s: a | *; t: time utc, d: date)
tool k gives (; t?: date "+01:00") { parallel }
require 2 a same k = own.x, l where seen.f.g < max(now - 5 m, 2 * session.u + -1) within 24 h
  or last a(s=*) where f? !~ "x", every seen.l in ("a", "b"), not_here not in session.l
  or where some seen.l as e, own.m as f (e.x = f.y, count(l != 3) >= count(own."a-b")) before b
require a where x(k, 2).f = "t" require any after a | b same k
forbid a or b where every l = 3, x > 1, y <= 2 before c same k = "t" unless a within 5 s or any
limit uses(a | b where f = 1) per session.u, f <= 2 within 24 h across sessions
limit sum(a.f) per g <= 1.5 within 1 d limit uses(any - a) >= 1
accept a b reject () accept () expect plans == 3 expect min_cost <= 0.5 expect max_depth >= 1
expect never a expect never a b expect never a with b same k expect never a after b
expect never a before b expect reachable a expect implies "f"
"""


def statements_in(grammar: str) -> list[list[Lexeme]]:
    source = source_of(grammar, "g.tcg")
    return [list(chunk.tokens) for chunk in split(source.text, 0, Report([source]))]


def texts() -> dict[str, str]:
    """Grammars that hold, and the inputs of the golden files, which do not."""
    found = {"all": STATEMENTS}
    for path in sorted((ROOT / "grammars").rglob("*.tcg")):
        found[path.stem] = path.read_text("utf-8")
    for path in sorted((ROOT / "tests/golden").rglob("*.tcg.txt")):
        if path.stat().st_size < 20_000:
            found[path.name] = re.sub("<<.*?>>", "", path.read_text("utf-8")).partition("\n---")[0]
    return found


@pytest.fixture
def reloading() -> Iterator[None]:
    """The next parser is loaded anew, and the one after the test too."""
    parser._loaded.cache_clear()
    yield
    parser._loaded.cache_clear()


def read(tokens: list[Lexeme]) -> tuple[Any, int]:
    """The tree of a statement, None if it is none; and how many tokens were taken."""
    reading = Parser()
    at = 0
    try:
        for token in tokens:
            reading.feed(token)
            at += 1
        return reading.end(), at
    except UnexpectedToken:
        return None, at


def read_all() -> dict[str, list[tuple[Any, int]]]:
    return {
        name: [read(tokens) for tokens in statements_in(text)] for name, text in texts().items()
    }


def test_the_data_of_the_package_is_made_of_the_grammar() -> None:
    made = serialised(GRAMMAR.read_text("utf-8"))
    assert SERIALISED.read_text("utf-8") == text_of(made)
    assert made["lark"] == lark.__version__


def test_the_data_is_the_same_in_each_process() -> None:
    code = (
        "from tcc_compiler.language.syntax.parser import *\n"
        "print(text_of(serialised(GRAMMAR.read_text('utf-8'))), end='')"
    )
    for seed in ("1", "2"):
        made = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        assert made.stdout == SERIALISED.read_bytes()


@pytest.mark.usefixtures("reloading")
@pytest.mark.parametrize("change", ["version", "grammar"])
def test_for_another_version_of_lark_or_another_grammar_the_parser_is_built(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = read_all()
    # Data that holds for neither would not even load.
    made = json.loads(SERIALISED.read_text("utf-8")) | {"data": {}, "memo": {}}
    if change == "version":
        monkeypatch.setattr(lark, "__version__", "0.0")
    else:
        made["grammar"] += "\n"
    other = tmp_path / "grammar.json"
    other.write_text(json.dumps(made))
    monkeypatch.setattr(parser, "SERIALISED", other)
    parser._loaded.cache_clear()
    assert read_all() == loaded


def test_grammars_of_the_repository_are_read_whole() -> None:
    for name, found in read_all().items():
        whole = [tree is not None for tree, _ in found]
        assert all(whole) or name.endswith(".txt"), name


def test_what_is_no_statement_stops_at_a_token_that_was_not_expected() -> None:
    stopped = 0
    for name, grammar in texts().items():
        for tokens in statements_in(grammar) if name.endswith(".txt") else ():
            tree, at = read(tokens)
            if tree is None:
                before = Parser()
                for token in tokens[:at]:
                    before.feed(token)
                kind = tokens[at].type if at < len(tokens) else "$END"
                assert kind not in before.expected(), name
                stopped += 1
    assert stopped > 100


def test_what_may_follow_is_what_can_be_fed() -> None:
    kinds = {token.type for tokens in statements_in(STATEMENTS) for token in tokens}
    seen = set[tuple[int, ...]]()
    for tokens in statements_in(STATEMENTS):
        for at in range(len(tokens) + 1):
            before = Parser()
            for token in tokens[:at]:
                before.feed(token)
            # All that an LALR parser goes by is its stack: what may follow each is asked once.
            stack = tuple(before._parser.parser_state.state_stack)
            if stack in seen:
                continue
            seen.add(stack)
            fed = {kind for kind in kinds if read([*tokens[:at], any_of(kind)])[1] > at}
            whole = {"$END"} if read(tokens[:at])[0] is not None else set[str]()
            assert before.expected() == fed | whole, tokens[:at]
    assert len(seen) > 300


def any_of(kind: str) -> Lexeme:
    """A token of a kind; its text is a number where one is read."""
    return lexeme(kind, "1" if kind == "NUMBER" else "a", Region(0, 0, 1))


def test_a_long_sequence_takes_time_in_proportion() -> None:
    (tokens,) = statements_in("plan = " + "a " * 100_000)
    started = time.process_time()
    tree, taken = read(tokens)
    assert (len(tree.body.items), taken) == (100_000, 100_002)
    assert time.process_time() - started < 10  # a list that is copied at each step takes minutes


def test_every_action_is_named_by_the_grammar() -> None:
    memo = serialised(GRAMMAR.read_text("utf-8"))["memo"]
    symbols = [name for name, _ in memo["symbols"]]
    named = {alias or symbols[origin] for origin, _, _, alias, _ in memo["rules"]}
    own = {name for one in (Actions, ToolActions) for name in vars(one) if not name.startswith("_")}
    assert own <= named
    assert {name for name in named - own if not name.startswith("_")} == {
        "argument_value",
        "postfix",
        "start",
    }


def conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What Lark decides by itself where two steps are possible; of two reductions it raises."""
    caplog.clear()
    with caplog.at_level("DEBUG", logger="lark"):
        lark.logger.propagate = True
        try:
            lark.Lark(grammar, parser="lalr", lexer="basic", debug=True)
        finally:
            lark.logger.propagate = False
    return [record.getMessage() for record in caplog.records]


def test_the_grammar_is_lalr_1_without_a_choice_that_is_made_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert conflicts('start: start "a" start | "b"', caplog)
    assert conflicts(GRAMMAR.read_text("utf-8"), caplog) == []

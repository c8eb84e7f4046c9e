"""The automaton that reads statements is the one that Lark makes of grammar.lark."""

from __future__ import annotations

import re
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Transformer, UnexpectedToken, v_args

from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.automaton import TABLES, Parser, Unexpected
from tcc_compiler.language.syntax.build import Builder
from tcc_compiler.language.syntax.lexemes import Lexeme, lexeme
from tcc_compiler.language.syntax.tables import GRAMMAR, NoLexer, made, text
from tcc_compiler.language.syntax.tokens import split

ROOT = Path(__file__).parents[3]
STATEMENTS = """
grammar g version "1" currency "EUR" use "a.tcg" start x goal x | y
tool a tool b(k: 1 | -2) tool c(k?: a | b; t: text min 1 max 9 ~ "x*", n: number 0 .. 1, f: flag)
tool d(; j: json max 5) gives (ok: yes | no) : x -> y { strict errors mean failed }
tool e(k: 1..8) { cost 1 + 2 * (k - -3) when k = 1 | 2 cost 0.5 .. 1.5 price 2 latency 80 ms }
tool f { epsilon 0.1 quotes same doc "d" bind mcp "s" "t" bind python "m:f" cost "a b" }
tool h { model m { price 1 latency 2 s epsilon 0.5 adapter "x" } model n { } }
tool i { model m { execute } model n { execute { price 1 latency 2 s atom laplace(1, 2) } } }
rule r = a b? (c | d)* & any - e+ f{3} g{1,} h{1,2} () "q r"(k=1|2, l=x)
plan = a
limit depth <= 3 limit uses(a(k=1)) >= 2 limit uses(a) per k <= 1 limit sum(a.b) <= 5
limit cost <= -1 limit latency <= 5 s
require a before b require a after b require a before b same k, l = m
require a before each b require a before each b same k
forbid a forbid a b c forbid a with b forbid a before b same k
accept a b reject () accept () expect plans == 3 expect min_cost <= 0.5 expect max_depth >= 1
"""


@lru_cache(maxsize=1)
def lark() -> Lark:
    """Lark's own automaton, with the same actions."""

    methods = {
        name: value
        for base in reversed(Builder.__mro__[:-1])
        for name, value in vars(base).items()
        if callable(value)
    }
    actions = v_args(inline=True)(type("OfLark", (Transformer,), methods))()
    return Lark(
        GRAMMAR.read_text("utf-8"), parser="lalr", lexer=NoLexer, transformer=actions, start="start"
    )


def by_lark(tokens: list[Lexeme]) -> tuple[Any, int]:
    """The tree of a statement, None if it is none; and how many tokens were taken."""
    parser = lark().parse_interactive()
    at = 0
    try:
        for token in tokens:
            parser.feed_token(token)
            at += 1
        return parser.feed_token(lexeme("$END", "", Region(0, 0, 0))), at
    except UnexpectedToken:
        return None, at


def by_us(tokens: list[Lexeme]) -> tuple[Any, int]:
    parser = Parser()
    at = 0
    try:
        for token in tokens:
            parser.feed(token)
            at += 1
        return parser.end(), at
    except Unexpected:
        return None, at


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


def test_the_tables_of_the_package_are_those_of_the_grammar() -> None:
    assert TABLES.read_text("utf-8") == text(made())


@pytest.mark.parametrize("name", ["all", *(k for k in texts() if not k.endswith(".txt"))])
def test_a_statement_is_read_as_lark_reads_it(name: str) -> None:
    for tokens in statements_in(texts()[name]):
        tree, taken = by_us(tokens)
        assert (tree, taken) == by_lark(tokens)
        assert tree is not None


def test_what_is_no_statement_stops_where_lark_stops() -> None:
    stopped = 0
    for name, grammar in texts().items():
        for tokens in statements_in(grammar) if name.endswith(".txt") else ():
            found = by_us(tokens)
            assert found == by_lark(tokens), name
            stopped += found[0] is None
    assert stopped > 100


def test_what_may_follow_is_what_lark_accepts() -> None:
    for tokens in statements_in(STATEMENTS):
        parser, other = Parser(), lark().parse_interactive()
        for token in tokens:
            assert parser.expected() == frozenset(other.accepts()), tokens
            parser.feed(token)
            other.feed_token(token)


def test_a_long_sequence_takes_time_in_proportion() -> None:
    (tokens,) = statements_in("plan = " + "a " * 100_000)
    started = time.process_time()
    tree, taken = by_us(tokens)
    assert (len(tree.body.items), taken) == (100_000, 100_002)
    assert time.process_time() - started < 10  # a list that is copied at each step takes minutes


def test_every_action_is_named_by_the_grammar() -> None:
    named = {rule[1] for rule in made()["rules"]}
    own = {name for name in vars(Builder) if not name.startswith("_")}
    own |= {name for base in Builder.__mro__[1:-1] for name in vars(base) if name[0] != "_"}
    assert own <= named
    assert {name for name in named - own if not name.startswith("_")} == {"postfix", "start"}

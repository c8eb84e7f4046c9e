"""The layout: one for each list of tokens, idempotent, with every comment, and of the same core."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tcc_certs.policy.nodes import statement_text
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.layout.format import format_text
from tcc_compiler.names.compile import compile_source
from tcc_compiler.syntax.parse import parse
from tcc_compiler.syntax.tree import Token, tokens_of
from tests.compiler.names.corpus import DESK, FORMS, SHIPPED
from tests.compiler.names.random_nodes import statement

TEXTS = [DESK, FORMS, *[path.read_text("utf-8") for path in SHIPPED]]


def laid_out(text: str) -> str:
    found = format_text(text)
    assert found.text is not None, found.diagnostics
    return found.text


def tokens(text: str) -> list[list[Token]]:
    source = source_of(text, "<text>")
    return [list(tokens_of(tree)) for tree in parse(source, 0, Report([source])).statements]


@pytest.mark.parametrize("text", TEXTS)
def test_a_second_time_changes_nothing(text: str) -> None:
    assert laid_out(laid_out(text)) == laid_out(text)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_core_stays_the_same(path: Path) -> None:
    text = path.read_text("utf-8")
    before, after = (compile_source(one, path=path) for one in (text, laid_out(text)))
    assert before.core == after.core
    assert len(before.diagnostics) == len(after.diagnostics)


def spaced(text: str, rng: random.Random, comments: bool) -> str:
    """The tokens of a text with other white space, and comments, between them."""
    lines = []
    for number, line_tokens in enumerate(tokens(text)):
        line = ""
        for token in line_tokens:
            gap = rng.choice((" ", "  ", "\n    ", "\n\n  ", "\t"))
            if comments and rng.random() < 0.1:
                gap = rng.choice((f" # c{number}\n", f"\n# c{number}\n", "\n\n#\n\n # x\n"))
            line += (gap if line else "") + token.text
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("text", TEXTS)
def test_white_space_in_a_statement_does_not_matter(text: str) -> None:
    rng = random.Random(1)
    plain = "\n".join(" ".join(one.text for one in line) for line in tokens(text)) + "\n"
    for _ in range(3):
        assert laid_out(spaced(text, rng, False)) == laid_out(plain)


@pytest.mark.parametrize("text", TEXTS)
def test_comments_stay_between_their_tokens(text: str) -> None:
    """`format_text` raises a LayoutError if a token or comment moves."""
    rng = random.Random(2)
    for _ in range(4):
        made = spaced(text, rng, True)
        found = laid_out(made)
        assert found.count("#") == made.count("#")
        assert laid_out(found) == found


def test_clauses_are_indented_and_a_block_starts_at_the_margin() -> None:
    text = """\
grammar g version "1"
tool a(x: 1 | 2)
tool b(y: text)
  before   a {let o=last( b(y="1") )
require o.y="x"   because "Why."   require x=1 or x = 2 }
before b require a
"""
    assert (
        laid_out(text)
        == """\
grammar g version "1"

tool a(x: 1 | 2)
tool b(y: text)

before a {
  let o = last(b(y = "1"))
  require o.y = "x" because "Why."
  require x = 1 or x = 2
}
before b require a
"""
    )


def test_long_statements_break_before_their_words() -> None:
    condition = " or ".join(f"customer_number_{n} = {n}" for n in range(6))
    # The lines are longer than those of this file.
    text = f"""\
grammar g version "1"
before some_tool | another_tool require {condition} because "{"x" * 60}"
limit sum(some_tool.amount within 30 d) per customer, order, year <= last(some_tool).total \
across sessions
forbid some_tool(a = 1, b = 2, c = 3, message ~ \
".*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.*", d = 4)
plan = aaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbb | cccccccccccccccccccc \
dddddddddddddddddddd | e
"""
    assert (
        laid_out(text)
        == f"""\
grammar g version "1"

before some_tool | another_tool
  require customer_number_0 = 0
    or customer_number_1 = 1
    or customer_number_2 = 2
    or customer_number_3 = 3
    or customer_number_4 = 4
    or customer_number_5 = 5
  because "{"x" * 60}"
limit sum(some_tool.amount within 30 d) per customer, order, year <= last(some_tool).total
  across sessions
forbid some_tool(a = 1, b = 2, c = 3, message ~ ".*aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.*",
                 d = 4)

plan = aaaaaaaaaaaaaaaaaaaaaa bbbbbbbbbbbbbbbbbbbbbbbbbbb
     | cccccccccccccccccccc dddddddddddddddddddd
     | e
"""
    )


def test_the_values_of_a_long_comparison_continue_below_its_sign() -> None:
    values = " | ".join(f"value_number_{n}" for n in range(9))
    text = f"""\
grammar g version "1"
forbid a(k = {values}, note = "x")
before a(k != {values}) require b(same k) or amount <= 1
"""
    assert (
        laid_out(text)
        == """\
grammar g version "1"

forbid a(k = value_number_0 | value_number_1 | value_number_2 | value_number_3 | value_number_4
           | value_number_5 | value_number_6 | value_number_7 | value_number_8,
         note = "x")
before a(k != value_number_0 | value_number_1 | value_number_2 | value_number_3 | value_number_4
           | value_number_5 | value_number_6 | value_number_7 | value_number_8)
  require b(same k) or amount <= 1
"""
    )


def test_random_long_statements_have_one_layout() -> None:
    rng = random.Random(4)
    for _ in range(20):
        lines = [statement_text(statement(rng, rng.randint(4, 7))) for _ in range(4)]
        text = 'grammar g version "1"\n' + "\n".join(lines) + "\n"
        found = laid_out(text)
        assert laid_out(found) == found
        assert laid_out(spaced(text, rng, False)) == found
        starts = [line.lstrip() for line in found.splitlines()]
        # No line begins with the sign of `x = a | b`: what is compared stays beside it.
        assert not [line for line in starts if re.match(r"!?= [\w`]+ \|", line)]
        commented = spaced(text, rng, True)
        assert laid_out(commented).count("#") == commented.count("#")


def test_a_text_with_a_mistake_is_not_laid_out() -> None:
    found = format_text("grammar g version 1\n")
    assert found.text is None
    assert [one.code for one in found.diagnostics] == ["TCC101"]
    assert format_text("").text == ""
    assert format_text("# only a comment").text == "# only a comment\n"


def test_deep_and_wide_expressions_are_laid_out() -> None:
    head = 'grammar g version "1"\n'
    for text in (
        "before a require " + "not " * 110 + "b\n",
        "before a require " + "(" * 120 + "b" + ")" * 120 + "\n",
        "before a require " + " or ".join(["x = 1"] * 2000) + "\n",
        "forbid " + " | ".join(["a"] * 2000) + "\n",
        "before a require " + "b(" * 80 + "x = 1" + ")" * 80 + "\n",
        "plan = " + "(a " * 60 + ")" * 60 + " b" * 2000 + "\n",
    ):
        found = laid_out(head + text)
        assert laid_out(found) == found

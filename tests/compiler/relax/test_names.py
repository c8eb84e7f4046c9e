"""The names that statements are relaxed by, and those that are refused."""

from __future__ import annotations

import pytest

from tcc_certs.kernel import check
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

TEXT = """grammar g version "1"

tool search(k: 5 | 10) { cost 0.5 price 1 latency 3 ms epsilon 0.5 }
tool rank { cost 1 price 2 }

plan = any{0,5}

limit depth <= 4
limit price <= 6
limit latency <= 9 ms
limit cost <= 3
limit epsilon <= 1.5
limit count(search) <= 3
finally require search(k = 5)
before rank require search
before rank require no rank since any - rank
"""
# Its statements, by their numbers.
TEXTS = [
    "limit depth <= 4", "limit price <= 6", "limit latency <= 9 ms", "limit cost <= 3",
    "limit epsilon <= 1.5", "limit count(search) <= 3", "finally require search(k = 5)",
    "before rank require search", "before rank require no rank since any - rank",
]  # fmt: skip


def relaxed(*names: str, text: str = TEXT) -> tuple[int, ...]:
    found = compile_text(text, Options(relax=names))
    assert found.diagnostics == ()
    assert found.artifact is not None
    return check(found.artifact).file.manifest.relaxed


def refused(*names: str, text: str = TEXT) -> Diagnostic:
    found = compile_text(text, Options(relax=names))
    assert found.artifact is None
    (diagnostic,) = found.diagnostics
    assert diagnostic.code == "TCC412"
    return diagnostic


@pytest.mark.parametrize(
    ("names", "due"),
    [
        (["price"], (1,)),
        (["cost"], (3,)),
        (["depth"], (0,)),
        (["epsilon", "latency"], (2, 4)),
        (["count"], (5,)),
        (["require"], (6, 7, 8)),
        (["require", "limit count(search) <= 3"], (5, 6, 7, 8)),
    ],
)
def test_a_kind_stands_for_all_of_its_statements(names: list[str], due: tuple[int, ...]) -> None:
    assert relaxed(*names) == due


@pytest.mark.parametrize("at", range(len(TEXTS)))
def test_a_text_or_a_number_stands_for_one_statement(at: int) -> None:
    assert relaxed(TEXTS[at]) == relaxed(str(at)) == (at,)


@pytest.mark.parametrize("name", ["limit  price<=6", "price <= 6", " limit price <= 6"])
def test_white_space_and_the_word_limit_make_no_difference(name: str) -> None:
    assert relaxed(name) == (1,)


def test_a_name_given_twice_counts_once() -> None:
    assert relaxed("price", "limit price <= 6", "price", "1") == (1,)


def test_without_names_nothing_is_relaxed() -> None:
    assert relaxed() == ()


GATE = (
    TEXT
    + """tool pay(amount: number 0 .. 9, order: text)
before pay require amount < 5
before pay(amount < 3) require search
"""
)


def test_a_statement_that_only_the_gate_holds_cannot_be_relaxed() -> None:
    found = refused("before pay require amount < 5", text=GATE)
    assert found.message == (
        "`before pay require amount < 5` is no part of plans: the gate decides it"
    )
    assert found.span is not None and found.span.line == 18
    # Among others of its kind it is left out.
    assert relaxed("require", text=GATE) == (6, 7, 8)


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("prise", "`prise` is no kind, no text and no number of a statement", "'price'"),
        ("limit price <= 7", "`limit price <= 7` is no kind,", "'limit price <= 6'?"),
        ("limit count(search) <= 4", "is no kind,", "'limit count(search) <= 3'?"),
        ("9", "`9` is no kind,", "name a kind (depth, price, "),
        ("", "`` is no kind,", "or one of: 'limit depth <= 4', "),
        ("x" * 9999, "is no kind,", "name a kind "),
        ("start", "`start` is no kind,", "name a kind "),
    ],
)
def test_a_name_of_nothing_is_refused_with_the_mend(name: str, message: str, hint: str) -> None:
    found = refused(name)
    assert message in found.message
    assert found.hint is not None and hint in found.hint


def test_a_kind_that_the_grammar_does_not_have() -> None:
    text = """grammar g version "1"

tool a

plan = a
"""
    found = refused("price", text=text)
    assert found.message == "there is no price statement to relax"
    assert found.hint == "the automaton of this grammar holds no statement"


def test_costs_below_nothing_keep_their_limit() -> None:
    text = TEXT.replace("cost 1 price 2", "cost -1 .. 2 price 2")
    found = refused("cost", text=text)
    assert "`limit cost <= 3` cannot be relaxed: `rank` may cost less than nothing" in found.message
    assert relaxed("price", text=text) == (1,)


def test_a_limit_without_which_there_are_infinitely_many_plans() -> None:
    text = TEXT.replace("plan = any{0,5}", "plan = (search | rank)*").replace("price 1", "price 0")
    text = "".join(line for line in text.splitlines(True) if "cost <=" not in line)
    text = "".join(line for line in text.splitlines(True) if "latency <=" not in line)
    found = refused("depth", "epsilon", "count", text=text)
    assert "`limit depth <= 4` and `limit epsilon <= 1.5` and " in found.message
    assert "cannot be relaxed: without, there are infinitely many plans: " in found.message
    assert "`search(k=10)` can be repeated for ever" in found.message
    assert relaxed("epsilon", text=text) == (2,)


@pytest.mark.parametrize("bits", [0, 64, -1])
def test_rounding_to_no_bits_or_too_many_is_refused(bits: int) -> None:
    found = compile_text(TEXT, Options(round_counts=bits))
    assert [d.code for d in found.diagnostics] == ["TCC408"]

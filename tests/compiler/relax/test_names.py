"""The names that statements are relaxed by, and those that are refused."""

from __future__ import annotations

import pytest

from tcc_certs.formats.artifact import Relaxed
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
# By canonical text: cost, depth, epsilon, latency, price, uses(search(k=5))>=1, uses(search)<=3.
LIMITS = [
    "limit cost <= 3", "limit depth <= 4", "limit epsilon <= 1.5", "limit latency <= 9", "limit price <= 6", "finally require count(search(k = 5)) >= 1",
    "limit count(search) <= 3",
]  # fmt: skip


def relaxed(*names: str, text: str = TEXT) -> Relaxed | None:
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
        (["price"], Relaxed(limits=(4,))),
        (["cost"], Relaxed(limits=(0,))),
        (["depth"], Relaxed(limits=(1,))),
        (["epsilon", "latency"], Relaxed(limits=(2, 3))),
        (["uses"], Relaxed(limits=(5, 6))),
        (["require"], Relaxed(requires=(0,))),
        (["forbid"], Relaxed(forbids=(0,))),
        (
            ["forbid", "limit count(search) <= 3", "require"],
            Relaxed(forbids=(0,), limits=(6,), requires=(0,)),
        ),
    ],
)
def test_a_kind_stands_for_all_of_its_statements(names: list[str], due: Relaxed) -> None:
    assert relaxed(*names) == due


@pytest.mark.parametrize("at", range(len(LIMITS)))
def test_a_canonical_text_stands_for_one_limit(at: int) -> None:
    assert relaxed(LIMITS[at]) == Relaxed(limits=(at,))


def test_a_name_given_twice_counts_once() -> None:
    assert relaxed("price", "limit price <= 6", "price") == Relaxed(limits=(4,))


def test_without_names_nothing_is_relaxed() -> None:
    assert relaxed() is None


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("prise", "`prise` is no kind of statement and no limit of this grammar", "'price'"),
        ("price <= 6", "`price <= 6` is no kind of", "did you mean 'limit price <= 6'?"),
        ("limit price <= 7", "`price<=7` is no kind of", "did you mean 'limit price <= 6'?"),
        ("limit count(search) <= 4", "is no kind of", "did you mean 'limit count(search) <= 3'?"),
        ("", "`` is no kind of", "name one of: cost, cost<=3"),
        ("x" * 9999, "is no kind of", "name one of: "),
        ("start", "`start` is no kind of", "name one of: "),
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
    assert found.hint == "this grammar has no limit, require or forbid"


def test_costs_below_nothing_keep_their_limit() -> None:
    text = TEXT.replace("cost 1 price 2", "cost -1 .. 2 price 2")
    found = refused("cost", text=text)
    assert "`limit cost<=3` cannot be relaxed: `rank` may cost less than nothing" in found.message
    assert relaxed("price", text=text) == Relaxed(limits=(4,))


def test_a_limit_without_which_there_are_infinitely_many_plans() -> None:
    text = TEXT.replace("plan = any{0,5}", "plan = (search | rank)*").replace("price 1", "price 0")
    text = "".join(line for line in text.splitlines(True) if "cost <=" not in line)
    text = "".join(line for line in text.splitlines(True) if "latency <=" not in line)
    found = refused("depth", "epsilon", "uses", text=text)
    assert "`limit depth<=4` and `limit epsilon<=1.5` and " in found.message
    assert "cannot be relaxed: without, there are infinitely many plans: " in found.message
    assert "`search(k=10)` can be repeated for ever" in found.message
    assert relaxed("epsilon", text=text) is not None


@pytest.mark.parametrize("bits", [0, 64, -1])
def test_rounding_to_no_bits_or_too_many_is_refused(bits: int) -> None:
    found = compile_text(TEXT, Options(round_counts=bits))
    assert [d.code for d in found.diagnostics] == ["TCC408"]

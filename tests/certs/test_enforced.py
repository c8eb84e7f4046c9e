"""Where each statement is enforced, in texts that stay short whatever the grammar holds."""

from __future__ import annotations

import pytest

from tcc_certs.core import enforced as module
from tcc_certs.core.enforced import enforced, shortened
from tcc_certs.core.reader import read_core
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.formats.codec import encode
from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tests.certs.test_core_later import later_core

TEXT = """grammar g version "1"

tool a(k: 1 | 2 | 3)
tool b

plan = any* - any* a a(k=2) b any*

limit depth <= 4
limit count(a(k = 1 | 2)) <= 2
before b require a(k = 1)
after a(k = 1 | 3) owe b
before b require no a
before a require no b
"""


def core():
    made = compile_text(TEXT.replace("forbid a with b\n", ""), Options()).artifact
    assert made is not None
    return check(made).core


def test_every_statement_is_in_one_of_the_two() -> None:
    found = enforced(core(), None)
    assert found.run == ()
    assert found.automaton == (
        "plan", "depth<=4", "uses(a(k=1|2))<=2", "require b after a(k=1)|...(2 calls)",
        "require a(k=1) before b", "forbid a a(k=2) b",
    )  # fmt: skip
    for relaxed in (
        Relaxed(limits=(1,)),
        Relaxed(requires=(0, 1)),
        Relaxed(forbids=(0,)),
        Relaxed(limits=(0, 1), requires=(0,), forbids=(0,)),
    ):
        split = enforced(core(), relaxed)
        assert sorted(split.automaton + split.run) == sorted(found.automaton)
        named = relaxed.limits + relaxed.requires + relaxed.forbids
        assert len(split.run) == len(named)


def test_the_indices_are_those_of_their_own_kind() -> None:
    assert enforced(core(), Relaxed(limits=(1,))).run == ("uses(a(k=1|2))<=2",)
    assert enforced(core(), Relaxed(forbids=(0,))).run == ("forbid a a(k=2) b",)


def test_many_statements_are_cut_for_people() -> None:
    texts = tuple(f"price<={n}" for n in range(6400))
    assert shortened(texts).endswith("price<=7, and 6392 more")
    assert shortened(texts[:2]) == "price<=0, price<=1"


def test_a_call_set_is_looked_at_once_however_many_statements_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Once a statement, 6,400 statements over one set of many ranges took their product.
    looks = []
    text = module._call_set_text
    monkeypatch.setattr(
        module, "_call_set_text", lambda *told: looks.append(told[1]) or text(*told)
    )
    tools = "".join(f"tool t{n}\n" for n in range(40))
    requires = "".join(f"require w(k=1|3|5|7) before t{n}\n" for n in range(40))
    wide = f'grammar g version "1"\ntool w(k: 1 .. 9)\n{tools}plan = w{{1,2}}\n{requires}'
    made = compile_text(wide, Options()).artifact
    assert made is not None
    found = enforced(check(made).core, None)
    assert len(found.automaton) == 41
    assert len(looks) == len(set(looks)) == 41


def test_a_long_text_is_cut_for_people() -> None:
    assert len(shortened(("uses(a(k=" + "|".join(map(str, range(9999))) + "))<=2",))) <= 200


def test_monitors_and_open_types_are_for_whoever_makes_the_calls() -> None:
    where = enforced(read_core(encode(later_core())), None)
    assert where.automaton == (
        "plan", 'strict "ask-it"', "depth<=3", 'sum("ask-it".a)<=12.5',
        'require "ask-it" before do', 'require "ask-it"("plan"="",out=yes)|...(15 calls) before do',
        'require "ask-it" before each do',
        'forbid do before "ask-it"', 'forbid "ask-it" with do',
    )  # fmt: skip
    assert where.run == ()
    assert where.gate == (
        'require "ask-it"(out=yes) before do same t',
        'forbid "ask-it" with do(k=y) same n',
        'require "ask-it" before each do same f, i = n, "plan" = k',
        'forbid do(k=y) before "ask-it" same n = i',
        "limit sum(do.n) <= 100.25",
        "limit uses(do(k=y)) per t <= 2",
        '"ask-it".t: text min 1 max 9 ~ "[a-z]+"',
        '"ask-it".i: integer 0 .. 9',
        '"ask-it".n: number',
        '"ask-it".f: flag',
        '"ask-it".j: json max 100',
        '"ask-it".o?: text max 0',
        "do.n: number 0 .. 0.5",
        "do.t: text",
        "do.f: flag",
    )
    left = enforced(read_core(encode(later_core())), Relaxed(requires=(2,), forbids=(0,)))
    assert left.run == ('require "ask-it" before each do', 'forbid do before "ask-it"')
    assert left.gate == where.gate

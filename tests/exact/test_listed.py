"""Conditions about the elements of a list: what is proved holds, and what is not is refuted."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

import tcc
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import Policy
from tcc_certs.proof.check import check_proof
from tcc_certs.proof.questions import Question
from tcc_compiler.names.questions import read_question
from tcc_runtime.exact.prove import answer

HEAD = """# lint: allow TCC709 a test needs no costs
grammar listed version "1"
tool look(k: text) gives (found: list of text)
tool find(k: text)
  gives (items: list of (sku: text, price: number 0 .. 100, state: new | sent | *,
                         tags: list of text))
tool act(k: text, to: list of text, ids?: list of integer,
         rows: list of (sku: text, price: number 0 .. 100))
tool fill(k: text, n: integer 0 .. 9, rows: list min 1 of (sku: text, price: number 0 .. 100))
limit depth <= 10
"""
OF_ONE = """let o = last(find(same k))
before act require o.items(sku = this.k, state = sent, price <= 10)
before act require no o.items(sku = "z", state != new)"""
CHOSEN = """before fill require n <= match k { "a": 2, "b" | "c": 4, else: 7 }
before fill require every rows(price <= match sku { "a": 1, else: 6 })
limit count(fill) per k <= match k { "a": 1, else: 3 } in session"""
PROVED = (
    ('forbid act(to(it ~ ".*@evil"))', 'forbid act(to(it = "x@evil"))'),
    ('before act require no to(it = "b")', 'before act require "b" not in to'),
    ('before act require "b" not in to', 'before act require no to(it = "b")'),
    ('before act require "b" in to', "before act require to"),
    ("before act require k in to", "before act require to(it = this.k)"),
    ('before act require every to(it = "a")', 'before act require every to(it ~ "a.*")'),
    ('before act require every to(it ~ "a.*")', 'before act require no to(it = "b")'),
    ('before act require every to(it ~ "a.*") and k in to', 'before act require k ~ "a.*"'),
    (
        'before act require every rows(price <= 5, sku != "z")',
        'before act require every rows(sku != "z")',
    ),
    (
        'before act require no rows(sku = "z")',
        'before act require no rows(sku = "z", price > 3)',
    ),
    ("before act require every ids(it < 5)", "before act require 7 not in ids"),
    (
        "before act require k in last(look(same k)).found",
        "before act require last(look(same k)).found(it = this.k)",
    ),
    *[(OF_ONE, one) for one in (
        "before act require o.items(sku = this.k)",
        "before act require o.items(price <= 20, state != new)",
        "before act require k in o.items.sku",
        "before act require k in find.items.sku",
        "before act require find.items(sku = this.k, state = sent, k = this.k)",
        "before act require not (every o.items(price > 15))",
        'before act require every o.items(sku != "z" or state = new)',
    )],
    (OF_ONE, 'before act require k != "z" or o.items(price <= 10, sku = this.k, state = sent)'),
    ("let o = last(find(same k))\nbefore act require every o.items(tags(it = this.k))",
     "before act require no o.items(no tags)"),
    ("before fill require every rows(price <= this.n)", "before fill require rows(price < 10)"),
    ("before fill require every rows(price <= this.n, price > 2)", "before fill require n > 2"),
    ("before act require rows(price > 2)", "before act require count(rows) >= 1"),
    ("before act require no rows(price > 2)", "before act require count(rows(price > 3)) <= 0"),
    *[(CHOSEN, one) for one in (
        "before fill require n <= 7",
        'before fill(k = "a") require n <= 2',
        "before fill require n <= match k { \"a\": 3, else: 9 }",
        'before fill(n > 5) require k != "a" and k != "b"',
        'before fill require every rows(price <= 6)',
        'before fill require no rows(sku = "a", price >= 2)',
        "limit count(fill) per k <= 3 in session",
    )],
)  # fmt: skip
REFUTED = (
    ('forbid act(to(it = "x@evil"))', 'forbid act(to(it ~ ".*@evil"))'),
    ("before act require to", "before act require k in to"),
    ("before act require k in to", 'before act require k ~ "a.*"'),
    ('before act require every to(it ~ "a.*")', 'before act require every to(it = "a")'),
    ('before act require every to(it ~ "a.*")', 'before act require no to(it = "ab")'),
    ('before act require every to(it ~ "a.*")', "before act require to"),
    (
        'before act require no rows(sku = "z", price > 3)',
        'before act require no rows(sku = "z")',
    ),
    ("before act require every ids(it < 5)", "before act require 3 not in ids"),
    ("before act require k in last(look(same k)).found", "before act require k in to"),
    *[(OF_ONE, one) for one in (
        "before act require every o.items(state = sent)",
        "before act require o.items(sku = this.k, price <= 5)",
        "before act require no o.items(state = new)",
        "before act require every o.items(price <= 10)",
    )],
    *[(CHOSEN, one) for one in (
        "before fill require n <= 6",
        'before fill(k = "b") require n <= 3',
        'before fill require every rows(price <= 5)',
        'before fill require no rows(sku = "b", price >= 2)',
        'limit count(fill(k = "b")) <= 1 in session',
    )],
    # No list was looked up: then it has no count.
    ("forbid fill", "before act require count(last(look).found) >= 0"),
    ("forbid fill", "before act require count(pairs(to, ids)) >= 0"),
    # An unknown list is not empty.
    ("before act require look", "before act require every last(look).found(it != \"z\")"),
)  # fmt: skip


@pytest.mark.parametrize(("policy", "question"), PROVED)
def test_a_statement_about_lists_is_proved(policy: str, question: str) -> None:
    artifact = tcc.compile_text(f"{HEAD}{policy}\n")
    found = tcc.prove(artifact, question, timeout=20)
    assert found.verdict == "proved", found.missing
    check_proof(found.proof or b"", artifact.core)


@pytest.mark.parametrize(("policy", "question"), REFUTED)
def test_a_statement_about_lists_is_refuted(policy: str, question: str) -> None:
    found = tcc.prove(tcc.compile_text(f"{HEAD}{policy}\n"), question, timeout=20)
    assert found.verdict == "refuted" and found.session is not None


def test_a_match_inside_a_sum_is_of_each_element() -> None:
    policy = 'before fill require sum(rows, match sku { "a": 1, else: 5 }) = 6'
    artifact = tcc.compile_text(f"{HEAD}{policy}\n")
    question = "before fill require sum(rows, 1) = 6 or sum(rows, 5) = 6"
    assert tcc.prove(artifact, question, timeout=1).verdict != "proved"  # 1 + 5 = 6


LISTS = [list(some) for size in range(3) for some in product("abc", repeat=size)]
CONDITIONS = ('it = "a"', 'it != "a"', 'it ~ "a|b"', 'it !~ "a|b"', 'it = "b"', "it = this.k",
              'it = "a" | "b"')  # fmt: skip


def drawn(rng: random.Random) -> str:
    """A random condition about the elements of a list."""
    filters = ", ".join(rng.sample(CONDITIONS, rng.randint(1, 2)))
    source = rng.choice(("to", "last(look).found"))
    value = rng.choice(('"a"', '"b"', "k"))
    return rng.choice((
        f"{source}({filters})", f"no {source}({filters})", f"every {source}({filters})",
        f"every {source}({rng.choice(CONDITIONS)})({filters})", f"{value} in {source}",
        f"{value} not in {source}", 'k = "a"', 'k ~ "a|b"',
    ))  # fmt: skip


def broken(policy: Policy) -> Any:
    """A short session that breaks the last statement of a policy and no other one."""
    asked = len(policy.rules) - 1
    replies: list[Any] = [None, *[{"found": some} for some in LISTS[:8]], {"found": 5}]
    for reply, to, k in product(replies, LISTS, "abc"):
        course = Course(policy, {})
        if reply is not None:
            course.record(course.call("look", {"k": "a"}), "done", reply)
        arguments = {"k": k, "to": to, "rows": []}
        if {one.statement for one in course.check("act", arguments)} == {asked}:
            return reply, arguments
    return None


def decide(seed: int) -> str:
    rng = random.Random(f"listed {seed}")
    text = "".join([f"before act require {drawn(rng)}\n" for _ in range(rng.randint(1, 2))])
    try:
        core = tcc.compile_text(HEAD + text).core
    except tcc.CompileError:
        return "skipped"
    asked = f"before act require {drawn(rng)}"
    found = read_question(asked, core)
    if found.diagnostics:
        return "skipped"
    question = Question(kind="statement", statements=found.statements)
    given = answer(core, question, lambda session: None, timeout=0.5)
    if given.verdict != "proved":
        return given.verdict
    policy = Policy(replace(core, statements=(*core.statements, *found.statements)))
    shown = broken(policy)
    assert shown is None, f"seed {seed}: {text}question: {asked}\nbroken by {shown}"
    return "proved"


def test_drawn_conditions_about_lists_are_not_proved_wrongly() -> None:
    found = Counter(decide(seed) for seed in range(50))
    assert found["proved"] >= 2 and found["refuted"] >= 10

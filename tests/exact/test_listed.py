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
tool act(k: text, to: list of text, ids?: list of integer,
         rows: list of (sku: text, price: number 0 .. 100))
limit depth <= 10
"""
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
)
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
)


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
    found = Counter(decide(seed) for seed in range(100))
    assert found["proved"] >= 5 and found["refuted"] >= 20

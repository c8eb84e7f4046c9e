"""Statements in words: one sentence for each form, and no form without one."""

from __future__ import annotations

import random
import re

import pytest

from tcc_compiler.editing.project import read_project
from tcc_compiler.editing.sentences import sentence
from tests.compiler.names.corpus import SHIPPED
from tests.compiler.names.random_nodes import statement

DECLARED = """grammar g version "1"
given customer: text
tool find(order: text) gives (owner: text, total: number, items: list of (id: text, n: integer))
tool pay(order: text, amount: number 0 .. 500, to: list of text, urgent: flag)
tool approve(order: text, amount: number 0 .. 500) gives (answer: yes | no)
let writes = pay | approve
"""


# A statement, then its sentence, indented.
TABLE = """\
before pay require find(same order)
    A call of `pay` is allowed only if there is an earlier call of `find` with the same
    `order`.
before pay(urgent) require amount <= 100 or last(find(same order)).total != 0
    A call of `pay` where `urgent` holds, surely or perhaps, is allowed only if `amount` is
    at most `100`, or `total` of the last call of `find` with the same `order` is not `0`.
before writes require unused approve(same (order, amount), answer = yes) within 1 h
    A call of `writes` is allowed only if there is an earlier call of `approve` with the
    same `order` and `amount` where `answer` is `yes` in the last 1 h, which no earlier
    call has used.
before any - find require no pay since approve(answer = no)
    A call of any tool except `find` is allowed only if there is no earlier call of `pay`
    since the last `approve` where `answer` is `no`.
before pay require every to(it in find.owner)
    A call of `pay` is allowed only if for each element of `to`: the element is in `owner`
    of `find`.
before pay { let o = last(find(same order))  require o.owner = session.customer }
    A call of `pay` is allowed only if `owner` of `o` is the session's `customer`. Here `o`
    is the last call of `find` with the same `order`.
finally require count(distinct(pay.order)) <= 3 and not sum(pay.amount) > 9
    A session may end only if the number of different values of the values `order` of
    earlier calls of `pay` is at most `3`, and it is not so that the sum of the values
    `amount` of earlier calls of `pay` is more than `9`.
forbid pay(amount in 100 .. 200)
    A call of `pay` where `amount` is between `100` and `200`, surely or perhaps, is
    refused.
after pay owe approve(same order) within 1 d
    After a call of `pay` the session may end only after a later call of `approve` with the
    same `order`. It is overdue after 1 day.
limit count(pay(urgent) within 30 d) per order, session.customer <= 3 across sessions
    For each value of `order` and the session's `customer`: there are at most `3` calls of
    `pay` where `urgent` holds in the last 30 days, over all sessions.
limit sum(pay.amount) <= 500
    The sum of `amount` over `pay` is at most `500`, in a session.
limit depth <= 9
    A plan or session has at most `9` calls.
limit latency <= 2 s
    The latencies of the calls add up to at most `2000` ms.
"""
ROWS = [
    (lines[0], " ".join(line.strip() for line in lines[1:]))
    for lines in (row.split("\n") for row in re.split(r"\n(?! )", TABLE.strip()))
]


def said(text: str) -> list[str]:
    project = read_project(f"{DECLARED}{text}\n", None, "g.tcg")
    assert project is not None and project.whole
    return [sentence(one.statement, project.words.meanings) for _, one in project.words.stated]


@pytest.mark.parametrize(("text", "words"), ROWS)
def test_a_statement_in_words(text: str, words: str) -> None:
    assert said(text) == [words]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_statements_of_shipped_policies_have_a_sentence_with_their_names(path: object) -> None:
    project = read_project(path.read_text("utf-8"), path, "g.tcg")  # type: ignore[attr-defined]
    assert project is not None
    for tree, one in project.words.stated:
        words = sentence(one.statement, project.words.meanings)
        assert words.endswith(".") and words[0].isupper() and "``" not in words
        for found in project.occurrences:
            inside = one.region.start <= found.region.start < one.region.end
            if inside and found.region.source == 0 and tree.kind != "expect_always":
                name = found.key[0] if found.kind == "local" else found.key[-1]
                assert name in words, (name, words)


def test_every_random_statement_has_a_sentence() -> None:
    rng = random.Random(9)
    for _ in range(2000):
        assert sentence(statement(rng, rng.randint(1, 5)), lambda node: ()).endswith(".")

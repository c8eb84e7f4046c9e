"""Fixes of lints never change a decision, on random policies and sessions."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st

from tcc_certs.policy.course import Course
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, UNKNOWN
from tcc_certs.policy.meaning import Policy
from tcc_compiler.lint.finding import fixed_text
from tcc_compiler.lint.linter import lint_compiled
from tcc_compiler.names.compile import Compiled, compile_source

HEAD = """grammar g version "1" # head

given customer: text

tool find(order: text) gives (status: open | sent, owner: text) # a look-up
tool approve(order: text, amount: number, mode: fast) gives (answer: yes | no, by: text)
tool refund(order: text, amount: number 0 .. 500, to: list of text, cc?: text)
"""
# Statements of which most have a lint; the last ones are no policy.
STATEMENTS = (
    "before refund require approve(same order)",
    "before refund require approve(same (order, amount), answer = yes)",
    "before refund require unused approve(same order, answer = yes)  # one",
    "before refund require last(approve(same order)).answer = yes",
    "before refund require find(same order, status = open)",
    "before refund require find",
    "before refund require approve(same order, answer = yes) since refund",
    "before approve require count(find(same order)) >= 2",
    'before refund { require every to(it ~ ".*a") require cc != "x" }',
    'forbid refund(cc ~ "a[a-z]")',
    "forbid approve",
    "before find require refund",
    "before find require no refund(same order)",
    "after find owe refund(same order) within 2 d",
    "limit count(refund) per order <= 1 in session",
    "limit sum(refund.amount) <= 600",
    "before approve(mode = fast) require amount <= 200 and amount >= 100",
    "before refund require amount <= 50 or approve(mode = fast)",
    "rule unused_one = find approve",
    "  rule unused_two = (find | approve)*  # later",
    "rule looked = find",
    "plan = (find | approve | refund){0,9}",
    "limit depth <= 40",
)

_orders = st.sampled_from(["a", "b"])
_amounts = st.sampled_from([0, 60, 120, 500])
_calls = st.one_of(
    st.tuples(
        st.just("find"),
        st.fixed_dictionaries({"order": _orders}),
        st.fixed_dictionaries({"status": st.sampled_from(["open", "sent"]), "owner": _orders}),
    ),
    st.tuples(
        st.just("approve"),
        st.fixed_dictionaries({"order": _orders, "amount": _amounts, "mode": st.just("fast")}),
        st.fixed_dictionaries({"answer": st.sampled_from(["yes", "no"]), "by": _orders}),
    ),
    st.tuples(
        st.just("refund"),
        st.fixed_dictionaries(
            {"order": _orders, "amount": _amounts, "to": st.lists(_orders, max_size=2)},
            optional={"cc": st.sampled_from(["ab", "x"])},
        ),
        st.just(None),
    ),
)
_sessions = st.lists(
    st.tuples(_calls, st.sampled_from([DONE, DONE, DONE, FAILED, ANSWERED, UNKNOWN])), max_size=9
)


def decisions(compiled: Compiled, session: list[Any]) -> list[Any]:
    """The statements that refuse each call of a session, and those that are unmet at its end."""
    assert compiled.core is not None, compiled.diagnostics
    course = Course(Policy(compiled.core), {"customer": "a"})
    found: list[Any] = []
    for at, ((tool, arguments, answer), outcome) in enumerate(session):
        found.append([one.statement for one in course.check(tool, arguments, 3_600_000 * at)])
        if not found[-1]:
            call = course.call(tool, arguments, 3_600_000 * at)
            course.record(call, outcome, answer)
    return [*found, course.unmet(3_600_000 * len(session))]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from(STATEMENTS), min_size=3, max_size=9, unique=True),
    st.lists(_sessions, min_size=1, max_size=3),
)
def test_a_fix_changes_no_decision_and_removes_no_statement(
    lines: list[str], sessions: list[Any]
) -> None:
    text = HEAD + "\n".join(lines) + "\n"
    before = compile_source(text)
    fixed = fixed_text(text, lint_compiled(before, None).findings)
    after = compile_source(fixed)
    assert before.core is not None and after.core is not None
    assert after.core.statements == before.core.statements
    for session in sessions:
        assert decisions(after, session) == decisions(before, session)
    assert 'mode: "fast"' in fixed
    assert "unused_one" not in fixed and "unused_two" not in fixed
    assert fixed.count("#") == text.count("#")
    assert fixed_text(fixed, lint_compiled(after, None).findings) == fixed

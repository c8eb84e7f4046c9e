"""Edits of grammars whose effect on sessions is known, and what the comparison says of them."""

# ruff: noqa: E501
from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import tcc
from tcc.traces import Trace, TraceCall
from tcc.traces.replaying import replay
from tcc_runtime.analysis.sessions import Shown

DESK = """grammar desk version "1"
given customer: text
tool find(order: text max 20) gives (owner: text, total: number 0 .. 1000, state: open | sent)
tool approve(order: text max 20, amount: integer 1 .. 500) gives (answer: yes | no)
tool refund(order: text max 20, amount: integer 1 .. 500, note?: text)
tool reply(message: text max 100, tone: warm | cold)
tool close
before refund require find(same order)
before refund require last(find(same order)).owner = session.customer
before refund(amount > 100) require unused approve(same (order, amount), answer = yes)
limit sum(refund.amount) per order <= 400 in session
limit count(refund) <= 5
limit count(reply within 1 h) <= 20 in session
before any require no close
before close require reply
forbid reply(message ~ ".*secret.*")
limit depth <= 30
"""
PLANS = """grammar plans version "1"
tool look
tool write(k: 1 | 2 | 3)
tool test gives (result: pass | fail)
tool ship
plan = look+ (write | test)* ship?
before ship require last(test).result = pass
before write require look
limit count(write) <= 3
limit depth <= 8
"""


def edit(text: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


EDITS: dict[str, tuple[str, tuple[tuple[str, str], ...], str]] = {
    "nothing": (DESK, (), "equal"),
    "a comment": (DESK, (("limit depth", "# a comment\nlimit depth"),), "equal"),
    "a sum that may be larger": (DESK, (("<= 400 in", "<= 401 in"),), "wider"),
    "a sum that may be less": (DESK, (("<= 400 in", "<= 399 in"),), "narrower"),
    "a count that may be larger": (DESK, (("count(refund) <= 5", "count(refund) <= 6"),), "wider"),
    "a count that may be less": (DESK, (("count(refund) <= 5", "count(refund) <= 4"),), "narrower"),
    "a larger depth": (DESK, (("depth <= 30", "depth <= 31"),), "wider"),
    "a smaller depth": (DESK, (("depth <= 30", "depth <= 29"),), "narrower"),
    "a longer window": (DESK, (("within 1 h", "within 2 h"),), "narrower"),
    "no window": (DESK, ((" within 1 h", ""),), "narrower"),
    "a limit on more calls": (DESK, (("count(refund) <= 5", "count(refund | close) <= 5"),), "narrower"),
    "a limit on some calls": (DESK, (("count(refund) <= 5", "count(refund(amount > 9)) <= 5"),), "wider"),
    "a limit without its key": (DESK, ((" per order <= 400 in session", " <= 400"),), "narrower"),
    "a limit for each order": (
        DESK, (("count(refund) <= 5", "count(refund) per order <= 5 in session"),), "wider",
    ),
    "an approval from a larger amount on": (DESK, (("amount > 100", "amount > 120"),), "wider"),
    "an approval that says no": (DESK, ((", answer = yes)", ")"),), "wider"),
    "an approval for ever": (DESK, (("require unused approve", "require approve"),), "wider"),
    "a look-up of any order": (
        DESK, (("before refund require find(same order)", "before refund require find"),), "equal",
    ),
    "no look-up that another statement asks for": (
        DESK, (("before refund require find(same order)\n", ""),), "equal",
    ),
    "no owner": (DESK, (("before refund require last(find(same order)).owner = session.customer\n", ""),), "wider"),
    "an owner by any look-up": (
        DESK,
        (("last(find(same order)).owner = session.customer", "find(same order, owner = session.customer)"),),
        "wider",
    ),
    "a state too": (
        DESK, (("limit depth", "before refund require find(same order, state = sent)\nlimit depth"),), "narrower",
    ),
    "a statement that all others imply": (
        DESK, (("limit depth", "limit sum(refund.amount) per order <= 500 in session\nlimit depth"),), "equal",
    ),
    "a statement about any call": (DESK, (("before any require no close\n", ""),), "wider"),
    "a filter that forbids more": (
        DESK, (("limit depth", 'forbid reply(message ~ ".*password.*")\nlimit depth'),), "narrower",
    ),
    "a filter that forbids less": (
        DESK, (('message ~ ".*secret.*"', 'message ~ ".*secret.*", tone = warm'),), "wider",
    ),
    "a statement in other words": (
        DESK, (("forbid reply(message", "before reply require not (message"),), "equal",
    ),
    "another word for a set": (
        DESK,
        (("before close require reply", "let answered = reply\nbefore close require answered"),),
        "equal",
    ),
    "one statement more and another less": (
        DESK, (("before close require reply", "before reply require find"),), "incomparable",
    ),
    "a larger type": (DESK, (("refund(order: text max 20, amount: integer 1 .. 500",
                              "refund(order: text max 20, amount: integer 1 .. 600"),), "equal"),
    "a smaller type": (DESK, (("refund(order: text max 20, amount: integer 1 .. 500",
                               "refund(order: text max 20, amount: integer 1 .. 300"),), "narrower"),
    "a longer text": (DESK, (("message: text max 100", "message: text max 101"),), "wider"),
    "one value more": (DESK, (("warm | cold", "warm | cold | dry"),), "wider"),
    "one value less": (DESK, (("warm | cold", "warm"),), "narrower"),
    "an optional field more": (DESK, (("note?: text", "note?: text, why?: text"),), "wider"),
    "an optional field less": (DESK, ((", note?: text", ""),), "narrower"),
    "a field that becomes required": (DESK, (("note?: text", "note: text"),), "narrower"),
    "a required field more": (DESK, (("note?: text", "note?: text, why: text"),), "incomparable"),
    "an answer that no statement reads": (DESK, (("total: number 0 .. 1000", "total: text"),), "equal"),
    "a tool more": (DESK, (("tool close", "tool wave\ntool close"),), "wider"),
    "a tool more that is forbidden": (
        DESK, (("tool close", "tool wave\ntool close"), ("limit depth", "forbid wave\nlimit depth")), "equal",
    ),
    "a tool less": (
        DESK, (("tool close\n", ""), ("before any require no close\nbefore close require reply\n", "")), "narrower",
    ),
    "a plan that may end earlier": (PLANS, (("ship?", "ship"),), "narrower"),
    "a plan with more": (PLANS, (("look+ (write | test)*", "look+ (write | test | look)*"),), "wider"),
    "another order in a plan": (PLANS, (("look+ (write | test)*", "(write | test)* look+"),), "incomparable"),
    "any plan": (PLANS, (("plan = look+ (write | test)* ship?\n", ""),), "wider"),
    "a value of a plan": (PLANS, (("plan = look+ (write | test)*", "plan = look+ (write(k = 1 | 2) | test)*"),), "narrower"),
    "a count in plans": (PLANS, (("count(write) <= 3", "count(write) <= 4"),), "wider"),
    "a statement that the plans imply": (PLANS, (("limit depth", "before ship require look\nlimit depth"),), "equal"),
    "an earlier test": (PLANS, (("last(test).result = pass", "test(result = pass)"),), "wider"),
}  # fmt: skip


@cache
def compiled(text: str) -> tcc.Artifact:
    return tcc.compile_text(text)


def refused(text: str, shown: Shown) -> int:
    """How many calls of a session `tcc replay` counts as refused."""
    session = shown.session
    calls = [
        TraceCall(
            tool=one.tool, arguments=one.arguments, outcome=one.outcome or "done",
            answer=one.answer, at_ms=one.at_ms,
        )
        for one in session.calls
    ]  # fmt: skip
    trace: Any = Trace(name="s", calls=tuple(calls), given=session.given)
    return replay(compiled(text), [trace]).refused


# A session for these takes more than a second to find.
SLOW = {
    "a limit on more calls",
    "a smaller type",
    "an approval for ever",
    "an approval from a larger amount on",
    "an approval that says no",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[pytest.mark.campaign] * (one in SLOW)) for one in EDITS],
)
@pytest.mark.sampled(12)
def test_the_effect_of_an_edit_is_known(name: str) -> None:
    old, changes, expected = EDITS[name]
    new = edit(old, *changes)
    found = tcc.diff(compiled(old), compiled(new), timeout=30).sessions
    assert found is not None
    assert found.verdict == expected, found
    for shown, by in ((found.added, (new, old)), (found.removed, (old, new))):
        if shown is not None and not shown.session.ends:
            assert [refused(one, shown) for one in by] == [0, 1]
    assert (found.added is not None) == (expected in ("wider", "incomparable"))
    assert (found.removed is not None) == (expected in ("narrower", "incomparable"))
    assert not found.open


@pytest.mark.parametrize(
    "name", ["a sum that may be larger", "no owner", "a tool more", "any plan"]
)
def test_an_edit_and_its_reverse_are_reverse(name: str) -> None:
    old, changes, _ = EDITS[name]
    found = tcc.diff(compiled(edit(old, *changes)), compiled(old)).sessions
    assert found is not None and found.verdict == "narrower" and found.removed is not None


ASK = 'before refund(amount > 100) ask "finance" within 2 h'
ASKING = f"""grammar desk version "1"
tool find(order: text)
tool refund(order: text, amount: integer 1 .. 500)
{ASK}
"""
LEAD = ASK.replace("finance", "lead")
ASKS: dict[str, tuple[str, str, str | None, str | None]] = {
    "nothing": (ASK, "equal", None, None),
    "no question": ("", "wider", ASK, None),
    "another role": (LEAD, "incomparable", ASK, LEAD),
    "a second role": (f"{ASK}\n{LEAD}", "narrower", None, LEAD),
    "from a larger amount on": (ASK.replace("100", "200"), "wider", ASK, None),
    "from a smaller amount on": (ASK.replace("100", "50"), "narrower", None, ASK.replace("100", "50")),
    "nobody is asked": ("forbid refund(amount > 100)", "narrower", None, "forbid refund(amount > 100)"),
    # Approvals of a replayed session are used as soon as they are given, so no session shows these.
    "a shorter approval": (ASK.replace("2 h", "1 h"), "narrower", None, None),
    "a longer approval": (ASK.replace("2 h", "30 d"), "wider", None, None),
    "the approval of seven days": (ASK.replace(" within 2 h", ""), "wider", None, None),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKS)
def test_a_call_without_the_question_of_the_other_side_is_shown(name: str) -> None:
    new, verdict, added, removed = ASKS[name]
    found = tcc.diff(compiled(ASKING), compiled(ASKING.replace(ASK, new)), timeout=30).sessions
    assert found is not None and found.verdict == verdict, found
    by = [None if one is None else one.refused_by for one in (found.added, found.removed)]
    assert by == [None if one is None else f"`{one}`" for one in (added, removed)]


def test_an_approval_of_thirty_days_is_not_one_of_seven_days() -> None:
    long, week = (compiled(ASKING.replace("2 h", term)) for term in ("30 d", "7 d"))
    question = ASK.replace(" within 2 h", "")
    assert tcc.prove(week, question).verdict == "proved"
    assert tcc.prove(long, question).verdict == "refuted"

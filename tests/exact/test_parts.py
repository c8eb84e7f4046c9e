"""Lists that a question is split into: the keys that a monitor of the right may be broken at."""

from __future__ import annotations

from itertools import product
from typing import TypeAlias

import pytest

import tcc
from tcc_certs.errors import Code, Rejected
from tcc_certs.proof import parts
from tcc_runtime.exact import certificate

Row: TypeAlias = tuple[tuple[int, ...], object, object]

HEAD = 'grammar g version "1"\n'
PLAN = "plan = (find | refund){0,3}\n"
OPEN = f"tool find(; u: text max 3)\ntool refund(; u: text max 3)\n{PLAN}"
BOTH = f"tool find(k: a | b; u: text max 3)\ntool refund(k: a | b; u: text max 3)\n{PLAN}"
LISTED = f"tool find(u: a | b)\ntool refund(u: a | b)\n{PLAN}"
ALONE = "tool find(; u: text max 3)\nplan = find{0,3}\n"
MORE = f"tool find(; u: text max 3, v: flag)\ntool refund(; u: text max 3, v?: flag)\n{PLAN}"
BEFORE = "require find before refund same u"
WITH = "forbid find with refund same u"
USES = "limit uses(find) per u <= 2"
ORDER = f"{OPEN}{BEFORE}\n"
ANY = ((), (), None)  # plans, types and sums
FIND, REFUND = (0, (("u", 0),)), (1, (("u", 0),))


def parts_of(text: str, asked: str, *, call: bool) -> list[Row]:
    """Of a statement, or of a grammar that the text may imply."""
    texts = [text, asked] if asked.endswith("\n") else [text]
    of = certificate.ProvedQuestion(
        kind="implies" if len(texts) == 2 else "statement",
        text=None if len(texts) == 2 else asked,
        artifacts=tuple(tcc.compile_text(HEAD + one) for one in texts),
    )
    found = of.system().parts(frozenset(), call=call)
    return [(one.tracked or (), one.key, one.call) for one in found]


@pytest.mark.parametrize(
    ("text", "asked", "keys", "calls"),
    [
        (OPEN, BEFORE, [((0,), (0,))], [REFUND]),
        (OPEN, WITH, [((0,), (0,))], [REFUND, FIND]),
        (OPEN, USES, [((0,), (0,))], [FIND]),
        (BOTH, "require find before refund same k, u", [((0,), (None, 0))], [REFUND]),
        # Values that the left lists are atoms of their own; the right compares texts.
        (LISTED, ORDER, [((0,), (0,)), ((1,), (1,))], [REFUND, (1, (("u", 1),))]),
        # The left has no call that could break it.
        (ALONE, ORDER, [], []),
        (ALONE, f"{OPEN}{WITH}\n", [((0,), (0,))], [FIND]),
        (MORE, BEFORE, [((0,), (0,))], [REFUND]),
    ],
)
def test_each_key_that_a_call_may_have_is_asked_about(
    text: str, asked: str, keys: list[tuple[object, object]], calls: list[object]
) -> None:
    assert parts_of(text, asked, call=False) == [ANY, *[(*key, None) for key in keys]]
    found = parts_of(text, asked, call=True)
    assert [one[2] for one in found] == [None, *calls]
    assert {one[:2] for one in found} == {ANY[:2], *keys}


def test_of_a_call_all_values_that_are_compared_are_tracked() -> None:
    text = f"{MORE}forbid find before refund same v\n"
    assert parts_of(text, BEFORE, call=False) == [ANY, ((1,), (1,), None)]  # flags come first
    found = parts_of(text, BEFORE, call=True)
    calls = [dict(call[1]) for _, _, call in found[1:] if isinstance(call, tuple)]
    assert all({*one} == {"u", "v"} and one["u"] % 2 == 1 for one in calls)
    assert [one["v"] for one in calls] == [None, 0]  # left out, or a flag


def test_a_type_has_no_more_values_than_it_has() -> None:
    text = f"tool a(; x: flag, y: flag, z: flag)\ntool b(; x: flag, y: flag, z: flag)\n{PLAN}"
    text = text.replace("find | refund", "a | b")
    found = parts_of(text, "require a before b same x, y, z", call=False)
    alike = {tuple(one.index(value) for value in one) for one in product((0, 1), repeat=3)}
    assert len(found) == 1 + len(alike) == 5


def test_parts_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = f"{OPEN}{BEFORE}\n{WITH}\n"
    assert len(parts_of(OPEN, asked, call=False)) == 3
    monkeypatch.setattr(parts, "MAX_PARTS", 3)
    assert len(parts_of(OPEN, asked, call=False)) == 3
    monkeypatch.setattr(parts, "MAX_PARTS", 2)
    with pytest.raises(Rejected) as refused:
        parts_of(OPEN, asked, call=False)
    assert (refused.value.code, refused.value.path) == (Code.LIMIT, "parts")


@pytest.mark.parametrize("count", [0, 1, 2])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_facts_are_what_both_sides_remember(before: int, count: int) -> None:
    others = ((0, 1, (4,), 1), (0, 1, (6,), 1), (1, 1, (5,), 1))
    facts = tuple(sorted([*others, *[(0, 1, (5,), before)] * (before > 0)]))
    due = tuple(sorted([*others, *[(0, 1, (5,), count)] * (count > 0)]))
    assert parts.marked(facts, [((1, (5,)), count)], []) == due
    both = tuple(sorted([*due, (1, 0, (5,), 7)]))
    assert parts.marked(facts, [((1, (5,)), count)], [((0, (5,)), 7)]) == both

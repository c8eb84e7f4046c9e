"""Indexes of sources whose filter compares an element with the call being decided."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random
from typing import Any

import pytest

from tcc_certs.policy import meaning
from tcc_certs.policy.history import ANSWERED, DONE, FAILED, LOST
from tcc_certs.values.places import NONE, UNKNOWN
from tcc_runtime.gate.decide import conditions, relations
from tests.gate.decide.desk import Desk
from tests.gate.decide.sessions import Differential
from tests.gate.decide.test_agreement import sides
from tests.gate.decide.test_indexes import A, B, Pair

C = ("s", "c")
FOUND = {"owner": A, "score": ("n", 1)}
LISTS = """
tool find(order: text) gives (items: list max 3 of (sku: text, price?: number), tags: list of text)
tool refund(order: text, tags: list of text)
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often an index is asked, by the kind of its buckets, and how often it cannot know."""
    counts: Counter[str] = Counter()
    view_of, asked = conditions.Compiler._view, relations.View.__init__

    def counted(self: Any, source: Any) -> Any:
        find = view_of(self, source)

        def view(frame: Any) -> Any:
            view = find(frame)
            counts["unknown"] += view is None
            return view

        return None if find is None else view

    def made(self: Any, bucket: Any, ask: Any, odd: Any, begin: int) -> None:
        counts[type(bucket).__name__] += 1
        counts["odd"] += bool(odd)
        counts["cut"] += begin > 0
        asked(self, bucket, ask, odd, begin)

    monkeypatch.setattr(conditions.Compiler, "_view", counted)
    monkeypatch.setattr(relations.View, "__init__", made)
    return counts


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of two positions, and bounds that most sessions reach."""
    monkeypatch.setattr(relations, "_FEW", 1)
    monkeypatch.setattr(relations, "_SHIFTS", (1, 2, 3, 4))
    monkeypatch.setattr(relations, "_FAN", 2)
    monkeypatch.setattr(meaning, "BOUNDS", (6, 3, 3))
    monkeypatch.setattr(meaning, "MAX_COMBINATIONS", 4)


class _Related(Differential):
    """Policies whose sources have a relation, or look into lists."""

    def _core(self) -> Any:
        return Desk(self.rng, related=True).core(self.rng.randint(4, 10))


def test_random_sessions_ask_the_indexes_often(counts: Counter[str]) -> None:
    _Related(4).run(2000)
    assert min(counts["Ordered"], counts["Listed"], counts["odd"]) > 500
    assert counts["unknown"] < counts["Ordered"]


@pytest.mark.usefixtures("tiny")
def test_decisions_agree_with_small_blocks_and_bounds(counts: Counter[str]) -> None:
    decisions = _Related(5, (20, 120)).run(2500)
    assert decisions["R207"] > 50
    assert min(counts["Ordered"], counts["Listed"], counts["odd"]) > 500
    assert counts["cut"] > 50


@pytest.mark.parametrize(
    ("order", "holds"),
    [("<", "TFF"), ("<=", "TTF"), (">", "FFT"), (">=", "FTT")],
)
def test_an_order_holds_at_its_end_as_its_operator_says(order: str, holds: str) -> None:
    pair = Pair(f"before refund require find(n {order} this.n)")
    pair.done("find", FOUND, n=("n", 2))
    found = "".join(["F" if pair.codes("refund", n=("n", n)) else "T" for n in (3, 2, 1)])
    assert found == holds


def test_a_range_contains_both_of_its_ends() -> None:
    pair = Pair("before refund require count(find(score in this.n .. this.n + 1)) = 2")
    for score in (1, 2, 3, 4):
        pair.done("find", {**FOUND, "score": ("n", score)})
    assert [pair.codes("refund", n=("n", n)) for n in (0, 1, 2, 3, 4)] == [
        ["R202"], [], [], [], ["R202"]
    ]  # fmt: skip


def test_an_unknown_value_is_unsure_until_it_is_known() -> None:
    pair = Pair(
        "before refund require find(score >= this.n)", "before refund require no find(score > n)",
        "before refund require find(owner = this.order)",
        "before refund require no find(owner = this.order)",
    )  # fmt: skip
    number = pair.make("find")
    assert pair.codes("refund") == ["R202"] * 4
    pair.record(number, LOST)
    assert pair.codes("refund") == ["R202"] * 4
    pair.record(number, DONE, **FOUND)
    assert pair.codes("refund") == ["R202"]
    assert pair.codes("refund", n=("n", 2)) == ["R202"] * 2
    assert pair.codes("refund", order=B) == ["R202"]
    other = pair.done("find", {**FOUND, "score": ("z", None), "owner": UNKNOWN})
    assert pair.codes("refund", order=B) == ["R202"] * 3
    pair.record(other, FAILED)
    assert pair.codes("refund", order=B) == ["R202"]


def test_a_call_whose_error_was_read_counts_only_under_no() -> None:
    pair = Pair("before refund require find(n >= this.n)", "before refund require no find(n >= 1)")
    pair.record(pair.make("find"), ANSWERED)
    assert pair.codes("refund") == ["R202"] * 2
    pair = Pair("before refund require no find(n >= this.n)")
    pair.record(pair.make("find"), ANSWERED)
    assert pair.codes("refund") == ["R202"]
    assert pair.codes("refund", n=("n", 2)) == []


def test_an_absent_term_of_the_decided_call_is_unsure_of_every_value() -> None:
    pair = Pair(
        "before refund require no find(owner = this.note)",
        "before refund require count(find(owner = this.note)) < 1",
    )
    assert pair.codes("refund") == []
    pair.done("find", FOUND)
    assert pair.codes("refund") == ["R202"] * 2
    assert pair.codes("refund", note=B) == []


def test_the_last_element_in_an_order_is_the_one_that_fits() -> None:
    pair = Pair("before refund require last(find(n >= this.n)).owner = order")
    for at in range(200):
        owner = A if at % 7 else B
        pair.done("find", {**FOUND, "owner": owner}, n=("n", at % 5))
    assert [pair.codes("refund", n=("n", n)) for n in range(6)] == [[]] * 5 + [["R202"]]
    assert [pair.codes("refund", n=("n", n), order=B) for n in range(5)] == [["R202"]] * 5
    pair.make("find", n=("n", 3))
    assert [pair.codes("refund", n=("n", n)) for n in (3, 4)] == [["R202"], []]


def test_windows_and_marks_limit_an_order() -> None:
    pair = Pair(
        "before refund require find(n >= this.n) within 100 ms",
        "before refund require count(find(n >= this.n) within 100 ms) = 2",
        "before refund require find(n >= this.n) since login",
    )
    draw = Random(1)
    for at in range(300):
        tool = "login" if at % 90 == 60 else "find"
        values = {} if tool == "login" else {"n": ("n", draw.randrange(9))}
        pair.record(
            pair.make(tool, at_ms=at * 3, **values), DONE, **(FOUND if values else {"user": A})
        )
        pair.codes("refund", at * 3, n=("n", draw.randrange(10)))
    assert [len(pair.codes("refund", now, n=("n", 8))) for now in (900, 1100)] == [1, 2]


def test_candidates_beyond_the_bound_are_maybe_in_a_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meaning, "BOUNDS", (9, 4, 4))
    session = sides(
        f"{LISTS}before refund require find(this.order in tags)\n"
        "before refund require no find(this.order in tags)\n"
        "before refund require count(find(this.order in tags)) < 3\n"
        "before refund require last(find(this.order in tags)).order = order"
    )
    refund = {"order": A, "tags": ("l", ())}
    for at, tag in enumerate((A, B, B, B, B)):
        assert session.decide("refund", refund, 0) == [
            [(0, "R202"), (3, "R202")],
            [(1, "R202")], [(1, "R202")], [(1, "R202")], [(1, "R202")],
        ][at]  # fmt: skip
        session.add("find", {"order": A}, 0)
        session.record(at, DONE, {"items": ("l", ()), "tags": ("l", (tag,))})
    assert session.decide("refund", refund, 0) == [(0, "R207"), (1, "R207"), (3, "R207")]
    session.record(0, FAILED, {})
    assert session.decide("refund", refund, 0) == [(0, "R207"), (3, "R207")]


def test_lists_are_compared_by_their_elements() -> None:
    session = sides(
        f"{LISTS}before refund require last(find).tags(it = this.order)\n"
        "before refund require every tags(it in last(find).tags)\n"
        "before refund require order in tags"
    )
    session.add("find", {"order": A}, 0)
    session.record(0, DONE, {"items": ("l", ()), "tags": ("l", (A, B))})
    refused = [
        [number for number, _ in session.decide("refund", {"order": A, "tags": ("l", tags)}, 0)]
        for tags in ((), (A,), (B, A), (B, B), (A, C))
    ]
    assert refused == [[2], [], [], [2], [1]]
    session.add("find", {"order": A}, 0)
    assert len(session.decide("refund", {"order": A, "tags": ("l", (A,))}, 0)) == 2


def test_absent_members_of_records_are_unsure_or_no_members() -> None:
    session = sides(
        f"{LISTS}before refund require no find(items(sku = this.order, price > 0))\n"
        "before refund require no find(this.order in items.sku)\n"
        "before refund require no find(items(sku = this.order))"
    )
    session.add("find", {"order": A}, 0)
    item = ("r", (("sku", B), ("price", NONE)))
    session.record(0, DONE, {"items": ("l", (item,)), "tags": ("l", ())})
    refunds = [{"order": order, "tags": ("l", ())} for order in (A, B)]
    assert session.decide("refund", refunds[0], 0) == []
    assert session.decide("refund", refunds[1], 0) == [(0, "R202"), (1, "R202"), (2, "R202")]


def test_ranks_agree_with_a_scan() -> None:
    draw = Random(3)
    ranks, kept = relations.Ranks(), []
    for at in range(3000):
        place = at if draw.random() < 0.9 else draw.randrange(at + 1)
        entry = place, draw.randrange(50)
        kept.append(entry)
        ranks.add(*entry)
        if draw.random() < 0.2:
            ranks.remove(*kept.pop(draw.randrange(len(kept))))
        if at % 10:
            continue
        low, first = draw.randrange(60), draw.randrange(at + 2)
        for operator in ("<", "<=", ">", ">=", "between"):
            fit = relations.fitting(operator, (low, low + 3))
            fitting = sorted([at for at, value in kept if fit((value,))], reverse=True)
            assert ranks.count(fit, first) == sum([one >= first for one in fitting])
            latest = list(ranks.latest(fit))
            assert latest == fitting and all(one >= other for one, other in pairwise(latest))

"""Statements of core 1.2: the forms that a reader takes, bounds of what is looked at, undoing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.core.policies import Fields, read_policy
from tcc_certs.errors import Code, Rejected
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.values.declared import NumberType, TextType
from tcc_certs.values.fields import Field, ListType
from tcc_certs.values.places import NONE, UNKNOWN

_K = Field(name="k", steps=("k",), type=TextType())
_N = Field(name="n", steps=("n",), type=NumberType(whole=False))
_L = Field(name="l", steps=("l",), type=ListType(of=TextType()))
_V = Field(name="v", steps=("v",), values=("a", "b"))
TOOL = {field.name: field for field in (_K, _N, _L, _V)}
FIELDS = Fields(tools=(TOOL, TOOL), session=frozenset(["user"]))
A, B = ["calls", 0, []], ["calls", 1, []]
MINE = [["k", ["own", "k"]]]


def memory(*statements: Any) -> Memory:
    read = [read_policy(one, "monitors[0]", Code.CORE_SCHEMA, FIELDS) for one in statements]
    return Memory(Policies(read, FIELDS))


def call(at: int, tool: int, k: str = "x", n: int = 0, **more: Any) -> Event:
    states = {"k": ("s", k), "n": ("n", n), "l": ("l", ()), "v": ("s", "a")}
    return Event(at=at, tool=tool, states={**states, **more.pop("states", {})}, told=at, **more)


def need(*alternatives: Any, order: str = "before") -> Any:
    return {"kind": "need", "order": order, "any": list(alternatives), "of": B}


def ban(*alternatives: Any, **more: Any) -> Any:
    return {"kind": "ban", "any": list(alternatives), "of": B, **more}


GREATER = [["<", ["own", "n"], ["seen", "n"]], ["=", ["own", "v"], ["own", "v"]]]
ALONE = GREATER[:1]


def test_of_a_key_the_latest_64_help_and_no_older_one() -> None:
    held = memory(need({"calls": A, "same": MINE, "where": GREATER}))
    held.add(call(1, 0, n=5, done=True))
    for at in range(2, 65):
        held.add(call(at, 0, done=True))
    assert held.refuses(call(65, 1, n=1)) is None
    undo = held.add(call(65, 0, done=True))
    assert held.refuses(call(66, 1, n=1)) == (0, True)
    held.undo(undo)
    assert held.refuses(call(66, 1, n=1)) is None


def test_of_a_key_more_than_64_that_may_stand_against_a_call_refuse_it() -> None:
    held = memory(ban({"calls": A, "same": MINE, "where": GREATER}))
    for at in range(1, 65):
        held.add(call(at, 0))
    assert held.refuses(call(65, 1, n=1)) is None
    held.add(call(65, 0))
    assert held.refuses(call(66, 1, n=1)) == (0, False)
    assert held.refuses(call(66, 1, k="y", n=1)) is None


def test_keys_alone_and_windows_are_exact_whatever_came_before() -> None:
    equal = [["=", ["seen", "k"], ["own", "k"]]]
    held = memory(ban({"calls": A, "where": equal}), ban({"calls": A, "same": MINE, "within": 10}))
    for at in range(1, 1000):
        held.add(call(at, 0, k="other", stamp=at))
    assert held.refuses(call(1000, 1, k="x", stamp=1000)) is None
    assert held.refuses(call(1000, 1, k="other", stamp=1000)) == (0, True)
    late = memory(ban({"calls": A, "same": MINE, "within": 10}))
    for at in range(1, 1000):
        late.add(call(at, 0, stamp=at))
    assert late.refuses(call(1000, 1, stamp=1009)) == (0, True)
    assert late.refuses(call(1000, 1, stamp=1010)) is None


def test_keys_alone_need_no_call_to_be_among_the_latest() -> None:
    held = memory(need({"calls": A, "same": MINE}))
    held.add(call(1, 0, done=True))
    for at in range(2, 200):
        held.add(call(at, 0))  # nobody knows whether they were done
    assert held.refuses(call(200, 1)) is None
    assert held.refuses(call(200, 1, k="y")) == (0, True)


def test_a_call_in_both_sets_has_no_key_that_may_be_the_other() -> None:
    other = [["k", ["own", "v"]]]
    held = memory({"kind": "apart", "one": ["or", [A, B]], "other": B, "same": other})
    assert held.refuses(call(1, 1, k="a")) == (0, True)
    assert held.refuses(call(1, 1, k="b")) is None
    assert held.refuses(call(1, 1, k="b", states={"v": UNKNOWN})) == (0, True)
    assert held.refuses(call(1, 0, k="a")) is None


@pytest.mark.parametrize("more", [{}, {"within": 10}])
def test_an_amount_of_a_key_that_is_not_known_counts_for_every_key(more: Any) -> None:
    per = [["own", "k"]]
    uses = {"kind": "count", "of": A, "value": 1, "per": per, **more}
    total = {"kind": "total", "tool": 0, "param": "n", "value": "1", "per": per, **more}
    for statement in (uses, total):
        held = memory(statement)
        undo = held.add(call(1, 0, n=1, states={"k": UNKNOWN}))
        assert held.refuses(call(2, 0, n=1)) == (0, True)
        held.undo(undo)
        held.add(call(1, 0, n=1))
        assert held.refuses(call(2, 0, k="y", n=1)) is None
        assert held.refuses(call(2, 0, n=1, states={"k": UNKNOWN})) == (0, True)
        assert held.refuses(call(2, 0, n=1, states={"k": ("*", frozenset([("s", "x")]))})) is None


def test_a_limit_across_sessions_refuses_a_call_for_whom_nobody_knows() -> None:
    held = memory({"kind": "count", "of": A, "value": 9, "per": [["own", "k"]], "across": True})
    assert held.refuses(call(1, 0)) is None
    for state in (UNKNOWN, NONE):
        assert held.refuses(call(1, 0, states={"k": state})) == (0, True)


_STATES: list[Any] = [("s", "x"), ("s", "y"), UNKNOWN, NONE, ("*", frozenset([("s", "x")]))]


@pytest.mark.parametrize("seed", range(150))
def test_keys_alone_are_decided_as_by_a_look_at_each_call(seed: int) -> None:
    """A relation that always holds makes the interpreter keep the calls, and look at them."""
    draw = random.Random(seed)
    same = draw.choice([MINE, [*MINE, ["v", ["own", "v"]]], [["k", ["own", "v"]]]])
    always = [["=", ["n", "1"], ["n", "1"]]]
    first = draw.choice(
        [A, ["any"], ["calls", 0, [["v", ["a"]]]], ["but", ["any"], A], ["or", [A, B]]]
    )
    second = draw.choice([B, ["calls", 1, [["v", ["b"]]]], ["or", [A, B]]])

    def statements(**more: Any) -> list[Any]:
        one = {"calls": first, "same": same, **more}
        return [
            {"kind": "need", "order": "before", "any": [one], "of": second},
            {"kind": "need", "order": "each", "any": [one], "of": second},
            {"kind": "ban", "any": [one], "of": second},
        ]

    pairs = [
        (memory(keyed), memory(kept))
        for keyed, kept in zip(statements(), statements(where=always), strict=True)
    ]
    assert all(keyed.pools == [] and len(kept.pools) == 1 for keyed, kept in pairs)
    undone: list[list[Any]] = []
    for at in range(1, 40):
        states = {"k": draw.choice(_STATES), "v": draw.choice([("s", "a"), ("s", "b"), UNKNOWN])}
        made = call(at, draw.randrange(2), states=states)
        for keyed, kept in pairs:
            assert keyed.refuses(made) == kept.refuses(made), (first, second, same)
        if draw.random() < 0.2 and undone:
            for (keyed, kept), (one, other) in zip(pairs, undone.pop(), strict=True):
                keyed.undo(one)
                kept.undo(other)
            continue
        made.done, made.answered = draw.choice([(True, False), (False, False), (False, True)])
        undone.append([(keyed.add(made), kept.add(made)) for keyed, kept in pairs])


def test_with_more_than_64_candidates_older_ones_are_used_or_looked_at_no_more() -> None:
    held = memory(need({"calls": A, "same": MINE, "where": GREATER}, order="each"))
    for at in range(1, 67):
        held.add(call(at, 0, n=5, done=True))
    held.add(call(67, 0, k="y", n=5, done=True))
    held.add(call(68, 1, n=9, done=True))  # more than 64 are there, and none may have served it
    assert held.refuses(call(69, 1, n=1)) is None
    held.add(call(69, 1, n=1))
    assert held.refuses(call(70, 1, n=1)) == (0, True)
    assert held.refuses(call(70, 1, k="y", n=1)) is None


def test_of_more_than_64_candidates_one_of_another_key_may_be_used() -> None:
    """The key of the first is not known: what is looked at for one key, and what for another."""
    held = memory(need({"calls": A, "same": MINE, "where": GREATER}, order="each"))
    held.add(call(1, 0, n=5, done=True, states={"k": NONE}))
    for at in range(2, 67):
        held.add(call(at, 0, n=5, done=True))
    undo = held.add(call(67, 1, n=9))
    pool = held.pools[0]
    assert [at for at in range(1, 67) if pool.is_used(call(at, 0))] == [1]
    held.undo(undo)
    assert not pool.is_used(call(1, 0))
    undo = held.add(call(67, 1, n=9, states={"k": NONE}))
    assert all(pool.is_used(call(at, 0)) for at in range(1, 67))
    held.undo(undo)
    assert held.refuses(call(67, 1, n=1)) is None


def test_what_work_leaves_undone_counts_as_used() -> None:
    """A list that is long enough ends the look before 64 calls; a shorter one goes further back."""
    some = ["some", [[["own", "l"], "x"]], [["some", [[["seen", "l"], "y"]],
            [["=", ["as", "x"], ["as", "y"]]]]]]  # fmt: skip
    held = memory(need({"calls": A, "same": MINE, "where": [some]}, order="each"))

    def listed(count: int, of: str) -> dict[str, Any]:
        return {"l": ("l", tuple([("s", f"{of}{i}") for i in range(count)]))}

    held.add(call(1, 0, done=True, states=listed(1, "z")))
    for at in range(2, 20):
        held.add(call(at, 0, done=True, states=listed(1000, "a")))
    assert held.refuses(call(20, 1, states=listed(1, "z"))) is None
    undo = held.add(call(20, 1, states=listed(1000, "z")))
    assert held.refuses(call(21, 1, states=listed(1, "z"))) == (0, True)
    held.undo(undo)
    assert held.refuses(call(20, 1, states=listed(1, "z"))) is None


@pytest.mark.parametrize("seed", range(60))
def test_each_is_decided_by_what_no_later_call_may_have_used(seed: int) -> None:
    """The definition, of the latest 64 of a key; where keys are not known no more is allowed."""
    draw = random.Random(f"each {seed}")
    forms: list[dict[str, Any]] = [{"where": [["<", ["own", "n"], ["seen", "n"]]]}, {}]
    form, odd = draw.choice(forms), draw.choice([0, 0, 0.1])
    # Two alternatives, one of no calls, so that such of keys alone are kept as well.
    none = {"calls": ["but", A, A], "same": MINE}
    held = memory(need({"calls": A, "same": MINE, **form}, none, order="each"))
    calls: list[Event] = []
    undone: list[Any] = []

    def may(seen: Event, own: Event) -> bool:
        mine, theirs = seen.states["k"], own.states["k"]
        equal = mine == theirs or NONE in (mine, theirs)
        return equal and (not form or own.states["n"][1] < seen.states["n"][1])

    def helps(own: Event) -> bool:
        before = [one for one in calls if one.tool == 0]
        mine = [one for one in before if one.states["k"] == own.states["k"] != NONE]
        for one in mine[-64:]:
            later = [other for other in calls if other.at > one.at and other.tool == 1]
            if one.done and may(one, own) and not any(may(one, other) for other in later):
                return True
        return False

    for at in range(1, 260):
        own = call(at, int(draw.random() < 0.1), k=draw.choice("xxxxxy"), n=draw.randrange(4))
        own.done = draw.random() < 0.9
        if draw.random() < odd:
            own.states = {**own.states, "k": NONE}
        if own.tool == 1:
            found = held.refuses(own) is None
            assert found == helps(own) if not odd else found <= helps(own)
        if calls and draw.random() < 0.05:
            calls.pop()
            held.undo(undone.pop())
        calls.append(own)
        undone.append(held.add(own))


def test_an_error_that_was_read_counts_for_a_forbid_alone() -> None:
    held = memory(need({"calls": A}), ban({"calls": A}))
    undo = held.add(call(1, 0, answered=True))
    assert held.refuses(call(2, 1)) == (0, True)
    held.undo(undo)
    both = memory(ban({"calls": A}), ban({"calls": ["any"]}, unless=[{"calls": A}]))
    both.add(call(1, 0, answered=True))
    assert both.refuses(call(2, 1)) == (0, True)


def test_what_is_owed_is_paid_by_equal_keys_that_are_known() -> None:
    held = memory({"kind": "owe", "first": A, "of": B, "same": MINE})
    held.add(call(1, 1))
    held.add(call(2, 0, k="y", done=True))
    held.add(call(3, 0))
    assert held.owed
    paid = held.add(call(4, 0, done=True))
    assert not held.owed
    held.undo(paid)
    assert held.owed
    held.add(call(4, 0, done=True))
    held.add(call(5, 1, states={"k": UNKNOWN}))
    held.add(call(6, 0, done=True))
    assert held.owed


def test_kinds_that_have_no_order_are_sure_of_nothing() -> None:
    mixed = [["<", ["own", "k"], ["own", "n"]]]
    assert memory(need({"where": mixed})).refuses(call(1, 1)) == (0, True)
    assert memory(ban({"where": mixed})).refuses(call(1, 1)) == (0, True)


BAD: list[tuple[Any, Code]] = [
    (need({"calls": ["calls", 2, []]}), Code.CORE_SCHEMA),
    (need({"calls": ["calls", 0, [["v", ["c"]]]]}), Code.CORE_SCHEMA),
    (need({"calls": ["calls", 0, [["k", ["a"]]]]}), Code.CORE_SCHEMA),
    (need({"calls": ["calls", 0, [["v", ["b", "a"]]]]}), Code.CORE_SCHEMA),
    (need({"calls": A, "n": 1}), Code.CORE_SCHEMA),
    (need({"calls": A, "n": 2, "last": True}), Code.CORE_SCHEMA),
    (need({"calls": A, "last": False}), Code.CORE_SCHEMA),
    (need({"calls": A, "within": 0}), Code.CORE_SCHEMA),
    (need({"calls": A, "same": [["z", ["own", "k"]]]}), Code.CORE_SCHEMA),
    (need({"calls": A, "same": [["k", ["seen", "k"]]]}), Code.CORE_SCHEMA),
    (need({"calls": A, "same": [*MINE, *MINE]}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["seen", "k"], ["own", "k"]]]}), Code.CORE_SCHEMA),
    (need({"where": GREATER, "last": True}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["it"], ["own", "k"]]]}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["session", "role"], ["own", "k"]]]}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["own", "l", "f"], ["own", "l"]]]}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["n", "05"], ["own", "n"]]]}), Code.CORE_SCHEMA),
    (need({"where": [["=", ["ms", True], ["own", "n"]]]}), Code.CORE_SCHEMA),
    (need({"where": [["~", ["own", "k"], "("]]}), Code.CORE_SCHEMA),
    (need({"where": [["all", [[["own", "l"], "a"], [["own", "l"], "a"]], GREATER]]}),
     Code.CORE_SCHEMA),
    (need({"where": [["=", ["look", "x", [], "f"], ["own", "k"]]]}), Code.CORE_SCHEMA),
    (need(), Code.CORE_SCHEMA),
    (need(*[{"calls": A}] * 65), Code.LIMIT),
    ({"kind": "total", "tool": 0, "param": "z", "value": "1"}, Code.CORE_SCHEMA),
    ({"kind": "total", "tool": 0, "param": "n", "value": "-1"}, Code.CORE_SCHEMA),
    ({"kind": "count", "of": A, "value": -1}, Code.CORE_SCHEMA),
    ({"kind": "else", "of": A}, Code.CORE_SCHEMA),
]  # fmt: skip


@pytest.mark.parametrize(("statement", "code"), BAD)
def test_forms_that_no_reader_takes(statement: Any, code: Code) -> None:
    with pytest.raises(Rejected) as refusal:
        memory(statement)
    assert refusal.value.code is code
    assert refusal.value.path.startswith("monitors[0]")


def test_nesting_and_size_are_bounded() -> None:
    deep: Any = ["own", "n"]
    for _ in range(100):
        deep = ["max", deep, deep]
    wide = ["sum", [["1", ["own", "n"]]] * 300]
    for term in (deep, wide):
        with pytest.raises(Rejected) as refusal:
            memory(need({"where": [["=", term, ["own", "n"]]]}))
        assert refusal.value.code is Code.LIMIT


def test_an_element_named_it_is_another_than_one_without_a_name() -> None:
    each = ["every", ["own", "l"], ["=", ["it"], ["as", "it"]]]
    counted = ["=", ["count", ["own", "l"], ["=", ["it"], ["as", "it"]]], ["n", "2"]]
    lists = [[["list", [["s", "a"]]], "it"]]
    for inner in (each, counted):
        held = memory(need({"where": [["some", lists, [inner]]]}))
        both = {"states": {"l": ("l", (("s", "a"), ("s", "a")))}}
        other = {"states": {"l": ("l", (("s", "a"), ("s", "b")))}}
        assert held.refuses(call(1, 1, **both)) is None
        assert held.refuses(call(1, 1, **other)) == (0, True)


def test_two_values_that_are_not_listed_are_not_surely_one() -> None:
    listed = frozenset([("s", "x")])
    rest: dict[str, Any] = {"k": ("*", listed), "v": ("*", listed)}
    for op, other, refused in (
        ("=", ["seen", "v"], (0, True)),
        ("!=", ["seen", "v"], (0, True)),
        ("!=", ["s", "y"], (0, True)),
        ("=", ["s", "x"], (0, True)),
        ("!=", ["s", "x"], None),  # it is surely none of those that its field lists
    ):
        held = memory(need({"calls": A, "where": [[op, ["seen", "k"], other]]}))
        held.add(call(1, 0, done=True, states=rest))
        assert held.refuses(call(2, 1)) == refused


def test_a_text_that_takes_too_long_to_match_is_unsure() -> None:
    held = memory(need({"where": [["~", ["own", "k"], "a*b*"]]}))
    assert held.refuses(call(1, 1, k="a" * 1000)) is None
    assert held.refuses(call(1, 1, k="a" * (1 << 20))) == (0, True)


def test_one_relation_that_separates_the_calls_looks_at_all_of_them() -> None:
    asked: list[Any] = [*ALONE, ["in", ["own", "k"], ["seen", "l"]]]
    for relation in asked:
        helps, hurts = ({"calls": A, "where": [relation]} for _ in range(2))
        held = memory(need(helps), ban(hurts))
        first = held.add(call(1, 0, n=5, done=True, states={"l": ("l", (("s", "x"),))}))
        for at in range(2, 300):
            held.add(call(at, 0, done=True))
        assert held.refuses(call(300, 1, n=1)) == (1, True)
        assert held.refuses(call(300, 1, n=5, k="y")) == (0, True)
        assert memory(ban(hurts)).refuses(call(1, 1)) is None
        assert first


def test_an_index_is_undone() -> None:
    held = memory(need({"calls": A, "same": MINE, "where": ALONE}))
    held.add(call(1, 0, n=2, done=True))
    undo = held.add(call(2, 0, n=5, done=True))
    assert held.refuses(call(3, 1, n=4)) is None
    held.undo(undo)
    assert held.refuses(call(3, 1, n=4)) == (0, True)
    assert held.refuses(call(3, 1, n=1)) is None
    held.add(call(2, 0, n=5))  # nobody knows whether it was done
    assert held.refuses(call(3, 1, n=4)) == (0, True)


def test_the_last_call_that_may_be_meant_hides_none_that_is() -> None:
    held = memory(ban({"calls": A, "last": True, "same": MINE, "where": ALONE}))
    held.add(call(1, 0, n=5, done=True))
    held.add(call(2, 0, n=0, done=True, states={"k": UNKNOWN}))
    assert held.refuses(call(3, 1, n=1)) == (0, True)
    held.add(call(3, 0, n=0, done=True))
    assert held.refuses(call(4, 1, n=1)) is None


def test_an_index_counts_what_is_not_known_against_a_call_and_never_for_it() -> None:
    bound = ["calls", 0, [["v", ["a"]]]]
    held = memory(ban({"calls": A, "where": ALONE}))
    held.add(call(1, 0, n=0, done=True))
    assert held.refuses(call(2, 1, n=1)) is None
    held.add(call(2, 0, done=True, states={"n": UNKNOWN}))
    assert held.refuses(call(3, 1, n=1)) == (0, True)
    helps = memory(need({"calls": bound, "where": ALONE}))
    helps.add(call(1, 0, n=5, done=True, states={"v": UNKNOWN}))
    assert helps.refuses(call(2, 1, n=1)) == (0, True)
    helps.add(call(2, 0, n=5, done=True))
    assert helps.refuses(call(3, 1, n=1)) is None

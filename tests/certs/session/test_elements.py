"""Relations about elements, made in columns, beside the same relation about each by itself."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tcc_certs.session.monitors import relations
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.relations import compiled_relation, compiled_term
from tcc_certs.values.places import NONE, UNKNOWN

OTHER = ("*", frozenset([("s", "a"), ("n", 1)]))  # what is not listed
VALUES: list[Any] = [
    ("n", 1), ("n", 2), ("s", "a"), ("s", "bb"), ("t", 1), ("b", True), ("#", b"d"), NONE, UNKNOWN,
    OTHER,
]  # fmt: skip
OPS = ("=", "!=", "<", "<=", ">", ">=")


def _term(draw: random.Random, names: list[Any]) -> Any:
    return draw.choice([*names, *names, ("own", "f"), ("s", "a"), ("n", "2"), ("now",)])


def _relation(draw: random.Random, names: list[Any]) -> Any:
    if draw.random() < 0.3:
        return draw.choice(["~", "!~"]), _term(draw, names), "[ab]+"
    return draw.choice(OPS), _term(draw, names), _term(draw, names)


def _tree(draw: random.Random) -> Any:
    lists = ("own", "l"), ("own", "m")
    match draw.randrange(4):
        case 0:
            return "every", lists[0], _relation(draw, [("it",)])
        case 1:
            it = [("it",)]
            counted = ("count", lists[0], _relation(draw, it))
            return draw.choice(OPS), counted, ("n", "1")
        case 2:
            names = [("as", "x"), ("as", "x", "c")]
            one = tuple([_relation(draw, names) for _ in range(draw.randint(1, 2))])
            return draw.choice(["some", "all"]), ((("own", "r"), "x"),), one
    names = [("as", "x"), ("as", "y")]
    two = tuple([_relation(draw, names) for _ in range(draw.randint(1, 2))])
    return draw.choice(["some", "all"]), ((lists[0], "x"), (lists[1], "y")), two


@pytest.mark.parametrize("seed", range(20))
def test_columns_say_what_a_look_at_each_element_says(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(f"elements {seed}")
    seen = set()
    for _ in range(300):
        few = VALUES[: draw.choice([2, 4, 7, 10])]
        size = draw.randint(0, 3)
        lists = [("l", tuple(draw.choice(few) for _ in range(size))) for _ in range(2)]
        rows = ("l", tuple(("r", (("c", draw.choice(few)), ("d", NONE))) for _ in range(size)))
        states = {"l": lists[0], "m": draw.choice([*lists, lists[1], NONE]), "r": rows,
                  "f": draw.choice(few)}  # fmt: skip
        marks = {("[ab]+", b"d"): draw.choice([True, False, None])}
        own = Event(at=1, tool=0, states=states, stamp=1, marks=marks)
        tree = _tree(draw)
        found = compiled_relation(tree)(own, own, {})
        with monkeypatch.context() as patch:
            patch.setattr(relations, "_of_each", lambda *_: None)
            assert compiled_relation(tree)(own, own, {}) is found, tree
        seen.add(found)
    assert seen == {True, False, None}


def test_a_count_is_not_known_where_an_element_is_not() -> None:
    term = compiled_term(("count", ("own", "l"), ("=", ("it",), ("s", "a"))))
    for items, due in (((("s", "a"), UNKNOWN), UNKNOWN), ((("s", "a"), ("n", 1)), ("n", 1))):
        own = Event(at=1, tool=0, states={"l": ("l", items)})
        assert term(own, own, {}) == due


# Lists inside of lists, beside the tables of the specification read word by word.

_LISTS: list[Any] = [
    ("own", "l"),
    ("own", "m"),
    ("seen", "l"),
    ("own", "r", "c"),
    ("own", "r", "d"),
]


_AGAIN = ("max", ("it",), ("n", "1"))


def _nested(draw: random.Random, names: list[str], depth: int) -> Any:
    """A relation that may speak of elements with these names, each with a list `d` and a value."""
    terms: list[Any] = [
        ("own", "f"),
        ("seen", "f"),
        ("s", "a"),
        ("n", "1"),
        ("count", ("own", "l")),
    ]
    terms += [("as", name) for name in names] * 2 + [("as", name, "c") for name in names] * 2
    terms += [("max", ("as", name), ("n", "1")) for name in names]
    lists = _LISTS + [("as", name, "d") for name in names] * 3
    kind = draw.randrange(7 if depth else 4)
    if kind == 0:
        return draw.choice(OPS), draw.choice(terms), draw.choice(terms)
    if kind == 1:
        return draw.choice(["in", "not in"]), draw.choice(terms), draw.choice(lists)
    if kind == 2:
        return draw.choice(["~", "!~"]), draw.choice(terms), draw.choice(["a.*", "[ab]+", "b?"])
    if kind == 3:
        if draw.random() < 0.3:
            return "every", draw.choice(lists), (draw.choice(OPS), ("it",), _AGAIN)
        among = draw.choice(["in", "not in"]), ("it",), draw.choice(lists)
        return "every", draw.choice(lists), among
    if kind == 4:
        inner = (draw.choice(OPS), ("it",), draw.choice(terms))
        return draw.choice(OPS), ("count", draw.choice(lists), inner), ("n", "1")
    new = [f"e{len(names) + i}" for i in range(draw.choice([1, 1, 2]))]
    over = tuple([(draw.choice([*lists, *[("own", "r")] * 8]), name) for name in new])
    inner = tuple([_nested(draw, [*names, *new], depth - 1) for _ in range(draw.randint(1, 2))])
    return draw.choice(["some", "all"]), over, inner


def _plain_term(tree: Any, own: Event, seen: Event, names: dict[str, Any]) -> Any:
    match tree:
        case ("own", name):
            return own.states[name]
        case ("seen", name):
            return seen.states[name]
        case ("own", name, part):
            return _plain_column(own.states[name], part)
        case ("it",):
            return names["it"]
        case ("as", name):
            return names[name]
        case ("as", name, part):
            kind, value = names[name]
            return dict(value).get(part, UNKNOWN) if kind == "r" else (
                NONE if kind == "none" else UNKNOWN)  # fmt: skip
        case ("max", one, other):
            both = [_plain_term(side, own, seen, names) for side in (one, other)]
            lacking = [one for one in both if one in (NONE, UNKNOWN)]
            if lacking or both[0][0] != both[1][0] or both[0][0] not in ("n", "t"):
                return lacking[0] if lacking else UNKNOWN
            return max(both)
        case ("count", of):
            kind, value = found = _plain_term(of, own, seen, names)
            return ("n", len(value)) if kind == "l" else found if kind == "none" else UNKNOWN
        case ("count", of, inner):
            kind, value = found = _plain_term(of, own, seen, names)
            if kind != "l":
                return found if kind == "none" else UNKNOWN
            truths = [_plain(inner, own, seen, {**names, "it": one}) for one in value]
            return UNKNOWN if None in truths else ("n", truths.count(True))
    return compiled_term(tree)(own, seen, {})


def _plain_column(records: Any, part: str) -> Any:
    if records[0] != "l":
        return records if records in (NONE, UNKNOWN) else UNKNOWN
    cells = [dict(v).get(part, UNKNOWN) if k == "r" else (NONE if k == "none" else UNKNOWN)
             for k, v in records[1]]  # fmt: skip
    lacking = [one for one in cells if one in (NONE, UNKNOWN)]
    return lacking[0] if lacking else ("l", tuple(cells))


def _all(parts: list[Any]) -> Any:
    return False if False in parts else None if None in parts else True


def _any(parts: list[Any]) -> Any:
    return True if True in parts else None if None in parts else False


def _plain(tree: Any, own: Event, seen: Event, names: dict[str, Any]) -> Any:
    op, *sides = tree
    if op in ("some", "all"):
        lists = [_plain_term(of, own, seen, names) for of, _ in sides[0]]
        if any(kind != "l" for kind, _ in lists):
            return None
        if len({len(items) for _, items in lists}) > 1:
            return False
        rows = [dict(zip([n for _, n in sides[0]], row, strict=True))
                for row in zip(*[items for _, items in lists], strict=True)]  # fmt: skip
        each = [
            _all([_plain(one, own, seen, {**names, **row}) for one in sides[1]]) for row in rows
        ]
        return _any(each) if op == "some" else _all(each)
    if op == "every":
        kind, items = _plain_term(sides[0], own, seen, names)
        if kind != "l":
            return None
        return _all([_plain(sides[1], own, seen, {**names, "it": one}) for one in items])
    return _simple(op, sides, own, seen, names)


def _simple(op: str, sides: list[Any], own: Event, seen: Event, names: dict[str, Any]) -> Any:
    left = _plain_term(sides[0], own, seen, names)
    if op in ("~", "!~"):
        if left[0] == "s":
            found: Any = re.fullmatch(sides[1], left[1]) is not None
        elif left[0] == "#":
            found = own.marks.get((sides[1], left[1]))
        else:
            found = None if left[0] in ("none", "unknown", "*") else False
        return found if op == "~" or found is None else not found
    right = _plain_term(sides[1], own, seen, names)
    if op in ("in", "not in"):
        if left in (NONE, UNKNOWN) or right[0] != "l":
            return None
        found = _any([relations.same(left, one) for one in right[1]])
        return found if op == "in" or found is None else not found
    if op in ("=", "!="):
        found = relations.same(left, right)
        return found if op == "=" or found is None else not found
    if left[0] != right[0] or left[0] not in ("n", "t"):
        return None
    a, b = left[1], right[1]
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op]


def _event(draw: random.Random, few: list[Any]) -> Event:
    listed = [one for one in few if one != OTHER]  # elements and their fields are open

    def many(size: int) -> Any:
        return ("l", tuple([draw.choice(listed) for _ in range(size)]))

    def record() -> Any:
        return (
            "r",
            (("c", draw.choice(listed)), ("d", draw.choice([many(2), many(1), many(0), UNKNOWN]))),
        )

    size = draw.randint(0, 3)
    states = {"f": draw.choice(few), "l": many(size), "m": many(size)}
    rows = draw.choice([("l", tuple([record() for _ in range(size)])), ("l", ()), UNKNOWN, NONE])
    return Event(at=1, tool=0, states={**states, "r": rows}, marks={("a.*", b"d"): True})


@pytest.mark.parametrize("seed", range(20))
def test_lists_inside_of_lists_say_what_the_tables_say(seed: int) -> None:
    draw, seen_truths = random.Random(f"nested {seed}"), set()
    for _ in range(600):
        known = [("s", "a"), ("s", "bb"), ("s", "ab"), ("n", 1), ("n", 2), ("s", "")]
        few = draw.sample([*VALUES, *known * 3], draw.choice([3, 5, 10]))
        own, seen = _event(draw, few), _event(draw, few)
        tree = _nested(draw, [], 3)
        due = _plain(tree, own, seen, {})
        assert compiled_relation(tree)(own, seen, {}) is due, tree
        seen_truths.add(due)
    assert seen_truths == {True, False, None}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_sure_of_what_is_not_known_is_so_whatever_it_is(seed: int) -> None:
    """Each unknown, of a field, an element or a cell, may turn out to be any value."""
    draw, sure = random.Random(f"completed {seed}"), 0
    few = [("n", 1), ("n", 2), ("s", "a"), ("s", "bb"), UNKNOWN, UNKNOWN]

    def completed(state: Any) -> Any:
        kind, value = state
        if state == UNKNOWN:
            return draw.choice(few[:4])
        if kind == "l":
            return kind, tuple(map(completed, value))
        return (kind, tuple([(n, completed(v)) for n, v in value])) if kind == "r" else state

    for _ in range(150):
        own, seen = _event(draw, few), _event(draw, few)
        relation = compiled_relation(_nested(draw, [], 2))
        before = relation(own, seen, {})
        for _ in range(8 if before is not None else 0):
            later = [Event(at=1, tool=0, states={n: completed(s) for n, s in one.states.items()})
                     for one in (own, seen)]  # fmt: skip
            # A text where a number is ordered, or a value where a list is due, stays unsure.
            assert relation(later[0], later[1], {}) in (before, None)
            sure += 1
    assert sure > 100


def _some(of: Any, name: str, inner: Any) -> Any:
    return "some", ((of, name),), (inner,)


_ROWS, _L, _XB, _Y = ("own", "r"), ("own", "l"), ("as", "x", "b"), ("as", "y")
_NINE = ("n", "9")


@pytest.mark.parametrize(
    ("inner", "unsure"),
    [
        (_some(_L, "y", ("in", _Y, _XB)), True),  # of 2 rows, 3 texts and 3 texts
        (_some(_L, "y", ("in", _Y, _L)), False),  # a list that depends on no element is a set
        (("every", _XB, ("in", ("it",), _L)), False),
        (_some(_L, "y", ("every", _XB, ("in", ("it",), _L))), True),
        ((">=", ("count", _XB), _NINE), False),
        (_some(_L, "y", (">=", ("count", _XB, ("=", ("it",), _Y)), _NINE)), True),
    ],
)
def test_lists_that_depend_on_elements_count_as_ways_to_choose(
    inner: Any, unsure: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "MAX_WAYS", 8)
    texts = ("l", (("s", "a"), ("s", "b"), ("s", "c")))
    row = ("r", (("b", ("l", (("s", "x"), ("s", "y"), ("s", "a")))),))
    event = Event(at=1, tool=0, states={"r": ("l", (row, row)), "l": texts})
    due = {True: None, False: False}[unsure]
    found = compiled_relation(_some(_ROWS, "x", inner))(event, event, {})
    assert found is (True if inner == _some(_L, "y", ("in", _Y, _L)) else due)
    assert event.asked >= 2


@pytest.mark.parametrize(
    ("word", "inner"),
    [
        ("all", [("in", ("s", "a"), ("as", "x", "d"))]),
        ("all", [("not in", ("s", "b"), ("as", "x", "d"))]),
        ("some", [("in", ("s", "a"), ("as", "x", "d")), ("in", ("s", "b"), ("as", "x", "d"))]),
        ("all", [("~", ("own", "f"), "a.*"), ("~", ("own", "f"), "b.*")]),
        ("some", [("~", ("own", "f"), "b.*"), ("!~", ("own", "f"), "a.*")]),
        ("all", [("=", ("count", ("own", "l")), ("n", "3")), ("=", ("max", _NINE, _NINE), _NINE)]),
        ("all", [("every", ("as", "x", "d"), ("in", ("it",), ("as", "x", "d")))]),
        ("all", [("every", ("as", "x", "d"), ("in", ("it",), ("own", "l")))]),
    ],
)
def test_what_is_found_once_is_of_one_list_one_pattern_and_one_term(word: str, inner: Any) -> None:
    rows = [("r", (("c", ("s", "a")), ("d", ("l", (("s", one),))))) for one in ("a", "b", "c")]
    texts = ("l", (("s", "a"), ("s", "b"), ("s", "d")))
    own = Event(at=1, tool=0, states={"r": ("l", tuple(rows)), "l": texts, "f": ("s", "ab")})
    tree = (word, ((("own", "r"), "x"),), tuple(inner))
    assert compiled_relation(tree)(own, own, {}) is _plain(tree, own, own, {})

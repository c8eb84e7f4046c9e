"""Relations about elements, made in columns, beside the same relation about each by itself."""

from __future__ import annotations

import random
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

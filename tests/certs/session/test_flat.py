"""A decision takes as many steps after many calls as after few, whatever is known of their keys."""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tcc_certs.core.policies import Fields, read_policy
from tcc_certs.errors import Code
from tcc_certs.session import monitors
from tcc_certs.session.monitors.kept import MOST_SHAPES, Near
from tcc_certs.session.monitors.keyed import Event
from tcc_certs.session.monitors.policies import Memory, Policies
from tcc_certs.session.monitors.relations import both, same
from tcc_certs.values.declared import FlagType, JsonType, NumberType, TextType
from tcc_certs.values.fields import Field, FieldType, ListType, RecordType
from tcc_certs.values.places import NONE, UNKNOWN, State, constant
from tests.oracle_policies.core import policies_of
from tests.oracle_policies.drawn import FORMS, Draw

FOLDER = str(Path(monitors.__file__).parent)
_TEXT = TextType()


def lines_of(work: Callable[[], object]) -> int:
    """How many lines of the interpreter are run."""
    count = 0

    def line(frame: FrameType, event: str, found: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def called(frame: FrameType, event: str, found: object) -> Any:
        return line if frame.f_code.co_filename.startswith(FOLDER) else None

    before = sys.gettrace()
    sys.settrace(called)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


# Statements over one key with parts that may be left out.

A, B = ["calls", 0, []], ["calls", 1, []]
SAME = [["f", ["own", "f"]], ["k", ["own", "k"]]]
PER = [["own", "f"], ["own", "k"], ["session", "who"]]
WIDE = [*PER, *[["own", f"w{at}"] for at in range(5)]]
ALONE = {"calls": A, "same": SAME}
OVER = {**ALONE, "where": [["=", ["n", "1"], ["n", "1"]]]}
C = {"calls": ["calls", 2, []], "same": SAME}
FORMS_OF_KEYS: dict[str, Any] = {
    "uses": {"kind": "count", "of": ["or", [A, B]], "value": 10**6, "per": PER},
    "uses within": {"kind": "count", "of": ["any"], "value": 10**6, "per": PER, "within": 9999},
    "uses of many": {"kind": "count", "of": ["any"], "value": 10**6, "per": WIDE},
    "sum": {"kind": "total", "tool": 1, "param": "n", "value": "9" * 9, "per": PER},
    "sum within": {"kind": "total", "tool": 1, "param": "n", "value": "9" * 9, "per": PER,
                   "within": 9999},
    "forbid": {"kind": "ban", "any": [ALONE], "of": B},
    "forbid with": {"kind": "apart", "one": A, "other": B, "same": SAME},
    "forbid n": {"kind": "ban", "any": [{**ALONE, "n": 3}], "of": B},
    "forbid or": {"kind": "ban", "any": [ALONE, C], "of": B},
    "forbid unless": {"kind": "ban", "any": [ALONE], "of": B, "unless": [C]},
    "forbid where": {"kind": "ban", "any": [OVER], "of": B},
    "forbid last": {"kind": "ban", "any": [{**OVER, "last": True}], "of": B},
    "require": {"kind": "need", "order": "before", "any": [ALONE], "of": B},
    "require or": {"kind": "need", "order": "before", "any": [ALONE, C], "of": B},
    "require each": {"kind": "need", "order": "each", "any": [ALONE], "of": B},
    "require each or": {"kind": "need", "order": "each", "any": [ALONE, C], "of": B},
    "require each where": {"kind": "need", "order": "each", "any": [OVER], "of": B},
    "require after": {"kind": "owe", "first": A, "of": B, "same": SAME},
}  # fmt: skip


def _field(name: str, kind: FieldType = _TEXT, *, optional: bool = False) -> Field:
    return Field(name=name, steps=(name,), type=kind, optional=optional)


TOOL = {one.name: one for one in (
    _field("f", optional=True), _field("k"), _field("n", NumberType(whole=True)),
    *[_field(f"w{at}", optional=True) for at in range(5)],
)}  # fmt: skip
FIELDS = Fields(tools=(TOOL, TOOL, TOOL), session=frozenset(["who"]))
OTHER: State = ("*", frozenset([("s", "w1"), ("s", "w2")]))


def _call(at: int, tool: int, draw: random.Random, wide: int, odd: float) -> Event:
    """A call, one in `odd` of whose keys has parts that are not known."""
    vague = draw.random() < odd
    key = [("s", f"{name}{draw.randrange(wide)}") for name in ("f", "k")]
    if vague:
        key[draw.randrange(2)] = draw.choice([NONE, UNKNOWN, OTHER])
    who = {} if draw.random() < 0.5 else {"who": ("s", f"w{draw.randrange(4)}")}
    more = {f"w{n}": draw.choice([("s", "a"), NONE]) for n in range(5)} if vague else {}
    states = {**dict.fromkeys([f"w{n}" for n in range(5)], ("s", "a")), **more}
    return Event(
        at=at, tool=tool, stamp=at, done=draw.random() < 0.9, told=at, session=who,
        states={"f": key[0], "k": key[1], "n": ("n", 1), **states},
    )  # fmt: skip


def _memory(statement: Any) -> Memory:
    return Memory(Policies([read_policy(statement, "m", Code.CORE_SCHEMA, FIELDS)], FIELDS))


def _taken(memory: Memory, asked: Sequence[Event]) -> int:
    """The lines that the longest decision takes, with the step that follows, and taken back."""

    def step(own: Event) -> None:
        memory.refuses(own)
        memory.undo(memory.add(own))

    for own in asked:
        step(own)  # what nobody foresaw is gone through once
    return max(lines_of(lambda own=own: step(own)) for own in asked)  # type: ignore[misc]


@pytest.mark.parametrize("form", [form for form in FORMS_OF_KEYS if form != "uses of many"])
@pytest.mark.parametrize(("wide", "odd"), [(10**6, 0.3), (10**6, 1), (2, 0.2), (1, 0)])
def test_a_decision_by_keys_takes_as_long_after_more_calls(
    form: str, wide: int, odd: float
) -> None:
    memory, draw, taken = _memory(FORMS_OF_KEYS[form]), random.Random(f"{form} {wide} {odd}"), []
    asked = [_call(10**6, 1, draw, wide, share) for share in (0, 0.5, 1) for _ in range(4)]
    at = 0
    for size in (1000, 2500):
        while at < size:
            at += 1
            tool = draw.choice((0, 0, 0, 2, 2, 2, 1))
            memory.add(_call(at, tool, draw, wide, odd))
        taken.append(_taken(memory, asked))
    assert taken[1] <= 1.1 * taken[0] + 20, taken


def test_a_foreseen_key_is_found_by_the_first_that_asks_for_it() -> None:
    taken = []
    for size in (200, 2000):
        memory, draw = _memory({**FORMS_OF_KEYS["uses"], "per": PER[:2]}), random.Random(1)
        for at in range(1, size):
            memory.add(_call(at, 0, draw, 10**6, 0))
        own = _call(size, 1, draw, 10**6, 0)
        own.states = {**own.states, "f": NONE}
        taken.append(lines_of(lambda: memory.refuses(own)))  # noqa: B023
    assert taken[0] == taken[1]


# Of all forms of statements, drawn.


def _state(one: Field, draw: random.Random, wide: int) -> State:
    if one.optional and draw.random() < 0.1:
        return NONE
    if one.type is None:
        known = frozenset([constant(text) for text in one.values if text and text != "*"])
        text = draw.choice([text for text in one.values if text])
        return ("*", known) if text == "*" else constant(text)
    return _typed(one.type, draw, wide)


def _typed(kind: FieldType, draw: random.Random, wide: int) -> State:
    number = draw.randrange(wide)
    match kind:
        case TextType():
            return "s", f"v{number}"
        case NumberType():
            return "n", number
        case FlagType():
            return "b", number % 2 == 0
        case JsonType():
            return "j", str(number).encode()
        case ListType(of=of):
            return "l", tuple([_typed(of, draw, wide) for _ in range(draw.randrange(3))])
        case RecordType(fields=fields):
            return "r", tuple([(one.name, _state(one, draw, wide)) for one in fields])
    return "t", 1_715_767_200_000 + number


@pytest.mark.parametrize("seed", range(40))
def test_a_decision_by_any_statement_takes_as_long_after_more_calls(seed: int) -> None:
    grammar, draw = Draw(f"flat {seed}", FORMS).grammar(), random.Random(seed)
    fields, statements = policies_of(grammar)
    if not statements:
        return
    memory, at, taken = Memory(Policies([policy for _, policy in statements], fields)), 0, []
    wide = draw.choice([1, 2, 10**6])
    answers = [{f.name for f in tool.fields if f.answer} for tool in grammar.tools]

    def call(at: int) -> Event:
        tool, outcome = draw.randrange(len(fields.tools)), draw.random()
        states = {name: _state(one, draw, wide) for name, one in fields.tools[tool].items()}
        if outcome > 0.8:
            states |= dict.fromkeys(answers[tool], UNKNOWN)
        return Event(
            at=at, tool=tool, states=states, stamp=1_715_767_200_000 + at, done=outcome <= 0.8,
            answered=outcome > 0.95, told=at,
        )  # fmt: skip

    asked = [call(10**6) for _ in range(6)]
    for size in (400, 3200):
        while at < size:
            at += 1
            memory.add(call(at))
        taken.append(_taken(memory, asked))
    # After few calls not all that a statement looks at is there yet.
    assert taken[1] <= 2 * taken[0] + 2000, (taken, grammar)


# What is found for a key that may be several.

_PARTS: list[State] = [
    ("s", "a"), ("s", "b"), ("n", 1), NONE, UNKNOWN, ("*", frozenset([("s", "a")])),
    ("*", frozenset([("s", "b"), ("n", 1)])),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(60))
def test_what_is_kept_is_found_by_every_key_that_may_be_its_own(seed: int) -> None:
    """More shapes than are kept, in any order, with what was kept last taken back."""
    draw = random.Random(seed)
    parts = draw.randint(0, 3)

    def key() -> tuple[State, ...]:
        return tuple([draw.choice(_PARTS) for _ in range(parts)])

    near, shapes = Near(list), Counter[bool]()
    undo: list[Callable[[], object]] = []
    kept: list[tuple[tuple[State, ...], int]] = []
    for number in range(120):
        if undo and draw.random() < 0.3:
            undo.pop()()
            kept.pop()
        else:
            kept.append((key(), number))
            near.keep(*kept[-1], undo)
        own = key()
        vague = any(kind in ("none", "unknown", "*") for kind, _ in own)
        shapes[vague] += 1
        due = [
            one
            for other, one in kept
            if both(map(same, other, own)) is not False
            and (vague or any(kind in ("none", "unknown", "*") for kind, _ in other))
        ]
        assert sorted(one for bucket in near.of(own) for one in bucket) == due
        assert list(near.latest()) == [one for _, one in reversed(kept)]
    while undo:
        undo.pop()()
    assert near.odd == 0
    assert not any(near.of(key()) and any(near.of(key())) for _ in range(20))


def test_more_shapes_than_are_kept_are_all_found() -> None:
    memory, draw = _memory({**FORMS_OF_KEYS["uses of many"], "value": 300}), random.Random(1)
    for at in range(1, 300):
        memory.add(_call(at, 0, draw, 3, 1))
    own = _call(301, 0, draw, 3, 0)
    for n in range(2**5):
        lacks = {f"w{at}": NONE if n >> at & 1 else ("s", "a") for at in range(5)}
        asked = Event(at=301, tool=0, states={**own.states, **lacks, "f": NONE, "k": NONE})
        assert memory.refuses(asked) is None
    assert MOST_SHAPES < 2**5


@pytest.mark.parametrize("within", [None, 7, 40])
@pytest.mark.parametrize("seed", range(40))
def test_a_limit_counts_every_call_whose_key_may_be_the_same(seed: int, within: int | None) -> None:
    draw = random.Random(f"{seed} {within}")
    more = {} if within is None else {"within": within}
    value = draw.randint(1, 12)
    memory = _memory({"kind": "total", "tool": 0, "param": "n", "value": str(value), "per": PER,
                      **more})  # fmt: skip
    calls: list[tuple[Event, Any]] = []
    for at in range(1, 90):
        own = _call(at, 0, draw, 2, 0.3)
        own.states = {**own.states, "n": ("n", draw.randint(0, 2))}
        key = [own.states["f"], own.states["k"], own.session.get("who", UNKNOWN)]
        due = own.states["n"][1]
        for other, _ in calls:
            theirs = [other.states["f"], other.states["k"], other.session.get("who", UNKNOWN)]
            if within is None or other.stamp >= own.stamp - within:
                counts = both(map(same, key, theirs)) is not False
                due += other.states["n"][1] if counts else 0
        assert memory.refuses(own) == (None if due <= value else (0, True))
        if calls and draw.random() < 0.2:
            memory.undo(calls.pop()[1])
        elif draw.random() < 0.5:
            calls.append((own, memory.add(own)))

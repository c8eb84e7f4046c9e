"""Answers that were not told, or are no JSON value: nothing is known of what may be left out."""

from __future__ import annotations

import enum
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest

import tcc
from tests.gate import grammars

DESK = """grammar desk version "1"

tool look(order: text max 20) gives (state?: good | bad | *, blocked?: text max 20)
tool deep(order: text max 20)
  gives (state?: good | bad | * at "/a/s", blocked?: text max 20 at "/a/b")
tool sell(order: text max 20)
tool send(order: text max 20)

before sell {
  let latest = last((look | deep)(same order))
  require (latest.blocked = null or latest.blocked = "no")
}
before send require last((look | deep)(same order)).state != good | bad
limit depth <= 4
"""
HELPED = "before send require last((look | deep)(same order)).state != good | bad"


class Answer(NamedTuple):
    blocked: str = "yes"
    state: str = "bad"


class Told:
    blocked = "yes"
    state = "bad"


class State(enum.StrEnum):
    BAD = "bad"


def allowed(tool: str, answer: Any, *asked: str) -> list[bool]:
    gate = tcc.Gate(grammars.artifact(DESK))
    with gate.call(tool, {"order": "a"}) as permit:
        permit.done(answer)
    return [gate.check(one, {"order": "a"}).allowed for one in asked or ("sell", "send")]


@pytest.mark.parametrize(
    "answer",
    [
        None,
        Told(),
        Answer(),
        {"a": Told()},
        {"a": Answer()},
        {"a": OrderedDict(b="yes", s="bad")},
        {"a": {"b": Told(), "s": State.BAD}},
    ],
)
def test_what_is_no_json_value_is_not_known(answer: Any) -> None:
    assert allowed("deep", answer) == [False, False]


def test_at_no_place_too() -> None:
    assert allowed("look", None) == [False, False]
    assert allowed("look", Told()) == [False, False]
    assert allowed("look", OrderedDict(blocked="yes", state="bad")) == [False, False]
    assert allowed("look", {"blocked": "yes", "state": State.BAD}) == [False, False]
    assert allowed("look", {"blocked": "no", "state": []}) == [True, True]


@pytest.mark.parametrize("answer", [{}, {"a": 1}, [], "text", 7, 1.5, True])
def test_in_a_json_value_what_may_be_left_out_is_left_out(answer: Any) -> None:
    for tool in ("look", "deep"):
        assert allowed(tool, answer) == [True, False]
        forbids = f"before send require no {tool}(state = good)"
        gate = tcc.Gate(grammars.artifact(DESK.replace(HELPED, forbids)))
        with gate.call(tool, {"order": "a"}) as permit:
            permit.done(answer)
        assert not gate.check("send", {"order": "a"}).allowed


def test_an_owner_who_says_no_values_leaves_them_unknown() -> None:
    listed = tcc.Gate(grammars.artifact(DESK))
    opened = tcc.Gate(
        grammars.artifact(
            DESK.replace("state?: good | bad | *, ", "", 1).replace(
                "last((look | deep)(same order)).state", "last(deep(same order)).state"
            )
        )
    )
    for gate in (listed, opened):
        with gate.call("look", {"order": "a"}) as permit:
            permit.unknown("gone")
    with pytest.raises(ValueError, match="observed"):
        listed.resolve(1, "done")
    listed.resolve(1, "done", {})
    assert listed.check("sell", {"order": "a"}).allowed
    opened.resolve(1, "done")
    assert not opened.check("sell", {"order": "a"}).allowed


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ({"type": "text", "text": '{"label": "public"}'}, "public"),
        ([{"type": "text", "text": '{"label": "public"}', "id": "b1"}], "public"),
        ({"type": "text", "text": '{"label": "public"}', "label": "private"}, "private"),
        ({"type": "resource", "resource": {"text": '{"label": "public"}'}, "label": "private"},
         "private"),
        ([{"type": "text", "text": '{"label": "public"}', "label": "private"}], None),
        ({"content": [{"type": "text", "text": '{"label": "public"}', "label": "private"}],
          "isError": False}, None),
    ],
)  # fmt: skip
def test_a_text_in_an_answer_replaces_no_member_of_it(answer: Any, label: str | None) -> None:
    gate = tcc.Gate(
        tcc.compile_text(
            'grammar g version "1"\ntool read gives (label: public | private)\nlimit depth <= 9'
        )
    )
    with gate.call("read") as permit:
        permit.done(answer)
    assert gate.history[0].observed.get("label") == label

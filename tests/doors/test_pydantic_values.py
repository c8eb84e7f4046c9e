"""Objects that pydantic built: the gate decides on their JSON, and the tool gets that alone."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import threading
import time
import uuid
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, field_serializer, model_serializer

import tcc
import tcc.langchain
from tcc_runtime.gate.arguments.pydantic_values import json_and_copy


class Colour(enum.Enum):
    RED = "red"


class Count(enum.IntEnum):
    ONE = 1


class Text(str):
    """A text of a class of its own."""


class Whole(int):
    """An integer of a class of its own."""


class Part(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    many: int | None = None


class Order(BaseModel):
    id: int
    parts: list[Part] = []
    price: Decimal = Decimal("0.5")
    colour: Colour = Colour.RED


class Hiding(BaseModel):
    name: str
    secret: str = Field(default="none", exclude=True)
    _own: str = PrivateAttr(default="none")


class Lying(BaseModel):
    amount: int

    @field_serializer("amount")
    def one(self, _: int) -> int:
        return 1


class Drifting(BaseModel):
    amount: int

    @field_serializer("amount")
    def more(self, amount: int) -> int:
        return amount + 1


class Alternating(BaseModel):
    amount: int

    @model_serializer
    def whole(self) -> dict[str, Any]:
        asked.append(self.amount)
        return {"amount": len(asked) % 2}


asked: list[int] = []


@dataclasses.dataclass
class Point:
    x: int
    y: list[int]


class Pair(NamedTuple):
    left: int
    right: str


DAY = datetime.date(2026, 2, 3)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (Order(id=2**64 - 1, parts=[Part(day=DAY)]), {"id": 2**64 - 1, "price": Decimal("0.5"),
         "colour": "red", "parts": [{"day": "2026-02-03", "many": None}]}),
        ([Part(day=DAY, many=-(2**63))], [{"day": "2026-02-03", "many": -(2**63)}]),
        (Point(x=1, y=[2]), {"x": 1, "y": [2]}),
        (Pair(left=1, right="a"), [1, "a"]),
        (DAY, "2026-02-03"),
        (datetime.datetime(2026, 2, 3, tzinfo=datetime.UTC), "2026-02-03T00:00:00Z"),
        (uuid.UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        ((1, {"a": (2,)}), [1, {"a": [2]}]),
        ({"a": {1}}, {"a": [1]}),
        ({Colour.RED: Colour.RED}, {"red": "red"}),
        (Count.ONE, 1),
    ],
)  # fmt: skip
def test_an_object_is_built_anew_from_its_json(value: Any, written: Any) -> None:
    found, copy = json_and_copy(value)
    assert found == written and type(found) is type(written)
    assert copy == value and type(copy) is type(value)
    assert copy is not value or isinstance(value, enum.Enum)


@pytest.mark.parametrize(
    ("value", "plain"), [(Text("a"), "a"), (Whole(5), 5), (Decimal(5), Decimal(5))]
)
def test_a_text_or_number_of_another_class_is_a_plain_one(value: Any, plain: Any) -> None:
    found, copy = json_and_copy([value])
    assert (found, copy) == ([plain], [plain])
    assert type(found[0]) is type(copy[0]) is type(plain)


def test_what_an_object_does_not_write_the_tool_does_not_get() -> None:
    value = Hiding(name="a", secret="s")
    value._own = "s"
    found, copy = json_and_copy({"of": [value]})
    assert found == {"of": [{"name": "a"}]}
    assert (copy["of"][0].secret, copy["of"][0]._own) == ("none", "none")
    found, copy = json_and_copy(Lying(amount=500))
    assert (found, copy.amount) == ({"amount": 1}, 1)


@pytest.mark.parametrize(
    "value",
    [
        Drifting(amount=1), Alternating(amount=1), object(), b"x", [Drifting(amount=2)],
        Order.model_construct(id=1, parts=[1]), Point(x=1, y=[object()]), Order,  # type: ignore[list-item]
    ],
)  # fmt: skip
def test_what_has_no_json_of_its_own_stays_and_is_refused(value: Any) -> None:
    with tcc.Gate(tcc.compile_text(GRAMMAR), durable=False) as gate:
        found, _ = json_and_copy(value)
        assert gate.check("save", {"data": found}).code == "R106"


def test_a_value_inside_of_itself_or_many_times_takes_no_longer() -> None:
    value: Any = [Order(id=1)]
    for _ in range(60):
        value = [value, value]
    around: list[Any] = []
    around.append(around)
    began = time.process_time()
    json_and_copy(value)
    json_and_copy(around)
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    json_and_copy(deep)
    assert time.process_time() - began < 5


GRAMMAR = """grammar g version "1"
tool save(data: json)
plan = save{0,9}
"""


@pytest.mark.parametrize("known", [True, False])
def test_a_tool_of_langchain_gets_what_was_decided_on(known: bool) -> None:
    ran: list[Any] = []

    def save(data: list[Hiding]) -> str:
        """Save."""
        ran.append(data)
        return "saved"

    with tcc.Gate(tcc.compile_text(GRAMMAR), durable=False, show=["save.data"]) as gate:
        source: Any = gate if known else lambda _: gate
        (tool,) = tcc.langchain.guard([StructuredTool.from_function(save)], source)
        given = {"data": [{"name": "a", "secret": "s"}]}
        said = tool.invoke({"name": "save", "args": given, "id": "1", "type": "tool_call"},
                           {"tags": ["t"]})  # fmt: skip
        assert said.status == "success"
        assert [(one.name, one.secret) for one in ran[0]] == [("a", "none")]


def test_a_model_that_changes_while_a_call_waits_is_not_run() -> None:
    ran: list[Any] = []
    model = Order(id=1)

    def save(data: Any) -> str:
        """Save."""
        ran.append(data)
        return "saved"

    with tcc.Gate(tcc.compile_text(GRAMMAR), durable=False) as gate:
        (tool,) = tcc.langchain.guard([StructuredTool.from_function(save)], gate)
        call = {"name": "save", "args": {"data": [model]}, "id": "1", "type": "tool_call"}
        with gate.call("save", {"data": 1}) as before:
            waiting = threading.Thread(target=tool.invoke, args=(call,))
            waiting.start()
            time.sleep(0.3)
            model.id = 2
            before.done()
        waiting.join(20)
        assert json.loads(ran[0][0].model_dump_json())["id"] == 1


@pytest.mark.parametrize("given", [{"name": "a"}, {}])
def test_a_default_that_the_grammar_wants_is_a_copy_too(given: dict[str, str]) -> None:
    ran: list[Any] = []
    default = Hiding(name="d", secret="s")

    def save(name: str = "n", data: Hiding = default) -> str:
        """Save."""
        ran.append((name, data))
        return "saved"

    text = GRAMMAR.replace("data: json", "data: json, name?: text")
    with tcc.Gate(tcc.compile_text(text), durable=False) as gate:
        (tool,) = tcc.langchain.guard([StructuredTool.from_function(save)], gate)
        tool.invoke({"name": "save", "args": given, "id": "1", "type": "tool_call"})
    assert ran[0][0] == given.get("name", "n")
    assert ran[0][1] is not default and ran[0][1].secret == "none"

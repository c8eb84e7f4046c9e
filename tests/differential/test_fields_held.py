"""Fields of version 1.2 from text to verdict: lists, records, times, places, answers."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.values.canonical import digest
from tests.oracle_session.writer import KEY, named, sealed

DESK = """grammar desk version "1"

tool get_user(user: text max 20)
  gives (tier: gold | silver | * at "/membership", sure?: yes | no,
         methods: list of text at "/payments/*/id", since: time utc, name?: text or null)
tool book(user: text max 20, payments: json, paid_by: list max 3 of text at "/payments/*/id",
          passengers: list of (first: text, age?: integer 0 .. 200 at "/years"), day?: date or null)
tool cancel(user: text max 20)

plan = any{0,30}

limit depth <= 30
"""
METHODS = "before book require every paid_by(it in last(get_user(same user)).methods)"
PEOPLE = "before book require count(passengers) <= 2 and every passengers(age = null or age >= 18)"
TIER = "before cancel require no get_user(same user) or last(get_user(same user)).tier != silver"
STATEMENTS = (METHODS, PEOPLE, TIER)
GOOD = {
    "membership": "gold",
    "sure": "yes",
    "payments": [{"id": "v1", "more": 1}, {"id": "v2"}],
    "since": "2024-05-01T10:00:00",
    "name": None,
}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="tcc.gate")


@cache
def compiled(text: str) -> tcc.Artifact:
    return tcc.compile_text(text)


class Desk:
    def __init__(self, folder: Path, *statements: str, show: tuple[str, ...] = ()) -> None:
        self.artifact = compiled(DESK + "\n".join(statements))
        self.ledger, self.show = folder / "s.ledger", show
        self.gate = self.opened(show=show)

    def opened(self, **options: Any) -> tcc.Gate:
        return tcc.Gate(self.artifact, ledger=self.ledger, key=KEY, durable=False, **options)

    def code(self, tool: str, **arguments: Any) -> str | None:
        code = self.gate.check(tool, arguments).code
        return None if code is None else str(code)

    def user(self, answer: Any, user: str = "u") -> tcc.Permit:
        with self.gate.call("get_user", {"user": user}) as permit:
            permit.done(answer)
        return permit

    def book(self, paid: Any = (), people: Any = (), **more: Any) -> dict[str, Any]:
        payments = [{"id": one} for one in paid]
        return {"user": "u", "payments": payments, "passengers": list(people), **more}


def test_lists_records_and_places_decide(tmp_path: Path) -> None:
    desk = Desk(tmp_path, *STATEMENTS)
    assert desk.code("book", **desk.book(["v1"])) == "R202"
    assert not desk.user(GOOD).unforeseen
    assert desk.code("book", **desk.book(["v1", "v2"])) is None
    assert desk.code("book", **desk.book([])) is None
    assert desk.code("book", **desk.book(["v3"])) == "R202"
    assert desk.code("book", **desk.book(["v1"], [{"first": "a", "years": 17}])) == "R202"
    assert desk.code("book", **desk.book(["v1"], [{"first": "a"}, {"first": "b"}])) is None
    assert desk.code("book", **desk.book(["v1"], [{"first": "a"}] * 3)) == "R202"
    desk.gate.close()
    desk.gate = desk.opened()
    assert desk.code("book", **desk.book(["v3"])) == "R202"
    assert desk.code("book", **desk.book(["v2"], [{"first": "a", "secret": "s"}])) == "R105"
    with desk.gate.call("book", desk.book(["v2"], [{"first": "a"}])) as permit:
        permit.done({})
    desk.gate.finish()
    desk.gate.close()
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())
    assert "secret" not in desk.ledger.read_text()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"payments": {"a": 3}}, "R103"),
        ({"payments": 3}, "R103"),
        ({"payments": [{"id": "v"}, {}]}, "R103"),
        ({"payments": [{"id": 1}]}, "R105"),
        ({"payments": [{"id": "v"}] * 4}, "R105"),
        ({"payments": [{"id": "v"}] * 100_000}, "R105"),
        ({"passengers": "ab"}, "R105"),
        ({"passengers": [{"first": 1}]}, "R105"),
        ({"passengers": [{}]}, "R105"),
        ({"passengers": [{"first": "a", "years": 1.5}]}, "R105"),
        ({"passengers": [{"first": "a", "age": 3}]}, "R105"),
        ({"passengers": [{"first": "a"}, {"first": "a", "": None}]}, "R105"),
        ({"passengers": [{"first": "\ud800"}]}, "R106"),
        ({"passengers": [{"first": "a"}] * 1001}, "R105"),
        ({"passengers": list(range(1_000_000))}, "R105"),
        ({"day": "2024-02-30"}, "R105"),
        ({"day": 20240501}, "R105"),
        ({"paid_by": ["v1"]}, "R102"),
        ({"user": None}, "R105"),
        ({"day": None}, None),
        ({"day": "2024-05-01"}, None),
    ],
)
def test_arguments_of_another_type_are_refused(
    change: dict[str, Any], code: str | None, tmp_path: Path
) -> None:
    desk = Desk(tmp_path)
    assert desk.code("book", **{**desk.book(["v1"]), **change}) == code


def nested(depth: int) -> Any:
    found: Any = "v"
    for _ in range(depth):
        found = [found]
    return found


class Odd(dict[str, Any]):
    """A class of its own is read by nothing but what JSON's types have."""

    def __getitem__(self, name: str) -> Any:
        raise AssertionError("it is asked")


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "gold",
        {},
        {**GOOD, "payments": "none"},
        {**GOOD, "payments": [{"id": 1}]},
        {**GOOD, "payments": [{"id": "v1"}, {"no": "v2"}]},
        {**GOOD, "payments": [{"id": "v"}] * 1001},
        {**GOOD, "payments": list(range(1_000_000))},
        {**GOOD, "payments": nested(5000)},
        {**GOOD, "payments": [{"id": nested(5000)}]},
        {**GOOD, "payments": [{"id": "\ud800"}]},
        {**GOOD, "payments": [{"id": "x" * (50 << 20)}]},
        {**GOOD, "payments": Odd(a={"id": "v1"})},
        {**GOOD, "payments": {"a": float("nan")}},
    ],
)
def test_an_answer_that_cannot_be_read_is_unknown_and_ends_nothing(
    answer: Any, tmp_path: Path
) -> None:
    desk = Desk(tmp_path, *STATEMENTS)
    assert not desk.user(GOOD).unforeseen
    assert desk.user(answer).unforeseen
    assert desk.code("book", **desk.book(["v1"])) == "R202"
    assert desk.ledger.stat().st_size < 1 << 22
    desk.gate.close()
    desk.gate = desk.opened()
    assert desk.code("book", **desk.book(["v1"])) == "R202"
    assert not desk.user(GOOD).unforeseen
    assert desk.code("book", **desk.book(["v1"])) is None
    desk.gate.finish()
    desk.gate.close()
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert (found.claim_type, found.checked["unforeseen"]) == ("Conformant", 1)


def test_what_is_not_listed_is_a_value_where_that_is_listed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, *STATEMENTS)
    permit = desk.user({**GOOD, "membership": "bronze"})
    assert (permit.unforeseen, desk.gate.history[0].observed["tier"]) == (False, "*")
    assert desk.code("cancel", user="u") is None
    desk.user({**GOOD, "membership": "silver"})
    assert desk.code("cancel", user="u") == "R202"
    desk.user({k: v for k, v in GOOD.items() if k != "membership"})
    assert desk.code("cancel", user="u") == "R202"  # it may have been silver
    assert desk.gate.history[-1].observed == {"sure": "yes"}
    desk.user({k: v for k, v in GOOD.items() if k != "sure"})
    assert (desk.gate.history[-1].unforeseen, desk.gate.history[-1].observed["sure"]) == (False, "")
    assert desk.code("cancel", user="u") is None


# Ledgers: every member that is new, changed and sealed again by whoever has the key.

Records = list[dict[str, Any]]


def made(folder: Path, show: tuple[str, ...] = ()) -> tuple[Desk, Records]:
    desk = Desk(folder, *STATEMENTS, show=show)
    desk.user(GOOD)
    with desk.gate.call("book", desk.book(["v1"], [{"first": "a", "years": 18}])) as permit:
        permit.done({})
    with desk.gate.call("get_user", {"user": "u"}) as permit:
        permit.unknown("gone")
    desk.gate.resolve(3, "done", {**GOOD, "payments": [{"id": "w"}]})
    with desk.gate.call("book", desk.book(["w"])) as permit:
        permit.done({})
    desk.gate.finish()
    desk.gate.close()
    assert tcc.validate(desk.ledger, desk.artifact, key=KEY).claim_type == "Conformant"
    assert tcc.validate(desk.ledger, desk.artifact).claim_type == "Conformant"
    lines = desk.ledger.read_bytes().splitlines()
    return desk, [
        {name: value for name, value in json.loads(line).items() if name not in ("mac", "~")}
        for line in lines
    ]


def short(text: str, kind: bytes = b"s") -> str:
    """An element as a ledger has it."""
    return digest(KEY, kind, text.encode()).hex()[:32]


def of(*texts: str) -> dict[str, Any]:
    return {"of": [{"digest": short(text)} for text in texts]}


def entry(value: Any, elements: Any = ()) -> dict[str, Any]:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return {"digest": digest(KEY, b"j", text.encode()).hex(), "of": elements}


def paid(*texts: str) -> dict[str, Any]:
    return entry(list(texts), of(*texts)["of"])


def shown(value: Any) -> dict[str, Any]:
    text = json.dumps(value, separators=(",", ":"), sort_keys=True)
    return {"digest": digest(KEY, b"j", text.encode()).hex(), "type": "j", "value": text}


def put(line: int, *path: str, value: Any) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        at: Any = records[line]
        for name in path[:-1]:
            at = at[name]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


def people(*records: Any) -> Callable[[Records], None]:
    return put(3, "open", "passengers", value=entry([], list(records)))


def test_a_field_of_an_argument_that_is_shown_is_what_stands_there(tmp_path: Path) -> None:
    desk, records = made(tmp_path, ("book.payments",))
    records[3]["open"]["paid_by"] = paid()  # would be allowed
    desk.ledger.write_bytes(sealed([named(records[0]), *records[1:]]))
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert [(str(one.code), one.field) for one in found.findings] == [
        ("S204", "open: book.paid_by")
    ]


def test_so_is_a_listed_one(tmp_path: Path) -> None:
    artifact = compiled(
        """grammar g version "1"
tool book(kind?: eco | biz at "/body/kind", body: json)
limit count(book(kind != null, kind = biz)) <= 1
before book require body != null
limit depth <= 4
"""
    )
    ledger = tmp_path / "s.ledger"
    with tcc.Gate(artifact, ledger=ledger, key=KEY, show=["book.body"]) as gate:
        for body in ({"kind": "eco"}, {"kind": "biz"}, {}):
            with gate.call("book", {"body": body}) as permit:
                permit.done({})
        gate.finish()
    assert tcc.validate(ledger, artifact, key=KEY).findings == ()
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
    for line, said in (
        (1, "book(kind=biz)"),
        (3, "book"),
        (3, "book(kind=eco)"),
        (5, "book(kind=eco)"),
    ):
        forged = [*records[:line], {**records[line], "call": said}, *records[line + 1 :]]
        ledger.write_bytes(sealed(forged))
        found = [
            (str(one.code), one.field) for one in tcc.validate(ledger, artifact, key=KEY).findings
        ]
        assert ("S204", "open: book.kind") in found, (line, said)


def test_a_place_in_a_list_of_records_is_read_where_the_fields_alone_are_shown(
    tmp_path: Path,
) -> None:
    artifact = compiled(
        """grammar g version "1"

tool book(legs: list of (number: text), prices: list of number 0 .. 100 at "/legs/*/price")

before book require every prices(it <= 5) and every legs(number = "a")
limit depth <= 3
"""
    )
    ledger = tmp_path / "s.ledger"
    with tcc.Gate(artifact, ledger=ledger, key=KEY) as gate:
        with gate.call("book", {"legs": [{"number": "a", "price": 3}]}) as permit:
            permit.done({})
        assert gate.check("book", {"legs": [{"number": "a", "price": 3, "x": 1}]}).code == "R105"
        gate.finish()
    assert tcc.validate(ledger, artifact, key=KEY).findings == ()


def test_a_pointer_is_the_artifacts(tmp_path: Path) -> None:
    desk, _ = made(tmp_path)
    other = tcc.compile_text(DESK.replace("/payments/*/id", "/payments/*/no") + METHODS)
    found = tcc.validate(desk.ledger, other, key=KEY)
    assert (str(found.findings[0].code), found.findings[0].field) == ("L202", "artifact")


def test_members_of_an_object_stand_in_the_order_of_their_names(tmp_path: Path) -> None:
    desk = Desk(tmp_path, *STATEMENTS, show=("book.payments",))
    desk.user({**GOOD, "payments": {"b": {"id": "v1"}, "a": {"id": "v2"}}})
    arguments = {**desk.book(), "payments": {"z": {"id": "v1"}, "y": {"id": "v2"}}}
    with desk.gate.call("book", arguments) as permit:
        permit.done({})
    desk.gate.close()
    desk.gate = desk.opened()
    assert desk.code("book", **{**arguments, "payments": {1: {"id": "v1"}}}) == "R106"
    desk.gate.finish()
    records = [json.loads(line) for line in desk.ledger.read_bytes().splitlines()]
    assert records[2]["answers"]["methods"] == of("v2", "v1")
    assert records[3]["open"]["paid_by"] == paid("v2", "v1")


# Whatever a tool answers, and whatever an agent asks for: a decision, and a ledger that is valid.

SCALARS = (
    None, True, 0, -1.5, 1e300, float("nan"), 2**70, "", "v1", "\ud800", "2024-05-01", "x" * 300,
)  # fmt: skip
MEMBERS = (
    "membership", "sure", "payments", "since", "name", "id", "first", "years", "a/b", "*", "-1",
)  # fmt: skip


def drawn(rng: random.Random, depth: int) -> Any:
    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(SCALARS)
    if kind < 0.6:
        return [drawn(rng, depth - 1) for _ in range(rng.choice((0, 1, 2, 5)))]
    return {rng.choice(MEMBERS): drawn(rng, depth - 1) for _ in range(rng.choice((0, 1, 3, 5)))}


def spoiled(rng: random.Random, value: Any) -> Any:
    """The same value with something else somewhere in it."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        name = rng.choice(sorted(value))
        return {**value, name: spoiled(rng, value[name])}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return [*value[:at], spoiled(rng, value[at]), *value[at + 1 :]]
    return drawn(rng, 3)


@pytest.mark.parametrize("seed", range(12))
def test_any_answer_and_any_argument(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    desk = Desk(tmp_path, *STATEMENTS, show=("book.payments",) if seed % 2 else ())
    for _ in range(12):
        user = spoiled(rng, {"user": "u"}) if rng.random() < 0.3 else {"user": "u"}
        found = desk.gate.check("get_user", user)
        if found.allowed:
            with desk.gate.call("get_user", user) as permit:
                permit.done(spoiled(rng, GOOD) if rng.random() < 0.7 else drawn(rng, 4))
        asked = spoiled(rng, desk.book(["v1"], [{"first": "a", "years": 20}]))
        if desk.gate.check("book", asked).allowed:
            with desk.gate.call("book", asked) as permit:
                permit.done(drawn(rng, 2))
        if rng.random() < 0.2:
            desk.gate.close()
            desk.gate = desk.opened()
    desk.gate.finish(abandon=not desk.gate.may_finish)
    desk.gate.close()
    found = tcc.validate(desk.ledger, desk.artifact, key=KEY)
    assert not found.findings


# Records that differ in what no statement names.

DISTINCT = """grammar g version "1"

tool look(o: text) gives (rows: list distinct of (a: text, b: text))
tool pay(rows: list distinct of (a: text, b: text))

plan = any{0,9}

limit depth <= 9
before pay require look(count(rows) = 2)
before pay require every rows(a != "z")
"""


@pytest.mark.parametrize("show", [(), ("look.rows", "pay.rows")], ids=["digested", "shown"])
def test_records_that_differ_in_what_nothing_names_are_distinct(
    show: tuple[str, ...], tmp_path: Path
) -> None:
    artifact, ledger = compiled(DISTINCT), tmp_path / "s.ledger"
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, show=show)
    rows = [{"a": "x", "b": "1"}, {"a": "x", "b": "2"}]
    with gate.call("look", {"o": "1"}) as permit:
        permit.done({"rows": rows})
    assert not permit.unforeseen
    assert str(gate.check("pay", {"rows": rows + rows[:1]}).code) == "R105"
    gate.close()
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, show=show)
    with gate.call("pay", {"rows": rows}) as permit:
        permit.done({})
    gate.finish()
    gate.close()
    for key in (KEY, None):
        found = tcc.validate(ledger, artifact, key=key)
        assert (found.claim_type, found.findings) == ("Conformant", ())


INSIDE = """grammar g version "1"

tool look(o: text)
  gives (h: json, n: number at "/h/n", t?: text or null at "/h/t", rows: list of (a?: text),
         first: text at "/rows/0/a")
tool pay(o: text)

plan = any{0,9}

limit depth <= 9
before pay require no look(n = 3)
before pay require no look(t = "3")
before pay require no look(first = "3")
before pay require no look(every rows(a = "3"))
"""


@pytest.mark.parametrize("show", [(), ("look.h",), ("look.h", "look.n", "look.t", "look.rows")])
@pytest.mark.parametrize(
    "answer",
    [
        {"h": {"n": "a", "t": 3}, "rows": [{"a": "x"}]},
        {"h": {"n": 1, "t": None}, "rows": [{}]},
        {"h": {"t": "x"}, "rows": []},
        {"h": None, "rows": {}},
        {"rows": [{"a": 1}]},
    ],
)
def test_an_answer_inside_of_another_that_is_not_known_is_reopened(
    answer: Any, show: tuple[str, ...], tmp_path: Path
) -> None:
    artifact, ledger = compiled(INSIDE), tmp_path / "s.ledger"
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, show=show)
    with gate.call("look", {"o": "1"}) as permit:
        permit.done(answer)
    assert permit.unforeseen
    gate.close()
    with tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, show=show) as gate:
        assert str(gate.check("pay", {"o": "1"}).code) == "R202"
        gate.finish()
    for key in (KEY, None):
        found = tcc.validate(ledger, artifact, key=key)
        assert (found.claim_type, found.findings) == ("Conformant", ())


def test_what_stands_inside_of_what_is_shown_is_not_left_out(tmp_path: Path) -> None:
    artifact, ledger = compiled(INSIDE), tmp_path / "s.ledger"
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, show=("look.h",))
    with gate.call("look", {"o": "1"}) as permit:
        permit.done({"h": {"n": 1, "t": 3}, "rows": [{"a": "x"}]})
    gate.finish()
    gate.close()
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
    assert records[2]["answers"]["t"] == {"unknown": True}
    del records[2]["answers"]["t"]  # then it were none: `seen.t? ..` would hold
    ledger.write_bytes(sealed(records))
    found = tcc.validate(ledger, artifact, key=KEY).findings
    assert [(str(one.code), one.field) for one in found] == [("S204", "answers: look.t")]

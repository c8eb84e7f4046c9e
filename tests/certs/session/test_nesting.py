"""Fields that lie inside other fields: their entries agree with that place (S204)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tcc_certs.session import validate
from tests.oracle_session.writer import KEY, SessionWriter, artifact_of, sealed

SHOP = """grammar shop version "1"
tool look(order: text)
  gives (rows: list of (no: text at "/a/no", cost: number 0 .. 99, note?: text) at "/rows",
         nos: list of text at "/rows/*/a/no", top?: text at "/rows/0/a/no",
         final?: number at "/rows/-1/cost", state: open | shut at "/info/state",
         info?: object (state: text, due: time) at "/info", due?: time at "/info/due")
tool pay(kind?: eco | biz at "/meta/kind", meta: object (kind?: text, n: number),
         rows: list of (no: text at "/a/no", cost: number 0 .. 99, note?: text),
         nos: list of text at "/rows/*/a/no", lead?: text at "/rows/0/a/no",
         final?: number 0 .. 99 at "/rows/-1/cost", n?: number at "/meta/n")
limit depth <= 9
before pay require every nos(it ~ "[a-c]+") and every rows(cost <= 5, `no` != "zz") and n = 3
before pay require lead != "x" and final != 4 and meta.n = 3 and meta.kind != "x"
before pay require count(look.nos) < 20 and no look(top = "q" or final = 7)
before pay require no look.rows(cost = 8 or `no` = "t") and no look(due = "2020-01-01")
before pay require no look(info.state = "gone" or info.due = "2021-01-01")
"""
ROWS = [{"a": {"no": "a"}, "cost": 1}, {"a": {"no": "bc"}, "cost": 5}]
PAY = {"rows": ROWS, "meta": {"kind": "eco", "n": 3}}
ANSWER = {"rows": ROWS, "info": {"state": "open", "due": "2026-01-02T00:00:00Z"}}


def session(show: tuple[str, ...] = ()) -> SessionWriter:
    writer = SessionWriter(artifact_of(SHOP), show=show)
    writer.made("look", ANSWER, order="o")
    writer.made("pay", None, **PAY)
    return writer


SHOWN = ("look.info", "look.rows", "pay.meta", "pay.rows")


@pytest.mark.parametrize("key", [None, KEY])
@pytest.mark.parametrize("show", [(), SHOWN])
def test_entries_agree(show: tuple[str, ...], key: bytes | None) -> None:
    writer = session(show)
    found = validate(writer.ledger(), writer.artifact, key=key)
    assert found.word == "INCOMPLETE", found.findings


def swapped(name: str, other: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        entries[name] |= entries[other]

    return change


def dropped(name: str) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        del entries[name]

    return change


def put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        entries[name] = value

    return change


def inner(name: str, *path: Any, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(entries: dict[str, Any]) -> None:
        entry = entries[name]
        for step in path[:-1]:
            entry = entry[step]
        entry[path[-1]] = value

    return change


HALF = "0" * 32
FORGED: list[tuple[str, str, Callable[[dict[str, Any]], None]]] = [
    # Arguments: the digest, the number of elements, absence and presence.
    ("open", "nos", inner("nos", "of", 0, "digest", value=HALF)),
    ("open", "nos", inner("nos", "of", value=[])),
    ("open", "nos", inner("rows", "of", 0, "of", "no", "digest", value=HALF)),
    ("open", "lead", inner("lead", "digest", value="0" * 64)),
    ("open", "lead", dropped("lead")),
    ("open", "final", inner("final", "digest", value="0" * 64)),
    ("open", "final", dropped("final")),
    ("open", "n", inner("meta", "of", "n", "digest", value=HALF)),
    ("open", "n", dropped("n")),
    # Answers.
    ("answers", "nos", put("nos", {"size": 3})),
    ("answers", "top", inner("top", "digest", value="0" * 64)),
    ("answers", "top", dropped("top")),
    ("answers", "final", inner("final", "digest", value="0" * 64)),
    ("answers", "due", inner("due", "digest", value="0" * 64)),
    ("answers", "due", inner("info", "of", "due", "digest", value=HALF)),
]


@pytest.mark.parametrize("at", range(len(FORGED)))
def test_an_entry_that_contradicts_its_place_is_refused(at: int) -> None:
    member, name, change = FORGED[at]
    writer = session()
    records = json.loads(json.dumps(writer.records))
    line = 3 if member == "open" else 2
    change(records[line][member])
    found = validate(sealed(records), writer.artifact)
    tool = "pay" if member == "open" else "look"
    item = found.findings[0]
    assert (item.code.value, item.line, item.field) == (
        "S204",
        line + 1,
        f"{member}: {tool}.{name}",
    )


def test_an_answer_that_is_unknown_may_have_another_type() -> None:
    writer = session()
    records = json.loads(json.dumps(writer.records))
    records[2]["answers"]["top"] = {"unknown": True}
    found = validate(sealed(records), writer.artifact)
    assert found.findings[0].code == "S302"  # the statement about `top` is unsure


def test_an_empty_list_has_no_first_element() -> None:
    writer = SessionWriter(artifact_of(SHOP))
    writer.call("pay", rows=[], meta={"n": 3}, force=True)
    assert {"lead", "final"}.isdisjoint(writer.records[1]["open"])
    records = json.loads(json.dumps(writer.records))
    records[1]["open"]["lead"] = {"digest": "0" * 64}
    found = validate(sealed(records), writer.artifact)
    assert (found.findings[0].code, found.findings[0].field) == ("S204", "open: pay.lead")


def test_a_listed_argument_agrees_with_the_value_that_is_shown() -> None:
    writer = session(SHOWN)
    records = json.loads(json.dumps(writer.records))
    assert records[3]["call"] == "pay(kind=eco)"
    records[3]["call"] = "pay(kind=biz)"
    found = validate(sealed(records), writer.artifact)
    assert (found.findings[0].code, found.findings[0].field) == ("S204", "open: pay.kind")


def test_with_the_key_a_listed_argument_agrees_with_a_digest() -> None:
    writer = session()
    records = json.loads(json.dumps(writer.records))
    records[3]["call"] = "pay(kind=biz)"
    assert not any(
        item.code == "S204" for item in validate(sealed(records), writer.artifact).findings
    )
    found = validate(sealed(records), writer.artifact, key=KEY)
    assert (found.findings[0].code, found.findings[0].field) == ("S204", "open: pay.kind")

"""What a ledger has of values that statements of version 1.2 name, changed and sealed again.

Whoever seals it has the key.  What is not refused is another session that might have been.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_certs.values.canonical import digest
from tests.oracle_session.writer import KEY, named, sealed

Records = list[dict[str, Any]]

SHOP = """grammar shop version "1"

given owner: text, teams: list of text

tool look(order: text)
  gives (state: open | shut, by: text, cards: list distinct of text at "/cards/*/id",
         first: text at "/cards/0/id", due: time utc,
         rows: list of (no: text at "/a/no", cost: number 0 .. 99, note?: text) at "/rows",
         nos: list of text at "/rows/*/a/no")
tool pay(kind?: eco | biz, order: text, card: text, fee: number 0 .. 99, code: integer 0 .. 9,
         rows: list of (no: text at "/a/no", cost: number 0 .. 99, note?: text),
         nos: list of text at "/rows/*/a/no", lead?: text at "/rows/0/a/no",
         final?: number 0 .. 99 at "/rows/-1/cost", whole: json at "")

before pay {
  let latest = last(look(same order))
  require latest.by = session.owner
      and card in latest.cards
      and latest.state = open
      and now <= latest.due
}
before pay require every nos(it ~ "[a-c]+") and every rows(cost <= 5, `no` != "zz") and code = 3
before pay require no look(first ~ "x.*")
limit sum(pay.fee) <= 9
before pay require last(look(same order)).nos = nos

plan = any{0,9}

limit depth <= 9
"""
ROWS = [{"a": {"no": "a"}, "cost": 1, "more": 2}, {"a": {"no": "bc"}, "cost": 5}]
ANSWER = {
    "state": "open",
    "by": "ann",
    "cards": [{"id": "c1"}, {"id": "c2"}],
    "due": "2030-01-01T00:00:00",
    "rows": ROWS,
}
PAY = {"order": "o", "card": "c2", "fee": 4, "code": 3, "rows": ROWS, "kind": "eco"}
GIVEN = {"owner": "ann", "teams": ["t"]}
EVERYTHING = ("pay.order", "pay.card", "pay.fee", "pay.code", "pay.rows", "pay.nos", "pay.whole")


@cache
def artifact(text: str = SHOP) -> Any:
    return tcc.compile_text(text)


def made(folder: Path, show: tuple[str, ...] = ()) -> tuple[Path, Records]:
    ledger = folder / "s.ledger"
    gate = tcc.Gate(artifact(), ledger=ledger, key=KEY, durable=False, given=GIVEN, show=show)
    with gate.call("look", {"order": "o"}) as permit:
        permit.done(ANSWER)
    with gate.call("pay", PAY) as permit:
        permit.done({})
    with gate.call("look", {"order": "p"}) as permit:
        permit.unknown("gone")
    with gate.call("look", {"order": "q"}) as permit:
        permit.unknown("gone")
    gate.resolve(4, "done", ANSWER)
    gate.resolve(3, "done", {**ANSWER, "cards": []})
    gate.finish()
    gate.close()
    for key in (KEY, None):
        found = tcc.validate(ledger, artifact(), key=key)
        assert (found.claim_type, found.findings) == ("Conformant", ()), key
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    return ledger, [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]


def verdict(ledger: Path, records: Records, key: bytes | None = KEY) -> list[tuple[str, str]]:
    from tcc_certs.values.canonical import call_key

    head = named(records[0])
    rest = [
        {**one, "key": call_key(KEY, head["session_id"], one["seq"]).hex()}
        if one["kind"] == "call"
        else one
        for one in records[1:]
    ]
    ledger.write_bytes(sealed([head, *rest]))
    found = tcc.validate(ledger, artifact(), key=key)
    return [(str(one.code), one.field) for one in found.findings]


def whole(text: str, kind: bytes = b"s") -> str:
    return digest(KEY, kind, text.encode()).hex()


def short(text: str) -> str:
    return whole(text)[:32]


def test_a_ledger_has_no_text_that_a_statement_compares(tmp_path: Path) -> None:
    ledger, records = made(tmp_path)
    text = ledger.read_text()
    for private in ('"c1"', '"c2"', '"bc"', '"ann"', "more"):
        assert private not in text
    # The list is named as a whole nowhere: of its records the fields that are named.
    assert records[3]["open"]["rows"]["of"] == [
        {"cost": "1", "no": short("a")}, {"cost": "5", "no": short("bc")},
    ]  # fmt: skip
    assert records[3]["open"]["nos"]["like"] == "11"
    assert records[2]["answers"]["due"]["value"] == '"2030-01-01T00:00:00"'
    assert records[2]["answers"]["cards"] == {"of": [short("c1"), short("c2")]}
    assert records[3]["open"]["code"]["value"] == "3"
    said = tcc.validate(ledger, artifact(), key=KEY).asserted
    marked = (
        "that texts of look.first, look.nos, pay.nos match the patterns asked of them as is said"
    )
    assert [one for one in said if marked in one]


Change = Callable[[Records], object]


def at(line: int, *path: Any, value: Any = None) -> Change:
    def change(records: Records) -> None:
        where: Any = records[line]
        for name in path[:-1]:
            where = where[name]
        if value is None:
            del where[path[-1]]
        else:
            where[path[-1]] = value

    return change


FORGED: list[tuple[str, Change, str, str]] = [
    ("digest of an answer", at(2, "answers", "by", "digest", value=whole("bob")), "S302", "call"),
    ("of another type byte", at(2, "answers", "by", "digest", value=whole("ann", b"j")), "S302",
     "call"),
    ("digest of an argument", at(3, "open", "card", "digest", value=whole("c3")), "S302", "call"),
    ("digest of the order", at(3, "open", "order", "digest", value=whole("o2")), "S302", "call"),
    ("an element", at(2, "answers", "cards", "of", 1, value=short("c3")), "S302", "call"),
    ("an element twice", at(2, "answers", "cards", "of", 0, value=short("c2")), "S204",
     "answers: cards"),
    ("blanks in an element", at(2, "answers", "cards", "of", 1, value=f"{short('c2')[:30]}  "),
     "S204", "answers: cards"),
    ("large letters", at(2, "answers", "cards", "of", 1, value=short("c2").upper()), "S204",
     "answers: cards"),
    ("an element less", at(2, "answers", "nos", value={"of": [short("a")], "like": "1"}), "S302",
     "call"),
    ("a number of a record", at(3, "open", "rows", "of", 0, "cost", value="6"), "S302", "call"),
    ("a number as a number", at(3, "open", "rows", "of", 0, "cost", value=1), "S204", "open: rows"),
    ("a digest for a number", at(3, "open", "rows", "of", 0, "cost", value=short("1")), "S204",
     "open: rows"),
    ("a field of a record gone", at(3, "open", "rows", "of", 0, "cost"), "S204", "open: rows"),
    ("a field that nobody names", at(3, "open", "rows", "of", 0, "note", value=short("n")), "S204",
     "open: rows"),
    ("a mark", at(3, "open", "nos", "like", value="10"), "S205", "open: nos"),
    ("a mark that is not sure", at(3, "open", "nos", "like", value="1-"), "S205", "open: nos"),
    ("a mark too few", at(3, "open", "nos", "like", value="1"), "S204", "open: nos"),
    ("no marks", at(3, "open", "nos", "like"), "S203", "open: pay.nos"),
    ("a mark of no form", at(3, "open", "nos", "like", value="1x"), "L103", "open"),
    ("marks where none are asked", at(3, "open", "card", "like", value="1"), "S203",
     "open: pay.card"),
    ("another mark of one text", at(9, "answers", "first", "like", value="1"), "S205",
     "answers: first"),
    ("a stamp before the due", at(3, "at_ms", value=1 << 47), "S302", "call"),
    ("a stamp that goes back", at(1, "at_ms", value=5), "S201", "at_ms"),
    ("a given text", at(0, "given", "owner", "digest", value=whole("bob")), "S302", "call"),
    ("a given list", at(0, "given", "teams", "of", value=[]), "S101", "given: teams"),
    ("the digests of constants", at(0, "constants", 0, value="0" * 64), "S205", "constants"),
    ("two constants changed about",
     lambda records: records[0]["constants"].reverse(), "S205", "constants"),
    ("a number that is ordered", at(3, "open", "code", "value", value="4"), "S205",
     "open: pay.code"),
    ("a number of another text", at(3, "open", "code", "value", value="03"), "S204",
     "open: pay.code"),
    ("a number not shown", lambda records: records[3]["open"].update(
        code={"digest": whole("3", b"n")}), "S203", "open: pay.code"),
    ("a time", at(2, "answers", "due", "value", value='"2020-01-01T00:00:00"'), "S205",
     "answers: look.due"),
    # A place in what stands there by its digests.
    ("what stands in a record", at(3, "open", "nos", "of", 0, value=short("b")), "S204",
     "open: pay.nos"),
    ("the first of them", at(3, "open", "lead", "digest", value=whole("b")), "S204",
     "open: pay.lead"),
    ("no first of them", at(3, "open", "lead"), "S204", "open: pay.lead"),
    ("the last number", at(3, "open", "final", value={"digest": whole("4", b"n"), "type": "n",
                                                     "value": "4"}), "S203", "open: pay.final"),
    # The order of what was said late.
    ("resolved twice", lambda records: records.insert(10, dict(records[9])), "S212", "seq"),
    ("resolved before its call", lambda records: records.insert(7, records.pop(9)), "S212", "seq"),
    ("resolved, and then an outcome", lambda records: records.insert(8, records.pop(9)), "L104",
     "kind"),
    ("resolved with what nobody asked for", at(9, "answers", "more", value={"digest": whole("x")}),
     "S210", "answers"),
    ("another's answer", lambda records: records[10].update(answers=records[9]["answers"]), "", ""),
    ("the other one first", lambda records: records.insert(9, records.pop(10)), "", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("what", "change", "code", "field"), FORGED, ids=[one[0] for one in FORGED]
)
def test_a_forged_member_is_refused(
    what: str, change: Change, code: str, field: str, tmp_path: Path
) -> None:
    ledger, records = made(tmp_path)
    change(records)
    found = verdict(ledger, records)
    if not code:
        assert found == []  # that answers were the tool's is asserted
        return
    assert (code, field) in found, found


def test_without_the_key_what_is_shown_agrees_with_what_is_digested(tmp_path: Path) -> None:
    ledger, records = made(tmp_path, EVERYTHING)
    records[3]["open"]["nos"]["like"] = "10"
    assert verdict(ledger, records, None) == [("S205", "open: pay.nos")]


SHOWN: list[tuple[str, Change, str, str]] = [
    ("an element", at(3, "open", "rows", "of", 0, "no", value=short("b")), "S205",
     "open: pay.rows"),
    ("a mark", at(3, "open", "nos", "like", value="10"), "S205", "open: pay.nos"),
    ("a place in a record", lambda records: records[3]["open"].update(
        nos=_list(["a", "bb"])), "S204", "open: pay.nos"),
    ("the first record's", lambda records: records[3]["open"]["lead"].update(
        digest=whole("b")), "S204", "open: pay.lead"),
    ("the last record's", lambda records: records[3]["open"]["final"].update(
        digest=whole("4", b"n")), "S204", "open: pay.final"),
    ("all arguments", lambda records: records[3]["open"].update(whole=_whole(fee=5)), "S204",
     "open: pay.fee"),
]  # fmt: skip


def _list(texts: list[str]) -> dict[str, Any]:
    text = json.dumps(texts, separators=(",", ":"))
    more = {"of": list(map(short, texts)), "like": "1" * len(texts)}
    return {"digest": whole(text, b"j"), "type": "j", "value": text, **more}


def _whole(**changed: Any) -> dict[str, Any]:
    text = json.dumps({**PAY, **changed}, separators=(",", ":"), sort_keys=True)
    return {"digest": whole(text, b"j"), "type": "j", "value": text}


@pytest.mark.parametrize(("what", "change", "code", "field"), SHOWN, ids=[s[0] for s in SHOWN])
def test_what_is_shown_is_held_to_as_well(
    what: str, change: Change, code: str, field: str, tmp_path: Path
) -> None:
    ledger, records = made(tmp_path, EVERYTHING)
    change(records)
    found = verdict(ledger, records)
    assert found == ([(code, field)] if code else [])


WHOLE = """grammar g version "1"

tool pay(kind?: eco | biz, order: text, fee: number 0 .. 9, all: json at "")

plan = any{0,9}

before pay require order != "zz"
"""


def test_the_arguments_as_a_whole_are_those_that_are_shown(tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    arguments = {"order": "o", "fee": 4, "kind": "eco"}
    show = ["pay.order", "pay.fee", "pay.all"]
    for shown in (show, ["pay.order", "pay.fee"]):
        ledger.unlink(missing_ok=True)
        gate = tcc.Gate(artifact(WHOLE), ledger=ledger, key=KEY, durable=False, show=shown)
        with gate.call("pay", arguments) as permit:
            permit.done({})
        gate.finish()
        gate.close()
        assert tcc.validate(ledger, artifact(WHOLE), key=KEY).findings == ()
        bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
        records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
        for text in (
            '{"fee":4,"kind":"biz","order":"o"}',
            '{"fee":4,"order":"o"}',
            '{"fee":4,"kind":"eco","order":"o","x":1}',
        ):
            changed = json.loads(json.dumps(records))
            changed[1]["open"]["all"]["digest"] = whole(text, b"j")
            if shown is show:
                changed[1]["open"]["all"]["value"] = text
            ledger.write_bytes(sealed(changed))
            found = tcc.validate(ledger, artifact(WHOLE), key=KEY).findings
            assert [str(one.code) for one in found] == ["S204"], (text, shown)


DAYS = """grammar g version "1"

tool pay(days: list of date "+02:00", times: list of time, a: text, b: text)

plan = any{0,9}

before pay require every days(it <= now) and every times(it <= now) and a = b
"""


def test_a_time_that_no_text_stands_for_is_none(tmp_path: Path) -> None:
    ledger, days = tmp_path / "s.ledger", ["0001-01-01", "2024-02-29"]
    times = ["0001-01-01T00:00:00+23:59", "2024-02-29T12:00:00Z"]
    gate = tcc.Gate(artifact(DAYS), ledger=ledger, key=KEY, durable=False)
    with gate.call("pay", {"days": days, "times": times, "a": "x", "b": "x"}) as permit:
        permit.done({})
    gate.finish()
    gate.close()
    assert tcc.validate(ledger, artifact(DAYS), key=KEY).findings == ()
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
    for name, by in (("days", 1), ("days", -86_400_000), ("times", -86_400_000)):
        changed = copy.deepcopy(records)
        changed[1]["open"][name]["of"][0] += by
        ledger.write_bytes(sealed(changed))
        found = tcc.validate(ledger, artifact(DAYS), key=KEY).findings
        assert [(str(one.code), one.field) for one in found] == [("S204", f"open: {name}")]


def test_values_that_are_shown_differ_where_statements_look(tmp_path: Path) -> None:
    ledger, fields = tmp_path / "s.ledger", {"days": [], "times": []}
    show = ["pay.a", "pay.b"]
    gate = tcc.Gate(artifact(DAYS), ledger=ledger, key=KEY, durable=False, show=show)
    with gate.call("pay", {**fields, "a": "x", "b": "x"}) as permit:
        permit.done({})
    gate.finish()
    gate.close()
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
    records[1]["open"]["b"] = {"digest": short("x") + "0" * 32, "type": "s", "value": "y"}
    ledger.write_bytes(sealed(records))
    found = tcc.validate(ledger, artifact(DAYS)).findings
    assert [(str(one.code), one.field) for one in found] == [("S205", "open: pay.b")]


LONG = """grammar g version "1"

tool pay(texts: list of text max 65535)

plan = any{0,9}

before pay require every texts(it ~ "(a|b|c)*(d|a)*(a|e|f|g|h)*")
"""


def test_a_shown_value_that_takes_too_long_to_match_is_none(tmp_path: Path) -> None:
    ledger = tmp_path / "s.ledger"
    gate = tcc.Gate(artifact(LONG), ledger=ledger, key=KEY, durable=False, show=["pay.texts"])
    with gate.call("pay", {"texts": ["a"]}) as permit:
        permit.done({})
    gate.finish()
    gate.close()
    bare = [json.loads(line) for line in ledger.read_bytes().splitlines()]
    records = [{k: v for k, v in one.items() if k not in ("~", "mac")} for one in bare]
    records[1]["open"]["texts"] = _list(["a" * 60_000] * 100)
    ledger.write_bytes(sealed(records))
    for key in (KEY, None):
        found = tcc.validate(ledger, artifact(LONG), key=key).findings
        assert [(str(one.code), one.field) for one in found] == [("S204", "open: pay.texts")]


# Whatever stands in a record: a verdict, and with the key none but INVALID of what is shown.

ODD: tuple[Any, ...] = (
    None, True, 0, 1, -5, "", "1", "x", "0" * 32, "0" * 64, "A" * 32, [], ["0" * 32], [[]], {},
    {"of": []}, {"digest": "0" * 64}, {"unknown": True}, "\u0661", 1 << 70, " " * 32, {"": None},
)  # fmt: skip


def _nodes(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    if isinstance(value, dict):
        for name, item in value.items():
            found += _nodes(item, (*path, name))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += _nodes(item, (*path, at))
    return found


@pytest.mark.parametrize("show", [(), EVERYTHING], ids=["digested", "shown"])
def test_whatever_a_record_has_a_verdict_comes_of_it(show: tuple[str, ...], tmp_path: Path) -> None:
    ledger, records = made(tmp_path, show)
    draw = random.Random(12)
    places = [
        path
        for path in _nodes(records)
        if {"open", "answers", "given", "constants"} & set(path[1:2]) and len(path) > 2
    ]
    passed = set()
    for _ in range(250):
        changed = copy.deepcopy(records)
        path = draw.choice(places)
        where: Any = changed
        for step in path[:-1]:
            where = where[step]
        odd = draw.choice(ODD)
        if draw.random() < 0.2:
            del where[path[-1]]
        elif isinstance(odd, float) or where[path[-1]] == odd:
            continue
        else:
            where[path[-1]] = odd
        key = draw.choice((KEY, None))
        try:
            found = verdict(ledger, changed, key)
        except (TypeError, ValueError, OverflowError):
            continue  # no canonical JSON: there is no such line
        if not found and key is not None and odd != {"unknown": True}:
            passed.add(path[2])
    # Another digest of what is not shown may be another session, and so is an answer that is not
    # known; of what is shown there is none.
    assert not passed & {"due", "fee", "code", 0, 1, *(n.removeprefix("pay.") for n in show)}

"""What no honest caller or tool sends: a code or an unknown answer at once, nothing let through.

A pointer into nothing, a list of 10^6, a text where a list is due, a time without a zone, a clock
that goes back, an answer of 50 MB, hostile nesting; each as an argument and as an answer.
"""

from __future__ import annotations

import logging
import time
import tracemalloc
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tcc
from tests.oracle_session.writer import KEY

TEXT = """grammar desk version "1"

tool read(order: text)
  gives (ids: list of text at "/rows/*/id", due: time, far: text at "/a/b/c/0/-1",
         whole: json at "", rows: list of (id: text, at: time at "/when"))
tool act(order: text, items: list of text at "/things/*/id", things: json, due: time,
         rows: list max 1000 of (id: text))

plan = any{0,99}

before act {
  let latest = last(read(same order))
  require every items(it in latest.ids)
      and latest.due <= due
      and latest.far != "x"
      and latest.rows(id = this.order, at <= this.due)
}
"""
ROW = {"id": "o", "when": "2024-01-01T00:00:00Z"}
ANSWER = {"rows": [ROW], "due": "2024-01-01T00:00:00Z", "a": {"b": {"c": [["y"]]}}}
ASKED = {
    "order": "o",
    "things": [{"id": "o"}],
    "due": "2024-01-02T00:00:00+01:00",
    "rows": [{"id": "x"}],
}


def nested(depth: int, inner: Any = "v", list_: bool = True) -> Any:
    for _ in range(depth):
        inner = [inner] if list_ else {"a": inner}
    return inner


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="tcc.gate")


@cache
def artifact() -> Any:
    return tcc.compile_text(TEXT)


def opened(folder: Path, **options: Any) -> Any:
    return tcc.Gate(artifact(), ledger=folder / "s.records", key=KEY, durable=False, **options)


def read(gate: Any, answer: Any) -> bool:
    with gate.call("read", {"order": "o"}) as permit:
        permit.done(answer)
    return bool(permit.unforeseen)


BAD_ANSWERS: dict[str, Any] = {
    "a pointer into nothing": {**ANSWER, "a": {"b": {}}},
    "a pointer into a text": {**ANSWER, "a": "b"},
    "a pointer into an empty list": {**ANSWER, "a": {"b": {"c": [[]]}}},
    "a list of 10^5": {**ANSWER, "rows": [ROW] * 100_000},
    "an object of 10^5": {**ANSWER, "rows": {f"r{i}": ROW for i in range(100_000)}},
    "a text where a list is due": {**ANSWER, "rows": "rows"},
    "a text where a record is due": {**ANSWER, "rows": ["o"]},
    "a time without a zone": {**ANSWER, "due": "2024-01-01T00:00:00"},
    "no time": {**ANSWER, "due": "2024-13-01T00:00:00Z"},
    "a leap second": {**ANSWER, "due": "2016-12-31T23:59:60Z"},
    "an answer of 50 MB": {**ANSWER, "a": {"b": {"c": [["x" * (50 << 20)]]}}},
    "elements of 50 MB": {**ANSWER, "rows": [{**ROW, "id": "x" * 70_000}] * 700},
    "hostile nesting": {**ANSWER, "rows": nested(100_000)},
    "nesting of objects": {**ANSWER, "a": nested(100_000, list_=False)},
    "nesting in an element": {**ANSWER, "rows": [{**ROW, "id": nested(100_000)}]},
    "half of a pair": {**ANSWER, "rows": [{**ROW, "id": "\ud800"}]},
    "nothing": None,
}


@pytest.mark.parametrize("what", BAD_ANSWERS)
@pytest.mark.sampled(4)
def test_an_answer_that_is_bad_is_unknown_and_lets_nothing_through(
    what: str, tmp_path: Path
) -> None:
    gate = opened(tmp_path)
    assert not read(gate, ANSWER)
    assert gate.check("act", ASKED).allowed
    begin = time.process_time()
    tracemalloc.start()
    assert read(gate, BAD_ANSWERS[what])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert str(gate.check("act", ASKED).code) == "R202"
    # Tracing makes all of it some five times slower; copies of an answer are no part of it.
    assert time.process_time() - begin < 20
    assert most < 400 << 20
    assert (tmp_path / "s.records").stat().st_size < 1 << 22
    gate.close()
    gate = opened(tmp_path)
    assert str(gate.check("act", ASKED).code) == "R202"
    assert not read(gate, ANSWER)
    assert gate.check("act", ASKED).allowed
    gate.finish()
    gate.close()
    found = tcc.validate(tmp_path / "s.records", artifact(), key=KEY)
    assert (found.claim_type, found.findings, found.checked["unforeseen"]) == ("Conformant", (), 1)


BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], str]] = {
    "a pointer into nothing": ({"things": [{"no": "o"}]}, "R103"),
    "a pointer into a text": ({"things": "o"}, "R103"),
    "a list of 10^6": ({"rows": [{"id": "x"}] * 1_000_000}, "R105"),
    "a list of 10^6 at a place": ({"things": [{"id": "o"}] * 1_000_000}, "R105"),
    "a text where a list is due": ({"rows": "x"}, "R105"),
    "a time without a zone": ({"due": "2024-01-02T00:00:00"}, "R105"),
    "a time as a number": ({"due": 1_704_067_200}, "R105"),
    "50 MB": ({"order": "x" * (50 << 20)}, "R105"),
    "50 MB of JSON": ({"things": [{"id": "o", "x": "x" * (50 << 20)}]}, "R105"),
    "hostile nesting": ({"rows": nested(100_000)}, "R105"),
    "nesting of JSON": ({"things": nested(100_000, list_=False)}, "R103"),
    "nesting in an element": ({"rows": [{"id": nested(100_000)}]}, "R105"),
    "half of a pair": ({"rows": [{"id": "\ud800"}]}, "R106"),
    "no number": ({"things": [{"id": "o", "n": float("nan")}]}, "R106"),
}


@pytest.mark.parametrize("what", BAD_ARGUMENTS)
@pytest.mark.sampled(7)
def test_an_argument_that_is_bad_is_refused_with_a_code(what: str, tmp_path: Path) -> None:
    gate = opened(tmp_path)
    read(gate, ANSWER)
    change, code = BAD_ARGUMENTS[what]
    begin = time.process_time()
    assert str(gate.check("act", {**ASKED, **change}).code) == code
    with pytest.raises(tcc.Refused), gate.call("act", {**ASKED, **change}):
        raise AssertionError("it is let through")
    assert time.process_time() - begin < 20
    assert gate.check("act", ASKED).allowed


def test_a_clock_that_goes_back_stands(tmp_path: Path) -> None:
    artifact = tcc.compile_text("""grammar g version "1"

tool read(order: text)
tool act(order: text)

plan = any{0,9}

before act require read(same order) within 1 h
""")
    times = iter([10_000_000, 10_000_001, 10_000_000])

    def clock() -> int:
        return next(times, 9_999_000)

    ledger = tmp_path / "s.records"
    with tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False, clock=clock) as gate:
        with gate.call("read", {"order": "o"}) as permit:
            permit.done({})
        for _ in range(3):
            with gate.call("act", {"order": "o"}) as permit:
                permit.done({})
        gate.finish()
    found = tcc.validate(ledger, artifact, key=KEY)
    assert (found.claim_type, found.findings) == ("Conformant", ())


@pytest.mark.parametrize(
    "pointer", ["a", "/a~", "/a~2b", "/" * 65, "/*/*/" + "x/" * 70, "/a/../b\x00"]
)
def test_a_pointer_that_is_none_is_an_error_of_the_grammar(pointer: str) -> None:
    text = f'grammar g version "1"\ntool a(b: json) gives (c: text at "{pointer}")\nplan = a?\n'
    try:
        tcc.compile_text(text)
    except tcc.CompileError as error:
        assert all(str(one.code).startswith("TCC") for one in error.diagnostics)
    else:
        assert pointer == "/a/../b\x00" or pointer == "/" * 65


MATCHED = """grammar g version "1"

tool read(order: text) gives (ids: list of text max 1000 ~ "([ab]*[cd]*){1,60}", free: list of text)
tool act(order: text, free: list of text)

plan = any{0,99}

before act {
  let latest = last(read(same order))
  require latest.ids(it = this.order)
      and every free(it ~ "(x|y|[xyz]*){1,90}")
      and every latest.free(it ~ "(x|y|[xyz]*){1,90}")
}
"""


def test_texts_that_take_too_long_to_match_are_unknown(tmp_path: Path) -> None:
    artifact = tcc.compile_text(MATCHED)
    ledger = tmp_path / "s.records"
    gate = tcc.Gate(artifact, ledger=ledger, key=KEY, durable=False)
    begin = time.process_time()
    for answer in (
        {"ids": ["ab" * 500] * 1000, "free": []},
        {"ids": [], "free": [f"xyz{i}" * 5000 for i in range(1000)]},
        {"ids": [], "free": ["z" * 65_536] * 1000},
    ):
        assert read(gate, answer)
        assert str(gate.check("act", {"order": "o", "free": []}).code) == "R202"
    for free in (["x" * 65_536] * 1000, [f"z{i}" * 9000 for i in range(1000)]):
        assert str(gate.check("act", {"order": "o", "free": free}).code) == "R105"
    assert time.process_time() - begin < 20
    assert not read(gate, {"ids": ["ab", "d"], "free": ["xy"]})
    gate.finish()
    gate.close()
    assert tcc.validate(ledger, artifact, key=KEY).findings == ()


def test_what_is_asked_and_not_made_is_not_remembered(tmp_path: Path) -> None:
    text = """grammar g version "1"

tool act(to: text)

plan = any{0,9}

before act require to ~ "a.*"
"""
    gate = tcc.Gate(tcc.compile_text(text), ledger=tmp_path / "s.records", key=KEY, durable=False)
    reader = gate._access.follower.values._reader
    for number in range(300):
        assert str(gate.check("act", {"to": f"b{number}"}).code) == "R202"
        assert gate.check("act", {"to": f"a{number}"}).allowed
        with pytest.raises(tcc.Refused), gate.call("act", {"to": f"c{number}"}):
            raise AssertionError("it is let through")
    assert len(reader._states) <= 1  # of the last one, until the next is asked
    with gate.call("act", {"to": "a"}) as permit:
        permit.done({})
    assert len(reader._states) == 1
    gate.finish(abandon=False)
    gate.close()


LISTS = """grammar g version "1"

tool read(k: text) gives (l: list of text)
tool act(k: text, l: list of text, m: list of text, n: list of text, note: text)

let all_equal(x, y) = every this.n(it = x and it = y)
let each_equal(x) = every this.m(all_equal(x, it))
let both_ways(x, c) = c.l(it = x and it != x)
let clash(c) = this.l(both_ways(it, c))

plan = any{0,200}
"""


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("every l(each_equal(it))", "R207"),
        ("read(same k, clash(it))", "R207"),
        ("no read(same k, clash(it))", "R207"),
        ('note ~ "(0|00)*.*z"', "R202"),
        ('last(read(same k)).l(it ~ "(0|00)*.*z")', "R202"),
    ],
)
@pytest.mark.sampled(2)
def test_a_decision_looks_at_no_more_than_it_has_time_for(
    condition: str, code: str, tmp_path: Path
) -> None:
    artifact = tcc.compile_text(f"{LISTS}before act require {condition}\n")
    many = [f"{number:04}" for number in range(1000)]
    with tcc.Gate(artifact, ledger=tmp_path / "s.records", key=KEY, durable=False) as gate:
        for _ in range(66):
            with gate.call("read", {"k": "a"}) as permit:
                permit.done({"l": many})
        asked = {"k": "a", "l": ["a"] * 1000, "m": ["a"] * 1000, "n": ["a"] * 1000}
        begun = time.process_time()
        assert gate.check("act", {**asked, "note": "0" * 40_000}).code == code
        assert time.process_time() - begun < 30


def test_few_elements_are_all_looked_at() -> None:
    artifact = tcc.compile_text(f"{LISTS}before act require every l(each_equal(it))\n")
    with tcc.Gate(artifact) as gate:
        few = {"k": "a", "l": ["a"] * 99, "m": ["a"] * 2, "n": ["a"] * 3, "note": ""}
        assert gate.check("act", few).allowed
        assert gate.check("act", {**few, "n": ["a", "b"]}).code == "R202"
        assert gate.check("act", {**few, "m": []}).allowed


def test_a_gate_in_memory_refuses_as_many_elements_as_one_with_a_ledger(tmp_path: Path) -> None:
    text = (
        'grammar g version "1"\ntool t(rows: list max 200 of (xs: list max 200 of text))\n'
        "before t require no t(same rows)\nlimit depth <= 9"
    )
    compiled = tcc.compile_text(text)
    arguments = {"rows": [{"xs": ["a"] * 100}] * 200}
    for ledger in (None, tmp_path / "s"):
        with tcc.Gate(compiled, ledger=ledger) as session:
            found = session.check("t", arguments)
            assert (found.code, found.place) == ("R105", "rows")
            assert session.check("t", {"rows": [{"xs": ["a"] * 100}] * 20}).allowed

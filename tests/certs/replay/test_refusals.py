"""What is refused where a record is malformed, or not the one that has to come: code and place."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import blake
from tcc_certs.formats.ledger import FIRST_HEAD
from tcc_certs.race.digest import Uniforms
from tcc_certs.replay import validate
from tcc_certs.replay.language import read_language, root_of
from tcc_certs.replay.races.coupled import again_anchored, logged_words, unlogged_words
from tcc_certs.replay.tree import root_node
from tcc_certs.statements import residual_constraints
from tests.forgery import test_range_forgeries as ranges
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.writer import chained, reference_records

Found = list[tuple[str, int, str]]


def findings(records: list[dict[str, Any]], artifact, **told) -> Found:
    """Code, line and field of each finding."""
    found = validate(chained(records), artifact, **told)
    return [(finding.code.value, finding.line, finding.field) for finding in found.findings]


def changed(records: list[dict[str, Any]], at: int, **fields: Any) -> list[dict[str, Any]]:
    """The ledger with fields of a record changed, or left out where they are None."""
    record = {name: value for name, value in {**records[at], **fields}.items() if value is not None}
    return [*records[:at], record, *records[at + 1 :]]


@pytest.mark.parametrize(
    ("told", "kind", "name"),
    [
        ({}, "node", "U"), ({}, "expand", "W"), ({}, "leaf", "U_P"),
        ({"race": "rest"}, "draw", "W"), ({"race": "rest"}, "rest", "U"),
        ({"keys": "anchored", "mode": "surrogate"}, "expand", "U"),
        ({"mode": "fallback"}, "node", "U"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("value", [None, "x", "", "-1", " 7", str(1 << 64), 7, "9" * 5000])
def test_without_the_seed_a_uniform_is_read_only_in_its_form(told, kind, name, value):
    records = reference_records(small(), withhold=True, top=3, **told)
    at = next(i for i, r in enumerate(records) if r["kind"] == kind and name in r and i > 1)
    assert findings(changed(records, at, **{name: value}), small()) == [("L103", at + 1, name)]


def test_uniforms_come_from_the_seed_or_from_the_record():
    record = {"kind": "node", "U": "7"}
    assert logged_words(record)(1, b"", "U") == 7
    for name in ("W", "kind"):
        with pytest.raises(Rejected) as caught:
            logged_words({"kind": 5})(1, b"", name)
        assert (caught.value.code.value, caught.value.path) == ("L103", name)
    key = Uniforms(bytes(32))
    assert unlogged_words(key)(1, b"d", "U") == key(1, b"d")
    with pytest.raises(Rejected) as caught:
        unlogged_words(None)(1, b"d", "U")
    assert (caught.value.code.value, caught.value.path) == ("D302", "seed")


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("V", "x", "L103"), ("node_id", 5, "L103"), ("V", "0.00000000000000000001", "L601")],
)
def test_a_record_out_of_turn_is_refused_for_its_form_first(name, value, code):
    records = reference_records(small(), top=3)
    at = next(i for i, r in enumerate(records) if r["kind"] == "expand" and i > 1)
    leaf = next(record for record in records if record["kind"] == "leaf")
    forged = [*records[:at], {**leaf, name: value}, *records[at:]]
    place = name if code == "L103" else "node_id"
    assert findings(forged, small()) == [(code, at + 1, place)]


def spaced(records: list[dict[str, Any]], at: int) -> tuple[bytes, str]:
    """The ledger up to a line with a space in it, linked right, and the head before that line."""
    lines = chained(records).splitlines(keepends=True)
    head = bytes.fromhex(lines[at - 1][-67:-3].decode()) if at else FIRST_HEAD
    body = lines[at].rpartition(b',"~":')[0].replace(b":", b": ", 1)
    link = blake(head + body + b"}").hex().encode()
    return b"".join(lines[:at]) + body + b',"~":"' + link + b'"}\n', head.hex()


@pytest.mark.parametrize("given", [{}, {"seed": bytes(32)}], ids=["withheld", "seed"])
def test_a_line_that_is_not_canonical_is_refused_at_its_own_place(given):
    records = reference_records(small(), top=3)
    for at, record in enumerate(records):
        data, head = spaced(records, at)
        found = validate(data, small(), **given)
        colon = chained([record]).index(b":") + 1  # where the space is
        (refused,) = found.findings
        assert (refused.code.value, refused.line) == ("L101", at + 1)
        assert refused.field == f"byte {colon}"
        assert (found.checked["records"], found.head) == (at, head)


def test_a_line_out_of_turn_is_refused_first_where_it_is_not_canonical():
    records = reference_records(small(), top=3)
    at = next(i for i, r in enumerate(records) if r["kind"] == "expand" and i > 1)
    leaf = next(record for record in records if record["kind"] == "leaf")
    data, head = spaced([*records[:at], leaf], at)
    found = validate(data, small(), seed=bytes(32))
    assert [(f.code.value, f.line) for f in found.findings] == [("L101", at + 1)]
    assert (found.checked["records"], found.head) == (at, head)


@pytest.mark.parametrize("stop", ["precision", "interrupted", "bound"])
def test_a_run_does_not_end_where_a_child_is_expected(stop):
    records = reference_records(small(), top=3)
    at = next(i for i, r in enumerate(records) if r["kind"] == "node" and i > 2)
    close = {**records[-1], "stop": stop, "claim_type": "NoCert"}
    assert findings([*records[:at], close], small()) == [("L602", at + 1, "kind")]


def test_only_an_answer_comes_after_an_ask():
    artifact, _, records = ranges.forged_run("node")
    for at, record in enumerate(records):
        if record["kind"] == "refine":
            others = [*records[:at], *records[at + 1 :]]
            assert findings(others, artifact) == [("L702", at + 1, "kind")]


def test_the_root_has_its_arrival_from_the_start():
    language, root = read_language(small()), root_of(small())
    node = root_node(root, residual_constraints(small(), None), None)
    with pytest.raises(Rejected) as caught:
        again_anchored(language, "r1", node)
    assert (caught.value.code.value, caught.value.path) == ("L104", "kind")

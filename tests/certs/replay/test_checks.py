"""Checks of the validator that no forged field shows, one at a time."""

from __future__ import annotations

from typing import Any

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.kernel import check
from tcc_certs.replay import header_check, validate
from tcc_certs.replay.header import read_header
from tcc_certs.replay.header_check import Seed, logged_seed
from tcc_certs.replay.run import Turn, capped, refuser
from tests.forgery import test_range_forgeries as ranges
from tests.oracle.cores import depth, letters, make_core
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.writer import chained, reference_records, with_run_id
from tests.runtime.graphs import build


def findings(records: list[dict[str, Any]], artifact, **told) -> list[tuple[str, int, str]]:
    """Code, line and field of each finding."""
    found = validate(chained(records), artifact, **told)
    return [(finding.code.value, finding.line, finding.field) for finding in found.findings]


def timed_out(before: str, limits: dict[str, int]) -> list[dict[str, Any]]:
    """A run with these limits that its clock ended where a record of that kind would come."""
    whole = reference_records(small(), top=3)
    at = next(i for i, record in enumerate(whole) if record["kind"] == before and i > 3)
    for pops in range(len(whole)):
        records = reference_records(small(), top=3, interrupt_after=pops)
        if len(records) == at + 1:
            break
    head = with_run_id({**records[0], "run_limits": limits})
    close = {**records[-1], "stop": "max_seconds", "guards": ["Timeout"]}
    return [head, *records[1:-1], close]


def test_a_clock_may_end_a_run_that_has_one_where_it_would_expand():
    assert findings(timed_out("expand", {"max_ms": 5}), small()) == []


@pytest.mark.parametrize(
    ("before", "limits"), [("leaf", {"max_ms": 5}), ("expand", {}), ("expand", {"sla_ms": 5})]
)
def test_no_clock_ends_another_run_or_one_before_a_leaf(before, limits):
    records = timed_out(before, limits)
    found = findings(records, small())
    assert found[0][0] == ("L201" if "sla_ms" in limits else "L607")
    if "sla_ms" not in limits:
        assert found[0][1:] == (len(records), "stop")


def broken_off() -> list[dict[str, Any]]:
    """A cut run that was interrupted, and does not tell its tail."""
    records = reference_records(small(), truncate=1, top=3, interrupt_after=2)
    close = {name: value for name, value in records[-1].items() if name != "tail_lse"}
    return [*records[:-1], close]


def test_a_run_without_a_claim_need_not_tell_its_tail():
    records = broken_off()
    assert records[-1]["claim_type"] == "NoCert"
    assert findings(records, small()) == []
    raised = [*records[:-1], {**records[-1], "stop": "bound", "claim_type": "TruncationOnly"}]
    assert ("L607", len(records), "stop") in findings(raised, small())


def test_a_tail_that_is_told_without_a_claim_is_held_to_its_value():
    records = broken_off()
    tail = reference_records(small(), truncate=1)[-1]["tail_lse"]
    told = [*records[:-1], {**records[-1], "tail_lse": tail}]
    assert findings(told, small()) == []
    wrong = [*records[:-1], {**records[-1], "tail_lse": tail[:-1] + "9"}]
    assert tail[-1] != "9"
    assert findings(wrong, small()) == [("L611", len(records), "tail_lse")]


def test_a_run_that_is_not_cut_has_no_tail():
    records = reference_records(small(), interrupt_after=2)
    tail = reference_records(small(), truncate=1)[-1]["tail_lse"]
    told = [*records[:-1], {**records[-1], "tail_lse": tail}]
    assert findings(told, small()) == [("L103", len(records), "tail_lse")]


def test_a_count_may_have_as_many_bits_as_the_run_allows():
    bits = max(small().race_count).bit_length()
    for most, falls_back in ((bits, False), (bits - 1, True)):
        records = reference_records(small(), count_bits=most)
        assert any(record["kind"] == "downgrade" for record in records) is falls_back
        assert findings(records, small()) == []


def test_amounts_have_nine_places_at_most():
    artifact, _, records = ranges.forged_run("budget")
    for places, expected in (("0.0000000001", [("L103", 1, "epsilon_cap")]), ("0.5", [])):
        limits = {**records[0]["run_limits"], "epsilon_cap": places}
        head = with_run_id({**records[0], "run_limits": limits})
        assert findings([head, *records[1:]], artifact)[:1] == expected


def forged_answer(**changed: Any) -> tuple[int, list[dict[str, Any]], Any]:
    """The line of an answer, the ledger with that answer changed (None: left out), its artifact."""
    artifact, _, records = ranges.forged_run("node")
    at = next(i for i, r in enumerate(records) if r["kind"] == "refine" and "cost_low" in r)
    answer = {name: v for name, v in {**records[at], **changed}.items() if v is not None}
    return at + 1, [*records[:at], answer, *records[at + 1 :]], artifact


@pytest.mark.parametrize("end", ["cost_low", "cost_high"])
def test_an_answer_has_both_ends(end):
    line, records, artifact = forged_answer(**{end: None})
    assert findings(records, artifact) == [("L103", line, "cost_low")]


def test_an_answer_is_to_the_question_asked_last():
    _, records, _ = forged_answer()
    other = next(r["node_id"] for r in records if r["kind"] == "node")
    line, records, artifact = forged_answer(node_id=other)
    assert findings(records, artifact) == [("L702", line, "node_id")]


def test_an_answer_has_nine_places_at_most():
    line, records, artifact = forged_answer(cost_low="0.3000000001")
    assert findings(records, artifact) == [("L103", line, "cost_low")]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"guards": ["NumClamp"]}, ("L604", 1, "guards")),
        ({"controller": {"ask": "always"}}, ("D101", 1, "controller.ask")),
        ({"controller": {"price_weight": "0"}}, ("L201", 1, "controller")),
        ({"controller": {"latency_weight": "0"}}, ("L201", 1, "controller")),
        ({"controller": {"epsilon_weight": "-1"}}, ("L201", 1, "controller")),
    ],
    ids=str,
)
def test_a_header_over_ranges_is_held_to_its_rules(changed, expected):
    artifact, _, records = ranges.forged_run("node")
    head = {**records[0], **changed}
    head["controller"] = {**records[0]["controller"], **changed.get("controller", {})}
    found = findings([with_run_id(head), *records[1:]], artifact)
    assert found[0] == expected


@pytest.mark.parametrize(
    "told", [{"mode": "fallback"}, ranges.LITERAL], ids=["fallback", "literal"]
)
def test_a_run_whose_keys_bound_nothing_is_not_cut(told):
    records = reference_records(small(0), **told)
    head = with_run_id({**records[0], "truncate": 1})
    assert findings([head, *records[1:]], small(0)) == [("L201", 1, "truncate")]


def test_what_is_expected_of_a_controller_is_said():
    artifact, _, asking = ranges.forged_run("node")
    silent = reference_records(small())
    head = with_run_id({**silent[0], "controller": asking[0]["controller"]})
    found = validate(chained([head, *silent[1:]]), small()).findings[-1]
    assert (found.code, found.field, found.expected) == ("L201", "controller", "no field")
    bare = {name: value for name, value in asking[0].items() if name != "controller"}
    found = validate(chained([with_run_id(bare), *asking[1:]]), artifact).findings[-1]
    assert (found.code, found.field) == ("L201", "controller")
    assert found.expected == "a controller, as costs are ranges"


@pytest.mark.parametrize(
    ("tilt", "told", "changed", "field"),
    [
        (0, ranges.LITERAL, {"mode": "exact"}, "race"),
        (0, ranges.LITERAL, {"keys": "finalized"}, "keys"),
        (8, {"mode": "surrogate", "keys": "anchored"}, {"race": "literal"}, "race"),
        (8, {"race": "rest"}, {"keys": "anchored"}, "keys"),
        (8, {"race": "rest"}, {"mode": "fallback", "claim_type": "NoCert"}, "race"),
        (8, {"mode": "fallback"}, {"keys": "anchored"}, "keys"),
    ],
    ids=str,
)
def test_a_race_has_the_mode_the_keys_and_the_tilt_that_it_needs(tilt, told, changed, field):
    records = reference_records(small(tilt), **told)
    head = with_run_id({**records[0], **changed})
    assert findings([head, *records[1:]], small(tilt)) == [("L201", 1, field)]


def test_no_item_is_popped_once_the_run_has_to_stop():
    honest = reference_records(small())
    overrun = reference_records(small(), overrun=1)
    assert overrun[len(honest) - 1]["kind"] in ("expand", "leaf")
    assert findings(overrun, small())[-1] == ("L607", len(honest), "kind")


def test_a_pop_of_another_item_is_said_to_be_one_before_all_else():
    records = reference_records(small(), top=3)
    at = next(i for i, record in enumerate(records) if record["kind"] == "expand" and i > 1)
    leaf = next(record for record in records if record["kind"] == "leaf")
    other = [*records[:at], leaf, *records[at:]]
    assert findings(other, small()) == [("L601", at + 1, "node_id")]
    # Without the seed nothing is derived that could tell; the record has to name the item itself.
    bare = {name: value for name, value in records[at].items() if name != "W"}
    leaf = next(record["node_id"] for record in records if record["kind"] == "leaf")
    withheld = {k: v for k, v in records[-1].items() if k not in ("seed", "opening_salt")}
    other = [*records[:at], {**bare, "node_id": leaf}, *records[at + 1 : -1], withheld]
    assert findings(other, small()) == [("L601", at + 1, "node_id")]


@pytest.mark.parametrize("bad", [b"", bytes(31), bytes(33)], ids=len)
def test_a_seed_and_a_salt_have_32_bytes(bad):
    records = reference_records(small())
    assert findings(records, small(), seed=bad) == [("L301", 0, "argument seed")]
    found = findings(records, small(), seed=bytes(32), opening_salt=bad)
    assert found == [("L302", 0, "argument opening_salt")]


@pytest.mark.parametrize(
    "last",
    [
        b"[]", b"7", b"{}", b'{"opening_salt":"%s"}' % (b"0" * 64), b'{"seed":"%s"}' % (b"0" * 64),
        b'{"opening_salt":1,"seed":"%s"}' % (b"0" * 64),
        b'{"opening_salt":"%s","seed":1}' % (b"0" * 64),
        b'{"opening_salt":"%s","seed":"0g"}' % (b"0" * 64),
        b'{"opening_salt":"0g","seed":"%s"}' % (b"0" * 64),
        b'{"opening_salt":"%s","seed":"%s"}' % (b"0" * 64, b"0" * 62),
        b'{"opening_salt":"%s","seed":"%s"}' % (b"0" * 62, b"0" * 64),
    ],
    ids=str,
)  # fmt: skip
def test_a_last_line_without_seed_and_salt_has_no_seed(last):
    assert logged_seed([b"x\n", last + b"\n"]) is None


def test_a_seed_is_read_from_a_last_line_however_it_is_cut():
    salt, seed = "1" * 64, "2" * 64
    data = encode({"a": 1}) + b"\n" + encode({"opening_salt": salt, "seed": seed}) + b"\n"
    due = Seed(seed=bytes.fromhex(seed), salt=bytes.fromhex(salt))
    for size in (1, 2, 7, 9, 60, len(data)):
        cut = [data[at : at + size] for at in range(0, len(data), size)]
        assert logged_seed(cut) == due, size
    assert logged_seed([data, b"rest"]) == due
    for at in (4, 7):  # within the line before, and before its LF: two LFs are in one chunk
        assert logged_seed([data[:at], data[at:]]) == due, at


@pytest.mark.parametrize("more", [0, 1])
def test_a_last_line_is_read_up_to_the_longest(more, monkeypatch):
    line = encode({"opening_salt": "1" * 64, "seed": "2" * 64})
    monkeypatch.setattr(header_check, "MAX_LINE_BYTES", len(line) - more)
    cut = [b"x\n" + line[:9], line[9:], b"\n"]
    assert (logged_seed(cut) is None) is bool(more)


@pytest.mark.parametrize(
    ("due", "found", "code"),
    [
        (Turn.CAP, Turn.EXPAND, "L604"),
        (Turn.REQUEUE, Turn.BUDGET, "L701"), (Turn.EXPAND, Turn.REQUEUE, "L701"),
        (Turn.BUDGET, Turn.LEAF, "L702"), (Turn.LEAF, Turn.BUDGET, "L702"),
        (Turn.LEAF, Turn.EXPAND, "L601"), (Turn.DRAW, Turn.LEAF, "L601"),
    ],
)  # fmt: skip
def test_what_comes_next_decides_the_code_that_refuses_another(due, found, code):
    assert refuser(due, found) == code


@pytest.mark.parametrize(
    ("told", "expansions", "holds"),
    [
        ({}, 7, True), ({"max_expansions": 3}, 2, True), ({"max_expansions": 3}, 3, False),
    ],
)  # fmt: skip
def test_a_cap_holds_an_expansion_back(told, expansions, holds):
    header = read_header(reference_records(small(), interrupt_after=0, **told)[0])
    assert capped(header, expansions) is not holds


@pytest.mark.parametrize(
    "told", [{"mode": "fallback"}, ranges.LITERAL], ids=["fallback", "literal"]
)
def test_a_run_whose_keys_bound_nothing_claims_nothing(told):
    records = reference_records(small(0), **told)
    head = with_run_id({**records[0], "claim_type": "RunWiseSurrogate"})
    assert findings([head, *records[1:]], small(0)) == [("L609", 1, "claim_type")]


@pytest.mark.parametrize(
    "public", [{"beacon": b"b"}, {"nonce": b"n"}, {"beacon": b"b", "nonce": b"n"}]
)
@pytest.mark.parametrize(
    ("known", "code", "field"),
    [
        ({"opening": bytes(32)}, "L303", "opening"),
        ({"beacon": b"x"}, "L304", "beacon"),
        ({"nonce": b"x"}, "L305", "client_nonce"),
    ],
)
def test_what_the_auditor_knows_is_held_against_the_header(public, known, code, field):
    records = reference_records(small(), **public)
    assert findings(records, small(), **public) == []
    assert findings(records, small(), **public | known) == [(code, 1, field)]


def test_a_record_is_about_the_child_or_the_item_that_is_expected():
    records = reference_records(small(), top=13)
    at = next(
        i for i, r in enumerate(records) if r["kind"] == records[i + 1]["kind"] == "node" and i > 2
    )
    swapped = [*records[:at], records[at + 1], records[at], *records[at + 2 :]]
    assert findings(swapped, small()) == [("L602", at + 1, "call")]
    leaves = [i for i, record in enumerate(records) if record["kind"] == "leaf"]
    other = {**records[leaves[0]], "node_id": records[leaves[1]]["node_id"]}
    forged = [*records[: leaves[0]], other, *records[leaves[0] + 1 :]]
    assert findings(forged, small()) == [("L601", leaves[0] + 1, "node_id")]


@pytest.mark.parametrize("told", [{}, {"race": "rest"}, {"keys": "anchored"}], ids=str)
def test_a_run_whose_seed_is_withheld_replays_to_its_end(told):
    records = reference_records(small(), top=3, withhold=True, **told)
    assert findings(records, small()) == [("D302", len(records), "seed")]


def test_a_number_of_plans_is_told_as_far_as_64_bits_hold_it():
    core = make_core(
        **letters(2), plan=["repeat", ["call", {0, 1}], 64, 64], statements=[depth(64)]
    )
    rows = [(True, [])] + [(False, [(0, q), (1, q)]) for q in range(64)]
    data = build(core, rows)
    told = {"seed": bytes(32), "max_expansions": 2}
    records = ranges.honest(data, told, None)
    nodes = [record for record in records if record["kind"] == "node"]
    assert ("N" in nodes[0], nodes[1]["N"]) == (False, str(1 << 63))
    assert findings(records, check(data)) == []
    told_all = {**nodes[0], "N": str((1 << 64) - 1)}
    forged = [records[0], told_all, *records[2:]]
    assert findings(forged, check(data)) == [("L103", 2, "N")]


@pytest.mark.parametrize("name", ["rest", "node"])
def test_a_run_over_ranges_whose_seed_is_withheld_replays_to_its_end(name):
    artifact, _, records = ranges.forged_run(name)
    assert any(record["kind"] == "requeue" for record in records)
    close = {k: v for k, v in records[-1].items() if k not in ("seed", "opening_salt")}
    assert findings([*records[:-1], close], artifact) == [("D302", len(records), "seed")]


@pytest.mark.parametrize("name", ["budget rest", "overspent"])
def test_after_a_budget_that_failed_nothing_comes_before_the_downgrade(name):
    artifact, _, records = ranges.forged_run(name)
    at = next(i for i, record in enumerate(records) if record["kind"] == "downgrade")
    assert records[at]["guards"] == ["BudgetFail"]
    assert findings([*records[:at], *records[at + 1 :]], artifact) == [("L604", at + 1, "kind")]


def test_nothing_comes_before_the_root():
    records = reference_records(small())
    assert findings([records[0], *records[2:]], small()) == [("L602", 2, "kind")]


def test_a_node_that_is_not_expected_is_a_repetition_or_out_of_order():
    records = reference_records(small(), top=3)
    last = next(i for i, r in enumerate(records) if i > 2 and r["kind"] != "node") - 1
    twice = [*records[: last + 1], records[last], *records[last + 1 :]]
    assert findings(twice, small()) == [("L603", last + 2, "kind")]
    gone = [*records[: last + 1], records[1], *records[last + 1 :]]
    assert findings(gone, small()) == [("L104", last + 2, "kind")]


def test_a_close_opens_the_seed_that_was_handed_in():
    records = reference_records(small())
    other = [*records[:-1], {**records[-1], "seed": "01" * 32}]
    assert findings(other, small(), seed=bytes(32)) == [("L301", len(records), "seed")]

"""Every field of every kind of record is compared, and every guard is seen where it fires.

Over honest runs of every mode, over points and over ranges, and such whose numbers are clamped: a
record of each kind is forged in each field, sealed again, and refused at its own line.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tcc_certs.replay import validate
from tcc_runtime.pricing.quotes import Answer, Question
from tests.forgery import test_ledger_forgeries as points, test_range_forgeries as ranges
from tests.forgery.mutants import changes
from tests.oracle.cores import at_most, depth, letters, make_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.upper import Shape, upper
from tests.oracle_ledger.writer import chained, reference_records, with_run_id
from tests.runtime.graphs import build
from tests.runtime.ranged import Unreliable

Records = list[dict[str, Any]]
# What a model answered and took, and what was lost, is for nobody to derive.
TOLD = {"cost_low", "cost_high", "price", "latency", "epsilon", "dropped_bytes"}
HALF = "1900000000"  # half of the range that a cost has is within Q32.32, all of it is not
# Another one may lead to the same records: that is another honest run.
SETTINGS = {*points.SETTINGS, "run_limits", "claim_type", "beacon", "client_nonce", "controller"}
SETTINGS |= {"adapters"}
HEAVY = "1" + "0" * 24  # beta: what a call costs at all takes a key to the end of its range
CLAMPED = {
    "finalized": {"top": 9},
    "anchored": {"top": 9, "keys": "anchored"},
    "rest": {"top": 9, "race": "rest"},
    "ask node": {"top": 9, "ask": "node", "sla_ms": 10**6},
    "anchored ask node": {"top": 9, "ask": "node", "keys": "anchored"},
    "rest ask node": {"top": 9, "race": "rest", "ask": "node"},
    "literal": ranges.LITERAL | {"top": 9},
    "fallback": {"top": 9, "mode": "fallback"},
    "steep": {"top": 9, "alpha": "9" * 30},
    "outside": {"top": 9, "ask": "node"},
    "gain": {"top": 9, "ask": "node"},
    "margin": {"top": 9, "ask": "node", "margin": "0.9"},
    "twice": {"top": 9},
}
NAMES = [
    *[("points", name) for name in points.NAMES],
    *[("ranges", name) for name in ranges.RUNS],
    *[("clamped", name) for name in CLAMPED],
    *[("dead ends", race) for race in ("coupled", "rest")],
]
CODES = {  # L103: it is absent, or malformed
    name: {"L103"} | points.FIELD_CODES.get(name, set()) | ranges.FIELD_CODES.get(name, set())
    for name in points.FIELD_CODES | ranges.FIELD_CODES
} | {"opening_salt": {"L103", "L302"}}  # the right seed is handed in
IDS = [f"{group} {name}" for group, name in NAMES]
RUNS_A_FIELD = 3


@cache
def heavy(beta: str) -> tuple[bytes, CheckedArtifact]:
    """Two letters that may cost nothing, one of them more, and a beta beyond all measure."""
    parts = letters(2, cost=[0, 0], high=[15 * 10**8, 0])
    first, second = parts["tools"]
    parts["tools"] = [{**first, "quotes": "same"}, {**second, "quotes": "same"}]
    core = make_core(**parts, plan=["repeat", ["call", {0, 1}], 0, 2], statements=[depth(2)])
    rows = [(True, []), (True, [(0, 0), (1, 0)]), (True, [(0, 1), (1, 1)])]
    data = build(core, rows, beta, 0)
    return data, check(data)


@cache
def honest(group: str, name: str) -> tuple[CheckedArtifact, Records]:
    """A run, valid."""
    if group == "points":
        return points.forged_run(name)
    if group == "ranges":
        artifact, _, records = ranges.forged_run(name)
        return artifact, records
    if group == "dead ends":
        return dead_ends(), reference_records(dead_ends(), race=name, top=9)
    data, artifact = heavy(HALF if name in ("gain", "margin") else HEAVY)
    quoter = Unreliable(random.Random(7), honest=name != "outside")
    quoter = {"gain": dearest, "twice": dearest, "margin": cheapest}.get(name, quoter)
    return artifact, ranges.honest(data, {"seed": ranges.SEED, **CLAMPED[name]}, quoter)


@cache
def dead_ends() -> CheckedArtifact:
    """After two calls for 4 cents nothing is left to buy, and a plan has three calls."""
    core = make_core(
        **letters(2, cost=[0, 10**9], price=[2, 1]),
        plan=["repeat", ["call", {0, 1}], 3, 3],
        statements=[depth(3), at_most("price", 4)],
    )
    relaxed = (1,)
    return check(upper(core, plans(without(read_core(core), relaxed), 3), Shape(relaxed=relaxed)))


def dearest(question: Question) -> Answer:
    """Every call costs the most that it may."""
    return Answer(low=question.high, high=question.high, latency_ms=1)


def cheapest(question: Question) -> Answer:
    """Every call costs the least that it may, so that what is not known outgrows what is."""
    return Answer(low=question.low, high=question.low, latency_ms=1)


@cache
def places() -> Mapping[tuple[str, str], list[tuple[int, str]]]:
    """By run, records and fields to forge: a field of a kind in the first runs that have it."""
    times: dict[tuple[str, str], int] = {}
    found: dict[tuple[str, str], list[tuple[int, str]]] = {run: [] for run in NAMES}
    for run in NAMES:
        here = set()
        for at, record in enumerate(honest(*run)[1]):
            for name in sorted(record.keys() - TOLD):
                key = record["kind"], name
                if key not in here and times.get(key, 0) < RUNS_A_FIELD:
                    here.add(key)
                    times[key] = times.get(key, 0) + 1
                    found[run].append((at, name))
    return found


def changed_value(value: Any) -> Any:
    """Another value, of the same form where there is one."""
    others = {how: other for how, other in changes(value) if other != value}
    form = ("+1 in the last place", "digit 35", "digit 63", "another text", *others)
    return next(others[how] for how in form if how in others)


def forged(records: Records, at: int, name: str) -> Iterator[Records]:
    """Ledgers with this field of one record left out, and changed."""
    record = records[at]
    ways = [{other: value for other, value in record.items() if other != name}]
    if at or name not in SETTINGS:
        ways.append({**record, name: changed_value(record[name])})
    for changed in ways:
        if at == 0 and name != "run_id":
            changed = with_run_id(changed)
        yield [*records[:at], changed, *records[at + 1 :]]


@pytest.mark.parametrize(("group", "name"), NAMES, ids=IDS)
def test_the_run_is_valid(group, name):
    artifact, records = honest(group, name)
    found = validate(chained(records), artifact)
    assert (found.verdict, found.findings) == (0, ())


@pytest.mark.parametrize(("group", "name"), NAMES, ids=IDS)
def test_every_record_has_the_form_of_its_kind(group, name):
    # With the seed at hand a line that has the bytes of the expected one is not looked into.
    artifact, records = honest(group, name)
    close = {k: v for k, v in records[-1].items() if k not in ("seed", "opening_salt")}
    found = validate(chained([*records[:-1], close]), artifact)
    assert [finding.code for finding in found.findings] == ["D302"]


@pytest.mark.parametrize(("group", "name"), NAMES, ids=IDS)
def test_a_change_of_any_field_is_found_at_its_line(group, name):
    artifact, records = honest(group, name)
    close = records[-1]
    seed = {name: bytes.fromhex(close[name]) for name in ("seed", "opening_salt")}
    for at, field in places()[group, name]:
        # Else a ledger that tells the wrong seed is refused before its close, or its seed unknown.
        handed = seed if field in seed else {}
        for ledger in forged(records, at, field):
            found = validate(chained(ledger), artifact, **handed)
            assert found.verdict != 0, (at, records[at]["kind"], field)
            first = found.findings[0]
            if at:
                assert first.line == at + 1, (records[at]["kind"], field, first)
                assert first.code.value in CODES[field], (records[at]["kind"], field, first)


def test_every_guard_fires_in_some_run_that_is_forged():
    fired = set()
    for group, name in NAMES:
        for record in honest(group, name)[1]:
            fired |= {(record["kind"], guard) for guard in record.get("guards", ())}
    assert fired >= {
        ("node", "NumClamp"), ("expand", "NumClamp"), ("leaf", "NumClamp"), ("rest", "NumClamp"),
        ("budget", "NumClamp"), ("refine", "NumClamp"), ("refine", "RangeFail"),
        ("requeue", "NumClamp"), ("expand", "AcyclicityFail"), ("budget", "BudgetFail"),
        ("downgrade", "BudgetFail"), ("downgrade", "CountFail"), ("close", "CapExceeded"),
    }  # fmt: skip


def test_an_answer_may_be_clamped_where_what_was_hoped_for_was_not():
    _, records = honest("clamped", "gain")
    clamped = [r for r in records if r["kind"] == "refine" and "NumClamp" in r.get("guards", ())]
    most = "2147483647.9999999998"  # 2^31 less 2^-32
    assert [r for r in clamped if r["dkey_real"] == most != r["dkey_pred"]]


OUT_OF_TURN = [
    ("points", "top3"), ("points", "rest top3"), ("points", "down"), ("points", "anchored"),
    ("ranges", "node"), ("ranges", "rest"), ("ranges", "budget rest"), ("ranges", "down"),
    ("ranges", "leaf"), ("ranges", "overspent"), ("ranges", "budget"),
]  # fmt: skip


@pytest.mark.parametrize(("group", "name"), OUT_OF_TURN, ids=[" ".join(run) for run in OUT_OF_TURN])
def test_a_record_out_of_its_turn_is_found_at_its_line(group, name):
    artifact, records = honest(group, name)
    first: dict[str, int] = {}
    for at, record in enumerate(records):
        first.setdefault(record["kind"], at)
    kinds = sorted(first.items(), key=lambda item: item[1])
    for kind, taken in kinds:
        for before, at in kinds[1:]:
            if kind == before:
                continue  # another of the same kind is a forged field
            extra = [*records[:at], records[taken], *records[at:]]
            found = validate(chained(extra), artifact)
            assert (found.verdict, found.findings[0].line) == (1, at + 1), (kind, before)


@pytest.mark.parametrize(("group", "name"), OUT_OF_TURN, ids=[" ".join(run) for run in OUT_OF_TURN])
def test_a_record_that_is_left_out_is_found_where_it_was(group, name):
    artifact, records = honest(group, name)
    for at in range(len(records) - 1):
        found = validate(chained([*records[:at], *records[at + 1 :]]), artifact)
        assert (found.verdict, found.findings[0].line) == (1, at + 1), records[at]


def test_another_guard_than_the_one_that_fired_is_refused_by_the_rule_of_guards():
    artifact, records = honest("clamped", "finalized")
    place = next(at for at, record in enumerate(records) if record.get("guards") == ["NumClamp"])
    forged = [*records[:place], {**records[place], "guards": ["AcyclicityFail"]}]
    found = validate(chained([*forged, *records[place + 1 :]]), artifact)
    assert (found.verdict, found.findings[0].code.name) == (1, "GUARD")

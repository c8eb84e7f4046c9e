"""The validator on ledgers of every mode: what it passes, and what it upholds."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import cache

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.replay import validate
from tcc_experiments.evidence import q64_of
from tests.oracle.build import build
from tests.oracle.cores import at_most, depth, letters, make_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import drawn, small
from tests.oracle_ledger.brute import leaf_values, rounded
from tests.oracle_ledger.falling import counts_fall
from tests.oracle_ledger.upper import Shape, drawn_upper, upper
from tests.oracle_ledger.writer import (
    Plan,
    Reference,
    chained,
    opening_of,
    reference_ledger,
    reference_records,
)

from tcc_certs.policy.reader import read_core  # isort: skip

PRICED = {"cost": [10**9, 0, 5 * 10**8], "price": [1, 2, 3]}


@cache
def priced() -> tuple[CheckedArtifact, CheckedArtifact]:
    """At most three calls for at most 4 cents; and the same with `price` relaxed."""
    core = make_core(
        **letters(3, **PRICED),
        plan=["repeat", ["call", {0, 1, 2}], 1, 3],
        statements=[depth(3), at_most("price", 4)],
    )
    read = read_core(core)
    relaxed = (1,)
    data = upper(core, plans(without(read, relaxed), 3), Shape(relaxed=relaxed))
    return check(build(core, plans(read, 3))), check(data)


def valid(artifact: CheckedArtifact, **told):
    """The validation of a reference run, which is VALID, and its records."""
    records = reference_records(artifact, **told)
    found = validate(chained(records), artifact)
    assert (found.verdict, found.findings) == (0, ())
    assert found.claim_type == records[-1]["claim_type"]
    assert found.claim_upheld == (found.claim_type != "NoCert")
    return found, records


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("inflate", ["1", "1.7", "1000000"])
def test_surrogate_runs_uphold_their_claim(keys, inflate):
    for salt in range(5):
        told = {"seed": bytes([salt] * 32), "mode": "surrogate", "keys": keys, "inflate": inflate}
        found, records = valid(small(), **told)
        assert found.claim_type == "RunWiseSurrogate"
        truth = leaf_values(small(), told["seed"], inflate)
        assert records[-1]["plans"][0]["calls"] == list(truth[0][1])


def test_both_key_policies_find_the_same_plans():
    for salt in range(20):
        told = {"seed": bytes([salt] * 32), "mode": "surrogate", "inflate": "2.5", "top": 3}
        plans_of = [
            reference_records(small(), keys=keys, **told)[-1]["plans"]
            for keys in ("finalized", "anchored")
        ]
        assert plans_of[0] == plans_of[1]


def certified_runs_hold(rng: random.Random, artifacts: int, runs: int) -> int:
    """Against all leaves: a certified stop has the best k plans of its race, to the last bit."""
    certified = 0
    for at in range(artifacts):
        artifact = drawn(rng) if at % 4 == 0 else drawn_upper(rng).checked
        exact = artifact.file.manifest.counts == "exact"
        for _ in range(runs):
            told = {
                "seed": rng.randbytes(32),
                "mode": rng.choice(["exact", "surrogate"] if exact else ["surrogate"]),
                "keys": rng.choice(["finalized", "anchored"]),
                "recipe": rng.choice(["r1", "r2"]),
                "top": rng.choice([1, 2, 5]),
                "truncate": rng.choice([None, None, 1, 2, 3]),
            }
            if told["mode"] == "surrogate":
                told["inflate"] = rng.choice(["1", "1.25", "40"])
            found, records = valid(artifact, **told)
            assert found.claim_upheld
            truth = leaf_values(artifact, told["seed"], told.get("inflate", "1"), told["truncate"])
            best = [(rounded(value), list(calls)) for value, calls in truth[: told["top"]]]
            said = [(q64_of(plan["value"]), plan["calls"]) for plan in records[-1]["plans"]]
            assert said == best, told
            certified += 1
    return certified


def test_no_plan_outside_beats_a_certified_stop():
    assert certified_runs_hold(random.Random(61), 60, 3) == 180


@pytest.mark.campaign
def test_no_plan_outside_beats_a_certified_stop_campaign():
    print(certified_runs_hold(random.Random(62), 1_000, 5), "certified runs, 0 beaten")


def test_a_relaxed_artifact_finds_plans_that_the_exact_one_allows():
    exact, relaxed = priced()
    allowed = {calls for _, calls in leaf_values(exact, bytes(32))}
    for salt in range(20):
        found, records = valid(relaxed, seed=bytes([salt] * 32), top=3)
        assert found.claim_type == "RunWiseSurrogate"
        assert {tuple(plan["calls"]) for plan in records[-1]["plans"]} <= allowed


def test_dead_ends_are_said():
    # After two calls for 4 cents nothing is left to buy, and a plan has three calls.
    core = make_core(
        **letters(2, cost=[0, 10**9], price=[2, 1]),
        plan=["repeat", ["call", {0, 1}], 3, 3],
        statements=[depth(3), at_most("price", 4)],
    )
    words = plans(without(read_core(core), (1,)), 3)
    artifact = check(upper(core, words, Shape(relaxed=(1,))))
    _, records = valid(artifact, top=9)
    dead = [record for record in records if record.get("dead_end")]
    assert dead
    assert any(record["winner"] == "phantom" for record in dead)
    hidden = [{k: v for k, v in r.items() if k != "dead_end"} for r in records]
    found = validate(chained(hidden), artifact)
    assert {(f.code, f.field) for f in found.findings} == {(Code.LEDGER_SCHEMA, "dead_end")}


def test_a_run_of_a_relaxed_artifact_without_plans_ends_with_nothing():
    core = make_core(
        **letters(1, price=[3]),
        plan=["repeat", ["call", {0}], 2, 2],
        statements=[depth(2), at_most("price", 4)],
    )
    relaxed = (1,)
    artifact = check(upper(core, [(0, 0)], Shape(relaxed=relaxed)))
    found, records = valid(artifact)
    assert (records[-1]["stop"], records[-1]["plans"]) == ("exhausted", [])
    assert found.summary == "claim upheld: there is no plan"


def test_a_truncated_run_claims_no_more_than_its_cut():
    for mode in ("exact", "surrogate"):
        found, records = valid(small(), mode=mode, truncate=1)
        assert (found.claim_type, found.claim_upheld) == ("TruncationOnly", True)
        assert "of at most 1 calls" in found.summary
        assert all(len(plan["calls"]) <= 1 for plan in records[-1]["plans"])
        assert "tail_lse" in records[-1]
        for lower in ("0.00000000000000000001", "-3.00000000000000000000"):
            forged = [*records[:-1], {**records[-1], "tail_lse": lower}]
            assert [f.code for f in validate(chained(forged), small()).findings] == [Code.TAIL]


def test_a_tail_is_due_with_a_claim_and_right_wherever_it_stands():
    for told in ({"silent": True}, {"max_expansions": 1, "top": 9}):
        told = {"truncate": 1, **told}
        _, records = valid(small(), **told)
        bare = {name: value for name, value in records[-1].items() if name != "tail_lse"}
        assert bare != records[-1]
        found = validate(chained([*records[:-1], bare]), small())
        assert (found.verdict, found.findings, found.claim_type) == (0, (), "NoCert")
        forged = {**bare, "tail_lse": "0.00000000000000000001"}
        found = validate(chained([*records[:-1], forged]), small())
        assert [one.code for one in found.findings] == [Code.TAIL]
    _, records = valid(small(), truncate=1)
    bare = {name: value for name, value in records[-1].items() if name != "tail_lse"}
    found = validate(chained([*records[:-1], bare]), small())
    assert [(one.code, one.field) for one in found.findings] == [(Code.LEDGER_SCHEMA, "tail_lse")]


def test_a_cut_at_the_root_s_rank_is_no_cut():
    found, records = valid(small(), truncate=2)
    assert found.claim_type == "RunWiseExact"
    assert "tail_lse" not in records[-1]


@pytest.mark.parametrize(
    "told",
    [
        {"mode": "fallback"},
        {"mode": "fallback", "tau": "0.25", "top": 3},
        {"mode": "surrogate", "race": "literal", "keys": "anchored", "inflate": "1.7"},
        {"silent": True},
        {"silent": True, "mode": "surrogate", "keys": "anchored"},
        {"silent": True, "truncate": 1},
        {"silent": True, "count_bits": 3},
        {"count_bits": 8, "mode": "surrogate", "race": "literal", "keys": "anchored"},
    ],
    ids=str,
)
def test_runs_that_claim_nothing_are_valid(told):
    artifact = small(0) if told.get("race") == "literal" else small()
    found, records = valid(artifact, **told)
    assert found.claim_type == "NoCert"
    assert found.summary.startswith("valid, no claim")
    raised = [*records[:-1], {**records[-1], "claim_type": "RunWiseSurrogate"}]
    assert Code.CLAIM in {f.code for f in validate(chained(raised), artifact).findings}


def test_a_downgrade_after_leaves_wants_the_seed(monkeypatch):
    counts_fall(monkeypatch, lambda bits: bits == 1)

    class Falls(Reference):
        def ending(self, pops):
            found = super().ending(pops)
            top = self.frontier[0] if self.frontier else None
            if found or self.regime == "fallback" or top.states is None:
                return found
            unit = 2 ** (self.bits * self.depth_left(top.states))
            return ("downgrade", None) if self.masses.n(top.states) * unit == 1 else None

    told = Plan(top=50, seed=bytes([3] * 32), withhold=True)
    rng = random.Random(7)
    for _ in range(50):
        artifact = drawn(rng)
        records = Falls(artifact, told).run()
        kinds = [record["kind"] for record in records]
        if "downgrade" in kinds and "leaf" in kinds[: kinds.index("downgrade")]:
            without_seed = validate(chained(records), artifact)
            assert without_seed.verdict == 2
            assert {f.code for f in without_seed.findings} == {Code.WITHHELD}
            assert validate(chained(records), artifact, seed=told.seed).verdict == 0
            return
    raise AssertionError("no run went down")


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
def test_withheld_seeds_of_every_regime(keys):
    runs = [
        (small(), {"mode": "surrogate", "keys": keys, "inflate": "3"}),
        (small(), {"mode": "fallback"}),
        (small(0), {"mode": "surrogate", "race": "literal", "keys": "anchored"}),
    ]
    for artifact, told in runs:
        ledger = reference_ledger(artifact, withhold=True, **told)
        asked = validate(ledger, artifact)
        assert [f.code for f in asked.findings] == [Code.WITHHELD]
        assert validate(ledger, artifact, seed=bytes(32)).verdict == 0
        assert validate(ledger, artifact, seed=bytes(31) + b"\x01").verdict == 1


def test_a_recovered_record_may_stand_anywhere_and_changes_nothing():
    records = reference_records(small(), top=2)
    honest = validate(chained(records), small())
    for at in range(1, len(records)):
        resumed = {"kind": "recovered", "dropped_bytes": 17, "records": at}
        found = validate(chained([*records[:at], resumed, *records[at:]]), small())
        assert (found.verdict, found.claim_upheld) == (0, True)
        assert found.summary == honest.summary
        for wrong in (at - 1, at + 1, 0 if at != 0 else 1):
            forged = [*records[:at], {**resumed, "records": wrong}, *records[at:]]
            codes = [f.code for f in validate(chained(forged), small()).findings]
            assert codes == [Code.LEDGER_ORDER]
    twice = [{"kind": "recovered", "dropped_bytes": 0, "records": at} for at in (1, 2)]
    assert validate(chained([records[0], *twice, *records[1:]]), small()).verdict == 0


@pytest.mark.parametrize("at", [0, None])
def test_a_recovered_record_stands_between_open_and_close(at):
    records = reference_records(small())
    at = len(records) if at is None else at
    resumed = {"kind": "recovered", "dropped_bytes": 0, "records": at}
    found = validate(chained([*records[:at], resumed, *records[at:]]), small())
    assert (found.verdict, found.findings[-1].code) == (1, Code.LEDGER_ORDER)


def test_a_run_whose_root_could_not_be_rounded_is_valid_and_claims_nothing():
    records = reference_records(small())
    close = {
        "kind": "close", "stop": "precision", "claim_type": "NoCert", "plans": [],
        "expansions": 0, "leaves": 0, "law": "softmax", "seed": records[-1]["seed"],
        "opening_salt": records[-1]["opening_salt"],
    }  # fmt: skip
    found = validate(chained([records[0], close]), small())
    assert (found.verdict, found.findings, found.claim_type) == (0, (), "NoCert")
    for stop in ("exhausted", "bound", "interrupted", "max_expansions"):
        forged = chained([records[0], {**close, "stop": stop}])
        assert validate(forged, small()).findings[0].code is Code.MISSING_CHILD
    raised = chained([records[0], {**close, "claim_type": "RunWiseExact"}])
    assert [f.code for f in validate(raised, small()).findings] == [Code.CLAIM]


PUBLIC = [{"beacon": b"b"}, {"nonce": b"n" * 40}, {"beacon": b"b", "nonce": b"\x00"}]


@pytest.mark.parametrize("public", PUBLIC, ids=str)
def test_an_auditor_s_opening_beacon_and_nonce_are_the_header_s(public):
    ledger = reference_ledger(small(), **public)
    plain = validate(ledger, small())
    assert plain.verdict == 0
    assert "before" not in plain.summary
    opening = opening_of(reference_records(small(), **public)[0])
    told = validate(ledger, small(), opening=opening, **public)
    assert told.verdict == 0
    assert told.summary.endswith("fixed before what the auditor gave was known")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"opening": bytes(32)}, "L303"),
        ({"beacon": b"x"}, "L304"),
        ({"beacon": b""}, "L304"),
        ({"nonce": b"b"}, "L305"),
    ],
    ids=str,
)
def test_another_opening_beacon_or_nonce_is_refused(given, code):
    for public in PUBLIC:
        found = validate(reference_ledger(small(), **public), small(), **given)
        assert [f.code.value for f in found.findings] == [code]
    found = validate(reference_ledger(small()), small(), **given)
    assert [f.code.value for f in found.findings] == [code]


def test_a_beacon_and_a_nonce_make_another_race():
    best = {
        json.dumps(reference_records(small(), **public)[-1]["plans"])
        for public in [{}, *PUBLIC, {"beacon": b"bn"}, {"beacon": b"n", "nonce": b"b"}]
    }
    assert len(best) == 6


def test_an_opening_binds_every_setting_of_the_race():
    told = {"beacon": b"b", "mode": "surrogate"}
    base = opening_of(reference_records(small(), **told)[0])
    others = [
        {"keys": "anchored"}, {"recipe": "r1"}, {"inflate": "2"}, {"tau": "2"}, {"top": 2},
        {"truncate": 1}, {"mode": "exact"}, {"salt": b"s" * 32}, {"seed": b"s" * 32},
    ]  # fmt: skip
    found = {opening_of(reference_records(small(), **{**told, **other})[0]) for other in others}
    assert len(found | {base}) == len(others) + 1


def test_upper_counts_refuse_exact_mode():
    _, relaxed = priced()
    records = reference_records(relaxed, mode="exact")
    found = validate(chained(records), relaxed)
    assert [(f.code, f.field) for f in found.findings] == [(Code.LEDGER_HEADER, "mode")]


@pytest.mark.parametrize(
    ("told", "field"),
    [
        ({"mode": "fallback", "keys": "anchored"}, "keys"),
        ({"mode": "fallback", "truncate": 1}, "truncate"),
        ({"mode": "fallback", "inflate": "2"}, "inflate"),
        ({"mode": "exact", "inflate": "2"}, "inflate"),
        ({"mode": "surrogate", "race": "literal"}, "keys"),
        ({"mode": "surrogate", "race": "literal", "keys": "anchored", "truncate": 1}, "truncate"),
        ({"mode": "exact", "race": "literal", "keys": "anchored"}, "race"),
    ],
    ids=str,
)
def test_settings_that_do_not_go_together_are_refused(told, field):
    found = validate(reference_ledger(small(0), **told), small(0))
    assert (found.findings[0].code, found.findings[0].field) == (Code.LEDGER_HEADER, field)


def test_the_literal_race_wants_tilt_0():
    told = {"mode": "surrogate", "race": "literal", "keys": "anchored"}
    found = validate(reference_ledger(small(8), **told), small(8))
    assert [(f.code, f.field) for f in found.findings] == [(Code.LEDGER_HEADER, "race")]


def test_kappa_says_how_much_was_inflated():
    found, records = valid(small(), mode="surrogate", inflate="2.718281828459045")
    nodes = [record for record in records if record["kind"] == "node"]
    inner = sum("state" in record for record in nodes)
    assert found.kappa["nodes"] == len(nodes)
    assert found.kappa["tightened"] == inner
    # ln(1/e) at an inner node, ln(1/3) where the count is 1 and is rounded up, 0 at a leaf.
    mean = float(found.kappa["mean"])
    assert -1.0987 * inner / len(nodes) < mean < -inner / len(nodes)


def test_kappa_of_a_relaxed_run_wants_an_exact_artifact():
    exact, relaxed = priced()
    ledger = reference_ledger(relaxed, top=3)
    assert validate(ledger, relaxed).kappa["nodes"] == 0
    found = validate(ledger, relaxed, counts=exact)
    assert found.verdict == 0
    assert 0 < found.kappa["tightened"] <= found.kappa["nodes"]
    assert found.kappa["mean"].startswith("-")
    for other in (relaxed, small()):
        refused = validate(ledger, relaxed, counts=other)
        assert [f.code for f in refused.findings] == [Code.LEDGER_ARTIFACT]


def test_kappa_of_rounded_counts_needs_nothing_else():
    core = make_core(
        **letters(3, cost=[10**9, 0, 5 * 10**8]),
        plan=["repeat", ["call", {0, 1, 2}], 0, 3],
        statements=[depth(3)],
    )
    words = plans(read_core(core), 3)
    artifact = check(upper(core, words, Shape(round_counts=2)))
    found, _ = valid(artifact)
    assert found.kappa["tightened"] > 0
    assert valid(check(upper(core, words, replace(Shape(), tilt=0))))[0].kappa["tightened"] == 0

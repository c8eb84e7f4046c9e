"""No forged ledger is valid: every single-field change, every lost, doubled or moved record, every
cut and every bit flip is refused, with the code of the rule that it breaks.

The one excuse: a header whose settings changed may describe another honest run that happens to
write these very records.  It counts as one only where the reference writer, told those settings,
writes that ledger byte for byte.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import parse_decimal
from tcc_certs.replay import validate
from tests.forgery.mutants import Mutant, field_mutants, line_mutants
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.writer import chained, reference_ledger, reference_records, with_run_id

RUNS: dict[str, dict[str, Any]] = {
    "top1": {},
    "capped": {"max_expansions": 2},
    "steep": {"alpha": "2", "eta": "0.5"},
    "guarded": {"count_bits": 20},
    "top3": {"top": 3, "recipe": "r1"},
    "exhausted": {"top": 40, "max_expansions": 50},
}
LONG = pytest.mark.campaign
EVERY_RUN = [pytest.param(n, marks=LONG if n in ("top3", "exhausted") else ()) for n in RUNS]
SETTINGS = ("started_ms", "recipe", "top", "alpha", "eta", "count_bits")

# The codes that may refuse a change of a field; L103 (absent, extra, malformed) may refuse any.
FIELD_CODES: dict[str, set[str]] = {
    "kind": {"L104", "L601", "L602", "L607"},
    "schema": {"D102"},
    "run_id": {"L203"},
    "started_ms": {"L402", "L203", "L601"},
    "artifact": {"L202"},
    "grammar": {"L201"},
    "grammar_version": {"L201"},
    "root_state": {"L201"},
    "seed_commitment": {"L301"},
    "prf_domain": {"D101"},
    "mode": {"D101"},
    "claim_type": {"L609"},
    "race": {"D101"},
    "keys": {"D101"},
    "recipe": {"D101"},
    "tilt": {"L201"},
    "beta": {"L201"},
    "inflate": {"L201"},
    "tau": {"L201"},
    "alpha": {"L201", "L605", "L604", "L609"},
    "eta": {"L201", "L604", "L609"},
    "top": {"L606", "L607", "L610"},
    "truncate": {"L201", "D101"},
    "count_bits": {"L604", "L607", "L610"},
    "run_limits": {"L604", "L607"},
    "privacy_scope": {"D101"},
    "node_id": {"L402", "L601"},
    "parent_id": {"L402"},
    "ctx_digest": {"L401"},
    "ctx_repr": {"L402"},
    "call": {"L402"},
    "state": {"L402"},
    "N": {"L402"},
    "U": {"L501"},
    "key_raw": {"L504"},
    "neg_log_t": {"L503"},
    "tie_token": {"L402"},
    "W": {"L501"},
    "winner": {"L502"},
    "phi_before": {"L605"},
    "phi_after": {"L605"},
    "delta_phi": {"L605"},
    "V": {"L505"},
    "U_P": {"L505"},
    "incumbent": {"L606"},
    "stop": {"L607"},
    "frontier_key": {"L610"},
    "gap": {"L610"},
    "plans": {"L610"},
    "expansions": {"L610"},
    "leaves": {"L610"},
    "law": {"L610"},
    "seed": {"L301"},
    "opening_salt": {"L301"},
    "guards": {"L604"},
}


def another_honest_run(mutant: Mutant, told: dict[str, Any]) -> bool:
    """Whether the reference writer writes this ledger when told its header's settings."""
    header = mutant.records[0]
    if mutant.record != 0 or mutant.field not in (*SETTINGS, "run_limits"):
        return False
    changed = {name: header[name] for name in SETTINGS}
    try:
        for name in ("alpha", "eta"):
            parse_decimal(changed[name], name, Code.LEDGER_SCHEMA)
    except (Rejected, TypeError):
        return False
    if any(isinstance(changed[name], str) for name in ("top", "count_bits", "started_ms")):
        return False
    if changed["top"] < 1 or changed["started_ms"] < 0 or changed["count_bits"] < 0:
        return False
    cap = header["run_limits"].get("max_expansions")
    written = reference_ledger(small(), **{**told, **changed, "max_expansions": cap})
    return written == mutant.data


@pytest.mark.parametrize("name", EVERY_RUN)
def test_no_single_field_mutant_is_valid(name):
    told = RUNS[name]
    records = reference_records(small(), **told)
    assert validate(chained(records), small()).verdict == 0
    tried, honest, wrong = 0, [], []
    for mutant in field_mutants(records):
        tried += 1
        place = f"{mutant.records[mutant.record].get('kind')} {mutant.field}: {mutant.how}"
        found = validate(mutant.data, small())
        if found.verdict == 0:
            if another_honest_run(mutant, told):
                honest.append(place)
            else:
                wrong.append(f"SURVIVES {place}")
            continue
        code = found.findings[0].code.value
        if code != "L103" and code not in FIELD_CODES[mutant.field]:
            wrong.append(f"{code} {place}")
    survivors = sum(place.startswith("SURVIVES") for place in wrong)
    print(f"{name}: {tried} mutants, {len(honest)} other honest runs, {survivors} survivors")
    assert tried > 100
    assert not wrong, wrong
    assert len(honest) <= 12, honest


@pytest.mark.parametrize("name", EVERY_RUN)
def test_no_record_can_be_dropped_doubled_or_moved(name):
    records = reference_records(small(), **RUNS[name])
    mutants = list(line_mutants(records))
    survivors = [m for m in mutants if validate(m.data, small()).verdict == 0]
    print(f"{name}: {len(mutants)} mutants, {len(survivors)} survivors")
    assert not survivors


def test_a_lost_close_is_incomplete_and_other_lost_records_are_refused():
    records = reference_records(small())
    for at in range(len(records)):
        found = validate(chained(records[:at] + records[at + 1 :]), small())
        last = at == len(records) - 1
        assert found.verdict == (2 if last else 1)
        codes = {"close": "D301", "open": "L104", "leaf": "L607", "expand": "L104"}
        code = found.findings[0].code.value
        kind = records[at]["kind"]
        assert code == codes.get(kind, code)
        if kind == "node":
            assert code in ("L602", "L104", "L402")


def test_every_bit_flip_is_refused_or_incomplete():
    data = reference_ledger(small())
    tried = 0
    for at in range(0, len(data), 11):
        bit = at % 8
        forged = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
        assert validate(forged, small()).verdict != 0, (at, bit)
        tried += 1
    print(f"{tried} bit flips, 0 survivors")


@pytest.mark.campaign
def test_every_bit_flip_and_every_cut_campaign():
    data = reference_ledger(small(), top=2)
    for at in range(len(data)):
        assert validate(data[:at], small()).verdict == 2, at
        for bit in range(8):
            forged = data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :]
            assert validate(forged, small()).verdict != 0, (at, bit)


def test_bytes_put_in_or_taken_out_are_refused():
    data, rng = reference_ledger(small()), random.Random(41)
    for _ in range(150):
        at = rng.randrange(len(data))
        put_in = data[:at] + bytes([rng.randrange(256)]) + data[at:]
        taken_out = data[:at] + data[at + rng.randint(1, 40) :]
        assert validate(put_in, small()).verdict != 0
        assert validate(taken_out, small()).verdict != 0


def test_a_ledger_of_another_seed_than_the_committed_one_is_refused():
    seed, other = bytes(32), b"\x01" * 32
    forged = reference_records(small(), seed=other, committed=seed)
    assert first_code(chained(forged)) == "L301"  # `close` opens the other seed
    honest = reference_records(small(), seed=seed)
    forged[-1]["seed"], forged[-1]["opening_salt"] = honest[-1]["seed"], honest[-1]["opening_salt"]
    assert first_code(chained(forged)) == "L501"  # `close` opens the committed one
    withheld = reference_ledger(small(), seed=other, committed=seed, withhold=True)
    assert validate(withheld, small()).verdict == 2
    assert validate(withheld, small(), seed=seed).findings[0].code is Code.UNIFORM
    assert validate(withheld, small(), seed=other).findings[0].code is Code.SEED


def first_code(data: bytes) -> str:
    found = validate(data, small())
    assert found.verdict == 1
    return found.findings[0].code.value


def test_a_commitment_with_another_salt_is_refused():
    records = reference_records(small(), salt=b"\x05" * 32)
    records[-1]["opening_salt"] = reference_records(small())[-1]["opening_salt"]
    assert first_code(chained(records)) == "L301"


def test_headers_of_two_runs_swapped_are_refused():
    first = reference_records(small())
    for told in ({"seed": b"\x01" * 32}, {"top": 2}, {"recipe": "r1"}, {"started_ms": 1}):
        second = reference_records(small(), **told)
        for head, body in ((first, second), (second, first)):
            found = validate(chained([head[0], *body[1:]]), small())
            honest = reference_ledger(small(), **(told if head is second else {}))
            assert found.verdict == 1 or chained([head[0], *body[1:]]) == honest


def test_a_claim_cannot_be_raised():
    records = reference_records(small(), max_expansions=2)
    assert records[-1]["claim_type"] == "NoCert"
    raised = [*records[:-1], {**records[-1], "claim_type": "RunWiseExact"}]
    assert first_code(chained(raised)) == "L609"
    close = {**records[-1], "claim_type": "RunWiseExact", "stop": "bound"}
    del close["guards"]
    found = validate(chained([*records[:-1], close]), small())
    assert {f.code.value for f in found.findings} >= {"L607", "L609"}
    assert found.verdict == 1
    assert not found.claim_upheld


def test_a_fired_guard_cannot_be_hidden():
    records = reference_records(small(), alpha="2", eta="0.5", top=4)
    hidden = [
        {k: v for k, v in r.items() if k != "guards" and (k, r["kind"]) != ("claim_type", "expand")}
        for r in records
    ]
    hidden[-1]["claim_type"] = "RunWiseExact"
    found = validate(chained(hidden), small())
    assert found.verdict == 1
    assert found.findings[-1].code is Code.CLAIM


def test_the_best_plan_cannot_be_hidden():
    records = reference_records(small(), top=3)
    close = dict(records[-1])
    close["plans"] = close["plans"][1:]
    assert first_code(chained([*records[:-1], close])) == "L610"
    # Nor its leaf: without the record another item is popped than the greatest.
    at = next(i for i, r in enumerate(records) if r["kind"] == "leaf")
    assert first_code(chained(records[:at] + records[at + 1 :])) == "L601"


def test_the_greatest_key_left_cannot_be_lowered():
    records = reference_records(small(), max_expansions=2)
    lower = [*records[:-1], {**records[-1], "frontier_key": "-9.00000000000000000000"}]
    assert first_code(chained(lower)) == "L610"


def test_a_run_cannot_stop_early_nor_go_on():
    full, short = reference_records(small(), top=3), reference_records(small(), top=2)
    early = [*full[: len(short) - 1], full[-1]]
    assert first_code(chained(early)) in ("L607", "L602")
    longer = [with_run_id({**full[0], "top": 2}), *full[1:]]
    assert first_code(chained(longer)) in ("L103", "L606", "L607")


@pytest.mark.parametrize("overrun", [1, 2, 5])
def test_a_search_that_goes_on_past_the_stop_rule_is_refused(overrun):
    records = reference_records(small(), overrun=overrun)
    found = validate(chained(records), small())
    assert [f.code for f in found.findings] == [Code.STOP_RULE]
    honest = len(reference_records(small())) - 1
    assert found.findings[0].line == honest + 1


def test_a_child_cannot_be_left_out_whatever_is_made_of_the_rest():
    records = reference_records(small())
    children = [i for i, r in enumerate(records) if r["kind"] == "node" and "call" in r]
    for at in children:
        left = records[:at] + records[at + 1 :]
        assert first_code(chained(left)) in ("L602", "L402")


def test_ledgers_of_an_artifact_of_the_same_plans_and_other_options_are_refused():
    for other in (small(0), small(8, "2"), small(8, "1", "h")):
        assert validate(reference_ledger(other), small()).findings[-1].code is Code.LEDGER_ARTIFACT
        forged = reference_records(other)
        forged[0] = with_run_id({**reference_records(small())[0]})
        assert validate(chained(forged), small()).verdict == 1

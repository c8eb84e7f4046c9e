"""No forged ledger is valid: every single-field change, every lost, doubled or moved record, every
cut and every bit flip is refused, with the code of the rule that it breaks.

The one excuse: a header whose settings changed may describe another honest run that happens to
write these very records.  It counts as one only where the reference writer, told those settings,
writes that ledger byte for byte.
"""

from __future__ import annotations

import random
from itertools import islice
from typing import Any

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, seal
from tcc_certs.kernel import CheckedArtifact
from tcc_certs.replay import validate
from tests.forgery.mutants import Mutant, field_mutants, line_mutants
from tests.oracle_ledger.artifacts import relaxed, small, tiny
from tests.oracle_ledger.writer import chained, reference_ledger, reference_records, with_run_id

Run = tuple[CheckedArtifact, dict[str, Any]]
LITERAL = {"mode": "surrogate", "race": "literal", "keys": "anchored"}


def runs() -> dict[str, Run]:
    """The runs whose ledgers are forged: every mode, race, key policy and kind of record."""
    return {
        "top1": (small(), {}),
        "capped": (small(), {"max_expansions": 2}),
        "steep": (small(), {"alpha": "2", "eta": "0.5"}),
        "down": (tiny(), {"count_bits": 9, "top": 2, "seed": b"\x02" * 32}),
        "silent": (tiny(), {"silent": True}),
        "public": (tiny(), {"beacon": b"b" * 9, "nonce": b"n"}),
        "truncated": (tiny(), {"truncate": 1, "top": 2}),
        "surrogate": (tiny(), {"mode": "surrogate", "inflate": "1.7"}),
        "anchored": (tiny(), {"mode": "surrogate", "keys": "anchored", "inflate": "3", "top": 2}),
        "relaxed": (relaxed(), {"top": 3}),
        "relaxed anchored": (relaxed(), {"keys": "anchored", "truncate": 2}),
        "sets": (relaxed(8, 5), {"top": 2}),
        "sets anchored down": (
            relaxed(8, 5),
            {"keys": "anchored", "count_bits": 22, "top": 2, "tau": "2"},
        ),
        "literal": (relaxed(0, 5), LITERAL),
        "fallback": (relaxed(), {"mode": "fallback", "top": 2}),
        "rest": (small(), {"race": "rest"}),
        "rest top3": (tiny(), {"race": "rest", "top": 3, "recipe": "r1"}),
        "rest inflated": (tiny(), {"race": "rest", "mode": "surrogate", "inflate": "3", "top": 2}),
        "rest relaxed": (relaxed(), {"race": "rest", "top": 3}),
        "rest truncated": (tiny(), {"race": "rest", "truncate": 1, "top": 2}),
        "rest sets": (relaxed(8, 5), {"race": "rest", "top": 2}),
        "rest capped": (small(), {"race": "rest", "max_expansions": 2, "alpha": "2", "eta": "0.5"}),
        "rest down": (tiny(), {"race": "rest", "count_bits": 9, "top": 3, "seed": b"\x02" * 32}),
        "rest exhausted": (tiny(), {"race": "rest", "top": 40}),
        "top3": (small(), {"top": 3, "recipe": "r1"}),
        "exhausted": (tiny(), {"top": 40, "max_expansions": 50}),
        "after": (small(), {"after": ("b",), "top": 3, "alpha": "2", "eta": "0.5"}),
        "after relaxed": (relaxed(), {"race": "rest", "after": ("a",), "top": 3}),
        "after sets": (relaxed(8, 5), {"after": ("b",), "truncate": 1, "top": 9}),
    }


NAMES = list(runs())
STRIDE = 23  # one of 23 mutants by default, all of them in a campaign


SETTINGS = (
    "started_ms", "recipe", "top", "alpha", "eta", "count_bits", "mode", "race", "keys", "inflate",
    "tau", "truncate",
)  # fmt: skip


def forged_run(name: str) -> tuple[CheckedArtifact, list[dict[str, Any]]]:
    """A run's artifact and records; one of them was resumed on the way."""
    artifact, told = runs()[name]
    records = reference_records(artifact, **told)
    if name == "truncated":
        at = len(records) - 2
        records.insert(at, {"kind": "recovered", "dropped_bytes": 5, "records": at})
    return artifact, records


# The codes that may refuse a change of a field; L103 (absent, extra, malformed) may refuse any.
RUNS_ON = {"L601", "L602", "L604", "L606", "L607", "L610"}  # another setting, another run
RACES = {"L501", "L502", "L503", "L504", "L505"} | RUNS_ON
FIELD_CODES: dict[str, set[str]] = {
    "after": {"L201", "L402", "L609"},
    "kind": {"L104", "L601", "L602", "L604", "L607", "D101"},
    "schema": {"D102"},
    "run_id": {"L203"},
    "started_ms": {"L402", "L203", "L601"},
    "artifact": {"L202"},
    "grammar": {"L201"},
    "grammar_version": {"L201"},
    "root_state": {"L201"},
    "seed_commitment": {"L301"},
    "beacon": RACES,
    "client_nonce": RACES,
    "prf_domain": {"D101"},
    "mode": {"D101", "L201", "L609", "L604"},
    "claim_type": {"L609"},
    "race": {"D101", "L201"},
    "keys": {"D101", "L201"} | RACES,
    "recipe": {"D101", "L504"},
    "tilt": {"L201"},
    "beta": {"L201"},
    "inflate": {"L201"} | RACES,
    "tau": {"L201"} | RACES,
    "alpha": {"L201", "L605", "L604", "L609"},
    "eta": {"L201", "L604", "L609"},
    "top": RACES,
    "truncate": {"L201", "L609", "L611"} | RACES,
    "count_bits": RUNS_ON,
    "run_limits": {"L604", "L607"},
    "privacy_scope": {"D101"},
    "node_id": {"L402", "L601"},
    "parent_id": {"L402"},
    "ctx_digest": {"L401"},
    "ctx_repr": {"L402"},
    "call": {"L402"},
    "state": {"L402"},
    "N": {"L402"},
    "Nub": {"L402"},
    "U": {"L501"},
    "key_raw": {"L504"},
    "neg_log_t": {"L503"},
    "tie_token": {"L402"},
    "W": {"L501"},
    "winner": {"L502"},
    "dead_end": {"L103"},
    "phi_before": {"L605"},
    "phi_after": {"L605"},
    "delta_phi": {"L605"},
    "V": {"L505"},
    "U_P": {"L505"},
    "incumbent": {"L606"},
    "step": {"L402", "L601"},
    "records": {"L104"},
    "stop": {"L607"},
    "frontier_key": {"L610"},
    "gap": {"L610"},
    "plans": {"L610"},
    "expansions": {"L610"},
    "leaves": {"L610"},
    "materialised": {"L610"},
    "tail_lse": {"L611"},
    "law": {"L610"},
    "seed": {"L301"},
    "opening_salt": {"L301"},
    "guards": {"L604"},
}


def another_honest_run(
    mutant: Mutant, artifact: CheckedArtifact, told: dict[str, Any], original: list[dict[str, Any]]
) -> bool:
    """Whether the reference writer writes this ledger when told its header's settings."""
    if mutant.field == "dropped_bytes":
        return True  # what was dropped is gone: nobody can know how much it was
    header = mutant.records[0]
    named = (*SETTINGS, "run_limits", "claim_type", "beacon", "client_nonce")
    if mutant.record != 0 or mutant.field not in named:
        return False
    changed = {name: header[name] for name in SETTINGS}
    changed["max_expansions"] = header["run_limits"].get("max_expansions")
    changed["silent"] = header["claim_type"] == "NoCert"
    for name, setting in (("beacon", "beacon"), ("client_nonce", "nonce")):
        changed[setting] = bytes.fromhex(header[name]) if name in header else None
    written = reference_records(artifact, **{**told, **changed})
    resumed = [(at, r) for at, r in enumerate(original) if r["kind"] == "recovered"]
    for at, record in resumed:
        written.insert(at, record)
    return chained(written) == mutant.data


def forge_fields(name: str, stride: int) -> None:
    told = runs()[name][1]
    artifact, records = forged_run(name)
    assert validate(chained(records), artifact).verdict == 0
    tried, honest, wrong = 0, [], []
    for mutant in islice(field_mutants(records), len(name) % stride, None, stride):
        tried += 1
        place = f"{mutant.records[mutant.record].get('kind')} {mutant.field}: {mutant.how}"
        found = validate(mutant.data, artifact)
        if found.verdict == 0:
            if another_honest_run(mutant, artifact, told, records):
                honest.append(place)
            else:
                wrong.append(f"SURVIVES {place}")
            continue
        code = found.findings[0].code.value
        if code != "L103" and code not in FIELD_CODES[mutant.field]:
            wrong.append(f"{code} {place}")
    survivors = sum(place.startswith("SURVIVES") for place in wrong)
    print(f"{name}: {tried} mutants, {len(honest)} other honest runs, {survivors} survivors")
    assert tried * stride > 900
    assert not wrong, wrong
    assert len(honest) <= 20, honest


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_prefix_is_no_part_of_the_header_that_can_be_changed(race: str) -> None:
    told = {"race": race, "top": 2}
    without, behind = (reference_records(small(), after=a, **told) for a in ((), ("a",)))
    for records, after, due in (
        (without, ["a"], "L201"),  # `truncate` is that of the artifact's root
        (without, ["z"], "L201"),
        (without, ["a", "a", "a"], "L201"),
        (without, [], "L103"),
        (without, "a", "L103"),
        (behind, ["b"], "L401"),
        (behind, ["a", "a"], "L201"),
        (behind, ["A"], "L201"),
        (behind, [1], "L103"),
        (behind, None, "L609"),  # `truncate` would be a cut
    ):
        header = {name: value for name, value in records[0].items() if name != "after"}
        if after is not None:
            header["after"] = after
        assert refused_by(header, records) == due, after
    # The other settings in keeping with it, too.
    for after, rank in ((["a"], 1), (["b", "c"], 0)):
        header = {**without[0], "after": after, "truncate": rank}
        assert refused_by(header, without) == "L401"
    header = {name: value for name, value in behind[0].items() if name != "after"}
    assert refused_by({**header, "truncate": 2}, behind) == "L401"


def refused_by(header: dict[str, Any], records: list[dict[str, Any]]) -> str:
    """The code that refuses these records behind another header; the root's id follows from D."""
    found = validate(chained([with_run_id(header), *records[1:]]), small())
    assert found.verdict == 1
    codes = [(finding.code.value, finding.field) for finding in found.findings]
    if codes[0] == ("L402", "node_id"):
        assert codes[1] == ("L401", "ctx_digest")
        return "L401"
    return codes[0][0]


def forge_lines(name: str, stride: int) -> None:
    artifact, records = forged_run(name)
    mutants = list(islice(line_mutants(records), 0, None, stride))
    survivors = [m for m in mutants if validate(m.data, artifact).verdict == 0]
    print(f"{name}: {len(mutants)} mutants, {len(survivors)} survivors")
    # A run may be resumed or not: that record alone may be left out.
    assert [(m.field, m.how) for m in survivors] in ([], [("recovered", "dropped")])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(12)
def test_no_single_field_mutant_is_valid(name):
    forge_fields(name, STRIDE)


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_no_single_field_mutant_is_valid_campaign(name):
    forge_fields(name, 1)


@pytest.mark.parametrize("name", NAMES)
def test_no_record_can_be_dropped_doubled_or_moved(name):
    forge_lines(name, 3)


@pytest.mark.campaign
@pytest.mark.parametrize("name", NAMES)
def test_no_record_can_be_dropped_doubled_or_moved_campaign(name):
    forge_lines(name, 1)


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


def flipped_line_is_refused(line: bytes, number: int, head: bytes, at: int, bit: int) -> None:
    """The reader, told what stands before a line, refuses it with one bit flipped."""
    forged = line[:at] + bytes([line[at] ^ (1 << bit)]) + line[at + 1 :]
    reader = LedgerReader([forged])
    reader.records, reader.head = number, head
    if forged.endswith(b"\n"):
        with pytest.raises(Rejected):
            list(reader)
    else:
        assert list(reader) == []  # a cut, or glued to the next line


@pytest.mark.campaign
@pytest.mark.parametrize("name", [*NAMES, "top1 b", "relaxed b", "sets b"])
def test_every_bit_flip_and_every_cut_campaign(name):
    """20 ledgers: a cut at any byte is incomplete, a flip of any bit never valid.

    Every flip is given to the reader at its line, whose refusal ends a validation; some to the
    validator as a whole.
    """
    plain = name.removesuffix(" b")
    artifact, records = forged_run(plain)
    if plain != name:
        records = reference_records(artifact, **{**runs()[plain][1], "seed": b"\x09" * 32})
    data = chained(records)
    for at in range(len(data)):
        assert validate(data[:at], artifact).verdict == 2, at
    head, start = FIRST_HEAD, 0
    for number, record in enumerate(records):
        line, after = seal(record, head)
        for at in range(len(line)):
            for bit in range(8):
                flipped_line_is_refused(line, number, head, at, bit)
        for at in range(start, start + len(line), 13):
            forged = data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]
            assert validate(forged, artifact).verdict != 0, at
        head, start = after, start + len(line)
    print(f"{name}: {len(data)} cuts, {8 * len(data)} bit flips, 0 survivors")


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
    records = reference_records(small(), max_expansions=2, top=2)
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

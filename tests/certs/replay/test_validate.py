"""What the validator says of honest ledgers, of cut ones, and of those it has no rules for."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest

from tcc_certs.errors import Code
from tcc_certs.kernel import check
from tcc_certs.replay import kinds, validate
from tcc_certs.replay.findings import Findings
from tcc_certs.replay.header import read_header
from tcc_certs.replay.kappa import Kappa
from tcc_certs.replay.language import read_language, root_of
from tcc_certs.replay.run import ReplayedRun, Turn, made_of
from tcc_certs.replay.tree import PRIME, root_node, share_of
from tcc_certs.replay.validation import policy_of
from tcc_certs.statements import residual_constraints
from tests.oracle_ledger.artifacts import drawn, small, vectors
from tests.oracle_ledger.writer import chained, reference_ledger, reference_records, with_run_id

SETTINGS = [
    {},
    {"top": 3},
    {"top": 100},
    {"recipe": "r1"},
    {"seed": b"\x07" * 32, "salt": b"\x09" * 32},
    {"alpha": "0.5", "eta": "0.25"},
    {"alpha": "2", "eta": "0.5", "top": 4},
    {"started_ms": 0},
    {"started_ms": 2**48 - 1},
]
STOPS = [{"max_expansions": 1}, {"max_expansions": 0}, {"interrupt_after": 2}]


def codes(validation) -> list[str]:
    return [finding.code.value for finding in validation.findings]


@pytest.mark.parametrize("told", SETTINGS, ids=str)
@pytest.mark.parametrize("tilt", [0, 8])
def test_a_reference_run_is_valid(told, tilt):
    records = reference_records(small(tilt), **told)
    found = validate(chained(records), small(tilt))
    assert (found.verdict, found.findings) == (0, ())
    assert found.claim_type == records[-1]["claim_type"]
    assert found.claim_upheld == (found.claim_type == "RunWiseExact")
    assert found.checked == {
        "records": len(records),
        "nodes": sum(r["kind"] == "node" for r in records),
        "expansions": records[-1]["expansions"],
        "leaves": records[-1]["leaves"],
    }
    assert found.kappa == {
        "nodes": found.checked["nodes"], "tightened": 0, "mean": "0.0000000000"
    }  # fmt: skip


@pytest.mark.parametrize("told", STOPS, ids=str)
def test_a_run_that_was_stopped_is_valid_and_upholds_nothing(told):
    found = validate(reference_ledger(small(), **told), small())
    assert (found.verdict, found.claim_type, found.claim_upheld) == (0, "NoCert", False)
    assert found.summary.startswith("valid, no claim")


def test_a_steep_potential_takes_the_claim_down():
    records = reference_records(small(), alpha="2", eta="0.5", top=4)
    assert any(record.get("guards") == ["AcyclicityFail"] for record in records)
    assert records[-1]["stop"] == "bound"
    found = validate(chained(records), small())
    assert (found.verdict, found.claim_type) == (0, "NoCert")


def test_the_summary_says_what_was_shown():
    value = reference_records(small())[-1]["plans"][0]["value"]
    assert validate(reference_ledger(small()), small()).summary == (
        f"claim upheld: no other plan could have scored above V = {value} in this run"
    )
    every = validate(reference_ledger(small(), top=50), small())
    assert every.summary == "claim upheld: these 13 are all the plans there are"


def test_random_grammars_seeds_and_settings_are_valid():
    rng = random.Random(21)
    for _ in range(40):
        artifact = drawn(rng)
        ledger = reference_ledger(
            artifact,
            seed=rng.randbytes(32),
            top=rng.choice([1, 2, 7]),
            recipe=rng.choice(["r1", "r2"]),
            max_expansions=rng.choice([None, None, 2, 5]),
        )
        found = validate(ledger, artifact)
        assert (found.verdict, found.findings) == (0, ())


def test_chunks_iterators_and_bytes_come_to_the_same():
    data = reference_ledger(small())
    whole = validate(data, small())
    for size in (1, 33, 10**6):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert validate(chunks, small()) == whole
        assert validate(iter(chunks), small()) == whole


def test_a_withheld_seed_is_asked_for_and_then_used():
    ledger = reference_ledger(small(), withhold=True, salt=b"s" * 32)
    without = validate(ledger, small())
    assert (without.verdict, codes(without)) == (2, ["D302"])
    assert not without.claim_upheld
    given = validate(ledger, small(), seed=bytes(32), opening_salt=b"s" * 32)
    assert (given.verdict, given.claim_upheld) == (0, True)
    wrong = validate(ledger, small(), seed=bytes(32))
    assert codes(wrong) == ["L301"]


def test_a_seed_that_is_given_must_be_the_one_that_is_logged():
    ledger = reference_ledger(small())
    assert validate(ledger, small(), seed=bytes(32)).verdict == 0
    assert codes(validate(ledger, small(), seed=b"\x01" * 32)) == ["L301"]
    assert codes(validate(ledger, small(), seed=b"short")) == ["L301"]
    assert codes(validate(ledger, small(), opening_salt=bytes(32))) == ["L302"]


@pytest.mark.parametrize("name", ["seed", "opening_salt"])
def test_seed_and_salt_are_withheld_together_or_not_at_all(name):
    records = reference_records(small())
    del records[-1][name]
    for seed in (None, bytes(32)):
        found = validate(chained(records), small(), seed=seed)
        assert (found.verdict, found.findings[0].code) == (1, Code.LEDGER_SCHEMA)


def test_a_pin_is_held():
    ledger, digest = reference_ledger(small()), small().file.digest.hex()
    assert validate(ledger, small(), pin=digest).verdict == 0
    found = validate(ledger, small(), pin="00" * 32)
    assert (found.verdict, codes(found), found.findings[0].line) == (1, ["P101"], 0)


def test_artifact_bytes_go_through_the_kernel():
    found = validate(reference_ledger(small()), b"no artifact")
    assert found.verdict == 1
    assert found.findings[0].code.value.startswith("B2")


def test_another_artifact_is_refused():
    ledger = reference_ledger(small())
    for other in (small(0), small(8, "2"), small(8, "1", "h"), vectors(8)):
        assert codes(validate(ledger, other))[-1] == "L202"


def test_every_cut_is_incomplete_with_its_verified_prefix():
    data = reference_ledger(small())
    ends = [at + 1 for at, byte in enumerate(data) if byte == 10]
    near = {end + by for end in ends for by in (-1, 0, 1)} - {len(data), len(data) + 1}
    for at in sorted(near | set(range(0, len(data), 23))):
        found = validate(data[:at], small())
        assert (found.verdict, codes(found)) == (2, ["D301"]), at
        known = sum(end <= at for end in ends)
        assert found.checked["records"] == known
        left = at - max([0, *(end for end in ends if end <= at)])
        more = f", then {left} bytes without an LF" if left else ""
        assert found.findings[0].found == f"{known} verified records, head {found.head}{more}"


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"no ledger", b"\x89PNG\r"])
def test_what_has_no_whole_line_is_said_to_have_none(data):
    found = validate(data, small())
    assert (found.verdict, codes(found)) == (2, ["D301"])
    assert found.summary.startswith("incomplete: not one whole line that ends in an LF; 0 verified")
    assert found.summary.endswith(f"then {len(data)} bytes without an LF" if data else "0")
    assert "replays" not in found.summary


def test_line_endings_of_other_systems_are_named():
    data = reference_ledger(small()).replace(b"\n", b"\r\n")
    found = validate(data, small()).findings[-1]
    assert (found.code, found.line) == ("L101", 1)
    assert (found.expected, found.found) == ("LF alone at its end", "CR LF")


def test_nothing_follows_close():
    data = reference_ledger(small())
    assert codes(validate(data + b"x", small())) == ["L104"]
    records = reference_records(small())
    assert codes(validate(chained([*records, records[-1]]), small())) == ["L104"]
    assert codes(validate(data + b"\n", small())) == ["D302", "L101"]


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("mode", "surrogate", "L609"),
        ("mode", "fallback", "L609"),
        ("mode", "exactly", "D101"),
        ("race", "sum", "D101"),
        ("race", "literal", "L201"),
        ("keys", "late", "D101"),
        ("recipe", "r3", "D101"),
        ("prf_domain", "tcc.race.v2", "D101"),
        ("privacy_scope", "raw_input_dependent", "L609"),
        ("privacy_scope", "all_is_private", "D101"),
        ("schema", "tcc.ledger/1.0", "D102"),
        ("truncate", 1, "L609"),
        ("truncate", 3, "L201"),
        ("inflate", "1.5", "L201"),
        ("inflate", "0.5", "L201"),
        ("tau", "0", "L201"),
        ("tau", "-1", "L201"),
        ("alpha", "-1", "L201"),
        ("eta", "0", "L201"),
        ("eta", "1.5", "L201"),
        ("tilt", 9, "L201"),
        ("beta", "2", "L201"),
        ("grammar", "other", "L201"),
        ("grammar_version", "2", "L201"),
        ("root_state", "00" * 32, "L201"),
        ("artifact", "00" * 32, "L202"),
        ("claim_type", "RunWiseSurrogate", "L609"),
        ("claim_type", "TruncationOnly", "L609"),
        ("claim_type", "Certain", "L609"),
        ("beacon", "x", "L103"),
        ("beacon", "", "L103"),
        ("client_nonce", "0", "L103"),
        ("client_nonce", "0G", "L103"),
        ("started_ms", -1, "L103"),
        ("started_ms", 2**48, "L103"),
        ("top", 0, "L103"),
        ("run_limits", {"max_ms": "1"}, "L103"),
        ("run_limits", {"max_s": 1}, "L103"),
    ],
)
def test_a_header_field_meets_its_code(name, value, code):
    records = reference_records(small())
    records[0] = with_run_id({**records[0], name: value})
    found = validate(chained(records), small())
    assert found.findings[0].code.value == code
    assert found.findings[0].field in (name, "artifact", "claim_type")
    assert found.verdict == (2 if code.startswith("D") else 1)


def test_a_ledger_over_ranges_says_how_the_run_asks():
    from tests.oracle.build import build
    from tests.oracle.cores import letters, make_core

    core = make_core(**letters(1, cost=[1], high=[2]), plan=["call", {0}])
    artifact = check(build(core, [(0,)]))
    found = validate(reference_ledger(artifact), artifact)
    assert (found.verdict, codes(found)) == (1, ["L201"])
    assert found.findings[0].field == "controller"


def test_the_root_may_be_a_leafy_automaton_of_the_empty_plan_alone():
    from tests.oracle.build import build
    from tests.oracle.cores import letters, make_core

    artifact = check(build(make_core(**letters(1), plan=["empty"]), [()]))
    found = validate(reference_ledger(artifact), artifact)
    assert (found.verdict, found.claim_upheld, found.checked["leaves"]) == (0, True, 1)


def test_findings_end_at_a_hundred():
    records = reference_records(small(), top=13)
    for record in records:
        if record["kind"] == "node":
            record["neg_log_t"] = record["key_raw"] = "0.00000000000000000001"
            record["ctx_repr"] = "?"
            record["N"] = "77"
            record["state"] = 0
    found = validate(chained(records), small())
    assert (found.verdict, len(found.findings)) == (1, 100)


@pytest.mark.parametrize(("key", "stops"), [(41, True), (42, True), (43, False)])
def test_the_stop_rule_holds_at_a_key_equal_to_the_incumbent(key, stops):
    language = read_language(small())
    header = read_header(reference_records(small())[0])
    constraints = residual_constraints(small(), header.truncate)
    run = ReplayedRun(
        language=language,
        root=root_of(small()),
        constraints=constraints,
        header=header,
        policy=policy_of(header, language),
        refinement=None,
        key=None,
        kappa=Kappa(language, None, root_of(small())),
        findings=Findings(),
    )
    root = root_node(root_of(small()), constraints, None)
    run.best.add(root, 42)
    run.frontier.push(replace(root, key=key))
    assert (run.turn is Turn.CLOSE) is stops


def test_coverage_is_a_check_of_its_own(monkeypatch):
    # A replay that loses a popped leaf's share of the root is found out by the sum.
    ledger = reference_ledger(small())
    monkeypatch.setattr(kinds, "share", lambda language, node: 0)
    found = validate(ledger, small())
    assert [(f.code, f.field) for f in found.findings] == [(Code.COVERAGE, "coverage")]


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("more", [1, -1, PRIME])
def test_a_pop_keeps_its_mass_as_an_integer(monkeypatch, race, more):
    # The residues of the sum over the run do not tell 0 from PRIME; what is held at each pop does.
    def wrong(*told):
        made = made_of(*told)
        return made._replace(lost=made.lost + more)

    ledger = reference_ledger(small(), race=race)
    monkeypatch.setattr(kinds, "made_of", wrong)
    found = validate(ledger, small())
    assert [(f.code, f.field) for f in found.findings] == [(Code.COVERAGE, "coverage")]
    assert found.findings[0].line < ledger.count(b"\n")


def test_shares_are_the_residues_of_the_rationals_of_the_definition():
    rng = random.Random(5)
    for _ in range(200):
        bits, weights = rng.randrange(65), [rng.randrange(1, 1 << 64) for _ in range(9)]
        mass, unit = rng.randrange(1 << rng.randrange(1, 900)), rng.randrange(-300, 900)
        share, weight = Fraction(mass) / Fraction(2) ** unit, 1
        for call in weights:
            share *= Fraction(call, 1 << bits)
            weight = share_of(weight, call, bits)
        due = share.numerator * pow(share.denominator, -1, PRIME) % PRIME
        assert share_of(weight, mass, unit) == due


@pytest.mark.parametrize("junk", [b"", b"\n", b"{}\n", b"\x00" * 99, b"[" * 10**6, b'{"~":0}\n'])
def test_junk_is_never_valid_and_never_raises(junk):
    assert validate(junk, small()).verdict in (1, 2)

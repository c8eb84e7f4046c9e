"""What a validation says in words, to the letter: no sentence says more than was shown."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tcc_certs.formats import ledger as lines
from tcc_certs.formats.codec import Json
from tcc_certs.replay import validate, validation
from tests.forgery import test_range_forgeries as ranges
from tests.oracle_ledger.artifacts import small
from tests.oracle_ledger.writer import chained, opening_of, reference_records, with_run_id

NOTHING_KNOWN = {"nodes": 0, "tightened": 0, "mean": "0.0000000000"}


@pytest.mark.parametrize(
    ("told", "due"),
    [
        ({}, "no other plan could have scored above V = {value} in this run"),
        ({"top": 3}, "no plan but these 3 could have scored above V = {value} in this run"),
        ({"top": 13}, "no plan but these 13 could have scored above V = {value} in this run"),
        ({"top": 14}, "these 13 are all the plans there are"),
        (
            {"truncate": 1},
            "no other plan of at most 1 calls could have scored above V = {value} in this run",
        ),
        (
            {"truncate": 1, "top": 3},
            "no plan of at most 1 calls but these 3 could have scored above V = {value} in {run}",
        ),
        ({"truncate": 1, "top": 5}, "these 4 are all the plans of at most 1 calls there are"),
        ({"truncate": 0, "top": 2}, "this is the only plan of at most 0 calls there is"),
        (
            {"after": ("a",)},
            "no other plan after the call made could have scored above V = {value} in this run",
        ),
        ({"after": ("a",), "top": 9}, "these 4 are all the plans after the call made there are"),
        (
            {"after": ("a", "b")},
            "no other plan after the 2 calls made could have scored above V = {value} in this run",
        ),
        ({"after": ("a", "b"), "top": 2}, "this is the only plan after the 2 calls made there is"),
    ],
    ids=str,
)
def test_a_claim_is_said_as_far_as_it_goes(told, due):
    records = reference_records(small(), **told)
    value = records[-1]["plans"][-1]["value"]
    found = validate(chained(records), small())
    assert (found.verdict, found.claim_upheld) == (0, True)
    assert found.summary == "claim upheld: " + due.format(value=value, run="this run")
    assert found.after == told.get("after", ())


def test_a_claim_over_ranges_says_that_it_holds_whatever_a_plan_costs():
    artifact, _, records = ranges.forged_run("rest")
    value = records[-1]["plans"][-1]["value"]
    assert validate(chained(records), artifact).summary == (
        f"claim upheld: no plan but these 2 could have scored above V = {value} in this run, "
        "whatever it costs within its range"
    )


@pytest.mark.parametrize(
    ("told", "due"),
    [
        ({"max_expansions": 1}, "; it found no plan, and does not show there is none"),
        (
            {"mode": "fallback", "interrupt_after": 0},
            "; it found no plan, and does not show there is none",
        ),
        ({"mode": "fallback"}, "; its keys bound nothing"),
        (
            {"keys": "anchored", "max_expansions": 5, "top": 2},
            "; another plan may score up to {gap} above V",
        ),
        (
            {"silent": True},
            "; no key left exceeds V = {value}, but the ledger claims nothing from its first line",
        ),
        (
            {"silent": True, "header": (("privacy_scope", "raw_input_dependent"),)},
            (
                "; no key left exceeds V = {value}, but the raw input decided the grammar or the "
                "models, so nothing is certified"
            ),
        ),
        (
            {"alpha": "1", "top": 3},
            "; no key left exceeds V = {value}, but a guard took the claim away",
        ),
        ({"silent": True, "top": 13}, ", and shows nothing about other plans"),
        ({"silent": True, "top": 14}, ", and shows nothing about other plans"),
    ],
    ids=str,
)
def test_without_a_claim_it_is_said_what_is_not_shown(told, due):
    records = reference_records(small(), **told)
    found = validate(chained(records), small())
    assert (found.verdict, found.claim_upheld) == (0, False)
    plans = records[-1]["plans"]
    expected = due.format(gap=records[-1].get("gap"), value=plans[-1]["value"] if plans else "")
    assert found.summary == f"valid, no claim: the run replays{expected}"


def test_a_key_that_equals_the_value_does_not_exceed_it():
    header = SimpleNamespace(raw=False, claim_type="ScoreBound")
    for key, says in ((7, "no key left exceeds V"), (8, "another plan may score up to")):
        run: Any = SimpleNamespace(
            best=SimpleNamespace(incumbent=7, ranked=[()]),
            frontier=SimpleNamespace(top=SimpleNamespace(key=key)),
            policy=SimpleNamespace(law="softmax"),
            header=header,
        )
        assert says in validation._no_claim_text(run)


@pytest.mark.parametrize("public", [{"beacon": b"b"}, {"nonce": b"n"}])
@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_only_an_opening_with_a_beacon_or_a_nonce_shows_how_the_seed_came_about(
    public, opened, known
):
    records = reference_records(small(), **public)
    given: dict[str, bytes] = {"opening": opening_of(records[0])} if opened else {}
    found = validate(chained(records), small(), **given, **(public if known else {}))
    assert found.verdict == 0
    said = "; seed and settings were fixed before what the auditor gave was known" in found.summary
    assert said is (opened and known)


def test_what_is_invalid_is_said_with_its_first_finding():
    records = reference_records(small())
    forged = [records[0], {**records[1], "key_raw": "0.00000000000000000001"}, *records[2:]]
    found = validate(chained(forged), small())
    key = records[1]["key_raw"]
    assert found.word == "INVALID"
    assert found.summary == (
        f"invalid (1 findings); first L504, line 2, key_raw: expected {key}, "
        "found 0.00000000000000000001"
    )
    whole = chained(forged)
    cut = validate(whole[: whole.rindex(b"\n", 0, -1) + 1], small())
    assert [finding.code.value for finding in cut.findings] == ["L504", "D301"]
    assert (cut.verdict, cut.word) == (1, "INVALID")


@pytest.mark.parametrize(
    ("seed", "due"), [(None, ", its uniforms unchecked for want of the seed"), (bytes(32), "")]
)
def test_what_is_incomplete_says_how_far_it_replays(seed, due):
    data = chained(reference_records(small()))
    cut = data[: data.rindex(b"\n", 0, -1) + 1]
    found = validate(cut, small(), seed=seed)
    assert (found.verdict, found.word) == (2, "INCOMPLETE")
    assert found.summary == (
        f"incomplete: no close record; what is there replays{due}; "
        f"{cut.count(10)} verified records, head {found.head}"
    )


def test_a_withheld_seed_decides_nothing():
    found = validate(chained(reference_records(small(), withhold=True)), small())
    assert (found.verdict, found.word) == (2, "DECLINED")
    assert found.summary == (
        "not decided: it replays, but the seed is withheld and the uniforms are unchecked"
    )


def test_what_is_declined_is_said_with_its_place(monkeypatch):
    records = reference_records(small())
    head = with_run_id({**records[0], "mode": "exactly"})
    found = validate(chained([head, *records[1:]]), small())
    due = "declined: D101, line 1, mode: expected exact or surrogate or fallback, found exactly"
    assert (found.word, found.summary) == ("DECLINED", due)
    # Nothing is verified of a first line that is too long, and yet it is not incomplete.
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 10)
    found = validate(chained(records), small())
    assert [(f.code.value, f.line, f.field) for f in found.findings] == [("D201", 1, "line")]
    due = "declined: D201, line 1, line: expected at most 10 bytes, found more"
    assert (found.word, found.summary) == ("DECLINED", due)


def test_before_a_run_begins_kappa_is_of_no_node():
    found: dict[str, Json] = dict(validate(b"junk\n", small()).kappa)
    assert found == NOTHING_KNOWN


@pytest.mark.parametrize("name", ["atoms", "atoms of the input", "account of atoms"])
def test_what_is_stated_of_privacy_is_what_the_ledger_ends_with(name):
    artifact, _, records = ranges.forged_run(name)
    stated = {key: records[-1][key] for key in ("router_rdp_eps", "alpha_selected", "eps_delta")}
    atoms = [*records[0].get("atoms", ()), *[r["atom"] for r in records if "atom" in r]]
    number = sum(atom.get("times", 1) for atom in atoms)
    found = validate(chained(records), artifact)
    due = {"privacy_scope": "post_processing_only", "atoms": number, **stated}
    assert found.privacy == due
    forged = [*records[:-1], {**records[-1], "leaves": records[-1]["leaves"] + 1}]
    assert validate(chained(forged), artifact).privacy is None
    assert validate(chained(records)[:-9], artifact).privacy is None


def test_of_privacy_nothing_is_stated_without_atoms_and_of_raw_input_the_scope_alone():
    artifact, _, records = ranges.forged_run("raw input")
    assert validate(chained(records), artifact).privacy == {"privacy_scope": "raw_input_dependent"}
    artifact, _, records = ranges.forged_run("leaf")
    assert validate(chained(records), artifact).privacy is None
    assert validate(chained(reference_records(small())), small()).privacy is None
    data, artifact = ranges.ranges(atoms=True)  # an account is kept, and nothing was asked
    told = {"seed": ranges.SEED, "ask": "never", "delta": "0.000001"}
    silent = validate(chained(ranges.honest(data, told, None)), artifact)
    assert (silent.verdict, silent.privacy) == (0, None)
    assert validate(b"junk\n", artifact).privacy is None

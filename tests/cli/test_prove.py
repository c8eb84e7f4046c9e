"""`tcc prove`: verdicts, exit codes, documents, proofs and mistakes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tcc_certs.__main__ import main as kernel
from tests.cli.conftest import Tcc
from tests.exact.test_forged import TEXT


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.tcg"
    path.write_text(TEXT)
    return path


def test_a_proof_names_what_it_used_and_can_be_checked(tcc: Tcc, shop: Path) -> None:
    proof, artifact = shop.with_suffix(".proof"), shop.with_suffix(".tcca")
    asked = "before refund require find(same order)"
    found = tcc("prove", shop, asked, "-o", proof)
    assert found.code == 0 and found.out.startswith(f"proved: {asked}\n")
    assert "by  before refund require last(find(same order)).owner = session.customer" in found.out
    assert tcc("compile", shop, "-o", artifact).code == 0
    checked = tcc("check", proof, "--artifact", artifact)
    assert checked.code == 0
    assert checked.out.startswith(f"VALID: every session of this core satisfies {asked}\n")
    assert tcc("check", proof).code == 2
    proof.write_bytes(proof.read_bytes().replace(b'"formula"', b'"both"', 1))
    assert "T105" in tcc("check", proof, "--artifact", artifact).out


def test_a_refuted_statement_has_a_session_that_replay_reads(tcc: Tcc, shop: Path) -> None:
    found = tcc("prove", shop, "before refund require approve(same order)", "--json")
    assert found.code == 1
    document = found.json
    assert (document["format"], document["verdict"]) == ("tcc.prove", "refuted")
    assert [call["tool"] for call in document["session"]] == ["find", "refund"]
    recorded = shop.with_suffix(".jsonl")
    recorded.write_text(json.dumps({"given": document["given"], "calls": document["session"]}))
    assert tcc("replay", shop, recorded).code == 0


def test_calls_are_reachable_or_not(tcc: Tcc, shop: Path) -> None:
    found = tcc("prove", shop, "--reachable", "refund(amount > 100)", "--json")
    assert (found.code, found.json["verdict"]) == (0, "reachable")
    assert [call["tool"] for call in found.json["session"]][-1] == "refund"
    found = tcc("prove", shop, "--reachable", "refund(amount > 500)", "--json")
    assert (found.code, found.json["verdict"]) == (1, "unreachable")
    assert "session" not in found.json


def test_a_grammar_implies_itself_and_a_looser_one(tcc: Tcc, shop: Path) -> None:
    looser = shop.with_name("looser.tcg")
    looser.write_text(TEXT.replace("amount <= 100 or", "amount <= 200 or").replace("<= 3", "<= 5"))
    assert tcc("prove", shop, "--implies", shop).code == 0
    assert tcc("prove", shop, "--implies", looser).code == 0
    assert tcc("prove", looser, "--implies", shop).code == 1


def test_a_proof_about_another_policy_does_not_show_that_it_allows_every_session(
    tcc: Tcc, shop: Path
) -> None:
    looser, other = shop.with_name("looser.tcg"), shop.with_name("other.tcg")
    looser.write_text(TEXT.replace("amount <= 100 or", "amount <= 200 or"))
    other.write_text(TEXT.replace("<= 3", "<= 5"))
    proof, artifact = shop.with_suffix(".proof"), shop.with_suffix(".tcca")
    assert tcc("compile", shop, "-o", artifact).code == 0
    assert tcc("prove", artifact, "--implies", looser, "-o", proof).code == 0
    about = ("check", proof, "--artifact", artifact, "--implies")
    allowed = tcc(*about, looser)
    assert allowed.code == 0
    assert allowed.out.startswith("VALID: every session of shop satisfies the policy of shop\n")
    refused = tcc(*about, other)
    assert refused.code == 1 and refused.out.startswith("INVALID: T102 ")
    assert kernel([str(one) for one in (*about, artifact)]) == 1
    assert tcc("check", artifact, "--implies", artifact).code == 2


def test_options_about_an_artifact_are_not_ignored_for_a_proof(tcc: Tcc, shop: Path) -> None:
    proof, artifact = shop.with_suffix(".proof"), shop.with_suffix(".tcca")
    assert tcc("compile", shop, "-o", artifact).code == 0
    assert tcc("prove", artifact, "before refund require find(same order)", "-o", proof).code == 0
    about = ("check", proof, "--artifact", artifact)
    digest = library.load(artifact).digest.hex()
    assert tcc(*about, "--pin", digest).code == 0
    other = tcc(*about, "--pin", "0" * 64)
    assert other.code == 1 and other.out.startswith("INVALID: P101 ")
    for option in ("--core", "--exact", "--locked", "--kernel=fast"):
        refused = tcc(*about, option)
        assert refused.code == 2 and "not for a proof" in refused.err
    assert kernel([str(one) for one in (*about, "--core")]) == 2
    assert kernel([str(one) for one in (*about, "--pin", "0" * 64)]) == 1


def test_sessions_that_can_be_finished_have_a_proof(tcc: Tcc, shop: Path) -> None:
    bound = shop.with_name("bound.tcg")
    bound.write_text(TEXT + "finally require over\n")
    proof, artifact = shop.with_suffix(".proof"), shop.with_suffix(".tcca")
    assert tcc("prove", bound, "--finishable", "-o", proof).out.startswith("proved: finishable\n")
    assert tcc("compile", bound, "-o", artifact).code == 0
    checked = tcc("check", proof, "--artifact", artifact)
    assert checked.out.startswith("VALID: every session of this artifact can be finished\n")


ENDLESS = (
    ("plan = find approve(answer = yes) refund?", "approve"),
    ("finally require approve(answer = yes)", "approve"),
    (
        "after refund owe approve(same order)\nbefore approve require no refund(same order)",
        "refund",
    ),
)


@pytest.mark.parametrize(("statements", "last"), ENDLESS)
def test_a_session_that_can_never_end_refutes(
    tcc: Tcc, shop: Path, statements: str, last: str
) -> None:
    shop.write_text(TEXT.replace("limit depth <= 40", f"limit depth <= 6\n{statements}"))
    found = tcc("prove", shop, "--finishable", "--json")
    assert (found.code, found.json["verdict"]) == (1, "refuted")
    assert found.json["session"][-1]["tool"] == last
    recorded = shop.with_suffix(".jsonl")
    recorded.write_text(json.dumps({"given": found.json["given"], "calls": found.json["session"]}))
    assert tcc("replay", shop, recorded).code == 0


def test_an_end_that_is_not_decided_says_why(tcc: Tcc, shop: Path) -> None:
    shop.write_text(TEXT + "after refund owe approve(same order)\n")
    found = tcc("prove", shop, "--finishable")
    assert found.code == 2 and "after refund owe approve(same order)" in found.out
    shop.write_text(
        TEXT + "finally require over\nbefore over require last(find).owner = session.customer\n"
    )
    found = tcc("prove", shop, "--finishable")
    assert found.code == 2 and "each way to an end has a call" in found.out


@pytest.mark.parametrize("seconds", ["nan", "inf", "0", "-1", "soon"])
def test_a_timeout_that_is_no_number_above_0_is_bad_usage(
    tcc: Tcc, shop: Path, seconds: str
) -> None:
    found = tcc("prove", shop, "before refund require find", "--timeout", seconds)
    assert found.code == 2 and "--timeout" in found.err


def test_an_open_question_names_the_statement_and_the_condition(tcc: Tcc, shop: Path) -> None:
    shop.write_text(TEXT + "before refund require count(distinct(find.owner)) >= 5\n")
    asked = "before refund require count(distinct(find.owner)) >= 6"
    found = tcc("prove", shop, asked, "--timeout", "3", "--json")
    assert (found.code, found.json["verdict"]) == (2, "undecided")
    assert "`before refund require" in found.json["missing"]
    assert found.err == ""


def test_progress_is_reported_while_a_question_is_open(shop: Path) -> None:
    shop.write_text(TEXT + "before refund require count(distinct(find.owner)) >= 5\n")
    seen: list[tuple[float, int, int]] = []
    asked = "before refund require count(distinct(find.owner)) >= 6"
    found = library.prove(shop, asked, timeout=3, progress=lambda *now: seen.append(now))
    assert found.verdict == "undecided"
    assert seen == sorted(seen) and seen[-1][0] <= 4


def test_mistakes_in_a_question_are_bad_usage(tcc: Tcc, shop: Path) -> None:
    found = tcc("prove", shop, "before refnd require find")
    assert found.code == 2 and "TCC202" in found.err and "did you mean 'refund'?" in found.err
    assert tcc("prove", shop, "tool x").code == 2
    assert tcc("prove", shop).code == 2
    assert tcc("prove", shop, "forbid over", "--finishable").code == 2
    assert tcc("prove", shop, "--reachable", "refund or find").code == 2

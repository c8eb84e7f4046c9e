"""``tcc run --checked`` and ``--no-verify``: what is checked first, what may be claimed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Tcc

SEED = ("--seed", "11" * 32)


def digest_of(tcc: Tcc, artifact: Path) -> str:
    digest: str = json.loads(tcc("check", artifact, "--json").out)["digest"]
    return digest


def test_a_known_digest_claims_what_a_check_claims(tcc: Tcc, artifact: Path) -> None:
    digest = digest_of(tcc, artifact)
    runs = [tcc("run", artifact, *SEED, *more, "--json") for more in ((), ("--checked", digest))]
    assert [ended.code for ended in runs] == [0, 0]
    due, known = (json.loads(ended.out) for ended in runs)
    # The ledger's head has the time in it.
    assert known | {"ledger_head": ""} == due | {"ledger_head": ""}
    assert known["claim_type"] == "RunWiseExact"


def test_another_digest_is_refused(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("run", artifact, *SEED, "--checked", "00" * 32)
    assert ended.code == 1
    assert "P101" in ended.err


def test_without_verification_nothing_is_claimed(tcc: Tcc, artifact: Path) -> None:
    ended = tcc("run", artifact, *SEED, "--no-verify", "--json")
    assert ended.code == 2
    assert json.loads(ended.out)["claim_type"] == "NoCert"
    said = tcc("run", artifact, *SEED, "--no-verify").out
    assert "NoCert: the artifact was not verified, so nothing is certified" in said


@pytest.mark.parametrize("options", [("--no-verify",), ("--checked", "00" * 32)])
def test_a_grammar_has_nothing_to_skip(tcc: Tcc, grammar: Path, options: tuple[str, ...]) -> None:
    assert tcc("run", grammar, *options).code == 2


def test_both_at_once_are_bad_usage(tcc: Tcc, artifact: Path) -> None:
    assert tcc("run", artifact, "--no-verify", "--checked", "00" * 32).code == 2

"""`validate` of ``python -m tcc_certs``: exit codes, words and the JSON document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tcc_certs.__main__ import main
from tcc_certs.kernel import check
from tests.oracle.build import build
from tests.oracle.cores import letters, make_core
from tests.oracle_ledger.writer import opening_of, reference_ledger, reference_records

SEED = "00" * 32


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A ledger and its artifact."""
    core = make_core(**letters(2, cost=[10**9, 0]), plan=["repeat", ["call", {0, 1}], 0, 2])
    words = [(), (0,), (1,), (0, 0), (0, 1), (1, 0), (1, 1)]
    data = build(core, words)
    (tmp_path / "a.tcca").write_bytes(data)
    (tmp_path / "l.ndjson").write_bytes(reference_ledger(check(data)))
    return tmp_path / "l.ndjson", tmp_path / "a.tcca"


@pytest.fixture
def verb(capsys):
    """Runs `validate` with these arguments: exit code, and what it printed."""

    def call(*arguments: object) -> tuple[int, str]:
        code = main(["validate", *[str(argument) for argument in arguments]])
        return code, capsys.readouterr().out.rstrip("\n")

    return call


def test_a_valid_ledger_exits_0_and_says_what_was_shown(files, verb):
    ledger, artifact = files
    code, said = verb(ledger, "--artifact", artifact)
    assert code == 0
    assert said.startswith("VALID: claim upheld: no other plan could have scored above V = ")


def test_json_has_the_fields_that_others_rely_on(files, verb):
    ledger, artifact = files
    code, said = verb(ledger, "--artifact", artifact, "--seed", SEED, "--json")
    document = json.loads(said)
    assert code == 0
    assert document["format"] == "tcc.validate"
    assert document["format_version"] == "1.0"
    assert document["verdict"] == "VALID"
    assert document["claim_type"] == "RunWiseExact"
    assert document["claim_upheld"] is True
    assert document["findings"] == []
    assert sorted(document["checked"]) == ["expansions", "leaves", "nodes", "records"]
    assert sorted(document["kappa"]) == ["mean", "nodes", "tightened"]


def test_a_changed_ledger_exits_1_with_code_line_and_field(files, verb):
    ledger, artifact = files
    ledger.write_bytes(ledger.read_bytes().replace(b'"law":"softmax"', b'"law":"hardmax"'))
    code, said = verb(ledger, "--artifact", artifact, "--json")
    finding = json.loads(said)["findings"][0]
    assert (code, json.loads(said)["verdict"]) == (1, "INVALID")
    assert finding["code"] == "L102"
    assert finding["line"] == ledger.read_bytes().count(b"\n")
    assert finding["field"] == "~"
    assert sorted(finding) == ["code", "expected", "field", "found", "line"]
    assert "L102 line" in verb(ledger, "--artifact", artifact)[1]


def test_a_cut_ledger_exits_2_as_incomplete(files, verb):
    ledger, artifact = files
    ledger.write_bytes(ledger.read_bytes()[:-5])
    code, said = verb(ledger, "--artifact", artifact)
    assert (code, said.splitlines()[-1][:11]) == (2, "INCOMPLETE:")


def test_a_pin_of_another_artifact_exits_1(files, verb):
    ledger, artifact = files
    code, said = verb(ledger, "--artifact", artifact, "--pin", SEED)
    assert (code, said[:4]) == (1, "P101")


def test_a_seed_that_is_no_seed_is_bad_usage(files, verb):
    ledger, artifact = files
    with pytest.raises(SystemExit) as left:
        verb(ledger, "--artifact", artifact, "--seed", "zz")
    assert left.value.code == 2


def test_what_the_auditor_knows_of_the_opening_is_held_against_the_header(files, verb):
    ledger, artifact = files
    checked = check(artifact.read_bytes())
    told = {"beacon": b"\x01\xab", "nonce": b"\x07"}
    ledger.write_bytes(reference_ledger(checked, **told))
    opening = opening_of(reference_records(checked, **told)[0]).hex()
    known = ["--opening", opening, "--beacon", "01ab", "--nonce", "07"]
    code, said = verb(ledger, "--artifact", artifact, *known)
    assert (code, "were fixed before" in said) == (0, True)
    for at, refused in ((1, "L303"), (3, "L304"), (5, "L305")):
        other = [*known[:at], "00" * (len(known[at]) // 2), *known[at + 1 :]]
        assert verb(ledger, "--artifact", artifact, *other)[1].startswith(f"{refused} line 1 ")


@pytest.mark.parametrize("name", ["--opening", "--beacon", "--nonce"])
@pytest.mark.parametrize("value", ["", "0", "0g", "AB"])
def test_what_is_no_hex_is_bad_usage(files, verb, name, value):
    ledger, artifact = files
    with pytest.raises(SystemExit) as left:
        verb(ledger, "--artifact", artifact, name, value)
    assert left.value.code == 2


def test_exact_counts_can_be_handed_in_for_kappa(files, verb):
    ledger, artifact = files
    ledger.write_bytes(
        reference_ledger(check(artifact.read_bytes()), mode="surrogate", inflate="2")
    )
    code, said = verb(ledger, "--artifact", artifact, "--counts", artifact, "--json")
    assert code == 0
    assert json.loads(said)["kappa"]["tightened"] > 0

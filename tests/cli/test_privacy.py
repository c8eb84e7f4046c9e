"""``tcc epsilon``, runs that count atoms, and the diagnostics of nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.errors import Rejected
from tests.cli.conftest import Tcc

GRAMMARS = Path(__file__).parents[2] / "grammars"
GRAMMAR, BOOK = GRAMMARS / "research.tcg", GRAMMARS / "research.quotes.json"
SEED = "11" * 32
LAPLACE = {"mechanism": "laplace", "scale": "10", "sensitivity": "1", "times": 100}
RESPONSE = {"mechanism": "randomized_response", "probability": "0.75", "choices": 2}


@pytest.fixture
def atoms(tmp_path: Path) -> Path:
    path = tmp_path / "atoms.json"
    path.write_text(json.dumps([LAPLACE, RESPONSE]))
    return path


@pytest.fixture
def artifact(tcc: Tcc, tmp_path: Path) -> Path:
    path = tmp_path / "research.tcca"
    assert tcc("compile", GRAMMAR, "-o", path).code == 0
    return path


def listed(tmp_path: Path, *items: Any) -> Path:
    path = tmp_path / "listed.json"
    path.write_text(json.dumps(items))
    return path


def test_epsilon_says_epsilon_delta_order_and_curve(tcc: Tcc, tmp_path: Path) -> None:
    ended = tcc("epsilon", listed(tmp_path, LAPLACE), "--delta", "0.000001", "--json")
    assert ended.code == 0
    found = ended.json
    assert (found["format"], found["format_version"]) == ("tcc.epsilon", "1.0")
    assert (found["epsilon"], found["delta"]) == ("4.6935591815", "0.000001")
    assert (found["alpha"], found["atoms"]) == ("pld", 100)
    assert found["rdp"] == found["epsilon"]
    assert len(found["orders"]) == 335
    assert "4.6935591815" in tcc("epsilon", tmp_path / "listed.json", "--delta", "1e-6").out


def test_a_curve_that_it_prints_is_one_that_it_reads(tcc: Tcc, atoms: Path, tmp_path: Path) -> None:
    first = tcc("epsilon", atoms, "--json").json
    again = listed(tmp_path, {"mechanism": "rdp", "points": first["orders"]})
    second = tcc("epsilon", again, "--json").json
    assert second["orders"] == first["orders"]
    assert [second["alpha"], second["rdp"]] in second["orders"]
    # A curve says less than its mechanisms do.
    assert first["alpha"] == "pld"
    assert float(first["epsilon"]) <= float(second["epsilon"]) < float(first["epsilon"]) * 1.1


def test_plain_summation_is_called_pure(tcc: Tcc, tmp_path: Path) -> None:
    path = listed(tmp_path, {"mechanism": "laplace", "scale": "2", "sensitivity": "1"})
    found = tcc("epsilon", path, "--delta", "1e-12", "--json").json
    assert (found["epsilon"], found["alpha"]) == ("0.5000000000", "pure")
    assert found["orders"][-1][0] == "1048577"


def test_each_method_says_what_it_is(tcc: Tcc, tmp_path: Path) -> None:
    gaussian = {"mechanism": "gaussian", "sigma": "1", "sensitivity": "1"}
    ended = tcc("epsilon", listed(tmp_path, gaussian))
    assert "4.3771780957, exactly, as Gaussian differential privacy" in ended.out
    ended = tcc("epsilon", listed(tmp_path, gaussian, RESPONSE))
    assert "from the distribution of the losses" in ended.out
    discrete = {"mechanism": "discrete_gaussian", "sigma": "4.0", "sensitivity": 2, "times": 3}
    ended = tcc("epsilon", listed(tmp_path, discrete))
    assert "discrete_gaussian: sigma 4, sensitivity 2, times 3" in ended.out
    assert "at order" in ended.out


def test_two_relations_of_neighbours_end_in_their_code(tcc: Tcc, tmp_path: Path) -> None:
    sampled = {
        "mechanism": "subsampled_gaussian", "rate": "0.01", "sigma": "1", "sensitivity": "1",
        "times": 1000,
    }  # fmt: skip
    found = tcc("epsilon", listed(tmp_path, sampled), "--delta", "1e-5", "--json").json
    assert 1.828 < float(found["epsilon"]) <= 2.101 * 1.03
    path = listed(tmp_path, sampled, LAPLACE)
    ended = tcc("epsilon", path, "--json")
    assert (ended.code, ended.json["findings"][0]["code"]) == (1, "E104")
    assert "neighbour" in json.dumps(ended.json["findings"])
    ended = tcc("epsilon", path)
    assert (ended.code, "neighbour" in ended.err + ended.out) == (1, True)
    assert "E104" in tcc("explain", "E104").out


def test_a_run_is_refused_whose_atoms_are_about_two_relations(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    sampled = {"mechanism": "subsampled_gaussian", "rate": "0.1", "sigma": "2", "sensitivity": "1"}
    alone, both = tmp_path / "alone.json", tmp_path / "both.json"
    alone.write_text(json.dumps([sampled]))
    both.write_text(json.dumps([sampled, RESPONSE]))
    ledger = tmp_path / "run.ledger"
    told = ("--quotes", BOOK, "--seed", SEED, "--ledger", ledger)
    ended = tcc("run", artifact, *told, "--atoms", both)
    assert (ended.code, "E104" in ended.err, "neighbour" in ended.err) == (1, True, True)
    assert not ledger.exists()
    assert tcc("run", artifact, *told, "--atoms", alone).code == 0
    assert tcc("validate", ledger, "--artifact", artifact).code == 0


def test_nothing_comes_to_nothing(tcc: Tcc, tmp_path: Path) -> None:
    assert tcc("epsilon", listed(tmp_path), "--json").json["epsilon"] == "0.0000000000"


def test_atoms_are_read_from_standard_input() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tcc", "epsilon", "-", "--delta", "1E-5", "--json"],
        input=json.dumps([RESPONSE]), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ended.stdout)["delta"] == "0.00001"


@pytest.mark.parametrize(
    ("text", "code", "ends"),
    [
        ('[{"mechanism":"randomized_response","probability":"1.5","choices":2}]', "E102", 1),
        ('[{"mechanism":"gaussian","sigma":"0","sensitivity":"1"}]', "E102", 1),
        ('[{"mechanism":"laplace","scale":NaN,"sensitivity":"1"}]', "E101", 1),
        ('[{"mechanism":"laplace","mechanism":"laplace"}]', "E101", 1),
        ('{"atoms": []}', "E101", 1),
        ("", "E101", 1),
        ("[" + "{}," * 1000 + "{}]", "E103", 1),
    ],
)
def test_what_is_no_list_of_atoms_ends_in_its_code(
    tcc: Tcc, tmp_path: Path, text: str, code: str, ends: int
) -> None:
    path = tmp_path / "atoms.json"
    path.write_text(text)
    ended = tcc("epsilon", path, "--json")
    assert (ended.code, ended.json["findings"][0]["code"]) == (ends, code)
    assert code in tcc("explain", code).out
    assert "docs/privacy.md" in tcc("explain", code).out


@pytest.mark.parametrize("delta", ["0", "1", "1.5", "-0.1", "NaN", "1e", "1e400", "1e-99", "x"])
def test_a_delta_that_is_none_is_bad_usage(tcc: Tcc, atoms: Path, delta: str) -> None:
    assert tcc("epsilon", atoms, f"--delta={delta}").code == 2
    assert tcc("run", GRAMMAR, "--atoms", atoms, f"--delta={delta}").code == 2


def test_a_file_that_cannot_be_read_is_bad_usage(tcc: Tcc, tmp_path: Path) -> None:
    assert tcc("epsilon", tmp_path / "none.json").code == 2
    assert tcc("epsilon", tmp_path).code == 2


def test_a_run_states_what_its_input_took(tcc: Tcc, artifact: Path, atoms: Path) -> None:
    ledger = artifact.with_suffix(".ledger")
    told = ("--quotes", BOOK, "--seed", SEED, "--atoms", atoms, "--delta", "1e-6")
    ran = tcc("run", artifact, *told, "--ledger", ledger, "--json")
    due = tcc("epsilon", atoms, "--delta", "1e-6", "--json").json
    assert (ran.code, ran.json["claim_type"]) == (0, "RunWiseExact")
    assert ran.json["eps_delta"] == {"delta": "0.000001", "eps": due["epsilon"]}
    assert (ran.json["alpha_selected"], ran.json["router_rdp_eps"]) == (due["alpha"], due["rdp"])
    found = tcc("validate", ledger, "--artifact", artifact, "--json")
    assert (found.code, found.json["privacy"]["atoms"]) == (0, 101)
    assert found.json["privacy"]["eps_delta"] == ran.json["eps_delta"]
    assert "is asserted" in tcc("validate", ledger, "--artifact", artifact).out
    assert "of its atoms" in tcc("run", artifact, *told).out
    assert tcc("validate", ledger, "--artifact", artifact).code == 0


def test_without_atoms_nothing_is_said_of_privacy(tcc: Tcc, artifact: Path) -> None:
    ledger = artifact.with_suffix(".ledger")
    ran = tcc("run", artifact, "--quotes", BOOK, "--ledger", ledger, "--json")
    assert not {"eps_delta", "router_rdp_eps", "alpha_selected"} & ran.json.keys()
    assert "privacy" not in tcc("validate", ledger, "--artifact", artifact, "--json").json
    assert b'"delta"' not in ledger.read_bytes()


def test_a_run_that_depends_on_raw_input_claims_nothing(tcc: Tcc, artifact: Path) -> None:
    ledger = artifact.with_suffix(".ledger")
    told = ("--quotes", BOOK, "--raw-input-dependent", "--ledger", ledger)
    ran = tcc("run", artifact, *told, "--json")
    assert (ran.code, ran.json["claim_type"]) == (2, "NoCert")
    found = tcc("validate", ledger, "--artifact", artifact)
    assert found.code == 0
    assert "nothing is stated" in found.out
    reason = "the raw input decided the grammar or the models, so nothing is certified"
    assert reason in found.out
    assert f"NoCert: {reason}" in tcc("run", artifact, *told, "--overwrite").out


def test_a_tcc_toml_may_say_delta_and_scope(tcc: Tcc, tmp_path: Path) -> None:
    grammar, config = tmp_path / "research.tcg", tmp_path / "tcc.toml"
    grammar.write_text(GRAMMAR.read_text())
    config.write_text('[run]\ndelta = "1e-3"\nraw-input-dependent = true\n')
    ran = tcc("run", grammar, "--quotes", BOOK, "--json")
    assert (ran.code, ran.json["claim_type"]) == (2, "NoCert")
    for wrong in ('raw-input-dependent = "yes"', "raw-input-dependent = 1", "top = true"):
        config.write_text(f"[run]\n{wrong}\n")
        assert "TCC724" in tcc("run", grammar, "--quotes", BOOK).err


def test_a_delta_where_nothing_is_counted_is_bad_usage(tcc: Tcc) -> None:
    assert tcc("run", GRAMMARS / "coding_agent.tcg", "--delta", "0.1").code == 2


def test_the_library_takes_atoms(artifact: Path) -> None:
    opened = library.load(artifact)
    run = library.search(opened, seed=bytes(32), atoms=[RESPONSE], delta="0.01", ask="never")
    assert library.to_json(run)["eps_delta"]["delta"] == "0.01"
    raw = library.search(opened, seed=bytes(32), raw_input_dependent=True)
    assert "eps_delta" not in library.to_json(raw)
    with pytest.raises(Rejected):
        library.search(opened, seed=bytes(32), atoms=[{**RESPONSE, "probability": "1.5"}])
    with pytest.raises(TypeError):
        library.search(opened, seed=bytes(32), raw_input_dependent=1)


def test_requests_of_a_batch_take_atoms(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    told = {"seed": SEED, "atoms": [RESPONSE], "delta": "0.001"}
    requests, out = tmp_path / "requests.ndjson", tmp_path / "out"
    requests.write_text(
        json.dumps(told) + "\n" + json.dumps({"seed": SEED, "raw_input_dependent": True}) + "\n"
    )
    assert tcc("batch", artifact, "--requests", requests, "--out", out).code in (0, 2)
    ledgers = sorted(out.glob("*.ledger"))
    assert [b'"eps_delta"' in path.read_bytes() for path in ledgers] == [True, False]
    for path in ledgers:
        assert tcc("validate", path, "--artifact", artifact).code == 0
    requests.write_text(json.dumps({**told, "atoms": [{**RESPONSE, "probability": "1.5"}]}) + "\n")
    ended = tcc("batch", artifact, "--requests", requests, "--out", tmp_path / "other")
    assert ended.code == 2
    assert "E102" in ended.err


def test_a_book_names_atoms(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    book = json.loads(BOOK.read_text())
    for entry in book["quotes"]:
        entry["atom"] = {"mechanism": "gaussian", "sigma": "20.0", "sensitivity": "1", "times": 3}
    path, ledger = tmp_path / "book.json", tmp_path / "run.ledger"
    path.write_text(json.dumps(book))
    told = ("--quotes", path, "--seed", SEED)
    assert tcc("run", artifact, *told, "--delta", "0.1", "--ledger", ledger).code == 0
    asked = ledger.read_bytes().count(b'"atom":')
    assert asked > 1
    found = tcc("validate", ledger, "--artifact", artifact, "--json").json
    assert found["privacy"]["atoms"] == 3 * asked
    # A book that names atoms has them counted, at the delta that there is by default.
    assert tcc("run", artifact, *told, "--json").json["eps_delta"]["delta"] == "0.00001"
    other = tmp_path / "other.ledger"
    plain = ("--quotes", BOOK, "--seed", SEED, "--ledger", other)
    assert tcc("run", artifact, *plain).code == 0
    lines = other.read_bytes().splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if b'"refine"' in line)
    other.write_bytes(b"".join(lines[:first]))
    ended = tcc("run", artifact, *told, "--ledger", other, "--resume")
    assert (ended.code, "as the run has no delta" in ended.err) == (2, True)
    book["quotes"][0]["atom"]["sigma"] = "0"
    path.write_text(json.dumps(book))
    assert "Q101" in tcc("run", artifact, *told).err


def test_nodes_have_their_kappa_apart_from_the_verdict(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    ledger, nodes = tmp_path / "run.ledger", tmp_path / "nodes.ndjson"
    told = ("--quotes", BOOK, "--seed", SEED, "--mode", "surrogate", "--inflate", "3")
    assert tcc("run", artifact, *told, "--ledger", ledger).code == 0
    plain = tcc("validate", ledger, "--artifact", artifact, "--json").json
    asked = ("--nodes", nodes, "--json")
    assert tcc("validate", ledger, "--artifact", artifact, *asked).json == plain
    rows = [json.loads(line) for line in nodes.read_text().splitlines()]
    assert len(rows) == plain["checked"]["nodes"]
    assert all(row["diagnostic"] is True for row in rows)
    assert sum(float(row["kappa"]) < 0 for row in rows) == plain["kappa"]["tightened"]
    mean = sum(float(row["kappa"]) for row in rows) / len(rows)
    assert mean == pytest.approx(float(plain["kappa"]["mean"]), abs=1e-9)
    for row in rows:
        due = float(row["key_raw"]) + float(row["kappa"])
        assert float(row["key_tight"]) == pytest.approx(due, abs=1e-9)
    pushed = [json.loads(line) for line in ledger.read_text().splitlines()]
    keys = [(r["node_id"], r["key_raw"]) for r in pushed if r["kind"] == "node"]
    assert [(row["node_id"], row["key_raw"]) for row in rows] == keys
    assert tcc("validate", ledger, "--artifact", artifact, "--nodes", ledger).code == 2
    assert tcc("validate", ledger, "--artifact", artifact, "--nodes", tmp_path).code == 2


def test_nodes_whose_keys_do_not_come_of_counts_have_no_kappa(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    ledger, nodes = tmp_path / "run.ledger", tmp_path / "nodes.ndjson"
    told = ("--quotes", BOOK, "--seed", SEED, "--mode", "fallback", "--ledger", ledger)
    assert tcc("run", artifact, *told).code == 2
    assert tcc("validate", ledger, "--artifact", artifact, "--nodes", nodes).code == 0
    rows = [json.loads(line) for line in nodes.read_text().splitlines()]
    assert rows
    assert not any("kappa" in row or "key_tight" in row for row in rows)

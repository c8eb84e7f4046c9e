"""``tcc batch``: requests by the line, results and ledgers by number."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Tcc


def lines(path: Path, *requests: Any) -> Path:
    path.write_text("".join(json.dumps(request) + "\n" for request in requests))
    return path


def seed(number: int) -> str:
    return number.to_bytes(32, "big").hex()


def test_results_and_ledgers_are_those_of_runs_alone(
    tcc: Tcc, artifact: Path, tmp_path: Path
) -> None:
    asked = lines(
        tmp_path / "asked",
        {"seed": seed(1)},
        {"seed": seed(2), "top": 3, "keys": "anchored"},
        {"seed": seed(3), "mode": "surrogate", "inflate": "2", "max_seconds": 60},
    )
    out = tmp_path / "out"
    ended = tcc("batch", artifact, "--requests", asked, "--out", out, "--processes", 2, "--json")
    assert (ended.code, ended.err) == (0, "")
    document = json.loads(ended.out)
    assert (document["format"], document["runs"], document["certified"]) == ("tcc.batch", 3, 3)
    found = [json.loads(line) for line in (out / "runs.ndjson").read_text().splitlines()]
    assert [run["number"] for run in found] == [1, 2, 3]
    assert [run["seed"] for run in found] == [seed(1), seed(2), seed(3)]
    assert [len(run["plans"]) for run in found] == [1, 3, 1]
    for run in found:
        ledger = out / f"{run['number']:08d}.ledger"
        assert tcc("validate", ledger, "--artifact", artifact).code == 0
        alone = ["--seed", run["seed"], "--top", len(run["plans"]), "--json"]
        if run["number"] == 1:
            due = json.loads(tcc("run", artifact, *alone).out)
            assert due["plans"] == run["plans"]
            assert due["expansions"] == run["expansions"]


def test_counts_too_wide_for_the_bits_asked_are_bounds_in_every_run(
    tcc: Tcc, grammar: Path, tmp_path: Path
) -> None:
    asked = lines(tmp_path / "asked", {"seed": seed(1)}, {"seed": seed(2), "top": 2})
    told = ("--requests", asked, "--count-bits", 4)
    refused = tcc("batch", grammar, *told, "--out", tmp_path / "no")
    assert refused.code == 2 and not (tmp_path / "no" / "runs.ndjson").exists()
    out = tmp_path / "out"
    ended = tcc("batch", grammar, *told, "--relax", "auto", "--out", out, "--processes", 1)
    assert ended.code == 0 and "CountFail" in ended.err
    found = [json.loads(line) for line in (out / "runs.ndjson").read_text().splitlines()]
    assert [run["claim_type"] for run in found] == ["RunWiseSurrogate"] * 2
    assert [len(run["plans"]) for run in found] == [1, 2]


BAD = [
    ("{", "no JSON"),
    ("[1]", "an object with a seed"),
    ("{}", "an object with a seed"),
    ('{"seed": "11"}', "32 bytes"),
    ('{"seed": 7}', "hexadecimal"),
    (f'{{"seed": "{seed(1)}", "top": "2"}}', "whole number"),
    (f'{{"seed": "{seed(1)}", "top": 0}}', "1 or more"),
    (f'{{"seed": "{seed(1)}", "max_seconds": true}}', "a number"),
    (f'{{"seed": "{seed(1)}", "max_seconds": 1{"0" * 400}}}', "at most 1000000000000"),
    (f'{{"seed": "{seed(1)}", "max_seconds": 1e999}}', "at most 1000000000000"),
    (f'{{"seed": "{seed(1)}", "max_seconds": NaN}}', "0.001 or more"),
    (f'{{"seed": "{seed(1)}", "top": 1, "top": 5}}', "'top' stands there twice"),
    (f'{{"seed": "{seed(1)}", "tau": 1}}', "a text"),
    (f'{{"seed": "{seed(1)}", "zzz": 1}}', "no setting"),
    ("[" * 100_000, "no JSON"),
    ('{"seed": ' + "9" * 5000 + "}", "no JSON"),
]


@pytest.mark.parametrize(("text", "what"), BAD)
def test_a_bad_request_is_named_by_its_line_before_any_run(
    tcc: Tcc, artifact: Path, tmp_path: Path, text: str, what: str
) -> None:
    asked = tmp_path / "asked"
    asked.write_text(f'{{"seed": "{seed(1)}"}}\n\n{text}\n')
    ended = tcc("batch", artifact, "--requests", asked, "--out", tmp_path / "out")
    assert ended.code == 2
    assert f"{asked}:3: " in ended.err.replace("\n", "")
    assert what in ended.err
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_replaced_unasked(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = lines(tmp_path / "asked", {"seed": seed(1)})
    again = ("batch", artifact, "--requests", asked, "--out", tmp_path / "out")
    assert tcc(*again).code == 0
    before = (tmp_path / "out" / "runs.ndjson").read_bytes()
    assert tcc(*again).code == 2
    assert (tmp_path / "out" / "runs.ndjson").read_bytes() == before
    assert tcc(*again, "--overwrite").code == 0


def test_a_run_without_a_claim_is_exit_code_2(tcc: Tcc, artifact: Path, tmp_path: Path) -> None:
    asked = lines(tmp_path / "asked", {"seed": seed(1)}, {"seed": seed(2), "max_expansions": 1})
    ended = tcc(
        "batch", artifact, "--requests", asked, "--out", tmp_path / "o", "--no-ledgers", "--json"
    )
    assert ended.code == 2
    assert json.loads(ended.out)["certified"] == 1
    assert [path.name for path in (tmp_path / "o").iterdir()] == ["runs.ndjson"]


def test_the_library_gives_the_runs_of_a_batch(artifact: Path, tmp_path: Path) -> None:
    import tcc as library

    opened = library.load(artifact)
    seeds = [bytes(31) + bytes([number]) for number in range(4)]
    found = list(library.runs(opened, seeds, processes=2, ledgers=tmp_path, started_ms=5, top=2))
    assert [run.seed for run in found] == [each.hex() for each in seeds]
    for number, each in enumerate(seeds, 1):
        alone = tmp_path / "alone"
        run = library.search(opened, seed=each, ledger=alone, overwrite=True, started_ms=5, top=2)
        assert run == found[number - 1]
        assert alone.read_bytes() == (tmp_path / f"{number:08d}.ledger").read_bytes()

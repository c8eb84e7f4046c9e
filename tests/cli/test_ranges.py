"""``tcc run`` over costs that are ranges: books, budgets, what is said and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tcc as library
from tcc_runtime.pricing.quotes import between, point

GRAMMARS = Path(__file__).parents[2] / "grammars"
GRAMMAR, BOOK = GRAMMARS / "research.tcg", GRAMMARS / "research.quotes.json"
SEED = "11" * 32


@pytest.fixture
def artifact(tcc, tmp_path):
    path = tmp_path / "research.tcca"
    assert tcc("compile", GRAMMAR, "-o", path).code == 0
    return path


def test_the_grammar_with_ranges_is_in_order(tcc):
    assert tcc("test", GRAMMAR).code == 0


def test_a_run_with_a_book_is_certified_and_validates(tcc, artifact, tmp_path):
    ledger = tmp_path / "run.ledger"
    told = ("--quotes", BOOK, "--seed", SEED, "--top", 2, "--ledger", ledger)
    ran = tcc("run", artifact, *told, "--json")
    assert (ran.code, ran.json["claim_type"], ran.json["law"]) == (0, "RunWiseExact", "softmax")
    assert ran.json["price_spent"] > 0
    assert ran.json["latency_ms"] > 0
    assert ran.json["epsilon_used"] == "0"
    assert all("cost_high" not in plan for plan in ran.json["plans"])
    found = tcc("validate", ledger, "--artifact", artifact, "--json")
    assert (found.code, found.json["claim_upheld"]) == (0, True)
    said = tcc("validate", ledger, "--artifact", artifact).out
    assert "whatever it costs within its range" in said
    # The same book, the same run.
    again = tmp_path / "again.ledger"
    assert tcc("run", artifact, *told[:-1], again, "--json").json["plans"] == ran.json["plans"]


def test_without_a_book_the_run_says_what_is_missing(tcc, artifact):
    ran = tcc("run", artifact, "--seed", SEED)
    assert ran.code == 2
    assert "BudgetFail" in ran.out
    assert "--quotes" in ran.out + ran.err
    ran = tcc("run", artifact, "--seed", SEED, "--json")
    assert ran.json["plans"][0]["cost_high"]


def test_a_budget_that_is_too_small_ends_in_fallback(tcc, artifact):
    told = ("--quotes", BOOK, "--seed", SEED, "--json")
    ran = tcc("run", artifact, *told, "--price-cap", 1)
    assert (ran.code, ran.json["mode"], ran.json["guards"]) == (2, "fallback", ["BudgetFail"])
    assert ran.json["price_spent"] <= 1
    assert tcc("run", artifact, *told, "--sla-ms", 100).json["mode"] == "fallback"
    assert tcc("run", artifact, *told, "--epsilon-cap", "0").json["mode"] == "exact"


@pytest.mark.parametrize("more", [("--race", "rest"), ("--keys", "anchored"), ("--ask", "node")])
def test_every_race_and_policy_finds_plans_with_a_book(tcc, artifact, tmp_path, more):
    ledger = tmp_path / "run.ledger"
    ran = tcc("run", artifact, "--quotes", BOOK, "--seed", SEED, "--ledger", ledger, *more)
    assert ran.code == 0
    assert tcc("validate", ledger, "--artifact", artifact).code == 0


def test_a_cut_run_is_resumed_with_its_book(tcc, artifact, tmp_path):
    ledger = tmp_path / "run.ledger"
    told = ("--seed", SEED, "--ledger", ledger)
    ran = tcc("run", artifact, *told, "--quotes", BOOK, "--json")
    whole = ledger.read_bytes()
    ledger.write_bytes(whole[: whole.rindex(b'"kind":"budget"')])
    refused = tcc("run", artifact, *told, "--resume")
    assert refused.code == 2
    assert "somebody to ask" in refused.err
    again = tcc("run", artifact, *told, "--resume", "--quotes", BOOK, "--json")
    assert (again.code, again.json["plans"]) == (0, ran.json["plans"])
    assert tcc("validate", ledger, "--artifact", artifact).code == 0


@pytest.mark.parametrize(
    ("content", "code"),
    [("{", "Q101"), ('{"format":"tcc.quotes","version":"1.0","quotes":[{"tool":"no"}]}', "Q103")],
)
def test_a_book_that_is_none_is_refused_by_its_code(tcc, artifact, tmp_path, content, code):
    book = tmp_path / "book.json"
    book.write_text(content, encoding="utf-8")
    ran = tcc("run", artifact, "--quotes", book)
    assert ran.code in (1, 2)
    assert code in ran.out + ran.err


@pytest.mark.parametrize(
    "more",
    [("--epsilon-cap", "much"), ("--price-weight", "0"), ("--price-cap", "-1"), ("--ask", "now")],
)
def test_options_of_asking_are_held_to_their_range(tcc, artifact, more):
    ran = tcc("run", artifact, "--quotes", BOOK, *more)
    assert ran.code == 2
    assert more[0] in ran.err


def test_options_of_asking_are_refused_where_nothing_is_asked(tcc, grammar):
    for more in (("--price-cap", 1), ("--sla-ms", 1), ("--epsilon-cap", "1"), ("--ask", "leaf")):
        ran = tcc("run", grammar, "--max-expansions", 1, *more)
        assert ran.code == 2
        assert more[0] in ran.err


def test_the_ledger_is_never_the_book(tcc, artifact, tmp_path):
    book = tmp_path / "book.json"
    book.write_bytes(BOOK.read_bytes())
    ran = tcc("run", artifact, "--quotes", book, "--ledger", book, "--overwrite")
    assert ran.code == 2
    assert book.read_bytes() == BOOK.read_bytes()


def test_the_library_takes_any_callable(tmp_path):
    artifact = library.compile_file(GRAMMAR)
    asked = []

    def quoter(question):
        asked.append(question)
        if question.model == "estimate":
            return between("0.9", "1.1")
        return point("1.05" if question.model == "quote" else "0.4")

    ledger = tmp_path / "run.ledger"
    run = library.search(
        artifact, seed=bytes.fromhex(SEED), quoter=quoter, price_cap=50, ledger=ledger
    )
    assert run.claim_type == "RunWiseExact"
    assert {question.model for question in asked} <= {"estimate", "quote", "probe"}
    records = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    assert sum(record["kind"] == "refine" for record in records) == len(asked) > 0
    assert records[-1]["price_spent"] == str(run.spent.price)


def test_an_answer_outside_the_declared_range_costs_the_claim(tmp_path):
    artifact = library.compile_file(GRAMMAR)
    path = tmp_path / "research.tcca"
    library.save(artifact, path)
    # What reading five pages costs is declared to be at most 0.45.
    ledger = tmp_path / "run.ledger"
    run = library.search(
        artifact, seed=bytes.fromhex(SEED), quoter=lambda asked: point("1.05"), ledger=ledger
    )
    assert run.guards[0] == "RangeFail"
    assert (run.claim_type, run.mode) == ("NoCert", "fallback")
    records = [json.loads(line) for line in ledger.read_text(encoding="utf-8").splitlines()]
    broken = [record for record in records if "RangeFail" in record.get("guards", [])]
    assert broken[0]["kind"] == "refine"
    found = library.validate(ledger, path)
    assert (found.verdict, found.claim_type, found.findings) == (0, "NoCert", ())

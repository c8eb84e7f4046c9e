"""Whom a run asks: the quality of a model, and the slack of the frontier, by other arithmetic."""

from __future__ import annotations

import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.pricing.quotes import Answer, Question
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.oracle_ledger.writer import chained
from tests.runtime.ranged import Unreliable, ranged_artifact, ranged_settings

HEAD = 'grammar asked version "1"\n'
NANO = 10**9


def made(data: Any, quoter: Any, **told: Any) -> tuple[Any, list[dict[str, Any]], bytes]:
    sink = MemorySink()
    artifact = load(data) if isinstance(data, bytes) else data
    run = search(artifact, Settings(**told), Recorder(sink, started_ms=7), quoter=quoter)
    ledger = bytes(sink.data)
    return run, [json.loads(line) for line in ledger.splitlines()], ledger


def nano(text: str) -> int:
    return int(Fraction(text) * NANO)


class Followed:
    """A ledger's leaves, and what each is worth at least, from what its records say."""

    def __init__(self, artifact: Any, header: dict[str, Any]) -> None:
        digits, places = artifact.manifest.beta
        self.beta = Fraction(digits, 10**places)
        self.top, self.races = int(header["top"]), header["keys"] == "finalized"
        self.races &= header["mode"] != "fallback"
        named = {call.text: call for call in artifact.core.calls}
        self.declared = {text: (one.cost_low, one.cost_high) for text, one in named.items()}
        self.paths: dict[str, list[tuple[str, str]]] = {}  # of nodes: calls and their edges
        self.edges: dict[str, tuple[int, int]] = {}
        self.leaves: dict[str, Fraction] = {}  # -ln t of those that were pushed
        self.values: dict[str, Fraction] = {}
        self.keys: dict[str, Fraction] = {}

    def take(self, record: dict[str, Any]) -> None:
        kind = record["kind"]
        if kind == "node":
            path = list(self.paths.get(record.get("parent_id", ""), []))
            if record.get("call", "") not in ("", "stop"):
                path.append((record["call"], record["ctx_digest"]))
            self.paths[record["node_id"]] = path
            if record.get("call") == "stop" and "neg_log_t" in record:
                self.leaves[record["node_id"]] = Fraction(record["neg_log_t"])
        if kind == "refine" and "cost_low" in record and "guards" not in record:
            found = nano(record["cost_low"]), nano(record.get("cost_high", record["cost_low"]))
            self.edges[record["ctx_digest"]] = found
        if kind == "leaf":
            self.values[record["node_id"]] = Fraction(record["V"])
        if kind == "downgrade" and record["mode"] == "fallback":
            self.races = False

    def sure(self) -> Fraction | None:
        worth = [
            self.values[leaf]
            if leaf in self.values
            else log
            - self.beta
            * sum(self.edges.get(at, self.declared[call])[1] for call, at in self.paths[leaf])
            / NANO
            for leaf, log in self.leaves.items()
        ]
        return sorted(worth)[-self.top] if len(worth) >= self.top else None


def follow(data: bytes, records: list[dict[str, Any]], seen: Counter[str]) -> None:
    artifact = load(data)
    followed = Followed(artifact, records[0])
    for at, record in enumerate(records):
        if record["kind"] == "budget":
            sure = followed.sure() if followed.races else None
            due = sure is not None and record["budget_event"] == "reserve"
            assert ("slack" in record) == due, (at, record)
            if due:
                seen["slack"] += 1
                top = max(_frontier(records[:at]).values())
                near = top - sure - Fraction(record["slack"])
                assert abs(near) <= Fraction(3, 2**64), (at, float(near))
                assert Fraction(record["slack"]) >= 0
        else:
            assert "slack" not in record
        followed.take(record)


def _frontier(records: list[dict[str, Any]]) -> dict[tuple[str, int], Fraction]:
    """The keys of the items that were pushed and not popped."""
    keys: dict[tuple[str, int], Fraction] = {}
    for record in records:
        name = record.get("node_id", ""), int(record.get("step", 0))
        if record["kind"] in ("node", "rest") or record["kind"] == "requeue":
            keys[name] = Fraction(record["key_raw"])
        elif record["kind"] in ("expand", "leaf", "draw"):
            del keys[name]
    return keys


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_slack_is_what_the_records_before_it_say(first: int) -> None:
    seen: Counter[str] = Counter()
    for number in range(first, first + 20):
        rng = random.Random(f"slack {number}")
        data = ranged_artifact(rng)
        told = ranged_settings(rng, load(data), True)
        if number % 4:
            told = {"race": rng.choice(("rest", "coupled")), "ask": rng.choice(("leaf", "node"))}
        told["top"] = rng.choice((1, 1, 2, 3))
        quoter = Unreliable(rng, honest=number % 3 > 0)
        _, records, ledger = made(data, quoter, seed=rng.randbytes(32), **told)
        follow(data, records, seen)
        assert validate(ledger, check(data)).verdict != 1
    assert seen["slack"] >= 10


TWO = (
    HEAD + "tool a { cost 0 .. 1 quotes same\n  model cheap { price 1 QUALITY }\n"
    "  model dear { price 2 quality 1 } }\nplan = a\n"
)


@pytest.mark.parametrize(
    ("quality", "asked"),
    [
        ("quality 0.49", "dear"),
        ("quality 0.500000001", "cheap"),
        ("", "dear"),
        ("quality 1", "cheap"),
    ],
)
def test_quality_says_what_the_first_guess_is(quality: str, asked: str) -> None:
    artifact = library.compile_text(TWO.replace("QUALITY", quality))
    questions: list[Question] = []

    def ask(question: Question) -> Answer:
        questions.append(question)
        return Answer(low=question.low, high=question.low)

    # Of one leaf the slack is the whole width, so that no gain is cut.
    _, records, _ = made(artifact, ask, seed=bytes(32))
    budget = next(record for record in records if record["kind"] == "budget")
    assert (questions[0].model, budget["slack"]) == (asked, "1.00000000000000000000")
    share = {"cheap": quality.removeprefix("quality ") or "0.5", "dear": "1"}[asked]
    assert abs(Fraction(budget["dkey_pred"]) - Fraction(share)) < Fraction(1, 2**31)


def test_a_gain_beyond_the_slack_is_worth_nothing() -> None:
    # Once b's leaf is worth something for sure, a key of a has little to lose before it is met.
    text = HEAD + (
        "tool a { cost 0 .. 9 quotes same\n  model cheap { price 1 quality 0.1 }\n"
        "  model dear { price 9 quality 1 } }\ntool b { cost 0.5 .. 5 }\nplan = a | b\n"
    )
    artifact = library.compile_text(text)
    asked: Counter[str] = Counter()
    for number in range(200):

        def ask(question: Question) -> Answer:
            if question.call == "b":
                return Answer(low=4 * NANO, high=4 * NANO)
            return Answer(low=question.low + NANO, high=question.high)

        _, records, _ = made(artifact, ask, seed=number.to_bytes(32, "big"))
        budgets = [record for record in records if record.get("budget_event") == "reserve"]
        budgets = [record for record in budgets if record["call"] == "a"]
        if budgets and "slack" in budgets[0]:
            slack = Fraction(budgets[0]["slack"])
            due = "cheap" if min(Fraction(9, 10), slack) >= min(9, slack) / 9 else "dear"
            assert budgets[0]["model_id"] == due
            asked[due] += 1
    assert asked["cheap"] and asked["dear"]


def test_one_half_is_the_quality_of_a_model_without_one() -> None:
    with_half = library.compile_text(TWO.replace("QUALITY", "quality 0.50"))
    assert with_half.digest == library.compile_text(TWO.replace("QUALITY", "")).digest
    other = library.compile_text(TWO.replace("QUALITY", "quality 0.4"))
    assert with_half.digest != other.digest


@pytest.mark.parametrize(
    ("written", "code"),
    [
        ("0", "TCC324"),
        ("-1", "TCC101"),
        ("1.000000001", "TCC324"),
        ("0.0000000001", "TCC324"),
        ("2", "TCC324"),
    ],
)
def test_what_is_no_quality_is_named(written: str, code: str) -> None:
    with pytest.raises(library.CompileError) as caught:
        library.compile_text(TWO.replace("QUALITY", f"quality {written}"))
    assert [one.code for one in caught.value.diagnostics] == [code]
    with pytest.raises(library.CompileError) as caught:
        library.compile_text(TWO.replace("QUALITY", "quality 0.1 quality 0.2"))
    assert [one.code for one in caught.value.diagnostics] == ["TCC310"]


@pytest.mark.parametrize("forged", [None, "0.00000000000000000000", "0.99999999999999999999"])
def test_a_forged_slack_is_refused(tmp_path: Path, forged: str | None) -> None:
    artifact = library.compile_text(TWO.replace("QUALITY", ""))
    library.save(artifact, tmp_path / "a.tcca")
    _, records, ledger = made(artifact, lambda q: Answer(low=q.low, high=q.low), seed=bytes(32))
    data = (tmp_path / "a.tcca").read_bytes()
    assert validate(ledger, data).verdict == 0
    at = next(n for n, record in enumerate(records) if record["kind"] == "budget")
    for record in records:
        record.pop("~")
    if forged is None:
        del records[at]["slack"]
    else:
        records[at]["slack"] = forged
    found = validate(chained(records), data)
    assert found.verdict == 1
    assert [(one.line, one.field) for one in found.findings] == [(at + 1, "slack")]


def test_a_ledger_of_another_quality_is_refused(tmp_path: Path) -> None:
    artifact = library.compile_text(TWO.replace("QUALITY", "quality 0.6"))
    other = library.compile_text(TWO.replace("QUALITY", "quality 0.7"))
    library.save(other, tmp_path / "other.tcca")
    _, records, _ = made(artifact, lambda q: Answer(low=q.low, high=q.low), seed=bytes(32))
    _, due, _ = made(other, lambda q: Answer(low=q.low, high=q.low), seed=bytes(32))
    for record in (*records, *due):
        record.pop("~")
    at = next(n for n, record in enumerate(due) if record["kind"] == "budget")
    said = next(record for record in records if record["kind"] == "budget")
    assert said["model_id"] == due[at]["model_id"]
    due[at]["dkey_pred"] = said["dkey_pred"]
    found = validate(chained(due), (tmp_path / "other.tcca").read_bytes())
    assert found.verdict == 1
    assert found.findings[0].field == "dkey_pred"

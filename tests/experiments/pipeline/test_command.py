"""`tcc demo pipeline`: a table, a document, a folder of evidence; and what it refuses."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Any

import pytest

import tcc as library
from tcc_experiments.model import Size
from tcc_experiments.pipeline import campaign, experiment
from tcc_experiments.pipeline.errors import PipelineCode, PipelineError
from tcc_experiments.pipeline.questions import all_questions


def test_the_demo_keeps_its_evidence_and_prints_the_table(tcc: Any, tmp_path: Path) -> None:
    out = tmp_path / "out"
    asked = ("demo", "pipeline", "--questions", 2, "--mode", "exact", "--mode", "fallback")
    ended = tcc(*asked, "--out", out)
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert lines[0].split()[:3] == ["mode", "exp/q", "+-"]
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "Exact", "Fallback", "LangGraph's loop, scripted",
    ]  # fmt: skip
    names = {path.name for path in out.iterdir()}
    assert names == {"corpus.db", "categories.json", "ledgers", "tilt-0.tcca"}
    for path in (out / "ledgers").iterdir():
        if path.suffix != ".key":
            assert library.validate(path, out / "tilt-0.tcca").verdict == 0
    ended = tcc(*asked, "--out", out)
    assert ended.code == 2 and "is not empty: name a new folder" in ended.err

    other = tmp_path / "other"
    ended = tcc(*asked, "--out", other, "--categories", out / "categories.json", "--json")
    assert ended.code == 0
    assert (ended.json["format"], ended.json["valid"]) == ("tcc.demo", True)
    assert len(ended.json["queries"]) == 6 and len(ended.json["modes"]) == 3
    assert (other / "categories.json").read_bytes() == (out / "categories.json").read_bytes()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        (("--mode", "exakt"), "there is no mode 'exakt'; there are: exact, tilted, surrogate"),
        (("--questions", "0"), "0 is not in the range"),
        (("--categories", "/dev/zero"), "is not a regular file"),
        (("--categories", "/nowhere"), "/nowhere"),
    ],
)
def test_bad_usage_is_told(tcc: Any, tmp_path: Path, told: tuple[str, str], said: str) -> None:
    ended = tcc("demo", "pipeline", "--out", tmp_path / "out", *told)
    assert ended.code == 2 and said in ended.err
    assert not (tmp_path / "out").exists()


def test_a_record_that_is_none_is_told(tcc: Any, tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    record.write_text('{"units-01": "attic"}')
    ended = tcc("demo", "pipeline", "--out", tmp_path / "out", "--categories", record)
    assert ended.code == 2 and "X402" in ended.err and "units-01" in ended.err


@pytest.mark.parametrize("name", ["opendp", "simpleeval", "sklearn", "scipy"])
def test_without_the_extra_the_message_says_what_to_do(
    tcc: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    for told in (("demo", "pipeline"), ("experiments", "pipeline", "--quick", "--no-figures")):
        ended = tcc(*told, "--out", tmp_path / "out")
        assert ended.code == 2
        assert f"needs {name}; install the extra: pip install 'tcc[pipeline]'" in ended.err
    assert not (tmp_path / "out").exists()


def test_the_experiment_takes_its_categories_from_the_record_and_draws_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> Any:
        raise AssertionError("drawn")

    monkeypatch.setattr(campaign, "_mechanism", refused)
    rows = experiment.work({"questions": 2, "draw": 0})
    record = campaign.read_record(experiment.RECORD)
    assert {row["question"]: row["noisy"] for row in rows}.items() <= record.items()
    with pytest.raises(AssertionError, match="drawn"):
        experiment.work({"questions": 2, "draw": 1})


def test_the_record_is_of_every_question_and_is_what_was_published() -> None:
    record = experiment.recorded(all_questions())
    text = (PUBLISHED / "pipeline_queries.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    assert {row["question"]: row["noisy"] for row in rows} == record
    assert record.keys() == {question.name for question in all_questions()}


def test_a_question_that_the_record_lacks_is_refused_and_not_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    record = tmp_path / "categories.json"
    record.write_text('{"units-01": "units"}')
    monkeypatch.setattr(experiment, "RECORD", record)
    with pytest.raises(PipelineError) as refused:
        experiment.work({"questions": 0, "draw": 0})
    assert refused.value.code == PipelineCode.RECORD


def test_who_asks_for_it_has_categories_drawn() -> None:
    for size in Size:
        told, drawn = experiment.parts(size), experiment.drawing().parts(size)
        assert [part.get("draw") for part in told] == [0, None]
        assert [part.get("draw") for part in drawn] == [1, None]


PUBLISHED = Path(__file__).parents[3] / "experiments" / "csv"

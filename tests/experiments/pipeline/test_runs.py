"""Questions are searched, done and recorded in every mode; a stranger finds every ledger VALID."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tcc
from tcc_experiments.model import Row
from tcc_experiments.pipeline.campaign import (
    ATOM,
    DELTA,
    campaign,
    chosen,
    privatised,
    read_record,
    spent,
)
from tcc_experiments.pipeline.comparison import NAME as LOOP
from tcc_experiments.pipeline.corpus import CATEGORIES
from tcc_experiments.pipeline.errors import PipelineError
from tcc_experiments.pipeline.experiment import EXPERIMENT
from tcc_experiments.pipeline.modes import MODES
from tcc_experiments.pipeline.questions import all_questions

CLAIMS = {
    "Exact": "RunWiseExact",
    "Exact, tilt 8": "RunWiseExact",
    "Surrogate, coupled": "RunWiseSurrogate",
    "Surrogate, as printed (literal)": "NoCert",
    "Fallback": "NoCert",
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Row]]:
    folder = tmp_path_factory.mktemp("kept")
    return folder, campaign(folder, chosen(6))


def check_kept(folder: Path, rows: list[Row]) -> None:
    """Every ledger of every question and mode, by the library, from the files alone."""
    tilts = {mode.name: (mode.slug, mode.tilt) for mode in MODES}
    for row in rows:
        if row["mode"] == LOOP:
            continue
        slug, tilt = tilts[str(row["mode"])]
        artifact, name = folder / f"tilt-{tilt}.tcca", f"{row['question']}.{slug}"
        ledgers = sorted((folder / "ledgers").glob(f"{name}.[0-9]*.ledger"))
        assert len(ledgers) == row["searches"]
        first, *later = [tcc.validate(path, artifact) for path in ledgers]
        assert (first.verdict, first.claim_type) == (0, CLAIMS[str(row["mode"])])
        assert first.after == (f"route(shelf={row['noisy']})",)
        assert first.privacy is not None
        assert first.privacy["eps_delta"] == {"delta": DELTA, "eps": row["epsilon"]}
        # What comes after an answer depends on the question: nothing is claimed nor stated of it.
        for found in later:
            assert (found.verdict, found.claim_type) == (0, "NoCert")
            assert "eps_delta" not in (found.privacy or {})
        session = tcc.validate(folder / "ledgers" / f"{name}.session", artifact)
        assert session.verdict == 0
        assert session.claim_type == {"finished": "Conformant"}.get(
            str(row["stop"]), "ConformantPrefix"
        )


def test_every_ledger_is_valid_and_says_what_it_may(kept: tuple[Path, list[Row]]) -> None:
    folder, rows = kept
    assert Counter(row["mode"] for row in rows) == dict.fromkeys([*CLAIMS, LOOP], 6)
    check_kept(folder, rows)
    assert all(row["slack"] == 0 for row in rows if row["mode"] != LOOP)


def test_kappa_is_there_where_counts_are_bounds(kept: tuple[Path, list[Row]]) -> None:
    for row in kept[1]:
        if str(row["mode"]).startswith("Surrogate"):
            assert 0 < int(row["kappa_tightened"] or 0) <= int(row["kappa_nodes"] or 0)
            assert -0.694 < float(row["kappa_mean"] or 0) < -0.6
        elif row["mode"] != LOOP:
            assert row["kappa_tightened"] == 0


def test_a_changed_ledger_is_not_valid(kept: tuple[Path, list[Row]], tmp_path: Path) -> None:
    folder, _ = kept
    session = next((folder / "ledgers").glob("*.exact.session"))
    forged = tmp_path / "forged"
    forged.write_bytes(session.read_bytes().replace(b'"done"', b'"fail"', 1))
    assert tcc.validate(forged, folder / "tilt-0.tcca").verdict == 1


def test_right_answers_are_answers_that_were_worked_out(kept: tuple[Path, list[Row]]) -> None:
    answers = {q.name: q.answer for q in all_questions()}
    right = [row for row in kept[1] if row["right"]]
    assert len(right) >= 6
    for row in right:
        due = answers[str(row["question"])]
        assert float(row["value"] or 0) == pytest.approx(due, rel=0.005)


def test_the_recorded_categories_make_the_same_runs(
    kept: tuple[Path, list[Row]], fresh: Path
) -> None:
    folder, rows = kept
    noisy = read_record(folder / "categories.json")
    again = campaign(fresh, chosen(2), noisy=noisy)
    steady = ("question", "noisy", "mode", "expansions", "calls", "value", "right")
    before = [[row.get(name) for name in steady] for row in rows]
    assert all([row.get(name) for name in steady] in before for row in again)
    ledgers = sorted((fresh / "ledgers").glob("*.ledger"))
    assert len(ledgers) >= 10
    for path in ledgers:
        assert path.read_bytes() == (folder / "ledgers" / path.name).read_bytes()


def test_the_noise_is_that_of_the_atom(kept: tuple[Path, list[Row]]) -> None:
    assert ATOM == {"mechanism": "randomized_response", "probability": "0.8", "choices": 3}
    (epsilon,) = {float(str(row["epsilon"])) for row in kept[1] if row["mode"] != LOOP}
    assert spent() == pytest.approx(2.0794415416798357)
    # At a delta above 0 a little less than the plain epsilon is enough; never much less.
    assert spent() - 0.0001 < epsilon <= spent()
    draws = Counter(privatised("units") for _ in range(4000))
    assert set(draws) == set(CATEGORIES)
    # 4000 draws of probability 0.8: the mean 3200 is missed by 8 deviations in none of 10^14 runs.
    assert abs(draws["units"] - 3200) < 8 * 25.3


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": "attic"}', '{"a": 1}', '{"a": null}', "[" * 100_000]
)
def test_a_record_of_categories_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "categories.json"
    path.write_text(text)
    with pytest.raises(PipelineError) as error:
        read_record(path)
    assert error.value.code == "X402"
    with pytest.raises(PipelineError) as error:
        privatised("attic")
    assert error.value.code == "X401"


def test_there_are_at_least_sixty_questions_with_answers_from_the_tables() -> None:
    questions = all_questions()
    assert len(questions) >= 60
    assert len({q.text for q in questions}) == len(questions)
    by_category = Counter(q.category for q in questions)
    assert set(by_category) == set(CATEGORIES) and min(by_category.values()) >= 19


def conclusion(rows: list[Row]) -> dict[str, Any]:
    return {f.claim[:24]: f.verdict for f in EXPERIMENT.conclude(rows).findings}


def test_findings_follow_from_the_rows(kept: tuple[Path, list[Row]]) -> None:
    rows = kept[1]
    found = conclusion(rows)
    assert found["Exact expands less than S"[:24]] == "holds"
    assert found["Fallback explores the mo"] == "does not hold"
    assert found["every ledger replays"] == "holds"
    worse = [
        {**row, "expansions": 10_000, "replay": False, "slack": 0.5}
        if row["mode"] == "Exact" else row
        for row in rows
    ]  # fmt: skip
    found = conclusion(worse)
    assert found["Exact expands less than S"[:24]] == "does not hold"
    assert found["every ledger replays"] == "does not hold"
    assert found["stop slack is 0 in every"] == "does not hold"


@pytest.mark.campaign
def test_all_questions_in_all_modes(fresh: Path) -> None:
    rows = campaign(fresh, chosen(None))
    assert len(rows) == len(all_questions()) * (len(MODES) + 1)
    check_kept(fresh, rows)
    assert len(json.loads((fresh / "categories.json").read_bytes())) == len(all_questions())
    for mode in ("Exact", LOOP):
        assert sum(bool(row["right"]) for row in rows if row["mode"] == mode) >= 35


def test_right_is_within_half_a_percent() -> None:
    question = all_questions()[0]
    assert question.is_right(question.answer * 1.0049)
    wrong = (question.answer * 1.0051, -question.answer, 0.0, None)
    assert not any(question.is_right(value) for value in wrong)

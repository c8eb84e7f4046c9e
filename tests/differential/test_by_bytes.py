"""A line is passed for its bytes, or held field by field: one outcome."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from itertools import islice

import pytest

from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import check
from tcc_certs.race import arrivals
from tcc_certs.replay import validate, validation
from tcc_certs.replay.findings import Findings, Validation
from tcc_certs.replay.header_check import logged_seed
from tcc_certs.replay.run import ReplayedRun
from tcc_certs.replay.tree import Node
from tcc_certs.replay.validation import RunReplay, Trust
from tests.differential.test_runtime_validator import artifact, recorded
from tests.forgery.mutants import field_mutants, line_mutants
from tests.forgery.test_ledger_forgeries import forged_run
from tests.oracle_ledger.writer import chained

NAMES = (
    "top1", "top3", "capped", "down", "public", "exhausted", "steep", "surrogate", "anchored",
    "rest inflated",
    "silent", "relaxed", "rest", "rest top3", "rest capped", "rest down", "rest exhausted",
)  # fmt: skip
STRIDE = 29
_LOOKED_INTO = ("close", "downgrade", "recovered")  # and those in which guards fired


def in_full(ledger: bytes, data) -> Validation:
    """The validation that holds every record against the expected one, field by field."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "passes", lambda run, body: False)
        return validate(ledger, data)


def looked_into(ledger: bytes, data) -> tuple[Validation, list[str]]:
    """The validation, and the kinds of the records that did not pass for their bytes."""
    kinds: list[str] = []
    record = RunReplay._record

    def noted(self, run, line):
        kinds.append(line.kind)
        record(self, run, line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RunReplay, "_record", noted)
        return validate(ledger, data), kinds


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(6)
def test_forged_fields_are_told_alike(name):
    data, records = forged_run(name)
    for mutant in islice(field_mutants(records), len(name) % STRIDE, None, STRIDE):
        assert validate(mutant.data, data) == in_full(mutant.data, data), mutant.field


@pytest.mark.parametrize("name", NAMES)
def test_lines_out_of_place_are_told_alike(name):
    data, records = forged_run(name)
    for mutant in islice(line_mutants(records), 0, None, 2 * STRIDE):
        assert validate(mutant.data, data) == in_full(mutant.data, data), mutant.how


@pytest.mark.parametrize("name", ["top3", "rest top3"])
def test_flipped_and_cut_bytes_are_told_alike(name):
    data, records = forged_run(name)
    ledger, rng = chained(records), random.Random(name)
    for _ in range(150):
        at = rng.randrange(len(ledger))
        flipped = bytearray(ledger)
        flipped[at] ^= 1 << rng.randrange(8)
        assert validate(bytes(flipped), data) == in_full(bytes(flipped), data), at
        assert validate(ledger[:at], data) == in_full(ledger[:at], data), at


@pytest.mark.parametrize("name", ["top3", "rest top3", "rest exhausted"])
def test_a_run_resumed_anywhere_goes_straight_again(name):
    data, records = forged_run(name)
    for at in range(1, len(records)):
        resumed = {"kind": "recovered", "dropped_bytes": 1, "records": at}
        ledger = chained([*records[:at], resumed, *records[at:]])
        found, kinds = looked_into(ledger, data)
        assert found == in_full(ledger, data)
        assert found.verdict == 0
        assert kinds == ["recovered", "close"]


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_every_line_of_an_honest_run_passes_for_its_bytes(number, race):
    data = artifact(number)
    for salt, top in enumerate((1, 3, 50)):
        for recipe in ("r1", "r2"):
            _, ledger = recorded(data, salt, top=top, recipe=recipe, race=race)
            found, kinds = looked_into(ledger, data)
            assert found == in_full(ledger, data)
            assert found.verdict == 0
            assert kinds == ["close"]


@pytest.mark.parametrize("name", NAMES)
def test_every_line_of_an_honest_run_of_any_mode_passes_for_its_bytes(name):
    data, records = forged_run(name)
    found, kinds = looked_into(chained(records), data)
    assert found == in_full(chained(records), data)
    assert found.verdict == 0
    others = [r["kind"] for r in records[1:] if r["kind"] in _LOOKED_INTO or "guards" in r]
    assert kinds == others


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_roundings_that_the_first_enclosure_leaves_open_come_out_the_same(race, monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race)
    honest = validate(ledger, data)
    monkeypatch.setattr(arrivals, "LOG_ERROR", 1 << 60)  # decides nearly nothing
    monkeypatch.setattr(arrivals, "_RESIDUAL_ERROR", 1 << 60)
    assert validate(ledger, data) == honest
    assert honest.verdict == 0


def test_chunks_cut_anywhere_pass_alike():
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5)
    whole, kinds = looked_into(ledger, data)
    for size in (1, 7, 4096):
        chunks = [ledger[at : at + size] for at in range(0, len(ledger), size)]
        assert looked_into(chunks, data) == (whole, kinds)
    assert LedgerReader([ledger]).records == 0


def replayed(ledger: bytes, data) -> ReplayedRun:
    """The run as it stands when its ledger was read."""
    replay = RunReplay(Findings())
    replay.trust = Trust(
        artifact=data, seed=logged_seed([ledger]), opening=None, beacon=None,
        nonce=None, counts=None,
    )  # fmt: skip
    replay.read(LedgerReader([ledger]))
    assert replay.run is not None
    return replay.run


def test_what_is_kept_does_not_grow_with_what_was_popped():
    # Runs that end with nothing left, in hundreds of records: no node stays but on the
    # paths of the leaves that were found, and those of the last pop.
    popped = 0
    for number in range(8):
        data = check(artifact(number))
        for race in ("coupled", "rest"):
            _, ledger = recorded(artifact(number), number, top=3, race=race)
            run = replayed(ledger, data)
            popped += run.expansions
            alive = {id(run.parent)}
            for node in [*run.frontier.nodes(), run.parent]:
                while node is not None:
                    alive.add(id(node))
                    node = node.parent
            for _, _, node in run.best.ranked:
                while node is not None:
                    alive.add(id(node))
                    node = node.parent
            gc.collect()
            found = [item for item in gc.get_objects() if isinstance(item, Node)]
            assert len(found) <= len(alive) + 1
            del found, node, run
    assert popped > 60


def test_what_stays_with_an_artifact_is_that_of_the_last_settings_and_of_no_copy():
    data = check(artifact(3))
    for salt, (recipe, race) in enumerate(
        [("r1", "rest"), ("r2", "coupled"), ("r1", "coupled")] * 2
    ):
        _, ledger = recorded(artifact(3), salt, top=3, recipe=recipe, race=race)
        assert validate(ledger, data) == in_full(ledger, data)
        assert validate(ledger, data).verdict == 0
        assert sorted(data.kept) == ["language", "listing"]
    assert replace(data).kept == {}

"""Validations with the shortcut, and the same by the definition alone: one outcome."""

from __future__ import annotations

import gc
import random
from dataclasses import replace
from itertools import islice

import pytest

from tcc_certs.formats.ledger import LedgerReader
from tcc_certs.kernel import check
from tcc_certs.replay import validate as by_definition
from tcc_certs.replay.findings import Findings, Validation
from tcc_certs.replay.run import Run
from tcc_certs.replay.seeds import logged_seed
from tcc_certs.replay.steps import Replay, Trust
from tcc_certs.replay.tree import Node
from tcc_runtime.fastreplay import pushed, shortcut
from tcc_runtime.fastreplay.shortcut import FastReplay
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


def in_full(ledger: bytes, data) -> Validation:
    """The validation by the definition."""
    return by_definition(ledger, data)


def validate(ledger: bytes, data, **given) -> Validation:
    """The validation with the shortcut."""
    return by_definition(ledger, data, shortcut=FastReplay(), **given)


def looked_into(ledger: bytes, data) -> tuple[Validation, list[str]]:
    """The validation with the shortcut, and the kinds of the records that the definition took."""
    kinds: list[str] = []
    step = Replay.step

    def noted(self, record, line):
        kinds.append(record.kind)
        step(self, record, line)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Replay, "step", noted)
        return validate(ledger, data), kinds


@pytest.mark.parametrize("name", NAMES)
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
def test_a_run_taken_up_anywhere_goes_straight_again(name):
    data, records = forged_run(name)
    for at in range(1, len(records)):
        taken_up = {"kind": "recovered", "dropped_bytes": 1, "records": at}
        ledger = chained([*records[:at], taken_up, *records[at:]])
        found, kinds = looked_into(ledger, data)
        assert found == in_full(ledger, data)
        assert found.verdict == 0
        assert "recovered" in kinds


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_nearly_all_records_of_a_run_go_straight(number, race):
    data = artifact(number)
    straightened = total = 0
    for salt, top in enumerate((1, 3, 50)):
        for recipe in ("r1", "r2"):
            _, ledger = recorded(data, salt, top=top, recipe=recipe, race=race)
            found, kinds = looked_into(ledger, data)
            assert found == in_full(ledger, data)
            total += found.checked["records"]
            straightened += found.checked["records"] - len(kinds)
    # open, the root's node and close never do: three a run.
    assert straightened > 0.95 * (total - 18)


@pytest.mark.parametrize("inflate", ["1", "3"])
@pytest.mark.parametrize("number", range(8))
def test_a_run_that_draws_every_child_goes_straight(number, inflate):
    data = artifact(number)
    _, ledger = recorded(
        data, 1, top=10**4, race="rest", mode="surrogate", inflate=inflate, max_expansions=300
    )
    found, kinds = looked_into(ledger, data)
    assert found == in_full(ledger, data)
    assert found.verdict == 0
    assert len(kinds) < 5 + 0.05 * found.checked["records"]


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("name", ["KEYED", "WON", "LOGS"])
def test_a_rounding_that_estimates_leave_open_is_the_definitions(race, name, monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race)
    asked = []
    exactly = pushed.Pushes._exactly
    monkeypatch.setattr(
        pushed.Pushes, "_exactly", lambda *given: asked.append(1) or exactly(*given)
    )
    monkeypatch.setattr(pushed, name, 1 << 32)  # no rounding that this goes into is decided
    found, kinds = looked_into(ledger, data)
    assert found == in_full(ledger, data)
    assert (found.verdict, kinds) == (0, ["open", "node", "close"])
    assert asked or (race, name) == ("rest", "LOGS")


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_where_no_estimate_is_near_enough_the_definition_pops(race, monkeypatch):
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5, race=race)
    monkeypatch.setattr(shortcut, "GREATEST", 0)
    found, kinds = looked_into(ledger, data)
    assert found == in_full(ledger, data)
    assert found.verdict == 0
    assert "expand" in kinds


def test_chunks_cut_anywhere_go_straight():
    data = artifact(3)
    _, ledger = recorded(data, 1, top=5)
    whole, kinds = looked_into(ledger, data)
    for size in (1, 7, 4096):
        chunks = [ledger[at : at + size] for at in range(0, len(ledger), size)]
        assert looked_into(chunks, data) == (whole, kinds)
    assert LedgerReader([ledger]).records == 0


def replayed(ledger: bytes, data, shortcut: FastReplay | None) -> Run:
    """The run as it stands when its ledger was read."""
    replay = Replay(Findings(), shortcut)
    replay.trust = Trust(
        artifact=data, seed=logged_seed([ledger]), opening=None, beacon=None,
        nonce=None, counts=None,
    )  # fmt: skip
    replay.read(LedgerReader([ledger]))
    assert replay.run is not None
    return replay.run


@pytest.mark.parametrize("race", ["coupled", "rest"])
@pytest.mark.parametrize("number", range(8))
def test_the_frontier_that_is_left_is_the_definitions(number, race):
    data = check(artifact(number))
    _, ledger = recorded(artifact(number), 1, top=3, race=race)
    left = []
    for reader in (None, FastReplay()):
        nodes = replayed(ledger, data, reader).frontier.nodes()
        left.append(
            sorted((n.digest, n.key, n.calls(), n.weight, n.depth, n.cost_low) for n in nodes)
        )
    assert left[0] == left[1]


def test_what_is_kept_does_not_grow_with_what_was_popped():
    # Two dozen runs that end with nothing left, in hundreds of records: no node stays but on the
    # paths of the leaves that were found, and those of the last pop.
    popped = 0
    for number in range(24):
        data = check(artifact(number % 8))
        for race in ("coupled", "rest"):
            _, ledger = recorded(artifact(number % 8), number, top=3, race=race)
            run = replayed(ledger, data, FastReplay())
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
    assert popped > 200


def test_what_stays_with_an_artifact_is_that_of_the_last_settings_and_of_no_copy():
    data = check(artifact(3))
    for salt, (recipe, race) in enumerate(
        [("r1", "rest"), ("r2", "coupled"), ("r1", "coupled")] * 2
    ):
        _, ledger = recorded(artifact(3), salt, top=3, recipe=recipe, race=race)
        assert validate(ledger, data) == in_full(ledger, data)
        assert validate(ledger, data).verdict == 0
        assert sorted(data.kept) == ["fastreplay", "language", "listing"]
    assert replace(data).kept == {}

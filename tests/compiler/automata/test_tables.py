"""Whichever way a pass over a table goes, by states or by levels: the bytes agree."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tcc_compiler import artifact, counting as sums
from tcc_compiler.artifact import _by_digest
from tcc_compiler.automata import minimise, table
from tcc_compiler.automata.constraint import apply as limit_acyclic
from tcc_compiler.automata.minimise import merged
from tcc_compiler.automata.table import (
    Machine,
    as_machine,
    as_table,
    as_trimmed_table,
    layered,
    ranked,
    trim,
)
from tcc_compiler.counting import integer, packed, weighted_sums
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tcc_compiler.resources import Guard
from tests.compiler.automata.machines import random_machine
from tests.property.grammars import random_grammar

GRAMMARS = Path(__file__).parents[3] / "grammars"
SEEDS = range(300, 324)
WAYS = {
    "a level at once": [(table, "_WIDE", 0), (table, "_FEW", 0), (minimise, "_FEW", 0)],
    "few states a level": [
        (table, "_WIDE", 10**9),
        (table, "_FEW_CHANGES", 1),
        (minimise, "_FEW", 0),
    ],
    "a state at a time": [
        (table, "_WIDE", 10**9),
        (table, "_GUESSES", 0),
        (minimise, "_FEW", 10**9),
    ],
    "hashes that always lie": [
        (table, "_WIDE", 0),
        (minimise, "_FEW", 0),
        (minimise, "_mix", np.zeros_like),
    ],
    "rows whose hashes always lie": [
        (table, "_WIDE", 10**9),
        (minimise, "_FEW", 0),
        (minimise, "_mix", np.zeros_like),
    ],
    "long integers": [(sums, "_LEAST_DIGIT", 64)],
    "sets of sums": [(limit_acyclic, "_MAX_SUM_BITS", 0)],
    "hashes in an order of their own": [
        (table, "_WIDE", 0),
        (minimise, "_FEW", 0),
        (minimise, "_PACKED", 0),
    ],
    "small portions": [
        (limit_acyclic, "_PORTION", 3),
        (limit_acyclic, "_CHUNK_BYTES", 1),
        (table, "_PORTION", 2),
        (artifact, "_PORTION", 5),
        (sums, "_PORTION", 1),
    ],
}


def sources() -> list[str]:
    written = [
        (GRAMMARS / name).read_text(encoding="utf-8")
        for name in ("question_answering.tcg", "support_refund.tcg")
    ]
    return written + [random_grammar(seed, limits=3, negative=0.4) for seed in SEEDS]


def compiled(text: str, **options: object) -> bytes | list[str]:
    core = read_grammar_text(text).core
    if core is None:
        return []
    found = compile_core(core, Options(**options))  # type: ignore[arg-type]
    return found.artifact or [diagnostic.code for diagnostic in found.diagnostics]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.sampled(3)
def test_every_way_gives_the_same_bytes(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = sources()
    beta = {"beta": "0.25", "tilt": 3}
    due = [compiled(text, **beta) for text in texts]
    assert sum(isinstance(found, bytes) for found in due) > 15
    for module, name, value in WAYS[way]:
        monkeypatch.setattr(module, name, value)
    assert [compiled(text, **beta) for text in texts] == due


def test_a_nondeterministic_artifact_is_the_same_either_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = """grammar g version "1"

tool a { cost 1 }
tool b { cost 2 }

plan = (a | b)* a (a | b){18}

limit depth <= 30
"""
    options = {"max_states": 4000, "relax": ("auto",)}
    due = compiled(text, **options)
    assert isinstance(due, bytes)
    for wide in (0, 10**9):
        monkeypatch.setattr(table, "_WIDE", wide)
        for few in (0, 10**9):
            monkeypatch.setattr(minimise, "_FEW", few)
            assert compiled(text, **options) == due


def test_the_levels_of_a_table_are_the_longest_words_and_a_cycle_has_none() -> None:
    chain = Machine(start=0, accept=[False, False, True], edges=[((0, 1), (1, 2)), ((0, 2),), ()])
    found = as_table(chain)
    assert found is not None
    assert found.levels.tolist() == [0, 1, 2, 3]
    assert found.row(2) == [(0, 1), (1, 0)]
    assert as_table(as_machine(found)) is not None
    loop = Machine(start=0, accept=[True], edges=[((0, 0),)])
    assert as_table(loop) is None
    degree, letter, target = np.array([1, 1]), np.array([0, 0]), np.array([1, 0])
    assert layered(np.array([True, True]), degree, letter, target) is None


def test_levels_are_the_same_a_state_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    for number in range(80):
        trimmed = trim(random_machine(rng, 14, 3, cycles=number % 4 == 0))
        if trimmed is None:
            continue
        flat = [edge for row in trimmed.edges for edge in row]
        degree = np.array(list(map(len, trimmed.edges)), dtype=np.int64)
        target = np.array([to for _, to in flat], dtype=np.int32)
        few, found = table._few_levels(degree, target), []
        for looked in (1, 2, 1 << 20):
            monkeypatch.setattr(table, "_LOOKED_AT", looked)
            found.append(table._levels(degree, target))
        if few is None:
            assert found == [None] * 3
            continue
        for other in found:
            assert other is not None
            assert (other[0].tolist(), other[1]) == (few[0].tolist(), few[1])


def test_random_tables_are_merged_the_same_with_and_without_hashes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = random.Random(8)
    for _ in range(60):
        trimmed = trim(random_machine(rng, 12, 3, cycles=False))
        found = None if trimmed is None else as_table(trimmed)
        if found is None:
            continue
        sizes = []
        for few, wide in ((0, 0), (0, 10**9), (10**9, 0)):
            monkeypatch.setattr(minimise, "_FEW", few)
            monkeypatch.setattr(table, "_WIDE", wide)
            sizes.append(merged(found, Guard(Options())).states)
        assert sizes[0] == sizes[1] == sizes[2] <= found.states


def test_a_machine_is_a_table_at_once_only_where_no_state_is_useless() -> None:
    rng = random.Random(11)
    taken = 0
    for number in range(300):
        machine = random_machine(rng, rng.randint(1, 9), 3, cycles=number % 5 == 0)
        found, trimmed = as_trimmed_table(machine), trim(machine)
        if found is None:
            continue
        taken += 1
        assert trimmed is not None
        assert trimmed.states == machine.states
        due = as_table(trimmed)
        assert due is not None
        guard = Guard(Options())
        one, other = merged(found, guard), merged(due, guard)
        assert (one.states, one.edges) == (other.states, other.edges)
        assert found.levels.tolist() == due.levels.tolist()
    assert taken > 20
    dead = Machine(start=0, accept=[True, False], edges=[((0, 1),), ()])
    lost = Machine(start=0, accept=[True, True], edges=[(), ((0, 0),)])
    assert as_trimmed_table(dead) is as_trimmed_table(lost) is None


@pytest.mark.parametrize("few", [0, 10**9])
def test_a_chain_of_equal_states_is_merged_whole(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two chains, equal from the end on: rows become the same one round after the other."""
    size = 40
    edges = [((0, 1), (1, size + 1))]
    edges += [((0, q + 1),) for q in range(1, size)]
    edges += [()]
    edges += [((0, q + 1),) for q in range(size + 1, 2 * size)]
    edges += [()]
    accept = [q in (size, 2 * size) for q in range(2 * size + 1)]
    monkeypatch.setattr(table, "_WIDE", 10**9)
    monkeypatch.setattr(minimise, "_FEW", few)
    found = as_table(Machine(start=0, accept=accept, edges=edges))
    assert found is not None
    assert merged(found, Guard(Options())).states == size + 1


@pytest.mark.parametrize("kind", [{"purpose": "gate"}, {"round_counts": 1}, {"round_counts": 9}])
def test_rounded_sums_are_the_same_however_far_their_terms_are_apart(
    kind: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = """grammar d version "1"

tool a
tool b

plan = (a | b a?){0,90}

limit depth <= 150
"""
    texts = [deep, *sources()[:6]]
    due = [compiled(text, **kind) for text in texts]
    assert isinstance(due[0], bytes)
    monkeypatch.setattr(sums, "_NEAR", 1)
    assert [compiled(text, **kind) for text in texts] == due


@pytest.mark.parametrize("fraction_bits", [0, 7, 64])
@pytest.mark.parametrize("weight", [1, 255, 1 << 35, (1 << 63) - 1])
def test_weighted_sums_are_those_of_long_integers(weight: int, fraction_bits: int) -> None:
    size = 40
    machine = Machine(
        start=size,
        accept=[q % 3 == 0 for q in range(size + 1)],
        edges=[(), *(((0, q), (1, q // 2)) for q in range(size))],
    )
    found = as_table(machine)
    assert found is not None
    found = ranked(found)
    limbs = weighted_sums(found, [weight, 3], fraction_bits, Guard(Options()))
    values = [0] * found.states
    ranks = np.repeat(np.arange(len(found.levels) - 1), np.diff(found.levels)).tolist()
    for q in range(found.states):
        values[q] = int(found.accept[q]) << fraction_bits * ranks[q]
        for letter, p in found.row(q):
            scale = fraction_bits * (ranks[q] - 1 - ranks[p])
            values[q] += [weight, 3][letter] * values[p] << scale
        assert integer(limbs, q) == values[q]
    assert np.array_equal(limbs, packed(values))


def test_digests_that_agree_in_their_first_bytes_are_ordered_by_the_rest() -> None:
    rows = np.array([[5, 0, 0, 2], [5, 0, 0, 1], [4, 9, 9, 9], [5, 1, 0, 0]], dtype=">u8")
    rows = np.frombuffer(rows.tobytes(), dtype=np.uint64).reshape(-1, 4)
    assert _by_digest(rows).tolist() == [2, 1, 0, 3]

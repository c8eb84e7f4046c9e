"""Edges over calls, and sums by digits: held against one edge at a time, over random tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tcc_compiler import artifact as artifact_module, counting as sums
from tcc_compiler.automata import letters as letters_module, table as tables_module
from tcc_compiler.automata.letters import CallEdges, Letters
from tcc_compiler.automata.table import Table, as_table, portions, ranked, trim
from tcc_compiler.counting import packed, weighted_sums
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_compiler.resources import Guard
from tests.compiler.automata.machines import random_machine

LETTERS = 4


def tables(seed: int, count: int) -> list[Table]:
    rng = random.Random(seed)
    found = []
    while len(found) < count:
        trimmed = trim(random_machine(rng, rng.randint(1, 30), LETTERS, cycles=False))
        table = None if trimmed is None else as_table(trimmed)
        if table is not None:
            found.append(ranked(table))
    return found


def layers(rng: random.Random, wide: int, deep: int) -> Table:
    """A ranked table of so many levels of so many states, edges to any level below."""
    rows: list[list[tuple[int, int]]] = [[]]
    for level in range(deep):
        below, last = range(len(rows)), range(1 + wide * (level - 1), len(rows))
        for _ in range(wide if level < deep - 1 else 1):
            targets = [rng.choice(last if level else below), *rng.sample(below, min(2, len(below)))]
            rows.append(
                list(zip(sorted(rng.sample(range(LETTERS), len(targets))), targets, strict=True))
            )
    flat = [pair for row in rows for pair in row]
    return Table(
        accept=np.array([not q or rng.random() < 0.3 for q in range(len(rows))]),
        edge_start=np.cumsum([0, *map(len, rows)]),
        letter=np.array([letter for letter, _ in flat], dtype=np.int32),
        target=np.array([target for _, target in flat], dtype=np.int32),
        levels=np.array([0, *range(1, len(rows), wide), len(rows)]),
    )


def shared(rng: random.Random, most: int) -> Letters:
    """Letters of up to `most` calls each, numbered by their first calls as letters are."""
    letter = list(range(LETTERS)) + [rng.randrange(LETTERS) for _ in range(LETTERS * (most - 1))]
    calls: list[list[int]] = [[] for _ in range(LETTERS)]
    for call, of in enumerate(letter):
        calls[of].append(call)
    return Letters(calls=tuple(map(tuple, calls)), letter=tuple(letter), patterns=())


@pytest.mark.parametrize("most", [1, 3])
def test_the_edges_of_a_state_are_its_letters_calls_in_order(most: int) -> None:
    rng = random.Random(most)
    for table in tables(21, 40):
        letters = shared(rng, most)
        made = CallEdges(table, letters, Guard(Options()))
        states = list(range(table.states))
        rng.shuffle(states)
        due = [
            sorted((call, p) for letter, p in table.row(q) for call in letters.calls[letter])
            for q in states
        ]
        call, target = made.of(np.array(states))
        assert list(zip(call.tolist(), target.tolist(), strict=True)) == [
            pair for row in due for pair in row
        ]
        assert made.count == len(call) == int(made.degree.sum())
        call, target = made.of(np.array(states), gaps=True)
        gapped = [pair for row in due for pair in [None, *row]]
        found = zip(call.tolist(), target.tolist(), strict=True)
        assert [None if pair[0] < 0 else pair for pair in found] == gapped


@pytest.mark.parametrize("most", [1, 3])
@pytest.mark.parametrize("more", [0, 60, 61, 200])
def test_more_letters_than_a_word_has_bits_and_other_numbers_change_nothing(
    most: int, more: int
) -> None:
    rng = random.Random(most)
    for table in tables(22, 20):
        letters = shared(rng, most)
        # As many letters before as are said, on no edge, of calls above all others.
        first = sum(map(len, letters.calls))
        unused = tuple((first + at,) for at in range(more))
        many = replace(table, letter=table.letter + np.int32(more))
        apart = Letters(calls=(*unused, *letters.calls), letter=(), patterns=())
        states = np.array(rng.sample(range(table.states), table.states))
        one, other = (
            CallEdges(table, letters, Guard(Options())),
            CallEdges(many, apart, Guard(Options())),
        )
        call, target = one.of(states)
        assert all(map(np.array_equal, other.of(states), (call, target)))
        numbers = np.arange(first + more, dtype=np.uint32) * 3 + 1
        places = np.arange(table.states) + 7
        for edges in (one, other):
            new_call, new_target = edges.renamed(numbers, places).of(states)
            assert new_call.tolist() == [3 * each + 1 for each in call.tolist()]
            assert new_target.tolist() == [each + 7 for each in target.tolist()]


def test_states_of_one_shape_have_the_edges_that_each_has_alone() -> None:
    rng = random.Random(5)
    for table in tables(23, 60):
        made = CallEdges(table, shared(rng, 3), Guard(Options()))
        begin, end = sorted(rng.sample(range(table.states + 1), 2))
        numbers = np.arange(3 * LETTERS, dtype=np.uint32) * 3 + 1
        calls = dict(
            zip(range(begin, end), made.call_rows(np.arange(begin, end), numbers), strict=True)
        )
        found = {}
        for states, call, edge in made.alike(begin, end):
            targets = made.targets(states).take(edge, axis=1)
            assert targets.shape == (len(states), len(call))
            for q, row in zip(states.tolist(), targets.tolist(), strict=True):
                assert calls.pop(q) == numbers.take(call).tobytes()
                assert found.setdefault(q, (call.tolist(), row)) is not None
        alone = {q: made.of(np.array([q])) for q in range(begin, end)}
        assert found == {q: (call.tolist(), to.tolist()) for q, (call, to) in alone.items()}
        assert not calls


_alike = artifact_module._alike


def _noted(asked: list[bool]) -> Callable[..., Any]:
    def noted(*given: Any) -> Any:
        asked.append(True)
        return _alike(*given)

    return noted


@pytest.mark.parametrize("together", [1, 7, 100, 1 << 14])
def test_states_of_one_shape_handled_together_make_the_same_file(
    monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr(artifact_module, "_TOGETHER", together)
    monkeypatch.setattr(artifact_module, "_PORTION", together)
    text = (
        'grammar g version "1"\n'
        + "".join(f"tool t{at} {{ cost {1 + at % 3} price {at % 2} }}\n" for at in range(9))
        + "rule some = t0 | t1 | t2 | t3\nplan = some{1,7} (t4 | t5 | t6) some{0,7} (t7 | t8)?\n"
        + "limit price <= 5\nlimit count(t1) <= 2\nlimit count(t2) <= 4\nlimit depth <= 15\n"
    )
    made = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(letters_module, "_ALIKE", least)
        asked = []
        monkeypatch.setattr(artifact_module, "_alike", _noted(asked))
        made.append(compile_text(text, Options()).artifact)
        assert bool(asked) == (least == 0)
    assert made[0] is not None
    assert made[0] == made[1]


def test_nothing_is_together_where_letters_have_one_call_or_a_state_has_a_call_twice() -> None:
    rng = random.Random(3)
    (table,) = tables(24, 1)
    alone = CallEdges(table, shared(rng, 1), Guard(Options()))
    twice = CallEdges(replace(table, nondeterministic=True), shared(rng, 3), Guard(Options()))
    for edges in (alone, twice):
        assert not edges.gathered
        with pytest.raises(ValueError, match="no shapes"):
            next(edges.alike(0, table.states))
    with pytest.raises(ValueError, match="no shapes"):
        alone.call_rows(np.arange(table.states), np.arange(LETTERS))


def test_edges_of_one_call_come_in_the_order_that_is_asked_for() -> None:
    table = Table(
        accept=np.array([True, False, False, False]),
        edge_start=np.array([0, 0, 1, 2, 5]),
        letter=np.array([0, 1, 0, 0, 1], dtype=np.int32),
        target=np.array([0, 0, 1, 2, 2], dtype=np.int32),
        levels=np.array([0, 1, 3, 4]),
        nondeterministic=True,
    )
    letters = Letters(calls=((0, 2), (1,)), letter=(0, 1, 0), patterns=())
    made = CallEdges(table, letters, Guard(Options()))
    call, target = made.of(np.array([3]), np.array([0, 7, 3, 9]))
    assert call.tolist() == [0, 0, 1, 2, 2]
    assert target.tolist() == [2, 1, 2, 2, 1]
    renamed = made.renamed(np.arange(3) + 5, np.array([8, 4, 6, 2]))
    call, target = renamed.of(np.array([3]), np.array([0, 7, 3, 9]))
    assert call.tolist() == [5, 5, 6, 7, 7]
    assert target.tolist() == [6, 4, 6, 6, 4]


def test_portions_end_where_they_have_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables_module, "_PORTION", 4)
    start = np.array([0, 1, 2, 9, 9, 12])
    assert list(portions(start)) == [(0, 3), (3, 5)]
    assert list(portions(start, np.array([0, 1, 5]))) == [(0, 1), (1, 3), (3, 5)]
    assert list(portions(np.array([0, 0]))) == [(0, 1)]


@pytest.mark.parametrize("portion", [1, 1 << 20])
@pytest.mark.parametrize("fraction_bits", [0, 1, 10, 31, 32, 61, 100])
@pytest.mark.parametrize("heaviest", [1, 3, 1 << 10, 1 << 30, 1 << 38])
def test_sums_by_digits_are_those_of_long_integers(
    heaviest: int, fraction_bits: int, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sums, "_PORTION", portion)
    rng = random.Random(heaviest)
    for table in [*tables(heaviest, 8), layers(rng, 80, 9)]:
        weights = [rng.randint(1, heaviest) for _ in range(LETTERS)]
        assert sums.digit_bits(table, weights) >= 20
        values = [0] * table.states
        ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels)).tolist()
        for q in range(table.states):
            values[q] = int(table.accept[q]) << fraction_bits * ranks[q]
            for letter, p in table.row(q):
                scale = fraction_bits * (ranks[q] - 1 - ranks[p])
                values[q] += weights[letter] * values[p] << scale
        found = weighted_sums(table, weights, fraction_bits, Guard(Options()))
        assert np.array_equal(found, packed(values))


@pytest.mark.parametrize("degree", [2, 9])
@pytest.mark.parametrize("depth", [70, 400])
def test_long_chains_carry_when_they_have_to(depth: int, degree: int) -> None:
    letter = np.tile(np.arange(degree, dtype=np.int32), depth)
    table = Table(
        accept=np.arange(depth + 1) == 0,
        edge_start=np.array([0, *range(0, degree * depth + 1, degree)]),
        letter=letter,
        target=np.repeat(np.arange(depth, dtype=np.int32), degree),
        levels=np.arange(depth + 2),
    )
    found = weighted_sums(table, [1] * degree, 0, Guard(Options()))
    assert np.array_equal(found, packed([degree**rank for rank in range(depth + 1)]))

"""Trimming and minimising keep the words, and leave no two states with equal ones."""

from __future__ import annotations

import random

import pytest

from tcc_compiler.automata import minimise as minimise_module
from tcc_compiler.automata.minimise import minimise
from tcc_compiler.automata.table import Machine, Table, as_machine, components, trim
from tcc_compiler.options import Options
from tcc_compiler.resources import Guard
from tests.compiler.automata.machines import random_machine, words


def guard() -> Guard:
    return Guard(Options())


@pytest.mark.parametrize(("cycles", "few"), [(False, 0), (False, 1 << 8), (True, 1 << 8)])
def test_random_machines_keep_their_words_in_the_fewest_states(
    cycles: bool, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minimise_module, "_FEW", few)  # so many states are compared, not hashed
    rng = random.Random(7)
    seen = 0
    for _ in range(150):
        machine = random_machine(rng, rng.randint(1, 6), 2, cycles=cycles)
        trimmed = trim(machine)
        # Two states of a machine of n states differ, if at all, in a word of fewer than n letters.
        most = 7
        if trimmed is None:
            assert not words(machine, most)
            continue
        seen += 1
        assert words(trimmed, most) == words(machine, most)
        found = minimise(trimmed, guard())
        small = as_machine(found) if isinstance(found, Table) else found
        assert words(small, most) == words(machine, most)
        residuals = [words(small, most, q) for q in range(small.states)]
        assert len(set(residuals)) == small.states
        due = {words(trimmed, most, q) for q in range(trimmed.states)}
        assert set(residuals) == due
        # Without cycles a trimmed machine of n states has no word of n letters; with cycles it has
        # one of n to 2n.
        longest = max(map(len, words(trimmed, 2 * trimmed.states)))
        assert isinstance(found, Table) == (longest < trimmed.states)
    assert seen > 60


def test_a_long_chain_into_a_loop_is_refined_in_one_go() -> None:
    # Every split finds one more state: a refinement by rounds would take the square of it.
    size = 20_000
    edges = [((0, q + 1),) for q in range(size)] + [((0, size),)]
    machine = Machine(start=0, accept=[False] * size + [True], edges=edges)
    found = minimise(machine, guard())
    assert isinstance(found, Machine) and found.states == size + 1


def test_components_come_targets_first() -> None:
    rng = random.Random(5)
    for _ in range(100):
        machine = random_machine(rng, 7, 2, cycles=True)
        found = components(machine.states, machine.targets)
        place = {q: at for at, part in enumerate(found) for q in part}
        assert sorted(place) == list(range(machine.states))
        for q in range(machine.states):
            assert all(place[t] <= place[q] for t in machine.targets(q))


def test_components_of_a_deep_graph_need_no_deep_stack() -> None:
    size = 50_000
    assert len(components(size, lambda q: [q + 1] if q + 1 < size else [0])) == 1
    assert len(components(size, lambda q: [q + 1] if q + 1 < size else [])) == size

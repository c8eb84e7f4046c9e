"""What the tail of a cut run costs: counted, bounded beforehand, refused, ended by the clock."""

from __future__ import annotations

import os
import random
import signal
from dataclasses import fields, replace
from itertools import pairwise
from typing import ClassVar

import pytest

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats import artifact as rows_of
from tcc_certs.kernel import check
from tcc_certs.limits import FREE_TAIL_STEPS, TAIL_STEPS_PER_EDGE
from tcc_certs.replay import closing as validators, validate
from tcc_certs.replay.language import read_language
from tcc_runtime.artifact import cuts
from tcc_runtime.artifact.cuts import cut_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.numbers.tail import Abandoned, tail_lse
from tcc_runtime.run import search
from tcc_runtime.settings.modes import terms_of
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import Row, build, free_core, random_rows

SEED = bytes(32)
COSTS = [5 * 10**8, 10**9]


def ladder(rungs: int) -> list[Row]:
    """One call a, or two calls b, from each rung to the next: to a rung lead many numbers of calls,
    and 2 ^ rungs plans have as many calls between `rungs` and twice that as there are."""
    rows: list[Row] = [(True, [])]
    for _ in range(rungs):
        below = len(rows) - 1
        rows.append((False, [(1, below)]))
        rows.append((False, [(0, below), (1, below + 1)]))
    return rows


def climbing(rungs: int) -> bytes:
    return build(free_core(COSTS, 2 * rungs), ladder(rungs), tilt=0)


class Counted(Artifact):
    """Counts the edges that are read."""

    read = 0

    def edges(self, q):
        found = super().edges(q)
        self.read += len(found)
        return found


class CountedRows(rows_of.Automaton):
    """Counts the edges that are read."""

    read: ClassVar[list[int]] = [0]

    def edges(self, q):
        found = list(super().edges(q))
        self.read[0] += len(found)
        return iter(found)


def read_by_both(data: bytes, most: int) -> tuple[int, int]:
    """The edges that the runtime and the validator read for one tail; a refusal reads none more."""
    plain = load(data)
    counted = Counted(plain.file, verified=True, texts=plain.texts)
    if cut_of(counted, most).fits:
        tail_lse(counted, most)
    language = read_language(check(data))
    CountedRows.read[0] = 0
    plain_rows = language.automaton
    columns = {column.name: getattr(plain_rows, column.name) for column in fields(plain_rows)}
    language = replace(language, automaton=CountedRows(**columns))
    try:
        validators.tail_lse(language, most)
    except Rejected as refusal:
        assert refusal.code is Code.LIMIT
    return counted.read, CountedRows.read[0]


def test_twice_the_states_take_less_than_two_and_a_half_times_the_edges():
    for most in (8, 40):
        read = [read_by_both(climbing(rungs), most) for rungs in (100, 200, 400)]
        for before, after in pairwise(read):
            assert all(b < 2.5 * a for a, b in zip(before, after, strict=True))


def test_no_number_of_calls_and_states_takes_more_than_so_many_edges_for_each_there_is():
    refused = 0
    for rungs in (50, 100, 200, 400, 800):
        data = climbing(rungs)
        artifact = load(data)
        edges = artifact.manifest.edges
        for most in (rungs // 2, rungs, rungs + rungs // 4, rungs + rungs // 2, 2 * rungs - 1):
            cut = cut_of(artifact, most)
            assert cut.allowed == FREE_TAIL_STEPS + TAIL_STEPS_PER_EDGE * edges
            refused += not cut.fits
            if rungs > 200 and cut.fits and cut.steps > edges:
                continue  # the same again, and slow
            for read in read_by_both(data, most):
                assert read <= 6 * edges + cut.allowed
    assert refused == 2


def test_the_bound_holds_for_every_automaton_and_cut():
    rng = random.Random(3)
    for _ in range(60):
        data = build(free_core(COSTS, 12), random_rows(rng, 2, rng.randint(1, 6), 3), tilt=0)
        language = read_language(check(data))
        edges = len(language.automaton.edge_call)
        for most in range(language.rank(language.root)):
            steps = cut_of(load(data), most).steps
            fewest = validators._fewest(language.automaton)
            assert steps == validators.tail_steps(language.automaton, fewest, most)
            for read in read_by_both(data, most):
                # Edges that every tail reads: for s, the bound, what is below; the root's; a path.
                assert read <= steps + 6 * edges


def too_much() -> tuple[bytes, int]:
    return climbing(600), 900


def test_a_cut_that_takes_too_many_steps_is_refused_before_the_run():
    data, most = too_much()
    artifact = load(data)
    cut = cut_of(artifact, most)
    for way in (
        lambda settings: terms_of(artifact, settings),
        lambda settings: search(artifact, settings),
        lambda settings: search(artifact, settings, Recorder(MemorySink(), started_ms=0)),
    ):
        with pytest.raises(SettingsError) as refusal:
            way(Settings(seed=SEED, truncate=most))
        assert refusal.value.field == "truncate"
        assert refusal.value.expected == (
            f"no cut, or one nearer to 0 or 1200, as its tail takes over {cut.allowed} steps"
        )
        assert refusal.value.found == f"900, which takes {cut.steps}"
    for nearer in (300, 1198):
        assert terms_of(artifact, Settings(seed=SEED, truncate=nearer)).cut


def test_the_validator_declines_such_a_tail_and_does_not_want_it_where_nothing_is_claimed(
    monkeypatch,
):
    data, most = too_much()
    language = read_language(check(data))
    with pytest.raises(Rejected) as refusal:
        validators.tail_lse(language, most)
    assert (refusal.value.code, refusal.value.path) == (Code.LIMIT, "tail_lse")
    # A run that somebody made all the same: the tail is left out, then stated.
    monkeypatch.setattr(cuts, "FREE_STEPS", 1 << 40)
    artifact = load(data)
    artifact.kept[f"tail.{most}"] = 0
    run, ledger = ledger_of(artifact, truncate=most, max_expansions=1)
    assert (run.stop, run.claim_type) == ("max_expansions", "NoCert")
    found = validate(ledger, data)
    assert (found.verdict, [one.code for one in found.findings]) == (2, [Code.LIMIT])
    run, ledger = ledger_of(artifact, truncate=most, max_expansions=1, stated=False)
    found = validate(ledger, data)
    assert (found.verdict, found.findings, found.claim_upheld) == (0, (), False)


def ledger_of(artifact, on_expand=None, clock=None, stated=True, **told):
    sink = MemorySink()
    recorder = Recorder(sink, started_ms=9)
    if not stated:
        close = recorder.close
        recorder.close = lambda run: close(replace(run, tail_lse=None))
    clocks = {} if clock is None else {"clock": clock}
    run = search(artifact, Settings(seed=SEED, **told), recorder, on_expand, **clocks)
    return run, bytes(sink.data)


class Ticks:
    """A clock that goes on by a second whenever somebody looks at it."""

    seconds = -1

    def __call__(self) -> float:
        self.seconds += 1
        return float(self.seconds)


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_a_time_cap_holds_for_the_tail_too(race):
    data = climbing(400)
    for looks in (2, 3, 4):
        ticks = Ticks()
        told = {"truncate": 600, "max_seconds": looks, "race": race}
        run, ledger = ledger_of(load(data), clock=ticks, **told)
        assert ticks.seconds == looks  # each look at the clock takes one
        assert (run.stop, run.claim_type, run.tail_lse) == ("max_seconds", "NoCert", None)
        assert run.guards == ("Timeout",)
        assert ledger.count(b"\n") == 3
        assert b'"tail_lse"' not in ledger
        found = validate(ledger, data)
        assert (found.verdict, found.findings, found.claim_type) == (0, (), "NoCert")


def test_whoever_interrupts_the_tail_ends_the_run():
    data = climbing(400)

    def clock() -> float:
        os.kill(os.getpid(), signal.SIGINT)
        return 0.0

    with pytest.raises(Abandoned):
        tail_lse(load(data), 600, lambda: True)
    started = iter((1.0,))  # Ctrl-C is held from the second look at the clock on
    run, ledger = ledger_of(load(data), clock=lambda: next(started, None) or clock(), truncate=600)
    assert (run.stop, run.claim_type, run.tail_lse) == ("interrupted", "NoCert", None)
    found = validate(ledger, data)
    assert (found.verdict, found.findings) == (0, ())


def test_a_tail_is_computed_once_for_all_runs_over_an_artifact():
    data = climbing(20)
    plain = load(data)
    counted = Counted(plain.file, verified=True, texts=plain.texts)
    first = tail_lse(counted, 25)
    before = counted.read
    assert tail_lse(counted, 25) == first
    assert counted.read == before

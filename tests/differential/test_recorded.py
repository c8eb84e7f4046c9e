"""A recorded run that draws in numbers of fixed size writes the ledger that the race defines."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tcc_runtime import arrivals, batch
from tcc_runtime import search as searching
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerFile, Memory
from tcc_runtime.resume import resume
from tcc_runtime.terms.modes import terms_of
from tcc_runtime.terms.settings import Settings
from tests.differential.test_runtime_modes import case
from tests.oracle.cores import call, depth, make_core
from tests.runtime.graphs import build, chain_rows, free_core, opened, plan_rows, wide_core

KINDS = ["exact", "network", "rounded", "rounded network"]
TOLD = {
    "plain": {},
    "inflated": {"inflate": "1.7", "mode": "surrogate"},
    "r1": {"recipe": "r1"},
}
STEP_BY_STEP = searching.fits


def written(artifact, fast: bool, follow=None, clock=lambda: 0.0, **told):
    """The ledger, the result, and what a follower is told."""
    sink, seen = Memory(), []

    def note(progress):
        seen.append((progress.expansions, progress.incumbent, progress.bound, progress.gap))
        return follow is not None and follow(progress)

    settings = Settings(**told)
    assert searching.fits(artifact, terms_of(artifact, settings)) is fast
    recorder = Recorder(sink, started_ms=1_700_000_000_000)
    run = searching.search(artifact, settings, recorder, note if follow else None, clock)
    return bytes(sink.data), run, seen


def require_same(monkeypatch, artifact, **told):
    """Both ways, with a follower and without."""
    told.setdefault("follow", None)
    fast = written(artifact, True, **told)
    with monkeypatch.context() as patch:
        patch.setattr(searching, "fits", lambda *_: False)
        assert written(artifact, False, **told) == fast
    return fast


def deep(tilt=8):
    rng = random.Random(3)
    costs = [rng.randrange(10**9) for _ in range(5)]
    return load(build(free_core(costs, 40), chain_rows(rng, 5, 40, 3), tilt=tilt))


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("race", ["rest", "coupled"])
@pytest.mark.parametrize("kind", KINDS)
def test_ledgers_are_the_same_byte_for_byte(monkeypatch, kind, race, told):
    for number in range(6):
        rng = random.Random(f"{kind}/{race}/{told}/{number}")
        artifact, _ = case(number, kind, rng.choice((0, 1, 8)))
        for top in (1, 3, 10**4):
            for follow in (None, lambda _: False):
                seed = rng.randbytes(32)
                more = TOLD[told]
                require_same(
                    monkeypatch, artifact, seed=seed, top=top, race=race, follow=follow, **more
                )


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_deep_and_wide_ledgers_are_the_same(monkeypatch, race):
    rng = random.Random(4)
    costs = [rng.randrange(10**9) for _ in range(150)]
    wide = load(build(wide_core(costs, 3), chain_rows(rng, 150, 3, 2), tilt=12))
    for artifact, tops in ((deep(), (1, 16)), (deep(0), (2,)), (wide, (1, 4))):
        for top in tops:
            told = {"seed": rng.randbytes(32), "top": top, "race": race}
            require_same(monkeypatch, artifact, max_expansions=400, **told)


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_numbers_that_stay_open_are_those_of_the_race(monkeypatch, race):
    artifact, _ = case(2, "network", 1)
    due = [
        require_same(monkeypatch, made, seed=bytes(32), top=9, race=race)
        for made in (artifact, deep())
    ]
    monkeypatch.setattr(arrivals, "_ABOVE", 0)  # all of them
    for made, before in zip((artifact, deep()), due, strict=True):
        assert written(made, True, seed=bytes(32), top=9, race=race) == before
    # Half of them, so that both kinds stand on one path.
    monkeypatch.setattr(arrivals, "_ABOVE", 1 << 47)
    for made, before in zip((artifact, deep()), due, strict=True):
        assert written(made, True, seed=bytes(32), top=9, race=race) == before


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_caps_end_both_in_the_same_place(monkeypatch, race):
    for number in range(4):
        artifact, _ = case(number, "exact", 8)
        for cap in (0, 1, 2, 7):
            told = {"race": race, "top": 5, "seed": bytes([number]) * 32}
            require_same(monkeypatch, artifact, max_expansions=cap or 1, **told)
    for most in (1, 2, 9, 40):
        seconds = {True: iter(range(10**6)), False: iter(range(10**6))}

        def run(fast, most=most, seconds=seconds):
            def clock():
                return next(seconds[fast]) / 1000

            return written(
                deep(), fast, clock=clock, seed=bytes(32), race=race, max_seconds=most / 1000
            )

        fast = run(True)
        with monkeypatch.context() as patch:
            patch.setattr(searching, "fits", lambda *_: False)
            assert run(False) == fast
        assert fast[1].stop == "max_seconds"


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_followers_end_both_in_the_same_place(monkeypatch, race):
    for steps in (1, 2, 30):
        for ends in (bool, KeyboardInterrupt):

            def follow(progress, steps=steps, ends=ends):
                if progress.expansions >= steps and ends is KeyboardInterrupt:
                    raise KeyboardInterrupt
                return progress.expansions >= steps

            told = {"seed": bytes(32), "top": 3, "race": race}
            data, run, _ = require_same(monkeypatch, deep(), follow=follow, **told)
            assert run.stop == "interrupted"
            assert data.count(b'"kind":"expand"') == steps


def test_a_follower_that_fails_leaves_what_was_done(monkeypatch):
    def fail(progress):
        if progress.expansions == 5:
            raise ZeroDivisionError

    kept = []
    for fast in (True, False):
        monkeypatch.setattr(searching, "fits", STEP_BY_STEP if fast else lambda *_: False)
        sink = Memory()
        with pytest.raises(ZeroDivisionError):
            searching.search(deep(), Settings(seed=bytes(32)), Recorder(sink, started_ms=0), fail)
        kept.append(bytes(sink.data))
    assert kept[0] == kept[1]
    assert kept[0].count(b'"kind":"expand"') == 5


@pytest.mark.parametrize("race", ["rest", "coupled"])
@pytest.mark.parametrize("first", [True, False])
def test_a_ledger_that_one_began_is_taken_up_by_the_other(monkeypatch, tmp_path, race, first):
    seed, path = bytes([9]) * 32, tmp_path / "run.ndjson"
    data, run, _ = require_same(monkeypatch, deep(), seed=seed, top=4, race=race)
    for cut in (len(data) // 3, len(data) - 5):
        path.write_bytes(data[:cut])
        with monkeypatch.context() as patch:
            if first:
                patch.setattr(searching, "fits", lambda *_: False)
            again = resume(deep(), path, seed)
        assert replace(again, ledger_head=None) == replace(run, ledger_head=None)
        before, mark, after = path.read_bytes().partition(b'{"dropped_bytes"')
        assert mark
        assert data.startswith(before)
        assert after.count(b"\n") == data.count(b"\n") - before.count(b"\n") + 1
        path.unlink()


def test_texts_and_signs_are_the_same(monkeypatch):
    values = ['"æ\\"\\\\\\n"', '"' + "ü" * 30 + '"', '"\u2028\x7f😀"', '"b"']
    core = make_core(
        tools=[{"name": "t", "params": [{"name": "p", "values": values}]}],
        calls=[call(0, (i,), 10**9) for i in sorted(range(4), key=lambda i: values[i].encode())],
        plan=["repeat", ["call", {0, 1, 2, 3}], 0],
        limits=[depth(6)],
    )
    rows = [(True, [])]
    for q in range(6):
        rows.append((True, [(a, q) for a in range(4)]))
    for beta in ("0.1", "30"):
        artifact = load(build(core, rows, beta=beta, tilt=8))
        for race in ("rest", "coupled"):
            data, _, _ = require_same(monkeypatch, artifact, seed=bytes(32), top=30, race=race)
            assert b'"key_raw":"-' in data
    monkeypatch.setattr(batch, "_MOST_CONTEXTS", 3)
    require_same(monkeypatch, artifact, seed=bytes(32), top=30)


def test_a_fraction_on_a_tie_is_rendered_as_its_definition_has_it(monkeypatch):
    # No artifact draws one; half of all fractions are taken for one instead.
    due = require_same(monkeypatch, deep(), seed=bytes(32), top=3)
    monkeypatch.setattr(batch, "_TIE", 1)
    assert written(deep(), True, seed=bytes(32), top=3) == due


def test_calls_of_weight_one_and_plans_of_no_call(monkeypatch):
    core = free_core([10**9, 0], 9)
    artifact = opened(core, plan_rows([[], [0, 1, 0, 1, 0, 1, 0, 1]]), "1", 0)
    for race in ("rest", "coupled"):
        for number in range(8):
            require_same(monkeypatch, artifact, seed=bytes([number]) * 32, top=2, race=race)


def test_a_file_is_the_same(tmp_path):
    path = tmp_path / "run.ndjson"
    settings = Settings(seed=bytes(32), top=3)
    recorder = Recorder(LedgerFile(path), started_ms=1_700_000_000_000)
    run = searching.search(deep(), settings, recorder)
    assert (path.read_bytes(), run) == written(deep(), True, seed=bytes(32), top=3)[:2]

"""Looks for cycles are put off during runs and validations; the collector is on again afterwards.

What is put off has to have nothing to do: neither leaves a cycle of what it made.
"""

from __future__ import annotations

import gc
from functools import cache
from threading import Barrier, Thread

import pytest

from tcc_certs.kernel import check
from tcc_certs.replay import validate
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_runtime.artifact.load import load
from tcc_runtime.errors import SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.process import collection_put_off
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings

TEXT = """grammar g version "1"

tool a { cost 0.1 }
tool b { cost 0.2 }

plan = (a | b){1,12}
"""


@cache
def compiled() -> bytes:
    data = compile_text(TEXT, Options()).artifact
    assert data is not None
    return data


def artifact():
    return load(compiled())


@pytest.fixture(autouse=True, scope="module")
def alone():
    """What other tests left is not gone through at each look: it took nine tenths of the time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def collector():
    assert gc.isenabled()
    yield
    assert gc.isenabled()


def test_a_run_makes_no_collection_and_leaves_the_collector_on():
    opened, settings = artifact(), Settings(seed=bytes(32), top=500)
    search(opened, settings)  # its tables are made
    gc.collect()
    seen = []
    note = lambda phase, _info: seen.append(phase)  # noqa: E731
    gc.callbacks.append(note)
    try:
        search(opened, settings)
    finally:
        gc.callbacks.remove(note)
    # At the end, when the collector is on again, there may be one.
    assert seen.count("start") <= 1


def test_a_run_that_calls_somebody_does_not_put_anything_off():
    states = []
    search(
        artifact(),
        Settings(seed=bytes(32), top=3),
        on_expand=lambda _: states.append(gc.isenabled()) and None,
    )
    assert states and all(states)


def test_a_run_with_a_ledger_puts_it_off_too():
    class Watched(MemorySink):
        on = False

        def write(self, data):
            Watched.on = Watched.on or gc.isenabled()
            return super().write(data)

    search(artifact(), Settings(seed=bytes(32), top=3), Recorder(Watched(), started_ms=0))
    assert not Watched.on


MODES = (
    {},
    {"race": "coupled"},
    {"keys": "anchored"},
    {"mode": "fallback"},
    {"truncate": 5},
    {"max_expansions": 3},
    {"count_bits": 2},
)


@pytest.mark.parametrize("told", MODES, ids=str)
@pytest.mark.parametrize("recorded", [True, False], ids=["ledger", "no ledger"])
def test_no_run_leaves_a_cycle_of_what_it_made(told, recorded):
    """What is put off has to have nothing to do: a few objects of a run, never its items."""
    opened = artifact()
    found = []
    for top in (2, 300):
        settings = Settings(seed=bytes(32), top=top, **told)
        search(opened, settings)  # its tables are made
        gc.collect()
        gc.disable()
        try:
            search(opened, settings, Recorder(MemorySink(), started_ms=0) if recorded else None)
            found.append(gc.collect())
        finally:
            gc.enable()
    assert found[0] == found[1] < 100


@pytest.mark.parametrize("recorded", [True, False], ids=["ledger", "no ledger"])
def test_the_first_look_after_a_run_goes_through_none_of_its_items(recorded):
    opened, settings = artifact(), Settings(seed=bytes(32), top=1500)
    search(opened, settings)  # its tables are made
    gc.collect()
    looked = []

    def note(phase, _info):
        if phase == "start":
            looked.append(len(gc.get_objects(generation=0)))

    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    gc.callbacks.append(note)
    try:
        run = search(opened, settings, Recorder(MemorySink(), started_ms=0) if recorded else None)
        more = [[] for _ in range(1000)]  # so that there is one
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
    assert len(run.plans) == 1500 and len(more) == 1000
    # Two objects for each plan that was found; with the items it would be some 17,000.
    assert 0 < looked[0] < 6000


@pytest.mark.parametrize("told", MODES, ids=str)
@pytest.mark.parametrize("forged", [False, True], ids=["honest", "forged"])
@pytest.mark.sampled(6)
def test_no_validation_leaves_a_cycle_of_what_it_made(told, forged):
    opened, checked = artifact(), check(compiled())
    found = []
    for top in (2, 300):
        sink = MemorySink()
        settings = Settings(seed=bytes(32), top=top, **told)
        search(opened, settings, Recorder(sink, started_ms=0))
        ledger = bytes(sink.data)
        if forged:  # the chain breaks near the end
            ledger = ledger[:-900] + ledger[-900:].replace(b'"', b"'", 1)
        assert validate(ledger, checked).verdict == forged
        gc.collect()
        gc.disable()
        try:
            validate(ledger, checked)
            found.append(gc.collect())
        finally:
            gc.enable()
    assert found[0] == found[1] < 100


def test_a_run_that_is_refused_leaves_the_collector_on():
    with pytest.raises(SettingsError):
        search(artifact(), Settings(seed=bytes(32), truncate=-1))


def test_who_has_turned_it_off_finds_it_off():
    gc.disable()
    try:
        with collection_put_off(True):
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_on_again_after_the_last_of_several_runs():
    both_in, one_out = Barrier(2, timeout=10), Barrier(2, timeout=10)
    after_one = []

    def first():
        with collection_put_off(True):
            both_in.wait()
        after_one.append(gc.isenabled())
        one_out.wait()

    thread = Thread(target=first)
    thread.start()
    with collection_put_off(True):
        both_in.wait()
        one_out.wait()
        assert not gc.isenabled()
    thread.join()
    assert after_one == [False]

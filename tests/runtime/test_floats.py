"""Enclosures: each holds the exact key; and how a run that nobody records is ended."""

from __future__ import annotations

import os
import random
import signal

import pytest

from tcc_certs.formats.ledger import format_q64
from tcc_runtime.artifact.load import load
from tcc_runtime.guards import Stop
from tcc_runtime.item import ORDER
from tcc_runtime.numbers.floats import exponential
from tcc_runtime.numbers.ladder import rung_of
from tcc_runtime.numbers.reals import Reals
from tcc_runtime.numbers.rung import Precision
from tcc_runtime.process import Interrupts
from tcc_runtime.races.coupled import Coupled, Rest
from tcc_runtime.races.interface import RunHashers
from tcc_runtime.run import search
from tcc_runtime.search import UNHELD, Search
from tcc_runtime.settings.modes import race_key_of, terms_of
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import Tables
from tests.differential.test_runtime_modes import case
from tests.runtime.engines import race_over
from tests.runtime.graphs import build, chain_rows, free_core

KINDS = ["exact", "network", "rounded", "rounded network"]
RACES = {"coupled": Coupled, "rest": Rest}


def ran(artifact, race, seed, top=1, inflate="1", recipe="r2"):
    """A loop over enclosures that has come to its stop, its rung and its tables."""
    mode = None if inflate == "1" else "surrogate"
    settings = Settings(seed=seed, race=race, inflate=inflate, recipe=recipe, mode=mode, top=top)
    terms = terms_of(artifact, settings)
    tables = Tables(artifact, recipe, inflate)
    rung = rung_of("floats", tables)
    uniforms = RunHashers(race_key_of(artifact, terms))
    made = RACES[race](tables, rung, uniforms, None)
    with Interrupts() as interrupts:
        loop = Search(made, rung, terms.mode, terms.claim, top, interrupts)
        assert loop.run() in (Stop.BOUND, Stop.EXHAUSTED)
    return loop, rung, tables


def chain(layers, calls=6, tilt=8):
    rng = random.Random(5)
    core = free_core([rng.randrange(10**9) for _ in range(calls)], layers)
    return load(build(core, chain_rows(rng, calls, layers, 3), tilt=tilt))


@pytest.mark.parametrize("race", RACES)
def test_every_enclosure_holds_the_exact_key(race):
    seen = 0
    for number in range(40):
        artifact = chain(900) if number == 0 else case(number, "exact", 8)[0]
        loop, rung, _ = ran(artifact, race, bytes([number]) * 32, top=1 + number % 3)
        for item in loop.frontier():
            exact = rung.order(item)[ORDER]
            assert item[ORDER] <= exact <= item[ORDER] + rung.width
            seen += 1
    assert seen > 900


@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("told", [{}, {"inflate": "1.5"}, {"recipe": "r1"}], ids=str)
def test_keys_by_integers_are_those_of_working_precision(race, told):
    seen = 0
    for number in range(24):
        artifact, _ = case(number, KINDS[number % 4], (0, 4, 8)[number % 3])
        loop, rung, tables = ran(artifact, race, bytes([number]) * 32, **told)
        open_ = rung_of("floats", tables, Precision(error=1 << 47))
        for item in [*loop.frontier(), *loop.found]:
            by_integers = rung.order((0.0, *item[1:]))
            assert open_.order((0.0, *item[1:])) == by_integers
            seen += 1
    assert seen > 60


def test_exponentials_are_right_to_44_bits_at_both_ends():
    reals = Reals(160)
    words = [0, 1, 2, 2**63 - 1, 2**63, 2**64 - 2, 2**64 - 1, 2**32, 2**64 - 2**32]
    for word in [*words, *(random.Random(1).getrandbits(64) for _ in range(500))]:
        exact = reals.exponential(word)
        assert abs(exponential(word) - exact) <= exact * 2**-44


def pressing(at):
    """A clock that presses Ctrl-C when it is looked at for the `at`-th time."""
    looks = 0

    def clock():
        nonlocal looks
        looks += 1
        if looks == at:
            os.kill(os.getpid(), signal.SIGINT)
        return 0.0

    return clock


@pytest.mark.parametrize("race", RACES)
def test_ctrl_c_before_it_is_held_back_ends_a_run_at_its_root(race):
    artifact = chain(24)
    settings = Settings(seed=bytes(32), top=100, race=race, max_seconds=9)
    uniforms = RunHashers(race_key_of(artifact, terms_of(artifact, settings)))
    root = race_over(artifact, uniforms, RACES[race]).root()
    for at in (2, 3, 100):
        run = search(artifact, settings, clock=pressing(at))
        assert (run.stop, run.claim_type, run.expansions) == ("interrupted", "NoCert", 0)
        assert (run.plans, run.frontier_key) == ((), format_q64(-root[ORDER]))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("race", RACES)
def test_ctrl_c_in_a_long_run_that_nobody_records_ends_it_between_two_steps(race):
    artifact = chain(24)
    settings = Settings(seed=bytes(32), top=100, race=race, max_seconds=9)
    for at in (UNHELD + 100, UNHELD + 150):
        run = search(artifact, settings, clock=pressing(at))
        # It is noted before a step, which is made; the next one is not.
        assert (run.stop, run.claim_type) == ("interrupted", "NoCert")
        assert run == search(artifact, settings, on_expand=counting(at - 1))
        assert run.expansions >= UNHELD
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def counting(steps):
    """A follower that ends a run after so many steps."""
    seen = 0

    def follow(_progress):
        nonlocal seen
        seen += 1
        return seen == steps

    return follow


def test_a_handler_of_somebody_else_is_left_alone():
    pressed = []
    before = signal.signal(signal.SIGINT, lambda *_: pressed.append(1))
    try:
        run = search(chain(24), Settings(seed=bytes(32), max_seconds=9), clock=pressing(3))
    finally:
        signal.signal(signal.SIGINT, before)
    assert (run.stop, pressed) == ("bound", [1])


def test_who_follows_may_end_an_unrecorded_run():
    artifact, _ = case(3, "exact", 8)
    settings = Settings(seed=bytes(32), top=10**4, race="rest")
    told = search(artifact, settings, on_expand=lambda p: p.expansions == 2)
    assert (told.stop, told.claim_type, told.expansions) == ("interrupted", "NoCert", 2)

"""What a run does, counted: expansions, uniforms, logarithms, edges.

A change of these figures is a change of what a run costs, and wants a reason.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tcc_certs.race.digest import REST_WINNER, WINNER
from tcc_runtime import run as running
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import HashOnly
from tcc_runtime.numbers import arrivals, mpfr
from tcc_runtime.numbers.reals import FIRST_BITS, Reals
from tcc_runtime.numbers.rung import Path
from tcc_runtime.races.interface import RunHashers
from tcc_runtime.run import QUICKEST
from tcc_runtime.settings.settings import Settings
from tcc_runtime.states import tables_of
from tests.runtime.engines import MPFR
from tests.runtime.graphs import build, chain_rows, free_core, opened, random_network, wide_core

SEED = bytes(range(32))


def deep() -> Artifact:
    """24 calls in a row, 6 to choose from at each, three states a layer."""
    rng = random.Random(11)
    costs = [rng.randrange(10**9) for _ in range(6)]
    return load(build(free_core(costs, 24), chain_rows(rng, 6, 24, 3)))


def wide() -> Artifact:
    """Three calls in a row, 200 to choose from at each."""
    rng = random.Random(12)
    costs = [rng.randrange(10**9) for _ in range(200)]
    return load(build(wide_core(costs, 3), chain_rows(rng, 200, 3, 2), tilt=12))


def network() -> Artifact:
    """Sets of states, tilt 2."""
    rows = random_network(random.Random(13), 4, 5, 3)
    costs = [10**8, 10**9, 5 * 10**8, 7 * 10**8]
    return opened(free_core(costs, 9), rows, tilt=2, nondeterministic=True)


def work(artifact: Artifact, monkeypatch, recorded=True, engine=MPFR, **told) -> dict[str, int]:
    """The counts of one run on fresh tables."""
    counts: Counter = Counter()
    settings = Settings(**{"seed": SEED, "race": "coupled", **told})
    tables = tables_of(artifact, settings.recipe, settings.inflate)
    reals = mpfr._views_of(tables, FIRST_BITS).reals
    log, edges = reals._log, Artifact.edges

    def counted_log(value):
        counts["logarithms"] += 1
        return log(value)

    class Counted(RunHashers):
        def __init__(self, key):
            super().__init__(key)
            word = self.word

            def counted(named):
                counts["uniforms"] += 1
                return word(named)

            self.word = counted

    def counted_edges(self, q):
        found = edges(self, q)
        counts["edges"] += len(found)
        return found

    def no_more(self, bits):
        raise AssertionError("a rounding wanted more precision")

    monkeypatch.setattr(reals, "_log", counted_log)
    monkeypatch.setattr(running, "RunHashers", Counted)
    monkeypatch.setattr(Artifact, "edges", counted_edges)
    monkeypatch.setattr(Reals, "__init__", no_more)
    recorder = Recorder(HashOnly(), started_ms=0) if recorded else None
    run = running.search(artifact, settings, recorder, engine=engine)
    assert run.claim_type != "NoCert"
    return {"expansions": run.expansions, "leaves": run.leaves, **counts}


CASES = {
    ("deep", "coupled", 1): {
        "expansions": 25,
        "leaves": 1,
        "edges": 144,
        "uniforms": 146,
        "logarithms": 248,
    },
    ("deep", "coupled", 16): {
        "expansions": 367,
        "leaves": 16,
        "edges": 144,
        "uniforms": 2123,
        "logarithms": 3518,
    },
    ("deep", "anchored", 16): {
        "expansions": 2100,
        "leaves": 16,
        "edges": 144,
        "uniforms": 3849,
        "logarithms": 3504,
    },
    ("deep", "rest", 1): {
        "expansions": 25,
        "leaves": 1,
        "edges": 144,
        "uniforms": 50,
        "logarithms": 56,
    },
    ("deep", "rest", 16): {
        "expansions": 367,
        "leaves": 16,
        "edges": 144,
        "uniforms": 749,
        "logarithms": 740,
    },
    ("wide", "coupled", 1): {
        "expansions": 4,
        "leaves": 1,
        "edges": 600,
        "uniforms": 602,
        "logarithms": 1396,
    },
    ("wide", "anchored", 1): {
        "expansions": 477,
        "leaves": 1,
        "edges": 600,
        "uniforms": 951,
        "logarithms": 1148,
    },
    ("wide", "rest", 1): {
        "expansions": 4,
        "leaves": 1,
        "edges": 600,
        "uniforms": 8,
        "logarithms": 11,
    },
    ("wide", "rest", 64): {
        "expansions": 182,
        "leaves": 64,
        "edges": 600,
        "uniforms": 427,
        "logarithms": 479,
    },
    ("network", "coupled", 4): {
        "expansions": 13,
        "leaves": 4,
        "edges": 68,
        "uniforms": 47,
        "logarithms": 72,
    },
    ("network", "rest", 4): {
        "expansions": 11,
        "leaves": 4,
        "edges": 68,
        "uniforms": 27,
        "logarithms": 30,
    },
}


@pytest.mark.parametrize(("made", "race", "top"), CASES, ids=str)
def test_the_work_of_a_run(made, race, top, monkeypatch):
    artifact = {"deep": deep, "wide": wide, "network": network}[made]()
    told = {"keys": "anchored"} if race == "anchored" else {"race": race}
    assert work(artifact, monkeypatch, top=top, **told) == CASES[made, race, top]


def recorded_work(artifact: Artifact, monkeypatch, **told) -> dict[str, int]:
    """The counts of one recorded run in integers of fixed size, on fresh tables."""
    counts: Counter = Counter()
    log, edges, body = arrivals.logarithm, Artifact.edges, Recorder._chain

    def counted_log(mantissa):
        counts["logarithms"] += 1
        return log(mantissa)

    class Counted(RunHashers):
        def __init__(self, key):
            super().__init__(key)
            word, digest = self.word, self.digest

            def counted(named):
                counts["winners" if named[0] in (WINNER, REST_WINNER) else "arrivals"] += 1
                return word(named)

            def counted_digest(data):
                counts["digests"] += 1
                return digest(data)

            self.word, self.digest = counted, counted_digest

    def counted_edges(self, q):
        found = edges(self, q)
        counts["edges"] += len(found)
        return found

    def counted_lines(self, bodies):
        counts["lines"] += len(bodies)
        body(self, bodies)

    monkeypatch.setattr(arrivals, "logarithm", counted_log)
    monkeypatch.setattr(running, "RunHashers", Counted)
    monkeypatch.setattr(Artifact, "edges", counted_edges)
    monkeypatch.setattr(Recorder, "_chain", counted_lines)
    monkeypatch.setattr(Path, "published", lambda *_: pytest.fail("wanted more"))
    settings = Settings(seed=SEED, **told)
    run = running.search(artifact, settings, Recorder(HashOnly(), started_ms=0))
    assert run.claim_type != "NoCert"
    counts["lines"] -= 2  # `open` and `close`
    return {"expansions": run.expansions, "leaves": run.leaves, **counts}


RECORDED = {
    ("deep", "coupled", 1): {
        "expansions": 25,
        "leaves": 1,
        "edges": 144,
        "winners": 25,
        "arrivals": 121,
        "logarithms": 242,
        "digests": 145,
        "lines": 172,
    },
    ("deep", "coupled", 16): {
        "expansions": 367,
        "leaves": 16,
        "edges": 144,
        "winners": 367,
        "arrivals": 1756,
        "logarithms": 3512,
        "digests": 2122,
        "lines": 2506,
    },
    ("deep", "rest", 1): {
        "expansions": 25,
        "leaves": 1,
        "edges": 144,
        "winners": 25,
        "arrivals": 25,
        "logarithms": 50,
        "digests": 49,
        "lines": 76,
    },
    ("deep", "rest", 16): {
        "expansions": 367,
        "leaves": 16,
        "edges": 144,
        "winners": 382,
        "arrivals": 367,
        "logarithms": 734,
        "digests": 748,
        "lines": 1147,
    },
    ("wide", "coupled", 1): {
        "expansions": 4,
        "leaves": 1,
        "edges": 600,
        "winners": 4,
        "arrivals": 598,
        "logarithms": 1196,
        "digests": 601,
        "lines": 607,
    },
    ("wide", "rest", 64): {
        "expansions": 182,
        "leaves": 64,
        "edges": 600,
        "winners": 245,
        "arrivals": 182,
        "logarithms": 364,
        "digests": 426,
        "lines": 736,
    },
    ("network", "coupled", 4): {
        "expansions": 13,
        "leaves": 4,
        "edges": 68,
        "winners": 13,
        "arrivals": 34,
        "logarithms": 68,
        "digests": 46,
        "lines": 64,
    },
    ("network", "rest", 4): {
        "expansions": 11,
        "leaves": 4,
        "edges": 68,
        "winners": 14,
        "arrivals": 13,
        "logarithms": 26,
        "digests": 26,
        "lines": 45,
    },
}


@pytest.mark.parametrize(("made", "race", "top"), RECORDED, ids=str)
def test_the_work_of_a_recorded_run(made, race, top, monkeypatch):
    artifact = {"deep": deep, "wide": wide, "network": network}[made]()
    found = recorded_work(artifact, monkeypatch, top=top, race=race)
    assert found == RECORDED[made, race, top]
    # The same draws as step by step, and of each but that of a winner two logarithms.
    case = CASES[made, race, top]
    same = ("expansions", "leaves", "edges")
    assert [found[name] for name in same] == [case[name] for name in same]
    assert found["winners"] + found["arrivals"] == case["uniforms"]
    assert found["logarithms"] == 2 * found["arrivals"]


@pytest.mark.parametrize(("race", "uniforms"), [("coupled", 2123), ("rest", 749)])
def test_an_unrecorded_run_takes_logarithms_of_integers_for_its_plans_alone(
    race, uniforms, monkeypatch
):
    log, taken = arrivals.logarithm, []
    monkeypatch.setattr(arrivals, "logarithm", lambda value: taken.append(value) or log(value))
    found = work(deep(), monkeypatch, recorded=False, engine=QUICKEST, top=16, race=race)
    expansions = CASES["deep", race, 16]["expansions"]
    assert (found["expansions"], found["uniforms"]) == (expansions, uniforms)
    assert "logarithms" not in found
    assert len(taken) == 34


@pytest.mark.parametrize("calls", [2, 30, 400])
def test_an_expansion_of_the_rest_race_costs_the_same_however_many_calls_there_are(
    calls, monkeypatch
):
    rows = [(True, [])]
    for _ in range(6):
        rows.append((False, [(a, len(rows) - 1) for a in range(calls)]))
    artifact = load(build(wide_core([10**9] * calls, 6), rows, tilt=16))
    running.search(artifact, Settings(seed=SEED, race="rest"), engine=MPFR)  # tables are made
    with monkeypatch.context() as patch:
        found = work(artifact, patch, race="rest")
    # One word for the winner and one for what is left; the last node has one child alone.
    assert found == {"expansions": 7, "leaves": 1, "uniforms": 14, "logarithms": 14}
    found = recorded_work(artifact, monkeypatch, race="rest")
    assert found == {
        "expansions": 7,
        "leaves": 1,
        "winners": 7,
        "arrivals": 7,
        "logarithms": 14,
        "digests": 13,
        "lines": 22,
    }

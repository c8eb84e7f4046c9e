"""Whatever a run is computed with, it gives one result and one ledger, byte for byte.

Every rung is forced, as it is and with errors so wide that much or all that it decides goes to the
next; in every race and mode, and at the ends of what costs, beta, tilt, depth and width may be.
"""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.ledger import digits_q64
from tcc_runtime.artifact.load import load
from tcc_runtime.ledger import lines, steps as rendering
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerFile, MemorySink
from tcc_runtime.numbers.ladder import fits
from tcc_runtime.resume import resume
from tcc_runtime.run import QUICKEST, Engine, search
from tcc_runtime.settings.settings import Settings
from tests.differential.test_runtime_modes import case
from tests.oracle.cores import call, depth, make_core
from tests.runtime.engines import MPFR, RECORDED, UNRECORDED
from tests.runtime.graphs import (
    build,
    chain_rows,
    free_core,
    opened,
    plan_rows,
    random_network,
    random_rows,
    wide_core,
)
from tests.runtime.ranged import Unreliable, ranged_artifact, ranged_settings
from tests.runtime.relaxing import random_relaxed

KINDS = ["exact", "network", "rounded", "rounded network"]
TOLD = {
    "rest": {"race": "rest"},
    "coupled": {"race": "coupled"},
    "inflated": {"inflate": "1.7", "mode": "surrogate"},
    "inflated coupled": {"inflate": "3", "mode": "surrogate", "race": "coupled"},
    "r1": {"recipe": "r1"},
    "anchored": {"keys": "anchored"},
    "fallback": {"mode": "fallback"},
    "fallback, tau": {"mode": "fallback", "tau": "0." + "0" * 25 + "1"},
    "cut": {"truncate": 2},
    "cut coupled": {"truncate": 2, "race": "coupled"},
    "guarded": {"alpha": "0.3", "eta": "0.5"},
    "counted": {"count_bits": 9},
    "counted, anchored": {"count_bits": 9, "keys": "anchored"},
}
LITERAL = {"race": "literal", "mode": "surrogate"}


def written(artifact, engine=QUICKEST, follow=None, clock=lambda: 0.0, quoter=None, **told):
    """The ledger, the result, and what a follower is told."""
    sink, seen = MemorySink(), []
    recorder = Recorder(sink, started_ms=1_700_000_000_000)
    note = noting(seen, follow)
    run = search(artifact, Settings(**told), recorder, note, clock, quoter, engine)
    return bytes(sink.data), run, seen


def alone(artifact, engine=QUICKEST, follow=None, clock=lambda: 0.0, quoter=None, **told):
    """The same of a run that nobody records; it has no ledger."""
    seen = []
    run = search(artifact, Settings(**told), None, noting(seen, follow), clock, quoter, engine)
    return run, seen


def noting(seen, follow):
    if follow is None:
        return None

    def note(progress):
        # Looked at when all is over: what was true then stays so.
        seen.append(progress)
        return follow(progress)

    return note


def told_of(seen):
    return [(p.expansions, p.incumbent, p.bound, p.gap) for p in seen]


def require_same(artifact, ranged=False, **told):
    """One ledger and one result with every engine; the ledger."""
    ledger, run, seen = written(artifact, MPFR, **told)
    due = ledger, run, told_of(seen)
    engines = RECORDED if fits(artifact) else {"mpfr": MPFR}
    for name, engine in {**engines, "quickest": QUICKEST}.items():
        ledger, found, seen = written(artifact, engine, **told)
        assert (ledger, found, told_of(seen)) == due, (name, told)
    if fits(artifact) and not ranged:
        engines = {**engines, **UNRECORDED}
    for name, engine in {**engines, "quickest": QUICKEST}.items():
        found, seen = alone(artifact, engine, **told)
        assert (found, told_of(seen)) == (replace(run, ledger_head=None), due[2]), (name, told)
    return due[0]


def deep(tilt=8, layers=40):
    rng = random.Random(3)
    costs = [rng.randrange(10**9) for _ in range(5)]
    return load(build(free_core(costs, layers), chain_rows(rng, 5, layers, 3), tilt=tilt))


@pytest.mark.parametrize("told", TOLD)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.sampled(18)
def test_every_mode_has_one_ledger(kind, told):
    for number in range(4):
        rng = random.Random(f"{kind}/{told}/{number}")
        artifact, _ = case(number, kind, rng.choice((0, 1, 8)))
        for top in (1, 3, 10**4):
            follow = rng.choice((None, lambda _: False))
            require_same(artifact, seed=rng.randbytes(32), top=top, follow=follow, **TOLD[told])


@pytest.mark.parametrize("kind", KINDS)
def test_the_literal_race_has_one_ledger(kind):
    for number in range(6):
        artifact, _ = case(number, kind, 0)
        for top in (1, 5):
            require_same(artifact, seed=bytes([number]) * 32, top=top, **LITERAL)


def test_relaxed_artifacts_have_one_ledger():
    for number in range(12):
        rng = random.Random(number)
        made = random_relaxed(rng)
        beta, tilt = rng.choice(("1", "0", "40")), rng.choice((0, 1, 8))
        artifact = load(build(made.data, made.rows, beta, tilt, relaxed=made.named))
        for told in ({"race": "rest"}, {"race": "coupled"}, {"keys": "anchored"}, {"truncate": 1}):
            require_same(artifact, seed=rng.randbytes(32), top=rng.choice((1, 4, 99)), **told)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_costs_that_are_ranges_have_one_ledger(first):
    for number in range(first, first + 20):
        rng = random.Random(f"ranges {number}")
        artifact = load(ranged_artifact(rng))
        quoted = rng.random() < 0.9
        told = ranged_settings(rng, artifact, quoted)
        told["seed"], salt = rng.randbytes(32), rng.random()
        ledgers = set()
        for engine in [*RECORDED.values(), QUICKEST]:
            quoter = Unreliable(random.Random(salt)) if quoted else None
            ledger, run, _ = written(artifact, engine, quoter=quoter, **told)
            ledgers.add((ledger, run))
            quoter = Unreliable(random.Random(salt)) if quoted else None
            assert alone(artifact, engine, quoter=quoter, **told)[0] == replace(
                run, ledger_head=None
            )
        assert len(ledgers) == 1, told


BETAS = ("0", "0.000001", "1", "400", "99999999")
TILTS = (0, 1, 8, 33, 64)


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.sampled(9)
def test_the_ends_of_costs_beta_and_tilt_have_one_ledger(beta, tilt):
    ran = 0
    for number in range(6):
        rng = random.Random(f"{beta}/{tilt}/{number}")
        calls = rng.randint(1, 4)
        costs = [
            rng.choice((0, 1, -1, 10**9, -(10**8), 2 * 10**10, 60 * 10**9)) for _ in range(calls)
        ]
        network = number % 3 == 0
        rows = (random_network if network else random_rows)(rng, calls, rng.randint(1, 4), 3)
        try:
            artifact = opened(free_core(costs, 12), rows, beta, tilt, nondeterministic=network)
        except (Rejected, OverflowError):
            continue  # residuals beyond 64 bits are refused
        for told in ({"race": "rest"}, {"race": "coupled"}, {"keys": "anchored"}):
            require_same(artifact, seed=rng.randbytes(32), top=rng.choice((1, 3)), **told)
            ran += 1
    assert ran or beta == "99999999"


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_deep_and_wide_runs_have_one_ledger(race):
    rng = random.Random(4)
    costs = [rng.randrange(10**9) for _ in range(150)]
    wide = load(build(wide_core(costs, 3), chain_rows(rng, 150, 3, 2), tilt=12))
    for artifact, tops in ((deep(), (1, 16)), (deep(0), (2,)), (wide, (1, 4))):
        for top in tops:
            told = {"seed": rng.randbytes(32), "top": top, "race": race}
            require_same(artifact, max_expansions=400, **told)


@pytest.mark.parametrize("race", ["rest", "coupled"])
@pytest.mark.parametrize("lengths", [(12, 19), pytest.param((14, 16), marks=pytest.mark.campaign)])
def test_a_share_of_next_to_nothing_has_one_ledger(race, lengths):
    # Of 300 calls tau is 2^-684, beyond doubles; one call that costs nothing, or up to twenty of
    # weight 2^-64.
    require_same(deep(layers=300), seed=bytes(32), top=2, race=race)
    for length in lengths:
        rows = [(True, [])]
        for _ in range(length):
            rows.append((False, [(1, len(rows) - 1)]))
        rows.append((False, [(0, 0), (1, length)]))
        artifact = opened(free_core([0, 60 * 10**9], 20), rows, "1", 8)
        for top in (1, 2):
            require_same(artifact, seed=bytes(32), top=top, race=race)


@pytest.mark.parametrize("race", ["rest", "coupled"])
@pytest.mark.parametrize("tilt", [4, 12])
def test_long_runs_have_one_result(race, tilt):
    rng = random.Random(tilt)
    core = free_core([rng.randrange(10**9) for _ in range(6)], 24)
    artifact = load(build(core, chain_rows(rng, 6, 24, 3), tilt=tilt))
    for top in (1, 8, 40):
        told = {"seed": bytes([top]) * 32, "top": top, "race": race}
        assert alone(artifact, **told)[0] == replace(written(artifact, **told)[1], ledger_head=None)


@pytest.mark.parametrize("told", [*TOLD.values(), LITERAL], ids=str)
def test_caps_end_all_in_the_same_place(told):
    for number in range(3):
        artifact, _ = case(number, "exact", 0)
        for cap in (1, 2, 7):
            seed = bytes([number]) * 32
            require_same(artifact, seed=seed, max_expansions=cap, **{**told, "top": 5})


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_the_time_ends_all_in_the_same_place(race):
    for most in (1, 2, 9, 40):
        found = []
        for engine in (*RECORDED.values(), QUICKEST):
            ticks = iter(range(10**6))
            told = {"seed": bytes(32), "race": race, "max_seconds": most / 1000}
            run = written(deep(), engine, clock=lambda t=ticks: next(t) / 1000, **told)
            assert run[1].stop == "max_seconds"
            found.append(run)
        assert all(run == found[0] for run in found)


@pytest.mark.parametrize("race", ["rest", "coupled"])
def test_followers_end_all_in_the_same_place(race):
    for steps in (1, 2, 30):
        for ends in (bool, KeyboardInterrupt):

            def follow(progress, steps=steps, ends=ends):
                if progress.expansions >= steps and ends is KeyboardInterrupt:
                    raise KeyboardInterrupt
                return progress.expansions >= steps

            told = {"seed": bytes(32), "top": 3, "race": race}
            ledger = require_same(deep(), follow=follow, **told)
            assert b'"stop":"interrupted"' in ledger
            assert ledger.count(b'"kind":"expand"') == steps


@pytest.mark.parametrize("engine", [*RECORDED.values(), QUICKEST], ids=[*RECORDED, "quickest"])
def test_a_follower_that_fails_leaves_what_was_done(engine):
    def fail(progress):
        if progress.expansions == 5:
            raise ZeroDivisionError

    sink, recorder = MemorySink(), None
    recorder = Recorder(sink, started_ms=1_700_000_000_000)
    with pytest.raises(ZeroDivisionError):
        search(deep(), Settings(seed=bytes(32)), recorder, fail, engine=engine)
    assert bytes(sink.data).count(b'"kind":"expand"') == 5
    assert written(deep(), MPFR, seed=bytes(32))[0].startswith(bytes(sink.data))


@pytest.mark.parametrize("race", ["rest", "coupled"])
@pytest.mark.parametrize("engine", [QUICKEST, MPFR], ids=["quickest", "mpfr"])
def test_a_ledger_that_one_began_is_resumed_by_the_other(tmp_path, race, engine):
    seed, path = bytes([9]) * 32, tmp_path / "run.ndjson"
    data, run, _ = written(deep(), seed=seed, top=4, race=race)
    assert written(deep(), MPFR, seed=seed, top=4, race=race)[0] == data
    for cut in (len(data) // 3, len(data) - 5):
        path.write_bytes(data[:cut])
        again = resume(deep(), path, seed, engine=engine)
        assert replace(again, ledger_head=None) == replace(run, ledger_head=None)
        before, mark, after = path.read_bytes().partition(b'{"dropped_bytes"')
        assert mark
        assert data.startswith(before)
        assert after.count(b"\n") == data.count(b"\n") - before.count(b"\n") + 1
        path.unlink()


def lettered(beta="1"):
    """Texts that are escaped, cut and beyond ASCII."""
    values = ['"æ\\"\\\\\\n"', '"' + "ü" * 30 + '"', '"\u2028\x7f😀"', '"b c"']
    core = make_core(
        tools=[{"name": "t", "fields": [{"name": "p", "values": values}]}],
        calls=[call(0, (i,), 10**9) for i in sorted(range(4), key=lambda i: values[i].encode())],
        plan=["repeat", ["call", {0, 1, 2, 3}], 0],
        statements=[depth(6)],
    )
    rows = [(True, [])]
    for q in range(6):
        rows.append((True, [(a, q) for a in range(4)]))
    return load(build(core, rows, beta=beta, tilt=8))


def test_texts_and_signs_are_the_same():
    for beta in ("0.1", "30"):
        for race in ("rest", "coupled"):
            data = require_same(lettered(beta), seed=bytes(32), top=30, race=race)
            assert b'"key_raw":"-' in data


@pytest.mark.parametrize("told", [{"race": "rest"}, {"race": "coupled"}, {"keys": "anchored"}])
def test_rare_ways_to_render_a_line_are_the_common_ones(told, monkeypatch):
    # No artifact draws a fraction on a tie, and few have thousands of contexts.
    def ledgers():
        return [written(made(), seed=bytes(32), top=9, **told)[0] for made in (lettered, deep)]

    def noted(value):
        rare.append(value)
        return digits_q64(value)

    def cleared(kept):
        rare.append(None)
        dict.clear(kept)

    common, rare = ledgers(), []
    for module, name, other in (
        (rendering, "TIE", 0),
        (lines, "TIE", 0),
        (lines, "digits_q64", noted),
        (lines, "_MOST_CONTEXTS", 3),
        (lines.Contexts, "clear", cleared),
    ):
        monkeypatch.setattr(module, name, other)
    assert ledgers() == common
    assert rare.count(None) > 9 and len(rare) > 2 * rare.count(None)


def test_calls_of_weight_one_and_plans_of_no_call():
    core = free_core([10**9, 0], 9)
    artifact = opened(core, plan_rows([[], [0, 1, 0, 1, 0, 1, 0, 1]]), "1", 0)
    for race in ("rest", "coupled"):
        for number in range(8):
            require_same(artifact, seed=bytes([number]) * 32, top=2, race=race)


def test_a_file_is_the_same(tmp_path):
    path = tmp_path / "run.ndjson"
    recorder = Recorder(LedgerFile(path), started_ms=1_700_000_000_000)
    run = search(deep(), Settings(seed=bytes(32), top=3), recorder)
    assert (path.read_bytes(), run) == written(deep(), seed=bytes(32), top=3)[:2]


def test_an_engine_that_a_run_does_not_allow_is_refused():
    unverified = load(build(free_core([1], 2), [(True, []), (False, [(0, 0)])]), verify=False)
    for numbers in ("floats", "fixed"):
        with pytest.raises(ValueError, match=f"cannot be computed with {numbers}"):
            alone(unverified, Engine(numbers=numbers), seed=bytes(32))
    with pytest.raises(ValueError, match="cannot be computed with floats"):
        written(deep(), Engine(numbers="floats"), seed=bytes(32))

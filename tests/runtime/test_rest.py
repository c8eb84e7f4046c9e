"""The rest race: what it draws, what it leaves, what it costs and what ends it."""

from __future__ import annotations

import json
import random
from itertools import accumulate

import pytest

from tcc_certs.formats.codec import encode
from tcc_certs.race.arrivals import winner
from tcc_certs.race.digest import uuid7
from tcc_certs.replay import validate
from tcc_certs.replay.races.children import Children, whole
from tcc_runtime.artifact.load import load
from tcc_runtime.item import NodeRemainder, UndrawnChildren
from tcc_runtime.ledger.lines import Contexts, Marks, stamp_of
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.ledger.steps import StepLines
from tcc_runtime.run import search
from tcc_runtime.settings.settings import Settings
from tests.runtime.graphs import build, free_core, vec_core, vec_rows

SEED = bytes(range(32))


def recorded(data: bytes, clock=None, on_expand=None, **told):
    sink = MemorySink()
    more = {} if clock is None else {"clock": clock}
    settings = Settings(**{"seed": SEED, "race": "rest", **told})
    recorder = Recorder(sink, started_ms=7)
    run = search(load(data), settings, recorder, on_expand, **more)
    found = validate(bytes(sink.data), data)
    assert (found.verdict, found.findings, found.claim_type) == (0, (), run.claim_type)
    return run, [json.loads(line) for line in sink.data.splitlines()]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 9, 31, 100])
def test_draws_find_the_child_that_the_definition_names(size):
    rng = random.Random(size)
    for _ in range(20):
        masses = [rng.choice((1, 2, 3, rng.randrange(1, 2**80))) for _ in range(size)]
        phantom = rng.choice((0, 1, sum(masses)))
        cumulative = list(accumulate(masses))
        pool, left = UndrawnChildren(cumulative), list(range(size))
        steps = tuple((at, (0,)) for at in range(size))
        children = Children(
            steps=steps,
            masses=masses,
            running=tuple(cumulative),
            total=cumulative[-1] + phantom,
            unit=0,
        )
        theirs, extra = whole(bytes(32), children), phantom
        while left:
            mass = sum(masses[at] for at in left) + extra
            x = rng.choice((0, 2**64 - 1, rng.randrange(2**64)))
            due = winner(x, mass, [masses[at] for at in left])
            place = size if due is None else left[due]
            assert pool.find(((2 * x + 1) * mass) >> 65) == place
            assert theirs.winner(x) == (None if due is None else place)
            assert (theirs.mass, theirs.number) == (mass, len(left))
            theirs = theirs.without(None if due is None else place, due is None)
            if due is None:
                extra = 0
            else:
                pool.take(place)
                left.remove(place)
        assert theirs.number == 0
        assert theirs.mass == extra
        assert pool.drawn == set(range(size))


class Shown:
    """A race of which only -ln t is asked."""

    late, timed, clamping = False, True, True

    def __init__(self, log, bits=0):
        self._shown = log, bits

    def shown(self, item):
        return self._shown


def drawn(left, *, key=0, word=None, winner=None, rest=None, dead=False):
    """A draw from what is left of a node; nobody asks for its state."""
    node = 0, bytes(32), None, None, None, 0, None, 0, None
    item = -key, bytes(32), None, left(node), node, 0, None, 12, None
    step = (
        item,
        word,
        winner,
        (),
        None if rest is None else (*item[:3], rest(node), *item[4:]),
        dead,
    )
    return step, None


def at_step(step):
    return lambda node: NodeRemainder(node, step, 0, 0, UndrawnChildren([]), 0, True)


def test_lines_are_the_canonical_writer_s():
    name = uuid7(1, bytes(32))
    stamp = stamp_of(1)
    due = {
        "kind": "rest", "node_id": name, "step": 4, "U": "12",
        "key_raw": "-0.18750000000000000000", "neg_log_t": "0.62500000000000000000",
    }  # fmt: skip
    step = drawn(at_step(2), key=-(3 << 60), word=9, rest=at_step(4))
    draw = {"kind": "draw", "node_id": name, "step": 2, "W": "9", "winner": "phantom"}
    lines = StepLines(stamp, "", Marks(), Contexts())
    assert lines.lines(Shown(5 << 61), [step]) == [encode(draw), encode(due)]
    clamped = {**due, "guards": ["NumClamp"]}
    lowered = encode({**clamped, "claim_type": "NoCert"})
    # Only the first record that lowers the claim says so.
    twice = lines.lines(Shown(5 << 61, 2), [step, step])
    assert twice == [encode(draw), lowered, encode(draw), encode(clamped)]
    assert StepLines(stamp, "", Marks(True), Contexts()).lines(Shown(5 << 61, 2), [step])[
        1
    ] == encode(clamped)
    (found,) = lines.lines(Shown(0), [drawn(at_step(2), word=9, dead=True)])
    assert found == encode({**draw, "dead_end": True})
    (found,) = lines.lines(Shown(0), [drawn(at_step(2), word=9, winner=31)])
    assert found == encode({**draw, "winner": "31"})
    (found,) = lines.lines(Shown(0), [drawn(at_step(2))])
    assert found == encode({"kind": "draw", "node_id": name, "step": 2})
    (found,) = lines.lines(Shown(0), [drawn(lambda node: ~7, word=9)])
    assert found == encode({**draw, "step": 1})


def test_each_draw_leaves_less_until_nothing_is_left():
    run, records = recorded(build(vec_core(), vec_rows()), top=99)
    assert (run.stop, run.claim_type, len(run.plans)) == ("exhausted", "RunWiseExact", 12)
    kinds = [record["kind"] for record in records]
    # Every child of every node was drawn, all but the last of a node leaving some.
    children = kinds.count("node") - 1
    assert kinds.count("draw") == kinds.count("rest") == children - kinds.count("expand")


def test_a_node_all_of_whose_children_are_forbidden_is_a_dead_end():
    # any{2}, with depth <= 1 left to the run: nothing may follow the first call, nor `stop`.
    rows = [(True, []), (False, [(a, 0) for a in range(3)]), (False, [(a, 1) for a in range(3)])]
    data = build(free_core([1, 2, 3], 1), rows, relaxed=[0])
    run, records = recorded(data)
    assert (run.plans, run.claim_type, run.stop) == ((), "RunWiseSurrogate", "exhausted")
    assert run.expansions == 4
    dead = [r for r in records if "dead_end" in r]
    assert [r["kind"] for r in dead] == ["draw"] * 3
    assert all((r["step"], r["winner"]) == (2, "phantom") for r in dead)
    run, records = recorded(data, truncate=0)
    assert (run.expansions, [r["kind"] for r in records if "dead_end" in r]) == (1, ["draw"])


def wide(calls: int) -> bytes:
    rows = [(True, []), (False, [(a, 0) for a in range(calls)])]
    return build(free_core([10**9] * calls, 1), rows)


def test_draws_are_no_expansions():
    data = build(vec_core(), vec_rows())
    run, records = recorded(data, top=12, max_expansions=3)
    kinds = [record["kind"] for record in records]
    assert (run.stop, run.expansions, kinds.count("expand")) == ("max_expansions", 3, 3)
    assert kinds.count("draw") > 0


def test_the_time_runs_out_between_draws():
    ticks = iter(range(10**6))
    run, records = recorded(wide(9), clock=lambda: next(ticks), top=9, max_seconds=5)
    assert (run.stop, run.claim_type, run.guards) == ("max_seconds", "NoCert", ("Timeout",))
    assert records[-2]["kind"] != "expand"
    assert run.expansions < 4


def test_a_person_may_stop_a_run_after_a_draw():
    seen = []

    def twice(progress):
        seen.append(progress.expansions)
        return len(seen) == 4

    run, records = recorded(wide(9), on_expand=twice, top=9)
    assert (run.stop, run.claim_type) == ("interrupted", "NoCert")
    assert records[-3]["kind"] in ("draw", "node", "expand")
    assert len(seen) == 4


def test_both_recipes_draw_one_race():
    data = build(vec_core(), vec_rows(), tilt=2)
    for salt in range(8):
        runs = [recorded(data, seed=bytes([salt]) * 32, recipe=r, top=3)[0] for r in ("r1", "r2")]
        assert runs[0].plans == runs[1].plans
        assert runs[0].expansions >= runs[1].expansions

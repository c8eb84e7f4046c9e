"""Runs after a prefix: what they are told, what they refuse, and that a cut one goes on."""

from __future__ import annotations

import pickle
import random
from statistics import fmean

import pytest

from tcc_certs.kernel import check
from tcc_certs.policy.reader import read_core
from tcc_certs.replay import validate
from tcc_runtime.artifact.load import load
from tcc_runtime.artifact.plans import enumerate_plans
from tcc_runtime.artifact.root import root_of
from tcc_runtime.errors import AfterRefused, SettingsError
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.resume import resume
from tcc_runtime.run import search
from tcc_runtime.settings.modes import opening_digest, race_key_of, terms_of
from tcc_runtime.settings.predict import estimate, predict
from tcc_runtime.settings.settings import Settings
from tests.oracle.cores import at_most, depth, letters, make_core
from tests.oracle.network import without
from tests.oracle.plans import plans as plans_of
from tests.oracle_ledger.upper import Shape, upper
from tests.runtime.graphs import (
    build as build_graph,
    chain_rows,
    free_core,
    opened,
    vec_core,
    vec_rows,
)
from tests.runtime.prefixes import drawn_prefix
from tests.runtime.ranged import Unreliable, ranged_artifact, ranged_settings

SEED = bytes(range(32))


def ledger_of(artifact, quoter=None, **told):
    sink = MemorySink()
    settings = Settings(**{"seed": SEED, **told})
    return search(artifact, settings, Recorder(sink, started_ms=7), quoter=quoter), bytes(sink.data)


def vec():
    return load(build_graph(vec_core(), vec_rows()))


def test_the_ways_on_are_the_plans_that_begin_so() -> None:
    artifact = vec()
    for after in ((), ("a",), ("b(k=1)",), ("a", "b(k=2)"), ("a", "c")):
        run, ledger = ledger_of(artifact, after=list(after), top=50)
        found = sorted((*after, *plan.calls) for plan in run.plans)
        whole = [plan for plan in enumerate_plans(artifact) if plan[: len(after)] == after]
        assert found == sorted(whole)
        assert (run.after, run.claim_type) == (after, "RunWiseExact")
        assert (b'"after":' in ledger) == bool(after)


def test_what_a_plan_costs_is_what_follows() -> None:
    run = search(vec(), Settings(seed=SEED, after=["a"], top=50))
    costs = {plan.calls: plan.cost for plan in run.plans}
    assert costs[()] == "0" and costs["c",] == "1.25"


@pytest.mark.parametrize(
    ("after", "place", "said"),
    [
        (["z"], 1, "after: expected one of a, b(k=1), b(k=2) as call 1 (TCC901), found z"),
        (["a", "a"], 2, "after: expected one of b(k=1), b(k=2), c as call 2 (TCC901), found a"),
        (["a", "c", "a"], 3, "after: expected no further call as call 3 (TCC901), found a"),
        (["stop"], 1, "after: expected one of a, b(k=1), b(k=2) as call 1 (TCC901), found stop"),
    ],
)
def test_no_prefix_of_a_plan_is_refused_with_its_place(after, place, said) -> None:
    settings = Settings(seed=SEED, after=after)
    for refused in (search, predict, estimate, opening_digest, terms_of):
        with pytest.raises(AfterRefused) as caught:
            refused(vec(), settings)
        assert str(caught.value).startswith(said)
        assert (caught.value.place, caught.value.call) == (place, after[-1])
        assert caught.value.code == "TCC901" and caught.value.field == "after"
        again = pickle.loads(pickle.dumps(caught.value))
        assert str(again) == str(caught.value) and again.allowed == caught.value.allowed


def test_a_text_that_is_no_call_is_refused_where_it_stops_being_one() -> None:
    settings = Settings(seed=SEED, after=["\ud800"])
    for refused in (search, predict, estimate, opening_digest, terms_of):
        with pytest.raises(SettingsError, match=r"at character 1 \(TCC904\)"):
            refused(vec(), settings)


def test_a_long_list_of_calls_is_cut_in_the_refusal() -> None:
    rows = [(True, []), (True, [(a, 0) for a in range(9)])]
    artifact = load(build_graph(free_core([1] * 9, 1), rows))
    with pytest.raises(AfterRefused) as caught:
        root_of(artifact, ["x"])
    assert caught.value.expected == "one of a, b, c, d, e, .. as call 1 (TCC901)"


@pytest.mark.parametrize("after", ["a", [1], [None], ["a", b"b"]])
def test_what_is_no_list_of_texts_is_refused(after) -> None:
    with pytest.raises(SettingsError, match="after: expected a list of calls"):
        Settings(seed=SEED, after=after)


def priced(most: int):
    """Two letters that cost 2 and 1 cents, at most `most` of them, left to the run."""
    core = make_core(
        **letters(2, cost=[0, 250_000_000], price=[2, 1]),
        plan=["repeat", ["call", {0, 1}], 0, 4],
        statements=[depth(4), at_most("price", most)],
    )
    left = (1,)
    return upper(core, plans_of(without(read_core(core), left), 4), Shape(relaxed=left, tilt=8))


def test_a_statement_left_to_the_run_has_seen_the_prefix() -> None:
    artifact = load(priced(5))
    run = search(artifact, Settings(seed=SEED, after=["a", "a"], top=50))
    assert sorted(plan.calls for plan in run.plans) == [(), ("b",)]
    with pytest.raises(AfterRefused) as caught:
        search(artifact, Settings(seed=SEED, after=["a", "a", "a"]))
    assert caught.value.allowed == ("b",)
    # The automaton alone would let it stand.
    assert search(load(priced(8)), Settings(seed=SEED, after=["a", "a", "a"])).plans


def test_a_cut_counts_from_the_root_of_the_run() -> None:
    artifact = load(priced(100))
    run, ledger = ledger_of(artifact, after=["a", "b"], truncate=1, top=50)
    assert sorted(plan.calls for plan in run.plans) == [(), ("a",), ("b",)]
    assert run.claim_type == "TruncationOnly" and run.tail_lse is not None
    found = validate(ledger, check(priced(100)))
    assert (found.verdict, found.after, found.claim_upheld) == (0, ("a", "b"), True)
    # At the rank of the root nothing is cut.
    whole = search(artifact, Settings(seed=SEED, after=["a", "b"], truncate=2, top=50))
    assert whole.claim_type == "RunWiseSurrogate" and len(whole.plans) == 7


def test_the_verdict_says_after_what() -> None:
    rows = [(True, []), (True, [(0, 0)]), (True, [(0, 1)]), (False, [(0, 2)])]
    data = build_graph(free_core([10**9], 3), rows)
    artifact = load(data)
    for after, said in (
        (("a",), "claim upheld: no other plan after the call made could have scored above V = "),
        (("a", "a"), "claim upheld: no other plan after the 2 calls made could have scored above"),
    ):
        _, ledger = ledger_of(artifact, after=after)
        found = validate(ledger, data)
        assert (found.verdict, found.after) == (0, after)
        assert found.summary.startswith(said)


def test_each_prefix_has_a_race_of_its_own() -> None:
    artifact = vec()
    keys, openings = set(), set()
    for after in ((), ("a",), ("b(k=1)",), ("a", "c")):
        told = Settings(seed=SEED, after=after)
        keys.add(race_key_of(artifact, terms_of(artifact, told)))
        openings.add(opening_digest(artifact, told))
    assert len(keys) == len(openings) == 4


@pytest.mark.parametrize("race", ["coupled", "rest"])
def test_a_run_that_was_cut_anywhere_is_resumed(race: str, tmp_path) -> None:
    artifact, path = vec(), tmp_path / "run.ndjson"
    due, ledger = ledger_of(artifact, after=["a"], race=race, top=4)
    ends = [at + 1 for at, byte in enumerate(ledger) if byte == 10]
    for end in ends[:-1]:
        path.write_bytes(ledger[: end + 3])
        run = resume(artifact, path, SEED)
        assert (run.plans, run.after, run.claim_type) == (due.plans, ("a",), due.claim_type)
        found = validate(path.read_bytes(), build_graph(vec_core(), vec_rows()))
        assert (found.verdict, found.after) == (0, ("a",))


def test_costs_that_are_ranges_are_asked_for_behind_a_prefix() -> None:
    behind = asked = 0
    for number in range(120):
        rng = random.Random(f"ranges {number}")
        data = ranged_artifact(rng)
        artifact = load(data)
        quoter = Unreliable(rng) if rng.random() < 0.9 else None
        told = ranged_settings(rng, artifact, quoter is not None)
        told["after"] = drawn_prefix(rng, artifact, 1)
        run, ledger = ledger_of(artifact, quoter, **told)
        found = validate(ledger, data)
        assert (found.verdict, found.findings) == (0, ()), number
        assert (found.claim_type, found.head) == (run.claim_type, run.ledger_head)
        behind += bool(run.after)
        asked += quoter is not None and len(quoter.asked) > 0
    assert behind > 100 and asked > 40


def test_what_is_predicted_is_what_it_takes() -> None:
    rng = random.Random(11)
    core = free_core([rng.randrange(10**9) for _ in range(4)], 6)
    artifact = opened(core, chain_rows(rng, 4, 6, 3), tilt=1)
    told = {"after": ("a", "c"), "race": "coupled"}
    found = predict(artifact, Settings(seed=SEED, **told))
    took = fmean(
        search(artifact, Settings(seed=rng.randbytes(32), **told)).expansions for _ in range(1500)
    )
    assert found is not None and found.upper < predict(artifact, Settings(seed=SEED)).lower
    assert 0.9 * found.lower < took < 1.1 * found.upper


def test_an_estimate_is_drawn_from_there() -> None:
    artifact = load(priced(6))
    root = estimate(artifact, Settings(seed=SEED))
    behind = estimate(artifact, Settings(seed=SEED, after=["a", "b"]))
    assert root is not None and behind is not None and behind.upper is not None
    # Three cents are left for two calls at most: of seven ways on only `a a` is one too dear.
    assert behind.upper < root.lower or behind.kept / behind.drawn > 0.5
    took = fmean(
        search(artifact, Settings(seed=bytes([n]) * 32, after=["a", "b"])).expansions
        for n in range(200)
    )
    assert behind.lower * 0.7 < took < behind.upper * 1.3

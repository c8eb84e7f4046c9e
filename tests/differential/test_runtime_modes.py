"""The runtime in every mode against every plan of the race, computed in decimal arithmetic."""

from __future__ import annotations

import json
import random
from functools import lru_cache

import pytest
from blake3 import blake3

from tcc_certs.replay import validate
from tcc_experiments.evidence import q64_of
from tcc_runtime.guards import CountKind, counts_of
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import MemorySink
from tcc_runtime.run import QUICKEST, Engine, search
from tcc_runtime.settings.settings import Settings
from tests.differential.tree_oracle import Oracle, Tree
from tests.oracle_ledger.falling import counts_fall
from tests.runtime.graphs import free_core, named_rows, opened, random_network, random_rows

NUMBERS = range(6)
KINDS = ["exact", "network", "rounded", "rounded network"]


def q64(text: str) -> int:
    return q64_of(text)


@lru_cache(maxsize=256)
def case(number: int, kind: str, tilt: int, inflate: str = "1"):
    """A random automaton, and the tree that the oracle walks."""
    rng = random.Random(number)
    calls = rng.randint(1, 3)
    costs = [rng.choice((0, 1, 10**9, rng.randrange(-(10**9), 3 * 10**9))) for _ in range(calls)]
    beta = rng.choice(("1", "0", "2.5", "0.125"))
    drawn = random_network if "network" in kind else random_rows
    rows = drawn(rng, calls, rng.randint(1, 3), 2)
    bits = rng.randint(1, 6) if "rounded" in kind else None
    core = free_core(costs, 9)
    artifact = opened(core, rows, beta, tilt, nondeterministic="network" in kind, round_counts=bits)
    tree = Tree(
        rows=named_rows(core, rows),
        cost=dict(zip("abc", costs, strict=False)),
        limits=["limit depth <= 9"],
        beta=beta,
        tilt=tilt,
        inflate=inflate,
        round_bits=bits,
    )
    return artifact, tree


def recorded(artifact, engine=QUICKEST, **told):
    """A run that the validator passes, and its records."""
    sink = MemorySink()
    settings = Settings(**{"race": "coupled", **told})
    run = search(artifact, settings, Recorder(sink, started_ms=7), engine=engine)
    ledger = bytes(sink.data)
    found = validate(ledger, artifact.kept["test.bytes"])
    assert (found.verdict, found.findings) == (0, ())
    assert found.claim_type == run.claim_type
    assert found.claim_upheld == (run.claim_type != "NoCert")
    assert found.head == run.ledger_head
    return run, [json.loads(line) for line in ledger.splitlines()]


def plans_of(run):
    return [(q64(p.value), bytes.fromhex(p.leaf_id), p.calls) for p in run.plans]


def numbers_of(records, field, kinds=("node",)):
    """The field by digest; records after a node's own name it by its id."""
    digests, found = {}, {}
    for record in records:
        if record["kind"] == "node":
            digests[record["node_id"]] = bytes.fromhex(record["ctx_digest"])
        if record["kind"] in kinds and field in record:
            found[digests[record["node_id"]]] = q64(record[field])
    return found


def part_of(found: dict, due: dict) -> None:
    assert found
    assert found == {digest: due[digest] for digest in found}


@pytest.mark.parametrize("inflate", ["1", "1.7"])
@pytest.mark.parametrize("tilt", [0, 6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.sampled(32)
def test_every_number_of_a_surrogate_run(number, kind, tilt, inflate):
    artifact, tree = case(number, kind, tilt, inflate)
    for salt in range(2):
        seed = bytes([salt]) * 32
        due = Oracle(tree, seed, races=("coupled",)).numbers
        told = {"seed": seed, "mode": "surrogate", "inflate": inflate, "top": 10**6}
        run, records = recorded(artifact, **told)
        assert (run.claim_type, run.stop) == ("RunWiseSurrogate", "exhausted")
        assert plans_of(run) == due.coupled
        assert numbers_of(records, "key_raw") == due.finalized
        assert numbers_of(records, "neg_log_t") == due.neg_log_t
        late, records = recorded(artifact, **told, keys="anchored")
        assert late.plans == run.plans
        assert numbers_of(records, "key_raw") == due.anchored
        kinds = ("node", "expand", "leaf")
        assert numbers_of(records, "neg_log_t", kinds) == due.neg_log_t


@pytest.mark.parametrize("keys", ["finalized", "anchored"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.sampled(16)
def test_a_certified_stop_has_the_best_plans(number, kind, keys):
    for tilt, inflate in ((0, "1"), (8, "1"), (8, "3.25"), (2, "1.01")):
        artifact, tree = case(number, kind, tilt, inflate)
        for salt in range(2):
            seed = bytes([99, salt]) * 16
            due = Oracle(tree, seed, races=("coupled",)).numbers.coupled
            for recipe, top in (("r1", 1), ("r2", 2)):
                told = {"recipe": recipe, "top": top, "keys": keys, "inflate": inflate}
                run, _ = recorded(artifact, seed=seed, mode="surrogate", **told)
                assert run.claim_type == "RunWiseSurrogate"
                assert plans_of(run) == due[:top]


@pytest.mark.parametrize("inflate", ["1", "1.7"])
@pytest.mark.parametrize("tilt", [0, 6])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.sampled(32)
def test_every_number_of_a_rest_run(number, kind, tilt, inflate):
    artifact, tree = case(number, kind, tilt, inflate)
    for salt in range(2):
        seed = bytes([salt, 7]) * 16
        due = Oracle(tree, seed, races=("rest",)).numbers
        told = {"seed": seed, "mode": "surrogate", "race": "rest", "inflate": inflate}
        run, records = recorded(artifact, **told, top=10**6)
        assert (run.claim_type, run.stop) == ("RunWiseSurrogate", "exhausted")
        assert plans_of(run) == due.rest
        assert numbers_of_rest(records, "key_raw") == due.rest_keys
        assert numbers_of_rest(records, "neg_log_t") == due.rest_log
        for recipe, top in (("r1", 1), ("r2", 2)):
            run, _ = recorded(artifact, **told, recipe=recipe, top=top)
            assert plans_of(run) == due.rest[:top]


def numbers_of_rest(records, field):
    """The field by digest, of nodes, leaves and of what was left of nodes."""
    digests, found = {}, numbers_of(records, field)
    for record in records:
        if record["kind"] == "node":
            digests[record["node_id"]] = bytes.fromhex(record["ctx_digest"])
        if record["kind"] == "rest":
            mark = digests[record["node_id"]] + record["step"].to_bytes(4, "little")
            found[blake3(b"\x03" + mark).digest()] = q64(record[field])
    return found


@pytest.mark.parametrize("inflate", ["1", "1.7"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_of_a_literal_run(number, kind, inflate):
    artifact, tree = case(number, kind, 0, inflate)
    seed = bytes([number]) * 32
    due = Oracle(tree, seed, races=("literal",)).numbers
    run, records = recorded(artifact, seed=seed, race="literal", inflate=inflate, top=10**6)
    assert (run.claim_type, run.mode, run.law) == ("NoCert", "surrogate", "none")
    assert plans_of(run) == due.literal
    inner = numbers_of(records, "neg_log_t", ("expand",))
    assert inner == due.literal_log
    leaves = numbers_of(records, "V", ("leaf",))
    assert leaves == {digest: value for value, digest, _ in due.literal}
    _children_are_anchored_at_their_parent(records)


def _children_are_anchored_at_their_parent(records):
    """A child's key less its parent's -ln t is M alone, the same for all draws."""
    logs = {r["node_id"]: q64(r["neg_log_t"]) for r in records if "neg_log_t" in r}
    for record in records:
        if record["kind"] == "node":
            assert ("neg_log_t" in record, "U" in record) == ("parent_id" not in record,) * 2
            assert record.get("parent_id") is None or record["parent_id"] in logs
        if record["kind"] == "expand":
            assert "W" not in record
            assert "winner" not in record


@pytest.mark.parametrize("tau", ["1", "0.03", "250.5"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", NUMBERS)
def test_every_number_of_a_fallback_run(number, kind, tau):
    artifact, tree = case(number, kind, 8)
    seed = bytes([number]) * 32
    due = Oracle(tree, seed, tau, races=("fallback",)).numbers
    run, records = recorded(artifact, seed=seed, mode="fallback", tau=tau, top=10**6)
    assert (run.claim_type, run.mode, run.law) == ("NoCert", "fallback", "none")
    assert plans_of(run) == due.fallback
    assert run.materialised == len(due.fallback)
    values = {digest: value for value, digest, _ in due.fallback}
    assert numbers_of(records, "key_raw") == {**due.bounds, **values}
    assert not any("neg_log_t" in record for record in records)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_run_that_comes_down_to_fallback_has_its_values(number, monkeypatch):
    seen = set()
    for told in ({"keys": "finalized"}, {"keys": "anchored"}, {"race": "rest"}):
        artifact, tree = case(number, "network", 8)
        seed = bytes([number, 5]) * 16
        due = Oracle(tree, seed, races=("fallback",)).numbers
        values = {digest: value for value, digest, _ in due.fallback}
        widths = {artifact.race_count(q).bit_length() for q in range(artifact.manifest.states)}
        for bits in sorted(widths):

            def counts(state, bits=bits):
                return CountKind.NONE if state.count.bit_length() > bits else counts_of(state)

            counts_fall(monkeypatch, lambda wide, bits=bits: wide > bits)
            run, records = recorded(artifact, Engine(counts=counts), seed=seed, top=2, **told)
            seen.add(run.mode)
            if run.mode != "fallback":
                continue
            assert [r["kind"] for r in records].count("downgrade") == 1
            assert all(values[digest] == value for value, digest, _ in plans_of(run))
            after = [r["kind"] for r in records].index("downgrade")
            part = numbers_of(records, "V", ("leaf",))
            late = {r["node_id"] for r in records[after:] if r["kind"] == "leaf"}
            names = {r["node_id"]: r["ctx_digest"] for r in records if r["kind"] == "node"}
            for name in late:
                digest = bytes.fromhex(names[name])
                assert part[digest] == values[digest]
    assert "fallback" in seen

"""Kappa: which counts it is measured against, and where there are none."""

from __future__ import annotations

from functools import cache

import pytest

from tcc_certs.kernel import CheckedArtifact, check
from tcc_certs.policy.reader import read_core
from tcc_certs.race.enclosures import log_enclosure
from tcc_certs.replay import validate
from tcc_certs.replay.enclosed import enclosed, kappa_of
from tcc_certs.replay.kappa import KAPPA_BITS, Kappa, own_counts
from tcc_certs.replay.language import read_language, root_of
from tests.oracle.build import build
from tests.oracle.cores import count_at_least, depth, letters, make_core
from tests.oracle.network import without
from tests.oracle.plans import plans
from tests.oracle_ledger.artifacts import relaxed, small
from tests.oracle_ledger.upper import Shape, upper
from tests.oracle_ledger.writer import chained, reference_records

NONE = {"nodes": 0, "tightened": 0, "mean": "0.0000000000"}


@cache
def owing() -> tuple[CheckedArtifact, CheckedArtifact]:
    """Plans of four calls with two of `b` at least: exact, and with that limit left to the run."""
    core = make_core(
        **letters(2),
        plan=["repeat", ["call", {0, 1}], 4, 4],
        statements=[depth(4), count_at_least({1}, 2)],
    )
    left = (1,)
    read = read_core(core)
    return check(build(core, plans(read, 4))), check(
        upper(core, plans(without(read, left), 4), Shape(relaxed=left))
    )


def test_sets_of_states_have_no_count_of_their_own():
    core = make_core(
        **letters(2), plan=["repeat", ["call", {0, 1}], 0, 3], statements=[depth(3)]
    )  # fmt: skip
    artifact = check(upper(core, plans(read_core(core), 3), Shape(split=3)))
    assert artifact.file.manifest.nondeterministic
    assert own_counts(artifact, read_language(artifact)) is None
    records = reference_records(artifact, top=3)
    assert validate(chained(records), artifact).kappa == NONE
    assert validate(chained(reference_records(relaxed(), top=3)), relaxed()).kappa == NONE


def prefixes(words: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {word[:at] for word in words for at in range(len(word) + 1)}


@pytest.mark.parametrize(
    "after", [(), ("a",), ("a", "a"), ("a", "a", "a"), ("a", "a", "a", "b"), ("a", "b", "b")]
)
def test_only_nodes_with_a_plan_below_them_have_an_exact_count(after):
    exact, left = owing()
    told = {"top": 99, "after": after}
    found = validate(chained(records := reference_records(left, **told)), left, counts=exact)
    assert found.verdict == 0
    words = plans(exact.core, 4)
    alive, start = prefixes(words), tuple("ab".index(text) for text in after)
    pushed = [record for record in records if record["kind"] == "node"]
    parents = {record["node_id"]: record.get("parent_id") for record in pushed}
    named = {record["node_id"]: record.get("call") for record in pushed}

    def word(node: str) -> tuple[int, ...]:
        calls: list[int] = []
        while parents[node] is not None:
            calls += [] if named[node] == "stop" else ["ab".index(named[node])]
            node = parents[node]
        return (*start, *reversed(calls))

    due = [
        word(record["node_id"]) in alive
        and (record.get("call") != "stop" or word(record["node_id"]) in words)
        for record in pushed
    ]
    assert found.kappa["nodes"] == sum(due)
    assert all(due) is (after == ("a", "b", "b"))


def test_handed_counts_are_of_calls_that_the_artifact_has():
    # The same core; the run's artifact is a proof of fewer plans, and lacks one call.
    core = make_core(
        **letters(2), plan=["repeat", ["call", {0, 1}], 0, 2], statements=[depth(2)]
    )  # fmt: skip
    fewer, whole = check(build(core, [(), (0,)])), check(build(core, plans(read_core(core), 2)))
    found = validate(chained(reference_records(fewer)), fewer, counts=whole)
    (refused,) = found.findings
    assert (refused.code.value, refused.field) == ("L202", "argument counts")
    assert (refused.expected, refused.found) == ("calls of the artifact", "b")
    # The other way round nothing is wrong: a call of the run leads nowhere there.
    found = validate(chained(records := reference_records(whole, top=9)), whole, counts=fewer)
    assert (found.verdict, found.kappa["nodes"]) == (0, 4)  # of the plans () and a, and their stops
    assert sum(record["kind"] == "node" for record in records) > 4


@pytest.mark.parametrize(
    ("counts", "expected", "there"),
    [
        ("upper", "exact counts", "upper"),
        ("other", "an artifact of the same core", "another core"),
    ],
)
def test_handed_counts_are_exact_ones_of_the_same_core(counts, expected, there):
    exact, left = owing()
    given = left if counts == "upper" else small()
    (found,) = validate(chained(reference_records(left)), left, counts=given).findings
    assert (found.code.value, found.field) == ("L202", "argument counts")
    assert (found.expected, found.found) == (expected, there)
    # As bytes they go through the kernel first.
    (found,) = validate(chained(reference_records(left)), left, counts=b"no artifact").findings
    assert found.code.value.startswith("B2")
    assert validate(chained(reference_records(left)), left, counts=exact).verdict == 0


@pytest.mark.parametrize("ahead", [-300, -1, 0, 1, 300])
def test_kappa_is_the_logarithm_of_the_counts_and_0_only_where_they_may_be_equal(ahead):
    for exact, used in ((3, 3), (2, 3), (3, 2), (1, 1 << 200), ((1 << 200) - 1, 1 << 200)):
        up, down = exact << max(ahead, 0), used << max(-ahead, 0)
        due = 0 if up == down else log_enclosure(up, down, KAPPA_BITS)[0]
        assert kappa_of(enclosed(exact), used, ahead) == due
    wide = (1 << 999) - 1  # ends that differ: nothing tells the count from either of them
    low, high, shift = enclosed(wide)
    assert low < high
    for used in (low << shift, wide, high << shift):
        assert kappa_of(enclosed(wide), used, 0) == 0
    assert kappa_of(enclosed(wide), (high << shift) * 2, 0) < 0
    assert kappa_of(enclosed(wide), (low << shift) // 2, 0) > 0


def test_of_bounds_alone_nothing_is_known_and_inflated_counts_are_looked_at_one_by_one():
    exact, left = owing()
    own, bounds = read_language(exact), read_language(left)
    root, leaf = own.root, None
    alone = Kappa(own, own_counts(exact, own), root_of(exact))
    for _ in range(5):
        assert alone.note(root, root[0]) == 0
    assert alone.document() == {**NONE, "nodes": 5}
    more = read_language(exact, (17, 1))
    inflated = Kappa(more, own_counts(exact, more), root_of(exact))
    inflated.note(root, root[0])
    inflated.note(leaf, 0)
    assert (inflated.document()["nodes"], inflated.document()["tightened"]) == (2, 1)
    unknown = Kappa(bounds, own_counts(left, bounds), root_of(left))
    assert unknown.note(bounds.root, 0) is None
    assert unknown.document() == NONE


@pytest.mark.parametrize(
    ("told", "tight"),
    [({}, True), ({"mode": "surrogate", "inflate": "2"}, True), ({"mode": "fallback"}, False)],
)
def test_whoever_asks_is_told_of_each_node_its_names_its_key_and_the_tightened_one(told, tight):
    records, heard = reference_records(small(), top=3, **told), []
    assert validate(chained(records), small(), tell=heard.append).verdict == 0
    pushed = [record for record in records if record["kind"] == "node"]
    for said, record in zip(heard, pushed, strict=True):
        due = {name: record[name] for name in ("node_id", "ctx_digest", "key_raw")}
        due |= {"diagnostic": True}
        if tight:  # by ln 2 or more where a count was doubled, and by nothing elsewhere
            inflated = "inflate" in told and "state" in record
            assert (float(said["kappa"]) < -0.69) is inflated
            assert (said["key_tight"] == record["key_raw"]) is not inflated
            drop = float(record["key_raw"]) - float(said["key_tight"])
            assert abs(drop + float(said["kappa"])) < 1e-9
            due |= {name: said[name] for name in ("kappa", "key_tight")}
        assert said == due

"""Artifacts whose counts are bounds: relaxed, rounded, nondeterministic."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.kernel import check
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.reader import read_core
from tcc_certs.report import check_artifact
from tcc_certs.rounded import round_up
from tests.certs.rules.refusals import refusal
from tests.forgery.artifacts import Forge
from tests.oracle.build import Node, build, build_graph
from tests.oracle.cores import call, count_at_most, depth, letters, make_core, random_core
from tests.oracle.examples import PLANS, RACE_COUNT, example_core
from tests.oracle.network import build_network, build_relaxed
from tests.oracle.plans import plans


def rounded(bits: int = 4) -> bytes:
    """The example with rounded counts."""
    core = example_core()
    return build(core, plans(read_core(core), 4), round_counts=bits)


def relaxed() -> bytes:
    """The example without its price limit."""
    return build_relaxed(example_core(), (1,), 4)


def network() -> bytes:
    """The example's derivations."""
    found = build_network(example_core(), 4)
    assert found is not None
    return found


def test_relaxed_artifacts_are_upper_and_say_what_they_leave_out() -> None:
    checked = check(relaxed())
    assert checked.file.manifest.counts == "upper"
    assert checked.file.manifest.critical == ("relaxed",)
    assert checked.file.manifest.relaxed == (1,)
    assert checked.plans[-1] == PLANS  # no plan of the example costs more than that


def test_rounded_counts_are_at_least_the_exact_ones() -> None:
    for bits in (1, 2, 8, 32, 63):
        checked = check(rounded(bits))
        assert checked.file.manifest.round_counts == bits
        assert checked.race_count[-1] >= RACE_COUNT
        assert (checked.race_count[-1] == RACE_COUNT) == (bits > 32)
        assert checked.race_count[:] == [checked.race_count[q] for q in range(5)]


def test_nondeterministic_artifacts_count_derivations() -> None:
    core = make_core(
        **letters(2),
        plan=[
            "seq",
            [["repeat", ["call", {0, 1}], 0], ["call", {0}], ["repeat", ["call", {0, 1}], 0]],
        ],
        statements=[depth(3)],
    )
    data = build_network(core, 3)
    assert data is not None
    checked = check(data)
    assert checked.file.manifest.critical == ("nondeterministic",)
    assert checked.plans[-1] > len(plans(read_core(core), 3))


def test_all_features_stand_together() -> None:
    data = build_network(example_core(), 4, (1,), round_counts=5)
    assert data is not None
    assert check(data).file.manifest.critical == ("nondeterministic", "relaxed", "rounded")


def test_valid_says_that_counts_are_bounds() -> None:
    report = check_artifact(network(), core=True)
    assert report.verdict == 0
    lines = report.summary.splitlines()
    assert lines[1] == "its counts are upper bounds: nondeterministic"
    held = ["  automaton  limit depth <= 3", "  automaton  limit price <= 5"]
    assert lines[2:6] == ["statements: 2", *held, "  (automaton: every plan satisfies it)"]
    assert lines[6].startswith("it is the graph of its core's partial derivatives: ")
    lines = check_artifact(relaxed(), core=True).summary.splitlines()
    assert lines[1] == "its counts are upper bounds: relaxed"
    assert lines[3:5] == [held[0], "  run        limit price <= 5"]
    assert lines[7].startswith("it is the automaton of its core: ")


def test_upper_artifacts_of_random_cores_are_valid() -> None:
    rng = random.Random(3)
    done = 0
    for _ in range(60):
        data, core = random_core(rng, 3)
        sums = [p for p in parts_of(core) if p.total is not None and "depth" not in p.text]
        relaxed = tuple([part.number for part in sums])
        found = build_network(
            data,
            3,
            relaxed if rng.random() < 0.5 else (),
            tilt=rng.choice((0, 8)),
            round_counts=rng.choice((None, 1, 7, 63)),
        )
        if found is not None:
            assert check(found).plans[-1] >= len(plans(core, 3))
            done += 1
    assert done > 20


@pytest.mark.parametrize("bits", [1, 2, 5, 63])
def test_rounding_up_is_exact_at_any_distance_of_the_terms(bits: int) -> None:
    rng = random.Random(bits)
    for _ in range(3000):
        reach = rng.choice((3, 70, 400))
        terms = [
            (rng.getrandbits(rng.randint(0, 127)), rng.randint(0, reach))
            for _ in range(rng.randint(0, 5))
        ]
        if rng.random() < 0.3:  # just below a power of two, and a last unit far below it
            terms = [((1 << 64) - 1, reach), (1, 0)]
        exact = sum(value << shift for value, shift in terms)
        mantissa, exponent = round_up(terms, bits)
        assert mantissa < 1 << bits and mantissa << exponent >= exact
        assert exponent == 0 or mantissa >> (bits - 1)
        lower = (mantissa - 1) << exponent  # the next below: one bit more where it gets shorter
        if exponent and mantissa == 1 << (bits - 1):
            lower = ((1 << bits) - 1) << (exponent - 1)
        assert exact == 0 or lower < exact


def test_rounding_up_never_writes_out_a_huge_exponent() -> None:
    terms = [(1, 2**40), (3, 2**40 - 2), (1, 0)]
    assert round_up(terms, 3) == (4, 2**40 - 1)


@pytest.mark.parametrize(
    ("name", "at", "step"),
    [("race_mantissa", 0, 1), ("race_mantissa", -1, 1), ("race_mantissa", -1, -1),
     ("race_exponent", 0, 1), ("race_exponent", -1, 1), ("race_exponent", -1, -1)],
)  # fmt: skip
def test_rejects_a_rounded_count_off_by_one(name: str, at: int, step: int) -> None:
    forge = Forge(rounded())
    values = forge.values(name)
    forge.set(name, at, values[at] + step)
    assert refusal(forge) == ("C401", f"race_count[{at % len(values)}]")


def test_rejects_a_rounded_count_that_is_not_canonical() -> None:
    forge = Forge(rounded(8))
    mantissas, exponents = forge.values("race_mantissa"), forge.values("race_exponent")
    assert exponents[-1] > 0
    mantissas[-1], exponents[-1] = 2 * mantissas[-1], exponents[-1] - 1
    forge.put("race_mantissa", mantissas).put("race_exponent", exponents)
    assert refusal(forge)[0] == "C401"


def test_rejects_the_columns_of_the_other_form_of_counts() -> None:
    core = example_core()
    exact = Forge(build(core, plans(read_core(core), 4)))
    forge = Forge(rounded())
    forge.columns["race_count"] = exact.columns["race_count"]
    assert refusal(forge) == ("M201", "header")
    exact.columns["race_mantissa"] = Forge(rounded()).columns["race_mantissa"]
    assert refusal(exact) == ("M201", "header")
    forge = Forge(rounded())
    del forge.columns["race_exponent"]
    assert refusal(forge) == ("M201", "header")


@pytest.mark.parametrize(
    ("data", "path", "value", "code"),
    [
        (relaxed(), ("critical",), [], "M101"),
        (relaxed(), ("counts",), "exact", "M102"),
        (relaxed(), ("critical",), ["relaxed", "rounded"], "M101"),
        (relaxed(), ("critical",), ["relaxed", "relaxed"], "M102"),
        (relaxed(), ("critical",), ["relaxed", "zzz"], "D101"),
        (relaxed(), ("critical",), ["zzz", "relaxed"], "D101"),
        (relaxed(), ("relaxed",), {"limits": [1]}, "M101"),
        (relaxed(), ("relaxed",), [], "M102"),
        (relaxed(), ("relaxed",), [1, 0], "M102"),
        (relaxed(), ("relaxed",), [1, 1], "M102"),
        (relaxed(), ("relaxed",), [-1], "M101"),
        (relaxed(), ("relaxed",), [True], "M101"),
        (relaxed(), ("relaxed",), [2], "C803"),
        (rounded(), ("options", "round_counts"), 0, "M102"),
        (rounded(), ("options", "round_counts"), 64, "M102"),
        (rounded(), ("options", "round_counts"), 5, "C401"),
        (rounded(), ("options", "round_counts"), True, "M101"),
        (rounded(), ("critical",), [], "M101"),
        (network(), ("critical",), ["nondeterministic", "relaxed"], "M101"),
        (network(), ("counts",), "none", "M102"),
    ],
)
def test_rejects_features_that_do_not_fit(
    data: bytes, path: tuple[str, ...], value: Any, code: str
) -> None:
    assert refusal(Forge(data).member(*path, value=value))[0] == code


def test_rejects_a_relaxed_statement_that_only_the_gate_holds() -> None:
    core = make_core(
        tools=[{"name": "a", "fields": [{"name": "n", "type": {"kind": "flag"}}]}],
        calls=[call(0)],
        plan=["repeat", ["call", {0}], 1, 2],
        statements=[
            {"kind": "forbid", "on": ["name", "a"], "if": [["name", "n"]]},
            count_at_most({0}, 2),
        ],
    )
    words = [(0,), (0, 0)]
    check(build(core, words, relaxed=(1,)))
    for relaxed in ((0,), (0, 1)):
        with pytest.raises(Rejected) as caught:
            check(build(core, words, relaxed=relaxed))
        found = caught.value
        assert (found.code, found.path) == ("C803", "manifest.relaxed")
        assert found.expected == "a statement that plans hold, unlike `forbid a(n)`"
        assert found.found == "0, which the gate holds"


def twins() -> bytes:
    """Two edges of one call to states of different ranks."""
    end, last = Node(accept=True), Node(accept=True)
    last.children[1] = end
    root = Node(twins=[(0, end), (0, last)])
    core = make_core(**letters(2), plan=["repeat", ["call", {0, 1}], 0], statements=[depth(2)])
    return build_graph(core, root, nondeterministic=True)


def test_pairs_of_call_and_target_increase() -> None:
    checked = check(twins())
    assert list(checked.automaton.edges(2)) == [(0, 0), (0, 1)]
    start = checked.automaton.edge_start[2]
    forge = Forge(twins())
    values = forge.values("edge_target")
    values[start], values[start + 1] = values[start + 1], values[start]
    assert refusal(forge.put("edge_target", values)) == ("C102", f"edge_call[{start + 1}]")
    assert refusal(Forge(twins()).set("edge_target", start + 1, 0))[0] == "C102"
    with pytest.raises(Rejected, match="C102"):
        forge = Forge(twins()).member("critical", value=[])
        check(forge.member("counts", value="exact").seal())


def test_digests_take_pairs_by_the_digest_of_the_target() -> None:
    # Numbers order by rank first, digests do not: among many cores the two orders differ somewhere.
    rng = random.Random(8)
    differ = 0
    for _ in range(80):
        data, _ = random_core(rng, 3)
        found = build_network(data, 3)
        if found is None:
            continue
        checked = check(found)
        raw = bytes(checked.file.columns["state_digest"].data)
        for q in range(checked.automaton.states):
            pairs = [(a, raw[32 * p : 32 * p + 32]) for a, p in checked.automaton.edges(q)]
            differ += pairs != sorted(pairs)
    assert differ > 0

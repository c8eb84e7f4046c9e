"""Residual constraints, call by call, against the set semantics of whole words."""

from __future__ import annotations

import itertools
import random

import pytest

from tcc_certs.core.reader import read_core
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.kernel import check
from tcc_certs.statements import residual_constraints
from tests.oracle import cores
from tests.oracle.cores import at_most, depth, letters, make_core, uses
from tests.oracle.plans import plans
from tests.oracle_ledger.brute import Masses
from tests.oracle_ledger.upper import Shape, drawn_upper, upper, without


def agrees(checked, truncate: int, most: int = 4) -> int:
    """Every word over the calls: what is forbidden, where, and whether it may stop."""
    constraints = residual_constraints(checked, truncate)
    masses = Masses(checked)
    cut = truncate if truncate < masses.rank[-1] else None
    tried = 0
    for length in range(most + 1):
        for word in itertools.product(range(len(checked.calls)), repeat=length):
            tally = constraints.start
            for at, call in enumerate(word):
                step = constraints.step(tally, call)
                assert (step is not None) == masses.allows(word[: at + 1], False, cut), word
                if step is None:
                    break
                tally = step
            else:
                assert constraints.may_stop(tally) == masses.allows(word, True, cut), word
            tried += 1
    return tried


@pytest.mark.parametrize(
    "statements",
    [
        {"limits": [at_most("price", 2)]},
        {"limits": [at_most("latency", 7)]},
        {"limits": [at_most("epsilon", 0)]},
        {"limits": [at_most("cost", 5 * 10**8)]},
        {"limits": [uses(0, "<=", 1)]},
        {"limits": [uses(1, ">=", 2)]},
        {"limits": [uses(0, "<=", 1), uses(0, "<=", 2)]},  # the strictest decides, of whichever
        {"limits": [uses(1, ">=", 1), uses(1, ">=", 2)]},
        {"requires": [["before", {0}, {1}]]},
        {"requires": [["before", {0, 1}, {1, 2}]]},
        {"requires": [["after", {0}, {1}]]},
        {"requires": [["after", {0, 1}, {1, 2}]]},
        {"requires": [["each", {0}, {1}]]},
        {"requires": [["each", {0, 1}, {1, 2}]]},
        {"forbids": [["next", [{0}]]]},
        {"forbids": [["next", [{0, 1}, {1}, {0, 2}]]]},
        {"forbids": [["next", [{0}, {0}, {1}]]]},
        {"forbids": [["before", {0}, {1}]]},
        {"forbids": [["before", {0, 1}, {1, 2}]]},
        {"forbids": [["with", {0}, {1}]]},
        {"forbids": [["with", {0, 1}, {1, 2}]]},
    ],
    ids=str,
)
def test_each_statement_forbids_what_it_means(statements):
    amounts = {
        "cost": [0, 250_000_000, 0], "price": [0, 1, 2], "latency": [5, 0, 1], "epsilon": [0, 0, 1],
    }  # fmt: skip
    limits = sorted([depth(4), *statements.get("limits", [])], key=lambda one: one["kind"])
    core = make_core(
        **letters(3, **amounts),
        plan=["repeat", ["call", {0, 1, 2}], 0, 4],
        **{**statements, "limits": limits},
    )
    read = read_core(core)
    relaxed = Relaxed(
        limits=tuple(at for at, limit in enumerate(read.limits) if limit.kind != "depth"),
        requires=tuple(range(len(read.requires))),
        forbids=tuple(range(len(read.forbids))),
    )
    words = plans(without(read, relaxed), 4)
    checked = check(upper(core, words, Shape(relaxed=relaxed)))
    assert agrees(checked, 4) == sum(3**n for n in range(5))
    agrees(checked, 2)


def relaxing(core: bytes, most: int, limits: tuple[int, ...], **others: tuple[int, ...]):
    """The artifact of a core less these statements, of words of at most `most` calls."""
    relaxed = Relaxed(limits=limits, **others)
    words = plans(without(read_core(core), relaxed), most)
    return check(upper(core, words, Shape(relaxed=relaxed)))


def test_a_depth_that_is_left_to_the_run_counts_every_call():
    core = make_core(
        **letters(2), plan=["repeat", ["call", {0, 1}], 0, 3], limits=[depth(2)]
    )  # fmt: skip
    checked = relaxing(core, 3, (0,))
    assert agrees(checked, 3) == sum(2**n for n in range(5))
    assert residual_constraints(checked, None).step(((0, 2),), 0) is None


def test_a_sum_that_is_left_to_the_run_adds_the_values_of_its_parameter():
    of = {"tool": 1, "param": 0}
    core = make_core(
        tools=[
            {"name": "a", "params": []},
            {"name": "b", "params": [{"name": "n", "values": ["0.5", "2"]}]},
        ],
        calls=[cores.call(0), cores.call(1, (0,)), cores.call(1, (1,))],
        plan=["repeat", ["call", {0, 1, 2}], 0, 4],
        limits=[depth(4), {"kind": "sum", "of": of, "op": "<=", "value": 25 * 10**8}],
    )
    checked = relaxing(core, 4, (1,))
    assert agrees(checked, 4) == sum(3**n for n in range(5))
    start = residual_constraints(checked, None).start
    assert residual_constraints(checked, None).step(start, 2) == ((0, 2 * 10**9),)


def test_a_tally_has_each_constraint_once():
    # Call 1 stands in both sets, so the search for its statements finds this one twice.
    core = make_core(
        **letters(2),
        plan=["repeat", ["call", {0, 1}], 0, 3],
        limits=[depth(3)],
        requires=[["after", {1}, {0, 1}]],
    )
    constraints = residual_constraints(relaxing(core, 3, (), requires=(0,)), None)
    assert constraints.step((), 1) == ((0, 1),)
    assert constraints.step(((0, 1),), 1) == ((0, 1),)


def test_random_statements_forbid_what_they_mean():
    rng = random.Random(81)
    for _ in range(60):
        checked = drawn_upper(rng).checked
        agrees(checked, rng.randint(0, 4))

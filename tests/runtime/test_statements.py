"""The statements that a run enforces, against a look at each whole word.

Here are those of version 1.1, one by one and together; random relaxed artifacts are in
tests/differential/test_runtime_relaxed.py.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from tcc_certs.core.model import Core, ForbidBefore, Limit, Parameter, Require, Tool
from tcc_certs.formats.artifact import Relaxed
from tcc_certs.statements import AtMost, Constraints, statement_constraints
from tests.oracle.observing import random_observing, tools_and_calls
from tests.oracle.plans import Word, meets_all


def enforced(core: Core, numbers: list[int]) -> Constraints:
    """All statements of `core`, over an artifact that has its calls of these numbers."""
    named = Relaxed(
        limits=tuple(range(len(core.limits))),
        requires=tuple(range(len(core.requires))),
        forbids=tuple(range(len(core.forbids))),
    )
    return Constraints(items=statement_constraints(core, numbers, named), calls=len(numbers))


def allows(constraints: Constraints, word: Word) -> bool:
    """Whether a run lets the word through and then stops."""
    held = constraints.start
    for call in word:
        after = constraints.step(held, call)
        assert constraints.after(held)[call] == after  # what is kept is what it would be
        if after is None:
            return False
        held = after
    stops = constraints.may_stop(held)
    assert constraints.after(held).stopped() == (held if stops else None)
    return stops


def test_what_is_kept_for_a_run_is_bounded() -> None:
    constraints = Constraints(items=[AtMost(amount=[1] * 300, most=10**6)], calls=300)
    for total in range(1, 2000):
        assert constraints.after(((0, total),))[7] == ((0, total + 1),)
    # Of 300 calls each, so that no more than 2^16 are ever kept.
    assert len(constraints._after) <= (1 << 16) // 300


@pytest.mark.parametrize("block", range(4))
def test_a_run_allows_what_every_statement_allows(block: int) -> None:
    outcomes = {True: 0, False: 0}
    for seed in range(40 * block, 40 * block + 40):
        rng = random.Random(seed)
        _, core = random_observing(rng, 9, statements=0.4)
        size = len(core.calls)
        numbers = sorted(rng.sample(range(size), rng.randint(1, min(size, 5))))
        constraints = enforced(core, numbers)
        for length in range(4):
            for word in product(range(len(numbers)), repeat=length):
                due = meets_all(core, tuple([numbers[call] for call in word]))
                assert allows(constraints, word) == due, (seed, word)
                outcomes[due] += 1
    assert min(outcomes.values()) > 300


def test_a_call_in_both_sets_is_the_boundary() -> None:
    tools, calls = tools_and_calls({"a", "see"}, set())
    core = replace(
        random_observing(random.Random(0))[1], tools=tuple(tools), calls=tuple(calls),
        patterns=(((0, 2),), ((1, 3),)), limits=(), requires=(), forbids=(),
    )  # fmt: skip
    # A is a and see(w=1), B is see.
    each = enforced(replace(core, requires=(Require("each", 0, 1),)), [0, 1, 2])
    assert allows(each, (0, 1, 0, 2))
    assert not allows(each, (0, 1, 2))
    assert not allows(each, (1,))
    before = enforced(replace(core, forbids=(ForbidBefore(0, 1),)), [0, 1, 2])
    assert allows(before, (2, 1, 0))
    assert not allows(before, (1, 1))
    assert not allows(before, (1, 2))


def test_of_several_sums_of_one_parameter_the_strictest_decides() -> None:
    limits = [
        Limit(kind="sum", value=value, text=f"sum(t.{place})<={value}", parameter=(0, place))
        for value, place in ((5, 0), (3, 0), (4, 1))
    ]
    values = ("1", "2", "4")
    tool = Tool(
        name="t",
        parameters=(Parameter(name="p", values=values), Parameter(name="q", values=values)),
    )
    made = random_observing(random.Random(0))[1]
    calls = [
        replace(made.calls[0], text=f"t({p},{q})", tool=0, values=(p, q))
        for p in (0, 1)
        for q in (1, 2)
    ]
    core = replace(made, tools=(tool,), limits=tuple(limits), calls=tuple(calls))
    of_p, of_q = statement_constraints(core, range(4), Relaxed(limits=(0, 1, 2)))
    assert isinstance(of_p, AtMost) and isinstance(of_q, AtMost)
    nano = 10**9
    assert (list(of_p.amount), of_p.most) == ([nano, nano, 2 * nano, 2 * nano], 3)
    assert (list(of_q.amount), of_q.most) == ([2 * nano, 4 * nano] * 2, 4)

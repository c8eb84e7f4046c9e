"""Every expression up to a size, over two calls, gives the plans that its set semantics has.

Size counts operators and leaves.  The artifact is compared byte for byte with one that is built
from the list of plans, so counts, bounds and digests are compared too.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.policy.reader import read_core
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.oracle.build import build
from tests.oracle.cores import depth, letters, make_core
from tests.oracle.plans import plans

DEPTH = 4
LEAVES: tuple[Any, ...] = (
    ["call", frozenset({0})],
    ["call", frozenset({1})],
    ["call", frozenset({0, 1})],
    ["empty"],
)
REPEATS = ([0], [0, 1], [1], [2, 2], [1, 3])


@cache
def expressions(size: int, recursive: bool) -> tuple[Any, ...]:
    """All expressions of a size; with `recursive` the rule r is a leaf."""
    if size == 1:
        return (*LEAVES, ["rule", "r"]) if recursive else LEAVES
    found: list[Any] = []
    for body in expressions(size - 1, recursive):
        found += [["repeat", body, *bounds] for bounds in REPEATS]
    for left in range(1, size - 1):
        pairs = product(expressions(left, recursive), expressions(size - 1 - left, recursive))
        found += [made for x, y in pairs for made in _pairs(x, y)]
    return tuple(found)


def _pairs(x: Any, y: Any) -> Iterator[Any]:
    for kind in ("seq", "alt", "and"):
        if kind not in (x[0], y[0]):
            yield [kind, [x, y]]
    if x[0] != "diff":
        yield ["diff", x, [y]]


def hold(plan: Any, rules: dict[str, Any]) -> bool:
    """Compile and compare; False where the core is none (a rule that is left-recursive)."""
    data = make_core(
        **letters(2, cost=[3 * 10**8, -(10**8)]), plan=plan, rules=rules, statements=[depth(DEPTH)]
    )
    try:
        core = read_core(data)
    except Rejected:
        return False
    listed = plans(core, DEPTH)
    result = compile_core(data, Options())
    if listed:
        assert result.artifact == build(data, listed), (plan, rules)
    else:
        assert [d.code for d in result.diagnostics] == ["TCC402"], (plan, rules)
    return True


def recursive(size: int) -> list[Any]:
    """The bodies of a size that name the rule r."""
    return [body for body in expressions(size, True) if "'rule'" in str(body)]


def test_every_expression_up_to_size_three() -> None:
    found = [plan for size in (1, 2, 3) for plan in expressions(size, False)]
    assert len(found) == 188
    assert all(hold(plan, {}) for plan in found)


def test_every_recursive_rule_up_to_size_four() -> None:
    bodies = [body for size in (2, 3, 4) for body in recursive(size)]
    assert sum(hold(["rule", "r"], {"r": body}) for body in bodies) == 42


def test_some_recursive_rules_of_size_five() -> None:
    assert sum(hold(["rule", "r"], {"r": body}) for body in recursive(5)[::29]) == 22


@pytest.mark.campaign
def test_every_expression_of_size_four_and_five() -> None:
    assert all(hold(plan, {}) for size in (4, 5) for plan in expressions(size, False))


@pytest.mark.campaign
def test_every_recursive_rule_of_size_five_and_six() -> None:
    for size in (5, 6):
        for body in recursive(size):
            hold(["rule", "r"], {"r": body})

"""Redundant statements, against the plans listed one by one."""

from __future__ import annotations

import pytest

from tcc_compiler.automata.table import Table
from tcc_compiler.lint.redundancy import find_redundant
from tcc_compiler.resources import CompileRefused
from tests.compiler.lint.small import every, read, small_grammar, without, words

LONGER = 3  # calls beyond the limit on depth, where that is left out


def compare(text: str) -> tuple[int, int]:
    """How many statements are redundant and how many are not, as the listing has it."""
    _, plans, stated = read(text)
    try:
        full = plans.remaining(every(plans))
        if not isinstance(full, Table):
            return 0, 0
        plans.with_answers(full)
    except CompileRefused:
        return 0, 0
    answer = find_redundant(plans, stated, full)
    assert answer.undecided == ()
    depth = max(limit.value for limit in plans.limits if limit.kind == "depth")
    redundant = {id(found.statement) for found in answer.redundant}
    counted = [0, 0]
    due = words(plans.core, depth)
    for item in stated:
        left = without(plans.core, [item], stated)
        is_depth = any(getattr(part, "kind", "") == "depth" for part in item.own)
        if is_depth and plans.strict:
            continue  # without it the grammar may be refused, whatever strict tools leave of it
        # Longer plans are looked for one call at a time, as a listing grows fast.
        reaches = range(depth + 1, depth + LONGER + 1) if is_depth else [depth]
        same = all(words(left, most) == due for most in reaches)
        said = id(item) in redundant or not item.own
        if is_depth and same and not said:
            continue  # the listing stops before the plans that it rules out
        assert said == same, (text, item.written)
        counted[same] += 1
    return counted[1], counted[0]


@pytest.mark.parametrize("block", range(4))
def test_a_statement_is_redundant_exactly_where_the_plans_are_the_same_without_it(
    block: int,
) -> None:
    found = [compare(small_grammar(seed)) for seed in range(100 * block, 100 * block + 100)]
    redundant, needed = (sum(column) for column in zip(*found, strict=True))
    assert redundant > 50
    assert needed > 20

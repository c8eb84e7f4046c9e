"""Contradictions are smallest sets, and what implies a statement does, by listing."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

from tcc_certs.core.model import Core
from tcc_compiler.automata.table import Table
from tcc_compiler.lint.plans import SourceStatement, with_parts
from tcc_compiler.lint.redundancy import contradiction, find_redundant, implied_by, removable
from tests.compiler.lint.small import every, read, small_grammar, without, words

MOST = 3


def has_plans(core: Core, chosen: list[SourceStatement]) -> bool:
    """Whether the plan expression has a word of few calls that meets these statements."""
    ids = {id(part) for item in chosen for part in item.parts}
    parts = (*core.limits, *core.requires, *core.forbids)
    # What is asked of strict tools comes after the statements.
    core = replace(core, tools=tuple(replace(tool, strict=False) for tool in core.tools))
    return bool(words(with_parts(core, [p for p in parts if id(p) in ids]), MOST))


def test_a_contradiction_is_a_smallest_set_that_leaves_no_plan() -> None:
    found = 0
    for seed in range(400):
        front, plans, stated = read(small_grammar(seed))
        if plans.remaining(every(plans)) is not None:
            continue
        assert front.program is not None
        contradicting, is_smallest = contradiction(plans, stated, front.program.plan, None)
        assert contradicting
        assert is_smallest
        members = [item for item in contradicting if isinstance(item, SourceStatement)]
        if len(members) == len(contradicting):
            continue  # it is one whatever the plan expression says: longer plans count, too
        depths = [s for s in stated if any(getattr(p, "kind", "") == "depth" for p in s.parts)]
        if not any(item in members for item in depths):
            continue  # plans of any length count; the listing has short ones alone
        assert not has_plans(plans.core, members)
        for size in range(len(members)):
            for fewer in combinations(stated, size):
                if any(item in fewer for item in depths):
                    assert has_plans(plans.core, list(fewer)), small_grammar(seed)
        found += 1
    assert found > 10


def test_what_may_go_together_leaves_the_plans_the_same() -> None:
    gone = 0
    for seed in range(80):
        _, plans, stated = read(small_grammar(seed))
        full = plans.remaining(every(plans))
        if not isinstance(full, Table) or plans.strict:
            continue
        out = removable(plans, find_redundant(plans, stated, full).redundant)
        out = [item for item in out if not any(getattr(p, "kind", "") == "depth" for p in item.own)]
        assert words(without(plans.core, out, stated), MOST) == words(plans.core, MOST)
        gone += len(out)
    assert gone > 40


def test_what_implies_a_statement_does_and_none_of_it_can_be_left_out() -> None:
    told = 0
    for seed in range(60):
        _, plans, stated = read(small_grammar(seed))
        full = plans.remaining(every(plans))
        if not isinstance(full, Table) or plans.strict:
            continue
        for redundant in find_redundant(plans, stated, full).redundant:
            because = implied_by(plans, redundant.statement, stated)
            if because is None or not any(
                getattr(part, "kind", "") == "depth" for item in because for part in item.parts
            ):
                continue
            others = [item for item in stated if item not in (*because, redundant.statement)]
            with_it = without(plans.core, others, stated)
            alone = without(plans.core, [*others, redundant.statement], stated)
            assert words(with_it, MOST) == words(alone, MOST)
            told += 1
    assert told > 3

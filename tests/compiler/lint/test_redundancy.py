"""Redundant statements, against the plans listed one by one."""

from __future__ import annotations

import pytest

from tcc_certs.core.reader import core_of, decode_core
from tcc_compiler.automata.table import Table
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.lint.plans import source_statements
from tcc_compiler.lint.redundancy import find_redundant, removable
from tcc_compiler.lint.statements import Cuts
from tcc_compiler.resources import CompileRefused
from tests.campaigns.blocks import blocks
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


@pytest.mark.parametrize("block", blocks(2, 4))
def test_a_statement_is_redundant_exactly_where_the_plans_are_the_same_without_it(
    block: int,
) -> None:
    found = [compare(small_grammar(seed)) for seed in range(100 * block, 100 * block + 100)]
    redundant, needed = (sum(column) for column in zip(*found, strict=True))
    assert redundant > 50
    assert needed > 20


def _listed(text: str, most: int) -> object:
    front = read_grammar_text(text)
    assert front.core is not None, front.diagnostics
    return words(core_of(decode_core(front.core)), most)


def _without_lines(text: str, places: list[int]) -> str:
    at = {text[:place].count("\n") for place in places}
    return "".join(
        line for number, line in enumerate(text.splitlines(keepends=True)) if number not in at
    )


def compare_later(text: str) -> tuple[int, int]:
    """The same of statements that `plan` is written anew for; and of all that are removed."""
    front, plans, _ = read(text)
    stated = source_statements(front, plans.written, expanded=True)
    try:
        full = plans.remaining(every(plans))
        if not isinstance(full, Table):
            return 0, 0
        plans.with_answers(full)
    except CompileRefused:
        return 0, 0
    depth = max(limit.value for limit in plans.limits if limit.kind == "depth")
    due, counted = _listed(text, depth), [0, 0]
    cuts = Cuts(plans, stated, full)
    found = cuts.redundant()
    assert found.undecided == ()
    redundant = {id(one.statement) for one in found.redundant}
    for item in stated:
        if item.cuts:
            same = _listed(_without_lines(text, [item.region.start]), depth) == due
            assert (id(item) in redundant) == same, (text, item.written)
            counted[same] += 1
    others = find_redundant(plans, stated, full).redundant
    limits = [one for one in others if "depth" not in text[one.statement.region.start :][:12]]
    gone = removable(plans, limits)
    gone += cuts.removable(found.redundant, gone)
    if not plans.strict:
        left = _without_lines(text, [item.region.start for item in gone])
        assert _listed(left, depth) == due, (text, gone)
    for one in found.redundant:
        implied = cuts.implied_by(one.statement)
        assert implied is None or one.statement not in implied
        assert implied is not None or plans.strict
    return counted[1], counted[0]


@pytest.mark.parametrize("block", blocks(2, 4))
def test_what_plan_is_written_anew_for_is_redundant_exactly_where_the_plans_are_the_same(
    block: int,
) -> None:
    seeds = range(60 * block, 60 * block + 60)
    found = [compare_later(small_grammar(seed, later=True)) for seed in seeds]
    redundant, needed = (sum(column) for column in zip(*found, strict=True))
    assert redundant > 20
    assert needed > 10

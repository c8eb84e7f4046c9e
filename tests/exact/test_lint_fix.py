"""`tcc lint --fix` changes no decision: the definition of a policy beside that of the fixed one."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import tcc
from tcc.library.linting import keeps_core
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import policy_of
from tcc_compiler.frontend import read_grammar_text
from tests.exact.drawn import _CALLS, HEAD, START, TOOLS, Drawer, drawn_step


def grammar(rng: random.Random) -> str:
    """A policy with statements that others imply."""
    drawer = Drawer(rng)
    statements = [drawer.statement() for _ in range(3)]
    for statement in list(statements):
        head, middle, condition = statement.partition(" require ")
        if statement.startswith("limit") and statement[-len("1 in session") :][0].isdigit():
            bound = int(statement[-len("1 in session") :][0])
            statements.append(statement.replace(f"<= {bound} in", f"<= {bound + 1} in"))
        elif middle and " or " not in condition:
            statements.append(f"{head} require ({condition}) or over")
        else:
            statements.append(statement)
    rng.shuffle(statements)
    return HEAD + "\n".join(statements) + "\n"


def compare(before: Core, after: Core, rng: random.Random, sessions: int) -> int:
    """How many decisions were compared; all are the same."""
    compared = 0
    for _ in range(sessions):
        given, now = {"g": rng.choice("ab")}, START
        courses = [Course(policy_of(core), given) for core in (before, after)]
        for _ in range(6):
            for tool in TOOLS:
                for arguments in _CALLS[tool]:
                    allowed = [not course.check(tool, arguments, now) for course in courses]
                    assert allowed[0] == allowed[1], (tool, arguments)
                    compared += 1
            assert bool(courses[0].unmet(now)) == bool(courses[1].unmet(now))
            step = next(
                (
                    one
                    for one in (drawn_step(rng) for _ in range(20))
                    if not courses[0].check(one.tool, one.arguments, now + one.later)
                ),
                None,
            )
            if step is None:
                break
            now += step.later
            for course in courses:
                assert not course.check(step.tool, step.arguments, now)
                call = course.call(step.tool, step.arguments, now)
                course.record(call, step.outcome, step.answer)
    return compared


def campaign(folder: Path, seeds: range, sessions: int) -> tuple[int, int]:
    """How many statements were removed, and how many decisions were compared."""
    removed = compared = 0
    for seed in seeds:
        rng = random.Random(seed)
        path = folder / "g.tcg"
        path.write_text(grammar(rng))
        linted = tcc.lint(path)
        if linted.core is None or linted.fixed is None or linted.fixed == linted.text:
            continue
        assert keeps_core(linted, path)
        after = read_grammar_text(linted.fixed, str(path), path=path).core
        assert after is not None
        removed += len(linted.core.statements) - len(after.statements)
        compared += compare(linted.core, after, rng, sessions)
    return removed, compared


def test_fixes_change_no_decision(tmp_path: Path) -> None:
    removed, compared = campaign(tmp_path, range(4), 4)
    assert removed >= 6 and compared > 400


@pytest.mark.campaign
def test_many_fixes_change_no_decision(tmp_path: Path) -> None:
    removed, compared = campaign(tmp_path, range(100, 400), 30)
    assert removed > 300 and compared > 100_000

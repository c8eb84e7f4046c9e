"""TCC746 is always right: no session of random policies calls a tool that it names."""

from __future__ import annotations

from tcc_certs.policy.course import Course
from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.meaning import Policy
from tcc_compiler.lint.exclusions import excluded
from tcc_compiler.lint.policies import Policy as LintPolicy
from tests.certs.policy.examples import letters_of
from tests.property.test_plans_of_policies import DEPTH, OPENED, core_of, takes


def called(policy: Policy) -> set[str]:
    """The tools that sessions of up to DEPTH calls can call, by the definition."""
    letters = letters_of(policy.core)
    steps = [
        (at, opened)
        for at, letter in enumerate(letters)
        for opened in (OPENED if letter.tool == "c" else (0,))
    ]
    found: set[str] = set()
    words: list[tuple[tuple[int, int], ...]] = [()]
    while words:
        word = words.pop()
        for step in steps:
            course = Course(policy)
            if all(takes(course, letters[at], opened) for at, opened in (*word, step)):
                found.add(letters[step[0]].tool)
                if len(word) + 1 < DEPTH:
                    words.append((*word, step))
    return found


def test_no_session_calls_a_tool_that_the_lint_names() -> None:
    named = 0
    for seed in range(160):
        core = core_of(seed)
        try:
            policy = Policy(core)
        except Fault:
            continue
        groups, dead = excluded(LintPolicy(core, {}))
        assert bool(groups) == bool(dead)
        if dead:
            named += 1
            assert dead.isdisjoint(called(policy)), (seed, dead)
    assert named >= 10

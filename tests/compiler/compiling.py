"""Short ways to compile a core in a test, and to look at what comes out."""

from __future__ import annotations

from typing import Any

from tcc_certs.corecheck.check import check_core
from tcc_certs.kernel import CheckedArtifact, check
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.oracle.cores import call, letters, make_core

A, B, C, ABC = (["call", calls] for calls in ({0}, {1}, {2}, {0, 1, 2}))
R = ["rule", "r"]
# a^n c b^n
NESTED = ["alt", [["seq", [A, R, B]], C]]


def core(plan: Any, *, size: int = 3, amounts: dict[str, Any] | None = None, **parts: Any) -> bytes:
    """A core over tools a, b, c .. without parameters."""
    return make_core(**letters(size, **(amounts or {})), plan=plan, **parts)


def recursive(body: Any, **parts: Any) -> bytes:
    """A core whose plan is the rule r."""
    return core(R, rules={"r": body}, **parts)


def wide(calls: int, **parts: Any) -> bytes:
    """A core whose plans are all sequences of the calls of one tool."""
    values = [f"v{i:04}" for i in range(calls)]
    tools = [{"name": "t", "fields": [{"name": "k", "values": values}]}]
    plan = ["repeat", ["call", set(range(calls))], 0]
    return make_core(tools=tools, calls=[call(0, [i]) for i in range(calls)], plan=plan, **parts)


def compiled(data: bytes, *, held: bool = True, **options: Any) -> CheckedArtifact:
    """The artifact of a core, all its certificates checked, and held against the core.

    Args:
        held: False where the residuals of the core are infinitely many, so that the check against
            the core declines.
    """
    result = compile_core(data, Options(**options))
    assert result.diagnostics == ()
    assert result.artifact is not None
    checked = check(result.artifact)
    if held:
        check_core(checked)
    return checked


def refused(data: bytes, **options: Any) -> Diagnostic:
    """The one diagnostic of a core that does not compile exactly."""
    result = compile_core(data, Options(**options))
    assert result.artifact is None
    (diagnostic,) = result.diagnostics
    return diagnostic


def words(checked: CheckedArtifact) -> set[str]:
    """The plans, each as the texts of its calls without spaces."""
    automaton = checked.automaton
    found: list[set[str]] = []
    for q in range(automaton.states):
        here = {""} if automaton.accept[q] else set()
        for label, target in automaton.edges(q):
            here |= {checked.calls[label] + rest for rest in found[target]}
        found.append(here)
    return found[-1]

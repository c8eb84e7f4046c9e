"""Strict tools and bounds in place of counts: nothing is relaxed beside them, but counts round."""

from __future__ import annotations

import pytest

from tcc_certs.kernel import check
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core
from tests.compiler.relax.making import made
from tests.oracle.cores import call, count_at_most, make_core


def strict_core(**parts: object) -> bytes:
    """All sequences of a strict tool with two answers, and of another tool."""
    answers = {"name": "r", "values": ["f", "p"]}
    return make_core(
        tools=[
            {"name": "a"},
            {"name": "run", "gives": [answers], "strict": True},
        ],
        calls=[call(0), call(1, [0]), call(1, [1])],
        plan=["repeat", ["call", {0, 1, 2}], 0, 4],
        **parts,
    )


@pytest.mark.parametrize("told", [{"names": ["count"]}, {"nondeterministic": True}])
def test_no_attempt_has_a_strict_tool_and_bounds(told: dict[str, object]) -> None:
    core = strict_core(statements=[count_at_most({0}, 1)])
    assert made(core, **told) == "TCC415"
    assert isinstance(made(core), bytes)


def test_race_counts_are_rounded_all_the_same() -> None:
    core = strict_core(statements=[count_at_most({0}, 1)])
    result = compile_core(core, Options(round_counts=3))
    assert result.artifact is not None
    exact = compile_core(core, Options()).artifact
    assert exact is not None
    assert check(result.artifact).plans == check(exact).plans
    assert result.diagnostics == ()


def test_auto_relaxes_nothing_but_counts() -> None:
    core = strict_core()
    rounded = compile_core(core, Options(relax=("auto",), count_bits=5))
    assert [d.code for d in rounded.diagnostics] == ["TCC411"]
    assert rounded.artifact is not None
    assert check(rounded.artifact).file.manifest.critical == ("rounded",)
    (found,) = compile_core(core, Options(relax=("auto",), max_states=3)).diagnostics
    assert (found.code, found.severity) == ("TCC403", "error")


def test_a_strict_tool_that_is_never_called_still_asks_for_the_exact_automaton() -> None:
    # As the kernel does (C902): whether it is called is not known before the automaton is.
    core = make_core(
        tools=[
            {"name": "a"},
            {
                "name": "run",
                "gives": [{"name": "r", "values": ["f", "p"]}],
                "strict": True,
            },
        ],
        calls=[call(0), call(1, [0]), call(1, [1])],
        plan=["repeat", ["call", {0}], 0, 4],
        statements=[count_at_most({0}, 2)],
    )
    assert made(core, ["count"]) == "TCC415"

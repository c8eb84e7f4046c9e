"""Of a call whose answers lead to more places than a session holds the compiler warns."""

from __future__ import annotations

import pytest

import tcc as library
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text


def grammar(answers: int, told_apart: int, before: str = "") -> str:
    """After each of the first answers another number of calls may follow; after the rest none."""
    first = " ".join(f"| ask(n={n}) go{{0,{n}}} end" for n in range(1, told_apart + 1))
    rest = f"ask(n={'|'.join(str(n) for n in range(told_apart + 1, answers + 1))})"
    return (
        f'grammar g version "1"\ntool first\ntool go\ntool end\n'
        f"tool ask gives (n: 1..{answers})\n"
        f"plan = {before} ({rest} {first})"
    )


# The place before the call, one for each answer that is told apart, and one for the others.
@pytest.mark.parametrize(
    ("answers", "told_apart", "places"), [(90, 62, 64), (90, 63, 65), (90, 89, 91), (63, 62, 64)]
)
@pytest.mark.parametrize("before", ["", "first first"])
def test_it_is_warned_of_exactly_where_a_gate_refuses(
    answers: int, told_apart: int, places: int, before: str
) -> None:
    text = grammar(answers, told_apart, before)
    found = compile_text(text, Options())
    assert found.artifact is not None
    gate = library.Gate(library.compile_text(text))
    for tool in before.split():
        with gate.call(tool) as permit:
            permit.done()
    decision = gate.check("ask", {})
    codes = [item.code for item in found.diagnostics]
    if places <= 64:
        assert codes == [] and decision.allowed
        return
    (item,) = found.diagnostics
    assert (item.code, item.severity) == ("TCC416", "warning") and decision.code == "R301"
    assert item.span is not None and (item.span.line, item.span.column) == (5, 1)
    at = "after `first first`" if before else "at the start"
    assert f"`ask(n=1)` is an answer to {at}: while" in item.message
    assert f"there are {places} places to be at" in item.message and item.hint is not None


def test_answers_that_no_plan_goes_on_after_are_one_place() -> None:
    text = 'grammar g version "1"\ntool go\ntool ask gives (n: 1..300)\nplan = ' + " | ".join(
        f"ask(n={n}) go{{{n}}}" for n in range(1, 63)
    )
    assert compile_text(text, Options()).diagnostics == ()
    more = compile_text(text + " | ask(n=63) go{63}", Options()).diagnostics
    assert [item.code for item in more] == ["TCC416"]

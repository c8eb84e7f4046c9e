"""A signature leads from a start to a goal; a grammar without a plan allows every sequence."""

from __future__ import annotations

import pytest

from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

HEAD = 'grammar g version "1"\n'
TOOL = "tool read_secret: user -> user\n"


@pytest.mark.parametrize(
    ("text", "due"),
    [
        (TOOL, [("TCC215", 2, 17)]),
        (TOOL + "plan = read_secret\n", [("TCC215", 2, 17)]),
        ("tool a\n" + TOOL + "tool b(k: 1 | 2) : x -> y { cost 1 }\nlimit depth <= 2\n",
         [("TCC215", 3, 17), ("TCC215", 4, 18)]),
        (TOOL + "start user\n", [("TCC210", 3, 1)]),
        (TOOL + "goal user\n", [("TCC210", 3, 1)]),
        (TOOL + "start user\ngoal user\n", []),
        ("tool a\n", []),
        # What cannot be read may have been the statement that is missing.
        (TOOL + "start\n", [("TCC101", 3, 6)]),
    ],
)  # fmt: skip
def test_a_signature_needs_start_and_goal(text: str, due: list[tuple[str, int, int]]) -> None:
    found = read_grammar_text(HEAD + text)
    places = [(d.code, d.span.line, d.span.column) for d in found.diagnostics if d.span]
    assert places == due
    assert (found.core is None) == bool(due)


def test_the_mend_names_the_states_of_the_signature() -> None:
    (found,) = read_grammar_text(HEAD + "tool a : request -> answer\nplan = a\n").diagnostics
    assert found.message == "the signature of 'a' has no effect without `start` and `goal`"
    assert found.hint is not None
    assert found.hint.startswith("add `start request` and `goal answer`")


def test_without_a_plan_every_sequence_is_one_and_nothing_is_said() -> None:
    text = HEAD + "tool a\nlimit depth <= 2\n"
    found = compile_text(text, Options())
    assert found.diagnostics == ()
    planned = compile_text(text + "plan = any*\n", Options())
    assert found.artifact == planned.artifact


def test_without_a_plan_and_a_bound_a_grammar_is_for_a_gate_unless_the_options_say_a_run() -> None:
    made = compile_text(HEAD + "tool a\n", Options())
    assert made.diagnostics == ()
    assert made.artifact == compile_text(HEAD + "tool a\n", Options(purpose="gate")).artifact
    (found,) = compile_text(HEAD + "tool a\n", Options(purpose="run")).diagnostics
    assert (found.code, found.severity, found.span and found.span.line) == ("TCC401", "error", 1)
    assert "no `plan`" in found.message
    assert (found.hint or "").startswith("say in `plan`")

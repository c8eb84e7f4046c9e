"""A signature leads from a start to a goal; a grammar without a plan is told that it has none."""

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
        (TOOL, [("TCC215", 2, 19)]),
        (TOOL + "plan = read_secret\n", [("TCC215", 2, 19)]),
        ("tool a\n" + TOOL + "tool b(k: 1 | 2) : x -> y { cost 1 }\nlimit depth <= 2\n",
         [("TCC215", 3, 19), ("TCC215", 4, 20)]),
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
    assert found.message == "the signature of 'a' means nothing: there is no `start` and no `goal`"
    assert found.hint is not None
    assert found.hint.startswith("add `start request` and `goal answer`")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("tool a\nlimit depth <= 2\n", True),
        ("tool a\nlimit depth <= 2\nforbid a a\n", True),
        ("tool a\nlimit depth <= 2\nplan = any*\n", False),
        ("tool a\nplan = a\n", False),
        # Here the signatures say what a plan is.
        ("tool a : x -> y\nstart x\ngoal y\nlimit depth <= 2\n", False),
    ],
)
def test_without_a_plan_it_is_said_that_everything_is_one(text: str, told: bool) -> None:
    found = compile_text(HEAD + text, Options())
    assert found.artifact is not None
    due = [("TCC413", "warning", 1)] if told else []
    assert [(d.code, d.severity, d.span.line) for d in found.diagnostics if d.span] == due


def test_the_warning_changes_no_byte() -> None:
    text = HEAD + "tool a\nlimit depth <= 2\n"
    told = compile_text(text, Options()).artifact
    assert told == compile_text(text + "plan = any*\n", Options()).artifact


def test_it_is_said_within_the_error_that_it_is_behind() -> None:
    (found,) = compile_text(HEAD + "tool a\n", Options()).diagnostics
    assert (found.code, found.severity, found.span and found.span.line) == ("TCC401", "error", 1)
    assert "no `plan`" in found.message
    assert (found.hint or "").startswith("say in `plan`")

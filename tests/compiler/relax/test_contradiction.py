"""Which statements leave no plan together: no more than are needed, and found with bounded work."""

from __future__ import annotations

import time

import pytest

from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text

HEAD = """grammar g version "1"

tool a { price 3 }
tool b
tool c
"""


def refused(text: str) -> Diagnostic:
    (found,) = compile_text(HEAD + text, Options()).diagnostics
    assert found.code == "TCC402"
    return found


def lines(found: Diagnostic) -> set[int]:
    """The lines of all statements that are named, behind HEAD."""
    spans = [found.span, *(note.span for note in found.notes)]
    return {span.line - HEAD.count("\n") for span in spans if span is not None}


@pytest.mark.parametrize(
    ("text", "blamed"),
    [
        (
            "plan = a+\nlimit depth <= 9\nfinally require count(a) >= 2\nlimit count(a) <= 1\n",
            {3, 4},
        ),
        ("plan = a b c\nlimit depth <= 2\nlimit price <= 9\n", {1, 2}),
        (
            (
                "plan = (a | b) c\nlimit depth <= 9\n"
                "before c require no a since any - a\nbefore c require no b since any - b\n"
            ),
            {1, 3, 4},
        ),
        ("plan = a b\nbefore a require b\nforbid c\nlimit count(c) <= 1\n", {1, 2}),
        (
            "plan = any{1,4}\nbefore b require a\nbefore a require b\nfinally require b\n",
            {2, 3, 4},
        ),
        (
            "plan = any{2}\nlimit price <= 5\nfinally require count(a) >= 2\nlimit count(c) <= 0\n",
            {2, 3},
        ),
    ],
)
def test_the_statements_that_are_named_are_those_that_are_needed(
    text: str, blamed: set[int]
) -> None:
    assert lines(refused(text)) == blamed
    # Without any one of them there are plans.
    written = text.splitlines()
    for left_out in blamed:
        kept = [line for at, line in enumerate(written, 1) if at != left_out]
        if left_out == 1:
            kept.append("plan = any{0,6}")
        codes = [d.code for d in compile_text(HEAD + "\n".join(kept), Options()).diagnostics]
        assert "TCC402" not in codes, left_out


def test_two_among_very_many_are_found_soon() -> None:
    many = "".join(f"limit count(b) <= {n}\n" for n in range(10, 600))
    started = time.process_time()
    found = refused(f"plan = any{{3}}\n{many}finally require count(a) >= 3\nlimit count(a) <= 1\n")
    assert lines(found) == {592, 593}
    assert time.process_time() - started < 60

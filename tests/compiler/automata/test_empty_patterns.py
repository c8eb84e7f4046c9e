"""Patterns without a call: a statement that was written out for a value may have one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compiler.compiling import A, B, compiled, core, refused, words

NONE = ["call", set[int]()]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (["alt", [NONE, A]], {"a"}),
        (["alt", [["seq", [A, NONE]], B]], {"b"}),
        (["repeat", NONE, 0], {""}),
        (["seq", [["repeat", NONE, 0], A]], {"a"}),
        (["diff", A, [NONE]], {"a"}),
    ],
)
def test_a_pattern_without_a_call_has_no_plan(plan: Any, expected: set[str]) -> None:
    assert words(compiled(core(plan))) == expected


def test_no_plan_is_an_error() -> None:
    assert refused(core(NONE)).code == "TCC402"
    assert refused(core(["and", [A, NONE]])).code == "TCC402"

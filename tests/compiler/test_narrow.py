"""Narrow automata are counted edge by edge, wide ones level by level: the same bytes."""

from __future__ import annotations

import random

import pytest

from tcc_compiler import counting
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_core, compile_text
from tests.oracle.cores import random_core

DEEP = """grammar deep version "1"

tool a { cost 0.3 }
tool b

limit depth <= 90
"""


@pytest.mark.parametrize("most", [0, 1 << 30])
@pytest.mark.parametrize("number", range(40))
@pytest.mark.sampled(24)
def test_edge_by_edge_and_level_by_level_are_one(
    number: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, _ = random_core(random.Random(number))
    due = compile_core(data, Options()).artifact
    monkeypatch.setattr(counting, "_NARROW", most)
    assert compile_core(data, Options()).artifact == due


def test_counts_of_several_words_are_one_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    due = compile_text(DEEP, Options()).artifact
    assert due is not None
    monkeypatch.setattr(counting, "_NARROW", 0)
    assert compile_text(DEEP, Options()).artifact == due

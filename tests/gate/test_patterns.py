"""Patterns of text: the gate's engines say what the definition says, in time linear in the text."""

from __future__ import annotations

import random
import time

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.values.text_pattern import parse
from tcc_runtime.gate.arguments import matcher
from tcc_runtime.gate.arguments.expressions import is_deterministic

_ATOMS = ("a", "b", ".", "[ab]", "[^a]", "\\d", "\\W", "x", "\\.", "[\\n-~]", "\u20ac")
_MARKS = ("", "", "", "*", "+", "?", "{2}", "{1,3}", "{2,}", "{0}", "{0,2}")


def drawn(rng: random.Random, depth: int) -> str:
    if depth == 0 or rng.random() < 0.3:
        return rng.choice(_ATOMS) + rng.choice(_MARKS)
    parts = [drawn(rng, depth - 1) for _ in range(rng.randint(1, 3))]
    inside = "|".join(parts) if rng.random() < 0.4 else "".join(parts)
    return f"({inside}){rng.choice(_MARKS)}"


@pytest.mark.parametrize("seed", range(6))
def test_engines_agree_with_the_definition(seed: int) -> None:
    rng, quick = random.Random(seed), 0
    for _ in range(250):
        source = drawn(rng, 3)
        try:
            due = parse(source)
        except Rejected:
            continue
        matches = matcher(source)
        quick += is_deterministic(due)
        for _ in range(25):
            text = "".join(rng.choices("aabbx1. \n\u20ac\U0001f600", k=rng.randint(0, 7)))
            assert matches(text) == due.matches(text), (source, text)
    assert quick > 20


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("(a|b)*c", "ab" * 30_000 + "!"),
        ("a*b?c?d?e?f?g?h?", "a" * 60_000 + "!"),
        ("(a*)*b", "a" * 60_000),
        ("(a|a)*b", "a" * 60_000),
        ("((a{1,2}){1,3}){1,50}b", "a" * 400),
        ("(x?y?){0,400}!", "xy" * 300 + "z"),
    ],
)
def test_no_pattern_takes_long(source: str, text: str) -> None:
    matches = matcher(source)
    matches(text)
    start = time.process_time()
    assert not matches(text)
    assert time.process_time() - start < 1

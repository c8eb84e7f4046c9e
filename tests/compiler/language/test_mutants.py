"""Texts near to grammars: whatever is cut, doubled, swapped or thrown in, there is a result."""

from __future__ import annotations

import random
import re

import pytest

from tcc_certs.core.reader import read_core
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.language.diagnostics import render
from tests.property.grammars import random_grammar
from tests.property.open_grammars import random_open_grammar

PIECES = (
    *"(){}[]|&-+*?=:,.\"#\\;<>!$%^~`'@/\x07\u00e9\u202e\U0001f600",
    *("->", "..", "<=", ">=", "==", "()", "plan", "tool", "when", "with", "any", "{1,", "0.5"),
    *("\n", "\r", " ", '"x"', '"\\', "goal", "limit uses(", "(k=", "cost", "latency 5"),
    *("use", "-0", "1" * 30, "; ", "~", "each ", "same ", " same k", " per k", "gives (r: 1)"),
    *("sum(", "text", "integer 1..2", "max 5", "strict ", "errors mean failed", 'currency "x"'),
    *("execute", "execute { price 1 ", "model m {", "atom laplace(1, 1)"),
    '"\\u0000"',
)  # fmt: skip


def mutant(seed: int) -> str:
    rng = random.Random(seed)
    text = random_grammar(seed) if seed % 2 else random_open_grammar(seed).text
    tokens = re.findall(r"\w+|\s+|.", text)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(tokens))
        way = rng.random()
        if way < 0.3:
            del tokens[at : at + rng.randint(1, 3)]
        elif way < 0.7:
            tokens.insert(at, rng.choice(PIECES))
        elif way < 0.85:
            tokens[at] = rng.choice(tokens)
        else:
            tokens[at:at] = tokens[at : at + 6]
        tokens = tokens or [" "]
    return "".join(tokens)


def check(seeds: range) -> None:
    refused = 0
    for seed in seeds:
        result = read_grammar_text(mutant(seed))
        assert (result.core is None) == bool(result.diagnostics)
        if result.core is not None:
            read_core(result.core)
        for item in result.diagnostics:
            render(item, result.sources)
            refused += 1
    assert refused > len(seeds) // 2


def test_mutants_have_a_core_or_diagnostics() -> None:
    check(range(400))


@pytest.mark.campaign
def test_many_mutants_have_a_core_or_diagnostics() -> None:
    check(range(400, 40_000))

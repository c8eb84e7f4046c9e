"""Small random grammars with many statements, and what is left without some of them, listed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tcc_certs.core.model import Core
from tcc_certs.core.reader import core_of, decode_core
from tcc_compiler.frontend import Frontend, read_grammar_text
from tcc_compiler.lint.plans import (
    PlanAutomata,
    SourceStatement,
    Subset,
    source_statements,
    with_parts,
)
from tcc_compiler.options import Options
from tcc_compiler.resources import Timer
from tests.oracle.plans import Word, plans as listed

_PATTERNS = ("a", "b", "c", "c(k=1)", "c(k=2)", "ask", "ask(r=yes)", "ask(r=no)")
_HEAD = """grammar small version "1"

tool a { cost 1 price 2 }
tool b { cost 0.5 }
tool c(k: 1 | 2) { cost 0.1 price 1 }
"""


def small_grammar(seed: int, depth: int = 3, *, later: bool = False) -> str:
    """A grammar of a few tools and up to eight statements, from a seed.

    Args:
        later: half of them of those that `plan` is written anew for.
    """
    rng = random.Random(seed)
    strict = " strict" if rng.random() < 0.4 else ""
    ask = f"tool ask gives (r: yes | no) {{ cost 0.2{strict} }}\n"
    lines = [f"limit depth <= {rng.randint(2, depth)}"]
    lines += [
        _later(rng) if later and rng.random() < 0.5 else _statement(rng)
        for _ in range(rng.randint(1, 7))
    ]
    rng.shuffle(lines)
    return _HEAD + ask + f"plan = {_expression(rng, 3)}\n" + "\n".join(lines) + "\n"


def _expression(rng: random.Random, height: int) -> str:
    if height == 0 or rng.random() < 0.2:
        return rng.choice([*_PATTERNS, "any"])
    kind = rng.random()
    parts = [_expression(rng, height - 1) for _ in range(2)]
    if kind < 0.35:
        return f"({parts[0]}) ({parts[1]})"
    if kind < 0.6:
        return f"({parts[0]}) | ({parts[1]})"
    return f"({parts[0]}){rng.choice(['*', '+', '?', '{0,2}'])}"


def _statement(rng: random.Random) -> str:
    one, other = rng.choice(_PATTERNS), rng.choice(_PATTERNS)
    return rng.choice(
        [
            f"before {other} require {one}",
            f"after {other} owe {one}",
            f"before {other} require unused {one}",
            f"forbid {one} {other}",
            f"before {other} require no {one}\nbefore {one} require no {other}",
            f"before {other} require no {one}",
            f"forbid {one}",
            f"limit uses({one}) <= {rng.randint(0, 2)}",
            f"limit uses({one}) >= {rng.randint(0, 1)}",
            f"limit price <= {rng.randint(1, 6)}",
            f"limit cost <= {rng.choice(['0.5', '1', '2.25'])}",
            f"limit sum(c.k) <= {rng.randint(0, 3)}",
        ]
    )


def _later(rng: random.Random) -> str:
    one, other, third = (rng.choice(_PATTERNS) for _ in range(3))
    return rng.choice(
        [
            f"require last {one} before {other}",
            f"before {other} require count({one}) >= 2",
            f"require {one} or last {third} before {other}",
            f"require a or c before each {other}",
            f"forbid {one} before {other} unless {third}",
            f"forbid last {one} before {other}",
            f"limit uses(a | c) <= {rng.randint(0, 2)}",
            f"limit uses(b | ask) >= {rng.randint(1, 2)}",
            f"limit uses(any - {one}) <= {rng.randint(0, 2)}",
        ]
    )


def read(text: str) -> tuple[Frontend, PlanAutomata, Sequence[SourceStatement]]:
    """A grammar without errors, the automata of its statements, and the statements."""
    front = read_grammar_text(text)
    assert front.core is not None, front.diagnostics
    options = Options()
    made = PlanAutomata(core_of(decode_core(front.core)), options, Timer(options))
    return front, made, source_statements(front, made.core)


def every(made: PlanAutomata) -> Subset:
    """All statements of a grammar."""
    signed = made.core.start is not None
    return Subset(parts=(*made.limits, *made.orders), signed=signed)


def without(core: Core, out: Sequence[SourceStatement], stated: Sequence[SourceStatement]) -> Core:
    """The core without some of its statements; a part that another one makes, too, stays."""
    kept = {
        id(part)
        for item in stated
        if not any(item is other for other in out)
        for part in item.parts
    }
    parts = (*core.limits, *core.requires, *core.forbids)
    return with_parts(core, [part for part in parts if id(part) in kept])


def words(core: Core, most: int) -> list[Word]:
    """The plans of at most `most` calls, listed."""
    return listed(core, most)

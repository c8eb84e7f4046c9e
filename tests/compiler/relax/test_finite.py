"""The look at the expression says "finite" only where the compiler finds the same."""

from __future__ import annotations

import pytest

from tcc_certs.policy.places import parts_of
from tcc_compiler.automata.letters import partition
from tcc_compiler.frontend import read_grammar_text
from tcc_compiler.options import Options
from tcc_compiler.pipeline import compile_text
from tcc_compiler.relax.estimates import stays_finite
from tcc_compiler.resources import Guard
from tests.property.grammars import random_grammar

HEAD = """grammar g version "1"

tool a { price 1 }
tool b { latency 5 ms }
tool f
"""


def finite(text: str) -> bool:
    core = read_grammar_text(text).core
    assert core is not None
    return stays_finite(core, partition(core, parts_of(core)), Guard(Options()))


@pytest.mark.parametrize(
    ("plan", "due"),
    [
        ("any{0,5}", True),
        ("any*", False),
        ("a*", True),
        ("(a | b)*", False),
        ("(a b)*", True),
        ("(a f)* f", True),
        ("(a f*)*", False),
        ("(f a?)*", False),
        ("f+", False),
        ("(a | f) (a | f)", True),
        ("f* & a*", False),
        ("a* & any*", False),
        ("any{0,3} - a*", True),
        ("r", True),
        ("s", False),
        ("t", False),
    ],
)
def test_every_round_has_to_add_to_a_limit(plan: str, due: bool) -> None:
    rules = "rule r = a r a | f\nrule s = f s | a\nrule t = f t f | a\n"
    used = "".join(line + "\n" for line in rules.splitlines() if line[5] == plan)
    assert finite(f"{HEAD}{used}plan = {plan}\nlimit price <= 9\n") == due
    assert finite(f"{HEAD}{used}plan = {plan}\nlimit depth <= 9\n")


def test_two_limits_share_the_rounds() -> None:
    assert finite(f"{HEAD}plan = (a | b)*\nlimit price <= 9\nlimit latency <= 20 ms\n")
    assert not finite(f"{HEAD}plan = any*\nlimit price <= 9\nlimit latency <= 20 ms\n")
    assert not finite(f"{HEAD}plan = a*\nfinally require count(a) >= 2\n")


def test_finite_is_never_said_of_an_infinite_language() -> None:
    said = infinite = 0
    for seed in range(120):
        text = random_grammar(seed)
        kept = [line for line in text.splitlines() if not line.startswith("limit depth")]
        # Long plans of calls that cost little are many states, and no matter here.
        text = "\n".join(line for line in kept if not line.startswith("limit latency")) + "\n"
        codes = {d.code for d in compile_text(text, Options(max_states=3000)).diagnostics}
        infinite += "TCC401" in codes
        if finite(text):
            said += 1
            assert not codes & {"TCC401", "TCC406"}, seed
    assert said > 30 and infinite > 15

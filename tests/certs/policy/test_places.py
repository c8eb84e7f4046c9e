"""The parts of statements in plans: places, sums and tables over classes of calls."""

from __future__ import annotations

from itertools import product

import pytest

from tcc_certs.policy.core import Core
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.places import parts_of
from tcc_certs.policy.tables import tabulate
from tcc_compiler.names.compile import compile_source
from tests.certs.policy.examples import letters_of

TOOLS = """grammar g version "1.0"
tool a(k: x | y) gives (r: p | q)
tool b(k: x | y, n: 0 | 1 | 2, half: 0.5 | 1)
tool c(open: text)
limit depth <= 4
let seen = last(a(k = x, r = q))
let near(day) = last(a(same k) within 1 d).r = day
let opened = c(open = "x")
let marked = a(same k)
"""


def core_of(statement: str) -> Core:
    compiled = compile_source(TOOLS + statement + "\n")
    assert compiled.core is not None, compiled.diagnostics
    return compiled.core


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("before b require a", "automaton"),
        ("before b require a(same k, r = p)", "automaton"),
        ("forbid c", "automaton"),
        ('forbid c(open = "x")', "gate"),
        ('before b require a and no c(open = "x")', "both"),
        ("limit count(a | b) <= 1000000", "automaton"),
        ("limit sum(b.half) <= 1.5", "automaton"),
        ("limit count(a) <= 3 across sessions", "both"),
        ("limit count(a within 1 d) <= 3 in session", "gate"),
        ("limit price <= 3", "automaton"),
        ("before c require no b(n = 1) since any - b(n = 1)", "automaton"),
        ("before c require no any(n = 1)", "automaton"),
        ("forbid any(n = 1)", "automaton"),
    ],
)
def test_places(statement: str, place: str) -> None:
    assert parts_of(core_of(statement))[-1].place == place


STATEMENTS = [
    "before b require a(same k) since b",
    "before b require unused a(same k, r = p)",
    "before b(n > 0) require last(a).r = q or no a",
    "after a(r = p) owe b(k = this.k)",
    "finally require count(b(n = 1)) in 1 .. 2",
    "limit count(b) per k <= 1 in session",
    "limit sum(b.n) <= 3",
    "limit sum(b(k = x).half) <= 1",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_classes_of_calls_behave_like_the_calls(statement: str) -> None:
    core = core_of(statement)
    part = parts_of(core)[-1]
    rule = policy_of(core).rules[-1]
    if part.table is not None:
        table = tabulate(rule, letters_of(core))
        assert table is not None
        todo = [(0, 0)]
        for state, other in todo:
            assert part.accepts(state) == table.accepts[other]
            for call, row in enumerate(part.class_of):
                after, expected = part.step(state, row), table.moves[other][call]
                assert (-1 if after is None else 0) == min(expected, 0)
                if after is not None and (after, expected) not in todo:
                    todo.append((after, expected))
        return
    assert part.total is not None
    for word in product(range(len(core.calls)), repeat=2):
        state: int | None = part.start
        for call in word:
            state = None if state is None else part.step(state, part.class_of[call])
        assert (state is not None) == (
            sum(map(part.total.amounts.__getitem__, word)) <= part.total.bound
        )


@pytest.mark.parametrize(
    ("statement", "holds"),
    [
        (
            'before b require a(same k) and no c(open = "x")',
            "before b require a(same k) and no c(_)",
        ),
        ('before b require c(open = "x") or a', "before b require c(_) or a"),
        ("before b require a within 1 d", "before b require a within _"),
        ("after a owe b within 1 d", "after a owe b"),
        ("limit count(a) <= 3 across sessions", "limit count(a) <= 3"),
        ('finally require a and not last(c).open = "x"', "finally require a and _"),
        # Of a `let` of the file its body, if the automaton does not hold all of it.
        (
            "before b require near(q) and seen.r = q",
            "before b require last(a(same k) within _).r = q and seen.r = q",
        ),
        ("before b require a and no opened", "before b require a and no c(_)"),
        (
            'before b require marked and no opened(open = "y")',
            "before b require marked and no c(_)(_)",
        ),
    ],
)
def test_the_text_of_what_the_automaton_holds(statement: str, holds: str) -> None:
    part = parts_of(core_of(statement))[-1]
    assert (part.place, part.holds) == ("both", holds)


def test_a_statement_over_too_many_keys_is_held_by_the_gate() -> None:
    values = " | ".join([f"v{at}" for at in range(30)])
    text = f'grammar g version "1.0"\ntool a(k: {values})\nlimit depth <= 3\n'
    core = compile_source(text + "before a require no a(same k)\n").core
    assert core is not None
    assert parts_of(core)[-1].place == "gate"

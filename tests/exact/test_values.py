"""Values told apart: statements of version 1.2 beside each other, sums, and each value's atom.

As in test_pairs.py, sessions are listed, and the kernel is asked alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import combinations, product
from typing import Any

import pytest

from tcc_runtime.exact import certificate
from tests.exact.test_pairs import FORMS, ONCE, OUT, answer, made

HEAD = """grammar g version "1"

given g: text max 4
given m: integer 3 .. 6

tool a(x: text max 3, n: integer 0 .. 4, d: number 0 .. 3, f: flag)

plan = a{0,2}
"""
Call = tuple[str, int, float, bool]
CALLS: list[Call] = [
    *product("pqz", range(5), [0.0], (True, False)),
    *[("p", 0, d, True) for d in (1.5, 1.7, 2.0, 3.0)],
]
SESSIONS = [
    (g, m, calls)
    for g, m in product("pqz", range(3, 7))
    for calls in ((), *[(one,) for one in CALLS], *product(CALLS[:12], repeat=2))
]


def _each(holds: Callable[..., bool]) -> Callable[..., bool]:
    return lambda g, m, calls: all(holds(g, m, *call) for call in calls)


def _apart(at: int) -> Callable[..., bool]:
    return lambda g, m, calls: len({call[at] for call in calls}) == len(calls)


SAYS: dict[str, Callable[..., bool]] = {
    'require a where x ~ "[pq]"': _each(lambda g, m, x, n, d, f: x in "pq"),
    'require a where x = "p"': _each(lambda g, m, x, n, d, f: x == "p"),
    "forbid a where x = seen.x before a": _apart(0),
    "require a where n <= 2": _each(lambda g, m, x, n, d, f: n <= 2),
    "require a where n <= 3": _each(lambda g, m, x, n, d, f: n <= 3),
    "require a where d <= 1.5": _each(lambda g, m, x, n, d, f: d <= 1.5),
    "require a where d < 2": _each(lambda g, m, x, n, d, f: d < 2),
    "forbid a where f = seen.f before a": _apart(3),
    "forbid a where n = seen.n before a": _apart(1),
    "require a where x = session.g": _each(lambda g, m, x, n, d, f: x == g),
    "require a where n + 3 <= session.m": _each(lambda g, m, x, n, d, f: n + 3 <= m),
    'require a where session.g = "p"': _each(lambda g, m, x, n, d, f: g == "p"),
    "require a where session.m <= 4": _each(lambda g, m, x, n, d, f: m <= 4),
    "require a where f = true": _each(lambda g, m, x, n, d, f: f),
}


@cache
def _made(says: tuple[str, ...]) -> Any:
    return made(HEAD + "\n".join(says) + "\n")


@cache
def _kept(say: str) -> frozenset[int]:
    return frozenset(at for at, one in enumerate(SESSIONS) if SAYS[say](*one))


@pytest.mark.parametrize("asked", SAYS)
def test_statements_say_what_they_say_beside_others(asked: str) -> None:
    others = [say for say in SAYS if say != asked]
    pairs = [pair for at, pair in enumerate(combinations(others, 2)) if at % 7 == 0]
    for says in [(), *[(say,) for say in others], *pairs]:
        every = frozenset(range(len(SESSIONS)))
        due = every.intersection(*map(_kept, says)) <= _kept(asked)
        found = answer(certificate.by_all, _made(says), _made((asked,)))
        assert found == ("none", "closed")[due], (says, asked)


# Sums of two parameters: a call that one sum does not allow is none, whatever the other is.
SUMS = [
    ("x: integer 0 .. 3", "sum(a.x) <= 2", "x: integer 0 .. 2", "sum(a.x) <= 2", "closed"),
    ("x: integer 0 .. 3", "sum(a.x) <= 3", "x: integer 0 .. 2", "sum(a.x) <= 3", "none"),
    ("x: integer 0 .. 3, y: integer 5 .. 9", "sum(a.y) <= 3",
     "x: integer 0 .. 2, y: integer 5 .. 9", "sum(a.x) <= 9", "closed"),
    ("x: integer 0 .. 3, y: integer 3 .. 9", "sum(a.y) <= 3",
     "x: integer 0 .. 2, y: integer 3 .. 9", "sum(a.x) <= 9", "none"),
    ("x: integer 0 .. 3, y: integer 5 .. 9", "sum(a.y) <= 3",
     "x: integer 4 .. 9, y: integer 5 .. 9", "sum(a.x) <= 9", "closed"),
    ("x: integer 0 .. 3", "sum(a.x) <= 3", "x: integer 4 .. 9", "sum(a.x) <= 9", "none"),
    ("x: number 0 .. 1", "sum(a.x) <= 1", "x: integer 0 .. 1", "sum(a.x) <= 1", "none"),
]  # fmt: skip


@pytest.mark.parametrize(("mine", "cap", "theirs", "most", "due"), SUMS)
def test_sums_beside_each_other(mine: str, cap: str, theirs: str, most: str, due: str) -> None:
    text = 'grammar g version "1"\ntool a(; {})\nplan = a{{0,2}}\nlimit {}\n'
    both = [made(text.format(*one)) for one in ((mine, cap), (theirs, most))]
    assert answer(certificate.by_all, *both) == due


@pytest.mark.parametrize("form", [form for form in FORMS if form[:1] == ";" and "json" not in form])
def test_each_value_has_its_atom(form: str) -> None:
    """An atom by itself, where it is a constant; else the one that the same types hold."""
    text = f'grammar g version "1"\ntool a({form})\nplan = a{{0,2}}\n'
    listed = {"text": "p | q", "numb": "1 | 2", "inte": "1 | 2"}.get(form.split(": ")[1][:4])
    other = f'grammar g version "1"\ntool a(x: {listed})\nplan = a\n' if listed else text
    both = tuple([made(one) for one in (f"{text}{ONCE}\n", other)])
    of = certificate.ProvedQuestion(kind="implies", text=None, artifacts=both)
    system = of.system(listed=True)
    values: Sequence[Any] = [one for one in FORMS[form] if one is not OUT]
    found = [system.atom_of(value) for value in values]
    constants = {atom.only for atom in system.atoms if atom.only is not None}
    for value, at in zip(values, found, strict=True):
        assert at in system.kinds[0].domains[0]
        told = str(value).lower()
        assert system.atoms[at].only == (told if told in constants else None)


def test_a_value_is_of_the_atom_that_its_types_hold() -> None:
    text = 'grammar g version "1"\ntool a(; x: {})\nplan = a{{0,2}}\n{}\n'
    kinds = ["text min 1 max 9", 'text ~ "p|z"']
    both = tuple([made(text.format(kind, ONCE)) for kind in kinds])
    of = certificate.ProvedQuestion(kind="implies", text=None, artifacts=both)
    system = of.system(listed=True)
    sizes = [len(system.atoms[system.atom_of(value)].types) for value in ("p", "q", "z", "far")]
    assert sizes == [2, 1, 2, 1]


FIND = """grammar g version "1"

tool find gives (members: list max 2 of text max 9)
tool pay(one: text max 9)

limit depth <= 3
limit count(find) <= 1
"""
FULL = 'require find where every seen.members ~ "[a-c]*" before pay\n'
SOME = """require find where some seen.members as m (m ~ "[a-c]*") before pay
forbid find where one in seen.members before pay
require pay where one ~ "[a-c]*"
"""
ELEMENTS = [
    # What is in a list without being told apart is not what comes anew.
    (FULL, "require find where one in seen.members before pay\n", "none"),
    (FULL, "forbid find where one in seen.members before pay\n", "none"),
    (f"{FULL}require find where one in seen.members before pay\n",
     'require pay where one ~ "[a-c]*"\n', "closed"),
    # It may be in none while something else is in one.
    (SOME, "limit uses(pay) <= 0\n", "none"),
]  # fmt: skip


@pytest.mark.parametrize(("says", "asked", "due"), ELEMENTS)
def test_a_value_that_comes_anew_may_be_in_no_list(says: str, asked: str, due: str) -> None:
    both = [made(FIND + one) for one in (says, asked)]
    assert answer(certificate.by_all, *both) == due


ALONE = [
    ('require b where x = "p"\n', "none"),
    ('require b where x = "p"\nrequire b where x = "q"\n', "closed"),
]


@pytest.mark.parametrize(("says", "due"), ALONE)
def test_a_tool_of_one_side_alone_has_its_values(says: str, due: str) -> None:
    head = """grammar g version "1"

tool a
"""
    mine = f"{head}tool b(; x: text max 9)\nplan = any?\n{says}"
    both = [made(one) for one in (mine, f"{head}plan = any?\n")]
    assert answer(certificate.by_all, *both) == due


def test_what_is_owed_at_an_end_is_owed() -> None:
    """By a statement about values: its end is none of the plan's."""
    head = """grammar g version "1"

tool a(x: text max 3)
tool b(x: text max 3)
"""
    text = f"{head}plan = any*\nlimit depth <= 2\n"
    owed = made(f"{text}require b after a same x\n")
    free = made(text)
    other = made(f"{text}forbid a before a\n")
    assert answer(certificate.by_all, free, owed) == "none"
    assert answer(certificate.by_all, owed, owed) == "closed"
    assert answer(certificate.by_all, owed, other) == "none"

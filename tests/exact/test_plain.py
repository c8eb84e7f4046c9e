"""Grammars whose plans alone decide: the quick search says what the search over states says."""

from __future__ import annotations

import random
from collections import Counter

import pytest

import tcc
from tcc_runtime.artifact import load
from tcc_runtime.exact import search
from tcc_runtime.exact.sides import artifact_side
from tcc_runtime.exact.system import System

TOOLS = """tool a(k: x | y)
tool b gives (state: open | shut)
tool c(n: 1 | 2 | 3) gives (ok: yes | no)
"""


def drawn(rng: random.Random) -> str:
    plan = rng.choice(("any*", "(a | b)* c?", "a (b | c)* a?", "b? (a c)* b?"))
    more = ["limit depth <= 5", "limit uses(a) <= 1", "limit uses(b) <= 2", "require a before c",
            "require a after b", "forbid c b", "forbid c(n: 2) before a(k: x)",
            "limit uses(c) <= 2", "require b(state: open) before a"]  # fmt: skip
    kept = [more[0], *rng.sample(more[1:], rng.randrange(4))]
    tools = (
        TOOLS if rng.random() < 0.8 else TOOLS.replace("1 | 2 | 3", rng.choice(("1 | 2", "2 | 4")))
    )
    return f'grammar g version "1"\n{tools}plan = {plan}\n' + "\n".join(kept) + "\n"


def found(pair: list[tcc.Artifact], max_states: int) -> search.SearchResult:
    sides = [artifact_side(one) for one in pair]
    return search.included(lambda: System(*sides), max_states=max_states)


def test_both_searches_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, seen = random.Random(5), Counter[str]()
    made: list[tcc.Artifact] = []
    while len(made) < 24:
        try:
            made.append(tcc.compile_text(drawn(rng)))
        except tcc.CompileError:
            continue
    for _ in range(150):
        pair = rng.sample(made, 2) if rng.random() < 0.9 else [made[0], made[0]]
        most = rng.choice((3, 10**4, 10**4))
        monkeypatch.setattr(search, "_MOST_ROWS", rng.choice((1, 1 << 14)))
        quick = found(pair, most)
        with monkeypatch.context() as slow:
            slow.setattr(search, "is_plain", lambda system: False)
            assert found(pair, most) == quick
        seen[str(quick.holds) + (quick.session.ends if quick.session else "")] += 1
    assert len(seen) == 4 and min(seen.values()) > 5, seen


def test_pairs_in_arrays_show_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, seen = random.Random(6), Counter[str]()
    made: list[tcc.Artifact] = []
    while len(made) < 16:
        try:
            made.append(tcc.compile_text(drawn(rng)))
        except tcc.CompileError:
            continue
    for _ in range(120):
        pair = rng.sample(made, 2) if rng.random() < 0.9 else [made[0], made[0]]
        most = rng.choice((3, 10**4, 10**4))
        monkeypatch.setattr(search, "_MOST_EDGES", rng.choice((9, 1 << 21, 1 << 21)))
        by_pair = found(pair, most)
        with monkeypatch.context() as wide:
            wide.setattr(load, "MANY_STATES", 1)
            wide.setattr(load, "WIDE", 0)
            assert all(one.is_wide for one in pair)
            at_once = found(pair, most)
        assert (at_once.holds, at_once.session, at_once.codes) == (
            by_pair.holds, by_pair.session, by_pair.codes
        )  # fmt: skip
        if by_pair.holds:
            assert at_once == by_pair
        seen[str(by_pair.holds) + (by_pair.session.ends if by_pair.session else "")] += 1
    assert len(seen) == 4 and min(seen.values()) > 3, seen


@pytest.mark.parametrize("more", ["", "limit uses(d) per order <= 1\n"])
def test_open_parameters_and_monitors_are_not_plain(more: str) -> None:
    base = f'grammar g version "1"\n{TOOLS}plan = any*\nlimit depth <= 4\n'
    opened = 'tool d(part: p | q; order: text ~ "[a-z]{1,3}")\n'
    plain, other = tcc.compile_text(base), tcc.compile_text(base + opened + more)
    for pair in ((plain, other), (other, plain), (other, other)):
        assert not search.is_plain(System(*map(artifact_side, pair)))
    assert search.is_plain(System(artifact_side(plain), artifact_side(plain)))

"""Elements of lists in exact questions, beside every way to give lists and values their meaning.

A universe of a few values, lists that are sets of them: what the kernel says may be known of a
call's lists after it is what is so in some of these worlds, no less, and where nothing but the
number of values bounds them, no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from typing import TypeAlias

import pytest

from tcc_certs.proof.lists import Elements, listed_of
from tcc_certs.values.declared import TextType
from tcc_certs.values.fields import ListType

Value: TypeAlias = "tuple[int, int]"  # the atom, and which of its values
World: TypeAlias = "dict[int, Value | frozenset[Value]]"  # by tokens
Known: TypeAlias = "tuple[frozenset[tuple[int, int]], tuple[tuple[int, tuple[int, ...]], ...]]"


@dataclass(frozen=True, kw_only=True)
class Case:
    """Atoms of values with so many values, and atoms of lists: full, least, most, domain."""

    sizes: tuple[int, ...]
    lists: tuple[tuple[bool, int, int, tuple[int, ...]], ...]

    @property
    def total(self) -> int:
        return len(self.sizes) + len(self.lists)

    def elements(self) -> Elements:
        first = len(self.sizes)
        atoms = range(first, self.total)
        return Elements(
            fields=frozenset([("a", "x")]),
            kinds={
                at: ListType(of=TextType(most=9), least=least, most=most, distinct=False)
                for at, (_, least, most, _) in zip(atoms, self.lists, strict=True)
            },
            domains={at: of[3] for at, of in zip(atoms, self.lists, strict=True)},
            full=frozenset([at for at, of in zip(atoms, self.lists, strict=True) if of[0]]),
            constants=frozenset(self.constants),
            atom_of=lambda token: token % self.total,
            token=lambda atom, number: atom + self.total * number,
            has=lambda atom, many: many <= self.sizes[atom],
        )

    def is_short(self, token: int) -> bool:
        """Whether a list is full, and cannot have all values: parts of it may seem to be more."""
        full, _, most, domain = self.lists[token % self.total - len(self.sizes)]
        return full and most < sum(self.sizes[atom] for atom in domain)

    @property
    def constants(self) -> list[int]:
        return [atom for atom, size in enumerate(self.sizes) if size == 1]

    def worlds(self, tokens: Sequence[int]) -> Iterator[World]:
        """Every meaning of some tokens."""
        first = len(self.sizes)
        bare = {token: (token, 0) for token in self.constants}
        ways: list[list[tuple[tuple[int, Value | frozenset[Value]], ...]]] = []
        for atom in range(first):
            mine = [one for one in tokens if one % self.total == atom and one not in bare]
            values = [(atom, at) for at in range(self.sizes[atom])]
            chosen = permutations(values, len(mine))
            ways.append([tuple(zip(mine, some, strict=True)) for some in chosen])
        for one in tokens:
            if one % self.total >= first:
                _, least, most, domain = self.lists[one % self.total - first]
                values = [(atom, at) for atom in domain for at in range(self.sizes[atom])]
                sizes = range(bool(least), most + 1)
                some = [frozenset(of) for size in sizes for of in combinations(values, size)]
                ways.append([((one, of),) for of in some])
        for way in product(*ways):
            yield {**bare, **dict(pair for part in way for pair in part)}

    def known(self, world: World) -> Known:
        """What is remembered of a world."""
        first = len(self.sizes)
        lists = {t: of for t, of in world.items() if isinstance(of, frozenset)}
        tokens = {of: t for t, of in world.items() if not isinstance(of, frozenset)}
        pairs = {(t, tokens[of]) for t, some in lists.items() for of in some if of in tokens}
        full = {t: of for t, of in lists.items() if self.lists[t % self.total - first][0]}
        others = {of for some in full.values() for of in some} - set(tokens)
        classes = {
            (of[0], tuple(sorted(t for t, some in full.items() if of in some))) for of in others
        }
        return frozenset(pairs), tuple(sorted(classes))

    def told(self, pairs: Sequence[tuple[int, int]], held: Sequence[int]) -> Known:
        """The same of pairs, without the names of summaries."""
        named = {*held, *self.constants}
        inside: dict[int, list[int]] = {}
        for many, one in pairs:
            if one not in named:
                inside.setdefault(one, []).append(many)
        classes = [(one % self.total, tuple(sorted(of))) for one, of in inside.items()]
        assert len(classes) == len(set(classes))
        return frozenset([pair for pair in pairs if pair[1] in named]), tuple(sorted(classes))


FULL, PARTIAL = True, False
CASES = {
    "full": Case(sizes=(3,), lists=((FULL, 0, 3, (0,)),)),
    "full with a constant": Case(sizes=(3, 1), lists=((FULL, 0, 4, (0, 1)),)),
    "full with something in it": Case(sizes=(3,), lists=((FULL, 1, 3, (0,)),)),
    "two atoms": Case(sizes=(2, 2), lists=((FULL, 0, 4, (0, 1)),)),
    "partial": Case(sizes=(3, 1), lists=((PARTIAL, 0, 4, (0, 1)),)),
    "partial and short": Case(sizes=(3, 1), lists=((PARTIAL, 0, 1, (0, 1)),)),
    "full and partial": Case(sizes=(3,), lists=((FULL, 0, 3, (0,)), (PARTIAL, 0, 3, (0,)))),
    "domains that cross": Case(sizes=(2, 2), lists=((FULL, 0, 2, (0,)), (FULL, 0, 4, (0, 1)))),
    "full and short": Case(sizes=(3,), lists=((FULL, 0, 1, (0,)),)),
    "long and short": Case(sizes=(2, 2), lists=((FULL, 0, 4, (0, 1)), (FULL, 0, 1, (0, 1)))),
    "full, short, of two atoms": Case(sizes=(2, 2), lists=((FULL, 1, 2, (0, 1)),)),
}


@pytest.mark.parametrize("name", CASES)
def test_what_lists_may_hold_after_a_call_is_what_some_world_has(name: str) -> None:
    case = CASES[name]
    elements = case.elements()
    first, total = len(case.sizes), case.total
    lists = range(first, total)
    for held_lists in (
        [],
        [lists[0]],
        [*lists] if len(lists) > 1 else [lists[0], lists[0] + total],
    ):
        for held_values in ([], [0]) if len(held_lists) < 2 else ([0],):
            constants = case.constants if held_values else []
            held = [*dict.fromkeys([*held_values, *constants]), *held_lists]
            for new in ([], *[[one + 2 * total] for one in lists]):
                for values in ([2 * total], [2 * total, first - 1]) if new else ([],):
                    values = [one for one in values if case.sizes[one % total] > 1 or one < total]
                    _compare(case, elements, held, new, values)


def _compare(
    case: Case, elements: Elements, held: list[int], new: list[int], values: list[int]
) -> None:
    after = list(dict.fromkeys([*held, *new, *values]))
    real: dict[Known, set[Known]] = {}
    for world in case.worlds(after):
        before = {t: of for t, of in world.items() if t in held or t in case.constants}
        real.setdefault(case.known(before), set()).add(case.known(world))
    for known in {case.known(world) for world in case.worlds(held)}:
        due = real.get(known, set())
        pairs = _pairs(case, known, [*held, *values])
        found = set()
        for one in elements.choices(pairs, held, new, values):
            kept, _ = elements.kept(sorted(one.pairs), after)
            told = case.told(kept, after)
            assert told not in found, "nothing is tried twice"
            found.add(told)
        assert due <= found, (held, new, values, known, due - found)
        if not any(case.is_short(one) for one in held if one % case.total >= len(case.sizes)):
            assert found == due, (held, new, values, known, found - due)


def _pairs(case: Case, known: Known, taken: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs that say what is known, with summaries of their own names."""
    pairs = list(known[0])
    used = {*taken, *case.constants}
    for atom, of in known[1]:
        token = next(t for t in range(atom, 1 << 20, case.total) if t not in used)
        used.add(token)
        pairs += [(many, token) for many in of]
    return sorted(pairs)


@pytest.mark.parametrize("name", CASES)
def test_what_is_forgotten_of_lists_is_what_nothing_holds(name: str) -> None:
    """Values that lists alone hold become summaries, and like ones become one."""
    case = CASES[name]
    elements = case.elements()
    lists = range(len(case.sizes), case.total)
    tokens = [*lists, *([lists[0] + case.total] if len(lists) == 1 else []), 0]
    for size in range(len(tokens) + 1):
        for held in combinations(tokens, size):
            for world in case.worlds(tokens):
                known = case.known(world)
                pairs = _pairs(case, known, tokens)
                kept, joined = elements.kept(pairs, held)
                left: Mapping[int, Value | frozenset[Value]] = {
                    t: of for t, of in world.items() if t in held or t in case.constants
                }
                assert case.told(kept, held) == case.known(dict(left)), (held, pairs)
                assert all(away % case.total == like % case.total for away, like in joined)


def test_a_type_of_lists_is_full_if_one_field_of_it_is() -> None:
    many = ListType(of=TextType(most=9), least=0, most=3, distinct=False)
    tools = [("a", [("x", many), ("y", TextType(most=9))]), ("b", [("x", many)])]
    names = frozenset({("a", "x"), ("b", "x")})
    for full in names:
        assert listed_of(tools, {full}) == (names, {many: True})
    assert listed_of(tools, set()) == (names, {many: False})

"""Lists in exact questions: which of the values that are live are elements of which list.

A remembered list has a token of its own, and facts that say which live values, and which constants,
are among its elements.  Of any other value nothing is known: when a call brings it, it may or may
not be an element of each list that is remembered; and each value that is live may or may not be one
of a list that a call brings.  What is in no other fact is forgotten, because a value that comes
anew is told apart from it by nothing.
Normative text: docs/spec/proof.md, section 1.  No Coq theorem covers these forms: they are held to
brute force by tests/exact.
Cost: 2 to the number of pairs of a list and a value that are new to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from tcc_certs.values.places import ListType
from tcc_certs.values.types import FlagType, NumberType, TextType

Token: TypeAlias = "Any"
Pair: TypeAlias = "tuple[Token, Token]"  # a list, and a value that is one of its elements
LIST = "list"  # the sort of a list's atom
MEMBERS = "\1"  # in the place of a tool's name: which values are elements
PAIR = (f"{MEMBERS}0", f"{MEMBERS}1")


def element_of(kind: object) -> TextType | NumberType | FlagType | None:
    """The type of a list's elements that can be compared; None: it is no such list."""
    of = kind.of if isinstance(kind, ListType) else None
    return of if isinstance(of, TextType | NumberType | FlagType) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The lists that statements compare with values.

    Attributes:
        fields: that have them, each a tool's name and its own.
        domains: of the atom of a list those of its elements; most: how many it has at most.
        constants: tokens of atoms with one value.
        atom_of: the atom of a token.
    """

    fields: frozenset[tuple[str, str]]
    domains: Mapping[int, tuple[int, ...]]
    most: Mapping[int, int]
    constants: Sequence[Token]
    atom_of: Callable[[Token], int]

    def is_list(self, token: Token) -> bool:
        """Whether a token stands for a list."""
        return self.atom_of(token) in self.domains

    def unknown(
        self, new: Sequence[Token], values: Sequence[Token], live: Collection[Token]
    ) -> list[Pair]:
        """The pairs that a call makes of which it is not known whether they are there.

        Args:
            new: its lists.  values: its other tokens.
            live: what was held before it.
        """
        once = [one for one in dict.fromkeys(values) if one not in self.constants]
        fresh = [one for one in once if one not in live]
        known = sorted([one for one in live if self.is_list(one)])
        pairs = [(of, one) for of in known for one in fresh]
        there = [one for one in sorted(live) if one not in known and one not in self.constants]
        pairs += [(of, one) for of in new for one in (*self.constants, *there, *fresh)]
        return [pair for pair in pairs if self._fits(*pair)]

    def chosen(self, known: Collection[Pair], unknown: Sequence[Pair]) -> Iterator[tuple[Pair, ...]]:
        """Every choice of the pairs that are there, first none but those that are known."""
        for some in product((False, True), repeat=len(unknown)):
            more = [pair for pair, there in zip(unknown, some, strict=True) if there]
            found = tuple(sorted([*known, *more]))
            sizes: dict[Token, int] = {}
            for many, _ in found if more else ():
                sizes[many] = sizes.get(many, 0) + 1
            if all(size <= self.most[self.atom_of(many)] for many, size in sizes.items()):
                yield found

    def _fits(self, many: Token, one: Token) -> bool:
        return self.atom_of(one) in self.domains[self.atom_of(many)]


"""Lists in exact questions: which values are elements of which list that is remembered.

A remembered list has a token of its own, and facts that say which values are its elements: those
that are live, and the constants.  Of a *partial* list, in which values are looked for and no more,
nothing else is known: a value that a call brings may or may not be in it.  Of a *full* list, whose
elements a statement goes through, the other elements are there as *summaries*: tokens that lists
alone hold, each of which stands for one value of its atom or more, all in the same full lists.  A
value that a call brings is one of a summary's, or in no full list; what is left of the summary is
a summary, if anything is.  Of each summary a new full list has none, all, or some: then it is two.
Normative text: docs/spec/proof.md, section 1.  No Coq theorem covers these forms: they are held to
brute force by tests/exact.
Cost: 2 to the number of pairs of a list and a value that are new to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tcc_certs.values.declared import FlagType, NumberType, TextType
from tcc_certs.values.fields import ListType

Token: TypeAlias = "Any"
Pair: TypeAlias = "tuple[Token, Token]"  # a list, and a value or a summary of its elements
LIST = "list"  # the sort of a list's atom
MEMBERS = "\1"  # in the place of a tool's name: which values are elements
PAIR = (f"{MEMBERS}0", f"{MEMBERS}1")


def element_of(kind: object) -> TextType | NumberType | FlagType | None:
    """The type of a list's elements that can be compared; None: it is no such list."""
    of = kind.of if isinstance(kind, ListType) else None
    return of if isinstance(of, TextType | NumberType | FlagType) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """Which values are elements of which lists when a call is decided.

    Attributes:
        summaries: tokens that lists alone hold.
        taken: values and summaries that were of a summary before the call, each with that.
    """

    pairs: frozenset[Pair]
    summaries: tuple[Token, ...]
    taken: tuple[tuple[Token, Token], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Elements:
    """The lists that statements compare with values.

    Attributes:
        fields: that have them, each a tool's name and its own.
        kinds: of the atom of a list its type; domains: the atoms of its elements; full: atoms of
            full lists.
        constants: tokens of atoms with one value.
        atom_of: the atom of a token; token: that of an atom with a number.
        has: whether an atom may have so many values.
    """

    fields: frozenset[tuple[str, str]]
    kinds: Mapping[int, ListType]
    domains: Mapping[int, Sequence[int]]
    full: frozenset[int]
    constants: frozenset[Token]
    atom_of: Callable[[Token], int]
    token: Callable[[int, int], Token]
    has: Callable[[int, int], bool]

    def is_list(self, token: Token) -> bool:
        """Whether a token stands for a list."""
        return self.atom_of(token) in self.domains

    def choices(
        self,
        pairs: Collection[Pair],
        held: Collection[Token],
        new: Sequence[Token],
        values: Sequence[Token],
    ) -> Iterator[Membership]:
        """Every choice of which values are elements, where a call comes.

        Args:
            pairs: those before it.
            held: the tokens that anything but pairs held before it.
            new: its lists.  values: its other tokens.
        """
        once = dict.fromkeys(values)
        fresh = [one for one in once if one not in held and one not in self.constants]
        summaries = self.summaries(pairs, held)
        begun = Membership(pairs=frozenset(pairs), summaries=summaries)
        before = sorted([one for one in held if self.is_list(one)])
        rest = [one for one in held if one not in self.constants]  # lists are of no domain
        singles = sorted([*self.constants, *rest, *fresh])

        def brought(at: int, now: Membership) -> Iterator[Membership]:
            if at == len(fresh):
                yield from listed(0, now)
                return
            for then in self._brought(now, fresh[at], before, [*rest, *fresh[:at]]):
                yield from brought(at + 1, then)

        def listed(at: int, now: Membership) -> Iterator[Membership]:
            if at == len(new):
                yield now
                return
            for then in self._listed(now, new[at], singles):
                yield from listed(at + 1, then)

        return brought(0, begun)

    def summaries(self, pairs: Collection[Pair], held: Collection[Token]) -> tuple[Token, ...]:
        """The tokens that pairs alone hold, without constants."""
        found = {one for _, one in pairs if one not in held and one not in self.constants}
        return tuple(sorted(found))

    def _brought(
        self, now: Membership, one: Token, lists: Sequence[Token], beside: Sequence[Token]
    ) -> Iterator[Membership]:
        """Where a value may be that comes anew."""
        atom = self.atom_of(one)
        mine = [of for of in lists if atom in self.domains[self.atom_of(of)]]
        looked = [of for of in mine if self.atom_of(of) not in self.full]
        alike = [summary for summary in now.summaries if self.atom_of(summary) == atom]
        there = sum(self.atom_of(other) == atom for other in beside) + len(alike) + 1
        ways = [now] if self.has(atom, there) else []
        for summary in alike:
            pairs = now.pairs | {(of, one) for of, other in now.pairs if other == summary}
            taken = (*now.taken, (one, summary))
            both = replace(now, pairs=pairs, taken=taken)
            if self.has(atom, there) and self._have_room(both, one):
                ways.append(both)
            without = frozenset([pair for pair in pairs if pair[1] != summary])
            left = tuple([other for other in now.summaries if other != summary])
            ways.append(Membership(pairs=without, summaries=left, taken=taken))
        for way in ways:
            yield from self._added(way, [(of, one) for of in looked])

    def _added(self, now: Membership, unknown: Sequence[Pair]) -> Iterator[Membership]:
        """Every choice of some pairs, first none, as far as the lists have room."""
        yield now
        room = {many: self._kind(many).most - self._size(now, many) for many, _ in unknown}
        chosen: list[int] = []
        at = len(unknown) - 1
        while at >= 0:
            many = unknown[at][0]
            if chosen and chosen[-1] == at:
                chosen.pop()
                room[many] += 1
            elif room[many] > 0:
                chosen.append(at)
                room[many] -= 1
                yield replace(now, pairs=now.pairs.union([unknown[one] for one in chosen]))
                at = len(unknown)
            at -= 1

    def _listed(
        self, now: Membership, many: Token, singles: Sequence[Token]
    ) -> Iterator[Membership]:
        """What the elements of a new list may be."""
        atom = self.atom_of(many)
        domain = self.domains[atom]
        pairs = [(many, one) for one in singles if self.atom_of(one) in domain]
        alone = {self.atom_of(one) for one in self.constants}
        wide = [one for one in domain if one not in alone]  # that may have a summary
        for then in self._added(now, pairs):
            if atom not in self.full:
                yield then
                continue
            for whole in self._of_summaries(then, many, then.summaries, wide, singles):
                if self._kind(many).least <= 0 or self._size(whole, many):
                    yield whole

    def _of_summaries(
        self,
        now: Membership,
        many: Token,
        summaries: Sequence[Token],
        atoms: Sequence[int],
        singles: Sequence[Token],
    ) -> Iterator[Membership]:
        """Of each of these summaries none, all or some; of each atom new values, or none."""
        if summaries:
            summary, rest = summaries[0], summaries[1:]
            yield from self._of_summaries(now, many, rest, atoms, singles)
            if self.atom_of(summary) not in self.domains[self.atom_of(many)]:
                return
            if self._size(now, many) == self._kind(many).most:
                return
            whole = replace(now, pairs=now.pairs | {(many, summary)})
            yield from self._of_summaries(whole, many, rest, atoms, singles)
            part = self._summary(now, self.atom_of(summary), singles)
            if part is not None:
                mine = {(of, part) for of, other in now.pairs if other == summary} | {(many, part)}
                some = Membership(
                    pairs=now.pairs | mine,
                    summaries=(*now.summaries, part),
                    taken=(*now.taken, (part, summary)),
                )
                if self._have_room(some, part):
                    yield from self._of_summaries(some, many, rest, atoms, singles)
            return
        if not atoms:
            yield now
            return
        yield from self._of_summaries(now, many, (), atoms[1:], singles)
        part = self._summary(now, atoms[0], singles)
        if part is not None and self._size(now, many) < self._kind(many).most:
            more = replace(now, pairs=now.pairs | {(many, part)}, summaries=(*now.summaries, part))
            yield from self._of_summaries(more, many, (), atoms[1:], singles)

    def _summary(self, now: Membership, atom: int, singles: Sequence[Token]) -> Token | None:
        """A token for a summary more; None: the atom has not so many values."""
        there = {one for one in (*singles, *now.summaries) if self.atom_of(one) == atom}
        if not self.has(atom, len(there) + 1):
            return None
        taken = {*there, *[one for one, _ in now.taken], *[summary for _, summary in now.taken]}
        numbers = range(len(taken) + 1)
        return next(one for at in numbers if (one := self.token(atom, at)) not in taken)

    def _kind(self, many: Token) -> ListType:
        return self.kinds[self.atom_of(many)]

    def _have_room(self, now: Membership, one: Token) -> bool:
        """Whether each list that a token is in has no more elements than its type has."""
        mine = [many for many, other in now.pairs if other == one]
        return all(self._size(now, many) <= self._kind(many).most for many in mine)

    def _size(self, now: Membership, many: Token) -> int:
        return sum(of == many for of, _ in now.pairs)

    def kept(
        self, pairs: Collection[Pair], held: Collection[Token]
    ) -> tuple[list[Pair], list[Pair]]:
        """The pairs that may matter after a call, and summaries that are merged, each into another.

        Args:
            held: the tokens that anything but pairs holds after it.
        """
        found = [
            (many, one)
            for many, one in pairs
            if many in held
            and (one in held or one in self.constants or self.atom_of(many) in self.full)
        ]
        summaries = self.summaries(found, held)
        where: dict[Token, list[Token]] = {summary: [] for summary in summaries}
        for many, one in sorted(found):
            if one in where:
                where[one].append(many)
        first: dict[Any, Token] = {}
        joined = []
        for summary in summaries:
            like = first.setdefault((self.atom_of(summary), tuple(where[summary])), summary)
            joined += [] if like == summary else [(summary, like)]
        away = {summary for summary, _ in joined}
        looked = [pair for pair in found if pair[1] not in away]
        return looked, joined


def listed_of(
    tools: Iterable[tuple[str, Iterable[tuple[str, object]]]], full: Collection[tuple[str, str]]
) -> tuple[frozenset[tuple[str, str]], dict[ListType, bool]]:
    """The fields that are lists, and the types of these, each with whether its lists are full.

    Args:
        tools: the names of tools, each with the names of its fields and their types.
    """
    names, kinds = set[tuple[str, str]](), dict[ListType, bool]()
    for tool, fields in tools:
        for name, kind in fields:
            if isinstance(kind, ListType):  # of scalars: others are not compared
                names.add((tool, name))
                kinds[kind] = kinds.get(kind, False) or (tool, name) in full
    return frozenset(names), kinds

"""The sessions that two sides have in common, and the calls at which they part.

A *state* is a configuration and a memory of each side, and an interval for each sum.  A *move* is a
call of the left side with a token for each compared field; it leads to the next state, or the right
side refuses it.  All tokens that no memory holds are equivalent, so a move takes one that is held,
or one that is not; so only as many values of an atom are needed.

A system is *loose* if a call adds values that are also compared, and that are too many to tell
apart.  Then it admits more sessions than exist, so a session that is found counts only if it
replays (P504 if none does).
Cost: for each state its calls times the choices of tokens.
No theorem is claimed: tests/exact compares with brute force.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tcc_certs.proof.histories import CallParts, Past, Taken
from tcc_certs.proof.lists import Pair
from tcc_certs.proof.sides import chosen_values, named
from tcc_certs.proof.spoken import Attribute
from tcc_certs.session.machine import Place
from tcc_certs.values.declared import json_of, text_of
from tcc_certs.values.types import check
from tcc_runtime.exact.atoms import OpenQuestion, sort_of
from tcc_runtime.exact.compared import Choice, Compared, Kind, Span, Token, grid_value
from tcc_runtime.exact.sides import Items, Side, remembered

MAX_MOVES = 20_000  # choices of tokens for one call
MAX_ELEMENTS = 1 << 22  # choices of elements of lists, in all: 10 minutes and more


@dataclass(frozen=True, slots=True)
class State:
    """A state of both sides."""

    left: Place
    right: Place
    mine: Items
    other: Items
    sums: tuple[Span, ...]
    later: Items = frozenset()  # what statements of version 1.2 remember, of both sides


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A call of the left side.

    Attributes:
        call: of the left core; -1 of the beginning, whose tokens are what the session is given.
        tokens: of its fields.
        state: after it; None: the right side refuses it.
        escape: an argument for which it does: a name and its value.
        over: the sum that it brings above the right side's cap.
        ages: of the calls in the line before it how many spans of time they have left.
        line: of the calls in the line after it each one's place before it, -1 of the call itself.
        pairs: the lists that are remembered, and its own, with their elements as far as known.
        taken: values and summaries that were of a summary before it.
        joined: summaries that are merged after it, each into another.
    """

    call: int
    tokens: tuple[Choice, ...]
    state: State | None
    escape: tuple[str, Any] | None = None
    over: int | None = None
    ages: tuple[int, ...] = ()
    line: tuple[int, ...] = ()
    pairs: Sequence[Pair] = ()
    taken: Taken = ()
    joined: Taken = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Contents of memories: for each atom the numbers of its tokens, and tokens of lists alone."""

    tokens: Mapping[int, Sequence[int]]
    summaries: frozenset[Token]


class System(Compared):
    """Two sides, walked by the sessions of the left side.

    Attributes:
        check_time: raises `OpenQuestion` P507 when the time is over; one state may take all of it.

    Raises:
        OpenQuestion: P501, P504, P505, P506.
    """

    check_time: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__(left, right)
        self._every = frozenset(range(len(left.core.monitors)))
        self._right_calls = {
            named(right.core.tools[call.tool], call.values): number
            for number, call in enumerate(right.core.calls)
        }
        self._paired: dict[tuple[int, tuple[Choice, ...]], int | None] = {}
        self._tried = 0  # choices of elements

    def starts(self) -> Iterator[tuple[Move | None, State]]:
        """The states before the first call, one for each choice of what a session is given."""
        start = State(
            self.left.walk.start,
            self.right.walk.start,
            frozenset(),
            frozenset(),
            tuple([(0, 0)] * len(self.sums)),
        )
        if not self.histories.attributes:
            yield None, start
            return
        places = [self.histories.attributes.index(Attribute(name=one.name)) for one in self.given]
        domains = [self._domain(one.type) for one in self.given]
        for tokens in self._chosen(domains, [one.optional for one in self.given], {}):
            pairs = zip(places, tokens, strict=True)
            past = self.histories.begun({at: token for at, token in pairs if token is not None})
            made = replace(start, later=self._items(past))
            yield Move(call=-1, tokens=tokens, state=made), made

    def _items(self, past: Past) -> Items:
        """What statements of version 1.2 remember, as a memory."""
        size = self.histories.size
        flat = self.histories.flat(past)
        return frozenset([((slot * size + group, key), value) for group, slot, key, value in flat])

    def moves(self, state: State) -> Iterator[Move]:
        """Every call of the left side that may come next, with every choice of tokens.

        Raises:
            OpenQuestion: P503 a call has too many choices, after all other calls; P507.
        """
        held, open_ = self._held(state), list[OpenQuestion]()
        for past in self._pasts(state):
            for call in self.left.walk.calls(state.left):
                after = self.left.walk.step(state.left, call)
                if after is None:
                    continue
                try:
                    yield from self._calls(state, past, call, after, held)
                except OpenQuestion as many:
                    if many.code != "P503":
                        raise
                    open_.append(many)
        if open_:
            raise open_[0]

    def _past(self, state: State) -> Past:
        """What statements of version 1.2 remember."""
        groups = self.histories.size
        return self.histories.whole(
            [(at % groups, at // groups, key, value) for (at, key), value in state.later]
        )

    def _pasts(self, state: State) -> Iterator[Past | None]:
        """The same, for each way in which time may have gone on; None without such statements."""
        if self.histories.empty:
            return iter([None])
        return (past for _, past in self.histories.advances(self._past(state)))

    def ends(self, state: State, side: int) -> bool:
        """Whether a side may finish at a state."""
        of, place = ((self.left, state.left), (self.right, state.right))[side]
        if not of.walk.accepts(place) or self.histories.empty:
            return of.walk.accepts(place)
        return not self.histories.owes(self._past(state), self._every, side)

    def _held(self, state: State) -> Held:
        """The tokens that memories hold, and those that stand for summaries."""
        size, at = self.histories.size, self.histories.lists
        later = frozenset([item for item in state.later if item[0][0] % size != at])
        held = list(held_tokens([state.mine, state.other, later]))
        found: dict[int, list[int]] = {}
        for atom, number in sorted(held):
            found.setdefault(atom, []).append(number)
        pairs: list[Any] = [key for (_, key), _ in state.later - later]
        return Held(tokens=found, summaries=frozenset(self.elements.summaries(pairs, held)))

    def _calls(
        self,
        state: State,
        past: Past | None,
        call: int,
        after: Place,
        held: Held,
    ) -> Iterator[Move]:
        made = self.left.core.calls[call]
        kind = self.kinds[made.tool]
        tried = 0
        for tokens in self._choices(kind, held):
            self.check_time()
            move = self._move(state, call, after, kind, tokens)
            if move is None:
                tried += 1
            for later in () if move is None else self._laters(move, past, kind, held):
                tried += 1
                if later is not None:
                    yield later
            if tried > MAX_MOVES:
                raise OpenQuestion("P503", f"too many choices of values for {made.text}")

    def _laters(
        self, move: Move, past: Past | None, kind: Kind, held: Held
    ) -> Iterator[Move | None]:
        """A move, as statements of version 1.2 have it, for each choice of elements of lists.

        None: those of the left refuse it.
        """
        if past is None:
            yield move
            return
        made = self._parts(move, kind)
        live = {(atom, number) for atom, numbers in held.tokens.items() for number in numbers}
        for number, (one, taken) in enumerate(self.histories.listed(past, made, live)):
            self._tried += number > 0
            if number > MAX_MOVES or self._tried > MAX_ELEMENTS:
                raise OpenQuestion("P503", f"too many choices of elements for {made.tool}")
            self.check_time()
            yield self._later(move, one, made, taken)

    def _parts(self, move: Move, kind: Kind) -> CallParts:
        """A call, as statements of version 1.2 see it."""
        call = self.left.core.calls[move.call]
        params = kind.tool.parameters
        parts: list[tuple[str, Any]] = [
            (param.name, param.values[index])
            for param, index in zip(params, call.values, strict=True)
            if param.values[index]
        ]
        tokens = zip(kind.fields, move.tokens, strict=True)
        parts += [(name, token) for name, token in tokens if token is not None]
        answers = kind.told.union([param.name for param in params if param.observed])
        return CallParts(tool=kind.tool.name, parts=tuple(parts), answers=answers)

    def _later(self, move: Move, past: Past, made: CallParts, taken: Taken) -> Move | None:
        """A move, as statements of version 1.2 have it; None: those of the left refuse it."""
        histories = self.histories
        if histories.refused(past, made, self._every, 0):
            return None
        pairs = histories.pairs(past)
        told = replace(move, ages=histories.ages(past), pairs=pairs, taken=taken)
        if move.state is None or histories.refused(past, made, self._every, 1):
            return replace(told, state=None)
        held = held_tokens([move.state.mine, move.state.other])
        after, joined = histories.joined(histories.after(past, made), held)
        state = replace(move.state, later=self._items(after))
        return replace(told, state=state, line=histories.sources(past, made), joined=joined)

    def _choices(self, kind: Kind, held: Held) -> Iterator[tuple[Choice, ...]]:
        """Every choice of tokens for a call."""
        return self._chosen(kind.domains, kind.optional, held.tokens, held.summaries)

    def _chosen(
        self,
        domains: Sequence[Sequence[int]],
        optional: Sequence[bool],
        held: Mapping[int, Sequence[int]],
        summaries: Collection[Token] = (),
    ) -> Iterator[tuple[Choice, ...]]:
        """Every choice of tokens: those that are held, one that is not; one field after another.

        Args:
            summaries: the tokens of no value.
        """
        chosen: list[Choice] = []
        used = {atom: list(numbers) for atom, numbers in held.items()}

        def choose(at: int) -> Iterator[tuple[Choice, ...]]:
            if at == len(domains):
                yield tuple(chosen)
                return
            if optional[at]:
                chosen.append(None)
                yield from choose(at + 1)
                chosen.pop()
            for atom in domains[at]:
                there = used.setdefault(atom, [])
                numbers = range(len(there) + len(summaries) + 1)
                fresh = next(i for i in numbers if i not in there and (atom, i) not in summaries)
                options = [] if atom in self.elements.domains else list(there)
                if self.atoms[atom].value(len(there)) is not None:
                    options.append(fresh)
                for number in options:
                    new = number not in there
                    if new:
                        there.append(number)
                    chosen.append((atom, number))
                    yield from choose(at + 1)
                    chosen.pop()
                    if new:
                        there.remove(number)

        return choose(0)

    def _move(
        self, state: State, call: int, after: Place, kind: Kind, tokens: tuple[Choice, ...]
    ) -> Move | None:
        made = self.left.core.calls[call]
        opened = {
            name: token
            for name, token in zip(kind.fields, tokens, strict=True)
            if token is not None
        }
        chosen = chosen_values(kind.tool, made.values)
        seen = self.left.monitors.see(made.tool, chosen, opened, {})
        mine = remembered(seen, state.mine, made.values)
        if mine is None:
            return None
        sums = list(state.sums)
        escape, over, dead = kind.escape, None, False
        for number, field, name in kind.sums:
            of = self.sums[number]
            token = None if field is None else tokens[field]
            added = self._added(of, token, field is not None)
            low, high = sums[number]
            if field is None and of.odd is not None and _fits(low + of.odd, of.caps[0]):
                escape = (name, grid_value(of.odd, of.places))
            if added is None:
                if not _fits(low + of.range[0], of.caps[0]):
                    return None
                dead = True
                continue
            least, most = low + added[0], high + added[1]
            if not _fits(least, of.caps[0]):
                if escape is None or escape[0] != name or of.odd is None:
                    return None
                if not _fits(low + of.odd, of.caps[0]):
                    return None
                dead = True
                continue
            most = _cut(least, most, of.caps[0], of.step)
            if not _fits(most, of.caps[1]):
                over = number
            if not _fits(least, of.caps[1]):
                dead = True
            else:
                most = _cut(least, most, of.caps[1], of.step)
            sums[number] = least, most
        if kind.refused or dead:
            return Move(call=call, tokens=tokens, state=None, escape=escape, over=over)
        right = self._right(state, call, kind, tokens)
        if right is None or escape is not None or over is not None:
            return Move(call=call, tokens=tokens, state=None, escape=escape, over=over)
        return Move(
            call=call,
            tokens=tokens,
            state=State(after, right[0], mine, right[1], tuple(sums)),
        )

    def _right(
        self, state: State, call: int, kind: Kind, tokens: tuple[Choice, ...]
    ) -> tuple[Place, Items] | None:
        """Where the right side is after a call; None: it refuses it."""
        number = self.right.tools.get(kind.tool.name)
        if number is None:
            return None
        tool = self.right.core.tools[number]
        theirs = self.pair(call, kind, tokens)
        if theirs is None:
            return None
        place = self.right.walk.step(state.right, theirs)
        if place is None:
            return None
        made = self.left.core.calls[call]
        given = dict(zip(kind.fields, tokens, strict=True))
        consts = {
            p.name: p.values[i] for p, i in zip(kind.tool.parameters, made.values, strict=True)
        }
        opened: dict[str, Any] = {}
        for one in tool.opened:
            if one.name in given:
                token = given[one.name]
                if token is None:
                    if not one.optional:
                        return None
                    continue
                if not self._is_of(token, one.type):
                    return None
                opened[one.name] = token
            elif one.name in consts:
                text = consts[one.name]
                if not text:
                    if not one.optional:
                        return None
                    continue
                value = json_of(text)
                if check(one.type, value) is not None:
                    return None
                opened[one.name] = self._constant_token.get((sort_of(one.type), text), (-1, 0))
        values = self.right.core.calls[theirs].values
        seen = self.right.monitors.see(number, chosen_values(tool, values), opened, {})
        other = remembered(seen, state.other, values)
        return None if other is None else (place, other)

    def pair(self, call: int, kind: Kind, tokens: tuple[Choice, ...]) -> int | None:
        """The right side's call for a call of the left; None if it has none."""
        key = call, tokens
        if key in self._paired:
            return self._paired[key]
        made = self.left.core.calls[call]
        number = self.right.tools[kind.tool.name]
        tool = self.right.core.tools[number]
        listed = {p.name for p in tool.parameters}
        opened = {p.name for p in tool.opened}
        args: dict[str, str] = {}
        fine = True
        for param, index in zip(kind.tool.parameters, made.values, strict=True):
            text = param.values[index]
            if text and param.name in listed:
                args[param.name] = text
            elif text and param.name not in opened:
                fine = False
        for name, token in zip(kind.fields, tokens, strict=True):
            if token is None or name in kind.told:
                continue
            if name in listed:
                only = self.atoms[token[0]].only
                text_or = None if only is None else text_of(only)
                if text_or is None:
                    fine = False
                else:
                    args[name] = text_or
            elif name not in opened:
                fine = False
        found = self._right_calls.get((tool.name, frozenset(args.items()))) if fine else None
        self._paired[key] = found
        return found


def _fits(total: int, cap: int | None) -> bool:
    return cap is None or total <= cap


def _cut(least: int, most: int, cap: int | None, step: int) -> int:
    """The greatest sum of a grid from `least` on, at most `most` and the cap."""
    end = most if cap is None else min(most, cap)
    return least + (end - least) // step * step


def held_tokens(memories: Sequence[Items]) -> Mapping[Token, None]:
    """The tokens that memories hold."""
    found: dict[Token, None] = {}
    for memory in memories:
        for (_, key), _ in memory:
            for part in key:
                if isinstance(part, tuple):
                    found[part] = None
    return found

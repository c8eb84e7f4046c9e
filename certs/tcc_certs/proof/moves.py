"""What has to be tried at a state of a question, and where it leads.

Normative text: docs/spec/proof.md, section 1.  Nothing of a proof narrows it.
Cost: a look-up or two for each monitor that names the call's tool; one copy of what is remembered.
Choices of tokens hang on the tokens that are held, and are made once for all states that hold the
same; what monitors remember is looked up in one dict a side, made once for a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.proof.atoms import sort_of
from tcc_certs.proof.compared import OTHER, Choice, Fact, Kind, Move, Part, State, Sums, held_tokens
from tcc_certs.proof.histories import CallParts, Past
from tcc_certs.proof.parts import KeyParts, Watched, known_keys, marked, marks, of_key
from tcc_certs.proof.sides import Side, chosen_values, named
from tcc_certs.proof.spoken import Attribute
from tcc_certs.proof.sums import cut, fits, odd_fits
from tcc_certs.session.machine import Place
from tcc_certs.session.monitors.keyed import Counts, Seen, Values
from tcc_certs.values.declared import json_of
from tcc_certs.values.types import check as of_type

MAX_CHOICES = 20_000  # choices of tokens for one call
MAX_TRIED = 1 << 26  # choices, in all
ELEMENTS = 8  # a choice of elements takes as long as so many choices of tokens
FACTS = 64  # of a state take as long as one choice
MAX_NEXT = 1 << 20  # calls that places go on with, which are kept
MAX_LOOKS = 1 << 16  # calls and ways to see them that are kept, and choices of tokens
LATER = 2  # from this side of a fact on it is one of statements of version 1.2
NOT_WALKED: Place = ((), ())

# What each rule sees of a call of the left and of the right's, which has that number; why the right
# refuses it anyway; whether it is asked if the right's monitors allow it.
_Looks: TypeAlias = "tuple[Watched, Watched, int, str, bool]"
_Tries: TypeAlias = "Sequence[tuple[tuple[Choice, ...], _Looks]]"


class System(KeyParts):
    """Two sides, the atoms of their values, and what has to be tried at a state."""

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__(left, right)
        self._right_calls: Mapping[tuple[str, frozenset[tuple[str, str | None]]], int] = {
            named(right.core.tools[call.tool], call.values): number
            for number, call in enumerate(right.core.calls)
        }
        self._tried = 0
        self._looks: dict[tuple[Part, int, tuple[Choice, ...]], _Looks] = {}
        self._tries: dict[tuple[Part, int, tuple[int, ...], tuple[int, ...]], _Tries] = {}
        self._tries_size = 0
        self._nexts: tuple[dict[Place, dict[int, Place]], ...] = ({}, {})
        self._next_size = 0
        self._named: dict[Part, list[tuple[int, Place]]] = {}
        self._mades: dict[tuple[int, tuple[Choice, ...]], CallParts] = {}

    def starts(self, part: Part) -> list[State]:
        """Before the first call, for each choice of what a session is given."""
        right = self.right.start if part.plans else NOT_WALKED
        left = self.left.start if part.walked else NOT_WALKED
        sums = tuple([(0, 0)] * len(self.sums)) if part.plans else ()
        places = [self.histories.attributes.index(Attribute(name=one.name)) for one in self.given]
        domains = [self._domain(one.type) for one in self.given]
        found: list[State] = []
        for chosen in self._chosen(part, domains, [one.optional for one in self.given], ()):
            ensure(len(found) < MAX_CHOICES, Code.LIMIT, "choices", f"{MAX_CHOICES}", "more")
            pairs = zip(places, chosen, strict=True)
            past = self.histories.begun({at: token for at, token in pairs if token is not None})
            found.append((left, right, self._facts(past), sums))
        return found

    def _facts(self, past: Past) -> tuple[Fact, ...]:
        """What statements of version 1.2 remember, as facts."""
        now = self.histories.flat(past)
        return tuple(sorted([(LATER + group, *fact) for group, *fact in now]))  # type: ignore[misc]

    @property
    def lists(self) -> bool:
        """Whether statements compare lists with values."""
        return bool(self._elements.fields)

    # What has to be tried.

    def moves(self, part: Part, state: State) -> Iterator[Move]:
        """Every call of the left that may come next, by increasing calls, with every choice.

        A token that is held may come again; all that are not are alike, so the least of each atom
        stands for them, where the atom has so many values (Closed.v: every_choice_is_tried).
        """
        facts = state[2]
        held, summaries = (part.tracked or ()), tuple[int, ...]()
        if part.tracked is None:
            held, summaries = self._held(facts)
        counts: tuple[Counts, Counts] = {}, {}
        for side, slot, key, count in facts:
            if side < LATER:
                counts[side][slot, key] = count
        weight = 1 + len(facts) // FACTS  # ends of a file may hold any
        going = self._going(0, state[0]).items() if part.walked else self._naming(part)
        onwards = self._going(1, state[1]) if part.plans else {}
        for sure, past in self._pasts(part, state):
            self._tried += weight if past else 0
            ensure(self._tried <= MAX_TRIED, Code.LIMIT, "choices", f"{MAX_TRIED}", "more")
            for call, after in going:
                kind = self.kinds[self.left.core.calls[call].tool]
                tries = self._tries.get((part, call, held, summaries))
                if tries is None:
                    tries = self._choices_of(part, call, kind, held, summaries)
                self._tried += weight * len(tries)
                ensure(self._tried <= MAX_TRIED, Code.LIMIT, "choices", f"{MAX_TRIED}", "more")
                for tokens, look in tries:
                    for one in self._elements_chosen(past, held, call, kind, tokens, weight):
                        move = self._move(
                            part, state, one, counts, call, after, kind, tokens, look, onwards
                        )
                        if move is not None:
                            move.sure = sure
                            yield move

    def _elements_chosen(
        self,
        past: Past,
        held: Sequence[int],
        call: int,
        kind: Kind,
        tokens: tuple[Choice, ...],
        weight: int,
    ) -> Iterator[Past]:
        """What is remembered, for each choice of which values are elements of which lists."""
        if not self.lists:
            yield past
            return
        made = self._made(call, kind, tokens)
        weight = ELEMENTS * (weight + len(self._elements.constants) // FACTS)
        for number, (one, _) in enumerate(self.histories.listed(past, made, held)):
            self._tried += weight
            ensure(self._tried <= MAX_TRIED, Code.LIMIT, "choices", f"{MAX_TRIED}", "more")
            ensure(number < MAX_CHOICES, Code.LIMIT, "choices", f"{MAX_CHOICES}", "more")
            yield one

    def _held(self, facts: Sequence[Fact]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The tokens that facts hold, and those that stand for summaries."""
        if not self.lists:
            return tuple(held_tokens(facts)), ()
        at = LATER + self.histories.lists
        held = tuple(held_tokens([fact for fact in facts if fact[0] != at]))
        pairs = [fact[2] for fact in facts if fact[0] == at]
        return held, self._elements.summaries(pairs, held)

    def _pasts(self, part: Part, state: State) -> Iterator[tuple[bool, Past]]:
        """What statements of version 1.2 remember, for each way in which time may have gone on.

        Beside each whether it may go on so whatever the session was: not at all, or beyond all
        spans.
        """
        if self.histories.empty:
            return iter([(True, ())])
        return self.histories.advances(self.past(state))

    def past(self, state: State) -> Past:
        """What statements of version 1.2 remember at a state."""
        found = [fact for fact in state[2] if fact[0] >= LATER]
        return self.histories.whole([(fact[0] - LATER, *fact[1:]) for fact in found])

    def ends(self, part: Part, state: State, side: int) -> bool:
        """Whether a side may finish at a state."""
        of, place = ((self.left, state[0]), (self.right, state[1]))[side]
        return of.accepts(place) and not self.histories.owes(self.past(state), part.uses, side)

    def _going(self, side: int, place: Place) -> dict[int, Place]:
        """The calls that plans of a side go on with, and where they lead."""
        kept = self._nexts[side]
        found = kept.get(place)
        if found is None:
            found = (self.left, self.right)[side].steps(place)
            self._next_size += 1 + len(found)
            if self._next_size > MAX_NEXT:
                for one in self._nexts:
                    one.clear()
                self._next_size = 1 + len(found)
            kept[place] = found
        return found

    def _naming(self, part: Part) -> list[tuple[int, Place]]:
        """The calls of tools that a monitor of the part names: no other changes what is kept.

        Parts.v: calls_that_none_names_need_no_step.
        """
        found = self._named.get(part)
        if found is None:
            sides = ((self.left, part.uses), (self.right, {part.rule}))
            names = {
                side.core.tools[tool].name
                for side, chosen in sides
                for number, tools in enumerate(side.monitored)
                if number in chosen
                for tool in tools
            }
            core = self.left.core
            found = self._named[part] = [
                (number, NOT_WALKED)
                for number, call in enumerate(core.calls)
                if core.tools[call.tool].name in names
            ]
        return found

    def _choices_of(
        self, part: Part, call: int, kind: Kind, held: tuple[int, ...], summaries: tuple[int, ...]
    ) -> _Tries:
        """Every choice of tokens for a call where some are held, and how both sides see it."""
        found: list[tuple[tuple[Choice, ...], _Looks]] = []
        for number, tokens in enumerate(self._choices(part, kind, held, summaries)):
            ensure(number < MAX_CHOICES, Code.LIMIT, "choices", f"{MAX_CHOICES}", "more")
            key = part, call, tokens
            look = self._looks.get(key)
            if look is None:
                if len(self._looks) > MAX_LOOKS:
                    self._looks.clear()
                look = self._looks[key] = self._look(part, call, kind, tokens)
            found.append((tokens, look))
        self._tries_size += 1 + len(held) + len(found)
        if self._tries_size > MAX_LOOKS:
            self._tries.clear()
            self._tries_size = 1 + len(held) + len(found)
        self._tries[part, call, held, summaries] = found
        return found

    def _choices(
        self, part: Part, kind: Kind, held: Sequence[int], summaries: Sequence[int]
    ) -> Iterator[tuple[Choice, ...]]:
        return self._chosen(part, kind.domains, kind.optional, held, summaries)

    def _chosen(
        self,
        part: Part,
        domains: Sequence[Sequence[int]],
        optional: Sequence[bool],
        held: Sequence[int],
        summaries: Sequence[int] = (),
    ) -> Iterator[tuple[Choice, ...]]:
        """Every choice of tokens for fields with these atoms; summaries are of no one value."""
        atoms = len(self.atoms)
        used: dict[int, list[int]] = {}
        for one in held:
            used.setdefault(one % atoms, []).append(one)
        chosen: list[Choice] = []

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
                for token in list(there) if atom not in self._elements.domains else ():
                    chosen.append(token)
                    yield from choose(at + 1)
                    chosen.pop()
                most = self.atoms[atom].most
                if most is not None and most <= len(there):
                    continue
                if part.tracked is not None:
                    chosen.append(OTHER - 1 - atom)
                    yield from choose(at + 1)
                    chosen.pop()
                    continue
                beyond = atom + atoms * (len(there) + len(summaries)) + 1
                fresh = next(
                    t for t in range(atom, beyond, atoms) if t not in there and t not in summaries
                )
                there.append(fresh)
                chosen.append(fresh)
                yield from choose(at + 1)
                chosen.pop()
                there.remove(fresh)

        return choose(0)

    def _move(
        self,
        part: Part,
        state: State,
        past: Past,
        counts: tuple[Counts, Counts],
        call: int,
        after: Place,
        kind: Kind,
        tokens: tuple[Choice, ...],
        look: _Looks,
        onwards: Mapping[int, Place],
    ) -> Move | None:
        mine, theirs, pair, why, asked = look
        left = marks(mine, counts[0])
        if left is None:
            return None
        later = None if not past else self._made(call, kind, tokens)
        if later is not None and self.histories.refused(past, later, part.uses, 0):
            return None
        sums = state[3]
        if part.plans:
            summed = self._summed(state[3], kind, tokens)
            if summed is None:
                return None
            sums, over = summed
            if why or over:
                return Move(call, tokens, None, why or over)
        right = marks(theirs, counts[1], asked=asked)
        if right is None or (
            later is not None and self.histories.refused(past, later, part.uses, 1)
        ):
            return Move(call, tokens, None, "a monitor of the other side")
        place = NOT_WALKED
        if part.plans:
            stepped = onwards.get(pair)
            if stepped is None:  # of a question's statement steps are not listed
                stepped = self.right.step(state[1], pair)
            if stepped is None:
                return Move(call, tokens, None, "the other side's plans or statements")
            place = stepped
        facts = marked(state[2], left, right) if left or right else state[2]
        if later is not None:
            kept = [fact for fact in facts if fact[0] < LATER]
            then, _ = self.histories.joined(self.histories.after(past, later), held_tokens(kept))
            facts = (*kept, *self._facts(then))
        return Move(call, tokens, (after, place, facts, sums), "")

    def _made(self, call: int, kind: Kind, tokens: tuple[Choice, ...]) -> CallParts:
        """A call, as statements of version 1.2 see it."""
        key = call, tokens
        found = self._mades.get(key)
        if found is None:
            values = self.left.core.calls[call].values
            params = kind.tool.parameters
            parts: list[tuple[str, Any]] = [
                (param.name, param.values[index])
                for param, index in zip(params, values, strict=True)
                if param.values[index]
            ]
            parts += [
                (name, token)
                for name, token in zip(kind.fields, tokens, strict=True)
                if token is not None
            ]
            if len(self._mades) > MAX_LOOKS:
                self._mades.clear()
            found = self._mades[key] = CallParts(
                tool=kind.tool.name,
                parts=tuple(parts),
                answers=kind.told.union([param.name for param in params if param.observed]),
            )
        return found

    def _summed(
        self, sums: Sums, kind: Kind, tokens: tuple[Choice, ...]
    ) -> tuple[Sums, str] | None:
        """The intervals after a call, and why the right may refuse; None: the left does.

        Each sum by itself: Intervals.v: sums_stay_inside, less_fits_where_more_does.
        """
        if not kind.sums:
            return sums, ""
        found, over = list(sums), ""
        for number, place in kind.sums:
            of = self.sums[number]
            low, high = found[number]
            least, span = of.left_least, of.span
            if place is not None:
                span = self.worth(of, tokens[place])
                least = span[0]
            elif of.odd is not None and odd_fits(low + of.odd[0], of.caps[0], of.odd[1]):
                over = "a value that the other side has not"
            if not fits(low + least, of.caps[0]):
                return None
            if span is None:
                over = "no value that both sides have"
                continue
            most = cut(high + span[1], of.caps[0], of.grid)
            if not fits(most, of.caps[1]):
                over = over or "a sum of the other side"
            found[number] = low + span[0], most
        return tuple(found), over

    def _look(self, part: Part, call: int, kind: Kind, tokens: tuple[Choice, ...]) -> _Looks:
        """How the monitors of both sides see a call; the right's call; why it refuses it anyway."""
        made = self.left.core.calls[call]
        given = dict(zip(kind.fields, tokens, strict=True))
        opened = {name: max(token, OTHER) for name, token in given.items() if token is not None}
        seen = self.left.monitors.see(made.tool, chosen_values(kind.tool, made.values), opened, {})
        mine = [(one, made.values) for one in map(known_keys, seen) if one.rule.number in part.uses]
        left = tuple([one for one, _ in mine])
        found = self._theirs(part, call, kind, given)
        if isinstance(found, str):
            return _with(left, made.values), (), 0, found, True
        pair, theirs = found
        values = self.right.core.calls[pair].values
        number = self.right.core.calls[pair].tool
        tool = self.right.core.tools[number]
        seen = self.right.monitors.see(number, chosen_values(tool, values), theirs, {})
        right = tuple(
            [
                one if part.rule is None else of_key(one, part.key)
                for one in map(known_keys, seen)
                if part.tracked is None or one.rule.number == part.rule
            ]
        )
        asked = part.call is None or (
            part.call[0] == made.tool
            and all(name not in given or given[name] == token for name, token in part.call[1])
        )
        return _with(left, made.values), _with(right, values), pair, kind.refused, asked

    def _theirs(
        self, part: Part, call: int, kind: Kind, given: Mapping[str, Choice]
    ) -> tuple[int, dict[str, object]] | str:
        """The right's call for one of the left and its open values; or why it has none."""
        number = self.right.tools.get(kind.tool.name)
        if number is None:
            return "the other side has no such tool"
        tool = self.right.core.tools[number]
        listed = {p.name for p in tool.parameters}
        types = {p.name: p for p in tool.opened}
        made = self.left.core.calls[call]
        texts: dict[str, str | None] = {}  # None: it is none of the values that are listed
        opened: dict[str, object] = {}
        for param, index in zip(kind.tool.parameters, made.values, strict=True):
            text = param.values[index]
            if not text:
                continue
            if param.name in listed:
                texts[param.name] = text
            elif (
                param.name not in types
                or of_type(types[param.name].type, json_of(text)) is not None
            ):
                return f"{param.name} is of another type"
            else:
                of = self._tokens.get((sort_of(types[param.name].type), text))
                tracked = part.tracked is None or of in part.tracked
                opened[param.name] = of if of is not None and tracked else OTHER
        for name, token in given.items():
            if token is None or name in kind.told:
                continue
            at = token % len(self.atoms) if token >= 0 else OTHER - 1 - token
            atom = self.atoms[at]
            if name in listed:
                texts[name] = atom.only
            elif name not in types or not self._holds(atom, types[name].type):
                return f"{name} is of another type"
            else:
                opened[name] = max(token, OTHER)
        if any(not p.optional and p.name not in opened for p in tool.opened if p.name in given):
            return "a parameter is left out"
        for param in kind.tool.parameters:
            their = types.get(param.name)
            if their is not None and not their.optional and param.name not in opened:
                return f"{param.name} is left out"
        pair = self._right_calls.get((tool.name, frozenset(texts.items())))
        return "the other side has no such call" if pair is None else (pair, opened)


def _with(seen: Sequence[Seen], values: Values) -> Watched:
    return tuple([(one, values) for one in seen])

"""What has to be tried at a state of a question, and where it leads.

Normative text: docs/spec/proof.md, section 1.  Nothing of a proof narrows it.
Cost: a look-up or two for each monitor that names the call's tool; one copy of what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tcc_certs.errors import Code, ensure
from tcc_certs.proof.atoms import sort_of
from tcc_certs.proof.compared import (
    OTHER,
    Choice,
    Fact,
    Key,
    Kind,
    Move,
    Part,
    State,
    Sums,
    chosen_values,
    held_tokens,
    named,
)
from tcc_certs.proof.histories import CallParts, Past
from tcc_certs.proof.parts import KeyParts
from tcc_certs.proof.sides import Side
from tcc_certs.session.machine import Place
from tcc_certs.session.monitors import Seen, Values
from tcc_certs.values.declared import json_of
from tcc_certs.values.types import check as of_type

MAX_CHOICES = 20_000  # choices of tokens for one call
MAX_TRIED = 1 << 26  # choices, in all
FACTS = 64  # of a state take as long as one choice
MAX_NEXT = 1 << 20  # calls that places go on with, which are kept
LATER = 2  # from this side of a fact on it is one of statements of version 1.2
NOT_WALKED: Place = ((), ())


_Looks: TypeAlias = "tuple[Any, Any, int, str, bool]"


class System(KeyParts):
    """Two sides, the atoms of their values, and what has to be tried at a state."""

    def __init__(self, left: Side, right: Side) -> None:
        super().__init__(left, right)
        self._right_calls = {
            named(right.core.tools[call.tool], call.values): number
            for number, call in enumerate(right.core.calls)
        }
        self._tried = 0
        self._looks: dict[tuple[Part, int, tuple[Choice, ...]], _Looks] = {}
        self._nexts: dict[Place, list[tuple[int, Place]]] = {}
        self._next_size = 0
        self._named: dict[Part, list[tuple[int, Place]]] = {}
        self._mades: dict[tuple[int, tuple[Choice, ...]], CallParts] = {}

    def start(self, part: Part) -> State:
        """Before the first call."""
        right = self.right.start if part.plans else NOT_WALKED
        left = self.left.start if part.walked else NOT_WALKED
        return left, right, (), tuple([(0, 0)] * len(self.sums)) if part.plans else ()

    # What has to be tried.

    def moves(self, part: Part, state: State) -> Iterator[Move]:
        """Every call of the left that may come next, by increasing calls, with every choice.

        A token that is held may come again; all that are not are alike, so the least of each atom
        stands for them, where the atom has so many values (Closed.v: every_choice_is_tried).
        """
        held: dict[int, list[int]] = {}
        atoms = len(self.atoms)
        for token in part.tracked if part.tracked is not None else held_tokens(state[2]):
            held.setdefault(token % atoms, []).append(token)
        counts = {fact[:3]: fact[3] for fact in state[2] if fact[0] < LATER}
        weight = 1 + len(state[2]) // FACTS  # ends of a file may hold any
        going = self._going(state[0]) if part.walked else self._naming(part)
        for sure, past in self._pasts(part, state):
            self._tried += weight if past else 0
            ensure(self._tried <= MAX_TRIED, Code.LIMIT, "choices", f"{MAX_TRIED}", "more")
            for call, after in going:
                kind = self.kinds[self.left.core.calls[call].tool]
                for number, tokens in enumerate(self._choices(part, kind, held)):
                    ensure(number < MAX_CHOICES, Code.LIMIT, "choices", f"{MAX_CHOICES}", "more")
                    self._tried += weight
                    ensure(self._tried <= MAX_TRIED, Code.LIMIT, "choices", f"{MAX_TRIED}", "more")
                    move = self._move(part, state, past, counts, call, after, kind, tokens)
                    if move is not None:
                        move.sure = sure
                        yield move

    def _pasts(self, part: Part, state: State) -> Iterator[tuple[bool, Past]]:
        """What statements of version 1.2 remember, for each way in which time may have gone on.

        Beside each whether it may go on so whatever the session was: not at all, or beyond all
        spans.
        """
        if part.tracked is not None or self.histories.empty:
            return iter([(True, ())])
        return self.histories.advances(self.past(state))

    def past(self, state: State) -> Past:
        """What statements of version 1.2 remember at a state."""
        found = [fact for fact in state[2] if fact[0] >= LATER]
        return self.histories.whole([(fact[0] - LATER, *fact[1:]) for fact in found])

    def ends(self, part: Part, state: State, side: int) -> bool:
        """Whether a side may finish at a state."""
        of, place = ((self.left, state[0]), (self.right, state[1]))[side]
        if not of.accepts(place):
            return False
        if part.tracked is not None or self.histories.empty:
            return True
        return not self.histories.owes(self.past(state), part.uses, side)

    def _going(self, place: Place) -> list[tuple[int, Place]]:
        """The calls that plans of the left go on with, and where they lead."""
        found = self._nexts.get(place)
        if found is None:
            steps = [(call, self.left.step(place, call)) for call in self.left.calls(place)]
            found = [(call, after) for call, after in steps if after is not None]
            self._next_size += 1 + len(found)
            if self._next_size > MAX_NEXT:
                self._nexts.clear()
                self._next_size = 1 + len(found)
            self._nexts[place] = found
        return found

    def _naming(self, part: Part) -> list[tuple[int, Place]]:
        """The calls of tools that a monitor of the part names: no other changes what is kept."""
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

    def _choices(
        self, part: Part, kind: Kind, held: Mapping[int, Sequence[int]]
    ) -> Iterator[tuple[Choice, ...]]:
        if not kind.fields:
            return iter(((),))
        atoms = len(self.atoms)
        used = {atom: list(tokens) for atom, tokens in held.items()}
        chosen: list[Choice] = []

        def choose(at: int) -> Iterator[tuple[Choice, ...]]:
            if at == len(kind.fields):
                yield tuple(chosen)
                return
            if kind.optional[at]:
                chosen.append(None)
                yield from choose(at + 1)
                chosen.pop()
            for atom in kind.domains[at]:
                there = used.setdefault(atom, [])
                for token in list(there):
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
                fresh = next(
                    t for t in range(atom, atom + atoms * len(there) + 1, atoms) if t not in there
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
        counts: Mapping[Any, int],
        call: int,
        after: Place,
        kind: Kind,
        tokens: tuple[Choice, ...],
    ) -> Move | None:
        key = part, call, tokens
        look = self._looks.get(key)
        if look is None:
            if len(self._looks) > 1 << 16:
                self._looks.clear()
            look = self._looks[key] = self._look(part, call, kind, tokens)
        mine, theirs, pair, why, asked = look
        left = _after(mine, counts, 0)
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
        right = _after(theirs, counts, 1, asked=asked)
        if right is None or (
            later is not None and self.histories.refused(past, later, part.uses, 1)
        ):
            return Move(call, tokens, None, "a monitor of the other side")
        place = NOT_WALKED
        if part.plans:
            stepped = self.right.step(state[1], pair)
            if stepped is None:
                return Move(call, tokens, None, "the other side's plans or statements")
            place = stepped
        facts = state[2]
        if left or right:
            made = dict(counts)
            for fact, value in (*left, *right):
                if value:
                    made[fact] = value
                else:
                    made.pop(fact, None)
            facts = tuple(sorted([(*fact, value) for fact, value in made.items()]))
        if later is not None:
            now = self.histories.flat(self.histories.after(past, later))
            kept: list[Fact] = [fact for fact in facts if fact[0] < LATER]
            facts = tuple(sorted([*kept, *[(LATER + group, *fact) for group, *fact in now]]))  # type: ignore[list-item]
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
            if len(self._mades) > 1 << 16:
                self._mades.clear()
            found = self._mades[key] = CallParts(
                tool=kind.tool.name,
                parts=tuple(parts),
                answers=frozenset([param.name for param in params if param.observed]),
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
            elif of.odd is not None and _odd_fits(low + of.odd[0], of.caps[0], of.odd[1]):
                over = "a value that the other side has not"
            if not _fits(low + least, of.caps[0]):
                return None
            if span is None or not _fits(low + span[0], of.caps[0]):
                if not over:
                    return None
                continue
            most = _cut(high + span[1], of.caps[0], of.grid)
            if not _fits(most, of.caps[1]):
                over = over or "a sum of the other side"
            found[number] = low + span[0], most
        return tuple(found), over

    def _look(self, part: Part, call: int, kind: Kind, tokens: tuple[Choice, ...]) -> _Looks:
        """How the monitors of both sides see a call; the right's call; why it refuses it anyway."""
        made = self.left.core.calls[call]
        given = dict(zip(kind.fields, tokens, strict=True))
        opened = {name: max(token, OTHER) for name, token in given.items() if token is not None}
        seen = self.left.monitors.see(made.tool, chosen_values(kind.tool, made.values), opened, {})
        mine = [
            (one, made.values) for one in map(_known_keys, seen) if one.rule.number in part.uses
        ]
        left = tuple([one for one, _ in mine])
        if part.rule is None and not part.plans:
            return _with(left, made.values), (), 0, "", True
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
                one if part.rule is None else _of_key(one, part.key)
                for one in map(_known_keys, seen)
                if (part.rule is None and part.tracked is None) or one.rule.number == part.rule
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
        texts: dict[str, str] = {}
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
            if token is None:
                continue
            at = token % len(self.atoms) if token >= 0 else OTHER - 1 - token
            atom = self.atoms[at]
            if name in listed:
                if atom.only is None:
                    return f"{name} is none of the other side's values"
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


_Watched: TypeAlias = "tuple[tuple[Seen, Values], ...]"


def _with(seen: Sequence[Seen], values: Values) -> Any:
    return tuple([(one, values) for one in seen])


def _known_keys(one: Seen) -> Seen:
    """Without keys that hold a value which is not tracked: nothing is asked or kept of them."""
    a = None if one.a is None or OTHER in one.a else one.a
    b = None if one.b is None or OTHER in one.b else one.b
    return Seen(rule=one.rule, a=a, b=b, adds=one.adds)


def _of_key(one: Seen, key: Key) -> Seen:
    """Without keys that are not the one which is asked about."""

    def same(found: Key | None) -> Key | None:
        if found is None or any(a not in (None, b) for a, b in zip(key, found, strict=True)):
            return None
        return found

    return Seen(rule=one.rule, a=same(one.a), b=same(one.b), adds=one.adds)


def _after(watched: Any, counts: Mapping[Any, int], side: int, *, asked: bool = True) -> Any:
    """What monitors remember of a call from now on; None: one does not allow it.

    Args:
        asked: whether it is asked if they do.
    """
    if not watched:
        return ()
    view = _View(counts, side)
    for seen, _ in watched:
        if asked and not seen.rule.allows(view, seen):
            return None
    found = []
    for seen, values in watched:
        for (slot, key), value in seen.rule.marks(view, seen, True, values):
            view.made[slot, key] = value
            found.append(((side, slot, key), value))
    return found


class _View(dict[Any, int]):
    """The counts of one side, as its monitors ask for them."""

    __slots__ = ("counts", "made", "side")

    def __init__(self, counts: Mapping[Any, int], side: int) -> None:
        super().__init__()
        self.counts, self.side = counts, side
        self.made: dict[Any, int] = {}

    def get(self, key: Any, default: Any = None) -> Any:
        """A count; those that this call has made come first."""
        if key in self.made:
            return self.made[key] or default
        return self.counts.get((self.side, *key), default)

    def __contains__(self, key: Any) -> bool:
        return bool(self.get(key, 0))


def _fits(total: int, cap: int | None) -> bool:
    return cap is None or total <= cap


def _odd_fits(total: int, cap: int | None, above: bool) -> bool:
    """Whether some total fits; of values that are all above one it has to be below the cap."""
    return cap is None or total + above <= cap


def _cut(most: int, cap: int | None, grid: int) -> int:
    """The greatest sum: at most the cap, on the grid.

    Intervals.v: sums_and_cuts_are_consecutive.
    """
    end = most if cap is None else min(most, cap)
    return end // grid * grid if grid else end

"""Drafts of sessions: calls with values, outcomes and times that make the literals of a model true.

Nothing here has to be complete or trusted, because a gate replays each session before anybody sees
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from tcc_certs.policy import meaning
from tcc_certs.policy.core import Learned
from tcc_certs.proof.ground import Ground, rewritten
from tcc_certs.proof.reasons import renaming
from tcc_certs.proof.rules import operands
from tcc_certs.values.fields import Field, ListType, RecordType
from tcc_certs.values.places import NONE, UNKNOWN, State
from tcc_runtime.exact.engine import Model
from tcc_runtime.exact.values import NOW_MS, Draft, Maker, is_of

MAX_TRIES = 4000  # choices of a value for a model

Leaf: TypeAlias = "Callable[[Ground, int], Ground | None]"


def drafts(maker: Maker, model: Model) -> Iterator[Draft]:
    """Values that give the literals of a model their truths, if they are of single values."""
    scene = model.scene
    literals = {scene.literals[number]: truth for number, truth in model.truths.items()}
    merged = _merged(model, literals)
    if merged is None:
        return
    calls, leaf, literals = merged
    tools = {
        calls[number]: actor.tool for number, actor in enumerate(scene.actors) if actor.base is None
    }
    above = [
        (calls[one], calls[other])
        for one, actor in enumerate(scene.actors)
        for other in actor.above
    ]
    order = _ordered(list(tools), above, literals)
    if order is None:
        return
    outcomes = {}
    for number in tools:
        this = ("call", number)
        if number:
            outcomes[number] = (
                "answered" if literals.get(("answered", this))
                else "failed" if literals.get(("failed", this))
                else "unknown" if literals.get(("done", this)) is False
                else "done"
            )  # fmt: skip
    pairs = frozenset(
        [
            *above,
            *[(one[1][1], one[2][1]) for one, truth in literals.items()
              if one[0] == "before" and truth],
            *[(one[2][1], one[1][1]) for one, truth in literals.items()
              if one[0] == "before" and not truth],
        ]
    )  # fmt: skip
    for draft in _Values(maker, model, tools, order, outcomes, literals, leaf).drafts():
        yield replace(draft, pairs=pairs)


def _merged(
    model: Model, literals: Mapping[Ground, bool]
) -> tuple[Mapping[int, int], Leaf, dict[Ground, bool]] | None:
    """The calls that are one, as neither is earlier, and the literals with one number for each."""
    calls = {number: number for number in range(len(model.scene.actors))}
    for literal, truth in literals.items():
        if literal[0] == "before" and not truth:
            mirrored = "before", literal[2], literal[1]
            if literals.get(mirrored) is False:
                one, other = sorted((calls[literal[1][1]], calls[literal[2][1]]))
                if model.scene.actors[one].tool != model.scene.actors[other].tool:
                    return None
                calls = {number: one if to == other else to for number, to in calls.items()}

    def leaf(part: Ground, _: int) -> Ground | None:
        return ("call", calls[part[1]]) if part[0] == "call" else None

    found: dict[Ground, bool] = {}
    for literal, truth in literals.items():
        renamed = rewritten(literal, leaf)
        if renamed[0] == "before" and renamed[1] == renamed[2]:
            continue
        if found.setdefault(renamed, truth) is not truth:
            return None
    return calls, leaf, found


def _ordered(
    calls: Sequence[int], above: Iterable[tuple[int, int]], literals: Mapping[Ground, bool]
) -> tuple[int, ...] | None:
    """The calls in an order that the literals allow."""
    after: dict[int, set[int]] = {one: set() for one in calls}
    for one, other in above:
        after[one].add(other)
    for literal, truth in literals.items():
        if literal[0] == "before":
            one, other = literal[1][1], literal[2][1]
            first, second = (one, other) if truth else (other, one)
            after[first].add(second)
    found: list[int] = []
    left = set(calls)
    while left:
        last = [one for one in left if not after[one] & left]
        if not last:
            return None
        found.append(min(last))
        left.discard(min(last))
    return tuple(reversed(found))


def _leaves(term: Ground, declared: Field) -> Iterator[tuple[Ground, Field]]:
    """An element of a list, or the members of a record."""
    if not isinstance(declared.type, RecordType):
        yield term, declared
        return
    for one in declared.type.fields:
        yield from _leaves(("get", term, one.name), one)


def _whole(term: Ground, declared: Field, states: Mapping[Ground, State]) -> State:
    """The state of an element, from those of its members."""
    if term in states or not isinstance(declared.type, RecordType):
        return states.get(term, NONE)
    fields = declared.type.fields
    return "r", tuple([(one.name, _whole(("get", term, one.name), one, states)) for one in fields])


class _Values:
    """Chooses the values of a draft, one group of equal terms after another."""

    def __init__(
        self,
        maker: Maker,
        model: Model,
        tools: Mapping[int, str | None],
        order: tuple[int, ...],
        outcomes: dict[int, str],
        literals: Mapping[Ground, bool],
        leaf: Leaf,
    ) -> None:
        self._maker = maker
        self._tools, self._order, self._outcomes = tools, order, outcomes
        self._items: dict[Ground, tuple[Ground, Field]] = {}  # the list and the type of each
        for number, actor in enumerate(model.scene.actors):
            if actor.base is not None and actor.base[0] == "items" and actor.declared is not None:
                self._items["item", number] = rewritten(actor.base[1], leaf), actor.declared
        self._lists = {one[1][2][1] for one in literals
                       if one[0] in ("some", "none") and one[1][2][0] == "items"}  # fmt: skip
        equal = [
            ("eq", *one[1:])
            for one, truth in literals.items()
            if truth and one[0] in ("eq", "same")
        ]
        self._names, self._clash = renaming(equal)
        self._asked = [
            (one, truth)
            for one, truth in literals.items()
            if one[0] in ("eq", "ne", "lt", "le", "match", "unmatch", "null", "nonnull", "same",
                          "differ", "known", "under", "outside")
        ]  # fmt: skip
        self._groups: dict[Ground, list[tuple[Ground, Field | None]]] = {}
        for term, declared in self._terms():
            self._groups.setdefault(self._names.get(term, term), []).append((term, declared))
        self._tries = 0

    def _terms(self) -> Iterator[tuple[Ground, Field | None]]:
        core = self._maker.core
        for given in core.given:
            if isinstance(given, Learned):
                teacher, field = given.sources[0]
                fields = (*core.tool_of[teacher].arguments, *core.tool_of[teacher].answers)
                declared = next(one for one in fields if one.name == field)
                yield ("attr", given.name), replace(declared, optional=False, null=False)
            else:
                yield ("attr", given.name), given
        for number in self._order:
            name = self._tools[number]
            this = ("call", number)
            if self._maker.is_timed:
                yield ("time", this), None
            if name is None:
                continue
            tool = core.tool_of[name]
            answers = tool.answers if self._outcomes.get(number) == "done" else ()
            for one in (*tool.arguments, *answers):
                yield ("get", this, one.name), one
        for item, (_, of) in self._items.items():
            yield from _leaves(item, of)

    def drafts(self) -> Iterator[Draft]:
        if self._clash:
            return
        states: dict[Ground, State] = {}
        watched: dict[Ground, list[tuple[Ground, bool]]] = {}
        weights: dict[Ground, int] = {}
        for literal, truth in self._asked:
            for rep in self._reps(literal):
                watched.setdefault(rep, []).append((literal, truth))
                weights[rep] = weights.get(rep, 0) + 1
        groups = sorted(
            self._groups,
            key=lambda rep: (rep[0] != "const", rep[0] == "time", -weights.get(rep, 0)),
        )
        turn = {rep: at for at, rep in enumerate(groups)}

        def go(at: int) -> Iterator[None]:
            if at == len(groups):
                yield None
                return
            rep = groups[at]
            for state in self._candidates(rep, turn[rep], bool(watched.get(rep)), states):
                self._tries += 1
                if self._tries > MAX_TRIES:
                    return
                states[rep] = state
                if all(self._holds(one, truth, states) for one, truth in watched.get(rep, ())):
                    yield from go(at + 1)
                del states[rep]

        if next(go(0), "none") == "none":  # the local search begins with plain values
            for rep in groups:
                found = self._candidates(rep, turn[rep], False, states)
                states[rep] = found[0] if found else NONE
        full = {term: states[rep] for rep, terms in self._groups.items() for term, _ in terms}
        self._fill(full)
        yield Draft(self._tools, self._order, full, dict(self._outcomes))

    def _fill(self, states: dict[Ground, State]) -> None:
        """Put elements into their lists, the elements of elements first."""
        lists: dict[Ground, list[State]] = {}
        for of in self._lists - {of for of, _ in self._items.values()}:
            if states.get(of, NONE)[0] == "l":
                states[of] = "l", ()
        for item, (of, declared) in reversed(self._items.items()):
            lists.setdefault(of, []).insert(0, _whole(item, declared, states))
            kinds = [one.type for _, one in self._groups.get(of, ()) if one is not None]
            least = max([one.least for one in kinds if isinstance(one, ListType)], default=0)
            more = lists[of][-1:] * (least - len(lists[of]))
            states[of] = "l", (*lists[of], *more)

    def _reps(self, literal: Ground) -> list[Ground]:
        found: list[Ground] = []
        stack: list[Any] = [*(operands(literal) or literal[1:2])]
        while stack:
            term = stack.pop()
            if not isinstance(term, tuple):
                continue
            rep = self._names.get(term, term)
            if rep in self._groups:
                found.append(rep)
            elif term and term[0] in ("+", "-", "*", "min", "max", "clock"):
                stack += term[1:]
        return found

    def _candidates(
        self, rep: Ground, turn: int, asked: bool, states: Mapping[Ground, State]
    ) -> list[State]:
        members = self._groups[rep]
        if rep[0] == "const":
            return [rep[1]]
        if rep[0] == "time":
            spans = self._maker.spans
            found = [NOW_MS, *[NOW_MS - span - more for span in spans for more in (-1, 0, 1)]]
            return [("t", one) for one in dict.fromkeys(found)]
        term, declared = members[0]
        if declared is None:
            return [UNKNOWN]
        also = [one for one in states.values() if one[0] in ("s", "n", "t")] if asked else []
        found_states = self._maker.candidates(declared, (), turn)
        found_states += [
            one for one in dict.fromkeys(also) if one not in found_states and is_of(one, declared)
        ]
        for _, more in members[1:]:
            if more is not None:
                found_states = [one for one in found_states if is_of(one, more)]
        is_answer = term[0] == "get" and self._is_answer(term)
        lacking = [NONE] if declared.optional or declared.null else []
        learned = term[0] == "attr" and any(
            one.name == term[1] and isinstance(one, Learned) for one in self._maker.core.given
        )
        if len(members) == 1 and (is_answer or learned):
            lacking.append(UNKNOWN)
        found_states = found_states[:48]
        if len(members) == 1 and not asked and lacking[:1] == [NONE] and not is_answer:
            return [*lacking, *found_states]
        return [*found_states, *lacking] if len(members) == 1 else found_states

    def _is_answer(self, term: Ground) -> bool:
        if term[1][0] != "call":
            return False
        tool = self._maker.core.tool_of[self._tools[term[1][1]] or ""]
        return any(one.name == term[2] for one in tool.answers)

    def _holds(self, literal: Ground, truth: bool, states: Mapping[Ground, State]) -> bool:
        """Return whether a literal has a truth; true where it cannot be told yet."""
        terms = [self._state(term, states) for term in (operands(literal) or literal[1:2])]
        if None in terms:
            return True
        return holds(literal, [term for term in terms if term is not None]) is truth

    def _state(self, term: Ground, states: Mapping[Ground, State]) -> State | None:
        rep = self._names.get(term, term)
        if rep in states:
            return states[rep]
        match term:
            case ("const", state):
                found: State = state
                return found
            case ("+" | "-" | "*" | "min" | "max", left, right):
                one, other = self._state(left, states), self._state(right, states)
                return (
                    None
                    if one is None or other is None
                    else meaning.arithmetic(term[0], one, other)
                )
            case ("clock", function, of, zone):
                one = self._state(of, states)
                return None if one is None else meaning.clock(function, one, zone)
            case ("get", ("call", number), _) if self._outcomes.get(number, "done") != "done":
                return UNKNOWN
        return None


def holds(literal: Ground, states: Sequence[State]) -> bool:
    """Return whether a literal about values is true."""
    match literal[0]:
        case "eq" | "ne":
            return meaning.compare("=", *states) is (literal[0] == "eq")
        case "lt" | "le":
            return meaning.compare("<" if literal[0] == "lt" else "<=", *states) is True
        case "match" | "unmatch":
            return meaning.matches(states[0], literal[2]) is (literal[0] == "match")
        case "under" | "outside":
            return meaning.under(*states) is (literal[0] == "under")
        case "null" | "nonnull":
            return meaning.is_null(states[0]) is (literal[0] == "null")
        case "same" | "differ":
            return meaning.same(*states) is (literal[0] == "same")
    return states[0][0] not in meaning.NO_VALUE


def plain_draft(maker: Maker, tool: str | None, others: Sequence[str]) -> Draft:
    """A draft with the deciding call, or the end after some calls."""
    tools: dict[int, str | None] = {0: tool}
    states: dict[Ground, State] = {}
    tools |= dict(enumerate(others, 1))
    for number, name in tools.items():
        if name is None:
            continue
        one = maker.core.tool_of[name]
        for field in (*one.arguments, *one.answers):
            found = maker.candidates(field, (), 0)
            lacks = field.optional and field in one.arguments
            states[("get", ("call", number), field.name)] = (
                found[0] if found and not lacks else NONE
            )
    for given in maker.core.given:
        if not isinstance(given, Learned) and not given.optional:
            states[("attr", given.name)] = (maker.candidates(given) or [NONE])[0]
    order = (*range(1, len(others) + 1), 0)
    return Draft(tools, order, states, {number: "done" for number in tools if number})

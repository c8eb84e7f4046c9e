"""Makes sessions of models: calls with values, outcomes and times.

Values come from constants of the statements, their neighbours, the ends of types, samples of
patterns, and fresh texts.  The definition replays each session, and a local search changes single
values where it refuses.  Only a session that the gate then replays is shown to anybody, so nothing
here has to be complete or trusted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import zip_longest
from typing import Any, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.policy import forms, meaning
from tcc_certs.policy.core import Core, Learned, Tool
from tcc_certs.policy.course import Course, answer_states, argument_states
from tcc_certs.policy.history import Call
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Policy, Refusal
from tcc_certs.policy.nodes import And, Require, text_of
from tcc_certs.proof.ground import Ground, rewritten
from tcc_certs.proof.questions import stricter
from tcc_certs.proof.reasons import renaming
from tcc_certs.proof.rules import operands
from tcc_certs.session.machine import NOWHERE, Offer, SessionMachine
from tcc_certs.values import places
from tcc_certs.values.declared import FlagType, JsonType, NumberType, PathType, TextType, UrlType
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
    UnionType,
)
from tcc_certs.values.places import NONE, UNKNOWN, State, exact_number
from tcc_runtime.exact.engine import Model
from tcc_runtime.exact.samples import samples

NOW_MS = 1_790_000_000_000  # of the last call of a session
MAX_TRIES = 4000  # choices of a value for a model
MAX_REPAIRS = 500  # sessions of a local search
ROUTE_TRIES = 10  # that a route counts as
MAX_TOOLS = 6  # of which a draft gets calls that a statement asks for
MAX_NUMBERS = 8  # values of a number field in such drafts
MAX_COUNTED = 100  # calls that a draft gets because a question counts or adds them up
MAX_ROUTES = 12  # drafts with another call for which a path is searched, for each refused session

Leaf: TypeAlias = "Callable[[Ground, int], Ground | None]"

PLAN = -1  # in place of the number of a statement: the automaton refuses


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCall:
    """A call of a session, as `tcc replay` reads it.

    Attributes:
        outcome: ``done``, ``failed``, ``unknown`` or ``answered``; empty of the last call, which is
            only decided.
    """

    tool: str
    arguments: Mapping[str, Any]
    outcome: str = ""
    answer: Any = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A session that a question is about.

    Attributes:
        ends: whether the session ends after its calls.
    """

    given: Mapping[str, Any]
    calls: tuple[SessionCall, ...]
    ends: bool = False

    def json(self) -> list[dict[str, Any]]:
        """The calls as JSON."""
        found = []
        for call in self.calls:
            one: dict[str, Any] = {"tool": call.tool, "arguments": dict(call.arguments)}
            if call.outcome:
                one["outcome"] = call.outcome
            if call.outcome == "done" and call.answer is not None:
                one["answer"] = call.answer
            if call.at_ms is not None:
                one["at_ms"] = call.at_ms
            found.append(one)
        return found


class Maker:
    """Values for the fields of a core.

    Args:
        policy: the statements of the core, and after them that of the question.

    Attributes:
        machine: the automaton; None: it does not decide.
        route: puts calls into a draft so that the automaton has a path; None where it has none.
        routes: how many of them a local search has asked for.
    """

    def __init__(self, policy: Policy) -> None:
        self.machine: SessionMachine | None = None
        self.route: Callable[[Draft], Draft | None] | None = None
        self.routes = 0
        self._bare: Maker | None = None
        self.core: Core = policy.core
        self.policy = policy
        self._constants: dict[State, None] = {}
        self._compared: dict[str, dict[State, None]] = {}  # by the names of fields
        self._patterns: dict[str, None] = {}
        self.spans: dict[int, None] = {}
        self.is_timed = False
        for rule in policy.rules:
            self._read(rule)
        for tool in self.core.tools:
            for declared in (*tool.arguments, *tool.answers):
                for text in places.texts_in(declared.type):
                    if text.pattern is not None:
                        self._patterns[text.pattern] = None
        self._fresh = [("s", text) for text in ("x1", "x2", "x3", "x4")]

    def without_policy(self) -> Maker:
        """Return a maker for the statement of the question alone, without the automaton."""
        if self._bare is None:
            core = replace(self.core, statements=())
            self._bare = Maker(Policy(core, [self.policy.rules[-1]]))
        return self._bare

    def _read(self, rule: forms.Rule) -> None:
        if rule.within is not None:
            self.spans[rule.within] = None
            self.is_timed = True
        for form in walk(rule):
            match form:
                case forms.Under(_, forms.Constant((letter, text))):
                    inside = f"{text.replace('*.', 'x1.')}/x1".replace("//x1", "/x1")
                    self._constants[letter, text.replace("*.", "x1.")] = None
                    self._constants[letter, inside] = None
                case forms.Constant(state) if state[0] in ("s", "n", "b", "t", "p", "u"):
                    self._constants[state] = None
                    if state[0] == "n" and state[1] >= 60_000:
                        self.spans[int(state[1])] = None
                case forms.Matches(_, pattern):
                    self._patterns[pattern] = None
                case forms.Source(within=int() as within):
                    self.spans[within] = None
                    self.is_timed = True
                case forms.Now():
                    self.is_timed = True
                case forms.Compare(_, forms.Get(_, name), options):
                    for option in options:
                        if isinstance(option, forms.Constant):
                            self._compared.setdefault(name, {})[option.state] = None

    # Candidates.

    def candidates(self, declared: Field, also: Iterable[State] = (), turn: int = 0) -> list[State]:
        """States that a field may have, the plainest first."""
        if declared.type is None:
            states = list(places.listed_states(declared))
            return [one for one in states if one != NONE]
        plain, *others = self._of_type(declared.type, turn) or [NONE]
        compared = self._compared.get(declared.name, {})
        found = [plain, *compared, *also, *others]
        return [one for one in dict.fromkeys(found) if is_of(one, declared)]

    def _of_type(self, kind: FieldType, turn: int) -> list[State]:
        match kind:
            case TextType(among=among) if among:
                return [("s", text) for text in among]
            case TextType(pattern=pattern):
                found = [("s", text) for text in samples(pattern, kind.least)] if pattern else []
                more = [("s", text) for one in self._patterns for text in samples(one, kind.least)]
                fresh = self._fresh[turn % 4 :] + self._fresh[: turn % 4]
                long = [("s", (text * (kind.least + 1))[: max(kind.least, 2)]) for _, text in fresh]
                texts = [one for one in self._constants if one[0] == "s"]
                return [*found, *long, *texts, *more]
            case NumberType():
                return self._numbers(kind)
            case FlagType():
                return [("b", True), ("b", False)]
            case TimeType() | DateType():
                spans = [0, *self.spans]
                moments = [NOW_MS - span - more for span in spans for more in (3600_000, 1, 0, -1)]
                times = [one for one in self._constants if one[0] == "t"]
                if isinstance(kind, DateType):
                    day = 86_400_000
                    moments = [(one + kind.zone * 60_000) // day * day - kind.zone * 60_000
                               for one in (*moments, NOW_MS + day)]  # fmt: skip
                return [*times, *[("t", one) for one in moments]]
            case PathType(under=under) | UrlType(under=under):
                return self._located("p" if isinstance(kind, PathType) else "u", under)
            case UnionType(of=types):
                plain = [one for one in types if not isinstance(one, ListType | RecordType)]
                return [state for one in plain for state in self._of_type(one, turn)]
            case NullableType(of=of):
                return [*self._of_type(of, turn), ("z", None)]
            case ListType(of=of):
                return self._lists(kind, of, turn)
            case RecordType(fields=fields):
                return self._records(fields, turn)
            case JsonType():
                return [("j", b"{}"), ("j", b'"x1"')]
        return []

    def _located(self, letter: str, under: str | None) -> list[State]:
        """Paths or URLs: fresh ones under a directory or scope, and the constants."""
        first = under or ("/" if letter == "p" else "https://x1.example/")
        root = first.replace("*.", "x1.").rstrip("/")
        constants = [one for one in self._constants if one[0] == letter]
        return [(letter, f"{root}/x1"), *constants, (letter, f"{root}/x2")]

    def _numbers(self, kind: NumberType) -> list[State]:
        low = Fraction(0) if kind.low is None else Fraction(exact_number(kind.low))
        high = low + 10**6 if kind.high is None else Fraction(exact_number(kind.high))
        constants = sorted({Fraction(one[1]) for one in self._constants if one[0] == "n"})
        found = [Fraction(1), low, high, low + 1]
        for one in constants:
            found += [one, one + 1, one - 1]
        found += [Fraction(one // 2) + 1 for one in constants] + [high - 1]
        return [("n", int(one) if one.denominator == 1 else one) for one in dict.fromkeys(found)]

    def _lists(self, kind: ListType, of: FieldType, turn: int) -> list[State]:
        items = [one for one in self._of_type(of, turn) if _typed(one, of)][:40]
        least = max(1, kind.least)
        found: list[State] = [("l", tuple(items[:least]))]
        found += [("l", ())] if kind.least == 0 else []
        found += [("l", (one,) * least) for one in items[:3]]
        for many in (2, 4, 6, 12):
            found += [("l", tuple(items[:many])), ("l", tuple(items[:1]) * many)]
        found += [("l", (one,) * least) for one in items[3:]]
        return [*found, *[("l", (one,) * many) for many in (2, 4) for one in items[1:6]]]

    def _records(self, fields: Sequence[Field], turn: int) -> list[State]:
        columns = [self.candidates(one, (), turn)[:30] or [NONE] for one in fields]
        first = [column[0] for column in columns]
        rows = [first]
        for row in zip_longest(*[column[1:] for column in columns]):
            rows += [[*first[:at], one, *first[at + 1 :]] for at, one in enumerate(row) if one]
        return [("r", tuple(zip([one.name for one in fields], row, strict=True))) for row in rows]


def _typed(state: State, kind: FieldType) -> bool:
    return is_of(state, Field(name="x", steps=("x",), type=kind))


def is_of(state: State, declared: Field) -> bool:
    """Whether a state is a value of a field."""
    if declared.type is None:
        return state in places.listed_states(declared)
    try:
        return places.typed(json_of(state, declared.type), declared.type) == state
    except (places.Wrong, Rejected, ValueError, TypeError, OverflowError):
        return False


# JSON.


def json_of(state: State, kind: FieldType | None, values: Sequence[str] = ()) -> Any:
    """The JSON value of a state."""
    tag, value = state
    match kind:
        case NullableType(of=of):
            return None if tag == "z" else json_of(state, of)
        case TimeType():
            return _time(value).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case DateType(zone=zone):
            return _time(value + zone * 60_000).date().isoformat()
        case ListType(of=of):
            return [json_of(one, of) for one in value]
        case RecordType(fields=fields):
            made: Any = {}
            for one, (_, member) in zip(fields, value, strict=True):
                if member != NONE:
                    made = put(made, one.steps, json_of(member, one.type, one.values))
            return made
    if tag == "n":
        return value if isinstance(value, int) else float(value)
    if tag == "*":
        return next(text for text in ("other", "else", "x1", "x2") if ("s", text) not in value)
    if tag == "j":
        import json

        return json.loads(value)
    return value


def _time(ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms)


def put(into: Any, steps: Sequence[str], value: Any) -> Any:
    """A JSON value with another one at a place."""
    if not steps:
        return value
    step, *rest = steps
    if step == "*":
        old = into if isinstance(into, list) else []
        many = value if isinstance(value, list) and "*" not in rest else [value]
        first = old[0] if old else None
        return [
            put(old[at] if at < len(old) else _copied(first), rest, one)
            for at, one in enumerate(many)
        ]
    if re.fullmatch("-?[0-9]+", step) and not isinstance(into, dict):
        old = into if isinstance(into, list) else []
        at = max(0, int(step))
        old = [*old, *[{} for _ in range(at + 1 - len(old))]]
        old[at] = put(old[at], rest, value)
        return old
    made = dict(into) if isinstance(into, dict) else {}
    made[step] = put(made.get(step), rest, value)
    return made


def _copied(value: Any) -> Any:
    return dict(value) if isinstance(value, dict) else None


def object_of(declared: Sequence[Field], states: Mapping[str, State]) -> dict[str, Any]:
    """The object that has the states of fields, each at its place."""
    made: Any = {}
    for one in sorted(declared, key=lambda field: (len(field.steps), "*" not in field.steps)):
        state = states.get(one.name, NONE)
        if state[0] not in ("none", "unknown"):
            made = put(made, one.steps, json_of(state, one.type, one.values))
    return made if isinstance(made, dict) else {}


# Drafts.


@dataclass(slots=True)
class Draft:
    """The values of a session that is being made.

    Attributes:
        order: the calls by their numbers in the scene, the first one first.
        states: of each term: fields, attributes and times.
        outcomes: by the numbers of calls.
        pairs: calls of which the first one has to be earlier.
        fillers: calls that only the automaton needs.
        ends: whether the session ends after its last call.
    """

    tools: Mapping[int, str | None]
    order: tuple[int, ...]
    states: dict[Ground, State]
    outcomes: dict[int, str]
    pairs: frozenset[tuple[int, int]] = frozenset()
    fillers: frozenset[int] = frozenset()
    ends: bool = False

    def session(self, maker: Maker) -> Session:
        """The session of these values."""
        core = maker.core
        given = {
            one.name: self.states.get(("attr", one.name), NONE)
            for one in core.given
            if not isinstance(one, Learned)
        }
        fields = [one for one in core.given if not isinstance(one, Learned)]
        calls = []
        at_ms = 0  # no call is decided before an earlier one
        for number in self.order:
            name = self.tools[number]
            if name is None:
                continue
            tool = core.tool_of[name]
            outcome = self.outcomes.get(number, "")
            arguments = object_of(tool.arguments, self._of(number, tool.arguments))
            answer = object_of(tool.answers, self._of(number, tool.answers))
            at_ms = max(at_ms, self.states.get(("time", ("call", number)), ("t", NOW_MS))[1])
            calls.append(
                SessionCall(
                    tool=name,
                    arguments=arguments,
                    outcome=outcome,
                    answer=answer if outcome == "done" and tool.answers else None,
                    at_ms=at_ms if maker.is_timed else None,
                )
            )
        ends = self.ends or self.tools[0] is None
        return Session(given=object_of(fields, given), calls=tuple(calls), ends=ends)

    def _of(self, call: int, declared: Sequence[Field]) -> dict[str, State]:
        return {
            one.name: self.states.get(("get", ("call", call), one.name), NONE) for one in declared
        }


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
        """Whether a literal has a truth; true where it cannot be told yet."""
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
    """Whether a literal about values is true."""
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


# Replays by the definition.


@dataclass(frozen=True, slots=True)
class Replayed:
    """What the definition says of a session.

    Attributes:
        breaks: the number of calls after which the question is broken; None: it is not.
        refused: the call that the policy refuses, from 0; None: it refuses none.
        refusals: the statements that refuse it.
        is_asked: whether the refused call would break the question.
        size: how many calls the session has.
    """

    breaks: int | None
    refused: int | None = None
    refusals: tuple[Refusal, ...] = ()
    is_asked: bool = False
    size: int = 0


def replayed(maker: Maker, kind: str, session: Session) -> Replayed:
    """Decide a session by the definition, and by the automaton if the maker has one.

    Args:
        kind: as of the question.
    """
    policy = maker.policy
    asked = len(policy.rules) - 1
    position = None if maker.machine is None else _Position(maker.machine)
    try:
        course = Course(policy, session.given)
    except Rejected:
        return Replayed(None, 0, (), False, len(session.calls) + 9)
    for at, one in enumerate(session.calls):
        now = one.at_ms or 0
        try:
            found = course.check(one.tool, one.arguments, now)
        except Rejected:
            return Replayed(None, at, (), False, len(session.calls) + 9)
        others = tuple([refusal for refusal in found if refusal.statement != asked])
        is_refused = any(refusal.code != "R211" for refusal in others)
        if kind == "reachable":
            rule = policy.rules[asked]
            call = Call(
                one.tool, at, now, argument_states(policy.core.tool_of[one.tool], one.arguments)
            )
            evaluation = policy.evaluation(course.history, call, now)
            is_it = one.tool in (rule.tools or ()) and evaluation.all_of(rule.where) is True
        else:
            asks = {refusal.statement for refusal in found if refusal.code == "R211"}
            stronger = stricter(policy, policy.rules[asked], one.tool)
            is_it = any(refusal.statement == asked for refusal in found)
            is_it = is_it and asks.isdisjoint([other for other in stronger if other != asked])
        if not is_refused and position is not None and not position.allows(one):
            others, is_refused = (Refusal(PLAN, "R201"),), True
        if is_refused:
            return Replayed(None, at, others, is_it, len(session.calls))
        if is_it:
            return Replayed(at + 1, is_asked=True)
        call = course.call(one.tool, one.arguments, now)
        if one.outcome:
            course.record(call, one.outcome, one.answer)
        if position is not None:
            position.record(one)
    if kind == "finishable" and position is not None and position.is_lost():
        return Replayed(len(session.calls), is_asked=True)
    if session.ends:
        now = session.calls[-1].at_ms or 0 if session.calls else 0
        unmet = course.unmet(now)
        others = tuple([Refusal(one, "R204") for one in unmet if one != asked])
        if not others and position is not None and not position.accepts():
            others = (Refusal(PLAN, "R201"),)
        if unmet and not others:
            return Replayed(len(session.calls), is_asked=True)
        if not others:
            return Replayed(None)
        return Replayed(None, len(session.calls), others, asked in unmet, len(session.calls))
    return Replayed(None)


def refusing(maker: Maker, session: Session, found: Replayed) -> str:
    """Return the condition of a `require` that refuses a session, as its author wrote it."""
    at, number = found.refused, found.refusals[0].statement
    statement, rule = maker.core.statements[number], maker.policy.rules[number]
    if not isinstance(statement, Require) or rule.then is None or at is None:
        return ""
    course = Course(maker.policy, session.given)
    for one in session.calls[:at]:
        course.record(course.call(one.tool, one.arguments, one.at_ms or 0), one.outcome, one.answer)
    call, now = None, 0
    if at < len(session.calls):
        last = session.calls[at]
        now = last.at_ms or 0
        states = argument_states(maker.core.tool_of[last.tool], last.arguments)
        call = Call(last.tool, at, now, states)
    evaluation = maker.policy.evaluation(course.history, call, now)
    if not isinstance(rule.then, forms.All) or not isinstance(statement.then, And):
        return text_of(statement.then)
    if len(rule.then.parts) != len(statement.then.parts):
        return text_of(statement.then)
    pairs = zip(rule.then.parts, statement.then.parts, strict=True)
    return next((text_of(node) for form, node in pairs if evaluation.truth(form) is not True), "")


class _Position:
    """Where a session is in the automaton."""

    def __init__(self, machine: SessionMachine) -> None:
        self._machine, self._held = machine, machine.start

    def _offer(self, call: SessionCall) -> Offer | None:
        at = self._machine.tools[call.tool]
        try:
            states = argument_states(self._machine.core.tools[at], call.arguments)
        except Rejected:  # a value that is none of its type
            return None
        return self._machine.offer_for(at, states)

    def allows(self, call: SessionCall) -> bool:
        """Whether a plan continues with a call."""
        offer = self._offer(call)
        return offer is not None and self._machine.look(self._held, offer).code is None

    def record(self, call: SessionCall) -> None:
        """Follow an allowed call."""
        offer = self._offer(call)
        if offer is None or call.outcome in ("failed", "answered"):
            return
        if call.outcome != "done":
            self._held = self._machine.unknown(self._held, offer)
            return
        tool = self._machine.core.tools[offer.tool]
        answer = self._machine.listed(offer.tool).answer(answer_states(tool, call.answer))
        self._held = self._machine.done(self._held, offer, answer)

    def is_lost(self) -> bool:
        """Return whether no plan continues or ends, whatever the outcomes were."""
        return self._held == (NOWHERE,)

    def accepts(self) -> bool:
        """Return whether a plan may end."""
        return all(map(self._machine.accepts, self._held))


def repaired(
    maker: Maker, kind: str, draft: Draft, tick: Callable[[], None], most: int = MAX_REPAIRS
) -> tuple[Session, Replayed]:
    """The best session that changes of a draft make, one after another.

    If a session breaks the question but for the policy, the next ones do, too.
    """
    if maker.route is not None and not _is_planned(maker, draft):
        draft = maker.route(draft) or draft
    session = draft.session(maker)
    best = replayed(maker, kind, session)
    asks = best.is_asked or _asks(maker, kind, session)
    tries, routes = 0, maker.routes
    moved = True
    while moved and best.breaks is None and tries < most:
        moved = False
        for other in _changes(maker, draft, best):
            tick()
            tries += 1 + ROUTE_TRIES * (maker.routes - routes)
            routes = maker.routes
            if tries >= most:
                break
            changed = other.session(maker)
            found = replayed(maker, kind, changed)
            if _score(found) <= _score(best):
                continue
            still = found.is_asked or _asks(maker, kind, changed)
            if still or not (asks or best.refused is None):
                draft, session, best, asks, moved = other, changed, found, still, True
                break
    return session, best


def _asks(maker: Maker, kind: str, session: Session) -> bool:
    """Return whether a session breaks the question if the policy allows all its calls."""
    return replayed(maker.without_policy(), kind, session).breaks is not None


def _score(found: Replayed) -> tuple[int, int, bool, int]:
    if found.breaks is not None:
        return 2, 0, True, 0
    if found.refused is None:  # the session no longer asks anything
        return 0, 0, False, 0
    return 1, found.refused - found.size, found.is_asked, -len(found.refusals)


def _changes(maker: Maker, draft: Draft, found: Replayed) -> Iterator[Draft]:
    """Single changes of a draft, those that are likely to help first."""
    order = [one for one in draft.order if draft.tools[one] is not None]
    if not order:
        return
    at = len(order) - 1 if found.refused is None else min(found.refused, len(order) - 1)
    if maker.route is not None and [one.statement for one in found.refusals] == [PLAN]:
        routed = maker.route(draft)
        yield from () if routed is None else (routed,)
    if found.refused is None:
        for many in (1, 2, 3, 5):
            for number in reversed(order):
                yield _repeated(draft, number, many)
        yield from counted(maker, draft)
    more: Iterator[Draft] = iter(())
    if found.refused is not None:
        more = _routed(maker, _supported(maker, draft, order[at], found.refusals))
    for number in order[at + 1 : -1]:
        left = [one for one in draft.order if one != number]
        place = left.index(order[at])
        yield replace(draft, order=(*left[:place], number, *left[place:]))
    rules = [maker.policy.rules[one.statement] for one in found.refusals if one.statement != PLAN]
    if found.refused is None:
        rules = [maker.policy.rules[-1]]
    named = {form.name for rule in rules for form in walk(rule) if isinstance(form, forms.Get)}
    named |= {rule.field or "" for rule in rules}
    for pair in zip_longest(_revalued(maker, draft, order[: at + 1], named), more):
        yield from [one for one in pair if one is not None]
    for number in order[:-1]:
        yield replace(draft, order=tuple([one for one in draft.order if one != number]))
        tool = maker.core.tool_of[draft.tools[number] or ""]
        for outcome in ("done", "unknown", "failed", *["answered"] * tool.errors_failed):
            if draft.outcomes.get(number) != outcome:
                yield replace(draft, outcomes={**draft.outcomes, number: outcome})


def _routed(maker: Maker, drafts: Iterator[Draft]) -> Iterator[Draft]:
    """Drafts for which the automaton has a path."""
    routes = 0
    for draft in drafts:
        if maker.route is None or _is_planned(maker, draft):
            yield draft
        elif routes < MAX_ROUTES:
            routes += 1
            maker.routes += 1
            found = maker.route(draft)
            if found is not None:
                yield found


def _is_planned(maker: Maker, draft: Draft) -> bool:
    """Return whether the automaton lets all calls of a draft through."""
    if maker.machine is None:
        return True
    position = _Position(maker.machine)
    for call in draft.session(maker).calls:
        if not position.allows(call):
            return False
        position.record(call)
    return True


def _revalued(
    maker: Maker, draft: Draft, order: Sequence[int], named: Collection[str]
) -> Iterator[Draft]:
    """Drafts with another value of a field: of fields that refusing statements name first."""
    seen = [state for state in draft.states.values() if state[0] in ("s", "n", "t", "l")]
    items = [one for state in seen if state[0] == "l" for one in state[1]]
    lists = [("l", (one,)) for one in dict.fromkeys([*seen, *items]) if one[0] in ("s", "n")]
    columns: list[list[Draft]] = []
    others: list[list[Draft]] = []
    for number in reversed(order):
        tool: Tool = maker.core.tool_of[draft.tools[number] or ""]
        answers = tool.answers if draft.outcomes.get(number) == "done" else ()
        for one in (*tool.arguments, *answers):
            term = ("get", ("call", number), one.name)
            states = maker.candidates(one, [*seen, *items, *lists], number)[:100]
            if one.optional or one.null:
                states.append(NONE)
            if one in answers:
                states.append(UNKNOWN)
            changed = [
                replace(
                    draft,
                    states={**draft.states, term: state},
                    fillers=draft.fillers - {number},
                )
                for state in states
                if state != draft.states.get(term)
            ]
            (columns if one.name in named else others).append(changed)
        if maker.is_timed and number != order[-1]:
            columns.append(
                [
                    _at_time(draft, order, number, NOW_MS - span - more)
                    for span in maker.spans
                    for more in (-1, 0, 1)
                ]
            )
    for given in maker.core.given:
        if not isinstance(given, Learned):
            states = maker.candidates(given, seen)[:12]
            states += [NONE] if given.optional else []
            columns.append(
                [
                    replace(draft, states={**draft.states, ("attr", given.name): state})
                    for state in states
                ]
            )
    for some in (columns, others):
        for row in zip_longest(*some):
            yield from [one for one in row if one is not None]


def _at_time(draft: Draft, order: Sequence[int], number: int, ms: int) -> Draft:
    """The draft with a call at a time, and no earlier call after it."""
    states = dict(draft.states)
    for one in order:
        term = ("time", ("call", one))
        if one == number or states.get(term, ("t", NOW_MS))[1] > ms:
            states[term] = ("t", ms)
        if one == number:
            break
    return replace(draft, states=states)


def _repeated(draft: Draft, number: int, many: int) -> Draft:
    """The draft with more calls like one, before the last call."""
    for _ in range(many):
        draft = _inserted(draft, number, draft.tools[number] or "", {})
    return draft


def counted(maker: Maker, draft: Draft) -> Iterator[Draft]:
    """Drafts in which what the question counts or adds up is greater than its constants.

    They have many calls of one tool before the last call.  Number fields that the question names
    have a great value first, and smaller ones then.  In every second draft the calls differ.
    """
    inside = list(walk(maker.policy.rules[-1]))
    if not any(isinstance(one, forms.Count | forms.Sum) for one in inside):
        return
    bounds = [one.state[1] for one in inside
              if isinstance(one, forms.Constant) and one.state[0] == "n"]  # fmt: skip
    named = {form.name for form in inside if isinstance(form, forms.Get)}
    tools = [name for one in inside if isinstance(one, forms.Calls) for name in sorted(one.tools)]
    most = max(bounds, default=0)
    for name in list(dict.fromkeys(tools))[:MAX_TOOLS]:
        tool = maker.core.tool_of[name]
        fields = [one for one in (*tool.arguments, *tool.answers) if one.name in named]
        columns = {one.name: falling(maker, one)[:MAX_NUMBERS] for one in fields}
        columns = {one: column for one, column in columns.items() if column}
        for at in range(max(map(len, columns.values()), default=1)):
            states = {one: column[min(at, len(column) - 1)] for one, column in columns.items()}
            counts = {most // state[1] + 1 for state in states.values() if state[1] > 0}
            for many in sorted({int(one) for one in (*counts, most + 1) if 0 < one <= MAX_COUNTED}):
                for is_varied in (False, True):
                    yield _with_many(maker, draft, tool, states, many, is_varied=is_varied)


def _with_many(
    maker: Maker, draft: Draft, tool: Tool, states: Mapping[str, State], many: int, *,
    is_varied: bool,
) -> Draft:  # fmt: skip
    """Return a draft with so many calls of a tool before its last call.

    Args:
        states: of fields that are equal in all of them.
        is_varied: whether the other fields differ; else they have plain values, or those of the
            last call.
    """
    for turn in range(many):
        fields = (*tool.arguments, *tool.answers)
        own = {one.name: _varied(maker, one, turn) for one in fields if is_varied}
        draft = _inserted(
            draft, draft.order[-1], tool.name, {**_plainly(maker, tool), **own, **states}
        )
    return draft


def falling(maker: Maker, declared: Field) -> list[State]:
    """Return the numbers among the candidates of a field, the greatest first."""
    numbers = [one for one in maker.candidates(declared) if one[0] == "n"]
    return sorted(numbers, key=lambda one: -Fraction(one[1]))


def _varied(maker: Maker, declared: Field, turn: int) -> State:
    """Return a value of a field that depends on `turn`."""
    fresh: State = ("s", f"x{turn + 1}")
    if is_of(fresh, declared):
        return fresh
    found = maker.candidates(declared, (), turn) or [NONE]
    return found[turn % len(found)]


def _plainly(maker: Maker, tool: Tool) -> dict[str, State]:
    """Return values for all required arguments and for all answers of a tool."""
    fields = (*[one for one in tool.arguments if not one.optional], *tool.answers)
    return {one.name: (maker.candidates(one) or [NONE])[0] for one in fields}


def _inserted(draft: Draft, like: int, tool: str, states: Mapping[str, State]) -> Draft:
    """The draft with a call before another one, with its values where they have none."""
    new = max(draft.tools) + 1
    fields = {
        term[2]: state
        for term, state in draft.states.items()
        if term[0] == "get" and term[1] == ("call", like)
    }
    values: dict[Ground, State] = {
        ("get", ("call", new), name): state for name, state in {**fields, **states}.items()
    }
    time = ("time", ("call", like))
    if time in draft.states:
        values[("time", ("call", new))] = draft.states[time]
    at = draft.order.index(like)
    return replace(
        draft,
        tools={**draft.tools, new: tool},
        order=(*draft.order[:at], new, *draft.order[at:]),
        states={**draft.states, **values},
        outcomes={**draft.outcomes, new: draft.outcomes.get(like) or "done"},
        pairs=draft.pairs | {(new, like)},
        fillers=draft.fillers - {like},
    )


def _supported(
    maker: Maker, draft: Draft, number: int, refusals: Sequence[Refusal]
) -> Iterator[Draft]:
    """Drafts with a call before a refused one, of a tool that a statement asks for."""
    tools: dict[str, None] = {}
    for refusal in refusals:
        for form in (
            () if refusal.statement == PLAN else walk(maker.policy.rules[refusal.statement])
        ):
            if isinstance(form, forms.Calls):
                tools |= dict.fromkeys(sorted(form.tools))
            elif isinstance(form, forms.Attribute):
                for given in maker.core.given:
                    if isinstance(given, Learned) and given.name == form.name:
                        tools |= dict.fromkeys([tool for tool, _ in given.sources])
    states = [state for state in draft.states.values() if state[0] in ("s", "n", "t")]
    states += [one for state in draft.states.values() if state[0] == "l" for one in state[1]]
    here = [state for term, state in draft.states.items() if term[1:2] == (("call", number),)]
    items = [one for state in here if state[0] == "l" for one in state[1]]
    for name in list(tools)[:MAX_TOOLS]:
        tool = maker.core.tool_of[name]
        fields = (*tool.arguments, *tool.answers)
        for key in tool.arguments if items else ():
            many = draft
            for item in dict.fromkeys(items):
                if is_of(item, key):
                    values = {one.name: (maker.candidates(one) or [NONE])[0] for one in fields}
                    many = _inserted(many, number, name, {**values, key.name: item})
            if many is not draft:
                yield many
        columns = []
        for one in fields:
            same = draft.states.get(("get", ("call", number), one.name))
            found = maker.candidates(one, states, number)[:10] or [NONE]
            if same is not None and is_of(same, one):
                found = [same, *[state for state in found if state != same]]
            columns.append(found)
        first = [column[0] for column in columns]
        rows = [first]
        for at, column in enumerate(columns):
            rows += [[*first[:at], state, *first[at + 1 :]] for state in column[1:]]
        names = [one.name for one in fields]
        for row in rows[:10]:
            yield _inserted(draft, number, name, dict(zip(names, row, strict=True)))


def done(maker: Maker, call: SessionCall) -> SessionCall:
    """Return a call that was only decided as done, with a plain answer."""
    answers = maker.core.tool_of[call.tool].answers
    states = {one.name: (maker.candidates(one) or [NONE])[0] for one in answers}
    return replace(call, outcome="done", answer=object_of(answers, states) if answers else None)


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


__all__ = [
    "Draft", "Maker", "Session", "SessionCall", "done", "drafts", "plain_draft", "repaired",
    "replayed",
]  # fmt: skip

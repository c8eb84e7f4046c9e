"""Values for the calls of sessions, sessions as JSON, and drafts of sessions.

Values come from constants of the statements, their neighbours, the ends of types, samples of
patterns, and fresh texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from itertools import zip_longest
from typing import Any

from tcc_certs.errors import Rejected
from tcc_certs.policy import forms
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import Policy
from tcc_certs.proof.ground import Ground
from tcc_certs.session.machine import SessionMachine
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
from tcc_certs.values.places import NONE, State, exact_number
from tcc_runtime.exact.samples import samples

NOW_MS = 1_790_000_000_000  # of the last call of a session


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
    """Return whether a state is a value of a field."""
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


def falling(maker: Maker, declared: Field) -> list[State]:
    """Return the numbers among the candidates of a field, the greatest first."""
    numbers = [one for one in maker.candidates(declared) if one[0] == "n"]
    return sorted(numbers, key=lambda one: -Fraction(one[1]))


def done(maker: Maker, call: SessionCall) -> SessionCall:
    """Return a call that was only decided as done, with a plain answer."""
    answers = maker.core.tool_of[call.tool].answers
    states = {one.name: (maker.candidates(one) or [NONE])[0] for one in answers}
    return replace(call, outcome="done", answer=object_of(answers, states) if answers else None)


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

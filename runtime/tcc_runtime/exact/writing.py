"""Sessions that a search found, written with concrete values and times.

A session has to be replayed before it is shown.  Cost: linear in the session, except for its times,
which take at most the square of its calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from tcc_certs.core.model import Core, Tool
from tcc_certs.proof.fields import ANY, answers_of, arguments_of, containers
from tcc_certs.values.declared import json_of, text_of
from tcc_certs.values.fields import ListType
from tcc_certs.values.places import Missing, at as found_at
from tcc_runtime.exact.compared import Compared, Token, grid_value
from tcc_runtime.exact.system import Move, System

Ends: TypeAlias = Literal["call", "finish", "stuck"]
Renaming: TypeAlias = "dict[Token, Token]"
MAX_TRIED = 200  # numbers that are tried for one value


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessCall:
    """A call of a session.

    Attributes:
        arguments: JSON values by name, in the form that a gate accepts.
        answer: the answer, as JSON; None for a tool without one.
        at_ms: the time since the first call; None if no statement looks at the clock.
    """

    tool: str
    arguments: Mapping[str, Any]
    answer: Mapping[str, Any] | None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessSession:
    """A session that decides a question, and how it ends.

    Attributes:
        given: what the session is given, JSON values by name.
    """

    calls: tuple[WitnessCall, ...]
    ends: Ends
    given: Mapping[str, Any] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True, eq=False)
class _Named:
    """A value that a session names, and the atom that it is of."""

    atom: int
    value: Any
    number: int = 0  # of the value in its atom


class SessionWriter:
    """Assigns values to the tokens and sums of a path."""

    def __init__(self, system: System, moves: Sequence[tuple[Move, Renaming]]) -> None:
        self._system = system
        begun = moves[:1] if moves and moves[0][0].call < 0 else ()
        self._begun, self._moves = begun, moves[len(begun) :]
        self._used: dict[int, set[int]] = {}
        self._lists: list[list[_Named]] = []
        self._fits = True  # lists have as many elements as their types want

    def session(self, ends: Ends) -> WitnessSession | None:
        """The calls; None if there are no times for them, or too few elements for a list."""
        spans = self._system.histories.windows
        times = _times([move for move, _ in self._moves], spans) if spans else None
        if spans and times is None:
            return None
        added = self._sums(ends)
        named: list[dict[Token, _Named]] = []
        held: dict[Token, list[_Named]] = {}  # of a summary one value or more
        given: dict[str, _Named] = {}
        for move, renaming in (*self._begun, *self._moves):
            self._bring(move, held)
            tokens = {token: held[token][0] for token in move.tokens if token is not None}
            if move.call < 0:
                pairs = zip(self._system.given, move.tokens, strict=True)
                given = {one.name: tokens[token] for one, token in pairs if token is not None}
            else:
                named.append(tokens)
            for away, like in move.joined:
                held[like] = [*held[like], *held[away]]
            # A constant that the left side lists is no token of the move: its atom has one value.
            held = {to: held[token] for token, to in renaming.items() if token in held}
        if self._system.loose:
            self._fitted(named, ends)
        calls = [
            self._call(move, {token: one.value for token, one in named[step].items()}, added[step])
            for step, (move, _) in enumerate(self._moves)
        ]
        if not self._fits:
            return None
        if times is not None:
            calls = [replace(call, at_ms=at) for call, at in zip(calls, times, strict=True)]
        told = {name: _json(one.value) for name, one in given.items()}
        return WitnessSession(calls=tuple(calls), ends=ends, given=told)

    def _bring(self, move: Move, held: dict[Token, list[_Named]]) -> None:
        """The values of a call's tokens, and what lists have by then."""
        parted = {one for one, _ in move.taken}
        for token in move.tokens:
            if token is None or token in held or token in parted:
                continue
            if token[0] in self._system.elements.domains:
                held[token] = [_Named(atom=token[0], value=[])]
                self._lists.append(held[token][0].value)
            else:
                held[token] = [self._new(token[0], held)]
        left = {one for _, one in move.pairs}
        for at, (part, summary) in enumerate(move.taken):
            stays = summary in left or any(of == summary for _, of in move.taken[at + 1 :])
            held[part] = self._parted(held, summary, stays=stays)
        for many, one in move.pairs:
            if one not in held:
                held[one] = [self._new(one[0], held)]
            elements = held[many][0].value
            elements += [leaf for leaf in held[one] if all(leaf is not of for of in elements)]

    def _parted(
        self, held: dict[Token, list[_Named]], summary: Token, *, stays: bool
    ) -> list[_Named]:
        """A value out of a summary, which has another one then if it is to stay one."""
        values = held[summary]
        if not stays:
            return values
        if len(values) > 1:
            return [values.pop()]
        other = self._new(summary[0], held)
        for elements in self._lists:
            if any(one is values[0] for one in elements):
                elements.append(other)
        return [other]

    def _new(self, atom: int, held: Mapping[Token, Sequence[_Named]]) -> _Named:
        """A value of an atom that no token has, best one that none has had."""
        number = self._fresh(atom, held)
        return _Named(atom=atom, value=self._system.atoms[atom].value(number), number=number)

    def _elements(self, kind: ListType, atom: int, of: Sequence[_Named]) -> list[Any]:
        """The elements of a list, each once, and as many as its type wants."""
        found = list({(type(one.value), one.value): one.value for one in of}.values())
        while len(found) < kind.least:
            if found and not kind.distinct:
                found.append(found[0])
                continue
            other = next(
                (value for at in self._system.elements.domains[atom]
                 if (value := self._system.atoms[at].value(self._fresh(at, {}))) is not None
                 and value not in found),
                None,
            )  # fmt: skip
            if other is None:
                break
            found.append(other)
        self._fits = self._fits and kind.least <= len(found) <= kind.most
        return found

    def _fitted(self, named: Sequence[Mapping[Token, _Named]], ends: Ends) -> None:
        """Other values for numbers that are added up as well, so that the session may be one.

        All are as small as they can be; those of a sum that is to break a limit, or all of a
        session that is stuck, are then raised as far as limits of the left let them.
        """
        system = self._system
        sums: dict[int, list[_Named]] = {}
        for (move, _), tokens in zip(self._moves, named, strict=True):
            kind = system.kinds[system.left.core.calls[move.call].tool]
            for number, place, _ in kind.sums:
                token = None if place is None else move.tokens[place]
                if token is not None:
                    sums.setdefault(number, []).append(tokens[token])
        free = list({id(one): one for some in sums.values() for one in some}.values())
        every = list({id(one): one for tokens in named for one in tokens.values()}.values())
        taken = {(one.atom, str(one.value)) for one in every if one not in free}

        def put(one: _Named, number: int, start: int, step: int) -> None:
            of = system.sums[number]
            for at in range(MAX_TRIED):
                value = grid_value(start + at * step, of.places)
                if start + at * step < 0 or (one.atom, str(value)) in taken:
                    continue
                if system.member(one.atom, value):
                    one.value = value
                    break
            taken.add((one.atom, str(one.value)))

        of_sum = [(number, one) for number, some in sums.items() for one in some]
        first = {id(one): number for number, one in reversed(of_sum)}
        for one in free:
            number = first[id(one)]
            span = system.span(number, (one.atom, 0))
            put(one, number, span[0], system.sums[number].step)
        over = self._moves[-1][0].over if self._moves else None
        for one in free:
            number = first[id(one)] if over is None else over
            if ends != "stuck" and (over is None or one not in sums.get(over, ())):
                continue
            of, now = system.sums[number], self._units(one, number)
            room = system.span(number, (one.atom, 0))[1] - now
            for other, some in sums.items():
                cap = system.sums[other].caps[0]
                times = sum(mine is one for mine in some)
                if cap is None or not times:
                    continue
                left = cap - sum(self._units(mine, other) for mine in some)
                scale = Fraction(10**of.places, 10 ** system.sums[other].places)
                room = min(room, int(left * scale // times))
            taken.discard((one.atom, str(one.value)))
            put(one, number, now + max(0, room) // of.step * of.step, -of.step)

    def _units(self, one: _Named, number: int) -> int:
        return int(Fraction(str(one.value)) * 10 ** self._system.sums[number].places)

    def _fresh(self, atom: int, held: Mapping[Token, Sequence[_Named]]) -> int:
        """The number of a value of an atom that no token has, best one that none has had."""
        used = self._used.setdefault(atom, set())
        new = next(i for i in range(len(used) + 1) if i not in used)
        if self._system.atoms[atom].value(new) is None:
            taken = {one.number for some in held.values() for one in some if one.atom == atom}
            new = next(i for i in range(len(taken) + 1) if i not in taken)
        used.add(new)
        return new

    def _call(
        self, move: Move, values: Mapping[Token, Any], added: Mapping[str, Any]
    ) -> WitnessCall:
        system = self._system
        made = system.left.core.calls[move.call]
        kind = system.kinds[made.tool]
        arguments = _listed(kind.tool, made.values)
        for name, token in zip(kind.fields, move.tokens, strict=True):
            if token is not None:
                arguments[name] = values[token]
            if token is not None and name in kind.lists:
                arguments[name] = self._elements(kind.lists[name], token[0], values[token])
        for told in kind.tool.answers:
            if told.name not in kind.fields and not told.optional:
                arguments[told.name] = kind.spare[told.name]
        for opened in kind.tool.opened:
            if opened.name in arguments or opened.name in kind.fields:
                continue
            value = added.get(opened.name, kind.plain.get(opened.name))
            if value is None and not opened.optional:
                value = kind.spare[opened.name]
            if value is not None:
                arguments[opened.name] = value
        if move.state is None and move.escape is not None and move.over is None:
            name, value = move.escape
            arguments.pop(name, None)
            if value is not None:
                arguments[name] = value
        arguments = {name: _json(value) for name, value in arguments.items()}
        return WitnessCall(
            tool=kind.tool.name,
            arguments=_written(kind.tool, arguments),
            answer=_told(kind.tool, arguments),
        )

    def _sums(self, ends: Ends) -> list[dict[str, Any]]:
        """For each call its values of parameters that are added up."""
        found: list[dict[str, Any]] = [{} for _ in self._moves]
        system = self._system
        for number, of in enumerate(system.sums):
            steps = []
            for at, (move, _) in enumerate(self._moves):
                made = system.left.core.calls[move.call]
                for place, given, name in system.kinds[made.tool].sums:
                    if place == number and given is None:
                        steps.append((at, name))
            if not steps:
                continue
            low, high = of.range if of.both is None else of.both
            units = [low] * len(steps)
            last = self._moves[-1][0]
            if ends == "stuck":
                for at in range(len(units)):
                    room = high - low
                    if of.caps[0] is not None:
                        room = min(room, of.caps[0] - sum(units))
                    units[at] += room // of.step * of.step
            elif last.over == number and of.caps[1] is not None:
                missing = of.caps[1] + 1 - sum(units)
                for at in reversed(range(len(units))):
                    more = min(high - low, max(0, -(-missing // of.step)) * of.step)
                    units[at] += more
                    missing -= more
            elif of.both is None or _over(sum(units), of.caps[0]):
                units[-1] = of.odd if of.odd is not None else of.range[0]
            for (at, name), value in zip(steps, units, strict=True):
                found[at][name] = grid_value(value, of.places)
        return found


def _times(moves: Sequence[Move], spans: Sequence[int]) -> list[int] | None:
    """Times of calls at which those before them have the ages of a path; None: there are none.

    The least that keep the differences, found as longest paths are.
    """
    more: list[tuple[int, int, int]] = []  # one time is at least another plus so much
    line: list[int] = []
    for at, move in enumerate(moves):
        more += [(at, at - 1, 0)] if at else []
        for call, age in zip(line, move.ages, strict=True):
            if age:
                more.append((at, call, spans[age - 1] + 1))
            if age < len(spans):
                more.append((call, at, -spans[age]))
        line = [at if place < 0 else line[place] for place in move.line]
    times = [0] * len(moves)
    for _ in range(len(moves) + 1):
        before = list(times)
        for later, earlier, by in more:
            times[later] = max(times[later], times[earlier] + by)
        if times == before:
            return times
    return None


def _over(total: int, cap: int | None) -> bool:
    return cap is not None and total > cap


def _listed(tool: Tool, values: Sequence[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for param, index in zip(tool.parameters, values, strict=True):
        text = param.values[index]
        if text == ANY:
            others = ("other", *[f"other {number}" for number in range(len(param.values))])
            found[param.name] = next(one for one in others if text_of(one) not in param.values)
        elif text:
            found[param.name] = json_of(text)
    return found


def fields_of_call(tool: Tool, call: WitnessCall) -> tuple[dict[str, str], dict[str, Any]]:
    """The listed fields of a call by their texts, and its open fields: arguments and answers."""
    listed: dict[str, str] = {}
    for one in tool.parameters:
        value = _found(one.observed, call, one.name, one.at)
        if value is not _NOTHING:
            text = text_of(value) or ""
            rest = one.values[-1] == ANY and text not in one.values
            listed[one.name] = ANY if rest else text
    opened: dict[str, Any] = {}
    for of in (*tool.opened, *tool.answers):
        value = _found(of in tool.answers, call, of.name, of.at)
        if value is not _NOTHING and not (value is None and of.null):
            opened[of.name] = value
    return listed, opened


_NOTHING: Any = object()


def _found(told: bool, call: WitnessCall, name: str, steps: Sequence[str] | None) -> Any:
    try:
        return found_at((call.answer or {}) if told else call.arguments, steps or (name,))
    except Missing:
        return _NOTHING


def opened(core: Core, session: WitnessSession) -> WitnessSession:
    """A session that is given exactly what a core asks for.

    Raises:
        OpenQuestion: P501, P505 no value of an attribute is known.
    """
    given = {
        one.name: session.given.get(one.name, _NOTHING)
        for one in core.given
        if one.name in session.given or not one.optional
    }
    found = {
        one.name: _json(Compared.spare("session", one))
        if given[one.name] is _NOTHING
        else given[one.name]
        for one in core.given
        if one.name in given
    }
    return replace(session, given=found)


def _json(value: Any) -> Any:
    """As :mod:`json` writes it: a decimal that is a value is what its double prints."""
    if isinstance(value, list):
        return [_json(one) for one in value]
    return float(value) if isinstance(value, Decimal) else value


def _written(tool: Tool, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, as JSON, in which fields have these values.

    Args:
        values: by name; those that stand at places make the values in which they stand.
    """
    placed = containers(tool)
    found: dict[str, Any] = {}
    for one in arguments_of(tool):
        if one.at is None and one.name in values and one.name not in placed:
            found[one.name] = values[one.name]
    for name, inside in placed.items():
        of = next(one for one in tool.opened if one.name == name)
        there = [one for one in inside if one.name in values]
        if there or not of.optional:
            found[name] = {}
        for one in there:
            _put(found, one.at or (), values[one.name])
    return found


def _told(tool: Tool, values: Mapping[str, Any]) -> dict[str, Any] | None:
    """The answer in which fields have these values; None: the tool gives none."""
    fields = answers_of(tool)
    found: dict[str, Any] = {}
    for one in fields:
        if one.name in values:
            _put(found, (one.name,) if one.at is None else one.at, values[one.name])
    return found if fields else None


def _put(within: dict[str, Any], steps: Sequence[str], value: Any) -> None:
    for step in steps[:-1]:
        within = within.setdefault(step, {})
    within[steps[-1]] = value

"""What a policy means: a session decided call by call, by the sentences of its definition alone.

Slow and clear: every question goes through the whole history.  Truth has three values, True, False
and None for unsure.  What speaks of listed fields alone is decided as the automaton decides it: in
every *world*, a choice of what the unknown outcomes were, some answer has to lead to a word that is
the beginning of a plan.  All else is decided by the three values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, Literal, TypeAlias

from tests.oracle_policies import language as l
from tests.oracle_policies.members import are_declared, has_record
from tests.oracle_policies.values import (
    MISSING,
    NONE,
    UNKNOWN,
    WRONG,
    State,
    Value,
    is_known,
    plain,
    read,
    rest_of,
)

Truth: TypeAlias = "bool | None"
Outcome = Literal["under way", "unknown", "done", "failed"]
NEVER = 1 << 62


# Three values.


def both(parts: Iterable[Truth]) -> Truth:
    """False if one part is, else unsure if one is."""
    found = list(parts)
    return False if False in found else None if None in found else True


def either(parts: Iterable[Truth]) -> Truth:
    """True if one part is, else unsure if one is."""
    found = list(parts)
    return True if True in found else None if None in found else False


def opposite(one: Truth) -> Truth:
    """Unsure of what is unsure."""
    return None if one is None else not one


# Calls.


@dataclass(kw_only=True, eq=False)
class Made:
    """A call: one of a session, or the one that is decided on.

    Attributes:
        stamp: UTC ms, that never go back.
        made_at, told_at: places in the order of all records of its call and first outcome.
        answered: it failed, and the caller has read what the tool said.
        states: of each field.
        attributes: ``session.x`` as they were when it was decided.
    """

    tool: l.Tool
    stamp: int
    states: Mapping[str, State]
    made_at: int = NEVER
    told_at: int = NEVER
    outcome: Outcome = "under way"
    answered: bool = False
    attributes: Mapping[str, State] = field(default_factory=dict)

    @property
    def done(self) -> Truth:
        """Whether it was done."""
        return {"done": True, "failed": False}.get(self.outcome)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a relation speaks of: B, the earlier call, elements, and the history."""

    own: Made
    seen: Made | None = None
    bound: Mapping[str, State] = field(default_factory=dict)
    history: Sequence[Made] = ()

    def state_of(self, term: l.Of) -> State:
        """The state of a field."""
        if term.scope == "own":
            found = self.own.states[term.name or ""]
        elif term.scope == "seen":
            assert self.seen is not None
            found = self.seen.states[term.name or ""]
        else:
            found = self.bound[term.scope]
            if term.name is not None:
                found = _part(found, term.name)
        if term.part is not None and is_known(found):
            parts = [_part(item, term.part) for item in found[1]]
            lacking = [part for part in parts if not is_known(part)]
            return lacking[0] if lacking else ("l", tuple(parts))
        return found


def _part(record: State, name: str) -> State:
    if not is_known(record):
        return record
    assert record[0] == "r"
    return dict(record[1])[name]


# Sets of calls.


def belongs(calls: l.Calls, call: Made) -> Truth:
    """Whether a call is in a set."""
    match calls:
        case l.Any_():
            return True
        case l.Named(of=of):
            return belongs(of, call)
        case l.Either(sets=sets):
            return either(belongs(one, call) for one in sets)
        case l.But(one=one, other=other):
            return both([belongs(one, call), opposite(belongs(other, call))])
        case l.Pattern(tool=tool, where=where):
            if call.tool.name != tool:
                return False
            return both(_among(call.states[name], values) for name, values in where)
    raise AssertionError(calls)


def _among(state: State, values: Sequence[Any]) -> Truth:
    if state == UNKNOWN:
        return None
    if state[0] == "*":
        return l.REST in values
    return state in [plain(value) for value in values if value is not l.REST]


# Terms.


def state_of(term: l.Term | l.ListTerm, scene: Scene) -> State:
    """What a term is."""
    match term:
        case l.Const(value=value, unit=unit):
            return ("n", Fraction(value) * l.UNITS[unit]) if unit else plain(value)
        case l.Constants(values=values):
            return "l", tuple(plain(value) for value in values)
        case l.Of():
            return scene.state_of(term)
        case l.Attribute(name=name):
            return scene.own.attributes.get(name, UNKNOWN)
        case l.Now():
            return "t", scene.own.stamp
        case l.Max(one=one, other=other):
            sides = [state_of(one, scene), state_of(other, scene)]
            lacking = [side for side in sides if not is_known(side)]
            return lacking[0] if lacking else max(sides, key=lambda side: Fraction(side[1]))
        case l.Linear(parts=parts):
            return _sum([(factor, state_of(part, scene)) for factor, part in parts])
        case l.Count(of=of):
            return _count(term, state_of(of, scene), scene)
        case l.Look():
            return _looked_up(term, scene)
    raise AssertionError(term)


def _sum(parts: Sequence[tuple[Any, State]]) -> State:
    lacking = [state for _, state in parts if not is_known(state)]
    if lacking:
        return lacking[0]
    times = sum((Fraction(factor) for factor, state in parts if state[0] == "t"), Fraction(0))
    total = sum((Fraction(factor) * Fraction(state[1]) for factor, state in parts), Fraction(0))
    return ("t" if times == 1 else "n"), total


def _count(term: l.Count, items: State, scene: Scene) -> State:
    if not is_known(items):
        return items
    element = l.Of(scope=l.ELEMENT, name=None)
    relation: l.Relation | None = None
    if term.pattern is not None:
        relation = l.Like(left=element, pattern=term.pattern, negated=term.op == "!~")
    elif term.among is not None:
        relation = l.In(left=element, right=term.among, negated=term.op == "not in")
    elif term.op is not None:
        assert term.than is not None
        relation = l.Compare(op=term.op, left=element, right=term.than)
    if relation is None:
        return "n", Fraction(len(items[1]))
    found = [holds(relation, _bind(scene, {l.ELEMENT: item})) for item in items[1]]
    return UNKNOWN if None in found else ("n", Fraction(sum(map(bool, found))))


def _bind(scene: Scene, more: Mapping[str, State]) -> Scene:
    return replace(scene, bound={**scene.bound, **more})


def _looked_up(term: l.Look, scene: Scene) -> State:
    """Of the calls that were made before B: of a call of another time, before that."""
    scene = replace(scene, history=[c for c in scene.history if c.made_at < scene.own.made_at])
    keys = [state_of(key, scene) for key in term.keys]
    lacking = [key for key in keys if not is_known(key)]
    if lacking:
        return UNKNOWN
    let = scene.own.attributes["look up " + term.name]
    assert isinstance(let, l.LookUp)
    if let.rows:
        return _latest_row(let, keys, term.field, scene)
    assert let.calls is not None
    for call in reversed(scene.history):
        if not _speaks_of(let.calls, call.tool.name):
            continue
        mine = both(same(call.states[name], key) for name, key in zip(let.keys, keys, strict=True))
        if mine is None:
            return UNKNOWN
        if mine:
            return call.states[term.field] if call.done else UNKNOWN
    return UNKNOWN


def _latest_row(let: l.LookUp, keys: Sequence[State], name: str, scene: Scene) -> State:
    for call in reversed(scene.history):
        lists = [call.states[rows] for tool, rows in let.rows if call.tool.name == tool]
        if lists and (UNKNOWN in lists or not call.done):
            return UNKNOWN
        for items in lists:
            for row in reversed(items[1] if is_known(items) else ()):
                cells = dict(row[1])
                mine = both(same(cells[k], key) for k, key in zip(let.keys, keys, strict=True))
                if mine is None:
                    return UNKNOWN
                if mine:
                    return cells[name] if name in cells else call.states[name]
    return UNKNOWN


def _speaks_of(calls: l.Calls, tool: str) -> bool:
    """Whether calls of a tool can be in a set, whatever their fields."""
    match calls:
        case l.Any_():
            return True
        case l.Named(of=of):
            return _speaks_of(of, tool)
        case l.Either(sets=sets):
            return any(_speaks_of(one, tool) for one in sets)
        case l.But(one=one):
            return _speaks_of(one, tool)
        case l.Pattern(tool=name):
            return name == tool
    raise AssertionError(calls)


# Relations.


def same(one: State, other: State) -> Truth:
    """Whether two states are one value."""
    if not is_known(one) or not is_known(other):
        return None
    if one[0] == "*" or other[0] == "*":
        rest, value = (one, other) if one[0] == "*" else (other, one)
        return False if value in rest[1] else None
    return one == other


def holds(relation: l.Relation, scene: Scene) -> Truth:
    """Whether a relation holds."""
    match relation:
        case l.Compare(op=op, left=left, right=right, maybe=maybe):
            mine = state_of(left, scene)
            if maybe and mine == NONE:
                return True
            return compared(op, mine, state_of(right, scene))
        case l.In(left=left, right=among, negated=negated, maybe=maybe):
            mine = state_of(left, scene)
            if maybe and mine == NONE:
                return True
            items = state_of(among, scene)
            if not is_known(mine) or not is_known(items):
                return None
            found = either(same(mine, item) for item in items[1])
            return opposite(found) if negated else found
        case l.Like(left=left, pattern=pattern, negated=negated, maybe=maybe):
            mine = state_of(left, scene)
            if maybe and mine == NONE:
                return True
            if not is_known(mine) or mine[0] == "*":
                return None
            return matches(pattern, mine) is not negated
        case l.Every(of=of, each=each):
            items = state_of(of, scene)
            if not is_known(items):
                return None
            return both(holds(each, _bind(scene, {l.ELEMENT: item})) for item in items[1])
        case l.Group():
            return _group(relation, scene)
    raise AssertionError(relation)


def matches(pattern: str, value: Value) -> bool:
    """Whether all of a text matches; what is no text does not."""
    import re

    return value[0] == "s" and re.fullmatch(pattern, value[1]) is not None


def compared(op: str, left: State, right: State) -> Truth:
    """``left op right``."""
    if op == "=":
        return same(left, right)
    if op == "!=":
        return opposite(same(left, right))
    if not is_known(left) or not is_known(right) or "*" in (left[0], right[0]):
        return None
    assert left[0] == right[0] in ("n", "t"), (left, right)
    one, other = left[1], right[1]
    return {"<": one < other, "<=": one <= other, ">": one > other, ">=": one >= other}[op]


def _group(group: l.Group, scene: Scene) -> Truth:
    lists = [state_of(one, scene) for one, _ in group.lists]
    if not all(map(is_known, lists)):
        return None
    if len({len(items[1]) for items in lists}) > 1:
        return False
    found = []
    for items in zip(*[items[1] for items in lists], strict=True):
        named = {name: item for (_, name), item in zip(group.lists, items, strict=True)}
        inner = _bind(scene, named)
        found.append(both(holds(one, inner) for one in group.relations))
    return both(found) if group.every else either(found)


# Alternatives: of which earlier calls they surely hold, and of which they may.


def keys_equal(alternative: l.Alternative, call: Made, scene: Scene) -> Truth:
    """Whether the keys of `same` are equal."""
    return both(same(call.states[f], state_of(term, scene)) for f, term in alternative.same)


def conditions(alternative: l.Alternative, call: Made, scene: Scene) -> Truth:
    """Set, relations and window, without the keys."""
    assert alternative.calls is not None
    inner = replace(scene, seen=call)
    parts = [belongs(alternative.calls, call)]
    parts += [holds(relation, inner) for relation in alternative.where]
    if alternative.within is not None:
        parts.append(call.stamp >= scene.own.stamp - alternative.within)
    return both(parts)


def _of_tools(alternative: l.Alternative, before: Sequence[Made]) -> list[Made]:
    assert alternative.calls is not None
    return [call for call in before if _speaks_of(alternative.calls, call.tool.name)]


def _candidates(
    alternative: l.Alternative, before: Sequence[Made], scene: Scene
) -> list[tuple[Made, Truth]]:
    """For `last`: calls of the set's tools whose keys are not surely other ones, latest first."""
    assert alternative.calls is not None
    mine = reversed(_of_tools(alternative, before))
    found = [(call, keys_equal(alternative, call, scene)) for call in mine]
    return [(call, equal) for call, equal in found if equal is not False]


def surely(alternative: l.Alternative, before: Sequence[Made], scene: Scene) -> list[Made]:
    """The earlier calls of which an alternative surely holds."""
    if alternative.last:
        latest = _candidates(alternative, before, scene)[:1]
        return [
            call
            for call, equal in latest
            if call.done and equal and conditions(alternative, call, scene)
        ]
    return [
        call
        for call in _of_tools(alternative, before)
        if call.done
        and keys_equal(alternative, call, scene)
        and conditions(alternative, call, scene)
    ]


def possibly(alternative: l.Alternative, before: Sequence[Made], scene: Scene) -> list[Made]:
    """The earlier calls of which an alternative may hold."""
    pool = _of_tools(alternative, before)
    if alternative.last:
        pool = []
        for call, equal in _candidates(alternative, before, scene):
            pool.append(call)
            if call.done and equal:
                break
    return [
        call
        for call in pool
        if call.done is not False
        and keys_equal(alternative, call, scene) is not False
        and conditions(alternative, call, scene) is not False
    ]


# Statements: whether they refuse a call.


def refuses(statement: l.Statement, call: Made, history: Sequence[Made]) -> bool:
    """Whether a statement refuses a call after a history, in which failed calls may still be."""
    past = [one for one in history if one.outcome != "failed"]
    scene = Scene(own=call, history=past)
    match statement:
        case l.Require():
            return belongs(statement.before, call) is not False and not any(
                _helped(statement, number, past, scene)
                for number in range(len(statement.alternatives))
            )
        case l.Forbid():
            # An error that the caller has read counts as done, and answered nobody knows what.
            told = [_as_done(one) for one in history if one.outcome != "failed" or one.answered]
            if belongs(statement.before, call) is False:
                return False
            return any(
                _holds_back(statement, one, told, past, scene) for one in statement.alternatives
            )
        case l.Apart():
            told = [_as_done(one) for one in history if one.outcome != "failed" or one.answered]
            return _apart(statement, told, scene)
        case l.Neighbours(sets=sets):
            told = [*past, call][-len(sets) :]
            if len(told) < len(sets):
                return False
            return both(map(belongs, sets, told)) is not False
        case l.Uses(least=False):
            return _uses(statement, past, scene) > statement.most
        case l.Sum():
            return _total(statement, past, scene) > Fraction(statement.most)
        case l.Depth(most=most):
            return len(past) + 1 > most
    return False


def _as_done(call: Made) -> Made:
    if not call.answered:
        return call
    states = {f.name: UNKNOWN if f.answer else call.states[f.name] for f in call.tool.fields}
    return replace(call, outcome="done", states=states)


def _helped(statement: l.Require, number: int, past: Sequence[Made], scene: Scene) -> bool:
    alternative = statement.alternatives[number]
    if alternative.calls is None:
        return both(holds(relation, scene) for relation in alternative.where) is True
    found = surely(alternative, past, scene)
    if statement.each:
        found = [call for call in found if not _used(statement, alternative, call, past)]
    return len(found) >= alternative.least


def _used(
    statement: l.Require, alternative: l.Alternative, call: Made, past: Sequence[Made]
) -> bool:
    """Whether a call in B, itself or a later one, may have been served by it."""
    for later in past:
        if later.made_at < call.made_at or belongs(statement.before, later) is False:
            continue
        before = [one for one in past if one.made_at < later.made_at or one is call]
        if call in possibly(alternative, before, Scene(own=later, history=before)):
            return True
    return False


def _holds_back(
    statement: l.Forbid,
    alternative: l.Alternative,
    told: Sequence[Made],
    past: Sequence[Made],
    scene: Scene,
) -> bool:
    errors = replace(scene, history=told)  # what it looks up counts them, too
    if alternative.calls is None:
        return both(holds(relation, errors) for relation in alternative.where) is not False
    found = [
        call
        for call in possibly(alternative, told, errors)
        if not any(
            sum(other.made_at > call.told_at for other in surely(lifting, past, scene))
            >= lifting.least
            for lifting in statement.unless
        )
    ]
    return len(found) >= alternative.least


def _may_be_apart(statement: l.Apart, one: Made, other: Made, told: Sequence[Made] = ()) -> bool:
    """Whether they may be a call in A and a call in B with the same keys."""
    inner = Scene(own=other, history=told)
    parts = [belongs(statement.one, one), belongs(statement.other, other)]
    if False in parts:
        return False
    parts += [same(one.states[f], state_of(term, inner)) for f, term in statement.same]
    return both(parts) is not False


def _stand_next(sets: Sequence[l.Calls], word: Sequence[Made]) -> bool:
    """Whether the last calls of a word may be in these sets, and one of them is an error."""
    last = word[-len(sets) :]
    if len(last) < len(sets) or not any(one.answered for one in last):
        return False
    return both(map(belongs, sets, last)) is not False


def _apart(statement: l.Apart, past: Sequence[Made], scene: Scene) -> bool:
    call = scene.own
    return _may_be_apart(statement, call, call, past) or any(
        _may_be_apart(statement, x, call, past) or _may_be_apart(statement, call, x, past)
        for x in past
    )


def _counted(
    where: Sequence[l.Relation], per: Sequence[l.Term], call: Made, scene: Scene, within: int | None
) -> bool:
    inner = replace(scene, own=call)
    parts = [holds(relation, inner) for relation in where]
    parts += [same(state_of(term, inner), state_of(term, scene)) for term in per]
    if within is not None:
        parts.append(call.stamp >= scene.own.stamp - within)
    return both(parts) is not False


def _uses(statement: l.Uses, past: Sequence[Made], scene: Scene) -> int:
    where, per, within = statement.where, statement.per, statement.within
    mine = [c for c in (*past, scene.own) if belongs(statement.calls, c) is not False]
    if scene.own not in mine or not _counted(where, (), scene.own, scene, within):
        return 0
    return sum(call is scene.own or _counted(where, per, call, scene, within) for call in mine)


def _total(statement: l.Sum, past: Sequence[Made], scene: Scene) -> Fraction:
    total = Fraction(0)
    if scene.own.tool.name != statement.tool:
        return total
    for call in (*past, scene.own):
        if call.tool.name != statement.tool:
            continue
        if call is scene.own or _counted((), statement.per, call, scene, statement.within):
            state = call.states[statement.field]
            total += state[1] if is_known(state) else 0
    return total


def is_owed(statement: l.Owed, history: Sequence[Made]) -> bool:
    """Whether the session may not end before a call in A."""
    past = [one for one in history if one.outcome != "failed"]
    for call in past:
        if belongs(statement.after, call) is False:
            continue
        scene = Scene(own=call, history=past)
        if not any(
            one.done
            and one.made_at > call.made_at
            and belongs(statement.calls, one)
            and both(same(one.states[f], state_of(term, scene)) for f, term in statement.same)
            for one in past
        ):
            return True
    return False


def is_short(statement: l.Uses, word: Sequence[Made]) -> bool:
    """Whether a word has too few calls of a set."""
    return sum(bool(belongs(statement.calls, call)) for call in word) < statement.most


# What the automaton decides.


def is_listed(statement: l.Statement, grammar: l.Grammar) -> bool:
    """Whether a statement speaks of listed fields alone."""
    terms: list[Any] = []
    windows: list[int | None] = []
    fields: list[tuple[list[str], str]] = []
    everything = l.tools_of(l.Any_(), grammar.tools)
    match statement:
        case l.Depth() | l.Neighbours():
            return True
        case l.Require(before=before) | l.Forbid(before=before):
            more = statement.unless if isinstance(statement, l.Forbid) else ()
            own = l.tools_of(before, grammar.tools)
            for one in (*statement.alternatives, *more):
                mine = everything if one.calls is None else l.tools_of(one.calls, grammar.tools)
                windows.append(one.within)
                fields += [(mine, name) for name, _ in one.same]
                terms += [(own, mine, term) for _, key in one.same for term in l.terms_in(key)]
                terms += [(own, mine, t) for relation in one.where for t in l.terms_of(relation)]
                if one.calls is None:
                    return False
        case l.Owed(calls=one, after=other) | l.Apart(one=one, other=other):
            mine, own = l.tools_of(one, grammar.tools), l.tools_of(other, grammar.tools)
            fields += [(mine, name) for name, _ in statement.same]
            terms += [(own, mine, term) for _, key in statement.same for term in l.terms_in(key)]
        case l.Uses(calls=calls):
            own = l.tools_of(calls, grammar.tools)
            windows.append(statement.within)
            terms += [(own, own, term) for key in statement.per for term in l.terms_in(key)]
            terms += [(own, own, t) for relation in statement.where for t in l.terms_of(relation)]
        case l.Sum(tool=tool, field=name):
            windows.append(statement.within)
            fields.append(([tool], name))
            terms += [([tool], [tool], term) for key in statement.per for term in l.terms_in(key)]
    if statement.monitor or any(window is not None for window in windows):
        return False
    for own, seen, term in terms:
        match term:
            case l.Const() | l.Constants():
                pass
            case l.Of(scope="own", name=name):
                fields.append((own, name))
            case l.Of(scope="seen", name=name):
                fields.append((seen, name))
            case _:
                return False
    return all(
        tool is not None and tool.field(name).listed
        for names, name in fields
        for tool in map(grammar.tool, names)
    )


def worlds(history: Sequence[Made], *, unforeseen: bool = True) -> Iterator[list[Made]]:
    """Every word that the session may have been, of calls that were done, as they were answered."""
    choices: list[list[Made | None]] = []
    for call in history:
        if call.outcome == "failed":
            continue
        found: list[Made | None] = list(answers_of(call))
        choices.append(found if call.done else [None, *found])
    for chosen in product(*choices):
        yield [call for call in chosen if call is not None]


def answers_of(call: Made) -> list[Made]:
    """The call as it was answered, or as it may have been where that is not known."""
    names = [f for f in call.tool.fields if f.answer and f.listed]
    options = []
    for one in names:
        state = call.states[one.name]
        if call.outcome != "done" or state == UNKNOWN:
            assert one.values is not None
            found: list[State] = [plain(value) for value in one.values]
            found += [rest_of(one)] * one.rest + [NONE] * one.optional
            options.append(found)
        else:
            options.append([state])
    return [
        replace(
            call,
            outcome="done",
            states={**call.states, **dict(zip([f.name for f in names], chosen, strict=True))},
        )
        for chosen in product(*options)
    ]


class Automaton:
    """The plans of the statements about listed fields, by listing what is asked for."""

    def __init__(self, grammar: l.Grammar) -> None:
        self.grammar = grammar
        listed = [one for one in grammar.statements if is_listed(one, grammar)]
        self.safe = [s for s in listed if not isinstance(s, l.Owed) and not _is_least(s)]
        self.owed = [s for s in listed if isinstance(s, l.Owed)]
        self.least = [s for s in listed if isinstance(s, l.Uses) and s.least]
        # Of a require that is decided in sessions the automaton keeps that some call of a set came.
        self.shadows = [
            found
            for one in grammar.statements
            if isinstance(one, l.Require) and one not in listed
            if (found := shadow(one)) is not None
        ]
        self._letters: list[Made] | None = None
        # By the words as listed fields tell them apart, so that each is looked at once.
        self._on: dict[tuple[Any, ...], bool] = {}
        self._kept: dict[tuple[Any, ...], bool] = {}

    def begins(self, word: Sequence[Made]) -> bool:
        """Whether a plan begins with a word."""
        key = _key(word)
        found = self._on.get(key)
        if found is None:
            timed = [
                replace(one, made_at=2 * at, told_at=2 * at + 1) for at, one in enumerate(word)
            ]
            found = self._on[key] = self.is_safe(timed, key) and (
                not (self.owed or self.least)
                or self.ends(timed)
                or (
                    len(word) < self.grammar.depth
                    and any(self.begins([*word, letter]) for letter in self.letters())
                )
            )
        return found

    def ends(self, word: Sequence[Made]) -> bool:
        """Whether a word that broke nothing is a plan."""
        return not any(is_owed(one, word) for one in self.owed) and not any(
            is_short(one, word) for one in self.least
        )

    def is_safe(self, word: Sequence[Made], key: tuple[Any, ...] | None = None) -> bool:
        """Whether no call of it is refused by what came before."""
        if not word:
            return True
        key = _key(word) if key is None else key
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = self.is_safe(word[:-1], key[:-1]) and not any(
                refuses(statement, word[-1], word[:-1]) for statement in (*self.safe, *self.shadows)
            )
        return found

    def letters(self) -> list[Made]:
        """One call of each kind that the automaton tells apart."""
        if self._letters is None:
            self._letters = []
            for tool in self.grammar.tools:
                mine = [f for f in tool.fields if f.listed]
                pools = []
                for one in mine:
                    assert one.values is not None
                    pool: list[State] = [plain(value) for value in one.values]
                    pools.append(pool + [rest_of(one)] * one.rest + [NONE] * one.optional)
                for chosen in product(*pools):
                    states = dict(zip([f.name for f in mine], chosen, strict=True))
                    self._letters.append(Made(tool=tool, stamp=0, states=states, outcome="done"))
        return self._letters


def _key(word: Sequence[Made]) -> tuple[Any, ...]:
    """A word as listed fields tell its calls apart."""
    return tuple((call.tool.name, tuple(sorted(_listed(call).items()))) for call in word)


def shadow(statement: l.Require) -> l.Require | None:
    """What is left of a require for the automaton: one of its sets before B."""
    if any(one.calls is None for one in statement.alternatives):
        return None
    bare = tuple(l.Alternative(calls=one.calls) for one in statement.alternatives)
    return l.Require(alternatives=bare, before=statement.before)


def _is_least(statement: l.Statement) -> bool:
    return isinstance(statement, l.Uses) and statement.least


def _listed(call: Made) -> dict[str, State]:
    return {f.name: call.states[f.name] for f in call.tool.fields if f.listed}


# A session.


@dataclass(kw_only=True)
class Session:
    """A session that is told what happens, and asked what it allows.

    Attributes:
        given: JSON values of the attributes that are handed in.
        ends: whether an unforeseen answer ends it (language 1.1).
    """

    grammar: l.Grammar
    given: Mapping[str, Any] = field(default_factory=dict)
    ends: bool = False
    made: list[Made] = field(default_factory=list)
    automaton: Automaton = field(init=False)
    now: int = 0
    ended: bool = False

    def __post_init__(self) -> None:
        self.automaton = Automaton(self.grammar)
        self._records = 0
        self._attributes: dict[str, Any] = {}
        for one in self.grammar.given:
            state = read(self.given, one)
            self._attributes[one.name] = UNKNOWN if state in (MISSING, WRONG) else state
        for let in self.grammar.lets:
            if isinstance(let, l.LookUp):
                self._attributes["look up " + let.name] = let
        self._order: list[tuple[str, Made]] = []

    # Decisions.

    def decide(self, tool: object, arguments: Any, clock: int) -> str | None:
        """The code of a refusal, None where the call is allowed."""
        if self.ended or (self.ends and self._is_lost()):
            return "R302"
        call = self.asked(tool, arguments, max(self.now, clock))
        if isinstance(call, str):
            return call
        if not self._planned(call):
            return "R201"
        if any(refuses(one, call, self.made) for one in self._monitors()):
            return "R202"
        if any(self._after_errors(one, call) for one in self.automaton.safe):
            return "R202"
        return None

    def _after_errors(self, statement: l.Statement, call: Made) -> bool:
        """Whether a forbid that plans are held to refuses a call for an error that was read."""
        read = [told for one in self.made if one.answered for told in answers_of(_as_done(one))]
        scene = Scene(own=call, history=self.made)
        match statement:
            case l.Forbid(alternatives=some, unless=unless):
                if unless or any(one.last or one.least > 1 for one in some):
                    failing = any(
                        letter.tool.errors and belongs(one.calls, letter) is not False
                        for one in some
                        for letter in self.automaton.letters()
                        if one.calls is not None
                    )
                    return failing and refuses(statement, call, self.made)
                mine = belongs(statement.before, call) is not False
                return mine and any(possibly(one, read, scene) for one in some)
            case l.Apart():
                return any(
                    _may_be_apart(statement, x, y)
                    for one in read
                    for x, y in ((one, call), (call, one))
                )
            case l.Neighbours(sets=sets):
                return any(_stand_next(sets, word) for word in self._words(call))
        return False

    def _words(self, call: Made) -> Iterator[list[Made]]:
        """The calls so far, errors that were read among them, and this one."""
        choices = [
            [_as_done(one)] if one.answered else [one] if one.done else [None, one]
            for one in self.made
            if one.outcome != "failed" or one.answered
        ]
        for chosen in product(*choices):
            yield [*[one for one in chosen if one is not None], call]

    def refusing(self, tool: object, arguments: Any, clock: int) -> list[l.Statement]:
        """The statements that refuse it, each by itself."""
        call = self.asked(tool, arguments, max(self.now, clock))
        assert isinstance(call, Made)
        return [one for one in self.grammar.statements if refuses(one, call, self.made)]

    def _is_lost(self) -> bool:
        """Whether no plan begins with what was made, whatever the unknown outcomes were."""
        return not any(self.automaton.begins(word) for word in worlds(self.made))

    def _monitors(self) -> Iterator[l.Statement]:
        held = self.automaton
        inside = {id(one) for one in (*held.safe, *held.owed, *held.least)}
        for one in self.grammar.statements:
            if id(one) not in inside:
                yield one

    def _planned(self, call: Made) -> bool:
        return all(
            any(self.automaton.begins([*word, one]) for one in answers_of(call))
            for word in worlds(self.made)
        )

    def asked(self, tool: object, arguments: Any, stamp: int) -> Made | str:
        """The call that is asked for, or why it is none."""
        table = self.grammar.tool(tool)
        if table is None:
            return "R101"
        if not isinstance(arguments, dict):
            return "R106"
        mine = [f for f in table.fields if not f.answer]
        own = {f.name for f in mine if f.place in (None, "/" + f.name)}
        if any(name not in own for name in arguments):
            return "R102"
        states: dict[str, State] = {f.name: UNKNOWN for f in table.fields}
        for one in sorted(mine, key=lambda f: not f.listed):
            state = read(arguments, one)
            if state is MISSING:
                return "R103"
            if state is WRONG:
                return "R104" if one.listed else "R105"
            if (
                one.name in own
                and has_record(one.type)
                and not are_declared(arguments, mine, one.name)
            ):
                return "R105"
            states[one.name] = state
        return Made(
            tool=table, stamp=stamp, states=states, made_at=NEVER, attributes=dict(self._attributes)
        )

    # What happens.

    def call(self, tool: str, arguments: Any, clock: int) -> int:
        """A call is made; its number."""
        self.now = max(self.now, clock)
        made = self.asked(tool, arguments, self.now)
        assert isinstance(made, Made)
        made.made_at = self._next_record()
        self.made.append(made)
        return len(self.made)

    def outcome(
        self, seq: int, outcome: Outcome, answer: Any = MISSING, *, answered: bool = False
    ) -> None:
        """The outcome of a call that is under way; a done one with its answer, JSON, None: none."""
        call = self.made[seq - 1]
        call.outcome, call.answered, call.told_at = outcome, answered, self._next_record()
        if outcome == "done":
            self._done(call, answer)

    def resolve(self, seq: int, outcome: Outcome, answer: Any = MISSING) -> None:
        """An unknown outcome is known."""
        call = self.made[seq - 1]
        assert call.outcome == "unknown"
        self._next_record()
        call.outcome = outcome
        if outcome == "done":
            self._done(call, answer)

    def _done(self, call: Made, answer: Any) -> None:
        states = dict(call.states)
        for one in call.tool.fields:
            if one.answer:
                state = MISSING if answer in (MISSING, None) else read(answer, one)
                states[one.name] = UNKNOWN if state is MISSING or state is WRONG else state
                if self.ends and states[one.name] == UNKNOWN and one.listed:
                    self.ended = True
        call.states = states
        for let in self.grammar.lets:
            if isinstance(let, l.Let) and not is_known(self._attributes.get(let.name, UNKNOWN)):
                known = [
                    states[name]
                    for tool, name in let.sources
                    if tool == call.tool.name and is_known(states[name])
                ]
                if known:
                    self._attributes[let.name] = known[0]

    def _next_record(self) -> int:
        self._records += 1
        return self._records

    def may_finish(self) -> bool:
        """Whether the session may end here."""
        if self.ended or any(call.outcome == "under way" for call in self.made):
            return False
        if any(isinstance(s, l.Owed) and is_owed(s, self.made) for s in self.grammar.statements):
            return False
        return all(
            self.automaton.begins(word) and self.automaton.ends(word) for word in worlds(self.made)
        )

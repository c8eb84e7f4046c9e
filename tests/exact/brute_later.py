"""Exact questions about language 1.2 by brute force: all sessions over listed values and times.

What a grammar lets through is asked of :mod:`tests.oracle_policies`, the definition of these
statements sentence by sentence, call by call; nothing here is of the product.  Types are those of
:mod:`tests.exact.brute`, of which as many values are listed as a session has fields.  Between two
calls pass 0 ms, 1 ms, .. up to one more than the longest span: what is longer is like that.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, TypeAlias

from tests.exact.brute import CLASS, FRESH, TYPES, WIDE
from tests.oracle_policies import language as l
from tests.oracle_policies.meaning import Made, Session, is_owed, refuses
from tests.oracle_policies.writer import statement_of, text_of

SPANS = (3, 5)  # ms; a span of at least the number of calls is exact, several never are
MOST_SESSIONS = 2500
OPEN = {
    'text ~ "p|q"': l.Type(kind="text", pattern="p|q"),
    'text ~ "q|r"': l.Type(kind="text", pattern="q|r"),
    'text ~ "[p-z]"': l.Type(kind="text", pattern="[p-z]"),
    "text min 1 max 9": l.Type(kind="text", low=1, high=9),
    "integer 0 .. 2": l.Type(kind="integer", low=0, high=2),
    "integer 1 .. 3": l.Type(kind="integer", low=1, high=3),
    "flag": l.Type(kind="flag"),
}
NAMES = {kind: name for name, kind in OPEN.items()}
LIKES = ("p|q", "[p-z]", "[a-z]+", "q.*")  # new texts of one type are alike to each
LISTED = ("p", "q")  # texts of open fields, too
ANSWERS = ("q", "bad")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A call of a session: arguments and answer, as JSON, and the time since the call before.

    Attributes:
        texts: that stand in it.
    """

    tool: str
    arguments: str
    answer: str
    later: int
    texts: tuple[str, ...] = ()


class Play:
    """A session of a grammar, by the definition."""

    def __init__(self, grammar: l.Grammar, given: str = "{}") -> None:
        self.session = Session(grammar=grammar, given=json.loads(given))

    def after(self, step: Step) -> Play | None:
        """The session with a call more; None: it is refused, or no plan goes on with its answer."""
        session = self.session
        now = session.now + step.later
        arguments = json.loads(step.arguments)
        if session.decide(step.tool, arguments, now) is not None:
            return None
        found = copy.copy(self)
        found.session = made = copy.copy(session)
        made.made = [copy.copy(one) for one in session.made]
        made._attributes = dict(session._attributes)
        seq = made.call(step.tool, arguments, now)
        made.outcome(seq, "done", json.loads(step.answer))
        return found if made.automaton.begins(made.made) else None

    @property
    def ends(self) -> bool:
        """Whether it may end."""
        return self.session.may_finish()

    def breaks(self, statement: l.Statement, step: Step) -> bool:
        """Whether a statement refuses a call."""
        session = self.session
        call = session.asked(step.tool, json.loads(step.arguments), session.now + step.later)
        return isinstance(call, Made) and refuses(statement, call, session.made)

    def owes(self, statement: l.Statement) -> bool:
        """Whether by a statement a call has to come yet."""
        return isinstance(statement, l.Owed) and is_owed(statement, self.session.made)


def steps(
    grammar: l.Grammar, before: Sequence[Step], gaps: Sequence[int], given: str = "{}"
) -> list[Step]:
    """Every call after others, the first of those that are alike."""
    values = [text for one in before for text in one.texts]
    values += [value for value in json.loads(given).values() if isinstance(value, str)]
    used = len({*values} & {*CLASS}), len({*values} & {*WIDE})
    found = _calls(grammar.tools, *used)
    return [replace(one, later=gap) for gap in (gaps if before else (0,)) for one in found]


def givens(grammar: l.Grammar) -> list[str]:
    """All that a session may be given, as JSON; the first of those that are alike."""
    return [_written(grammar.given, values) for values in _choices(grammar.given, 0, 0)]


def _pool(of: l.Field) -> list[Any]:
    if of.type is not None and of.type.kind == "json":
        return [_INSIDE]  # nothing but the fields that stand in it
    if of.values is None:
        pool = list(TYPES[NAMES[of.type]])  # type: ignore[index]
    else:
        pool = [*of.values, *["none of these"] * of.rest]
    return pool + [_LEFT_OUT] * of.optional + [None] * of.null


_LEFT_OUT, _INSIDE = object(), object()


def _choices(fields: Sequence[l.Field], of_class: int, of_wide: int) -> Iterator[tuple[Any, ...]]:
    """All values of fields, new texts in the order in which they are listed."""
    for values in product(*map(_pool, fields)):
        used = [of_class, of_wide]
        for value in values:
            if isinstance(value, str) and value in FRESH:
                row = 0 if value in CLASS else 1
                if FRESH[value] > used[row]:
                    break
                used[row] = max(used[row], FRESH[value] + 1)
        else:
            yield values


def _written(fields: Sequence[l.Field], values: Sequence[Any]) -> str:
    """An object in which fields have these values, as JSON."""
    found: dict[str, Any] = {}
    for one, value in zip(fields, values, strict=True):
        if value is _INSIDE:
            found.setdefault(one.name, {})
        elif value is not _LEFT_OUT:
            *way, last = [one.name] if one.place is None else one.place[1:].split("/")
            inside = found
            for step in way:
                inside = inside.setdefault(step, {})
            inside[last] = value
    return json.dumps(found)


@cache
def _calls(tools: tuple[l.Tool, ...], of_class: int, of_wide: int) -> list[Step]:
    found = []
    for tool in tools:
        mine = [one for one in tool.fields if not one.answer]
        told = [one for one in tool.fields if one.answer]
        for values in _choices([*mine, *told], of_class, of_wide):
            texts = tuple([one for one in values if isinstance(one, str)])
            arguments = _written(mine, values[: len(mine)])
            answer = _written(told, values[len(mine) :])
            step = Step(tool=tool.name, arguments=arguments, answer=answer, later=0, texts=texts)
            found.append(step)
    return found


def gaps_of(*of: l.Grammar | l.Statement) -> Sequence[int]:
    """The times that may pass between two calls."""
    spans = [span for one in of for span in _spans(one)]
    return range(max(spans) + 2) if spans else (0,)


def _spans(of: Any) -> list[int]:
    if isinstance(of, l.Grammar):
        return [span for one in of.statements for span in _spans(one)]
    parts = [of, *getattr(of, "alternatives", ()), *getattr(of, "unless", ())]
    return [span for one in parts if (span := getattr(one, "within", None)) is not None]


def many(grammar: l.Grammar, gaps: Sequence[int]) -> int:
    """At most so many sessions are gone through."""
    total = row = len(givens(grammar))
    for length in range(grammar.depth):
        row *= len(_calls(grammar.tools, 2 * length, 2 * length)) * (len(gaps) if length else 1)
        total += row
    return total


Met: TypeAlias = "tuple[str, list[Step], Play]"  # what is given, the calls, and where they lead


def sessions(grammar: l.Grammar, gaps: Sequence[int]) -> Iterator[Met]:
    """P of a grammar, short ones first."""
    level: list[Met] = [(given, [], Play(grammar, given)) for given in givens(grammar)]
    for length in range(grammar.depth + 1):
        yield from level
        if length < grammar.depth:
            level = [
                (given, [*some, step], then)
                for given, some, play in level
                for step in steps(grammar, some, gaps, given)
                if (then := play.after(step)) is not None
            ]


def breaks_inclusion(left: l.Grammar, right: l.Grammar) -> int | None:
    """The length of a shortest session of one grammar alone."""
    gaps = gaps_of(left, right)
    level: list[tuple[str, list[Step], Play, Play]]
    level = [(given, [], Play(left, given), Play(right, given)) for given in givens(left)]
    for length in range(left.depth + 1):
        if any(mine.ends and not theirs.ends for _, _, mine, theirs in level):
            return length
        after = []
        for given, some, mine, theirs in level if length < left.depth else ():
            for step in steps(left, some, gaps, given):
                then = mine.after(step)
                if then is None:
                    continue
                other = theirs.after(step) if len(some) < right.depth else None
                if other is None:
                    return length + 1
                after.append((given, [*some, step], then, other))
        level = after
    return None


def breaks_statement(left: l.Grammar, say: l.Statement) -> int | None:
    """The length of a shortest session that does not meet a statement."""
    gaps = gaps_of(left, say)
    level: list[Met] = [(given, [], Play(left, given)) for given in givens(left)]
    for length in range(left.depth + 1):
        if any(play.ends and play.owes(say) for _, _, play in level):
            return length
        after = []
        for given, some, play in level if length < left.depth else ():
            for step in steps(left, some, gaps, given):
                then = play.after(step)
                if then is None:
                    continue
                if play.breaks(say, step):
                    return length + 1
                after.append((given, [*some, step], then))
        level = after
    return None


def reaches(left: l.Grammar, tool: str) -> int | None:
    """The length of a shortest session that ends in a call of a tool."""
    found = (some for _, some, _ in sessions(left, gaps_of(left)))
    return next((len(some) for some in found if some and some[-1].tool == tool), None)


def stuck(left: l.Grammar) -> int | None:
    """The length of a shortest session that nothing of L goes on with."""
    every = list(sessions(left, gaps_of(left)))
    good = {
        (given, *some[:at])
        for given, some, play in every
        if play.ends
        for at in range(len(some) + 1)
    }
    return next((len(some) for given, some, _ in every if (given, *some) not in good), None)


def played(left: l.Grammar, session: Any) -> list[tuple[Play, Step]] | None:
    """The sessions before each call of one that was shown, and the call; None: it is none."""
    play, found, before = Play(left, json.dumps(dict(session.given))), [], 0
    for call in session.calls:
        at = call.at_ms or 0
        step = Step(
            tool=call.tool,
            arguments=json.dumps(dict(call.arguments)),
            answer=json.dumps(dict(call.answer or {})),
            later=at - before,
        )
        before = at
        found.append((play, step))
        then = play.after(step)
        if then is None:
            return None
        play = then
    found.append((play, Step(tool="", arguments="{}", answer="{}", later=0)))
    return found


# Random ones.


Names: TypeAlias = "Sequence[tuple[str, str]]"  # of attributes, with their kinds


def grammar(rng: random.Random, *, timed: bool, fields: bool = False) -> l.Grammar:
    """A grammar with not too many sessions.

    Args:
        fields: with open answers, places, null, and what a session is given and learns.
    """
    while True:
        made = _drawn(rng, timed, fields)
        texts = max([sum(one.type is not None for one in of.fields) for of in made.tools])
        fresh = made.depth * texts + len(made.given) <= len(CLASS)
        if fresh and many(made, gaps_of(made)) <= MOST_SESSIONS:
            return made


def _drawn(rng: random.Random, timed: bool, fields: bool) -> l.Grammar:
    kinds = rng.sample(list(OPEN), rng.choice([1, 1, 2]))
    tools = tuple([_tool(rng, name, kinds) for name in ("a", "b", "c")[: rng.choice([1, 2, 2, 3])]])
    given: tuple[l.Field, ...] = ()
    lets: tuple[l.Let, ...] = ()
    if fields:
        tools = tuple([_newer(rng, one, kinds) for one in tools])
        if rng.random() < 0.5:
            optional = rng.random() < 0.3
            given = (
                l.Field(
                    name="u",
                    type=OPEN[rng.choice(kinds)],
                    optional=optional,
                    null=optional and rng.random() < 0.5,
                ),
            )
        lets = _lets(rng, tools)
    made = l.Grammar(tools=tools, statements=(), given=given, lets=lets)
    says: list[l.Statement] = [l.Depth(most=rng.choice([2, 2, 3] if fields else [2, 3, 3]))]
    for _ in range(rng.choice([1, 1, 2, 3])):
        if (say := statement(rng, tools, timed, attributes(made))) is not None:
            says.append(say)
    return replace(made, statements=_once(says))


def attributes(made: l.Grammar) -> Names:
    """What statements may speak of that a session is given or learns, with its kinds."""
    found = [(one.name, _kind(one)) for one in made.given]
    for let in made.lets:
        assert isinstance(let, l.Let)
        tool, name = let.sources[0]
        of = next(one for one in made.tools if one.name == tool)
        found.append((let.name, _kind(of.field(name))))
    return found


def _kind(of: l.Field) -> str:
    return "text" if of.type is None else of.type.kind


def _newer(rng: random.Random, tool: l.Tool, kinds: Sequence[str]) -> l.Tool:
    """A tool with fields of version 1.2."""
    fields = []
    for one in tool.fields:
        if one.answer:
            one = replace(one, rest=rng.random() < 0.3, optional=rng.random() < 0.3)
            one = replace(one, place="/s/r" if rng.random() < 0.3 else None)
        elif one.optional:
            one = replace(one, null=one.type is not None and rng.random() < 0.5)
        fields.append(one)
    if rng.random() < 0.5:
        optional = rng.random() < 0.3
        answer = l.Field(
            name="o",
            type=OPEN[rng.choice(kinds)],
            optional=optional,
            null=optional and rng.random() < 0.5,
            place="/s/o" if rng.random() < 0.3 else None,
            answer=True,
        )
        fields.append(answer)
    if rng.random() < 0.25 and any(not one.answer for one in fields):
        at = next(at for at, one in enumerate(fields) if not one.answer)
        fields[at] = replace(fields[at], place=f"/j/{fields[at].name}")
        fields.insert(at, l.Field(name="j", type=l.Type(kind="json")))
    return replace(tool, fields=tuple(fields))


def _lets(rng: random.Random, tools: Sequence[l.Tool]) -> tuple[l.Let, ...]:
    every = [
        (tool.name, one)
        for tool in tools
        for one in tool.fields
        if one.name != "j" and not one.rest
    ]
    if not every or rng.random() < 0.5:
        return ()
    first = rng.choice(every)
    more = [one for one in every if one != first and _kind(one[1]) == _kind(first[1])]
    some = [first, *rng.sample(more, min(len(more), rng.choice([0, 0, 1])))]
    return (l.Let(name="w", sources=tuple([(tool, one.name) for tool, one in some])),)


def _once(says: Sequence[l.Statement]) -> tuple[l.Statement, ...]:
    return tuple({statement_of(one): one for one in says}.values())


def _tool(rng: random.Random, name: str, kinds: Sequence[str]) -> l.Tool:
    fields = [
        l.Field(name=one, type=OPEN[rng.choice(kinds)], optional=rng.random() < 0.1)
        for one in ("x", "y")[: rng.choice([0, 1, 1, 1, 2])]
    ]
    if rng.random() < 0.25:
        fields.insert(0, l.Field(name="k", values=LISTED))
    if rng.random() < 0.2:
        fields.append(l.Field(name="r", values=ANSWERS, answer=True))
    return l.Tool(name=name, fields=tuple(fields))


def changed(rng: random.Random, made: l.Grammar, *, timed: bool) -> l.Grammar:
    """A grammar like another."""
    says = list(made.statements)
    if len(says) > 1 and rng.random() < 0.5:
        says.pop(rng.randrange(1, len(says)))
    names = attributes(made)
    if rng.random() < 0.6 and (say := statement(rng, made.tools, timed, names)) is not None:
        says.append(say)
    if rng.random() < 0.3:
        says = [_nearly(rng, one) for one in says]
    found = replace(made, statements=_once(says))
    return _retyped(rng, found) if rng.random() < 0.25 else found


def _retyped(rng: random.Random, made: l.Grammar) -> l.Grammar:
    """With other types, or listed values, of one argument, and what is learned from elsewhere."""
    tools = list(made.tools)
    at = rng.randrange(len(tools))
    mine = [one for one in _open(tools[at]) if one.place is None]
    if mine:
        of = rng.choice(mine)
        kinds = [one for one in OPEN.values() if one.kind == of.type.kind and one != of.type]
        new = replace(of, type=rng.choice(kinds)) if kinds else of
        if of.type.kind == "text" and not of.null and rng.random() < 0.3:
            new = replace(of, type=None, values=LISTED)
        fields = [new if one == of else one for one in tools[at].fields]
        fields.sort(key=lambda one: (one.answer, not one.listed))
        tools[at] = replace(tools[at], fields=tuple(fields))
    lets = _lets(rng, tools) if made.lets and rng.random() < 0.3 else made.lets
    if dict(attributes(replace(made, lets=lets))) != dict(attributes(made)):
        lets = made.lets
    return replace(made, tools=tuple(tools), lets=lets)


def _nearly(rng: random.Random, say: l.Statement) -> l.Statement:
    match say:
        case l.Uses() | l.Sum():
            return replace(say, most=say.most + rng.choice([0, 1]))
        case l.Require() | l.Forbid() if len(say.alternatives) > 1:
            return replace(say, alternatives=say.alternatives[:1])
        case l.Require():
            return replace(say, each=rng.random() < 0.5)
    return say


def statement(
    rng: random.Random, tools: Sequence[l.Tool], timed: bool, names: Names = ()
) -> l.Statement | None:
    """A statement about the tools; None where the draw was of none."""
    tool, other = rng.choice(tools), rng.choice(tools)
    word = rng.choice(["require", "require", "each", "forbid", "unless", "unless", "apart", "owed",
                       "uses", "uses", "sum"])  # fmt: skip
    span = rng.choice(SPANS[: rng.choice([1, 1, 1, 2])]) if timed and rng.random() < 0.7 else None
    match word:
        case "require" | "each":
            some = [
                _alternative(rng, tools, tool, timed, names) for _ in range(rng.choice([1, 1, 2]))
            ]
            return l.Require(
                alternatives=tuple(some), before=_calls_of(rng, tool), each=word == "each"
            )
        case "forbid" | "unless":
            some = [
                _alternative(rng, tools, tool, timed, names) for _ in range(rng.choice([1, 1, 2]))
            ]
            lifts = [_alternative(rng, tools, tool, timed, names)] if word == "unless" else []
            return l.Forbid(
                alternatives=tuple(some), before=_calls_of(rng, tool), unless=tuple(lifts)
            )
        case "apart":
            one, two = _calls_of(rng, other), _calls_of(rng, tool)
            same = _same(rng, other, tool, names)
            return l.Apart(one=one, other=two, same=same) if same else None
        case "owed":
            same = _same(rng, other, tool, names)
            one, two = _calls_of(rng, other), _calls_of(rng, tool)
            return l.Owed(calls=one, after=two, same=same) if same else None
        case "uses":
            per = [l.Of(scope="own", name=one.name) for one in _open(tool) if rng.random() < 0.5]
            per += [l.Attribute(name=name) for name, _ in names if rng.random() < 0.3]  # type: ignore[misc]
            where = [one for one in [_own_relation(rng, tool, names)] if one is not None]
            return l.Uses(
                calls=_calls_of(rng, tool), most=rng.choice([0, 1, 1, 2]), within=span,
                per=tuple(per), where=tuple(where[: rng.choice([0, 0, 1])]),
            )  # fmt: skip
    numbers = [one for one in _open(tool) if one.type.kind == "integer" and not one.optional]
    if not numbers:
        return None
    of = rng.choice(numbers)
    per = [l.Of(scope="own", name=one.name) for one in _open(tool) if one != of]
    return l.Sum(
        tool=tool.name, field=of.name, most=rng.choice([1, 2, 3, 4]), within=span,
        per=tuple(per[: rng.choice([0, 1])]),
    )  # fmt: skip


def _open(tool: l.Tool) -> list[Any]:
    return [
        one
        for one in tool.fields
        if one.type is not None and one.type.kind != "json" and not one.answer
    ]


def _any(tool: l.Tool, *, answers: bool = False) -> list[tuple[str, str]]:
    """Names and kinds of fields that statements compare; of a call that is decided no answers."""
    return [
        (one.name, _kind(one))
        for one in tool.fields
        if (answers or not one.answer) and _kind(one) != "json"
    ]


def _calls_of(rng: random.Random, tool: l.Tool, *, answers: bool = False) -> l.Calls:
    where = []
    for one in tool.fields:
        if one.values is not None and (answers or not one.answer) and rng.random() < 0.4:
            where.append((one.name, (rng.choice(one.values),)))
    return l.Pattern(tool=tool.name, where=tuple(where))


def _set_of(rng: random.Random, tools: Sequence[l.Tool], one: l.Calls) -> l.Calls:
    """Calls of several tools, or all but some."""
    other = _calls_of(rng, rng.choice(tools), answers=True)
    some: list[l.Calls] = [l.Any_(), l.But(one=l.Any_(), other=other)]
    return rng.choice([*some, l.Either(sets=(one, other))] if one != other else some)


def _same(
    rng: random.Random, seen: l.Tool, own: l.Tool, names: Names = ()
) -> tuple[tuple[str, l.Term], ...]:
    others: list[tuple[l.Term, str]] = [
        (l.Of(scope="own", name=name), kind) for name, kind in _any(own)
    ]
    others += [(l.Attribute(name=name), kind) for name, kind in names]
    pairs = [
        (x, term)
        for x, kind in _any(seen, answers=True)
        for term, other in others
        # Version 1.1 has no words for a listed answer there.
        if kind == other and not (seen.field(x).answer and seen.field(x).listed)
    ]
    chosen = rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2])))
    return tuple(sorted(chosen, key=lambda pair: (pair[0], repr(pair[1]))))


def _alternative(
    rng: random.Random, tools: Sequence[l.Tool], own: l.Tool, timed: bool, names: Names = ()
) -> l.Alternative:
    seen = rng.choice(tools)
    calls = _calls_of(rng, seen, answers=True)
    if rng.random() < 0.1:
        return l.Alternative(calls=_set_of(rng, tools, calls))
    same = _same(rng, seen, own, names) if rng.random() < 0.7 else ()
    where = [_relation(rng, seen, own, names)] if rng.random() < 0.5 else []
    least = 2 if rng.random() < 0.15 else 1
    return l.Alternative(
        calls=calls,
        last=least == 1 and rng.random() < 0.25,
        least=least,
        same=same,
        where=tuple([one for one in where if one is not None]),
        within=rng.choice(SPANS[: rng.choice([1, 1, 1, 2])])
        if timed and rng.random() < 0.5
        else None,
    )


def _constant(rng: random.Random, kind: str) -> Any:
    pools = {"text": ["p", "q", "r"], "integer": [0, 1, 2], "flag": [True, False]}
    return rng.choice(pools[kind])


def _own_relation(rng: random.Random, own: l.Tool, names: Names = ()) -> l.Relation | None:
    return _compared(
        rng, [("own", *one) for one in _any(own)], [("session", *one) for one in names]
    )


def _relation(
    rng: random.Random, seen: l.Tool, own: l.Tool, names: Names = ()
) -> l.Relation | None:
    mine = [("own", *one) for one in _any(own)] + [("session", *one) for one in names]
    theirs = [("seen", *one) for one in _any(seen, answers=True)]
    return _compared(rng, theirs + mine if rng.random() < 0.2 else theirs, mine)


def _term(scope: str, name: str) -> l.Term:
    return l.Attribute(name=name) if scope == "session" else l.Of(scope=scope, name=name)


def _compared(
    rng: random.Random,
    ones: Sequence[tuple[str, str, str]],
    others: Sequence[tuple[str, str, str]],
) -> l.Relation | None:
    """A relation between fields: of which call, name and kind."""
    if not ones:
        return None
    scope, name, kind = rng.choice(ones)
    left = _term(scope, name)
    ops = ["=", "!="]
    if kind == "integer":
        ops += ["<", "<=", ">", ">="]
    other = [(of, field) for of, field, its in others if its == kind]
    if other and rng.random() < 0.6:
        where, field = rng.choice(other)
        return l.Compare(op=rng.choice(ops), left=left, right=_term(where, field))
    if kind == "text" and LIKES and rng.random() < 0.25:
        return l.Like(left=left, pattern=rng.choice(LIKES), negated=rng.random() < 0.4)
    if kind != "flag" and rng.random() < 0.3:
        values = tuple(dict.fromkeys([_constant(rng, kind), _constant(rng, kind)]))
        return l.In(left=left, right=l.Constants(values=values), negated=rng.random() < 0.4)
    constant: l.Term = l.Const(value=_constant(rng, kind))
    if kind == "integer" and other and rng.random() < 0.5:
        where, field = rng.choice(other)
        constant = rng.choice(
            [
                l.Linear(parts=((1, _term(where, field)), (1, constant))),
                l.Max(one=_term(where, field), other=constant),
            ]
        )
    maybe = scope != "session" and rng.random() < 0.1
    return l.Compare(op=rng.choice(ops), left=left, right=constant, maybe=maybe)


def text(made: l.Grammar) -> str:
    """As a file."""
    return text_of(made)

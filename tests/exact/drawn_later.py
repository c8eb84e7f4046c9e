"""Random grammars and statements of language 1.2 for :mod:`tests.exact.brute_later`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from tests.exact.brute import CLASS
from tests.exact.brute_later import MOST_SESSIONS, OPEN, SPANS, gaps_of, many
from tests.oracle_policies import language as l
from tests.oracle_policies.writer import statement_of, text_of

LIKES = ("p|q", "[p-z]", "[a-z]+", "q.*")  # new texts of one type are alike to each
LISTED = ("p", "q")  # texts of open fields, too
ANSWERS = ("q", "bad")
Forms: TypeAlias = Literal["later", "timed", "fields", "told", "lists", "members", "mixed"]

Names: TypeAlias = "Sequence[tuple[str, str]]"  # of attributes, with their kinds


def grammar(rng: random.Random, forms: Forms) -> l.Grammar:
    """A grammar with not too many sessions.

    Args:
        forms: `timed`: with spans of time; `fields`: with open answers, places, null, and what a
            session is given and learns; `told`: the same, and statements that hang on when answers
            become known; `lists`: with lists that values are looked for in; `mixed`: with lists,
            and half of them with these fields or with spans.
    """
    while True:
        made = _drawn(rng, forms)
        texts = max([sum(map(_texts_of, of.fields)) for of in made.tools])
        fresh = made.depth * texts + len(made.given) <= len(CLASS)
        if fresh and many(made, gaps_of(made)) <= MOST_SESSIONS:
            return made


def _texts_of(of: l.Field) -> int:
    if of.type is None or of.type.of is None:
        return int(of.type is not None)
    return of.type.high or 1


def _drawn(rng: random.Random, forms: Forms) -> l.Grammar:
    fields = forms in ("fields", "told") or (forms == "mixed" and rng.random() < 0.5)
    lists = forms in ("lists", "mixed")
    kinds = rng.sample(list(OPEN), rng.choice([1, 1, 2]))
    tools = tuple([_tool(rng, name, kinds) for name in ("a", "b", "c")[: rng.choice([1, 2, 2, 3])]])
    given: tuple[l.Field, ...] = ()
    lets: tuple[l.Let, ...] = ()
    if forms == "told":
        tools = tuple([_answering(rng, one) for one in tools])
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
        lets = _lets(rng, tools, always=forms == "told")
    if lists:
        tools = _with_lists(rng, tools, kinds)
        if not fields and rng.random() < 0.3:
            given = (l.Field(name="u", type=OPEN[rng.choice(kinds)]),)
    made = l.Grammar(tools=tools, statements=(), given=given, lets=lets)
    says: list[l.Statement] = [
        l.Depth(most=rng.choice([2, 2, 3] if fields or lists else [2, 3, 3]))
    ]
    for _ in range(rng.choice([1, 1, 2, 3])):
        if (say := statement(rng, tools, forms, attributes(made))) is not None:
            says.append(say)
    return replace(made, statements=_once(says))


def _with_lists(
    rng: random.Random, tools: Sequence[l.Tool], kinds: Sequence[str]
) -> tuple[l.Tool, ...]:
    """Tools of which one or two have a list: an argument or an answer."""
    found = list(tools)
    for at in rng.sample(range(len(tools)), min(len(tools), rng.choice([1, 1, 2]))):
        kind = rng.choice(kinds)
        wide = kind in ('text ~ "[p-z]"', "text min 1 max 9")
        most = rng.choice([1, 2, 2]) if wide else rng.choice([None, None, None, 1, 2])
        least = rng.choice([None, None, None, 1])
        of = l.Type(kind="list", of=OPEN[kind], low=least, high=most, distinct=rng.random() < 0.2)
        one = l.Field(name="m", type=of, optional=rng.random() < 0.15, answer=rng.random() < 0.6)
        fields = [*found[at].fields, one]
        fields.sort(key=lambda one: (one.answer, not one.listed))
        found[at] = replace(found[at], fields=tuple(fields))
    return tuple(found)


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


def _answering(rng: random.Random, tool: l.Tool) -> l.Tool:
    """A tool that mostly has a listed answer."""
    if rng.random() < 0.3 or any(one.answer for one in tool.fields):
        return tool
    return replace(tool, fields=(*tool.fields, l.Field(name="r", values=ANSWERS, answer=True)))


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


def _lets(
    rng: random.Random, tools: Sequence[l.Tool], *, always: bool = False
) -> tuple[l.Let, ...]:
    every = [
        (tool.name, one)
        for tool in tools
        for one in tool.fields
        if _kind(one) not in ("json", "list") and not one.rest
    ]
    if not every or (not always and rng.random() < 0.5):
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


def changed(rng: random.Random, made: l.Grammar, forms: Forms) -> l.Grammar:
    """A grammar like another."""
    says = list(made.statements)
    if len(says) > 1 and rng.random() < 0.5:
        says.pop(rng.randrange(1, len(says)))
    names = attributes(made)
    if rng.random() < 0.6 and (say := statement(rng, made.tools, forms, names)) is not None:
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
    rng: random.Random, tools: Sequence[l.Tool], forms: Forms, names: Names = ()
) -> l.Statement | None:
    """A statement about the tools; None where the draw was of none."""
    if forms == "told" and rng.random() < 0.7:
        return _of_told(rng, tools, names)
    timed = forms == "timed" or (forms == "mixed" and rng.random() < 0.4)
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


def _of_told(rng: random.Random, tools: Sequence[l.Tool], names: Names) -> l.Statement | None:
    """A statement over calls with answers that they have not had, or what was learned by then."""
    tool = rng.choice(tools)
    calls = _calls_of(rng, tool, answers=True)
    if rng.random() < 0.5:
        terms: list[tuple[l.Term, str]] = [
            (l.Of(scope="own", name=name), kind) for name, kind in _any(tool)
        ]
        pairs = [
            l.Compare(op=rng.choice(["=", "!="]), left=term, right=l.Attribute(name=name))
            for term, kind in terms
            for name, its in names
            if its == kind
        ]
        where = (rng.choice(pairs),) if pairs and rng.random() < 0.7 else ()
        most = rng.choice([0, 1, 1])
        # One that is no monitor leaves calls with these answers out of all plans.
        return l.Uses(
            calls=calls, most=most, where=where, monitor=bool(where) or rng.random() < 0.3
        )
    some = _alternative(rng, tools, tool, timed=False, names=names)
    if rng.random() < 0.5:
        return l.Require(alternatives=(some,), before=calls, monitor=True)
    return l.Forbid(alternatives=(some,), before=calls, monitor=True)


def _open(tool: l.Tool) -> list[Any]:
    return [
        one
        for one in tool.fields
        if one.type is not None and one.type.kind not in ("json", "list") and not one.answer
    ]


def _any(tool: l.Tool, *, answers: bool = False) -> list[tuple[str, str]]:
    """Names and kinds of fields that statements compare; of a call that is decided no answers."""
    return [
        (one.name, _kind(one))
        for one in tool.fields
        if (answers or not one.answer) and _kind(one) not in ("json", "list")
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
    often = 0.9 if _lists(seen, answers=True) or _lists(own) else 0.5
    where = [_relation(rng, seen, own, names)] if rng.random() < often else []
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
    if lists := _lists(own):
        mine = [("own", *one) for one in _any(own)] + [("session", *one) for one in names]
        return _among(rng, [("own", *one) for one in lists], mine)
    return _compared(
        rng, [("own", *one) for one in _any(own)], [("session", *one) for one in names]
    )


def _relation(
    rng: random.Random, seen: l.Tool, own: l.Tool, names: Names = ()
) -> l.Relation | None:
    mine = [("own", *one) for one in _any(own)] + [("session", *one) for one in names]
    theirs = [("seen", *one) for one in _any(seen, answers=True)]
    lists = [("own", *one) for one in _lists(own)]
    lists += [("seen", *one) for one in _lists(seen, answers=True)]
    if lists and rng.random() < 0.8:
        return _among(rng, lists, mine + theirs)
    return _compared(rng, theirs + mine if rng.random() < 0.2 else theirs, mine)


def _lists(tool: l.Tool, *, answers: bool = False) -> list[tuple[str, str]]:
    """Names of lists and the kinds of their elements."""
    return [
        (one.name, one.type.of.kind)
        for one in tool.fields
        if one.type is not None and one.type.of is not None and (answers or not one.answer)
    ]


def _among(
    rng: random.Random,
    lists: Sequence[tuple[str, str, str]],
    ones: Sequence[tuple[str, str, str]],
) -> l.Relation | None:
    """Whether a value is an element of a list, or what the elements are."""
    scope, name, kind = rng.choice(lists)
    if rng.random() < 0.5:
        return _each(rng, (scope, name, kind), lists, ones)
    terms = [_term(of, field) for of, field, its in ones if its == kind]
    constant = l.Const(value=_constant(rng, kind))
    left: l.Term = rng.choice(terms) if terms and rng.random() < 0.85 else constant
    many = l.Of(scope=scope, name=name)
    return l.In(left=left, right=many, negated=rng.random() < 0.4)


def _each(
    rng: random.Random,
    of: tuple[str, str, str],
    lists: Sequence[tuple[str, str, str]],
    ones: Sequence[tuple[str, str, str]],
) -> l.Relation:
    """What each element of a list is, or some."""
    every = rng.random() < 0.6
    element = l.Of(scope=l.ELEMENT if every else "e", name=None)
    others = [_term(*one[:2]) for one in lists if one[2] == of[2] and one[:2] != of[:2]]
    terms = [_term(*one[:2]) for one in ones if one[2] == of[2]]
    values = tuple(dict.fromkeys([_constant(rng, of[2]), _constant(rng, of[2])]))
    negated = rng.random() < 0.4
    ops = ["=", "!=", *(["<", "<=", ">", ">="] if of[2] == "integer" else [])]
    ways: list[l.Compare | l.In | l.Like] = [
        l.Compare(op=rng.choice(ops), left=element, right=l.Const(value=values[0])),
    ]
    if of[2] != "flag":
        ways.append(l.In(left=element, right=l.Constants(values=values), negated=negated))
    if of[2] == "text":
        ways.append(l.Like(left=element, pattern=rng.choice(LIKES), negated=negated))
    if terms:
        op = rng.choice(["=", "!="])
        ways += [l.Compare(op=op, left=element, right=rng.choice(terms))] * 2
    if others:
        other = rng.choice(others)
        ways += [l.In(left=element, right=other, negated=negated)] * 4  # type: ignore[arg-type]
    each, many = rng.choice(ways), l.Of(scope=of[0], name=of[1])
    if every:
        return l.Every(of=many, each=each)
    return l.Group(every=rng.random() < 0.2, lists=((many, "e"),), relations=(each,))


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

"""Exact questions about language 1.2 by brute force: all sessions over listed values and times.

What a grammar lets through is asked of :mod:`tests.oracle_policies`, the definition of these
statements sentence by sentence, call by call; nothing here is of the product.  Types are those of
:mod:`tests.exact.brute`, of which as many values are listed as a session has fields.  Between two
calls pass 0 ms, 1 ms, .. up to one more than the longest span: what is longer is like that.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

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
LISTED = ("p", "q")  # texts of open fields, too
ANSWERS = ("q", "bad")


@dataclass(frozen=True, kw_only=True)
class Step:
    """A call of a session: arguments and answer by name, and the time since the call before."""

    tool: str
    arguments: tuple[tuple[str, Any], ...]
    answer: tuple[tuple[str, Any], ...]
    later: int


class Play:
    """A session of a grammar, by the definition."""

    def __init__(self, grammar: l.Grammar) -> None:
        self.session = Session(grammar=grammar)

    def after(self, step: Step) -> Play | None:
        """The session with a call more; None: it is refused, or no plan goes on with its answer."""
        session = self.session
        now = session.now + step.later
        arguments = dict(step.arguments)
        if session.decide(step.tool, arguments, now) is not None:
            return None
        found = copy.copy(self)
        found.session = made = copy.copy(session)
        made.made = [copy.copy(one) for one in session.made]
        made._attributes = dict(session._attributes)
        seq = made.call(step.tool, arguments, now)
        made.outcome(seq, "done", dict(step.answer))
        return found if made.automaton.begins(made.made) else None

    @property
    def ends(self) -> bool:
        """Whether it may end."""
        return self.session.may_finish()

    def breaks(self, statement: l.Statement, step: Step) -> bool:
        """Whether a statement refuses a call."""
        session = self.session
        call = session.asked(step.tool, dict(step.arguments), session.now + step.later)
        return isinstance(call, Made) and refuses(statement, call, session.made)

    def owes(self, statement: l.Statement) -> bool:
        """Whether by a statement a call has to come yet."""
        return isinstance(statement, l.Owed) and is_owed(statement, self.session.made)


def steps(grammar: l.Grammar, before: Sequence[Step], gaps: Sequence[int]) -> list[Step]:
    """Every call after others, the first of those that are alike."""
    values = [v for one in before for _, v in one.arguments if isinstance(v, str)]
    used = len({*values} & {*CLASS}), len({*values} & {*WIDE})
    found = _calls(grammar.tools, *used)
    return [replace(one, later=gap) for gap in (gaps if before else (0,)) for one in found]


@cache
def _calls(tools: tuple[l.Tool, ...], of_class: int, of_wide: int) -> list[Step]:
    found = []
    for tool in tools:
        mine = [one for one in tool.fields if not one.answer]
        pools = [
            list(one.values) if one.values is not None else TYPES[NAMES[one.type]]  # type: ignore[index]
            for one in mine
        ]
        answers = [one for one in tool.fields if one.answer]
        for values in product(
            *[
                [*pool, None] if one.optional else pool
                for one, pool in zip(mine, pools, strict=True)
            ]
        ):
            used = [of_class, of_wide]
            for value in values:
                row = 0 if value in CLASS else 1
                if value in FRESH:
                    if FRESH[value] > used[row]:
                        break
                    used[row] = max(used[row], FRESH[value] + 1)
            else:
                given = tuple(
                    [(one.name, v) for one, v in zip(mine, values, strict=True) if v is not None]
                )
                for told in product(*[one.values or () for one in answers]):
                    answer = tuple(zip([one.name for one in answers], told, strict=True))
                    found.append(Step(tool=tool.name, arguments=given, answer=answer, later=0))
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
    total = row = 1
    for length in range(grammar.depth):
        row *= len(_calls(grammar.tools, 2 * length, 2 * length)) * (len(gaps) if length else 1)
        total += row
    return total


def sessions(grammar: l.Grammar, gaps: Sequence[int]) -> Iterator[tuple[list[Step], Play]]:
    """P of a grammar, short ones first."""
    level = [([], Play(grammar))]  # type: list[tuple[list[Step], Play]]
    for length in range(grammar.depth + 1):
        yield from level
        if length < grammar.depth:
            level = [
                ([*some, step], then)
                for some, play in level
                for step in steps(grammar, some, gaps)
                if (then := play.after(step)) is not None
            ]


def breaks_inclusion(left: l.Grammar, right: l.Grammar) -> int | None:
    """The length of a shortest session of one grammar alone."""
    gaps = gaps_of(left, right)
    level = [([], Play(left), Play(right))]  # type: list[tuple[list[Step], Play, Play]]
    for length in range(left.depth + 1):
        if any(mine.ends and not theirs.ends for _, mine, theirs in level):
            return length
        after = []
        for some, mine, theirs in level if length < left.depth else ():
            for step in steps(left, some, gaps):
                then = mine.after(step)
                if then is None:
                    continue
                other = theirs.after(step) if len(some) < right.depth else None
                if other is None:
                    return length + 1
                after.append(([*some, step], then, other))
        level = after
    return None


def breaks_statement(left: l.Grammar, say: l.Statement) -> int | None:
    """The length of a shortest session that does not meet a statement."""
    gaps = gaps_of(left, say)
    level = [([], Play(left))]  # type: list[tuple[list[Step], Play]]
    for length in range(left.depth + 1):
        if any(play.ends and play.owes(say) for _, play in level):
            return length
        after = []
        for some, play in level if length < left.depth else ():
            for step in steps(left, some, gaps):
                then = play.after(step)
                if then is None:
                    continue
                if play.breaks(say, step):
                    return length + 1
                after.append(([*some, step], then))
        level = after
    return None


def reaches(left: l.Grammar, tool: str) -> int | None:
    """The length of a shortest session that ends in a call of a tool."""
    found = (some for some, _ in sessions(left, gaps_of(left)))
    return next((len(some) for some in found if some and some[-1].tool == tool), None)


def stuck(left: l.Grammar) -> int | None:
    """The length of a shortest session that nothing of L goes on with."""
    every = list(sessions(left, gaps_of(left)))
    good = {tuple(some[:at]) for some, play in every if play.ends for at in range(len(some) + 1)}
    return next((len(some) for some, _ in every if tuple(some) not in good), None)


def played(left: l.Grammar, calls: Sequence[Any]) -> list[tuple[Play, Step]] | None:
    """The sessions before each call of one that was shown, and the call; None: it is none."""
    play, found, before = Play(left), [], 0
    for call in calls:
        at = call.at_ms or 0
        step = Step(
            tool=call.tool,
            arguments=tuple(call.arguments.items()),
            answer=tuple((call.answer or {}).items()),
            later=at - before,
        )
        before = at
        found.append((play, step))
        then = play.after(step)
        if then is None:
            return None
        play = then
    found.append((play, Step(tool="", arguments=(), answer=(), later=0)))
    return found


# Random ones.


def grammar(rng: random.Random, *, timed: bool) -> l.Grammar:
    """A grammar with not too many sessions."""
    while True:
        made = _drawn(rng, timed)
        if many(made, gaps_of(made)) <= MOST_SESSIONS:
            return made


def _drawn(rng: random.Random, timed: bool) -> l.Grammar:
    kinds = rng.sample(list(OPEN), rng.choice([1, 1, 2]))
    tools = tuple([_tool(rng, name, kinds) for name in ("a", "b", "c")[: rng.choice([1, 2, 2, 3])]])
    says: list[l.Statement] = [l.Depth(most=rng.choice([2, 3, 3]))]
    for _ in range(rng.choice([1, 1, 2, 3])):
        if (say := statement(rng, tools, timed)) is not None:
            says.append(say)
    return l.Grammar(tools=tools, statements=_once(says))


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
    if rng.random() < 0.6 and (say := statement(rng, made.tools, timed)) is not None:
        says.append(say)
    if rng.random() < 0.3:
        says = [_nearly(rng, one) for one in says]
    return replace(made, statements=_once(says))


def _nearly(rng: random.Random, say: l.Statement) -> l.Statement:
    match say:
        case l.Uses() | l.Sum():
            return replace(say, most=say.most + rng.choice([0, 1]))
        case l.Require() | l.Forbid() if len(say.alternatives) > 1:
            return replace(say, alternatives=say.alternatives[:1])
        case l.Require():
            return replace(say, each=rng.random() < 0.5)
    return say


def statement(rng: random.Random, tools: Sequence[l.Tool], timed: bool) -> l.Statement | None:
    """A statement about the tools; None where the draw was of none."""
    tool, other = rng.choice(tools), rng.choice(tools)
    word = rng.choice(["require", "require", "each", "forbid", "unless", "unless", "apart", "owed",
                       "uses", "uses", "sum"])  # fmt: skip
    span = rng.choice(SPANS[: rng.choice([1, 1, 1, 2])]) if timed and rng.random() < 0.7 else None
    match word:
        case "require" | "each":
            some = [_alternative(rng, tools, tool, timed) for _ in range(rng.choice([1, 1, 2]))]
            return l.Require(
                alternatives=tuple(some), before=_calls_of(rng, tool), each=word == "each"
            )
        case "forbid" | "unless":
            some = [_alternative(rng, tools, tool, timed) for _ in range(rng.choice([1, 1, 2]))]
            lifts = [_alternative(rng, tools, tool, timed)] if word == "unless" else []
            return l.Forbid(
                alternatives=tuple(some), before=_calls_of(rng, tool), unless=tuple(lifts)
            )
        case "apart":
            one, two = _calls_of(rng, other), _calls_of(rng, tool)
            same = _same(rng, other, tool)
            return l.Apart(one=one, other=two, same=same) if same else None
        case "owed":
            same = _same(rng, other, tool)
            one, two = _calls_of(rng, other), _calls_of(rng, tool)
            return l.Owed(calls=one, after=two, same=same) if same else None
        case "uses":
            per = [l.Of(scope="own", name=one.name) for one in _open(tool) if rng.random() < 0.5]
            where = [one for one in [_own_relation(rng, tool)] if one is not None]
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
    return [one for one in tool.fields if one.type is not None]


def _any(tool: l.Tool, *, answers: bool = False) -> list[tuple[str, str]]:
    """Names and kinds of fields that statements compare; of a call that is decided no answers."""
    return [
        (one.name, "text" if one.type is None else one.type.kind)
        for one in tool.fields
        if answers or not one.answer
    ]


def _calls_of(rng: random.Random, tool: l.Tool, *, answers: bool = False) -> l.Calls:
    where = []
    for one in tool.fields:
        if one.values is not None and (answers or not one.answer) and rng.random() < 0.4:
            where.append((one.name, (rng.choice(one.values),)))
    return l.Pattern(tool=tool.name, where=tuple(where))


def _same(rng: random.Random, seen: l.Tool, own: l.Tool) -> tuple[tuple[str, l.Term], ...]:
    pairs = [(x, y) for x, kind in _any(seen) for y, other in _any(own) if kind == other]
    chosen = sorted(rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2]))))
    return tuple([(x, l.Of(scope="own", name=y)) for x, y in chosen])


def _alternative(
    rng: random.Random, tools: Sequence[l.Tool], own: l.Tool, timed: bool
) -> l.Alternative:
    seen = rng.choice(tools)
    calls = _calls_of(rng, seen, answers=True)
    same = _same(rng, seen, own) if rng.random() < 0.7 else ()
    where = [_relation(rng, seen, own)] if rng.random() < 0.5 else []
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


def _own_relation(rng: random.Random, own: l.Tool) -> l.Relation | None:
    return _compared(rng, [("own", *one) for one in _any(own)], [])


def _relation(rng: random.Random, seen: l.Tool, own: l.Tool) -> l.Relation | None:
    mine = [("own", *one) for one in _any(own)]
    return _compared(rng, [("seen", *one) for one in _any(seen, answers=True)], mine)


def _compared(
    rng: random.Random,
    ones: Sequence[tuple[str, str, str]],
    others: Sequence[tuple[str, str, str]],
) -> l.Relation | None:
    """A relation between fields: of which call, name and kind."""
    if not ones:
        return None
    scope, name, kind = rng.choice(ones)
    left = l.Of(scope=scope, name=name)
    ops = ["=", "!="]
    if kind == "integer":
        ops += ["<", "<=", ">", ">="]
    other = [(of, field) for of, field, its in others if its == kind]
    if other and rng.random() < 0.6:
        where, field = rng.choice(other)
        return l.Compare(op=rng.choice(ops), left=left, right=l.Of(scope=where, name=field))
    if kind != "flag" and rng.random() < 0.3:
        values = tuple(dict.fromkeys([_constant(rng, kind), _constant(rng, kind)]))
        return l.In(left=left, right=l.Constants(values=values), negated=rng.random() < 0.4)
    constant = l.Const(value=_constant(rng, kind))
    return l.Compare(op=rng.choice(ops), left=left, right=constant, maybe=rng.random() < 0.1)


def text(made: l.Grammar) -> str:
    """As a file."""
    return text_of(made)

"""Exact questions about language 1.2 by brute force: all sessions over listed values and times.

What a grammar lets through is asked of :mod:`tests.oracle_policies`, the definition of these
statements sentence by sentence, call by call; nothing here is of the product.  Types are those of
:mod:`tests.exact.brute`, of which as many values are listed as a session has fields.  Between two
calls pass 0 ms, 1 ms, .. up to one more than the longest span: what is longer is like that.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, product
from typing import Any, TypeAlias

from tests.exact.brute import CLASS, FRESH, TYPES, WIDE
from tests.oracle_policies import language as l
from tests.oracle_policies.meaning import Made, Session, is_owed, refuses

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
    """A session of a grammar, by the definition; where calls lead is found once."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._after: dict[Step, Play | None] = {}

    def after(self, step: Step) -> Play | None:
        """The session with a call more; None: it is refused, or no plan goes on with its answer."""
        if step not in self._after:
            self._after[step] = self._made(step)
        return self._after[step]

    def _made(self, step: Step) -> Play | None:
        session = self.session
        now = session.now + step.later
        arguments = json.loads(step.arguments)
        if session.decide(step.tool, arguments, now) is not None:
            return None
        made = copy.copy(session)
        made.made = [copy.copy(one) for one in session.made]
        made._attributes = dict(session._attributes)
        seq = made.call(step.tool, arguments, now)
        made.outcome(seq, "done", json.loads(step.answer))
        return Play(made) if made.automaton.begins(made.made) else None

    @cached_property
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


_BEGUN: dict[tuple[int, str], Play] = {}


def begun(grammar: l.Grammar, given: str) -> Play:
    """A session before its first call, the same for all questions about a grammar.

    Grammars are told apart by what they are, not by what they equal: 1 equals True.
    """
    key = id(grammar), given
    if key not in _BEGUN:
        if len(_BEGUN) == 64:  # of grammars that are asked about no more
            _BEGUN.clear()
        _BEGUN[key] = Play(Session(grammar=grammar, given=json.loads(given)))
    return _BEGUN[key]


def steps(
    grammar: l.Grammar, before: Sequence[Step], gaps: Sequence[int], given: str = "{}"
) -> list[Step]:
    """Every call after others, the first of those that are alike."""
    values = [text for one in before for text in one.texts]
    values += [value for value in json.loads(given).values() if isinstance(value, str)]
    used = len({*values} & {*CLASS}), len({*values} & {*WIDE})
    return [
        one for gap in (gaps if before else (0,)) for one in _calls(grammar.tools, *used, later=gap)
    ]


def givens(grammar: l.Grammar) -> list[str]:
    """All that a session may be given, as JSON; the first of those that are alike."""
    return [_written(grammar.given, values) for values in _choices(grammar.given, 0, 0)]


def _pool(of: l.Field) -> list[Any]:
    if of.type is not None and of.type.kind == "json":
        return [_INSIDE]  # nothing but the fields that stand in it
    if of.type is not None and of.type.kind == "list":
        values = TYPES[NAMES[of.type.of]]  # type: ignore[index]
        most = len(values) if of.type.high is None else of.type.high
        sizes = range(of.type.low or 0, most + 1)
        pool: list[Any] = [[*some] for size in sizes for some in combinations(values, size)]
    elif of.values is None:
        pool = list(TYPES[NAMES[of.type]])  # type: ignore[index]
    else:
        pool = [*of.values, *["none of these"] * of.rest]
    return pool + [_LEFT_OUT] * of.optional + [None] * of.null


_LEFT_OUT, _INSIDE = object(), object()


def _choices(fields: Sequence[l.Field], of_class: int, of_wide: int) -> Iterator[tuple[Any, ...]]:
    """All values of fields, new texts in the order in which they are listed."""
    for values in product(*map(_pool, fields)):
        used = [of_class, of_wide]
        for value in _flat(values):
            if isinstance(value, str) and value in FRESH:
                row = 0 if value in CLASS else 1
                if FRESH[value] > used[row]:
                    break
                used[row] = max(used[row], FRESH[value] + 1)
        else:
            yield values


def _flat(values: Sequence[Any]) -> list[Any]:
    """Values, and those in lists, which have no order of their own."""
    return [one for value in values for one in (value if isinstance(value, list) else [value])]


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
def _calls(tools: tuple[l.Tool, ...], of_class: int, of_wide: int, later: int = 0) -> list[Step]:
    if later:
        return [replace(one, later=later) for one in _calls(tools, of_class, of_wide)]
    found = []
    for tool in tools:
        mine = [one for one in tool.fields if not one.answer]
        told = [one for one in tool.fields if one.answer]
        for values in _choices([*mine, *told], of_class, of_wide):
            texts = tuple([one for one in _flat(values) if isinstance(one, str)])
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
    level: list[Met] = [(given, [], begun(grammar, given)) for given in givens(grammar)]
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
    level = [(given, [], begun(left, given), begun(right, given)) for given in givens(left)]
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
    level: list[Met] = [(given, [], begun(left, given)) for given in givens(left)]
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
    play, found, before = begun(left, json.dumps(dict(session.given))), [], 0
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

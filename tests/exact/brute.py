"""Exact questions by brute force: all sessions over listed values, by the words of the definitions.

Grammars are structures here, so nothing of the product reads them: tools with open parameters whose
types have few values, all of them listed; a plan ``(a | b | c){low,high}``; statements.  A session
is a list of calls, a call a tool with its values.  Exponential in everything.

Of types with more values than that as many are listed as a session has fields.  These are in the
same types and are compared for equality alone, so sessions in which they come for the first time in
another order than listed are left out.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

MOST_CALLS = 4
MOST_SESSIONS = 4000
CLASS = list("stuvwxyz")  # of the class [p-z], and of no other pattern
WIDE = [f"w{at}" for at in range(2 * MOST_CALLS)]  # of no pattern
FRESH = {value: at for row in (CLASS, WIDE) for at, value in enumerate(row)}
TYPES: dict[str, list[Any]] = {
    'text ~ "p|q"': ["p", "q"],
    'text ~ "q|r"': ["q", "r"],
    'text ~ "p|q|r"': ["p", "q", "r"],
    "flag": [True, False],
    "integer 0 .. 2": [0, 1, 2],
    "integer 1 .. 2": [1, 2],
    "integer 1 .. 3": [1, 2, 3],
    # Added up and never compared; caps are of the same grid, so that ends of ranges are enough.
    "number 0 .. 1.5": [Fraction(at, 2) for at in range(4)],
    "number 0.5 .. 2": [Fraction(at, 2) for at in range(1, 5)],
    'text ~ "[p-z]"': [*"pqr", *CLASS],
    "text min 1 max 9": [*"pqr", *CLASS, *WIDE],
}
SORTS = {name: name.split()[0] for name in TYPES}


def of_type(kind: str, value: object) -> bool:
    """Whether a value, of whatever session, is of a type."""
    if kind == "text min 1 max 9":
        return isinstance(value, str) and 1 <= len(value) <= 9
    if kind.startswith("number"):
        low, high = (Fraction(end) for end in kind.split()[1::2])
        return (
            type(value) is not bool
            and not isinstance(value, str)
            and low <= Fraction(str(value)) <= high
        )
    return any(type(value) is type(one) and value == one for one in TYPES[kind])


@dataclass(frozen=True, kw_only=True)
class Say:
    """A statement: its words, its two tools, and pairs of parameters that agree."""

    word: str
    a: str
    b: str = ""
    same: tuple[tuple[str, str], ...] = ()
    most: Fraction = Fraction(0)
    key: str = ""

    @property
    def text(self) -> str:
        """As a grammar writes it."""
        same = ", ".join(f"{x} = {y}" for x, y in self.same)
        tail = f" same {same}" if same else ""
        match self.word:
            case "sum":
                return f"limit sum({self.a}.{self.key}) <= {decimal(self.most)}"
            case "per":
                return f"limit uses({self.a}) per {self.key} <= {self.most}"
            case "uses":
                return f"limit uses({self.a}) <= {self.most}"
            case "least":
                return f"limit uses({self.a}) >= {self.most}"
            case "each":
                return f"require {self.a} before each {self.b}{tail}"
            case "require":
                return f"require {self.a} before {self.b}{tail}"
            case "owed":
                return f"require {self.a} after {self.b}"
            case "with":
                return f"forbid {self.a} with {self.b}{tail}"
            case _:
                return f"forbid {self.a} before {self.b}{tail}"

    @property
    def owes(self) -> bool:
        """Whether it is broken at an end, and by no call."""
        return self.word in ("owed", "least")


def decimal(value: Fraction) -> str:
    """One with at most one place."""
    return str(value.numerator) if value.denominator == 1 else f"{float(value)}"


@dataclass(kw_only=True)
class Made:
    """A grammar: by tool its parameters and their types.

    Attributes:
        row: its plan, where that is a row of tools, each with whether it may be left out.
    """

    tools: dict[str, dict[str, str]]
    low: int
    high: int
    says: list[Say] = field(default_factory=list)
    row: tuple[tuple[str, bool], ...] = ()

    @property
    def text(self) -> str:
        """As a file."""
        lines = ['grammar made version "1"']
        for name, given in self.tools.items():
            inside = ", ".join(f"{n}: {t}" for n, t in given.items())
            lines.append(f"tool {name}(; {inside})" if inside else f"tool {name}")
        row = " ".join(tool + "?" * optional for tool, optional in self.row)
        many = f"({' | '.join(self.tools)}){{{self.low},{self.high}}}"
        lines.append(f"plan = {row or many}")
        return "\n".join([*lines, *(say.text for say in self.says)]) + "\n"

    def words(self) -> set[tuple[str, ...]]:
        """The plans: words of tools that meet what speaks of no values."""
        plain = [s for s in self.says if not (s.same or s.word in ("sum", "per"))]
        plain += [shadow(s) for s in self.says if s.same and s.word in ("require", "each")]
        found = set()
        for word in self._any_words():
            session = [(tool, {}) for tool in word]
            if all(meets(say, session) and ends(say, session) for say in plain):
                found.add(word)
        return found

    def _any_words(self) -> Iterator[tuple[str, ...]]:
        if self.row:
            for kept in product(
                *[(True, False) if optional else (True,) for _, optional in self.row]
            ):
                yield tuple(tool for (tool, _), keep in zip(self.row, kept, strict=True) if keep)
            return
        for length in range(self.low, self.high + 1):
            yield from product(self.tools, repeat=length)


Call = tuple[str, dict[str, Any]]


def shadow(say: Say) -> Say:
    """What the automaton holds of a monitor that requires."""
    return Say(word="require", a=say.a, b=say.b)


def agree(say: Say, one: Call, other: Call) -> bool:
    """Whether a call of the first and one of the second have equal keys."""
    return all(
        type(one[1][x]) is type(other[1][y]) and one[1][x] == other[1][y] for x, y in say.same
    )


def meets(say: Say, session: Sequence[Call]) -> bool:
    """Whether a sequence meets a statement, but for what is owed."""
    at_b = [i for i, call in enumerate(session) if call[0] == say.b]
    at_a = [i for i, call in enumerate(session) if call[0] == say.a]
    pairs = [(i, j) for i in at_a for j in at_b if agree(say, session[i], session[j])]
    match say.word:
        case "sum":
            return (
                sum((Fraction(str(session[i][1][say.key])) for i in at_a), Fraction(0)) <= say.most
            )
        case "per":
            values = [session[i][1][say.key] for i in at_a]
            return all(values.count(v) <= say.most for v in values)
        case "uses":
            return len(at_a) <= say.most
        case "require":
            return all(any((i, j) in pairs for i in range(j)) for j in at_b)
        case "each":
            for j in at_b:
                same_b = [
                    k
                    for k in at_b
                    if k < j and all(session[k][1][y] == session[j][1][y] for _, y in say.same)
                ]
                last = max(same_b, default=-1)
                if not any((i, j) in pairs for i in range(last + 1, j)):
                    return False
            return True
        case "before":
            return not any(i < j for i, j in pairs)
        case "with":
            return not pairs
    return True


def ends(say: Say, session: Sequence[Call]) -> bool:
    """Whether what a statement owes is there."""
    if say.word == "owed":
        at_a = [i for i, call in enumerate(session) if call[0] == say.a]
        at_b = [i for i, call in enumerate(session) if call[0] == say.b]
        return all(any(i > j for i in at_a) for j in at_b)
    if say.word == "least":
        return sum(call[0] == say.a for call in session) >= say.most
    return True


class Holds:
    """P and L of a grammar."""

    def __init__(self, made: Made) -> None:
        self.made = made
        self.plans = made.words()
        self.begin = {word[:i] for word in self.plans for i in range(len(word) + 1)}

    def lets(self, session: Sequence[Call]) -> bool:
        """Whether a session is in P."""
        if tuple(call[0] for call in session) not in self.begin:
            return False
        for tool, given in session:
            types = self.made.tools[tool]
            if given.keys() != types.keys():
                return False
            if not all(of_type(types[n], v) for n, v in given.items()):
                return False
        return all(meets(say, session) for say in self.made.says)

    def ended(self, session: Sequence[Call]) -> bool:
        """Whether a session of P is in L."""
        return tuple(call[0] for call in session) in self.plans

    def calls(self) -> list[Call]:
        """Every call with values of its types, the first of those that are alike."""
        return _calls(_tools(self.made), 0, 0)

    def sessions(self) -> Iterator[list[Call]]:
        """P, short ones first."""
        tools = _tools(self.made)
        level: list[list[Call]] = [[]] if self.lets([]) else []
        while level:
            yield from level
            level = [[*s, c] for s in level for c in _calls(tools, *_used(s)) if self.lets([*s, c])]

    def size(self) -> int:
        """At most so many sessions are gone through."""
        most = max(map(len, self.plans), default=0)
        total = row = 1
        for length in range(most):
            row *= len(_calls(_tools(self.made), 2 * length, 2 * length))
            total += row
        return total


_Tools = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def _tools(made: Made) -> _Tools:
    return tuple([(tool, tuple(given.items())) for tool, given in made.tools.items()])


def _used(session: Sequence[Call]) -> tuple[int, int]:
    """How many values of each row of those that are alike a session has."""
    values = {v for _, given in session for v in given.values() if isinstance(v, str)}
    return len(values.intersection(CLASS)), len(values.intersection(WIDE))


@cache
def _calls(tools: _Tools, of_class: int, of_wide: int) -> list[Call]:
    found = []
    for tool, given in tools:
        for values in product(*[TYPES[kind] for _, kind in given]):
            used = [of_class, of_wide]
            for value in values:
                row = 0 if value in CLASS else 1
                if value in FRESH:
                    if FRESH[value] > used[row]:
                        break
                    used[row] = max(used[row], FRESH[value] + 1)
            else:
                found.append((tool, {n: v for (n, _), v in zip(given, values, strict=True)}))
    return found


def breaks_statement(left: Holds, say: Say) -> int | None:
    """The length of a shortest session that does not meet a statement."""
    for session in left.sessions():
        if not meets(say, session) or (left.ended(session) and not ends(say, session)):
            return len(session)
    return None


def breaks_inclusion(left: Holds, right: Holds) -> int | None:
    """The length of a shortest session of one grammar alone."""
    for session in left.sessions():
        if not right.lets(session) or (left.ended(session) and not right.ended(session)):
            return len(session)
    return None


def reaches(left: Holds, tool: str) -> int | None:
    """The length of a shortest session that ends in a call of a tool."""
    return next((len(s) for s in left.sessions() if s and s[-1][0] == tool), None)


def stuck(left: Holds) -> int | None:
    """The length of a shortest session that nothing of L goes on with."""
    sessions = list(left.sessions())
    good = {repr(s[:i]) for s in sessions if left.ended(s) for i in range(len(s) + 1)}
    return next((len(s) for s in sessions if repr(s) not in good), None)


# Random ones.


def grammar(rng: random.Random) -> Made:
    """A grammar with not too many sessions."""
    while True:
        made = _drawn(rng)
        if Holds(made).size() <= MOST_SESSIONS:
            return made


def _drawn(rng: random.Random) -> Made:
    names = ["a", "b", "c"][: rng.choice([1, 2, 2, 3])]
    kinds = rng.sample(list(TYPES), rng.choice([1, 2, 3]))
    tools = {
        name: {p: rng.choice(kinds) for p in ("x", "y")[: rng.choice([0, 1, 1, 2])]}
        for name in names
    }
    high = rng.choice([1, 2, 3, 3])
    made = Made(tools=tools, low=rng.choice([0, 0, 1]), high=high)
    if rng.random() < 0.5:  # sessions that have to hold different values
        row = [(rng.choice(names), rng.random() < 0.3) for _ in range(rng.choice([2, 3]))]
        made.row = tuple(row)
    made.says = [s for _ in range(rng.randrange(4)) if (s := statement(rng, made)) is not None]
    made.says = list({say.text: say for say in made.says}.values())
    return made


def changed(rng: random.Random, made: Made) -> Made:
    """A grammar like another."""
    tools = {
        name: {
            p: rng.choice([t for t in TYPES if SORTS[t] == SORTS[kind]])
            if rng.random() < 0.2
            else kind
            for p, kind in given.items()
        }
        for name, given in made.tools.items()
    }
    other = Made(tools=tools, low=made.low, high=made.high, says=list(made.says), row=made.row)
    if rng.random() < 0.2:
        other.high += 1
    if other.says and rng.random() < 0.5:
        other.says.pop(rng.randrange(len(other.says)))
    if rng.random() < 0.6 and (say := statement(rng, other)) is not None:
        other.says.append(say)
    other.says = [s for s in other.says if fits(s, other)]
    other.says = list({say.text: say for say in other.says}.values())
    return other


def fits(say: Say, made: Made) -> bool:
    """Whether a statement is one about these tools."""
    if say.word == "sum":
        return SORTS.get(made.tools[say.a].get(say.key, ""), "") in ("integer", "number")
    kinds = [
        (made.tools[say.a].get(x, "?").split()[0], made.tools[say.b].get(y, "!").split()[0])
        for x, y in say.same
    ]
    return all(one == other for one, other in kinds)


def statement(rng: random.Random, made: Made) -> Say | None:
    """A statement about the tools; None where the draw was of none."""
    a, b = rng.choice(list(made.tools)), rng.choice(list(made.tools))
    word = rng.choice(
        ["sum", "per", "uses", "least", "each", "require", "owed", "with", "before"] * 1
        + ["each", "require", "with", "before", "before", "sum", "sum"]
    )
    if word in ("uses", "least"):
        return Say(word=word, a=a, most=Fraction(rng.choice([0, 1, 2]) + (word == "least")))
    if word in ("sum", "per"):
        kinds = {"sum": ("integer", "number"), "per": ("integer", "text", "flag")}[word]
        names = [n for n, t in made.tools[a].items() if SORTS[t] in kinds]
        if not names:
            return None
        most = Fraction(rng.choice([1, 2, 3, 4, 5]))
        if word == "sum" and rng.random() < 0.3:
            most += Fraction(1, 2)
        return Say(word=word, a=a, key=rng.choice(names), most=most)
    if word == "owed":
        return Say(word=word, a=a, b=b)
    pairs = [
        (x, y)
        for x, tx in made.tools[a].items()
        for y, ty in made.tools[b].items()
        if SORTS[tx] == SORTS[ty] != "number"
    ]
    if not pairs or rng.random() < 0.15:
        return Say(word=word, a=a, b=b) if word != "each" or rng.random() < 0.5 else None
    same = sorted(rng.sample(pairs, min(len(pairs), rng.choice([1, 1, 2]))))
    return Say(word=word, a=a, b=b, same=tuple(same))

"""Random grammars in which a value is compared with the elements of several earlier lists.

What is known of one list and not of another is seen by statements together alone: of the calls
that are counted, of the last one, of those that lift what came before.  So all statements here are
about one pair of tools, and lists have an element or few.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.exact.brute_later import MOST_SESSIONS, OPEN, many
from tests.oracle_policies import language as l

KINDS = ('text ~ "p|q"', "flag", "integer 0 .. 2", 'text ~ "[p-z]"')
_X = l.Of(scope="own", name="x")
_M = l.Of(scope="seen", name="m")


def grammar(rng: random.Random) -> l.Grammar:
    """A grammar with not too many sessions."""
    while True:
        kind = rng.choice(KINDS)
        low = rng.choice([1, 1, None])
        high = 1 if "z" in kind else rng.choice([1, 2, None])
        of = l.Type(kind="list", of=OPEN[kind], low=low, high=high)
        tools = (
            l.Tool(name="a", fields=(l.Field(name="m", type=of, answer=rng.random() < 0.7),)),
            l.Tool(name="b", fields=(l.Field(name="x", type=OPEN[kind]),)),
        )
        says: list[l.Statement] = [l.Depth(most=3)]
        says += [statement(rng) for _ in range(rng.choice([1, 2, 2, 3, 3]))]
        made = l.Grammar(tools=tools, statements=tuple(dict.fromkeys(says)))
        if many(made, (0,)) <= MOST_SESSIONS:
            return made


def changed(rng: random.Random, made: l.Grammar) -> l.Grammar:
    """A grammar like another, with other statements."""
    says = list(made.statements)
    if len(says) > 1:
        says.pop(rng.randrange(1, len(says)))
    says += [statement(rng) for _ in range(rng.choice([0, 1, 1]))]
    return l.Grammar(tools=made.tools, statements=tuple(dict.fromkeys(says)))


def statement(rng: random.Random) -> l.Statement:
    """A statement about a value and the lists of earlier calls."""
    word = rng.choice(["require", "require", "require", "forbid", "forbid", "unless", "uses"])
    before = l.Pattern(tool="b")
    some = tuple([_alternative(rng) for _ in range(rng.choice([1, 1, 1, 2]))])
    if word == "uses":
        return l.Uses(calls=l.Pattern(tool=rng.choice("ab")), most=rng.choice([1, 1, 2]))
    if word == "require":
        return l.Require(alternatives=some, before=before, each=rng.random() < 0.1)
    lifts = (_alternative(rng),) if word == "unless" else ()
    return l.Forbid(alternatives=some, before=before, unless=lifts)


def _alternative(rng: random.Random) -> l.Alternative:
    least = 2 if rng.random() < 0.35 else 1
    where = _relations(rng) if rng.random() < 0.85 else ()
    return l.Alternative(
        calls=l.Pattern(tool="a"),
        last=least == 1 and rng.random() < 0.35,
        least=least,
        where=where,
    )


def _relations(rng: random.Random) -> Sequence[l.Relation]:
    every = l.Of(scope=l.ELEMENT, name=None)
    each = l.Of(scope="e", name=None)
    op = rng.choice(["=", "!="])
    return (
        rng.choice(
            [
                l.In(left=_X, right=_M, negated=rng.random() < 0.4),
                l.Every(of=_M, each=l.Compare(op=op, left=every, right=_X)),
                l.Group(
                    every=False,
                    lists=((_M, "e"),),
                    relations=(l.Compare(op=op, left=each, right=_X),),
                ),
            ]
        ),
    )

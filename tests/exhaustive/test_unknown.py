"""The table of what is not known: what is sure stays sure, whatever it turns out to be.

Every relation over every state of its sides, and sessions under every resolution of their unknown
outcomes.  A field is a value, none or unknown; unknown may turn out to be anything else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from fractions import Fraction
from itertools import product

import pytest

from tests.oracle_policies import cases as c, language as l
from tests.oracle_policies.drawn import FORMS, START, Draw, Play
from tests.oracle_policies.meaning import Made, Scene, Session, both, either, holds, opposite
from tests.oracle_policies.values import NONE, UNKNOWN, State

TEXTS: list[State] = [("s", "a"), ("s", "b")]
NUMBERS: list[State] = [("n", Fraction(0)), ("n", Fraction(1))]
LISTS: list[State] = [("l", ()), ("l", (("s", "a"),)), ("l", (("s", "a"), ("s", "b")))]
KINDS = {"x": TEXTS, "y": TEXTS, "n": NUMBERS, "m": NUMBERS, "p": LISTS, "q": LISTS}
X, Y, N, M, P, Q = map(c.own, KINDS)
EQUAL = c.is_(c.element("a"), "=", c.element("b"))
RELATIONS: list[tuple[str, l.Relation]] = [
    ("xy", c.is_(X, "=", Y)),
    ("xy", c.is_(X, "!=", Y)),
    ("xy", c.is_(X, "=", Y, maybe=True)),
    ("x", c.is_(X, "=", "a")),
    *(("nm", c.is_(N, op, M)) for op in ("<", "<=", ">", ">=")),
    ("nm", c.is_(c.plus(N, M), "<=", 1)),
    ("nm", c.is_(l.Max(one=N, other=M), "=", 1)),
    ("nm", c.is_(N, ">=", M, maybe=True)),
    ("xp", c.in_(X, P)),
    ("xp", c.in_(X, P, negated=True)),
    ("xp", c.in_(X, P, maybe=True)),
    ("x", l.Like(left=X, pattern="a")),
    ("x", l.Like(left=X, pattern="a", negated=True, maybe=True)),
    ("px", c.every(P, "=", X)),
    ("pq", c.every(P, "in", Q)),
    ("pq", c.every(P, "not in", Q)),
    ("pq", c.pairs(P, Q, EQUAL)),
    ("pq", c.is_(P, "=", Q)),
    ("px", c.some(P, "a", c.is_(c.element("a"), "=", X))),
    ("pxy", c.some(P, "a", c.is_(c.element("a"), "=", X), c.is_(c.element("a"), "!=", Y))),
    ("pn", c.is_(l.Count(of=P), ">", N)),
    ("pxn", c.is_(l.Count(of=P, op="=", than=X), "<=", N)),
]


def states(name: str) -> list[State]:
    return [*KINDS[name], NONE, UNKNOWN]


def worlds(given: Mapping[str, State]) -> Iterator[dict[str, State]]:
    """What the unknown ones may turn out to be."""
    pools = [[*KINDS[n], NONE] if s == UNKNOWN else [s] for n, s in given.items()]
    for chosen in product(*pools):
        yield dict(zip(given, chosen, strict=True))


def truth(relation: l.Relation, given: Mapping[str, State]) -> bool | None:
    made = Made(tool=l.Tool(name="t"), stamp=0, states=given)
    return holds(relation, Scene(own=made))


@pytest.mark.parametrize(("names", "relation"), RELATIONS)
def test_what_is_sure_stays_so(names: str, relation: l.Relation) -> None:
    seen = set()
    for chosen in product(*map(states, names)):
        given = dict(zip(names, chosen, strict=True))
        found = truth(relation, given)
        seen.add(found)
        if found is not None:
            assert {truth(relation, world) for world in worlds(given)} == {found}, given
    assert seen == {True, False, None}


@pytest.mark.parametrize(("names", "relation"), RELATIONS)
def test_with_a_none_or_unknown_side_nothing_is_sure_but_what_says_so(
    names: str, relation: l.Relation
) -> None:
    maybe = getattr(relation, "maybe", False)
    for chosen in product(*map(states, names)):
        given = dict(zip(names, chosen, strict=True))
        lacking = NONE in chosen or UNKNOWN in chosen
        if maybe and chosen[0] == NONE:
            assert truth(relation, given) is True
        elif lacking and isinstance(relation, l.Compare) and not _counts(relation):
            assert truth(relation, given) is None
        elif not lacking:
            assert truth(relation, given) is not None


def _counts(relation: l.Compare) -> bool:
    return isinstance(relation.left, l.Count)


def test_the_three_values_are_kleene_s() -> None:
    for one, other in product((True, False, None), repeat=2):
        pair = [one, other]
        assert both(pair) is (False if False in pair else None if None in pair else True)
        assert either(pair) is opposite(both(map(opposite, pair)))
    assert both([]) is True and either([]) is False


def resolutions(session: Session) -> Iterator[Session]:
    """The session as it would be, were the unknown outcomes these."""
    open_ones = [at for at, call in enumerate(session.made) if call.done is None]
    pools = []
    for at in open_ones:
        call = session.made[at]
        answers = [f for f in call.tool.fields if f.answer and f.values]
        done = [
            {f.place[1:] if f.place else f.name: v for f, v in zip(answers, chosen, strict=True)}
            for chosen in product(*[f.values or () for f in answers])
        ]
        pools.append([None, *done])
    for chosen in product(*pools):
        one = copy(session)
        one.made = [copy(call) for call in session.made]
        one._attributes = dict(session._attributes)
        for at, answer in zip(open_ones, chosen, strict=True):
            one.resolve(at + 1, "failed" if answer is None else "done", answer)
        yield one


@pytest.mark.parametrize("part", range(4))
def test_what_is_allowed_is_allowed_whatever_the_outcomes_were(part: int) -> None:
    looked = 0
    for seed in range(part, 240, 4):
        grammar = Draw(seed, FORMS - {"owed", "least"}).grammar()
        draw = Play(seed, grammar)
        session, now = Session(grammar=grammar, given=draw.given()), START
        for _ in range(8):
            step = draw.step()
            now += step.later * 1000
            if session.decide(step.tool, step.arguments, now) is not None:
                continue
            for one in resolutions(session):
                looked += one.made != session.made
                assert one.decide(step.tool, step.arguments, now) is None, (seed, step)
            seq = session.call(step.tool, step.arguments, now)
            unknown = (
                sum(call.done is None for call in session.made) < 3 and draw.rng.random() < 0.4
            )
            session.outcome(seq, "unknown" if unknown else "done", step.answer)
    assert looked > 100

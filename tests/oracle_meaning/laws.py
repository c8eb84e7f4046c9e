"""The laws of the definition, each checked on one random case.

- EXACT: where everything is known, the definition says what the oracle says.
- SOUND: what the definition says is so in every world of the history.
- MONOTONE: what it says stays so when an outcome or an answer becomes known.
- ALIKE: a history that scans and one that looks up say the same.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from tcc_certs.policy import nodes as n
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.history import (
    ANSWERED,
    DONE,
    FAILED,
    LOST,
    OPEN,
    Call,
    DictHistory,
    ListHistory,
)
from tcc_certs.policy.kinds import Fault, Kinds
from tcc_certs.policy.meaning import Evaluation, Policy
from tests.oracle_meaning import drawn
from tests.oracle_meaning.drawn import Drawer, Step
from tests.oracle_meaning.world import MISSING, NOTHING, Oracle, compare, value_of

T = TypeVar("T")
MAX_RUNS = 40  # worlds that are enumerated before others are drawn


class Unknown(Exception):
    """The oracle had to choose."""


def only(options: Sequence[T]) -> T:
    """The only option.

    Raises:
        Unknown: there are several.
    """
    if len(options) > 1:
        raise Unknown
    return options[0]


def worlds(run: Callable[[Any], T], rng: random.Random, most: int = MAX_RUNS) -> Iterator[T]:
    """The results of `run` for every way to choose; for some ways, if there are too many."""
    script: list[list[int]] = []
    for _ in range(most):
        at = 0

        def choose(options: Sequence[Any]) -> Any:
            nonlocal at
            if at == len(script):
                script.append([0, len(options)])
            at += 1
            return options[script[at - 1][0]]

        yield run(choose)
        while script and script[-1][0] + 1 == script[-1][1]:
            script.pop()
        if not script:
            return
        script[-1][0] += 1
    for _ in range(most):
        yield run(rng.choice)


class Session:
    """A history in both forms, built by its steps.

    Args:
        policy: draws what calls count; None: they count nothing.
    """

    def __init__(
        self,
        core: Any,
        given: Mapping[str, Any],
        steps: Sequence[Step],
        policy: Policy | None = None,
    ) -> None:
        self.core = core
        self.given = given
        self.steps = steps
        self.scanned = ListHistory(core, given)
        self.indexed = DictHistory(core, given)
        self.snapshots: list[dict[str, Any]] = []
        self.policy = policy
        late = []
        for step in steps:
            self._add(step)
            if step.late:
                late.append((len(self.calls) - 1, step))
            else:
                self.record(len(self.calls) - 1, step.outcome, step.answers)
        for at, step in late:
            self.record(at, step.outcome, step.answers)

    @property
    def calls(self) -> list[Call]:
        return self.scanned.calls

    def _add(self, step: Step) -> None:
        call = Call(step.tool, len(self.calls), step.at_ms, step.arguments)
        self.snapshots.append(dict(self.attributes()))
        draws: Mapping[int, Any] = {}
        if self.policy is not None:
            draws = self.policy.draws(self.scanned, call, step.at_ms)
            assert draws == self.policy.draws(self.indexed, call, step.at_ms)
        self.scanned.add(call, draws)
        self.indexed.add(call, draws)

    def record(self, at: int, outcome: str, answers: Mapping[str, Any]) -> None:
        for history in (self.scanned, self.indexed):
            history.record(self.calls[at], outcome, answers)

    def attributes(self) -> dict[str, Any]:
        names = [one.name for one in self.core.given]
        found = {name: self.scanned.attribute(name) for name in names}
        return {name: state for name, state in found.items() if state != ("unknown", None)}

    def later(self, rng: random.Random, drawer: Drawer) -> Session | None:
        """A copy in which one more outcome or answer is known; None: everything is."""
        found = Session(self.core, self.given, self.steps, self.policy)
        open_ = [call.at for call in found.calls if call.outcome in (OPEN, LOST)]
        partly = [
            call.at
            for call in found.calls
            if call.outcome == DONE and ("unknown", None) in call.answers.values()
        ]
        if not open_ and not partly:
            return None
        at = rng.choice(open_ + partly)
        call = found.calls[at]
        answers = drawn.answers_of(drawer.tool_of[call.tool], rng, known=rng.random() < 0.7)
        if at in partly:
            known = {k: v for k, v in call.answers.items() if v != ("unknown", None)}
            found.record(at, DONE, {**answers, **known})
            return found
        outcome = rng.choice((DONE, DONE, DONE, FAILED, ANSWERED))
        found.record(at, outcome, answers if outcome == DONE else {})
        return found


class Conditions:
    """Laws of conditions: random clauses of `before` in random histories.

    Args:
        exact: whether EXACT is among them; it does not hold where work is cut.
    """

    def __init__(self, seed: int, *, exact: bool = True) -> None:
        self.rng = random.Random(seed)
        self.exact = exact
        self.counts: Counter[str] = Counter()

    def run(self, cases: int) -> Counter[str]:
        """Check so many conditions; returns how many had which result.

        Raises:
            AssertionError: a law does not hold.
        """
        while self.counts["conditions"] < cases:
            drawer = Drawer(self.rng)
            for _ in range(8):
                statement, fault = drawer.sound(drawer.require)
                if fault is not None:
                    self.counts[f"fault {fault.code}"] += 1
                    continue
                self.counts["conditions"] += 1
                self._check(drawer, statement)
                drawer.lets.clear()
        return self.counts

    def _check(self, drawer: Drawer, statement: n.Statement) -> None:
        assert isinstance(statement, n.Require) and statement.on is not None
        core = drawer.core([statement])
        rule = Kinds(core).rule(statement)
        for known in (True, False):
            given = drawn.given_of(drawer, self.rng)
            steps = drawn.history(drawer, self.rng, self.rng.randint(0, 5), known=known)
            session = Session(core, given, steps)
            now = (steps[-1].at_ms if steps else drawn.START) + self.rng.choice((0, drawn.HOUR))
            assert rule.tools is not None
            call = drawn.deciding(drawer, self.rng, sorted(rule.tools), len(steps), now)
            self._decide(drawer, statement, rule, session, call)

    def _decide(
        self, drawer: Drawer, statement: n.Require, rule: Rule, session: Session, call: Call
    ) -> None:
        rng = self.rng
        about = lambda: describe(session, call, statement)  # noqa: E731
        truth = truth_of(rule, session, call, about)
        self.counts[str(truth)] += 1
        self.counts["decisions"] += 1

        def run(choose: Any) -> Any:
            oracle = oracle_of(session, call.at_ms, choose)
            return condition(oracle, statement, call)

        if truth is None and self.exact:
            try:
                found = run(only)
            except Unknown:
                pass
            else:
                self.counts["known"] += 1
                assert found is None, f"EXACT: unsure, and {found}\n{about()}"
        if truth is not None:
            for found in worlds(run, rng):
                assert found is truth, f"SOUND: {truth}, and {found}\n{about()}"
        later = session.later(rng, drawer)
        if later is not None and truth is not None:
            self.counts["later"] += 1
            known = truth_of(rule, later, call, about)
            about_later = describe(later, call, statement)
            assert known is truth, f"MONOTONE: {truth}, then {known}\n{about()}\n{about_later}"


def oracle_of(session: Session, now: int, choose: Any) -> Oracle:
    return Oracle(session.core, session.calls, session.attributes(), now, choose, drawn.pool)


def condition(oracle: Oracle, statement: n.Require, call: Call) -> Any:
    """The truth of the condition of a clause."""
    return oracle.clause(statement, call)


def truth_of(rule: Rule, session: Session, call: Call, about: Callable[[], str]) -> Any:
    """The truth of the condition of a clause by the definition."""
    assert rule.then is not None
    found = [
        Evaluation(history, call, call.at_ms).truth(rule.then)
        for history in (session.scanned, session.indexed)
    ]
    assert found[0] is found[1], f"ALIKE: {found}\n{about()}"
    return found[0]


class Statements:
    """Laws of statements: random policies in random sessions.

    Args:
        exact: whether EXACT is among them; it does not hold where work is cut.
    """

    def __init__(self, seed: int, *, exact: bool = True) -> None:
        self.rng = random.Random(seed)
        self.exact = exact
        self.counts: Counter[str] = Counter()

    def run(self, cases: int) -> Counter[str]:
        """Check so many statements.

        Raises:
            AssertionError: a law does not hold.
        """
        while self.counts["statements"] < cases:
            drawer = Drawer(self.rng)
            statements = []
            for _ in range(4):
                statement, fault = drawer.sound(drawer.statement)
                if fault is not None:
                    self.counts[f"fault {fault.code}"] += 1
                    continue
                statements.append(statement)
            core = drawer.core(statements)
            try:
                policy = Policy(core)
            except Fault as fault:
                self.counts[f"fault {fault.code} of a let"] += 1
                continue
            self.counts["statements"] += len(statements)
            for known in (True, False, False):
                self._session(drawer, policy, known)
        return self.counts

    def _session(self, drawer: Drawer, policy: Policy, known: bool) -> None:
        rng = self.rng
        steps = drawn.history(drawer, rng, rng.randint(0, 6), known=known)
        given = drawn.given_of(drawer, rng)
        session = Session(policy.core, given, steps, policy)
        now = (steps[-1].at_ms if steps else drawn.START) + rng.choice((0, drawn.HOUR))
        call = drawn.deciding(drawer, rng, sorted(drawer.tool_of), len(steps), now)
        refused = alike(lambda h: [r.statement for r in policy.refusals(h, call, now)], session)
        unmet = alike(lambda h: policy.unmet(h, now), session)
        later = session.later(rng, drawer)
        if later is not None:
            refused_later = alike(
                lambda h: [r.statement for r in policy.refusals(h, call, now)], later
            )
            unmet_later = alike(lambda h: policy.unmet(h, now), later)
            for then, before in ((refused_later, refused), (unmet_later, unmet)):
                more = [policy.core.statements[at] for at in set(then) - set(before)]
                about = [describe(session, call, one) + describe(later, call, one) for one in more]
                assert not more, f"MONOTONE\n{about}"
        for number, statement in enumerate(policy.core.statements):
            self._statement(session, call, number, statement, refused, unmet)

    def _statement(
        self,
        session: Session,
        call: Call,
        number: int,
        statement: n.Statement,
        refused: Sequence[int],
        unmet: Sequence[int],
    ) -> None:
        now = call.at_ms

        def run(choose: Any) -> tuple[bool, bool]:
            """Whether the statement lets the call through, and the session finish, in a world."""
            return in_world(oracle_of(session, now, choose), session, statement, call, choose)

        said = (number not in refused, number not in unmet)
        kind = type(statement).__name__
        self.counts[f"{kind} {said[0]} {said[1]}"] += 1
        if isinstance(statement, n.Total) and statement.what != "depth":
            return
        try:
            exact = run(only)
        except Unknown:
            pass
        else:
            if self.exact:
                self.counts[f"{kind} known"] += 1
                about = describe(session, call, statement)
                assert exact == said, f"EXACT: {said}, and {exact}\n{about}"
                return
        if not any(said):
            return
        for found in worlds(run, self.rng):
            ok = all(here or not says for here, says in zip(found, said, strict=True))
            assert ok, f"SOUND: {said}, and {found}\n{describe(session, call, statement)}"


def alike(ask: Callable[[Any], T], session: Session) -> T:
    """What both histories say."""
    found = ask(session.scanned)
    other = ask(session.indexed)
    assert found == other, f"ALIKE: {found}, and {other}"
    return found


def in_world(
    oracle: Oracle, session: Session, statement: n.Statement, call: Call, choose: Any
) -> tuple[bool, bool]:
    """Whether a statement lets a call through, and whether the session may finish."""
    core = session.core
    match statement:
        case n.Require(on=None):
            return True, oracle.may_finish(statement)
        case n.Require(on=on) | n.Forbid(on=on):
            assert on is not None
            return call.tool not in oracle.tools(on) or oracle.allows(statement, call), True
        case n.Owe():
            unpaid = oracle.unpaid(statement)
            late = _is_overdue(statement, unpaid, call.at_ms)
            if late and call.tool in oracle.tools(statement.after):
                return oracle.applies_to(statement.where, call) is False, not unpaid
            return True, not unpaid
        case n.Limit():
            if call.tool not in oracle.tools(statement.of):
                return True, True
            return _within_limit(oracle, session, statement, call, choose), True
        case n.Total(most=most):
            counted = [one for one in session.calls if oracle.fate(one) == "done"]
            return len(counted) + 1 <= Fraction(most), True
    raise AssertionError(core)


def _is_overdue(owe: n.Owe, unpaid: Sequence[Call], now: int) -> bool:
    if owe.within is None:
        return False
    span = Fraction(owe.within.amount) * n.UNITS[owe.within.unit]
    return any(call.at_ms + span < now for call in unpaid)


def _within_limit(
    oracle: Oracle, session: Session, limit: n.Limit, call: Call, choose: Any
) -> bool:
    """Whether the calls of the key of `call` are within the limit, with `call`."""
    now = call.at_ms
    tools = oracle.tools(limit.of)
    decided = [
        (one, snapshot)
        for one, snapshot in zip(session.calls, session.snapshots, strict=True)
        if one.tool in tools and oracle.fate(one) == "done"
    ]
    decided.append((call, session.attributes()))
    total = Fraction(0)
    keys = []
    for one, attributes in decided:
        at_decision = Oracle(session.core, session.calls, attributes, one.at_ms, choose, drawn.pool)
        counts = at_decision.applies_to(limit.where, one) is not False
        key = tuple([at_decision.value(term, one) for term in limit.per]) if counts else None
        keys.append((one, key))
    own = keys[-1][1]
    if own is None:
        return True
    for one, key in keys:
        if key is None or not all(map(_may_equal, own, key)):
            continue
        if limit.within is not None:
            span = Fraction(limit.within.amount) * n.UNITS[limit.within.unit]
            if one.at_ms < now - span:
                continue
        total += 1 if limit.field is None else value_of(one.arguments[limit.field])
    return compare("<=", total, oracle.value(limit.most, call)) is True


def _may_equal(one: Any, other: Any) -> bool:
    if NOTHING in (one, other) or MISSING in (one, other):
        return True  # the key is unknown
    return one == other


def describe(session: Session, call: Call, statement: n.Statement) -> str:
    """A case, to be read."""
    core = session.core
    lines = [n.statement_text(statement), *[n.definition_text(let) for let in core.lets]]
    lines += [
        f"tool {t.name}({', '.join(f.name + '?' * f.optional for f in t.arguments)}) gives "
        f"({', '.join(f.name + '?' * f.optional for f in t.answers)})"
        for t in core.tools
    ]
    lines.append(f"given {session.attributes()}")
    for one in [*session.calls, call]:
        hours = (one.at_ms - drawn.START) / drawn.HOUR
        lines.append(
            f"{one.at}: {one.tool}({_shown(one.arguments)}) at {hours} h"
            f" {one.outcome} {_shown(one.answers)}"
        )
    return "\n".join(lines)


def _shown(states: Mapping[str, Any]) -> str:
    return ", ".join([f"{name}={value_of(state)!r}" for name, state in states.items()])

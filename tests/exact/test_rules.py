"""Every rule and every fact of the kernel holds in random sessions, by the definition."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice, product

import pytest

import tcc
from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course
from tcc_certs.policy.history import Call, Draw
from tcc_certs.policy.meaning import Policy, Row
from tcc_certs.proof import rules
from tcc_certs.proof.reasons import (
    evaluated,
    fact_at_most,
    fact_between,
    facts_about,
    facts_of,
    most_before,
    renamed,
    renaming,
)
from tcc_certs.proof.rules import Wrong
from tcc_certs.proof.scene import Scene, calls_in, contradicts
from tcc_certs.values.fields import ListType
from tests.exact.drawn import HEAD, START, Drawer, drawn_step
from tests.exact.meant import Meant

MOST = 140  # literals of a session


def drawn_session(rng: random.Random) -> Meant | None:
    """A random policy with a session that it allows; the last call is decided."""
    drawer = Drawer(rng)
    text = HEAD + "\n".join(drawer.statement() for _ in range(rng.randint(2, 5))) + "\n"
    try:
        core = tcc.compile_text(text).core
    except tcc.CompileError:
        return None
    policy = Policy(core)
    course = Course(policy, {"g": rng.choice("ab")}, indexed=False)
    now = START
    made: list[dict[int, Draw]] = []
    step = None
    for _ in range(rng.randint(2, 6)):
        if step is not None:  # the outcome of the last call is not known
            course.record(course.history.calls[-1], step.outcome, step.answer)
        for _ in range(12):
            step = drawn_step(rng)
            if not course.check(step.tool, step.arguments, now + step.later):
                break
        else:
            step = None
            break
        now += step.later
        call = course.call(step.tool, step.arguments, now)
        made.append(dict(policy.draws(course.history, call, now)))
    if len(course.history.calls) < 2:
        return None
    scene = Scene(policy, None)
    order = list(reversed(course.history.calls))
    last = order[0]
    if last.outcome != "open":  # no further call was allowed
        return None
    numbers = [scene.enter(last.tool)]
    for call in order[1:]:
        numbers.append(scene.enter(call.tool, rng.choice(numbers)))
    elements = enter_elements(scene, order, core)
    draws = {
        (limit, number): made[call.at].get(limit)
        for number, call in enumerate(order)
        for limit, rule in enumerate(policy.rules)
        if rule.kind == "limit"
    }
    return Meant(scene, policy, core, [*order, *elements], course.history, draws)


def enter_elements(scene: Scene, calls: list[Call], core: Core) -> list[Row]:
    """Enter all elements of the lists of calls."""
    found = []
    for number, call in enumerate(calls):
        for one in (*core.tool_of[call.tool].arguments, *core.tool_of[call.tool].answers):
            state = call.state(one.name)
            if isinstance(one.type, ListType) and state[0] == "l":
                for element in state[1]:
                    of = "get", ("call", number), one.name
                    scene.enter_element(("items", of, one.type.most))
                    found.append(Row(element))
    return found


def check(meant: Meant, rng: random.Random, seen: Counter[str]) -> None:
    """Assert that all formulas and facts about a session hold."""
    scene = meant.scene
    actors = range(len(scene.actors))
    calls = [one for one in actors if scene.actors[one].base is None]

    def holds(name: str, formula: object, *about: object) -> None:
        seen[name] += 1
        assert meant.holds(formula), (name, about, formula)  # type: ignore[arg-type]

    for call in calls:
        for statement in range(len(meant.policy.rules)):
            holds("use", rules.use(scene, call, statement), call, statement)
        for formula in rules.entered(scene, call) if call else ():
            holds("entered", formula, call)
    for one, two, three in product(calls, repeat=3):
        holds("ordered", rules.ordered(scene, one, two, three))
        if scene.actors[one].tool != scene.actors[two].tool:
            holds("distinct", rules.distinct(scene, one, two))
    at = 0
    while at < len(scene.literals) and at < MOST:
        literal = scene.literals[at]
        at += 1
        for name, lemma in rules.LEMMAS.items():
            try:
                holds(name, lemma(scene, literal), literal)
            except Wrong:
                continue
        for name, rule in (("domain", rules.domain), ("count", rules.count)):
            for position in range(2):
                try:
                    holds(name, rule(scene, literal, position), literal, position)
                except Wrong:
                    continue
        for call in actors[1:]:
            try:
                holds("at", rules.at(scene, literal, call), literal, call)
            except Wrong:
                break
        witnesses(meant, literal, seen)
    literals = scene.literals[:MOST]
    truths = [meant.truth(literal) for literal in literals]
    for literal, truth in zip(literals, truths, strict=True):
        other = contradicts(literal)
        if truth and other is not None:
            seen["both"] += 1
            assert not meant.truth(other), literal
        variables = []
        for fact in facts_of(scene, literal, truth):
            seen["fact"] += 1
            assert meant.fact_holds(fact), (literal, truth, fact)
            variables += list(fact.terms)
        for variable in variables:
            for fact in facts_about(scene, variable):
                seen["about"] += 1
                assert meant.fact_holds(fact), (variable, fact)
    between(meant, literals, truths, seen)
    equal(meant, literals, truths, rng, seen)
    sources = [one for one in literals if one[0] in ("some", "none")]
    for one, other in islice(product(sources, repeat=2), 400):
        try:
            holds("include", rules.include(scene, one, other), one, other)
        except Wrong:
            continue


def witnesses(meant: Meant, literal: tuple[object, ...], seen: Counter[str]) -> None:
    """A literal with a witness has one among the calls."""
    scene = meant.scene
    truth = meant.truth(literal)
    try:
        cases = rules.cases(scene, literal, truth)
    except Wrong:
        return
    seen["witness"] += 1
    if any(case.base is not None and case.base[0] == "pairs" for case in cases):
        return  # the scene has no pairs
    for case in cases:
        if case.tool is None and case.base is None:
            if meant.holds(rules.witness(scene, literal, case, None)):
                return
            continue
        for call, actor in enumerate(scene.actors):
            fits = actor.tool == case.tool and actor.base == case.base
            if case.base is None and fits:
                fits = meant.calls[call].at < meant.calls[case.view].at
            if fits and meant.holds(rules.witness(scene, literal, case, call)):
                return
    raise AssertionError(literal)


def between(meant: Meant, literals: object, truths: object, seen: Counter[str]) -> None:
    """Facts between two variables hold."""
    scene = meant.scene
    variables: dict[object, None] = {}
    for literal, truth in zip(literals, truths, strict=True):  # type: ignore[call-overload]
        for fact in facts_of(scene, literal, truth):
            for one in fact.terms:
                if one[1][0] in ("time", "count", "sum", "counted"):
                    variables[one] = None
    for one, other in islice(product(variables, repeat=2), 900):
        fact = fact_between(scene, one, other)  # type: ignore[arg-type]
        if fact is not None and one != other:
            seen["between"] += 1
            assert meant.fact_holds(fact), (one, other)
    for one, statement in product(variables, range(len(meant.policy.rules))):
        most = most_before(scene, one, statement)  # type: ignore[arg-type]
        if most is not None:
            seen["most"] += 1
            assert meant.fact_holds(fact_at_most(one, most)), (one, statement)  # type: ignore[arg-type]


def equal(
    meant: Meant, literals: object, truths: object, rng: random.Random, seen: Counter[str]
) -> None:
    """With equalities that are true, a literal is evaluated to its truth."""
    pairs = list(zip(literals, truths, strict=True))  # type: ignore[call-overload]
    true = [one for one, truth in pairs if truth and one[0] == "eq"]
    chosen = [one for one in true if rng.random() < 0.7]
    names, clash = renaming(chosen)
    assert not clash
    known = {names.get(term, term) for one in chosen for term in one[1:]}
    found: dict[object, bool] = {}
    for literal, truth in pairs:
        new = renamed(literal, names)
        value = evaluated(new, known)
        if value is not None:
            seen["evaluated"] += 1
            assert value is truth, (literal, new)
        assert found.setdefault(new, truth) is truth, (literal, new)
    assert all(call < len(meant.calls) for one, _ in pairs for call in calls_in(one))


def run(seeds: range) -> Counter[str]:
    seen: Counter[str] = Counter()
    for seed in seeds:
        rng = random.Random(f"rules {seed}")
        meant = drawn_session(rng)
        if meant is not None:
            try:
                check(meant, rng, seen)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
    return seen


def test_rules_hold_in_random_sessions() -> None:
    seen = run(range(300, 420))
    names = {*rules.LEMMAS, "use", "at", "witness", "domain", "count", "fact", "between",
             "most"}  # fmt: skip
    assert names <= set(seen)


@pytest.mark.campaign
def test_rules_hold_in_many_sessions() -> None:
    print(run(range(1000, 6000)))

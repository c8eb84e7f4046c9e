"""Shows that every session of an artifact can be finished.

A session can be finished if calls exist that the gate lets through, with outcomes and answers of
our choice, after which the gate lets the session end.  Its unknown outcomes become known first, and
each answer has a value of its type.  Then a session is in one state of the automaton, and

1. no answer leads nowhere,
2. the automaton holds every statement that binds the end,
3. from each state calls of *free* tools lead to a state where a plan may end.

A tool is free if the automaton holds every statement that restricts it.  Such a statement decides
calls as the automaton does if the outcomes of its calls are known, and no error of a call that it
looks at was read.  So does a statement that an automaton with cycles leaves to the gate, and it
restricts only the tools that its table refuses.  With a total of depth no other way to an end may
be shorter than that of free tools, and no answer of a call may lead nearer to an end than another.
Cost: one pass over the automaton, and the tables of the statements.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any, NamedTuple

from tcc_certs.policy import forms
from tcc_certs.policy.forms import Rule
from tcc_certs.policy.kinds import walk
from tcc_certs.policy.meaning import policy_of
from tcc_certs.policy.places import left_out, parts_of, refused_tools
from tcc_certs.proof.plans import Plan, labels_in, set_of
from tcc_certs.values.places import State, listed_states


class Stuck(NamedTuple):
    """An answer that leads nowhere: no plan continues, and no plan ends.

    Attributes:
        state: of the automaton, where the call is made.
        label: the same call with another answer.
        answers: the listed answers that lead nowhere, by their names.
    """

    state: int
    label: int
    answers: dict[str, State]


def stuck(plan: Plan) -> Iterator[Stuck]:
    """The answers that lead nowhere, one for each state and call."""
    for state in plan.reached():
        found: dict[Any, set[Any]] = {}
        first: dict[Any, int] = {}
        for _, labels in plan.row(state):
            for label in labels_in(labels):
                states = plan.states(label)
                answers = [one.name for one in plan.tool(label).answers if one.type is None]
                if not answers:
                    continue
                key = _call_of(plan, label)
                found.setdefault(key, set()).add(tuple([states[name] for name in answers]))
                first.setdefault(key, label)
        for key, some in found.items():
            listed = [one for one in plan.tool(first[key]).answers if one.type is None]
            if len(some) < prod([len(listed_states(one)) for one in listed]):
                combined = product(*[listed_states(one) for one in listed])
                missing = next(one for one in combined if one not in some)
                names = [one.name for one in listed]
                yield Stuck(state, first[key], dict(zip(names, missing, strict=True)))


def open_reason(plan: Plan) -> str:
    """Return why this argument does not show that sessions can be finished; empty: it does."""
    if _is_nondeterministic(plan):
        return "the automaton may be in several states at once"
    if next(stuck(plan), None) is not None:
        return "an answer leads where no plan continues"
    core = plan.core
    rules = policy_of(core).rules
    free = {tool.name for tool in core.tools}
    is_counted = plan.automaton.cyclic and bool(core.depth_totals)
    left = left_out(core) if plan.automaton.cyclic else ()
    for part, rule in zip(parts_of(core), rules, strict=True):
        if is_counted and part.number in core.depth_totals:
            continue
        if part.place == "automaton" and not _reads_errors(plan, rule):
            if part.number in left:
                free -= {core.tools[at].name for at in refused_tools(core, part)}
            if part.number in left or part.number not in plan.omitted:
                continue
        if rule.kind == "owe" and not any(map(plan.labels, rule.tools or ())):
            continue  # no session has a call that owes
        if rule.kind == "owe" or rule.tools is None:
            return f"whether a session can always satisfy `{part.text}`"
        free -= {tool for tool in free if tool in rule.tools}
    labels = set_of([label for tool in sorted(free) for label in plan.labels(tool)])
    calls = _calls_to_end(plan, labels)
    if len(calls) < len(plan.reached()):
        return "each way to an end has a call that a statement may refuse"
    if is_counted and any(plan.automaton.calls_to_go[state] < calls[state] for state in calls):
        return "each way to an end may have more calls than `limit depth` leaves"
    if is_counted and _has_longer_answers(plan):
        return "after an answer each way to an end may have more calls than `limit depth` leaves"
    return ""


def _has_longer_answers(plan: Plan) -> bool:
    """Return whether answers of a call lead to states with different distances to an end.

    A gate looks only at the nearest one: after another answer, too few calls may be left.
    """
    for state in plan.reached():
        found: dict[Any, int] = {}
        for target, labels in plan.row(state):
            left = plan.automaton.calls_to_go[target]
            for label in labels_in(labels):
                if found.setdefault(_call_of(plan, label), left) != left:
                    return True
    return False


def _call_of(plan: Plan, label: int) -> Any:
    """Return the tool and the listed arguments of a label: equal for all answers of a call."""
    tool, states = plan.tool(label), plan.states(label)
    return tool.name, *[states[one.name] for one in tool.arguments if one.type is None]


def _is_nondeterministic(plan: Plan) -> bool:
    for state in plan.reached():
        seen = 0
        for _, labels in plan.row(state):
            if seen & labels:
                return True
            seen |= labels
    return False


def _reads_errors(plan: Plan, rule: Rule) -> bool:
    """Return whether a statement looks under `no` or `not` at calls whose errors may be read.

    Only there a call may be in a source that had no effect.
    """
    negative = [form for form in walk(rule) if isinstance(form, forms.Not | forms.Every)]
    return any(
        isinstance(form, forms.Calls)
        and any(plan.core.tool_of[tool].errors_failed for tool in form.tools)
        for part in (*rule.where, *negative)
        for form in walk(part)
    )


def _calls_to_end(plan: Plan, labels: int) -> dict[int, int]:
    """By state, the fewest calls of these labels that lead to a state where a plan may end.

    A state without such calls is absent.
    """
    before: dict[int, list[int]] = {}
    todo = []
    for state in plan.reached():
        if plan.accepts(state):
            todo.append(state)
        for target, some in plan.row(state):
            if some & labels:
                before.setdefault(target, []).append(state)
    found = dict.fromkeys(todo, 0)
    for state in todo:  # grows as it is read
        for source in before.get(state, ()):
            if source not in found:
                found[source] = found[state] + 1
                todo.append(source)
    return found

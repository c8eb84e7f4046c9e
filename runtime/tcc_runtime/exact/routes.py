"""Puts calls into drafts of sessions so that the automaton of an artifact has a path for them.

A draft has calls that a question or a statement needs, in a partial order.  The path has these
calls and *fillers*, which another route replaces.  A path through tools without statements is
preferred, because the definition refuses none of their calls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heappop, heappush
from typing import Any, TypeAlias

from tcc_certs.errors import Rejected
from tcc_certs.policy.forms import Constant, Rule
from tcc_certs.policy.meaning import totals_of
from tcc_certs.proof.ground import VIEW, ground
from tcc_certs.proof.plans import Step, labels_in, set_of
from tcc_certs.proof.reasons import truth_at
from tcc_certs.session.machine import SessionMachine
from tcc_certs.values.places import NONE, UNKNOWN, exact_number
from tcc_runtime.exact.drafts import plain_draft
from tcc_runtime.exact.planned import SearchedPlan
from tcc_runtime.exact.values import Draft, Maker

MAX_CALLS = 10  # that a route puts in order; of more it keeps the order of the draft
MAX_PLACES = 1 << 16
MAX_AMOUNTS = 8  # of calls that a path beyond a total may have

_Links: TypeAlias = "dict[tuple[int, int], tuple[tuple[int, int], Step] | None]"


class Router:
    """Routes of the drafts of a question.

    Args:
        machine: the automaton as sessions use it.
    """

    def __init__(self, plan: SearchedPlan, machine: SessionMachine) -> None:
        self.machine = machine
        self._plan = plan
        self._weights: list[tuple[int, int]] = []

    def routed(self, maker: Maker, draft: Draft) -> Draft | None:
        """The draft with other fillers, or with other listed values; None: no path was found."""
        made = [
            one
            for one in draft.order
            if draft.tools[one] is not None
            and one not in draft.fillers
            and draft.outcomes.get(one) not in ("failed", "answered")
        ]
        ends = draft.tools[draft.order[-1]] is None
        last = None if ends else draft.order[-1]
        pairs = {(made.index(one), made.index(other)) for one, other in draft.pairs
                 if one in made and other in made}  # fmt: skip
        if len(made) > MAX_CALLS:
            pairs = {(at, at + 1) for at in range(len(made) - 1)}
        if last is not None:
            pairs |= {(at, len(made) - 1) for at in range(len(made) - 1)}
        for exactly in (True, False):
            labels = [self._labels(draft, one, exactly) for one in made]
            steps = self._path(maker, labels, pairs, ends)
            if steps is not None:
                return self._with(maker, draft, made, steps)
        return None

    def exceeding(self, maker: Maker) -> Iterator[Draft]:
        """Yield drafts along paths that exceed a total, or a limit with a constant bound.

        Each path has a greatest amount for a call, the small ones first.
        """
        *others, rule = maker.policy.rules
        if rule.kind == "total":
            most = exact_number(rule.total)
        elif rule.kind == "limit" and isinstance(rule.most, Constant):
            most = rule.most.state[1]
        else:
            return
        totals = [one.what for one in others if one.kind == "total"]
        levels: dict[Any, int] = {}
        for weight, labels in self._weights_of(maker):
            for label in labels_in(labels):
                call = self._plan.call(label)
                key = self._adds(rule, label), weight, sum(totals_of(call)[one] for one in totals)
                levels[key] = levels.get(key, 0) | 1 << label
        amounts = sorted({key[0] for key in levels if key[0] > 0})
        few = amounts[: -MAX_AMOUNTS : len(amounts) // MAX_AMOUNTS + 1]
        for amount in (*few, *amounts[-MAX_AMOUNTS:]):
            some = sorted(
                [(-key[0], *key[1:], labels) for key, labels in levels.items() if key[0] <= amount]
            )
            steps = self._heavy([(-one[0], one[-1]) for one in some], most)
            if steps is not None:
                *before, last = steps
                tool = self._plan.tool(last.label).name
                yield self.along(maker, plain_draft(maker, tool, ()), before, last.label)

    def _adds(self, rule: Rule, label: int) -> Any:
        """What a call adds to a limit or a total; 0 of an open field."""
        if rule.kind == "total":
            return totals_of(self._plan.call(label))[rule.what]
        tool, states = self._plan.tool(label).name, self._plan.states(label)
        values = {("get", ("bound", 0), name): state for name, state in states.items()}
        where = [ground(one, {0: ("bound", 0), VIEW: ("call", 0)}) for one in rule.where]
        if tool not in (rule.tools or ()) or any(truth_at(one, values, tool) is False
                                                 for one in where):  # fmt: skip
            return 0
        return 1 if rule.field is None else states.get(rule.field, ("n", 0))[1]

    def _heavy(self, levels: Sequence[tuple[Any, int]], most: Any) -> list[Step] | None:
        """Return a shortest path whose amounts add up to more than `most`.

        None: there is none, or the search is too large.

        Args:
            levels: amounts with sets of labels, the greatest first.  Other labels are not used.
        """
        plan = self._plan
        layer: dict[int, Any] = {plan.root: 0}
        links: list[dict[int, tuple[int, int]]] = []
        places = 0
        try:
            while layer and places < MAX_PLACES:
                after: dict[int, Any] = {}
                links.append({})
                for state, total in layer.items():
                    for target, labels in plan.row(state):
                        found = next((one for one in levels if one[1] & labels), None)
                        if found is None:
                            continue
                        if target not in after or total + found[0] > after[target]:
                            after[target] = total + found[0]
                            links[-1][target] = state, next(labels_in(found[1] & labels))
                for target, total in after.items():
                    if total > most:
                        return _back(links, target)
                layer, places = after, places + len(after)
        except Rejected:
            pass
        return None

    def followed(
        self, maker: Maker, draft: Draft, chain: Sequence[int], steps: Sequence[Step]
    ) -> Draft:
        """Return the draft along a path; `chain` has its calls that the path has, in order."""
        made = [one for one in chain if draft.tools[one] is not None]
        return self._with(maker, draft, made, steps)

    def along(self, maker: Maker, draft: Draft, steps: Sequence[Step], label: int) -> Draft:
        """The draft of one call with the calls of a path before it."""
        last = draft.order[-1]
        return self._with(maker, draft, [last], [*steps, Step(label, 0)])

    def _path(
        self, maker: Maker, named: Sequence[int], pairs: set[tuple[int, int]], ends: bool
    ) -> list[Step] | None:
        """A light path with all named calls, in an order that has the pairs."""
        plan = self._plan
        before = [0] * len(named)
        for one, other in pairs:
            before[other] |= 1 << one
        everything = (1 << len(named)) - 1
        try:
            reach = plan.reach()
            weights = self._weights_of(maker)
            queue: list[tuple[int, int, int, int]] = [(0, 0, plan.root, 0)]
            links: _Links = {(plan.root, 0): None}
            best: dict[tuple[int, int], int] = {(plan.root, 0): 0}
            done: set[tuple[int, int]] = set()
            turn = 0
            while queue and len(links) < MAX_PLACES:
                weight, _, state, mask = heappop(queue)
                here = state, mask
                if here in done:
                    continue
                done.add(here)
                if mask == everything and (not ends or plan.accepts(state)):
                    return _steps(links, here)
                open_calls = [at for at in range(len(named)) if not mask >> at & 1]
                for target, labels in plan.row(state):
                    moves = [(labels, mask, -1)]
                    moves += [
                        (labels & named[at], mask | 1 << at, at)
                        for at in open_calls
                        if before[at] & ~mask == 0
                    ]
                    for some, after, number in moves:
                        there = target, after
                        if not some or there in done:
                            continue
                        is_last = after == everything and not ends
                        left = [at for at in open_calls if at != number]
                        if not is_last and not all(reach[target] & named[at] for at in left):
                            continue
                        cost, chosen = self._lightest(weights, some)
                        total = weight + (cost if number < 0 else 1)
                        if total < best.get(there, total + 1):
                            turn += 1
                            best[there] = total
                            links[there] = here, Step(chosen, number)
                            heappush(queue, (total, turn, *there))
        except Rejected:
            pass
        return None

    def _weights_of(self, maker: Maker) -> list[tuple[int, int]]:
        """The labels by the number of statements that restrict their tools."""
        if not self._weights:
            found: dict[int, int] = {}
            for tool in self._plan.core.tools:
                rules = [
                    one
                    for one in maker.policy.rules
                    if one.tools is not None
                    and tool.name in one.tools
                    and one.kind in ("require", "forbid", "limit", "ask")
                ]
                weight = 1 + 2 * len(rules)
                found[weight] = found.get(weight, 0) | set_of(self._plan.labels(tool.name))
            self._weights = sorted(found.items())
        return self._weights

    @staticmethod
    def _lightest(weights: Sequence[tuple[int, int]], labels: int) -> tuple[int, int]:
        for weight, some in weights:
            if labels & some:
                return weight, next(labels_in(labels & some))
        raise KeyError(labels)

    def _labels(self, draft: Draft, call: int, exactly: bool) -> int:
        """The labels that a call of a draft may have."""
        name = draft.tools[call] or ""
        tool = self._plan.core.tool_of[name]
        labels = self._plan.labels(name)
        if not exactly:
            return set_of(labels)
        is_done = draft.outcomes.get(call) == "done"
        fields = [one.name for one in tool.listed if is_done or one in tool.arguments]
        wanted = {name: draft.states.get(("get", ("call", call), name), NONE) for name in fields}
        wanted = {name: state for name, state in wanted.items() if state != UNKNOWN}
        return set_of(
            [
                label
                for label in labels
                if all(self._plan.states(label)[name] == state for name, state in wanted.items())
            ]
        )

    def _with(
        self, maker: Maker, draft: Draft, made: Sequence[int], steps: Sequence[Step]
    ) -> Draft:
        """The draft with the calls and the listed values of a path."""
        tools, states, outcomes = dict(draft.tools), dict(draft.states), dict(draft.outcomes)
        # Calls without effect, and the end.
        kept = [one for one in draft.order if one not in made and one not in draft.fillers]
        places = {call: at for at, call in enumerate(draft.order)}
        order: list[int] = []
        fillers: list[int] = []
        for label, named in steps:
            tool = self._plan.tool(label)
            number = made[named] if named >= 0 else max(tools) + 1
            if named < 0:
                fillers.append(number)
                tools[number], outcomes[number] = tool.name, "done"
                for one in (*tool.arguments, *tool.answers):
                    found = maker.candidates(one)
                    lacks = one.optional and one in tool.arguments
                    states["get", ("call", number), one.name] = (
                        found[0] if found and not lacks else NONE
                    )
            for name, state in self._plan.states(label).items():
                if states.get(("get", ("call", number), name)) != UNKNOWN:
                    states["get", ("call", number), name] = state
            while kept and named >= 0 and places[kept[0]] < places[number]:
                order.append(kept.pop(0))
            order.append(number)
        return replace(
            draft,
            tools=tools,
            order=(*order, *kept),
            states=states,
            outcomes=outcomes,
            fillers=frozenset(fillers),
        )


def _back(links: Sequence[Mapping[int, tuple[int, int]]], state: int) -> list[Step]:
    found: list[Step] = []
    for layer in reversed(links):
        state, label = layer[state]
        found.append(Step(label, -1))
    return found[::-1]


def _steps(links: _Links, place: tuple[int, int]) -> list[Step]:
    found: list[Step] = []
    link = links[place]
    while link is not None:
        place, step = link
        found.append(step)
        link = links[place]
    return found[::-1]

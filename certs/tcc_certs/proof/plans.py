"""Lemmas about the automaton of an artifact for the calls of an argument.

A gate lets a call through only if its automaton has a path for it, whatever the unknown outcomes
were.  So for every choice of these outcomes the calls that were made are the labels of a path from
the root.  A proof chooses these outcomes: calls that it names were made, and other calls only if
they are surely done.  Each lemma is one pass over the edges.  None needs a graph without cycles.

A *label* is a call of the artifact: a tool with the values of its listed fields.  Conditions about
open fields are never true of a label.  So a set of labels that paths avoid may be too small.  The
set of labels of a named call may be too large.
Cost: of a lemma linear in the edges, times the calls that it names.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton
from tcc_certs.policy.core import Core, Tool
from tcc_certs.policy.meaning import Truth, totals_of
from tcc_certs.policy.plans import Call
from tcc_certs.proof.ground import VIEW, Ground, ground, parts, rewritten
from tcc_certs.proof.reasons import added_by, counted_of, evaluated, truth_at
from tcc_certs.proof.rules import Wrong, operands
from tcc_certs.proof.scene import Scene
from tcc_certs.values.fields import Field
from tcc_certs.values.places import UNKNOWN, State, exact_number, listed_states

MAX_EDGES = 1 << 24  # looked at by all lemmas of a proof
MAX_BITS = 1 << 30  # calls of an artifact times its edges


_Place: TypeAlias = "tuple[int, int, bool]"  # state, named calls, whether a mark has to follow


class Avoided(NamedTuple):
    """Labels that a path has only if a label of `marks` follows.

    Attributes:
        first, last: where the path avoids them: after so many named calls, both included.
        is_answered: whether the answers of a call decide whether it is avoided.
    """

    labels: int
    first: int
    last: int
    marks: int = 0
    is_answered: bool = False


class Walk(NamedTuple):
    """A path that the calls of an argument need.

    Attributes:
        chain: for each named call the labels that it may have, the first call first.
        ends: whether a plan ends after them; else the last named call is only decided.
    """

    chain: tuple[int, ...]
    avoided: tuple[Avoided, ...]
    ends: bool


class Step(NamedTuple):
    """An edge of a path: its label, and the named call that it is; -1: it is none."""

    label: int
    named: int


class Plan:
    """The automaton of an artifact, with a bound on the edges that lemmas look at.

    Args:
        automaton: its states and edges.
        core_calls: for each call of the artifact its index in the core.
        omitted: the numbers of the statements that the automaton omits, although it could hold
            them.

    Raises:
        Rejected: D201 the artifact has too many calls and edges.
    """

    def __init__(
        self,
        core: Core,
        automaton: Automaton,
        core_calls: Sequence[int],
        omitted: Collection[int] = (),
    ) -> None:
        self.core = core
        self.omitted = omitted
        self.root = automaton.root
        bits = len(core_calls) * len(automaton.edge_call)
        if bits > MAX_BITS:
            raise Rejected(Code.LIMIT, "arguments", f"{MAX_BITS} calls times edges", bits)
        self.edges_left = MAX_EDGES
        self.automaton = automaton
        self.core_calls = core_calls
        self._rows: dict[int, list[tuple[int, int]]] = {}
        self._kept_groups: list[list[int]] | None = None
        self._kept_reach: dict[int, int] | None = None
        self._states: dict[int, Mapping[str, State]] = {}
        self._of_tool: dict[str, list[int]] = {tool.name: [] for tool in core.tools}
        for label, index in enumerate(core_calls):
            self._of_tool[core.tools[core.calls[index].tool].name].append(label)

    def labels(self, tool: str) -> Sequence[int]:
        """The labels of a tool."""
        return self._of_tool.get(tool, ())

    def call(self, label: int) -> Call:
        """The call of the core that a label is."""
        return self.core.calls[self.core_calls[label]]

    def tool(self, label: int) -> Tool:
        """The tool of a label."""
        return self.core.tools[self.call(label).tool]

    def states(self, label: int) -> Mapping[str, State]:
        """The listed fields of a label."""
        found = self._states.get(label)
        if found is None:
            values = self.call(label).values
            pairs = zip(self.tool(label).listed, values, strict=True)
            found = {declared.name: listed_states(declared)[at] for declared, at in pairs}
            self._states[label] = found
        return found

    def accepts(self, state: int) -> bool:
        """Return whether a plan may end in a state."""
        return bool(self.automaton.accept[state])

    def row(self, state: int) -> Sequence[tuple[int, int]]:
        """The targets of a state, each with the set of its labels.

        Raises:
            Rejected: D201 the lemmas of a proof look at too many edges.
        """
        found = self._rows.get(state)
        if found is None:
            labels: dict[int, int] = {}
            for label, target in self.automaton.edges(state):
                labels[target] = labels.get(target, 0) | 1 << label
            found = self._rows[state] = list(labels.items())
        self.edges_left -= len(found) + 1
        if self.edges_left < 0:
            raise Rejected(Code.LIMIT, "arguments", f"{MAX_EDGES} edges of plans", "more")
        return found

    def path(self, walk: Walk) -> list[Step] | None:
        """Return a path that has the calls of a walk; None: the automaton has no such path."""
        reach = self.reach()
        start = self.root, 0, False
        before: dict[_Place, tuple[_Place, Step] | None] = {start: None}
        queue = deque([start])
        last = len(walk.chain) - (not walk.ends)
        phases = [_Phase.of(walk, at) for at in range(len(walk.chain) + 1)]
        while queue:
            here = state, at, is_pending = queue.popleft()
            phase = phases[at]
            is_kept = not (is_pending and phase.closes)
            if walk.ends and at == last and is_kept and self.accepts(state):
                return _steps(before, here)
            for target, labels in self.row(state):
                named = labels & phase.named if is_kept else 0
                if named and not walk.ends and at == last:
                    return [*_steps(before, here), Step(_lowest(named), at)]
                passed = labels & ~phase.avoided
                for some, after, number in ((named, at + 1, at), (passed, at, -1)):
                    if not some:
                        continue
                    marks = some & phase.marks
                    chosen = marks or (number < 0 and some & ~phase.pending) or some
                    is_next = not marks and (
                        is_pending or (number < 0 and chosen & ~phase.pending == 0)
                    )
                    there = target, after, is_next
                    needs = walk.chain[after:]
                    if there in before or not all(reach[target] & one for one in needs):
                        continue
                    before[there] = here, Step(_lowest(chosen), number)
                    queue.append(there) if number < 0 else queue.appendleft(there)
        return None

    def reach(self) -> dict[int, int]:
        """The labels of all edges that are reached from each state."""
        if self._kept_reach is None:
            found: dict[int, int] = {}
            for group in reversed(self._groups()):
                labels = 0
                for state in group:
                    for target, some in self.row(state):
                        labels |= some | found.get(target, 0)
                found |= dict.fromkeys(group, labels)
            self._kept_reach = found
        return self._kept_reach

    def heaviest(self, weights: Sequence[tuple[Any, int]]) -> dict[int, Any]:
        """For each state the greatest weight of a path to it; absent: no weight is the greatest.

        Args:
            weights: each with the set of its labels; other labels have none.
        """
        groups = self._groups()
        group_of = {state: number for number, group in enumerate(groups) for state in group}
        found: dict[int, Any] = {self.root: 0}
        endless: set[int] = set()
        levels = [(weight, labels) for weight, labels in weights if weight > 0]
        levels.sort(reverse=True)
        for number, group in enumerate(groups):
            most = max([found.get(state, 0) for state in group])
            found |= dict.fromkeys(group, most)
            edges = [
                (target, next((weight for weight, some in levels if some & labels), 0))
                for state in group
                for target, labels in self.row(state)
            ]
            is_endless = not endless.isdisjoint(group) or any(
                weight and group_of[target] == number for target, weight in edges
            )
            endless.update(group if is_endless else ())
            for target, weight in edges:
                if group_of[target] != number:
                    found[target] = max(found.get(target, 0), most + weight)
                    endless.update([target] if is_endless else ())
        return {state: most for state, most in found.items() if state not in endless}

    def reached(self) -> list[int]:
        """The states that paths reach."""
        return [state for group in self._groups() for state in group]

    def _groups(self) -> list[list[int]]:
        """The strongly connected groups of states, each group before its successors."""
        if self._kept_groups is not None:
            return self._kept_groups
        found: list[list[int]] = []
        numbers, lows = {self.root: 0}, {self.root: 0}
        open_states = [self.root]
        stack = [(self.root, iter(self.row(self.root)))]
        done: set[int] = set()
        while stack:
            state, edges = stack[-1]
            for target, _ in edges:
                if target not in numbers:
                    numbers[target] = lows[target] = len(numbers)
                    open_states.append(target)
                    stack.append((target, iter(self.row(target))))
                    break
                if target not in done:
                    lows[state] = min(lows[state], numbers[target])
            else:
                stack.pop()
                if stack:
                    lows[stack[-1][0]] = min(lows[stack[-1][0]], lows[state])
                if lows[state] == numbers[state]:
                    group = [open_states.pop()]
                    while group[-1] != state:
                        group.append(open_states.pop())
                    done.update(group)
                    found.append(group)
        self._kept_groups = found[::-1]
        return self._kept_groups


class _Phase(NamedTuple):
    """The freedom of a path after a number of named calls.

    Attributes:
        named: the labels of the next named call.
        avoided: labels that the path must not have.
        pending: labels that need a label of `marks` before the view of their source.
        closes: whether the next named call, or the end, is that view.
    """

    named: int
    avoided: int
    pending: int
    marks: int
    closes: bool

    @staticmethod
    def of(walk: Walk, at: int) -> _Phase:
        """The phase of a walk after `at` named calls."""
        named = walk.chain[at] if at < len(walk.chain) else 0
        avoided = pending = marks = 0
        closes = False
        for one in walk.avoided:
            if one.first <= at <= one.last:
                if one.marks:
                    pending, marks = one.labels, one.marks
                    closes = one.last == at
                else:
                    avoided |= one.labels
        return _Phase(named, avoided, pending, marks, closes)


def _lowest(labels: int) -> int:
    return (labels & -labels).bit_length() - 1


def labels_in(labels: int) -> Iterator[int]:
    """The labels of a set, increasing."""
    while labels:
        lowest = labels & -labels
        yield lowest.bit_length() - 1
        labels ^= lowest


def set_of(labels: Iterable[int]) -> int:
    """The set of some labels."""
    found = 0
    for label in labels:
        found |= 1 << label
    return found


def _steps(before: Mapping[_Place, tuple[_Place, Step] | None], place: _Place) -> list[Step]:
    found: list[Step] = []
    link = before[place]
    while link is not None:
        place, step = link
        found.append(step)
        link = before[place]
    return found[::-1]


class Plans:
    """The automaton of an artifact, made at the first use."""

    def __init__(self, make: Callable[[], Plan] | None) -> None:
        self._make = make
        self._plan: Plan | None = None

    @property
    def is_used(self) -> bool:
        """Return whether a lemma used it."""
        return self._plan is not None

    def get(self) -> Plan:
        """The automaton.

        Raises:
            Wrong: the proof has no automaton.
        """
        if self._make is None:
            raise Wrong
        if self._plan is None:
            self._plan = self._make()
            self._plan.edges_left = MAX_EDGES
        return self._plan


# Walks of arguments.


def walk_of(
    plan: Plan, scene: Scene, chain: Sequence[int], named: Sequence[tuple[Ground, bool]]
) -> Walk:
    """The path that calls of an argument need.

    Args:
        chain: the calls in their order, call 0 last; each was made.
        named: literals with their truths.

    Raises:
        Wrong, ValueError: a literal says nothing of a path.
    """
    if not chain or chain[-1] != 0:
        raise Wrong
    values: dict[Ground, list[tuple[Ground, bool]]] = {}
    avoided: list[tuple[Ground, bool]] = []
    for literal, truth in named:
        term = _listed_term(plan, scene, literal)
        if term is None:
            avoided.append((literal, truth))
        elif term[1][1] in chain:
            values.setdefault(term, []).append((literal, truth))
    calls = {number: _labels_of(plan, scene, number, values) for number in chain}
    known = _Known(plan, scene, calls)
    ends = scene.actors[0].tool is None
    found = [_avoided(known, chain, *one) for one in avoided]
    # One choice for an answer that is not known is enough for one source.
    if sum([one.is_answered for one in found]) > 1 or sum([bool(one.marks) for one in found]) > 1:
        raise Wrong
    # A call of a mark whose outcome is unknown is on the path, and surely in no source.
    marks = 0
    for one in found:
        marks |= one.marks
    kept = tuple([one._replace(labels=one.labels & ~marks) for one in found])
    return Walk(tuple([calls[one] for one in chain[: len(chain) - ends]]), kept, ends)


def _listed_term(plan: Plan, scene: Scene, literal: Ground) -> Ground | None:
    """The listed field of a call that a literal compares with constants alone."""
    terms = operands(literal) or list(literal[1:2])
    if literal[0] not in _OF_VALUES:
        return None
    fields = [term for term in terms if term[0] != "const"]
    found = scene.field(fields[0]) if len(fields) == 1 else None
    if found is None or found[0].type is not None:
        raise Wrong
    return fields[0]


_OF_VALUES = frozenset(
    {"eq", "ne", "lt", "le", "match", "unmatch", "null", "nonnull", "same", "differ", "known"}
)


def _labels_of(
    plan: Plan, scene: Scene, call: int, values: Mapping[Ground, Sequence[tuple[Ground, bool]]]
) -> int:
    """The labels that a call may have.

    An unknown answer may have any of its values.  The kernel chooses a value that fits the
    literals.  If no value fits, it allows every value.
    """
    tool = scene.actors[call].tool
    if tool is None:
        return 0
    found = list(plan.labels(tool))
    for term, literals in values.items():
        if term[1] != ("call", call):
            continue
        declared = next(one for one in plan.core.tool_of[tool].listed if one.name == term[2])
        allowed = {state for state in listed_states(declared) if _fits(literals, term, state)}
        if allowed or scene.is_argument(term):
            found = [one for one in found if plan.states(one)[term[2]] in allowed]
    return set_of(found)


def _fits(literals: Sequence[tuple[Ground, bool]], term: Ground, state: State) -> bool:
    """Return whether a value gives the literals about a term their truths."""
    value = ("const", state)

    def leaf(part: Ground, _: int) -> Ground | None:
        return value if part == term else None

    return all(
        evaluated(rewritten(literal, leaf), ()) in (None, truth) for literal, truth in literals
    )


class _Known:
    """Conditions about labels, where arguments of named calls may have one value."""

    def __init__(self, plan: Plan, scene: Scene, calls: Mapping[int, int]) -> None:
        self.plan, self.scene = plan, scene
        self._arguments: dict[Ground, State] = {}
        for call, labels in calls.items():
            tool = plan.core.tool_of.get(scene.actors[call].tool or "")
            for declared in () if tool is None else tool.arguments:
                states = {
                    plan.states(one)[declared.name]
                    for one in labels_in(labels)
                    if not declared.type
                }
                if len(states) == 1:
                    self._arguments["get", ("call", call), declared.name] = states.pop()

    def truth(self, condition: Ground, tool: str, states: Mapping[str, State]) -> Truth:
        """Return the truth of a condition about a bound element, for a call with these fields."""
        fields = {("get", ("bound", 0), name): state for name, state in states.items()}
        return truth_at(condition, {**self._arguments, **fields}, tool)

    def _listed(self, tool: str) -> list[Field]:
        """The listed answers of a tool; none of one that the plans do not have."""
        known = self.plan.core.tool_of.get(tool)
        return [] if known is None else [one for one in known.answers if one.type is None]

    def answers(self, tool: str, conditions: Sequence[Ground]) -> list[list[Field]]:
        """The listed answers that each condition names."""
        listed = self._listed(tool)
        found = []
        for condition in conditions:
            names = {part[2] for part in parts(condition) if part[:2] == ("get", ("bound", 0))}
            found.append([one for one in listed if one.name in names])
        return found

    def surely(self, tools: Sequence[str], conditions: Sequence[Ground], any_: bool) -> int:
        """Labels of which conditions are true.

        Args:
            any_: return all such labels.  If False, leave out labels of which an unknown answer
                proves nothing: a condition that is true of each value of the answer is unsure.
        """
        found = 0
        for tool in tools:
            answers = self.answers(tool, conditions)
            for label in self.plan.labels(tool):
                states = self.plan.states(label)
                if all(self.truth(one, tool, states) is True for one in conditions) and (
                    any_ or all(
                        self._may_fail(one, tool, states, named)
                        for one, named in zip(conditions, answers, strict=True)
                    )
                ):  # fmt: skip
                    found |= 1 << label
        return found

    def _may_fail(
        self, condition: Ground, tool: str, states: Mapping[str, State], answers: Sequence[Field]
    ) -> bool:
        """Return whether a condition is true without an answer, or fails for a value of it."""
        if len(answers) != 1:
            return not answers
        name, values = answers[0].name, listed_states(answers[0])
        truths = [self.truth(condition, tool, {**states, name: one}) for one in (UNKNOWN, *values)]
        return truths[0] is True or not all(truths[1:])

    def maybe(self, tools: Sequence[str], conditions: Sequence[Ground]) -> int:
        """Labels that a call may have if conditions are not surely false of it."""
        found = 0
        for tool in tools:
            answers = self.answers(tool, conditions)
            listed = self._listed(tool)
            for label in self.plan.labels(tool):
                states = self.plan.states(label)
                unknown = {**states, **{one.name: UNKNOWN for one in listed}}
                if all(self.truth(one, tool, unknown) is not False for one in conditions) and all(
                    self._may_have(conditions, answers, tool, unknown, one, states[one.name])
                    for one in listed
                ):
                    found |= 1 << label
        return found

    def _may_have(
        self,
        conditions: Sequence[Ground],
        answers: Sequence[Sequence[Field]],
        tool: str,
        states: Mapping[str, State],
        declared: Field,
        state: State,
    ) -> bool:
        """Return whether conditions about an answer may be true of a value, or of no value."""
        about = [one for one, named in zip(conditions, answers, strict=True) if named == [declared]]

        def may(value: State) -> bool:
            known = {**states, declared.name: value}
            return all(self.truth(one, tool, known) is not False for one in about)

        return not about or may(state) or not any(map(may, listed_states(declared)))


def _avoided(known: _Known, chain: Sequence[int], literal: Ground, truth: bool) -> Avoided:
    """Return the labels that a path avoids because of a literal.

    Raises:
        Wrong, ValueError: it says nothing of a path.
    """
    scene = known.scene
    match literal:
        case ("some", source, _) if not truth:
            return _of_source(known, chain, source, None, False)
        case ("none", source, _) if truth:
            return _of_source(known, chain, source, None, True)
        case ("latest", source, _, (_, call)) if truth:
            return _of_source(known, chain, source, call, False)
        case ("clear", mark, (_, call), _, sure) if truth:
            return _of_source(known, chain, mark, call, not sure)
        case ("paid", statement, (_, call), (_, view)) if not truth:
            rule = scene.rules[statement]
            levels = {0: ("call", call), 1: ("bound", 0), VIEW: ("call", call)}
            conditions = [ground(one, levels) for one in rule.paying]
            tools = sorted(rule.pays)
            labels = known.surely(tools, conditions, False)
            is_answered = any(any(known.answers(tool, conditions)) for tool in tools)
            first, last = chain.index(call) + 1, chain.index(view)
            return Avoided(labels, first, last, is_answered=is_answered)
    raise Wrong


def _of_source(
    known: _Known, chain: Sequence[int], source: Ground, after: int | None, empty: bool
) -> Avoided:
    """The labels that are surely in a source, if no call of the path is.

    Args:
        after: the named call after which the path avoids them; None: from the start.
        empty: whether no call may be in the source, either.

    Raises:
        Wrong, ValueError: the source is not about calls of the path.
    """
    _, (_, view), base, conditions, within, marks = source
    if base[0] != "calls" or within is not None or len(marks) > 1:
        raise Wrong
    labels = known.surely(base[1], conditions, empty)
    found = 0
    for _, _, mark_base, mark_conditions, _, inner in marks:  # it has more calls without a window
        if mark_base[0] != "calls" or inner:
            raise Wrong
        found = known.maybe(mark_base[1], mark_conditions)
    first = 0 if after is None else chain.index(after) + 1
    is_answered = not empty and any(any(known.answers(one, conditions)) for one in base[1])
    return Avoided(labels, first, chain.index(view), found, is_answered)


# Numbers.


def most_counted(
    plan: Plan, scene: Scene, variable: Ground, named: Sequence[tuple[Ground, bool]] = ()
) -> Any | None:
    """Return an upper bound of a count or a sum on all paths; None: no bound is known.

    Each call adds the greatest amount.  Keys, windows and marks are ignored.  The bound is 0 if no
    path has such a call.

    Args:
        named: literals about listed fields of the call before which it is, with their truths.

    Raises:
        Wrong: a literal says nothing of this call.
    """
    counted = counted_of(scene, variable)
    if counted is None or counted.across:
        return None
    most = added_by(scene, counted.tools, counted.field)
    if most is None:
        return None
    labels = _Known(plan, scene, {}).maybe(sorted(counted.tools), tuple(counted.where))
    found = plan.heaviest([(most[1], labels)])
    view = counted.view[1]
    values: dict[Ground, list[tuple[Ground, bool]]] = {}
    for literal, truth in named:
        term = _listed_term(plan, scene, literal)
        if term is None or term[1] != counted.view:
            raise Wrong
        values.setdefault(term, []).append((literal, truth))
    states = plan.reached()
    if scene.actors[view].tool is None:
        states = [state for state in states if plan.accepts(state)]
    else:
        its = _labels_of(plan, scene, view, values)
        states = [state for state in states if any(labels & its for _, labels in plan.row(state))]
    if any(state not in found for state in states):
        return None
    return max([found[state] for state in states], default=0)


def is_total_of_plans(plan: Plan, what: str, most: str) -> bool:
    """Return whether every path of the automaton has at most this total."""
    weights: dict[Any, int] = {}
    for tool in plan.core.tools:
        for label in plan.labels(tool.name):
            weight = totals_of(plan.call(label))[what]
            weights[weight] = weights.get(weight, 0) | 1 << label
    found = plan.heaviest(list(weights.items()))
    bound = exact_number(most)
    return all(state in found and found[state] <= bound for state in plan.reached())

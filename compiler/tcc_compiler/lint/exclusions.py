"""Lint rules on whole tools: TCC745 no statement names them, TCC746 they can never be called.

TCC746: a tool can be called if each clause on it can be true in some session of callable tools. A
condition that is not analysed counts as true, so every finding is correct.
Specification: docs/lint.md. Cost: linear in the statements and the tools of their sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tcc_certs.policy import forms, nodes as n
from tcc_certs.policy.core import Core, Learned
from tcc_certs.policy.forms import Condition, Source
from tcc_certs.values.declared import NumberType
from tcc_certs.values.places import exact_number
from tcc_compiler.language.diagnostics import Diagnostic, Note
from tcc_compiler.lint.declared import Declared, name_of
from tcc_compiler.lint.expectations import named_calls
from tcc_compiler.lint.finding import LintFinding, listed
from tcc_compiler.lint.policies import MOST_TOOLS, Policy, Stated

_MOST_PAIRS = 1_000_000  # the most pairs of a statement and a tool that it restricts


# Tools that no statement names.


def unnamed(policy: Policy, declared: Declared) -> Iterator[LintFinding]:
    """Yield TCC745 for the tools of the grammar itself that its policy does not mention."""
    restricting = [one for one in policy.stated if one.rule.tools is not None]
    if not restricting:
        return
    core = policy.core
    everything = 0, len(core.calls)  # the range of `any`, also used if there is no `plan`
    named = {
        core.tools[core.calls[call].tool].name
        for low, high in named_calls(core)
        if (low, high) != everything
        for call in range(low, high)
    }
    named |= {tool for one in core.given if isinstance(one, Learned) for tool, _ in one.sources}
    for stated in policy.stated:
        rule = stated.rule
        named |= set(rule.tools or ())
        named |= {tool for use in stated.uses for tool in use.tools}
        named |= {tool for tool in rule.pays if len(rule.pays) <= MOST_TOOLS}
    missing = [
        tool for name, tool in declared.tools.items() if name not in named and not tool.source
    ]
    if missing:
        names = [name_of(tool.name) for tool in missing]
        first = n.text_of(n.Word(names[0]))
        them = "it" if len(names) == 1 else "them"
        yield LintFinding(
            diagnostic=Diagnostic(
                code="TCC745", severity="note", span=declared.span(missing[0].name),
                message=f"no statement names {listed(names)}, so none restricts {them}",
                hint=f"if that is not meant, write: before {first} require ..",
            )
        )  # fmt: skip


# Tools that can never be called.


@dataclass(slots=True)
class _Clause:
    """A clause that has to be true before each call of its tools.

    Attributes:
        open: True until it is known that the clause can be true.
        needs: tools whose calls can make the clause true.
    """

    stated: Stated
    tools: Sequence[str]
    then: Condition
    open: bool = True
    needs: set[str] = field(default_factory=set)


def excluded(policy: Policy) -> tuple[list[LintFinding], set[str]]:
    """Return TCC746 for each group of statements, and the tools that can never be called."""
    clauses, forbidden = _clauses(policy)
    callable_ = _callable(policy.core, clauses, set(forbidden))
    dead = {tool.name for tool in policy.core.tools} - callable_ - set(forbidden)
    against = list(_contradictions(policy, clauses))
    dead |= {tool for tool, _ in against}
    if not dead:
        return [], set()
    groups = _groups(clauses, forbidden, dead, against)
    return [_group_finding(policy, tools, stated) for tools, stated in groups], dead


def _clauses(policy: Policy) -> tuple[list[_Clause], dict[str, Stated]]:
    """Return the clauses without a filter, and the tools whose calls are all forbidden."""
    clauses: list[_Clause] = []
    forbidden: dict[str, Stated] = {}
    left = _MOST_PAIRS
    for stated in policy.stated:
        rule = stated.rule
        if rule.tools is None or rule.where or left < len(rule.tools):
            continue
        left -= len(rule.tools)
        if rule.kind == "forbid":
            forbidden |= dict.fromkeys(rule.tools, stated)
        elif rule.then is not None:
            clauses.append(_Clause(stated, sorted(rule.tools), rule.then))
    return clauses, forbidden


def _callable(core: Core, clauses: Sequence[_Clause], forbidden: set[str]) -> set[str]:
    """Return the tools that may be called; set `open` and `needs` of the clauses."""
    waiting = {tool.name: 0 for tool in core.tools}
    by_need: dict[str, list[_Clause]] = {}
    found: set[str] = set()
    for clause in clauses:
        clause.open = not _can_be(clause.then, found, clause.needs)
        if clause.open:
            for tool in clause.tools:
                waiting[tool] += 1
            for tool in clause.needs:
                by_need.setdefault(tool, []).append(clause)
    todo = [tool for tool, count in waiting.items() if not count and tool not in forbidden]
    while todo:
        tool = todo.pop()
        found.add(tool)
        for clause in by_need.get(tool, ()):
            if clause.open and _can_be(clause.then, found, set()):
                clause.open = False
                for other in clause.tools:
                    waiting[other] -= 1
                    if not waiting[other] and other not in forbidden:
                        todo.append(other)
    return found


def _can_be(condition: Condition, found: set[str], needs: set[str]) -> bool:
    """Return whether a condition can be true after calls of the tools in `found`.

    The tools that the condition asks for are added to `needs`. A condition that asks for a call of
    a large set counts as true, because most such sets have a callable tool.
    """
    match condition:
        case forms.All(parts):
            each = [_can_be(part, found, needs) for part in parts]  # all of them fill `needs`
            return all(each)
        case forms.AnyOf(parts):
            each = [_can_be(part, found, needs) for part in parts]
            return any(each)
        case forms.Some(of):
            return _has_call(of, found, needs)
        case forms.Compare("=" | "<" | "<=" | ">" | ">=", left, (right,)):
            if isinstance(left, forms.Count) and isinstance(right, forms.Constant):
                least = right.state[1] if right.state[0] == "n" else 0
                asks = least >= 1 if condition.operator in (">=", "=") else least >= 0
                asks = asks and condition.operator in (">=", ">", "=")
                return not asks or _has_call(left.of, found, needs)
            first, second = [_has_last(term, found, needs) for term in (left, right)]
            return first and second
        case forms.Matches(of, _) | forms.Between(of, _, _) | forms.Under(of, _):
            return _has_last(of, found, needs)
    return True


def _has_call(source: Source, found: set[str], needs: set[str]) -> bool:
    base = source.base
    if isinstance(base, forms.Rows):
        return _has_call(base.of, found, needs)
    if not isinstance(base, forms.Calls) or len(base.tools) > MOST_TOOLS:
        return True
    needs |= base.tools
    return not found.isdisjoint(base.tools)


def _has_last(term: object, found: set[str], needs: set[str]) -> bool:
    while isinstance(term, forms.Get | forms.CallOf):
        term = term.of
    return not isinstance(term, forms.Last) or _has_call(term.of, found, needs)


def _contradictions(
    policy: Policy, clauses: Sequence[_Clause]
) -> Iterator[tuple[str, Sequence[Stated]]]:
    """Yield tools with contradictory clauses: `a` and `no a`, or ranges without a common value."""
    wanted: dict[str, list[tuple[frozenset[str], Stated]]] = {}
    refused: dict[str, dict[str, Stated]] = {}
    ranges: dict[tuple[str, str], _Range] = {}
    for clause in clauses:
        if len(clause.tools) > MOST_TOOLS:
            continue
        for part in _conjuncts(clause.then):
            calls = _plain_calls(part)
            absent = _plain_calls(part.of) if isinstance(part, forms.Not) else None
            for tool in clause.tools:
                if calls:
                    wanted.setdefault(tool, []).append((calls, clause.stated))
                if absent:
                    known = refused.setdefault(tool, {})
                    for other in absent:
                        known.setdefault(other, clause.stated)
                name = _compared(part)
                if name is not None:
                    key = tool, name
                    if key not in ranges:
                        ranges[key] = _Range.of(policy, tool, name)
                    ranges[key].narrow(part, clause.stated)
    for tool, pairs in wanted.items():
        for calls, stated in pairs:
            known = refused.get(tool, {})
            if all(other in known for other in calls):
                yield tool, [stated, *{id(known[one]): known[one] for one in calls}.values()]
                break
    for (tool, _), values in ranges.items():
        if values.is_empty:
            yield tool, values.stated


def _conjuncts(condition: Condition) -> Iterator[Condition]:
    todo = [condition]
    while todo:
        one = todo.pop()
        if isinstance(one, forms.All):
            todo += reversed(one.parts)
        else:
            yield one


def _plain_calls(condition: Condition) -> frozenset[str] | None:
    """Return the tools of a condition that asks for an earlier call with any fields; else None."""
    if not isinstance(condition, forms.Some):
        return None
    of, base = condition.of, condition.of.base
    plain = isinstance(base, forms.Calls) and not (of.conditions or of.marks or of.within)
    if not plain or not isinstance(base, forms.Calls) or len(base.tools) > MOST_TOOLS:
        return None
    return frozenset(base.tools)


def _compared(part: Condition) -> str | None:
    """Return the field of the decided call that is compared with constants; else None."""
    of = part.of if isinstance(part, forms.Between) else None
    if isinstance(part, forms.Compare):
        of = part.left if all(isinstance(one, forms.Constant) for one in part.options) else None
    own = isinstance(of, forms.Get) and of.of == forms.Element(0)
    return of.name if own and isinstance(of, forms.Get) else None


@dataclass(slots=True)
class _Range:
    """The values of a field that all clauses so far allow.

    Attributes:
        low, high: the bounds, each with whether the bound itself is allowed; None if there is none.
        values: the allowed constants; None if all are allowed.
        stated: the statements of these clauses.
    """

    low: tuple[Fraction, bool] | None = None
    high: tuple[Fraction, bool] | None = None
    values: set[object] | None = None
    stated: list[Stated] = field(default_factory=list)

    @staticmethod
    def of(policy: Policy, tool: str, name: str) -> _Range:
        """Return the declared range of a field."""
        declared = policy.field(tool, name)
        kind = None if declared is None else declared.type
        found = _Range()
        if isinstance(kind, NumberType) and kind.low is not None and kind.high is not None:
            found.low = Fraction(exact_number(kind.low)), True
            found.high = Fraction(exact_number(kind.high)), True
        return found

    def narrow(self, part: Condition, stated: Stated) -> None:
        """Remove the values that a clause does not allow."""
        if self.is_empty:
            return
        if stated not in self.stated[-1:]:
            self.stated.append(stated)
        if isinstance(part, forms.Between):
            self._above(part.low, True)
            self._below(part.high, True)
        elif isinstance(part, forms.Compare):
            states: list[object] = [
                one.state for one in part.options if isinstance(one, forms.Constant)
            ]
            if part.operator == "=":
                self.values = set(states) & (set(states) if self.values is None else self.values)
            elif part.operator in (">", ">="):
                self._above(part.options[0], part.operator == ">=")
            else:
                self._below(part.options[0], part.operator == "<=")

    def _above(self, term: object, closed: bool) -> None:
        value = _number(term)
        if value is not None and (self.low is None or (value, not closed) > self._key(self.low)):
            self.low = value, closed

    def _below(self, term: object, closed: bool) -> None:
        value = _number(term)
        if value is not None and (self.high is None or (value, closed) < self.high):
            self.high = value, closed

    @staticmethod
    def _key(end: tuple[Fraction, bool]) -> tuple[Fraction, bool]:
        return end[0], not end[1]

    @property
    def is_empty(self) -> bool:
        """True if no value is left."""
        if self.values is not None:
            return not any(self._has(value) for value in self.values)
        if self.low is None or self.high is None:
            return False
        if self.low[0] == self.high[0]:
            return not (self.low[1] and self.high[1])
        return self.low[0] > self.high[0]

    def _has(self, value: object) -> bool:
        number = value[1] if isinstance(value, tuple) and value[0] == "n" else None
        if not isinstance(number, int | Fraction):
            return True
        low = self.low is None or self.low[0] < number or self.low == (number, True)
        return low and (self.high is None or number < self.high[0] or self.high == (number, True))


def _number(term: object) -> Fraction | None:
    is_number = isinstance(term, forms.Constant) and term.state[0] == "n"
    return Fraction(term.state[1]) if is_number and isinstance(term, forms.Constant) else None


def _groups(
    clauses: Sequence[_Clause],
    forbidden: dict[str, Stated],
    dead: set[str],
    against: Sequence[tuple[str, Sequence[Stated]]],
) -> list[tuple[list[str], list[Stated]]]:
    """Return the dead tools with the statements that exclude them, in connected groups."""
    parent: dict[str, str] = {tool: tool for tool in dead}

    def root(tool: str) -> str:
        while parent[tool] != tool:
            parent[tool] = parent[parent[tool]]
            tool = parent[tool]
        return tool

    links: list[tuple[str, Stated]] = [(tool, one) for tool, some in against for one in some]
    for clause in clauses:
        mine = [tool for tool in clause.tools if tool in dead]
        if not clause.open or not mine:
            continue
        links.append((mine[0], clause.stated))
        links += [(mine[0], forbidden[need]) for need in clause.needs if need in forbidden]
        for tool in (*mine[1:], *[need for need in clause.needs if need in dead]):
            parent[root(tool)] = root(mine[0])
    tools: dict[str, list[str]] = {}
    for tool in sorted(dead):
        tools.setdefault(root(tool), []).append(tool)
    stated: dict[str, dict[int, Stated]] = {}
    for tool, one in links:
        stated.setdefault(root(tool), {})[id(one)] = one
    return [(some, list(stated.get(key, {}).values())) for key, some in tools.items()]


def _group_finding(policy: Policy, tools: list[str], stated: list[Stated]) -> LintFinding:
    order = {id(one): at for at, one in enumerate(policy.stated)}
    first, *rest = sorted(stated, key=lambda one: order[id(one)])
    texts = "; ".join([_text(one) for one in (first, *rest)[:4]])
    together = "exclude each other" if rest else "excludes every call"
    what = "these statements" if rest else "this statement"
    message = f"{listed(tools)} can never be called: {what} {together}"
    hint = f"relax or remove one of: {texts}" if rest else f"relax it: {texts}"
    notes = tuple([Note(message="with this one", span=one.span) for one in rest[:8] if one.span])
    return LintFinding(
        diagnostic=Diagnostic(
            code="TCC746", severity="warning", message=message, span=first.span, hint=hint,
            notes=notes,
        )
    )  # fmt: skip


def _text(stated: Stated) -> str:
    text = n.statement_text(stated.statement)
    return text if len(text) <= 120 else f"{text[:110]} .."

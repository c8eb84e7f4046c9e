"""The gate's answers from lists of plans: every sequence of calls that may have been made is kept.

It knows nothing of automata and states: a *world* is a word, the calls that were made if the
unknown outcomes were these; None is one in which an answer came that no plan has.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from tcc_certs.core.model import Call, Core
from tests.oracle.network import without
from tests.oracle.plans import meets_all, plans

Word = tuple[int, ...]
Group = tuple[int, tuple[int, ...]]  # a tool, and the indices of its listed values


def split(core: Core, call: Call) -> tuple[Group, tuple[int, ...]]:
    listed = sum(not p.observed for p in core.tools[call.tool].parameters)
    return (call.tool, call.values[:listed]), call.values[listed:]


@dataclass
class Language:
    """The plans of a core, and those of the automaton where it leaves statements to the run."""

    core: Core
    most: int
    relaxed: Any = None
    ends: frozenset[Word] = field(init=False)
    groups: dict[Group, dict[tuple[int, ...], int]] = field(init=False)

    def __post_init__(self) -> None:
        self.ends = frozenset(plans(self.core, self.most))
        wider = self.ends
        if self.relaxed is not None:
            wider = frozenset(plans(without(self.core, self.relaxed), self.most))
        self._prefixes = {word[:at] for word in wider for at in range(len(word) + 1)}
        # What is broken stays broken of these; the others are looked at where a plan ends.
        self._safe = replace(
            self.core,
            limits=tuple(limit for limit in self.core.limits if not limit.least),
            requires=tuple(one for one in self.core.requires if one.order != "after"),
            goals=(),
            start=None,
        )
        self.groups = {}
        for index, call in enumerate(self.core.calls):
            group, observed = split(self.core, call)
            self.groups.setdefault(group, {})[observed] = index

    def goes_on(self, word: Word) -> bool:
        if word not in self._prefixes:
            return False
        return self.relaxed is None or meets_all(self._safe, word)

    def combinations(self, group: Group) -> list[tuple[int, ...]]:
        parameters = [p for p in self.core.tools[group[0]].parameters if p.observed]
        return list(product(*[range(len(p.values)) for p in parameters]))

    def after(self, word: Word | None, group: Group, observed: tuple[int, ...]) -> Word | None:
        call = self.groups.get(group, {}).get(observed)
        if word is None or call is None or not self.goes_on((*word, call)):
            return None
        return (*word, call)


@dataclass
class Worlds:
    """What was told of a session so far."""

    language: Language
    told: list[list[Any]] = field(default_factory=list)

    def now(self) -> set[Word | None]:
        language = self.language
        found: set[Word | None] = {()}
        for group, outcome, observed in self.told:
            combinations = language.combinations(group)
            if outcome == "unknown":
                found |= {language.after(w, group, c) for w in found for c in combinations}
            elif outcome == "done":
                found = {language.after(w, group, observed) for w in found}
        return found

    def allows(self, group: Group) -> bool:
        combinations = self.language.combinations(group)
        return all(
            any(self.language.after(word, group, c) is not None for c in combinations)
            for word in self.now()
        )

    def may_finish(self) -> bool:
        return self.now() <= self.language.ends


def arguments(core: Core, group: Group, tables: Any) -> dict[str, Any]:
    """The arguments of a call as JSON values, from the gate's own table of the tool."""
    table = tables(group[0])
    pairs = zip(table.listed, group[1], strict=True)
    return {param.name: param.shown[at] for param, at in pairs if param.values[at]}


_EXPRESSIONS: Sequence[str] = ("({0} | {1})", "{0} {1}", "{0}?", "({0}){{0,2}}", "({0} & {1})")


def drawn_grammar(rng: random.Random, statements: bool = True) -> str:
    """A grammar with listed, optional and observed parameters, and plans of at most four calls."""
    lines = [
        'grammar g version "1"',
        "tool a",
        "tool b(x: 1 | 2)",
        "tool c(y?: p)",
        "tool d gives (r: yes | no)",
        'tool e(x: "1") gives (s: 0 | 1)',
    ]
    patterns = [
        "a", "b", "b(x=1)", "c", "c(y=p)", "d", "d(r=yes)", "e", "e(s=0)", "any",
    ]  # fmt: skip
    lines.append(f"plan = {_expression(rng, patterns[:-1], 4)} & any{{0,4}}")
    if rng.random() < 0.3:
        lines[-1] = "plan = any{0,4}"
    elif rng.random() < 0.5:
        lines[-1] = f"plan = ({' | '.join(rng.sample(patterns[:-1], 4))}){{0,4}}"
    for _ in range(rng.randint(0, 3) if statements else 0):
        one, two = rng.sample(patterns[:-1], 2)
        n = rng.randint(0, 3)
        lines.append(
            rng.choice(
                [
                    f"limit depth <= {n + 1}",
                    f"limit count({one}) <= {n}",
                    f"finally require {one}",
                    f"before {two} require {one}",
                    f"before {two} require unused {one}",
                    f"after {two} owe {one}",
                    f"forbid {one} {two}",
                    f"before {two} require no {one}\nbefore {one} require no {two}",
                    f"before {two} require no {one}",
                    f"limit sum(b.x) <= {n}",
                ]
            )
        )
    return "\n".join(lines)


def _expression(rng: random.Random, patterns: Sequence[str], deep: int) -> str:
    if deep == 0 or rng.random() < 0.15:
        return rng.choice(patterns)
    form = rng.choice(_EXPRESSIONS)
    parts = [_expression(rng, patterns, deep - 1) for _ in range(2)]
    return f"({form.format(*parts)})"

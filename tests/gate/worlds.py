"""The gate's answers from lists of plans, and from the definition of statements.

The oracle knows nothing of automata and states.  A *world* is a word: the calls that were made if
the unknown outcomes were these.  None is a world in which an answer came that no plan has.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from tcc_certs.policy.core import Core
from tcc_certs.policy.course import Course
from tcc_certs.policy.meaning import policy_of
from tcc_certs.values.declared import json_of
from tests.oracle.network import without
from tests.oracle.plans import plans

Word = tuple[int, ...]
Group = tuple[int, tuple[int, ...]]  # a tool, and the indices of its listed arguments


@dataclass
class Language:
    """The plans of a core, without the statements that its artifact relaxed."""

    core: Core
    most: int
    relaxed: Sequence[int] = ()
    ends: frozenset[Word] = field(init=False)
    groups: dict[Group, dict[tuple[int, ...], int]] = field(init=False)

    def __post_init__(self) -> None:
        self.ends = frozenset(plans(without(self.core, self.relaxed), self.most))
        self._prefixes = {word[:at] for word in self.ends for at in range(len(word) + 1)}
        self.groups = {}
        for index, call in enumerate(self.core.calls):
            listed = len([one for one in self.core.tools[call.tool].arguments if one.type is None])
            group = call.tool, call.values[:listed]
            self.groups.setdefault(group, {})[call.values[listed:]] = index

    def combinations(self, group: Group) -> list[tuple[int, ...]]:
        answers = self.core.tools[group[0]].answers
        return list(product(*[range(len(one.values) + one.optional) for one in answers]))

    def after(self, word: Word | None, group: Group, observed: tuple[int, ...]) -> Word | None:
        call = self.groups.get(group, {}).get(observed)
        if word is None or call is None or (*word, call) not in self._prefixes:
            return None
        return (*word, call)

    def name(self, group: Group) -> str:
        return self.core.tools[group[0]].name

    def arguments(self, group: Group) -> dict[str, Any]:
        """The arguments of a call as JSON values."""
        return _values(self.core.tools[group[0]].arguments, group[1])

    def answer(self, group: Group, observed: tuple[int, ...]) -> dict[str, Any]:
        """An answer as JSON values."""
        return _values(self.core.tools[group[0]].answers, observed)


def _values(fields: Any, chosen: Sequence[int]) -> dict[str, Any]:
    pairs = [(one, at - one.optional) for one, at in zip(fields, chosen, strict=True)]
    return {one.name: json_of(one.values[at]) for one, at in pairs if at >= 0}


@dataclass
class Worlds:
    """What was told of a session so far."""

    language: Language
    told: list[list[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.course = Course(policy_of(self.language.core))
        self._calls: list[Any] = []

    def made(self, group: Group) -> None:
        """A call is made; its outcome is told to :meth:`tell`."""
        language = self.language
        self._calls.append(self.course.call(language.name(group), language.arguments(group)))
        self.told.append([group, "unknown", ()])

    def tell(self, at: int, outcome: str, observed: tuple[int, ...] = ()) -> None:
        """The outcome of a call, for the first time or late."""
        group = self.told[at][0]
        self.told[at] = [group, outcome, observed]
        self.course.record(
            self._calls[at], outcome, self.language.answer(group, observed) if observed else {}
        )

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

    def refused_by(self, group: Group) -> int | None:
        """The first statement that refuses a call."""
        language = self.language
        found = self.course.check(language.name(group), language.arguments(group))
        return found[0].statement if found else None

    def allows(self, group: Group) -> bool:
        combinations = self.language.combinations(group)
        return self.refused_by(group) is None and all(
            any(self.language.after(word, group, c) is not None for c in combinations)
            for word in self.now()
        )

    def may_finish(self) -> bool:
        return self.now() <= self.language.ends and not self.course.unmet()


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
                    f"before {two} require no {one} since any",
                    f"before {two} require no {one}\nbefore {one} require no {two}",
                    f"before {two} require no {one}",
                    f"before {two} require count({one}) < {n} or last({one} | {two}) = {one}",
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

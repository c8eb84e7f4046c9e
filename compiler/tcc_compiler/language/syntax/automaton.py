"""The LALR automaton of grammar.lark: tokens in one by one, the tree of a statement out.

Its tables stand in tables.json.  :mod:`tcc_compiler.language.syntax.tables` makes them, by Lark,
when grammar.lark is changed: who reads a grammar needs no Lark.  A test shows that they are what
Lark makes.  Source: Aho, Lam, Sethi and Ullman, Compilers, section 4.7.
Cost: linear in the tokens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from tcc_compiler.frozen import frozen
from tcc_compiler.language.syntax.build import Builder
from tcc_compiler.language.syntax.lexemes import Lexeme

TABLES = Path(__file__).with_name("tables.json")


class Unexpected(Exception):
    """A token cannot stand where it stands."""


@frozen(kw_only=False)
class _Rule:
    """What a reduction does.

    Attributes:
        origin: the symbol that it makes.
        size: how many symbols it takes.
        kept: of what is kept of these, the place, whether it is a list that is joined to the
            others, and how many parts that were left out stand before it.
        left_out: how many stand behind.
        single: whether a single part is passed on as it is.
        act: makes the node; None makes a list.
    """

    origin: str
    size: int
    kept: tuple[tuple[int, bool, int], ...]
    left_out: int
    single: bool
    act: Callable[..., Any] | None

    def apply(self, parts: Sequence[Any]) -> Any:
        """The node of these parts."""
        children: list[Any] = []
        for place, joined, before in self.kept:
            if before:
                children += [None] * before
            if joined and not children:
                # Nobody else has this list: a copy at each reduction would take the square.
                children = parts[place]
            elif joined:
                children += parts[place]
            else:
                children.append(parts[place])
        children += [None] * self.left_out
        if self.single and len(children) == 1:
            return children[0]
        return children if self.act is None else self.act(*children)


@frozen(kw_only=False)
class _Tables:
    """The automaton.

    Attributes:
        actions: for each state and kind of token the state to go to; or, below 0, ~rule.
        gotos: for each state and symbol the state behind it.
        start, end: the first state, and the one in which a statement is whole.
    """

    rules: Sequence[_Rule]
    actions: Sequence[Mapping[str, int]]
    gotos: Sequence[Mapping[str, int]]
    start: int
    end: int


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    made = json.loads(TABLES.read_text("utf-8"))
    builder = Builder()
    rules = [
        _Rule(
            origin,
            size,
            tuple((place, joined, before) for place, joined, before in kept),
            left_out,
            single,
            getattr(builder, name, None),
        )
        for origin, name, size, kept, left_out, single in made["rules"]
    ]
    return _Tables(rules, made["actions"], made["gotos"], made["start"], made["end"])


class Parser:
    """One statement, as far as it was read."""

    __slots__ = ("_states", "_tables", "_values")

    def __init__(self) -> None:
        """Begin a statement."""
        self._tables = _tables()
        self._states = [self._tables.start]
        self._values: list[Any] = []

    def feed(self, token: Lexeme) -> None:
        """Go on behind the next token.

        Raises:
            Unexpected: it cannot stand here.
        """
        tables, states, values = self._tables, self._states, self._values
        while True:
            action = tables.actions[states[-1]].get(token.type)
            if action is None:
                raise Unexpected
            if action >= 0:
                states.append(action)
                values.append(token)
                return
            self._reduce(tables.rules[~action])

    def end(self) -> Any:
        """The tree of the statement that ends here.

        Raises:
            Unexpected: it is not whole.
        """
        tables, states = self._tables, self._states
        while states[-1] != tables.end:
            action = tables.actions[states[-1]].get("$END")
            if action is None or action >= 0:
                raise Unexpected
            self._reduce(tables.rules[~action])
        return self._values[-1]

    def _reduce(self, rule: _Rule) -> None:
        states, values = self._states, self._values
        start = len(values) - rule.size
        parts = values[start:]
        del values[start:]
        del states[start + 1 :]
        values.append(rule.apply(parts))
        states.append(self._tables.gotos[states[-1]][rule.origin])

    def expected(self) -> frozenset[str]:
        """The kinds of token that can come next, ``$END`` where the statement may end."""
        kinds = self._tables.actions[self._states[-1]]
        return frozenset(kind for kind in kinds if self._accepts(kind))

    def _accepts(self, kind: str) -> bool:
        """Whether a kind of token can come next; of the stack only what changes is copied."""
        tables = self._tables
        below, above = len(self._states), list[int]()
        while True:
            state = above[-1] if above else self._states[below - 1]
            if kind == "$END" and state == tables.end:
                return True
            action = tables.actions[state].get(kind)
            if action is None or action >= 0:
                return action is not None
            rule = tables.rules[~action]
            taken = min(rule.size, len(above))
            del above[len(above) - taken :]
            below -= rule.size - taken
            state = above[-1] if above else self._states[below - 1]
            above.append(tables.gotos[state][rule.origin])

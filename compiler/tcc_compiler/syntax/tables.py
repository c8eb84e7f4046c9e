"""The LALR tables of grammar.lark.

``python -m tcc_compiler.syntax.tables`` builds them with Lark and writes tables.json. Reading a
grammar loads that file and never imports Lark, which halves the start-up time.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

GRAMMAR = Path(__file__).with_name("grammar.lark")
SERIALISED = Path(__file__).with_name("tables.json")
END = "$END"

# The result of a reduction: its parts join the outer tree, or its only part, or a tree.
SPLICED, SINGLE, TREE = range(3)


class Rule(NamedTuple):
    """A production of the grammar.

    Attributes:
        origin: the nonterminal on its left side.
        size: the number of symbols on its right side.
        make: `SPLICED`, `SINGLE` (its only part; with more parts a tree) or `TREE`.
        kind: the kind of the tree.
    """

    origin: str
    size: int
    make: int
    kind: str


class Tables(NamedTuple):
    """The tables of the parser.

    Attributes:
        actions: for each state, the action for each terminal. An action n >= 0 shifts to state n; a
            negative action reduces by rule -1 - n. A terminal with only one text, such as a
            keyword, has that text as its name. The others are NAME, QNAME, NUMBER, STRING, _ARGS
            and _FIELDS.
        gotos: for each state, the next state for each nonterminal.
        rules: the productions.
        words: the terminals that are words.
        start, end: the first state, and the state after a whole text.
    """

    actions: Sequence[Mapping[str, int]]
    gotos: Sequence[Mapping[str, int]]
    rules: Sequence[Rule]
    words: frozenset[str]
    start: int
    end: int


@lru_cache(maxsize=1)
def tables() -> Tables:
    """Return the tables in tables.json."""
    data = json.loads(SERIALISED.read_text("utf-8"))
    terminals = data["terminals"]
    return Tables(
        actions=[_row(row, terminals) for row in data["actions"]],
        gotos=[_row(row, data["nonterminals"]) for row in data["gotos"]],
        rules=[Rule(*rule) for rule in data["rules"]],
        words=frozenset([text for text in terminals if text.isidentifier() and text.islower()]),
        start=data["start"],
        end=data["end"],
    )


def _row(row: Sequence[int], names: Sequence[str]) -> Mapping[str, int]:
    return {names[symbol]: action for symbol, action in zip(row[::2], row[1::2], strict=True)}


def built(grammar: str) -> dict[str, Any]:
    """Return the content of tables.json for a grammar.

    States are numbered in the order in which a walk from the first state reaches them, so equal
    grammars always give equal files.

    Raises:
        ValueError: the grammar has a conflict.
        lark.exceptions.LarkError: it is no grammar of Lark.
    """
    from lark import Lark, logger
    from lark.lexer import PatternStr
    from lark.parsers.lalr_analysis import Shift

    conflicts = _Conflicts()
    level = logger.level
    logger.setLevel(logging.DEBUG)
    logger.addFilter(conflicts)
    try:
        parser: Any = Lark(grammar, parser="lalr", lexer="contextual", debug=True)
    finally:
        logger.removeFilter(conflicts)
        logger.setLevel(level)
    if conflicts.messages:
        raise ValueError(f"the grammar has a conflict: {conflicts.messages[0]}")
    table = parser.parser.parser._parse_table
    reduced = {action[1] for row in table.states.values() for action in row.values()}
    rules = {rule: None for rule in parser.rules if rule in reduced}
    numbers = {rule: number for number, rule in enumerate(rules)}
    texts = {
        terminal.name: str(terminal.pattern.value)
        for terminal in parser.terminals
        if isinstance(terminal.pattern, PatternStr)
    }
    symbols = sorted({symbol for row in table.states.values() for symbol in row})
    nonterminals = [symbol for symbol in symbols if symbol in {r.origin.name for r in rules}]
    terminals = [symbol for symbol in symbols if symbol not in nonterminals]
    found = {table.start_states["start"]: 0}
    order = list(found)
    rows: dict[str, list[list[int]]] = {"actions": [], "gotos": []}
    for state in order:
        for name, some in (("actions", terminals), ("gotos", nonterminals)):
            row: list[int] = []
            for at, symbol in enumerate(some):
                if symbol not in table.states[state]:
                    continue
                action, target = table.states[state][symbol]
                if action is Shift and target not in found:
                    found[target] = len(order)
                    order.append(target)
                row += [at, found[target] if action is Shift else -1 - numbers[target]]
            rows[name].append(row)
    return {
        "terminals": [texts.get(name, name) for name in terminals],
        "nonterminals": nonterminals,
        "rules": [_rule(rule) for rule in rules],
        **rows,
        "start": 0,
        "end": found[table.end_states["start"]],
    }


class _Conflicts(logging.Filter):
    """Collects the messages that Lark logs about conflicts, which it resolves as shifts."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def filter(self, record: logging.LogRecord) -> bool:
        """Keep a message about a conflict; suppress all messages."""
        message = record.getMessage()
        if "conflict" in message:
            self.messages.append(message)
        return False


def _rule(rule: Any) -> Rule:
    origin = str(rule.origin.name)
    single = rule.options.expand1 and not rule.alias
    make = SPLICED if origin.startswith("_") else SINGLE if single else TREE
    return Rule(origin, len(rule.expansion), make, str(rule.alias or origin))


def text_of(data: Mapping[str, Any]) -> str:
    """Return the text of tables.json, with one line for each state and each rule."""
    lines = []
    for name, value in data.items():
        if name in ("actions", "gotos", "rules"):
            rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in value)
            lines.append(f'"{name}":[\n{rows}]')
        else:
            lines.append(f'"{name}":{json.dumps(value, separators=(",", ":"))}')
    return "{" + ",\n".join(lines) + "}\n"


if __name__ == "__main__":
    SERIALISED.write_text(text_of(built(GRAMMAR.read_text("utf-8"))), "utf-8")

"""``python -m tcc_compiler.language.syntax.tables`` makes tables.json from grammar.lark, by Lark.

For who changes the grammar; nothing else imports this, or Lark.  Cost: some 0.2 s.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lark import Lark
from lark.grammar import Rule
from lark.lexer import BasicLexer
from lark.parsers.lalr_analysis import Shift

from tcc_compiler.language.syntax.automaton import TABLES

GRAMMAR = Path(__file__).with_name("grammar.lark")


class NoLexer(BasicLexer):
    """A lexer that is never run: :mod:`tcc_compiler.language.syntax.tokens` makes the tokens."""

    def __init__(self, conf: object) -> None:
        """Take the terminals as declared; they have no patterns."""


def made() -> dict[str, Any]:
    """The tables of grammar.lark, as tables.json has them.

    Lark numbers states as its sets come; here they are numbered as they are reached from the first,
    and rules in the order of their texts, so that a grammar has one table.
    """
    lark = Lark(GRAMMAR.read_text("utf-8"), parser="lalr", lexer=NoLexer, start="start")
    parser: Any = lark.parser
    table = parser.parser._parse_table
    symbols = {rule.origin.name for rule in lark.rules}
    rules = sorted({json.dumps(_rule(rule)) for rule in lark.rules})
    numbers = {rule: number for number, rule in enumerate(rules)}
    reached = _reached(table.states, table.start_states["start"])
    states = {state: number for number, state in enumerate(reached)}

    def target(action: object, argument: Any) -> int:
        return states[argument] if action is Shift else ~numbers[json.dumps(_rule(argument))]

    actions: list[dict[str, int]] = []
    gotos: list[dict[str, int]] = []
    for state in reached:
        row = {symbol: target(*step) for symbol, step in sorted(table.states[state].items())}
        actions.append({symbol: to for symbol, to in row.items() if symbol not in symbols})
        gotos.append({symbol: to for symbol, to in row.items() if symbol in symbols})
    return {
        "rules": [json.loads(rule) for rule in rules],
        "actions": actions,
        "gotos": gotos,
        "start": states[table.start_states["start"]],
        "end": states[table.end_states["start"]],
    }


def _reached(states: Mapping[Any, Mapping[str, tuple[object, Any]]], start: Any) -> list[Any]:
    """The states from the first on, as they are reached by symbols in order."""
    reached = {start: None}
    todo = [start]
    for state in todo:
        for _, (action, target) in sorted(states[state].items()):
            if action is Shift and target not in reached:
                reached[target] = None
                todo.append(target)
    return todo


def _rule(rule: Rule) -> list[Any]:
    """A rule: what it makes, the action's name, its size, and what is kept of its parts.

    As Lark has it: a terminal whose name begins with '_' is left out, the parts of a symbol whose
    name begins so are joined to the others, what stands in [..] and is not there is None.
    """
    absent = [0] * (len(rule.expansion) + 1)
    if rule.options.empty_indices:
        marks = "".join(str(int(mark)) for mark in rule.options.empty_indices)
        absent = [len(ones) for ones in marks.split("0")]
    kept: list[list[Any]] = []
    before = 0
    for place, symbol in enumerate(rule.expansion):
        before += absent[place]
        if not (symbol.is_term and symbol.filter_out):  # type: ignore[attr-defined]
            joined = not symbol.is_term and symbol.name.startswith("_")
            kept.append([place, joined, before])
            before = 0
    name = rule.alias or rule.origin.name
    single = bool(rule.options.expand1) and not rule.alias
    return [rule.origin.name, name, len(rule.expansion), kept, before + absent[-1], single]


def text(tables: dict[str, Any]) -> str:
    """The text of tables.json: a line for each rule and for each state."""
    parts = []
    for name, value in tables.items():
        if isinstance(value, list):
            rows = ",\n".join(json.dumps(row, sort_keys=True) for row in value)
            parts.append(f'"{name}": [\n{rows}\n]')
        else:
            parts.append(f'"{name}": {value}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


if __name__ == "__main__":
    TABLES.write_text(text(made()), "utf-8")

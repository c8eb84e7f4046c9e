"""Lark's LALR parser of grammar.lark, with the actions that make the tree while it reads.

``python -m tcc_compiler.language.syntax.parser`` writes grammar.json, the parser as Lark serialises
it: loading that takes a tenth of the time of building the parser from grammar.lark.  The data is
used for the text and the version of Lark that it was made from; for others the parser is built.
Tokens come from :mod:`tcc_compiler.language.syntax.tokens`, which knows which word is a keyword
where; Lark's own lexer never runs.  Cost: some 10 ms to load; linear in the tokens.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import lark
from lark import Lark, UnexpectedToken
from lark.grammar import NonTerminal, Rule, RuleOptions, Terminal
from lark.lexer import TerminalDef

from tcc_compiler.language.syntax.actions import Actions
from tcc_compiler.language.syntax.tokens import Lexeme

__all__ = ["GRAMMAR", "SERIALISED", "Parser", "UnexpectedToken", "serialised", "text_of"]

GRAMMAR = Path(__file__).with_name("grammar.lark")
SERIALISED = Path(__file__).with_name("grammar.json")
_OPTIONS = RuleOptions.__serialize_fields__
_SHIFT = 0  # how Lark's serialised tables mark a shift; a reduction is 1


class Parser:
    """One statement, as far as it was read: an interactive parser of Lark.

    Attributes:
        feed: goes on behind the next token; raises UnexpectedToken where that cannot stand.
    """

    __slots__ = ("_parser", "feed")

    feed: Callable[[Lexeme], object]

    def __init__(self) -> None:
        """Begin a statement."""
        parser: Any = _loaded().parse_interactive()
        self._parser = parser
        self.feed = parser.feed_token  # a lexeme has what Lark asks of a token: a type

    def end(self) -> Any:
        """The tree of the statement that ends here.

        Raises:
            UnexpectedToken: it is not whole.
        """
        return self._parser.feed_eof()

    def expected(self) -> frozenset[str]:
        """The kinds of token that can come next, ``$END`` where the statement may end."""
        return frozenset(self._parser.accepts())


@lru_cache(maxsize=1)
def _loaded() -> Lark:
    """The parser, loaded where the data is of this grammar and of this version of Lark."""
    grammar = GRAMMAR.read_text("utf-8")
    made = json.loads(SERIALISED.read_text("utf-8"))
    if (made["lark"], made["grammar"]) != (lark.__version__, grammar):
        return _built(grammar, Actions())
    data, table = made["data"], made["data"]["parser"]["parser"]
    table["tokens"] = dict(enumerate(table["tokens"]))
    states = [dict(zip(tokens, steps, strict=True)) for tokens, steps in table["states"]]
    table["states"] = dict(enumerate(states))
    data["options"]["transformer"] = Actions()
    return Lark.load({"data": data, "memo": dict(enumerate(_rules(**made["memo"])))})


def _built(grammar: str, actions: Actions | None) -> Lark:
    return Lark(grammar, parser="lalr", lexer="basic", transformer=actions)


def _rules(symbols: Sequence[Any], options: Sequence[Any], rules: Sequence[Any]) -> list[Rule]:
    """The rules that :func:`_shared` wrote down; made of Lark's classes, they need not be read."""
    symbol = [NonTerminal(name) if skip is None else Terminal(name, skip) for name, skip in symbols]
    option = [RuleOptions(*values) for values in options]
    return [
        Rule(symbol[origin], [symbol[at] for at in expansion], order, alias, option[chosen])
        for origin, expansion, order, alias, chosen in rules
    ]


def serialised(grammar: str) -> dict[str, Any]:
    """The parser of a grammar as Lark serialises it, with the text and the version that made it.

    Lark numbers states as its sets come, which differs from process to process; here they are
    numbered as they are reached from the first by symbols in order, so that a grammar has one text.
    """
    data, memo = _built(grammar, None).memo_serialize([TerminalDef, Rule])
    table = data["parser"]["parser"]
    names = table["tokens"]
    tokens = {name: number for number, name in enumerate(sorted(names.values()))}
    rows = {
        state: {names[token]: step for token, step in row.items()}
        for state, row in table["states"].items()
    }
    starts = table["start_states"]
    states = {state: number for number, state in enumerate(_reached(rows, starts["start"], tokens))}

    def renumbered(step: tuple[int, Any]) -> list[Any]:
        action, target = step
        return [action, states[target] if action == _SHIFT else target]

    table["tokens"] = list(tokens)
    table["states"] = [
        [[tokens[name] for name in row], [renumbered(rows[state][name]) for name in row]]
        for state, row in ((state, sorted(rows[state])) for state in states)
    ]
    for ends in ("start_states", "end_states"):
        table[ends] = {name: states[state] for name, state in table[ends].items()}
    return {"lark": lark.__version__, "grammar": grammar, "data": data, "memo": _shared(memo)}


def _shared(memo: Mapping[int, Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Lark's rules with each symbol and each choice of options once: a third of the text."""
    symbols: dict[tuple[str, bool | None], int] = {}
    options: dict[tuple[Any, ...], int] = {}

    def symbol(made: Mapping[str, Any]) -> int:
        return symbols.setdefault((made["name"], made.get("filter_out")), len(symbols))

    rules = [
        [
            symbol(rule["origin"]),
            [symbol(part) for part in rule["expansion"]],
            rule["order"],
            rule["alias"],
            options.setdefault(
                tuple(
                    tuple(value) if isinstance(value, list) else value
                    for value in (rule["options"][name] for name in _OPTIONS)
                ),
                len(options),
            ),
        ]
        for rule in (memo[number] for number in range(len(memo)))
    ]
    return {"symbols": [*symbols], "options": [*options], "rules": rules}


def _reached(
    rows: Mapping[int, Mapping[str, tuple[int, Any]]], start: int, order: Mapping[str, int]
) -> list[int]:
    """The states from the first on, as they are reached by symbols in order."""
    reached = {start: None}
    todo = [start]
    for state in todo:
        for _, (action, target) in sorted(rows[state].items(), key=lambda item: order[item[0]]):
            if action == _SHIFT and target not in reached:
                reached[target] = None
                todo.append(target)
    return todo


def text_of(made: Mapping[str, Any]) -> str:
    """The text of grammar.json; a line for each state and each rule."""
    text = json.dumps(made, separators=(",", ":"))
    return re.sub(r"\]\],(?=\[\[)|\],(?=\[\d+,\[)", r"\g<0>\n", text) + "\n"


if __name__ == "__main__":
    SERIALISED.write_text(text_of(serialised(GRAMMAR.read_text("utf-8"))), "utf-8")

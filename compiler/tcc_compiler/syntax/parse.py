"""Parse a source text into the trees of its statements, and report its mistakes.

The parser runs the LALR tables of grammar.lark. A mistake ends its statement. Parsing continues at
the next line that begins a statement, so one run reports the mistakes of all statements.
Cost: linear in the text; a statement with a mistake is read twice. There is no recursion.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Region, Source
from tcc_compiler.syntax.messages import (
    STARTERS,
    Stuck,
    is_guess,
    near_starter,
    report_guess,
    report_inside,
    report_stuck,
)
from tcc_compiler.syntax.tables import END, SINGLE, SPLICED, Tables, tables
from tcc_compiler.syntax.tokens import Wrong, next_token
from tcc_compiler.syntax.tree import Part, Token, Tree, region_of

MAX_TOKENS = 1 << 20
MAX_HEIGHT = 250  # the most trees inside one another
# Left-recursive rules whose trees get all parts directly, without nesting.
_FLAT = frozenset({"either_of", "values"})
_MAX_INDENT = 200  # the most columns before a keyword when searching for the next statement
_FOREIGN = {"{": "JSON", "[": "JSON", "<": "XML"}


@frozen
class File:
    """The statements of a source.

    Attributes:
        source: the text.
        number: the number of the source in regions.
        statements: in the order of the text, without statements that contain a mistake.
    """

    source: Source
    number: int
    statements: tuple[Tree, ...]


class _TooDeep(Exception):
    """Raised if trees are nested deeper than MAX_HEIGHT."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.tree = tree


def parse(source: Source, number: int, report: Report) -> File:
    """Return the statements of a source.

    Args:
        source: the text.
        number: its number among the sources of `report`, used in regions.
        report: receives the mistakes.
    """
    start = len(source.text) - len(source.text.lstrip())
    kind = _FOREIGN.get(source.text[start : start + 1])
    if kind is not None:
        hint = 'a grammar begins with: grammar NAME version "1.0"'
        hint += "; `tcc import mcp` makes a grammar from a list of tools" if kind == "JSON" else ""
        region = Region(number, start, start + 1)
        report.error("TCC101", region, f"this is no grammar: it begins as {kind} does", hint)
        return File(source=source, number=number, statements=())
    reader = _Reader(source, number, report)
    reader.run()
    return File(source=source, number=number, statements=tuple(reader.statements))


@frozen
class Unfinished:
    """The last statement of a text that ends within this statement.

    Attributes:
        tokens: the tokens of the statement.
        accepted: the terminals that may come next; empty after a mistake.
        ending: a text that completes the statement after one more name; None if no name fits.
    """

    tokens: Sequence[Token]
    accepted: frozenset[str] = frozenset()
    ending: str | None = None


def unfinished(source: Source, report: Report) -> Unfinished:
    """Return the unfinished statement at the end of a text."""
    reader = _Reader(source, 0, report)
    while True:
        try:
            token = next_token(source, reader.at, reader.tables.actions[reader.states[-1]])
            if token is None:
                accepted = _accepted(reader.states, reader.tables)
                return Unfinished(
                    tokens=reader.tokens, accepted=accepted,
                    ending=_ending([*reader.states], reader.tables),
                )  # fmt: skip
            report.tick()
            if not reader.take(token):
                return Unfinished(tokens=reader.tokens)
        except (Wrong, _TooDeep):
            return Unfinished(tokens=reader.tokens)
        reader.at = token.end


# Terminals for completing a statement, in order of preference: closing brackets first, then words
# and values that the statement may need.
_LEADING = (
    ")", "}", "require", "owe", "else", "{", "<=", "EQ", "=", ":", "..", "NAME", "NUMBER", "STRING",
)  # fmt: skip
_WRITTEN = {"EQ": "=", "NAME": "x", "NUMBER": "1", "STRING": '"x"'}
_MOST_LEADING = 4 * MAX_HEIGHT


def _ending(states: list[int], table: Tables) -> str | None:
    """Return a text that ends a statement after one more name; changes `states`."""
    if not _advance(states, "NAME", table):
        return None
    found: list[str] = []
    while END not in (accepted := _accepted(states, table)):
        kind = next((one for one in _LEADING if one in accepted), None)
        if kind is None or len(found) == _MOST_LEADING:
            return None
        _advance(states, kind, table)
        found.append(_WRITTEN.get(kind, kind))
    return " ".join(found)


class _Reader:
    """The parser.

    Invariant: `states` and `values` are the stacks of the parser. `tokens` has the tokens of the
    current statement. `quiet` is set if a mistake of this statement was reported.
    """

    def __init__(self, source: Source, number: int, report: Report) -> None:
        self.source = source
        self.number = number
        self.report = report
        self.tables = tables()
        self.states = [self.tables.start]
        self.values: list[Any] = []
        self.tokens: list[Token] = []
        self.quiet = False
        self.count = 0
        # The parser states between statements: before the first one, and after another one.
        repeated = next(
            name for name in self.tables.gotos[self.tables.start] if name.startswith("__start")
        )
        self.top = (self.tables.start, self.tables.gotos[self.tables.start][repeated])
        self.at = 0
        self.statements: list[Tree] = []

    def run(self) -> None:
        """Read the whole text."""
        while not self.report.full:
            try:
                token = next_token(self.source, self.at, self.tables.actions[self.states[-1]])
            except Wrong as wrong:
                region = Region(self.number, wrong.start, wrong.end)
                self.report.error(wrong.code, region, wrong.message, wrong.hint)
                self._recover(wrong.end)
                continue
            self.report.tick()
            if token is None:
                token = Token(END, "", self.at, self.at)
            self.count += 1
            if self.count > MAX_TOKENS:
                message = f"the file has more than {MAX_TOKENS} tokens"
                hint = "split the grammar: `use` takes tools from other files"
                self.report.error("TCC107", region_of(token, self.number), message, hint)
                return
            if not self._read(token):
                return

    def _read(self, token: Token) -> bool:
        """Read a token, and find the place of the next one; return False at the end."""
        try:
            if self.take(token):
                self.at = token.end
                return token.kind != END
            if self._is_inside_line(token) and report_guess(self._stuck_at(token), self.report):
                self._skip_line(token.end)
                return True
            self._stuck(token)
        except _TooDeep as deep:
            message = f"this is nested deeper than {MAX_HEIGHT} levels"
            hint = "name the inner part by a `let` or a `rule`"
            self.report.error("TCC106", region_of(deep.tree, self.number), message, hint)
            self._recover(token.start)
        return True

    def take(self, token: Token) -> bool:
        """Feed a token to the tables; return False if it does not fit."""
        actions, gotos, rules = self.tables.actions, self.tables.gotos, self.tables.rules
        states, values = self.states, self.values
        while True:
            action = actions[states[-1]].get(token.kind)
            if action is None:
                return False
            if action >= 0:
                if states[-1] in self.top and not self._begin(token):
                    return False
                states.append(action)
                values.append(token)
                self.tokens.append(token)
                return True
            origin, size, make, kind = rules[-1 - action]
            if size == 1 and make == SINGLE:
                states[-1] = gotos[states[-2]][origin]
                continue
            if size:
                parts = values[-size:]
                del states[-size:], values[-size:]
            else:
                parts = []
            goto = gotos[states[-1]][origin]
            if goto == self.tables.end and token.kind == END:
                self.statements = parts[0] if parts else []
                return True
            states.append(goto)
            values.append(_joined(parts) if make == SPLICED else _tree(kind, parts))

    def _is_inside_line(self, token: Token) -> bool:
        """Return whether a token is on the line on which the previous token ends."""
        return bool(self.tokens) and "\n" not in self.source.text[self.tokens[-1].end : token.start]

    def _begin(self, token: Token) -> bool:
        """Begin a statement; return False for the `before` of `forbid A before B`."""
        self.quiet = self._is_inside_line(token)
        if self.quiet:
            stuck = self._stuck_at(token)
            if is_guess(stuck):
                return False
            report_inside(stuck, self.report)
        self.tokens = []
        return True

    def _stuck(self, token: Token) -> None:
        """Report a token that does not fit, and continue with the next statement."""
        early = self._early()
        if early is not None:
            token = self.tokens[early]
            del self.tokens[early:]
        stuck = self._stuck_at(token)
        if not self.quiet or stuck.begins_line:
            if report_guess(stuck, self.report):
                self._skip_line(token.end)
                return
            report_stuck(stuck, self.report)
        self._recover(token.start if token.text in STARTERS else token.end)

    def _early(self) -> int | None:
        """Return the index of the first token that was read as a name but meant as a keyword.

        Within open brackets this is a keyword; outside of them, a misspelt keyword at the start of
        a line.
        """
        text = self.source.text
        depth = 0
        for at, one in enumerate(self.tokens):
            depth += one.text in ("(", "{")
            depth -= one.text in (")", "}")
            if at == 0 or one.kind != "NAME" or (depth > 0) is not (one.text in STARTERS):
                continue
            line = text.rfind("\n", 0, one.start) + 1
            begins = line + self._indent() >= one.start and not text[line : one.start].strip()
            if begins and (depth > 0 or near_starter(one.text)):
                return at
        return None

    def _indent(self) -> int:
        """Return the indentation of the statement."""
        start = self.tokens[0].start
        line = self.source.text.rfind("\n", 0, start) + 1
        return min(start - line, _MAX_INDENT)

    def _stuck_at(self, token: Token) -> Stuck:
        states = [self.tables.start]
        for before in self.tokens:
            _advance(states, before.kind, self.tables)
        if not self.tokens:
            states = self.states
        return Stuck(
            source=self.source,
            number=self.number,
            tokens=self.tokens,
            token=token,
            expected=_accepted(states, self.tables),
        )

    def _recover(self, at: int) -> None:
        """Continue at the next line after `at` that begins a statement, not more indented."""
        indent = self._indent() if self.tokens else _MAX_INDENT
        words = [*STARTERS]
        if not self.tokens or self.tokens[0].text not in ("before", "finally"):
            words.append("require")  # not a statement, but often written as one
        pattern = rf"^[ \t]{{0,{indent}}}(?:{'|'.join(words)})\b"
        found = re.compile(pattern, re.MULTILINE).search(self.source.text, self._line_after(at))
        self._resume(found.start() if found else len(self.source.text))

    def _skip_line(self, at: int) -> None:
        """Continue at the line after the line of `at`."""
        end = self.source.text.find("\n", at)
        self._resume(len(self.source.text) if end < 0 else end + 1)

    def _resume(self, at: int) -> None:
        """Continue at a statement that begins at `at`."""
        self.at = at
        kept = 1 if self.values and isinstance(self.values[0], list) else 0
        del self.states[1 + kept :], self.values[kept:]
        self.tokens = []
        self.quiet = False

    def _line_after(self, at: int) -> int:
        """Return the start of the line of `at`, or of the next line if text precedes `at`."""
        line = self.source.text.rfind("\n", 0, at) + 1
        begun = self.tokens and self.tokens[0].start >= line
        if not self.source.text[line:at].strip() and not begun:
            return line
        end = self.source.text.find("\n", at)
        return len(self.source.text) if end < 0 else end + 1


def _joined(parts: list[Any]) -> list[Part]:
    """Return the parts of a repetition; the list of earlier parts is extended."""
    found: list[Part] = parts.pop(0) if isinstance(parts[0], list) else []
    found += parts
    return found


def _tree(kind: str, parts: list[Any]) -> Tree:
    first = parts[0]
    if kind in _FLAT and isinstance(first, Tree) and first.kind == kind:
        first.parts += parts[1:]
        first.end = parts[-1].end
        last = parts[-1]
        first.height = max(first.height, 1 + last.height if isinstance(last, Tree) else 1)
        return first
    flat: list[Part] = []
    for part in parts:
        if isinstance(part, list):
            flat += part
        else:
            flat.append(part)
    tree = Tree(kind, flat)
    if tree.height > MAX_HEIGHT:
        raise _TooDeep(tree)
    return tree


def _advance(states: list[int], kind: str, table: Tables) -> bool:
    """Return whether a token fits after these states, and replace them by the next states."""
    while True:
        action = table.actions[states[-1]].get(kind)
        if action is None:
            return False
        if action >= 0:
            states.append(action)
            return True
        origin, size, _, _ = table.rules[-1 - action]
        if size:
            del states[-size:]
        goto = table.gotos[states[-1]][origin]
        if goto == table.end and kind == END:
            return True
        states.append(goto)


def _accepted(states: Sequence[int], table: Tables) -> frozenset[str]:
    """Return the terminals that fit after these states."""
    return frozenset(
        [kind for kind in table.actions[states[-1]] if _advance([*states], kind, table)]
    )

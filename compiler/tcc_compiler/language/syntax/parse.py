"""A source text to its statements; every statement that has an error says what was expected.

Normative text: docs/spec/language.md, sections 2 and 9.  Each statement is parsed by itself, by a
LALR automaton whose tables are read once a process.  Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tcc_compiler.language.ast.leaves import Word
from tcc_compiler.language.ast.statements import Broken, Statement
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.automaton import Parser, Unexpected
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.mends import Stuck, joined
from tcc_compiler.language.syntax.nesting import TooDeep
from tcc_compiler.language.syntax.tokens import MAX_NESTING, Chunk, split
from tcc_compiler.language.syntax.unexpected import (
    ReservedNames,
    begins_line,
    close_keyword,
    open_brackets,
    report_no_statement,
    report_unexpected,
    same_line,
)
from tcc_compiler.language.syntax.words import OPENERS, RESERVED

_MOST_LOOKED_AT = 2000  # tokens, for the lines of a statement with an error
# What begins a file that is something else.
_FOREIGN = {"{": "JSON", "[": "JSON", "<": "XML"}


def parse(source: Source, number: int, report: Report) -> tuple[Statement, ...]:
    """The statements of a source, in the order of the text.

    Args:
        source: the text.
        number: how regions name it; its place among the sources of `report`.
        report: takes the errors.  A statement with one comes out as :class:`Broken`.
    """
    foreign = _foreign(source, number, report)
    if foreign is not None:
        return (foreign,)
    chunks = split(source.text, number, report)
    if chunks and _is_no_grammar(chunks, source.text):
        report_no_statement(chunks[0].tokens[0], report)
        return (Broken("", (), chunks[0].tokens[0].region),)
    reader = _Reader(source, report)
    for index, chunk in enumerate(chunks):
        following = chunks[index + 1].tokens[0] if index + 1 < len(chunks) else None
        reader.read(chunk, following)
    reader.reserved.report(report)
    return tuple(reader.statements)


def check_syntax(source: Source, report: Report, known: Collection[str]) -> frozenset[str]:
    """Report what :func:`parse` does of a text that is the only source.

    Args:
        known: statements without an error, as texts: these are not read again.

    Returns:
        those of this text that have none.
    """
    if _foreign(source, 0, report) is not None:
        return frozenset()
    chunks = split(source.text, 0, report)
    if chunks and _is_no_grammar(chunks, source.text):
        report_no_statement(chunks[0].tokens[0], report)
        return frozenset()
    reader = _Checker(source, report, known)
    for index, chunk in enumerate(chunks):
        following = chunks[index + 1].tokens[0] if index + 1 < len(chunks) else None
        reader.read(chunk, following)
    reader.reserved.report(report)
    return frozenset(reader.good)


def _foreign(source: Source, number: int, report: Report) -> Broken | None:
    """A text that begins as JSON or XML does, reported in one message."""
    start = len(source.text) - len(source.text.lstrip())
    kind = _FOREIGN.get(source.text[start : start + 1])
    if kind is None:
        return None
    region = Region(number, start, start + 1)
    hint = 'a grammar begins with: grammar NAME version "1.0"'
    if kind == "JSON":
        hint += "; `tcc import mcp` makes one of a list of tools, a graph's file ends in .json"
    else:
        hint += "; a graph's file ends in .graphml"
    report.error("TCC101", region, f"this is no grammar: it begins as {kind} does", hint)
    return Broken("", (), region)


def _is_no_grammar(chunks: Sequence[Chunk], text: str) -> bool:
    """Whether a text is something else: it begins with no keyword, and `grammar` is nowhere."""
    first = chunks[0].tokens[0]
    if first.type.lower() in (*OPENERS, "wrong") or close_keyword(first) is not None:
        return False
    reported = chunks[0].wrong is not None and chunks[0].wrong < first.region.start
    return not reported and all(chunk.tokens[0].type != "GRAMMAR" for chunk in chunks)


def _broken(tokens: Sequence[Lexeme], source: Source) -> list[Broken]:
    """The tokens as statements with errors in them, one for each line that seems to begin one.

    Names that these may define are not unknown.
    """
    starts = [0]
    for place in range(1, min(len(tokens), _MOST_LOOKED_AT)):
        if begins_line(tokens, place, source) and close_keyword(tokens[place]) is not None:
            starts.append(place)
    ends = [*starts[1:], len(tokens)]
    return [_broken_one(tokens[i:j]) for i, j in zip(starts, ends, strict=True)]


def _broken_one(tokens: Sequence[Lexeme]) -> Broken:
    first = tokens[0]
    keyword = str(first)
    if first.type.lower() not in OPENERS:
        keyword = close_keyword(first) or keyword
    names: tuple[Word, ...] = ()
    defines = keyword in ("tool", "rule") and len(tokens) > 1
    if defines and (tokens[1].type in ("NAME", "STRING") or str(tokens[1]) in RESERVED):
        parts = joined(tokens, 1).split("-")
        names = tuple(Word(part, tokens[1].region) for part in parts)
    return Broken(keyword, names, first.region.to(tokens[-1].region))


class _Reader:
    """The statements so far.

    Invariant: while `swallowed` is a region, statements that begin on the line on which it ends
    belong to one that was cut in two by a reserved word.
    """

    def __init__(self, source: Source, report: Report) -> None:
        self.source = source
        self.report = report
        self.statements: list[Statement] = []
        self.reserved = ReservedNames()
        self.swallowed: Region | None = None

    def read(self, chunk: Chunk, following: Lexeme | None) -> None:
        """Add the statements of a chunk."""
        tokens = chunk.tokens
        first, last = tokens[0].region, tokens[-1].region
        belongs = self.swallowed is not None and same_line(self.source, self.swallowed, first)
        self.swallowed = last if belongs else None
        if belongs or self.report.full:
            self.statements += _broken(tokens, self.source)
        elif tokens[0].type.lower() not in OPENERS:
            if chunk.wrong is None or chunk.wrong > first.start:
                report_no_statement(tokens[0], self.report)
            self.statements += _broken(tokens, self.source)
        elif chunk.wrong is not None:
            # Characters that were reported are missing here: the rest may mean something else.
            self.statements += _broken(tokens, self.source)
        else:
            self._statement(tokens, following)

    def _statement(self, tokens: Sequence[Lexeme], following: Lexeme | None) -> None:
        at, outcome = _fed(tokens, self.report)
        if outcome is not None:
            self.statements.append(outcome)
            return
        if at is None:
            self.statements += _broken(tokens, self.source)
            return
        expected = _expected(tokens[:at])
        second = self._second(tokens, at, expected)
        if second is not None:
            self._split(tokens, second)
            return
        stuck = Stuck(
            tokens=tokens,
            at=at,
            expected=expected,
            following=following,
            opened=open_brackets(tokens[:at]),
        )
        if report_unexpected(stuck, self.source, self.reserved, self.report):
            # The reserved word that stood for a name has cut this statement in two.
            self.swallowed = tokens[-1].region
        self.statements += _broken(tokens, self.source)

    def _second(self, tokens: Sequence[Lexeme], at: int, expected: frozenset[str]) -> int | None:
        """Where a second statement begins, whose keyword is misspelt or none; None where none does.

        It is the last name that begins a line, if that is close to a keyword, or if the statement
        before it is whole.
        """
        for place in range(min(at, len(tokens) - 1), 0, -1):
            if begins_line(tokens, place, self.source):
                whole = place == at and "$END" in expected
                return place if whole or close_keyword(tokens[place]) else None
        return None

    def _split(self, tokens: Sequence[Lexeme], second: int) -> None:
        """A statement, and one behind it that is none."""
        report_no_statement(tokens[second], self.report)
        _, before = _fed(tokens[:second], self.report)
        if before is None:
            self.statements += _broken(tokens[:second], self.source)
        else:
            self.statements.append(before)
        self.statements += _broken(tokens[second:], self.source)


def _fed(tokens: Sequence[Lexeme], report: Report) -> tuple[int | None, Statement | None]:
    """The statement of these tokens; or the number of the one that cannot stand where it stands.

    Neither where operators are nested too deeply, which is reported.
    """
    parser = Parser()
    at = 0
    try:
        for token in tokens:
            parser.feed(token)
            report.tick()
            at += 1
        statement: Statement = parser.end()
        return None, statement
    except TooDeep as deep:
        report.error(
            "TCC106", deep.region, f"operators are nested deeper than {MAX_NESTING}",
            "name the inner part by a rule of its own",
        )  # fmt: skip
        return None, None
    except Unexpected:
        return at, None


def _expected(tokens: Sequence[Lexeme]) -> frozenset[str]:
    """Which kinds of token may follow `tokens`, themselves well formed."""
    parser = Parser()
    for token in tokens:
        parser.feed(token)
    return parser.expected()


class _Checker(_Reader):
    """A reader that knows statements from before; what a statement is depends on its text alone.

    Attributes:
        good: the statements that have no error.
    """

    def __init__(self, source: Source, report: Report, known: Collection[str]) -> None:
        super().__init__(source, report)
        self.good: set[str] = set()
        self._known = known

    def _statement(self, tokens: Sequence[Lexeme], following: Lexeme | None) -> None:
        text = self.source.text[tokens[0].region.start : tokens[-1].region.end]
        if text not in self._known:
            before = len(self.statements)
            super()._statement(tokens, following)
            if any(isinstance(statement, Broken) for statement in self.statements[before:]):
                return
        self.good.add(text)

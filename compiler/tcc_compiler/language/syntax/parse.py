"""A source text to its statements; every statement that has an error says what was expected.

Normative text: docs/spec/language.md, sections 2 and 9.  Each statement is parsed by itself, by a
LALR automaton that is built once a process.  Cost: linear in the tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from functools import lru_cache
from importlib.resources import files

from lark import Lark, UnexpectedToken
from lark.lexer import BasicLexer
from lark.parsers.lalr_interactive_parser import InteractiveParser

from tcc_compiler.language.ast.leaves import Word
from tcc_compiler.language.ast.statements import Broken, Statement
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.build import Builder
from tcc_compiler.language.syntax.lexemes import Lexeme, lexeme
from tcc_compiler.language.syntax.nesting import TooDeep
from tcc_compiler.language.syntax.tokens import MAX_NESTING, Chunk, split
from tcc_compiler.language.syntax.words import OPENERS, RESERVED, TYPES, expectation


@lru_cache(maxsize=1)
def _parser() -> Lark:
    """The automaton of grammar.lark; tokens are fed to it one by one, so its lexer never runs."""
    grammar = files("tcc_compiler.language.syntax").joinpath("grammar.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", lexer=_NoLexer, transformer=Builder(), start="start")


class _NoLexer(BasicLexer):
    """A lexer that is never run: :mod:`tcc_compiler.language.syntax.tokens` makes the tokens."""

    def __init__(self, conf: object) -> None:
        """Take the terminals as declared; they have no patterns."""


def parse(source: Source, number: int, report: Report) -> tuple[Statement, ...]:
    """The statements of a source, in the order of the text.

    Args:
        source: the text.
        number: how regions name it; its place among the sources of `report`.
        report: takes the errors.  A statement with one comes out as :class:`Broken`.
    """
    chunks = split(source.text, number, report)
    statements: list[Statement] = []
    swallowed = -1
    for index, chunk in enumerate(chunks):
        following = chunks[index + 1].tokens[0] if index + 1 < len(chunks) else None
        if index == swallowed or report.full:
            statements.append(_broken(chunk, named=False))
            continue
        outcome = _statement(chunk, following, source, report)
        if outcome is None:
            # The reserved word that stood for a name has cut this statement in two.
            swallowed = index + 1
            outcome = _broken(chunk, named=False)
        statements.append(outcome)
    return tuple(statements)


def _broken(chunk: Chunk, named: bool = True, misspelled: int | None = None) -> Broken:
    """The chunk as a statement with an error in it.

    Args:
        chunk: the tokens.
        named: whether the name that the statement would define counts as defined.
        misspelled: the token that looks like the keyword of a second statement.
    """
    first = chunk.tokens[0]
    places = [1] if named and first.type in ("TOOL", "RULE") else []
    if misspelled is not None:
        places.append(misspelled + 1)
    tokens = [chunk.tokens[place] for place in places if place < len(chunk.tokens)]
    names = tuple(
        Word(str(token), token.region) for token in tokens if token.type in ("NAME", "STRING")
    )
    return Broken(str(first), names, first.region.to(chunk.tokens[-1].region))


def _statement(
    chunk: Chunk, following: Lexeme | None, source: Source, report: Report
) -> Statement | None:
    """The statement of a chunk; None where a reserved word took the place of a name."""
    first = chunk.tokens[0]
    if first.type.lower() not in OPENERS:
        _report_no_statement(chunk, report)
        return _broken(chunk)
    if chunk.wrong is not None:
        # Characters that were reported are missing here: the rest may mean something else.
        return _broken(chunk)
    parser = _parser().parse_interactive()
    at = 0
    try:
        for token in chunk.tokens:
            parser.feed_token(token)
            report.tick()
            at += 1
        last = chunk.tokens[-1].region
        end = lexeme("$END", "", Region(last.source, last.end, last.end + 1))
        statement: Statement = parser.feed_token(end)
        return statement
    except TooDeep as deep:
        report.error(
            "TCC106", deep.region, f"operators are nested deeper than {MAX_NESTING}",
            "name the inner part by a rule of its own",
        )  # fmt: skip
        return _broken(chunk)
    except UnexpectedToken:
        return _report_unexpected(chunk, at, following, source, report)


def _report_no_statement(chunk: Chunk, report: Report) -> None:
    first = chunk.tokens[0]
    close = _close_keyword(first)
    hint = f"did you mean {quote(close)}?" if close else None
    if chunk.wrong is None:
        words = ", ".join(f"'{word}'" for word in OPENERS[:-1])
        message = (
            f"found {_shown(first)}; expected a statement, which starts with {words}"
            f" or '{OPENERS[-1]}'"
        )
        report.error("TCC101", first.region, message, hint)


def _expected(tokens: Sequence[Lexeme]) -> set[str]:
    """Which kinds of token may follow `tokens`, themselves well formed."""
    parser: InteractiveParser = _parser().parse_interactive()
    for token in tokens:
        parser.feed_token(token)
    accepted: set[str] = parser.accepts()  # type: ignore[no-untyped-call]
    return accepted


def _report_unexpected(
    chunk: Chunk, at: int, following: Lexeme | None, source: Source, report: Report
) -> Statement | None:
    """Report the token number `at` of a chunk, or its end, as not expected there."""
    expected = _expected(chunk.tokens[:at])
    wanted = expectation(expected)
    misspelled = _misspelled(chunk.tokens[: at + 1], source)
    hint = None if misspelled is None else _other_keyword(chunk.tokens[misspelled])
    if at < len(chunk.tokens):
        token = chunk.tokens[at]
        if token.type == "ANY" and _after_colon(chunk.tokens, at):
            message = "'any' is a reserved word, and no value"
            hint = "for any value write a type behind a semicolon: (..; name: json)"
            report.error("TCC316", token.region, message, hint)
        elif "NAME" in expected and token.type != "STRING" and str(token) in RESERVED:
            _report_reserved(token, expected, report)
        else:
            message = f"found {_shown(token)}; expected {wanted}"
            report.error("TCC101", token.region, message, hint or _hint(chunk.tokens, at, expected))
        return _broken(chunk, misspelled=misspelled)
    last = chunk.tokens[-1].region
    if following is not None and "NAME" in expected and _same_line(source, last, following.region):
        _report_reserved(following, expected, report)
        return None
    next_text = "the end of the text" if following is None else f"the statement {_shown(following)}"
    region = Region(last.source, last.end, last.end + 1)
    report.error("TCC101", region, f"found {next_text}; expected {wanted}", hint)
    return _broken(chunk, misspelled=misspelled)


def _report_reserved(token: Lexeme, expected: set[str], report: Report) -> None:
    quoted = f'write "{token}" in quotes' if "STRING" in expected else "choose another name"
    message = f"'{token}' is a reserved word, and cannot be a name"
    report.error("TCC111", token.region, message, quoted)


def _shown(token: Lexeme) -> str:
    if token.type == "STRING":
        return "a string"
    return quote(str(token))


def _same_line(source: Source, one: Region, other: Region) -> bool:
    return source.place(one.end)[0] == source.place(other.start)[0]


def _hint(tokens: Sequence[Lexeme], at: int, expected: set[str]) -> str | None:
    """A hint for some common mistakes."""
    token = tokens[at]
    if token.type == "_EQUAL" and "EQEQ" in expected:
        return "write '=='"
    if token.type == "EQEQ" and "_EQUAL" in expected:
        return "write '='"
    if token.type == "NUMBER" and "UNIT" in expected:
        return "write the unit, 'ms' or 's', after the number"
    if _after_colon(tokens, at - 1) and str(tokens[at - 1]) in TYPES:
        return "a parameter with a type stands behind a semicolon: (..; name: type)"
    if str(token) == "same" and tokens[0].type == "REQUIRE":
        return "`same` goes with `before` and `before each`, and with no `after`"
    return None


def _after_colon(tokens: Sequence[Lexeme], at: int) -> bool:
    """Whether the token number `at` begins what a parameter of a tool may be."""
    return at > 1 and tokens[0].type == "TOOL" and tokens[at - 1].type == "_COLON"


def _misspelled(tokens: Sequence[Lexeme], source: Source) -> int | None:
    """The last name that begins a line, if it is close to a keyword.

    The tokens may hold a second statement, whose keyword is misspelled.
    """
    for place in range(len(tokens) - 1, 0, -1):
        token = tokens[place]
        if token.type == "NAME" and not _same_line(source, tokens[place - 1].region, token.region):
            return place if _close_keyword(token) else None
    return None


def _close_keyword(token: Lexeme) -> str | None:
    close = get_close_matches(str(token)[:32], OPENERS, n=1, cutoff=0.7)
    return close[0] if close else None


def _other_keyword(token: Lexeme) -> str:
    return f"did you mean {quote(_close_keyword(token) or '')} where {quote(str(token))} stands?"

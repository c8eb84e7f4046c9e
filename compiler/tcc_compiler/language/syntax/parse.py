"""A source text to its statements; every statement that has an error says what was expected.

Normative text: docs/spec/language.md, sections 2 and 9.  Each statement is parsed by itself, so
that all of a text's errors are reported at once, and one mistake gives one message: where a bracket
is missing it points at the other one; where a reserved word stands for a name it says so, once a
word; else it says what was expected.  Cost: linear in the tokens.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import pairwise

from tcc_compiler.frozen import frozen
from tcc_compiler.language.ast import Broken, Statement, Word
from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Region, Source
from tcc_compiler.language.syntax.hints import FORMS, Stuck, hint_for, joined
from tcc_compiler.language.syntax.parser import Parser, UnexpectedToken
from tcc_compiler.language.syntax.tokens import (
    MAX_NESTING,
    MAX_TOKENS,
    Chunk,
    Lexeme,
    kept_words,
    split,
)
from tcc_compiler.language.syntax.tool_actions import TooDeep
from tcc_compiler.language.syntax.words import OPENERS, RESERVED, expectation

_MOST_LOOKED_AT = 2000  # tokens, for the lines of a statement with an error
# What begins a file that is something else.
_FOREIGN = {"{": "JSON", "[": "JSON", "<": "XML"}
_CLOSING = {"LPAR": "RPAR", "_ARGS": "RPAR", "LBRACE": "RBRACE"}
_MARKS = {"LPAR": "(", "_ARGS": "(", "LBRACE": "{", "RPAR": ")", "RBRACE": "}"}
# Where one of these stands inside a '(', the ')' is missing before it.
_ENDS_PARENS = {"LIMIT": ("LE", "GE", "EQEQ"), "TOOL": ("LBRACE",)}
_MOST_NOTES = 5
_BLOCK = re.compile(rf"^(?:{'|'.join(sorted(RESERVED.intersection(OPENERS)))})\b", re.MULTILINE)
# A text whose first token is a reserved keyword that begins a statement.
_HEAD = re.compile(rf"(?:[ \t\r\n]++|\#[^\n]*+)*+(?:{_BLOCK.pattern[1:]}|\Z)")
_REMARK = "/*"  # what it begins goes on to its end, over lines


def parse(
    source: Source, number: int, report: Report, kept: frozenset[str] = frozenset()
) -> tuple[Statement, ...]:
    """The statements of a source, in the order of the text.

    Args:
        source: the text.
        number: how regions name it; its place among the sources of `report`.
        report: takes the errors.  A statement with one comes out as :class:`Broken`.
        kept: words of statements that are names, beside those that the source declares.
    """
    foreign = _foreign(source, number, report)
    if foreign is not None:
        return (foreign,)
    kept = kept | kept_words(source.text)
    chunks = split(source.text, number, report, kept)
    if chunks and _is_no_grammar(chunks, source.text):
        report_no_statement(chunks[0].tokens[0], report)
        return (Broken("", (), chunks[0].tokens[0].region),)
    reader = _Reader(source, report, kept)
    for index, chunk in enumerate(chunks):
        following = chunks[index + 1].tokens[0] if index + 1 < len(chunks) else None
        reader.read(chunk, following)
    reader.reserved.report(report)
    return tuple(reader.statements)


@frozen
class KnownBlocks:
    """What is known of parts of a text, each from a line with a reserved keyword to the next such.

    A statement begins there whatever stands before, and ends before the next one.  What a word
    means at the end of a part may depend on what follows, but on no more than the next part.

    Attributes:
        words: the words that a part declares as names.
        good: how many tokens a part without an error has, by the words that are names, its text
            and that of the next part.
    """

    words: Mapping[str, frozenset[str]] = field(default_factory=dict)
    good: Mapping[tuple[frozenset[str], str, str], int] = field(default_factory=dict)


def check_syntax(source: Source, report: Report, known: KnownBlocks) -> KnownBlocks:
    """Report what :func:`parse` does of a text that is the only source.

    Args:
        known: parts that are known from before; those without an error are not read again.

    Returns:
        what is known of this text.
    """
    text = source.text
    if _foreign(source, 0, report) is not None:
        return KnownBlocks()
    begins = [0, *(found.start() for found in _BLOCK.finditer(text, 1))]
    blocks = [text[low:high] for low, high in pairwise([*begins, len(text)])]
    known_words = known.words
    words = {b: known_words[b] if b in known_words else kept_words(b) for b in blocks}
    kept = frozenset[str]().union(*words.values())
    keys = [(kept, block, after) for block, after in pairwise([*blocks, ""])]
    shown = _shown(keys, known.good)
    # Parts that are not read again are white space: no place of another changes.
    parts = zip(blocks, shown, strict=True)
    chunks = split("".join(b if s else " " * len(b) for b, s in parts), 0, report, kept)
    if chunks and _is_no_grammar(chunks, text):
        report_no_statement(chunks[0].tokens[0], report)
        return KnownBlocks()
    reader = _Reader(source, report, kept)
    tokens, bad = [0] * len(blocks), set[int]()
    for index, chunk in enumerate(chunks):
        following = chunks[index + 1].tokens[0] if index + 1 < len(chunks) else None
        before = len(reader.statements)
        reader.read(chunk, following)
        first, last = (chunk.tokens[at].region for at in (0, -1))
        own, end = (bisect_right(begins, at) - 1 for at in (first.start, last.end - 1))
        tokens[own] += len(chunk.tokens)
        if own != end or any(isinstance(one, Broken) for one in reader.statements[before:]):
            bad.update(range(own, end + 1))
    reader.reserved.report(report)
    # Behind such a mark tokens may have been passed over, in any part.
    unsure = report.full or (_REMARK in text and any(c.wrong is not None for c in chunks))
    good = {
        key: tokens[at] if shown[at] else known.good[key]
        for at, key in enumerate(keys)
        if not shown[at] or not (unsure or at in bad)
    }
    return KnownBlocks(words=words, good=good)


def _shown(
    keys: Sequence[tuple[frozenset[str], str, str]],
    good: Mapping[tuple[frozenset[str], str, str], int],
) -> list[bool]:
    """Which parts of a text are to be read; those behind such a one as well."""
    shown = [key not in good for key in keys]
    shown = [one or before for one, before in zip(shown, [True, *shown], strict=False)]
    # What stands first says whether the text is a grammar; and a text does not end before its end.
    shown[0] = shown[-1] = True
    tokens = sum(good[key] for key, one in zip(keys, shown, strict=True) if not one)
    read = [block for (_, block, _), one in zip(keys, shown, strict=True) if one]
    # A text with so many tokens, or such a mark, is only understood as a whole.
    many = tokens + sum(map(len, read)) > MAX_TOKENS
    whole = many or any(_REMARK in block for block in read) or not _HEAD.match(keys[0][1])
    return [True] * len(keys) if whole else shown


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

    def __init__(self, source: Source, report: Report, kept: frozenset[str]) -> None:
        self.source = source
        self.report = report
        self.kept = kept
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
            kept=self.kept,
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
        """Splits tokens into a statement and what follows it, which is no statement."""
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
    except UnexpectedToken:
        return at, None


def _expected(tokens: Sequence[Lexeme]) -> frozenset[str]:
    """Which kinds of token may follow `tokens`, themselves well formed."""
    parser = Parser()
    for token in tokens:
        parser.feed(token)
    return parser.expected()


class ReservedNames:
    """Reserved words that stand for names; each is reported once, with the other places."""

    def __init__(self) -> None:
        """Begin a text."""
        self._places: dict[str, list[tuple[Region, bool]]] = {}

    def add(self, token: Lexeme, expected: frozenset[str]) -> None:
        """The word stands where a name may, in quotes too if a string may."""
        place = token.region, "STRING" in expected
        self._places.setdefault(str(token), []).append(place)

    def report(self, report: Report) -> None:
        """Report all of them."""
        for word, places in self._places.items():
            first, *others = [region for region, _ in places]
            quoted = all(may for _, may in places)
            hint = f'write "{word}" in quotes' if quoted else "choose another name"
            more = "it stands for a name here too"
            notes = [(more, region) for region in others[:_MOST_NOTES]]
            message = f"'{word}' is a reserved word, and cannot be a name"
            report.error("TCC111", first, message, hint, notes)


def open_brackets(tokens: Sequence[Lexeme]) -> list[Lexeme]:
    """The brackets that are open behind well-formed tokens, the innermost last."""
    opened: list[Lexeme] = []
    for token in tokens:
        if token.type in _CLOSING:
            opened.append(token)
        elif opened and token.type == _CLOSING[opened[-1].type]:
            opened.pop()
    return opened


def report_unexpected(
    stuck: Stuck, source: Source, reserved: ReservedNames, report: Report
) -> bool:
    """Report where a statement stopped; True where the next one belongs to it."""
    if stuck.at < len(stuck.tokens):
        _report_token(stuck, stuck.tokens[stuck.at], reserved, report)
        return False
    last = stuck.tokens[-1].region
    following = stuck.following
    together = following is not None and same_line(source, last, following.region)
    if following is not None and together and "NAME" in stuck.expected:
        reserved.add(following, stuck.expected)
        return True
    text = "the end of the text" if following is None else f"the statement {shown(following)}"
    if stuck.opened:
        _report_open(stuck, text, Region(last.source, last.end, last.end + 1), report)
        return together
    message = f"found {text}; expected {expectation(stuck.expected)}"
    report.error("TCC101", Region(last.source, last.end, last.end + 1), message, hint_for(stuck))
    return together


def _report_token(stuck: Stuck, token: Lexeme, reserved: ReservedNames, report: Report) -> None:
    expected = stuck.expected
    if token.type == "ANY" and stuck.kind(-1) == "_COLON" and stuck.keyword == "TOOL":
        message = "'any' is a reserved word, and no value"
        hint = "for any value write a type behind a semicolon: (..; name: json)"
        report.error("TCC316", token.region, message, hint)
    elif token.type == "AFTER" and stuck.keyword == "FORBID":
        message = "found 'after'; a `forbid` has 'with' or 'before'"
        report.error("TCC101", token.region, message, hint_for(stuck))
    elif token.type == "ANY" and stuck.keyword in ("ACCEPT", "REJECT"):
        message = "found 'any'; an example names its calls"
        report.error("TCC101", token.region, message, hint_for(stuck))
    elif "NAME" in expected and token.type != "STRING" and str(token) in RESERVED:
        reserved.add(token, expected)
    elif _is_unclosed(stuck, token):
        _report_open(stuck, shown(token), token.region, report)
    elif token.type in ("RPAR", "RBRACE") and not stuck.opened:
        mark = str(token)
        opening = "(" if mark == ")" else "{"
        message = f"this '{mark}' closes nothing: no '{opening}' is open"
        report.error("TCC114", token.region, message, "take it away, or write what it closes")
    else:
        message = f"found {shown(token)}; expected {expectation(expected)}"
        report.error("TCC101", token.region, message, hint_for(stuck))


def _is_unclosed(stuck: Stuck, token: Lexeme) -> bool:
    """Whether the innermost bracket was to be closed before this token."""
    if not stuck.opened:
        return False
    closing = _CLOSING[stuck.opened[-1].type]
    if token.type in ("RPAR", "RBRACE"):
        return token.type != closing
    ends = token.type in _ENDS_PARENS.get(stuck.keyword, ())
    return closing == "RPAR" and closing in stuck.expected and ends


def _report_open(stuck: Stuck, found: str, before: Region, report: Report) -> None:
    opening = stuck.opened[-1]
    closing = _MARKS[_CLOSING[opening.type]]
    what = " of its statement"
    if opening.type == "LBRACE" and stuck.keyword == "TOOL" and len(stuck.tokens) > 1:
        what = f" of tool {quote(str(stuck.tokens[1]))}"
    elif opening.type == "_ARGS":
        what = " of the arguments"
    message = f"this '{_MARKS[opening.type]}' is not closed"
    hint = f"write '{closing}' at the end{what}"
    notes = [(f"found {found}, and no '{closing}' before it", before)]
    report.error("TCC114", opening.region, message, hint, notes)


def shown(token: Lexeme) -> str:
    """A token as a message names it."""
    return "a string" if token.type == "STRING" else quote(str(token))


def same_line(source: Source, one: Region, other: Region) -> bool:
    """Whether `other` begins on the line on which `one` ends."""
    return source.place(one.end)[0] == source.place(other.start)[0]


def begins_line(tokens: Sequence[Lexeme], at: int, source: Source) -> bool:
    """Whether the token number `at` is a name and the first of its line."""
    if tokens[at].type != "NAME":
        return False
    return at == 0 or not same_line(source, tokens[at - 1].region, tokens[at].region)


def close_keyword(token: Lexeme) -> str | None:
    """The keyword that a name may be meant for."""
    text = str(token)[:32].lower()
    text = _OTHERS.get(text, text)
    from difflib import get_close_matches

    close = get_close_matches(text, OPENERS, n=1, cutoff=0.7)
    return close[0] if close else None


# What other languages call these statements.
_OTHERS = {
    "import": "use", "include": "use", "function": "tool", "action": "tool", "allow": "accept",
    "deny": "forbid", "initial": "start", "assert": "expect", "max": "limit",
}  # fmt: skip


def report_no_statement(token: Lexeme, report: Report) -> None:
    """Report a token where a statement begins."""
    words = ", ".join(f"'{word}'" for word in OPENERS[:-1])
    close = close_keyword(token)
    exact = close == str(token)
    if exact and close is not None:
        hint = f"{quote(str(token))} begins a statement that reads as {FORMS[close.upper()]}"
    elif close is not None:
        hint = f"did you mean {quote(close)}?"
    else:
        hint = 'a grammar begins with: grammar NAME version "1.0"'
    expected = "expected a statement"
    if close is None:
        expected += f", which starts with {words} or '{OPENERS[-1]}'"
    report.error("TCC101", token.region, f"found {shown(token)}; {expected}", hint)

"""A statement that cannot go on: what is reported, and what is left of the statements around it.

One mistake gives one message.  Where a bracket is missing it points at the other one; where a
reserved word stands for a name it says so, once a word; else it says what was expected.
Normative text: docs/spec/language.md, section 9.  Cost: linear in the statement.
"""

from __future__ import annotations

from collections.abc import Sequence

from tcc_compiler.language.diagnostics import Report, quote
from tcc_compiler.language.source import Source
from tcc_compiler.language.spans import Region
from tcc_compiler.language.syntax.lexemes import Lexeme
from tcc_compiler.language.syntax.mends import Stuck, hint_for
from tcc_compiler.language.syntax.words import OPENERS, RESERVED, expectation

_CLOSING = {"LPAR": "RPAR", "_ARGS": "RPAR", "LBRACE": "RBRACE"}
_MARKS = {"LPAR": "(", "_ARGS": "(", "LBRACE": "{", "RPAR": ")", "RBRACE": "}"}
# Where one of these stands inside a '(', the ')' is missing before it.
_ENDS_PARENS = {"LIMIT": ("LE", "GE", "EQEQ"), "TOOL": ("LBRACE",)}
_MOST_NOTES = 5


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
    if exact:
        hint = f'after {quote(str(token))} comes a string in double quotes: currency "EUR"'
    elif close is not None:
        hint = f"did you mean {quote(close)}?"
    else:
        hint = 'a grammar begins with: grammar NAME version "1.0"'
    expected = "expected a statement"
    if close is None:
        expected += f", which starts with {words} or '{OPENERS[-1]}'"
    report.error("TCC101", token.region, f"found {shown(token)}; {expected}", hint)

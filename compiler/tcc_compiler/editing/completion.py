"""Completion: the keywords and declared names that may be written at a place in a text.

The tables of the parser give the keywords. In a policy, a placeholder name is written at the place,
and the statement is completed. The resolver then tries which names fit in place of the placeholder
(:mod:`tcc_compiler.editing.words`). So there is no second list of keywords or of meanings.
Normative text: docs/spec/language.md. Cost: linear in the text of the statement before the place,
and one trial for each name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal, TypeAlias

from tcc_certs.policy.kinds import Fault
from tcc_certs.policy.nodes import FUNCTIONS, TOTALS, UNITS, Name, written
from tcc_certs.policy.plans import PASSABLE
from tcc_certs.values.fields import Field, ListType
from tcc_compiler.editing.project import Project
from tcc_compiler.editing.words import (
    HOLE,
    Hole,
    NotedKinds,
    described,
    read_statement,
    stated_in,
    without_parameters,
)
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.names.nodes import Builder
from tcc_compiler.names.statements import definition_of
from tcc_compiler.syntax.messages import STARTERS
from tcc_compiler.syntax.parse import Unfinished, parse, unfinished
from tcc_compiler.syntax.tables import END
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Token

Sort: TypeAlias = Literal[
    "word", "tool", "rule", "let", "local", "field", "value", "state", "attribute", "shape"
]
MOST = 2000  # the most completions that are offered
_PREFIX = re.compile(r"[A-Za-z0-9_]*\Z")
_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+("?)|#[^\n]*+|`[^`\n]*+(`?)')
_OPENS = re.compile(rf"^(?:{'|'.join(STARTERS)})\b", re.MULTILINE)
_IS_WORD = re.compile("[a-z_]+")
_POLICIES = ("before", "finally", "forbid", "after", "limit", "let", "expect")
_NAMES = ("NAME", "QNAME")
# Statements that a grammar has at most once, by their keywords.
_ONCE = {
    "grammar": "header", "currency": "currency", "plan": "plan", "start": "begin", "goal": "goal",
}  # fmt: skip
# The most common keywords, offered first and in this order.
_FIRST = (
    "tool", "before", "require", "forbid", "limit", "let", "given", "after", "finally", "no",
    "every", "unused",
)  # fmt: skip
# Keywords of conditions, grouped by the kinds of places where they may be written.
_PREFIXES = frozenset({"not", "no", "every", "unused"})
_TERMS = frozenset({"condition", "any", "term", "operand"})
_SCALARS = ("hour", "weekday", "day", "host")
_SPANS = ("10 m", "1 h", "24 h", "30 d")
_AGGREGATES = ("last", "count", "sum", "min", "max")


@frozen(kw_only=False)
class Completion:
    """Something that may be written at the place.

    Attributes:
        sort: its kind.
        text: the text to insert.
        about: a remark to show with it, such as the type of a field.
    """

    sort: Sort
    text: str
    about: str = ""


def completion(
    text: str, offset: int, project: Project, check_time: Callable[[], None] | None = None
) -> tuple[int, tuple[Completion, ...]]:
    """Return the start of the word to replace, and what may be written in its place.

    Args:
        text: the text of the grammar.
        offset: the place, in characters from the start of the text.
        project: has the declared names.
        check_time: called every few hundred steps. It ends the work by raising.
    """
    first = text.rfind("\n", 0, offset) + 1
    line = text[first:offset]
    found = _PREFIX.search(line)
    start = offset - (0 if found is None else len(found.group()))
    mark = _open_mark(line)
    if mark is not None:
        if line[mark] != "`":
            return start, ()
        start = first + mark  # an unclosed name in backticks
    before = text[_begins(text, start) : start]
    source = source_of(before, "<text>")
    report = Report([source], check_time)
    here = unfinished(source, report)
    is_first = not text[first:start].strip()
    offers = dict.fromkeys(_offers(before, here, project, check_time, is_first))
    return start, tuple(offers)[:MOST]


def _begins(text: str, offset: int) -> int:
    """Return where the statement before a character begins, by the keyword that starts its line."""
    starts = [found.start() for found in _OPENS.finditer(text, 0, offset)]
    return starts[-1] if starts else 0


def _open_mark(line: str) -> int | None:
    """Return where a comment, string or quoted name begins that the line leaves open."""
    marks = list(_MARK.finditer(line))
    if not marks or marks[-1].end() < len(line):
        return None
    last = marks[-1]
    closed = last[1] or last[2]
    return None if closed else last.start()


def _offers(
    before: str,
    here: Unfinished,
    project: Project,
    check_time: Callable[[], None] | None,
    is_first: bool,
) -> Iterator[Completion]:
    tokens, accepted = here.tokens, here.accepted
    hole: Hole | None = None
    words = _words(here, project, is_first)
    starters = [word for word in words if word in STARTERS]
    yield from (Completion("word", word) for word in starters)
    operand = bool(tokens) and tokens[0].text in _POLICIES and "NAME" in accepted
    if tokens and accepted & {*_NAMES, "NUMBER", "STRING"}:
        if tokens[0].text in _POLICIES:
            hole = _hole(before, here, project, check_time)
            yield from _in_policy(here, hole, project)
        else:
            yield from _names(tokens, accepted, project)
    for word in words:
        if word not in starters and (not operand or _word_fits(word, hole)):
            yield Completion("word", word)


def _words(here: Unfinished, project: Project, is_first: bool) -> list[str]:
    """Return the keywords that the grammar accepts and that are useful, the most useful first."""
    tokens, texts = here.tokens, [token.text for token in here.tokens]
    words = [kind for kind in sorted(here.accepted) if _IS_WORD.fullmatch(kind)]
    if texts[-1:] == ["within"]:
        return [*_SPANS]
    if texts[-1:] == ["version"] and texts[0] == "grammar":
        return ['"1.0"']
    match texts[:1]:
        case ["limit"]:
            words = _limit_words(texts, words)
        case ["given"] if "from" in texts:
            words = [word for word in words if word in STARTERS]
        case ["finally"]:
            words = [word for word in words if word != "ask"]
    if not is_first and texts[:1] != ["expect"]:
        # A statement begins on a new line; only the clauses of a block may follow on the same line.
        kept = ("let",) if tokens and END not in here.accepted else ()
        words = [word for word in words if word not in STARTERS or word in kept]
    known = {one.kind for one in project.statements if one.number == 0}
    words = [word for word in words if _ONCE.get(word) not in known]
    if "header" not in known and "grammar" in words:
        words = ["grammar", *words]
    return sorted(dict.fromkeys(words), key=lambda word: (word in UNITS, _rank(word, known)))


def _rank(word: str, known: set[str]) -> int:
    if word == "grammar" and "header" not in known:
        return -1
    return _FIRST.index(word) if word in _FIRST else len(_FIRST)


def _limit_words(texts: Sequence[str], words: list[str]) -> list[str]:
    """Return the words that may continue a limit after the tokens `texts`."""
    if len(texts) == 1:
        return [*TOTALS, "count", "sum"]
    total = texts[1] in TOTALS
    if "<=" not in texts:
        inside = texts.count("(") > texts.count(")")
        if inside or texts[-1] in ("per", ","):
            return words
        return ["<=", *(word for word in words if word == "per" and not total)]
    kept = (*STARTERS, "because", *(() if total else ("across", "in", "match", "sessions")))
    kept += tuple(UNITS) if texts[1] == "latency" else ()
    return [word for word in words if word in kept or texts[-1] in ("in", "across")]


def _word_fits(word: str, hole: Hole | None) -> bool:
    """Return whether a keyword of conditions makes sense at the hole."""
    if hole is None:
        return word not in (*_PREFIXES, "same", "match")
    condition = bool(hole.wants & {"condition", "any"})
    match word:
        case "same":
            return condition and hole.it and hole.this
        case "unused":
            return condition and hole.decides
        case "match":
            return bool(hole.wants & _TERMS)
        case _:
            return word not in _PREFIXES or condition


def _hole(
    before: str, here: Unfinished, project: Project, check_time: Callable[[], None] | None
) -> Hole | None:
    """Return what the resolver finds out about the place; None if no statement can be completed."""
    if here.ending is None:
        return None
    source = source_of(f"{before}{HOLE} {here.ending}\n", "<text>")
    report = Report([source], check_time)
    b = Builder(parse(source, 0, report), report)
    kinds = NotedKinds(project.words.core, check_time)
    for tree in b.file.statements:
        if tree.kind == "let":
            with suppress(Fault):
                kinds.check_let(without_parameters(definition_of(b, tree)))
        for stated in stated_in(b, tree):
            read_statement(kinds, stated, b)
    return kinds.hole


def _in_policy(here: Unfinished, hole: Hole | None, project: Project) -> Iterator[Completion]:
    tokens, accepted = here.tokens, here.accepted
    texts = [token.text for token in tokens]
    if texts == ["limit"]:
        return
    if texts[0] == "let" and "=" not in texts and "EQ" not in [one.kind for one in tokens]:
        return  # a new name is being written
    if "NAME" not in accepted or (texts[0] == "limit" and texts[1] in TOTALS):
        return
    if hole is None:
        if texts[-1] != ".":
            yield from _all_of("tool", project, accepted)
            yield from _all_of("let", project, accepted)
        return
    if "same" in accepted and _word_fits("same", hole):
        yield Completion("word", "same")
    for offer in hole.offers:
        plain = offer.field is not None and not isinstance(offer.field.type, ListType)
        text = _written(offer.text, accepted, FUNCTIONS) if offer.name else offer.text
        if offer.name and plain:  # no bracket can follow a plain field, so it is no function
            text = _written(offer.text, accepted)
        about = "" if offer.field is None or offer.what == "value" else described(offer.field)
        yield Completion(offer.what, text, about)
    if hole.wants <= {"member", "pattern"}:
        return
    if texts[0] == "let" and texts[2:3] == ["("]:
        until = texts.index(")") if ")" in texts else len(texts)
        yield from (Completion("local", name) for name in texts[3:until:2])
    if "set" in hole.wants:
        yield Completion("word", "any")
    for word in ("no", "every", "unused"):
        if word in accepted and _word_fits(word, hole):
            yield Completion("word", word)
    if hole.wants & _TERMS:
        yield from (Completion("word", word) for word in (*_AGGREGATES, *_SCALARS))
    if hole.wants & {"source", "condition", "any"}:
        yield Completion("word", "any")
        yield Completion("word", "pairs")
        if texts[-2:] == ["count", "("]:
            yield Completion("word", "distinct")
    if hole.this:
        yield Completion("word", "this")
    if hole.it:
        yield Completion("word", "it")
    if hole.wants & (_TERMS | {"source"}) and project.defined("attribute"):
        yield Completion("word", "session")
    if hole.wants & {"term", "any"}:
        yield Completion("word", "now")


def _written(name: str, accepted: frozenset[str], functions: Collection[str] = ()) -> str:
    """Return a name as text, in backticks where it could be read as a keyword or function."""
    text = written([Name(name)])
    taken = name in accepted or name in functions
    return f"`{name}`" if text == name and taken else text


def _names(
    tokens: Sequence[Token], accepted: frozenset[str], project: Project
) -> Iterator[Completion]:
    statement = tokens[0].text
    if statement == "tool":
        yield from _in_tool(tokens, project)
    elif statement == "given":
        yield from _in_given(tokens, project)
    elif statement == "pass":
        said = [token.text for token in tokens]
        yield from (Completion("word", word) for word in PASSABLE if word not in said)
    elif statement in ("start", "goal"):
        yield from (Completion("state", *key) for key in project.defined("state"))
    elif statement in ("plan", "rule", "accept", "reject"):
        yield from _in_plan(tokens, accepted, project)


def _in_given(tokens: Sequence[Token], project: Project) -> Iterator[Completion]:
    """Yield tools and their fields after ``given NAME from``, and shapes after ``object``."""
    texts = [token.text for token in tokens]
    if texts[-1] == "object":
        yield from _all_of("shape", project, frozenset())
    elif "from" in texts and texts[-1] == ".":
        for name in project.fields_of(name_value(tokens[-2])):
            yield Completion("field", written([".", Name(name)])[1:])
    elif "from" in texts:
        yield from _all_of("tool", project, frozenset())


def _all_of(
    kind: Literal["tool", "rule", "let", "shape"], project: Project, accepted: frozenset[str]
) -> Iterator[Completion]:
    names = [name for (name,) in project.defined(kind)]
    yield from (Completion(kind, _written(name, accepted)) for name in names)


def _in_plan(
    tokens: Sequence[Token], accepted: frozenset[str], project: Project
) -> Iterator[Completion]:
    opened = _opened(tokens)
    if opened is not None and _is_name(tokens[opened - 1]):
        # A bracket directly after a name opens its arguments, even if none is written yet.
        fields = project.fields_of(name_value(tokens[opened - 1]))
        if fields:
            yield from _in_arguments(fields, tokens[opened + 1 :])
            return
    if "NAME" in accepted:
        yield from _all_of("tool", project, accepted)
        yield from _all_of("rule", project, accepted)
        yield from _all_of("let", project, accepted)


def _in_arguments(fields: Mapping[str, Field], part: Sequence[Token]) -> Iterator[Completion]:
    """Yield the names of listed fields; after ``f =`` the values of the field f."""
    commas = [at for at, token in enumerate(part) if token.kind == ","]
    current = part[commas[-1] + 1 :] if commas else part
    if len(current) > 1 and current[-1].kind in ("=", "|", "EQ"):
        field = fields.get(name_value(current[0]))
        for value in field.values if field is not None else ():
            if value not in ("", "*"):
                yield Completion("value", value)
    elif len(current) < 2:
        given = {name_value(token) for token in part if _is_name(token)}
        for name, field in fields.items():
            if field.type is None and name not in given:
                yield Completion("field", written([Name(name)]), described(field))


def _is_name(token: Token) -> bool:
    return token.kind in _NAMES


def _opened(tokens: Sequence[Token]) -> int | None:
    """Return the index of the bracket around the last token, if it directly follows a token."""
    depth = 0
    for at in range(len(tokens) - 1, 0, -1):
        text = tokens[at].text
        depth += (text == ")") - (text == "(")
        if depth < 0:
            return at if tokens[at - 1].end == tokens[at].start else None
    return None


def _in_tool(tokens: Sequence[Token], project: Project) -> Iterator[Completion]:
    """Yield shapes and states for the head of a tool; in its braces fields and values of `when`."""
    texts = [token.text for token in tokens]
    if "{" not in texts:
        depth = texts.count("(") - texts.count(")")
        if depth == 0 and texts[-1] in ("->", ":"):
            yield from (Completion("state", *key) for key in project.defined("state"))
        elif texts[-1] in ("gives", "object"):
            yield from _all_of("shape", project, frozenset())
        return
    declared = _declared(tokens[: texts.index("{")])
    if "when" in texts and texts[-1] in ("=", "|"):
        at = len(texts) - 1 - texts[::-1].index("when")
        for value in declared.get(name_value(tokens[at + 1]), ()):
            yield Completion("value", value)
    elif texts[-1] not in ("bind", "doc", "model", "mcp", "python", "adapter"):
        yield from (Completion("field", written([Name(name)])) for name in declared)


def _declared(tokens: Sequence[Token]) -> dict[str, list[str]]:
    """Return the fields of a tool that is being written, with their listed values."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for at, token in enumerate(tokens[1:], 1):
        if token.text == ":" and at > 1:
            name = tokens[at - 2] if tokens[at - 1].text == "?" else tokens[at - 1]
            current = found.setdefault(name_value(name), []) if _is_name(name) else None
        elif token.text in (",", ")"):
            current = None
        elif current is not None and token.kind in ("NAME", "STRING", "NUMBER"):
            current.append(token.text)
    return found

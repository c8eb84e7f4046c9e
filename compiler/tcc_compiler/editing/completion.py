"""What may stand at a place of a text: words of the language, and names that are declared.

The tables of the parser say which words may come next, so there is no second list of them.
Normative text: docs/spec/language.md.  Cost: linear in the text of the statement before the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from tcc_certs.policy.nodes import FUNCTIONS, TOTALS, Name, written
from tcc_certs.policy.plans import PASSABLE
from tcc_compiler.editing.project import Project
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Report
from tcc_compiler.language.source import source_of
from tcc_compiler.syntax.messages import STARTERS
from tcc_compiler.syntax.parse import unfinished
from tcc_compiler.syntax.tokens import name_value
from tcc_compiler.syntax.tree import Token

Sort: TypeAlias = Literal["word", "tool", "rule", "let", "parameter", "value", "state", "attribute"]
MOST = 2000  # that are offered
_PREFIX = re.compile(r"[A-Za-z0-9_]*\Z")
_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+("?)|#[^\n]*+')
_OPENS = re.compile(rf"^(?:{'|'.join(STARTERS)})\b", re.MULTILINE)
_IS_WORD = re.compile("[a-z_]+")
_POLICIES = ("before", "finally", "forbid", "after", "limit", "let", "expect", "given")
_RESTRICTS = ("before", "forbid", "after")
_NAMES = ("NAME", "QNAME")


@frozen(kw_only=False)
class Completion:
    """Something that may stand here: what it is, and its text."""

    sort: Sort
    text: str


def completion(
    text: str, offset: int, project: Project, check_time: Callable[[], None] | None = None
) -> tuple[int, tuple[Completion, ...]]:
    """What may stand at a character, and where what is written of it begins.

    Args:
        project: the names that are declared.
        check_time: called every few hundred steps; it ends the work by raising.
    """
    line = text[text.rfind("\n", 0, offset) + 1 : offset]
    found = _PREFIX.search(line)
    start = offset - (0 if found is None else len(found.group()))
    if _in_comment_or_string(line):
        return start, ()
    before = text[_begins(text, start) : start]
    source = source_of(before, "<text>")
    tokens, accepted = unfinished(source, Report([source], check_time))
    offers = dict.fromkeys(_offers(tokens, accepted, project))
    return start, tuple(offers)[:MOST]


def _begins(text: str, offset: int) -> int:
    """Where the statement before a character begins, by the first word of its line."""
    starts = [found.start() for found in _OPENS.finditer(text, 0, offset)]
    return starts[-1] if starts else 0


def _in_comment_or_string(line: str) -> bool:
    marks = list(_MARK.finditer(line))
    if not marks or marks[-1].end() < len(line):
        return False
    last = marks[-1]
    return last[0].startswith("#") or not last[1]


def _offers(
    tokens: Sequence[Token], accepted: frozenset[str], project: Project
) -> Iterator[Completion]:
    if accepted & {*_NAMES, "NUMBER", "STRING"} and tokens:
        yield from _names(tokens, accepted, project)
    words = [kind for kind in sorted(accepted) if _IS_WORD.fullmatch(kind)]
    yield from (Completion("word", word) for word in words)


def _names(
    tokens: Sequence[Token], accepted: frozenset[str], project: Project
) -> Iterator[Completion]:
    statement, last = tokens[0].text, tokens[-1]
    if statement == "tool":
        yield from _in_tool(tokens, project)
    elif statement == "pass":
        said = [token.text for token in tokens]
        yield from (Completion("word", word) for word in PASSABLE if word not in said)
    elif statement in ("start", "goal"):
        yield from (Completion("state", *key) for key in project.defined("state"))
    elif statement in ("plan", "rule", "accept", "reject"):
        yield from _in_plan(tokens, accepted, project)
    elif statement in _POLICIES and "NAME" in accepted:
        yield from _in_policy(tokens, last, project)


def _all_of(kind: Literal["tool", "rule", "let"], project: Project) -> Iterator[Completion]:
    yield from (Completion(kind, written([Name(*key)])) for key in project.defined(kind))


def _in_plan(
    tokens: Sequence[Token], accepted: frozenset[str], project: Project
) -> Iterator[Completion]:
    opened = _opened(tokens)
    if opened is not None and _is_name(tokens[opened - 1]):
        # Right behind a name a bracket opens its arguments, though none is written yet.
        tool = name_value(tokens[opened - 1])
        part = tokens[opened + 1 :]
        if any(tool == owner for owner, _ in project.defined("parameter")):
            yield from _in_arguments(tool, part, project)
            return
    if "NAME" in accepted:
        yield from _all_of("tool", project)
        yield from _all_of("rule", project)
        yield from _all_of("let", project)


def _in_arguments(tool: str, part: Sequence[Token], project: Project) -> Iterator[Completion]:
    """Names of fields, or behind ``f =`` the values of the field."""
    commas = [at for at, token in enumerate(part) if token.kind == ","]
    current = part[commas[-1] + 1 :] if commas else part
    if len(current) > 1 and current[-1].kind in ("=", "|", "EQ"):
        yield from _values(tool, name_value(current[0]), project)
    elif len(current) < 2:
        given = {name_value(token) for token in part if _is_name(token)}
        listed = {key[1] for key in project.defined("value") if key[0] == tool}
        for name in [name for owner, name in project.defined("parameter") if owner == tool]:
            if name in listed and name not in given:
                yield Completion("parameter", written([Name(name)]))


def _in_policy(tokens: Sequence[Token], last: Token, project: Project) -> Iterator[Completion]:
    if len(tokens) == 1 and last.text == "limit":
        yield from (Completion("word", word) for word in (*TOTALS, "count", "sum"))
        return
    tools = {name for (name,) in project.defined("tool")}
    named = [name_value(token) for token in tokens if _is_name(token)]
    around = [name for name in dict.fromkeys(reversed(named)) if name in tools]
    if last.kind == ".":
        of = name_value(tokens[-2]) if _is_name(tokens[-2]) else ""
        if of == "session":
            yield from (
                Completion("attribute", written([Name(*key)]))
                for key in project.defined("attribute")
            )
        else:
            yield from _parameters([of] if of in tools else around, project)
        return
    if last.text in ("=", "!=", "|") and len(tokens) > 1:
        label = next((name_value(t) for t in reversed(tokens) if _is_name(t)), "")
        for tool in around:
            yield from _values(tool, label, project)
    yield from _all_of("tool", project)
    yield from _all_of("let", project)
    if len(tokens) == 1 and last.text in _RESTRICTS:
        yield Completion("word", "any")
        return
    yield from _parameters(around, project)
    yield from (Completion("word", word) for word in (*FUNCTIONS, "this", "it", "session"))


def _is_name(token: Token) -> bool:
    return token.kind in _NAMES


def _opened(tokens: Sequence[Token]) -> int | None:
    """The place of the bracket that the last token is in; it follows another token directly."""
    depth = 0
    for at in range(len(tokens) - 1, 0, -1):
        text = tokens[at].text
        depth += (text == ")") - (text == "(")
        if depth < 0:
            return at if tokens[at - 1].end == tokens[at].start else None
    return None


def _parameters(tools: Sequence[str], project: Project) -> Iterator[Completion]:
    for owner, name in project.defined("parameter"):
        if owner in tools:
            yield Completion("parameter", written([Name(name)]))


def _values(tool: str, parameter: str, project: Project) -> Iterator[Completion]:
    for found in project.occurrences:
        if found.kind == "value" and found.defines and found.key[:2] == (tool, parameter):
            source = project.sources[found.region.source]
            yield Completion("value", source.text[found.region.start : found.region.end])


def _in_tool(tokens: Sequence[Token], project: Project) -> Iterator[Completion]:
    """States of the signature; in the braces the fields, and behind ``when p =`` its values."""
    texts = [token.text for token in tokens]
    if "{" not in texts:
        depth = texts.count("(") - texts.count(")")
        if depth == 0 and texts[-1] in ("->", ":"):
            yield from (Completion("state", *key) for key in project.defined("state"))
        return
    declared = _declared(tokens[: texts.index("{")])
    if "when" in texts and texts[-1] in ("=", "|"):
        at = len(texts) - 1 - texts[::-1].index("when")
        for value in declared.get(name_value(tokens[at + 1]), ()):
            yield Completion("value", value)
    elif texts[-1] not in ("bind", "doc", "model", "mcp", "python", "adapter"):
        yield from (Completion("parameter", written([Name(name)])) for name in declared)


def _declared(tokens: Sequence[Token]) -> dict[str, list[str]]:
    """The fields of a tool that is being written, with the values that are listed."""
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

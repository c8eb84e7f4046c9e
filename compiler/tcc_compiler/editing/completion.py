"""What may stand at a place of a text: words of the language, and names that are declared.

The automaton of the parser says which words may come next, so there is no second list of them.
Normative text: docs/spec/language.md.  Cost: linear in the text before the place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeAlias

from tcc_certs.core.model import PASSABLE
from tcc_certs.formats.codec import written
from tcc_compiler.editing.project import Project
from tcc_compiler.frozen import frozen
from tcc_compiler.language import ast, diagnostics
from tcc_compiler.language.source import source_of
from tcc_compiler.language.syntax.parser import Parser, UnexpectedToken
from tcc_compiler.language.syntax.tokens import Lexeme, lexeme, split
from tcc_compiler.language.syntax.tool_actions import TooDeep
from tcc_compiler.language.syntax.words import OPENERS, PUNCTUATION, TYPES, UNITS

Sort: TypeAlias = Literal["word", "tool", "rule", "parameter", "value", "state", "attribute"]
MOST = 2000  # that are offered
_PREFIX = re.compile(r"[A-Za-z0-9_]*\Z")
_WHOLE = 1 << 12  # characters that are read from the beginning in any case
_STATEMENTS = 32
_OPENS = re.compile(rf"^(?:{'|'.join(OPENERS)})\b", re.MULTILINE)
_MARK = re.compile(r'"(?:[^"\\\n]++|\\[^\n])*+("?)|#[^\n]*+')
_NO_WORDS = frozenset(("NAME", "NUMBER", "STRING", "_ARGS", "$END", *PUNCTUATION.values()))
_VALUES = ("NAME", "NUMBER", "STRING")


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
    chunks = split(before, 0, diagnostics.Report([source_of(before, "<text>")], check_time))
    tokens = _with_arguments(chunks[-1].tokens) if chunks else []
    offers = dict.fromkeys(_offers(tokens, project))
    return start, tuple(offers)[:MOST]


def _begins(text: str, offset: int) -> int:
    """Where to begin to read what stands before a character: some statements before its own.

    A line may begin with a keyword that is a name there; what follows is cut into statements
    rightly again long before so many.
    """
    if offset <= _WHOLE:
        return 0
    starts = deque((m.start() for m in _OPENS.finditer(text, 0, offset)), maxlen=_STATEMENTS)
    return starts[0] if len(starts) == _STATEMENTS else 0


def _in_comment_or_string(line: str) -> bool:
    marks = list(_MARK.finditer(line))
    if not marks or marks[-1].end() < len(line):
        return False
    last = marks[-1]
    return last[0].startswith("#") or not last[1]


def _with_arguments(tokens: Sequence[Lexeme]) -> list[Lexeme]:
    """The tokens, where a '(' right behind a name opens arguments that are not written yet."""
    made = list(tokens)
    for at in range(1, len(made)):
        name, mark = made[at - 1], made[at]
        joined = name.region.end == mark.region.start and name.type in ("NAME", "STRING")
        if mark.type == "LPAR" and joined and made[0].type != "TOOL" and at + 1 == len(made):
            made[at] = lexeme("_ARGS", "(", mark.region)
    return made


def _offers(tokens: Sequence[Lexeme], project: Project) -> Iterator[Completion]:
    parser = Parser()
    try:
        for token in tokens:
            parser.feed(token)
    except (UnexpectedToken, TooDeep):
        return
    expected = parser.expected()
    if expected & {"NAME", "STRING", "NUMBER"} and tokens:
        yield from _names(tokens, expected, project)
    words = [word for kind in sorted(expected - _NO_WORDS) for word in _words(kind)]
    if not tokens or "$END" in expected:
        words += OPENERS
    yield from (Completion("word", word) for word in words)


def _words(kind: str) -> Sequence[str]:
    return {"UNIT": sorted(UNITS), "TYPE": TYPES, "TIME": ("time", "date")}.get(
        kind, (kind.lower(),)
    )


def _names(
    tokens: Sequence[Lexeme], expected: frozenset[str], project: Project
) -> Iterator[Completion]:
    statement, last = tokens[0].type, tokens[-1].type
    opened = _open_arguments(tokens)
    if statement == "TOOL":
        yield from _in_tool(tokens, project)
    elif opened is not None:
        yield from _in_arguments(tokens, opened, project)
    elif last == "_DOT" and tokens[-2].type == "SESSION":
        yield from _attributes(project, looked=False)
    elif last == "_DOT" and tokens[-2].type not in ("SEEN", "OWN"):
        yield from _parameters(project, tokens[-2])
    elif any(token.type in ("SAME", "PER", "WHERE") for token in tokens):
        names = dict.fromkeys(str(token) for token in tokens if token.type in ("NAME", "STRING"))
        for name in names:
            yield from _parameters(project, name)
        if "NAME" in expected and last != "_DOT":
            yield from _attributes(project, looked=True)
    elif statement == "PASS":
        said = [str(token) for token in tokens]
        if last in ("PASS", "_COMMA"):
            yield from (Completion("word", word) for word in PASSABLE if word not in said)
    elif statement in ("START", "GOAL"):
        yield from (Completion("state", *key) for key in project.defined("state"))
    elif statement == "LET" and (last in ("_EQUAL", "OR", "_PIPE")):
        yield from (Completion("tool", written(*key)) for key in project.defined("tool"))
    elif "NAME" in expected and statement in _WITH_TOOLS:
        yield from (Completion("tool", written(*key)) for key in project.defined("tool"))
        if statement in ("PLAN", "RULE"):
            yield from (Completion("rule", *key) for key in project.defined("rule"))


def _attributes(project: Project, *, looked: bool) -> Iterator[Completion]:
    """Look-ups, which stand for themselves; or the attributes of the session."""
    lets = [one for one in project.statements if isinstance(one, ast.LetStatement) and one.keys]
    looks = {(one.name.text,) for one in lets}
    for key in project.defined("attribute"):
        if (key in looks) is looked:
            yield Completion("attribute", written(*key))


_WITH_TOOLS = frozenset(("PLAN", "RULE", "LIMIT", "REQUIRE", "FORBID", "ACCEPT", "REJECT"))


def _open_arguments(tokens: Sequence[Lexeme]) -> int | None:
    """Where the arguments begin that the last token stands in."""
    depth = 0
    for at in range(len(tokens) - 1, -1, -1):
        kind = tokens[at].type
        depth += (kind == "RPAR") - (kind in ("LPAR", "_ARGS"))
        if depth < 0:
            return at if kind == "_ARGS" else None
    return None


def _in_arguments(tokens: Sequence[Lexeme], opened: int, project: Project) -> Iterator[Completion]:
    tool = tokens[opened - 1]
    part = list(tokens[opened + 1 :])
    commas = [at for at, token in enumerate(part) if token.type == "_COMMA"]
    given = {
        str(token) for token in (*part[:1], *(part[at + 1] for at in commas if at + 1 < len(part)))
    }
    current = part[commas[-1] + 1 :] if commas else part
    if len(current) < 2:
        named = given - {str(token) for token in current}
        yield from (o for o in _parameters(project, tool) if o.text not in map(written, named))
        return
    if current[-1].type in ("_EQUAL", "_PIPE"):
        yield from _values(project, str(tool), str(current[0]))


def _parameters(project: Project, tool: str) -> Iterator[Completion]:
    for owner, name in project.defined("parameter"):
        if owner == tool:
            yield Completion("parameter", written(name))


def _values(project: Project, tool: str, parameter: str) -> Iterator[Completion]:
    for found in project.occurrences:
        if found.kind == "value" and found.defines and found.key[:2] == (tool, parameter):
            source = project.sources[found.region.source]
            yield Completion("value", source.text[found.region.start : found.region.end])


def _in_tool(tokens: Sequence[Lexeme], project: Project) -> Iterator[Completion]:
    """States of the signature; in the braces the parameters, and behind ``when p =`` its values."""
    kinds = [token.type for token in tokens]
    if "LBRACE" not in kinds:
        if kinds[-1] == "_ARROW" or (kinds[-1] == "_COLON" and kinds[-2] in ("RPAR", "NAME")):
            depth = sum((kind == "LPAR") - (kind == "RPAR") for kind in kinds)
            if depth == 0:
                yield from (Completion("state", *key) for key in project.defined("state"))
        return
    declared = _declared(tokens[: kinds.index("LBRACE")])
    if "WHEN" in kinds and kinds[-1] in ("_EQUAL", "_PIPE"):
        at = len(kinds) - 1 - kinds[::-1].index("WHEN")
        yield from (Completion("value", value) for value in declared.get(str(tokens[at + 1]), ()))
    elif kinds[-1] not in ("BIND", "DOC", "MODEL", "MCP", "PYTHON", "ADAPTER", "STRING"):
        yield from (Completion("parameter", written(name)) for name in declared)


def _declared(tokens: Sequence[Lexeme]) -> dict[str, list[str]]:
    """The parameters of a tool that is being written, with the values that are listed."""
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for at, token in enumerate(tokens[1:], 1):
        if token.type == "_COLON" and at > 1:
            name = tokens[at - 2] if tokens[at - 1].type == "QMARK" else tokens[at - 1]
            current = found.setdefault(str(name), []) if name.type in ("NAME", "STRING") else None
        elif token.type in ("_COMMA", "_SEMI", "RPAR"):
            current = None
        elif current is not None and token.type in _VALUES:
            number = token.type == "NUMBER"
            current.append(str(token) if number else written(str(token)))
    return found

"""The root of a run: the root of the artifact, or the state after the given first calls.

Costs, depth, ranks, a cut and its tail are counted from the root.  The digest D includes the first
calls, and they count for the relaxed statements (docs/spec/race.md, sections 2 and 23).

Typed calls are read like patterns of a grammar.  White space is allowed between words, fields may
be in any order, names and values may be quoted, and the last field may be followed by a comma.  A
call that the grammar lacks is returned in canonical form, and the caller looks it up.  A text that
is no call is an error with its position.  Forms: docs/spec/language.md, sections 2 and 6; canonical
texts: docs/spec/core.md, section 5.
Cost: linear in the text; for each call the edges of the current states.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from json import loads
from typing import TYPE_CHECKING, Final

from tcc_certs.errors import clip
from tcc_certs.formats.codec import written
from tcc_certs.policy.core import Core
from tcc_certs.race.digest import child_context
from tcc_certs.values.declared import text_of
from tcc_runtime.artifact.constraints import Held, constraints_of

if TYPE_CHECKING:
    from tcc_certs.statements import Constraints

from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import AfterRefused, SettingsError

# Calls as people type them.

# A quoted part. A backslash escapes the next character. Without a closing quote it extends to the
# end.
_QUOTED = r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)'
_CALL = re.compile(rf'(?:[^\s"()]|{_QUOTED})+(?:\s*\((?:[^"()]|{_QUOTED})*\)?)?|\S', re.DOTALL)
_TOKEN = re.compile(
    r'(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<number>\d+(?:\.\d+)?)'
    r'|(?P<string>"(?:[^"\\\x00-\x1f]|\\.)*")|(?P<mark>[(),=+-])'
)  # fmt: skip
_BLANK = re.compile(r"\s*")
_SHOWN: Final = 120
_MOST_DIGITS: Final = 400


class CallTextError(SettingsError):
    """A text that is no call.

    Args:
        text: the typed text.
        at: the position of the mistake, from 0.
        expected: a description of the texts that may be at this position.
        field: the setting that the message names.
    """

    code = "TCC904"

    def __init__(self, text: str, at: int, expected: str, field: str = "after") -> None:
        self.text, self.at, self.wanted = text, at, expected
        first = max(0, at - _SHOWN // 2)
        shown = "".join(c if c.isprintable() else "?" for c in text[first : first + _SHOWN])
        found = clip(text[at : at + 20], 20) if at < len(text) else "the end of the call"
        super().__init__(field, f"{expected} at character {at + 1} ({self.code})", found)
        self.args = (f"{self.args[0]}\n  {shown}\n  {' ' * (at - first)}^",)

    def __reduce__(self) -> tuple[type[CallTextError], tuple[str, int, str, str]]:  # type: ignore[override]
        return CallTextError, (self.text, self.at, self.wanted, self.field)


def typed_calls(text: str) -> tuple[str, ...]:
    """Split a text into the texts of calls.  White space inside parentheses or quotes does not end
    a call.
    """
    return tuple(_CALL.findall(text))


def read_calls(core: Core, calls: Sequence[str], field: str = "after") -> tuple[str, ...]:
    """Return the canonical texts of typed calls.

    Args:
        field: the setting that an error names.

    Raises:
        CallTextError: TCC904: a text is no call.
    """
    known: dict[str, str] = {}
    for call in calls:
        if call not in known:
            known[call] = _Reader(core, call, field).call()
    return tuple([known[call] for call in calls])


class _Reader:
    """Reads one call, token by token."""

    def __init__(self, core: Core, text: str, field: str) -> None:
        self._core = core
        self._field = field
        self._text = text
        self._kind = self._token = ""
        self._at = self._next = 0
        self._take()

    def call(self) -> str:
        """Return the canonical text of the call."""
        name = self._name("the name of a tool")
        found: dict[str, str] = {}
        if self._token == "(" and self._kind == "mark":
            self._take()
            while self._token != ")":
                at, parameter = self._at, self._name("a parameter, or `)`")
                if parameter in found:
                    raise self._error("each parameter once", at)
                self._mark("=", "`=` and a value")
                found[parameter] = self._value()
                if self._token != ")":
                    self._mark(",", "`,` or `)`")
            self._take()
        if self._kind:
            raise self._error("one call, and a space before the next")
        return self._canonical(name, found)

    def _canonical(self, name: str, found: dict[str, str]) -> str:
        tools = [tool for tool in self._core.tools if tool.name == name]
        order = [field.name for tool in tools for field in tool.listed if field.name in found]
        order += [given for given in found if given not in order]
        inside = ",".join([f"{written(given)}={found[given]}" for given in order])
        return f"{written(name)}({inside})" if inside else written(name)

    def _take(self) -> None:
        blank = _BLANK.match(self._text, self._next)
        self._at = self._next if blank is None else blank.end()
        self._kind = self._token = ""
        if self._at < len(self._text):
            found = _TOKEN.match(self._text, self._at)
            if found is None:
                raise self._error("a name, a number, a text in quotes, or one of ( ) , =")
            self._kind, self._token = str(found.lastgroup), found.group()
            self._next = found.end()

    def _name(self, expected: str) -> str:
        if self._kind not in ("name", "string"):
            raise self._error(expected)
        name = self._string() if self._kind == "string" else self._token
        self._take()
        return name

    def _mark(self, mark: str, expected: str) -> None:
        if self._kind != "mark" or self._token != mark:
            raise self._error(expected)
        self._take()

    def _value(self) -> str:
        at, sign = self._at, self._token if self._token in ("+", "-") else ""
        if sign:
            self._take()
        kind, token = self._kind, self._token
        text = None
        if kind == "number" and len(token) <= _MOST_DIGITS:
            text = text_of(Decimal(("-" if sign == "-" else "") + token))
        elif kind == "string" and not sign:
            text = text_of(self._string())
        elif kind == "name" and not sign:
            text = token
        if text is None:
            raise self._error("a value: a name, a number or a text in quotes", at)
        self._take()
        return text

    def _string(self) -> str:
        try:
            return str(loads(self._token))
        except ValueError:
            raise self._error("a text in quotes as JSON has it") from None

    def _error(self, expected: str, at: int | None = None) -> CallTextError:
        place = self._at if at is None else at
        return CallTextError(self._text, place, expected, self._field)


_NAMED = 5  # calls that a refusal lists


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The root of a run.

    Attributes:
        members: the states, increasing; a single one if the artifact is deterministic.
        digest: D, the digest of the context.
        held: the tally of the relaxed statements, without a cut, which counts from the root.
        rank: the most calls that may follow.
    """

    members: tuple[int, ...]
    digest: bytes
    held: Held
    rank: int


def root_of(artifact: Artifact, after: Sequence[str] = ()) -> Root:
    """Return the root of a run after some typed calls.

    Raises:
        AfterRefused: the calls are no prefix of a plan.
        CallTextError: a text is no call.
        Rejected: a number of an unverified artifact is outside its range.
    """
    members: tuple[int, ...] = (artifact.root,)
    digest: bytes = artifact.root_digest
    held: Held = ()
    statements = constraints_of(artifact, None) if after else None
    for place, text in enumerate(read_calls(artifact.core, after) if after else (), 1):
        found = _step(artifact, statements, members, held, text)
        if found is None:
            allowed = _allowed(artifact, statements, members, held)
            raise AfterRefused(place, text, allowed[:_NAMED], len(allowed))
        members, held = found
        digest = child_context(digest, text.encode())
    rank = max([artifact.rank(q) for q in members])
    return Root(members=members, digest=digest, held=held, rank=rank)


def _step(
    artifact: Artifact,
    statements: Constraints | None,
    members: tuple[int, ...],
    held: Held,
    text: str,
) -> tuple[tuple[int, ...], Held] | None:
    """Return the states after a call, and the tally there; None if the call is not allowed."""
    call = artifact.call_index(text)
    led = {target for q in members for by, target in artifact.edges(q) if by == call}
    if call is None or not led:
        return None
    after = held if statements is None else statements.step(held, call)
    return None if after is None else (tuple(sorted(led)), after)


def _allowed(
    artifact: Artifact, statements: Constraints | None, members: tuple[int, ...], held: Held
) -> list[str]:
    """Return the calls that are allowed at these states, in order."""
    return [
        artifact.texts[call]
        for call, _ in artifact.steps(members)
        if statements is None or statements.step(held, call) is not None
    ]

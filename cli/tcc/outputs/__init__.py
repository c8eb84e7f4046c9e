"""Kinds of values and shared objects that declare the documents of ``--json``.

The modules of this package declare the documents.  A command, or the function that it calls in
:mod:`tcc.library`, creates one.

A document is an :class:`Output`, and an object in it a :class:`DocumentPart`.  Both are msgspec
structs without unknown members, and their members are printed in the declared order.  A member that
may be missing has the type `T | UnsetType`.
Numbers that may exceed 2^53, or are not integers, are decimal strings.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, to_builtins
from msgspec.json import Encoder, format as laid_out

T = TypeVar("T")

# Types that `like` refers to by index; :func:`tcc.outputs.schemas.schema_of` resolves the indices.
LIKE: list[object] = []


def like(*kinds: object) -> Meta:
    """Return the schema of a dict that other code builds; `kinds` are the types it may have."""
    shapes = []
    for kind in kinds:
        shapes.append({"like": len(LIKE)})
        LIKE.append(kind)
    return Meta(extra_json_schema=shapes[0] if len(shapes) == 1 else {"anyOf": shapes})


def one_of(*words: str) -> Meta:
    """Return the schema of a string that is one of `words`; for mypy the type stays str."""
    return Meta(extra_json_schema={"enum": list(words)})


Whole: TypeAlias = Annotated[int, Meta(ge=0)]
Placed: TypeAlias = Annotated[int, Meta(ge=1)]
Hex16: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
Hex32: TypeAlias = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]
CodeText: TypeAlias = Annotated[str, Meta(pattern="^[A-Z]+[0-9]{3}$")]
Digits: TypeAlias = Annotated[str, Meta(pattern="^[0-9]+$")]
Decimal: TypeAlias = Annotated[str, Meta(pattern="^-?[0-9]+(\\.[0-9]+)?$")]
# A cell of an experiment's table.
Cell: TypeAlias = Annotated[
    Any, Meta(extra_json_schema={"type": ["string", "number", "boolean", "null"]})
]
# The order of a Rényi bound, or the name of another method (docs/privacy.md).
GivenOrder: TypeAlias = Annotated[str, one_of("gdp", "pld", "pure")]
Order: TypeAlias = Annotated[Any, like(Decimal, GivenOrder)]
ClaimType: TypeAlias = Annotated[
    str, one_of("RunWiseExact", "RunWiseSurrogate", "TruncationOnly", "NoCert")
]
Sense: TypeAlias = Annotated[
    str, one_of("equal", "narrower", "wider", "incomparable", "cost", "other")
]
CountKind: TypeAlias = Annotated[str, one_of("exact", "upper", "none")]


class DocumentPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object in a document."""

    shared: ClassVar[str | None] = None  # its name in ``$defs``, if schemas share it


class Output(DocumentPart, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A document, or one form of it; its first members are ``format`` and ``format_version``."""

    document: ClassVar[str]

    def as_fields(self) -> dict[str, Any]:
        """Return the members as dicts, lists, strings, numbers and None, in declared order."""
        found: dict[str, Any] = to_builtins(self)
        return found


_encode, _encode_into = Encoder().encode, Encoder().encode_into


def json_line(value: object) -> bytes:
    """Return `value` as JSON with a space after each comma and colon; hidden characters stay.

    The result equals that of the standard library, which takes twice as long.
    """
    return laid_out(_encode(value), indent=0)


def put_json(value: object, buffer: bytearray, at: int) -> None:
    """Write the JSON of `value`, without spaces, into `buffer` from `at`; truncate the rest."""
    _encode_into(value, buffer, at)


def optional(value: T | None) -> T | UnsetType:
    """Return the value, or UNSET for None."""
    return UNSET if value is None else value


class NoteJson(DocumentPart, frozen=True, kw_only=True):
    """Another place that matters to a diagnostic, and why."""

    message: str
    file: str | UnsetType = UNSET
    line: Placed | UnsetType = UNSET
    column: Placed | UnsetType = UNSET
    end_line: Placed | UnsetType = UNSET
    end_column: Placed | UnsetType = UNSET


class DiagnosticJson(DocumentPart, frozen=True, kw_only=True):
    """A diagnostic of a grammar or a file: code, message, and where."""

    shared: ClassVar[str | None] = "diagnostic"
    code: CodeText
    severity: Annotated[str, one_of("error", "warning", "note")]
    message: str
    file: str | UnsetType = UNSET
    line: Placed | UnsetType = UNSET
    column: Placed | UnsetType = UNSET
    end_line: Placed | UnsetType = UNSET
    end_column: Placed | UnsetType = UNSET
    hint: str | UnsetType = UNSET
    notes: list[NoteJson] | UnsetType = UNSET


class RuleFindingJson(DocumentPart, frozen=True, kw_only=True):
    """A rule that an artifact breaks, at a path in it."""

    shared: ClassVar[str | None] = "finding"
    code: CodeText
    path: str
    expected: str
    found: str


class LineFindingJson(DocumentPart, frozen=True, kw_only=True):
    """A rule that a ledger breaks, at a field of a line."""

    shared: ClassVar[str | None] = "line"
    code: CodeText
    line: Whole
    field: str
    expected: str
    found: str


class PlaceJson(DocumentPart, frozen=True, kw_only=True):
    """A place in a grammar's text, from line 1 and column 1."""

    file: str
    line: Placed
    column: Placed


class SpanJson(DocumentPart, frozen=True, kw_only=True):
    """A range of a grammar's text; its end is exclusive."""

    file: str
    line: Placed
    column: Placed
    end_line: Placed
    end_column: Placed


class StatementJson(DocumentPart, frozen=True, kw_only=True):
    """A statement of a grammar, as written, with its place where that is known."""

    shared: ClassVar[str | None] = "statement"
    kind: str
    text: str
    because: str | None
    relation: str | UnsetType = UNSET
    remedy: str | UnsetType = UNSET
    place: PlaceJson | None


class PlanJson(DocumentPart, frozen=True, kw_only=True):
    """A plan: its calls in order, and its least cost."""

    shared: ClassVar[str | None] = "plan"
    calls: list[str]
    cost: Decimal


class ListedStatementJson(DocumentPart, frozen=True, kw_only=True):
    """A statement of a core, and the place that enforces it."""

    shared: ClassVar[str | None] = "listed_statement"
    text: str
    because: str | None
    place: Annotated[str, one_of("automaton", "gate", "both")]
    holds: str | UnsetType = UNSET
    line: Placed | None
    relaxed: Literal[True] | UnsetType = UNSET


class EnforcedJson(DocumentPart, frozen=True, kw_only=True):
    """The statements that each place enforces: the automaton, the gate, a run."""

    shared: ClassVar[str | None] = "enforced"
    automaton: list[str]
    gate: list[str]
    run: list[str]


class EpsilonDeltaJson(DocumentPart, frozen=True, kw_only=True):
    """A pair of (epsilon, delta) differential privacy."""

    delta: Decimal
    eps: Decimal


class RefusedOutput(Output, frozen=True, kw_only=True):
    """Diagnostics of a grammar that is refused: the whole document of the command then."""

    document: ClassVar[str] = ""  # the name of the command that was called
    diagnostics: Annotated[list[DiagnosticJson], Meta(min_length=1)]

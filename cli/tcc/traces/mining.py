"""A first grammar from recorded sessions, for a person to narrow; it admits these sessions.

Tools and types come from schemas if there are any, else from the recorded arguments.  A statement
is a relation that ties two calls by a value: every refund of an order came after an approval of
that order.  Bare orders and limits on counts become comments, because they hold by chance more
often.  Only earlier calls with the outcome `done` count.  Finally the grammar is compiled and every
session replayed, and a statement that refuses a call is removed.  Documentation: docs/traces.md.
Cost: linear in the calls, times the tools; one compilation for each grammar that is tried, and one
replay for each shape of sessions.  Usually one grammar is tried.  Sessions of the same shape differ
only in values and are decided alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

from tcc.library import CompileError, compile_text
from tcc.traces import Trace, TraceCall
from tcc.traces.replaying import replay
from tcc_certs.policy import nodes as n
from tcc_certs.values.numbers import LEAST_WHOLE, MOST_WHOLE
from tcc_certs.values.places import State
from tcc_compiler.imports.mcp_grammar import Skeleton, Warned, skeleton_of
from tcc_compiler.layout.format import format_text
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.answers import answer_of
from tcc_runtime.gate.arguments import Asked
from tcc_runtime.gate.arguments.json_writer import json_bytes
from tcc_runtime.gate.policy import policy_of

_LEAST: Final = 2  # calls that a reported relation needs
_MOST: Final = 64  # relations of each kind
_CAP: Final = 3  # the greatest limit on calls that is reported
_FOLDS: Final = 5
_LONGEST: Final = 10_000  # calls of a session
_DEPTH: Final = 20
_TEXT: Final = 65_536
_MOST_ANSWER: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """A relation that held in every session.

    Attributes:
        text: the relation as a statement of the grammar.
        calls: the number of calls in which it was seen.
        is_written: whether the grammar has it as a statement; otherwise as a comment.
    """

    text: str
    calls: int
    is_written: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Mined:
    """A mined grammar and its quality.

    Attributes:
        text: the text of the grammar.
        sessions, calls: the numbers of recorded sessions and calls.
        admitted: the number of sessions in which the grammar refuses no call, found by replaying.
        relations: statements and comments, in the order of the text.
        held_out: cross-validation: the number of sessions admitted by a grammar mined without their
            fold; None for fewer than five sessions.
        warnings: problems of the schemas.
    """

    text: str
    sessions: int
    calls: int
    admitted: int
    relations: tuple[Relation, ...]
    held_out: int | None
    warnings: tuple[Warned, ...]


def mine(
    traces: Iterable[Trace], name: str, schemas: Sequence[Mapping[str, Any]] | None = None
) -> Mined:
    """Mine a first grammar that admits recorded sessions.

    Args:
        traces: the sessions.
        name: the name of the grammar, an identifier.
        schemas: the tools, as MCP describes them; None derives them from the recorded arguments.

    Raises:
        CompileError: no grammar of these tools compiles.
    """
    sessions = tuple(traces)
    work = _Work(sessions=sessions, name=name, schemas=schemas)
    every = range(len(sessions))
    skeleton, relations, found = work.mined(range(_FOLDS))
    admitted = len(sessions) - len(found.refusing)
    held_out = None
    if len(sessions) >= _FOLDS:
        held_out = 0
        for fold in range(_FOLDS):
            rest = [one for one in range(_FOLDS) if one != fold]
            with suppress(CompileError):  # the other folds may have no tools, and admit nothing
                found = work.mined(rest)[2]
                held_out += sum(at not in found.refusing for at in every[fold::_FOLDS])
    return Mined(
        text=_text(skeleton, relations),
        sessions=len(sessions),
        calls=sum(len(trace.calls) for trace in sessions),
        admitted=admitted,
        relations=tuple(relations),
        held_out=held_out,
        warnings=skeleton.warnings,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """A grammar that all sessions were replayed with.

    Attributes:
        refusing: the indices of sessions that it does not admit, each with the texts of the
            statements that refuse calls in it.
    """

    refusing: Mapping[int, frozenset[str]]


class _Work:
    """Mines grammars from some folds of the sessions; each session is examined only once.

    Args:
        sessions: all sessions; a fold has every fifth of them.
        name: the name of the grammar.
        schemas: the schemas of the tools, or None.
    """

    def __init__(
        self,
        *,
        sessions: Sequence[Trace],
        name: str,
        schemas: Sequence[Mapping[str, Any]] | None,
    ) -> None:
        self._sessions, self._name, self._schemas = sessions, name, schemas
        self._folds = [sessions[fold::_FOLDS] for fold in range(_FOLDS)]
        self._seen: list[_Tools] = []
        if schemas is None:
            self._seen = [_seen_in(some) for some in self._folds]
        # The facts of each fold, by the open parameters of each tool.
        self._facts: dict[frozenset[tuple[str, frozenset[str]]], list[_Facts]] = {}
        self._tried: dict[str, _Tried] = {}  # by the text of the grammar without comments

    def mined(self, folds: Sequence[int]) -> tuple[Skeleton, list[Relation], _Tried]:
        """Mine a grammar from these folds.

        Returns:
            the tools, the relations, and the result of replaying all sessions.
        """
        schemas = self._schemas
        tools = _tools_of([self._seen[fold] for fold in folds]) if schemas is None else schemas
        used = [at for at in range(len(self._sessions)) if at % _FOLDS in folds]
        longest = max([len(self._sessions[at].calls) for at in used], default=0)
        skeleton = skeleton_of(tools, self._name, depth=max(_DEPTH, min(longest, _LONGEST)))
        relations = _compiling(skeleton, self._relations(folds, _open_parameters(tools)))
        while True:
            # Replaying finds statements that a session contradicts.
            text = "\n".join([skeleton.text, *[one.text for one in relations if one.is_written]])
            found = self._tried.get(text)
            if found is None:
                found = self._tried[text] = _try(compile_text(text), self._sessions)
            refusing = found.refusing.items()
            blamed = {one for at, some in refusing if at % _FOLDS in folds for one in some}
            kept = [one for one in relations if not one.is_written or one.text not in blamed]
            if len(kept) == len(relations):
                return skeleton, relations, found
            relations = kept

    def _relations(
        self, folds: Sequence[int], opened: Mapping[str, frozenset[str]]
    ) -> list[Relation]:
        key = frozenset(opened.items())
        facts = self._facts.get(key)
        if facts is None:
            facts = self._facts[key] = [_facts_of(some, opened) for some in self._folds]
        return _relations(_Facts.of([facts[fold] for fold in folds]), opened)


def _try(artifact: Artifact, sessions: Sequence[Trace]) -> _Tried:
    """Replay one session of each shape; replay a refused one again for its statements."""
    alike: dict[Any, list[int]] = {}
    shape_of = _Shapes(artifact)
    for at, trace in enumerate(sessions):
        alike.setdefault(shape_of(trace), []).append(at)
    groups = list(alike.values())
    refused = replay(artifact, [sessions[some[0]] for some in groups]).refusing
    refusing: dict[int, frozenset[str]] = {}
    for number in sorted(refused):
        one = sessions[groups[number][0]]
        texts = frozenset(found.text for found in replay(artifact, [one]).statements)
        refusing |= dict.fromkeys(groups[number], texts)
    return _Tried(refusing=refusing)


class _Shapes:
    """Computes the shape of a session: sessions of the same shape are refused the same calls.

    The statements of a mined grammar compare values only with each other.  So a shape has the types
    of the values, and which of them are equal.
    """

    def __init__(self, artifact: Artifact) -> None:
        self._policy = policy_of(artifact)

    def __call__(self, trace: Trace) -> Any:
        """Return a hashable shape."""
        known: dict[State, int] = {}
        return tuple([self._call(call, known) for call in trace.calls])

    def _call(self, call: TraceCall, known: dict[State, int]) -> Any:
        table = self._policy.tables.named(call.tool)
        if table is None:
            return None
        asked = table.read(call.arguments)
        if not isinstance(asked, Asked):
            return call.tool, asked
        values = tuple(
            [
                (name, state[0], known.setdefault(state, len(known)))
                for name, state in asked.states.items()
            ]
        )
        answer: object = None
        if table.tool.answers:
            told = json_bytes(answer_of(call.answer).value, _MOST_ANSWER)
            answer = told if type(told) is bytes else object()  # unequal to every other answer
        offer = call.tool if asked.offer is None else asked.offer.text
        return offer, values, call.outcome, answer


def _compiling(skeleton: Skeleton, relations: list[Relation]) -> list[Relation]:
    """Return the relations that compile with these tools; leave the others out."""
    try:
        compile_text(_text(skeleton, relations))
    except CompileError:
        return [one for one in relations if not one.is_written or _compiles(skeleton, one)]
    return relations


def _compiles(skeleton: Skeleton, relation: Relation) -> bool:
    try:
        compile_text(_text(skeleton, [relation]))
    except CompileError:
        return False
    return True


def _text(skeleton: Skeleton, relations: Sequence[Relation]) -> str:
    written = [one for one in relations if one.is_written]
    told = [one for one in relations if not one.is_written]
    parts = [skeleton.text]
    if written:
        parts.append("\n# Held in every recorded session; make sure that it is meant.")
    parts += [f"{one.text}  # {_support(one)}" for one in written]
    if told:
        parts.append("\n# Held, too, and by chance more often: write what is meant.")
    parts += [f"# {one.text}  ({_support(one)})" for one in told]
    text = "\n".join(parts)
    return format_text(text).text or text


def _support(relation: Relation) -> str:
    return f"{relation.calls} of {relation.calls} calls"


# Tools, derived from recorded calls.


@dataclass(slots=True)
class _Seen:
    """A recorded parameter: the kinds of its values, and the number of calls that have it."""

    calls: int = 0
    kinds: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Tools:
    """The parameters of each tool, and the number of its calls."""

    seen: dict[str, dict[str, _Seen]] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)


def _seen_in(sessions: Iterable[Trace]) -> _Tools:
    found = _Tools()
    for trace in sessions:
        for call in trace.calls:
            if not isinstance(call.arguments, Mapping):
                continue
            found.calls[call.tool] = found.calls.get(call.tool, 0) + 1
            parameters = found.seen.setdefault(call.tool, {})
            for name, value in call.arguments.items():
                one = parameters.setdefault(str(name), _Seen())
                one.calls += 1
                one.kinds.add(_kind(value))
    return found


def _tools_of(parts: Iterable[_Tools]) -> list[dict[str, Any]]:
    """Return the tools of recorded calls, as MCP describes tools."""
    seen: dict[str, dict[str, _Seen]] = {}
    calls: dict[str, int] = {}
    for part in parts:
        for tool, count in part.calls.items():
            calls[tool] = calls.get(tool, 0) + count
        for tool, own in part.seen.items():
            for name, one in own.items():
                into = seen.setdefault(tool, {}).setdefault(name, _Seen())
                into.calls += one.calls
                into.kinds |= one.kinds
        for tool in part.calls:
            seen.setdefault(tool, {})
    return [
        {
            "name": tool,
            "inputSchema": {
                "type": "object",
                "properties": {name: _schema(one.kinds) for name, one in sorted(own.items())},
                "required": sorted(n for n, one in own.items() if one.calls == calls[tool]),
            },
        }
        for tool, own in sorted(seen.items())
    ]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string" if len(value) <= _TEXT else "json"
    if isinstance(value, int | float | Decimal):
        return "number" if LEAST_WHOLE <= value <= MOST_WHOLE else "json"
    return "json"


def _schema(kinds: set[str]) -> dict[str, Any]:
    only = next(iter(kinds)) if len(kinds) == 1 else "json"
    return {} if only == "json" else {"type": only}


def _open_parameters(tools: Iterable[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    """Return the parameters of each tool that take texts or numbers without a list of values."""
    found = {}
    for tool in tools:
        schema = tool.get("inputSchema")
        properties = schema.get("properties") if isinstance(schema, Mapping) else None
        found[str(tool["name"])] = frozenset(
            str(name)
            for name, told in (properties.items() if isinstance(properties, Mapping) else ())
            if isinstance(told, Mapping)
            and told.get("type") in ("string", "number", "integer")
            and not ({"enum", "const"} & told.keys())
        )
    return found


# Relations.


@dataclass(slots=True)
class _Candidates:
    """The tools that were done before every call of some kind.

    Attributes:
        before: the tools that were done before each of these calls; None before the first call.
        calls: the number of these calls.
    """

    before: frozenset[str] | None = None
    calls: int = 0

    def narrow(self, seen: Iterable[str]) -> None:
        """Add a call before which these tools were done."""
        before = self.before
        self.before = frozenset(seen) if before is None else before.intersection(seen)
        self.calls += 1

    def join(self, other: _Candidates) -> None:
        """Add the calls of other sessions."""
        if other.before is not None:
            self.before = other.before if self.before is None else self.before & other.before
        self.calls += other.calls


@dataclass(slots=True)
class _Facts:
    """The facts that held in some sessions.

    Attributes:
        tied: for each tool and parameter, the tools that were done before with the same value of a
            parameter of that name.
        orders: for each tool, the tools that were done before.
        most: for each tool, the most calls in a session.
        uses: for each tool, the number of calls.
    """

    tied: dict[tuple[str, str], _Candidates] = field(default_factory=dict)
    orders: dict[str, _Candidates] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)
    uses: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Iterable[_Facts]) -> _Facts:
        """Return the facts that held in all parts together."""
        found = cls()
        for part in parts:
            for pair, one in part.tied.items():
                found.tied.setdefault(pair, _Candidates()).join(one)
            for tool, one in part.orders.items():
                found.orders.setdefault(tool, _Candidates()).join(one)
            for tool, count in part.most.items():
                found.most[tool] = max(found.most.get(tool, 0), count)
                found.uses[tool] = found.uses.get(tool, 0) + part.uses[tool]
        return found


def _facts_of(sessions: Iterable[Trace], opened: Mapping[str, frozenset[str]]) -> _Facts:
    facts = _Facts()
    tied, orders = facts.tied, facts.orders
    for trace in sessions:
        done: set[str] = set()
        by_value: dict[tuple[str, Any], set[str]] = {}
        counted: dict[str, int] = {}
        for call in trace.calls:
            values = _values(call, opened)
            for name, value in values:
                pair = call.tool, name
                if pair not in tied:
                    tied[pair] = _Candidates()
                tied[pair].narrow(by_value.get((name, value), ()))
            if call.tool not in orders:
                orders[call.tool] = _Candidates()
            orders[call.tool].narrow(done)
            counted[call.tool] = counted.get(call.tool, 0) + 1
            if call.outcome == "done":
                done.add(call.tool)
                for named in values:
                    by_value.setdefault(named, set()).add(call.tool)
        for tool, count in counted.items():
            facts.most[tool] = max(facts.most.get(tool, 0), count)
            facts.uses[tool] = facts.uses.get(tool, 0) + count
    return facts


def _relations(facts: _Facts, opened: Mapping[str, frozenset[str]]) -> list[Relation]:
    tied, orders, most, uses = facts.tied, facts.orders, facts.most, facts.uses
    written = [
        (Relation(text=_tie(before, tool, name), calls=found.calls, is_written=True), before, tool)
        for (tool, name), found in sorted(tied.items())
        if found.calls >= _LEAST
        for before in sorted(found.before or ())
        if before != tool and name in opened.get(before, ())
    ][:_MOST]
    pairs = {(before, tool) for _, before, tool in written}
    bare = [
        Relation(text=_order(before, tool), calls=found.calls, is_written=False)
        for tool, found in sorted(orders.items())
        if found.calls >= _LEAST
        for before in sorted(found.before or ())
        if before != tool and (before, tool) not in pairs
    ][:_MOST]
    caps = [
        Relation(text=_cap(tool, count), calls=uses[tool], is_written=False)
        for tool, count in sorted(most.items())
        if count <= _CAP and uses[tool] >= _LEAST
    ][:_MOST]
    return [*(relation for relation, _, _ in written), *bare, *caps]


def _values(call: TraceCall, opened: Mapping[str, frozenset[str]]) -> list[tuple[str, Any]]:
    """Return the names and values of a call that may tie it to another call."""
    if not isinstance(call.arguments, Mapping):
        return []
    own = opened.get(call.tool, frozenset())
    return [
        (name, value)
        for name, value in call.arguments.items()
        if name in own and isinstance(value, str | int | Decimal) and not isinstance(value, bool)
    ]


def _tie(before: str, tool: str, name: str) -> str:
    earlier = n.Where(n.Word(before), (n.Same((name,)),))
    return n.statement_text(n.Require(on=n.Word(tool), then=earlier))


def _order(before: str, tool: str) -> str:
    return n.statement_text(n.Require(on=n.Word(tool), then=n.Word(before)))


def _cap(tool: str, most: int) -> str:
    return n.statement_text(n.Limit(of=n.Word(tool), most=n.Number(str(most))))


__all__ = ["CompileError", "Mined", "Relation", "mine"]

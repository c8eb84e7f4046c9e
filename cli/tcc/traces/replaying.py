"""Replays recorded sessions through a gate, to find what a grammar would have refused.

Each session gets a new gate in memory.  A refused call counts as not made, and the session
continues, so that one mistake counts once.  Answers are interpreted as by the relay: an error is a
failure if the grammar says so for the tool, else its outcome is unknown.
Cost: one decision and one step for each call, the reasons of refusals, and memory for the
statements that refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import repeat
from typing import Any, Final

from tcc.traces import Trace, TraceCall
from tcc_certs.errors import clip
from tcc_certs.formats.codec import blake
from tcc_certs.policy.nodes import Limit, statement_text
from tcc_certs.values.fields import (
    DateType,
    Field,
    FieldType,
    ListType,
    NullableType,
    RecordType,
    TimeType,
)
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.arguments.json_writer import json_bytes
from tcc_runtime.gate.asking.questions import Pending
from tcc_runtime.gate.calls import quiet
from tcc_runtime.gate.gate import Gate
from tcc_runtime.gate.permit import Permit
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session.records import now_ms
from tcc_runtime.gate.session_access import Home
from tcc_runtime.gate.wrapping import errors_failed

END: Final = "(end)"  # shown in place of a call for the end of a session
_SHOWN: Final = 200  # characters of a value
_MOST: Final = 1 << 20  # bytes of a value
_UNRECORDED: Final = Home(recorded=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCall:
    """A call that a statement refused.

    Attributes:
        session: the name of its trace.
        call: the text of the call, with values or their digests.
        position: the position in the session, from 1; the end comes after the last call.
    """

    session: str
    call: str
    position: int


@dataclass(slots=True, kw_only=True)
class Blamed:
    """A statement that refused calls.

    Attributes:
        text: the statement; for another reason, a description.
        code: the code of the refusals.
        count: the number of calls that it refused.
        examples: the refused calls, or the first ones if `replay` limits their number.
    """

    text: str
    code: str
    count: int = 0
    examples: list[RefusedCall] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The result of replaying sessions.

    Attributes:
        sessions, calls: the numbers of sessions and calls.
        refused: the number of calls that would have been refused.
        statements: the statements that refused, by decreasing count, then by their first refusal.
        refusing: the indices, from 0, of the sessions with a refused call.
        counted_per_session: the texts of the limits across sessions.  Without an account each
            session was counted separately.
    """

    sessions: int
    calls: int
    refused: int
    statements: tuple[Blamed, ...]
    refusing: frozenset[int] = frozenset()
    counted_per_session: tuple[str, ...] = ()


class _Clock:
    """A clock with the time of the current call; the machine's time until a record has a time."""

    def __init__(self) -> None:
        self.ms: int | None = None

    def __call__(self) -> int:
        return now_ms() if self.ms is None else self.ms


def replay(
    artifact: Artifact,
    traces: Iterable[Trace],
    *,
    values: bool = False,
    stop: bool = False,
    told: Mapping[str, Any] | None = None,
    most: int | None = None,
) -> Replayed:
    """Decide each call of recorded sessions by the policy of an artifact.

    Args:
        values: whether examples show values; otherwise they show the start of each value's BLAKE3.
        stop: whether to skip the rest of a session after its first refusal.
        told: the attributes of sessions whose records have none; for a ledger, the attributes that
            it does not show.
        most: the number of examples to keep for each statement; None keeps all.

    Raises:
        GivenRefused: the attributes of a session are not those that the grammar declares.
    """
    sessions = calls = refused = 0
    blamed: dict[tuple[str, str], Blamed] = {}
    refusing: set[int] = set()
    failing = errors_failed(artifact)
    core = artifact.core
    fields = {
        tool.name: {one.name: one for one in (*tool.arguments, *tool.answers)}
        for tool in core.tools
    }
    attributes = {one.name: one for one in core.given if isinstance(one, Field)}

    def note(refusal: Refused, example: RefusedCall) -> None:
        nonlocal refused
        refused += 1
        refusing.add(sessions - 1)
        for reason in _reasons(refusal):
            found = blamed.setdefault(reason, Blamed(text=reason[0], code=reason[1]))
            found.count += 1
            if most is None or len(found.examples) < most:
                found.examples.append(example)

    for trace in traces:
        sessions += 1
        given = trace.given if trace.given is not None else told
        if trace.named:
            given = {**(told or {}), **_at_start(trace.given or {}, attributes)}
        clock = _Clock()
        if trace.calls and trace.calls[0].at_ms is not None:
            clock.ms = trace.calls[0].at_ms
        with (
            quiet(),
            Gate(artifact, durable=False, given=given, clock=clock, home=_UNRECORDED) as gate,
        ):
            for position, call in enumerate(trace.calls, 1):
                calls += 1
                clock.ms = clock.ms if call.at_ms is None else call.at_ms
                made = _at_places(call, fields.get(call.tool, {})) if trace.named else call
                refusal = _made(gate, made, failing)
                if refusal is None:
                    continue
                text = call_text(call, values=values)
                note(refusal, RefusedCall(session=trace.name, call=text, position=position))
                if stop:
                    break
            if trace.ends and sessions - 1 not in refusing:
                refusal = _finished(gate)
                if refusal is not None:
                    position = len(trace.calls) + 1
                    note(refusal, RefusedCall(session=trace.name, call=END, position=position))
    ordered = sorted(blamed.values(), key=lambda one: -one.count)
    return Replayed(
        sessions=sessions,
        calls=calls,
        refused=refused,
        statements=tuple(ordered),
        refusing=frozenset(refusing),
        counted_per_session=tuple(
            statement_text(one)
            for one in core.statements
            if isinstance(one, Limit) and one.scope == "across"
        ),
    )


def _made(gate: Gate, call: TraceCall, failing: frozenset[str]) -> Refused | None:
    """Make a call with its recorded outcome; return its refusal, or None.

    A call that waits for a person counts as approved.
    """
    while True:
        try:
            with gate.call(call.tool, call.arguments) as permit:
                _settle(permit, call, failing)
        except Refused as refusal:
            return refusal
        except Pending as question:
            gate.approve(question.id, who="replay")
            continue
        return None


def _finished(gate: Gate) -> Refused | None:
    """End a session; return the refusal of the end, or None."""
    try:
        gate.finish()
    except Refused as refusal:
        return refusal
    return None


# A ledger records fields by name; a gate reads them at their places in the JSON.


def _at_places(call: TraceCall, fields: Mapping[str, Field]) -> TraceCall:
    """Rebuild the JSON of a call from a ledger: put each field at its place."""
    given = call.arguments
    if isinstance(given, dict):
        # A field inside another argument is already part of that argument.
        inside = {name for name, one in fields.items() if one.steps != (name,)}
        given = {
            name: _whole(value, fields[name].type if name in fields else None)
            for name, value in given.items()
            if name not in inside
        }
    answer = call.answer
    if isinstance(answer, dict):
        named = [fields.get(name, Field(name=name, steps=(name,))) for name in answer]
        # Outer fields come first, as they contain inner ones, and lists before their elements.
        named.sort(key=lambda one: (len(one.steps), "*" not in one.steps))
        placed: Any = _ABSENT
        for one in named:
            placed = _put(placed, one.steps, _whole(answer[one.name], one.type))
        answer = {} if placed is _ABSENT else placed
    return replace(call, arguments=given, answer=answer)


def _at_start(given: Mapping[str, Any], attributes: Mapping[str, Field]) -> dict[str, Any]:
    """Return the attributes that a ledger shows, in the form that a gate takes."""
    return {
        name: _whole(value, one.type)
        for name, value in given.items()
        if (one := attributes.get(name)) is not None
    }


_ABSENT: Final = object()


def _put(into: Any, steps: Sequence[str], value: Any) -> Any:
    """Put `value` at a place in a JSON value, unless it has a value there; return the JSON value.

    Args:
        into: the JSON value, or _ABSENT for a new one.
    """
    if not steps:
        return value if into is _ABSENT else into
    step, *rest = steps
    if step == "*":
        items = [] if into is _ABSENT else into
        many = value if isinstance(value, list) and "*" not in rest else [value]
        if isinstance(items, list):
            items += [_ABSENT] * (len(many) - len(items))
            items[: len(many)] = map(_put, items, repeat(rest), many)
        return items
    if isinstance(into, list) and into and step.lstrip("-").isdigit() and int(step) < len(into):
        into[int(step)] = _put(into[int(step)], rest, value)
        return into
    made: Any = {} if into is _ABSENT else into
    if isinstance(made, dict):
        made[step] = _put(made.get(step, _ABSENT), rest, value)
    return made


def _whole(value: Any, kind: FieldType | None) -> Any:
    """Rebuild a value: put the fields of records at their places, and convert times to texts."""
    match kind:
        case NullableType(of=of) if value is not None:
            return _whole(value, of)
        case TimeType() | DateType() if type(value) is int:
            return _time_text(value, kind)
        case ListType(of=of) if isinstance(value, list):
            return [_whole(item, of) for item in value]
        case RecordType(fields=fields) if isinstance(value, dict):
            made: Any = {}
            for one in sorted(fields, key=lambda one: len(one.steps)):
                if one.name in value:
                    made = _put(made, one.steps, _whole(value[one.name], one.type))
            return made
    return value


def _time_text(ms: int, kind: TimeType | DateType) -> object:
    """Return UTC milliseconds as a text, or the number itself if no text can represent it."""
    zone = kind.zone * 60_000 if isinstance(kind, DateType) else 0
    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms + zone)
    except OverflowError:
        return ms
    if isinstance(kind, DateType):
        return moment.date().isoformat()
    return moment.isoformat(timespec="milliseconds")


def _settle(permit: Permit, call: TraceCall, failing: frozenset[str]) -> None:
    if call.outcome == "done":
        permit.done(call.answer)
    elif call.outcome in ("failed", "answered") or (
        call.outcome == "error" and call.tool in failing
    ):
        permit.failed(answered=call.outcome != "failed")
    else:
        permit.unknown()


def _reasons(refusal: Refused) -> list[tuple[str, str]]:
    """Return text and code of each refusing statement; without one, the refusal's own text."""
    found = [reason["text"] for reason in refusal.because if reason["text"]]
    if not found:
        found = [str(refusal).partition(": ")[2]]
    return [(text, refusal.code) for text in dict.fromkeys(found)]


def call_text(call: TraceCall, *, values: bool) -> str:
    """Return a call on one line, with values or the start of their BLAKE3."""
    tool = clip(call.tool, 80)
    if not isinstance(call.arguments, Mapping):
        return f"{tool}({_value(call.arguments, values)})"
    inside = [f"{clip(str(n), 80)}={_value(v, values)}" for n, v in call.arguments.items()]
    return f"{tool}({', '.join(inside)})" if inside else tool


def _value(value: Any, shown: bool) -> str:
    found = json_bytes(value, _MOST)
    text = found if isinstance(found, bytes) else b"(no value that a call may have)"
    return clip(text.decode("utf-8", "replace"), _SHOWN) if shown else f"#{blake(text).hex()[:12]}"

"""Recorded sessions of agents: readers of the formats of several frameworks.

A trace is a session: the calls of tools in order, each with its arguments and its outcome as far as
it is known.  Documentation: docs/traces.md.

Traces come from outside and may be wrong, huge or hostile.  JSON is read strictly (no repeated
members, no NaN, 64 levels), and the size of a file is limited.  A file that is not a trace raises
:class:`TraceError` with the place.  Arguments that a model wrote and that are not a JSON object are
kept as they are: a gate refuses them.
Cost: linear in the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from tcc_certs.errors import Rejected, clip
from tcc_certs.formats.ledger_schema import MAX_TIME
from tcc_certs.session.files import files_of
from tcc_certs.values.declared import json_of
from tcc_runtime.mcp.wire import MalformedMessage, is_deeper, read_json

MOST_BYTES: Final = 1 << 30  # bytes of a file
MOST_LINE: Final = 1 << 26  # bytes of a session
_DEPTH: Final = 64
_WHOLE: Final = re.compile("-?[0-9]{1,20}")
_OUTCOMES: Final = ("done", "failed", "unknown")

Messages: TypeAlias = "Sequence[Mapping[str, Any]]"


class TraceError(Exception):
    """A file that is not a trace.

    Args:
        path: the file.
        line: the line, from 1; 0 if the whole file is one value.
        what: the problem.
    """

    def __init__(self, path: Path, line: int, what: str) -> None:
        self.path, self.line, self.what = path, line, what
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {what}")


class Unfit(Exception):
    """A value that does not fit its format; the text says where and why."""


@dataclass(slots=True, kw_only=True)
class TraceCall:
    """A call of a trace.

    Attributes:
        tool: the name of the tool.
        arguments: the recorded arguments; a text that is not a JSON object stays a text.
        outcome: `done`; `error` (an answer that reports an error); `failed` (nothing happened);
            `answered` (nothing happened, and the agent read an error); or `unknown` (no answer).
        answer: the recorded answer of a call that is done or an error.
        at_ms: the time of the call, UTC ms; None if it was not recorded.
    """

    tool: str
    arguments: Any
    outcome: str = "unknown"
    answer: Any = None
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A session.

    Attributes:
        name: its id in the file, else the file's name and the line.
        calls: the calls in order.
        given: the attributes of the session; None if they were not recorded.
        named: whether this is from a ledger.  Then arguments and answers are fields by name, times
            are UTC milliseconds, and `given` has only the attributes whose values the ledger shows.
        ends: whether the session ended after its calls.  Otherwise the record may be incomplete.
        line: its line in the file, from 1.
    """

    name: str
    calls: Sequence[TraceCall]
    given: Mapping[str, Any] | None = None
    named: bool = False
    ends: bool = False
    line: int = 1


def read_traces(path: Path, form: str = "auto") -> Iterator[Trace]:
    """Yield the sessions of a file, in order.

    Args:
        form: one of :data:`FORMATS`; `auto` recognizes the format of each value.

    Raises:
        TraceError: the file has another form, or is too large.
        OSError: the file cannot be read.
    """
    spans: list[Mapping[str, Any]] = []
    pending: list[tuple[int, Any]] = []
    for line, value in _values(path):
        kind = _kind_of(value) if form == "auto" else form
        try:
            if kind == "otlp":
                spans += _spans_of(value)
            elif kind == "ledger":
                pending.append((line, value))
            else:
                trace = _one(value, kind, f"{path.name}:{line}" if line else path.name)
                yield replace(trace, line=line or 1)
        except Unfit as error:
            raise TraceError(path, line, str(error)) from None
    try:
        yield from _of_spans(spans)
        if pending:
            for file in files_of(path)[1:]:
                pending += _values(file)
            yield _of_ledger([record for _, record in pending])
    except Unfit as error:
        raise TraceError(path, 0, str(error)) from None


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield each JSON value of a file with its line; line 0 if the whole file is one value."""
    if path.stat().st_size > MOST_BYTES:
        raise TraceError(path, 0, f"a file of traces has at most {MOST_BYTES} bytes")
    with path.open("rb") as file:
        head = file.readline(MOST_LINE + 1)
        rest = file.readline(MOST_LINE + 1)
        file.seek(0)
        if not rest.strip() or _is_begun(head):
            data = file.read(MOST_LINE + 1)
            if len(data) > MOST_LINE:
                what = f"one session has at most {MOST_LINE} bytes; write one a line"
                raise TraceError(path, 0, what)
            if not data.strip():
                raise TraceError(path, 0, "the file is empty")
            yield 0, _read(path, 0, data)
            return
        for number, line in enumerate(iter(lambda: file.readline(MOST_LINE + 1), b""), 1):
            if len(line) > MOST_LINE:
                raise TraceError(path, number, f"a line has at most {MOST_LINE} bytes")
            if line.strip():
                yield number, _read(path, number, line)


def _is_begun(line: bytes) -> bool:
    """Return whether the first line is not a complete JSON value, so the whole file is one."""
    try:
        read_json(line)
    except MalformedMessage:
        return True
    return False


def _read(path: Path, line: int, data: bytes) -> Any:
    try:
        value = read_json(data)
    except MalformedMessage as error:
        raise TraceError(path, line, f"not JSON as it is read here: {error}") from None
    if is_deeper(value, _DEPTH):
        raise TraceError(path, line, f"more than {_DEPTH} lists and objects in one another")
    return value


def _kind_of(value: Any) -> str:
    """Return the format that a value seems to have; `tcc` if it resembles none."""
    if isinstance(value, dict):
        if "resourceSpans" in value or "resource_spans" in value:
            return "otlp"
        if "kind" in value and "~" in value:
            return "ledger"
        if "calls" in value:
            return "tcc"
    for message in _messages_of(value):
        found = _kind_of_message(message)
        if found:
            return found
    return "openai" if isinstance(value, list) or _messages_of(value) else "tcc"


def _messages_of(value: Any) -> Messages:
    """Return the messages in a session, or an empty list if it has none."""
    if isinstance(value, dict):
        value = next((value[name] for name in ("messages", "items") if name in value), ())
    if not isinstance(value, list):
        return ()
    return [message for message in value if isinstance(message, dict)]


def _kind_of_message(message: Mapping[str, Any]) -> str | None:
    if "lc" in message or isinstance(message.get("data"), dict):
        return "langchain"
    if "role" not in message and message.get("type") in ("ai", "human", "tool", "system"):
        return "langchain"
    if message.get("type") in ("function_call", "function_call_output"):
        return "openai"
    if any(name in message for name in ("tool_calls", "function_call", "tool_call_id")):
        return "openai"
    blocks = message.get("content")
    if isinstance(blocks, list) and any(
        isinstance(block, dict) and block.get("type") in ("tool_use", "tool_result")
        for block in blocks
    ):
        return "anthropic"
    return None


def _one(value: Any, kind: str, name: str) -> Trace:
    """Return the session in one value."""
    given = None
    if isinstance(value, dict):
        told = value.get("id")
        if isinstance(told, str) and told:
            name = told
        given = value.get("given")
        if not (given is None or isinstance(given, dict)):
            raise Unfit("'given' is an object: what the session was given, by name")
    if kind == "tcc":
        calls = _of_own(value)
        ends = value.get("ends", False)
        if type(ends) is not bool:
            raise Unfit("'ends' is true or false: whether the session ended after its calls")
        return Trace(name=name, calls=calls, given=given, ends=ends)
    entries = value.get("messages", value.get("items")) if isinstance(value, dict) else value
    if not isinstance(entries, list):
        raise Unfit("a session is a list of messages, or an object with the member 'messages'")
    if not all(isinstance(message, dict) for message in entries):
        raise Unfit("a message is an object")
    reader = _Reader()
    for message in entries:
        _MESSAGES[kind](reader, message)
    return Trace(name=name, calls=reader.calls, given=given)


class _Reader:
    """Collects calls from messages; an answer belongs to the latest open call with its id."""

    def __init__(self) -> None:
        self.calls: list[TraceCall] = []
        self._open: dict[str, TraceCall] = {}

    def call(self, identity: Any, tool: Any, arguments: Any) -> None:
        """Add a call that a model requested."""
        if not isinstance(tool, str) or not tool:
            raise Unfit(f"call {len(self.calls) + 1} has no name of a tool")
        made = TraceCall(tool=tool, arguments=_arguments(arguments))
        self.calls.append(made)
        if isinstance(identity, str):
            self._open[identity] = made

    def answered(self, identity: Any, answer: Any, *, error: bool) -> None:
        """Add the answer to the call with an id; ignore an answer to an unknown id."""
        made = self._open.pop(identity, None) if isinstance(identity, str) else None
        if made is not None:
            made.outcome, made.answer = ("error" if error else "done"), answer


def _arguments(value: Any) -> Any:
    """Return the arguments of a call; parse a text that is a JSON object."""
    if not isinstance(value, str):
        return {} if value is None else value
    if not value.strip():
        return {}
    try:
        found = read_json(value.encode("utf-8", "surrogatepass"))
    except MalformedMessage:
        return value
    return found if isinstance(found, dict) and not is_deeper(found, _DEPTH) else value


def _list(message: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    found = message.get(name)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else ()


def _openai(reader: _Reader, message: Mapping[str, Any]) -> None:
    """Read a message of chat completions, or an item of responses."""
    if message.get("type") == "function_call":
        reader.call(message.get("call_id"), message.get("name"), message.get("arguments"))
        return
    if message.get("type") == "function_call_output":
        reader.answered(message.get("call_id"), message.get("output"), error=False)
        return
    for asked in _list(message, "tool_calls"):
        function = asked.get("function")
        if not isinstance(function, dict):
            raise Unfit(f"call {len(reader.calls) + 1} has no member 'function'")
        reader.call(asked.get("id"), function.get("name"), function.get("arguments"))
    old = message.get("function_call")
    if isinstance(old, dict):  # the old format without ids, one call at a time
        reader.call(f"function {old.get('name')}", old.get("name"), old.get("arguments"))
    if message.get("role") == "tool":
        reader.answered(message.get("tool_call_id"), message.get("content"), error=False)
    if message.get("role") == "function":
        reader.answered(f"function {message.get('name')}", message.get("content"), error=False)


def _anthropic(reader: _Reader, message: Mapping[str, Any]) -> None:
    for block in _list(message, "content"):
        if block.get("type") == "tool_use":
            reader.call(block.get("id"), block.get("name"), block.get("input"))
        elif block.get("type") == "tool_result":
            failed = block.get("is_error") is True
            reader.answered(block.get("tool_use_id"), block.get("content"), error=failed)


def _langchain(reader: _Reader, message: Mapping[str, Any]) -> None:
    """Read a message in the form of `messages_to_dict`, `model_dump` or `dumpd`."""
    inner = message
    for name in ("data", "kwargs"):
        held = message.get(name)
        if isinstance(held, dict):
            inner = held
    for asked in _list(inner, "tool_calls"):
        reader.call(asked.get("id"), asked.get("name"), asked.get("args"))
    for asked in _list(inner, "invalid_tool_calls"):
        reader.call(asked.get("id"), asked.get("name"), asked.get("args"))
    if isinstance(inner.get("tool_call_id"), str):
        failed = inner.get("status") == "error"
        reader.answered(inner["tool_call_id"], inner.get("content"), error=failed)


def _of_own(value: Any) -> Sequence[TraceCall]:
    """Return the calls of an object in tcc's own format."""
    if not isinstance(value, dict) or not isinstance(value.get("calls"), list):
        raise Unfit("a session has the member 'calls', a list (or 'messages'; see docs/traces.md)")
    found = []
    for number, call in enumerate(value["calls"], 1):
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            raise Unfit(f"call {number} is no object with the member 'tool', a text")
        strange = set(call) - {"tool", "arguments", "answer", "outcome", "at_ms"}
        if strange:
            raise Unfit(f"call {number} has the unknown member {min(strange)!r}")
        outcome = call.get("outcome", "done" if "answer" in call else "unknown")
        if outcome not in (*_OUTCOMES, "error", "answered"):
            raise Unfit(f"call {number}: an outcome is done, error, failed, answered or unknown")
        arguments = call.get("arguments", {})
        made = TraceCall(tool=call["tool"], arguments=arguments, outcome=outcome)
        made.answer, made.at_ms = call.get("answer"), call.get("at_ms")
        if made.at_ms is not None and not _is_time(made.at_ms):
            raise Unfit(f"call {number}: 'at_ms' is a whole number of milliseconds since 1970")
        found.append(made)
    return found


def _is_time(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_TIME


# OpenTelemetry: spans of the operation `execute_tool`, grouped by conversation.


def _spans_of(value: Any) -> list[Mapping[str, Any]]:
    """Return the spans of an export request."""
    if not isinstance(value, dict):
        raise Unfit("an export of spans is an object with the member 'resourceSpans'")
    found: list[Mapping[str, Any]] = []
    for resource in _either(value, "resourceSpans", "resource_spans"):
        for scope in _either(resource, "scopeSpans", "scope_spans"):
            found += _list(scope, "spans")
    return found


def _either(value: Mapping[str, Any], *names: str) -> Iterable[Mapping[str, Any]]:
    return next((_list(value, name) for name in names if name in value), ())


def _of_spans(spans: Sequence[Mapping[str, Any]]) -> Iterator[Trace]:
    """Yield sessions by `gen_ai.conversation.id`, else by trace id; calls in order of start."""
    sessions: dict[str, list[tuple[int, int, TraceCall]]] = {}
    for at, span in enumerate(spans):
        attributes = _attributes(span)
        if attributes.get("gen_ai.operation.name") != "execute_tool":
            continue
        tool = attributes.get("gen_ai.tool.name")
        if not isinstance(tool, str) or not tool:
            raise Unfit("a span of execute_tool has no attribute gen_ai.tool.name")
        arguments = _arguments(attributes.get("gen_ai.tool.call.arguments"))
        made = TraceCall(tool=tool, arguments=arguments)
        made.at_ms = _nanoseconds(span, "start") // 1_000_000 or None
        if _is_error(span, attributes):
            made.outcome = "error"
        elif "gen_ai.tool.call.result" in attributes or _nanoseconds(span, "end"):
            made.outcome = "done"
        made.answer = attributes.get("gen_ai.tool.call.result")
        told = attributes.get("gen_ai.conversation.id") or span.get("traceId", span.get("trace_id"))
        name = told if isinstance(told, str) and told else "(no trace id)"
        sessions.setdefault(name, []).append((_nanoseconds(span, "start"), at, made))
    for name, calls in sessions.items():
        ordered = sorted(calls, key=lambda call: call[:2])
        yield Trace(name=name, calls=[made for _, _, made in ordered])


def _attributes(span: Mapping[str, Any]) -> dict[str, Any]:
    return {
        str(entry.get("key")): _any_value(entry.get("value")) for entry in _list(span, "attributes")
    }


def _any_value(value: Any) -> Any:
    """Return the Python value of an `AnyValue` of OTLP."""
    if not isinstance(value, dict):
        return None
    for name in ("stringValue", "string_value", "boolValue", "bool_value"):
        if name in value:
            return value[name]
    for name in ("intValue", "int_value"):
        told = value.get(name)
        if isinstance(told, int):
            return told
        if isinstance(told, str):
            return int(told) if _WHOLE.fullmatch(told) else None
    if "doubleValue" in value:
        return value["doubleValue"]
    for name in ("kvlistValue", "kvlist_value"):
        if isinstance(value.get(name), dict):
            pairs = _list(value[name], "values")
            return {str(pair.get("key")): _any_value(pair.get("value")) for pair in pairs}
    for name in ("arrayValue", "array_value"):
        if isinstance(value.get(name), dict):
            return [_any_value(item) for item in _list(value[name], "values")]
    return None


def _is_error(span: Mapping[str, Any], attributes: Mapping[str, Any]) -> bool:
    status = span.get("status")
    code = status.get("code") if isinstance(status, dict) else None
    return code in (2, "STATUS_CODE_ERROR") or "error.type" in attributes


def _nanoseconds(span: Mapping[str, Any], which: str) -> int:
    told = span.get(f"{which}TimeUnixNano", span.get(f"{which}_time_unix_nano"))
    if isinstance(told, int):
        return told
    return int(told) if isinstance(told, str) and _WHOLE.fullmatch(told) else 0


def _of_ledger(records: Sequence[Any]) -> Trace:
    """Return the session in the records of a tcc ledger; the hash chain is not checked.

    Raises:
        Unfit: an open argument is recorded only as a digest, so the call cannot be replayed.
            Answers and attributes without a shown value are left out.
    """
    name, calls = "", list[TraceCall]()
    given: dict[str, Any] | None = None
    by_number: dict[int, TraceCall] = {}
    for record in records:
        if not isinstance(record, dict):
            raise Unfit("a record of a ledger is an object")
        kind, number = record.get("kind"), record.get("seq")
        if kind == "session" and "continues" in record and not name:
            raise Unfit("this file continues a ledger: name its first file, without a number")
        if kind == "session":
            name = str(record.get("session_id", ""))
            given = _values_of(record.get("given"))
        elif kind == "call" and isinstance(number, int):
            made = _recorded(record, number)
            calls.append(made)
            by_number[number] = made
        elif kind in ("outcome", "resolve") and isinstance(number, int) and number in by_number:
            made = by_number[number]
            made.outcome = str(record.get("outcome"))
            made.answer = _observed(record)
            if made.outcome not in _OUTCOMES:
                raise Unfit(f"call {number}: an outcome is done, failed or unknown")
            if record.get("answered") is True:
                made.outcome = "error"
    if not name:
        raise Unfit("the first record of a ledger of a session is missing")
    return Trace(name=name, calls=calls, given=given, named=True)


def _recorded(record: Mapping[str, Any], number: int) -> TraceCall:
    text = record.get("call")
    parts = _CALL.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        raise Unfit(f"call {number} has no text of a call")
    arguments = {_name(name): _listed(value) for name, value in _PAIR.findall(parts[2] or "")}
    arguments |= _opened_of(record.get("open"), number)
    made = TraceCall(tool=_name(parts[1]), arguments=arguments)
    made.at_ms = record["at_ms"] if _is_time(record.get("at_ms")) else None
    return made


def _opened_of(opened: Any, number: int) -> dict[str, Any]:
    """Return the open arguments of a call, by name."""
    found = _values_of(opened)
    for name in opened if isinstance(opened, dict) else ():
        if name not in found:
            raise Unfit(
                f"call {number}: {name} is not shown in this ledger, which has its digest alone: "
                "a session is replayed from a ledger that was kept with --show"
            )
    return found


def _values_of(entries: Any) -> dict[str, Any]:
    """Return the values that entries of a record show, by name."""
    if not isinstance(entries, dict):
        return {}
    return {
        name: _shown(told["value"], told.get("type"))
        for name, told in entries.items()
        if isinstance(told, dict) and isinstance(told.get("value"), str)
    }


# Canonical text of a call (core.md, section 5): names and values, quoted where necessary.
_WORD: Final = r'(?:"(?:[^"\\]|\\.)*"|[^\s(),="]+)'
_CALL: Final = re.compile(rf"({_WORD})(?:\(((?:{_WORD}={_WORD},?)*)\))?", re.DOTALL)
_PAIR: Final = re.compile(rf"({_WORD})=({_WORD})", re.DOTALL)


def _name(text: str) -> str:
    found = _listed(text) if text[:1] == '"' else text
    return found if isinstance(found, str) else text


def _listed(text: str) -> Any:
    """Return the value of a canonical text."""
    try:
        return json_of(text)
    except Rejected:
        raise Unfit(f"{clip(text, 60)} is the text of no value") from None


def _shown(text: str, kind: Any) -> Any:
    """Return the value of an entry from its text and its type byte; a listed value has no type."""
    if kind is None:
        return _listed(text)
    if kind == "z":
        return None
    return text if kind == "s" else _read_value(text)


def _observed(record: Mapping[str, Any]) -> Any:
    """Return the observed values of an outcome, and the open values that are shown, by name."""
    found, told = record.get("observed"), record.get("answers")
    if not isinstance(found, dict) and not isinstance(told, dict):
        return None
    listed = found if isinstance(found, dict) else {}
    answer = {
        name: _listed(text) if isinstance(text, str) else text
        for name, text in listed.items()
        if text != ""  # the answer was absent
    }
    return answer | _values_of(told)


def _read_value(text: str) -> Any:
    try:
        return read_json(text.encode("utf-8", "surrogatepass"))
    except MalformedMessage:
        raise Unfit(f"{clip(text, 60)} is the text of no value") from None


_MESSAGES: Final[Mapping[str, Callable[[_Reader, Mapping[str, Any]], None]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "langchain": _langchain,
}
FORMATS: Final = ("auto", "openai", "anthropic", "langchain", "otlp", "ledger", "tcc")

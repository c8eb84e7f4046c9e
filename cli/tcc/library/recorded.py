"""Recorded sessions as tests: `G.allowed.jsonl` and `G.refused.jsonl` next to `G.tcg`.

Each line is a session as `tcc replay` reads it.  A gate must allow every call of an allowed
session.  In a refused session it must allow every call except the last one, and refuse that.  If
the line has `"ends": true`, the end of the session counts as its last call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tcc.files import STDIN
from tcc_runtime.errors import GivenRefused

if TYPE_CHECKING:
    from tcc.traces import Trace
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source
    from tcc_runtime.artifact.load import Artifact

Expected: TypeAlias = 'Literal["allowed", "refused"]'
KINDS: Final[tuple[Expected, ...]] = ("allowed", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """A recorded session, and the decision that a gate must make."""

    path: Path
    expected: Expected
    trace: Trace


def file_of(grammar: Path, kind: Expected) -> Path:
    """Return the path of the allowed or refused sessions of a grammar."""
    return grammar.with_suffix(f".{kind}.jsonl")


def files_of(grammar: Path) -> list[Path]:
    """Return the paths of recorded sessions for a grammar; the files may not exist."""
    return [] if grammar is STDIN else [file_of(grammar, kind) for kind in KINDS]


def read_recorded(grammar: Path) -> list[Recorded]:
    """Read the recorded sessions of a grammar, in the order of files and lines.

    Raises:
        TraceError: a file has no valid sessions, or a session has neither a call nor an end.
        OSError: a file cannot be read.
    """
    from tcc.traces import TraceError, read_traces  # lazily: most grammars have no such files

    found = []
    for path, expected in zip(files_of(grammar), KINDS, strict=False):
        for trace in read_traces(path) if path.exists() else ():
            if not (trace.calls or trace.ends):
                raise TraceError(path, trace.line, "a recorded session has at least one call")
            found.append(Recorded(path=path, expected=expected, trace=trace))
    return found


def failure_of(artifact: Artifact, recorded: Recorded) -> str | None:
    """Replay a session through a gate.

    Returns:
        None if the gate decides as the file requires.  Otherwise the difference, with the call and
        the statement.
    """
    from tcc.traces.replaying import END, call_text, replay

    trace = recorded.trace

    def failed(message: str) -> str:
        return f"session {trace.name!r}: {message}"

    unknown = [call.tool for call in trace.calls if call.tool not in artifact.core.tool_of]
    if unknown:
        return failed(f"the grammar has no tool {unknown[0]!r}")
    try:
        found = replay(artifact, [trace], values=True, stop=True)
    except GivenRefused as error:
        return failed(str(error))
    last = len(trace.calls) + trace.ends
    if not found.statements:
        if recorded.expected == "allowed":
            return None
        end = END if trace.ends else call_text(trace.calls[-1], values=True)
        return failed(f"call {last}, {end}, is allowed, and a gate has to refuse it")
    first = found.statements[0]
    example = first.examples[0]
    if recorded.expected == "refused" and example.position == last:
        return None
    texts = " and ".join([f"`{blamed.text}`" for blamed in found.statements])
    why = "" if recorded.expected == "allowed" else "; only the last call may be refused"
    return failed(
        f"call {example.position}, {example.call}, is refused by {texts} ({first.code}){why}"
    )


def sources_of(grammar: Path) -> dict[str, Source]:
    """Return the existing files of recorded sessions as sources, by name."""
    from tcc_compiler.language.source import decode, read_bytes, source_of

    found = {}
    for path in files_of(grammar):
        if path.exists():
            data = read_bytes(path)
            text = decode(data) if isinstance(data, bytes) else ""
            shown = text if isinstance(text, str) else ""
            found[str(path)] = source_of(shown, str(path), path.resolve())
    return found


def diagnostics_of(grammar: Path, artifact: Artifact) -> tuple[int, Sequence[Diagnostic]]:
    """Return the number of recorded sessions, and a diagnostic for each that fails."""
    from tcc.traces import TraceError

    try:
        recorded = read_recorded(grammar)
    except TraceError as error:
        return 0, [_at("TCC509", error.what, error.path, error.line or 1)]
    except OSError as error:
        return 0, [_at("TCC509", error.strerror or str(error), Path(error.filename or grammar), 1)]
    codes = {"allowed": "TCC507", "refused": "TCC508"}
    return len(recorded), [
        _at(codes[one.expected], failure, one.path, one.trace.line)
        for one in recorded
        if (failure := failure_of(artifact, one)) is not None
    ]


def _at(code: str, text: str, path: Path, line: int) -> Diagnostic:
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Span

    span = Span(file=str(path), line=line, column=1, end_line=line, end_column=1)
    return Diagnostic(code=code, message=text, span=span)

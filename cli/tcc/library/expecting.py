"""Answers `expect always`, `expect reachable` and `expect implies` with the exact engine.

The compiler calls :func:`answers` for each such line, with the artifact that it has made.
Cost: one question to the engine for each line, at most `SECONDS`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tcc.files import GRAMMAR_ENDINGS
from tcc.library import CompileError, load, opened
from tcc.library.proving import gate_of

if TYPE_CHECKING:
    from tcc_compiler.expectations import Answered, Built
    from tcc_compiler.names.compile import Expectation
    from tcc_runtime.artifact.load import Artifact
    from tcc_runtime.exact.values import Session

SECONDS: Final = 10.0


def answers(made: Built, expect: Expectation) -> Answered:
    """Return the answer to an expectation about all sessions of an artifact."""
    from tcc_runtime.artifact.load import Artifact, load_as

    artifact = load_as(Artifact, made.artifact, checked=made.checked)
    if expect.what == "implies":
        return _implies(artifact, expect)
    from tcc_certs.policy.nodes import statement_text
    from tcc_certs.proof.questions import Question
    from tcc_compiler.expectations import Answered
    from tcc_runtime.analysis.joined import joined
    from tcc_runtime.analysis.sessions import idle_tools
    from tcc_runtime.exact.prove import answer

    core = joined(artifact.core, artifact.core, idle_tools(artifact)).core
    is_reachable = expect.what == "reachable"
    kind = "reachable" if is_reachable else "implies"
    question = Question(kind=kind, statements=expect.statements)
    found = answer(core, question, gate_of(artifact), timeout=SECONDS)
    if found.session is not None:
        session = "" if is_reachable else session_line(found.session)
        return Answered(holds=is_reachable, session=session)
    if found.proof is None:
        return Answered(holds=None, missing=found.missing)
    if not is_reachable:
        return Answered(holds=True)
    many = len(artifact.core.statements)
    texts = [statement_text(core.statements[one]) for one in found.used if one < many]
    if len(texts) < len(found.used):
        texts.insert(0, "plan")
    return Answered(holds=False, because=tuple(texts))


def _implies(artifact: Artifact, expect: Expectation) -> Answered:
    from tcc_certs.errors import Rejected
    from tcc_compiler.expectations import Answered
    from tcc_runtime.analysis.difference import only_in
    from tcc_runtime.analysis.graph import graph_of
    from tcc_runtime.analysis.sessions import Side, allows_all

    if expect.path is None:
        return Answered(holds=None, missing="the grammar is in no file")
    try:
        other = _other(expect.path)
    except (CompileError, Rejected, OSError) as error:
        return Answered(holds=None, missing=f"{expect.path.name} cannot be used: {error}")
    try:
        plans = only_in(graph_of(artifact), graph_of(other))
    except Rejected:
        plans = None
    sides = [Side(artifact=one, gate=gate_of(one)) for one in (artifact, other)]
    found = allows_all(sides[0], sides[1], plans, timeout=SECONDS)
    if found.shown is not None:
        because = (found.shown.refused_by.strip("`"),)
        return Answered(holds=False, session=session_line(found.shown.session), because=because)
    if found.holds:
        return Answered(holds=True)
    first_open = found.open[0]
    stated = f"`{first_open.statement}`: " if first_open.statement else ""
    return Answered(holds=None, missing=stated + first_open.missing)


def _other(path: Path) -> Artifact:
    """Open the artifact in a file, or compile the grammar in it without testing its examples.

    Raises:
        CompileError, Rejected, OSError: the file has no valid artifact or grammar.
    """
    if path.suffix not in GRAMMAR_ENDINGS:
        return load(path)
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import compile_file

    return opened(compile_file(path, Options(timeout=SECONDS), examples=False))


def session_line(session: Session) -> str:
    """Return a session as a JSON line that `tcc replay` reads."""
    from tcc.outputs import json_line

    return json_line({"given": dict(session.given), "calls": session.json()}).decode()

"""Exact expectations of a grammar: `expect never`, `expect reachable`, `expect implies`.

The compiler only reads them, as the search is in the runtime; this module checks them for
everything that compiles a grammar.  An expectation that is not decided does not hold: TCC506, which
is a limit. Specification: docs/spec/language.md, section 10.  Cost: nothing for a grammar without
any.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Unpack

from tcc import library

if TYPE_CHECKING:
    from tcc.library import Artifact, OptionsByName
    from tcc.library.proving import Proof
    from tcc_compiler.frontend import ExactExpect
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.pipeline import Compiled
    from tcc_runtime.artifact.load import Artifact as Opened

_REMARK: Final = re.compile(r'("(?:[^"\\]|\\.)*")|#[^\n]*')


def compile_file(path: str | Path, **options: Unpack[OptionsByName]) -> Artifact:
    """Compile a grammar file (``.tcg``) or a graph (``.graphml``, node-link ``.json``).

    Args:
        path: the file.
        options: those of :class:`tcc_compiler.options.Options`, by name: ``beta``, ``tilt``,
            ``max_states``, ``timeout``, ``count_bits``, ``relax``, ``round_counts`` and
            ``purpose``.

    Raises:
        TypeError: there is no option of that name, or it takes another type.
        CompileError: the grammar is refused, an expectation does not hold, or a limit was
            reached; it carries the diagnostics.
    """
    begun = time.monotonic()
    artifact = library.compile_file(path, **options)
    return _held(artifact, Path(path).parent, options.get("timeout"), begun)


def compile_text(text: str, **options: Unpack[OptionsByName]) -> Artifact:
    """Compile a grammar given as text, which has no file; see :func:`compile_file`."""
    begun = time.monotonic()
    artifact = library.compile_text(text, **options)
    return _held(artifact, None, options.get("timeout"), begun)


def _held(artifact: Artifact, folder: Path | None, seconds: float | None, begun: float) -> Artifact:
    compiled = artifact.kept["written"]
    if not getattr(compiled, "exacts", ()):
        return artifact
    left = None if seconds is None else max(0.001, seconds - (time.monotonic() - begun))
    return library.opened(held(compiled, folder, left))  # type: ignore[arg-type]


def out_of_time(compiled: Compiled) -> Compiled:
    """The result of a compilation whose questions exceeded the time."""
    from tcc_compiler.language.diagnostics import Diagnostic

    said = Diagnostic(
        code="TCC506",
        message="whether this holds was not decided: the time of --timeout is over (P507)",
        span=compiled.exacts[0].span,
        hint="`tcc explain P507` says how to go on",
    )
    return replace(compiled, artifact=None, diagnostics=(*compiled.diagnostics, said), exacts=())


def held(compiled: Compiled, folder: Path | None, seconds: float | None) -> Compiled:
    """The compilation after its exact questions were asked; without artifact if one does not hold.

    Args:
        folder: folder in which, or below which, named files are looked for; None: there is none.
        seconds: for all questions.
    """
    end = None if seconds is None else time.monotonic() + seconds
    artifact = library.opened(compiled)
    found = []
    for one in compiled.exacts:
        left = None if end is None else max(0.001, end - time.monotonic())
        said = _said(artifact, one, folder, left)
        if said is not None:
            found.append(said)
    kept = len(compiled.exacts) - len(found)
    return replace(
        compiled,
        artifact=None if found else compiled.artifact,
        diagnostics=(*compiled.diagnostics, *found),
        expectations=compiled.expectations + kept,
        exacts=(),
    )


def _said(
    artifact: Opened, one: ExactExpect, folder: Path | None, seconds: float | None
) -> Diagnostic | None:
    """Diagnostic of an expectation that does not hold; None if it holds."""
    from tcc.library.proving import prove
    from tcc_certs.errors import Rejected
    from tcc_compiler.language.diagnostics import Diagnostic

    text = _REMARK.sub(lambda found: found[1] or " ", one.text)
    text = " ".join(text.split()) if '"' not in text else text
    try:
        if one.kind == "never":
            found = prove(artifact, text, timeout=seconds)
        elif one.kind == "reachable":
            found = prove(artifact, reachable=text, timeout=seconds)
        else:
            other = _other(one.text, folder)
            if isinstance(other, str):
                return Diagnostic(code="TCC505", message=other, span=one.span)
            found = prove(artifact, implies=other, timeout=seconds)
    except library.CompileError as error:
        why = next((d.message for d in error.diagnostics if d.severity == "error"), str(error))
        return Diagnostic(code="TCC505", message=f"it cannot be asked: {why}", span=one.span)
    except (Rejected, OSError) as error:
        return Diagnostic(code="TCC505", message=f"it cannot be asked: {error}", span=one.span)
    return None if found.proved else _unmet(found, one)


def _other(name: str, folder: Path | None) -> Opened | str:
    """The grammar or artifact that is named; else why there is none."""
    if folder is None:
        return "a text that comes from no file can name none"
    top = folder.resolve()
    path = (top / name).resolve()
    if Path(name).is_absolute() or not path.is_relative_to(top):
        return f"{name!r} lies outside the folder of the grammar"
    # What that grammar expects is its own affair: it may name this one.
    return library.artifact_of(path)


def _unmet(found: Proof, one: ExactExpect) -> Diagnostic:
    from tcc.library.proving import session_lines
    from tcc_compiler.language.diagnostics import Diagnostic, Note

    if found.verdict == "undecided":
        why = f"{found.whys[0]} ({found.codes[0]})"
        return Diagnostic(
            code="TCC506",
            message=f"whether this holds was not decided: {why}",
            span=one.span,
            hint=f"`tcc explain {found.codes[0]}` says how to go on",
        )
    if one.kind == "reachable":
        message = "no session ends in such a call"
    else:
        message = "a session does not meet this"
        if one.kind == "implies":
            message = f"a session is none of {one.text}"
    notes: list[Note] = []
    if found.session is not None:
        lines = session_lines(found.session) or ["no call"]
        notes = [Note(message=f"{at}. {line}") for at, line in enumerate(lines[:12], 1)]
        if found.session.ends == "finish":
            notes.append(Note(message="and then it may finish"))
    return Diagnostic(code="TCC505", message=message, span=one.span, notes=tuple(notes))

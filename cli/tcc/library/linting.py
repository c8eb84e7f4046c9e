"""The lints of a grammar: `tcc.lint`, and the fields of its JSON.

Errors and warnings of the compiler are reported with the lints.  Comments in the grammar and
``tcc.toml`` decide which lints are allowed, and set the levels of the others.  Specification:
docs/lint.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from tcc.configuration import LINTS, config_for
from tcc.files import STDIN, read_given
from tcc.library import (
    GUARDS,
    OptionsByName,
    answers,
    check_for_use,
    only_guards,
    opened,
    require_known,
)
from tcc.options import Config

if TYPE_CHECKING:
    from tcc.outputs import SpanJson
    from tcc.outputs.grammars import FixJson, LintJson, LintNoteJson
    from tcc_certs.policy.core import Core
    from tcc_compiler.frontend import Compiled as Frontend
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source, Span
    from tcc_compiler.lint.finding import LintFinding, LintNote
    from tcc_compiler.options import Options
    from tcc_runtime.artifact.load import Artifact

_MOST_EDGES = 2_000_000  # of an artifact whose search length is predicted


@dataclass(frozen=True, slots=True, kw_only=True)
class Linted:
    """Lints of one grammar.

    Attributes:
        findings: errors, warnings and lints, in the order of their places, without allowed lints.
        notes: questions without an answer, limits that were reached, and remarks.
        skipped: lints that do not apply to this grammar, each with the reason.
        sources: the texts that places refer to, by name.
        config: the ``tcc.toml`` that was used, or None.
        core: the core of the grammar; None if the grammar has errors.
        text: the text of the grammar; None if it could not be read.
        artifact: the compiled grammar; None if it does not compile.
        implied: the numbers of statements that the other statements imply.  All of them can be
            removed together.
    """

    findings: tuple[LintFinding, ...]
    notes: tuple[LintNote, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    sources: Mapping[str, Source]
    config: Path | None = None
    core: Core | None = None
    text: str | None = None
    artifact: Artifact | None = None
    implied: tuple[int, ...] = ()

    @property
    def clean(self) -> bool:
        """Return whether there are no findings and no limit left a lint undecided.

        An undecided question about all sessions (TCC704, TCC746) does not count; a note reports it.
        """
        return not self.findings and not any(
            note.diagnostic.code in GUARDS
            or (note.diagnostic.code == "TCC715" and note.question not in ("TCC704", "TCC746"))
            for note in self.notes
        )

    @property
    def fixed(self) -> str | None:
        """The text with every safe fix applied; None without a text.

        Its core allows the same sessions, but may lack statements that the others imply.
        """
        from tcc_compiler.lint.finding import fixed_text

        return None if self.text is None else fixed_text(self.text, self.findings)


def lint(
    path: str | Path, *, config: Path | str | None = None, **options: Unpack[OptionsByName]
) -> Linted:
    """Lint a grammar file.

    Args:
        path: a ``.tcg`` file.
        config: a ``tcc.toml``; None uses the nearest one above the file, if any.
        options: the same as for :func:`tcc.compile_file`.

    Raises:
        TypeError: an option is unknown or has another type.
        tcc.options.ConfigError: the ``tcc.toml`` is refused.
    """
    from tcc_compiler.options import Options
    from tcc_runtime.settings.table import table_of

    require_known("lint", options, table_of(Options))
    file = Path(path)
    found = config_for(file, None if config is None else Path(config))
    told: dict[str, Any] = {**found.compile, **options}
    relax = told.get("relax", ())
    told["relax"] = (relax,) if isinstance(relax, str) else tuple(relax)
    return lint_file(file, Options(check=check_for_use, answers=answers, **told), found)


def lint_file(path: Path, options: Options, config: Config) -> Linted:
    """Lint a grammar file, or standard input, under a configuration."""
    from tcc_compiler.frontend import read_grammar

    def read(check_time: Callable[[], None]) -> Frontend:
        return read_given(path) if path is STDIN else read_grammar(path, check_time)

    return lint_read(read, str(path), options, config)


def lint_read(
    read: Callable[[Callable[[], None]], Frontend], name: str, options: Options, config: Config
) -> Linted:
    """Lint a grammar under a configuration.

    Args:
        read: reads the grammar.  It calls its argument regularly, which raises when the time is
            over.
        name: the name of the grammar in diagnostics.
    """
    from tcc_compiler.pass_diagnostics import refusal_diagnostic
    from tcc_compiler.resources import CompileRefused, Timer

    timer = Timer(options)
    try:
        front = read(timer.check_reading)
    except CompileRefused as refusal:
        left = note_of(refusal_diagnostic(refusal, {}))
        return Linted(findings=(), notes=(left,), sources={}, config=config.path)
    return _Linting(front, options, config, timer).linted(name)


def keeps_core(linted: Linted, path: Path) -> bool:
    """Return whether the fixed text has the core of the linted text, except implied statements."""
    from tcc_compiler.frontend import read_grammar_text

    if linted.fixed is None:
        return False
    return has_core(read_grammar_text(linted.fixed, str(path), path=path), linted)


def has_core(front: Frontend, linted: Linted) -> bool:
    """Return whether a grammar that was read has the core of a linted one.

    It may lack statements that the others imply.
    """
    core, before = front.core, linted.core
    if core is None or before is None:
        return False
    after = iter([*core.statements, None])
    expected = next(after)
    for number, statement in enumerate(before.statements):
        if statement == expected:
            expected = next(after)
        elif number not in linted.implied:
            return False
    return core == replace(before, statements=core.statements, zones=core.zones)


class _Linting:
    def __init__(self, front: Frontend, options: Options, config: Config, timer: Any) -> None:
        from tcc_compiler.lint.finding import LintFinding, LintNote

        self._front = front
        self._options = options
        self._config = config
        self._timer = timer
        self._made = LintFinding
        self._note = LintNote
        self.findings: list[LintFinding] = []
        self.notes: list[LintNote] = []
        self.skipped: list[tuple[str, str]] = []
        self.artifact: Artifact | None = None
        self.implied: tuple[int, ...] = ()

    def linted(self, name: str) -> Linted:
        front = self._front
        root = next(iter(front.sources.values()), None)
        if front.core is None:
            self._take(front.diagnostics)
        else:
            self._lint(front)
        from tcc_compiler.lint.finding import in_order

        findings = [f for f in map(self._levelled(name), self.findings) if f]
        remarks = [f for f in in_order(findings) if f.diagnostic.severity == "note"]
        self.notes += [self._note(diagnostic=one.diagnostic) for one in remarks]
        return Linted(
            findings=in_order([f for f in findings if f.diagnostic.severity != "note"]),
            notes=tuple(self.notes),
            skipped=tuple(self.skipped),
            sources=front.sources,
            config=self._config.path,
            core=front.core,
            text=None if root is None else root.text,
            artifact=self.artifact,
            implied=self.implied,
        )

    def _take(self, diagnostics: Sequence[Diagnostic]) -> None:
        """Add errors and warnings to the findings, and notes and reached limits to the notes."""
        expects = {expect.span: expect for expect in self._front.expects}
        for diagnostic in diagnostics:
            asked = expects.get(diagnostic.span) if diagnostic.span is not None else None
            if diagnostic.severity == "note" and asked is not None:
                self.notes.append(
                    self._note(
                        diagnostic=diagnostic, statement=asked.text, question=asked.what,
                        missing=diagnostic.notes[0].message if diagnostic.notes else "",
                    )
                )  # fmt: skip
            elif diagnostic.severity == "note":
                self.notes.append(self._note(diagnostic=diagnostic))
            elif diagnostic.severity == "error" and only_guards([diagnostic]):
                self.notes.append(note_of(diagnostic))
            else:
                self.findings.append(self._made(diagnostic=diagnostic))

    def _lint(self, front: Frontend) -> None:
        from tcc_compiler.lint.allowances import Allowances
        from tcc_compiler.lint.linter import lint_compiled
        from tcc_compiler.pipeline import compile_frontend

        compiled = compile_frontend(front, self._options, self._timer)
        self._take(compiled.diagnostics)
        lints = lint_compiled(front, compiled.built)
        self.notes += lints.undecided
        found = [*lints.findings]
        self.artifact = None if compiled.artifact is None else opened(compiled)
        unknown = set(lints.undecided_codes) | {code for code, _ in self.skipped}
        if self.artifact is not None:
            found += self._search(self.artifact)
            found += self._sessions(front, self.artifact, lints.dead)
        else:
            unknown |= {"TCC704", "TCC713"}
        allowed = Allowances(tuple(front.sources.values()), lints.head, LINTS)
        self.findings += [item for item in found if not allowed.allows(item.diagnostic)]
        self.findings += allowed.findings(unknown)

    def _sessions(
        self, front: Frontend, artifact: Artifact, dead: Sequence[str]
    ) -> list[LintFinding]:
        """Return TCC704 and TCC746 about sessions; skip them if the options have no engine."""
        if self._options.answers is None:
            self.skipped.append(("TCC704", "the engine was not asked"))
            return []
        from tcc.library.session_lints import session_lints
        from tcc_compiler.lint.declared import statement_edits

        edits = statement_edits(front.sources, front.places)
        found = session_lints(artifact, front.places, edits, dead)
        self.notes += found.notes
        self.implied = tuple(found.implied)
        return found.findings

    def _search(self, artifact: Artifact) -> list[LintFinding]:
        """Return TCC713 if a run with these options is predicted to be long."""
        from tcc.library.running import prediction_text
        from tcc_compiler.language.diagnostics import Diagnostic
        from tcc_runtime.errors import SettingsError
        from tcc_runtime.settings.predict import is_short, predict, why_not
        from tcc_runtime.settings.settings import Settings

        try:
            settings = Settings(seed=bytes(32), **self._config.run)
            gate = artifact.manifest.gate
            why = "an artifact for a gate is never run" if gate else why_not(artifact, settings)
            if why is None and artifact.manifest.edges > _MOST_EDGES:
                why = f"the artifact has more than {_MOST_EDGES} edges"
            if why is None and is_short(artifact, settings, self._config.long_search):
                return []
            found = None if why is not None else predict(artifact, settings)
        except SettingsError as error:
            found, why = None, str(error)
        if found is None:
            self.skipped.append(("TCC713", why or "its numbers leave the range of floats"))
            return []
        if found.lower <= self._config.long_search:
            return []
        diagnostic = Diagnostic(
            code="TCC713",
            severity="warning",
            message=f"a search is predicted to take {prediction_text(found)} expansions",
            span=self._front.span,
            hint="a larger --beta or --tilt makes it shorter; `[lint] long-search` sets the bound",
        )
        return [self._made(diagnostic=diagnostic)]

    def _levelled(self, name: str) -> Any:
        def levelled(finding: LintFinding) -> LintFinding | None:
            diagnostic = finding.diagnostic
            if diagnostic.code not in LINTS:
                return finding
            file = name if diagnostic.span is None else diagnostic.span.file
            level = self._config.level(diagnostic.code, file)
            if level == "off":
                return None
            if level is None:
                return finding
            return replace(finding, diagnostic=replace(diagnostic, severity=level))

        return levelled


def note_of(diagnostic: Diagnostic) -> LintNote:
    """Return the note about a reached limit or an unreadable file."""
    from tcc_compiler.lint.finding import LintNote

    severity: Literal["error", "note"] = "error" if diagnostic.code == "TCC110" else "note"
    said = replace(diagnostic, severity=severity)
    return LintNote(diagnostic=said, missing=diagnostic.message)


def note_json(note: LintNote) -> LintNoteJson:
    """Return a note as JSON."""
    from tcc.outputs import optional
    from tcc.outputs.grammars import LintNoteJson

    said = note.diagnostic
    return LintNoteJson(
        code=said.code, level=said.severity, message=said.message, place=_place(said.span),
        statement=note.statement, question=note.question, missing=note.missing,
        hint=optional(said.hint or None),
    )  # fmt: skip


def finding_json(finding: LintFinding, sources: Mapping[str, Source]) -> LintJson:
    """Return a finding as JSON, with its fix."""
    from tcc.outputs.grammars import FixJson

    root = next(iter(sources.values())) if finding.fix else None
    fixes = [FixJson(**_ends(root, edit.start, edit.end), text=edit.text)
             for edit in finding.fix] if root else []  # fmt: skip
    return diagnostic_json(finding.diagnostic, fixes)


def diagnostic_json(diagnostic: Diagnostic, fixes: Sequence[FixJson] = ()) -> LintJson:
    """Return a diagnostic as JSON, with its place and the related places."""
    from tcc.outputs import optional
    from tcc.outputs.grammars import LintJson, RelatedJson

    return LintJson(
        code=diagnostic.code,
        level=diagnostic.severity,
        severity=diagnostic.severity,
        message=diagnostic.message,
        place=_place(diagnostic.span),
        related=[
            RelatedJson(message=note.message, place=_place(note.span)) for note in diagnostic.notes
        ],
        hint=optional(diagnostic.hint or None),
        fix=optional(list(fixes) or None),
    )


def _place(span: Span | None) -> SpanJson | None:
    from tcc.outputs import SpanJson

    return None if span is None else SpanJson(**asdict(span))


def _ends(source: Source, start: int, end: int) -> dict[str, Any]:
    line, column = source.place(start)
    end_line, end_column = source.place(end)
    return {
        "file": source.name, "line": line, "column": column,
        "end_line": end_line, "end_column": end_column,
    }  # fmt: skip

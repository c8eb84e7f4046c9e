"""Which statements together make a call, or the end of a session, impossible; monitors included.

The plan expression and limits on depth always stay: without them there may be infinitely many
plans.  Among all other statements, a smallest set is sought with which no session has the call, or
none can finish.  The question about a set is an exact question (:mod:`tcc.library.proving`) about
the grammar with the other statements blanked out; fewer statements let more sessions through, so
what is impossible with some statements is impossible with more.  Whatever is not known to be
impossible counts as possible: so the set that is found certainly suffices, and `smallest` says
whether it is certainly a smallest one.
Text: docs/questions.md.  Cost: a compilation and a question for each set; some k log(n/k) sets for
k among n statements, and then the smaller sets, within a bound.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from tcc.files import GRAMMAR_ENDING
from tcc.library import CompileError, check_for_use, opened
from tcc.library.proving import Proof, prove, session_json
from tcc_certs.formats.codec import decode
from tcc_runtime.analysis.statements import StatementPlace, WrittenStatement
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.exact.atoms import OpenQuestion
from tcc_runtime.exact.search import MAX_STATES
from tcc_runtime.exact.writing import WitnessSession

if TYPE_CHECKING:
    from tcc.outputs.questions import WhySessionsOutput
    from tcc_compiler.frontend import Frontend
    from tcc_compiler.lint.plans import SourceStatement
    from tcc_compiler.options import Options

MOST_SETS: Final = 200  # that are tried beyond those for one that is enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Barred:
    """Why no session has a call, or none can finish.

    Attributes:
        verdict: `possible`, `impossible` or `undecided`.
        session: a shortest one, if it is possible.
        because: the statements that together make it impossible, in the order of the text; empty
            if the plan and the limits on depth suffice.
        smallest: whether no fewer statements suffice.
        codes: why something is not decided (P501 to P507).
    """

    verdict: Literal["possible", "impossible", "undecided"]
    session: WitnessSession | None
    because: tuple[SourceStatement, ...]
    smallest: bool
    codes: tuple[str, ...]


class Blaming:
    """The sets of statements of a grammar, and what is possible with each.

    Args:
        front: a grammar that compiles; artifact: what it compiles to.
        seconds: for all questions; None: no limit.
    """

    def __init__(
        self,
        front: Frontend,
        artifact: Artifact,
        options: Options,
        *,
        max_states: int,
        seconds: float | None,
    ) -> None:
        from tcc_compiler.lint.plans import later_statements, source_statements

        self._front, self._options, self._states = front, options, max_states
        self._end = None if seconds is None else time.monotonic() + seconds
        self._codes: dict[str, None] = {}
        data = decode(bytes(artifact.file.columns["core"].data), "core")
        later = later_statements(front, artifact.core, data)
        every = [*source_statements(front, artifact.core, expanded=True), *later]
        every.sort(key=lambda one: one.region)
        self._artifact = artifact
        self.items = [one for one in every if not _is_depth(one)]
        self._least: Sequence[SourceStatement] = self.items

    def blamed(self, pattern: str | None) -> Barred:
        """The statements that make calls of a pattern impossible; None: the end of a session.

        Raises:
            CompileError: the pattern is invalid.
        """
        found = self._asked(self._artifact, pattern)
        if found.verdict == "undecided":
            return undecided(found.codes[0])
        if _is_possible(found, pattern):
            return Barred(
                verdict="possible", session=found.session, because=(), smallest=True, codes=()
            )
        from tcc_compiler.relax.contradiction import smallest

        known: dict[tuple[int, ...], bool] = {tuple(range(len(self.items))): True}

        def enough(chosen: Sequence[SourceStatement]) -> bool:
            kept = tuple(sorted(self._place(one) for one in chosen))
            if kept not in known:
                known[kept] = self._impossible(kept, pattern)
                if known[kept] and len(kept) < len(self._least):
                    self._least = [self.items[at] for at in kept]
            return known[kept]

        try:
            because, least = smallest(self.items, enough, MOST_SETS)
        except OpenQuestion as over:
            self._codes[over.code] = None
            because, least = list(self._least), False
        return Barred(
            verdict="impossible",
            session=None,
            because=tuple(because),
            smallest=least and not self._codes,
            codes=tuple(self._codes),
        )

    def _place(self, item: SourceStatement) -> int:
        return next(at for at, one in enumerate(self.items) if one is item)

    def _left(self) -> float | None:
        left = None if self._end is None else self._end - time.monotonic()
        if left is not None and left <= 0:
            raise OpenQuestion("P507", "the time of --timeout is over")
        return left

    def _impossible(self, kept: Sequence[int], pattern: str | None) -> bool:
        """Whether it is known to be impossible with these statements alone.

        Raises:
            OpenQuestion: P507.
        """
        gone = [one for at, one in enumerate(self.items) if at not in set(kept)]
        options = replace(self._options, check=check_for_use, timeout=self._left())
        try:
            artifact = without(self._front, gone, options)
        except CompileError as refused:
            if "TCC402" in {one.code for one in refused.diagnostics}:
                return True  # no plan is left
            self._codes["P503"] = None
            return False
        found = self._asked(artifact, pattern)
        if found.verdict == "undecided":
            self._codes |= dict.fromkeys(found.codes)
        return found.verdict != "undecided" and not _is_possible(found, pattern)

    def _asked(self, artifact: Artifact, pattern: str | None) -> Proof:
        left = self._left()
        if pattern is not None:
            return prove(artifact, reachable=pattern, max_states=self._states, timeout=left)
        asked = never_finishes(artifact)
        return prove(artifact, asked, max_states=self._states, timeout=left)


def never_finishes(artifact: Artifact) -> str:
    """A statement that every session meets exactly where none finishes: more calls than any has."""
    return f"limit uses(any) >= {artifact.automaton.rank[artifact.root] + 1}"


def _is_possible(found: Proof, pattern: str | None) -> bool:
    return found.verdict == ("refuted" if pattern is None else "proved")


def _is_depth(item: SourceStatement) -> bool:
    return any(getattr(part, "kind", None) == "depth" for part in item.parts)


def without(front: Frontend, gone: Iterable[SourceStatement], options: Options) -> Artifact:
    """The artifact of a grammar without some of its statements, and without examples.

    Raises:
        CompileError: the grammar is refused; TCC401: it has infinitely many plans; TCC402: none.
    """
    from tcc_compiler.frontend import read_grammar_bytes, read_grammar_text
    from tcc_compiler.pipeline import compile_frontend
    from tcc_compiler.resources import Timer

    root = next(iter(front.sources.values()))  # files that it uses have tools alone
    text = root.text
    for item in gone:
        start = item.region.start
        size = len(root.statement(root.span(item.region)))
        # Not a character is moved, so that nothing else becomes another statement.
        text = text[:start] + " " * size + text[start + size :]
    if root.path is None:
        again = read_grammar_bytes(text.encode(), root.name, Path())
    else:
        again = read_grammar_text(text, root.name, path=root.path)
    bare = replace(again, examples=(), expects=())
    return opened(compile_frontend(bare, options, Timer(options)))


def blame_sessions(
    artifact: Artifact,
    path: Path,
    options: Options,
    *,
    reachable: str | None,
    max_states: int = MAX_STATES,
) -> tuple[Barred, tuple[WrittenStatement, ...]]:
    """Why no session of a grammar ends in a call of a pattern, or none can finish.

    Args:
        artifact: of the grammar.
        path: its file; an artifact has no statements as they were written.
        options: of compiling; `timeout` limits the whole question.
        reachable: the pattern; None: the question is about the end of sessions.

    Raises:
        SettingsError: the file is no grammar.
        CompileError: the pattern is not one of its tools.
    """
    from tcc_compiler.frontend import read_grammar

    if path.suffix != GRAMMAR_ENDING:
        raise SettingsError("artifact", "a grammar, whose statements are as written", path.name)
    front = read_grammar(path)
    asked = Blaming(front, artifact, options, max_states=max_states, seconds=options.timeout)
    try:
        found = asked.blamed(reachable)
    except OpenQuestion as over:
        found = undecided(over.code)
    return found, tuple(_written(front, one) for one in found.because)


def undecided(code: str) -> Barred:
    """The result if nothing is known."""
    return Barred(verdict="undecided", session=None, because=(), smallest=False, codes=(code,))


def _written(front: Frontend, item: SourceStatement) -> WrittenStatement:
    source = tuple(front.sources.values())[item.region.source]
    span = source.span(item.region)
    return WrittenStatement(
        kind=item.kind,
        text=source.statement(span),
        place=StatementPlace(file=span.file, line=span.line, column=span.column),
        parts=(),
        says=frozenset(),
    )


def blamed_output(
    found: Barred, because: Sequence[WrittenStatement], reachable: str | None
) -> WhySessionsOutput:
    """The document of ``why`` for a question about sessions."""
    from tcc.library.plan_questions import statement_json
    from tcc.outputs import optional
    from tcc.outputs.questions import WhySessionsOutput

    return WhySessionsOutput(
        verdict=found.verdict,
        reachable=optional(reachable),
        session=None if found.session is None else session_json(found.session),
        because=[statement_json(one) for one in because],
        smallest=found.smallest,
        codes=list(found.codes),
    )

"""Artifacts of the library: compiled from a grammar, opened, checked, and written to a file.

The options of a compilation are repeated here by name for type checkers; the fields of
:class:`tcc_compiler.options.Options` are the table, and a test compares the two.  The runtime does
not use networkx; :class:`Artifact` imports it when a graph is asked for.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

from tcc.files import GRAMMAR_ENDINGS
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import read_artifact
from tcc_certs.formats.container import write_container
from tcc_certs.policy.reader import core_bytes
from tcc_runtime.artifact.load import Artifact as RuntimeArtifact, content_of, load_as
from tcc_runtime.ledger.outputs import write_whole
from tcc_runtime.settings.table import Option

if TYPE_CHECKING:
    import networkx as nx

    from tcc_certs.kernel import CheckedArtifact
    from tcc_certs.report import CheckReport
    from tcc_compiler.expectations import Answered, Built
    from tcc_compiler.language.diagnostics import Diagnostic
    from tcc_compiler.language.source import Source
    from tcc_compiler.names.compile import Expectation
    from tcc_compiler.options import Options
    from tcc_compiler.pipeline import Compiled

Given: TypeAlias = "RuntimeArtifact | str | Path"


class OptionsByName(TypedDict, total=False):
    """Options of a compilation by name; omitted ones keep their defaults."""

    beta: str
    tilt: int | None
    max_states: int
    timeout: float | None
    count_bits: int | None
    relax: Sequence[str]
    round_counts: int | None
    purpose: Literal["run", "gate"] | None


class Artifact(RuntimeArtifact):
    """The runtime's artifact with its graphs, as :func:`tcc.load` and the compilers return it."""

    def to_networkx(self, *, limit: int = 1 << 20) -> nx.MultiDiGraph[Any]:
        """The automaton, with a node for each state and an edge for each of its edges.

        :func:`tcc.compile_graph` compiles it to an artifact with the same plans, calls and costs.

        Args:
            limit: states and edges together, at most.

        Returns:
            a graph whose every attribute is a text, a number or a boolean (docs/pictures.md).

        Raises:
            tcc_certs.errors.Rejected: D201 it has more; or an unverified artifact is damaged.
        """
        from tcc.pictures.graph import shared_graph

        return shared_graph(self, limit)

    def prefix_dag(self, depth: int, *, limit: int = 10_000) -> nx.MultiDiGraph[Any]:
        """The context-indexed prefix DAG down to prefixes of `depth` calls.

        Its sinks are the complete plans so far, and the prefixes that are not followed further;
        their `plans` add up to the number of all plans.

        Args:
            depth: calls of the longest prefix, 0 or more.
            limit: nodes, at most.

        Raises:
            ValueError: `depth` is negative.
            tcc_certs.errors.Rejected: D201 it has more nodes, with their number; or the plans of an
                artifact with bounds are too many states to unfold.
        """
        from tcc.pictures.graph import prefix_graph

        return prefix_graph(self, depth, limit)


# From so many bytes on the fast kernel checks what is used, as in `tcc_runtime.artifact.load`.
LARGE = 1 << 21


class CompileError(Exception):
    """A grammar was refused.

    Its text has each error as ``tcc compile`` prints it: place, code, message, line and help.

    Args:
        diagnostics: all diagnostics, in the order of the places.
        sources: the texts by the names in the diagnostics; lines of other files are not shown.

    Attributes:
        declined: whether the only errors are limits of the compilation; the diagnostics then name
            the alternatives.
    """

    def __init__(
        self, diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source] | None = None
    ) -> None:
        from tcc_compiler.language.diagnostics import render

        self.diagnostics = tuple(diagnostics)
        self.declined = only_guards(self.diagnostics)
        errors = [render(d, sources or {}) for d in self.diagnostics if d.severity == "error"]
        super().__init__("\n".join(errors) or "the grammar was refused")


# Diagnostics that say nothing of the grammar: a limit was reached, or the file cannot be read.
GUARDS = frozenset({"TCC110", "TCC403", "TCC404", "TCC407"})


def only_guards(diagnostics: Sequence[Diagnostic]) -> bool:
    """Whether every error among them is a limit that was reached, or a missing file."""
    return {d.code for d in diagnostics if d.severity == "error"} <= GUARDS


def compile_file(path: str | Path, **options: Unpack[OptionsByName]) -> Artifact:
    """Compile a grammar file (``.tcg``) or a graph (``.graphml``, node-link ``.json``).

    Args:
        path: the file.
        options: those of :class:`tcc_compiler.options.Options`, by name: ``beta``, ``tilt``,
            ``max_states``, ``timeout``, ``count_bits``, ``relax``, ``round_counts`` and
            ``purpose``.

    Returns:
        the artifact, with the compiler's warnings in `diagnostics`.

    Raises:
        TypeError: there is no option of that name, or it takes another type.
        CompileError: the grammar was refused, or a limit was reached; it carries the diagnostics.
    """
    from tcc_compiler.pipeline import compile_file as compiled

    return opened(compiled(Path(path), _options("compile_file", options)))


def compile_text(text: str, **options: Unpack[OptionsByName]) -> Artifact:
    """Compile the text of a grammar; see :func:`compile_file`."""
    from tcc_compiler.pipeline import compile_text as compiled

    return opened(compiled(text, _options("compile_text", options)))


def compile_graph(
    graph: nx.Graph[Any], *, name: str = "graph", **options: Unpack[OptionsByName]
) -> Artifact:
    """Compile a directed graph of networkx, of states or of tools (imports.md, section 1).

    The artifact has the bytes that the same graph gives as a file of that name.

    Args:
        graph: a ``DiGraph`` or ``MultiDiGraph``; it is not changed.
        name: the grammar's name, if the graph has no attribute ``name``.
        options: as for :func:`compile_file`.

    Raises:
        TypeError: there is no option of that name, or it takes another type.
        CompileError: the graph was refused, or a limit was reached; it carries the diagnostics.
    """
    from tcc_compiler.pipeline import compile_graph as compiled

    return opened(compiled(graph, _options("compile_graph", options), name))


def format_text(text: str, *, name: str = "<text>") -> str:
    """Format a grammar's text, as ``tcc fmt`` writes it (docs/working.md).

    The result has the same tokens and the same comments, so it has the same meaning; formatting it
    again changes nothing.  Only the syntax is checked.

    Args:
        text: a grammar, or a file that grammars use.
        name: the name of the text in diagnostics.

    Raises:
        CompileError: the text has syntax errors; it carries the diagnostics.
    """
    from tcc_compiler.layout.format import format_text as formatted

    made = formatted(text, name)
    if made.text is None:
        raise CompileError(made.diagnostics, {name: made.source})
    return made.text


def _options(function: str, told: OptionsByName) -> Options:
    from tcc_compiler.options import Options
    from tcc_runtime.settings.table import table_of

    require_known(function, told, table_of(Options))
    # One name is a sequence of names, too.
    relax = told.get("relax", ())
    chosen = {**told, "relax": (relax,) if isinstance(relax, str) else tuple(relax)}
    return Options(check=check_for_use, answers=answers, **chosen)  # type: ignore[arg-type]


def answers(made: Built, expect: Expectation) -> Answered:
    """Answer an expectation about all sessions; the engine is imported with the first one."""
    from tcc.library.expecting import answers as answered

    return answered(made, expect)


def check_for_use(data: bytes) -> CheckedArtifact:
    """Check every certificate of an artifact that is about to be used (docs/trust.md).

    As :func:`load` does: by the pure kernel, and for large files by the fast one.

    Raises:
        tcc_certs.errors.Rejected: the first rule that fails.
    """
    if len(data) < LARGE:
        from tcc_certs.kernel import check

        return check(data)
    from tcc_runtime.fastcheck.kernel import check as fast

    return fast(data)


def opened(compiled: Compiled) -> Artifact:
    """The artifact of a compilation.

    The pipeline has checked every certificate of its bytes, by the `check` of its options; here
    only the digests are checked again, which show that these are the same bytes.

    Raises:
        CompileError: there is no artifact.
    """
    if compiled.artifact is None:
        raise CompileError(compiled.diagnostics, compiled.sources)
    artifact = load_as(Artifact, compiled.artifact, checked=compiled.checked)
    artifact.diagnostics = compiled.diagnostics
    artifact.kept["written"] = compiled
    return artifact


def load(
    source: RuntimeArtifact | str | Path | bytes, *, verify: bool = True, checked: str | None = None
) -> Artifact:
    """Open an artifact, a file or its bytes; by default every certificate is checked first.

    Args:
        source: a file, which must not change while it is in use if it has more than 64 MiB; or
            bytes; for an open artifact, its bytes.
        verify: False opens without checking, whatever the size; a run over it claims nothing.
        checked: the digest of an artifact whose certificates were checked before, hex; only the
            digest of the bytes is checked.

    Raises:
        tcc_certs.errors.Rejected: the artifact is refused or declined, or is not the one that was
            checked.
        OSError: the file cannot be read.
    """
    if isinstance(source, RuntimeArtifact):
        source = write_container(source.file.columns)
    data = source if isinstance(source, bytes) else Path(source)
    return load_as(Artifact, data, verify=verify, checked=checked)


def save(artifact: RuntimeArtifact | str | Path, path: str | Path) -> None:
    """Write an artifact, an open one or that of a file.

    After a crash at any moment the file is the old or the new one.

    Raises:
        tcc_runtime.errors.OutputRefused: the path exists and is no regular file.
        OSError: it cannot be written.
    """
    if not isinstance(artifact, RuntimeArtifact):
        artifact = load(artifact)
    # A container has one byte string: written again, these columns are the bytes that were read.
    write_whole(Path(path), write_container(artifact.file.columns))


def check(
    artifact: RuntimeArtifact | str | Path | bytes,
    *,
    core: bool = False,
    source: str | Path | None = None,
    pin: str | None = None,
    exact: bool = False,
    kernel: Literal["pure", "fast", "proved"] = "pure",
) -> CheckReport:
    """Verify the certificates of an artifact.

    Args:
        artifact: a file, its bytes, or an open artifact.
        core: also compare the automaton with the residuals of its core.
        source: a grammar file or graph whose core has to be the artifact's, byte for byte.
        pin: the required artifact digest, hex.
        exact: also require that nothing is relaxed: the automaton enforces every statement, and
            every count is exact.
        kernel: ``pure`` is the trusted one; ``fast`` evaluates the same equations with numpy;
            ``proved`` is ``pure``, and a program extracted from proofs has to say VALID as well.

    Returns:
        the verdict, what was checked and what was found; it never raises for what the bytes hold.

    Raises:
        CompileError: `source` has errors.
        tcc.library.second_checker.NoChecker: there is no proved checker, nor node to run one.
        OSError: the artifact cannot be read.
    """
    from tcc_certs.kernel import check as pure
    from tcc_certs.report import check_artifact

    expected = _core_in(source)
    evaluate = pure
    if kernel == "fast":
        from tcc_runtime.fastcheck.kernel import check as evaluate
    mappable = kernel == "fast" and isinstance(artifact, str | Path)
    data = content_of(Path(artifact)) if mappable else artifact_bytes(artifact)  # type: ignore[arg-type]
    if expected is not None:
        evaluate = partial(_with_core, evaluate, expected)
    found = check_artifact(data, core=core, pin=pin, exact=exact, kernel=evaluate)
    if expected is not None and not found.verdict:
        found = replace(found, lines=(*found.lines, "its core is that of the source"))
    if kernel == "proved":
        from tcc.library.second_checker import with_proved

        found = with_proved(found, bytes(data))
    return _naming_statements(found, data, expected)


def _with_core(
    evaluate: Callable[..., CheckedArtifact], expected: bytes, data: Any, *, pin: str | None = None
) -> CheckedArtifact:
    """The artifact in `data`, whose certificates hold and whose core has the expected bytes.

    Raises:
        Rejected: G201 it has others; else as `evaluate`.
    """
    checked = evaluate(data, pin=pin)
    found = bytes(checked.file.columns["core"].data)
    if found != expected:
        at = next((i for i, (x, y) in enumerate(zip(expected, found, strict=False)) if x != y), 0)
        raise Rejected(
            Code.CORE_SOURCE, f"core byte {at}", expected[at : at + 40], found[at : at + 40]
        )
    return checked


def _naming_statements(report: CheckReport, data: Any, expected: bytes | None) -> CheckReport:
    """The report; if its core is that of another source, with the statement that differs.

    The kernel only compares bytes; naming the statement does not affect the verdict, so it is here.
    """
    if expected is None or Code.CORE_SOURCE not in {finding.code for finding in report.findings}:
        return report
    from tcc_runtime.analysis.comparison import core_changes

    held = bytes(read_artifact(data, digests=False).columns["core"].data)
    changes = core_changes(held, expected)
    if not changes:
        return report
    first, *others = changes
    alike = (c for c in others if (c.of, c.name) == (first.of, first.name) and c.old is None)
    wanted = first.new or next((change.new for change in alike), None)
    where = first.name if first.of == "statement" else f"{first.of} {first.name}"
    refusal = Rejected(
        Code.CORE_SOURCE, f"core: {where}", wanted or "nothing", first.old or "nothing"
    )
    finding = replace(
        report.findings[0], path=refusal.path, expected=refusal.expected, found=refusal.found
    )
    lines = (f"{report.lines[0].partition(':')[0]}: {refusal}", *report.lines[1:])
    return replace(report, findings=(finding,), lines=lines)


def _core_in(source: str | Path | None) -> bytes | None:
    if source is None:
        return None
    from tcc.files import read_given

    front = read_given(source if isinstance(source, Path) else Path(source))
    if front.core is None:
        raise CompileError(front.diagnostics, front.sources)
    return core_bytes(front.core)


def artifact_bytes(source: RuntimeArtifact | str | Path | bytes) -> bytes:
    """The bytes of an artifact: of a file, or of an open one."""
    if isinstance(source, RuntimeArtifact):
        return write_container(source.file.columns)
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def artifact_of(given: Given) -> RuntimeArtifact:
    """Open an artifact, or compile a grammar, by the suffix of the file.

    Raises:
        CompileError: a grammar was refused, or a limit was reached.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    if isinstance(given, RuntimeArtifact):
        return given
    path = Path(given)
    return compile_file(path) if path.suffix in GRAMMAR_ENDINGS else load(path)


def require_known(function: str, told: Mapping[str, object], table: Iterable[Option]) -> None:
    """Check that every name is an option and every value of its type; ranges are not checked.

    Raises:
        TypeError: with the nearest name, or the types that are accepted.
    """
    options = {option.name: option for option in table}
    for name, value in told.items():
        if name not in options:
            near = difflib.get_close_matches(name, options, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no setting {name!r}{hint}")
        kinds = _kinds(options[name])
        # A bool is an int to Python, and never what is meant here.
        boolean = isinstance(value, bool) and bool not in kinds
        if boolean or not isinstance(value, kinds):
            expected = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            found = type(value).__name__
            raise TypeError(f"{function}() takes {expected} for {name!r}, not {found}")


def _kinds(option: Option) -> tuple[type, ...]:
    """Types of an option's values; names of something are texts."""
    several = {float: (int, float), tuple: (Sequence,)}
    kinds: tuple[type, ...] = several.get(option.kind, (option.kind,))
    if option.calls:  # one text is no sequence of calls
        kinds = (list, tuple)
    return (*kinds, type(None)) if option.optional else kinds

"""Artifacts of the library: compiled from a grammar, opened, checked, and written to a file.

:class:`OptionsByName` repeats the options of a compilation for type checkers.  A test compares it
with :class:`tcc_compiler.options.Options`, which defines them.  The runtime does not use networkx;
:class:`Artifact` imports it when a graph is requested.
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
    """Options of a compilation, by name; omitted options keep their defaults."""

    beta: str
    tilt: int | None
    max_states: int
    timeout: float | None
    count_bits: int | None
    relax: Sequence[str]
    round_counts: int | None
    purpose: Literal["run", "gate"] | None


class Artifact(RuntimeArtifact):
    """The runtime's artifact with graphs; :func:`tcc.load` and the compilers return it."""

    def to_networkx(self, *, limit: int = 1 << 20) -> nx.MultiDiGraph[Any]:
        """Return the automaton as a graph, with a node for each state and an edge for each edge.

        :func:`tcc.compile_graph` compiles the graph to an artifact with the same plans, calls and
        costs.

        Args:
            limit: the most states and edges, added together.

        Returns:
            a graph whose attributes are texts, numbers and booleans (docs/pictures.md).

        Raises:
            tcc_certs.errors.Rejected: D201, the automaton exceeds the limit; or an unverified
                artifact is damaged.
        """
        from tcc.pictures.graph import shared_graph

        return shared_graph(self, limit)

    def prefix_dag(self, depth: int, *, limit: int = 10_000) -> nx.MultiDiGraph[Any]:
        """Return the prefix DAG of the plans, with prefixes of at most `depth` calls.

        Its sinks are complete plans, and prefixes at `depth` that are not followed further.  The
        attributes `plans` of the sinks add up to the number of all plans.

        Args:
            depth: the calls in the longest prefix, 0 or more.
            limit: the most nodes.

        Raises:
            ValueError: `depth` is negative.
            tcc_certs.errors.Rejected: D201, the DAG exceeds the limit (the error has the number of
                nodes), or unfolding the plans of an artifact with bounds takes too many states.
        """
        from tcc.pictures.graph import prefix_graph

        return prefix_graph(self, depth, limit)


# The fast kernel checks artifacts of at least so many bytes, as in `tcc_runtime.artifact.load`.
LARGE = 1 << 21


class CompileError(Exception):
    """A grammar was refused.

    The text of the error has each error as ``tcc compile`` prints it: place, code, message, line
    and help.

    Args:
        diagnostics: all diagnostics, in the order of their places.
        sources: the texts, by the names in the diagnostics.  Lines of other files are not shown.

    Attributes:
        declined: whether all errors are limits of the compilation or unreadable files.  The
            diagnostics then name alternatives.
    """

    def __init__(
        self, diagnostics: Sequence[Diagnostic], sources: Mapping[str, Source] | None = None
    ) -> None:
        from tcc_compiler.language.diagnostics import render

        self.diagnostics = tuple(diagnostics)
        self.declined = only_guards(self.diagnostics)
        errors = [render(d, sources or {}) for d in self.diagnostics if d.severity == "error"]
        super().__init__("\n".join(errors) or "the grammar was refused")


# Errors that are not about the grammar: a limit was reached, or the file cannot be read.
GUARDS = frozenset({"TCC110", "TCC403", "TCC404", "TCC407"})


def only_guards(diagnostics: Sequence[Diagnostic]) -> bool:
    """Return whether every error is a reached limit or an unreadable file."""
    return {d.code for d in diagnostics if d.severity == "error"} <= GUARDS


def compile_file(path: str | Path, **options: Unpack[OptionsByName]) -> Artifact:
    """Compile a grammar file (``.tcg``) or a graph (``.graphml``, node-link ``.json``).

    Args:
        path: the file.
        options: the fields of :class:`tcc_compiler.options.Options`, by name: ``beta``, ``tilt``,
            ``max_states``, ``timeout``, ``count_bits``, ``relax``, ``round_counts`` and
            ``purpose``.

    Returns:
        the artifact, with the compiler's warnings in `diagnostics`.

    Raises:
        TypeError: an option is unknown or has another type.
        CompileError: the grammar was refused, or a limit was reached.  The error has the
            diagnostics.
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

    The result is byte for byte the artifact of a file with the same graph and name.

    Args:
        graph: a ``DiGraph`` or ``MultiDiGraph``; it is not changed.
        name: the grammar's name, if the graph has no attribute ``name``.
        options: the same as for :func:`compile_file`.

    Raises:
        TypeError: an option is unknown or has another type.
        CompileError: the graph was refused, or a limit was reached.  The error has the diagnostics.
    """
    from tcc_compiler.pipeline import compile_graph as compiled

    return opened(compiled(graph, _options("compile_graph", options), name))


def format_text(text: str, *, name: str = "<text>") -> str:
    """Format a grammar's text, as ``tcc fmt`` does (docs/working.md).

    The result has the same tokens and comments, and so the same meaning.  Formatting it again
    changes nothing.  Only the syntax is checked.

    Args:
        text: a grammar, or a file that grammars use.
        name: the name of the text in diagnostics.

    Raises:
        CompileError: the text has syntax errors.  The error has the diagnostics.
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
    # `relax` accepts a single name instead of a sequence.
    relax = told.get("relax", ())
    chosen = {**told, "relax": (relax,) if isinstance(relax, str) else tuple(relax)}
    return Options(check=check_for_use, answers=answers, **chosen)  # type: ignore[arg-type]


def answers(made: Built, expect: Expectation) -> Answered:
    """Answer an expectation about all sessions; the engine is imported on first use."""
    from tcc.library.expecting import answers as answered

    return answered(made, expect)


def check_for_use(data: bytes) -> CheckedArtifact:
    """Check every certificate of an artifact before it is used (docs/trust.md).

    The pure kernel checks artifacts below 2 MiB, the fast one larger artifacts, as in :func:`load`.

    Raises:
        tcc_certs.errors.Rejected: the first rule that the artifact breaks.
    """
    if len(data) < LARGE:
        from tcc_certs.kernel import check

        return check(data)
    from tcc_runtime.fastcheck.kernel import check as fast

    return fast(data)


def opened(compiled: Compiled) -> Artifact:
    """Return the artifact of a compilation.

    The pipeline has already checked every certificate of these bytes.  Here only the digests are
    checked, which show that the bytes are the same.

    Raises:
        CompileError: the compilation has no artifact.
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
    """Open an artifact from a file, bytes or an open artifact; check every certificate by default.

    Args:
        source: a file, the bytes of an artifact, or an open artifact.  A file of more than 64 MiB
            must not change while it is in use.
        verify: False opens the artifact without checks.  A run over it then claims nothing.
        checked: the digest, hex, of an artifact whose certificates were checked before.  Then only
            the digest is checked.

    Raises:
        tcc_certs.errors.Rejected: the artifact is refused or declined, or has another digest than
            `checked`.
        OSError: the file cannot be read.
    """
    if isinstance(source, RuntimeArtifact):
        source = write_container(source.file.columns)
    data = source if isinstance(source, bytes) else Path(source)
    return load_as(Artifact, data, verify=verify, checked=checked)


def save(artifact: RuntimeArtifact | str | Path, path: str | Path) -> None:
    """Write an artifact to a file, atomically: after a crash the file is the old or the new one.

    Args:
        artifact: an open artifact, or the file of one.

    Raises:
        tcc_runtime.errors.OutputRefused: the path exists and is not a regular file.
        OSError: the file cannot be written.
    """
    if not isinstance(artifact, RuntimeArtifact):
        artifact = load(artifact)
    # An artifact has exactly one encoding, so this writes the bytes that were read.
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
        core: whether to compare the automaton with the residuals of its core too.
        source: a grammar file or graph whose core must equal the artifact's, byte for byte.
        pin: the required artifact digest, hex.
        exact: whether to require that nothing is relaxed: the automaton enforces every statement,
            and every count is exact.
        kernel: ``pure`` is the trusted one.  ``fast`` evaluates the same equations with numpy.
            ``proved`` is ``pure``, and a program extracted from proofs has to say VALID as well.

    Returns:
        the verdict, the checks and the findings.  Invalid bytes give a verdict, not an exception.

    Raises:
        CompileError: `source` has errors.
        tcc.library.second_checker.NoChecker: the proved checker cannot be run.
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
    """Check an artifact with `evaluate`, and require that its core has the expected bytes.

    Raises:
        Rejected: G201, the core has other bytes; otherwise as `evaluate` raises it.
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
    """Return the report; if the source has another core, name the first statement that differs.

    The kernel only compares bytes.  Naming the statement does not change the verdict, so untrusted
    code does it here.
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
    """Return the bytes of an artifact that is a file, bytes, or open."""
    if isinstance(source, RuntimeArtifact):
        return write_container(source.file.columns)
    return source if isinstance(source, bytes) else Path(source).read_bytes()


def artifact_of(given: Given) -> RuntimeArtifact:
    """Open an artifact, or compile a grammar; the suffix of the file decides.

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
    """Check that every name is an option and every value has its type; ranges are not checked.

    Raises:
        TypeError: a name is unknown (the error suggests the nearest name), or a value has another
            type.
    """
    options = {option.name: option for option in table}
    for name, value in told.items():
        if name not in options:
            near = difflib.get_close_matches(name, options, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"{function}() has no setting {name!r}{hint}")
        kinds = _kinds(options[name])
        # In Python a bool is an int, but a bool for a number is always a mistake.
        boolean = isinstance(value, bool) and bool not in kinds
        if boolean or not isinstance(value, kinds):
            expected = " or ".join(kind.__name__.replace("NoneType", "None") for kind in kinds)
            found = type(value).__name__
            raise TypeError(f"{function}() takes {expected} for {name!r}, not {found}")


def _kinds(option: Option) -> tuple[type, ...]:
    """Return the accepted Python types of an option's values."""
    several = {float: (int, float), tuple: (Sequence,)}
    kinds: tuple[type, ...] = several.get(option.kind, (option.kind,))
    if option.calls:  # not any sequence: a text must not be taken as a sequence of calls
        kinds = (list, tuple)
    return (*kinds, type(None)) if option.optional else kinds

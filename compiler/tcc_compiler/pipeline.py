"""The whole compiler on one page: from a grammar, or its core, to the bytes of an artifact.

Specification: docs/spec/core.md (what goes in), docs/spec/artifact.md (what comes out).  Every
pass is a function from value to value and stands in a file of its own; between any two statements
the machine is made minimal again, which is what keeps it small.  Where it gets too large all the
same, the compilation ends and says what would fit; where the caller asked for it, the passes are
tried again for bounds in place of counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tcc_certs.core.model import Core
from tcc_certs.core.reader import core_of, decode_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.formats.manifest import MAX_ROUND_BITS
from tcc_certs.race.weights import Beta
from tcc_compiler.bounds import bound
from tcc_compiler.certify import certify
from tcc_compiler.constrain import constrain
from tcc_compiler.count import check_bits, count, used_calls, weigh
from tcc_compiler.diagnostics import Diagnostic, Note
from tcc_compiler.edges import CallEdges
from tcc_compiler.emit import emit
from tcc_compiler.expectations import Compared, compare
from tcc_compiler.explore import explore, explore_partial
from tcc_compiler.frontend import Frontend, read_grammar, read_grammar_text
from tcc_compiler.gather import gathered
from tcc_compiler.guard import Guard
from tcc_compiler.imports.read import GRAPH_SUFFIXES, read_graph
from tcc_compiler.letters import Letters, partition
from tcc_compiler.machine import Machine
from tcc_compiler.options import MAX_TILT, Options
from tcc_compiler.refusal import Refused
from tcc_compiler.relax.attempts import GUARDED, Attempt, Next, first_attempt, next_attempt
from tcc_compiler.relax.names import explain, named, without
from tcc_compiler.relax.timer import Timer
from tcc_compiler.relax.ways import ways_on
from tcc_compiler.source import Source
from tcc_compiler.spans import Span
from tcc_compiler.table import Table, as_deterministic, ranked
from tcc_compiler.witness import find_cycle, infinite


@dataclass(frozen=True, slots=True, kw_only=True)
class Compiled:
    """What a compilation gives.

    Attributes:
        artifact: its bytes; None where a diagnostic is an error.
        diagnostics: errors and warnings, those of the front end first.
        sources: the texts that spans point into, by name.
        examples, expectations: how many the grammar has.
    """

    artifact: bytes | None
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    examples: int = 0
    expectations: int = 0


def compile_core(core: bytes, options: Options) -> Compiled:
    """Compile the canonical bytes of a core (docs/spec/core.md)."""
    try:
        made, warnings = _compile(core, options, Timer(options))
    except Refused as refusal:
        return Compiled(artifact=None, diagnostics=(_diagnostic(refusal, {}),))
    return Compiled(
        artifact=made.artifact, diagnostics=tuple(_warning(warning, {}) for warning in warnings)
    )


def compile_file(path: Path, options: Options) -> Compiled:
    """Compile a grammar file or a graph, and hold it to its own examples and expectations."""
    timer = Timer(options)
    try:
        front = read_source(path, timer.look_at_reading)
    except Refused as refusal:
        return Compiled(artifact=None, diagnostics=(_diagnostic(refusal, {}),))
    return _compile_frontend(front, options, timer)


def compile_text(text: str, options: Options, name: str = "<text>") -> Compiled:
    """Compile the text of a grammar; see :func:`compile_file`."""
    timer = Timer(options)
    try:
        front = read_grammar_text(text, name, timer.look_at_reading)
    except Refused as refusal:
        return Compiled(artifact=None, diagnostics=(_diagnostic(refusal, {}),))
    return _compile_frontend(front, options, timer)


def read_source(path: Path, look: Callable[[], None] | None = None) -> Frontend:
    """The front end's result for a file: a grammar, or a graph by its ending."""
    read = read_graph if path.suffix.lower() in GRAPH_SUFFIXES else read_grammar
    return read(path, look)


def _compile_frontend(front: Frontend, options: Options, timer: Timer) -> Compiled:
    found: list[Diagnostic] = []
    artifact = None
    if front.core is not None:
        try:
            timer.look_at_reading()
            made, warnings = _compile(front.core, options, timer)
            found = [_warning(warning, front.places) for warning in warnings]
            found += compare(made, front.examples, front.expects, timer.look_at_examples)
            failed = any(diagnostic.severity == "error" for diagnostic in found)
            artifact = None if failed else made.artifact
        except Refused as refusal:
            found = [_diagnostic(refusal, front.places)]
    return Compiled(
        artifact=artifact,
        diagnostics=(*front.diagnostics, *_unplanned(front), *found),
        sources=front.sources,
        examples=len(front.examples),
        expectations=len(front.expects),
    )


def _compile(data: bytes, options: Options, timer: Timer) -> tuple[Compared, list[Next]]:
    """The attempt that was asked for; with ``relax auto`` others, until one gets past the guards,
    and what each gave up.

    The time of `timer` has begun before the grammar was read.

    Raises:
        Refused: nothing helps; or the set of plans is empty or infinite, a number is out of range.
    """
    beta = _check_options(options)
    core, value = _read(data)
    asked = named(core, options.relax_names)
    attempt = first_attempt(asked, options)

    def take(attempt: Attempt, guard: Guard) -> int:
        return run_passes(core, value, beta, attempt, options, guard).table.states

    stopped: Refused | None = None
    warnings: list[Next] = []
    while True:
        guard = Guard(options, timer.share(), attempt.patient)
        try:
            made = run_passes(core, value, beta, attempt, options, guard)
            return made, [w for w in warnings if made.table.nondeterministic or not w.apart]
        except Refused as refusal:
            # Of several guards the first is told of: it is the one of the exact attempt.
            stopped = stopped if stopped and refusal.code in GUARDED else refusal
            if not options.auto_relax:
                ways = ways_on(core, attempt, refusal, guard, options, timer, take)
                raise explain(ways, core, asked) from None
            found = next_attempt(core, attempt, refusal, guard, options)
            if found is None or timer.is_over():
                raise explain(stopped, core, asked) from None
            if found.warning is None:
                warnings.pop()
            else:
                warnings.append(found)
            attempt = found.attempt


def run_passes(
    core: Core,
    value: Mapping[str, Json],
    beta: Beta,
    attempt: Attempt,
    options: Options,
    guard: Guard,
) -> Compared:
    """The passes, in order.

    Raises:
        Refused: a guard fired, the set of plans is empty or infinite, or a number is out of range.
    """
    kept = gathered(without(core, attempt.relaxed))
    letters = partition(kept)
    guard.enter("the plan expression", "plan")
    machine = (explore_partial if attempt.nondeterministic else explore)(kept, letters, guard)
    table = _finite(kept, letters, constrain(kept, letters, machine, guard))
    guard.enter("the counts")
    weights = weigh(core, used_calls(table, letters), beta, options.tilt, guard)
    counts = count(table, letters, weights, guard, attempt.round_counts)
    if attempt.round_counts is None:
        check_bits(counts, options.count_bits)
    bounds = bound(core, table, letters, weights, guard)
    guard.enter("the digests")
    edges = CallEdges(table, letters, guard)
    numbering = certify(core, table, edges, guard)
    artifact = emit(
        core,
        value,
        table,
        edges,
        numbering,
        counts,
        weights,
        bounds,
        beta,
        options.tilt,
        attempt.relaxed,
    )
    guard.enter("the check of the artifact")
    _check(artifact, options)
    return Compared(
        artifact=artifact,
        core=core,
        relaxed=attempt.relaxed,
        letters=letters,
        table=table,
        plans=counts.total,
        min_cost=int(bounds.cost_to_go[table.start]),
        max_depth=len(table.levels) - 2,
    )


def _check_options(options: Options) -> Beta:
    try:
        beta = parse_decimal(options.beta, "beta", Code.MANIFEST_VALUE)
    except Rejected:
        beta = (-1, 0)
    if beta[0] < 0:
        raise Refused("TCC408", f"beta has to be an exact decimal of at least 0: {options.beta}")
    if not 0 <= options.tilt <= MAX_TILT:
        raise Refused("TCC408", f"the tilt has to be 0 .. {MAX_TILT}: {options.tilt}")
    if options.max_states < 1:
        raise Refused("TCC408", f"the limit on states has to be at least 1: {options.max_states}")
    bits = options.round_counts
    if bits is not None and not 1 <= bits <= MAX_ROUND_BITS:
        raise Refused("TCC408", f"counts are rounded to 1 .. {MAX_ROUND_BITS} bits: {bits}")
    return beta


def _read(data: bytes) -> tuple[Core, Mapping[str, Json]]:
    try:
        value = decode_core(data)
        return core_of(value), value
    except Rejected as refusal:
        raise Refused("TCC409", f"this is no core: {refusal}") from refusal


def _finite(core: Core, letters: Letters, found: Machine | Table) -> Table:
    """The table of a language that has to be finite by now, for the passes that count."""
    if isinstance(found, Machine):
        raise infinite(core, letters, *(find_cycle(found) or ([], [])))
    return ranked(as_deterministic(found))


def _check(artifact: bytes, options: Options) -> None:
    """Hand out nothing that the kernel refuses: the certificates are checked as a reader would."""
    try:
        options.check(artifact)
    except Rejected as refusal:
        raise Refused(
            "TCC410", f"the artifact does not pass its own certificates: {refusal}"
        ) from refusal


def _unplanned(front: Frontend) -> list[Diagnostic]:
    """A warning where no statement says what a plan is."""
    if front.unplanned is None:
        return []
    return [
        Diagnostic(
            code="TCC413",
            severity="warning",
            message="no `plan`: everything that the other statements allow is a plan",
            span=front.unplanned,
            hint="write a `plan`, or `plan = any*` where this is meant",
        )
    ]


def _warning(found: Next, places: Mapping[str, Span]) -> Diagnostic:
    return Diagnostic(
        code="TCC411",
        severity="warning",
        message=f"CountFail: {found.warning}",
        span=None if found.place is None else places.get(found.place),
        hint="raise the limit to keep everything in the automaton, or leave --relax auto out",
    )


def _diagnostic(refusal: Refused, places: Mapping[str, Span]) -> Diagnostic:
    span = None if refusal.place is None else places.get(refusal.place)
    return Diagnostic(
        code=refusal.code,
        message=refusal.message,
        span=span,
        hint=refusal.hint,
        notes=tuple(
            Note(message=text, span=None if place is None else places.get(place))
            for text, place in refusal.notes
        ),
    )

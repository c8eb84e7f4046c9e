"""The whole compiler: from a grammar, or its core, to the bytes of an artifact.

Start reading at :func:`run_passes`. Specification: docs/spec/core.md for the input,
docs/spec/artifact.md for the output. Every pass is a function without side effects, in a file of
its own:

    parse, names        `syntax` and `names`: turn a text into a core
    places              `tcc_certs.policy.places`: the part of each statement for the automaton
    letters             `automata.letters`: merge calls that no statement distinguishes
    explore             `automata.regular`: turn the plan expression into an automaton
    constrain           `automata.constraint`: apply each statement, then trim and minimise
    strict              `automata.answers`: keep what goes on after all answers of strict tools
    cyclic              `cyclic`: for a gate, write an automaton with cycles; no later pass
    count, bound        `counting`: plans, race counts, least cost and best residual to go
    certify, emit       `artifact`: digests, numbering, bytes
    check               the kernel of `tcc_certs` checks every certificate, once

If the automaton gets too large, the compilation ends with an error that names what would fit. On
request (``relax auto``), the passes are tried again with bounds instead of counts (`relax`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import MAX_ROUND_BITS
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.policy.core import Core
from tcc_certs.policy.places import left_out, parts_of
from tcc_certs.policy.reader import core_json, read_core
from tcc_certs.race.enclosures import Beta
from tcc_compiler import frontend, pass_diagnostics
from tcc_compiler.artifact import Contents, certify, emit
from tcc_compiler.automata.answers import keep_strict
from tcc_compiler.automata.constraint.apply import constrain
from tcc_compiler.automata.letters import CallEdges, Letters, join_calls, partition
from tcc_compiler.automata.regular.explore import explore, explore_partial
from tcc_compiler.automata.table import Machine, Table, as_deterministic, ranked
from tcc_compiler.automata.witness import find_cycle, infinite
from tcc_compiler.counting import bound, check_bits, count, count_for_gate, used_calls, weigh
from tcc_compiler.cyclic import CyclicContents, breadth_first, calls_to_go, emit_cyclic
from tcc_compiler.expectations import Built, Unmet, compare
from tcc_compiler.frozen import frozen
from tcc_compiler.language.diagnostics import Diagnostic
from tcc_compiler.language.source import Source, Span
from tcc_compiler.options import DEFAULT_TILT, GRAPH_SUFFIXES, MAX_TILT, Options
from tcc_compiler.relax import attempts
from tcc_compiler.relax.contradiction import with_contradiction
from tcc_compiler.resources import CompileRefused, Guard, Place, Timer

if TYPE_CHECKING:
    import networkx as nx


@frozen
class Compiled:
    """The result of a compilation.

    Attributes:
        artifact: its bytes; None if a diagnostic is an error. The kernel (`Options.check`) has
            checked every certificate of these bytes; nothing else does.
        checked: the digest of the artifact, hex, as the kernel returned it. A reader of the bytes
            only has to compare their digest with it. None if `Options.check` checked nothing: then
            their reader must check the certificates.
        diagnostics: errors and warnings; the front end's come first.
        sources: the texts that spans point into, by name.
        places: the span of each statement by its number, and of ``plan``, ``tool NAME`` and so on.
        core: the core of the grammar; None if a pass refused it, and from :func:`compile_core`.
        unmet: the `accept` lines that do not hold.
        examples, expectations: how many the grammar has.
        undecided: how many of the examples, and of the expectations, could not be decided.
        built: the result of the passes, even if an example or expectation does not hold.
    """

    artifact: bytes | None
    checked: str | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    sources: Mapping[str, Source] = field(default_factory=dict)
    places: Mapping[Place, Span] = field(default_factory=dict)
    core: Core | None = None
    unmet: tuple[Unmet, ...] = ()
    examples: int = 0
    expectations: int = 0
    undecided: tuple[int, int] = (0, 0)
    built: Built | None = field(default=None, repr=False, compare=False)


def compile_core(core: Core | bytes, options: Options) -> Compiled:
    """Compile a core, or its canonical bytes (docs/spec/core.md)."""
    try:
        given = _read(core) if isinstance(core, bytes) else core
        built, warnings = _compile(given, options, Timer(options))
    except CompileRefused as refusal:
        return _refused(refusal)
    diagnostics = tuple(pass_diagnostics.relaxed_diagnostic(warning, {}) for warning in warnings)
    return Compiled(artifact=built.artifact, checked=built.checked, diagnostics=diagnostics)


def compile_file(path: Path, options: Options, *, examples: bool = True) -> Compiled:
    """Compile a grammar file or a graph; its examples and expectations must hold.

    Args:
        examples: False ignores the examples and expectations.
    """
    timer = Timer(options)
    try:
        front = read_source(path, timer.check_reading)
    except CompileRefused as refusal:
        return _refused(refusal)
    return compile_frontend(front if examples else _bare(front), options, timer)


def compile_text(text: str, options: Options, name: str = "<text>") -> Compiled:
    """Compile the text of a grammar; see :func:`compile_file`."""
    timer = Timer(options)
    try:
        front = frontend.read_grammar_text(text, name, timer.check_reading)
    except CompileRefused as refusal:
        return _refused(refusal)
    return compile_frontend(front, options, timer)


def compile_bytes(
    data: bytes,
    options: Options,
    name: str,
    folder: Path | None = None,
    *,
    examples: bool = True,
) -> Compiled:
    """Compile a grammar that is given as bytes, such as from a pipe; see :func:`compile_file`.

    Args:
        name: its name in diagnostics.
        folder: the folder for used files, which must be in it or below it. None: it can use no
            files.
    """
    timer = Timer(options)
    try:
        front = frontend.read_grammar_bytes(data, name, folder, timer.check_reading)
    except CompileRefused as refusal:
        return _refused(refusal)
    return compile_frontend(front if examples else _bare(front), options, timer)


def compile_graph(graph: nx.Graph[Any], options: Options, name: str = "graph") -> Compiled:
    """Compile a networkx graph; `name` is the grammar's name if the graph has none."""
    from tcc_compiler.imports.graph_grammar import read_networkx

    timer = Timer(options)
    try:
        front = read_networkx(graph, name, timer.check_reading)
    except CompileRefused as refusal:
        return _refused(refusal)
    return compile_frontend(front, options, timer)


def read_source(path: Path, check_time: Callable[[], None] | None = None) -> frontend.Compiled:
    """Return the front end's result for a file; its ending decides whether it is a graph."""
    if path.suffix.lower() not in GRAPH_SUFFIXES:
        return frontend.read_grammar(path, check_time)
    from tcc_compiler.imports.graph_grammar import read_graph

    return read_graph(path, check_time)


def _bare(front: frontend.Compiled) -> frontend.Compiled:
    """Return `front` without its examples and expectations."""
    return replace(front, examples=(), expects=())


def _refused(refusal: CompileRefused) -> Compiled:
    return Compiled(artifact=None, diagnostics=(pass_diagnostics.refusal_diagnostic(refusal, {}),))


def compile_frontend(front: frontend.Compiled, options: Options, timer: Timer) -> Compiled:
    """Compile the front end's result; its examples and expectations must hold."""
    diagnostics: list[Diagnostic] = []
    artifact = checked = core = built = None
    unmet: tuple[Unmet, ...] = ()
    undecided = (0, 0)
    if front.core is not None:
        try:
            timer.check_reading()
            built, warnings = _compile(front.core, options, timer)
            diagnostics = [
                pass_diagnostics.relaxed_diagnostic(warning, front.places) for warning in warnings
            ]
            diagnostics += pass_diagnostics.many_answers_diagnostics(
                built.core, built.letters, built.table, front.places
            )
            diagnostics += pass_diagnostics.parallel_diagnostics(
                built.core, built.artifact, front.places
            )
            compared = compare(
                built, front.examples, front.expects, options, timer.check_examples, front.places
            )
            diagnostics += compared.diagnostics
            core, unmet, undecided = built.core, compared.unmet, compared.undecided
            if not any(diagnostic.severity == "error" for diagnostic in diagnostics):
                artifact, checked = built.artifact, built.checked
        except CompileRefused as refusal:
            places = {**front.places}
            if front.span is not None:
                places.setdefault("plan", front.span)
            diagnostics = [pass_diagnostics.refusal_diagnostic(refusal, places)]
    return Compiled(
        artifact=artifact,
        checked=checked,
        diagnostics=(*front.diagnostics, *diagnostics),
        sources=front.sources,
        places=front.places,
        core=core,
        unmet=unmet,
        examples=len(front.examples),
        expectations=len(front.expects),
        undecided=undecided,
        built=built,
    )


def _compile(
    core: Core, options: Options, timer: Timer
) -> tuple[Built, list[attempts.NextAttempt]]:
    """Make the requested attempt; with ``relax auto`` then further ones, until one fits the limits.

    Returns:
        the result, and the attempts that relaxed or rounded something for it, each with its
        warning.

    Raises:
        CompileRefused: no attempt fits the limits, the set of plans is empty or infinite, or a
            number is out of range.
    """
    beta = _check_options(options)
    parts_of(core)
    timer.check("the tables of statements")
    asked = attempts.statements_named(core, options.relax_names)
    attempt = attempts.first_attempt(asked, options)

    def take(attempt: attempts.Attempt, guard: Guard) -> int:
        return run_passes(core, beta, attempt, options, guard).table.states

    first_refusal: CompileRefused | None = None
    warnings: list[attempts.NextAttempt] = []
    while True:
        guard = Guard(options, timer.share(), attempt.exhaustive)
        try:
            built = run_passes(core, beta, attempt, options, guard)
            return built, [w for w in warnings if built.table.nondeterministic or not w.derivations]
        except CompileRefused as refusal:
            # If several attempts reach a limit, the error reports the limit of the exact attempt.
            if first_refusal is None or refusal.code not in attempts.GUARDED:
                first_refusal = refusal
            if not options.auto_relax:
                more = attempts.with_alternatives(
                    core, attempt, refusal, guard, options, timer, take
                )
                told = with_contradiction(core, more, options, timer)
                raise attempts.explained(told, core, asked) from None
            following = attempts.next_attempt(core, attempt, refusal, guard, options, timer.half())
            if following is None or timer.is_over():
                raise attempts.explained(first_refusal, core, asked) from None
            if following.warning is None:
                warnings.pop()
            else:
                warnings.append(following)
            attempt = following.attempt


def run_passes(
    core: Core,
    beta: Beta,
    attempt: attempts.Attempt,
    options: Options,
    guard: Guard,
) -> Built:
    """Run the passes from a core to an artifact, in order.

    Raises:
        CompileRefused: a limit of the compilation was reached, the set of plans is empty or
            infinite, or a number is out of range.
    """
    # The automaton: the plan expression, then every statement that is not left to the run.
    attempts.check_exact(core, attempt)
    kept = join_calls(core)
    letters, automaton = _constrained(core, kept, attempt, options, guard)
    if any(tool.strict for tool in kept.tools):
        automaton = keep_strict(kept, letters, automaton, guard)
    if isinstance(automaton, Machine):
        if _allows_cycles(core, attempt, options):
            return _cyclic(core, beta, attempt, letters, breadth_first(automaton), options, guard)
        raise infinite(kept, letters, *(find_cycle(automaton) or ([], [])))
    table = ranked(as_deterministic(automaton))
    # Counts and bounds over the automaton.
    guard.enter("the counts")
    tilt = _tilt(core, options)
    weights = weigh(core, used_calls(table, letters), beta, tilt, guard)
    if options.purpose == "gate":
        counts = count_for_gate(table, letters, guard)
    else:
        counts = count(table, letters, weights, guard, attempt.round_counts)
    if attempt.round_counts is None:
        check_bits(counts, options.count_bits)
    bounds = bound(core, table, letters, weights, guard)
    # The file.
    guard.enter("the digests")
    edges = CallEdges(table, letters, guard)
    numbering = certify(core, table, edges, guard)
    contents = Contents(
        core=core,
        document=core_json(core),
        table=table,
        edges=edges,
        numbering=numbering,
        counts=counts,
        weights=weights,
        bounds=bounds,
        beta=beta,
        tilt=tilt,
        relaxed=attempt.relaxed,
    )
    artifact = emit(contents)
    guard.enter("the check of the artifact")
    checked = _check(artifact, options)
    guard.enter("the check of the artifact")  # again: the kernel itself reads no clock
    return Built(
        artifact=artifact,
        checked=checked,
        core=core,
        relaxed=attempt.relaxed,
        letters=letters,
        table=table,
        plans=counts.total,
        bounds_plans=counts.plans is None and counts.total.bit_length() > MAX_ROUND_BITS,
        min_cost=int(bounds.cost_to_go[table.start]),
        max_depth=len(table.levels) - 2,
    )


def _allows_cycles(core: Core, attempt: attempts.Attempt, options: Options) -> bool:
    """Return whether the artifact may have plans of unbounded length, that is cycles."""
    if attempt.nondeterministic:
        return False
    if options.purpose is not None:
        return options.purpose == "gate"
    counts = options.round_counts is not None or options.count_bits is not None
    return not (counts or core.has_plan or core.depth_totals)


def _constrained(
    core: Core, kept: Core, attempt: attempts.Attempt, options: Options, guard: Guard
) -> tuple[Letters, Machine | Table]:
    """Return the letters, and the automaton of all statements.

    For a gate the statements that the gate can decide by itself are left out, if the automaton then
    has cycles. If it has none, or if this attempt fails and the grammar limits the depth, all
    statements are applied as for a run.

    Args:
        kept: the core with joined calls.
    """
    if _allows_cycles(core, attempt, options):
        relaxed = tuple(sorted({*attempt.relaxed, *left_out(core)}))
        try:
            letters, automaton = _explored(core, kept, replace(attempt, relaxed=relaxed), guard)
        except CompileRefused as refusal:
            if refusal.code == "TCC404" or not core.depth_totals:
                raise
        else:
            if relaxed == attempt.relaxed or isinstance(automaton, Machine):
                return letters, automaton
    return _explored(core, kept, attempt, guard)


def _explored(
    core: Core, kept: Core, attempt: attempts.Attempt, guard: Guard
) -> tuple[Letters, Machine | Table]:
    letters = partition(kept, attempts.kept_parts(core, attempt.relaxed))
    guard.enter("the plan expression", "plan")
    machine = (explore_partial if attempt.nondeterministic else explore)(kept, letters, guard)
    return letters, constrain(kept, letters, machine, guard)


def _cyclic(
    core: Core,
    beta: Beta,
    attempt: attempts.Attempt,
    letters: Letters,
    machine: Machine,
    options: Options,
    guard: Guard,
) -> Built:
    """Return the result for an automaton with cycles.

    Raises:
        CompileRefused: TCC402, every plan has more calls than a limit on the depth allows; TCC405,
            a number is out of range.
    """
    fewest = calls_to_go(machine)[machine.start]
    if core.depth is not None and fewest > core.depth:
        number = core.depth_totals[0]
        raise CompileRefused(
            "TCC402",
            f"there is no plan: the shortest has {fewest} calls, and"
            f" {attempts.text_of(core, number)} leaves none",
            hint="raise the limit, or let plans be shorter",
            place=number,
        )
    guard.enter("the file")
    tilt = _tilt(core, options)
    left = left_out(core)
    relaxed = tuple([number for number in attempt.relaxed if number not in left])
    contents = CyclicContents(
        core=core,
        document=core_json(core),
        machine=machine,
        letters=letters,
        weights=weigh(core, used_calls(machine, letters), beta, tilt, guard),
        beta=beta,
        tilt=tilt,
        relaxed=relaxed,
    )
    artifact = emit_cyclic(contents, guard)
    guard.enter("the check of the artifact")
    checked = _check(artifact, options)
    guard.enter("the check of the artifact")
    return Built(
        artifact=artifact,
        checked=checked,
        core=core,
        relaxed=tuple(sorted({*relaxed, *left})),
        letters=letters,
        table=machine,
        plans=None,
        bounds_plans=False,
        min_cost=None,
        max_depth=core.depth,
    )


def _check_options(options: Options) -> Beta:
    try:
        beta = parse_decimal(options.beta, "beta", Code.MANIFEST_VALUE)
    except Rejected:
        beta = (-1, 0)
    if beta[0] < 0:
        raise CompileRefused(
            "TCC408", f"beta has to be an exact decimal of at least 0: {options.beta}"
        )
    if options.tilt is not None and not 0 <= options.tilt <= MAX_TILT:
        raise CompileRefused("TCC408", f"the tilt has to be 0 .. {MAX_TILT}: {options.tilt}")
    if options.max_states < 1:
        raise CompileRefused(
            "TCC408", f"the limit on states has to be at least 1: {options.max_states}"
        )
    bits = options.round_counts
    if bits is not None and not 1 <= bits <= MAX_ROUND_BITS:
        raise CompileRefused("TCC408", f"counts are rounded to 1 .. {MAX_ROUND_BITS} bits: {bits}")
    if options.purpose not in (None, "run", "gate"):
        raise CompileRefused("TCC408", f"an artifact is for run or gate: {options.purpose}")
    if options.purpose == "gate" and bits is not None:
        raise CompileRefused(
            "TCC408",
            "an artifact for a gate has no race counts to round",
            hint="leave --round-counts out, or --for gate",
        )
    return beta


def _tilt(core: Core, options: Options) -> int:
    """Return the bits of the weights; 0 if no call has a cost, as all weights are equal then."""
    if options.tilt is not None:
        return options.tilt
    free = all(call.cost_low == call.cost_high == 0 for call in core.calls)
    return 0 if free else DEFAULT_TILT


def _read(data: bytes) -> Core:
    try:
        return read_core(data)
    except Rejected as refusal:
        raise CompileRefused("TCC409", f"this is no core: {refusal}") from refusal


def _check(artifact: bytes, options: Options) -> str | None:
    """Check every certificate, as a reader of the artifact would.

    Returns:
        the digest of the artifact that the kernel returned, hex; None if it returned nothing.

    Raises:
        CompileRefused: TCC410, a certificate is wrong. This is a defect of the compiler.
    """
    try:
        checked = options.check(artifact)
    except Rejected as refusal:
        raise CompileRefused(
            "TCC410", f"the artifact does not pass its own certificates: {refusal}"
        ) from refusal
    return None if checked is None else checked.file.digest.hex()

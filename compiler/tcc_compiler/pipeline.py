"""The whole compiler on one page: from a grammar, or its core, to the bytes of an artifact.

Specification: docs/spec/core.md (what goes in), docs/spec/artifact.md (what comes out).  Every
pass is a function from value to value and stands in a file of its own; between any two statements
the machine is made minimal again, which is what keeps it small.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tcc_certs.codec import Json
from tcc_certs.core import core_of, decode_core
from tcc_certs.errors import Code, Rejected
from tcc_certs.fixed import parse_decimal
from tcc_certs.grammar import Core
from tcc_certs.kernel import check
from tcc_certs.weights import Beta
from tcc_compiler.bounds import bound
from tcc_compiler.certify import CallEdges, certify
from tcc_compiler.constrain import constrain
from tcc_compiler.count import check_bits, count, used_calls, weigh
from tcc_compiler.diagnostics import Diagnostic
from tcc_compiler.emit import emit
from tcc_compiler.expectations import Compared, compare
from tcc_compiler.explore import explore
from tcc_compiler.frontend import Frontend, read_grammar, read_grammar_text
from tcc_compiler.guard import Guard
from tcc_compiler.imports.read import GRAPH_SUFFIXES, read_graph
from tcc_compiler.letters import Letters, partition
from tcc_compiler.machine import Machine, targets_first
from tcc_compiler.options import MAX_TILT, Options
from tcc_compiler.refusal import Refused
from tcc_compiler.source import Source
from tcc_compiler.spans import Span
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
        return Compiled(artifact=_compile(core, options).artifact)
    except Refused as refusal:
        return Compiled(artifact=None, diagnostics=(_diagnostic(refusal, {}),))


def compile_file(path: Path, options: Options) -> Compiled:
    """Compile a grammar file or a graph, and hold it to its own examples and expectations."""
    return _compile_frontend(read_source(path), options)


def compile_text(text: str, options: Options, name: str = "<text>") -> Compiled:
    """Compile the text of a grammar; see :func:`compile_file`."""
    return _compile_frontend(read_grammar_text(text, name), options)


def read_source(path: Path) -> Frontend:
    """The front end's result for a file: a grammar, or a graph by its ending."""
    return read_graph(path) if path.suffix.lower() in GRAPH_SUFFIXES else read_grammar(path)


def _compile_frontend(front: Frontend, options: Options) -> Compiled:
    found: list[Diagnostic] = []
    artifact = None
    if front.core is not None:
        try:
            made = _compile(front.core, options)
            found = compare(made, front.examples, front.expects)
            artifact = None if found else made.artifact
        except Refused as refusal:
            found = [_diagnostic(refusal, front.places)]
    return Compiled(
        artifact=artifact,
        diagnostics=(*front.diagnostics, *found),
        sources=front.sources,
        examples=len(front.examples),
        expectations=len(front.expects),
    )


def _compile(data: bytes, options: Options) -> Compared:
    """The passes, in order.

    Raises:
        Refused: a guard fired, the set of plans is empty or infinite, or a number is out of range.
    """
    beta = _check_options(options)
    core, value = _read(data)
    guard = Guard(options)
    letters = partition(core)
    guard.enter("the plan expression", "plan")
    machine = explore(core, letters, guard)
    machine = constrain(core, letters, machine, guard)
    order = _finite(core, letters, machine)
    guard.enter("the counts")
    weights = weigh(core, used_calls(machine, letters), beta, options.tilt, guard)
    counts = count(machine, order, letters, weights, guard)
    check_bits(counts, machine, options.count_bits)
    bounds = bound(core, machine, order, letters, weights, guard)
    guard.enter("the digests")
    edges = CallEdges(machine, letters)
    numbering = certify(core, machine, order, edges, counts.rank, guard)
    artifact = emit(
        core,
        value,
        machine,
        edges,
        numbering,
        counts,
        weights,
        bounds,
        beta,
        options.tilt,
    )
    guard.enter("the check of the artifact")
    _check(artifact)
    return Compared(
        artifact=artifact,
        core=core,
        letters=letters,
        machine=machine,
        plans=counts.plans[machine.start],
        min_cost=bounds.cost_to_go[machine.start],
        max_depth=counts.rank[machine.start],
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
    return beta


def _read(data: bytes) -> tuple[Core, Mapping[str, Json]]:
    try:
        value = decode_core(data)
        return core_of(value), value
    except Rejected as refusal:
        raise Refused("TCC409", f"this is no core: {refusal}") from refusal


def _finite(core: Core, letters: Letters, machine: Machine) -> Sequence[int]:
    """The states, targets first, of a machine that has to be finite by now."""
    order = targets_first(machine)
    if order is not None:
        return order
    found = find_cycle(machine)
    raise infinite(core, letters, *(found or ([], [])))


def _check(artifact: bytes) -> None:
    """Hand out nothing that the kernel refuses: the certificates are checked as a reader would."""
    try:
        check(artifact)
    except Rejected as refusal:
        raise Refused(
            "TCC410", f"the artifact does not pass its own certificates: {refusal}"
        ) from refusal


def _diagnostic(refusal: Refused, places: Mapping[str, Span]) -> Diagnostic:
    span = None if refusal.place is None else places.get(refusal.place)
    return Diagnostic(code=refusal.code, message=refusal.message, span=span, hint=refusal.hint)

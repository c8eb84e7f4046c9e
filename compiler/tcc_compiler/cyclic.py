"""Write the artifact of an automaton with cycles: for a gate, without counts, ranks and bounds.

Specification: docs/spec/artifact.md, section 10.
Cost: linear in the edges over calls, plus one refinement of the states for the certificate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from blake3 import blake3

from tcc_certs.cyclic_rules import BY_EDGE, BY_END, BY_SPLIT
from tcc_certs.formats import artifact, codec
from tcc_certs.policy.core import Core
from tcc_certs.race.enclosures import Beta
from tcc_compiler.artifact import Column, call_columns, document_columns, pack, write_artifact
from tcc_compiler.automata.letters import Letters
from tcc_compiler.automata.minimise import Refinement
from tcc_compiler.automata.table import Edges, Machine
from tcc_compiler.counting import Weights
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

_HEADS = (b"\x12\x00", b"\x12\x01")


@frozen(eq=False)
class CyclicContents:
    """Everything that an artifact with cycles is written from.

    Attributes:
        core: the grammar that was compiled.
        document: the core as a JSON object.
        machine: the automaton over `letters`, trimmed and minimal; see :func:`breadth_first`.
        beta, tilt: the options that the weights were computed with.
        relaxed: the numbers of the statements that were relaxed. `machine` also omits the
            statements that a gate decides by itself (:func:`tcc_certs.policy.places.left_out`).
    """

    core: Core
    document: Mapping[str, codec.Json]
    machine: Machine
    letters: Letters
    weights: Weights
    beta: Beta
    tilt: int
    relaxed: tuple[int, ...]


def breadth_first(machine: Machine) -> Machine:
    """Return the machine with its states in breadth-first order, letters by their first calls."""
    number = {machine.start: 0}
    order = [machine.start]
    edges: list[Edges] = []
    for q in order:  # grows as it is read
        for _, target in machine.edges[q]:
            if target not in number:
                number[target] = len(order)
                order.append(target)
        edges.append(tuple([(letter, number[target]) for letter, target in machine.edges[q]]))
    return Machine(start=0, accept=[machine.accept[q] for q in order], edges=edges)


def calls_to_go(machine: Machine) -> list[int]:
    """Return, for each state of a trimmed machine, the fewest calls to an accepting state."""
    sources: list[list[int]] = [[] for _ in machine.accept]
    for q, edges in enumerate(machine.edges):
        for _, target in edges:
            sources[target].append(q)
    order = [q for q, accepting in enumerate(machine.accept) if accepting]
    found = dict.fromkeys(order, 0)
    for q in order:  # grows as it is read
        for source in sources[q]:
            if source not in found:
                found[source] = found[q] + 1
                order.append(source)
    return [found[q] for q in range(machine.states)]


def emit_cyclic(contents: CyclicContents, guard: Guard) -> bytes:
    """Return the bytes of the artifact.

    Raises:
        CompileRefused: TCC403 or TCC404 from the guard.
    """
    core, letters, machine = contents.core, contents.letters, contents.machine
    calls = sorted(contents.weights.weight)
    index = {call: at for at, call in enumerate(calls)}
    rows = _rows(machine, letters, index, guard)
    columns: dict[str, Column] = {
        **_columns(machine, rows),
        **_splits(machine, letters, index, guard),
        **call_columns(core, calls, contents.weights),
        **document_columns(core, contents.document, calls),
    }
    manifest = artifact.Manifest(
        grammar=core.name,
        version=core.version,
        beta=contents.beta,
        tilt=contents.tilt,
        fraction_bits=contents.weights.fraction_bits,
        states=machine.states,
        edges=sum(map(len, rows)),
        calls=len(calls),
        root=_digest(core, calls, machine, rows),
        cost_max=max((core.calls[call].cost_high for call in calls), default=0),
        root_document=codec.root_document(core.name, core.version, core.limit_texts),
        relaxed=contents.relaxed,
        gate=True,
        cyclic=True,
    )
    return write_artifact(manifest, columns)


def _rows(
    machine: Machine, letters: Letters, index: Mapping[int, int], guard: Guard
) -> list[list[tuple[int, int]]]:
    """Return each state's edges over the calls of the artifact: pairs (call, target), sorted."""
    rows, held = [], 0
    for edges in machine.edges:
        row = [(index[call], to) for letter, to in edges for call in letters.calls[letter]]
        held += len(row)
        guard.room(held)
        guard.tick(1 + len(row))
        rows.append(sorted(row))
    return rows


def _columns(machine: Machine, rows: Sequence[Sequence[tuple[int, int]]]) -> dict[str, Column]:
    begins = [0]
    for row in rows:
        begins.append(begins[-1] + len(row))
    return {
        "accept": pack("accept", [int(accepting) for accepting in machine.accept]),
        "calls_to_go": pack("calls_to_go", calls_to_go(machine)),
        "edge_start": pack("edge_start", begins),
        "edge_call": pack("edge_call", [call for row in rows for call, _ in row]),
        "edge_target": pack("edge_target", [target for row in rows for _, target in row]),
    }


def _splits(
    machine: Machine, letters: Letters, index: Mapping[int, int], guard: Guard
) -> dict[str, Column]:
    """Return the columns of the certificate that no two states have the same plans."""
    refined = Refinement(machine, guard)
    call, by = [], []
    for split in refined.splits:
        call.append(0 if split.letter is None else index[letters.calls[split.letter][0]])
        if split.by is None:
            by.append(BY_END if split.letter is None else BY_EDGE)
        else:
            by.append(BY_SPLIT + split.by)
    return {
        "place": pack("place", refined.place),
        "split_at": pack("split_at", [split.at for split in refined.splits]),
        "split_by": pack("split_by", by),
        "split_call": pack("split_call", call),
    }


def _digest(
    core: Core,
    calls: Sequence[int],
    machine: Machine,
    rows: Sequence[Sequence[tuple[int, int]]],
) -> bytes:
    """Return the digest of the graph, which the manifest gives as `root`."""
    found = [core.calls[call] for call in calls]
    digests = [codec.call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in found]
    hasher = blake3()
    for accepting, row in zip(machine.accept, rows, strict=True):
        parts = [_HEADS[bool(accepting)], len(row).to_bytes(4, "little")]
        for call, target in row:
            parts += digests[call], target.to_bytes(4, "little")
        hasher.update(b"".join(parts))
    return hasher.digest()

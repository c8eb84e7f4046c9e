"""The artifact of a finished automaton: canonical states, columns, bytes.

`certify` computes a content digest of each state and numbers the states by (rank, digest): equal
languages with equal costs have equal digests in the same order, whatever grammar they were written
in. `emit` writes the columns and the file.
Specification: docs/spec/artifact.md, sections 2 to 4 and C6.
Cost: for each state one BLAKE3 over its edges, and a sort; linear in the file.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from tcc_certs.formats import artifact, codec
from tcc_certs.formats.container import ITEM_SIZE, Tensor, layout, write_container
from tcc_certs.policy.core import Core
from tcc_certs.race.enclosures import Beta
from tcc_compiler.automata.letters import CallEdges
from tcc_compiler.automata.table import Ints, Numbers, Table, portions, starts
from tcc_compiler.counting import CostBounds, Limbs, SuffixCounts, Weights
from tcc_compiler.frozen import frozen
from tcc_compiler.resources import Guard

_TOGETHER = 1 << 14  # so many edges over calls at a time: a megabyte of what is hashed


# Rows of 32 bytes, held as four numbers each; only their bytes mean something.
Digests: TypeAlias = NDArray[np.uint64]

# An edge takes 64 bytes; the two bytes before a state's first edge end a cell of their own.
_CELL = 64
_HEAD = 62
_HEADS = (b"\x10\x00", b"\x10\x01")


@frozen(eq=False)
class Numbering:
    """The states in the artifact's order.

    Attributes:
        order: [states], the table's states; targets come first, the start last.
        number: [states], the artifact's number of each of the table's states.
        digest: [states], S of each state, as :data:`Digests`; in the artifact's order.
        targets: the column of targets, level by level, where the edges are gathered; else None.
    """

    order: Ints
    number: Numbers
    digest: Digests
    targets: list[bytes] | None = None


def certify(core: Core, table: Table, edges: CallEdges, guard: Guard) -> Numbering:
    """The digests and the numbering of a ranked, minimal table.

    A nondeterministic table is minimal if no two states are bisimilar.
    """
    calls = [codec.call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    if table.is_narrow and not table.nondeterministic:
        return _numbered(table.levels, _narrow_digests(calls, table, edges, guard))
    fixed = _digests([*(bytes(30) + head for head in _HEADS), *calls])
    # The halves of cells: the states, level by level, so that they are found by their numbers.
    halves = np.zeros((table.states + len(fixed), 4), dtype=np.uint64)
    digest, halves[table.states :] = halves[: table.states], fixed
    if edges.gathered:
        return _alike(halves, table, edges, guard)
    levels, head = table.levels, table.states
    for begin, end in portions(edges.start, levels if table.nondeterministic else None):
        key = _places(digest[:begin]) if table.nondeterministic else None
        call, target = edges.of(np.arange(begin, end), key, gaps=True)
        guard.tick(len(call))
        first = edges.start[begin : end + 1] - edges.start[begin] + np.arange(end + 1 - begin)
        cells = np.empty((len(call), 2), dtype=np.int64)
        np.add(call, head + len(_HEADS), out=cells[:, 0])
        cells[:, 1] = target
        cells[first[:-1], 1] = head + table.accept[begin:end]
        inner = levels[np.searchsorted(levels, begin, "right") : np.searchsorted(levels, end)]
        for low, high in pairwise([begin, *inner.tolist(), end]):
            ends = first[low - begin : high + 1 - begin]
            data = halves.take(cells[ends[0] : ends[-1]].ravel(), axis=0)
            digest[low:high] = _digests(_hashed(data, *_messages(ends - ends[0])))
    return _numbered(levels, digest)


def _alike(halves: Digests, table: Table, edges: CallEdges, guard: Guard) -> Numbering:
    """The numbering where edges are gathered: states of one level and shape are handled together.

    The levels below have their numbers, so a state's targets are written with its digest.

    Args:
        halves: as in :func:`certify`, but the states, which are set here, in their final order.
    """
    order = np.empty(table.states, dtype=np.int64)
    number = np.empty(table.states, dtype=np.int32)
    head = table.states
    # One buffer for all messages: a megabyte that is given back each time comes as new pages.
    room = np.empty((2 * max(_TOGETHER, 1 + int(edges.degree.max())), 4), dtype=np.uint64)
    column = []
    for begin, end in pairwise(table.levels.tolist()):
        members, hashes, rows = [], [], []
        for states, call, edge in edges.alike(begin, end):
            step = max(1, _TOGETHER // (len(call) + 1))
            cells = np.zeros((min(step, len(states)), len(call) + 1, 2), dtype=np.int64)
            cells[:, 1:, 0] = call + (head + len(_HEADS))
            begins, ends = _messages(np.arange(len(cells) + 1) * (len(call) + 1))
            for low in range(0, len(states), step):
                some = states[low : low + step]
                guard.tick(len(some) * len(call))
                target = number.take(edges.targets(some), mode="clip")
                target = target.take(edge, axis=1, mode="clip")
                own = cells[: len(some)]
                own[:, 0, 1] = head + table.accept.take(some)
                own[:, 1:, 1] = target
                data = halves.take(own.ravel(), axis=0, mode="clip", out=room[: own.size])
                hashes += _hashed(data, begins[: len(some)], ends[: len(some)])
                rows += _row_bytes(target)
            members.append(states)
        found = _digests(hashes)
        place = _by_digest(found)
        halves[begin:end] = found.take(place, axis=0)
        order[begin:end] = np.concatenate(members).take(place)
        number[order[begin:end]] = np.arange(begin, end)
        column.append(b"".join(map(rows.__getitem__, place.tolist())))
    return Numbering(order=order, number=number, digest=halves[:head], targets=column)


def _row_bytes(numbers: Numbers) -> list[bytes]:
    """The bytes of each row, which numpy copies as one item."""
    if not numbers.size:
        return [b""] * len(numbers)
    rows: list[bytes] = (
        numbers.astype("<i4", copy=False).view(f"V{4 * numbers.shape[1]}").ravel().tolist()
    )
    return rows


def _narrow_digests(
    calls: Sequence[bytes], table: Table, edges: CallEdges, guard: Guard
) -> Digests:
    """The digest of each state, one state at a time."""
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    # Heads, calls, then the states, as soon as they are known.
    parts = [*_HEADS, *calls]
    part, add = parts.__getitem__, parts.append
    states = len(parts)
    for begin, end in portions(edges.start):
        call, target = edges.of(np.arange(begin, end), gaps=True)
        guard.tick(len(call))
        first = edges.start[begin : end + 1] - edges.start[begin] + np.arange(end + 1 - begin)
        places = np.empty((len(call), 2), dtype=np.int64)
        np.add(call, len(_HEADS), out=places[:, 0])
        np.add(target, states, out=places[:, 1])
        places[first[:-1], 1] = table.accept[begin:end]
        # A state's first cell has its head alone.
        each, ends = places.ravel().tolist(), (2 * first + 1).tolist()
        for low, high in pairwise(ends):
            reset()
            update(b"".join(map(part, each[low : high - 1])))
            add(digest())
    return _digests(parts[states:])


def _messages(first: Ints) -> tuple[list[int], list[int]]:
    """Where messages begin and end, in bytes: cells `first` [states+1] have heads at their ends."""
    return (first[:-1] * _CELL + _HEAD).tolist(), (first[1:] * _CELL).tolist()


def _hashed(halves: Digests, begins: Sequence[int], ends: Sequence[int]) -> list[bytes]:
    """The digests of messages in the bytes of these halves."""
    # One hasher, and bound methods: for a small file this loop takes a third of the whole time.
    data, hasher = halves.view(np.uint8).reshape(-1).data, blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    return [(reset(), update(data[a:b]), digest())[2] for a, b in zip(begins, ends, strict=True)]


def _digests(messages_digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(messages_digests), dtype=np.uint64).reshape(-1, 4)


def _numbered(levels: Ints, digest: Digests) -> Numbering:
    """The states of each level by their digests."""
    level = np.repeat(np.arange(len(levels) - 1), np.diff(levels))
    order = _by_digest(digest)
    # Levels of 16 bits are sorted digit by digit.
    level = level.take(order).astype(np.uint16 if len(levels) <= 1 << 16 else np.int32)
    order = order.take(np.argsort(level, kind="stable"))
    number = np.empty(len(digest), dtype=np.int32)
    number[order] = np.arange(len(digest), dtype=np.int32)
    return Numbering(order=order, number=number, digest=digest.take(order, axis=0))


def _by_digest(digest: Digests) -> Ints:
    """The order of the digests as bytes."""
    leading = digest[:, 0].view(">u8").astype(np.uint64)
    order = np.argsort(leading)
    leading = leading[order]
    if np.all(leading[1:] != leading[:-1]):
        return order
    return np.lexsort(digest.view(">u8").T[::-1])


def _places(digest: Digests) -> Ints:
    """[states], the place of each digest among all of them."""
    place = np.empty(len(digest), dtype=np.int64)
    place[_by_digest(digest)] = np.arange(len(digest))
    return place


# The bytes of a column, or of its rows: what need not be copied before it is in the file is not.
Column: TypeAlias = "bytes | memoryview | list[bytes]"

_PORTION = 1 << 12


@frozen(eq=False)
class Contents:
    """The parts of an artifact.

    Attributes:
        core: the grammar that was compiled.
        document: the JSON object of the core; the tools are copied from it as they stand.
        table: the automaton, ranked and minimal; `edges`, `numbering`, `counts` and `bounds` are
            over its states.
        beta, tilt: the options that the weights were computed with.
        relaxed: the numbers of the statements that a run enforces in place of `table`, increasing.
    """

    core: Core
    document: Mapping[str, codec.Json]
    table: Table
    edges: CallEdges
    numbering: Numbering
    counts: SuffixCounts
    weights: Weights
    bounds: CostBounds
    beta: Beta
    tilt: int
    relaxed: tuple[int, ...]


def emit(contents: Contents) -> bytes:
    """The bytes of the artifact."""
    core, table = contents.core, contents.table
    calls = sorted(contents.weights.weight)
    columns = {
        **_states(contents),
        **_edges(contents, calls),
        **call_columns(core, calls, contents.weights),
        **document_columns(core, contents.document, calls),
    }
    manifest = artifact.Manifest(
        grammar=core.name,
        version=core.version,
        beta=contents.beta,
        tilt=contents.tilt,
        fraction_bits=contents.weights.fraction_bits,
        states=table.states,
        edges=contents.edges.count,
        calls=len(calls),
        root=contents.numbering.digest[-1].tobytes(),
        cost_max=contents.bounds.cost_max,
        root_document=codec.root_document(core.name, core.version, core.limit_texts),
        nondeterministic=table.nondeterministic,
        relaxed=contents.relaxed,
        round_counts=contents.counts.round_bits,
        gate=contents.counts.plans is None,
    )
    return write_artifact(manifest, columns)


def _states(contents: Contents) -> dict[str, Column]:
    table, counts, bounds = contents.table, contents.counts, contents.bounds
    order = contents.numbering.order
    ranks = np.repeat(np.arange(len(table.levels) - 1), np.diff(table.levels))
    columns = {
        "accept": _column(table.accept.take(order), "u1"),
        "rank": _column(ranks, "<u4"),
        "cost_to_go": _column(bounds.cost_to_go.take(order), "<i8"),
        "residual_to_go": _column(bounds.residual_to_go.take(order), "<i8"),
        # Digests are bytes: their order in memory is kept, whatever the byte order of the machine.
        "state_digest": _column(contents.numbering.digest, "=u8"),
    }
    plans = counts.plans
    if plans is not None:
        columns["plans"] = _limbs(plans, order)
    if counts.rounded is not None:
        of = "plans" if plans is None else "race"
        mantissa, exponent = (np.array(part, dtype=np.uint64)[order] for part in counts.rounded)
        columns[f"{of}_mantissa"] = _column(mantissa, "<u8")
        columns[f"{of}_exponent"] = _column(exponent, "<u4")
    elif counts.race is not None and (plans is None or not np.array_equal(counts.race, plans)):
        columns["race_count"] = _limbs(counts.race, order)
    return columns


def _limbs(limbs: Limbs, order: Ints) -> Column:
    """The limbs of a state side by side, states in `order`."""
    rows = np.empty((len(order), len(limbs)), dtype="<u8")
    # A portion at a time, so that what is transposed is still in the cache.
    for begin in range(0, len(order), _PORTION):
        some = slice(begin, begin + _PORTION)
        rows[some] = limbs.take(order[some], axis=1).T
    return _column(rows, "<u8")


def _column(values: NDArray[Any], dtype: str) -> Column:
    """The bytes of `values`, not copied where they already have that type."""
    return values.astype(dtype, copy=False).reshape(-1).view(np.uint8).data


def _edges(contents: Contents, calls: Sequence[int]) -> dict[str, Column]:
    edges, numbering = contents.edges, contents.numbering
    order = numbering.order
    key = numbering.number if contents.table.nondeterministic else None
    start = starts(edges.degree.take(order))
    index = np.zeros(len(contents.core.calls), dtype="<u4")
    index[list(calls)] = np.arange(len(calls))
    if numbering.targets is not None:
        return {
            "edge_start": _column(start, "<u8"),
            "edge_call": edges.call_rows(order, index),
            "edge_target": numbering.targets,
        }
    renamed = edges.renamed(index, numbering.number)
    edge_call, edge_target = (np.empty(edges.count, dtype="<u4") for _ in range(2))
    for begin, end in portions(start):
        rows = slice(start[begin], start[end])
        edge_call[rows], edge_target[rows] = renamed.of(order[begin:end], key)
    return {
        "edge_start": _column(start, "<u8"),
        "edge_call": _column(edge_call, "<u4"),
        "edge_target": _column(edge_target, "<u4"),
    }


def call_columns(core: Core, calls: Sequence[int], weights: Weights) -> dict[str, Column]:
    """The columns of the calls."""
    rows = [core.calls[call] for call in calls]
    return {
        "call_cost_low": pack("call_cost_low", [call.cost_low for call in rows]),
        "call_cost_high": pack("call_cost_high", [call.cost_high for call in rows]),
        "call_weight": pack("call_weight", [weights.weight[call] for call in calls]),
        "call_price": pack("call_price", [call.price for call in rows]),
        "call_latency_ms": pack("call_latency_ms", [call.latency for call in rows]),
        "call_epsilon": pack("call_epsilon", [call.epsilon for call in rows]),
        "call_text": pack_texts(call.text for call in rows),
    }


def document_columns(
    core: Core, document: Mapping[str, codec.Json], calls: Sequence[int]
) -> dict[str, Column]:
    """The core, and the tools that have a call on some edge."""
    owners = {core.calls[call].tool for call in calls}
    tools = document["tools"]
    kept = (
        [tool for at, tool in enumerate(tools) if at in owners] if isinstance(tools, list) else []
    )
    return {"core": codec.encode(document), "tools": codec.encode(kept)}


# The file: the one byte string of a manifest and its columns. A writer trusts its caller;
# :mod:`tcc_certs.kernel` is the side that is strict.

_TYPECODE = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}


def write_artifact(manifest: artifact.Manifest, columns: Mapping[str, Column]) -> bytes:
    """The one byte string of an artifact.

    Args:
        manifest: its `columns` are ignored: the digests are taken here.
        columns: raw little-endian bytes of every column but ``manifest``; see :func:`pack`,
            :func:`pack_limbs`.

    The writer trusts its caller; :mod:`tcc_certs.kernel` is the side that is strict.
    """
    rows = {name: data if isinstance(data, list) else [data] for name, data in columns.items()}
    digests = {name: _digest_of(rows[name]) for name in sorted(rows)}
    rows["manifest"] = [manifest_bytes(manifest, digests)]
    tensors = {}
    for name, parts in rows.items():
        dtype, dimensions = artifact.COLUMNS[name]
        items = sum(map(len, parts)) // ITEM_SIZE[dtype]
        shape = artifact.shape_of(dimensions, (items, items // max(1, manifest.states)), manifest)
        tensors[name] = Tensor(dtype=dtype, shape=shape, data=b"")
    # A container without data is its header; rows are joined once, where they have to be.
    header = write_container(tensors)
    return b"".join([header, *(part for name in layout(tensors) for part in rows[name])])


def _digest_of(rows: Sequence[bytes | memoryview]) -> bytes:
    """The digest of a column, some rows at a time."""
    hasher = blake3()
    step = 1 if len(rows) <= _PORTION else _PORTION
    for low in range(0, len(rows), step):
        hasher.update(rows[low] if step == 1 else b"".join(rows[low : low + step]))
    return hasher.digest()


def pack(name: str, values: Sequence[int]) -> bytes:
    """The raw bytes of column `name`; every value must fit its dtype."""
    column = array(_TYPECODE[artifact.COLUMNS[name][0]], values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def pack_limbs(values: Sequence[int]) -> bytes:
    """Counts as rows of 64-bit limbs, least first; the width is the least that holds them all."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    return b"".join([value.to_bytes(size, "little") for value in values])


def pack_texts(texts: Iterable[str]) -> bytes:
    """The raw bytes of ``call_text``."""
    return codec.encode(list(texts))


def manifest_bytes(manifest: artifact.Manifest, columns: Mapping[str, bytes]) -> bytes:
    """The canonical bytes of `manifest` with these column digests."""
    options: dict[str, codec.Json] = {
        "beta": codec.format_decimal(*manifest.beta),
        "fraction_bits": manifest.fraction_bits,
        "tilt": manifest.tilt,
    }
    if manifest.round_counts is not None:
        options["round_counts"] = manifest.round_counts
    members: dict[str, codec.Json] = {
        "schema": artifact.SCHEMA,
        "critical": manifest.critical,
        "grammar": {"name": manifest.grammar, "version": manifest.version},
        "options": options,
        "counts": manifest.counts,
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "root": manifest.root.hex(),
        "cost_max": codec.large(manifest.cost_max),
        "leaf_policy": {**artifact.LEAF_POLICY, "root": manifest.root_document},
        "columns": {name: digest.hex() for name, digest in columns.items()},
    }
    if manifest.relaxed:
        members[artifact.RELAXED] = list(manifest.relaxed)
    return codec.encode(members)

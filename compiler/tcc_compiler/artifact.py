"""Write the artifact of an acyclic automaton: state digests, state numbers, columns, bytes.

`certify` computes a content digest of each state and numbers the states by (rank, digest). So two
grammars with equal languages and equal costs get equal digests in the same order, however they were
written. `emit` writes the columns and the file.
Specification: docs/spec/artifact.md, sections 2 to 4 and C6.
Cost: one BLAKE3 per state over its edges, and one sort of the states. Linear in the size of the
file.
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

_TOGETHER = 1 << 14  # edges over calls that are hashed at a time: a megabyte of messages


# A digest is a row of 32 bytes, stored as four numbers. Only its bytes have a meaning.
Digests: TypeAlias = NDArray[np.uint64]

# The message of a state is a sequence of 64-byte cells. Its first cell has a head of two bytes at
# its end; each further cell is an edge: 32 bytes of the call, 32 of the target.
_CELL = 64
_HEAD = 62
_HEADS = (b"\x10\x00", b"\x10\x01")


@frozen(eq=False)
class Numbering:
    """The order of the states in the artifact: by level, then by digest; the start is last.

    Attributes:
        order: [states], the table's state at each position of the artifact.
        number: [states], the artifact's number of each of the table's states.
        digest: [states], S of each state, as :data:`Digests`, in the order of the artifact.
        targets: the bytes of the column of edge targets, one item per level, where edges are
            gathered by shape; else None.
    """

    order: Ints
    number: Numbers
    digest: Digests
    targets: list[bytes] | None = None


def certify(core: Core, table: Table, edges: CallEdges, guard: Guard) -> Numbering:
    """Return the digests and the numbering of a ranked, minimal table.

    A nondeterministic table counts as minimal if no two states are bisimilar.
    """
    calls = [codec.call_digest(c.text.encode(), c.cost_low, c.cost_high) for c in core.calls]
    if table.is_narrow and not table.nondeterministic:
        return _numbered(table.levels, _narrow_digests(calls, table, edges, guard))
    fixed = _digests([*(bytes(30) + head for head in _HEADS), *calls])
    # Every 32-byte half of a cell, by number. The states come first, level by level, so that a
    # state's digest is found by its number; heads and calls follow.
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
    """Return the numbering where edges are gathered: states of one level and shape go together.

    The states of all lower levels already have their numbers. So the targets of a state are known
    when its digest is computed, and are written in the same pass.

    Args:
        halves: as in :func:`certify`. The rows of states are filled here, in their final order.
    """
    order = np.empty(table.states, dtype=np.int64)
    number = np.empty(table.states, dtype=np.int32)
    head = table.states
    # One buffer serves all messages: a new megabyte each time would be fresh pages from the kernel.
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
    """Return the bytes of each row; a row is viewed as one numpy item, copied as a whole."""
    if not numbers.size:
        return [b""] * len(numbers)
    rows: list[bytes] = (
        numbers.astype("<i4", copy=False).view(f"V{4 * numbers.shape[1]}").ravel().tolist()
    )
    return rows


def _narrow_digests(
    calls: Sequence[bytes], table: Table, edges: CallEdges, guard: Guard
) -> Digests:
    """Return the digest of each state, computed one state at a time."""
    hasher = blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    # Heads, then calls, then the states, each as soon as its digest is known.
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
        # Only the second half of a state's first cell, its head, is part of the message.
        each, ends = places.ravel().tolist(), (2 * first + 1).tolist()
        for low, high in pairwise(ends):
            reset()
            update(b"".join(map(part, each[low : high - 1])))
            add(digest())
    return _digests(parts[states:])


def _messages(first: Ints) -> tuple[list[int], list[int]]:
    """Return the byte offsets of each message's begin and end; `first` [states+1] counts cells."""
    return (first[:-1] * _CELL + _HEAD).tolist(), (first[1:] * _CELL).tolist()


def _hashed(halves: Digests, begins: Sequence[int], ends: Sequence[int]) -> list[bytes]:
    """Return the digest of each message: bytes begins[i] .. ends[i] of `halves`."""
    # One hasher, and bound methods: for a small file this loop takes a third of the whole time.
    data, hasher = halves.view(np.uint8).reshape(-1).data, blake3()
    reset, update, digest = hasher.reset, hasher.update, hasher.digest
    return [(reset(), update(data[a:b]), digest())[2] for a, b in zip(begins, ends, strict=True)]


def _digests(messages_digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(messages_digests), dtype=np.uint64).reshape(-1, 4)


def _numbered(levels: Ints, digest: Digests) -> Numbering:
    """Return the numbering that sorts the states of each level by their digests."""
    level = np.repeat(np.arange(len(levels) - 1), np.diff(levels))
    order = _by_digest(digest)
    # numpy sorts numbers of 16 bits digit by digit, which is faster.
    level = level.take(order).astype(np.uint16 if len(levels) <= 1 << 16 else np.int32)
    order = order.take(np.argsort(level, kind="stable"))
    number = np.empty(len(digest), dtype=np.int32)
    number[order] = np.arange(len(digest), dtype=np.int32)
    return Numbering(order=order, number=number, digest=digest.take(order, axis=0))


def _by_digest(digest: Digests) -> Ints:
    """Return the permutation that sorts the digests as byte strings."""
    leading = digest[:, 0].view(">u8").astype(np.uint64)
    order = np.argsort(leading)
    leading = leading[order]
    if np.all(leading[1:] != leading[:-1]):
        return order
    return np.lexsort(digest.view(">u8").T[::-1])


def _places(digest: Digests) -> Ints:
    """Return [states], the rank of each digest among all given digests."""
    place = np.empty(len(digest), dtype=np.int64)
    place[_by_digest(digest)] = np.arange(len(digest))
    return place


# The bytes of a column, or the bytes of its rows. A column is not copied before it is in the file.
Column: TypeAlias = "bytes | memoryview | list[bytes]"

_PORTION = 1 << 12


@frozen(eq=False)
class Contents:
    """Everything that an artifact is written from.

    Attributes:
        core: the grammar that was compiled.
        document: the core as a JSON object. The tools are copied from it unchanged.
        table: the automaton, ranked and minimal. `edges`, `numbering`, `counts` and `bounds` are
            over its states.
        beta, tilt: the options that the weights were computed with.
        relaxed: the numbers of the statements that a run enforces because `table` does not,
            increasing.
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
    """Return the bytes of the artifact."""
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
        # Digests are byte strings: keep their order in memory, whatever the byte order of the
        # machine.
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
    """Return the column of counts: one row of limbs for each state, in `order`."""
    rows = np.empty((len(order), len(limbs)), dtype="<u8")
    # Transpose one portion of the states at a time, so that it stays in the cache.
    for begin in range(0, len(order), _PORTION):
        some = slice(begin, begin + _PORTION)
        rows[some] = limbs.take(order[some], axis=1).T
    return _column(rows, "<u8")


def _column(values: NDArray[Any], dtype: str) -> Column:
    """Return the bytes of `values` as `dtype`, without a copy where they already have that type."""
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
    """Return the columns about calls: costs, weight, price, latency, epsilon and text."""
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
    """Return the columns of the core and of the tools that have a call on some edge."""
    owners = {core.calls[call].tool for call in calls}
    tools = document["tools"]
    kept = (
        [tool for at, tool in enumerate(tools) if at in owners] if isinstance(tools, list) else []
    )
    return {"core": codec.encode(document), "tools": codec.encode(kept)}


# The file: the bytes of a manifest and of its columns. The writer does not check what it is given;
# the reader, :mod:`tcc_certs.kernel`, does.

_TYPECODE = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}


def write_artifact(manifest: artifact.Manifest, columns: Mapping[str, Column]) -> bytes:
    """Return the bytes of an artifact file.

    Args:
        manifest: its `columns` are ignored; the digests of `columns` are computed here.
        columns: the raw little-endian bytes of every column except ``manifest``; see :func:`pack`
            and :func:`pack_limbs`.

    The writer does not check what it is given; the reader, :mod:`tcc_certs.kernel`, does.
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
    # A container without data is just its header. The rows are joined once, with the header.
    header = write_container(tensors)
    return b"".join([header, *(part for name in layout(tensors) for part in rows[name])])


def _digest_of(rows: Sequence[bytes | memoryview]) -> bytes:
    """Return the digest of a column given as rows; rows are joined in portions for hashing."""
    hasher = blake3()
    step = 1 if len(rows) <= _PORTION else _PORTION
    for low in range(0, len(rows), step):
        hasher.update(rows[low] if step == 1 else b"".join(rows[low : low + step]))
    return hasher.digest()


def pack(name: str, values: Sequence[int]) -> bytes:
    """Return the raw little-endian bytes of column `name`; every value must fit its dtype."""
    column = array(_TYPECODE[artifact.COLUMNS[name][0]], values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def pack_limbs(values: Sequence[int]) -> bytes:
    """Return counts as rows of 64-bit limbs, lowest limb first, as wide as the largest count."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    return b"".join([value.to_bytes(size, "little") for value in values])


def pack_texts(texts: Iterable[str]) -> bytes:
    """Return the raw bytes of column ``call_text``: the texts as a JSON list."""
    return codec.encode(list(texts))


def manifest_bytes(manifest: artifact.Manifest, columns: Mapping[str, bytes]) -> bytes:
    """Return the canonical JSON of `manifest`, with these digests of columns."""
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

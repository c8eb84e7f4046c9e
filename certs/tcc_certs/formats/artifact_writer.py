"""Artifacts written: the one byte string of a manifest and its columns, and columns of values.

Normative text: docs/spec/artifact.md, sections 1 to 3.  No check needs any of this: a writer trusts
its caller, and :mod:`tcc_certs.kernel` is the side that is strict.  Cost: linear in the columns.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence

from tcc_certs.formats.artifact import COLUMNS, LEAF_POLICY, RELAXED, STATEMENTS, Manifest, shape_of
from tcc_certs.formats.codec import Json, blake, encode, format_decimal, large
from tcc_certs.formats.container import ITEM_SIZE, Tensor, write_container

_TYPECODE = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}


def write_artifact(manifest: Manifest, columns: Mapping[str, bytes | memoryview]) -> bytes:
    """The one byte string of an artifact.

    Args:
        manifest: its `columns` are ignored: the digests are taken here.
        columns: raw little-endian bytes of every column but ``manifest``; see :func:`pack`,
            :func:`pack_limbs`.

    The writer trusts its caller; :mod:`tcc_certs.kernel` is the side that is strict.
    """
    text = manifest_bytes(manifest, {name: blake(columns[name]) for name in sorted(columns)})
    tensors = {}
    for name, data in {**columns, "manifest": text}.items():
        dtype, dimensions = COLUMNS[name]
        items = len(data) // ITEM_SIZE[dtype]
        shape = shape_of(dimensions, (items, items // max(1, manifest.states)), manifest)
        tensors[name] = Tensor(dtype=dtype, shape=shape, data=data)
    return write_container(tensors)


def pack(name: str, values: Sequence[int]) -> bytes:
    """The raw bytes of column `name`; every value must fit its dtype."""
    column = array(_TYPECODE[COLUMNS[name][0]], values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def pack_limbs(values: Sequence[int]) -> bytes:
    """Counts as rows of 64-bit limbs, least first; the width is the least that holds them all."""
    size = 8 * max(1, -(-max(values).bit_length() // 64))
    return b"".join([value.to_bytes(size, "little") for value in values])


def pack_texts(texts: Iterable[str]) -> bytes:
    """The raw bytes of ``call_text``."""
    return encode(list(texts))


def manifest_bytes(manifest: Manifest, columns: Mapping[str, bytes]) -> bytes:
    """The canonical bytes of `manifest` with these column digests."""
    options: dict[str, Json] = {
        "beta": format_decimal(*manifest.beta),
        "fraction_bits": manifest.fraction_bits,
        "tilt": manifest.tilt,
    }
    if manifest.round_counts is not None:
        options["round_counts"] = manifest.round_counts
    members: dict[str, Json] = {
        "format": "tcca",
        "version": [1, 0],
        "critical": manifest.critical,
        "grammar": {"name": manifest.grammar, "version": manifest.version},
        "options": options,
        "counts": manifest.counts,
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "root": manifest.root.hex(),
        "cost_max": large(manifest.cost_max),
        "leaf_policy": {**LEAF_POLICY, "root": manifest.root_document},
        "columns": {name: digest.hex() for name, digest in columns.items()},
    }
    if manifest.relaxed is not None:
        members[RELAXED] = {name: getattr(manifest.relaxed, name) for name in STATEMENTS}
    return encode(members)

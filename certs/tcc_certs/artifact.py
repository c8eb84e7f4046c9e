"""The artifact as columns and a manifest: the one table of both, its reader and its writer.

Normative text: docs/spec/artifact.md, sections 1 to 3.  Reading decides that the bytes are those of
an artifact of version 1.0 whose columns have their shapes and their digests; what the columns say
is for :mod:`tcc_certs.kernel`.  Cost: one BLAKE3 pass over the columns; no column is copied.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from tcc_certs.codec import encode
from tcc_certs.container import ITEM_SIZE, Tensor, read_container, write_container
from tcc_certs.digest import blake
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.manifest import Manifest, manifest_bytes, read_manifest

# Sizes are named: states, edges, calls; "+1" is one more than the states; "*" is any size, and
# "limbs" any size of at least one.
COLUMNS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "accept": ("U8", ("states",)),
    "call_cost_high": ("I64", ("calls",)),
    "call_cost_low": ("I64", ("calls",)),
    "call_epsilon": ("U64", ("calls",)),
    "call_latency_ms": ("U64", ("calls",)),
    "call_price": ("U64", ("calls",)),
    "call_text": ("U8", ("*",)),
    "call_weight": ("U64", ("calls",)),
    "core": ("U8", ("*",)),
    "cost_to_go": ("I64", ("states",)),
    "edge_call": ("U32", ("edges",)),
    "edge_start": ("U64", ("+1",)),
    "edge_target": ("U32", ("edges",)),
    "manifest": ("U8", ("*",)),
    "plans": ("U64", ("states", "limbs")),
    "race_count": ("U64", ("states", "limbs")),
    "race_exponent": ("U32", ("states",)),
    "race_mantissa": ("U64", ("states",)),
    "rank": ("U32", ("states",)),
    "residual_to_go": ("I64", ("states",)),
    "state_digest": ("U8", ("states", "32")),
    "tools": ("U8", ("*",)),
}
# Rounded race counts stand in two columns, exact ones in one, or in none where they are `plans`.
_ROUNDED = frozenset({"race_exponent", "race_mantissa"})
OPTIONAL = frozenset({"race_count"}) | _ROUNDED
_TYPECODE = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """An artifact whose container, manifest, shapes and column digests hold.

    Attributes:
        digest: the artifact digest, BLAKE3 of the manifest's bytes.
        manifest: the manifest's values.
        columns: every column by name, as views of the bytes that were read.
    """

    digest: bytes
    manifest: Manifest
    columns: Mapping[str, Tensor]


def read_artifact(data: bytes | memoryview, *, digests: bool = True) -> ArtifactFile:
    """The columns and the manifest of an artifact.

    Args:
        data: the whole file.
        digests: False leaves the columns' digests unchecked; for a reader that trusts the disk.

    Raises:
        Rejected: B1xx, B2xx the bytes; M101, M102, C701, D101, D102 the manifest; M201 a column
            that is missing or unknown; M202 a dtype or a shape; M203 a digest.
    """
    columns = read_container(data)
    if "manifest" not in columns:
        raise Rejected(Code.COLUMN_SET, "header", "a manifest", "none")
    raw = bytes(columns["manifest"].data)
    manifest = read_manifest(raw)
    _check_names(columns.keys(), manifest)
    for name in sorted(columns):
        _check_shape(name, columns[name], manifest)
    if digests:
        for name, due in manifest.columns.items():
            found = blake(columns[name].data).hex()
            require(due.hex(), found, Code.COLUMN_DIGEST, f"manifest.columns.{name}")
    return ArtifactFile(digest=blake(raw), manifest=manifest, columns=columns)


def _check_names(found: Set[str], manifest: Manifest) -> None:
    """Every column that the manifest's features call for is there, and no other."""
    required = set(COLUMNS) - OPTIONAL
    optional = {"race_count"}
    if manifest.round_counts is not None:
        required, optional = required | _ROUNDED, set()
    missing = sorted(required - found)
    ensure(not missing, Code.COLUMN_SET, "header", "every column", f"without {missing}")
    extra = sorted(found - required - optional)
    ensure(not extra, Code.COLUMN_SET, "header", "no other column", extra)
    named = sorted(found - {"manifest"})
    require(named, sorted(manifest.columns), Code.COLUMN_SET, "manifest.columns")


def _check_shape(name: str, tensor: Tensor, manifest: Manifest) -> None:
    dtype, dimensions = COLUMNS[name]
    require(dtype, tensor.dtype, Code.COLUMN_SHAPE, f"header.{name}.dtype")
    due = _shape(dimensions, tensor.shape, manifest)
    require(due, tensor.shape, Code.COLUMN_SHAPE, f"header.{name}.shape")


def _shape(dimensions: Sequence[str], found: Sequence[int], manifest: Manifest) -> tuple[int, ...]:
    """The shape that the manifest requires; a free size is taken from `found` where legal."""
    sizes = {
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "+1": manifest.states + 1,
        "32": 32,
        "*": found[0],
        "limbs": max(1, found[-1]),
    }
    return tuple(sizes[dimension] for dimension in dimensions)


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
        shape = _shape(dimensions, (items, items // max(1, manifest.states)), manifest)
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


def unpack_limbs(tensor: Tensor) -> list[int]:
    """The counts that :func:`pack_limbs` wrote, one a row."""
    if tensor.shape[1] == 1:
        return tensor.items().tolist()
    size = 8 * tensor.shape[1]
    raw = bytes(tensor.data)
    return [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]


def pack_texts(texts: Iterable[str]) -> bytes:
    """The raw bytes of ``call_text``."""
    return encode(list(texts))

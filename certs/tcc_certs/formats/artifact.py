"""The artifact as columns and a manifest: the one table of both, and its reader.

Normative text: docs/spec/artifact.md, sections 1 to 3.  Reading decides that the bytes are those of
an artifact of version 1.0 whose columns have their shapes and their digests; what the columns say
is for :mod:`tcc_certs.kernel`.  Cost: one BLAKE3 pass over the columns; no column is copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.container import Tensor, read_container
from tcc_certs.formats.hashes import blake
from tcc_certs.formats.manifest import Manifest, read_manifest

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
        for name, digest in manifest.columns.items():
            found = blake(columns[name].data).hex()
            require(digest.hex(), found, Code.COLUMN_DIGEST, f"manifest.columns.{name}")
    return ArtifactFile(digest=blake(raw), manifest=manifest, columns=columns)


def _check_names(names: Set[str], manifest: Manifest) -> None:
    """Every column that the manifest's features call for is there, and no other."""
    required = set(COLUMNS) - OPTIONAL
    optional = {"race_count"}
    if manifest.round_counts is not None:
        required, optional = required | _ROUNDED, set()
    missing = sorted(required - names)
    ensure(not missing, Code.COLUMN_SET, "header", "every column", f"without {missing}")
    extra = sorted(names - required - optional)
    ensure(not extra, Code.COLUMN_SET, "header", "no other column", extra)
    named = sorted(names - {"manifest"})
    require(named, sorted(manifest.columns), Code.COLUMN_SET, "manifest.columns")


def _check_shape(name: str, tensor: Tensor, manifest: Manifest) -> None:
    dtype, dimensions = COLUMNS[name]
    require(dtype, tensor.dtype, Code.COLUMN_SHAPE, f"header.{name}.dtype")
    shape = shape_of(dimensions, tensor.shape, manifest)
    require(shape, tensor.shape, Code.COLUMN_SHAPE, f"header.{name}.shape")


def shape_of(
    dimensions: Sequence[str], shape: Sequence[int], manifest: Manifest
) -> tuple[int, ...]:
    """The shape that the manifest requires; a free size is taken from `shape` where legal."""
    sizes = {
        "states": manifest.states,
        "edges": manifest.edges,
        "calls": manifest.calls,
        "+1": manifest.states + 1,
        "32": 32,
        "*": shape[0],
        "limbs": max(1, shape[-1]),
    }
    return tuple(sizes[dimension] for dimension in dimensions)


def unpack_limbs(tensor: Tensor) -> list[int]:
    """Counts of 64-bit limbs, least first, one a row."""
    if tensor.shape[1] == 1:
        return tensor.items().tolist()
    size = 8 * tensor.shape[1]
    raw = bytes(tensor.data)
    return [int.from_bytes(raw[at : at + size], "little") for at in range(0, len(raw), size)]

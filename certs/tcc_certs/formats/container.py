"""The container of an artifact: a strict profile of the safetensors layout.

It has eight bytes of little-endian header length, and a canonical JSON header padded with spaces so
that the data starts at a multiple of 64 bytes.  Then raw little-endian columns follow without gaps,
by descending item size and then by name.  Each set of columns has exactly one byte string.  Cost:
linear in the header; no column is copied or read here.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import Json, decode, encode
from tcc_certs.formats.schema import Known, Table, dropped, one_of, read, row
from tcc_certs.limits import MAX_HEADER_BYTES, MAX_TENSORS

ITEM_SIZE: Mapping[str, int] = {"I64": 8, "U64": 8, "U32": 4, "U8": 1}
_CAST: Mapping[str, Literal["q", "Q", "I", "B"]] = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}
_SCHEMA = Code.HEADER_SCHEMA
_ALIGN = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """A column: its dtype (a key of `ITEM_SIZE`), its shape, and its raw little-endian bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes | memoryview

    def items(self) -> memoryview[int]:
        """Return the flat column as integers: a view, or a copy on a big-endian machine."""
        raw = memoryview(self.data)
        if sys.byteorder == "big":
            size = ITEM_SIZE[self.dtype]
            flipped = b"".join(bytes(raw[i : i + size])[::-1] for i in range(0, len(raw), size))
            raw = memoryview(flipped)
        return raw.cast(_CAST[self.dtype])


def layout(tensors: Mapping[str, Tensor]) -> list[str]:
    """Return the names in the order of their columns."""
    return sorted(tensors, key=lambda name: (-ITEM_SIZE[tensors[name].dtype], name))


def _header(shapes: Mapping[str, tuple[str, Sequence[int]]], order: Sequence[str]) -> bytes:
    entries: dict[str, Json] = {}
    offset = 0
    for name in order:
        dtype, shape = shapes[name]
        end = offset + ITEM_SIZE[dtype] * math.prod(shape)
        entries[name] = {"data_offsets": [offset, end], "dtype": dtype, "shape": list(shape)}
        offset = end
    body = encode(entries)
    return body + b" " * (-(8 + len(body)) % _ALIGN)


def write_container(tensors: Mapping[str, Tensor]) -> bytes:
    """Return the byte string of these columns."""
    order = layout(tensors)
    header = _header({name: (t.dtype, t.shape) for name, t in tensors.items()}, order)
    return b"".join(
        [len(header).to_bytes(8, "little"), header, *(tensors[name].data for name in order)]
    )


def read_container(data: bytes | memoryview) -> dict[str, Tensor]:
    """Return the columns of a container, as views of `data`.

    Raises:
        Rejected: B201 the header's length.  B101..B103 its JSON.  B202 its fields.  B203 its bytes
            (order, padding, offsets).  B204 a shape.  B205 the length of the data.
    """
    raw = memoryview(data).cast("B")
    length = int.from_bytes(raw[:8], "little")
    most = min(MAX_HEADER_BYTES, len(raw) - 8)
    expected = f"8 bytes, and a length up to {most}"
    ensure(0 < length <= most, Code.HEADER_LENGTH, "header", expected, length)
    header = bytes(raw[8 : 8 + length])
    shapes = _shapes(decode(header.rstrip(b" "), "header"))
    order = sorted(shapes, key=lambda name: (-ITEM_SIZE[shapes[name][0]], name))
    require(_header(shapes, order), header, Code.HEADER_NOT_CANONICAL, "header")
    return _columns(raw[8 + length :], shapes, order)


def _shapes(header: Json) -> dict[str, tuple[str, tuple[int, ...]]]:
    if not isinstance(header, dict):
        raise Rejected(_SCHEMA, "header", "an object", type(header).__name__)
    ensure(len(header) <= MAX_TENSORS, _SCHEMA, "header", "at most 32 tensors", "more")
    entries = [read(ENTRY, entry, f"header.{name}", _SCHEMA, {}) for name, entry in header.items()]
    return dict(zip(header, [(entry["dtype"], entry["shape"]) for entry in entries], strict=True))


def _shape(value: Json, path: str, code: Code, _: Known) -> tuple[int, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= 2:
        raise Rejected(code, path, "one or two sizes", value)
    for size in value:
        ensure(type(size) is int and size >= 0, code, path, "whole sizes", size)
    return tuple(value)


def _offsets(*_: object) -> None:
    """Ignore the offsets: the reader recomputes the header and compares the bytes."""


ENTRY: Table = (
    row("dtype", one_of(*ITEM_SIZE)),
    row("shape", _shape, code=Code.TENSOR_LAYOUT),
    dropped(row("data_offsets", _offsets)),
)


def _columns(
    body: memoryview, shapes: Mapping[str, tuple[str, tuple[int, ...]]], order: Sequence[str]
) -> dict[str, Tensor]:
    sizes = [ITEM_SIZE[shapes[name][0]] * math.prod(shapes[name][1]) for name in order]
    require(sum(sizes), len(body), Code.DATA_LENGTH, "data")
    columns, offset = {}, 0
    for name, size in zip(order, sizes, strict=True):
        dtype, shape = shapes[name]
        columns[name] = Tensor(dtype=dtype, shape=shape, data=body[offset : offset + size])
        offset += size
    return columns

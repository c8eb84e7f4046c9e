"""The container: one set of columns has one byte string, and nothing else is read."""

from __future__ import annotations

import pytest

from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import encode
from tcc_certs.formats.container import Tensor, read_container, write_container

COLUMNS = {
    "b": Tensor(dtype="U8", shape=(3,), data=b"abc"),
    "a": Tensor(dtype="U64", shape=(1, 2), data=bytes(range(16))),
    "c": Tensor(dtype="I64", shape=(1,), data=b"\xff" * 8),
    "d": Tensor(dtype="U32", shape=(0,), data=b""),
}


def code_of(data: bytes) -> str:
    try:
        read_container(data)
    except Rejected as refusal:
        return refusal.code.value
    return "valid"


def with_header(header: bytes, body: bytes = b"") -> bytes:
    padded = header + b" " * (-(8 + len(header)) % 64)
    return len(padded).to_bytes(8, "little") + padded + body


def test_reads_what_it_writes() -> None:
    found = read_container(write_container(COLUMNS))
    assert {n: (t.dtype, t.shape, bytes(t.data)) for n, t in found.items()} == {
        n: (t.dtype, t.shape, t.data) for n, t in COLUMNS.items()
    }
    assert list(found["c"].items()) == [-1]
    assert found["a"].items()[1] == int.from_bytes(bytes(range(8, 16)), "little")


def test_columns_stand_by_item_size_then_by_name_on_64_bytes() -> None:
    data = write_container(COLUMNS)
    start = 8 + int.from_bytes(data[:8], "little")
    assert start % 64 == 0
    assert data[start:] == bytes(range(16)) + b"\xff" * 8 + b"abc"


def entry(**changes: object) -> bytes:
    plain = {"data_offsets": [0, 3], "dtype": "U8", "shape": [3]}
    return encode({"b": {**plain, **changes}})


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "B201"),
        (b"\1", "B201"),
        (with_header(b"{}"), "valid"),
        (with_header(b"{}")[:-1], "B201"),
        (with_header(b"{}" + b" " * 65_536), "B201"),
        (with_header(encode({f"t{i:02}": {"data_offsets": [0, 0], "dtype": "U8", "shape": [0]}
                             for i in range(32)})), "valid"),
        (b"\0" * 8, "B201"),
        ((1 << 40).to_bytes(8, "little") + b"{}", "B201"),
        (b"\xff" * 8 + b"{}" * 64, "B201"),
        (with_header(b"[]"), "B202"),
        (with_header(b"{"), "B101"),
        (with_header(entry(), b"abc"), "valid"),
        (with_header(entry(extra=1), b"abc"), "B202"),
        (with_header(entry(dtype="F32"), b"abc"), "B202"),
        (with_header(entry(dtype=["U8"]), b"abc"), "B202"),
        (with_header(entry(shape=[]), b"abc"), "B204"),
        (with_header(entry(shape=[3, 1, 1]), b"abc"), "B204"),
        (with_header(entry(shape=[-3]), b"abc"), "B204"),
        (with_header(entry(shape=[True]), b"abc"), "B204"),
        (with_header(entry(shape="3"), b"abc"), "B204"),
        (with_header(entry(shape=3), b"abc"), "B204"),
        (with_header(encode({"b": ["data_offsets", "dtype", "shape"]}), b"abc"), "B202"),
        (with_header(entry(data_offsets=[0, 2]), b"abc"), "B203"),
        (with_header(entry(data_offsets=[1, 4]), b"abcd"), "B203"),
        (with_header(entry(), b"ab"), "B205"),
        (with_header(entry(), b"abcd"), "B205"),
        (with_header(entry(shape=[2**53 - 1, 2**53 - 1]), b"abc"), "B203"),
        (with_header(entry() + b" " * 64, b"abc"), "B203"),
        (with_header(b'{"__metadata__":{}}'), "B202"),
        (with_header(encode({f"t{i:02}": {"data_offsets": [0, 0], "dtype": "U8", "shape": [0]}
                             for i in range(33)})), "B202"),
    ],
)  # fmt: skip
def test_takes_one_form_alone(data: bytes, code: str) -> None:
    assert code_of(data) == code


def test_shapes_past_all_memory_are_refused_without_asking_for_it() -> None:
    size = 2**53 - 1
    header = entry(shape=[size], data_offsets=[0, size])
    assert code_of(with_header(header, b"abc")) == "B205"

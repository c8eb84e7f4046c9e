"""Parquet, with the extra `parquet`: how tables are opened, and requests that stand in one.

A column for each setting, by the names of a request (:mod:`tcc.requests`); an empty cell is a
setting that is not given.  Cost: linear in the table; a few thousand rows are held at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

from tcc.batches.errors import BatchError
from tcc.requests import MEMBERS, RequestError, request_of
from tcc_runtime.terms.settings import Settings
from tcc_runtime.terms.table import Option

_AT_ONCE = 1024
_BUFFER = 1 << 20


def arrow() -> tuple[Any, Any]:
    """The packages pyarrow and pyarrow.parquet.

    Raises:
        BatchError: TCC807, they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        what = "install the extra: pip install '.[parquet]' from a checkout"
        raise BatchError("TCC807", "parquet", what) from None
    return pyarrow, pyarrow.parquet


def open_table(file: BinaryIO) -> Any:
    """A Parquet file to be read in pieces, checksums of its pages included where it has any."""
    _, pq = arrow()
    return pq.ParquetFile(
        file, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
    )


def read_table(file: BinaryIO, name: str) -> Iterator[Settings]:
    """The settings of each row.

    Args:
        name: how an error names the file.

    Raises:
        RequestError: TCC902, a row is no request; it is named by its number, from 1.
        BatchError: TCC903, it is no table of requests; TCC807, pyarrow is not installed.
    """
    pa, _ = arrow()
    number = 0
    try:
        table = open_table(file)
        _require_columns(table.schema_arrow, name)
        for some in table.iter_batches(batch_size=_AT_ONCE, use_threads=False):
            for cells in some.to_pylist():
                number += 1
                yield _request(number, cells)
    except RequestError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"no Parquet behind row {number}: {first_line(error)}"
        raise BatchError("TCC903", name, what) from None


def first_line(error: Exception) -> str:
    """What pyarrow says, cut short."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _request(number: int, cells: dict[str, Any]) -> Settings:
    given = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in cells.items()
        if value is not None
    }
    return request_of(number, given)


def _require_columns(schema: Any, name: str) -> None:
    names = [field.name for field in schema]
    if "seed" not in names:
        raise BatchError("TCC903", name, "there is no column 'seed'")
    for field in schema:
        option = MEMBERS.get(field.name)
        if option is None:
            raise BatchError("TCC903", name, f"there is no setting {field.name[:40]!r}")
        if names.count(field.name) > 1:
            raise BatchError("TCC903", name, f"column {field.name!r} stands there twice")
        expected = _kinds(option)
        if str(field.type) not in expected:
            what = f"column {field.name!r} is of {expected[0]}, not of {str(field.type)[:60]}"
            raise BatchError("TCC903", name, what)


def _kinds(option: Option) -> tuple[str, ...]:
    """The types that a column of this setting may have, the usual one first."""
    if option.calls:
        return "list<element: string>", "list<item: string>", "large_list<item: string>"
    if option.kind is bool:
        return "bool", "null"
    if option.kind is int:
        return "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64", "null"
    if option.kind is float:
        return "double", "float", "int64", "int32", "null"
    if option.kind is bytes:
        return "string", "large_string", "binary", "large_binary", "fixed_size_binary[32]", "null"
    return "string", "large_string", "null"

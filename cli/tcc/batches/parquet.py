"""Parquet, with the extra ``parquet``: tables of requests, and parts as tables.

A table of requests has a column per setting, named as in JSON (:mod:`tcc.batches.rows`).  An empty
cell is a setting that is not given.  A part has a row per run: the result, the ledger, and the
columns in ``_SHOWN``.  :func:`write` and :func:`read` implement the Parquet format of a part.
Format: docs/batch.md.  Cost: linear time; memory for about a thousand requests or 8 MiB of rows.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from blake3 import blake3

from tcc.batches import BatchError, PartDamaged, rows as run_rows
from tcc_runtime.settings.settings import Settings
from tcc_runtime.settings.table import Option

_REQUESTS_AT_ONCE = 1024
_BUFFER = 1 << 20


def arrow() -> tuple[Any, Any]:
    """Return the packages pyarrow and pyarrow.parquet.

    Raises:
        BatchError: TCC807, they are not installed.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        what = "install the extra: pip install 'tcc[parquet]'"
        raise BatchError("TCC807", "parquet", what) from None
    return pyarrow, pyarrow.parquet


def open_table(file: BinaryIO) -> Any:
    """Open a Parquet file for reading in pieces; verify page checksums where the file has them."""
    _, pq = arrow()
    return pq.ParquetFile(
        file, pre_buffer=False, buffer_size=_BUFFER, page_checksum_verification=True
    )


def read_table(file: BinaryIO, name: str) -> Iterator[Settings]:
    """Yield the settings of each row.

    Args:
        name: the name of the file in errors.

    Raises:
        RequestError: TCC902, a row is no request; rows are numbered from 1.
        BatchError: TCC903, the file is not a table of requests; TCC807, pyarrow is not installed.
    """
    pa, _ = arrow()
    number = 0
    try:
        table = open_table(file)
        _require_columns(table.schema_arrow, name)
        for some in table.iter_batches(batch_size=_REQUESTS_AT_ONCE, use_threads=False):
            for cells in some.to_pylist():
                number += 1
                yield _request(number, cells)
    except run_rows.RequestError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        what = f"no Parquet behind row {number}: {first_line(error)}"
        raise BatchError("TCC903", name, what) from None


def first_line(error: Exception) -> str:
    """Return the first line of an exception's text, at most 200 characters."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _request(number: int, cells: dict[str, Any]) -> Settings:
    given = {
        name: value.hex() if isinstance(value, bytes) else value
        for name, value in cells.items()
        if value is not None
    }
    return run_rows.request_of(number, given)


def _require_columns(schema: Any, name: str) -> None:
    names = [field.name for field in schema]
    if "seed" not in names:
        raise BatchError("TCC903", name, "there is no column 'seed'")
    for field in schema:
        option = run_rows.MEMBERS.get(field.name)
        if option is None:
            raise BatchError("TCC903", name, f"there is no setting {field.name[:40]!r}")
        if names.count(field.name) > 1:
            raise BatchError("TCC903", name, f"column {field.name!r} stands there twice")
        expected = _kinds(option)
        if str(field.type) not in expected:
            what = f"column {field.name!r} is of {expected[0]}, not of {str(field.type)[:60]}"
            raise BatchError("TCC903", name, what)


def _kinds(option: Option) -> tuple[str, ...]:
    """Return the Arrow types that a column of this setting may have, the usual one first."""
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


# Parts: a row per run, and the seal in the metadata of the file.  The columns ``run`` (the result
# as JSON) and ``ledger`` have the content.  The other columns repeat members of the result for
# filtering.  The content digest covers numbers, results and ledgers.  A reader compares the other
# columns with the result, and each page with its checksum.

# No statistics and no second schema: a reader could trust them, and no digest covers them.
_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "write_statistics": False,
    "store_schema": False,
}
_GROUP_BYTES = 8 << 20
_GROUP_ROWS = 1024
_ROWS_AT_ONCE = 16  # rows that are read at a time
_SEAL = b"tcc.batch.part"
_SHOWN = {
    "claim_type": "string",
    "mode": "string",
    "stop": "string",
    "expansions": "int64",
    "leaves": "int64",
    "seed": "string",
    "ledger_head": "string",
}
_TYPES = {"number": "int64"} | _SHOWN | {"run": "string", "ledger": "binary"}


def write(
    file: BinaryIO, rows: Iterable[run_rows.RunRow], batch: str, inputs: str
) -> run_rows.Seal:
    """Write a part and return its seal.

    Args:
        batch: the digest of ``batch.json``, hex.
        inputs: the digest of the shard, hex.

    Raises:
        BatchError: TCC807, pyarrow is not installed.
    """
    pa, pq = arrow()
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _TYPES.items()])
    content = _Content()
    with pq.ParquetWriter(file, schema, **_OPTIONS) as writer:
        for group in _groups(rows):
            for row in group:
                content.take(row)
            writer.write_table(pa.Table.from_pylist([_cells(row) for row in group], schema))
        seal = content.seal(batch, inputs)
        writer.add_key_value_metadata({_SEAL: seal.text()})
    return seal


def read(path: Path) -> Generator[run_rows.RunRow, None, run_rows.Seal]:
    """Yield the rows of a part; the generator returns its seal.

    Raises:
        PartDamaged: the part is not as it was written.  The error comes at the damaged row or at
            the end.
        BatchError: TCC807, pyarrow is not installed.
        OSError: the file cannot be opened.
    """
    pa, _ = arrow()
    content = _Content()
    with path.open("rb") as file:
        try:
            table = open_table(file)
            seal = run_rows.read_seal((table.metadata.metadata or {}).get(_SEAL, b""))
            if {field.name: str(field.type) for field in table.schema_arrow} != _TYPES:
                raise PartDamaged("its columns are others")
            for cells in _rows(table):
                row = _row(cells)
                content.take(row)
                yield row
        except PartDamaged:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise PartDamaged(f"no Parquet: {first_line(error)}") from None
    if content.seal(seal.batch, seal.inputs) != seal:
        raise PartDamaged("its rows are not those of its seal")
    return seal


class _Content:
    """Accumulates the counts and the digest that a seal records about the rows."""

    def __init__(self) -> None:
        self._hasher, self._rows, self._certified = blake3(), 0, 0

    def take(self, row: run_rows.RunRow) -> None:
        run, ledger = row.run.encode("utf-8", "surrogatepass"), row.ledger
        sizes = (row.number, len(run), -1 if ledger is None else len(ledger))
        self._hasher.update(b"%d,%d,%d;" % sizes)
        self._hasher.update(run)
        self._hasher.update(ledger or b"")
        self._rows += 1
        self._certified += row.fields.get("claim_type") != run_rows.NO_CERT

    def seal(self, batch: str, inputs: str) -> run_rows.Seal:
        return run_rows.Seal(
            batch=batch,
            inputs=inputs,
            rows=self._rows,
            certified=self._certified,
            content=self._hasher.hexdigest(),
        )


def _groups(rows: Iterable[run_rows.RunRow]) -> Iterator[list[run_rows.RunRow]]:
    held: list[run_rows.RunRow] = []
    size = 0
    for row in rows:
        held.append(row)
        size += len(row.run) + len(row.ledger or b"")
        if size >= _GROUP_BYTES or len(held) >= _GROUP_ROWS:
            yield held
            held, size = [], 0
    if held:
        yield held


def _rows(table: Any) -> Iterator[dict[str, Any]]:
    for some in table.iter_batches(batch_size=_ROWS_AT_ONCE, use_threads=False):
        yield from some.to_pylist()


def _cells(row: run_rows.RunRow) -> dict[str, Any]:
    told = row.fields
    shown = {name: told.get(name) for name in _SHOWN}
    return {"number": row.number} | shown | {"run": row.run, "ledger": row.ledger}


def _row(cells: dict[str, Any]) -> run_rows.RunRow:
    number, run = cells["number"], cells["run"]
    if number is None or run is None:
        raise PartDamaged("a row has no number or no result")
    row = run_rows.RunRow(
        number=number, fields=run_rows.read_object(run), run=run, ledger=cells["ledger"]
    )
    if _cells(row) != cells:
        raise PartDamaged(f"run {number}: its columns are not those of its result")
    return row

"""A part as a Parquet table: a row for each run, the seal in the metadata of the file.

Columns beside ``run`` (the result as JSON) and ``ledger`` repeat what is in the result, for those
who want to filter.  The content digest is that of numbers, results and ledgers; columns have to
agree with it, and pages with their checksums.
Cost: linear; some 8 MiB of rows are held at a time, and at least one row.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from blake3 import blake3

from tcc.batches.errors import PartDamaged
from tcc.batches.rows import NO_CERT, Row, Seal, read_seal
from tcc.batches.tables import arrow, first_line, open_table

# Nothing that a reader goes by is left out of the digest: no statistics, no second schema.
_OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "write_page_checksum": True,
    "write_statistics": False,
    "store_schema": False,
}
_GROUP_BYTES = 8 << 20
_GROUP_ROWS = 1024
_AT_ONCE = 16  # rows that are read at a time
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


def write(file: BinaryIO, rows: Iterable[Row], batch: str, inputs: str) -> Seal:
    """Writes a part, and gives its seal.

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


def read(path: Path) -> Generator[Row, None, Seal]:
    """The rows of a part; its seal is the generator's value.

    Raises:
        PartDamaged: the part is not as it was written; at that place, or at the end.
        BatchError: TCC807, pyarrow is not installed.
        OSError: it cannot be opened.
    """
    pa, _ = arrow()
    content = _Content()
    with path.open("rb") as file:
        try:
            table = open_table(file)
            seal = read_seal((table.metadata.metadata or {}).get(_SEAL, b""))
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
    """What a seal says of the rows."""

    def __init__(self) -> None:
        self._hasher, self._rows, self._certified = blake3(), 0, 0

    def take(self, row: Row) -> None:
        run, ledger = row.run.encode("utf-8", "surrogatepass"), row.ledger
        sizes = (row.number, len(run), -1 if ledger is None else len(ledger))
        self._hasher.update(b"%d,%d,%d;" % sizes)
        self._hasher.update(run)
        self._hasher.update(ledger or b"")
        self._rows += 1
        self._certified += row.fields.get("claim_type") != NO_CERT

    def seal(self, batch: str, inputs: str) -> Seal:
        return Seal(
            batch=batch,
            inputs=inputs,
            rows=self._rows,
            certified=self._certified,
            content=self._hasher.hexdigest(),
        )


def _groups(rows: Iterable[Row]) -> Iterator[list[Row]]:
    held: list[Row] = []
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
    for some in table.iter_batches(batch_size=_AT_ONCE, use_threads=False):
        yield from some.to_pylist()


def _cells(row: Row) -> dict[str, Any]:
    told = row.fields
    shown = {name: told.get(name) for name in _SHOWN}
    return {"number": row.number} | shown | {"run": row.run, "ledger": row.ledger}


def _row(cells: dict[str, Any]) -> Row:
    number, run = cells["number"], cells["run"]
    if number is None or run is None:
        raise PartDamaged("a row has no number or no result")
    row = Row(number=number, run=run, ledger=cells["ledger"])
    if _cells(row) != cells:
        raise PartDamaged(f"run {number}: its columns are not those of its result")
    return row

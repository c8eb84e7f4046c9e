"""A part as lines of JSON: a line for each run, with its ledger as a text, and the seal at the end.

The content digest is that of all bytes before the seal.  Cost: linear; one line is held at a time.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from blake3 import blake3

from tcc.batches.errors import PartDamaged
from tcc.batches.rows import NO_CERT, Row, Seal, read_object, read_seal
from tcc_certs.plain import escaped_json

_MOST_LINE = 1 << 30


def write(file: BinaryIO, rows: Iterable[Row], batch: str, inputs: str) -> Seal:
    """Writes a part, and gives its seal."""
    hasher, number, certified = blake3(), 0, 0
    for row in rows:
        number += 1
        line = _line(row)
        hasher.update(line)
        file.write(line)
        certified += row.fields["claim_type"] != NO_CERT
    content = hasher.hexdigest()
    seal = Seal(batch=batch, inputs=inputs, rows=number, certified=certified, content=content)
    file.write(seal.text() + b"\n")
    return seal


def read(path: Path) -> Generator[Row, None, Seal]:
    """The rows of a part; its seal is the generator's value.

    Raises:
        PartDamaged: the part is not as it was written; at that place, or at the end.
        OSError: it cannot be read.
    """
    hasher, number, certified = blake3(), 0, 0
    with path.open("rb") as file:
        line = file.readline(_MOST_LINE)
        while following := file.readline(_MOST_LINE):
            hasher.update(line)
            number += 1
            row = _row(line, number)
            certified += row.fields.get("claim_type") != NO_CERT
            yield row
            line = following
    seal = read_seal(line.removesuffix(b"\n"))
    found = replace(seal, rows=number, certified=certified, content=hasher.hexdigest())
    if found != seal or not line.endswith(b"\n"):
        raise PartDamaged("its rows are not those of its seal")
    return seal


def _line(row: Row) -> bytes:
    members = [f'"number": {row.number}', row.run[1:-1]]
    if row.ledger is not None:
        text = json.dumps(row.ledger.decode("utf-8"), ensure_ascii=False)
        members.append(f'"ledger": {escaped_json(text)}')
    return f"{{{', '.join(members)}}}\n".encode()


def _row(line: bytes, at: int) -> Row:
    value = read_object(line)
    number, ledger = value.pop("number", None), value.pop("ledger", None)
    try:
        data = None if ledger is None else str(ledger).encode("utf-8")
        run = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        what = f"row {at}: its texts are no Unicode, or it is nested too deep"
        raise PartDamaged(what) from None
    if type(number) is not int:
        raise PartDamaged(f"row {at}: it has no number")
    return Row(number=number, run=run, ledger=data)

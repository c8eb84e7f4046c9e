"""What a part holds: a row for each run, and a seal that says what all of it was made from.

A row is a run's number, its result as JSON, and its ledger.  The seal has a digest of the shard
(:mod:`tcc.batches.shards`) and one of the rows: a part counts as finished where both are due.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, fields
from typing import Any, Final

from tcc.batches.errors import PartDamaged
from tcc.outcome import run_fields
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_certs.plain import escaped_json
from tcc_runtime.outcome import Run

NO_CERT: Final = "NoCert"
_FORMAT = {"format": "tcc.batch.part", "format_version": "1.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One run of a part.

    Attributes:
        number: in the batch, from 1.
        run: the fields of ``tcc run --json`` as a JSON text, in their order.
        ledger: its bytes; None where none is kept.
    """

    number: int
    run: str
    ledger: bytes | None

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the run.

        Raises:
            PartDamaged: the text is no JSON object.
        """
        return read_object(self.run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The end of a part.

    Attributes:
        batch: the digest of ``batch.json``, hex; who has no requests sees by it whose part it is.
        inputs: the digest of its shard, hex.
        rows: how many there are.
        certified: how many of them claim something.
        content: a digest of the rows, hex.
    """

    batch: str
    inputs: str
    rows: int
    certified: int
    content: str

    def text(self) -> bytes:
        """The seal as canonical JSON."""
        return encode(_FORMAT | {name: getattr(self, name) for name in _NAMES})


_NAMES = tuple(field.name for field in fields(Seal))


def row_of(number: int, run: Run, ledger: bytes | None) -> Row:
    """The row of a run."""
    text = escaped_json(json.dumps(run_fields(run), ensure_ascii=False))
    return Row(number=number, run=text, ledger=ledger)


def read_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object that `text` is.

    Raises:
        PartDamaged: it is none.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PartDamaged("a row is no JSON object")
    return value


def read_seal(text: bytes) -> Seal:
    """The seal that `text` is.

    Raises:
        PartDamaged: it is none.
    """
    try:
        value = decode(text, "seal")
    except Rejected:
        value = None
    if not isinstance(value, dict) or value.keys() != {*_FORMAT, *_NAMES}:
        raise PartDamaged("its seal is missing")
    told = {name: value.pop(name) for name in _FORMAT}
    digests = all(_is_digest(value[name]) for name in ("batch", "inputs", "content"))
    counts = all(type(value[name]) is int for name in ("rows", "certified"))
    if told != _FORMAT or not digests or not counts:
        raise PartDamaged("its seal is of another format")
    return Seal(**value)


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) is not None

"""The content of a part: one row per run, a seal at the end, and both as lines of JSON.

A row is a run's number, its result as JSON, and its ledger.  The seal has a digest of the shard
(:mod:`tcc.batches.making`) and a digest of the rows.  A part is finished if both digests match.
:func:`write` and :func:`read` implement the NDJSON format; :mod:`tcc.batches.parquet` has the
other.
Format: docs/batch.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

from blake3 import blake3

from tcc.batches import PartDamaged
from tcc.library.running import run_fields
from tcc.outputs import json_line, put_json
from tcc_certs.errors import Rejected, escaped_json
from tcc_certs.formats.codec import decode, encode
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_runtime.errors import SettingsError
from tcc_runtime.outcome import Run
from tcc_runtime.settings.settings import TABLE, Settings

# A batch cannot ask questions, so requests have no settings about questions.
MEMBERS: Final = {option.short: option for option in TABLE if not option.asking}
_KINDS = {
    bool: ((bool,), "true or false is needed"),
    int: ((int,), "a whole number is needed"),
    float: ((int, float), "a number is needed"),
    str: ((str,), "a text is needed"),
}
_HEX = re.compile(r"([0-9a-fA-F]{2})+")
_MOST_REQUEST = 1 << 20


class RequestError(ValueError):
    """A line, or a row of a table, that is no request.

    Args:
        line: the number of the line or row, from 1.
        what: the problem.

    Attributes:
        code: the code in the catalogue of diagnostics.
    """

    code = "TCC902"

    def __init__(self, line: int, what: str) -> None:
        self.line = line
        self.what = what
        super().__init__(f"{line}: {self.code}: {what}")


def read_requests(file: BinaryIO) -> Iterator[Settings]:
    """Yield the settings of each non-blank line; one line is in memory at a time.

    Raises:
        RequestError: a line is no JSON object of settings, or a setting is out of its range.
    """
    for number, line in enumerate(iter(lambda: file.readline(_MOST_REQUEST + 1), b""), 1):
        if line.strip():
            yield _request(number, line)


def _request(number: int, line: bytes) -> Settings:
    try:
        if len(line) > _MOST_REQUEST:
            raise ValueError(f"longer than {_MOST_REQUEST} bytes")
        value = json.loads(line, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        raise RequestError(number, f"no JSON: {error}") from None
    return request_of(number, value)


def request_of(number: int, value: object) -> Settings:
    """Return the settings of one request.

    Args:
        number: the number of the line or row, for errors.
        value: the request as a JSON value.

    Raises:
        RequestError: the value is not an object of settings, or a setting is out of its range.
    """
    if not isinstance(value, dict) or "seed" not in value:
        raise RequestError(number, "an object with a seed is needed")
    try:
        return Settings(**dict(_read(name, item) for name, item in value.items()))
    except (Rejected, SettingsError, TypeError) as error:
        raise RequestError(number, str(error)) from None


def _once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object from its members; a hook of :func:`json.loads`.

    Raises:
        ValueError: a name is repeated, and the earlier value would be lost.
    """
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice[:40]!r} stands there twice")
    return found


def _read(name: str, item: Any) -> tuple[str, Any]:
    """Convert a member of a request to the name and the value of its setting.

    Raises:
        TypeError: the setting is unknown, or the value has another type.
        Rejected: E101 to E104, `atoms` is not a list of atoms.
    """
    if name == "atoms":
        return name, atoms_of(item)
    option = MEMBERS.get(name)
    if option is None:
        raise TypeError(f"there is no setting {name[:40]!r}")
    if option.kind is bytes:
        if not isinstance(item, str) or _HEX.fullmatch(item) is None:
            raise TypeError(f"{name}: pairs of hexadecimal digits are needed")
        return option.name, bytes.fromhex(item)
    if option.calls:
        if not isinstance(item, list) or not all(isinstance(part, str) for part in item):
            raise TypeError(f"{name}: a list of texts is needed")
        return option.name, item
    kinds, expected = _KINDS[option.kind]
    if type(item) not in kinds:  # `isinstance` would accept True as a number
        raise TypeError(f"{name}: {expected}")
    return option.name, item


NO_CERT: Final = "NoCert"
_FORMAT = {"format": "tcc.batch.part", "format_version": "1.1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run of a part.

    Attributes:
        number: the number of the run in the batch, from 1.
        fields: the members of ``tcc run --json``.
        run: the same members as JSON text, in the same order.
        ledger: the bytes of the ledger; None if the batch keeps no ledgers.
    """

    number: int
    fields: dict[str, Any]
    run: str
    ledger: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The end of a part.

    Attributes:
        batch: the digest of ``batch.json``, hex.  It shows which batch the part belongs to, even
            without the requests.
        inputs: the digest of the part's shard, hex.
        rows: the number of rows.
        certified: the number of runs that claim something.
        content: a digest of the rows, hex.
    """

    batch: str
    inputs: str
    rows: int
    certified: int
    content: str

    def text(self) -> bytes:
        """Return the seal as canonical JSON."""
        return encode(_FORMAT | {name: getattr(self, name) for name in _NAMES})


_NAMES = tuple(field.name for field in fields(Seal))


def row_of(number: int, run: Run, ledger: bytes | None) -> RunRow:
    """Return the row of a run."""
    found = run_fields(run)
    text = json_line(found).decode()
    if not _is_seen(text):
        text = escaped_json(text)
    return RunRow(number=number, fields=found, run=text, ledger=ledger)


def read_object(text: str | bytes) -> dict[str, Any]:
    """Parse a JSON object.

    Raises:
        PartDamaged: the text is no JSON object.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise PartDamaged("a row is no JSON object")
    return value


def read_seal(text: bytes) -> Seal:
    """Parse a seal.

    Raises:
        PartDamaged: the text is not a seal of this format.
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


# NDJSON: a line per run with the ledger as a string, and the seal as the last line.  The content
# digest covers all bytes before the seal.  Cost: linear time; memory for one line.

_MOST_LINE = 1 << 30


def write(file: BinaryIO, rows: Iterable[RunRow], batch: str, inputs: str) -> Seal:
    """Write a part and return its seal; `batch` and `inputs` are the digests in the seal."""
    hasher, number, certified = blake3(), 0, 0
    line = bytearray()
    for row in rows:
        number += 1
        certified += row.fields["claim_type"] != NO_CERT
        _render(row, line)
        hasher.update(line)
        file.write(line)
    content = hasher.hexdigest()
    seal = Seal(batch=batch, inputs=inputs, rows=number, certified=certified, content=content)
    file.write(seal.text() + b"\n")
    return seal


def read(path: Path) -> Generator[RunRow, None, Seal]:
    """Yield the rows of a part; the generator returns its seal.

    Raises:
        PartDamaged: the part is not as it was written.  The error comes at the damaged row or at
            the end.
        OSError: the file cannot be read.
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


def _render(row: RunRow, line: bytearray) -> None:
    """Write a row's line into `line`, reusing the memory that the array already has."""
    head = f'{{"number": {row.number}, {row.run[1:-1]}'.encode()
    if row.ledger is None:
        line[:] = head + b"}\n"
        return
    head += b', "ledger": '
    ledger = row.ledger.decode("utf-8")
    # The ledger first, because shrinking the array to the short head would free its memory.
    put_json(ledger, line, len(head))
    line[: len(head)] = head
    if not _is_seen(ledger):
        line[len(head) :] = escaped_json(line[len(head) :].decode()).encode()
    line += b"}\n"


def _is_seen(text: str) -> bool:
    """Return whether the text and its JSON hide no character: it is ASCII without DEL."""
    return text.isascii() and "\x7f" not in text


def _row(line: bytes, at: int) -> RunRow:
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
    return RunRow(number=number, fields=value, run=run, ledger=data)

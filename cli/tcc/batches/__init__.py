"""Batches in shards: many runs over one artifact on any executor, one file for each shard.

Documentation: docs/batch.md.  :mod:`tcc.batches.making` shows the steps of a batch on one page.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, TypeAlias

from blake3 import blake3

from tcc.files import is_regular
from tcc_certs.errors import Rejected
from tcc_certs.formats.codec import decode, encode
from tcc_runtime.ledger.outputs import locked, write_whole


class BatchError(Exception):
    """A batch cannot be made or continued.  Finished parts stay unchanged.

    Args:
        code: a code of the catalogue of diagnostics, TCC80x or TCC90x.
        where: the file, folder or address.
        what: the problem, and how to fix it.
    """

    def __init__(self, code: str, where: str, what: str) -> None:
        self.code = code
        self.where = where
        self.what = what
        super().__init__(f"{where}: {code}: {what}")

    def __reduce__(self) -> tuple[type[BatchError], tuple[str, str, str]]:
        return BatchError, (self.code, self.where, self.what)


class PartDamaged(ValueError):
    """A part is truncated, altered, or no part at all.

    Args:
        what: the difference.
    """


PartFormat: TypeAlias = Literal["ndjson", "parquet"]
FORMATS: tuple[PartFormat, ...] = ("ndjson", "parquet")
HEAD = "batch.json"
PLAIN = "runs.ndjson"
_LOCK = ".lock"
_FORMAT = {"format": "tcc.batch.folder", "format_version": "1.0"}
_MOST_HEAD = 1 << 16
_MOST = (1 << 53) - 1
_PART = re.compile(r"part-([0-9]{8,16})\.(ndjson|parquet)")
_UNFINISHED = re.compile(r"\.(part-[0-9]{8,}\.(ndjson|parquet)|batch\.json)\.[0-9a-f]{16}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The identity of a batch in shards, as ``batch.json`` records it.

    Attributes:
        artifact: the digest of the artifact, hex.
        verified: whether the artifact's certificates were checked.  If not, runs claim nothing.
        requests: a digest of all requests in order, hex.
        runs: the number of runs.
        shard_size: runs per shard; the last shard may have fewer.
        part_format: the file format of the parts.
        ledgers: whether the parts contain the ledgers.
        started_ms: the start time in every ledger, UTC milliseconds.
    """

    artifact: str
    verified: bool
    requests: str
    runs: int
    shard_size: int
    part_format: PartFormat
    ledgers: bool
    started_ms: int

    def head(self) -> bytes:
        """Return the bytes of ``batch.json``."""
        return encode(_FORMAT | {name: getattr(self, name) for name in _NAMES}) + b"\n"

    @property
    def identity(self) -> str:
        """The digest of the bytes of ``batch.json``, hex."""
        return blake3(self.head()).hexdigest()

    @property
    def parts(self) -> int:
        """The number of parts in the finished batch."""
        return -(-self.runs // self.shard_size)

    def part(self, number: int) -> str:
        """Return the file name of a part; parts are numbered from 1."""
        return f"part-{number:08d}.{self.part_format}"


_NAMES = tuple(field.name for field in fields(Batch))


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Create the folder if it is missing, and lock it against other batches for the block.

    Raises:
        BatchError: TCC803, another batch holds the lock.
        OSError: the folder or its lock file cannot be created.
    """
    folder.mkdir(parents=True, exist_ok=True)
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    handle = os.open(folder / _LOCK, flags, 0o644)
    try:
        if not locked(handle):
            what = "another batch is made in this folder; wait for its end, or name another folder"
            raise BatchError("TCC803", str(folder), what)
        yield
    finally:
        os.close(handle)


def begin(folder: Path, asked: Batch, *, started_ms: int | None, overwrite: bool) -> Batch:
    """Return the batch to make in a locked folder: the existing one if it matches, else a new one.

    Args:
        asked: the requested batch; its `started_ms` is used only if the batch is new.
        started_ms: the start time that an existing batch must have; None accepts any.
        overwrite: whether to remove an existing batch first.

    Raises:
        BatchError: TCC802, the folder has another batch or other results; TCC804, its
            ``batch.json`` is invalid.
        OSError: the folder cannot be read or written.
    """
    if (folder / PLAIN).exists():
        what = f"the folder has {PLAIN}, results of a batch without shards; name another folder"
        raise BatchError("TCC802", str(folder), what)
    if overwrite:
        _clear(folder, _PART)
        (folder / HEAD).unlink(missing_ok=True)
    _clear(folder, _UNFINISHED)
    if os.path.lexists(folder / HEAD):
        there = read(folder)
        expected = replace(asked, started_ms=there.started_ms if started_ms is None else started_ms)
        _require_same(folder, expected, there)
        return there
    if any(_PART.fullmatch(path.name) for path in folder.iterdir()):
        what = f"the folder has parts, and no {HEAD}; name another folder, or replace (--overwrite)"
        raise BatchError("TCC802", str(folder), what)
    write_whole(folder / HEAD, asked.head())
    return asked


def read(folder: Path) -> Batch:
    """Return the batch of a folder.

    Raises:
        BatchError: TCC804, ``batch.json`` is missing or invalid.
        OSError: ``batch.json`` cannot be read.
    """
    path = folder / HEAD
    if path.exists() and not is_regular(path):
        raise BatchError("TCC804", str(path), "it is no regular file; name another folder")
    try:
        with path.open("rb") as file:
            data = file.read(_MOST_HEAD + 1)
        found = _parsed(data)
    except FileNotFoundError:
        raise BatchError("TCC804", str(path), "there is no batch in this folder") from None
    except (Rejected, ValueError) as error:
        what = f"it does not say what batch this is: {error}; replace the batch (--overwrite)"
        raise BatchError("TCC804", str(path), what) from None
    return found


def tidy(folder: Path) -> None:
    """Remove unfinished files that killed workers left in the folder."""
    _clear(folder, _UNFINISHED)


def parts_in(folder: Path, batch: Batch) -> list[int]:
    """Return the numbers of the parts in the folder, in increasing order.

    Raises:
        OSError: the folder cannot be read.
    """
    named = (_PART.fullmatch(path.name) for path in folder.iterdir())
    numbers = {int(found[1]) for found in named if found}
    return [
        number
        for number in sorted(numbers)
        if 0 < number <= batch.parts and (folder / batch.part(number)).exists()
    ]


def confirm(folder: Path, batch: Batch) -> None:
    """Check, on the machine of a worker, that the folder still contains `batch`.

    Raises:
        BatchError: TCC805, the folder is missing or has another batch.
    """
    try:
        same = (folder / HEAD).read_bytes() == batch.head()
    except OSError:
        same = False
    if not same:
        what = "a worker does not find the batch in this folder; all workers have to share it"
        raise BatchError("TCC805", str(folder), what)


def _parsed(data: bytes) -> Batch:
    value = decode(data.removesuffix(b"\n"), HEAD)
    if not isinstance(value, dict) or value.keys() != {*_FORMAT, *_NAMES}:
        raise ValueError("its members are others")
    told = {name: value.pop(name) for name in _FORMAT}
    if told != _FORMAT:
        raise ValueError("it is of another format")
    found = Batch(**value)
    for name in ("artifact", "requests"):
        text = value[name]
        if not isinstance(text, str) or re.fullmatch(r"[0-9a-f]{64}", text) is None:
            raise ValueError(f"{name} is no digest")
    for name, least in (("runs", 0), ("shard_size", 1), ("started_ms", 0)):
        if type(value[name]) is not int or not least <= value[name] <= _MOST:
            raise ValueError(f"{name} is out of its range")
    if not isinstance(found.verified, bool) or not isinstance(found.ledgers, bool):
        raise ValueError("verified and ledgers are true or false")
    if found.part_format not in FORMATS:
        raise ValueError("part_format is none")
    return found


def _require_same(folder: Path, expected: Batch, there: Batch) -> None:
    for name in _NAMES:
        here, asked = getattr(there, name), getattr(expected, name)
        if here != asked:
            what = (
                f"the folder has another batch: its {name} is {here}, and not {asked}; "
                "name another folder, or replace that batch (--overwrite)"
            )
            raise BatchError("TCC802", str(folder), what)


def _clear(folder: Path, names: re.Pattern[str]) -> None:
    for entry in list(os.scandir(folder)):
        file = entry.is_symlink() or entry.is_file()  # removes a link, but never its target
        if names.fullmatch(entry.name) and file:
            Path(entry.path).unlink(missing_ok=True)

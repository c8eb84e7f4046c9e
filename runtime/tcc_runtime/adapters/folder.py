"""A folder that PEFT wrote, read without running anything of it.

Text: docs/adapters.md.  Two files count: `adapter_config.json`, and `adapter_model.safetensors`,
which safetensors' own reader has to take.  Pickled weights (`adapter_model.bin`) are never opened.
Of a LoRA adapter rank, target modules and tensors have to go together.
Cost: one pass over the bytes of the tensors, a piece at a time; the two headers are held in memory.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from blake3 import blake3

from tcc_certs.errors import Code, Rejected
from tcc_runtime.adapters.identity import Tensor, adapter_id
from tcc_runtime.adapters.lora import check_lora

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
_MOST_CONFIG, _MOST_HEADER, _PIECE = 1 << 20, 1 << 25, 1 << 20


class ReaderMissing(ImportError):
    """safetensors is not installed."""


def folder_id(folder: Path) -> str:
    """The identity of the adapter in a folder.

    Raises:
        Rejected: A103 it, or a file of it, is missing or cannot be read; A104 a file has not its
            form; A105 the two do not go together.
        ReaderMissing: safetensors is not installed.
    """
    config = _config(folder / CONFIG)
    tensors = _tensors(folder / WEIGHTS)
    check_lora(config, tensors, str(folder / CONFIG))
    try:
        return adapter_id(config, tensors)
    except Rejected as refusal:
        _malformed(folder / CONFIG, refusal.expected, refusal.found)


def _config(path: Path) -> Mapping[str, object]:
    with _regular(path) as handle:
        data = handle.read(_MOST_CONFIG + 1)
    if len(data) > _MOST_CONFIG:
        _malformed(path, f"at most {_MOST_CONFIG} bytes", "more")
    return _object(data, path)


def _tensors(path: Path) -> Sequence[Tensor]:
    """The tensors of a file, in the order of their names."""
    with _regular(path) as handle:
        before = os.fstat(handle.fileno())
        start = int.from_bytes(handle.read(8), "little")
        if start > _MOST_HEADER:
            _malformed(path, f"a header of at most {_MOST_HEADER} bytes", start)
        known = _known_to_safetensors(path)
        header = _object(handle.read(start), path)
        places = {name: item for name, item in header.items() if name != "__metadata__"}
        if sorted(places) != sorted(known):
            _malformed(path, "the tensors that safetensors reads", "others")
        found = [
            _tensor(handle, path, start + 8, name, places[name], known[name])
            for name in sorted(places)
        ]
        _check_same(handle, path, before)
        return found


def _check_same(handle: IO[bytes], path: Path, before: os.stat_result) -> None:
    """What was read is the file that safetensors took, as it was then: it is opened twice."""
    try:
        seen = [os.fstat(handle.fileno()), path.stat()]
    except OSError:
        seen = []
    marks = {(s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns) for s in (before, *seen)}
    if not seen or len(marks) > 1:
        _malformed(path, "a file that stays as it is while it is read", "another one")


def _tensor(
    handle: IO[bytes],
    path: Path,
    start: int,
    name: str,
    place: object,
    known: tuple[str, list[int]],
) -> Tensor:
    item: Mapping[str, Any] = place if isinstance(place, dict) else {}
    dtype, shape = known
    offsets = item.get("data_offsets")
    begin, end = offsets if isinstance(offsets, list) and len(offsets) == 2 else (None, None)
    if type(begin) is not int or type(end) is not int or not 0 <= begin <= end:
        _malformed(path, f"the place of {name[:80]}", offsets)
    handle.seek(start + begin)
    hasher = blake3()
    for piece in _pieces(handle, end - begin):
        hasher.update(piece)
        begin += len(piece)
    if begin != end:
        _malformed(path, f"the bytes of {name[:80]}", f"{end - begin} less")
    return Tensor(name=name, dtype=dtype, shape=tuple(shape), digest=hasher.digest())


def _pieces(handle: IO[bytes], size: int) -> Iterator[bytes]:
    while size and (piece := handle.read(min(size, _PIECE))):
        yield piece
        size -= len(piece)


def _known_to_safetensors(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Type and shape of each tensor, by the reader of the format itself."""
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise ReaderMissing(str(error)) from None
    try:
        with safe_open(str(path), framework="np") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (part.get_dtype(), part.get_shape()) for name, part in slices.items()}
    except (SafetensorError, OSError, ValueError, OverflowError) as error:
        _malformed(path, "a file that safetensors reads", error)


def _regular(path: Path) -> IO[bytes]:
    """A regular file, open; nothing that would be waited for, such as a pipe."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such name"
        raise Rejected(Code.ADAPTER_MISSING, str(path), "a file that can be read", why) from None
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise Rejected(Code.ADAPTER_MISSING, str(path), "a regular file", "something else")
    return os.fdopen(number, "rb")


def _object(data: bytes, path: Path) -> Mapping[str, object]:
    """A JSON object, each member once, numbers that are not whole as decimals."""
    try:
        value = json.loads(
            data.decode(), object_pairs_hook=_once, parse_float=Decimal, parse_constant=_refused
        )
    except (ValueError, RecursionError, ArithmeticError) as error:
        _malformed(path, "JSON in UTF-8, each member once", error)
    if not isinstance(value, dict):
        _malformed(path, "a JSON object", type(value).__name__)
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a member stands twice")
    return found


def _refused(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _malformed(path: Path, expected: object, found: object) -> NoReturn:
    raise Rejected(Code.ADAPTER_FORM, str(path), expected, str(found)[:200])

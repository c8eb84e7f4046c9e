"""Reading the registry of adapters and its PEFT folders, and comparing them.

Text: docs/adapters.md.  A run uses a registry only if each folder agrees with its entry.  Changed,
missing or unknown folders are rejected before the first question.  Two files of a folder are read:
`adapter_config.json`, and `adapter_model.safetensors`, which the reader of safetensors must accept.
No code in them is run: pickled weights (`adapter_model.bin`) are never opened.
Cost: one pass over the bytes of the tensors of every folder, in pieces.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Final, NoReturn

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.codec import parse_decimal
from tcc_certs.formats.ledger_schema import AMOUNT, HEX, PROBABILITY, Format
from tcc_certs.policy.atoms import Atom, Codes, read_atom
from tcc_certs.privacy.accountant import PLACES, epsilon_text, stated, total_of
from tcc_certs.privacy.spending import exact_delta
from tcc_runtime.adapters.adapter import Adapter, AdapterTensor, adapter_id, check_lora
from tcc_runtime.toml_text import read_toml

# Folders that PEFT wrote.

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
_MOST_CONFIG, _MOST_HEADER, _PIECE = 1 << 20, 1 << 25, 1 << 20


class ReaderMissing(ImportError):
    """safetensors is not installed."""


def folder_id(folder: Path) -> str:
    """Return the identity of the adapter in a folder.

    Raises:
        Rejected: A103: the folder or a file is missing or unreadable.  A104: a file is malformed.
            A105: the files do not agree.
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


def _tensors(path: Path) -> Sequence[AdapterTensor]:
    """Return the tensors of a file, sorted by name."""
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
    """Check that the file did not change while it was read: it is opened twice, here and by
    safetensors.
    """
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
) -> AdapterTensor:
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
    return AdapterTensor(name=name, dtype=dtype, shape=tuple(shape), digest=hasher.digest())


def _pieces(handle: IO[bytes], size: int) -> Iterator[bytes]:
    while size and (piece := handle.read(min(size, _PIECE))):
        yield piece
        size -= len(piece)


def _known_to_safetensors(path: Path) -> dict[str, tuple[str, list[int]]]:
    """Return type and shape of each tensor, as the reader of safetensors gives them."""
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
    """Open a regular file.  A pipe or another special file is refused without waiting for it."""
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
    """Return a JSON object whose members occur once, with numbers that are not whole as
    Decimals.
    """
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


SCHEMA: Final = "tcc.adapters/1.0"
_MOST_BYTES, _MOST_TEXT = 1 << 20, 256
_NOT_WAITING: Final = getattr(os, "O_NONBLOCK", 0)
_FORMS: Final[Mapping[str, Format]] = {
    "id": HEX,
    "eps_train": AMOUNT,
    "delta_train": PROBABILITY,
}
_TEXTS: Final = ("tier", "dp_cert_id")
_TRAINING: Final = ("mechanism", "noise_multiplier", "sampling_rate", "steps")
_CODES: Final = Codes(Code.ADAPTER_REGISTRY, Code.ADAPTER_REGISTRY)


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryEntry:
    """An entry of a registry.

    Attributes:
        folder: the folder of the adapter.
        training: the mechanism of its training; None: the entry does not state it.
    """

    adapter: Adapter
    folder: Path
    training: Atom | None = None


def read_registry(path: Path) -> tuple[Adapter, ...]:
    """Return the adapters of a registry, sorted by name, after comparing each with its folder.

    Raises:
        Rejected: A101: the file is no registry.  A103 to A105: see :func:`folder_id`.  A106: a
            folder has another identity than its entry.  A107: the stated training loses more
            privacy than the entry certifies.
        ReaderMissing: safetensors is not installed.
        OSError: the registry cannot be read.
    """
    entries = read_entries(path)
    for entry in entries:
        found, expected = folder_id(entry.folder), entry.adapter.adapter_id
        require(expected, found, Code.ADAPTER_ALTERED, f"{path}: {entry.adapter.name}")
        if entry.training is not None:
            _check_training(entry.training, entry.adapter, f"{path}: {entry.adapter.name}")
    return tuple(entry.adapter for entry in entries)


def read_entries(path: Path) -> tuple[RegistryEntry, ...]:
    """Return the entries of a registry, without looking at their folders.

    Raises:
        Rejected: A101: the file is no registry.
        OSError: the file cannot be read.
    """
    # A pipe is refused without waiting for it.
    with os.fdopen(os.open(path, os.O_RDONLY | _NOT_WAITING), "rb") as handle:
        regular = stat.S_ISREG(os.fstat(handle.fileno()).st_mode)
        ensure(regular, Code.ADAPTER_REGISTRY, str(path), "a regular file", "something else")
        data = handle.read(_MOST_BYTES + 1)
    ensure(len(data) <= _MOST_BYTES, Code.ADAPTER_REGISTRY, str(path), "at most 1 MiB", "more")
    try:
        document = read_toml(data.decode())
    except (ValueError, RecursionError) as error:
        raise Rejected(Code.ADAPTER_REGISTRY, str(path), "TOML in UTF-8", error) from None
    require(SCHEMA, document.get("format"), Code.ADAPTER_REGISTRY, f"{path}: format")
    listed = document.get("adapters", {})
    more = sorted(set(document) - {"format", "adapters"})
    ensure(not more, Code.ADAPTER_REGISTRY, str(path), "format and adapters", more[:3])
    if not isinstance(listed, dict):
        raise Rejected(Code.ADAPTER_REGISTRY, f"{path}: adapters", "a table", listed)
    return tuple(_entry(path, name, listed[name]) for name in sorted(listed))


def _entry(path: Path, name: str, value: object) -> RegistryEntry:
    place = f"{path}: adapters.{name}"
    if not isinstance(value, dict):
        raise Rejected(Code.ADAPTER_REGISTRY, place, "a table", value)
    known, free = {*_FORMS, *_TEXTS}, {"folder", "training"}
    more, less = sorted(set(value) - known - free), sorted(known - set(value))
    ensure(not more, Code.ADAPTER_REGISTRY, place, "no such member", more[:3])
    ensure(not less, Code.ADAPTER_REGISTRY, place, "a member more", less[:3])
    ensure(bool(name), Code.ADAPTER_REGISTRY, place, "a name", "none")
    for member, (form, holds) in _FORMS.items():
        ensure(
            holds(value[member]), Code.ADAPTER_REGISTRY, f"{place}.{member}", form, value[member]
        )
    for member in (*_TEXTS, "folder"):
        text = value.get(member, name)
        holds_text = isinstance(text, str) and text.isprintable() and 0 < len(text) <= _MOST_TEXT
        ensure(holds_text, Code.ADAPTER_REGISTRY, f"{place}.{member}", "a short text", text)
    return RegistryEntry(
        adapter=Adapter(
            name=name,
            adapter_id=value["id"],
            tier=value["tier"],
            dp_cert_id=value["dp_cert_id"],
            eps_train=value["eps_train"],
            delta_train=value["delta_train"],
        ),
        folder=path.parent / value.get("folder", name),
        training=_training(value["training"], f"{place}.training") if "training" in value else None,
    )


def _training(value: object, place: str) -> Atom:
    """Return the mechanism of a training as an atom.  Its noise is given for a clipping norm of
    1.
    """
    if not isinstance(value, dict):
        raise Rejected(Code.ADAPTER_REGISTRY, place, "a table", value)
    same = sorted(value) == sorted(_TRAINING)
    ensure(same, Code.ADAPTER_REGISTRY, place, ", ".join(_TRAINING), sorted(value)[:8])
    known = value["mechanism"] == "subsampled_gaussian"
    expected = "subsampled_gaussian"
    ensure(known, Code.ADAPTER_REGISTRY, f"{place}.mechanism", expected, value["mechanism"])
    names = {"rate": "sampling_rate", "sigma": "noise_multiplier"}
    members = {member: _decimal(value[name]) for member, name in names.items()}
    named = {"mechanism": expected, **members, "sensitivity": "1", "times": value["steps"]}
    return read_atom(named, place, _CODES)


def _decimal(value: Any) -> Any:
    """Return a number of TOML as the decimal text that it prints as; any other value as it is."""
    return f"{Decimal(repr(value)):f}" if type(value) in (int, float) else value


def _check_training(training: Atom, adapter: Adapter, place: str) -> None:
    """Require that the certified epsilon is at least that of the training, rounded to its tenth
    place.

    Raises:
        Rejected: A107: it is less.
    """
    delta = exact_delta(adapter.delta_train)
    ensure(
        0 < delta.numerator < 10**delta.places,
        Code.ADAPTER_TRAINING,
        f"{place}.delta_train",
        "above 0 and below 1, as its training has noise",
        adapter.delta_train,
    )
    due = stated(total_of([training]), delta).epsilon
    number, places = parse_decimal(adapter.eps_train, "eps_train", Code.ADAPTER_REGISTRY)
    holds = number * 10**PLACES >= due * 10**places
    expected = f"at least {epsilon_text(due)} at delta {adapter.delta_train}"
    ensure(holds, Code.ADAPTER_TRAINING, f"{place}.eps_train", expected, adapter.eps_train)

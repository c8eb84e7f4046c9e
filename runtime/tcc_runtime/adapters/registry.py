"""The registry of adapters: a file that names them, held to their folders.

Text: docs/adapters.md, *The registry*.  A run takes the entries of a registry only where each
folder is what its entry says; so what is altered, missing or unknown is refused before anything is
asked.
Cost: one pass over the tensors of every folder.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from tcc_certs.core.atoms import Atom, Codes, read_atom
from tcc_certs.errors import Code, Rejected, ensure, require
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.formats.ledger_forms import AMOUNT, HEX, PROBABILITY, Format
from tcc_certs.privacy.accountant import PLACES, epsilon_text, stated, total_of
from tcc_certs.privacy.spending import exact_delta
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.adapters.folder import folder_id
from tcc_runtime.toml_text import read_toml

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
class Entry:
    """An entry, the folder that it speaks of, and how it was trained, where it says so."""

    adapter: Adapter
    folder: Path
    training: Atom | None = None


def read_registry(path: Path) -> tuple[Adapter, ...]:
    """The adapters of a registry, in order of their names, each held to its folder.

    Raises:
        Rejected: A101 the file is no registry; A103 to A105 as of a folder; A106 a folder has
            another identity than its entry; A107 its training comes to more than its entry says.
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


def read_entries(path: Path) -> tuple[Entry, ...]:
    """The entries of a registry, as they stand there.

    Raises:
        Rejected: A101 the file is no registry.
        OSError: it cannot be read.
    """
    # A pipe is refused, not waited for.
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


def _entry(path: Path, name: str, value: object) -> Entry:
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
    return Entry(
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
    """The mechanism of a training, as an atom: its noise is told for a clipping norm of 1."""
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
    """A number of TOML as the text of what it prints as; anything else as it is."""
    return f"{Decimal(repr(value)):f}" if type(value) in (int, float) else value


def _check_training(training: Atom, adapter: Adapter, place: str) -> None:
    """What is certified is no less than what the training comes to, to its tenth place.

    Raises:
        Rejected: A107 it is less.
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

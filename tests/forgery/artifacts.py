"""Forged artifacts: an artifact taken apart, changed, and sealed again.

Sealing takes every column's digest anew, so what refuses a forgery is a rule about plans, never a
hash of bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from tcc_certs.formats.codec import blake, decode, encode
from tcc_certs.formats.container import ITEM_SIZE, Tensor, read_container, write_container

FORMAT = {"I64": "q", "U64": "Q", "U32": "I", "U8": "B"}
TEXTS = ("call_text", "tools", "core")
LIMITS = {"I64": (-(1 << 63), (1 << 63) - 1), "U64": (0, (1 << 64) - 1), "U32": (0, (1 << 32) - 1)}


class Forge:
    """An artifact in pieces: `columns` as [dtype, shape, bytes], `manifest` as JSON members."""

    def __init__(self, data: bytes) -> None:
        tensors = read_container(data)
        self.columns: dict[str, list[Any]] = {
            name: [tensor.dtype, tensor.shape, bytes(tensor.data)]
            for name, tensor in tensors.items()
            if name != "manifest"
        }
        self.manifest: dict[str, Any] = decode(bytes(tensors["manifest"].data), "manifest")

    def values(self, name: str) -> list[int]:
        """The flat column."""
        dtype, _, raw = self.columns[name]
        return list(struct.unpack(f"<{len(raw) // ITEM_SIZE[dtype]}{FORMAT[dtype]}", raw))

    def put(self, name: str, values: list[int], shape: tuple[int, ...] | None = None) -> Forge:
        """Replace a column."""
        column = self.columns[name]
        column[2] = struct.pack(f"<{len(values)}{FORMAT[column[0]]}", *values)
        column[1] = shape or ((len(values),) if len(column[1]) == 1 else column[1])
        return self

    def set(self, name: str, at: int, value: int) -> Forge:
        """Replace one item; a negative `at` counts from the end."""
        values = self.values(name)
        values[at] = value
        return self.put(name, values)

    def text(self, name: str) -> Any:
        """The JSON of a text column."""
        return decode(self.columns[name][2], name)

    def put_text(self, name: str, value: Any) -> Forge:
        """Replace the JSON of a text column."""
        raw = value if isinstance(value, bytes) else encode(value)
        self.columns[name] = ["U8", (len(raw),), raw]
        return self

    def member(self, *path: str, value: Any) -> Forge:
        """Replace a member of the manifest."""
        *parents, last = path
        place = self.manifest
        for name in parents:
            place = place[name]
        place[last] = value
        return self

    def seal(self, digests: bool = True) -> bytes:
        """The bytes; with `digests` the manifest's column digests are taken anew."""
        manifest = dict(self.manifest)
        if digests:
            manifest["columns"] = {n: blake(c[2]).hex() for n, c in sorted(self.columns.items())}
        raw = encode(manifest)
        parts = {**self.columns, "manifest": ["U8", (len(raw),), raw]}
        return write_container(
            {name: Tensor(dtype=d, shape=tuple(s), data=r) for name, (d, s, r) in parts.items()}
        )


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A forgery: the column or member, what was done to it, and what makes it.

    Sealing takes nearly all of the time, and most tests draw a few of thousands: so it is made when
    its bytes are asked for.
    """

    field: str
    how: str
    make: Callable[[], bytes]

    @cached_property
    def data(self) -> bytes:
        """The sealed bytes."""
        return self.make()


def column_mutants(data: bytes) -> Iterator[Mutant]:
    """Every item of every numeric column, changed in every way that its form allows."""
    for name, (dtype, _, _) in sorted(Forge(data).columns.items()):
        if name in TEXTS:
            continue
        values = Forge(data).values(name)
        for at, value in enumerate(values):
            if name == "state_digest" and at % 32 not in (0, 7, 31):
                continue  # a byte of a digest is like its neighbours
            others = {value + 1, value - 1, 0, 1, values[at - 1], values[0]}
            low, high = LIMITS.get(dtype, (0, 255))
            others |= {low, high, value ^ 1 << 7}
            for other in sorted(o for o in others if low <= o <= high and o != value):
                sealed = partial(_with_item, data, name, at, other)
                yield Mutant(field=name, how=f"[{at}] {value} -> {other}", make=sealed)
        for at in range(1, len(values)):
            if values[at] != values[at - 1] and name != "state_digest":
                sealed = partial(_swapped, data, name, at)
                yield Mutant(field=name, how=f"[{at - 1}] and [{at}] swapped", make=sealed)


def _with_item(data: bytes, name: str, at: int, value: int) -> bytes:
    return Forge(data).set(name, at, value).seal()


def _swapped(data: bytes, name: str, at: int) -> bytes:
    forge = Forge(data)
    values = forge.values(name)
    values[at - 1 : at + 1] = [values[at], values[at - 1]]
    return forge.put(name, values).seal()


def manifest_mutants(data: bytes) -> Iterator[Mutant]:
    """Every member of the manifest, column digests aside: changed, removed, and one added."""
    manifest = Forge(data).manifest
    for path, value in _leaves(manifest, ()):
        if path[0] == "columns":
            continue
        field = ".".join(path)
        for how, other in _others(value):
            yield Mutant(field=field, how=how, make=partial(_with_member, data, path, other))
        yield Mutant(field=field, how="removed", make=partial(_without_member, data, path))
    for parent in ((), ("grammar",), ("options",), ("leaf_policy",), ("leaf_policy", "root")):
        path = (*parent, "zzz")
        yield Mutant(field=".".join(path), how="added", make=partial(_with_member, data, path, "1"))


def _with_member(data: bytes, path: tuple[str, ...], value: Any) -> bytes:
    return Forge(data).member(*path, value=value).seal()


def _without_member(data: bytes, path: tuple[str, ...]) -> bytes:
    forge = Forge(data)
    place: Any = forge.manifest
    for name in path[:-1]:
        place = place[name]
    del place[path[-1]]
    return forge.seal()


def _leaves(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _leaves(item, (*path, name))
        yield (*path, name), item


def _others(value: Any) -> Iterator[tuple[str, Any]]:
    """Other values of the same form, and of another."""
    if isinstance(value, bool):
        yield "flipped", not value
    elif isinstance(value, int):
        yield from (("+1", value + 1), ("-1", value - 1), ("as text", str(value)), ("true", True))
        yield "far", 2**40
    elif isinstance(value, str):
        yield from (("longer", value + "0"), ("empty", ""), ("a number", 7))
        if value:
            yield "one character", chr(ord(value[0]) ^ 1) + value[1:]
    elif isinstance(value, list):
        yield from (("longer", [*value, "a"]), ("shorter", value[:-1] or ["x"]), ("text", "[]"))
    else:
        yield from (("a list", []), ("empty", {}))


def core_mutants(data: bytes) -> Iterator[Mutant]:
    """Every number and every word of the core, changed."""
    core = Forge(data).text("core")
    for path in _places(core, ()):
        for how, other in _others(_at(core, path)):
            sealed = partial(_with_core, data, path, other)
            yield Mutant(field="core." + ".".join(map(str, path)), how=how, make=sealed)


def _with_core(data: bytes, path: tuple[Any, ...], value: Any) -> bytes:
    forge = Forge(data)
    changed = forge.text("core")
    _at(changed, path[:-1])[path[-1]] = value
    return forge.put_text("core", changed).seal()


def _places(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for name, item in items:
        if isinstance(item, (dict, list)):
            yield from _places(item, (*path, name))
        else:
            yield (*path, name)


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        value = value[name]
    return value

"""What an adapter is: one digest of its configuration and of its tensors.

Normative text: docs/adapters.md, *Identity*.  The order of members and of tensors in the files is
no part of it, nor is what a writer of such files adds beside the tensors.
Cost: one BLAKE3 of the bytes of the tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from blake3 import blake3

from tcc_certs.values.canonical import json_text

_CONTEXT: Final = "tcc.adapter/1.0 adapter id"
_DEPTH, _MOST = 16, 1 << 20
# Lists whose order says nothing: PEFT keeps them as sets, and writes them in any order.
_SETS: Final = frozenset(
    {"exclude_modules", "layers_to_transform", "modules_to_save", "target_modules"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tensor:
    """One tensor of a file.

    Attributes:
        dtype: as safetensors names it.
        digest: BLAKE3 of its bytes.
    """

    name: str
    dtype: str
    shape: Sequence[int]
    digest: bytes


def adapter_id(config: Mapping[str, object], tensors: Iterable[Tensor]) -> str:
    """The identity of an adapter, 64 hexadecimal digits.

    Args:
        config: the members of its `adapter_config.json`, numbers that are not whole as decimals.
        tensors: in any order, each name once.

    Raises:
        Rejected: R105, R106 the configuration is too long, too deep or no JSON.
    """
    hasher = blake3(derive_key_context=_CONTEXT)
    listed = {name: _sorted(name, value) for name, value in config.items()}
    hasher.update(_sized(json_text(listed, _DEPTH, _MOST)))
    ordered = sorted(tensors, key=lambda tensor: tensor.name.encode())
    hasher.update(_number(len(ordered)))
    for tensor in ordered:
        hasher.update(_sized(tensor.name.encode()) + _sized(tensor.dtype.encode()))
        hasher.update(b"".join(map(_number, (len(tensor.shape), *tensor.shape))) + tensor.digest)
    return hasher.hexdigest()


def _sorted(name: str, value: object) -> object:
    """A list that stands for a set, in the order of its members' canonical texts."""
    if name not in _SETS or not isinstance(value, list):
        return value
    return sorted(value, key=lambda item: json_text(item, _DEPTH, _MOST))


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data

"""Adapters: identity, comparison of a LoRA configuration with its tensors, members of records.

Text: docs/adapters.md, *Identity* (normative) and *What is refused*; records: docs/spec/ledger.md,
section 13.  An identity is one digest of configuration and tensors.  It does not depend on the
order of members and tensors in the files, nor on metadata in the file of the tensors.  For methods
other than LoRA only the name of the method is required.
Cost: one BLAKE3 of the bytes of the tensors; linear in tensors and target modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy.core import Core
from tcc_certs.policy.plans import Model
from tcc_certs.values.canonical import json_text

# Identity.

_CONTEXT: Final = "tcc.adapter/1.0 adapter id"
_DEPTH, _MOST = 16, 1 << 20
# Lists whose order has no meaning: PEFT stores them as sets, and writes them in any order.
_SETS: Final = frozenset(
    {"exclude_modules", "layers_to_transform", "modules_to_save", "target_modules"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterTensor:
    """One tensor of a file.

    Attributes:
        dtype: the type, by its name in safetensors.
        digest: BLAKE3 of its bytes.
    """

    name: str
    dtype: str
    shape: Sequence[int]
    digest: bytes


def adapter_id(config: Mapping[str, object], tensors: Iterable[AdapterTensor]) -> str:
    """Return the identity of an adapter, 64 hexadecimal digits.

    Args:
        config: the members of its `adapter_config.json`, with numbers that are not whole as
            Decimals.
        tensors: its tensors in any order, each name once.

    Raises:
        Rejected: R105, R106: the configuration is too long, too deep or no JSON.
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
    """Return a list that represents a set sorted by canonical texts; any other value as it is."""
    if name not in _SETS or not isinstance(value, list):
        return value
    return sorted(value, key=lambda item: json_text(item, _DEPTH, _MOST))


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


def _sized(data: bytes) -> bytes:
    return _number(len(data)) + data


# Rank, target modules and tensors of LoRA.

_DOWN, _UP = ".lora_A", ".lora_B"
_PARTS: Final = (".weight", ".default.weight")


def check_lora(config: Mapping[str, object], tensors: Sequence[AdapterTensor], path: str) -> None:
    """Check that a method is named, and that a LoRA adapter's rank and modules agree with its
    tensors.

    Args:
        path: the path of the configuration, for messages.

    Raises:
        Rejected: A104: a required member is missing or of another type.  A105: rank, modules and
            tensors do not agree.
    """
    method = config.get("peft_type")
    if not isinstance(method, str) or not method:
        raise Rejected(Code.ADAPTER_FORM, f"{path}: peft_type", "the name of a method", method)
    if method != "LORA":
        return
    rank, scale = config.get("r"), config.get("lora_alpha")
    if type(rank) is not int or rank < 1:
        raise Rejected(Code.ADAPTER_FORM, f"{path}: r", "a whole number of at least 1", rank)
    if isinstance(scale, bool) or not isinstance(scale, (int, Decimal)) or not scale > 0:
        raise Rejected(Code.ADAPTER_FORM, f"{path}: lora_alpha", "a number above 0", scale)
    shapes = {tensor.name: tensor.shape for tensor in tensors}
    downs, ups = _side(shapes, _DOWN, path), _side(shapes, _UP, path)
    ensure(bool(downs), Code.ADAPTER_INCONSISTENT, path, "tensors of LoRA", "none")
    alone = sorted(downs.keys() ^ ups.keys())
    ensure(not alone, Code.ADAPTER_INCONSISTENT, path, "lora_A and lora_B of each", alone[:3])
    if not config.get("rank_pattern"):
        for module in sorted(downs):
            found = downs[module][:1], ups[module][1:2]
            expected = f"rank {rank} in {module}"
            ensure(found == ((rank,), (rank,)), Code.ADAPTER_INCONSISTENT, path, expected, found)
    _check_targets(config.get("target_modules"), downs, path)


def _side(shapes: Mapping[str, Sequence[int]], mark: str, path: str) -> dict[str, tuple[int, ...]]:
    """Return the shapes of one side's matrices by module; each module may have only one."""
    found: dict[str, tuple[int, ...]] = {}
    for name, shape in shapes.items():
        for part in _PARTS:
            if name.endswith(mark + part):
                module = name.removesuffix(mark + part)
                expected = f"one {mark[1:]} in {module}"
                ensure(module not in found, Code.ADAPTER_INCONSISTENT, path, expected, "two")
                found[module] = tuple(shape)
    return found


def _check_targets(targets: object, modules: Iterable[str], path: str) -> None:
    """Check that each target names a module with tensors, and each module with tensors is a
    target.
    """
    if not isinstance(targets, list):
        return  # a pattern, whose meaning depends on the model
    known = {target for target in targets if isinstance(target, str)}
    met = {module: _target_of(module, known) for module in modules}
    stray = sorted(module for module, target in met.items() if target is None)
    ensure(not stray, Code.ADAPTER_INCONSISTENT, path, "targets for all tensors", stray[:3])
    bare = sorted(known - set(met.values()))
    ensure(not bare, Code.ADAPTER_INCONSISTENT, path, "tensors for all target modules", bare[:3])


def _target_of(module: str, targets: set[str]) -> str | None:
    """Return the target that names a module: its path, or the end of its path; or None."""
    parts = module.split(".")
    ends = (".".join(parts[at:]) for at in range(max(0, len(parts) - 8), len(parts)))
    return next((end for end in ends if end in targets), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An entry of a registry.

    Attributes:
        name: the name that models of grammars use.
        adapter_id: the identity of its configuration and tensors, 64 hexadecimal digits.
        tier: the owner's word for its size.
        dp_cert_id: the owner's name of the certificate of its training.
        eps_train, delta_train: the certified privacy loss of its training, exact decimals as texts.
    """

    name: str
    adapter_id: str
    tier: str
    dp_cert_id: str
    eps_train: str
    delta_train: str

    @property
    def asked(self) -> Mapping[str, Json]:
        """The members for records of questions."""
        return {
            "adapter_id": self.adapter_id,
            "dp_cert_id": self.dp_cert_id,
            "eps_train": self.eps_train,
            "delta_train": self.delta_train,
        }

    @property
    def listed(self) -> Mapping[str, Json]:
        """The members for the first record of a ledger."""
        return {"name": self.name, "tier": self.tier, **self.asked}


def adapters_of(
    core: Core,
    registry: Iterable[Adapter],
    chosen: Callable[[Sequence[Model]], Sequence[Model]] = tuple,
) -> tuple[Adapter, ...]:
    """Return the adapters of the models of a grammar, sorted by name.

    Args:
        chosen: selects from the models of a tool.

    Raises:
        Rejected: A102: a model names an adapter that the registry lacks.
    """
    known = {adapter.name: adapter for adapter in registry}
    named = {
        model.adapter: f"{tool.name}, model {model.name}"
        for tool in reversed(core.tools)
        for model in reversed(chosen(tool.models))
        if model.adapter
    }
    for name in sorted(named):
        listed = ", ".join(sorted(known)[:8]) or "none"
        ensure(name in known, Code.ADAPTER_UNKNOWN, named[name], f"one of {listed}", name)
    return tuple(known[name] for name in sorted(named))


def adapter_of(model: Model, adapters: Iterable[Adapter]) -> Adapter | None:
    """Return the adapter of a model, or None."""
    return next((adapter for adapter in adapters if adapter.name == model.adapter), None)

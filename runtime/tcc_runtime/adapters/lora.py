"""Whether configuration and tensors of a LoRA adapter go together.

Text: docs/adapters.md, *What is refused*.  Of other methods only the method's name is asked for.
Cost: linear in the tensors and in the target modules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from tcc_certs.errors import Code, Rejected, ensure
from tcc_runtime.adapters.identity import Tensor

_DOWN, _UP = ".lora_A", ".lora_B"
_PARTS: Final = (".weight", ".default.weight")


def check_lora(config: Mapping[str, object], tensors: Sequence[Tensor], path: str) -> None:
    """A method is named; a LoRA adapter's rank and modules are those of its tensors.

    Args:
        path: of the configuration, for messages.

    Raises:
        Rejected: A104 a member that every adapter has is missing or of another type; A105 rank,
            modules and tensors do not go together.
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
    """The shapes of one side's matrices, by module, each of which has one."""
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
    """Each target is a module that has tensors; each module that has some is a target."""
    if not isinstance(targets, list):
        return  # a pattern, whose meaning depends on the model
    known = {target for target in targets if isinstance(target, str)}
    met = {module: _target_of(module, known) for module in modules}
    stray = sorted(module for module, target in met.items() if target is None)
    ensure(not stray, Code.ADAPTER_INCONSISTENT, path, "targets for all tensors", stray[:3])
    bare = sorted(known - set(met.values()))
    ensure(not bare, Code.ADAPTER_INCONSISTENT, path, "tensors for all target modules", bare[:3])


def _target_of(module: str, targets: set[str]) -> str | None:
    """The target that names a module: itself, or the end of its path."""
    parts = module.split(".")
    ends = (".".join(parts[at:]) for at in range(max(0, len(parts) - 8), len(parts)))
    return next((end for end in ends if end in targets), None)

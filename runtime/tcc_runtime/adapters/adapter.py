"""An adapter as a run and its ledger know it.

Text: docs/adapters.md; the fields of records: docs/spec/ledger.md, section 13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.core.model import Core, Model
from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An entry of a registry whose folder is what it says.

    Attributes:
        name: as models of grammars name it.
        adapter_id: of its configuration and tensors, 64 hexadecimal digits.
        tier: its owner's word for its size.
        dp_cert_id: the certificate of its training, as its owner names it.
        eps_train, delta_train: what the training is certified for, exact decimals as texts.
    """

    name: str
    adapter_id: str
    tier: str
    dp_cert_id: str
    eps_train: str
    delta_train: str

    @property
    def asked(self) -> Mapping[str, Json]:
        """What the records of an ask say of it."""
        return {
            "adapter_id": self.adapter_id,
            "dp_cert_id": self.dp_cert_id,
            "eps_train": self.eps_train,
            "delta_train": self.delta_train,
        }

    @property
    def listed(self) -> Mapping[str, Json]:
        """What the first record of a ledger says of it."""
        return {"name": self.name, "tier": self.tier, **self.asked}


def adapters_of(
    core: Core,
    registry: Iterable[Adapter],
    chosen: Callable[[Sequence[Model]], Sequence[Model]] = tuple,
) -> tuple[Adapter, ...]:
    """The adapters that the models of a grammar run with, in order of their names.

    Args:
        chosen: which of a tool's models are meant.

    Raises:
        Rejected: A102 a model names one that the registry does not have.
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
    """The one that a model runs with; None: it names none."""
    return next((adapter for adapter in adapters if adapter.name == model.adapter), None)

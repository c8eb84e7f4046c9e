"""The adapters that models run with, as a ledger names them: once in `open`, again at each ask.

Normative text: docs/spec/ledger.md, section 13.  Which adapters have to be there follows from the
core; what is said of each comes from outside, and is the same wherever the ledger says it.
Cost: one look at the models of the core.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tcc_certs.core.model import Core, Model
from tcc_certs.formats.codec import Json
from tcc_certs.formats.ledger import Record
from tcc_certs.formats.ledger_schema import text


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """An adapter of a run.

    Attributes:
        name: as models of the grammar name it.
        fields: of the records of an ask whose model runs with it.
    """

    name: str
    fields: Mapping[str, Json]


NAMED = ("adapter_id", "dp_cert_id", "eps_train", "delta_train")


def read_adapters(listed: Json | None) -> tuple[Adapter, ...]:
    """The adapters of an `open` record whose fields have their form."""
    if not isinstance(listed, list):
        return ()
    return tuple(_adapter(item) for item in listed if isinstance(item, dict))


def _adapter(item: Record) -> Adapter:
    return Adapter(name=text(item, "name"), fields={name: item[name] for name in NAMED})


def named_adapters(core: Core) -> list[str]:
    """The names of the adapters that models of a core run with, in order."""
    return sorted({model.adapter for tool in core.tools for model in tool.models} - {""})


def adapter_fields(adapters: Iterable[Adapter], model: Model) -> Mapping[str, Json]:
    """What a record of an ask says of the adapter of the model that is asked."""
    if not model.adapter:
        return {}
    return next((item.fields for item in adapters if item.name == model.adapter), {})

"""The models of a tool: schema of the ways of asking what a call of it costs.

Normative text: docs/spec/core.md, section 2.  Cost: linear in the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_certs.formats.schema import as_list, as_name, as_object, as_text, as_unsigned

if TYPE_CHECKING:
    from tcc_certs.core.atoms import Atom

_SCHEMA = Code.CORE_SCHEMA


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A way of asking what a call of a tool costs, where that is a range.

    Attributes:
        price: cents.  latency: milliseconds.  epsilon: nano.  Unsigned 64 bits.
        adapter: the name of the adapter that it runs with; empty where it names none.
        atom: the mechanism that it privatises what it looks at with; what it takes beside epsilon.
    """

    name: str
    price: int
    latency: int
    epsilon: int
    adapter: str = ""
    atom: Atom | None = None


def read_models(item: Mapping[str, Json], path: str) -> tuple[Model, ...]:
    """The models of a tool's object, in its order.

    Raises:
        Rejected: C801.
    """
    if "models" not in item:
        return ()
    values = as_list(item["models"], f"{path}.models", _SCHEMA, 1)
    return tuple(_model(value, f"{path}.models[{i}]") for i, value in enumerate(values))


def _model(value: Json, path: str) -> Model:
    numbers = ["epsilon", "latency_ms", "price"]
    item = as_object(value, path, _SCHEMA, ["name", *numbers], ["adapter", "atom"])
    adapter = as_text(item["adapter"], f"{path}.adapter", _SCHEMA) if "adapter" in item else ""
    return Model(
        name=as_name(item["name"], f"{path}.name", _SCHEMA),
        price=as_unsigned(item["price"], f"{path}.price", _SCHEMA),
        latency=as_unsigned(item["latency_ms"], f"{path}.latency_ms", _SCHEMA),
        epsilon=as_unsigned(item["epsilon"], f"{path}.epsilon", _SCHEMA),
        adapter=adapter,
        atom=_atom(item["atom"], f"{path}.atom") if "atom" in item else None,
    )


def _atom(value: Json, path: str) -> Atom:
    """An atom; who reads none has none of its reader to trust, nor to load."""
    from tcc_certs.core.atoms import canonical_atom

    return canonical_atom(value, path, _SCHEMA)

"""The models of a tool: schema of the ways of asking what a call of it costs, and of making it.

Normative text: docs/spec/core.md, section 2.  Cost: linear in the texts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tcc_certs.errors import Code, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.formats.decimals import parse_decimal
from tcc_certs.formats.schema import as_list, as_name, as_object, as_text, as_unsigned

if TYPE_CHECKING:
    from tcc_certs.core.atoms import Atom

_SCHEMA = Code.CORE_SCHEMA
_PLACES = 9
HALF = (5, 1)  # what holds of a model that says nothing
_NUMBERS = ["epsilon", "latency_ms", "price"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A way of asking what a call of a tool costs, where that is a range, or of making the call.

    Attributes:
        price: cents.  latency: milliseconds.  epsilon: nano.  Unsigned 64 bits.
        adapter: the name of the adapter that it runs with; empty where it names none.
        atom: the mechanism that it privatises what it looks at with; what it takes beside epsilon.
        execute: the model with what making a call takes; None: it makes none.
        quality: the share of a width that it is taken to gain before it has answered, an exact
            decimal above 0, at most 1: its digits and its places.
    """

    name: str
    price: int
    latency: int
    epsilon: int
    adapter: str = ""
    atom: Atom | None = None
    execute: Model | None = None
    quality: tuple[int, int] = HALF


def executing(models: Iterable[Model]) -> tuple[Model, ...]:
    """The models that make calls, each with what that takes, in their order."""
    return tuple([model.execute for model in models if model.execute is not None])


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
    named = ["adapter", "atom", "execute", "quality"]
    item = as_object(value, path, _SCHEMA, ["name", *_NUMBERS], named)
    model = Model(
        name=as_name(item["name"], f"{path}.name", _SCHEMA),
        adapter=as_text(item["adapter"], f"{path}.adapter", _SCHEMA) if "adapter" in item else "",
        quality=_quality(item["quality"], f"{path}.quality") if "quality" in item else HALF,
        **_taken(item, path),
    )
    if "execute" not in item:
        return model
    path = f"{path}.execute"
    taken = _taken(as_object(item["execute"], path, _SCHEMA, _NUMBERS, ["atom"]), path)
    # An atom is never lost: executing tells of what the model looks at as much as asking does.
    lost = model.atom is not None and taken["atom"] is None
    ensure(not lost, _SCHEMA, f"{path}.atom", "an atom, as the model has one", "none")
    return replace(model, execute=replace(model, **taken))


def _quality(value: Json, path: str) -> tuple[int, int]:
    """A quality; the one that holds without the member is never written."""
    number, places = parse_decimal(as_text(value, path, _SCHEMA), path, _SCHEMA)
    holds = 0 < number <= 10**places and places <= _PLACES and (number, places) != HALF
    ensure(holds, _SCHEMA, path, "above 0, at most 1, nine places at most, and not 0.5", value)
    return number, places


def _taken(item: Mapping[str, Json], path: str) -> dict[str, Any]:
    return {
        "price": as_unsigned(item["price"], f"{path}.price", _SCHEMA),
        "latency": as_unsigned(item["latency_ms"], f"{path}.latency_ms", _SCHEMA),
        "epsilon": as_unsigned(item["epsilon"], f"{path}.epsilon", _SCHEMA),
        "atom": _atom(item["atom"], f"{path}.atom") if "atom" in item else None,
    }


def _atom(value: Json, path: str) -> Atom:
    """An atom; who reads none has none of its reader to trust, nor to load."""
    from tcc_certs.core.atoms import canonical_atom

    return canonical_atom(value, path, _SCHEMA)

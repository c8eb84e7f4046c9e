"""The budget of a session: what models that make calls may take, and what they are chosen by.

Text: docs/spec/session.md, section 8; docs/privacy.md and docs/adapters.md for what is handed in.
Cost: linear in atoms and adapters; of a registry its folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tcc_certs.core.atoms import Atom, atom_document, canonical_atom
from tcc_certs.core.model import Core, executing
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.privacy.accountant import RENYI
from tcc_certs.privacy.atoms_file import atoms_of
from tcc_certs.privacy.spending import Taken, account, exact_delta
from tcc_runtime.account.amounts import Amounts, Caps
from tcc_runtime.adapters.adapter import Adapter, adapters_of
from tcc_runtime.errors import ResumeError, SettingsError
from tcc_runtime.ledger.lines import account_member, cap_fields, rule_field, weights
from tcc_runtime.pricing.controller import Spending
from tcc_runtime.settings.modes import check_neighbours
from tcc_runtime.settings.settings import DEFAULT_DELTA, Settings

_TOLD: Final = ("price_cap", "sla_ms", "epsilon_cap", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """A budget.

    Attributes:
        settings: caps, weights, margin, delta and the atoms that privatised the input.
        adapters: of the models that make calls, in order of their names.
        account: identity and caps of the one that is drawn on; None: none is.
    """

    settings: Settings
    adapters: tuple[Adapter, ...] = ()
    account: tuple[str, Caps] | None = None

    @property
    def taken(self) -> Taken | None:
        """The account of privacy that it begins with; None where no atoms are counted."""
        delta = self.settings.delta
        if delta is None:
            return None
        return account(exact_delta(delta), self.settings.atoms, True, self.settings.accounting)

    @property
    def limits(self) -> dict[str, Any]:
        """What searches of the session are told."""
        names = ("price_weight", "latency_weight", "epsilon_weight", "margin", "atoms")
        return {name: getattr(self.settings, name) for name in (*_TOLD, *names, "accounting")}

    @property
    def caps(self) -> Caps:
        """The caps."""
        told = self.settings
        return Caps(told.price_cap, told.sla_ms, told.nano_epsilon_cap)

    def record(self) -> dict[str, Json]:
        """`budget`."""
        record: dict[str, Json] = {
            "kind": "budget",
            "controller": weights(self.settings),
            **cap_fields(self.settings),
        }
        if self.taken is not None:
            record.update({"delta": self.taken.delta.text, **rule_field(self.taken)})
        if self.settings.atoms:
            record["atoms"] = [atom_document(atom) for atom in self.settings.atoms]
        if self.adapters:
            record["adapters"] = [adapter.listed for adapter in self.adapters]
        if self.account is not None:
            record["account"] = account_member(*self.account)
        return record


def used(spent: Spending) -> Amounts:
    """What was spent, as caps are held against it."""
    return Amounts(spent.price, spent.latency, spent.epsilon_used)


def budget_of(
    core: Core,
    told: Mapping[str, Any],
    atoms: Sequence[Atom],
    registry: Iterable[Adapter] | None,
    drawn_on: tuple[str, Caps] | None,
) -> Budget:
    """A budget over the models of a grammar.

    Args:
        told: settings by name.
        registry: None: nothing is said of adapters.

    Raises:
        SettingsError: a setting is out of its range.
        Rejected: A102 a model that makes calls names an adapter that the registry does not have;
            E103, E104 atoms do not go together.
    """
    settings = Settings(seed=bytes(32), atoms=tuple(atoms), **told)
    models = [model for tool in core.tools for model in (*tool.models, *executing(tool.models))]
    if settings.delta is None and (atoms or any(model.atom for model in models)):
        settings = Settings(seed=bytes(32), atoms=tuple(atoms), **{**told, "delta": DEFAULT_DELTA})
    if settings.delta is not None:
        check_neighbours(atoms, models)
    return Budget(
        settings=settings,
        adapters=() if registry is None else adapters_of(core, registry, executing),
        account=drawn_on,
    )


def budget_in(record: Mapping[str, Any], line: int) -> Budget:
    """The budget of a record whose fields have their form.

    Raises:
        ResumeError: it is none that this version writes.
    """
    told = {name: record[name] for name in _TOLD if name in record}
    told["accounting"] = record.get("accounting", RENYI)
    try:
        atoms = [
            canonical_atom(item, "atoms", Code.LEDGER_SCHEMA) for item in record.get("atoms", ())
        ]
        named = dict(record.get("account", {}))
        epsilon = named.get("epsilon")
        caps = Caps(
            named.get("price"),
            named.get("latency_ms"),
            None
            if epsilon is None
            else Settings(seed=bytes(32), epsilon_cap=epsilon).nano_epsilon_cap,
        )
        return Budget(
            settings=Settings(seed=bytes(32), atoms=tuple(atoms), **told, **record["controller"]),
            adapters=tuple(Adapter(**item) for item in record.get("adapters", ())),
            account=(str(named["id"]), caps) if named else None,
        )
    except SettingsError as error:
        raise ResumeError(f"line {line}: {error.field}", error.expected, error.found) from None
    except Rejected as refusal:
        place = f"line {line}: {refusal.path}"
        raise ResumeError(place, refusal.expected, refusal.found) from None


# What callers hand in: as values, or as what says them.


def atoms_in(atoms: Sequence[Mapping[str, Any] | Atom]) -> tuple[Atom, ...]:
    """Atoms, or objects that say them.

    Raises:
        Rejected: E101 to E104, one is none.
    """
    return tuple([atom if isinstance(atom, Atom) else atoms_of([dict(atom)])[0] for atom in atoms])


def adapters_in(adapters: str | Path | Iterable[Adapter] | None) -> tuple[Adapter, ...] | None:
    """The adapters of a registry, or those that are given.

    Raises:
        Rejected: A101 to A107.
    """
    if isinstance(adapters, str | Path):
        from tcc_runtime.adapters.registry import read_registry

        return read_registry(Path(adapters))
    return None if adapters is None else tuple(adapters)

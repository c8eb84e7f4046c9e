"""What an execution may spend: one budget for the asks of its searches and the calls of models.

Text: docs/budgets.md.  Cost: a record of the session's ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tcc_certs.core.atoms import Atom
from tcc_certs.core.models import executing
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.gate import Gate
from tcc_runtime.outcome import Run

_WEIGHTS: Final = ("price_weight", "latency_weight", "epsilon_weight")
_LIMITS: Final = ("price_cap", "sla_ms", "epsilon_cap", "margin", "delta")


@dataclass(frozen=True, slots=True, kw_only=True)
class Funds:
    """What an execution is handed beside its settings.

    Attributes:
        atoms: what privatised the input.
        adapters: of a registry; None: nothing is said of any.
        account: that is drawn on.
    """

    atoms: tuple[Atom, ...] = ()
    adapters: tuple[Adapter, ...] | None = None
    account: Account | None = None


def settle_budget(
    gate: Gate, run: Run | None, funds: Funds, quoted: bool, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings of searches, once the session has its budget, where there is one.

    Args:
        run: that goes before; what its asks took counts where the budget is new.
        quoted: whether there is somebody to ask.

    Raises:
        SettingsError: a limit of nothing: nobody is asked, and no model makes calls.
        ResumeError: the session has another budget.
    """
    limits = {name: settings[name] for name in _LIMITS if settings.get(name) is not None}
    artifact = gate.artifact
    makes = any(executing(tool.models) for tool in artifact.core.tools)
    needed = bool(makes or limits or funds.atoms or funds.account)
    if not makes:
        _require_something(artifact, limits, funds, quoted)
    if needed and settings.get("raw_input_dependent") and ("delta" in limits or funds.atoms):
        found = "raw_input_dependent"
        raise SettingsError("delta", "none, as nothing is stated of raw input", found)
    if needed:
        weights = {name: settings[name] for name in _WEIGHTS if name in settings}
        new = gate.budget(
            atoms=funds.atoms,
            adapters=funds.adapters,
            account=funds.account,
            **weights,
            **limits,
        )
        if new and run is not None:
            gate.searched(run, None)
    return _searching(artifact, gate, funds, settings)


def _require_something(
    artifact: Artifact, limits: Mapping[str, Any], funds: Funds, quoted: bool
) -> None:
    """Limits are of asks, where costs are ranges, or of models that make calls."""
    if artifact.fixed_costs:
        for name in limits:
            if name != "delta" or not funds.atoms:
                due = "none, as no cost is a range and no model makes calls"
                raise SettingsError(name, due, limits[name])
    if funds.account is not None and (artifact.fixed_costs or not quoted):
        due = "none, as nobody is asked and no model makes calls"
        raise SettingsError("account", due, funds.account.id)


def _searching(
    artifact: Artifact, gate: Gate, funds: Funds, settings: Mapping[str, Any]
) -> dict[str, Any]:
    """What a search is told: of a budget only where it may ask."""
    if artifact.fixed_costs:
        return {name: value for name, value in settings.items() if name not in _LIMITS}
    return {**settings, "atoms": funds.atoms, **gate.limits}

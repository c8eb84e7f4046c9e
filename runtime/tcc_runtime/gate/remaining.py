"""What the limits of a grammar still leave to a session.

A call whose outcome is unknown counts, with what it may have taken at most.  What a plan still
needs is no part of it.
Cost: linear in the history.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, TypeAlias

from tcc_certs.core.amounts import summed_parameter
from tcc_certs.core.model import Call, Core, Limit
from tcc_certs.formats.decimals import format_decimal
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.session import Made, Session

Amount: TypeAlias = "Callable[[int], int]"  # of a call of the core
_NANO: Final = 9
_OF: Final[Mapping[str, Callable[[Call], int]]] = {
    "depth": lambda _call: 1,
    "price": lambda call: call.price,
    "latency": lambda call: call.latency,
    "cost": lambda call: call.cost_high,
    "epsilon": lambda call: call.epsilon,
}


def remaining(session: Session) -> dict[str, int | Decimal]:
    """By name: ``calls``, the most that may still follow, then each limit as a grammar has it.

    Price and latency are whole (cents, ms), uses are calls, everything else is a decimal.
    """
    policy = session.policy
    found: dict[str, int | Decimal] = {"calls": _most_calls(session)}
    made = [one for one in session.made if one.outcome != "failed"]
    for limit in policy.core.limits:
        if limit.least:
            continue
        amount = _amount(policy.core, limit)
        left = limit.value - sum(_took(policy, amount, one) for one in made)
        if limit.kind == "depth":
            found["calls"] = min(found["calls"], left)
            continue
        name = limit.text.rpartition("<=")[0].strip()
        exact = limit.kind in ("cost", "epsilon", "sum")
        value = Decimal(format_decimal(left, _NANO)) if exact else left
        found[name] = min(found.get(name, value), value)
    return {**found, **_of_monitors(session)}


def _most_calls(session: Session) -> int:
    walk, rank = session.policy.walk, session.policy.artifact.rank
    return min(
        max([0 if q < 0 else rank(q) for q in walk.states(place)])
        for place in session.known_places()
    )


def _took(policy: Policy, amount: Amount, made: Made) -> int:
    """What a call takes of a limit; the most that it may, if its observed values are not known."""
    group = made.group
    known = None if made.observed is None else group.by_observed.get(made.observed)
    calls = group.calls if known is None else (known,)
    return max([amount(policy.core_call(call)) for call in calls], default=0)


def _amount(core: Core, limit: Limit) -> Amount:
    ranges = limit.calls
    if ranges is not None:
        return lambda number: any(low <= number < high for low, high in ranges)
    if limit.parameter is not None:
        return summed_parameter(core.tools, core.calls, limit.parameter).__getitem__
    of = _OF[limit.kind]
    return lambda number: of(core.calls[number])


def _of_monitors(session: Session) -> Mapping[str, Decimal]:
    """What monitors that add up still leave."""
    memory = session.memory
    if memory is None:
        return {}
    return {
        text.removeprefix("limit ").rpartition("<=")[0].strip(): Decimal(left)
        for text, left in memory.left_of_sums()
    }

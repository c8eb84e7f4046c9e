"""Replay of a session with its values on one side: which call is refused, and whether it may end.

The replay knows no atoms, tokens or intervals: values are their own keys, sums are exact, and each
value is checked against its type.  A session that a search found is shown only if the replay
agrees.
Cost: linear in the session.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tcc_certs.core.model import Tool
from tcc_certs.proof.fields import is_of
from tcc_certs.proof.replay import LaterSession
from tcc_certs.proof.sides import chosen_values, named
from tcc_certs.values.canonical import canonical
from tcc_runtime.exact.sides import Items, Side, remembered
from tcc_runtime.exact.writing import WitnessCall, WitnessSession, fields_of_call


def refused_at(side: Side, session: WitnessSession) -> int | None:
    """Index of the call that a side refuses; the number of calls if the session may not end there.

    None: the side accepts every call, and the session may end if it is one that ends.
    """
    numbers = {
        named(side.core.tools[call.tool], call.values): at
        for at, call in enumerate(side.core.calls)
    }
    place = side.walk.start
    memory: Items = frozenset()
    totals: dict[tuple[str, str], Fraction] = {}
    later = LaterSession(side.core, session.given) if side.policies else None
    for at, call in enumerate(session.calls):
        made = _read(side, call)
        number = None if made is None else numbers.get(made[0])
        if made is None or number is None:
            return at
        values, opened = side.core.calls[number].values, made[1]
        tool = side.core.calls[number].tool
        after = side.walk.step(place, number)
        chosen = chosen_values(side.core.tools[tool], values)
        compared = side.monitors.compared.get(tool, set())
        keys = {name: b"".join(canonical(opened[name])) for name in opened if name in compared}
        known = remembered(side.monitors.see(tool, chosen, keys, {}), memory, values)
        if after is None or known is None:
            return at
        if later is not None:
            at_ms = call.at_ms or 0
            if later.refuses(tool, chosen, opened, at_ms):
                return at
            later.done(tool, values, opened, at_ms)
        for name, value in opened.items():
            cap = side.caps.get((call.tool, name))
            if cap is not None:
                key = call.tool, name
                totals[key] = totals.get(key, Fraction(0)) + Fraction(_exact(value))
                if totals[key] > Fraction(cap):
                    return at
        place, memory = after, known
    owes = later is not None and later.owes
    ended = session.ends == "finish" and (owes or not side.walk.accepts(place))
    return len(session.calls) if ended else None


def _exact(value: Any) -> Decimal:
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


def _read(side: Side, call: WitnessCall) -> tuple[Any, dict[str, Any]] | None:
    """The listed values by name and the open values; None if they are not those of the tool."""
    number = side.tools.get(call.tool)
    if number is None:
        return None
    tool: Tool = side.core.tools[number]
    members = {p.name for p in tool.parameters if not p.observed and p.at is None}
    if not call.arguments.keys() <= members.union([p.name for p in tool.opened if p.at is None]):
        return None
    found, opened = fields_of_call(tool, call)
    for one in (*tool.opened, *tool.answers):
        if not (is_of(one.type, opened[one.name]) if one.name in opened else one.optional):
            return None
    return (call.tool, frozenset(found.items())), opened

"""A call that is under way, and how its end is told to the gate.

Cost: that of the gate's records.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from tcc_runtime.mcp.messages import Call
from tcc_runtime.mcp.outcomes import Ending, observed_in
from tcc_runtime.mcp.session import Permit


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """What the relay knows of a tool of the grammar.

    Attributes:
        observed: its observed parameters.
        errors_failed: whether its errors mean that nothing happened.
    """

    observed: tuple[str, ...] = ()
    errors_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """The call that is under way."""

    call: Call
    permit: Permit
    identity: int
    until: float
    leave: ExitStack


def record(permit: Permit, ending: Ending, tool: Tool) -> None:
    """Tell the gate how a call ended."""
    if ending.outcome == "done" and ending.result is not None:
        whole = {name: member.value for name, member in ending.result.items()}
        observed = observed_in(ending.structured, tool.observed) if tool.observed else None
        permit.done(whole, observed=observed)
    elif ending.outcome == "failed":
        permit.failed(ending.reason)
    else:
        permit.unknown(ending.reason)

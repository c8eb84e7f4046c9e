"""Whether a call may be made: the tool, its arguments, the plans, the monitors, in this order.

Text: docs/spec/session.md, section 6.
Cost: linear in the arguments; a few look-ups for the rest, whatever was called before.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcc_certs.errors import Code, clip
from tcc_runtime.gate.following import Follower, seen_of
from tcc_runtime.gate.monitors import Seen
from tcc_runtime.gate.reasons import reasons
from tcc_runtime.gate.refusals import Allowed, Decision, Reason
from tcc_runtime.gate.session import Session
from tcc_runtime.gate.tools import Asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """A call that may be made.

    Attributes:
        asked: which.
        seen: what monitors know of it.
    """

    asked: Asked
    seen: Seen | None


def decide(follower: Follower, tool: object, arguments: object) -> Permitted | Decision:
    """The call, where it is allowed; else the refusal."""
    session = follower.session
    if session.ended or session.unforeseen:
        return decision(session, Code.ENDED if session.ended else Code.UNFORESEEN, "")
    table = session.policy.tool(tool)
    if table is None:
        return decision(session, Code.UNKNOWN_TOOL, "")
    asked = table.read(arguments)
    if not isinstance(asked, Asked):
        return decision(session, asked[0], clip(asked[1], 80))
    seen = seen_of(session.policy, follower.writer, asked)
    refused = session.refusal(asked.group, seen)
    if refused is not None:
        return decision(session, refused[0], refused[1], asked)
    executions, tool = follower.executions, asked.group.tool
    if executions is not None and executions.makes(tool) and executions.choice(tool) is None:
        return decision(session, Code.NO_MODEL, "budget", asked)
    return Permitted(asked=asked, seen=seen)


def is_call(follower: Follower, seq: int, tool: object, arguments: object) -> bool:
    """Whether a call of the session has these arguments: by its text, and digest by digest."""
    session = follower.session
    table = session.policy.tool(tool)
    if not 1 <= seq <= len(session.made) or table is None:
        return False
    asked, made = table.read(arguments), session.made[seq - 1]
    if not isinstance(asked, Asked) or asked.group != made.group:
        return False
    expected = {given[0]: follower.writer.digest(given).hex() for given in asked.opened}
    found = {
        name: item.get("digest") if isinstance(item, dict) else None
        for name, item in made.opened.items()
    }
    return expected == found


def decision(
    session: Session, code: Code | None, place: str, asked: Asked | None = None
) -> Decision:
    """A decision; what there is to say beyond its code is found when it is read.

    Args:
        code: why not; None where the call is allowed.
        place: the argument at fault, or the monitor.
    """
    places, made, closed = session.places, len(session.made), session.ended
    under_way, resolved = session.under_way, len(session.resolved)

    def because() -> list[Reason]:
        if code is None:
            return []
        group = None if asked is None else asked.group
        return reasons(session, made, code, place, group, resolved=resolved, under_way=under_way)

    def allowed_next() -> tuple[Allowed, ...]:
        nothing = closed or under_way or code is Code.NOT_WRITTEN
        return () if nothing else session.policy.allowed(places)

    return Decision(code, place, because, allowed_next)

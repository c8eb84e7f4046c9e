"""Whether a call may be made: the tool, its arguments, the plans, the monitors, in this order.

Text: docs/spec/session.md, section 6.
Cost: linear in the arguments; a few look-ups for the rest, whatever was called before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tcc_certs.errors import Code, clip
from tcc_certs.session.monitors import Monitors, Seen
from tcc_runtime.gate.policy import Asked
from tcc_runtime.gate.reasons import reasons
from tcc_runtime.gate.records import Writer
from tcc_runtime.gate.refusals import Allowed, Decision, Reason
from tcc_runtime.gate.session import Follower, Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Permitted:
    """A call that may be made.

    Attributes:
        asked: which.
        seen: as monitors see it.
        digests: of those open arguments that monitors compare.
    """

    asked: Asked
    seen: Sequence[Seen]
    digests: Mapping[str, str]


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
    seen, digests = _seen(session.policy.machine.monitors, follower.writer, asked)
    refused = session.refusal(asked.offer, seen)
    if refused is not None:
        return decision(session, refused[0], refused[1], asked)
    executions, tool = follower.executions, asked.offer.tool
    if executions is not None and executions.makes(tool) and executions.choice(tool) is None:
        return decision(session, Code.NO_MODEL, "budget", asked)
    return Permitted(asked=asked, seen=seen, digests=digests)


def _seen(
    monitors: Monitors, writer: Writer, asked: Asked
) -> tuple[Sequence[Seen], Mapping[str, str]]:
    """A call that is asked for as monitors see it, and the digests that this takes."""
    tool = asked.offer.tool
    compared, added = monitors.compared.get(tool), monitors.added.get(tool, ())
    if compared is None:
        return (), {}
    digests = {given[0]: writer.digest(given) for given in asked.opened if given[0] in compared}
    numbers = {name: data.decode() for name, _, data in asked.opened if name in added}
    return monitors.see(tool, asked.offer.values, digests, numbers), digests


def is_call(follower: Follower, seq: int, tool: object, arguments: object) -> bool:
    """Whether a call of the session has these arguments: by its text, and digest by digest."""
    session = follower.session
    table = session.policy.tool(tool)
    if not 1 <= seq <= len(session.made) or table is None:
        return False
    asked, made = table.read(arguments), session.made[seq - 1]
    if not isinstance(asked, Asked) or asked.offer is not made.offer:
        return False
    expected = {given[0]: follower.writer.digest(given) for given in asked.opened}
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
    held, made, closed = session.held, len(session.made), session.ended
    under_way, resolved = session.under_way, len(session.resolved)

    def because() -> list[Reason]:
        if code is None:
            return []
        offer = None if asked is None else asked.offer
        return reasons(session, made, code, place, offer, resolved=resolved, under_way=under_way)

    def allowed_next() -> tuple[Allowed, ...]:
        nothing = closed or under_way or code is Code.NOT_WRITTEN
        return () if nothing else session.policy.allowed(held)

    return Decision(code, place, because, allowed_next)

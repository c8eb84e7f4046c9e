"""A session: where it may be, what its monitors remember, what was called; no ledger, no locks.

Text: docs/spec/session.md, sections 4 and 5.  After an unknown outcome a session may be in several
places, and what follows has to be allowed in all of them.  When an outcome is known late, the calls
from that one on are taken back and folded again.
Cost: a decision a few look-ups, whatever was called before and whether or not a call is under way;
resolving is linear in the calls behind the one that is resolved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import add
from typing import Final, Literal, TypeAlias

from tcc_certs.errors import Code
from tcc_certs.formats.codec import Json
from tcc_runtime.gate.monitors import Memory, Seen, Undo
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.tools import Group, Indices
from tcc_runtime.gate.walking import Place

Outcome: TypeAlias = Literal["done", "failed", "unknown"]
MOST_PLACES: Final = 64


@dataclass(slots=True, kw_only=True)
class Made:
    """A call that was made.

    Attributes:
        group: which.
        seen: what monitors know of it; None where none names its tool.
        outcome: unknown until it is told.
        observed: the indices of the observed values; None unless it is done.
        unforeseen: an answer came that is none of the tool's.
        opened: what the ledger has of its open arguments.
        model: that makes it; empty where none does.
    """

    group: Group
    seen: Seen | None
    outcome: Outcome = "unknown"
    observed: Indices | None = None
    unforeseen: bool = False
    opened: Mapping[str, Json] = field(default_factory=dict)
    model: str = ""


class Session:
    """The state of one session.

    Attributes:
        policy: of its artifact.
        made: every call, in order; the last one may be under way.
        under_way: whether the last call has no outcome yet.
        ended: no call may follow.
        resolved: the places in `made` of the calls that were resolved, in that order.
        trail: what is kept to say why something is refused.
    """

    __slots__ = (
        "_before", "_gone_through", "_memory", "_places", "_repeated", "_taken", "_unforeseen",
        "ended", "made", "policy", "resolved", "trail", "under_way",
    )  # fmt: skip

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.made: list[Made] = []
        self.under_way = False
        self.ended = False
        self.resolved: list[int] = []
        self.trail: object = None
        self._places: tuple[Place, ...] = (policy.walk.start,)
        self._unforeseen = False
        self._taken = policy.nothing_taken
        self._memory = self._fresh_memory()
        # Of each call that was folded what was there before, and what takes its notes back.
        self._before: list[tuple[tuple[Place, ...], bool, tuple[int, ...], Undo]] = []
        # As the validator counts: the calls that it has gone through, and how many of them again.
        self._gone_through = 0
        self._repeated = 0

    def _fresh_memory(self) -> Memory | None:
        return Memory(self.policy.monitors) if self.policy.monitors.texts else None

    @property
    def places(self) -> tuple[Place, ...]:
        """Where it may be, distinct and in order."""
        self._catch_up()
        return self._places

    @property
    def unforeseen(self) -> bool:
        """Whether an answer came that leads nowhere."""
        self._catch_up()
        return self._unforeseen

    @property
    def taken(self) -> tuple[int, ...]:
        """What the calls so far took of each limit of the core, but the one under way."""
        self._catch_up()
        return self._taken

    @property
    def memory(self) -> Memory | None:
        """What the monitors remember, None where there are none."""
        self._catch_up()
        return self._memory

    def states(self) -> list[int]:
        """The states that the session may be in, as a ledger has them."""
        states = self.policy.walk.states
        if len(self.places) == 1:
            return list(states(self.places[0]))
        return sorted({state for place in self.places for state in states(place)})

    def known_places(self) -> tuple[Place, ...]:
        """The places, a call that is under way taken as unknown."""
        if not self.under_way:
            return self.places
        return self._after_unknown(self.places, self.made[-1].group)

    def refusal(self, group: Group, seen: Seen | None) -> tuple[Code, str] | None:
        """Why a call may not be made, and which monitor forbids it; None where it may.

        While another is under way its outcome counts as unknown.
        """
        if self.ended:
            return Code.ENDED, ""
        if self.unforeseen:
            return Code.UNFORESEEN, ""
        if self.under_way:
            return self._refusal(self.known_places(), self.made[-1].seen, group, seen)
        return self._refusal(self.places, None, group, seen)

    def _refusal(
        self, places: Sequence[Place], behind: Seen | None, group: Group, seen: Seen | None
    ) -> tuple[Code, str] | None:
        walk = self.policy.walk
        for place in places:
            for call in group.calls:
                if walk.step(place, call) is not None:
                    break
            else:
                return self._not_planned(place, group), ""
        if self._memory is not None and seen is not None:
            at = self._memory.forbids(seen, behind)
            if at is not None:
                return Code.MONITOR_FORBIDS, self.policy.monitors.texts[at]
        if len(places) > 1 or group.combinations > 1:
            after = self._after_unknown(places, group)
            if len(after) > MOST_PLACES:
                return Code.MANY_STATES, ""
        return None

    def _not_planned(self, place: Place, group: Group) -> Code:
        has_edge = self.policy.walk.has_edge
        if any(has_edge(place, call) for call in group.calls):
            return Code.STATEMENT_FORBIDS
        return Code.NOT_PLANNED

    def may_finish(self) -> bool:
        """Whether a plan ends here, whatever the unknown outcomes are."""
        accepts = self.policy.walk.accepts
        return not self.unforeseen and all(accepts(place) for place in self.known_places())

    def word(self) -> list[int] | None:
        """The calls of the artifact that were made; None where that is not known."""
        if self.under_way or len(self.places) != 1 or self.unforeseen:
            return None
        done = [made for made in self.made if made.outcome != "failed"]
        if any(made.outcome == "unknown" for made in done):
            return None
        return [made.group.by_observed[made.observed or ()] for made in done]

    def begin(self, group: Group, seen: Seen | None) -> Made:
        """A call is made; what comes of it is told to :meth:`settle`."""
        self._gone_through = len(self.made)
        made = Made(group=group, seen=seen)
        self.made.append(made)
        self.under_way = True
        return made

    def settle(self, outcome: Outcome, observed: Indices | None, unforeseen: bool) -> None:
        """The outcome of the call that is under way."""
        made = self.made[-1]
        made.outcome, made.observed, made.unforeseen = outcome, observed, unforeseen
        self.under_way = False
        self._gone_through = len(self.made)
        self._catch_up()

    def repeated(self, seq: int) -> int:
        """How many calls a validator goes through again, this one's outcome told late, in all."""
        behind = self.made[seq : max(seq, self._gone_through)]
        return self._repeated + len([1 for made in behind if made.outcome != "failed"])

    def resolve(self, seq: int, outcome: Outcome, observed: Indices | None) -> None:
        """What the unknown outcome of call number `seq` turned out to be.

        The calls from it on are taken back, and folded again when somebody asks where the session
        is: once for all that became known in between.
        """
        self._repeated = self.repeated(seq)
        self._gone_through = min(self._gone_through, seq - 1)
        made = self.made[seq - 1]
        made.outcome, made.observed = outcome, observed
        self.resolved.append(seq - 1)
        while len(self._before) >= seq:
            self._places, self._unforeseen, self._taken, undo = self._before.pop()
            for part in reversed(undo):
                part()

    def _catch_up(self) -> None:
        """Fold the calls that are over and were not folded yet."""
        for at in range(len(self._before), len(self.made) - self.under_way):
            self._fold(self.made[at])

    def _fold(self, made: Made) -> None:
        places, unforeseen = self._places, self._unforeseen
        undo: Undo = ()
        if made.outcome != "failed" and self._memory is not None and made.seen is not None:
            undo = self._memory.note(made.seen, made.observed if made.outcome == "done" else None)
        self._before.append((places, unforeseen, self._taken, undo))
        if made.outcome == "failed":
            return
        if self._taken:
            took = self.policy.takes(made.group, made.observed)
            self._taken = tuple(map(add, self._taken, took))
        if made.outcome == "unknown":
            self._places = self._after_unknown(places, made.group)
        elif made.unforeseen:
            self._unforeseen = True
            self._places = (self.policy.walk.dead,)
        else:
            self._places = self._after(places, made.group, made.observed or ())
            # Where the answer leads nowhere from anywhere, nothing was ready for it.
            self._unforeseen |= self._places == (self.policy.walk.dead,)

    def _after(self, places: Sequence[Place], group: Group, observed: Indices) -> tuple[Place, ...]:
        call = group.by_observed.get(observed)
        step, dead = self.policy.walk.step, self.policy.walk.dead
        if call is None:
            return (dead,)
        if len(places) == 1:
            after = step(places[0], call)
            return (dead if after is None else after,)
        found = [step(place, call) for place in places]
        return tuple(sorted({dead if after is None else after for after in found}))

    def _after_unknown(self, places: Sequence[Place], group: Group) -> tuple[Place, ...]:
        step, found = self.policy.walk.step, set(places)
        for place in places:
            after = [step(place, call) for call in group.calls]
            met = {target for target in after if target is not None}
            found |= met
            if len([1 for target in after if target is not None]) < group.combinations:
                found.add(self.policy.walk.dead)
        return tuple(sorted(found))

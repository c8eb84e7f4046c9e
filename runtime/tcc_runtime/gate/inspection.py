"""What a session may be asked: what is allowed now, what was done, what is left, without effect.

Text: docs/gate.md.  Each answer is about the session as its ledger has it now, so what others have
written since is read first.
Cost: that, and a few look-ups; the history is linear in the calls, what is left in the limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from operator import add
from typing import Any, Final

from tcc_certs.errors import Code, Rejected, clip
from tcc_certs.formats.codec import format_decimal
from tcc_certs.session.machine import Outcome
from tcc_certs.session.monitors.keyed import PLACES
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Allowed, Decision
from tcc_runtime.gate.schemas import choice, definitions
from tcc_runtime.gate.session import Session, observed_texts
from tcc_runtime.gate.shared import Permitted, Shared, decide, decision, drawn, is_call

# What was called.


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A call of the session.

    Attributes:
        seq: its number, from 1.
        call: canonical text, without observed parameters.
        outcome: ``done``, ``failed``, ``unknown``; ``open`` while it is under way.
        observed: the values that came back, as texts of the grammar.
        unforeseen: of what came back a part is not known.
        model: that made it; empty where none was chosen.
    """

    seq: int
    call: str
    outcome: str
    observed: Mapping[str, str]
    unforeseen: bool
    model: str = ""


def history(session: Session) -> tuple[Happened, ...]:
    """All calls of a session."""
    return tuple(_happened(session, at) for at in range(len(session.made)))


def _happened(session: Session, at: int) -> Happened:
    made = session.made[at]
    table = session.policy.table(made.offer.tool)
    told = observed_texts(table, made.observed) or {}
    under_way = at + 1 in session.under_way
    return Happened(
        seq=at + 1,
        call=made.offer.text,
        outcome="open" if under_way else made.outcome,
        observed={name: str(text) for name, text in told.items()},
        unforeseen=made.unforeseen,
        model=made.model,
    )


# What limits still leave; an unknown call counts with the most that it may have taken.

_NANO: Final = 9


def remaining(session: Session) -> dict[str, int | Decimal]:
    """By name: ``calls``, the most that may still follow, then each limit as a grammar has it.

    Price and latency are whole (cents, ms), uses are calls, everything else is a decimal.
    """
    policy, taken = session.policy, session.taken
    for seq in session.under_way if taken else ():
        taken = tuple(map(add, taken, policy.takes(session.made[seq - 1].offer, None)))
    found: dict[str, int | Decimal] = {"calls": policy.most_calls(session.held)}
    for limit, took in zip(policy.core.limits, taken, strict=True):
        if limit.least:
            continue
        left = limit.value - took
        if limit.kind == "depth":
            found["calls"] = min(found["calls"], left)
            continue
        name = limit.text.rpartition("<=")[0].strip()
        exact = limit.kind in ("cost", "epsilon", "sum")
        value = Decimal(format_decimal(left, _NANO)) if exact else left
        found[name] = min(found.get(name, value), value)
    return {**found, **_of_monitors(session)}


def _of_monitors(session: Session) -> Mapping[str, Decimal]:
    """What monitors that add up still leave."""
    found: dict[str, Decimal] = {}
    for text, units in session.course.memory.left_of_sums():
        name = text.removeprefix("limit ").rpartition("<=")[0].strip()
        left = Decimal(format_decimal(units, PLACES))
        # Of two limits on one sum the tighter one counts.
        found[name] = min(found.get(name, left), left)
    return found


class Inspection:
    """The questions of a gate; :class:`tcc_runtime.gate.gate.Gate` is what changes a session.

    Args:
        policy: of its artifact.
        shared: the session.
    """

    def __init__(self, policy: Policy, shared: Shared) -> None:
        self._policy = policy
        self._shared = shared
        self._told: set[bytes] = set()  # heads that others may have kept

    def check(self, tool: str, arguments: Mapping[str, Any] | None = None) -> Decision:
        """Whether a call may be made now; a call that is under way counts as unknown."""
        shared = self._shared
        with shared.lock:
            trouble = shared.look()
            if trouble is not None:
                return trouble
            asked = {} if arguments is None else arguments
            found = decide(shared.follower, tool, asked, shared.clock, kept=False)
            if isinstance(found, Permitted):
                lacks = self._of_account(found)  # a refusal is false
                return decision(shared.session, None, "", found.asked) if lacks is None else lacks
        return found

    def _of_account(self, found: Permitted) -> Decision | None:
        """Why a call may not be made for what other sessions have used; None: it may."""
        shared, session = self._shared, self._shared.session
        if shared.across is None:
            return None
        draws = drawn(shared, found)
        try:
            lacks = shared.across.lacks(draws, found.at_ms or shared.clock())
        except Rejected as error:
            return decision(session, Code.NOT_WRITTEN, clip(error, 200))
        if lacks is None:
            return None
        return decision(session, Code.MONITOR_FORBIDS, lacks.limit.text, found.asked)

    def allowed(self) -> tuple[Allowed, ...]:
        """The calls that plans allow now, one for each listed call, in order of their texts."""
        with self._shared.lock:
            session = self._session()
            if session is None or session.ended or session.lost:
                return ()
            held = session.held
        return self._policy.allowed(held)

    def tools(self) -> tuple[str, ...]:
        """The names of the tools of those calls, in order."""
        return tuple(dict.fromkeys(found.tool for found in self.allowed()))

    def allowed_tools(
        self, api: str, tools: Iterable[Mapping[str, Any]] = ()
    ) -> list[dict[str, Any]]:
        """Definitions of the tools that may be called now, narrowed to what :meth:`allowed` has.

        Args:
            api: `openai`, `openai-responses`, `anthropic` or `mcp`: whose form they have.
            tools: your own definitions, in any of these forms, for descriptions and for schemas of
                `json` parameters.

        Raises:
            SettingsError: there is no such API.
        """
        return definitions(self.artifact.core, self.allowed(), api, tools)

    def tool_choice(self, api: str = "openai") -> dict[str, Any] | str:
        """What says the same to an API that keeps its list of tools, and the prompt's cache.

        Returns:
            ``allowed_tools`` with the names; "none" where nothing may be called.

        Raises:
            SettingsError: the API has nothing of the kind.
        """
        return choice(self.tools(), api)

    @property
    def may_finish(self) -> bool:
        """Whether the session may end here."""
        with self._shared.lock:
            session = self._session()
            return session is not None and not session.ended and session.may_finish()

    @property
    def remaining(self) -> dict[str, int | Decimal]:
        """What the limits still leave, with unknown outcomes counted."""
        self._looked_at()
        with self._shared.lock:
            return remaining(self._shared.session)

    @property
    def history(self) -> tuple[Happened, ...]:
        """The calls so far."""
        self._looked_at()
        with self._shared.lock:
            return history(self._shared.session)

    @property
    def head(self) -> str:
        """The last head of the ledger that the disk has, hex; reading it waits for nothing.

        Whoever has it can tell whether a record before it was changed.
        """
        self._looked_at()
        head = self._shared.journal.synced
        self._told.add(head)
        return head.hex()

    def is_ancestor(self, head: str) -> bool:
        """Whether the ledger had this head once, so that whoever kept it speaks of this session.

        Cost: of a head that this gate has told, a look-up; else the ledger is read once.
        """
        try:
            sought = bytes.fromhex(head)
        except (TypeError, ValueError):
            return False
        self._looked_at()
        with self._shared.lock:
            if sought not in self._told and self._shared.journal.had(sought):
                self._told.add(sought)
        return sought in self._told

    def outcome_of(self, ref: str) -> Outcome | None:
        """The outcome of the call with this id of the caller's; None where there is none."""
        seq = self.seq_of(ref)
        with self._shared.lock:
            return None if seq is None else self._shared.session.made[seq - 1].outcome

    def seq_of(self, ref: str) -> int | None:
        """The number of the call with this id of the caller's; None where there is none."""
        self._looked_at()
        with self._shared.lock:
            follower = self._shared.follower
            return follower.refs.get(follower.writer.reference(ref))

    def word(self) -> tuple[str, ...]:
        """The calls that were done, in order, canonical texts: what a search begins after.

        Raises:
            ValueError: an outcome is unknown, so it is not known where the session is.
        """
        with self._shared.lock:
            session = self._session()
            word = None if session is None else session.word()
        if word is None:
            raise ValueError("it is not known where the session is: resolve what is unknown first")
        return tuple([self.artifact.texts[call] for call in word])

    def key_of(self, seq: int) -> str:
        """The idempotency key of a call, made or to be made: that of its permit."""
        with self._shared.lock:
            return self._shared.follower.writer.call_key(seq)

    def is_call(self, seq: int, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the session's call of that number has these arguments, the open ones too."""
        self._looked_at()
        with self._shared.lock:
            return is_call(self._shared.follower, seq, tool, arguments)

    @property
    def artifact(self) -> Artifact:
        """What the session is held to."""
        return self._policy.artifact

    def _looked_at(self) -> None:
        """What others have written to its ledger is read."""
        with self._shared.lock:
            self._session()

    def _session(self) -> Session | None:
        """The session as its ledger has it; None where that cannot be said.

        The lock is kept for as long as it is asked anything: where it may be is found when that is
        asked, which a call of another thread must not do at the same time.
        """
        return self._shared.session if self._shared.look() is None else None

"""Limits across sessions, as one session draws on them: counted before a call has its record.

What is counted is given back only when the disk has it that the call had no effect; a call that is
broken off, or whose outcome is unknown, counts on.  Who takes a session up gives back what the one
before could not.
Text: docs/budgets.md; docs/spec/session.md, section 11.
Cost: a transaction of the account a call, another for one that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json
from tcc_certs.session.across import Draw, amount_text, draws_of, limits_across
from tcc_certs.session.machine import Offer
from tcc_certs.values.places import State
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import Counted, Windows
from tcc_runtime.errors import SettingsError
from tcc_runtime.gate.session import Follower, Session


@dataclass(slots=True, kw_only=True)
class Counting:
    """A call that is counted, or that a limit has no room for.

    Attributes:
        seq: its number; draws: what it draws.
        found: what the account says.
        recorded: whether a record of the call may be on the disk.
    """

    seq: int
    draws: tuple[Draw, ...]
    found: Counted | Draw
    recorded: bool = False

    def record(self) -> dict[str, Json] | None:
        """`across` of a `call`; None where there was no room."""
        found = self.found
        if isinstance(found, Draw):
            return None
        draws: list[Json] = [
            {
                "amount": amount_text(draw.amount),
                "key": key,
                "left": left,
                "limit": draw.limit.number,
            }
            for draw, key, left in zip(self.draws, found.keys, found.left, strict=True)
        ]
        return {
            "account": found.account,
            "at_ms": found.at_ms,
            "attempt": found.attempt,
            "draws": draws,
        }


class Across:
    """The limits of a grammar that are held across sessions, and the account that counts.

    Args:
        core: the grammar.
        account: None: nothing is counted, and each session is held for itself.
    """

    def __init__(self, core: Core, account: Account | None) -> None:
        self._limits = limits_across(core)
        self._windows = None if account is None else Windows(account)
        self._account = "" if account is None else account.id

    def draws(
        self, session: Session, offer: Offer, states: Mapping[str, State] | None
    ) -> tuple[Draw, ...]:
        """What a call that the session allows draws; nothing without an account."""
        if self._windows is None:
            return ()
        return draws_of(self._limits, session.course, offer, states)

    def count(self, follower: Follower, seq: int, draws: tuple[Draw, ...], now: int) -> Counting:
        """Counts a call, where there is room for it.

        Raises:
            Rejected: K101, K103, K104 of the account; K201 the session has drawn on another one.
        """
        if self._windows is None:
            raise Rejected(Code.ACCOUNT_CLOSED, "account", "an account", "none")
        if follower.account not in (None, self._account):
            raise Rejected(Code.ACCOUNT_LEDGER, "account", str(follower.account), self._account)
        found = self._windows.count(follower.session_id, seq, draws, now)
        return Counting(seq=seq, draws=draws, found=found)

    def lacks(self, draws: tuple[Draw, ...], now: int) -> Draw | None:
        """The first limit that has no room for a call now.

        Raises:
            Rejected: K101, K103, K104 of the account.
        """
        return None if self._windows is None or not draws else self._windows.lacks(draws, now)

    def forget(self, follower: Follower, counting: Counting) -> None:
        """A call that was counted is not made, and has no record; where that cannot be told, it
        counts on."""
        if isinstance(counting.found, Counted) and not counting.recorded:
            self._give_back(follower, [(counting.seq, counting.found.attempt)])

    def forget_later(self, follower: Follower, work: asyncio.Future[Counting | None]) -> None:
        """The same, once a count that nobody waits for any more is done."""
        if not work.cancelled() and work.exception() is None:
            found = work.result()
            if found is not None:
                asyncio.get_running_loop().run_in_executor(None, self.forget, follower, found)

    def give_back(self, follower: Follower) -> None:
        """What calls drew that are known, on the disk, to have had no effect."""
        seqs, follower.returns = follower.returns, []
        made = follower.session.made
        found = [(seq, made[seq - 1].drawn) for seq in seqs]
        calls = [(seq, attempt) for seq, attempt in found if attempt is not None]
        if calls and not self._give_back(follower, calls):
            follower.returns += seqs

    def _give_back(self, follower: Follower, calls: list[tuple[int, int]]) -> bool:
        if self._windows is None:
            return False
        try:
            self._windows.give_back(follower.session_id, calls)
        except Rejected:  # they count on: nobody has more for it
            return False
        return True


def across_of(core: Core, account: Account | None, recorded: bool) -> Across | None:
    """The limits across sessions of a grammar; None where it has none.

    Args:
        recorded: whether calls are made, and so have to be counted.

    Raises:
        SettingsError: they have to be, and there is no account.
    """
    if not limits_across(core):
        return None
    if account is None and recorded:
        expected = "the account that limits across sessions are counted in"
        raise SettingsError("account", expected, "none")
    return Across(core, account)

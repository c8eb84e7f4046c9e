"""Limits across sessions: the uses of an account, with their sessions and times.

Text: docs/budgets.md; docs/spec/session.md, section 11.  The account counts a call before its
ledger has it, in one transaction that is on the disk when it returns.  It gives a use back only if
the call is known to have had no effect; so an interrupted call counts.  Times never decrease: a use
has the later of the clock and the time of the last use.  A session gives a use back only after its
ledger on the disk says that the call failed.  A gate that reopens the session does this, too.
Cost: one transaction for each call, another one for a failed call.  For each limit a look-up, and
the removal of uses that have left the window.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from blake3 import blake3

from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.policy.core import Core
from tcc_certs.policy.history import Call
from tcc_certs.policy.meaning import policy_of, shown
from tcc_certs.session.across import AcrossDraw, AcrossLimit, limits_across
from tcc_certs.session.entries import canonical_bytes
from tcc_certs.session.machine import Course
from tcc_certs.values.numbers import is_decimal
from tcc_certs.values.places import NONE, State, decimal_of, exact_number
from tcc_runtime.account.account import Account
from tcc_runtime.errors import SettingsError

_MOST_TIME: Final = 1 << 48
HELD, RETURNED = "held", "returned"
ANY: Final = ""  # the key of a use with an unknown key, which counts for every key


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """The row of a use.

    Attributes:
        number: the number of the use, increasing.
        session, seq, attempt: the call, and the number of earlier attempts to count it.
        name, key: the name of the limit's count, and the digest of the values of its `per`, or ANY.
        at_ms: its time; never less than the time of a use with a lower `number`.
        amount: a canonical decimal.
        state: ``held``; or ``returned``, because the call had no effect.
    """

    number: int
    session: str
    seq: int
    attempt: int
    name: str
    key: str
    at_ms: int
    amount: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A counted call.

    Attributes:
        account: the id of the account.
        at_ms, attempt: see :class:`Used`.
        keys: the key of each draw.
        left: the rest of each limit after the draw, as canonical decimals.
    """

    account: str
    at_ms: int
    attempt: int
    keys: tuple[str, ...]
    left: tuple[str, ...]


class Windows:
    """The uses of an account.

    Args:
        account: the account whose file has the uses.

    Raises:
        Rejected: K101 to K104 of the account.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self._secret: bytes | None = None

    def count(
        self, session: str, seq: int, draws: Sequence[AcrossDraw], now: int
    ) -> Counted | AcrossDraw:
        """Count a call if every limit has room for it; else return the first that has none.

        Args:
            session, seq: the session and the number of the call.
            now: the time, UTC milliseconds.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            secret, last = self._opened(database)
            at_ms = max(now, last)
            ensure(0 <= at_ms < _MOST_TIME, Code.ACCOUNT_FORM, "at_ms", "a time", at_ms)
            keys, left = [], []
            for draw in draws:
                key = key_text(secret, draw)
                room = draw.bound - draw.amount - _total(database, draw, key, at_ms)
                if room < 0:
                    return draw
                keys.append(key)
                left.append(decimal_of(room))
            attempt = _attempt(database, session, seq)
            # Two limits with the same count and different windows count the call once.
            once = {(draw.limit.name, key): draw for draw, key in zip(draws, keys, strict=True)}
            for (name, key), draw in once.items():
                row = (session, seq, attempt, name, key, at_ms, decimal_of(draw.amount), HELD)
                database.execute(
                    f"INSERT INTO use ({_OF_USE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
                _add(database, name, key, Fraction(draw.amount), at_ms)
            database.execute("UPDATE windows SET last_ms = ?", (at_ms,))
            return Counted(
                account=self.account.id,
                at_ms=at_ms,
                attempt=attempt,
                keys=tuple(keys),
                left=tuple(left),
            )

    def lacks(self, draws: Sequence[AcrossDraw], now: int) -> AcrossDraw | None:
        """Return the first draw for which its limit has no room now, or None.  Nothing is counted.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            secret, last = self._opened(database)
            for draw in draws:
                total = _total(database, draw, key_text(secret, draw), max(now, last))
                if total + draw.amount > draw.bound:
                    return draw
        return None

    def used(self, draws: Sequence[AcrossDraw], now: int) -> list[Fraction]:
        """Return the amount that counts for each draw's limit and key now, without the draw itself.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            secret, last = self._opened(database)
            at_ms = max(now, last)
            return [_total(database, draw, key_text(secret, draw), at_ms) for draw in draws]

    def give_back(self, session: str, calls: Collection[tuple[int, int]]) -> None:
        """Return the uses of calls that had no effect.  Calls that were not counted are ignored.

        Args:
            calls: the numbers and attempts of the calls.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            for seq, attempt in calls:
                where = "WHERE session = ? AND seq = ? AND attempt = ? AND state = ?"
                for used in _uses(database, where, (session, seq, attempt, HELD)):
                    database.execute(
                        "UPDATE use SET state = ? WHERE number = ?", (RETURNED, used.number)
                    )
                    amount = Fraction(exact_number(used.amount))
                    _add(database, used.name, used.key, -amount, used.at_ms)

    def of(self, session: str) -> list[Used]:
        """Return the uses of the calls of a session.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction(reading=True) as database:
            return list(_uses(database, "WHERE session = ? ORDER BY number", (session,)))

    def totals(self, name: str, key: str, within: int | None) -> dict[int, Fraction]:
        """Return, for each use of a key that counts, the total in the window that ends with it.

        The result is keyed by the number of the use, and includes its amount.  Returned uses do not
        count.  For ANY the total is the largest of any key.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        which, keys = ("", ()) if key == ANY else (" AND key IN (?, ?)", (key, ANY))
        with self.account.transaction(reading=True) as database:
            where = f"WHERE name = ? AND state = ?{which} ORDER BY number"
            uses = list(_uses(database, where, (name, HELD, *keys)))
        found: dict[int, Fraction] = {}
        sums: dict[str, Fraction] = {ANY: Fraction()}
        first = 0
        for used in uses:
            sums[used.key] = sums.get(used.key, Fraction()) + Fraction(used.amount)
            while within is not None and uses[first].at_ms < used.at_ms - within:
                sums[uses[first].key] -= Fraction(uses[first].amount)
                first += 1
            if used.key == key:
                found[used.number] = _counting(sums, key)
        return found

    def numbers(self) -> dict[str, int]:
        """Return the number of uses in each state, after computing every sum again.

        Raises:
            Rejected: K101: a sum differs; K102 to K104.
        """
        with self.account.transaction(reading=True) as database:
            return check_tallies(database)

    def key(self, draw: AcrossDraw) -> str:
        """Return the key of a draw in this account: a digest in hex, or ANY.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        if self._secret is None:
            with self.account.transaction(reading=True) as database:
                self._opened(database)
        return key_text(self._secret or b"", draw)

    def _opened(self, database: sqlite3.Connection) -> tuple[bytes, int]:
        """Return the secret of the keys, and the time of the last use."""
        found = database.execute("SELECT secret, last_ms FROM windows LIMIT 2").fetchall()
        ensure(len(found) == 1, Code.ACCOUNT_FORM, "windows", "one row", len(found))
        text, last = found[0]
        hexes = isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")
        ensure(hexes, Code.ACCOUNT_FORM, "secret", "64 hex digits", "something else")
        self._secret = bytes.fromhex(str(text))
        return self._secret, _whole(last, "last_ms")


def key_text(secret: bytes, draw: AcrossDraw) -> str:
    """Return the key of a draw in an account with this secret, hex; ANY if the key is unknown."""
    if draw.key is None:
        return ANY
    parts = [bytes.fromhex(draw.limit.name), *map(_framed, draw.key)]
    return blake3(b"".join(parts), key=secret).hexdigest()


def _framed(state: State) -> bytes:
    kind, data = (b"-", b"") if state == NONE else canonical_bytes(shown(state))
    return kind + len(data).to_bytes(8, "little") + data


def _counting(sums: Mapping[str, Fraction], key: str) -> Fraction:
    """Return the sum that counts for a key; for ANY the largest sum that counts for any key."""
    if key != ANY:
        return sums[ANY] + sums.get(key, Fraction())
    return sums[ANY] + max([total for one, total in sums.items() if one != ANY], default=0)


def check_tallies(database: sqlite3.Connection) -> dict[str, int]:
    """Compute every sum again from its uses; return the number of uses in each state.

    Raises:
        Rejected: K101: a sum differs, or times decrease.
    """
    numbers = {HELD: 0, RETURNED: 0}
    for name, key, since, total in database.execute("SELECT name, key, since_ms, total FROM tally"):
        where = "WHERE name = ? AND key = ? AND at_ms >= ? AND state = ?"
        uses = _uses(database, where, (name, key, _whole(since, "since_ms"), HELD))
        due = decimal_of(sum((Fraction(one.amount) for one in uses), Fraction()))
        ensure(due == total, Code.ACCOUNT_FORM, "tally", due, total)
    last = 0
    for used in _uses(database, "ORDER BY number"):
        ensure(used.at_ms >= last, Code.ACCOUNT_FORM, "at_ms", f"{last} or later", used.at_ms)
        last = used.at_ms
        numbers[used.state] += 1
    return numbers


_OF_USE: Final = "session, seq, attempt, name, key, at_ms, amount, state"


def _attempt(database: sqlite3.Connection, session: str, seq: int) -> int:
    """Return the number of the next attempt: an earlier one may have been interrupted before its
    record.
    """
    chosen = "SELECT MAX(attempt) FROM use WHERE session = ? AND seq = ?"
    found = database.execute(chosen, (session, seq)).fetchone()[0]
    return 0 if found is None else _whole(found, "attempt") + 1


def _total(database: sqlite3.Connection, draw: AcrossDraw, key: str, at_ms: int) -> Fraction:
    """Return the sum that counts for a draw in the window that ends at `at_ms`."""
    since = 0 if draw.limit.within is None else max(0, at_ms - draw.limit.within)
    if key == ANY:  # rare, so all keys are added up
        where = "WHERE name = ? AND at_ms >= ? AND state = ?"
        sums: dict[str, Fraction] = {ANY: Fraction()}
        for used in _uses(database, where, (draw.limit.name, since, HELD)):
            sums[used.key] = sums.get(used.key, Fraction()) + Fraction(used.amount)
        return _counting(sums, ANY)
    return _tally(database, draw, key, since) + _tally(database, draw, ANY, since)


def _tally(database: sqlite3.Connection, draw: AcrossDraw, key: str, since: int) -> Fraction:
    """Return the sum of a key in a window, after subtracting uses that have left it."""
    name, window = draw.limit.name, draw.limit.within or 0
    which = "WHERE name = ? AND key = ? AND within = ?"
    found = database.execute(
        f"SELECT since_ms, total FROM tally {which}", (name, key, window)
    ).fetchone()
    if found is None:
        # This window is new: add up all uses once.
        where = "WHERE name = ? AND key = ? AND at_ms >= ? AND state = ?"
        uses = _uses(database, where, (name, key, since, HELD))
        total = sum((Fraction(one.amount) for one in uses), Fraction())
        database.execute(
            "INSERT INTO tally (name, key, within, since_ms, total) VALUES (?, ?, ?, ?, ?)",
            (name, key, window, since, decimal_of(total)),
        )
        return total
    before, total = _whole(found[0], "since_ms"), _amount(found[1], "total")
    if since > before:
        where = "WHERE name = ? AND key = ? AND at_ms >= ? AND at_ms < ? AND state = ?"
        for used in _uses(database, where, (name, key, before, since, HELD)):
            total -= Fraction(used.amount)
        database.execute(
            f"UPDATE tally SET since_ms = ?, total = ? {which}",
            (since, decimal_of(total), name, key, window),
        )
    return total


def _add(database: sqlite3.Connection, name: str, key: str, amount: Fraction, at_ms: int) -> None:
    """Add an amount to each sum of a key whose window contains the time.  It may be negative."""
    chosen = "SELECT within, total FROM tally WHERE name = ? AND key = ? AND since_ms <= ?"
    for window, text in database.execute(chosen, (name, key, at_ms)).fetchall():
        total = _amount(text, "total") + amount
        ensure(total >= 0, Code.ACCOUNT_FORM, "total", "at least 0", text)
        database.execute(
            "UPDATE tally SET total = ? WHERE name = ? AND key = ? AND within = ?",
            (decimal_of(total), name, key, window),
        )


def _uses(
    database: sqlite3.Connection, where: str, values: Sequence[object] = ()
) -> Iterator[Used]:
    chosen = f"SELECT number, {_OF_USE} FROM use {where}"
    for number, session, seq, attempt, name, key, at_ms, amount, state in database.execute(
        chosen, values
    ).fetchall():
        ensure(state in (HELD, RETURNED), Code.ACCOUNT_FORM, "state", "held or returned", state)
        _amount(amount, "amount")
        yield Used(
            number=_whole(number, "number"),
            session=str(session),
            seq=_whole(seq, "seq"),
            attempt=_whole(attempt, "attempt"),
            name=str(name),
            key=str(key),
            at_ms=_whole(at_ms, "at_ms"),
            amount=amount,
            state=state,
        )


def _whole(value: object, name: str) -> int:
    if type(value) is not int or value < 0:
        raise Rejected(Code.ACCOUNT_FORM, name, "an integer of at least 0", value)
    return value


def _amount(text: object, name: str) -> Fraction:
    if not isinstance(text, str) or not is_decimal(text) or text[0] == "-":
        raise Rejected(Code.ACCOUNT_FORM, name, "a decimal of at least 0", text)
    return Fraction(text)


# A session that draws.


class Drawer(Protocol):
    """A session whose calls are counted across sessions.

    Attributes:
        session_id, account: its id, and the id of the account that counted its calls; None: none so
            far.
        returns: numbers and attempts of calls that had no effect, which the account still counts.
    """

    session_id: str
    account: str | None
    returns: list[tuple[int, int]]


@dataclass(slots=True, kw_only=True)
class Counting:
    """A counted call, or a call for which a limit has no room.

    Attributes:
        seq: the number of the call.
        draws: its draws.
        found: the result of :meth:`Windows.count`.
        recorded: whether a record of the call may be on the disk.
    """

    seq: int
    draws: tuple[AcrossDraw, ...]
    found: Counted | AcrossDraw
    recorded: bool = False

    def record(self) -> dict[str, Json] | None:
        """Return the member `across` of a `call` record; None if a limit had no room."""
        found = self.found
        if isinstance(found, AcrossDraw):
            return None
        listed: list[Json] = []
        for draw, key, left in zip(self.draws, found.keys, found.left, strict=True):
            item: dict[str, Json] = {
                "limit": draw.limit.number, "amount": decimal_of(draw.amount),
                "bound": decimal_of(draw.bound), "left": left,
            }  # fmt: skip
            listed.append(item if key == ANY else {**item, "key": key})
        return {
            "account": found.account,
            "at_ms": found.at_ms,
            "attempt": found.attempt,
            "draws": listed,
        }


class Across:
    """The limits across sessions of a grammar, and the account that counts their calls.

    Args:
        core: the grammar.
        account: the account; None: nothing is counted, and the limits apply to each session
            separately.
    """

    def __init__(self, core: Core, account: Account | None) -> None:
        self._limits: Mapping[int, AcrossLimit] = limits_across(core, policy_of(core).rules)
        self._windows = None if account is None else Windows(account)
        self._account = "" if account is None else account.id

    def draws(self, course: Course, call: Call) -> tuple[AcrossDraw, ...]:
        """Return the draws of a call that the session allows; empty without an account."""
        if self._windows is None:
            return ()
        found = []
        for number, draw in course.draws(call).items():
            limit = self._limits.get(number)
            if limit is not None:
                policy, history = course.policy, course.history
                bound = policy.bound(number, history, call, call.at_ms) or 0
                key = None if draw.key is None else tuple(map(shown, draw.key))
                found.append(AcrossDraw(limit=limit, amount=draw.amount, bound=bound, key=key))
        return tuple(found)

    def counts_with(self, other: Across) -> bool:
        """Return whether both have a limit with the same count, in the same account."""
        names = {limit.name for limit in self._limits.values()}
        both = any(limit.name in names for limit in other._limits.values())
        return both and self._account == other._account != ""

    def count(self, drawer: Drawer, seq: int, draws: tuple[AcrossDraw, ...], now: int) -> Counting:
        """Count a call, if all limits have room for it.

        Raises:
            Rejected: K101, K103, K104 of the account; K201: the session drew on another account.
        """
        if self._windows is None:
            raise Rejected(Code.ACCOUNT_CLOSED, "account", "an account", "none")
        if drawer.account not in (None, self._account):
            raise Rejected(Code.ACCOUNT_LEDGER, "account", str(drawer.account), self._account)
        found = self._windows.count(drawer.session_id, seq, draws, now)
        return Counting(seq=seq, draws=draws, found=found)

    def lacks(self, draws: tuple[AcrossDraw, ...], now: int) -> AcrossDraw | None:
        """Return the first draw for which its limit has no room now, or None.

        Raises:
            Rejected: K101, K103, K104 of the account.
        """
        return None if self._windows is None or not draws else self._windows.lacks(draws, now)

    def used(
        self, number: int, keys: Sequence[tuple[State, ...]], now: int
    ) -> list[Fraction] | None:
        """Return the sum of all sessions under a limit for each key; None without an account.

        Raises:
            Rejected: K101, K103, K104 of the account.
        """
        if self._windows is None:
            return None
        limit = self._limits[number]
        shown_keys = [tuple(map(shown, key)) for key in keys]
        draws = [AcrossDraw(limit=limit, amount=0, bound=0, key=key) for key in shown_keys]
        return self._windows.used(draws, now)

    def forget(self, drawer: Drawer, counting: Counting) -> None:
        """Give back a call that was counted, if it is not made and has no record."""
        if isinstance(counting.found, Counted) and not counting.recorded:
            self._give_back(drawer, [(counting.seq, counting.found.attempt)])

    def forget_later(self, drawer: Drawer, work: asyncio.Future[Counting | None]) -> None:
        """Call :meth:`forget` with the result of a count whose caller was cancelled."""
        if not work.cancelled() and work.exception() is None:
            found = work.result()
            if found is not None:
                asyncio.get_running_loop().run_in_executor(None, self.forget, drawer, found)

    def give_back(self, drawer: Drawer) -> None:
        """Return the uses of calls that had no effect, by records that are on the disk."""
        calls, drawer.returns = drawer.returns, []
        if not self._give_back(drawer, calls):
            drawer.returns += calls

    def _give_back(self, drawer: Drawer, calls: list[tuple[int, int]]) -> bool:
        if self._windows is None:
            return False
        try:
            self._windows.give_back(drawer.session_id, calls)
        except Rejected:  # they stay counted, which is safe; the next attempt may succeed
            return False
        return True


def across_of(core: Core, account: Account | None, recorded: bool) -> Across | None:
    """Return the limits across sessions of a grammar; None: it has none.

    Args:
        recorded: whether the session makes real calls, which have to be counted.

    Raises:
        SettingsError: calls have to be counted and `account` is None, or `account` is no account.
    """
    if not any(rule.across for rule in policy_of(core).rules):
        return None
    if account is None and recorded:
        expected = "account=tcc.Account(PATH), because the policy has a limit across sessions"
        raise SettingsError("account", expected, "none")
    if account is not None and not isinstance(account, Account):
        raise SettingsError("account", "an opened account: tcc.Account(PATH)", account)
    return Across(core, account)

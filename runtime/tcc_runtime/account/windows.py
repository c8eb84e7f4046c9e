"""Limits across sessions, in the file of an account: what was used, by whom, and when.

Text: docs/budgets.md.  A call is counted before its ledger has it, in one transaction that is on
the disk when it returns, and given back only by who knows that it had no effect; so whatever is
broken off counts.  Of two that come at once the file lets one be first.  Times never go back: a use
has the larger of the clock and the last one's.  A file gets its tables for this with its first use.
A session gives back only what the disk has as failed; who reopens one gives back what the one
before could not.
Cost: a transaction a call, another for one that failed; for each limit a look-up, and each use that
leaves its window once.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Protocol

from blake3 import blake3

from tcc_certs.core.across import Draw, draws_of, limits_across
from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.codec import Json
from tcc_certs.session.machine import Course, Offer
from tcc_certs.session.monitors.relations import LACKING
from tcc_certs.values.numbers import is_decimal
from tcc_certs.values.places import State, decimal_of, exact_number
from tcc_runtime.account.account import Account
from tcc_runtime.account.file import VERSION, WINDOWS
from tcc_runtime.errors import SettingsError

_MOST_TIME: Final = 1 << 48
HELD, RETURNED = "held", "returned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What was counted of one call, for one limit and key.

    Attributes:
        name: of what is counted; key: what stands for the values of its `per`.
        at_ms: when; never less than of one with a lower `number`.
        amount: canonical decimal; state: ``held``, or ``returned`` as it had no effect.
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
    """A call that is counted; of each of its draws the key, and what it left."""

    account: str
    at_ms: int
    attempt: int
    keys: tuple[str, ...]
    left: tuple[str, ...]


class Windows:
    """The uses of an account.

    Args:
        account: in whose file they stand.

    Raises:
        Rejected: K101 to K104 of the account.
    """

    def __init__(self, account: Account) -> None:
        self.account = account
        self._secret: bytes | None = None

    def count(self, session: str, seq: int, draws: Sequence[Draw], now: int) -> Counted | Draw:
        """Counts a call, where every limit has room for it; else the first that has none.

        Args:
            session, seq: the call.
            now: UTC ms.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            secret, last = self._opened(database)
            at_ms = max(now, last)
            ensure(0 <= at_ms < _MOST_TIME, Code.ACCOUNT_FORM, "at_ms", "a time", at_ms)
            keys, left = [], []
            for draw in draws:
                if _is_nobodys(draw):
                    return draw
                key = key_text(secret, draw)
                room = draw.limit.most - draw.amount - _total(database, draw, key, at_ms)
                if room < 0:
                    return draw
                keys.append(key)
                left.append(decimal_of(room))
            attempt = _attempt(database, session, seq)
            # Two limits on one thing, of two windows, count it once.
            once = {(draw.limit.name, key): draw for draw, key in zip(draws, keys, strict=True)}
            for (name, key), draw in once.items():
                row = (session, seq, attempt, name, key, at_ms, decimal_of(draw.amount), HELD)
                database.execute(
                    f"INSERT INTO use ({_OF_USE}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
                )
                _add(database, name, key, Fraction(draw.amount), at_ms)
            database.execute("UPDATE across SET last_ms = ?", (at_ms,))
            return Counted(
                account=self.account.id,
                at_ms=at_ms,
                attempt=attempt,
                keys=tuple(keys),
                left=tuple(left),
            )

    def lacks(self, draws: Sequence[Draw], now: int) -> Draw | None:
        """The first limit that has no room for a call now; nothing is counted.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            secret, last = self._opened(database)
            for draw in draws:
                if _is_nobodys(draw):
                    return draw
                total = _total(database, draw, key_text(secret, draw), max(now, last))
                if total + draw.amount > draw.limit.most:
                    return draw
        return None

    def give_back(self, session: str, calls: Collection[tuple[int, int]]) -> None:
        """Calls that are known to have had no effect count no more; others stay as they are.

        Args:
            calls: their numbers and attempts.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction() as database:
            self._opened(database)
            for seq, attempt in calls:
                where = "WHERE session = ? AND seq = ? AND attempt = ? AND state = ?"
                for used in _uses(database, where, (session, seq, attempt, HELD)):
                    database.execute(
                        "UPDATE use SET state = ? WHERE number = ?", (RETURNED, used.number)
                    )
                    amount = Fraction(exact_number(used.amount))
                    _add(database, used.name, used.key, -amount, used.at_ms)

    def of(self, session: str) -> list[Used]:
        """What was counted of the calls of a session.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction(reading=True) as database:
            if _version(database) == VERSION:
                return []
            return list(_uses(database, "WHERE session = ? ORDER BY number", (session,)))

    def totals(self, name: str, key: str, within: int | None) -> dict[int, Fraction]:
        """What counted in the window of each use when it was counted, and counts still.

        Of those that count, by their numbers; each with itself.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        with self.account.transaction(reading=True) as database:
            where = "WHERE name = ? AND key = ? AND state = ? ORDER BY number"
            uses = list(_uses(database, where, (name, key, HELD)))
        found, total, first = {}, Fraction(), 0
        for used in uses:
            total += Fraction(used.amount)
            while within is not None and uses[first].at_ms < used.at_ms - within:
                total -= Fraction(uses[first].amount)
                first += 1
            found[used.number] = total
        return found

    def numbers(self) -> dict[str, int]:
        """How many uses there are, by state; every sum of them is made again.

        Raises:
            Rejected: K101 a sum is another; K102 to K104.
        """
        with self.account.transaction(reading=True) as database:
            return check_tallies(database)

    def key(self, draw: Draw) -> str:
        """What stands for the values of a draw here.

        Raises:
            Rejected: K101 to K104 of the account.
        """
        if self._secret is None:
            with self.account.transaction() as database:
                self._opened(database)
        return key_text(self._secret or b"", draw)

    def _opened(self, database: sqlite3.Connection) -> tuple[bytes, int]:
        """The secret of the keys, and the time of the last use; the tables where they lack."""
        if _version(database) == VERSION:
            for statement in WINDOWS:
                database.execute(statement)
            database.execute("INSERT INTO across VALUES (?, 0)", (os.urandom(32).hex(),))
            database.execute(f"PRAGMA user_version = {VERSION + 1}")
        found = database.execute("SELECT secret, last_ms FROM across LIMIT 2").fetchall()
        ensure(len(found) == 1, Code.ACCOUNT_FORM, "across", "one row", len(found))
        text, last = found[0]
        hexes = isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")
        ensure(hexes, Code.ACCOUNT_FORM, "secret", "64 hex digits", "something else")
        self._secret = bytes.fromhex(str(text))
        return self._secret, _whole(last, "last_ms")


def key_text(secret: bytes, draw: Draw) -> str:
    """What stands for the values of `per` of a draw in an account of that secret, hex."""
    parts = [bytes.fromhex(draw.limit.name), *[_framed(*one) for one in draw.key]]
    return blake3(b"".join(parts), key=secret).hexdigest()


def _framed(kind: str, value: object) -> bytes:
    if kind == "r" and isinstance(value, tuple):
        data = b"".join([_framed("s", name) + _framed(*cell) for name, cell in value])
    elif isinstance(value, tuple):
        data = b"".join([_framed(*one) for one in value])
    elif isinstance(value, bytes):
        data = value
    else:
        data = str(value).encode("utf-8", "surrogatepass")
    return kind.encode() + len(data).to_bytes(8, "little") + data


def _is_nobodys(draw: Draw) -> bool:
    """Whether it is not known for whom a call counts: then there is no room for it."""
    return any(part in LACKING for part in draw.key)


def check_tallies(database: sqlite3.Connection) -> dict[str, int]:
    """Makes every sum again, out of its uses; how many of these there are, by state.

    Raises:
        Rejected: K101 one is another.
    """
    if _version(database) == VERSION:
        return {}
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


def _version(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])


def _attempt(database: sqlite3.Connection, session: str, seq: int) -> int:
    """A number of its own: a call of this number may have been broken off before its record."""
    chosen = "SELECT MAX(attempt) FROM use WHERE session = ? AND seq = ?"
    found = database.execute(chosen, (session, seq)).fetchone()[0]
    return 0 if found is None else _whole(found, "attempt") + 1


def _total(database: sqlite3.Connection, draw: Draw, key: str, at_ms: int) -> Fraction:
    """What counts in the window that ends now; what has left it is taken out of the sum."""
    name, within = draw.limit.name, draw.limit.within
    since = 0 if within is None else max(0, at_ms - within)
    window = 0 if within is None else within
    which = "WHERE name = ? AND key = ? AND within = ?"
    found = database.execute(
        f"SELECT since_ms, total FROM tally {which}", (name, key, window)
    ).fetchone()
    if found is None:
        # The first of this window: all that is kept is looked at once.
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
    """More, or less, of a key: in each of its sums whose window has that time."""
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
    """A session, as its ledger has it.

    Attributes:
        session_id: its id; account: that its calls were counted in; None: none was, so far.
        returns: numbers and attempts of calls that are known to have had no effect: that is to be
            told.
    """

    session_id: str
    account: str | None
    returns: list[tuple[int, int]]


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
                "amount": decimal_of(draw.amount),
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
        self,
        course: Course,
        offer: Offer,
        states: Mapping[str, State] | None,
        opened: Mapping[str, Json],
        given: Mapping[str, Json],
    ) -> tuple[Draw, ...]:
        """What a call that the session allows draws; nothing without an account.

        Args:
            opened, given: as records have them.
        """
        statements = course.machine.statements
        if self._windows is None or statements is None:
            return ()
        drawn = statements.draws(offer.tool, states, course.attributes, opened, given)
        return draws_of(self._limits, drawn)

    def counts_with(self, other: Across) -> bool:
        """Whether both count something of one name on one account."""
        names = {limit.name for limit in self._limits.values()}
        both = any(limit.name in names for limit in other._limits.values())
        return both and self._account == other._account != ""

    def count(self, drawer: Drawer, seq: int, draws: tuple[Draw, ...], now: int) -> Counting:
        """Counts a call, where there is room for it.

        Raises:
            Rejected: K101, K103, K104 of the account; K201 the session drew on another one.
        """
        if self._windows is None:
            raise Rejected(Code.ACCOUNT_CLOSED, "account", "an account", "none")
        if drawer.account not in (None, self._account):
            raise Rejected(Code.ACCOUNT_LEDGER, "account", str(drawer.account), self._account)
        found = self._windows.count(drawer.session_id, seq, draws, now)
        return Counting(seq=seq, draws=draws, found=found)

    def lacks(self, draws: tuple[Draw, ...], now: int) -> Draw | None:
        """The first limit that has no room for a call now.

        Raises:
            Rejected: K101, K103, K104 of the account.
        """
        return None if self._windows is None or not draws else self._windows.lacks(draws, now)

    def forget(self, drawer: Drawer, counting: Counting) -> None:
        """A call that was counted is not made, and has no record; where that cannot be told, it
        counts on."""
        if isinstance(counting.found, Counted) and not counting.recorded:
            self._give_back(drawer, [(counting.seq, counting.found.attempt)])

    def forget_later(self, drawer: Drawer, work: asyncio.Future[Counting | None]) -> None:
        """The same, once a count that nobody waits for any more is done."""
        if not work.cancelled() and work.exception() is None:
            found = work.result()
            if found is not None:
                asyncio.get_running_loop().run_in_executor(None, self.forget, drawer, found)

    def give_back(self, drawer: Drawer) -> None:
        """What calls drew that are known, on the disk, to have had no effect."""
        calls, drawer.returns = drawer.returns, []
        if not self._give_back(drawer, calls):
            drawer.returns += calls

    def _give_back(self, drawer: Drawer, calls: list[tuple[int, int]]) -> bool:
        if self._windows is None:
            return False
        try:
            self._windows.give_back(drawer.session_id, calls)
        except Rejected:  # they count on: nobody has more for it
            return False
        return True


def across_of(core: Core, account: Account | None, recorded: bool) -> Across | None:
    """The limits across sessions of a grammar; None where it has none.

    Args:
        recorded: whether calls are made, and so have to be counted.

    Raises:
        SettingsError: they have to be, and there is no account; what was given is none.
    """
    if not limits_across(core):
        return None
    if account is None and recorded:
        expected = "the account that limits across sessions are counted in"
        raise SettingsError("account", expected, "none")
    if account is not None and not isinstance(account, Account):
        raise SettingsError("account", "an opened account: tcc.Account(PATH)", account)
    return Across(core, account)

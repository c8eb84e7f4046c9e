"""A session is begun, or reopened from its ledger; one that nothing was done in is withdrawn.

Whoever opens a gate on a file has the turn and the file's lock while it is decided what the file
has: nothing yet, and a session begins with its first record and its key; a session that goes on,
which is recovered and was given the same, with the same parent, under the same rule; or one that
has ended, which is kept under another name where that is asked for.  Where the opening fails, what
it began is taken back.
Text: docs/gate.md; docs/spec/session.md, sections 2 and 3.
Cost: a record, or the ledger once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tcc_certs.core.type_texts import type_text
from tcc_certs.errors import Code, clip
from tcc_certs.formats.codec import written
from tcc_certs.session.records import open_name
from tcc_certs.values.declared import OpenParameter
from tcc_runtime.account.windows import Across
from tcc_runtime.errors import GivenOtherwise, GivenRefused, LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import keys, permit
from tcc_runtime.gate.arguments import Given, at_place, checker
from tcc_runtime.gate.journal import Journal, ledger_file
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session.records import given_record, parts_of, session_record
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.gate.session_access import Access, Home
from tcc_runtime.process import collection_put_off, process_number

# What a session is opened with.


@dataclass(frozen=True, slots=True, kw_only=True)
class Begun:
    """What a session is given when it begins, or has to have been given.

    Attributes:
        values: None: whoever opens it says nothing of it.
        shown: the names of those whose values stand in the ledger.
    """

    values: tuple[Given, ...] | None = None
    shown: frozenset[str] = frozenset()

    def hold(self, follower: Follower) -> None:
        """A session that is reopened was given the same.

        Raises:
            GivenOtherwise: it was given something else.
        """
        if self.values is None:
            return
        expected = {one[0]: follower.writer.digest(one) for one in self.values}
        found = {
            name: item.get("digest") if isinstance(item, dict) else None
            for name, item in follower.given.items()
        }
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                why = "what the session was given when it began"
                raise GivenOtherwise(f"line 1: given: {written(name)}", why, "another value")


SESSION: Final = "session"  # before the name of an attribute


def shown_of(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """The open parameters that are shown, sorted; those that are added up among them.

    Raises:
        SettingsError: one is none of the artifact's.
    """
    tools = policy.core.tools
    known = {
        open_name(tool.name, given.name)
        for tool in tools
        for given in (*tool.opened, *tool.answers)
    }
    attributes = {open_name(SESSION, given.name) for given in policy.core.given}
    foreign = sorted(set(show) - known - attributes)
    if foreign:
        raise SettingsError("show", "open parameters and answers as tool.name", foreign[0])
    show = sorted(set(show) & known)
    added = policy.machine.monitors.added.items()
    expected = {open_name(tools[tool].name, name) for tool, names in added for name in names}
    if policy.machine.statements is not None:
        compared = policy.machine.statements.shown
        expected |= {open_name(tools[tool].name, name) for tool, name in compared}
    return tuple(sorted({*show, *expected}))


def begun_with(policy: Policy, given: object, show: Sequence[str]) -> Begun:
    """What a session is given, where somebody says so: numbers that statements name are shown.

    Args:
        given: JSON values by name; None: nobody says.
        show: as of :func:`shown_of`, attributes as ``session.NAME``.

    Raises:
        GivenRefused: R102, R103, R105, R106.
    """
    told = dict(given) if isinstance(given, Mapping) else given
    values = None if told is None else read_given(policy.core.given, told)
    statements = policy.machine.statements
    forms = {} if statements is None else statements.ledger.session
    said = frozenset() if statements is None else statements.said
    named = said | {name for name, form in forms.items() if form.shown}
    asked = {one.name for one in policy.core.given if open_name(SESSION, one.name) in show}
    return Begun(values=values, shown=named | asked)


# The gate.


def read_given(declared: Sequence[OpenParameter], given: object) -> tuple[Given, ...]:
    """What a session is given, in declared order, each with its type byte and canonical bytes.

    Args:
        given: JSON values by name.

    Raises:
        GivenRefused: R102 no such attribute; R103 one is missing; R105, R106 its value is none.
    """
    if type(given) is not dict:
        raise GivenRefused(Code.NO_VALUE, "given", "values by name", type(given).__name__)
    known = {one.name for one in declared if one.at is None}
    for name in given:
        if type(name) is not str or name not in known:
            some = ", ".join(sorted(known)) or "nothing: the grammar asks for nothing"
            raise GivenRefused(Code.UNDECLARED_ARGUMENT, clip(name, 80), some, "no such attribute")
    found: list[Given] = []
    for one in declared:
        placed = at_place(given, one)
        value = placed if isinstance(placed, Code) else checker(one.type)(*placed)
        if not isinstance(value, Code):
            found.append((one.name, value[0], value[1]))
        elif value is not Code.MISSING_ARGUMENT:
            of = f"{type(given[one.name]).__name__}, " if one.name in given else ""
            said = f"{of}another type or outside its limits"
            raise GivenRefused(value, one.name, type_text(one.type), said)
        elif not one.optional:
            raise GivenRefused(value, one.name, type_text(one.type), "nothing")
    return tuple(found)


# A session is begun, or reopened.


class Rolled(Exception):
    """A finished ledger has another name now: open the name again."""


_PAUSE: Final = 0.02  # seconds between two looks at a turn that is to be had soon
_TRIES: Final = 10


def open_session(
    policy: Policy,
    journal: Journal,
    *,
    key: bytes | None,
    shown: tuple[str, ...],
    durable: bool,
    clock: Callable[[], int],
    nonce: bytes | None,
    wait: bool = True,
    home: Home,
    given: Begun,
    across: Across | None = None,
) -> Access:
    """A new session, or the one that a file has.

    Args:
        key: None: one is made for a new session, and read for one that is there.
        nonce: of a new session; None: one is drawn.
        wait: whether the lock is waited for.

    Raises:
        LedgerError: with a `BlockingIOError`: without `wait`, where somebody has the lock.
        Refused: R305 the opener has the turn already; Rolled: open the name again.
        ResumeError: the file has no session that goes on with these; GivenOtherwise: was given
            something else; SettingsError: the clock is out of its range.
    """
    made = partial(Access, durable=durable, clock=clock, home=home, across=across)
    begin = partial(_begin, shown=shown, given=given, nonce=nonce)
    if isinstance(journal, ledger_file.InFile):
        how = {"durable": durable, "wait": wait}
        return _reopen(policy, journal, key, made, begin, home=home, given=given, **how)
    access = made(Follower(policy, os.urandom(32) if key is None else key), journal, permit.Turns())
    access.begun_by = process_number() if home.begun else 0
    begin(access)
    return access


def _begin(access: Access, shown: tuple[str, ...], given: Begun, nonce: bytes | None) -> None:
    """Writes the first record of a session."""
    policy, home, follower = access.policy, access.home, access.follower
    told = given.values or read_given(policy.core.given, {})
    started = access.clock()
    if not 0 <= started < 1 << 48:
        raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
    drawn = os.urandom(keys.NONCE_BYTES) if nonce is None else nonce
    follower.parent, follower.shadow = home.parent, home.shadow
    record = session_record(
        policy,
        follower.key,
        started,
        drawn.hex(),
        shown,
        given=given_record(policy, follower.key, told, given.shown),
        parent=home.parent,
        shadow=home.shadow,
    )
    follower.open(shown, record)
    access.journal.append(follower.writer.sealed(parts_of(record), access.journal.head))
    access.sync()


def _reopen(
    policy: Policy,
    journal: ledger_file.InFile,
    key: bytes | None,
    made: Callable[[Follower, ledger_file.InFile, permit.Turns], Access],
    begin: Callable[[Access], None],
    *,
    home: Home,
    given: Begun,
    durable: bool,
    wait: bool,
) -> Access:
    """A new session, or the one that the file has; as :func:`open_session`."""
    turns, process = permit.turns_of(journal.device, journal.inode), process_number()
    begun_by, made_key = process if home.begun else 0, False
    try:
        ticket = turns.take() if wait else turns.try_take()
    except permit.Nested:
        journal.close()
        raise Refused(Decision(Code.NESTED_CALL, "", list, tuple)) from None
    if ticket is None:
        journal.close()
        raise _held(journal)
    try:
        if not journal.lock(wait=wait, process=process):
            raise _held(journal)
        new = journal.is_new()
        if new and home.private:
            raise ResumeError(journal.path.name, "the start of a session", "none")
        if key is None and new:
            key, made_key = keys.new_key(journal.path, durable=durable)
        elif key is None:
            key = keys.read_key(journal.path)
        follower = Follower(policy, key)
        access = made(follower, journal, turns)
        with collection_put_off(True):  # all that is made of a long ledger stays
            access.read(locked=True, passes=follower.passes)
        if new:
            begun_by = process
            begin(access)
        elif follower.parent != home.parent:
            # Before anything is written: nobody goes on with a session without its parent.
            due, found = follower.parent, home.parent
            raise ResumeError("line 1: parent", due or "no parent", found or "no parent")
        elif follower.session.ended:
            if home.rolls:
                journal.roll(follower.session_id)
                raise Rolled
        elif follower.shadow != home.shadow:
            # One that was in the shadow has calls that no gate let through, and the other way.
            kinds = ("a session that is enforced", "a session in the shadow")
            raise ResumeError("line 1: shadow", kinds[home.shadow], kinds[follower.shadow])
        else:
            given.hold(follower)
            access.leave_unknown()
        if journal.doubtful:
            journal.sync()
        access.give_back()
        access.begun_by, access.made_key = begun_by, made_key
        return access
    except BaseException:
        if (begun_by and not home.private) or made_key:
            _take_back(journal, made_key)
        journal.close()
        raise
    finally:
        journal.unlock()
        turns.give_back(ticket)


def _held(journal: ledger_file.InFile) -> LedgerError:
    return LedgerError(str(journal.path), BlockingIOError(0, "somebody else has its lock"))


# A session that nothing was done in.


def is_untouched(access: Access) -> bool:
    """Whether the session was begun here, and nothing but its start is recorded."""
    return access.begun_by == process_number() and access.journal.records == 1


def withdraw(access: Access) -> bool:
    """Whether the session was begun here and nothing but its start recorded: its files go."""
    journal = access.journal
    if access.begun_by != process_number() or not isinstance(journal, ledger_file.InFile):
        return False
    ticket = _soon(access)
    if ticket is None:
        return False
    try:
        with access.lock:
            if journal.records != 1:
                return False
            _take_back(journal, access.made_key)
    finally:
        access.leave(ticket)
    return True


def _soon(access: Access) -> permit.Ticket | None:
    """The turn and the lock; None where they are not had at once.

    Who keeps the lock has a call under way, so more than the start is recorded.
    """
    for _ in range(_TRIES):
        try:
            ticket = access.try_enter("")
        except Refused:
            return None
        if ticket is not None:
            return ticket
        time.sleep(_PAUSE)
    access.stop_waiting()
    return None


def _take_back(journal: ledger_file.InFile, made_key: bool) -> None:
    # In this order: whoever comes between finds a new ledger, and no session without a key.
    if journal.emptied():
        if made_key:
            keys.remove_key(journal.path)
        journal.remove()

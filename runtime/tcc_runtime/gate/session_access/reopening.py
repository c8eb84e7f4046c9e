"""Beginning a session, reopening it from its ledger, and withdrawing an unused one.

The opener has the turn and the lock of the file.  In an empty file it begins a new session: it
writes the first record, and a key file next to the ledger.  An existing session is recovered.  Its
attributes, and whether it is a shadow, must be the same as in this gate.  An ended session is
renamed if the caller wants that.  If opening fails, the new files are removed.
Text: docs/gate.md; docs/spec/session.md, sections 2 and 3.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from tcc_certs.errors import Code, clip
from tcc_certs.formats.codec import written
from tcc_certs.policy.type_texts import domain_text
from tcc_certs.values.places import State
from tcc_runtime.account.windows import Across
from tcc_runtime.errors import GivenOtherwise, GivenRefused, LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import keys, permit
from tcc_runtime.gate.journal import Journal, ledger_file
from tcc_runtime.gate.policy import Policy
from tcc_runtime.gate.refusals import Decision, Refused
from tcc_runtime.gate.session.records import parts_of, session_record
from tcc_runtime.gate.session.recovery import Follower
from tcc_runtime.gate.session_access import Access, Home
from tcc_runtime.process import collection_put_off, process_number

# Attributes of a session.


@dataclass(frozen=True, slots=True)
class Begun:
    """The attributes that a session starts with, as its opener states them.

    Attributes:
        states: the states of the attributes by name; None: the opener states none.
    """

    states: Mapping[str, State] | None = None

    def hold(self, follower: Follower) -> None:
        """Require that a reopened session has the same attributes.

        Raises:
            GivenOtherwise: it began with other values.
        """
        if self.states is None:
            return
        expected, found = follower.values.given(self.states), follower.given
        for name in sorted({*expected, *found}):
            if expected.get(name) != found.get(name):
                why = "what the session was given when it began"
                raise GivenOtherwise(f"line 1: given: {written(name)}", why, "another value")


def shown_of(policy: Policy, show: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the open fields that the ledger shows, sorted and without repetitions.

    Raises:
        SettingsError: a name is no open field of the artifact.
    """
    foreign = sorted(set(show) - policy.open_fields.keys())
    if foreign:
        raise SettingsError("show", "open arguments and answers as tool.field", foreign[0])
    return tuple(sorted(set(show)))


def begun_with(policy: Policy, given: object) -> Begun:
    """Return the attributes that an opener states.

    Args:
        given: JSON values by name; None: the opener states none.

    Raises:
        GivenRefused: see :func:`read_given`.
    """
    if given is None:
        return Begun()
    return Begun(read_given(policy, dict(given) if isinstance(given, Mapping) else given))


def read_given(policy: Policy, given: object) -> Mapping[str, State]:
    """Return the states of the attributes that a session starts with.

    Args:
        given: JSON values by name.

    Raises:
        GivenRefused: R102: an attribute is not declared.  R103: one is missing.  R104, R105, R106:
            one has an invalid value.
    """
    if type(given) is not dict:
        raise GivenRefused(Code.NO_VALUE, "given", "values by name", type(given).__name__)
    found = policy.given.read(given)
    if isinstance(found, dict):
        return found
    code, name = found
    if code is Code.UNDECLARED_ARGUMENT:
        some = ", ".join(sorted(policy.given.names))
        some = some or "nothing: the grammar asks for nothing"
        raise GivenRefused(code, clip(name, 80), some, "no such attribute")
    expected = domain_text(policy.given.field(name))
    if code is Code.MISSING_ARGUMENT:
        raise GivenRefused(code, name, expected, "nothing")
    of = f"{type(given[name]).__name__}, " if name in given else ""
    raise GivenRefused(code, name, expected, f"{of}another type or outside its limits")


# Beginning and reopening.


class Rolled(Exception):
    """An ended ledger was renamed: open the path again."""


_PAUSE: Final = 0.02  # seconds between two attempts to take the turn
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
    """Begin a session, or reopen the one in a file.

    Args:
        journal: the ledger in a file; or a journal in memory, whose session always begins.
        key: the key of the session; None: a new session gets a random key, and an existing one has
            it in a file next to the ledger.
        shown: the open fields that a new ledger shows.
        nonce: 16 bytes of a new session; None: drawn at random.
        wait: whether to wait while another process has the lock.
        given: the attributes.
        across: the limits across sessions; None: the core has none.

    Raises:
        LedgerError: the ledger cannot be read or written.  Its cause is a `BlockingIOError` if
            `wait` is False and the turn or the lock is not free.
        Refused: R305: the caller has the turn of the session.
        Rolled: open the path again.
        ResumeError: the file has no session that can continue with these arguments.
        GivenOtherwise: the session began with other attributes.
        GivenRefused: see :func:`read_given`.
        SettingsError: the clock is outside its range.
    """
    made = partial(Access, durable=durable, clock=clock, home=home, across=across)
    begin = partial(_begin, shown=shown, given=given, nonce=nonce)
    if isinstance(journal, ledger_file.InFile):
        how = {"durable": durable, "wait": wait}
        return _reopen(policy, journal, key, made, begin, home=home, given=given, **how)
    follower = Follower(policy, os.urandom(32) if key is None else key, in_memory=True)
    access = made(follower, journal, permit.Turns())
    access.begun_by = process_number() if home.begun else 0
    begin(access)
    return access


def _begin(access: Access, shown: tuple[str, ...], given: Begun, nonce: bytes | None) -> None:
    """Write the first record of a session."""
    policy, home, follower = access.policy, access.home, access.follower
    states = read_given(policy, {}) if given.states is None else given.states
    started = access.clock()
    if not 0 <= started < 1 << 48:
        raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
    drawn = os.urandom(keys.NONCE_BYTES) if nonce is None else nonce
    follower.shadow = home.shadow
    key, nonce_text = follower.key, drawn.hex()
    record = session_record(
        policy, key, started, nonce_text, shown, given=states, shadow=home.shadow,
        parent=home.parent,
    )  # fmt: skip
    follower.parent = home.parent
    follower.open(record, states)
    access.journal.append(lambda head: follower.writer.sealed(parts_of(record), head))
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
    """Reopen the session in a file; in an empty file begin one.  See :func:`open_session`."""
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
        follower = Follower(policy, key, carried=home.carried)
        access = made(follower, journal, turns)
        # the objects of a long ledger live on, so collecting garbage here finds nothing
        with collection_put_off(True):
            access.read(locked=True)
        if new:
            begun_by = process
            begin(access)
        elif follower.parent != home.parent:
            # Checked before anything is written: a session continues only with its parent.
            expected, found = follower.parent or "no parent", home.parent or "no parent"
            raise ResumeError("line 1: parent", expected, found)
        elif follower.session.ended:
            if home.rolls:
                journal.set_aside(follower.session_id)
                raise Rolled
        elif follower.shadow != home.shadow:
            # A shadow session may have calls that no gate allowed, so it cannot become an enforced
            # one, or the reverse.
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


# Unused sessions.


def is_untouched(access: Access) -> bool:
    """Return whether this process began the session, and the ledger has only its first record."""
    return access.begun_by == process_number() and access.journal.records == 1


def withdraw(access: Access) -> bool:
    """Remove the files of a session that is untouched; return whether they were removed."""
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
    """Take the turn and the lock within about 0.2 seconds; else return None.

    A holder that keeps the lock longer has a call under way, so the session is not unused.
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
    # In this order, another process finds a new ledger at any time, but never a session without a
    # key.
    if journal.emptied():
        if made_key:
            keys.remove_key(journal.path)
        journal.remove()

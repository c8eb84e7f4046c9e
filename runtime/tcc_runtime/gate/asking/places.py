"""Questions in ledgers and folders of ledgers, for a person at a command line.

The artifact of a session is not needed: which questions are open follows from the records, and the
key of the session authenticates a verdict.  A gate that has the session open takes the verdict from
a file.  If no gate takes it, the record is written here, under the lock of the ledger.
Text: docs/ask.md.  Cost: linear in the records of the ledgers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import FIRST_HEAD, LedgerReader, Line, Record
from tcc_certs.formats.ledger_schema import MAX_TIME
from tcc_certs.session.files import files_of
from tcc_certs.session.records import KEY, MAC, SCHEMA, check_record
from tcc_certs.values import canonical
from tcc_runtime.errors import LedgerError, ResumeError, SettingsError
from tcc_runtime.gate import keys
from tcc_runtime.gate.asking import verdict_files
from tcc_runtime.gate.asking.questions import Pending, Verdict, VerdictError, argument_texts
from tcc_runtime.gate.asking.verdict_files import Handed
from tcc_runtime.gate.asking.verdicts import check
from tcc_runtime.gate.journal.ledger_file import InFile
from tcc_runtime.gate.session import records
from tcc_runtime.gate.store import Sessions
from tcc_runtime.process import process_number

_CHUNK: Final = 1 << 16
_BEGINS: Final = b'{"arguments":{"show":['
_PAUSE: Final = 0.05  # seconds between two looks at a verdict that was handed in
_PATIENCE: Final = 1.5  # seconds that a gate has before the record is written here
_LONGEST: Final = 10.0  # seconds that this waits for the lock
_URL: Final = "://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A ledger with questions, and the way to its key.

    Attributes:
        ledger: the path of its first file.
        key: returns the key of the session; raises ResumeError or LedgerError.
        private: whether the ledger belongs to a store.
    """

    ledger: Path
    key: Callable[[], bytes]
    private: bool = False


class Listed(NamedTuple):
    """A question of a ledger.

    Attributes:
        call: the text of the call that it is about; its listed arguments are in it.
    """

    pending: Pending
    call: str


@dataclass(slots=True)
class Asked:
    """The questions of one ledger.

    Attributes:
        first: the first record, without its MAC.
        session_id, texts: the id of the session, and the texts of its statements.
        asked: all questions, by id.
        verdicts: the verdicts, by the id of the question.
        last_ms: the time of the last record that has one.
        ended: whether the session has ended.
    """

    first: Mapping[str, Json] = field(default_factory=dict)
    session_id: str = ""
    texts: tuple[str, ...] = ()
    asked: dict[str, Listed] = field(default_factory=dict)
    verdicts: dict[str, str] = field(default_factory=dict)
    last_ms: int = 0
    ended: bool = False

    def add(self, record: Record, line: int) -> None:
        """Add the next record of the ledger.

        Raises:
            Rejected: L103: the record has another form; D102: it has another schema.
        """
        kind = check_record(record, line)
        found: Any = record
        if kind == "session":
            if found["schema"] != SCHEMA:
                raise Rejected(Code.UNKNOWN_VERSION, "schema", SCHEMA, found["schema"])
            own = (MAC, "continues")
            first = {name: item for name, item in record.items() if name not in own}
            if self.first and first["artifact"] != self.first["artifact"]:
                self.asked.clear()  # the other artifact asks its own questions
            self.first = first
            self.session_id, self.texts = found["session_id"], tuple(found["statements"])
            self.last_ms = max(self.last_ms, found["started_ms"])
        elif kind == "ask":
            self.asked[found["id"]] = Listed(self._pending(found), found["call"])
        elif kind == "approval":
            self.verdicts[found["id"]] = found["verdict"]
        elif kind == "end":
            self.ended = True
        self.last_ms = max(self.last_ms, found.get("at_ms", 0))

    def _pending(self, record: Any) -> Pending:
        number, opened = record["statement"], record["open"]
        texts, hidden = argument_texts(sorted(opened), {}, opened)
        return Pending(
            id=record["id"],
            who=record["who"],
            text=self.texts[number] if number < len(self.texts) else "",
            because=None,
            tool=record["tool"],
            arguments=texts,
            hidden=hidden,
            asked_ms=record["at_ms"],
            expires_ms=record["expires_ms"],
        )

    def open(self, now_ms: int) -> list[Listed]:
        """Return the open questions, the oldest first."""
        now, waits = max(now_ms, self.last_ms), self.asked.keys() - self.verdicts.keys()
        if self.ended:
            return []
        return [
            one
            for question_id, one in self.asked.items()
            if question_id in waits and now <= one.pending.expires_ms
        ]

    def require_open(self, question_id: str, now_ms: int) -> None:
        """Require that a verdict on a question can be recorded now.

        Raises:
            VerdictError: it cannot.
        """
        question = self.asked.get(question_id)
        if question is None or self.ended:
            raise VerdictError(question_id, "unknown")
        if question_id in self.verdicts:
            raise VerdictError(question_id, "decided")
        if max(now_ms, self.last_ms) > question.pending.expires_ms:
            raise VerdictError(question_id, "expired")


# Places.


def places_of(place: str, key: bytes | None = None) -> list[Place]:
    """Return the ledgers of a place: a file is one ledger; a folder or store has several, sorted by
    name.

    Args:
        key: the key of the session, if the place is one ledger.  None: the key is in the file next
            to it.

    Raises:
        SettingsError: the place does not exist, or is a URL, which is not supported.
        ResumeError, LedgerError, Rejected: the store cannot be read.
    """
    if _URL in place:
        expected = "a ledger or a folder of ledgers; stores at a URL come with a later release"
        raise SettingsError("PLACE", expected, place)
    path = Path(place)
    if not path.is_dir():
        if not path.is_file():
            raise SettingsError("PLACE", "a ledger or a folder of ledgers", place)
        return [Place(ledger=path, key=lambda: key or keys.read_key(path))]
    if (path / "store.json").exists():
        sessions = Sessions.of(path)
        return [of_store(sessions, one) for one in sessions.ids()]
    return [_of_folder(one) for one in sorted(path.iterdir()) if _is_session(one)]


def of_store(sessions: Sessions, session_id: str) -> Place:
    """Return the ledger of a session of a store."""
    ledger = sessions.folder / f"{session_id}.ledger"
    return Place(ledger=ledger, key=lambda: sessions.key_of(session_id), private=True)


def _of_folder(ledger: Path) -> Place:
    return Place(ledger=ledger, key=lambda: keys.read_key(ledger))


def _is_session(path: Path) -> bool:
    """Return whether a file is the first file of the ledger of a session."""
    stem, _, number = path.name.rpartition(".")
    try:
        if not path.is_file() or (number.isdecimal() and path.with_name(stem).is_file()):
            return False
        with path.open("rb") as file:
            return file.read(len(_BEGINS)) == _BEGINS
    except OSError:
        return False


def questions_in(place: Place) -> Asked:
    """Read the questions of a ledger without its lock.

    Raises:
        LedgerError: the ledger cannot be read.
        ResumeError: the file has no session.
        Rejected: L101, L102, L103, D102, D201: the ledger is broken.
    """
    found = Asked()
    try:
        for path in files_of(place.ledger):
            with path.open("rb") as file:
                reader = LedgerReader(iter(partial(file.read, _CHUNK), b""))
                for record in reader:
                    found.add(record, reader.records)
    except OSError as error:
        raise LedgerError(str(place.ledger), error) from error
    if not found.session_id:
        raise ResumeError(str(place.ledger), "the ledger of a session", "none")
    return found


# Verdicts.


def decide(
    places: Iterable[Place],
    question_id: str,
    verdict: Verdict,
    who: str,
    reason: str = "",
    *,
    clock: Callable[[], int] = records.now_ms,
) -> Place:
    """Deliver the verdict on a question; return the place of its ledger.

    The ledger has the verdict when the function returns.

    Raises:
        VerdictError: no ledger has the question, or the question has a verdict or has expired.
        ValueError: `who` is no name, or `reason` is too long.
        LedgerError: the ledger cannot be read or written.  Its cause is a `BlockingIOError` if
            another process has the lock and takes no verdict.
        ResumeError: the key is missing, or is not the key of the session.
        Rejected: the ledger is broken.
    """
    check(who, reason)
    place, asked = _find(places, question_id)
    asked.require_open(question_id, clock())
    handed = Handed(question_id, asked.session_id, verdict, who, reason)
    key = place.key()
    path = _hand_in(place, key, handed, clock)
    try:
        _deliver(place, key, handed, path, clock)
    finally:
        if path.exists():
            verdict_files.remove(path)
    return place


def _hand_in(place: Place, key: bytes, handed: Handed, clock: Callable[[], int]) -> Path:
    """Leave a verdict in a file.  If a file with another verdict on the question exists, deliver
    that one.

    Raises:
        VerdictError: the other verdict was delivered.
        LedgerError: a file cannot be read or written.
    """
    try:
        with suppress(FileExistsError):
            return verdict_files.hand_in(place.ledger, key, handed)
        for path, other in verdict_files.waiting(place.ledger, key, handed.session_id):
            # left by a process that ended, or by a process that delivers it now
            if other.id == handed.id:
                _deliver(place, key, other, path, clock)
                raise VerdictError(handed.id, "decided")
        return verdict_files.hand_in(place.ledger, key, handed)
    except FileExistsError:
        raise VerdictError(handed.id, "decided") from None
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerError(str(place.ledger), error) from error


def _find(places: Iterable[Place], question_id: str) -> tuple[Place, Asked]:
    if KEY[1](question_id):
        for place in places:
            asked = questions_in(place)
            if question_id in asked.asked:
                return place, asked
    raise VerdictError(question_id, "unknown")


def _deliver(
    place: Place, key: bytes, handed: Handed, path: Path, clock: Callable[[], int]
) -> None:
    """Wait until a gate takes the verdict; if none does, record it."""
    began = time.monotonic()
    # Only a gate that takes the file can tell its agent the reason of a denial.
    patience = _PATIENCE if handed.reason else 0.0
    journal = InFile(place.ledger, private=place.private)
    try:
        while path.exists():
            waited = time.monotonic() - began
            if waited >= patience and journal.lock(wait=False, process=process_number()):
                try:
                    if path.exists():
                        _record(journal, key, handed, clock)
                        verdict_files.remove(path)
                        return
                finally:
                    journal.unlock()
            if waited > _LONGEST:
                busy = BlockingIOError(0, "another process has its lock, and takes no verdict")
                raise LedgerError(str(place.ledger), busy)
            time.sleep(_PAUSE)
    finally:
        journal.stop_waiting()
        journal.close()
    _require_taken(place, handed)


def _record(journal: InFile, key: bytes, handed: Handed, clock: Callable[[], int]) -> None:
    """Record a verdict; the caller has the lock of the ledger."""
    asked, macs = Asked(), canonical.record_key(key)
    for line, news in enumerate(journal.news(locked=True), 1):
        record = news.record.record if isinstance(news.record, Line) else news.record
        _check_mac(record, macs, news.previous, line)
        asked.add(record, line)
    now = clock()
    asked.require_open(handed.id, now)
    at_ms = max(now, asked.last_ms)
    if not 0 <= at_ms <= MAX_TIME:
        raise SettingsError("clock", "milliseconds below 2^48", at_ms)
    approval = records.approval_record(handed.id, handed.verdict, handed.who, at_ms)
    sealed, parts = records.Writer(key, asked.session_id).sealed, records.parts_of
    if journal.is_full:  # the last file ends with `roll`
        journal.roll(
            lambda head: sealed(parts({"kind": "roll"}), head),
            lambda head: sealed(parts({**asked.first, "continues": head.hex()}), FIRST_HEAD),
        )
    journal.append(lambda head: sealed(parts(approval), head))
    journal.sync()


def _check_mac(record: Mapping[str, Json], macs: bytes, previous: bytes, line: int) -> None:
    """Check that the holder of the key wrote a record.

    Raises:
        ResumeError: the MAC was made with another key.
    """
    body = encode({name: value for name, value in record.items() if name != MAC})
    if record.get(MAC) != canonical.record_mac(macs, previous, body).hex():
        raise ResumeError(f"line {line}: mac", "a record made with this key", record.get(MAC))


def _require_taken(place: Place, handed: Handed) -> None:
    """Require that the ledger has the verdict that a gate took from the file.

    Raises:
        VerdictError: the ledger has no verdict on the question, or another verdict.
    """
    found = questions_in(place).verdicts.get(handed.id)
    if found != handed.verdict:
        raise VerdictError(handed.id, "expired" if found is None else "decided")

"""A store: a folder with the sessions of one artifact, one ledger each.

A process that can begin a session could reset its limits.  So the store decides when a session
begins: each `open` begins one, or each principal has one, whichever process connects.  A file
appears in the folder only when it is complete: it is written under another name, synced and
renamed.  So after a kill at any write the store has its old or its new state.  Only the owner may
access the folder and its files, and links are not followed.  If the ledger of a principal is lost,
the principal gets no new session, because a new session would reset its limits.
Text: docs/sessions.md.
Cost: reopening a session reads its ledger once; a list reads all ledgers.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from uuid import UUID

from blake3 import blake3

from tcc_certs.errors import Rejected, clip
from tcc_certs.formats import codec, container, ledger
from tcc_certs.formats.ledger_schema import size, text
from tcc_certs.session.carried import Reading
from tcc_certs.session.files import file_name
from tcc_certs.session.machine import Course
from tcc_certs.session.records import check_record
from tcc_certs.session.validation import SessionReplay
from tcc_runtime.account.account import Account
from tcc_runtime.account.windows import across_of
from tcc_runtime.artifact.load import Artifact, load
from tcc_runtime.errors import LedgerError, ResumeError, SessionEnded, SettingsError
from tcc_runtime.gate import keys
from tcc_runtime.gate.gate import Gate, opened, roll_bytes_of
from tcc_runtime.gate.journal import private_files
from tcc_runtime.gate.policy import Policy, policy_of
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.gate.session import records
from tcc_runtime.gate.session.recovery import Carried, reading_of, replay_of
from tcc_runtime.gate.session_access import Home, reopening
from tcc_runtime.ledger.outputs import sync_folder

FORMAT: Final = "tcc.store"
VERSION: Final = "1.0"
ARTIFACT: Final = "artifact.tcca"
_KEY_CONTEXT: Final = "tcc.store/1.0 session key"
_KEY_BYTES: Final = 32
_MOST_LINE: Final = 1 << 26
_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_HEX = re.compile("[0-9a-f]{64}")

State: TypeAlias = Literal["live", "spent", "ended", "abandoned"]
Kind: TypeAlias = Literal["new", "principal", "reopened"]

_OWNER: Final = "the owner of this gate can end it (tcc session end)"
_WAYS_ON: Final[Mapping[Kind, str]] = {
    "new": "connect again, and another session begins",
    "principal": f"{_OWNER}, and another begins with the next connection",
    "reopened": f"{_OWNER} and begin another",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """The state of a session of a store, read from its ledger.

    Attributes:
        id: the UUID of the session.
        started_ms: its start, UTC milliseconds since 1970.
        calls: the number of recorded calls.
        unknown: the number of calls without a known outcome, including calls under way.
        pending: the number of open questions to persons.
        state: `live`, `spent` (not ended, but no plan allows a further call), `ended`, or
            `abandoned` (ended by `finish(abandon=True)`).
        principal: the name of its principal in the store, hex; None: it has no principal.
    """

    id: str
    started_ms: int
    calls: int
    unknown: int
    state: State
    principal: str | None = None
    pending: int = 0


def session_id_of(given: object) -> str:
    """Check the id of a session, before it is used in a path, and return it as a text.

    Raises:
        SettingsError: it is no UUIDv7.
    """
    if isinstance(given, UUID):
        given = str(given)
    if not isinstance(given, str) or _ID.fullmatch(given) is None:
        raise SettingsError("session", "the id of a session, a UUIDv7", clip(str(given), 60))
    return given


class Sessions:
    """The sessions of an artifact, in a folder.

    Args:
        artifact: see :class:`tcc.Gate`.
        store: the folder, on a local disk; created if it does not exist.
        durable: see :class:`tcc.Gate`; also for the files that are written when a session begins.
        checked, show, clock: see :class:`tcc.Gate`.
        renew_ms: the age in milliseconds at which a principal's session is ended and a new one
            begins, at the next `open` while no call is under way; None: never.
        wait: whether to wait for locks that another process has.
        account: see :class:`tcc.Gate`; not needed for listing sessions.
        shadow: see :class:`tcc.Gate`.  A shadow session is never reopened as an enforced one, or
            the reverse.
        roll_bytes: see :class:`tcc.Gate`; for each ledger.
        reload: whether `artifact` may differ from the store's artifact: then it replaces it, see
            :meth:`reload`.
        moves: whether a session of an earlier artifact continues under the new one when it is
            opened next.

    Raises:
        ResumeError: the folder is no store, has another artifact, is open to other users, or has
            links in place of files.
        SettingsError: an argument is outside its range.
        Rejected: the check refuses the artifact.
        LedgerError: a file cannot be read or written.
    """

    def __init__(
        self,
        artifact: Artifact | str | Path,
        store: str | Path,
        durable: bool = True,
        *,
        checked: str | None = None,
        show: tuple[str, ...] = (),
        clock: Callable[[], int] | None = None,
        renew_ms: int | None = None,
        wait: bool = True,
        shadow: bool = False,
        account: Account | None = None,
        roll_bytes: int | None = None,
        reload: bool = False,
        moves: bool = False,
    ) -> None:
        self.artifact = opened(artifact, checked)
        self._older: dict[str, Artifact] = {}  # earlier artifacts of the store, by digest
        self.folder = Path(store)
        self.durable = durable
        self.moves = moves
        self._policy = policy_of(self.artifact)
        self._shown = reopening.shown_of(self._policy, show)
        self._clock = records.now_ms if clock is None else clock
        if renew_ms is not None and (type(renew_ms) is not int or renew_ms <= 0):
            raise SettingsError("renew", "milliseconds, above 0", renew_ms)
        self._renew_ms = renew_ms
        self._wait = wait
        self._roll_bytes = roll_bytes_of(roll_bytes)
        self._account = account
        self._shadow: bool | None = shadow  # None after `of`: each session is reopened as it began
        with _as_ledger_error(self.folder):
            self._open(reload)

    @classmethod
    def of(
        cls, store: str | Path, *, wait: bool = False, account: Account | None = None
    ) -> Sessions:
        """Open an existing store with the artifact that it contains.

        Raises:
            ResumeError, SettingsError, Rejected, LedgerError: see :class:`Sessions`.
        """
        folder = Path(store)
        with _as_ledger_error(folder):
            private_files.check_folder(folder)
            digest = _digest_in(folder)
            path = _artifact_in(folder, digest)
        # The artifact was checked before the store took it, and it still has its digest.
        found = cls(load(path, checked=digest), folder, wait=wait, account=account)
        found._shadow = None
        return found

    # The folder.

    def _open(self, reload: bool) -> None:
        folder = self.folder
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700, parents=True)
            if self.durable:
                sync_folder(folder.parent)
        private_files.check_folder(folder)
        with self._locked():
            if not os.path.lexists(folder / "store.json"):
                self._found()
            digest = _digest_in(folder)
            mine = self.artifact.digest.hex()
            if digest != mine:
                if not reload:
                    raise ResumeError(str(folder), f"a store of the artifact {mine}", digest)
                self._take(digest)
            self.key = private_files.bytes_of(folder / "store.key", _KEY_BYTES)
            if len(self.key) != _KEY_BYTES:
                raise ResumeError(str(folder / "store.key"), "32 bytes", len(self.key))
            private_files.check_folder(folder / "principals")

    def _found(self) -> None:
        """Create a store in an empty folder.  `store.json` is written last."""
        folder = self.folder
        own = {"lock", "store.key", "principals", ARTIFACT, ".new"}
        foreign = sorted({entry.name for entry in os.scandir(folder)} - own)
        if foreign:
            raise ResumeError(str(folder), "a store, or an empty folder", clip(foreign[0], 80))
        if not os.path.lexists(folder / "store.key"):
            self._put(folder / "store.key", os.urandom(_KEY_BYTES))
        with suppress(FileExistsError):
            (folder / "principals").mkdir(mode=0o700)
        self._put(folder / ARTIFACT, container.write_container(self.artifact.file.columns))
        self._put_digest()

    def reload(self, artifact: Artifact | str | Path, checked: str | None = None) -> None:
        """Take another artifact for new sessions.  Open gates keep theirs.

        Args:
            artifact, checked: see :class:`Sessions`.

        Raises:
            SettingsError: the artifact has limits across sessions, but the store has no account; or
                the artifact lacks a field of `show`.
            Rejected, LedgerError: see :class:`Sessions`.  The store then keeps the old artifact.
        """
        # read, not mapped: a mapped file could be overwritten in place
        if not isinstance(artifact, Artifact):
            artifact = load(Path(artifact).read_bytes(), checked=checked)
        found = opened(artifact, None)
        policy = policy_of(found)
        across_of(policy.core, self._account, True)
        shown = reopening.shown_of(policy, self._shown)
        with _as_ledger_error(self.folder), self._locked():
            digest = _digest_in(self.folder)
            kept, self.artifact = self.artifact, found
            try:
                if digest != found.digest.hex():
                    self._take(digest)
            except BaseException:
                self.artifact = kept
                raise
        self._policy, self._shown = policy, shown

    def _take(self, digest: str) -> None:
        """Make this artifact the store's, and keep the old one (of `digest`) for its sessions.

        `store.json` is written last, so it always names an artifact whose file exists.  The caller
        has the lock of the store.
        """
        folder = self.folder
        with suppress(FileExistsError):
            os.link(_artifact_in(folder, digest), _older_name(folder, digest))
        data = container.write_container(self.artifact.file.columns)
        self._put(_older_name(folder, self.artifact.digest.hex()), data)
        self._put(folder / ARTIFACT, data)
        self._put_digest()

    def _put_digest(self) -> None:
        told = {
            "format": FORMAT,
            "format_version": VERSION,
            "artifact": self.artifact.digest.hex(),
        }
        self._put(self.folder / "store.json", codec.encode(told) + b"\n")

    def _artifact_of(self, path: Path, header: ledger.Record) -> Artifact:
        """Return the artifact that a ledger names: the store's, or an earlier one.

        Raises:
            ResumeError: the store never had this artifact.
        """
        digest = str(header.get("artifact"))
        found = self._artifact(digest)
        if found is None:
            raise ResumeError(f"{path.name}: artifact", self.artifact.digest.hex(), digest)
        return found

    def _artifact(self, digest: str) -> Artifact | None:
        """Return the artifact of the store with this digest, current or earlier; None: it never had
        it.
        """
        if digest == self.artifact.digest.hex():
            return self.artifact
        found = self._older.get(digest)
        if found is None:
            if not (_HEX.fullmatch(digest) and os.path.lexists(_older_name(self.folder, digest))):
                return None
            found = self._older[digest] = load(_artifact_in(self.folder, digest), checked=digest)
        return found

    def artifact_paths(self, id: str | UUID) -> tuple[Path, ...]:
        """Return the files of the artifacts that have decided a session, the latest first.

        Raises:
            SettingsError, ResumeError, LedgerError: see :meth:`get`.
        """
        headers = self._headers(self._ledger(session_id_of(id)))
        digests = [str(header.get("artifact")) for header in reversed(headers)]
        return tuple(
            [
                _artifact_in(self.folder, digest if _HEX.fullmatch(digest) else "")
                for digest in dict.fromkeys(digests)
            ]
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the store, for as long as a few files are written.

        Raises:
            LedgerError: with a `BlockingIOError` as its cause: another process has the lock, and
                `wait` is False.
        """
        path = self.folder / "lock"
        with suppress(FileExistsError):
            os.close(os.open(path, private_files.NEW, 0o600))
        handle = private_files.open_private(path, os.O_RDWR)
        try:
            _lock(handle, wait=self._wait)
            yield
        finally:
            os.close(handle)

    def _put(self, path: Path, data: bytes | memoryview) -> None:
        """Write a whole file.  The caller has the lock of the store."""
        private_files.put_whole(path, data, durable=self.durable)

    def _ledger(self, session_id: str) -> Path:
        return self.folder / f"{session_id}.ledger"

    # Sessions.

    def open(
        self,
        given: Mapping[str, Any] | None = None,
        principal: tuple[str, str] | str | None = None,
    ) -> Gate:
        """Open a gate on a new session, or on the session of a principal.

        Args:
            given: the attributes of a new session, JSON values by name.  A session that continues
                must have the same; None accepts those in its ledger.
            principal: issuer and subject, or only a subject.  A session begins for the principal if
                it has none, or its last one has ended.  None: a session without a principal begins.

        Raises:
            ResumeError: the ledger of the principal is missing or invalid, or its session has other
                attributes.
            GivenRefused, LedgerError: see :class:`tcc.Gate`.
            SettingsError: an argument is outside its range.
        """
        across_of(self._policy.core, self._account, True)  # before anything is written
        begun = reopening.begun_with(self._policy, given)
        if principal is None:
            with _as_ledger_error(self.folder), self._locked():
                session_id = self._begin(None, begun)
            return self._gate(session_id, "new")
        named = self.name_of(principal)
        while True:
            with _as_ledger_error(self.folder):
                session_id = self._of_principal(named, None, begun)
            gate = self._kept(session_id, named, given)
            if gate is not None:
                return gate
            with _as_ledger_error(self.folder):
                self._of_principal(named, session_id, begun)

    def _kept(self, session_id: str, named: str, given: Mapping[str, Any] | None) -> Gate | None:
        """Return a gate on the session of a principal if it continues, else None.

        A session that is to be renewed is ended.
        """
        try:
            gate = self._gate(session_id, "principal", given)
        except SessionEnded:
            return None
        try:
            if gate.principal != named:
                raise ResumeError(self._ledger(session_id).name, named, gate.principal)
            if not self._is_old(gate) or not self._ended_now(gate):
                return gate
        except BaseException:
            gate.close()
            raise
        gate.close()
        return None

    def _is_old(self, gate: Gate) -> bool:
        if self._renew_ms is None:
            return False
        # the UUID begins with the time
        started = int(gate.session_id[:8] + gate.session_id[9:13], 16)
        return self._clock() - started >= self._renew_ms

    def _ended_now(self, gate: Gate) -> bool:
        """End the session unless a call is under way; return whether it has ended."""
        try:
            turn = gate.try_turn()
            if turn is None:
                gate.stop_waiting()
                return False
            gate.finish(abandon=not gate.may_finish, turn=turn)
        except Refused:
            return gate.ended
        return True

    def _of_principal(self, named: str, ended: str | None, begun: reopening.Begun) -> str:
        """Return the id of the principal's session; begin one if it has none.

        Args:
            ended: the id of an ended session; if the principal still has this one, a new session
                begins.
            begun: the attributes of a new session.
        """
        path = self.folder / "principals" / named
        with self._locked():
            private_files.check_folder(path.parent)
            known = private_files.bytes_of(path, 64) if os.path.lexists(path) else None
            if known is not None:
                session_id = known.decode("ascii", "replace").removesuffix("\n")
                if _ID.fullmatch(session_id) is None:
                    raise ResumeError(str(path), "the id of a session", clip(session_id, 60))
                if session_id != ended:
                    return session_id
            session_id = self._begin(named, begun)
            self._put(path, f"{session_id}\n".encode())
            return session_id

    def name_of(self, principal: tuple[str, str] | str) -> str:
        """Return the keyed digest by which the store names a principal, hex.

        Raises:
            SettingsError: the principal is no text, or no pair of texts.
        """
        issuer, subject = ("", principal) if isinstance(principal, str) else principal
        if not (isinstance(issuer, str) and isinstance(subject, str)):
            raise SettingsError("principal", "issuer and subject, texts", type(subject).__name__)
        try:
            parts = issuer.encode(), subject.encode()
        except UnicodeEncodeError:
            raise SettingsError("principal", "texts in UTF-8", "a lone surrogate") from None
        told = struct.pack("<I", len(parts[0])) + parts[0] + parts[1]
        return blake3(told, key=self.key).hexdigest()

    def session_of(self, principal: tuple[str, str] | str) -> str | None:
        """Return the id of the latest session of a principal, ended or not; None: it never had
        one.
        """
        path = self.folder / "principals" / self.name_of(principal)
        with _as_ledger_error(self.folder):
            if not os.path.lexists(path):
                return None
            return session_id_of(
                private_files.bytes_of(path, 64).decode("ascii", "replace").strip()
            )

    def get(self, id: str | UUID, given: Mapping[str, Any] | None = None) -> Gate:
        """Open a gate on an existing session.

        Args:
            given: the attributes that it must have begun with; None: any.

        Raises:
            SettingsError: the id is malformed.
            ResumeError: no such session exists, it has ended, or the store never had its artifact.
            LedgerError: see :class:`tcc.Gate`.
        """
        return self._gate(session_id_of(id), "reopened", given)

    def _begin(self, principal: str | None, begun: reopening.Begun) -> str:
        """Write the ledger of a new session; return its id.  The caller has the lock of the
        store.
        """
        states = begun.states
        if states is None:
            states = reopening.read_given(self._policy, {})
        nonce = os.urandom(keys.NONCE_BYTES).hex()
        started = self._clock()
        if not 0 <= started < 1 << 48:
            raise SettingsError("clock", "0 .. 2^48 - 1 milliseconds", started)
        key = self._key_of(nonce)
        record = records.session_record(
            self._policy,
            key,
            started,
            nonce,
            self._shown,
            principal,
            given=states,
            shadow=bool(self._shadow),
        )
        session_id = str(record["session_id"])
        parts = records.parts_of(record)
        body = records.Writer(key, session_id).sealed(parts, ledger.FIRST_HEAD)
        self._put(self._ledger(session_id), ledger.seal(body, ledger.FIRST_HEAD)[0])
        return session_id

    def _key_of(self, nonce: str) -> bytes:
        material = self.key + bytes.fromhex(nonce)
        return blake3(material, derive_key_context=_KEY_CONTEXT).digest()

    def _gate(self, session_id: str, kind: Kind, given: Mapping[str, Any] | None = None) -> Gate:
        path = self._ledger(session_id)
        while True:
            with _as_ledger_error(path):
                headers = self._headers(path)
            found = headers[0].get("session_id")
            if found != session_id:
                raise ResumeError(f"{path.name}: session_id", session_id, found)
            try:
                if not self.is_behind(str(headers[-1].get("artifact"))):
                    return self._gate_of(path, headers, kind, given)
                with closing(self._gate_of(path, headers, kind, None)) as gate:
                    gate.carry_over(self.artifact, self._reading, wait=self._wait)
            except (ResumeError, Refused):
                # Try again if another process has continued the ledger under another artifact
                # meanwhile.
                with _as_ledger_error(path):
                    if len(self._headers(path)) == len(headers):
                        raise

    def is_behind(self, digest: str) -> bool:
        """Return whether a session moves to the store's artifact when it is opened.

        Only a process whose artifact is the store's moves sessions.  So two processes with
        different artifacts do not move a session back and forth.

        Args:
            digest: the digest of the artifact that decides the session now, hex.
        """
        mine = self.artifact.digest.hex()
        return self.moves and digest != mine and _digest_in(self.folder) == mine

    def _gate_of(
        self,
        path: Path,
        headers: Sequence[ledger.Record],
        kind: Kind,
        given: Mapping[str, Any] | None,
    ) -> Gate:
        """Open a gate with the artifact that a ledger names last.

        Args:
            headers: the first records of the files of the ledger.
            given: attributes for the present artifact; ignored if the ledger has another artifact
                that declares other attributes.
        """
        header, artifact = headers[0], self._artifact_of(path, headers[-1])
        if artifact is not self.artifact and set(given or ()) != policy_of(artifact).given.names:
            # `given` is for the present artifact; a session of an older artifact keeps its own
            # attributes
            given = None
        return Gate(
            artifact,
            ledger=path,
            key=self._key_of(str(header["nonce"])),
            durable=self.durable,
            clock=self._clock,
            wait=self._wait,
            home=Home(
                private=True,
                begun=kind == "new",
                way_on=_WAYS_ON[kind],
                shadow="shadow" in header if self._shadow is None else self._shadow,
                roll_bytes=self._roll_bytes,
                carried=self._carried(headers),
            ),
            given=given,
            account=self._account,
        )

    def _carried(self, headers: Sequence[ledger.Record]) -> Carried | None:
        """Return how to read the records of earlier artifacts; None: all files have one
        artifact.
        """
        last = headers[-1].get("artifact")
        before = [at for at, header in enumerate(headers) if header.get("artifact") != last]
        if not before:
            return None
        target = {name: one for name, one in headers[before[-1] + 1].items() if name != ledger.LINK}
        check_record(target, 1)
        return Carried(target, self._reading)

    def _reading(self, digest: str) -> Reading | None:
        found = self._artifact(digest)
        return None if found is None else reading_of(policy_of(found))

    def _headers(self, path: Path) -> list[ledger.Record]:
        """Return the first records of the files of a ledger, in order.

        A crash of the system may leave an empty last file, which is ignored.
        """
        found = [self._header(path)]
        while os.path.lexists(name := file_name(path, len(found))) and name.lstat().st_size:
            found.append(self._header(name))
        return found

    def _header(self, path: Path) -> ledger.Record:
        """Return the first record of a file, after checking its nonce.  The gate checks the
        rest.
        """
        handle = private_files.open_private(path, os.O_RDONLY)
        with os.fdopen(handle, "rb") as file:
            line = file.readline(_MOST_LINE)
        try:
            record = codec.decode(line.rstrip(b"\n"), "line 1")
        except Rejected as error:
            raise ResumeError(path.name, "the ledger of a session", error.found) from None
        nonce = record.get("nonce") if isinstance(record, dict) else None
        if not isinstance(record, dict) or not isinstance(nonce, str) or not _is_nonce(nonce):
            raise ResumeError(path.name, "the start of a session with its nonce", "none")
        return record

    def forget(self, session_id: str) -> None:
        """Remove the name of the principal whose session this is, so that its next `open` begins
        one.
        """
        with _as_ledger_error(self.folder), self._locked():
            for entry in sorted(os.scandir(self.folder / "principals"), key=lambda one: one.name):
                path = Path(entry.path)
                if (
                    _HEX.fullmatch(entry.name)
                    and private_files.bytes_of(path, 64).strip() == session_id.encode()
                ):
                    path.unlink()
                    if self.durable:
                        sync_folder(path.parent)

    # Look-ups.

    def list(self) -> tuple[StoredSession, ...]:
        """Return all sessions, the oldest first.  Takes no lock, and writes nothing.

        Raises:
            ResumeError: a ledger is invalid.
            LedgerError: a ledger cannot be read.
        """
        return tuple([self.look(session_id) for session_id in self.ids()])

    def ids(self) -> tuple[str, ...]:
        """Return the ids of all sessions, the oldest first: an id begins with the time."""
        with _as_ledger_error(self.folder):
            names = [entry.name for entry in os.scandir(self.folder)]
        stems = [name.removesuffix(".ledger") for name in names if name.endswith(".ledger")]
        return tuple(sorted(stem for stem in stems if _ID.fullmatch(stem)))

    def look(self, id: str | UUID) -> StoredSession:
        """Return the state of a session, read from its ledger without a lock.

        Raises:
            SettingsError: the id is malformed.
            ResumeError, LedgerError: see :meth:`list`.
        """
        session_id = session_id_of(id)
        path = self._ledger(session_id)
        with _as_ledger_error(path):
            headers = self._headers(path)
            header = headers[0]
            policy = policy_of(self._artifact_of(path, headers[-1]))
            key = self._key_of(str(header["nonce"]))
            replay = replay_of(policy, key, self._carried(headers))
            _go_through(replay, path)
        session = replay.session
        if session is None or session.header.name != session_id:
            raise ResumeError(path.name, session_id, header.get("session_id"))
        tally = session.tally
        state: State = "live"
        if session.ended:
            state = "abandoned" if session.abandoned else "ended"
        elif not session.open and _is_spent(policy, session.course):
            state = "spent"
        principal = header.get("principal")
        return StoredSession(
            id=session_id,
            started_ms=size(header, "started_ms"),
            calls=tally.calls,
            unknown=tally.unknown + len(session.open),
            state=state,
            principal=text(header, "principal") if principal is not None else None,
            pending=0 if session.ended else len(session.approvals.open(self._clock())),
        )

    def key_of(self, id: str | UUID) -> bytes:
        """Return the key of a session, which is needed to validate its ledger."""
        return self._key_of(str(self._header(self._ledger(session_id_of(id)))["nonce"]))


def _is_spent(policy: Policy, course: Course) -> bool:
    return course.lost or not policy.next_offers(course.held)


def _older_name(folder: Path, digest: str) -> Path:
    return folder / f"{digest}.tcca"


def _artifact_in(folder: Path, digest: str) -> Path:
    """Return the path of an artifact of a store.

    Raises:
        ResumeError: the file is missing, or other users may access it.
    """
    named = _older_name(folder, digest)
    path = named if os.path.lexists(named) else folder / ARTIFACT
    os.close(private_files.open_private(path, os.O_RDONLY))
    return path


def _go_through(replay: SessionReplay, path: Path) -> None:
    """Replay all complete records of a ledger.  An incomplete last line is ignored.

    Raises:
        ResumeError: the validator has a finding.
    """
    number, name = 0, path
    while True:
        handle = private_files.open_private(name, os.O_RDONLY)
        with os.fdopen(handle, "rb") as file:
            reader = ledger.LedgerReader(iter(partial(file.read, 1 << 16), b""))
            head = reader.head
            try:
                for record in reader:
                    replay.step(record, head)
                    head = reader.head
            except Rejected as refusal:
                replay.findings.refuse(refusal, replay.line)
        for finding in replay.findings.items:
            place = f"{path.name}: line {finding.line}: {finding.field}: {finding.code.value}"
            raise ResumeError(place, finding.expected, finding.found)
        number += 1
        name = file_name(path, number)
        if not (replay.rolled and os.path.lexists(name)):
            return
        replay.roll(head)


def _is_nonce(nonce: str) -> bool:
    return re.fullmatch("[0-9a-f]{32}", nonce) is not None


def _digest_in(folder: Path) -> str:
    """Return the digest of the store's current artifact, from `store.json`.

    Raises:
        ResumeError: the file is missing or malformed.
    """
    path = folder / "store.json"
    try:
        told = json.loads(private_files.bytes_of(path, 1 << 12))
    except ValueError:
        told = None
    found = told if isinstance(told, dict) else {}
    digest = found.get("artifact")
    known = (found.get("format"), found.get("format_version")) == (FORMAT, VERSION)
    if not known or not isinstance(digest, str) or _HEX.fullmatch(digest) is None:
        raise ResumeError(str(path), f"{FORMAT} {VERSION} with the digest of an artifact", "none")
    return digest


@contextmanager
def _as_ledger_error(path: Path) -> Iterator[None]:
    """Turn an OSError in the block into a LedgerError about this path."""
    try:
        yield
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerError(str(path), error) from error


def local_principal() -> tuple[str, str]:
    """Return the principal for clients that run as the user of this gate.  No token can name it."""
    return "", ""


if sys.platform == "win32":

    def _lock(handle: int, *, wait: bool) -> None:
        raise OSError(0, "a store needs a system with file locks")
else:
    import fcntl

    def _lock(handle: int, *, wait: bool) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))

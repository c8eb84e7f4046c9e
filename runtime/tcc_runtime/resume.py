"""Resumes an interrupted run after the last complete record of its ledger.

Text: docs/spec/race.md, section 17.  A run is a function of its header, its seed and its artifact.
So the run is repeated from the start, and each record is compared with the ledger's record.  After
the verified prefix, the run writes new records.  So the prefix of another run is never continued,
and the result equals that of an uninterrupted run.  The run takes known costs from the answers in
the ledger and does not ask again.
Cost: that of the run so far, and two passes over its ledger.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcc_certs.errors import Code, ensure, require
from tcc_certs.formats.codec import Json, encode
from tcc_certs.formats.ledger import SCHEMA, LedgerReader
from tcc_certs.formats.ledger_schema import check_record
from tcc_certs.policy.atoms import Atom, canonical_atom
from tcc_runtime.account.account import Account
from tcc_runtime.adapters.adapter import Adapter
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.errors import LedgerError, ResumeError
from tcc_runtime.ledger.outputs import target_of
from tcc_runtime.ledger.recorder import Recorder
from tcc_runtime.ledger.sinks import LedgerTail
from tcc_runtime.outcome import Run
from tcc_runtime.pricing import drawing
from tcc_runtime.pricing.quotes import Answer, Quoter
from tcc_runtime.run import QUICKEST, Engine, OnExpand, search
from tcc_runtime.settings.settings import Settings

_CHUNK = 1 << 16


def resume(
    artifact: Artifact,
    path: Path,
    seed: bytes,
    *,
    opening_salt: bytes | None = None,
    withhold: bool = False,
    on_expand: OnExpand | None = None,
    sync_ms: int = 1000,
    quoter: Quoter | None = None,
    engine: Engine = QUICKEST,
    adapters: Iterable[Adapter] | None = None,
    account: Account | None = None,
    pam: bool = False,
) -> Run:
    """Resume a run.  If its ledger is closed, the run is only repeated.

    A ledger that was closed as ``interrupted`` is continued before its `close`, which is removed.
    A time limit counts from the end of the ledger.

    Args:
        artifact: of the run.
        path: its ledger.  Nothing is written until the whole prefix is verified as this run's.
        seed: of the run, 32 bytes.
        opening_salt: required if the run was given one.
        withhold: leave the seed out of `close`.
        on_expand: as in a search; it is called for the expansions of the prefix too.
        sync_ms: as for the ledger's file.
        quoter: answers the questions after the last answer in the ledger.
        engine: how the rest is computed; it may differ from the engine of the prefix.
        adapters: as in a search; they must be the adapters of the ledger.
        account: as in a search; it must be the account of the ledger.
        pam: as in a search.

    Raises:
        ResumeError: the ledger has no record, or is not from this artifact and seed.
        Rejected: L101 to L104, D101, D102, D201: a line is no valid record, or the prefix has
            another format.
        SettingsError: the header has settings that no run accepts.
        LedgerError: the ledger cannot be read or written.
        KeyboardInterrupt: Ctrl-C before the end of the prefix; the ledger is unchanged.
    """
    try:
        prefix = read_prefix(path)
        settings = _settings(prefix.header, seed, opening_salt)
        _require_same(prefix.header, artifact, settings)
        _require_account(prefix.header, account)
        with path.open("rb") as handle:
            recorder = Replaying(prefix, handle, path, withhold=withhold, sync_ms=sync_ms)
            asked = drawing.RecordedAnswers(prefix.answers, quoter)
            clock = _clock(recorder)
            told = on_expand, clock, asked, engine, adapters, account
            return search(artifact, settings, recorder, *told, pam=pam)
    except LedgerError:
        raise
    except OSError as error:
        raise LedgerError(str(path), error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPrefix:
    """The complete part of a ledger, which a resumed run continues.

    Attributes:
        header: its `open`.
        records: number of complete records, which take `size` bytes.
        dropped: number of bytes after them, including the `close` of an interrupted run.
        answers: the answers in its `refine` records.
        told: the account events in its records.
    """

    header: Mapping[str, Json]
    records: int
    size: int
    dropped: int
    answers: Sequence[Answer]
    told: Sequence[drawing.Told]


def read_prefix(path: Path) -> LedgerPrefix:
    """Verify the chain of a ledger and return its complete part.

    Raises:
        ResumeError: the ledger has no complete record.
        Rejected: a complete line is no record, or does not follow from the previous line.
        OSError: the file cannot be read.
    """
    # A pipe or a device may never end, and a run cannot continue it.
    with target_of(path).open("rb") as handle:
        reader = LedgerReader(iter(lambda: handle.read(_CHUNK), b""))
        header: Mapping[str, Json] | None = None
        answers: list[Answer] = []
        told: list[drawing.Told] = []
        kind = ""
        record: Mapping[str, Json] = {}
        for record in reader:
            _require_open(kind, reader.records)
            if header is None and record.get("kind") == "session":
                raise ResumeError("line 1", "the ledger of a run", "that of a session")
            kind = check_record(record, reader.records)
            if header is None:
                header = record
                require("open", kind, Code.LEDGER_ORDER, "line 1: kind")
            if kind == "refine":
                answers.append(drawing.answer_of(record, reader.records))
            if "account_left" in record:
                told.append(drawing.told_of(record, reader.records))
        if reader.tail:
            _require_open(kind, reader.records + 1)
        size = handle.tell()
    if header is None:
        raise ResumeError("line 1", "a whole record", "none")
    interrupted = kind == "close" and record["stop"] == "interrupted"
    # Lines are canonical, so the re-encoded record has the length of the line.
    dropped = len(encode(record)) - 1 + _LINK_BYTES if interrupted else len(reader.tail)
    return LedgerPrefix(
        header=header,
        records=reader.records - interrupted,
        size=size - dropped,
        dropped=dropped,
        answers=answers,
        told=told,
    )


def _require_open(kind: str, line: int) -> None:
    """Check that no line follows `close`."""
    ensure(kind != "close", Code.LEDGER_ORDER, f"line {line}", "the end of the ledger", "more")


def _settings(header: Mapping[str, Json], seed: bytes, salt: bytes | None) -> Settings:
    told: dict[str, Any] = {
        name: header[name]
        for name in (
            "mode", "race", "keys", "recipe", "top", "inflate", "tau", "alpha", "eta", "count_bits",
        )
    }  # fmt: skip
    for name in ("beacon", "client_nonce"):
        if name in header:
            told[name] = bytes.fromhex(str(header[name]))
    told["after"] = header.get("after", ())
    told["delta"] = header.get("delta")
    told["atoms"] = _atoms(header.get("atoms", ()))
    told["raw_input_dependent"] = header["privacy_scope"] == "raw_input_dependent"
    limits: Any = header["run_limits"]
    for name in ("max_expansions", "price_cap", "sla_ms", "epsilon_cap"):
        told[name] = limits.get(name)
    controller: Any = header.get("controller", {})
    told.update(controller)
    told["max_seconds"] = limits["max_ms"] / 1000 if "max_ms" in limits else None
    # A cut at the root's rank is the same as no cut; the modes without a cut accept only None.
    if header["mode"] != "fallback" and header["race"] != "literal":
        told["truncate"] = header["truncate"]
    return Settings(seed=seed, opening_salt=salt, **told)


def _atoms(listed: Any) -> tuple[Atom, ...]:
    return tuple(
        canonical_atom(item, f"line 1: atoms[{i}]", Code.LEDGER_SCHEMA)
        for i, item in enumerate(listed)
    )


def _require_same(header: Mapping[str, Json], artifact: Artifact, settings: Settings) -> None:
    expected = {
        "artifact": artifact.digest.hex(),
        "seed_commitment": settings.commitment.hex(),
        "schema": SCHEMA,
    }
    for name, value in expected.items():
        if header[name] != value:
            raise ResumeError(f"open: {name}", value, header[name])


def _require_account(header: Mapping[str, Json], account: Account | None) -> None:
    named = header.get("account")
    expected = named.get("id") if isinstance(named, dict) else "no account"
    found = "no account" if account is None else account.id
    if expected != found:
        raise ResumeError("open: account", expected, found)


class Replaying(Recorder):
    """A recorder that compares each line with the ledger's line, and appends after the last one.

    Args:
        prefix: the complete part of the ledger.
        lines: the ledger, from its first byte.
        path: the same file, to be written to.
    """

    def __init__(
        self,
        prefix: LedgerPrefix,
        lines: Iterator[bytes],
        path: Path,
        *,
        withhold: bool,
        sync_ms: int,
    ) -> None:
        started: Any = prefix.header["started_ms"]
        self._tail = LedgerTail(path, prefix.size, prefix.size + prefix.dropped, sync_ms=sync_ms)
        super().__init__(self._tail, started_ms=started, withhold=withhold)
        self._prefix = prefix
        self._lines = lines
        self._kept = 0  # lines of the prefix compared so far

    @property
    def replaying(self) -> bool:
        """True if lines of the prefix are left."""
        return self._kept < self._prefix.records

    def drawing(self, account: Account) -> drawing.Drawing:
        """Return a drawing that gives the account events of the ledger first, and then uses the
        account.
        """
        return drawing.Redrawn(drawing.Drawn(account, self.run_id), self._prefix.told)

    def lines(self, bodies: Iterable[bytes]) -> None:
        """Append the lines one by one, because each may have to be compared."""
        for body in bodies:
            self._append(body)

    def _append(self, body: bytes) -> None:
        while self.replaying:
            line = next(self._lines)
            self._kept += 1
            self._head = bytes.fromhex(line[-67:-3].decode())
            if not _is_recovered(line):
                self._require(line, body)
                return
        if self._tail.untouched:
            self._tail.begin()
            super()._append(_recovered(self._prefix))
        super()._append(body)

    def _require(self, line: bytes, body: bytes) -> None:
        found = line[:-_LINK_BYTES] + b"}"
        if found == body:
            return
        if b'"kind":"close"' in body and b'"stop":"interrupted"' in body:
            raise KeyboardInterrupt
        path = f"line {self._kept}"
        raise ResumeError(path, _shown(body), _shown(found))


_LINK_BYTES = len(b',"~":"') + 64 + len(b'"}\n')


def _is_recovered(line: bytes) -> bool:
    return line.startswith(b'{"dropped_bytes":')


def _recovered(prefix: LedgerPrefix) -> bytes:
    return b'{"dropped_bytes":%d,"kind":"recovered","records":%d}' % (
        prefix.dropped,
        prefix.records,
    )


def _shown(body: bytes) -> str:
    return body.decode("utf-8", "replace")


def _clock(recorder: Replaying) -> Callable[[], float]:
    """Return a clock that shows 0 during the replay and starts at its end."""
    started: float | None = None

    def seconds() -> float:
        nonlocal started
        if recorder.replaying:
            return 0.0
        now = time.monotonic()
        started = now if started is None else started
        return now - started

    return seconds

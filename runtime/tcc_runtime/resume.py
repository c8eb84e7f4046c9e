"""A run that was cut off, resumed behind the last whole record of its ledger.

Text: docs/spec/race.md, section 17.  A run is a function of its header, its seed and its artifact:
it is played again from the start, each record held against the one that is there, and goes on
writing where the verified prefix ends.  So a prefix that is not this run's is never continued, and
the result is that of a run that nothing cut.  What calls cost is not asked again: answers that the
ledger has are taken from it.
Cost: the run so far, once more, and two passes over its ledger.
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
from tcc_certs.privacy.accountant import RENYI
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
    """Resumes a run; one whose ledger is closed is only played again.

    A ledger closed as ``interrupted`` counts as cut off before its `close`, which is left out.
    A cap on time counts from where the ledger ended.

    Args:
        artifact: of the run.
        path: its ledger; nothing is written before the whole prefix was found to be this run's.
        seed: of the run, 32 bytes.
        opening_salt: where the run was given one.
        withhold: leave the seed out of `close`.
        on_expand: as in a search; it is called for the expansions of the prefix too.
        sync_ms: as of the ledger's file.
        quoter: is asked where the answers of the ledger end.
        engine: how it is computed, whoever computed its prefix.
        adapters: as of a search; those of the ledger.
        account: as of a search; that of the ledger.
        pam: as of a search.

    Raises:
        ResumeError: the ledger holds no record, or not this artifact's run with this seed.
        Rejected: L101 to L104, D101, D102, D201: a record is no record; the prefix is not this
            format's.
        SettingsError: the header asks for what no run can be told.
        LedgerError: the ledger cannot be read or written.
        KeyboardInterrupt: Ctrl-C before the end of the prefix; the ledger is as it was.
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
    """The remainder of a ledger.

    Attributes:
        header: its `open`.
        records: whole records, `size` bytes.
        dropped: bytes after them, those of an interrupted run's `close` among them.
        answers: those of its `refine` records.
        told: what its records say of the account of the run.
    """

    header: Mapping[str, Json]
    records: int
    size: int
    dropped: int
    answers: Sequence[Answer]
    told: Sequence[drawing.Told]


def read_prefix(path: Path) -> LedgerPrefix:
    """Verifies the chain and finds where it ends: at its last whole record that goes on.

    Raises:
        ResumeError: there is no whole record.
        Rejected: a line with its LF is no record, or does not follow from the one before.
        OSError: the file cannot be read.
    """
    # A pipe or a device may never end, and is nothing that can be written on.
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
    # Lines are canonical, so one is as long as its record is when it is written again.
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
    """Nothing follows `close`."""
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
    told["accounting"] = header.get("accounting", RENYI)
    told["raw_input_dependent"] = header["privacy_scope"] == "raw_input_dependent"
    limits: Any = header["run_limits"]
    for name in ("max_expansions", "price_cap", "sla_ms", "epsilon_cap"):
        told[name] = limits.get(name)
    controller: Any = header.get("controller", {})
    told.update(controller)
    told["max_seconds"] = limits["max_ms"] / 1000 if "max_ms" in limits else None
    # A cut at the root's rank and none are one; the modes without a cut take only none.
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
    """A recorder that holds each line against the ledger's, and writes on where that ends.

    Args:
        prefix: the remainder of the ledger.
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
        self._kept = 0  # lines of the prefix that were met

    @property
    def replaying(self) -> bool:
        """True if lines of the prefix are left."""
        return self._kept < self._prefix.records

    def drawing(self, account: Account) -> drawing.Drawing:
        """What the ledger has of the account, and then what the account has."""
        return drawing.Redrawn(drawing.Drawn(account, self.run_id), self._prefix.told)

    def lines(self, bodies: Iterable[bytes]) -> None:
        """One by one, as long as there are lines to hold them against."""
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
    """Stands still during the replay, then runs from there."""
    started: float | None = None

    def seconds() -> float:
        nonlocal started
        if recorder.replaying:
            return 0.0
        now = time.monotonic()
        started = now if started is None else started
        return now - started

    return seconds

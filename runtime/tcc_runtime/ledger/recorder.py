"""Recording of a run: chains the lines of its ledger, and keeps their order.

Format: docs/spec/ledger.md.  :mod:`tcc_runtime.ledger.steps` and :mod:`tcc_runtime.ledger.lines`
render the lines.  Most of the `open` record is the same for many runs over one artifact and is
kept; a test compares the record with the bytes of the canonical writer.
Cost: rendering a line and one BLAKE3 hash of it; two hashes for an `open` with the options of the
last run.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from operator import attrgetter
from types import TracebackType
from typing import Final

from blake3 import blake3

from tcc_certs.formats.codec import Json, blake, encode
from tcc_certs.race.digest import seed_commitment, uuid7
from tcc_certs.replay.amounts import SpentAmounts
from tcc_certs.replay.asking.controller import Choice
from tcc_runtime.account.account import Account
from tcc_runtime.artifact.load import Artifact
from tcc_runtime.guards import Descent, SearchGuard
from tcc_runtime.item import ID, Item, node_of
from tcc_runtime.ledger.lines import AskLines, Contexts, Marks, node_id, stamp_of
from tcc_runtime.ledger.sinks import HashOnly, LineSink
from tcc_runtime.ledger.steps import StepLines, Waiting, close_record, downgrade_record, open_record
from tcc_runtime.outcome import Run
from tcc_runtime.pricing.drawing import Drawing, Drawn, Wish
from tcc_runtime.pricing.refine import AnsweredAsk
from tcc_runtime.races.interface import Race, Step, clamps
from tcc_runtime.settings.modes import Claim, Terms
from tcc_runtime.settings.settings import Mode, Settings, options_in

# The record `open`.

_TERMS = attrgetter(*(field.name for field in fields(Terms) if field.name != "settings"))
# Members at the top level of the record: inside a text, each quote has a backslash before it.
_AFTER_ID, _CHANGING = b'"run_limits":', b'"seed_commitment":"","started_ms":0'


def run_id_in(line: bytes) -> str:
    """Return the id of the run in its `open` record."""
    return line.partition(b'"run_id":"')[2][:36].decode()


class _Common:
    """The parts of `open` records that are the same for all runs with the same terms.

    Only the seed and the start differ.  A beacon or a nonce is part of it, and changes with each
    run.  So with a beacon or a nonce it is used for one run only.

    Attributes:
        terms, options: the terms and options of these runs.
        before, between, after: the bytes around `run_id` and around the members that change.
    """

    __slots__ = ("after", "before", "between", "options", "terms")

    def __init__(self, artifact: Artifact, terms: Terms) -> None:
        self.terms: Final[object] = _TERMS(terms)
        self.options: Final[object] = options_in(terms.settings)
        text, _, self.after = encode(open_record(artifact, terms, b"", 0)).partition(_CHANGING)
        self.before, name, between = text.partition(_AFTER_ID)
        self.between = name + between


def open_line(artifact: Artifact, terms: Terms, commitment: bytes, started_ms: int) -> bytes:
    """Return the `open` record as bytes.

    Args:
        commitment: the commitment to the seed.
        started_ms: UTC milliseconds since 1970, below 2^48.
    """
    settings, found = terms.settings, artifact.kept.get("open")
    if settings.beacon is not None or settings.client_nonce is not None:
        found = _Common(artifact, terms)
    elif (
        not isinstance(found, _Common)
        or found.terms != _TERMS(terms)
        or found.options != options_in(settings)
    ):
        found = artifact.kept["open"] = _Common(artifact, terms)
    changing = f'"seed_commitment":"{commitment.hex()}","started_ms":{started_ms}'
    rest = found.between + changing.encode() + found.after
    run_id = uuid7(started_ms, blake(found.before + rest))
    return b'%b"run_id":"%b",%b' % (found.before, run_id.encode(), rest)


_MOST_LINES = 192


class Recorder:
    """Writes the ledger of one run.

    Args:
        sink: receives the lines.
        started_ms: the start of the run, UTC milliseconds since 1970, below 2^48.
        withhold: whether to leave the seed and the salt out of `close`.

    Raises:
        ValueError: started_ms is out of range.

    Attributes:
        run_id: the id of the run, once its ledger is open.
    """

    def __init__(self, sink: LineSink, *, started_ms: int, withhold: bool = False) -> None:
        if not 0 <= started_ms < 1 << 48:
            raise ValueError("started_ms must lie in 0 .. 2^48 - 1")
        self._sink = sink
        self._written = not isinstance(sink, HashOnly)
        self._started_ms = started_ms
        self._withhold = withhold
        self._settings: Settings | None = None
        self._salt = b""
        self._head = bytes(32)
        self._hasher = blake3()
        self._marks = Marks()
        self._stamp = stamp_of(started_ms)
        self._steps = StepLines(self._stamp, "", self._marks, Contexts())
        self._race: Race | None = None
        self._waiting: list[Waiting] = []
        self._size = 0
        self._told: AskLines | None = None
        self.run_id = ""

    @property
    def head(self) -> str:
        """The hash of the last line, hex."""
        return self._head.hex()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._sink.close()

    def open(self, artifact: Artifact, terms: Terms) -> None:
        """Open the sink and write the `open` record.

        Raises:
            LedgerError: the sink cannot be opened or written.
            ValueError: the recorder has written a ledger already.
        """
        if self._settings is not None:
            raise ValueError("a recorder writes one ledger")
        self._settings = terms.settings
        self._marks = Marks(terms.claim is Claim.NONE)
        single = '{"N":"1",' if artifact.manifest.counts == "exact" else '{"Nub":"1",'
        self._steps = StepLines(self._stamp, single, self._marks, _contexts_of(artifact))
        if terms.ask is not None:
            self._told = AskLines(artifact.manifest.beta, terms)
        self._salt = terms.settings.salt
        commitment = seed_commitment(terms.settings.seed, self._salt)
        line = open_line(artifact, terms, commitment, self._started_ms)
        self._sink.open()
        self._append(line)
        self._sink.sync()
        self.run_id = run_id_in(line)

    def drawing(self, account: Account) -> Drawing:
        """Return the reservations of the recorded run in an account."""
        return Drawn(account, self.run_id)

    def enter(self, race: Race) -> None:
        """Set the race of all later steps.  Waiting lines are written first."""
        self.flush()
        self._race = race

    def root(self, item: Item) -> None:
        """Write the `node` record of the root."""
        self._append(self._steps.root(self._current, item))

    def step(self, step: Step, descent: Descent | None) -> None:
        """Queue the records of a step: `expand` or `draw`, a `node` for each child, and the
        remainder.
        """
        self._waiting.append((step, descent))
        self._size += 2 + len(step[3])
        if self._size >= _MOST_LINES:
            self.flush()

    def leaf(self, leaf: Item, word: int, incumbent: int | None) -> None:
        """Queue a `leaf` record with its word U_P, and B* after it."""
        self._waiting.append((leaf, word, incumbent))
        self._size += 1
        if self._size >= _MOST_LINES:
            self.flush()

    def flush(self) -> None:
        """Write the queued records.

        Raises:
            LedgerError: the ledger cannot be written.
        """
        # Emptied first, so that no record is written twice after an exception.
        waiting, self._waiting, self._size = self._waiting, [], 0
        if waiting:
            self.lines(self._steps.lines(self._current, waiting))

    def downgrade(self, mode: Mode, claim: Claim, guard: SearchGuard) -> None:
        """Write a `downgrade` record.  It has the claim, so no later record repeats NoCert."""
        self.flush()
        self._marks.lowered |= claim is Claim.NONE
        self._write(downgrade_record(mode, claim, guard))

    def requeue(self, item: Item) -> None:
        """Write a `requeue` record."""
        self.flush()
        clamp = clamps(self._current, item, popped=False)
        named = self._named(node_of(item))
        self._write(self._asks.requeue(item, named, clamp, self._marks))

    def reserve(
        self, edge: Item, choice: Choice, spent: SpentAmounts, wish: Wish | None = None
    ) -> None:
        """Write the `budget` record before a question, or after the account refused it.

        Args:
            spent: the amounts of all questions before it.
            wish: the reservation of the account; None: the run has no account.
        """
        self.flush()
        named = self._named(edge)
        self._write(self._asks.reserve(edge, named, choice, spent, wish, self._marks))

    def refine(self, asked: AnsweredAsk, spent: SpentAmounts) -> None:
        """Write a `refine` record and make it durable, because answers may cost money."""
        self._write(self._asks.refine(asked, self._named(asked.node), spent, self._marks))
        self._sink.sync()

    def exhausted(self, edge: Item | None, spent: SpentAmounts) -> None:
        """Write the `budget` record for the end of the questions."""
        self.flush()
        named = None if edge is None else self._named(edge)
        self._write(self._asks.exhausted(edge, named, spent, self._marks))

    @property
    def _current(self) -> Race:
        if self._race is None:
            raise ValueError("a race is entered before its steps are told")
        return self._race

    @property
    def _asks(self) -> AskLines:
        if self._told is None:
            raise ValueError("nothing is asked where every cost is a point")
        return self._told

    def _named(self, node: Item) -> str:
        return node_id(self._stamp, node[ID].hex())

    def close(self, run: Run) -> Run:
        """Write the `close` record and make the ledger durable; return the run with the ledger's
        head.
        """
        if self._settings is None:
            raise ValueError("a recorder closes what it has opened")
        record: Mapping[str, Json] = close_record(run, self._settings)
        if not self._withhold:
            opened = {"seed": self._settings.seed.hex(), "opening_salt": self._salt.hex()}
            record = {**record, **opened}
        self._write(record)
        self._sink.sync()
        return replace(run, ledger_head=self.head)

    def _write(self, record: Mapping[str, Json]) -> None:
        self._append(encode(record))

    def _append(self, body: bytes) -> None:
        self._chain((body,))

    def lines(self, bodies: Iterable[bytes]) -> None:
        """Write records that were rendered elsewhere, in one write."""
        self._chain(bodies)

    def _chain(self, bodies: Iterable[bytes]) -> None:
        reset, update, digest = self._hasher.reset, self._hasher.update, self._hasher.digest
        head, written = self._head, self._written
        linked: list[bytes] = []
        for body in bodies:
            reset()
            update(head + body)
            head = digest()
            if written:
                linked += (body[:-1], b',"~":"', hexlify(head), b'"}\n')
        self._head = head
        if self._written:
            self._sink.write(b"".join(linked))


def _contexts_of(artifact: Artifact) -> Contexts:
    """Return the contexts that all runs over an artifact share."""
    found = artifact.kept.get("contexts")
    if not isinstance(found, Contexts):
        found = artifact.kept["contexts"] = Contexts()
    return found

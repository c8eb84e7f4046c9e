"""The recorder: what a run does becomes the lines of a ledger.

Format: docs/spec/ledger.md; :mod:`tcc_runtime.records` renders, this file chains and keeps order.
Cost: rendering a node, one BLAKE3 of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType

from tcc_certs.codec import Json, encode
from tcc_certs.digest import blake, opening_salt, seed_commitment, uuid7
from tcc_runtime.guards import Descent
from tcc_runtime.load import Artifact
from tcc_runtime.outcome import Run
from tcc_runtime.race import Expansion, Node
from tcc_runtime.records import (
    Marks,
    NodeLines,
    close_record,
    expand_record,
    leaf_line,
    open_record,
)
from tcc_runtime.settings import Settings
from tcc_runtime.sinks import Sink


class Recorder:
    """Writes one ledger of one run.

    Args:
        sink: where the lines go.
        started_ms: UTC, milliseconds since 1970, below 2^48.
        salt: opens the seed commitment, 32 bytes; derived from the seed where not given.
        withhold: leave the seed and the salt out of `close`.

    Raises:
        ValueError: started_ms or salt is out of range.
    """

    def __init__(
        self, sink: Sink, *, started_ms: int, salt: bytes | None = None, withhold: bool = False
    ) -> None:
        if not 0 <= started_ms < 1 << 48:
            raise ValueError("started_ms must lie in 0 .. 2^48 - 1")
        if salt is not None and len(salt) != 32:
            raise ValueError("the opening salt has 32 bytes")
        self._sink = sink
        self._started_ms = started_ms
        self._salt = salt
        self._withhold = withhold
        self._seed = b""
        self._head = bytes(32)
        self._marks = Marks()
        self._nodes = NodeLines(started_ms)

    @property
    def head(self) -> str:
        """The chain's head, hex."""
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

    def open(self, artifact: Artifact, settings: Settings) -> None:
        """Opens the sink and writes `open`.

        Raises:
            LedgerError: the sink cannot be opened or written.
            ValueError: it has written a ledger already.
        """
        if self._seed:
            raise ValueError("a recorder writes one ledger")
        self._seed = settings.seed
        self._salt = self._salt or opening_salt(settings.seed)
        commitment = seed_commitment(settings.seed, self._salt)
        record = open_record(artifact, settings, commitment, self._started_ms)
        run_id = uuid7(self._started_ms, blake(encode(record)))
        self._sink.open()
        self._write({**record, "run_id": run_id})
        self._sink.sync()

    def root(self, node: Node) -> None:
        """Writes the root's `node`."""
        self._append(self._nodes.root(node, self._marks))

    def expand(self, expansion: Expansion, descent: Descent | None) -> None:
        """Writes `expand` and the `node` of every child."""
        node_id = self._nodes.node_id(expansion.node.digest.hex())
        self._write(expand_record(expansion, node_id, descent, self._marks))
        for line in self._nodes.children(expansion, node_id, self._marks):
            self._append(line)

    def leaf(self, leaf: Node, word: int, incumbent: int | None) -> None:
        """Writes `leaf`: U_P is `word`, B* after it `incumbent`."""
        node_id = self._nodes.node_id(leaf.digest.hex())
        self._append(leaf_line(leaf, node_id, word, incumbent))

    def close(self, run: Run) -> Run:
        """Writes `close`, makes the ledger durable, and gives the run back with its head."""
        record: Mapping[str, Json] = close_record(run)
        if not self._withhold and self._salt is not None:
            opened = {"seed": self._seed.hex(), "opening_salt": self._salt.hex()}
            record = {**record, **opened}
        self._write(record)
        self._sink.sync()
        return replace(run, ledger_head=self.head)

    def _write(self, record: Mapping[str, Json]) -> None:
        self._append(encode(record))

    def _append(self, body: bytes) -> None:
        self._head = blake(self._head + body)
        self._sink.write(b'%b,"~":"%b"}\n' % (body[:-1], self._head.hex().encode()))

"""The recorder: what a run does becomes the lines of a ledger.

Format: docs/spec/ledger.md; :mod:`tcc_runtime.records` and :mod:`tcc_runtime.lines` render, this
file chains and keeps order.
Cost: rendering a node, one BLAKE3 of it.
"""

from __future__ import annotations

from binascii import hexlify
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import TracebackType

from blake3 import blake3

from tcc_certs.formats.codec import Json, encode
from tcc_certs.race.digest import seed_commitment
from tcc_runtime.asking import AskLines
from tcc_runtime.controller import Choice, Spending
from tcc_runtime.guards import Descent, Guard
from tcc_runtime.lines import Marks, NodeLines, expand_line, leaf_line
from tcc_runtime.load import Artifact
from tcc_runtime.modes import Claim, Terms
from tcc_runtime.node import Expansion, Node
from tcc_runtime.open_line import open_line
from tcc_runtime.outcome import Run
from tcc_runtime.records import (
    close_record,
    downgrade_record,
    expand_record,
    late_leaf_record,
)
from tcc_runtime.refine import Asked
from tcc_runtime.rest_item import Drawing, Rest
from tcc_runtime.rest_lines import draw_line, rest_line
from tcc_runtime.settings import Mode, Settings
from tcc_runtime.sinks import HashOnly, Sink


class Recorder:
    """Writes one ledger of one run.

    Args:
        sink: where the lines go.
        started_ms: UTC, milliseconds since 1970, below 2^48.
        withhold: leave the seed and the salt out of `close`.

    Attributes:
        wants_nodes: whether a run has to tell it of its nodes, and not only of their lines; then
            the run goes a step at a time.

    Raises:
        ValueError: started_ms is out of range.
    """

    wants_nodes = False

    def __init__(self, sink: Sink, *, started_ms: int, withhold: bool = False) -> None:
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
        self._nodes = NodeLines(started_ms)
        self._told: AskLines | None = None

    @property
    def head(self) -> str:
        """The chain's head, hex."""
        return self._head.hex()

    @property
    def stamp(self) -> str:
        """The start of every node_id."""
        return self._nodes.stamp

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
        """Opens the sink and writes `open`.

        Raises:
            LedgerError: the sink cannot be opened or written.
            ValueError: it has written a ledger already.
        """
        if self._settings is not None:
            raise ValueError("a recorder writes one ledger")
        self._settings = terms.settings
        self._marks = Marks(terms.claim is Claim.NONE)
        self._nodes = NodeLines(self._started_ms, artifact.manifest.counts != "exact")
        if terms.ask is not None:
            self._told = AskLines(artifact.manifest.beta, terms.settings)
        self._salt = terms.settings.salt
        commitment = seed_commitment(terms.settings.seed, self._salt)
        line = open_line(artifact, terms, commitment, self._started_ms)
        self._sink.open()
        self._append(line)
        self._sink.sync()

    def root(self, node: Node) -> None:
        """Writes the root's `node`."""
        self._append(self._nodes.root(node, self._marks))

    def expand(self, expansion: Expansion, descent: Descent | None) -> None:
        """Writes `expand` and the `node` of every child."""
        node_id = self._nodes.node_id(expansion.node.digest.hex())
        if descent is None and expansion.word is not None and not expansion.late:
            self._append(expand_line(expansion, node_id))
        else:
            self._write(expand_record(expansion, node_id, descent, self._marks))
        self._pushed(expansion, node_id)

    def _pushed(self, expansion: Expansion, node_id: str) -> None:
        for line in self._nodes.children(expansion, node_id, self._marks):
            self._append(line)
        if isinstance(expansion, Drawing) and expansion.rest is not None:
            self._append(rest_line(expansion.rest, node_id, self._marks))

    def draw(self, drawing: Drawing) -> None:
        """Writes `draw`, the `node` of every child, and what is left."""
        node_id = self._nodes.node_id(drawing.node.digest.hex())
        self._append(draw_line(drawing, node_id))
        self._pushed(drawing, node_id)

    def leaf(self, leaf: Node, word: int, incumbent: int | None, late: bool) -> None:
        """Writes `leaf`: U_P is `word`, B* after it `incumbent`.

        Args:
            late: whether the leaf's arrival was realised by this pop.
        """
        node_id = self._nodes.node_id(leaf.digest.hex())
        if late:
            self._write(late_leaf_record(leaf, node_id, word, incumbent, self._marks))
        else:
            self._append(leaf_line(leaf.value, node_id, word, incumbent))

    def downgrade(self, mode: Mode, claim: Claim, guard: Guard) -> None:
        """Writes `downgrade`; it carries the claim, so no later record repeats NoCert."""
        self._marks.lowered |= claim is Claim.NONE
        self._write(downgrade_record(mode, claim, guard))

    def requeue(self, node: Node) -> None:
        """Writes `requeue`."""
        named = self._named(node.of if isinstance(node, Rest) else node)
        self._write(self._asks.requeue(node, named, self._marks))

    def reserve(self, edge: Node, choice: Choice, spent: Spending) -> None:
        """Writes `budget`, before an ask; `spent` is what all asks before it took."""
        self._write(self._asks.reserve(edge, self._named(edge), choice, spent, self._marks))

    def refine(self, asked: Asked, spent: Spending) -> None:
        """Writes `refine` and makes it durable: answers may cost money."""
        self._write(self._asks.refine(asked, self._named(asked.node), spent, self._marks))
        self._sink.sync()

    def exhausted(self, edge: Node | None, spent: Spending) -> None:
        """Writes `budget`, where no ask is left."""
        named = None if edge is None else self._named(edge)
        self._write(self._asks.exhausted(edge, named, spent, self._marks))

    @property
    def _asks(self) -> AskLines:
        if self._told is None:
            raise ValueError("nothing is asked where every cost is a point")
        return self._told

    def _named(self, node: Node) -> str:
        return self._nodes.node_id(node.digest.hex())

    def close(self, run: Run) -> Run:
        """Writes `close`, makes the ledger durable, and gives the run back with its head."""
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
        """Writes records that were rendered elsewhere, in one piece."""
        self._chain(bodies)

    def _chain(self, bodies: Iterable[bytes]) -> None:
        hasher, head, linked = self._hasher, self._head, []
        for body in bodies:
            hasher.reset()
            hasher.update(head + body)
            head = hasher.digest()
            if self._written:
                linked.append(b'%b,"~":"%b"}\n' % (body[:-1], hexlify(head)))
        self._head = head
        if self._written:
            self._sink.write(b"".join(linked))

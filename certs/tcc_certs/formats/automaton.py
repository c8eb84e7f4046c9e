"""The automaton of an artifact as compressed rows: states, their edges, acceptance, rank.

A view of the columns; it promises nothing before :mod:`tcc_certs.states` has looked at it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tcc_certs.formats.artifact import ArtifactFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Automaton:
    """States 0 .. n-1; the root is the last one.

    Attributes:
        edge_start: [n+1]; the edges of q are ``edge_start[q] .. edge_start[q+1]-1``.
        edge_call: [e], index of the call.
        edge_target: [e], number of the target state.
        accept: [n], 1 where a plan may stop.
        rank: [n], most calls that may still follow.
    """

    edge_start: Sequence[int]
    edge_call: Sequence[int]
    edge_target: Sequence[int]
    accept: Sequence[int]
    rank: Sequence[int]

    @property
    def states(self) -> int:
        """How many states there are."""
        return len(self.accept)

    @property
    def root(self) -> int:
        """The state of the empty prefix."""
        return len(self.accept) - 1

    def edges(self, q: int) -> Iterator[tuple[int, int]]:
        """The edges of state `q` as (call, target), in call order."""
        span = slice(self.edge_start[q], self.edge_start[q + 1])
        return zip(self.edge_call[span], self.edge_target[span], strict=True)


def view(file: ArtifactFile) -> Automaton:
    """The automaton in the columns of `file`; nothing is copied."""
    columns = file.columns
    return Automaton(
        edge_start=columns["edge_start"].items(),
        edge_call=columns["edge_call"].items(),
        edge_target=columns["edge_target"].items(),
        accept=columns["accept"].items(),
        rank=columns["rank"].items(),
    )

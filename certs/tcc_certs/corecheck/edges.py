"""The edges of an automaton by letter: calls that a core treats alike have edges all or none.

Cost: linear in the edges of the states that are asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from tcc_certs.corecheck.letters import Alphabet
from tcc_certs.errors import Code, Rejected
from tcc_certs.formats.artifact import Automaton

Row: TypeAlias = "dict[int, Sequence[int]]"  # letter -> targets


class Edges:
    """The edges of a state by letter."""

    def __init__(
        self,
        automaton: Automaton,
        alphabet: Alphabet,
        core_calls: Sequence[int],
        texts: Sequence[str],
    ) -> None:
        self._automaton = automaton
        self._texts = texts
        self._letter_of = [alphabet.letter_of[call] for call in core_calls]
        self._sizes = [len(letter.calls) for letter in alphabet.letters]

    def of(self, q: int) -> Row:
        """Letter -> the targets of its calls; a letter has edges for all its calls or for none.

        Raises:
            Rejected: G102 where some calls of a letter have an edge and others have not.
        """
        targets: dict[int, list[int]] = {}
        edges = list(self._automaton.edges(q))
        for call, target in edges:
            targets.setdefault(self._letter_of[call], []).append(target)
        row: Row = {}
        for letter, found in targets.items():
            expected = self._sizes[letter]
            if len(found) != expected:
                like = next(call for call, _ in edges if self._letter_of[call] == letter)
                text = f"{expected} edges, for each call like {self._texts[like]}"
                raise Rejected(Code.CORE_NEXT_CALL, f"state {q}", text, len(found))
            row[letter] = (found[0],) if expected == 1 else sorted(set(found))
        return row

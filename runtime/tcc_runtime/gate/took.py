"""What the call of a model took, as whoever made it says.

Text: docs/budgets.md.  Cost: a few comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from tcc_certs.core.atoms import Codes, read_atom
from tcc_certs.errors import Code
from tcc_runtime.asking.quotes import Answer, nano

_CODES = Codes(Code.ATOMS, Code.ATOM_VALUE)


@dataclass(frozen=True, slots=True)
class Took:
    """What a call gave back, and what it took; what is left out is as its model declares.

    Attributes:
        result: what the call gave back.
        price: cents.
        latency_ms: milliseconds; None is measured.
        epsilon: an exact decimal of at most nine places, as a text.
        atom: the mechanism that it privatised with, as docs/privacy.md has atoms.

    Raises:
        AnswerError: a number is out of its range.
        Rejected: E101, E102 the atom is none.
    """

    result: object = None
    _: KW_ONLY
    price: int | None = None
    latency_ms: int | None = None
    epsilon: str | None = None
    atom: Mapping[str, Any] | None = None
    answer: Answer = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        answer = Answer(
            price=self.price,
            latency_ms=self.latency_ms,
            epsilon=None if self.epsilon is None else nano(self.epsilon, "epsilon"),
            atom=None if self.atom is None else read_atom(dict(self.atom), "atom", _CODES),
        )
        object.__setattr__(self, "answer", answer)

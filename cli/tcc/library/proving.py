"""Questions about all sessions of a grammar: `tcc.prove`.

This release has no engine that answers them, so every answer is `undecided` (TCC491).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tcc.library import Given, artifact_of

Kind = Literal["statement", "reachable", "implies", "finishable"]
MISSING: Final = "TCC491: this release cannot answer questions about all sessions of a grammar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The answer to a question.

    Attributes:
        kind: the kind of the question.
        text: the statement or the calls that the question names; None for other kinds.
        verdict: the answer.
        missing: what the engine lacks to decide the question.
    """

    kind: Kind
    text: str | None
    verdict: Literal["undecided"] = "undecided"
    missing: str = MISSING

    @property
    def proved(self) -> bool:
        """Whether the answer is a proof."""
        return False


def prove(
    source: Given,
    statement: str | None = None,
    *,
    reachable: str | None = None,
    implies: Given | None = None,
    finishable: bool = False,
) -> Proof:
    """Decide a question about every session that a gate allows.

    Args:
        source: a grammar or an artifact.
        statement: does every session satisfy this statement?
        reachable: does some session have a call in this set?
        implies: is every session of `source` a session of this grammar?
        finishable: can every session be finished?

    Raises:
        ValueError: not exactly one question was asked.
        CompileError: a grammar is refused.
        tcc_certs.errors.Rejected: an artifact is refused or declined.
        OSError: a file cannot be read.
    """
    asked = [statement is not None, reachable is not None, implies is not None, finishable]
    if sum(asked) != 1:
        raise ValueError("ask one question: a statement, reachable, implies or finishable")
    artifact_of(source)
    if implies is not None:
        artifact_of(implies)
        return Proof(kind="implies", text=None)
    if finishable:
        return Proof(kind="finishable", text=None)
    if reachable is not None:
        return Proof(kind="reachable", text=reachable)
    return Proof(kind="statement", text=statement)

"""Answers that come after their call was given up: they resolve what was unknown.

Nothing is resolved while a call is under way; so many are waited for as a session may leave unknown
by a wide margin, the oldest is forgotten first and stays unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tcc_runtime.errors import LedgerError
from tcc_runtime.gate.refusals import Refused
from tcc_runtime.mcp.outcomes import Ending, ending_of, observed_in
from tcc_runtime.mcp.session import Session
from tcc_runtime.mcp.under_way import Tool
from tcc_runtime.mcp.wire import Answer

_MOST = 256


class Late:
    """The calls whose answers may still come.

    Args:
        session: that holds what is unknown.
        tools: those of the grammar by name.
        note: is told, for people, what cannot be resolved.

    Attributes:
        trouble: why nothing further may be called; None where it may.
    """

    def __init__(
        self, session: Session, tools: Mapping[str, Tool], note: Callable[[str], None]
    ) -> None:
        self._session = session
        self._tools = tools
        self._note = note
        self._expected: dict[int, tuple[int, str]] = {}
        self._came: list[tuple[int, str, Ending]] = []
        self.trouble: str | None = None

    def expect(self, identity: int, seq: int, tool: str) -> None:
        """An answer to `identity` may still come."""
        self._expected[identity] = (seq, tool)
        if len(self._expected) > _MOST:
            del self._expected[next(iter(self._expected))]

    def take(self, answer: Answer) -> None:
        """An answer to something else than the call under way; one that nobody expects is none."""
        if not isinstance(answer.identity, int):
            return
        known = self._expected.pop(answer.identity, None)
        if known is None:
            return
        seq, tool = known
        ending = ending_of(answer, self._tools[tool].errors_failed)
        if ending.outcome != "unknown":
            self._came.append((seq, tool, ending))

    def resolve(self) -> None:
        """Resolve what came in the meantime; for when no call is under way."""
        came, self._came = self._came, []
        for seq, tool, ending in came:
            observed: dict[str, Any] | None = None
            if self._tools[tool].observed and ending.outcome == "done":
                observed = observed_in(ending.structured, self._tools[tool].observed)
            try:
                done = ending.outcome == "done"
                self._session.resolve(seq, "done" if done else "failed", observed=observed)
            except (LedgerError, Refused, ValueError) as error:
                # An answer that the grammar does not foresee is no outcome of an unknown call.
                self.trouble = f"call {seq} was answered late, and stays unknown: {error}"
                self._note(self.trouble)

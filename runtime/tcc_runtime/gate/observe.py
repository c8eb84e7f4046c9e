"""What a session tells programs that watch it: log records under ``tcc``, and spans.

Spans are made where the application has imported OpenTelemetry's API; nothing is imported for
them here.  A call's span is named and marked as the conventions for tools have it
(``execute_tool``), it is the current one inside of the block, and one that was refused has none but
a log record.  No argument, result or id of the caller's is told.
Cost: a look at the logger's level; spans are the application's choice.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Final

from tcc_certs.errors import Code, clip

_log: Final = logging.getLogger("tcc.gate")
_API: Final = "opentelemetry.trace"


class Observer:
    """Tells of one session.

    Args:
        session_id: of its ledger.
        grammar: its name.
    """

    __slots__ = ("_api", "_session", "_tracer", "session_id")

    def __init__(self, session_id: str, grammar: str) -> None:
        self.session_id = session_id
        self._api: Any = sys.modules.get(_API)
        self._tracer: Any = None if self._api is None else self._api.get_tracer("tcc")
        self._session: Any = None
        if self._tracer is not None:
            marks = {"tcc.session.id": session_id, "tcc.grammar": grammar}
            self._session = self._tracer.start_span("tcc.session", attributes=marks)
        _log.debug("session %s of %s", session_id, grammar)

    def began(self, tool: str, seq: int) -> Any:
        """A call may be made; what to hand to :meth:`ended`."""
        _log.debug("session %s: call %d, %s", self.session_id, seq, tool)
        if self._tracer is None:
            return None
        marks = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "tcc.session.id": self.session_id,
            "tcc.call.seq": seq,
        }
        link = [self._api.Link(self._session.get_span_context())]
        span = self._tracer.start_span(f"execute_tool {tool}", attributes=marks, links=link)
        inside = self._api.use_span(span, end_on_exit=False, record_exception=False)
        inside.__enter__()
        return span, inside

    def ended(self, call: Any, seq: int, outcome: str, reason: str, unforeseen: bool) -> None:
        """The block of a call is left."""
        level = logging.WARNING if outcome == "unknown" or unforeseen else logging.DEBUG
        said = f" ({clip(reason, 200)})" if reason else ""
        came = f"{outcome}, unforeseen" if unforeseen else outcome
        _log.log(level, "session %s: call %d is %s%s", self.session_id, seq, came, said)
        if call is None:
            return
        span, inside = call
        span.set_attribute("tcc.call.outcome", outcome)
        if outcome != "done" or unforeseen:
            span.set_status(self._api.StatusCode.ERROR, came)
        inside.__exit__(None, None, None)
        span.end()

    def refused(self, tool: object, code: Code | None) -> None:
        """A call or an end is not allowed."""
        name = clip(tool, 80) if isinstance(tool, str) else type(tool).__name__
        level = logging.ERROR if code is Code.NOT_WRITTEN else logging.INFO
        _log.log(level, "session %s: %s refused, %s", self.session_id, name or "end", code)
        if self._session is not None:
            self._session.add_event("tcc.refused", {"tcc.refusal.code": str(code)})

    def resolved(self, seq: int, outcome: str) -> None:
        """An unknown outcome is known."""
        _log.debug("session %s: call %d was %s", self.session_id, seq, outcome)

    def closed(self, ending: str) -> None:
        """The session has ended, or this gate lets go of it."""
        _log.debug("session %s: %s", self.session_id, ending)
        if self._session is not None:
            self._session.set_attribute("tcc.session.ending", ending)
            self._session.end()
            self._session = self._tracer = None

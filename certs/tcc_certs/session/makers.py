"""Who makes the calls of a session: models behind a budget, and without one nobody in particular.

Normative text: docs/spec/session.md, section 8.  A session without a budget has none of the
controller to trust, nor to load.  Cost: that of :mod:`tcc_certs.session.executions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tcc_certs.core.model import Core
from tcc_certs.errors import Code, Rejected, ensure
from tcc_certs.formats.ledger import Record
from tcc_certs.replay.findings import Findings

if TYPE_CHECKING:
    from tcc_certs.session.executions import Executions


class Makers:
    """The models of one session.

    Attributes:
        executions: the calls that they make; None before a budget.
    """

    def __init__(self, core: Core, session: str, findings: Findings) -> None:
        self.executions: Executions | None = None
        self._core, self._session, self._findings = core, session, findings

    def budget(self, record: Record, under_way: bool) -> None:
        """What models that make calls may take from here on; no call is under way."""
        ensure(not under_way, Code.LEDGER_ORDER, "kind", "the outcome of a call", "budget")
        ensure(self.executions is None, Code.SESSION_BUDGET, "kind", "one budget", "a second")
        from tcc_certs.session.budget import read_budget
        from tcc_certs.session.executions import Executions

        budget = read_budget(record, self._core, self._session)
        self.executions = Executions(budget, self._core.tools, self._findings)

    def asked(self, record: Record, line: int, under_way: bool) -> None:
        """What the asks of a search took; no call is under way."""
        ensure(not under_way, Code.LEDGER_ORDER, "kind", "the outcome of a call", "asked")
        if self.executions is None:
            raise Rejected(Code.SESSION_BUDGET, "kind", "a budget before", "asked")
        self.executions.asked(record, line)

    def call(self, tool: int, record: Record, line: int) -> None:
        """A call of a tool that is allowed."""
        found = record.get("execute")
        if self.executions is not None:
            self.executions.call(tool, found, line)
        else:
            ensure(found is None, Code.SESSION_MODEL, "execute", "no field, without budget", found)

    def outcome(self, record: Record, line: int) -> None:
        """The outcome of the last call."""
        found = record.get("took")
        if self.executions is not None:
            self.executions.outcome(found, record["outcome"] == "done", line)
        else:
            ensure(found is None, Code.SESSION_MODEL, "took", "no field, without budget", found)

    def give_up(self) -> None:
        """The last call has no outcome."""
        if self.executions is not None:
            self.executions.give_up()

    def check_refusal(self, tool: str) -> None:
        """A call of `tool` was refused as no model fits.

        Raises:
            Rejected: S211 no model makes it.
        """
        places = [at for at, one in enumerate(self._core.tools) if one.name == tool]
        makes = self.executions is not None and any(map(self.executions.makes, places))
        ensure(makes, Code.SESSION_REFUSAL, "code", "a code of a call that no model makes", tool)
